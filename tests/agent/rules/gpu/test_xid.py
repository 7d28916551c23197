"""gpu-xid: severities of all numbers, and how lines are shown; the rest is rows of tests/matrix/rules/gpu.toml."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.model.gpu import NvSwitch
from agent.model.node import Event
from agent.rules.gpu.xid import XIDS
from agent.rules.gpu.xid import gpu_xid as rule
from tests.agent.rules.build import (
    changed_gpu,
    fails,
    gpu_id,
    probe,
    server,
    topology,
)

GPU = gpu_id(1)
NOW, HOUR_AGO, LONG_AGO = "2026-01-15T08:00:00Z", "2026-01-15T07:00:00Z", "2026-01-13T07:00:00Z"


def said(code: str = "79", at: str | None = HOUR_AGO, subject: str = GPU, kind: str = "xid", **more: Any) -> Event:
    """A line of the log."""
    return Event(kind=kind, text=f"NVRM: {kind} {code}", source="/dev/kmsg", at=at, subject=subject, code=code, **more)


def logged(*events: Event):
    """A machine that observed them."""
    return replace(probe(server(), "kernel_log", "ok"), events=events, observed_at=NOW)


def test_a_lost_gpu_is_critical() -> None:
    """The line, its date and what to do."""
    (fault,) = fails(rule, logged(said()))

    assert (f"gpu:{GPU}", "GPU1", "critical", "Xid 79") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "Xid 79: the GPU fell off the bus" == fault.summary
    assert ("NVRM: xid 79", "/dev/kmsg") == (fault.evidence[0].value, fault.evidence[0].source)
    assert HOUR_AGO in fault.evidence[0].what
    assert {GPU} == fault.covers
    assert {f"{GPU}/xid"} == fault.places


@pytest.mark.parametrize("code", XIDS)
def test_every_number_of_the_catalogue_has_its_severity(code: str) -> None:
    """As the table says, with an action."""
    (fault,) = fails(rule, logged(said(code)))

    assert XIDS[code].severity == fault.severity
    index = fault.label.removeprefix("GPU")  # of this GPU
    assert XIDS[code].action.replace("smi -r -i", f"smi -r -i {index}") == fault.remedy


@pytest.mark.parametrize(("count", "told"), [(1, False), (2, True)])
def test_how_often_is_told_where_it_was_more_than_once(count: int, told: bool) -> None:
    """The line is the last of them."""
    (fault,) = fails(rule, logged(said(count=count)))

    assert told == ("last of" in fault.evidence[0].what)


def test_six_lines_are_shown() -> None:
    """The gravest."""
    (fault,) = fails(rule, logged(*(said("13", detail={"n": str(n)}) for n in range(9)), said()))

    assert 6 == len(fault.evidence)
    assert "NVRM: xid 79" == fault.evidence[0].value


def test_what_only_informs_costs_nothing_and_a_switch_costs_all() -> None:
    """The loss is reported by what the line is about."""
    harmless = next(code for code in XIDS if XIDS[code].severity == "info")
    switches = topology(logged(said("20034", kind="sxid", subject="0000:f0:00.0", detail={"severity": "Fatal"})),
                        nvswitches=[NvSwitch(id="0000:f0:00.0", pci="0000:f0:00.0")])  # fmt: skip
    (info,), (lost,) = fails(rule, logged(said(harmless))), fails(rule, logged(said()))
    (switch,) = [fault for fault in fails(rule, switches) if fault.subject.startswith("nvswitch:")]

    assert "uses all GPUs" in lost.impact
    assert "passes this switch" in switch.impact
    assert info.impact not in (lost.impact, switch.impact)


def test_the_command_names_the_bus_where_the_number_is_not_known() -> None:
    """nvidia-smi takes either."""
    code = next(code for code in XIDS if "nvidia-smi -r -i" in XIDS[code].action)
    (fault,) = fails(rule, changed_gpu(logged(said(code)), 1, index=None))

    assert f"nvidia-smi -r -i {GPU}" in fault.remedy


def test_what_only_informs_is_not_called_long_ago() -> None:
    """It was an hour ago, and there is nothing less grave."""
    (fault,) = fails(rule, logged(said("13")))

    assert "info" == fault.severity
    assert "long ago" not in fault.summary
