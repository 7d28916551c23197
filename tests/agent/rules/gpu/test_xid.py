"""gpu-xid: the gravest of each GPU, what is long ago, what is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.model.gpu import NvSwitch
from agent.model.node import Event
from agent.rules.gpu.xid import XIDS
from agent.rules.gpu.xid import gpu_xid as rule
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    fails,
    function,
    gpu_id,
    kinds,
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


def test_the_gravest_leads_and_the_others_are_named() -> None:
    """One finding for a GPU, whatever order the lines have; links by their number."""
    nvlink = said("149", detail={"link": "08", "severity": "Fatal"}, count=3)
    (fault,) = fails(rule, logged(said("45"), nvlink, said("13")))

    assert ("Xid 149 on NVLink 8: NVLink 5: NETIR error; also Xid 45, Xid 13", "error") == (
        fault.summary,
        fault.severity,
    )
    assert "last of 3" in fault.evidence[0].what
    assert "NVLink" not in fails(rule, logged(said("149", detail={"link": "-1"})))[0].cause


@pytest.mark.parametrize(("previous", "cause"), [("149", "Xid 149"), ("13", "Xid 13"), ("999", "Xid 45")])
def test_a_clean_up_counts_as_what_it_cleans_up_after(previous: str, cause: str) -> None:
    """Its line names the Xid before it, which may have left the log; of one that nobody knows nothing is said."""
    (fault,) = fails(rule, logged(said("45", detail={"previous": previous})))

    assert (cause, XIDS[cause.removeprefix("Xid ")].severity) == (fault.cause, fault.severity)
    assert "Xid 79" == fails(rule, logged(said("79", detail={"previous": previous})))[0].cause


@pytest.mark.parametrize(
    ("events", "severity"),
    [
        ((said(at=LONG_AGO),), "error"),
        ((said("119", at=LONG_AGO),), "warning"),
        ((said(at=LONG_AGO), said("119", at=HOUR_AGO)), "critical"),
        ((said(at=LONG_AGO), said("45", at=HOUR_AGO)), "error"),
        ((said(at=None, logged="Jan 13 07:00:00"),), "critical"),
        ((said(at="yesterday"),), "critical"),
    ],
)
def test_what_is_long_ago_is_less_grave_where_the_gpu_works(events: tuple[Event, ...], severity: str) -> None:
    """A date that is not known is not long ago; an application's error does not renew an old one."""
    case = logged(*events)

    assert [severity] == [fault.severity for fault in fails(rule, case)]
    broken = changed_gpu(case, 1, driver_state="error")
    assert fails(rule, broken)[0].severity in ("critical", "error")
    assert ["critical"] == [f.severity for f in fails(rule, replace(logged(said(at=LONG_AGO)), observed_at=None))]
    assert ["critical"] == [
        f.severity for f in fails(rule, changed_gpu(logged(said(at=LONG_AGO)), 1, driver_state="error"))
    ]


def test_lost_without_an_xid_and_not_initialized() -> None:
    """The driver has other words for it, too."""
    assert ["critical"] == [fault.severity for fault in fails(rule, logged(said("", kind="gpu_lost")))]
    assert ["critical"] == [fault.severity for fault in fails(rule, logged(said("x", kind="gpu_init")))]


def test_switches_have_errors_of_their_own() -> None:
    """A fatal SXid is an error of the switch, any other is worth knowing."""
    switch = "0000:c1:00.0"
    case = topology(
        logged(said("24007", subject=switch, kind="sxid", detail={"severity": "Fatal"})),
        nvswitches=[NvSwitch(id=switch, pci=switch)],
    )
    (fault,) = fails(rule, case)

    assert (f"nvswitch:{switch}", "error", "SXid 24007") == (fault.subject, fault.severity, fault.cause)
    soft = said("11001", subject=switch, kind="sxid", detail={"severity": "Non-fatal"})
    assert ["info"] == [fault.severity for fault in fails(rule, replace(case, events=(soft,)))]


def test_a_gpu_that_is_no_longer_there_is_named_by_its_address() -> None:
    """It fell off, and was removed."""
    (fault,) = fails(rule, logged(said(subject="0000:99:00.0")))

    assert ("pci:0000:99:00.0", "critical") == (fault.subject, fault.severity)


def test_what_keeps_it_silent() -> None:
    """Numbers that nobody knows, lines of other devices, a log that was not read, a node without GPUs."""
    assert {Pass} == kinds(rule, logged(said("9999"), said("x", kind="aer"), said("x", kind="mlx5")))
    unread = probe(logged(), "kernel_log", "denied", "needs CAP_SYSLOG")
    (answer,) = answers(rule, unread, f"gpu:{GPU}")
    assert isinstance(answer, Unknown)
    assert "CAP_SYSLOG" in answer.reason
    assert {NotApplicable} == kinds(rule, topology(logged(), gpus=[]))


def test_another_maker_s_gpu_is_not_asked() -> None:
    """Its driver says no Xid."""
    case = function(logged(), GPU, vendor="0x1002")

    assert [] == answers(rule, case, f"gpu:{GPU}")
    assert 3 == len(list(rule.check(case)))


def test_other_kinds_of_lines_with_a_number_of_the_catalogue() -> None:
    """Only those of the driver."""
    assert {Pass} == kinds(rule, logged(said("79", kind="aer")))


def test_a_line_about_a_device_that_is_no_more_is_told() -> None:
    """No GPU is left, and the log says why."""
    bare = topology(logged(said()), gpus=[])

    assert [f"pci:{GPU}"] == [fault.subject for fault in fails(rule, bare)]
    assert {Fail} == kinds(rule, bare)
    assert [NotApplicable("node", "no NVIDIA GPU")] == list(rule.check(topology(logged(), gpus=[])))


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


@pytest.mark.parametrize(
    ("at", "severity"),
    [("2026-01-14T08:00:00Z", "critical"), ("2026-01-14T07:59:59Z", "error"), ("2026-01-14T09:30:00Z", "critical")],
)
def test_a_day_is_long_ago(at: str, severity: str) -> None:
    """24 hours without another."""
    assert [severity] == [fault.severity for fault in fails(rule, logged(said(at=at)))]


def test_what_only_informs_costs_nothing_and_a_switch_costs_all() -> None:
    """The loss is told by what the line is about."""
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


def test_a_warning_of_today_renews_what_is_long_ago() -> None:
    """An NVLink security error is none that applications cause."""
    assert ["critical"] == [f.severity for f in fails(rule, logged(said(at=LONG_AGO), said("170", at=HOUR_AGO)))]


def test_what_only_informs_is_not_called_long_ago() -> None:
    """It was an hour ago, and there is nothing less grave."""
    (fault,) = fails(rule, logged(said("13")))

    assert "info" == fault.severity
    assert "long ago" not in fault.summary
