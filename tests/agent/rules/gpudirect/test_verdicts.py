"""`gpudirect` of the report: verdict, way and causes of every GPU with its rails."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.finding import Gpudirect
from agent.model.node import Driver
from agent.rules.catalogue import every_rule
from agent.rules.engine import evaluate
from agent.rules.gpudirect.verdicts import build_verdicts
from tests.agent.rules.build import (
    all_functions,
    changed_gpu,
    changed_gpus,
    changed_nics,
    changed_port,
    function,
    gpu_id,
    instinct,
    nic_id,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.machines import acs, direct_nic, grace, grouped
from tests.agent.rules.nccl.nccl_case import said

DOWN = "0000:22:00.0"


def rows(context) -> list[Gpudirect]:
    checks, faults, _ = evaluate(context, every_rule())
    return build_verdicts(context, checks, faults)


def test_gpus_of_amd_have_a_way_of_their_own() -> None:
    """By the kernel of the host, not by NVIDIA's modules; cards of others have no pair."""
    amd = msgspec.structs.replace(instinct(), software=software(instinct(), peer_memory_clients=["amdkfd"]).software)
    other = changed_gpus(all_functions(instinct(), "0x120000", vendor="0x8086"), vendor="Intel")

    assert 8 * [("ready", "peermem")] == [(row.verdict, row.via) for row in rows(amd)]
    assert [] == rows(other)


def of_pair(context, n: int) -> Gpudirect:
    return next(row for row in rows(context) if (row.gpu, row.nic) == (gpu_id(n), nic_id(n)))


def test_a_healthy_node_is_ready_by_dmabuf() -> None:
    """Each GPU with its own rail; NCCL takes DMA-BUF where both ways are there."""
    assert [
        Gpudirect(gpu=gpu_id(n), nic=nic_id(n), verdict="ready", via="dma-buf", causes=[]) for n in range(4)
    ] == rows(server())


def test_the_way_is_named() -> None:
    """Peer memory where DMA-BUF lacks something; data-direct where the board has it; none where there is none."""
    proprietary = software(server(), driver=Driver(version="570.1", open=False, cuda="12.8"))
    nothing = software(proprietary, modules=[])

    assert {"peermem"} == {row.via for row in rows(proprietary)}
    assert {"data-direct"} == {row.via for row in rows(direct_nic(server()))}
    assert {("none", "blocked")} == {(row.via, row.verdict) for row in rows(nothing)}
    assert {("gdr-no-path node",)} == {tuple(row.causes) for row in rows(nothing)}


def test_what_could_not_be_read_is_unknown_not_ready() -> None:
    """ACS that needs root; a node whose DMA-BUF is not known."""
    row = of_pair(function(server(), DOWN, acs=None), 1)
    assert "unknown" == row.verdict
    assert "root" in row.causes[0]
    assert {"unknown"} == {row.verdict for row in rows(grouped(server(), None))}
    unsure = software(server(), modules=[], driver=Driver(version="570.1", open=None, cuda="12.8"))
    assert {("unknown", "unknown")} == {(row.verdict, row.via) for row in rows(unsure)}


def test_a_port_that_is_down_blocks_its_pair() -> None:
    """With the port as the cause."""
    row = of_pair(changed_port(server(), 1, state="DOWN", phys_state="Polling"), 1)

    assert ("blocked", "none") == (row.verdict, row.via)
    assert [f"ib-port-down port:{nic_id(1)}/1"] == row.causes


def test_distance_blocks_as_nccl_would() -> None:
    """Beyond PXB, but not in a guest, whose tree is the hypervisor's."""
    far = topology(server(), paths=[p for p in server().topology.paths if p.pcie_kind == "NODE"])

    assert {"blocked"} == {row.verdict for row in rows(far)}
    assert all("distance NODE: NCCL uses GPUDirect up to PXB" in row.causes for row in rows(far))
    assert "blocked" not in {row.verdict for row in rows(virtual(far))}
    amd = topology(instinct(), paths=[p for p in instinct().topology.paths if p.pcie_kind == "NODE"])
    assert all("distance NODE: RCCL uses GPUDirect up to PXB" in row.causes for row in rows(amd))
    assert rows(amd)


def test_what_is_only_worth_knowing_does_not_degrade() -> None:
    """Info findings are no cause, neither of what slows nor, in one job only, of what blocks."""
    tried = said(server(), job={"NCCL_NET_GDR_READ": "0"})

    assert {"ready"} == {row.verdict for row in rows(all_functions(server(), "0x020700", relaxed_ordering=False))}
    assert {("ready", ())} == {(row.verdict, tuple(row.causes)) for row in rows(tried)}


def test_a_cloud_with_a_stack_of_its_own_is_not_known() -> None:
    """EFA, which has a reason of its own, and its like."""
    efa, other = (rows(changed_nics(server(), driver=driver)) for driver in ("efa", "gve"))

    assert {("unknown", "unknown")} == {(row.verdict, row.via) for row in (*efa, *other)}
    assert all(len(row.causes) == 1 and "through libfabric: not judged" in row.causes[0] for row in efa)
    assert all(["which way NICs take to GPU memory is not known"] == row.causes for row in other)


def test_c2c_is_no_distance() -> None:
    """The GPU of a superchip, or a path that is one."""
    far = topology(server(), paths=[p for p in server().topology.paths if p.pcie_kind == "NODE"])
    over = topology(far, paths=[msgspec.structs.replace(p, kind="C2C") for p in far.topology.paths])

    assert {"blocked"} == {row.verdict for row in rows(far)}
    for context in (over, grace(far)):
        assert not any("distance" in cause for row in rows(context) for cause in row.causes)


def test_a_fault_that_has_nothing_to_do_with_it_is_no_cause() -> None:
    """A rule that is not of the way."""
    context = changed_gpu(server(), 0, driver_state="open", recovery_action="drain_p2p")
    judged = [cause for row in rows(context) for cause in row.causes]

    assert not any(cause.startswith("gpu-recovery-needed") for cause in judged)


def test_what_is_unknown_elsewhere_is_not_unknown_here() -> None:
    """Pair 1 cannot be judged; the others are ready."""
    verdicts = {row.gpu: row.verdict for row in rows(function(server(), DOWN, acs=None))}

    assert {gpu_id(0): "ready", gpu_id(1): "unknown", gpu_id(2): "ready", gpu_id(3): "ready"} == verdicts


@pytest.mark.parametrize(
    ("board", "kind", "concerned"), [(grace, "PIX", False), (grace, "NODE", True), (direct_nic, "NODE", False)]
)
def test_a_way_over_c2c_that_is_switched_off_concerns_the_pairs_that_take_it(board, kind: str, concerned: bool) -> None:
    """A GPU and its rail behind one switch reach each other by PCIe, and so they do by data-direct functions."""
    context = said(board(server()), {"NCCL_NET_GDR_C2C": "0"})
    paths = [msgspec.structs.replace(path, kind=kind, pcie_kind=kind) for path in context.topology.paths]

    assert {concerned} == {"gdr-disabled-by-env node" in row.causes for row in rows(topology(context, paths=paths))}


def without_names(context):
    return all_functions(changed_gpus(context, name=None), "0x030200", name=None)


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090", "NVIDIA TITAN RTX"])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_consumer_card_is_ready_by_no_way(name: str, is_open: bool) -> None:
    """NVIDIA's driver has no GPUDirect RDMA for it, with DMA-BUF or with peer memory; other cards keep theirs."""
    context = software(server(), driver=Driver(version="570.1", open=is_open, cuda="12.8"))
    result = rows(changed_gpu(context, 1, name=name))

    assert ["ready", "blocked", "ready", "ready"] == [row.verdict for row in result]
    assert "none" == result[1].via
    assert ["GeForce"] == [cause.split()[0] for cause in result[1].causes]


def test_a_consumer_card_is_one_by_what_the_bus_calls_it() -> None:
    """The driver told no name."""
    context = all_functions(without_names(server()), "0x030200", name="GA102 [GeForce RTX 3090]")

    assert {"blocked"} == {row.verdict for row in rows(context)}


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "NVIDIA RTX A6000", "Quadro RTX 8000"])
def test_cards_for_work_are_ready(name: str) -> None:
    """Those of data centres and of workstations can do it."""
    assert {"ready"} == {row.verdict for row in rows(changed_gpus(server(), name=name))}


def test_a_card_without_a_name_may_be_a_consumer_card() -> None:
    """Unknown, not ready; one name is enough, the driver's or the bus's; what slows it is said all the same."""
    nameless = without_names(server())
    by_bus = all_functions(nameless, "0x030200", name="GH100 [H100 SXM5 80GB]")
    slowed = function(nameless, DOWN, acs=acs("RR"))

    assert {"unknown"} == {row.verdict for row in rows(nameless)}
    assert all("name" in cause for row in rows(nameless) for cause in row.causes)
    assert {"ready"} == {row.verdict for row in rows(by_bus)}
    assert "degraded" == of_pair(slowed, 1).verdict


@pytest.mark.parametrize(
    ("changes", "driver", "verdict", "word"),
    [
        pytest.param({"driver_state": "vfio"}, "vfio-pci", "unknown", "virtual machine", id="a guest's"),
        pytest.param({"driver_state": "vfio"}, None, "unknown", "virtual machine", id="a guest's, driver not read"),
        pytest.param(
            {"driver_state": "no_driver", "driver_error": "bound to nvgrace-gpu-vfio-pci"}, "nvgrace-gpu-vfio-pci",
            "unknown", "virtual machine", id="a guest's by a variant of vfio",
        ),
        pytest.param({"driver_state": "not_open"}, None, "unknown", "not known", id="not listed, driver not read"),
        pytest.param({"driver_state": "not_open"}, "nvidia", "blocked", "does not list", id="not listed"),
        pytest.param({"driver_state": "no_driver"}, "", "blocked", "no NVIDIA driver", id="no driver"),
        pytest.param(
            {"driver_state": "no_driver", "driver_error": "bound to nouveau"}, "nouveau", "blocked", "bound to nouveau",
            id="another driver",
        ),
        pytest.param(
            {"driver_state": "error", "driver_error": "GPU is lost"}, "nvidia", "blocked", "GPU is lost", id="error"
        ),
        pytest.param({"driver_state": "error"}, "nvidia", "blocked", "cannot open", id="error without a word"),
    ],
)  # fmt: skip
def test_a_gpu_that_the_driver_does_not_offer_is_not_ready(changes, driver, verdict: str, word: str) -> None:
    """The reason is with it, also where no rule sees a fault in it; the other GPUs are ready."""
    context = function(changed_gpu(server(), 1, **changes), gpu_id(1), driver=driver)
    alone = build_verdicts(context, [], [])

    for result in (rows(context), alone):
        assert ["ready", verdict, "ready", "ready"] == [row.verdict for row in result]
        assert any(word in cause for cause in result[1].causes), result[1]
        assert not any(cause.endswith(": None") for cause in result[1].causes)
    assert {"unknown": "unknown", "blocked": "none"}[verdict] == alone[1].via
    assert 1 == len(alone[1].causes)


def test_a_gpu_that_is_not_on_the_list_of_functions_may_be_ready() -> None:
    """The driver lists it: what the bus says is one source of two."""
    context = server()
    bare = topology(context, pci=[f for f in context.topology.pci if f.id != gpu_id(1)])

    assert "ready" == build_verdicts(bare, [], [])[1].verdict
