"""gdr-relaxed-ordering-off: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Cpu, Nccl, NcclSetting
from agent.rules.gpudirect.rails import gdr_relaxed_ordering_off as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_nics,
    fails,
    function,
    gpu_id,
    nic_id,
    node,
    software,
    topology,
    virtual,
)
from tests.agent.rules.configured import configured, unprivileged

NIC, ROOT, UP = nic_id(0), "0000:10:01.0", "0000:11:00.0"
KEY = "NCCL_IB_PCI_RELAXED_ORDERING"


def strict():
    return function(configured(), NIC, relaxed_ordering=False)


def told(value: str, case=None, key: str = KEY):
    setting = NcclSetting(key=key, value=value, source="/etc/nccl.conf:3")
    return software(case or configured(), nccl=Nccl(settings=[setting]))


@pytest.mark.parametrize(("vendor", "severity"), [("GenuineIntel", None), ("AuthenticAMD", "warning"), (None, None)])
def test_a_strict_rail(vendor: str | None, severity: str | None) -> None:
    """Information; a warning on AMD."""
    (fault,) = fails(rule, node(strict(), cpu=Cpu(vendor=vendor)))

    assert (f"pci:{NIC}", severity, "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "RlxdOrd" in fault.evidence[0].source


def test_every_rail_is_one_finding() -> None:
    """The BIOS did it."""
    assert ["node"] == [fault.subject for fault in fails(rule, configured(relaxed_ordering=False))]


@pytest.mark.parametrize(
    ("root", "kind"),
    [
        (("0x8086", "0x2f01"), True),
        (("0x8086", "0x6f0e"), True),
        (("0x1022", "0x1a02"), True),
        (("0x8086", "0x352a"), False),
        (("0x1022", "0x2f01"), False),
    ],
)
def test_root_ports_that_cannot(root, kind: bool) -> None:
    """The kernel switches it off below them; a switch port with such an id is none."""
    case = function(strict(), ROOT, vendor=root[0], device=root[1])
    (answer,) = answers(rule, case, f"pci:{NIC}")

    assert kind == isinstance(answer, NotApplicable)
    assert fails(rule, function(strict(), UP, vendor=root[0], device=root[1]))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 0, virtual_function=True), NotApplicable, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 0, role="storage"), NotApplicable, id="no rail"),
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(unprivileged, Unknown, id="not root"),
        pytest.param(lambda c: function(c, NIC, relaxed_ordering=True), Pass, id="on"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(strict()), f"pci:{NIC}")

    assert isinstance(answer, kind), answer


def test_which_nics_are_rails_is_not_known() -> None:
    """Nothing is said of any."""
    assert [Unknown] == [type(answer) for answer in rule.check(changed_nics(strict(), role="unknown"))]


def test_nccl_was_told_not_to() -> None:
    """The setting, and where it stands."""
    (fault,) = fails(rule, told("0"))

    assert ("node", "nccl", None) == (fault.subject, fault.cause, fault.severity)
    assert "/etc/nccl.conf:3" == fault.evidence[0].source
    assert ["warning"] == [f.severity for f in fails(rule, node(told("0"), cpu=Cpu(vendor="AuthenticAMD")))]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(lambda: told("1"), id="on"),
        pytest.param(lambda: told("2"), id="automatic"),
        pytest.param(lambda: told("0", key="NCCL_IB_TC"), id="another key"),
        pytest.param(lambda: virtual(told("0")), id="virtual machine"),
        pytest.param(lambda: changed_nics(told("0"), role="storage"), id="no rail"),
    ],
)
def test_other_settings_are_fine(case) -> None:
    """Silence."""
    assert [] == fails(rule, case())


def test_a_bus_of_which_not_all_is_known_may_have_a_gpu() -> None:
    """No GPU is certain only where every function was seen; and then one answer is enough."""
    bare = topology(strict(), gpus=[])
    unsure = function(bare, gpu_id(1), class_code=None)

    assert [NotApplicable("node", "no GPU")] == list(rule.check(bare))
    assert [f"pci:{NIC}"] == [fault.subject for fault in fails(rule, unsure)]
