"""What a node's software has to do with GPUDirect: peer memory, DMA-BUF, namespaces, software devices, flat trees."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.node import Driver, Event, Module, Service
from agent.model.topology import Path
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.gpudirect.peer_memory import gdr_dmabuf_prereq, gdr_legacy_nv_peer_mem, gdr_peermem_broken
from agent.rules.gpudirect.rails import (
    gdr_mrrs_small,
    gdr_netns_exclusive,
    gdr_nic_gpu_ratio,
    gdr_relaxed_ordering_off,
    gdr_soft_rdma,
    gdr_topology_hidden,
)
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    all_functions,
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    gpu_id,
    kinds,
    nic_id,
    probe,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.gpudirect.machines import grace, setting, unread_jobs
from tests.agent.rules.nccl_case import unread

REFUSED = Event(
    kind="peermem",
    text="nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
    source="/dev/kmsg",
    code="symbol",
    detail={"module": "nvidia_peermem", "symbol": "ib_register_peer_memory_client"},
)
PROPRIETARY = Driver(version="570.124.06", open=False, cuda="12.8")


def refused(case):
    """No client, the message in the log, no DMA-BUF either."""
    return replace(software(case, modules=[], driver=PROPRIETARY), events=(REFUSED,))


def test_a_refused_module_is_the_cause_of_no_path() -> None:
    """One finding, which says what to mend, and names what follows from it."""
    _, findings, _ = judge(refused(server()), every_rule())
    about = [f for f in findings if f.rule in ("gdr-peermem-broken", "gdr-no-path")]

    assert [("gdr-peermem-broken", "error", ["gdr-no-path node"])] == [(f.rule, f.severity, f.absorbs) for f in about]


def test_a_refused_module_where_dmabuf_is_ready_is_info() -> None:
    """NCCL takes the other way."""
    (fault,) = fails(gdr_peermem_broken, software(refused(server()), driver=server().software.driver))

    assert "info" == fault.severity


def test_what_keeps_a_refused_module_silent() -> None:
    """It was loaded later; there is no message; nobody could look."""
    loaded = software(refused(server()), modules=[Module(name="nvidia_peermem")])
    registered = software(refused(server()), peer_memory_clients=["nv_mem"])

    assert {Pass} == kinds(gdr_peermem_broken, loaded) == kinds(gdr_peermem_broken, registered)
    assert {NotApplicable} == kinds(gdr_peermem_broken, server())
    assert {Unknown} == kinds(gdr_peermem_broken, probe(server(), "kernel_log", "denied", "root"))
    assert {Unknown} == kinds(gdr_peermem_broken, probe(refused(server()), "modules", "failed", "broken"))
    bare = topology(probe(server(), "kernel_log", "denied", "root"), gpus=[])
    assert {NotApplicable} == kinds(gdr_peermem_broken, bare)


def test_a_node_on_peer_memory_alone() -> None:
    """Info: it works today."""
    (fault,) = fails(gdr_dmabuf_prereq, software(server(), driver=PROPRIETARY))

    assert ("node", None) == (fault.subject, fault.severity)
    assert "open kernel modules" in fault.summary
    assert {Pass} == kinds(gdr_dmabuf_prereq, server())
    assert {NotApplicable} == kinds(gdr_dmabuf_prereq, software(server(), driver=PROPRIETARY, modules=[]))
    assert {NotApplicable} == kinds(gdr_dmabuf_prereq, virtual(software(server(), driver=PROPRIETARY)))
    unread = software(server(), driver=Driver(version="570.1", open=None, cuda="12.8"))
    assert {Unknown} == kinds(gdr_dmabuf_prereq, unread)


def modules(*names: str, version: str | None = "570.124.06"):
    return software(server(), modules=[Module(name=name) for name in names], driver=Driver(version=version))


def test_the_old_module() -> None:
    """Alone beside a newer driver, and together with its successor."""
    assert fails(gdr_legacy_nv_peer_mem, modules("nv_peer_mem"))[0].summary.endswith("replaced")
    assert "beside nvidia_peermem" in fails(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", "nvidia_peermem"))[0].summary
    assert fails(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", "nvidia_peermem", version=None))
    assert fails(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", version="470.57.02"))
    assert {NotApplicable} == kinds(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", version="460.91.03"))
    assert {Unknown} == kinds(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", version=None))
    assert {Pass} == kinds(gdr_legacy_nv_peer_mem, server())
    assert {NotApplicable} == kinds(gdr_legacy_nv_peer_mem, topology(server(), gpus=[]))
    assert [] == fails(gdr_legacy_nv_peer_mem, probe(modules("nv_peer_mem"), "modules", "failed", "broken"))


def flat(case):
    """A guest in which every GPU reaches every rail in the same way, on one NUMA node."""
    paths = [
        Path(a=gpu.id, b=nic.id, kind="PHB", pcie_kind="PHB")
        for gpu in case.topology.gpus
        for nic in case.topology.nics
    ]
    return virtual(topology(case, paths=paths))


def nearer(case):
    """Half of the ways lead over another CPU."""
    paths = [
        msgspec.structs.replace(p, kind="SYS", pcie_kind="SYS") if p.a == gpu_id(0) and p.b != nic_id(0) else p
        for p in case.topology.paths
    ]
    return topology(case, paths=paths)


def switched(case):
    """Every way is over one switch."""
    return topology(case, paths=[msgspec.structs.replace(p, pcie_kind="PIX") for p in case.topology.paths])


def test_a_guest_whose_tree_is_flat() -> None:
    """No rail is near any GPU, and no file says which is."""
    (fault,) = fails(gdr_topology_hidden, flat(server()))

    assert ("node", None) == (fault.subject, fault.severity)
    assert "3 of 4 choices" in fault.impact


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(setting(flat(server()), "NCCL_TOPO_FILE", "/opt/topo.xml"), Pass, id="a file is set"),
        pytest.param(
            software(flat(server()), services=[Service(name="nvidia-topologyd", state="active")]), Pass, id="a service"
        ),
        pytest.param(unread_jobs(flat(server())), Unknown, id="jobs unread"),
        pytest.param(probe(flat(server()), "nccl", "failed", "x"), Unknown, id="files not looked for"),
        pytest.param(unread(flat(server())), Unknown, id="files unread"),
        pytest.param(virtual(server()), Pass, id="switches are shown"),
        pytest.param(flat(server(1)), NotApplicable, id="one GPU"),
        pytest.param(flat(server(2)), Fail, id="two GPUs"),
        pytest.param(
            flat(topology(server(2), gpus=server(1).topology.gpus)), NotApplicable, id="one GPU with two rails"
        ),
        pytest.param(
            flat(topology(server(2), nics=server(1).topology.nics)), NotApplicable, id="two GPUs with one rail"
        ),
        pytest.param(
            software(flat(server()), services=[Service(name="nvidia-topologyd", state="inactive")]), Fail, id="stopped"
        ),
        pytest.param(
            software(flat(server()), services=[Service(name="slurmd", state="active")]), Fail, id="another service"
        ),
        pytest.param(nearer(flat(server())), Pass, id="some are nearer"),
        pytest.param(switched(flat(server())), Pass, id="all below one switch"),
        pytest.param(changed_nics(flat(server()), role="storage"), NotApplicable, id="no rail"),
        pytest.param(all_functions(flat(server()), "0x030200", numa_node=1), Pass, id="NUMA nodes differ"),
    ],
)
def test_what_keeps_the_flat_tree_silent(case, kind) -> None:
    """The guest, and one circumstance."""
    assert {kind} == kinds(gdr_topology_hidden, case)


def test_a_flat_tree_on_bare_metal_is_another_matter() -> None:
    """The tree is real there."""
    paths = flat(server()).topology.paths

    assert {NotApplicable} == kinds(gdr_topology_hidden, topology(server(), paths=paths))


def shared(case):
    """Rail 1 is gone, and GPU 1 has moved below the switch of GPU 0 and rail 0."""
    paths = [p for p in case.topology.paths if p.a != gpu_id(1)]
    paths.append(Path(a=gpu_id(1), b=nic_id(0), kind="PXB", pcie_kind="PXB"))
    return topology(case, paths=paths, nics=[nic for nic in case.topology.nics if nic.id != nic_id(1)])


def test_two_gpus_on_one_rail_while_others_have_their_own() -> None:
    """Half of it each."""
    (fault,) = fails(gdr_nic_gpu_ratio, shared(server()))

    assert "GPU0, GPU1 share their rails; other GPUs have 1 each" == fault.summary
    assert fault.impact.startswith("50%")


def test_what_keeps_the_ratio_silent() -> None:
    """Even is fine, whatever the number; ports that are down or not known; other platforms."""
    assert {Pass} == kinds(gdr_nic_gpu_ratio, server())
    assert {NotApplicable} == kinds(gdr_nic_gpu_ratio, virtual(shared(server())))
    assert {NotApplicable} == kinds(gdr_nic_gpu_ratio, grace(shared(server())))
    assert {Unknown} == kinds(gdr_nic_gpu_ratio, changed_port(server(), 1, state=None))
    far = [p for p in server().topology.paths if p.pcie_kind == "NODE"]
    assert {NotApplicable} == kinds(gdr_nic_gpu_ratio, topology(server(), paths=far))
    even = [Path(a=gpu_id(n), b=nic_id(n // 2), kind="PXB", pcie_kind="PXB") for n in range(4)]
    assert {Pass} == kinds(gdr_nic_gpu_ratio, topology(server(), paths=even))


def test_exclusive_namespaces_are_worth_knowing() -> None:
    """Shared is the default."""
    (fault,) = fails(gdr_netns_exclusive, software(server(), rdma_namespaces="exclusive"))

    assert "node" == fault.subject
    assert {Pass} == kinds(gdr_netns_exclusive, server())
    assert {Unknown} == kinds(gdr_netns_exclusive, software(server(), rdma_namespaces=None))
    assert {NotApplicable} == kinds(gdr_netns_exclusive, topology(server(), nics=[]))


def soft(case):
    """NIC 1 is a software device."""
    return changed_nic(case, 1, software=True, role="unused", label="rxe0")


def test_a_software_device_beside_rails() -> None:
    """NCCL would take it."""
    (fault,) = fails(gdr_soft_rdma, soft(server()))

    assert (f"port:{nic_id(1)}/1", "rxe0") == (fault.subject, fault.label)
    assert "rdma link delete rxe0" in fault.remedy
    assert {Pass} == kinds(gdr_soft_rdma, setting(soft(server()), "NCCL_IB_HCA", "=mlx5_0"))
    assert {Unknown} == kinds(gdr_soft_rdma, unread_jobs(soft(server())))
    assert {Unknown} == kinds(gdr_soft_rdma, unread(soft(server())))
    assert {NotApplicable} == kinds(gdr_soft_rdma, changed_port(soft(server()), 1, state="DOWN"))
    assert {NotApplicable} == kinds(gdr_soft_rdma, changed_nics(soft(server()), role="unused"))
    assert {NotApplicable} == kinds(gdr_soft_rdma, server())


def test_ports_that_are_down_serve_nobody() -> None:
    """A second rail that is dark makes nobody rich; a NIC without ports is not known."""
    dark = changed_port(server(), 1, state="DOWN")

    assert {Pass} == kinds(gdr_nic_gpu_ratio, dark)
    others_dark = changed_port(changed_port(server(), 2, state="DOWN"), 3, state="DOWN")
    assert {Pass} == kinds(gdr_nic_gpu_ratio, shared(others_dark))  # no GPU has an active rail of its own
    assert {Unknown} == kinds(gdr_nic_gpu_ratio, changed_nic(server(), 1, ports=[]))


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


def test_other_lines_of_the_log_are_no_refusal() -> None:
    """Only what the module itself says."""
    event = msgspec.structs.replace(REFUSED, kind="xid")

    assert {NotApplicable} == kinds(gdr_peermem_broken, replace(refused(server()), events=(event,)))


@pytest.mark.parametrize(("version", "told"), [("469.99", False), ("470.0", True), ("471.1", True)])
def test_the_first_driver_with_a_module_of_its_own(version: str, told: bool) -> None:
    """470."""
    assert told == bool(fails(gdr_legacy_nv_peer_mem, modules("nv_peer_mem", version=version)))


def test_without_a_gpu_nothing_of_gpudirect_is_judged() -> None:
    """The same that the shut gate of the family says; where the bus was not read there may be one."""
    bare = topology(software(server(), rdma_namespaces="exclusive"), gpus=[])

    for rule in (gdr_netns_exclusive, gdr_mrrs_small, gdr_relaxed_ordering_off):
        assert {NotApplicable} == kinds(rule, bare)
    assert fails(gdr_netns_exclusive, probe(bare, "pci", "failed", "broken"))
