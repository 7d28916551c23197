"""pcie-errors-correctable: budgets by speed and width, both ends of a link, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.pcie.counters import error_budget
from agent.rules.pcie.counters import pcie_errors_correctable as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails, function, node
from tests.agent.rules.moves import GPU, HOUR, NETDEV, NIC, gpus, moved, one, reset, roce, severities, without_window
from tests.agent.rules.rows import link

PCI, NIC_PCI, ABOVE = f"pci:{GPU}", f"pci:{NIC}", "pci:0000:22:00.0"
FIRING = moved(gpus(), PCI, {"correctable.RxErr": 1861})


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [(32.0, 16, 31), (16.0, 16, 16), (8.0, 16, 8), (64.0, 16, 62), (2.5, 1, 1), (128.0, 16, 62), (32.0, 8, 16)],
)
def test_the_budget_is_a_bit_error_rate(speed: float, width: int, expected: int) -> None:
    """DCGM's table, by the best speed and width."""
    assert expected == error_budget(link(max_speed_gt_s=speed, max_width=width))
    assert 31 == error_budget(None)


def test_more_than_the_budget_is_a_warning() -> None:
    """Count, window and limit."""
    (fault,) = fails(rule, FIRING)

    assert (PCI, "GPU1", "warning") == (fault.subject, fault.label, fault.severity)
    assert fault.summary == "1861 correctable PCIe errors in 60 min, limit 31/min"
    assert fault.evidence[0].source == f"/sys/bus/pci/devices/{GPU}/aer_dev_correctable"


@pytest.mark.parametrize(
    ("subject", "counters", "expected"),
    [
        (PCI, {"correctable.RxErr": 1860}, None),
        (PCI, {"correctable.BadTLP": 1000, "correctable.BadDLLP": 861}, "warning"),
        (PCI, {"correctable.Rollover": 9000, "correctable.Timeout": 9600}, "warning"),
        (PCI, {"correctable.Timeout": 18601}, "error"),
        (PCI, {"correctable.NonFatalErr": 10**6}, None),
        (PCI, {"correctable.TOTAL_ERR_COR": 10**6}, None),
        (ABOVE, {"correctable.RxErr": 18601}, "error"),
    ],
)
def test_the_limits(subject: str, counters: dict[str, int], expected: str | None) -> None:
    """Errors of the link alone, on either end: told once, at the device."""
    assert [(PCI, expected)] * (expected is not None) == severities(rule, moved(gpus(), subject, counters))


def test_the_worse_end_counts() -> None:
    """One finding."""
    assert [(PCI, "error")] == severities(rule, moved(FIRING, ABOVE, {"correctable.RxErr": 18601}))


def test_a_nic_counts_its_signal_itself() -> None:
    """mlx5: ten an hour; storage one step lower."""
    case = moved(roce(), NETDEV, {"rx_pci_signal_integrity": 10})

    assert [(NIC_PCI, "warning")] == severities(rule, case)
    assert [(NIC_PCI, "info")] == severities(rule, changed_nic(case, 1, role="storage"))
    assert [] == fails(rule, moved(roce(), NETDEV, {"tx_pci_signal_integrity": 9}))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(function(c, GPU, aer=None), ABOVE[4:], aer=None), NotApplicable, id="no AER"),
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


def test_a_port_is_judged_with_its_device() -> None:
    """Its counters are those of the link below it."""
    assert isinstance(one(rule, FIRING, ABOVE), NotApplicable)
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_one_end_is_enough() -> None:
    """No port above, or one that does not count; a device that counts other things only leaves it to the port."""
    for case in (function(FIRING, GPU, parent=None), function(FIRING, ABOVE[4:], aer=None)):
        assert [(PCI, "warning")] == severities(rule, case)
    other = function(gpus(), GPU, aer={"fatal": {"DLP": 0}})
    assert Pass(PCI) == one(rule, other, PCI)
    assert isinstance(one(rule, function(other, ABOVE[4:], aer=None), PCI), NotApplicable)


def test_ten_times_the_budget_names_its_own_limit() -> None:
    """310 a minute for Gen 5 x16."""
    (fault,) = fails(rule, moved(gpus(), PCI, {"correctable.Timeout": 18601}))
    assert fault.summary == "18601 correctable PCIe errors in 60 min, limit 310/min"


def test_an_interface_that_does_not_count_its_signal_is_left_out() -> None:
    """Other drivers: the link's own counters decide."""
    case = changed_netdev(roce(), 1, counters={})
    case = function(case, NIC, aer={"correctable": {"RxErr": 0}})
    assert Pass(NIC_PCI) == one(rule, case, NIC_PCI)
