"""NCCL and limits as rows of the report."""

from __future__ import annotations

import pytest

from agent.assemble.facts import Facts
from agent.assemble.nccl import device_nodes_of, limits_of, nccl_of, parameters_of, shared_memory_of
from agent.model.node import Nccl
from probes.kernel.modules import ModuleFacts
from probes.kernel.system import KernelFacts
from probes.nccl.jobs import Setting
from probes.nccl.probe import Library, NcclFacts
from probes.probe import Outcome, Status
from probes.system.limits import Limit, LimitFacts


def facts(**of: object) -> Facts:
    """Outcomes of probes that answered."""
    return Facts(Outcome(name, Status.OK, each, None, (), 0.0) for name, each in of.items())


def test_without_a_probe_nothing_is_known() -> None:
    """Not: nothing is there."""
    assert Nccl() == nccl_of(facts())
    assert (None, None, {}, {}) == (
        device_nodes_of(facts()),
        shared_memory_of(facts()),
        limits_of(facts()),
        parameters_of(None),
    )
    assert None is nccl_of(facts()).jobs


def test_settings_stand_in_the_order_of_lines() -> None:
    """Line 10 after line 9."""
    rows = tuple(Setting(f"NCCL_{n}", "x", f"/etc/nccl.conf:{n}", "system", "l") for n in (10, 9, 1))
    made = nccl_of(facts(nccl=NcclFacts(settings=rows, libraries=(Library("/b"), Library("/a", "2.1", 3)), jobs=2)))

    assert ["NCCL_1", "NCCL_9", "NCCL_10"] == [each.key for each in made.settings]
    assert [("/a", "2.1", 3), ("/b", None, 0)] == [(each.path, each.version, each.used_by) for each in made.libraries]
    assert (2, None) == (made.jobs, made.jobs_unread)


def test_limits_of_services_and_jobs() -> None:
    """What binds a process stands beside its limit."""
    found = facts(
        limits=LimitFacts(services=(Limit("slurmd.service", "65536", True),), device_nodes=("nvidia10", "nvidia9")),
        nccl=NcclFacts(limits=(Limit("pid 7 (x)", "unlimited", False, True),)),
    )

    assert {
        "memlock slurmd.service": "65536",
        "exempt slurmd.service": "yes",
        "memlock pid 7 (x)": "unlimited",
        "exempt pid 7 (x)": "no",
        "rdma pid 7 (x)": "yes",
    } == limits_of(found)
    assert ["nvidia9", "nvidia10"] == device_nodes_of(found)


@pytest.mark.parametrize(
    ("told", "memory_mib", "size"),
    [("65536", None, 64), ("default", 1000, 500), ("default", None, None), (None, 1000, None)],
)
def test_the_size_of_shared_memory(told: str | None, memory_mib: int | None, size: int | None) -> None:
    """Half of the memory where the mount names no size."""
    found = facts(nccl=NcclFacts(shared_memory=told), kernel=KernelFacts(memory_mib=memory_mib))

    assert size == shared_memory_of(found)


def test_parameters_of_the_driver_are_an_allow_list() -> None:
    """Those that matter for links, of bounded length."""
    loaded = ModuleFacts(
        (), nvidia_params={"RegistryDwords": "x" * 999, "DeviceFileUID": "0", "EnableStreamMemOPs": "1"}
    )

    assert {"EnableStreamMemOPs": "1", "RegistryDwords": "x" * 512} == parameters_of(loaded)
