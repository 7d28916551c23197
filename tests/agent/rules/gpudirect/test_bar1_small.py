"""gdr-bar1-small: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.gpu import Mig
from agent.rules.context import Settings
from agent.rules.gpudirect.peer_memory import gdr_bar1_small as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nics,
    fails,
    function,
    gpu_id,
    server,
    virtual,
)

GPU = gpu_id(0)
WINDOW = {"0": 16 << 20, "2": 128 << 30, "4": 32 << 20}


def small(mib: int | None = 256):
    return changed_gpu(changed_gpus(server(), memory_mib=81559, bar1_mib=131072), 0, bar1_mib=mib)


def test_a_window_of_256_mib() -> None:
    """A warning on that GPU, with both sizes."""
    (fault,) = fails(rule, small())

    assert (f"gpu:{GPU}", None, "tiny") == (fault.subject, fault.severity, fault.cause)
    assert ["256 MiB", "81559 MiB"] == [row.value for row in fault.evidence]
    assert {GPU} == fault.places


@pytest.mark.parametrize(("mib", "severity"), [(256, None), (257, "info"), (81558, "info")])
def test_a_larger_window_is_information(mib: int, severity: str | None) -> None:
    """Smaller than the memory, and enough for many buffers; another fault than a tiny one."""
    cause = "" if severity else "tiny"

    assert [(severity, cause)] == [(fault.severity, fault.cause) for fault in fails(rule, small(mib))]


@pytest.mark.parametrize("mib", [81559, 131072])
def test_a_window_for_all_of_it(mib: int) -> None:
    """As it should be."""
    assert [] == fails(rule, small(mib))


def test_more_than_8_gib_is_a_large_gpu() -> None:
    """One MiB more."""
    assert [None] == [fault.severity for fault in fails(rule, changed_gpu(small(), 0, memory_mib=8193))]


def test_a_gpu_that_could_have_instances_is_none_that_has() -> None:
    """MIG is off: the driver tells of the whole GPU, and where it does not, nobody does."""
    off = Mig(current=False)
    (fault,) = fails(rule, changed_gpu(small(), 0, mig=off))
    (answer,) = answers(rule, changed_gpu(small(None), 0, mig=off), f"gpu:{GPU}")

    assert "nvidia-smi -q -d MEMORY" == fault.evidence[0].source
    assert isinstance(answer, Unknown)


def test_the_limit_can_be_set() -> None:
    """An operator who wants more."""
    case = replace(small(512), settings=Settings(thresholds={"gdr-bar1-small.mib": 1024}))

    assert ["tiny"] == [fault.cause for fault in fails(rule, case)]


def test_the_bus_tells_where_the_driver_does_not() -> None:
    """The largest BAR but the first."""
    case = function(small(None), GPU, bars_bytes={"0": 16 << 30, "1": 256 << 20, "3": 32 << 20})
    (fault,) = fails(rule, case)

    assert "256 MiB" == fault.evidence[0].value
    assert f"/sys/bus/pci/devices/{GPU}/resource" == fault.evidence[0].source


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_gpu(c, 0, name="NVIDIA GeForce RTX 3090"), NotApplicable, id="GeForce"),
        pytest.param(lambda c: function(c, GPU, vendor="0x1002"), NotApplicable, id="another maker"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: changed_gpu(c, 0, virtualization="vgpu"), NotApplicable, id="virtual GPU"),
        pytest.param(lambda c: changed_gpu(c, 0, mig=Mig(current=True)), NotApplicable, id="MIG without a BAR"),
        pytest.param(
            lambda c: function(changed_gpu(c, 0, mig=Mig(current=True)), GPU, bars_bytes=WINDOW), Pass, id="MIG"
        ),
        pytest.param(lambda c: changed_gpu(c, 0, bar1_mib=None), Unknown, id="window not known"),
        pytest.param(lambda c: changed_gpu(c, 0, memory_mib=None), Unknown, id="memory not known"),
        pytest.param(lambda c: changed_gpu(c, 0, memory_mib=8192), Pass, id="small GPU"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(small()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(lambda: changed_nics(small(), role="storage"), NotApplicable, id="no rail"),
        pytest.param(lambda: changed_nics(small(), role="unknown"), Unknown, id="rails not known"),
        pytest.param(lambda: virtual(changed_nics(small(), role="unknown")), NotApplicable, id="guest without rails"),
    ],
)
def test_without_rails_nobody_needs_it(case, kind) -> None:
    """One answer for the node."""
    assert [kind] == [type(answer) for answer in rule.check(case())]


def test_a_guest_is_judged() -> None:
    """A GPU that was passed through shows the window that the guest has."""
    assert [f"gpu:{GPU}"] == [fault.subject for fault in fails(rule, virtual(small()))]
