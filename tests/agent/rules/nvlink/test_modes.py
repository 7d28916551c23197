"""What somebody set so: bandwidth mode, MIG, NVLS, links that are claimed or disabled; c2c-down, gpu-ats-off and
gpu-memory-numa-missing on a tray of GB200; a registration that goes on while nothing manages the fabric.
"""

from __future__ import annotations

import pytest

from agent.model.gpu import C2c, Mig
from agent.model.node import Module, NumaNode
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.nvlink.fabric import fabric_incomplete, nvls_unavailable
from agent.rules.nvlink.fabric import nvls_unavailable as nvls
from agent.rules.nvlink.links import nvlink_bandwidth_mode_reduced as bandwidth
from agent.rules.nvlink.links import nvlink_disabled as disabled
from agent.rules.nvlink.links import nvlink_unused_by_mig as unused
from agent.rules.nvlink.superchips import c2c_down, gpu_ats_off, gpu_memory_numa_missing
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nics,
    fails,
    function,
    kinds,
    models,
    node,
    probe,
    server,
    software,
    topology,
)
from tests.agent.rules.fabric import FM, SUBJECTS, hgx, registration, service, tray
from tests.agent.rules.rows import B200, H100, H100_PCIE

OFF = C2c(enabled=False)
ONLY_CPUS = [NumaNode(id=0, cpus="0-71", memory_mib=491_520), NumaNode(id=1, cpus="72-143", memory_mib=491_520)]
MODULES = ("nvidia", "ib_core")
WITH_UMAD = (*MODULES, "ib_umad")


@pytest.mark.parametrize("mode", ["half", "min", "off", "3quarter"])
def test_a_mode_of_the_system(mode: str) -> None:
    """One finding, whatever the GPUs say."""
    (fault,) = fails(bandwidth, changed_gpus(topology(hgx(), bandwidth_mode=mode), nvlink_bandwidth_mode=mode))

    assert ("node", f"NVLink bandwidth mode {mode}") == (fault.subject, fault.summary)


def test_mig_leaves_nvlink_idle() -> None:
    """Info; it names the GPUs that are divided."""
    (fault,) = fails(unused, changed_gpu(hgx(), 2, mig=Mig(current=True)))

    assert ("node", "info") == (fault.subject, fault.severity or unused.severity)
    assert "NVLink of GPU2 is" in fault.summary
    assert 1 == len(fails(unused, changed_gpu(tray(), 2, mig=Mig(current=True))))


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (hgx(), Pass),
        (changed_gpus(hgx(), mig=Mig(current=False, pending=True)), Pass),
        (changed_gpus(hgx(1), mig=Mig(current=True)), NotApplicable),
        (models(changed_gpus(hgx(), mig=Mig(current=True)), H100_PCIE), NotApplicable),
        (changed_gpus(hgx(), mig=Mig(current=True), driver_state="error"), NotApplicable),
    ],
)
def test_mig_that_is_off_or_divides_a_card(context, kind) -> None:
    """Nothing to say."""
    assert {kind} == kinds(unused, context)


def test_a_module_that_is_alone_needs_no_nvlink() -> None:
    """Clouds switch it off there; two are a pair, and one that has no driver does not count."""
    alone = changed_gpus(hgx(1), links=[], links_known=True)
    pair, three = (changed_gpus(hgx(n), links=[], links_known=True) for n in (2, 3))
    card = function(pair, pair.topology.gpus[1].pci or "", device=H100_PCIE)
    with_card = function(three, three.topology.gpus[1].pci or "", device=H100_PCIE)
    other = changed_gpu(changed_gpus(hgx(2), links=[], links_known=True), 1, driver_state="no_driver")

    assert {NotApplicable} == kinds(disabled, alone)
    assert {NotApplicable} == kinds(disabled, other)
    assert {NotApplicable} == kinds(disabled, card)
    assert {Fail} == kinds(disabled, pair)
    assert {Fail, NotApplicable} == kinds(disabled, with_card)


@pytest.mark.parametrize(("gpus", "kind"), [(1, NotApplicable), (2, Fail), (3, Fail)])
def test_two_gpus_are_wired_to_each_other(gpus: int, kind: type) -> None:
    """MIG on one is nobody's loss; nor are sums in switches."""
    context = changed_gpus(hgx(gpus), mig=Mig(current=True))
    sums = registration(hgx(gpus), None, state="not_supported", status=None)

    assert {kind} == kinds(unused, context)
    assert {kind} == kinds(nvls, sums)


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


def board(*modules: str, manager: str = "active", device: str = B200, name: str = "NVIDIA B200") -> RuleContext:
    """B200: the switches are no PCI functions; its GPUs register since nobody knows when."""
    context = service(probe(models(server(8), device), "services", "ok"), FM, manager)
    context = changed_gpus(context, name=name, architecture="Blackwell")
    context = software(context, modules=[Module(name=module) for module in modules])
    return node(registration(context, None, state="in_progress", status=None), uptime_seconds=None)


def incomplete(context: RuleContext) -> Fail:
    (fault,) = fails(fabric_incomplete, context)
    return fault


def is_open(context: RuleContext) -> bool:
    """Whether the registration may still come to its end."""
    return any(isinstance(answer, Unknown) for answer in answers(fabric_incomplete, context, SUBJECTS[0]))


def test_without_the_module_of_hidden_switches_it_does_not_end() -> None:
    fault = incomplete(board(*MODULES))

    assert ("node", "critical", "no-umad") == (fault.subject, fault.severity, fault.situation)
    assert fault.summary.startswith("registration with the NVLink fabric: in progress; ib_umad is not loaded")
    assert ("ib_umad", "lsmod") in [(row.what, row.source) for row in fault.evidence]


def test_without_the_manager_it_does_not_end() -> None:
    fault = incomplete(board(*WITH_UMAD, manager="failed"))

    assert ("error", "", True) == (fault.severity, fault.situation, fault.summary.endswith("in progress: GPU0-7"))
    assert (FM, "failed") in [(row.what, row.value) for row in fault.evidence]


@pytest.mark.parametrize(
    "context",
    [
        pytest.param(board(*WITH_UMAD), id="all that is needed is there"),
        pytest.param(changed_nics(board(), rdma_device=None), id="modules are not known"),
        pytest.param(board(*WITH_UMAD, manager="unknown"), id="the manager is not known"),
        pytest.param(changed_nics(board("nvidia"), rdma_device="mlx5_0"), id="the RDMA stack is built in"),
        pytest.param(board(*MODULES, manager="failed", device=H100, name="NVIDIA H100"), id="no manager is due here"),
        pytest.param(board(*MODULES, manager="failed", device="", name="NVIDIA GB200"), id="a tray"),
        pytest.param(board(*MODULES, manager="failed", device=H100, name="NVIDIA B200"), id="its PCI id decides"),
    ],
)
def test_otherwise_it_may_still_end(context: RuleContext) -> None:
    assert is_open(context)
    assert [] == fails(nvls_unavailable, context)


def test_without_a_pci_list_the_name_decides() -> None:
    assert not is_open(board(*MODULES, device="", name="NVIDIA B200"))
    assert not is_open(board(*MODULES, device="", name="NVIDIA B300 SXM6 AC"))


def test_modules_that_are_not_built_in() -> None:
    """An RDMA device beside ib_core as a module: ib_umad would be one, too."""
    assert not is_open(changed_nics(board(*MODULES), rdma_device="mlx5_0"))
    assert not is_open(changed_nics(board("nvidia"), rdma_device=None))


def test_multicast_is_judged_where_the_registration_is() -> None:
    assert 1 == len(fails(nvls_unavailable, board(*MODULES)))
    assert 1 == len(fails(nvls_unavailable, node(board(*WITH_UMAD), uptime_seconds=86400.0)))
    assert 1 == len(fails(nvls_unavailable, registration(board(*WITH_UMAD), None, state="not_started", status=None)))
