"""ACS, IOMMU and pairs where the report is partial or hostile: a tree in a circle, ids that are no addresses."""

from __future__ import annotations

import pytest

from agent.rules.gpudirect.iommu import gdr_acs_directnic, gdr_iommu_translated
from agent.rules.gpudirect.pairs import pairs
from agent.rules.rule import NotApplicable
from tests.agent.rules.build import (
    changed_gpu,
    changed_nic,
    changed_nics,
    function,
    gpu_id,
    kinds,
    nic_id,
    server,
    topology,
    virtual,
    way,
)
from tests.agent.rules.gpudirect.machines import ROOT, direct_nic

SWITCH = "0000:11:00.0"


def test_a_tree_that_bites_its_tail_has_no_root_port() -> None:
    """The GPU is below the switch and above its root port: nothing is said of such ports."""
    circle = function(function(direct_nic(server()), gpu_id(0), parent=SWITCH), ROOT, parent=gpu_id(0))

    assert 3 == len(list(gdr_acs_directnic.check(direct_nic(server()))))
    assert [] == list(gdr_acs_directnic.check(circle))


@pytest.mark.parametrize("silent", [virtual, lambda c: changed_nics(c, driver="efa")])
def test_translation_is_right_there_whatever_was_read_of_the_bus(silent) -> None:
    """A guest, a cloud: ways are known, functions are not."""
    assert {NotApplicable} == kinds(gdr_iommu_translated, silent(topology(server(), pci=[])))
    assert set() == kinds(gdr_iommu_translated, topology(server(), pci=[]))


def test_a_pair_is_where_its_functions_are() -> None:
    """Ends whose id is no address: a sub-function, a GPU by its UUID."""
    case = changed_nic(changed_gpu(server(1), 0, id="GPU-0", label="GPU0"), 0, id=f"{nic_id(0)}/sf7")
    path = way(0, 0)
    hops = frozenset(path.hops)
    moved = type(path)(a="GPU-0", b=f"{nic_id(0)}/sf7", kind="PIX", pcie_kind="PIX", hops=path.hops)
    (pair,) = pairs(topology(case, paths=[moved]))

    assert {"GPU-0", gpu_id(0), f"{nic_id(0)}/sf7", nic_id(0)} == pair.places - hops
