"""c2c-down, gpu-ats-off and gpu-memory-numa-missing: a tray of GB200, and what is none."""

from __future__ import annotations

import pytest

from agent.model.gpu import C2c
from agent.model.node import NumaNode
from agent.rules.engine import judge
from agent.rules.nvlink.superchips import c2c_down, gpu_ats_off, gpu_memory_numa_missing
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import changed_gpu, changed_gpus, fails, kinds, node
from tests.agent.rules.fabric import SUBJECTS, tray

OFF = C2c(enabled=False)


def broken(n: int | None = 2):
    """All three faults."""
    changes = {"c2c": OFF, "addressing_mode": "hmm", "memory_numa_node": 99}
    return changed_gpus(tray(), **changes) if n is None else changed_gpu(tray(), n, **changes)


def dead(*links: int) -> C2c:
    return C2c(enabled=True, links=["inactive" if n in links else "active" for n in range(10)])


@pytest.mark.parametrize(
    ("c2c", "severity"),
    [(OFF, "critical"), (dead(3), "error"), (dead(*range(10)), "critical"), (dead(*range(9)), "error")],
)
def test_c2c_that_is_off_or_lacks_links(c2c: C2c, severity: str) -> None:
    """Some of ten links, or all."""
    (fault,) = fails(c2c_down, changed_gpu(tray(), 2, c2c=c2c))

    assert (SUBJECTS[2], severity) == (fault.subject, fault.severity)


@pytest.mark.parametrize(("mode", "kind"), [("ats", Pass), (None, Unknown)])
def test_addressing_modes(mode: str | None, kind: type) -> None:
    """ATS is due; none told is unknown."""
    assert {kind} == kinds(gpu_ats_off, changed_gpus(tray(), addressing_mode=mode))
    assert "none" in fails(gpu_ats_off, changed_gpu(tray(), 2, addressing_mode="none"))[0].summary


ONLY_CPUS = [NumaNode(id=0, cpus="0-71", memory_mib=491_520), NumaNode(id=1, cpus="72-143", memory_mib=491_520)]


@pytest.mark.parametrize(
    ("circumstance", "words"),
    [
        (lambda c: changed_gpu(c, 2, memory_numa_node=99), "which the system does not have"),
        (lambda c: changed_gpu(c, 2, memory_numa_node=1), "has CPUs"),
        (lambda c: node(changed_gpus(c, memory_numa_node=None), numa_nodes=ONLY_CPUS), "is not a NUMA node"),
    ],
)
def test_memory_that_is_no_node(circumstance, words: str) -> None:
    """Info."""
    (fault,) = fails(gpu_memory_numa_missing, circumstance(tray()))

    assert words in fault.summary


@pytest.mark.parametrize(("lost", "told"), [((3,), ["inactive"]), ((3, 4), ["inactive"] * 2)])
def test_the_states_of_c2c_links_are_shown(lost: tuple[int, ...], told: list[str]) -> None:
    """Every link, as the driver says it."""
    (fault,) = fails(c2c_down, changed_gpu(tray(), 2, c2c=dead(*lost)))
    output = fault.evidence[0].value.split(", ")

    assert (10, told) == (len(output), [state for state in output if state != "active"])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [("6.8.0-60-generic", "Remove `iommu.passthrough=1`"), ("6.11.0", "leave"), (None, "Remove `iommu.passthrough=1`")],
)
def test_passthrough_stays_from_6_11_on(kernel: str | None, words: str) -> None:
    """There it goes together with ATS."""
    (finding,) = judge(node(broken(), kernel=kernel), [gpu_ats_off])[1]

    assert words in finding.steps[0].do
