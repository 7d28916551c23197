"""ACS, IOMMU and ATS between GPUs and rails: what is a fault on which kind of platform."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.topology import Path
from agent.rules.gpudirect.pairs import pairs, platform_kind
from agent.rules.gpudirect.rails import gdr_nic_gpu_ratio
from agent.rules.rule import Pass
from tests.agent.rules.build import (
    changed_gpu,
    changed_nic,
    changed_nics,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    server,
    topology,
    virtual,
    way,
)
from tests.agent.rules.machines import direct_nic, grace

PAIR = f"pair:{gpu_id(1)}+{nic_id(1)}"


def test_pairs_are_gpus_with_their_nearest_rails() -> None:
    """Not every GPU with every NIC."""
    assert [(gpu_id(n), nic_id(n)) for n in range(4)] == [(p.gpu.id, p.nic.id) for p in pairs(server())]
    assert {PAIR} <= {pair.subject for pair in pairs(server())}
    assert [] == list(pairs(changed_nics(server(), role="storage")))
    limited = changed_nic(server(), 1, limited="mezz internal")
    assert nic_id(1) not in {pair.nic.id for pair in pairs(limited)}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda c: c, "x86"),
        (virtual, "guest"),
        (lambda c: changed_nics(c, driver="efa"), "cloud"),
        (direct_nic, "direct-nic"),
        (grace, "grace"),
        (lambda c: function(c, "0000:11:00.0", vendor="0x15b3", device="0x1979"), "inline"),
        (lambda c: function(c, "0000:10:01.0", vendor="0x10de", device="0x22b1"), "grace"),
    ],
)
def test_the_kind_of_platform(made, kind: str) -> None:
    """It decides what ACS and IOMMU should be."""
    assert kind == platform_kind(made(server()))


def test_ends_of_other_makers_that_sleep_or_are_software_make_no_pair() -> None:
    """Whoever cannot be asked, or has no GPUDirect of this kind."""
    for context in (
        function(server(), gpu_id(1), vendor="0x1002"),
        function(server(), gpu_id(1), state="asleep"),
        changed_nic(server(), 1, software=True),
    ):
        assert PAIR not in {pair.subject for pair in pairs(context)}


def test_a_way_of_no_known_kind_makes_no_pair() -> None:
    """A path that only NVML names."""
    paths = [msgspec.structs.replace(p, pcie_kind=None) for p in server().topology.paths]

    assert () == pairs(topology(server(), paths=paths))


def test_a_path_may_begin_at_either_end() -> None:
    """The rail first, the GPU second."""
    turned = [msgspec.structs.replace(p, a=p.b, b=p.a) for p in server().topology.paths]

    assert [p.subject for p in pairs(server())] == [p.subject for p in pairs(topology(server(), paths=turned))]


@pytest.mark.parametrize(
    "changes",
    [
        {"vendor": "0x1000", "device": "0x1979"},  # a switch of another maker with that number
        {"vendor": "0x15b3", "device": "0x197e"},
        {"vendor": "0x1000", "device": "0x22b1"},
        {"vendor": "0x1000", "device": "0x2100"},
    ],
)
def test_a_number_alone_or_a_maker_alone_is_no_platform(changes) -> None:
    """Vendor and device together."""
    assert "x86" == platform_kind(function(server(), "0000:11:00.0", **changes))
    assert "x86" == platform_kind(topology(server(), nics=[]))


def test_a_pair_is_where_its_functions_are() -> None:
    """Ends whose id is no address: a sub-function, a GPU by its UUID."""
    context = changed_nic(changed_gpu(server(1), 0, id="GPU-0", label="GPU0"), 0, id=f"{nic_id(0)}/sf7")
    path = way(0, 0)
    hops = frozenset(path.hops)
    moved = type(path)(a="GPU-0", b=f"{nic_id(0)}/sf7", kind="PIX", pcie_kind="PIX", hops=path.hops)
    (pair,) = pairs(topology(context, paths=[moved]))

    assert {"GPU-0", gpu_id(0), f"{nic_id(0)}/sf7", nic_id(0)} == pair.ids - hops


def test_shares_that_are_all_small_are_even_enough() -> None:
    """Nobody has a rail of its own; one that has is compared with."""
    three = [Path(a=gpu_id(n), b=nic_id(0), kind="PXB", pcie_kind="PXB") for n in range(3)]
    three.append(Path(a=gpu_id(3), b=nic_id(1), kind="PXB", pcie_kind="PXB"))

    assert ["node"] == [f.subject for f in fails(gdr_nic_gpu_ratio, topology(server(), paths=three))]
    two = [Path(a=gpu_id(n), b=nic_id(n // 3), kind="PXB", pcie_kind="PXB") for n in range(4)]
    two.append(Path(a=gpu_id(2), b=nic_id(1), kind="PXB", pcie_kind="PXB"))
    assert {Pass} == kinds(gdr_nic_gpu_ratio, topology(server(), paths=two))
    crowds = [  # of GPU 0: half of rail 0, a quarter of rail 1, a sixth of rail 2
        Path(a=gpu_id(gpu), b=nic_id(rail), kind="PXB", pcie_kind="PXB")
        for rail in range(3)
        for gpu in range(2 * rail + 2)
    ]
    assert {Pass} == kinds(gdr_nic_gpu_ratio, topology(server(6), paths=crowds))
