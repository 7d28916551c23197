"""gdr-mrrs-small: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.gpudirect.rails import gdr_mrrs_small as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    function,
    gpu_id,
    nic_id,
    topology,
    virtual,
)
from tests.agent.rules.configured import configured, unprivileged

NIC = nic_id(0)


def small(size: int = 512):
    return function(configured(), NIC, max_read_request_bytes=size)


def test_a_rail_that_reads_in_small_pieces() -> None:
    """A warning, with the register."""
    (fault,) = fails(rule, small())

    assert (f"pci:{NIC}", "mlx5_0", None) == (fault.subject, fault.label, fault.severity)
    assert fault.impact.startswith("8 times as many read requests")
    assert ("512 bytes", True) == (fault.evidence[0].value, "MaxReadReq" in fault.evidence[0].source)


@pytest.mark.parametrize(("size", "fires"), [(2048, True), (4095, True), (4096, False), (8192, False)])
def test_the_limit(size: int, fires: bool) -> None:
    """4096 bytes."""
    assert fires == bool(fails(rule, small(size)))


def test_the_limit_can_be_set() -> None:
    """An operator who measured line rate."""
    case = replace(small(), settings=Settings(thresholds={"gdr-mrrs-small.bytes": 512}))

    assert [] == fails(rule, case)


def test_every_rail_is_one_finding() -> None:
    """The BIOS did it; GPUs are not asked."""
    case = configured(max_read_request_bytes=512)

    assert ["node"] == [fault.subject for fault in fails(rule, case)]
    assert [] == answers(rule, case, f"pci:{gpu_id(0)}")


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 0, virtual_function=True), NotApplicable, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 0, role="storage"), NotApplicable, id="no rail"),
        pytest.param(lambda c: changed_nic(c, 0, driver="bnxt_en"), NotApplicable, id="another maker"),
        pytest.param(lambda c: changed_nic(c, 0, driver=None), NotApplicable, id="no driver"),
        pytest.param(lambda c: changed_port(c, 0, rate_gbit_s=50.0), NotApplicable, id="slow"),
        pytest.param(lambda c: changed_port(c, 0, rate_gbit_s=99.0), NotApplicable, id="nearly fast"),
        pytest.param(lambda c: changed_port(c, 0, state="DOWN"), NotApplicable, id="port down"),
        pytest.param(lambda c: changed_port(c, 0, rate_gbit_s=None), NotApplicable, id="no rate"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(unprivileged, Unknown, id="not root"),
        pytest.param(lambda c: function(c, NIC, max_read_request_bytes=4096), Pass, id="large"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(small()), f"pci:{NIC}")

    assert isinstance(answer, kind), answer


def test_100_gbit_is_fast() -> None:
    """The limit of what counts as fast."""
    assert fails(rule, changed_port(small(), 0, rate_gbit_s=100.0))


def test_which_nics_are_rails_is_not_known() -> None:
    """Nothing is said of any."""
    assert [Unknown] == [type(answer) for answer in rule.check(changed_nics(small(), role="unknown"))]


def test_a_bus_of_which_not_all_is_known_may_have_a_gpu() -> None:
    """No GPU is certain only where every function was seen; and then one answer is enough."""
    bare = topology(small(), gpus=[])
    unsure = function(bare, gpu_id(1), class_code=None)

    assert [NotApplicable("node", "no GPU")] == list(rule.check(bare))
    assert [f"pci:{NIC}"] == [fault.subject for fault in fails(rule, unsure)]
