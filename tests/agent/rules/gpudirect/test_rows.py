"""`gpudirect` of the report: verdict, way and causes of every GPU with its rails."""

from __future__ import annotations

import msgspec

from agent.model.finding import Gpudirect
from agent.model.node import Driver
from agent.rules.catalogue import every_rule
from agent.rules.engine import asked
from agent.rules.gpudirect.rows import gpudirect_rows
from tests.agent.rules.build import (
    all_functions,
    changed_gpu,
    changed_gpus,
    changed_nics,
    changed_port,
    function,
    gpu_id,
    nic_id,
    probe,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.gpudirect.machines import (
    acs,
    direct_nic,
    grace,
    grouped,
)
from tests.agent.rules.nccl_case import said

DOWN = "0000:22:00.0"


def rows(case) -> list[Gpudirect]:
    checks, faults = asked(case, every_rule())
    return gpudirect_rows(case, checks, faults)


def of_pair(case, n: int) -> Gpudirect:
    return next(row for row in rows(case) if (row.gpu, row.nic) == (gpu_id(n), nic_id(n)))


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


def test_a_fault_on_the_way_degrades_its_pair_alone() -> None:
    """The others stay ready."""
    case = function(server(), DOWN, acs=acs("RR"))
    row = of_pair(case, 1)

    assert ("degraded", "dma-buf", [f"gdr-acs-on-path pair:{gpu_id(1)}+{nic_id(1)}"]) == (
        row.verdict, row.via, row.causes,
    )  # fmt: skip
    assert ["ready", "degraded", "ready", "ready"] == [each.verdict for each in rows(case)]


def test_what_could_not_be_read_is_unknown_not_ready() -> None:
    """ACS that needs root; a node whose DMA-BUF is not known."""
    row = of_pair(function(server(), DOWN, acs=None), 1)
    assert "unknown" == row.verdict
    assert "root" in row.causes[0]
    assert {"unknown"} == {each.verdict for each in rows(grouped(server(), None))}
    unsure = software(server(), modules=[], driver=Driver(version="570.1", open=None, cuda="12.8"))
    assert {("unknown", "unknown")} == {(each.verdict, each.via) for each in rows(unsure)}


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


def test_a_finding_for_the_node_concerns_every_pair_that_it_names() -> None:
    """Translation of all devices."""
    translated = grouped(server(), "DMA")

    assert {("degraded", ("gdr-iommu-translated node",))} == {(r.verdict, tuple(r.causes)) for r in rows(translated)}


def test_what_is_only_worth_knowing_does_not_degrade() -> None:
    """Info findings are no cause, neither of what slows nor, in one job only, of what blocks."""
    tried = said(server(), job={"NCCL_NET_GDR_READ": "0"})

    assert {"ready"} == {row.verdict for row in rows(all_functions(server(), "0x020700", relaxed_ordering=False))}
    assert {("ready", ())} == {(row.verdict, tuple(row.causes)) for row in rows(tried)}


def test_a_cloud_with_a_stack_of_its_own_is_not_known() -> None:
    """EFA and its like."""
    found = rows(changed_nics(server(), driver="efa"))

    assert {("unknown", "unknown")} == {(row.verdict, row.via) for row in found}
    assert all("not known" in cause for row in found for cause in row.causes)
    assert all(row.causes for row in found)


def test_without_any_way_no_pair_is_ready() -> None:
    """In a guest, and with GPUs that gdr-no-path does not judge."""
    nothing = software(server(), modules=[], driver=Driver(version="570.1", open=False, cuda="12.8"))

    for case in (virtual(nothing), changed_gpus(nothing, name="NVIDIA GeForce RTX 3090")):
        found = rows(case)
        assert "ready" not in {row.verdict for row in found}
        assert all(row.causes for row in found)


def test_c2c_is_no_distance() -> None:
    """The GPU of a superchip, or a path that is one."""
    far = topology(server(), paths=[p for p in server().topology.paths if p.pcie_kind == "NODE"])
    over = topology(far, paths=[msgspec.structs.replace(p, kind="C2C") for p in far.topology.paths])

    assert {"blocked"} == {row.verdict for row in rows(far)}
    for case in (over, grace(far)):
        assert not any("distance" in cause for row in rows(case) for cause in row.causes)


def test_a_fault_that_has_nothing_to_do_with_it_is_no_cause() -> None:
    """A rule that is not of the way."""
    case = changed_gpu(server(), 0, driver_state="open", recovery_action="drain_p2p")
    judged = [cause for row in rows(case) for cause in row.causes]

    assert not any(cause.startswith("gpu-recovery-needed") for cause in judged)


def test_what_is_unknown_elsewhere_is_not_unknown_here() -> None:
    """Pair 1 cannot be judged; the others are ready."""
    verdicts = {row.gpu: row.verdict for row in rows(function(server(), DOWN, acs=None))}

    assert {gpu_id(0): "ready", gpu_id(1): "unknown", gpu_id(2): "ready", gpu_id(3): "ready"} == verdicts


def test_modules_that_were_not_read_leave_the_way_open() -> None:
    """Neither DMA-BUF nor peer memory was seen, and the modules were not looked at: unknown, with a reason."""
    case = probe(software(server(), modules=[], driver=Driver(version="570.1", open=False)), "modules", "failed", "x")

    assert {"unknown"} == {row.verdict for row in rows(case)}
    assert {"unknown"} == {row.via for row in rows(case)}
    assert all(row.causes for row in rows(case))
