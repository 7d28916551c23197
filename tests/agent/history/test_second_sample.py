"""Two readings in one run."""

from __future__ import annotations

import msgspec

from agent.history.counter_deltas import WHOLE_SUBJECT
from agent.history.second_sample import COUNTERS_OF_PROBE, add_window, merge_outcomes, select_counter_probes
from agent.model.report import ProbeRun, Report
from probes.catalogue import probes
from probes.probe import Outcome, Status
from tests.agent.history.build import DAY, report
from tests.agent.history.build import counting as machine
from tests.agent.rules.build import nic_id

PORT = f"port:{nic_id(0)}/1"


def outcome(name: str, facts: object = "facts", status: Status = Status.OK) -> Outcome:
    return Outcome(name, status if facts is not None else Status.TIMED_OUT, facts, None, (), 0.1)


def seen(made: Report) -> Report:
    """With probes that answered."""
    return msgspec.structs.replace(made, probes=[ProbeRun(name=name, status="ok") for name in COUNTERS_OF_PROBE])


def test_probes_that_count_run_twice_with_their_fall_backs() -> None:
    """And no other: they cost what they cost."""
    names = {probe.name for probe in select_counter_probes(probes())}

    assert {"kernel", "pci", "nvml", "rdma", "netdev", "lspci", "nvidia_smi", "rdma_tools"} <= names
    assert {"dmi", "cpu", "numa", "modules", "services"}.isdisjoint(names)


def test_the_second_answer_is_the_reports() -> None:
    """Only where both are there: one tool's answer beside another's would be two machines."""
    first = [outcome("kernel", 1), outcome("nvml", 1), outcome("nvidia_smi", None), outcome("dmi", 1)]
    second = [outcome("kernel", 2), outcome("nvml", None), outcome("nvidia_smi", 2)]

    assert [2, 1, None, 1] == [each.facts for each in merge_outcomes(first, second)]


def test_the_window_is_between_the_two() -> None:
    """By the host's own clock, however short."""
    made = add_window(
        report(machine(1)), seen(report(machine(4), DAY + 5)), [outcome(name) for name in COUNTERS_OF_PROBE]
    )

    assert made.counters_window is not None
    assert 5.0 == made.counters_window.seconds
    assert {"out_of_sequence": 3} == made.counters_window.moved[PORT]
    assert {} == made.counters_window.not_compared


def test_a_probe_that_answered_once_says_nothing_of_movement() -> None:
    """The same numbers twice did not stand still."""
    second = [outcome(name, None if name == "rdma" else "facts") for name in COUNTERS_OF_PROBE]
    made = add_window(report(machine(1)), seen(report(machine(4), DAY + 5)), second)

    assert made.counters_window is not None
    assert "rdma did not answer twice" in made.counters_window.not_compared[PORT][WHOLE_SUBJECT]
    assert PORT not in made.counters_window.moved
    assert f"netdev:{nic_id(0)}" in made.counters_window.moved


def test_without_a_clock_there_is_no_window() -> None:
    """The kernel probe failed."""
    for pair in ((report(uptime=None), report()), (report(), report(uptime=None))):
        made = add_window(pair[0], seen(pair[1]), [outcome(name) for name in COUNTERS_OF_PROBE])

        assert made.counters_window is not None
        assert "uptime" in (made.counters_window.reset_reason or "")
