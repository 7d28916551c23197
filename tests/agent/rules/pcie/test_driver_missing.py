"""pci-driver-missing: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.pcie.devices import pci_driver_missing as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    all_functions,
    answers,
    changed_gpu,
    changed_gpus,
    changed_nic,
    fails,
    function,
    gpu_id,
    nic_id,
    server,
)

GPU, NIC = gpu_id(0), nic_id(0)


def gpu_with(driver: str | None):
    return changed_gpu(function(server(), GPU, driver=driver), 0, driver_state="no_driver")


def nic_with(driver: str | None):
    return changed_nic(function(server(), NIC, driver=driver), 0, driver=driver or None, role="unknown", ports=[])


@pytest.mark.parametrize(
    ("driver", "severity", "cause"),
    [
        ("", "warning", "none"),
        ("nouveau", "warning", "nouveau"),
        ("nova_core", "warning", "nova_core"),
        ("vfio-pci", "info", "vfio-pci"),
        ("nvgrace_gpu_vfio_pci", "info", "nvgrace_gpu_vfio_pci"),
    ],
)
def test_drivers_of_a_gpu(driver: str, severity: str, cause: str) -> None:
    """None, one of no use, one that hands it out."""
    (fault,) = fails(rule, gpu_with(driver))

    assert (f"pci:{GPU}", severity, cause) == (fault.subject, fault.severity, fault.cause)
    assert (driver or "none", "GPU1, GPU2, GPU3") == (fault.evidence[0].value, fault.evidence[1].value)


def test_no_gpu_has_a_driver() -> None:
    """It is not installed, or it did not load: one finding."""
    case = changed_gpus(all_functions(server(), "0x030200", driver=""), driver_state="no_driver")

    (fault,) = fails(rule, case)

    assert ("node", "warning") == (fault.subject, fault.severity)
    assert fault.impact.startswith("4 of 4 GPUs cannot")


@pytest.mark.parametrize(("driver", "severity"), [("", "warning"), ("vfio-pci", "info"), ("mlx5_vfio_pci", "info")])
def test_a_nic_beside_rails_of_its_kind(driver: str, severity: str) -> None:
    """Without a driver it has no role: that of its kind counts."""
    assert [(f"pci:{NIC}", severity)] == [(f.subject, f.severity) for f in fails(rule, nic_with(driver))]


def test_a_nic_of_another_kind_is_information() -> None:
    """No rail is like it: what it is for nobody knows."""
    for change in ({"device": "0x1017"}, {"subsystem_device": "0x9999"}, {"device": None}):
        assert ["info"] == [f.severity for f in fails(rule, function(nic_with(""), NIC, **change))]
    nameless = all_functions(nic_with(""), "0x020700", device=None)
    assert ["info"] == [f.severity for f in fails(rule, nameless)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, driver=None), Unknown, id="driver not read"),
        pytest.param(lambda c: changed_gpu(c, 0, pci="0000:ff:00.0"), Unknown, id="function not known"),
        pytest.param(lambda c: changed_gpu(c, 0, driver_state="open"), Pass, id="its driver lists it"),
        pytest.param(lambda c: function(c, GPU, driver="nvidia"), Pass, id="bound"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(
            lambda c: function(c, GPU, physical_function="0000:14:00.1"), NotApplicable, id="virtual function"
        ),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = [a for a in rule.check(circumstance(gpu_with(""))) if a.subject in (f"pci:{GPU}", "pci:0000:ff:00.0")]

    assert isinstance(answer, kind), answer


def test_nouveau_is_wrong_for_nvidia_only() -> None:
    """Another vendor's GPU with a driver of that name is not judged by it."""
    case = function(gpu_with("nouveau"), GPU, vendor="0x1002")

    assert [Pass(f"pci:{GPU}")] == answers(rule, case, f"pci:{GPU}")


def test_a_nic_of_an_unknown_make_passes_with_any_driver() -> None:
    """Only GPUs have drivers that are of no use for their work."""
    assert [Pass(f"pci:{NIC}")] == answers(rule, function(nic_with("mlx5_core"), NIC, vendor=None), f"pci:{NIC}")


@pytest.mark.parametrize("changes", [{"virtual_function": True}, {"software": True}, {"limited": "fabric manager"}])
def test_nics_that_are_none_of_ours(changes) -> None:
    """Guests', software's, the fabric manager's."""
    assert [NotApplicable] == [type(a) for a in answers(rule, changed_nic(nic_with(""), 0, **changes), f"pci:{NIC}")]


def test_an_unused_nic_with_a_driver_is_left_alone() -> None:
    """Its port is dark; its driver is there."""
    case = changed_nic(server(), 0, role="unused")

    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"pci:{NIC}")]


def test_a_sleeping_gpu_that_a_guest_holds_is_told() -> None:
    """vfio lets what no guest uses sleep."""
    assert ["info"] == [f.severity for f in fails(rule, function(gpu_with("vfio-pci"), GPU, state="asleep"))]


@pytest.mark.parametrize("state", ["open", "error"])
def test_a_gpu_whose_driver_bound_to_it_passes_whoever_listed_it(state: str) -> None:
    """Its driver lists it, or does not: it is bound."""
    assert [Pass(f"pci:{GPU}")] == answers(rule, changed_gpu(server(), 0, driver_state=state), f"pci:{GPU}")


def test_a_listed_gpu_with_a_driver_of_no_use_is_told() -> None:
    """Two sources that differ: what is bound now counts."""
    case = changed_gpu(gpu_with("nouveau"), 0, driver_state="open")

    assert ["warning"] == [fault.severity for fault in fails(rule, case)]


def test_a_sub_function_is_not_its_card() -> None:
    """It has no driver of its own on the bus."""
    case = changed_nic(nic_with(""), 0, id=f"{NIC}/sf1")

    assert [] == fails(rule, case)


def test_a_partition_handed_out_is_information() -> None:
    """pci-pf-stub keeps the physical function for virtual machines."""
    assert [("info", "pci-pf-stub")] == [(f.severity, f.cause) for f in fails(rule, nic_with("pci-pf-stub"))]


@pytest.mark.parametrize(("role", "severity"), [("storage", "info"), ("rail", "warning")])
def test_a_nic_with_a_role_keeps_it(role: str, severity: str) -> None:
    """Told by the profile, or known from before: that of its kind is not asked."""
    assert [severity] == [f.severity for f in fails(rule, changed_nic(nic_with(""), 0, role=role))]


def test_what_is_counted_is_its_own_kind() -> None:
    """NICs among NICs, GPUs among GPUs."""
    (gpu,), (nic,) = fails(rule, gpu_with("")), fails(rule, nic_with(""))

    assert gpu.impact.startswith("1 of 4 GPUs")
    assert nic.impact.startswith("1 of 4 NICs")
    assert "mlx5_1, mlx5_2, mlx5_3" == nic.evidence[1].value
