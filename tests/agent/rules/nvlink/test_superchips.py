"""c2c-down, gpu-ats-off and gpu-memory-numa-missing: a tray of GB200, and what is none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.gpu import C2c, Mig
from agent.model.node import NumaNode
from agent.rules.engine import judge
from agent.rules.nvlink.superchips import c2c_down, gpu_ats_off, gpu_memory_numa_missing
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, changed_gpus, fails, kinds, models, node, virtual
from tests.agent.rules.fabric import SUBJECTS, driver, hgx, profile, tray
from tests.agent.rules.rows import H100

OFF = C2c(enabled=False)
RULES = (c2c_down, gpu_ats_off, gpu_memory_numa_missing)


def broken(n: int | None = 2):
    """All three faults."""
    changes = {"c2c": OFF, "addressing_mode": "hmm", "memory_numa_node": 99}
    return changed_gpus(tray(), **changes) if n is None else changed_gpu(tray(), n, **changes)


def dead(*links: int) -> C2c:
    return C2c(enabled=True, links=["inactive" if n in links else "active" for n in range(10)])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_one_gpu_or_the_node(rule) -> None:
    """The same of every GPU is one finding."""
    (one,), (every,) = fails(rule, broken()), fails(rule, broken(None))

    assert (SUBJECTS[2], "node") == (one.subject, every.subject)
    assert {Pass} == kinds(rule, tray())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(virtual, id="a guest"),
        pytest.param(lambda c: models(c, H100), id="no superchip"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="no_driver"), id="no driver"),
    ],
)
def test_what_is_no_superchip_of_ours_is_not_judged(rule, circumstance) -> None:
    """Each guard alone."""
    assert [NotApplicable] == [type(answer) for answer in answers(rule, circumstance(broken()), SUBJECTS[2])]


@pytest.mark.parametrize(
    ("c2c", "severity"),
    [(OFF, "critical"), (dead(3), "error"), (dead(*range(10)), "critical"), (dead(*range(9)), "error")],
)
def test_c2c_that_is_off_or_lacks_links(c2c: C2c, severity: str) -> None:
    """Some of ten links, or all."""
    (fault,) = fails(c2c_down, changed_gpu(tray(), 2, c2c=c2c))

    assert (SUBJECTS[2], severity) == (fault.subject, fault.severity)


@pytest.mark.parametrize(("due", "found"), [(450.0, 0), (461.5, 1), (460.0, 0)])
def test_c2c_bandwidth_against_the_profile(due: float, found: int) -> None:
    """447.1 GB/s; 97% are enough."""
    assert found == len(fails(c2c_down, replace(tray(), profile=profile(c2c_gbyte_s=due))))
    assert [] == fails(c2c_down, changed_gpus(replace(tray(), profile=profile(c2c_gbyte_s=due)), c2c=dead()))


@pytest.mark.parametrize("c2c", [None, C2c(), C2c(enabled=True, links=["active", "unknown"])])
def test_c2c_that_is_not_told_is_unknown(c2c: C2c | None) -> None:
    """Never a pass."""
    (answer,) = answers(c2c_down, changed_gpu(tray(), 2, c2c=c2c), SUBJECTS[2])

    assert isinstance(answer, Unknown)


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


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: driver(c, parameters={"CoherentGPUMemoryMode": '"driver"'}), NotApplicable, id="CDMM"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: node(c, numa_nodes=[]), Unknown, id="no NUMA nodes read"),
        pytest.param(lambda c: node(c, numa_nodes=[*ONLY_CPUS, NumaNode(id=2)]), Unknown, id="CPUs not known"),
        pytest.param(lambda c: changed_gpu(c, 2, memory_numa_node=None), Unknown, id="whose nodes these are"),
        pytest.param(lambda c: changed_gpu(c, 2, memory_numa_node=4), Pass, id="its own node"),
    ],
)
def test_a_guard_keeps_memory_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    context = circumstance(changed_gpu(tray(), 2, memory_numa_node=99))

    assert [kind] == [type(answer) for answer in answers(gpu_memory_numa_missing, context, SUBJECTS[2])]


def test_other_memory_modes_and_mig_that_is_off_change_nothing() -> None:
    """numa is the default."""
    context = driver(changed_gpu(broken(), 2, mig=Mig(current=False)), parameters={"CoherentGPUMemoryMode": '"numa"'})

    assert 1 == len(fails(gpu_memory_numa_missing, context))


def test_an_hgx_has_no_c2c() -> None:
    """Not applicable."""
    for rule in RULES:
        assert {NotApplicable} == kinds(rule, hgx())


@pytest.mark.parametrize(("lost", "told"), [((3,), ["inactive"]), ((3, 4), ["inactive"] * 2)])
def test_the_states_of_c2c_links_are_shown(lost: tuple[int, ...], told: list[str]) -> None:
    """Every link, as the driver says it."""
    (fault,) = fails(c2c_down, changed_gpu(tray(), 2, c2c=dead(*lost)))
    output = fault.evidence[0].value.split(", ")

    assert (10, told) == (len(output), [state for state in output if state != "active"])


def test_97_percent_of_c2c_are_enough() -> None:
    """Exactly that is not less."""
    context = replace(tray(), profile=profile(c2c_gbyte_s=100.0))
    full = C2c(enabled=True, links=["active"] * 10, max_gbyte_s=97.0)

    assert {Pass} == kinds(c2c_down, changed_gpus(context, c2c=full))
    less = C2c(enabled=True, links=["active"] * 10, max_gbyte_s=96.9)
    assert [SUBJECTS[2]] == [
        fault.subject for fault in fails(c2c_down, changed_gpu(changed_gpus(context, c2c=full), 2, c2c=less))
    ]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [("6.8.0-60-generic", "Remove `iommu.passthrough=1`"), ("6.11.0", "leave"), (None, "Remove `iommu.passthrough=1`")],
)
def test_passthrough_stays_from_6_11_on(kernel: str | None, words: str) -> None:
    """There it goes together with ATS."""
    (finding,) = judge(node(broken(), kernel=kernel), [gpu_ats_off])[1]

    assert words in finding.steps[0].do
