"""gdr-no-path: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import C2c
from agent.model.node import Driver, Module
from agent.rules.gpudirect.peer_memory import gdr_no_path as rule
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import (
    all_functions,
    changed_gpus,
    changed_nics,
    changed_ports,
    fails,
    node,
    probe,
    server,
    software,
    topology,
    virtual,
)

CLOSED = Driver(version="550.54", open=False, cuda="12.4")
ON = C2c(enabled=True)
OPEN = Driver(version="570.124.06", open=True, cuda="12.8")


def blocked():
    """No peer-memory client, and a driver whose modules cannot export DMA-BUFs."""
    return software(server(), modules=[Module(name="nvidia"), Module(name="mlx5_core")], driver=CLOSED)


def test_neither_way_is_an_error_of_the_node() -> None:
    """It names what DMA-BUF lacks."""
    (fault,) = fails(rule, blocked())

    assert ("node", "node", "error", "") == (fault.subject, fault.label, fault.severity or rule.severity, fault.cause)
    assert fault.summary.endswith("DMA-BUF is missing: open kernel modules of the NVIDIA driver")
    assert "copied through host memory" in fault.impact
    assert "/proc/modules" == fault.evidence[0].source


@pytest.mark.parametrize(
    ("circumstance", "lacks"),
    [
        pytest.param(lambda c: node(c, kernel="5.4.0-42-generic"), "kernel 5.12 or later", id="kernel"),
        pytest.param(
            lambda c: software(c, driver=Driver(version="470", open=True, cuda="11.4")), "CUDA 11.7", id="CUDA"
        ),
        pytest.param(
            lambda c: changed_gpus(c, compute_capability="7.0", architecture="Volta"), "Turing or newer", id="Volta"
        ),
        pytest.param(
            lambda c: changed_gpus(c, compute_capability=None, architecture="Volta"), "Turing", id="Volta by its name"
        ),
    ],
)
def test_each_need_of_dmabuf_is_looked_at(circumstance, lacks: str) -> None:
    """All else is there."""
    (fault,) = fails(rule, circumstance(software(blocked(), driver=OPEN)))

    assert lacks in fault.summary


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: software(c, modules=[Module(name="nvidia_peermem")]), Pass, id="peermem"),
        pytest.param(lambda c: software(c, modules=[Module(name="nv_peer_mem")]), Pass, id="legacy module"),
        pytest.param(lambda c: software(c, peer_memory_clients=["nv_mem"]), Pass, id="registered client"),
        pytest.param(lambda c: software(c, driver=OPEN), Pass, id="DMA-BUF"),
        pytest.param(
            lambda c: changed_gpus(software(c, driver=OPEN), compute_capability=None), Pass, id="Hopper by its name"
        ),
        pytest.param(
            lambda c: all_functions(changed_gpus(software(c, driver=OPEN), name=None), "0x030200", name=None),
            Pass,
            id="DMA-BUF, whatever the GPUs are called",
        ),
        pytest.param(lambda c: probe(c, "modules", "failed", "broken"), Unknown, id="modules not read"),
        pytest.param(
            lambda c: software(c, driver=Driver(version="1", open=None, cuda="12.4")), Unknown, id="flavour not read"
        ),
        pytest.param(
            lambda c: changed_nics(software(c, driver=OPEN), driver="newnic"),
            Unknown,
            id="NIC driver not known to do it",
        ),
        pytest.param(
            lambda c: all_functions(changed_gpus(c, name=None), "0x030200", name=None),
            Unknown,
            id="GPUs without a name",
        ),
        pytest.param(lambda c: changed_gpus(c, name="NVIDIA GeForce RTX 4090"), NotApplicable, id="GeForce"),
        pytest.param(lambda c: changed_gpus(c, name="NVIDIA TITAN RTX"), NotApplicable, id="TITAN"),
        pytest.param(
            lambda c: all_functions(changed_gpus(c, name=None), "0x030200", name="GeForce RTX 3090"),
            NotApplicable,
            id="GeForce by the bus",
        ),
        pytest.param(lambda c: all_functions(c, "0x030200", vendor="0x1002"), NotApplicable, id="another vendor"),
        pytest.param(lambda c: changed_gpus(c, driver_state="vfio"), NotApplicable, id="GPUs of guests"),
        pytest.param(lambda c: all_functions(c, "0x030200", state="asleep"), NotApplicable, id="GPUs asleep"),
        pytest.param(lambda c: topology(c, gpus=[]), NotApplicable, id="no GPU"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nics(c, role="storage"), NotApplicable, id="no rail"),
        pytest.param(lambda c: changed_nics(c, software=True), NotApplicable, id="software rail"),
        pytest.param(lambda c: changed_nics(c, limited="mezz internal"), NotApplicable, id="fabric manager's rail"),
        pytest.param(lambda c: changed_nics(c, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(lambda c: changed_ports(c, state="DOWN"), NotApplicable, id="no active rail"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = rule.check(circumstance(blocked()))

    assert isinstance(answer, kind), answer


def test_where_no_rail_is_near_nccl_would_not_use_it() -> None:
    """Everything hangs on the CPUs: worth knowing, not an error."""
    ways = [msgspec.structs.replace(p, kind="NODE", pcie_kind="NODE") for p in blocked().topology.paths]
    (fault,) = fails(rule, topology(blocked(), paths=ways))

    assert "info" == fault.severity
    assert [None] == [fault.severity for fault in fails(rule, changed_gpus(topology(blocked(), paths=ways), c2c=ON))]


def test_rails_that_are_not_known_are_not_absent() -> None:
    """Several models are as near to the GPUs: which of them are rails decides."""
    (answer,) = rule.check(changed_nics(blocked(), role="unknown"))

    assert isinstance(answer, Unknown)


@pytest.mark.parametrize(
    "circumstance", [virtual, lambda c: changed_gpus(c, name="NVIDIA GeForce RTX 3090"), lambda c: topology(c, gpus=[])]
)
def test_where_rails_would_not_matter_nobody_asks_which_they_are(circumstance) -> None:
    """A guest, GPUs that cannot do it, no GPU."""
    (answer,) = rule.check(circumstance(changed_nics(blocked(), role="unknown")))

    assert isinstance(answer, NotApplicable)


@pytest.mark.parametrize(("architecture", "answer"), [("Ada Lovelace", Pass), ("Feynman", Unknown), (None, Unknown)])
def test_a_gpu_is_too_old_only_where_its_name_says_so(architecture: str | None, answer: type) -> None:
    """The driver says "Ada Lovelace", and will say words that nobody knows today."""
    case = software(server(), modules=[Module(name="nvidia"), Module(name="mlx5_core")], driver=OPEN)

    (given,) = rule.check(changed_gpus(case, compute_capability=None, architecture=architecture))

    assert isinstance(given, answer)


def with_dmabuf(case):
    """All that DMA-BUF needs, and no client of peer memory."""
    return software(case, modules=[Module(name="nvidia"), Module(name="mlx5_core")], driver=OPEN)


@pytest.mark.parametrize(("capability", "kind"), [("7.0", Fail), ("7.5", Pass), ("8.0", Pass)])
def test_turing_is_the_first_with_dmabuf(capability: str, kind: type) -> None:
    """7.5."""
    (given,) = rule.check(changed_gpus(with_dmabuf(blocked()), compute_capability=capability))

    assert isinstance(given, kind)


@pytest.mark.parametrize(("kernel", "kind"), [("5.11.0", Fail), ("5.12.0", Pass), ("5.12", Pass), ("6.1.0", Pass)])
def test_the_first_kernel_with_dmabuf(kernel: str, kind: type) -> None:
    """5.12."""
    (given,) = rule.check(node(with_dmabuf(blocked()), kernel=kernel))

    assert isinstance(given, kind)


@pytest.mark.parametrize(
    ("is_open", "said"), [(None, "kernel modules not known"), (True, "open"), (False, "proprietary kernel modules")]
)
def test_the_flavour_of_the_driver_is_evidence(is_open: bool | None, said: str) -> None:
    """Open, proprietary, or not known."""
    driver = msgspec.structs.replace(OPEN, open=is_open)
    (fault,) = fails(rule, node(software(blocked(), driver=driver), kernel="5.4.0-42-generic"))

    assert any(f", {said}, CUDA" in row.value for row in fault.evidence)


def test_where_no_way_is_known_it_is_an_error() -> None:
    """Nobody says that NCCL would not use it; ways of other NICs say nothing; C2C is near."""
    far = [msgspec.structs.replace(p, kind="NODE", pcie_kind="NODE") for p in blocked().topology.paths]
    over = [msgspec.structs.replace(p, kind="C2C") for p in far]
    others = [p for p in far if p.kind == "NODE" and p.b.startswith("nobody")]

    assert [None] == [f.severity for f in fails(rule, topology(blocked(), paths=others))]
    assert [None] == [f.severity for f in fails(rule, topology(blocked(), paths=over))]
    beside = [*far, msgspec.structs.replace(far[0], b="0000:ff:00.0", pcie_kind="PIX", kind="PIX")]
    assert ["info"] == [f.severity for f in fails(rule, topology(blocked(), paths=beside))]
