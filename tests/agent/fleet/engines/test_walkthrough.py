"""The walkthrough of docs/fleet.md from nothing to an answer, as it is printed there, by the real command line."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from bench.fleet.plan import plan
from tests.agent.fleet.engines.servers import needed
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900), pytest.mark.usefixtures("real_commands")]
PRINTED = re.compile(r"From nothing to an answer, here with chDB.*?```\n(.*?)```", re.DOTALL)


@pytest.fixture
def reports(tmp_path):
    fleet = plan(40, 8, {"gpu-link-narrow": 1, "driver": 1}, mix={"h200-roce": 1})
    (tmp_path / "reports").mkdir()
    for number, data in enumerate(fleet.reports(0, one_line=True)):
        (tmp_path / "reports" / f"{number}.json").write_bytes(data)
    return tmp_path


def printed():
    """The commands, a line each."""
    (block,) = PRINTED.findall((ROOT / "docs" / "fleet.md").read_text())
    return [shlex.split(line) for line in block.splitlines()]


def told(place, words):
    """Exit code, stdout and stderr of a command that was started there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FABRICSCOPE_")}
    assert words[0] == "fabricscope"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=place, env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def with_postgres(words, address):
    return [address if word.startswith("chdb://") else word for word in words]


def test_with_chdb(reports):
    needed("chdb", "clickhouse_connect")
    walk(reports, list)


def test_with_postgresql(reports, postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as session:  # other tests have loaded into the server's first one
        session.execute("CREATE DATABASE walkthrough")
    walk(reports, lambda words: with_postgres(words, f"{postgres.rpartition('/')[0]}/walkthrough"))


def walk(place, change):
    """Each command answers; those of the engine as DuckDB does."""
    first, *others = map(change, printed())
    code, _, progress = told(place, first)
    assert code == 0, progress
    early = told(place, others[1])
    assert early[0] == 2
    assert early[2].count("\n") == 1
    assert "`fabricscope fleet load --engine URL` puts" in early[2]  # asked before the load
    load, *questions = others
    code, loaded, error = told(place, load)
    assert code == 0, error
    assert re.fullmatch(r"[0-9,]+ rows of [0-9]+ tables\n", loaded)
    for words in questions:
        at = words.index("--engine")
        embedded = [*words[:at], "--dataset", "dataset", *words[at + 2 :]]
        answer = told(place, [*words, "--format", "json"])
        assert answer[0] == 0, answer[2]
        assert sorted(answer[1].splitlines()) == sorted(told(place, [*embedded, "--format", "json"])[1].splitlines())
    assert '{"rule":"pcie-width-downgraded","findings":1}' in answer[1]
