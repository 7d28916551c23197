"""What a judging says to people and to machines."""

from __future__ import annotations

import json
import os

import pytest

from agent.diagnose import ScanPlan
from agent.watch.debounce import REQUESTED, START, TIME, Batch, EventReason
from agent.watch.evaluate import Evaluation, Evaluator
from agent.watch.output import LINE_LIMIT, describe_processes, format_ndjson, format_text
from probes.kernel.events import LOG, KernelEvent
from tests.agent.watch.test_evaluate import PORT, WIDTH, Machine

XID = KernelEvent("aer", "0000:4c:00.0", "pcieport 0000:4a:01.0: AER: \x1b[31mPCIe Bus Error\nsecond line", LOG)


def batch(*events: KernelEvent, full: bool = False, more: int = 0) -> Batch:
    return Batch(full, frozenset(), tuple(EventReason(event) for event in events), more)


@pytest.fixture(scope="module")
def evaluations() -> list[Evaluation]:
    """A healthy machine, a narrow link on it, nothing new, and that it is gone."""
    machine = Machine()
    evaluator = Evaluator(machine, ScanPlan())
    evaluation = [evaluator.evaluate()]
    for fault in ("gpu-width-x8", "gpu-width-x8", None):
        machine.fault = fault
        evaluation.append(evaluator.evaluate(["pci"]))
    return evaluation


def test_a_change_is_a_line_findings_first(evaluations: list[Evaluation]) -> None:
    """Each with the time; the verdict and the reason stand above; a text of the host makes no line of its own."""
    lines = format_text(batch(XID), evaluations[1])

    assert {Machine.time_of(1)} == {line.split("  ")[0] for line in lines}
    assert (
        f"{Machine.time_of(1)}  ok -> error  1 error; pcieport 0000:4a:01.0: AER: ?[31mPCIe Bus Error?second line"
        == lines[0]
    )
    assert f"  + {WIDTH} new: GPU2" in lines[1]
    assert [line for line in lines if "16 -> 8" in line]
    assert len(evaluations[1].changes) + 1 == len(lines)
    assert f"  - {WIDTH} gone: GPU2" in format_text(batch(XID), evaluations[3])[1]


@pytest.mark.parametrize(("kind", "count"), [(START, 1), (REQUESTED, 1), (TIME, 0), ("aer", 0)])
def test_nothing_new_is_a_line_only_for_who_asked(kind: str, count: int, evaluations: list[Evaluation]) -> None:
    """A watch that says nothing sees nothing."""
    assert count == len(format_text(batch(KernelEvent(kind, None, "x", "clock")), evaluations[2]._replace(changes=[])))


def test_the_process_that_an_error_of_the_driver_names_is_described() -> None:
    """Once, where it still runs; a number in another line is no process."""
    xid = f"NVRM: Xid (PCI:0000:3b:00): 31, pid={os.getpid()}, name=python3, Ch 00000008"
    events = [
        KernelEvent("xid", "0000:3b:00.0", xid, LOG),
        KernelEvent("xid", "0000:3b:00.0", xid.replace("31", "43"), LOG),
        KernelEvent("xid", "0000:3b:00.0", "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>", LOG),
        KernelEvent("xid", "0000:3b:00.0", "NVRM: Xid (PCI:0000:3b:00): 79, pid=999999999, name=gone", LOG),
        KernelEvent("driver", None, f"NVRM: something else, pid={os.getpid()}", LOG),
    ]
    (line,) = describe_processes(batch(*events))

    assert line.startswith("xid 0000:3b:00.0: ")
    assert f", pid {os.getpid()}, state R (running)" in line
    assert ", running for " in line


def test_a_beginning_lists_what_is_found_already() -> None:
    """As findings that came: there was nothing before."""
    machine = Machine()
    machine.fault = "ib-port-down"
    lines = format_text(
        batch(KernelEvent(START, None, "watch was started", "clock"), full=True),
        Evaluator(machine, ScanPlan()).evaluate(),
    )

    assert lines[0].startswith(f"{Machine.time_of(0)}  error  1 error")
    assert lines[0].endswith("; watch was started")
    assert [line for line in lines[1:] if f"  + {PORT} new: " in line]


def test_many_changes_and_reasons_are_counted(evaluations: list[Evaluation]) -> None:
    """The report has them all."""
    many = evaluations[1]._replace(changes=evaluations[1].changes * 100)
    events = [KernelEvent("aer", str(n), f"line {n}", LOG) for n in range(5)]
    lines = format_text(batch(*events, more=7), many)

    assert LINE_LIMIT + 2 == len(lines)
    assert lines[0].endswith("line 0, line 1, line 2 and 9 more")
    assert lines[-1].endswith(f"and {len(many.changes) - LINE_LIMIT} more changes")


def test_machines_get_one_object_a_line(evaluations: list[Evaluation]) -> None:
    """With everything: also where nothing changed."""
    rows = [json.loads(format_ndjson(batch(XID, more=2), evaluation)) for evaluation in evaluations]
    row = rows[1]

    assert [1] * len(evaluations) == [format_ndjson(batch(XID), evaluation).count(b"\n") for evaluation in evaluations]
    assert ("fabricscope.watch/1", Machine.time_of(1)) == (row["schema"], row["time"])
    assert ("ok", "error", {"error": 1}) == (row["verdict_before"], row["verdict"], {"error": row["counts"]["error"]})
    assert [{"kind": "aer", "source": LOG, "subject": XID.subject, "text": XID.text, "times": 1}] == row["why"]
    assert 2 == row["more_reasons"]
    assert ["pci", "lspci"] == row["read"]
    assert row["full"] is False
    assert ("findings", "new", WIDTH) == tuple(row["changes"][0][name] for name in ("group", "kind", "what"))
    assert rows[0]["verdict_before"] is None
