"""Software: driver, modules, services, RDMA stack."""

from __future__ import annotations

from agent.model.node import Software
from probes.gpu.facts import GpuFacts
from probes.kernel.modules import KernelModule, ModuleFacts
from probes.system.services import ServiceFacts, ServiceState
from tests.agent.assemble.hosts import assemble_facts


def test_the_running_driver_speaks_before_a_tool() -> None:
    """NVML, then /proc, then what nvidia-smi printed; the flavour is known from /proc."""
    loaded = ModuleFacts((), nvidia_version="570.86.15", nvidia_open=True)
    tool = GpuFacts((), driver_version="560.1", cuda_version="12.6")
    live = assemble_facts(nvml=GpuFacts((), driver_version="570.86.15"), modules=loaded, nvidia_smi=tool).software
    proc = assemble_facts(modules=loaded, nvidia_smi=tool).software
    text = assemble_facts(nvidia_smi=tool).software

    assert ("570.86.15", True, "12.6") == (live.driver.version, live.driver.open, live.driver.cuda)
    assert "570.86.15" == proc.driver.version
    assert ("560.1", None) == (text.driver.version, text.driver.open)


def test_modules_of_both_sources_are_one_sorted_list() -> None:
    """lsmod knows names, sysfs knows versions."""
    facts = assemble_facts(
        modules=ModuleFacts(
            (KernelModule("nvidia", "570.1"),), rdma_stack="ofed", ofed="24.10", peer_memory_clients=("b", "a")
        ),
        lsmod=ModuleFacts((KernelModule("nvidia"), KernelModule("mlx5_ib"))),
        services=ServiceFacts(
            (ServiceState("nvidia-persistenced", "active"), ServiceState("nvidia-fabricmanager", "failed", "1"))
        ),
    ).software

    assert [("mlx5_ib", None), ("nvidia", "570.1")] == [(m.name, m.version) for m in facts.modules]
    assert ("ofed", "24.10") == (facts.rdma_stack.kind, facts.rdma_stack.version)
    assert ["a", "b"] == facts.peer_memory_clients
    assert [("nvidia-fabricmanager", "failed", "1"), ("nvidia-persistenced", "active", None)] == [
        (s.name, s.state, s.version) for s in facts.services
    ]


def test_silence_is_unknown() -> None:
    """Nothing answered."""
    assert Software() == assemble_facts().software


def test_the_fabric_s_daemons_and_confidential_computing() -> None:
    """Not known is null, or nothing."""
    services = ServiceFacts((), imex={"node": "READY", "nodes_config": "18"})
    facts = assemble_facts(nvml=GpuFacts((), confidential_computing=True), services=services).software

    assert ({"node": "READY", "nodes_config": "18"}, True) == (facts.imex, facts.driver.confidential_computing)
    assert {} == assemble_facts(services=ServiceFacts(())).software.imex
