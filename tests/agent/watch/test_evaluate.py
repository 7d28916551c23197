"""One evaluation after the other on a machine that changes: what was touched is read, the rest is kept with its time;
and what is printed of it, for people and for machines.
"""

from __future__ import annotations

import copy
import functools
import json
import os
from collections.abc import Callable

import jsonschema_rs
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, evaluate_report
from agent.diff import diff
from agent.model.report import SCHEMA_MINOR, Report, schema_text
from agent.reports import encode_report
from agent.watch.debounce import AFFECTED_PROBES, REQUESTED, START, TIME, Batch, EventReason
from agent.watch.evaluate import Evaluation, Evaluator
from agent.watch.output import LINE_LIMIT, describe_processes, format_ndjson, format_text
from fixtures.build import build_capture, host_in_memory
from probes.catalogue import probes
from probes.host.recording import RecordingHost
from probes.kernel import events
from probes.kernel.events import LOG, KernelEvent
from probes.sources.capture import CaptureHost
from tests.machines import still

BASE = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
NAMES = [probe.name for probe in probes()]
WIDTH, PORT = "pcie-width-downgraded", "ib-port-down"
XID = KernelEvent("aer", "0000:4c:00.0", "pcieport 0000:4a:01.0: AER: \x1b[31mPCIe Bus Error\nsecond line", LOG)


@functools.cache
def built(fault: str | None) -> CaptureHost:
    """It answers from memory, and keeps nothing of who asked."""
    return host_in_memory(build_capture(None, fault) if fault else build_capture(BASE), BASE)


class Machine:
    """A fixture machine that can be given a fault, and a clock of its own."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self.minute = 0
        self.asked: list[RecordingHost] = []

    def __call__(self) -> RecordingHost:
        host = copy.copy(built(self.fault))
        host.observed_at = self.time_of(self.minute)
        self.minute += 1
        tee = RecordingHost(host)
        self.asked.append(tee)
        return tee

    @staticmethod
    def time_of(minute: int) -> str:
        """The time of a judging."""
        return f"2026-01-05T08:{minute:02}:00Z"


@pytest.fixture
def machine() -> Machine:
    return Machine()


def names(evaluation: Evaluation) -> dict[str, str | None]:
    """Since when each outcome is kept."""
    return {run.name: run.observed_at for run in evaluation.report.probes}


def findings(evaluation: Evaluation) -> set[str]:
    return {finding.rule for finding in evaluation.report.findings}


def test_the_first_judging_reads_everything(machine: Machine) -> None:
    """Whatever it was asked for: there is nothing to keep. Every finding has come."""
    machine.fault = "gpu-width-x8"
    evaluation = Evaluator(machine, ScanPlan()).evaluate(["netdev"])

    assert NAMES == evaluation.read
    assert {None} == set(names(evaluation).values())
    assert evaluation.verdict_before is None
    assert [WIDTH] == [change.what for change in evaluation.changes if change.kind == "new"]
    assert {"findings"} == {change.group for change in evaluation.changes}


def test_exactly_what_was_touched_is_read_again(machine: Machine) -> None:
    """A GPU's link narrows, and an interface changes: the interface is what is read. Then the PCI tree is."""
    evaluator = Evaluator(machine, ScanPlan())
    evaluator.evaluate()
    machine.fault = "gpu-width-x8"

    second = evaluator.evaluate(evaluator.affected_probes([events.INTERFACE]))
    remaining = {name: time for name, time in names(second).items() if time}
    assert set(NAMES) - remaining.keys() == evaluator.affected_probes([events.INTERFACE]) == set(second.read)
    assert {Machine.time_of(0)} == set(remaining.values())
    assert Machine.time_of(1) == second.report.observed_at
    assert WIDTH not in findings(second)
    assert second.report.counters_window is not None
    assert Machine.time_of(0) == second.report.counters_window.until
    assert not [change for change in second.changes if change.group == "links"]
    widths = [[p for p in item.recording.files if p.endswith("current_link_width")] for item in machine.asked]
    assert widths[0]
    assert not widths[1]

    third = evaluator.evaluate(evaluator.affected_probes(["aer"]))
    remaining = {name: time for name, time in names(third).items() if time}
    assert set(NAMES) - remaining.keys() == evaluator.affected_probes(["aer"]) == set(third.read)
    assert Machine.time_of(1) == remaining["netdev"]
    assert Machine.time_of(0) == remaining["nvml"]
    assert WIDTH in findings(third)
    assert ("new", WIDTH) == (third.changes[0].kind, third.changes[0].what)
    assert ("ok", "error") == (third.verdict_before, third.report.summary.verdict)


def test_what_went_comes_first_too(machine: Machine) -> None:
    """Findings that came or went stand before devices and links."""
    evaluator = Evaluator(machine, ScanPlan())
    machine.fault = "ib-port-down"
    assert PORT in findings(evaluator.evaluate())
    machine.fault = None

    evaluation = evaluator.evaluate(evaluator.affected_probes(["link_up"]))

    assert "gone" == evaluation.changes[0].kind
    assert PORT in [change.what for change in evaluation.changes if change.kind == "gone"]
    assert {"links", "settings"} & {change.group for change in evaluation.changes}
    order = [change.group == "findings" and change.kind in ("new", "gone") for change in evaluation.changes]
    assert order == sorted(order, reverse=True)


@pytest.fixture(scope="module")
def unchanging() -> Evaluator:
    """Of a machine that stays as it is, judged twice: some rules could not be judged the first time."""
    evaluator = Evaluator(Machine(), ScanPlan())
    evaluator.evaluate()
    evaluator.evaluate()
    return evaluator


@pytest.mark.parametrize("kinds", [("xid", "aer"), ("interface",), (*AFFECTED_PROBES,)], ids=" ".join)
def test_a_machine_that_did_not_change_has_no_change(kinds: tuple[str, ...], unchanging: Evaluator) -> None:
    """Whatever part of it is read again."""
    evaluation = unchanging.evaluate(unchanging.affected_probes(kinds))

    assert [] == evaluation.changes
    assert [] == evaluation.notes


def test_a_full_scan_is_the_report_of_a_scan(machine: Machine) -> None:
    """Nothing is kept any more, and every probe's outcome is of now."""
    evaluator = Evaluator(machine, ScanPlan())
    evaluator.evaluate()
    evaluator.evaluate(["netdev"])
    evaluation = evaluator.evaluate()

    assert NAMES == evaluation.read
    assert {None} == set(names(evaluation).values())
    assert Machine.time_of(2) == evaluation.report.observed_at


def test_the_report_of_a_part_is_valid_and_judged_again_with_the_same_result(machine: Machine) -> None:
    """By the schema; from its bytes alone."""
    evaluator = Evaluator(machine, ScanPlan())
    evaluator.evaluate()
    machine.fault = "ib-port-down"
    report = evaluator.evaluate(evaluator.affected_probes(["link_down"])).report
    schema = json.loads(schema_text())
    again = evaluate_report(msgspec.json.decode(encode_report(report), type=Report), Configuration())

    assert PORT in {finding.rule for finding in report.findings}
    assert SCHEMA_MINOR == report.schema_minor >= 1
    jsonschema_rs.Draft202012Validator(schema).validate(json.loads(encode_report(report)))
    assert encode_report(still(report)) == encode_report(still(again))


def test_only_and_skip_hold_for_every_judging(machine: Machine) -> None:
    """What was left out is never read; an event of it alone is none."""
    evaluator = Evaluator(machine, ScanPlan(only=("pci", "kernel", "netdev"), skip=("netdev",)))
    evaluation = evaluator.evaluate()

    assert ["kernel", "pci"] == evaluation.read
    assert {"kernel", "pci"} == evaluator.affected_probes(["aer"])
    assert {"kernel"} == evaluator.affected_probes([events.INTERFACE])
    assert "skipped" == next(run.status for run in evaluator.evaluate(["pci"]).report.probes if run.name == "netdev")
    assert names(evaluator.evaluate(["pci"]))["netdev"] is None


def test_only_full_scans_are_remembered(machine: Machine) -> None:
    """Counters that were kept would be taken for those of a later time."""
    calls: list[tuple[str | None, bool]] = []

    def known(report: Report, whole: bool) -> Report:
        calls.append((report.observed_at, whole))
        return report

    evaluator = Evaluator(machine, ScanPlan(), known)
    evaluator.evaluate()
    evaluator.evaluate(["netdev"])
    evaluator.evaluate()

    assert [(Machine.time_of(0), True), (Machine.time_of(1), False), (Machine.time_of(2), True)] == calls


def test_a_fall_back_is_asked_with_its_probe(machine: Machine) -> None:
    """NVML is denied now: nvidia-smi's outcome, which was "nvml answered", is not kept."""
    evaluator = Evaluator(machine, ScanPlan())
    evaluator.evaluate()
    machine.fault = "nvml-denied"
    evaluation = evaluator.evaluate(["nvml"])
    status = {run.name: (run.status, run.observed_at) for run in evaluation.report.probes}

    assert ("denied", None) == status["nvml"]
    assert status["nvidia_smi"][1] is None
    assert ["nvml", "nvidia_smi"] == evaluation.read


def test_an_earlier_report_is_compared_with_and_another_hosts_is_not(machine: Machine) -> None:
    """After a restart: what changed meanwhile. A file that holds another host's report is a beginning."""
    earlier = Evaluator(machine, ScanPlan()).evaluate().report
    machine.fault = "gpu-width-x8"
    assert "ok" == Evaluator(machine, ScanPlan(), earlier=earlier).evaluate().verdict_before

    node = msgspec.structs.replace(earlier.node, hostname="other", machine_id="other", serial="other")
    other = msgspec.structs.replace(earlier, node=node)
    evaluation = Evaluator(machine, ScanPlan(), earlier=other).evaluate()
    assert evaluation.verdict_before is None
    assert [WIDTH] == [change.what for change in evaluation.changes]


def test_a_failed_judging_leaves_everything_as_it_was(machine: Machine) -> None:
    """The next one knows what was kept."""
    evaluator = Evaluator(machine, ScanPlan())
    first = evaluator.evaluate()
    broken: Callable[[Report, bool], Report] = evaluator._history

    def fails(report: Report, whole: bool) -> Report:
        raise OSError("no such profile")

    evaluator._history = fails
    with pytest.raises(OSError, match="no such"):
        evaluator.evaluate(["netdev"])
    evaluator._history = broken

    assert evaluator.last is first.report
    assert Machine.time_of(0) == names(evaluator.evaluate(["pci"]))["netdev"]


def test_a_rate_is_told_only_between_reports_that_are_whole(machine: Machine) -> None:
    """A counter that was kept did not stand still, and did not jump within the last seconds."""
    evaluator = Evaluator(machine, ScanPlan())
    first = evaluator.evaluate().report
    rail = next(nic for nic in first.topology.nics if nic.role == "rail")

    def grown(report: Report, by: int) -> Report:
        ports = [msgspec.structs.replace(port, counters={**port.counters, "symbol_error": by}) for port in rail.ports]
        nics = [msgspec.structs.replace(n, ports=ports) if n.id == rail.id else n for n in report.topology.nics]
        return msgspec.structs.replace(report, topology=msgspec.structs.replace(report.topology, nics=nics))

    def rates(old: Report, new: Report) -> list[float | None]:
        return [change.per_second for change in diff(old, new).changes if change.kind == "grew"]

    part, whole = evaluator.evaluate(["netdev"]).report, evaluator.evaluate().report

    assert [0.05] == rates(grown(first, 1), grown(whole, 7))
    assert [None] == rates(grown(first, 1), grown(part, 7))
    assert [None] == rates(grown(part, 1), grown(whole, 7))


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
