"""Damage through the whole of scan, job, ingest and receive: each ends with an answer or a refusal, soon."""

from __future__ import annotations

import json
import resource
import time

import pytest

from tests.conftest import PROFILE, ROOT
from tests.fuzz import commands
from tests.fuzz.commands import COMMANDS, Failure, try_numbers

INPUTS = {"fuzz": 25_000, "ci": 25_000}.get(PROFILE, 32)  # of each command
SECONDS = {"fuzz": 6600.0}.get(PROFILE, 30.0)  # as many as they hold
GROWTH_BYTES = 400 << 20
STATE = ROOT / "build" / "fuzz"


@pytest.mark.parametrize("name", COMMANDS)
def test_any_damage_is_answered_or_refused(name: str) -> None:
    """CI tries the same each time; `make fuzz` goes on where it ended, with what failed before."""
    state = STATE / f"{name}.json"
    known = json.loads(state.read_text()) if PROFILE == "fuzz" and state.exists() else {"next": 0, "failed": []}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last = known["next"] + -(-INPUTS // COMMANDS[name].inputs)
    result = try_numbers(name, [*known["failed"], *range(known["next"], last)], time.monotonic() + SECONDS)
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
    assert result.failed[2].startswith("KeyError: 'model' (test_commands.py:")
    assert result.failed[3].endswith(" s")
    assert result.slowest_seconds > 0.05


def test_a_probe_that_breaks_is_a_failure() -> None:
    """A report is written all the same: its line of the probe shows it."""
    run = {"name": "pci", "status": "failed", "reason": "IndexError at parse:12: list index out of range"}
    with pytest.raises(Failure, match="pci: IndexError at parse:12"):
        commands.check_report({"probes": [run]})
    commands.check_report({"probes": [{**run, "reason": "FEC Errors at 12: denied"}]})
