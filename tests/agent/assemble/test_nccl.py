"""NCCL and limits as rows of the report."""

from __future__ import annotations

import pytest

from agent.assemble.facts import ProbeFacts
from agent.assemble.software import (
    build_limits,
    build_nccl,
    compute_shared_memory,
    list_device_nodes,
    select_parameters,
)
from agent.model.node import Nccl
from probes.catalogue import providers
from probes.kernel.modules import ModuleFacts
from probes.kernel.system import KernelFacts
from probes.nccl.jobs import NcclVariable
from probes.nccl.probe import NcclFacts, NcclLibraryFile
from probes.probe import Outcome, Status
from probes.system.limits import LimitFacts, ResourceLimit


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
