"""One judging after the other on a machine that changes: what was touched is read, the rest is kept with its time."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable

import jsonschema
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, evaluate_report
from agent.diff import diff
from agent.model.report import SCHEMA_MINOR, Report
from agent.model.schema import schema_text
from agent.reports import encode_report
from agent.watch.judging import Judge, Judged
from agent.watch.touched import TOUCHED
from fixtures.build import build_capture, host_in_memory
from probes.catalogue import probes
from probes.host.recording import RecordingHost
from probes.kernel import events
from probes.sources.capture import RecordedHost
from tests.machines import still

BASE = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
NAMES = [probe.name for probe in probes()]
WIDTH, PORT = "pcie-width-downgraded", "ib-port-down"


@functools.cache
def built(fault: str | None) -> RecordedHost:
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
        host.observed_at = self.at(self.minute)
        self.minute += 1
        tee = RecordingHost(host)
        self.asked.append(tee)
        return tee

    @staticmethod
    def at(minute: int) -> str:
        """The time of a judging."""
        return f"2026-01-05T08:{minute:02}:00Z"


@pytest.fixture
def machine() -> Machine:
    return Machine()


def names(made: Judged) -> dict[str, str | None]:
    """Since when each outcome is kept."""
    return {run.name: run.observed_at for run in made.report.probes}


def findings(made: Judged) -> set[str]:
    return {finding.rule for finding in made.report.findings}


def test_the_first_judging_reads_everything(machine: Machine) -> None:
    """Whatever it was asked for: there is nothing to keep. Every finding has come."""
    machine.fault = "gpu-width-x8"
    made = Judge(machine, ScanPlan()).judge(["netdev"])

    assert NAMES == made.read
    assert {None} == set(names(made).values())
    assert made.was is None
    assert [WIDTH] == [change.what for change in made.changes if change.kind == "new"]
    assert {"findings"} == {change.group for change in made.changes}


def test_exactly_what_was_touched_is_read_again(machine: Machine) -> None:
    """A GPU's link narrows, and an interface changes: the interface is what is read. Then the PCI tree is."""
    judge = Judge(machine, ScanPlan())
    judge.judge()
    machine.fault = "gpu-width-x8"

    second = judge.judge(judge.asked([events.INTERFACE]))
    kept = {name: at for name, at in names(second).items() if at}
    assert set(NAMES) - kept.keys() == judge.asked([events.INTERFACE]) == set(second.read)
    assert {Machine.at(0)} == set(kept.values())
    assert Machine.at(1) == second.report.observed_at
    assert WIDTH not in findings(second)
    assert second.report.counters_window is not None
    assert Machine.at(0) == second.report.counters_window.until
    assert not [change for change in second.changes if change.group == "links"]
    widths = [[p for p in each.recording.files if p.endswith("current_link_width")] for each in machine.asked]
    assert widths[0]
    assert not widths[1]

    third = judge.judge(judge.asked(["aer"]))
    kept = {name: at for name, at in names(third).items() if at}
    assert set(NAMES) - kept.keys() == judge.asked(["aer"]) == set(third.read)
    assert Machine.at(1) == kept["netdev"]
    assert Machine.at(0) == kept["nvml"]
    assert WIDTH in findings(third)
    assert ("new", WIDTH) == (third.changes[0].kind, third.changes[0].what)
    assert ("ok", "error") == (third.was, third.report.summary.verdict)


def test_what_went_comes_first_too(machine: Machine) -> None:
    """Findings that came or went stand before devices and links."""
    judge = Judge(machine, ScanPlan())
    machine.fault = "ib-port-down"
    assert PORT in findings(judge.judge())
    machine.fault = None

    made = judge.judge(judge.asked(["link_up"]))

    assert "gone" == made.changes[0].kind
    assert PORT in [change.what for change in made.changes if change.kind == "gone"]
    assert {"links", "settings"} & {change.group for change in made.changes}
    order = [change.group == "findings" and change.kind in ("new", "gone") for change in made.changes]
    assert order == sorted(order, reverse=True)


@pytest.fixture(scope="module")
def unchanging() -> Judge:
    """Of a machine that stays as it is, judged twice: some rules could not be judged the first time."""
    judge = Judge(Machine(), ScanPlan())
    judge.judge()
    judge.judge()
    return judge


@pytest.mark.parametrize("kinds", [("xid", "aer"), ("interface",), (*TOUCHED,)], ids=" ".join)
def test_a_machine_that_did_not_change_has_no_change(kinds: tuple[str, ...], unchanging: Judge) -> None:
    """Whatever part of it is read again."""
    made = unchanging.judge(unchanging.asked(kinds))

    assert [] == made.changes
    assert [] == made.notes


def test_a_full_scan_is_the_report_of_a_scan(machine: Machine) -> None:
    """Nothing is kept any more, and every probe's outcome is of now."""
    judge = Judge(machine, ScanPlan())
    judge.judge()
    judge.judge(["netdev"])
    made = judge.judge()

    assert NAMES == made.read
    assert {None} == set(names(made).values())
    assert Machine.at(2) == made.report.observed_at


def test_the_report_of_a_part_is_valid_and_judged_again_with_the_same_result(machine: Machine) -> None:
    """By the schema; from its bytes alone."""
    judge = Judge(machine, ScanPlan())
    judge.judge()
    machine.fault = "ib-port-down"
    report = judge.judge(judge.asked(["link_down"])).report
    schema = json.loads(schema_text())
    again = evaluate_report(msgspec.json.decode(encode_report(report), type=Report), Configuration())

    assert PORT in {finding.rule for finding in report.findings}
    assert SCHEMA_MINOR == report.schema_minor >= 1
    jsonschema.Draft202012Validator(schema).validate(json.loads(encode_report(report)))
    assert encode_report(still(report)) == encode_report(still(again))


def test_only_and_skip_hold_for_every_judging(machine: Machine) -> None:
    """What was left out is never read; an event of it alone is none."""
    judge = Judge(machine, ScanPlan(only=("pci", "kernel", "netdev"), skip=("netdev",)))
    made = judge.judge()

    assert ["kernel", "pci"] == made.read
    assert {"kernel", "pci"} == judge.asked(["aer"])
    assert {"kernel"} == judge.asked([events.INTERFACE])
    assert "skipped" == next(run.status for run in judge.judge(["pci"]).report.probes if run.name == "netdev")
    assert names(judge.judge(["pci"]))["netdev"] is None


def test_only_full_scans_are_remembered(machine: Machine) -> None:
    """Counters that were kept would be taken for those of a later time."""
    told: list[tuple[str | None, bool]] = []

    def known(report: Report, whole: bool) -> Report:
        told.append((report.observed_at, whole))
        return report

    judge = Judge(machine, ScanPlan(), known)
    judge.judge()
    judge.judge(["netdev"])
    judge.judge()

    assert [(Machine.at(0), True), (Machine.at(1), False), (Machine.at(2), True)] == told


def test_a_fall_back_is_asked_with_its_probe(machine: Machine) -> None:
    """NVML is denied now: nvidia-smi's outcome, which was "nvml answered", is not kept."""
    judge = Judge(machine, ScanPlan())
    judge.judge()
    machine.fault = "nvml-denied"
    made = judge.judge(["nvml"])
    status = {run.name: (run.status, run.observed_at) for run in made.report.probes}

    assert ("denied", None) == status["nvml"]
    assert status["nvidia_smi"][1] is None
    assert ["nvml", "nvidia_smi"] == made.read


def test_an_earlier_report_is_compared_with_and_another_hosts_is_not(machine: Machine) -> None:
    """After a restart: what changed meanwhile. A file that holds another host's report is a beginning."""
    earlier = Judge(machine, ScanPlan()).judge().report
    machine.fault = "gpu-width-x8"
    assert "ok" == Judge(machine, ScanPlan(), earlier=earlier).judge().was

    node = msgspec.structs.replace(earlier.node, hostname="other", machine_id="other", serial="other")
    other = msgspec.structs.replace(earlier, node=node)
    made = Judge(machine, ScanPlan(), earlier=other).judge()
    assert made.was is None
    assert [WIDTH] == [change.what for change in made.changes]


def test_a_failed_judging_leaves_everything_as_it_was(machine: Machine) -> None:
    """The next one knows what was kept."""
    judge = Judge(machine, ScanPlan())
    first = judge.judge()
    broken: Callable[[Report, bool], Report] = judge._remember

    def fails(report: Report, whole: bool) -> Report:
        raise OSError("no such profile")

    judge._remember = fails
    with pytest.raises(OSError, match="no such"):
        judge.judge(["netdev"])
    judge._remember = broken

    assert judge.last is first.report
    assert Machine.at(0) == names(judge.judge(["pci"]))["netdev"]


def test_a_rate_is_told_only_between_reports_that_are_whole(machine: Machine) -> None:
    """A counter that was kept did not stand still, and did not jump within the last seconds."""
    judge = Judge(machine, ScanPlan())
    first = judge.judge().report
    rail = next(nic for nic in first.topology.nics if nic.role == "rail")

    def grown(report: Report, by: int) -> Report:
        ports = [msgspec.structs.replace(port, counters={**port.counters, "symbol_error": by}) for port in rail.ports]
        nics = [msgspec.structs.replace(n, ports=ports) if n.id == rail.id else n for n in report.topology.nics]
        return msgspec.structs.replace(report, topology=msgspec.structs.replace(report.topology, nics=nics))

    def rates(old: Report, new: Report) -> list[float | None]:
        return [change.per_second for change in diff(old, new).changes if change.kind == "grew"]

    part, whole = judge.judge(["netdev"]).report, judge.judge().report

    assert [0.05] == rates(grown(first, 1), grown(whole, 7))
    assert [None] == rates(grown(first, 1), grown(part, 7))
    assert [None] == rates(grown(part, 1), grown(whole, 7))
