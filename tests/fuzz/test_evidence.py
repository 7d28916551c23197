"""Damage to whole captures, and through the whole of scan, job, ingest and receive: an answer or a reason, soon."""

from __future__ import annotations

import functools
import json
import resource
import secrets
import time
from random import Random

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.diff import diff
from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from agent.reports import encode_report
from fixtures.build import build_capture
from probes.host.interface import BadSource
from probes.sources.capture import CaptureHost
from probes.sources.memory import MemoryFiles, Node, SymlinkNode
from tests.conftest import PARTS, PROFILE, ROOT, sample_of
from tests.fuzz import commands
from tests.fuzz.commands import COMMANDS, Failure, try_numbers
from tests.fuzz.mutations import mutated, replace_value
from tests.machines import scan_machine

MACHINES = ("2xa10-2xt4-1s-idle", "4xrtx3090-1s-nvlink-pairs", "8xl40s-pcie-2s-2xcx7-roce")
FIRST = 0 if PROFILE == "ci" else secrets.randbelow(1 << 64)  # CI tries the same each time round
RUNS = {"ci": sample_of(range(150)), "fuzz": range(20_000)}.get(PROFILE, range(10))
VALUES = (None, "", "x", -1, 0, 1, 2**31, 2**64, 1e308, True, [], {}, [None], {"x": 1}, "0000:00:00.0", "²", "\x00")


@functools.cache
def evidence(shape: str) -> tuple[dict[str, bytes], dict[str, Node]]:
    """A machine's documents and files by path, and its links and folders."""
    capture = build_capture(shape)
    contents = {f"/{name}": text.encode() for name, text in capture.documents().items()}
    contents |= {f"/files{path}": content for path, content in capture.tree.files.items()}
    others: dict[str, Node] = {f"/files{path}": SymlinkNode(target) for path, target in capture.tree.links.items()}
    return contents, others | {f"/files{path}": {} for path in capture.tree.directories}


def damaged(shape: str, random: Random) -> CaptureHost:
    """The machine with up to a few hundred files damaged, cut short, exchanged or gone, and NVML's answers too."""
    contents, others = evidence(shape)
    contents = dict(contents)
    files = [path for path in contents if path.startswith("/files")]
    for path in random.sample(files, random.choice((1, 5, 50, 300))):
        other = contents[random.choice(files)]
        contents[path] = mutated(random, [contents[path] or b"0", other or b"0"])
    for path in random.sample(files, random.choice((0, 0, 5, 50))):
        del contents[path]
    calls = json.loads(contents["/nvml.json"])
    for _ in range(random.choice((0, 1, 10))):
        replace_value(random, calls, VALUES)
    contents["/nvml.json"] = json.dumps(calls).encode()
    store = MemoryFiles()
    for path, node in [*others.items(), *contents.items()]:
        store.add(path, node)
    below = store.below("/files")
    assert below is not None
    return CaptureHost("damaged", store, below)


@pytest.mark.parametrize("shape", MACHINES)
def test_damaged_evidence_makes_a_report(shape: str) -> None:
    """No probe breaks, no rule breaks; the report is read back, judged alike, printed and compared."""

    for number in (FIRST + run for run in RUNS):
        try:
            host = damaged(shape, Random(number))
        except BadSource:
            continue
        report, _ = diagnose(host, ScanPlan())
        broken = [
            f"{run.name}: {run.reason}"
            for run in report.probes
            if " at " in (run.reason or "") and run.status == "failed"
        ]
        data = encode_report(report)
        again = evaluate_report(msgspec.json.decode(data, type=Report), Configuration())

        assert [] == broken, number
        assert report.checks == again.checks, number
        assert report.findings == again.findings, number
        assert to_plain_text(render_page(report, 80)), number
        assert not [check for check in report.checks if "Error" in (check.reason or "")], number
        assert diff(scan_machine(shape), report).schema, number


# Damage through the whole of scan, job, ingest and receive: each ends with an answer or a refusal, soon.


INPUTS = {"fuzz": 25_000, "ci": 25_000}.get(PROFILE, 32)  # of each command
SECONDS = {"fuzz": 6600.0, "ci": 30.0 / PARTS}.get(PROFILE, 30.0)  # as many as they hold
GROWTH_BYTES = 400 << 20
STATE = ROOT / "build" / "fuzz"


@pytest.mark.parametrize("name", COMMANDS)
def test_any_damage_is_answered_or_refused(name: str) -> None:
    """CI tries the same each time round; `make fuzz` goes on where it ended, with what failed before."""
    state = STATE / f"{name}.json"
    known = json.loads(state.read_text()) if PROFILE == "fuzz" and state.exists() else {"next": 0, "failed": []}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last = known["next"] + -(-INPUTS // COMMANDS[name].inputs)
    numbers = range(known["next"], last)
    chosen = sample_of(numbers) if PROFILE == "ci" else numbers
    result = try_numbers(name, [*known["failed"], *chosen], SECONDS)
    if PROFILE == "fuzz":
        STATE.mkdir(parents=True, exist_ok=True)
        kept = {"next": max(result.following, known["next"]), "failed": sorted(result.failed)}
        state.write_text(json.dumps(kept))

    assert {} == result.failed
    assert result.inputs
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < GROWTH_BYTES


def test_what_breaks_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody expects, and a reader that takes too long."""

    def breaks(number: int) -> None:
        if number == 2:
            raise KeyError("model")
        if number == 3:
            until = time.process_time() + 0.1
            while time.process_time() < until:
                pass

    monkeypatch.setattr(commands, "SECONDS", 0.05)
    monkeypatch.setitem(COMMANDS, "test", commands.Command(lambda _folder, _more: commands.always(breaks)))
    result = try_numbers("test", range(5), float("inf"))

    assert (5, 5, [2, 3]) == (result.inputs, result.following, sorted(result.failed))
    assert result.failed[2].startswith("KeyError: 'model' (test_evidence.py:")
    assert result.failed[3].endswith(" s")
    assert result.slowest_seconds > 0.05


def test_a_probe_that_breaks_is_a_failure() -> None:
    """A report is written all the same: its line of the probe shows it."""
    run = {"name": "pci", "status": "failed", "reason": "IndexError at parse:12: list index out of range"}
    with pytest.raises(Failure, match="pci: IndexError at parse:12"):
        commands.check_report({"probes": [run]})
    commands.check_report({"probes": [{**run, "reason": "FEC Errors at 12: denied"}]})
