# One definition of every check: the same for a person, a hook and CI. `make scan` and `make test` do their own set-up.

PYTHON := $(shell for p in python3.14 python3.13 python3.12 python3.11 python3.10 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
DEMO := 8xh100-sxm-2s-8xcx7-ib-4nvsw
PART :=  # 2/20 is the second twentieth: of the mutants, of what the tests take a sample of, of the lab
unexport PYTHONDONTWRITEBYTECODE  # without byte code every process compiles all that it imports: half of a scan

.PHONY: scan test release-test check lint types layers docs pictures site completion zipapp wheelhouse deb rpm real-capture bench fuzz pairs mutants engines slurm lab clean help

help:
	@echo "make scan    set up, scan this host, and show where a full report of an 8-GPU machine is"
	@echo "make test    set up, run the tests"
	@echo "make release-test  build packages, the site and the worked patches of docs, and try them; a few mutants"
	@echo "make check   format, lint, types, layers, docs, all tests but those of make engines and make lab"
	@echo "make docs    write what is generated and in git (rules, tables of the dataset, goldens, samples of docs) again"
	@echo "make zipapp, make wheelhouse, make deb, make rpm"
	@echo "             dist/: one file, a folder of wheels, a Debian package, an RPM; for hosts without internet (docs/installing.md)"
	@echo "make completion  dist/share: the manual and completions for a checkout; packages hold them"
	@echo "make pictures docs/fleet.png, the picture of a fleet in the README, from a made fleet (Chromium)"
	@echo "make real-capture NAME=2xh100-1s  this host, redacted, as a fixture: fixtures/captures (read it, then commit it)"
	@echo "make site    the documentation as a site in build/site, links checked"
	@echo "make bench   what it costs, beside lspci and lstopo"
	@echo "make fuzz    damaged input to every reader, and the property tests, for long"
	@echo "make pairs   lay two and three causes on one machine, for 15 minutes, and write what was found into docs/scope.md"
	@echo "make mutants change every condition of every rule, and see that a test notices; PART=1/3 for a third, of test and lab too"
	@echo "make engines the fleet's questions to ClickHouse, PostgreSQL and an object store: the same answers"
	@echo "make slurm   a Slurm that reads topology.yaml, unpacked in build/slurm for the tests (root, Debian)"
	@echo "make lab     a real kernel that looks like a GPU node, in QEMU (root, Debian)"

$(BIN)/fabricscope: pyproject.toml
	@test -n "$(PYTHON)" || { echo "no python3 (3.10 or later) with venv and pip found"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@$(BIN)/python -m compileall -q agent probes fabricscope.py  # pip compiles no editable package
	@touch $@

$(BIN)/pytest: $(BIN)/fabricscope
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

scan: $(BIN)/fabricscope
	@$(BIN)/fabricscope scan
	@echo
	@echo "That is this host. A recorded machine with 8 GPUs and a fault:"
	@echo
	@$(BIN)/fabricscope demo --brief
	@echo
	@echo "    $(BIN)/fabricscope demo    shows all of it"

test: $(BIN)/pytest
	FABRICSCOPE_PART=$(PART) $(BIN)/pytest -q -n auto --dist worksteal

check: $(BIN)/pytest lint types layers release-test
	HYPOTHESIS_PROFILE=ci $(BIN)/pytest -q -n auto --dist worksteal

release-test: $(BIN)/pytest
	$(BIN)/pytest -q -n auto --dist worksteal -m release

lint: $(BIN)/pytest
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(BIN)/pytest
	$(BIN)/mypy

layers: $(BIN)/pytest
	$(BIN)/lint-imports

docs: $(BIN)/pytest
	UPDATE_GOLDENS=1 $(BIN)/pytest -q tests/test_goldens.py
	$(BIN)/python -m tests.release.docs_run

pictures: $(BIN)/pytest
	$(BIN)/python -m release.pictures docs

site: $(BIN)/pytest
	$(BIN)/python -m release.site build/site

completion: $(BIN)/fabricscope
	$(BIN)/python -m release.share dist

zipapp wheelhouse: $(BIN)/fabricscope
	$(BIN)/python -m release.$@

deb rpm: $(BIN)/fabricscope
	$(BIN)/python -m release.packages $@

real-capture: $(BIN)/pytest
	$(BIN)/python -m release.real_capture $(NAME)

bench: $(BIN)/pytest
	$(BIN)/python -m bench.run

fuzz: $(BIN)/pytest
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q -n auto --timeout=7200 tests/fuzz
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q -n auto --timeout=7200 tests -k 'mutat or hostile or any_ or property'
	@! $(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m tests.fuzz.guided

pairs: $(BIN)/pytest
	$(BIN)/python -m tests.matrix.measure 900

mutants: $(BIN)/pytest
	$(BIN)/python -m tests.mutation.run --part $(or $(PART),1/1)

build/engines/bin/pytest: pyproject.toml
	$(PYTHON) -m venv build/engines
	build/engines/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,engines,stores]'
	@touch $@

engines: build/engines/bin/pytest
	@build/engines/bin/python -m tests.agent.fleet.engines.servers
	build/engines/bin/pytest -q -m engines tests/agent/fleet/engines -rs --disable-warnings

slurm: $(BIN)/pytest
	@$(BIN)/python -m tests.agent.fleet.cluster.later_slurm

# Two processes, each with a guest: an emulator seldom keeps two CPUs busy.
lab: LAB := $(BIN)/pytest -q -m lab -n 2 tests/lab -rs
lab: $(BIN)/pytest
	$(BIN)/python -m tests.lab.setup
	FABRICSCOPE_PART=$(or $(PART),1/1) $(LAB) || { \
		echo "once more, what failed: an emulated CPU stands still now and then"; \
		FABRICSCOPE_PART=1/1 $(LAB) --last-failed --last-failed-no-failures none; }
	$(if $(PART),,$(BIN)/python -m tests.lab.page)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
