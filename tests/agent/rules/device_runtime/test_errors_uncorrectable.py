"""pcie-errors-uncorrectable: fatal and non-fatal errors that moved, and every guard alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.model.node import Event
from agent.rules.pcie.counters import pcie_errors_uncorrectable as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, fails, function, node, probe, topology
from tests.agent.rules.moves import GPU, HOUR, NIC, gpus, moved, one, reset, severities, without_window

PCI, NIC_PCI, ABOVE = f"pci:{GPU}", f"pci:{NIC}", "pci:0000:22:00.0"
FIRING = moved(gpus(), PCI, {"fatal.DLP": 1})


def test_a_fatal_error_is_critical() -> None:
    """With the kernel's own words."""
    event = Event(kind="aer", text="AER: Uncorrectable (Fatal) error", source="dmesg", subject=GPU)
    (fault,) = fails(rule, replace(FIRING, events=(event,)))

    assert (PCI, "GPU1", "critical") == (fault.subject, fault.label, fault.severity)
    assert fault.summary == "1 fatal PCIe errors in 60 min, limit 1"
    assert ["fatal.DLP", "kernel log"] == [row.what for row in fault.evidence]
    assert fault.evidence[0].source == f"/sys/bus/pci/devices/{GPU}/aer_dev_fatal"


@pytest.mark.parametrize(
    ("subject", "counters", "expected"),
    [
        (PCI, {"nonfatal.TLP": 1}, "error"),
        (PCI, {"nonfatal.TLP": 1, "fatal.TLP": 1}, "critical"),
        (PCI, {"nonfatal.UnsupReq": 9, "nonfatal.TOTAL_ERR_NONFATAL": 9}, "info"),
        (PCI, {"nonfatal.UnsupReq": 9, "nonfatal.TLP": 1}, "error"),
        (PCI, {"correctable.RxErr": 10**6}, None),
        (PCI, {"nonfatal.TOTAL_ERR_NONFATAL": 9}, None),
        (ABOVE, {"fatal.SDES": 1}, "critical"),
        (NIC_PCI, {"fatal.SDES": 1}, "critical"),
    ],
)
def test_what_is_grave(subject: str, counters: dict[str, int], expected: str | None) -> None:
    """Unsupported requests alone are what a driver provokes; totals are no errors of their own."""
    assert [(subject, expected)] * (expected is not None) == severities(rule, moved(gpus(), subject, counters))


def test_a_nic_that_is_no_rail_is_less_grave() -> None:
    """As everywhere."""
    case = changed_nic(moved(gpus(), NIC_PCI, {"fatal.SDES": 1}), 1, role="storage")
    assert [(NIC_PCI, "error")] == severities(rule, case)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, aer=None), NotApplicable, id="no AER"),
        pytest.param(
            lambda c: function(c, GPU, aer={"correctable": {"RxErr": 0}}), NotApplicable, id="only others counted"
        ),
        pytest.param(lambda c: reset(c, PCI), Unknown, id="counted anew"),
        pytest.param(lambda c: node(c, uptime_seconds=HOUR + 899), Unknown, id="settling when the window began"),
        pytest.param(lambda c: moved(gpus(), PCI, {}), Pass, id="nothing moved"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(FIRING)

    assert [] == fails(rule, case)
    assert isinstance(one(rule, case, PCI), kind)


def test_what_is_no_device_of_ours_is_not_judged() -> None:
    """A virtual function beside its physical one, a management controller; a bus that was not read is unknown."""
    assert [] == [a for a in rule.check(function(FIRING, GPU, physical_function=NIC)) if a.subject == PCI]
    bare = probe(topology(FIRING, pci=[]), "pci", "failed", "broken")
    assert isinstance(one(rule, bare, "node"), Unknown)
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_what_a_driver_provokes_asks_for_nothing() -> None:
    """Nobody drains a node for an info."""
    (harmless,) = fails(rule, moved(gpus(), PCI, {"nonfatal.UnsupReq": 9}))
    (grave,) = fails(rule, moved(gpus(), PCI, {"nonfatal.TLP": 1}))

    assert ("Nothing", "Drain") == (harmless.remedy[:7], grave.remedy[:5])


def test_one_kind_counted_anew_hides_neither_a_fault_nor_itself() -> None:
    """Unknown where the other kind is quiet; the fault where the other kind moved."""
    quiet = reset(gpus(), PCI, "fatal.DLP")
    loud = moved(quiet, PCI, {"nonfatal.TLP": 1})

    assert isinstance(one(rule, quiet, PCI), Unknown)
    assert [(PCI, "error")] == severities(rule, loud)
    assert isinstance(one(rule, reset(gpus(), PCI, "nonfatal.TLP"), PCI), Unknown)


def test_what_is_harmless_is_told_as_such() -> None:
    """Cause and loss."""
    (harmless,) = fails(rule, moved(gpus(), PCI, {"nonfatal.UnsupReq": 9}))
    (grave,) = fails(rule, moved(gpus(), PCI, {"nonfatal.TLP": 9}))

    assert ("unsupported-request", "nonfatal") == (harmless.cause, grave.cause)
    assert harmless.impact.startswith("None by itself")
    assert "jobs on this device fail" in grave.impact


def test_drives_and_nvswitches_are_judged_and_other_bridges_are_not() -> None:
    """By class; an NVSwitch is NVIDIA's."""
    for changes, judged in (
        ({"class_code": "0x010802"}, True),
        ({"class_code": "0x068000", "vendor": "0x10de"}, True),
        ({"class_code": "0x068000", "vendor": "0x1000"}, False),
        ({"class_code": "0x020000", "vendor": "0x10de"}, False),
    ):
        case = topology(function(moved(gpus(), NIC_PCI, {"fatal.DLP": 1}), NIC, **changes), nics=[])
        assert judged == bool(fails(rule, case)), changes


def test_a_node_that_is_not_judged_gets_one_answer() -> None:
    """No sample; nothing to judge."""
    assert 1 == len(list(rule.check(without_window(gpus()))))
