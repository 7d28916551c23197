"""Software of a report: driver, modules, services, NCCL and limits."""

from __future__ import annotations

import pytest

from agent.assemble.facts import ProbeFacts
from agent.assemble.node import (
    build_limits,
    build_nccl,
    compute_shared_memory,
    list_device_nodes,
    select_parameters,
)
from agent.model.node import Nccl, Software
from probes.catalogue import providers
from probes.gpu.facts import GpuFacts
from probes.kernel.modules import KernelModule, ModuleFacts
from probes.kernel.system import KernelFacts
from probes.nccl.jobs import NcclVariable
from probes.nccl.probe import NcclFacts, NcclLibraryFile
from probes.probe import Outcome, Status
from probes.services.probe import ServiceFacts, ServiceState
from probes.system.limits import LimitFacts, ResourceLimit
from tests.agent.assemble.boards import assemble_facts


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


def facts(**of: object) -> ProbeFacts:
    """Outcomes of probes that answered."""
    return ProbeFacts((Outcome(name, Status.OK, item, None, (), 0.0) for name, item in of.items()), providers())


def test_without_a_probe_nothing_is_known() -> None:
    """Not: nothing is there."""
    assert Nccl() == build_nccl(facts())
    assert (None, None, {}, {}) == (
        list_device_nodes(facts()),
        compute_shared_memory(facts()),
        build_limits(facts()),
        select_parameters(None),
    )
    assert None is build_nccl(facts()).jobs


def test_settings_stand_in_the_order_of_lines() -> None:
    """Line 10 after line 9."""
    rows = tuple(NcclVariable(f"NCCL_{n}", "x", f"/etc/nccl.conf:{n}", "system", "l") for n in (10, 9, 1))
    result = build_nccl(
        facts(nccl=NcclFacts(settings=rows, libraries=(NcclLibraryFile("/b"), NcclLibraryFile("/a", "2.1", 3)), jobs=2))
    )

    assert ["NCCL_1", "NCCL_9", "NCCL_10"] == [setting.key for setting in result.settings]
    assert [("/a", "2.1", 3), ("/b", None, 0)] == [
        (library.path, library.version, library.used_by) for library in result.libraries
    ]
    assert (2, None) == (result.jobs, result.jobs_unread)


def test_limits_of_services_and_jobs() -> None:
    """What binds a process stands beside its limit."""
    result = facts(
        limits=LimitFacts(
            services=(ResourceLimit("slurmd.service", "65536", True),), device_nodes=("nvidia10", "nvidia9")
        ),
        nccl=NcclFacts(limits=(ResourceLimit("pid 7 (x)", "unlimited", False, True),)),
    )

    assert {
        "memlock slurmd.service": "65536",
        "exempt slurmd.service": "yes",
        "memlock pid 7 (x)": "unlimited",
        "exempt pid 7 (x)": "no",
        "rdma pid 7 (x)": "yes",
    } == build_limits(result)
    assert ["nvidia9", "nvidia10"] == list_device_nodes(result)


@pytest.mark.parametrize(
    ("expected", "memory_mib", "size"),
    [("65536", None, 64), ("default", 1000, 500), ("default", None, None), (None, 1000, None)],
)
def test_the_size_of_shared_memory(expected: str | None, memory_mib: int | None, size: int | None) -> None:
    """Half of the memory where the mount names no size."""
    result = facts(nccl=NcclFacts(shared_memory=expected), kernel=KernelFacts(memory_mib=memory_mib))

    assert size == compute_shared_memory(result)


def test_parameters_of_the_driver_are_an_allow_list() -> None:
    """Those that matter for links, of bounded length."""
    loaded = ModuleFacts(
        (), nvidia_params={"RegistryDwords": "x" * 999, "DeviceFileUID": "0", "EnableStreamMemOPs": "1"}
    )

    assert {"EnableStreamMemOPs": "1", "RegistryDwords": "x" * 512} == select_parameters(loaded)
