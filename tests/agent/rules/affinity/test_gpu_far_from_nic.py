"""affinity-gpu-far-from-nic: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import C2c
from agent.model.node import NumaNode
from agent.model.topology import Disagreement, Path
from agent.rules.affinity.placement import affinity_gpu_far_from_nic as rule
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    changed_nic,
    changed_nics,
    fails,
    function,
    gpu_id,
    kinds,
    models,
    nic_id,
    node,
    probe,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import GB200

GPU = gpu_id(1)


def moved(case, n: int, kind: str = "NODE"):
    """The rail of GPU n is no longer below its switch."""
    near = (gpu_id(n), nic_id(n))
    paths = [
        msgspec.structs.replace(p, pcie_kind=kind, kind=kind) if (p.a, p.b) == near else p for p in case.topology.paths
    ]
    return topology(case, paths=paths)


def far(kind: str = "NODE"):
    """One of four GPUs, without NVLinks, has no rail behind a switch."""
    return changed_gpus(moved(server(), 1, kind), links=[])


@pytest.mark.parametrize("kind", ["PHB", "NODE"])
def test_one_far_gpu_among_near_ones_is_an_error(kind: str) -> None:
    """Named with its nearest rail and how far that is."""
    (fault,) = fails(rule, far(kind))

    assert (f"gpu:{GPU}", "GPU1", "error", "", "high") == (
        fault.subject, fault.label, fault.severity, fault.cause, fault.confidence,
    )  # fmt: skip
    assert f" at {kind}; " in fault.summary
    assert "copied through host memory" in fault.impact
    assert kind == fault.evidence[0].value


def test_with_nvlinks_another_gpu_can_send_for_it() -> None:
    """PXN: a warning, and said so."""
    (fault,) = fails(rule, moved(server(), 1))

    assert "warning" == fault.severity
    assert "PXN" in fault.impact


def test_where_nvlinks_are_not_known_they_may_be_there() -> None:
    """A topology file that is silent on NVLink does not prove their absence."""
    (fault,) = fails(rule, changed_gpus(far(), links_known=False))

    assert "warning" == fault.severity


def test_another_opinion_or_an_unknown_host_makes_it_less_certain() -> None:
    """The driver says otherwise, or nobody knows whether this is a guest."""
    said = Disagreement(source="nvml", kind="PIX")
    paths = [msgspec.structs.replace(p, disagrees=said) for p in far().topology.paths]

    assert ["medium"] == [fault.confidence for fault in fails(rule, topology(far(), paths=paths))]
    assert ["medium"] == [fault.confidence for fault in fails(rule, node(far(), virtualization_known=False))]


def test_a_misplaced_rail_counts_even_where_half_the_gpus_are_far() -> None:
    """As many rails as groups of GPUs: each could have its own."""
    case = moved(far(), 2)

    assert [f"gpu:{gpu_id(1)}", f"gpu:{gpu_id(2)}"] == [fault.subject for fault in fails(rule, case)]


def test_few_nics_by_design_are_one_info() -> None:
    """Two rails for four GPUs: the rest reach them through the CPU."""
    case = moved(far(), 2)
    for n in (1, 2):
        case = changed_nic(case, n, role="unused")
    (fault,) = fails(rule, case)

    assert ("node", "info", "few-nics") == (fault.subject, fault.severity, fault.cause)
    assert "2 rails for 4 GPUs; GPU1, GPU2" in fault.summary


def test_where_three_of_four_have_a_rail_near_the_fourth_lost_its_own() -> None:
    """Fewer rails than groups of GPUs: this many with a rail near say that the rest should have one, too."""
    case = changed_nic(far(), 1, role="unused")

    assert ["error"] == [fault.severity for fault in fails(rule, case)]


def test_a_node_with_few_nics_stays_one_where_a_far_gpu_is_gone() -> None:
    """Then most GPUs have a rail near, which says nothing of the others: seen with four near and three far L40S."""
    case = changed_nic(changed_nic(far(), 1, role="unused"), 3, role="unused")
    case = topology(case, gpus=case.topology.gpus[:3])

    assert ["info"] == [fault.severity for fault in fails(rule, case)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip by its id"),
        pytest.param(lambda c: changed_gpu(c, 1, c2c=C2c(enabled=True)), NotApplicable, id="superchip by C2C"),
        pytest.param(
            lambda c: topology(c, paths=[msgspec.structs.replace(p, kind="C2C") for p in c.topology.paths]),
            NotApplicable,
            id="superchip by its paths",
        ),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: topology(c, paths=[]), Unknown, id="no way known"),
        pytest.param(
            lambda c: moved(moved(moved(c, 0), 2), 3), NotApplicable, id="nobody has a rail behind a switch"
        ),
        pytest.param(lambda c: moved(c, 1, "PXB"), Pass, id="several switches are near enough"),
    ],
)  # fmt: skip
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(far()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


def test_no_rail_is_not_applicable() -> None:
    """Nothing to be far from."""
    assert {NotApplicable} == kinds(rule, changed_nics(far(), role="unused"))


def test_a_rail_that_fell_off_explains_it() -> None:
    """Its GPU is far from all others because its own is gone."""
    case = changed_nic(function(moved(server(), 1), nic_id(1), state="gone"), 1, role="unknown", ports=[])
    _, findings, _ = judge(case, every_rule())

    assert [("pcie-device-gone", [f"affinity-gpu-far-from-nic gpu:{GPU}"])] == [(f.rule, f.absorbs) for f in findings]


def test_only_rails_bring_a_gpu_near() -> None:
    """Neither a NIC for something else behind the same switch, nor another GPU."""
    other = msgspec.structs.replace(far().topology.nics[0], id="0000:16:00.0", pci="0000:16:00.0", role="storage")
    ways = [Path(a=GPU, b=end, kind="PIX", pcie_kind="PIX") for end in (other.id, gpu_id(0))]
    case = topology(far(), nics=[*far().topology.nics, other], paths=[*far().topology.paths, *ways])

    assert [f"gpu:{GPU}"] == [fault.subject for fault in fails(rule, case)]


def test_gpus_below_one_root_port_share_their_rails() -> None:
    """Two rails for two groups of two: each group could have its own, so a far group is a fault."""
    case = moved(moved(changed_gpus(server(), links=[]), 2), 3)
    for n, to in ((1, "0000:12:00.0"), (3, "0000:32:00.0")):
        case = changed_nic(function(case, gpu_id(n), parent=to), n, role="unused")
    ways = [Path(a=GPU, b=nic_id(0), kind="PIX", pcie_kind="PIX")]
    case = topology(case, paths=[*case.topology.paths, *ways])

    assert [f"gpu:{gpu_id(2)}", f"gpu:{gpu_id(3)}"] == [fault.subject for fault in fails(rule, case)]


def test_dead_nvlinks_carry_nothing_for_it() -> None:
    """No other GPU can send for a GPU whose links are down."""
    links = [msgspec.structs.replace(each, state="inactive") for each in server().topology.gpus[1].links]
    (fault,) = fails(rule, changed_gpu(far(), 1, links=links))

    assert "error" == fault.severity
    assert frozenset({GPU, f"rail of {GPU}"}) == fault.places


def test_an_unread_bus_is_unknown() -> None:
    """No rail is known because nobody looked."""
    assert "unknown" == judge(probe(topology(server(1), nics=[]), "pci", "failed", "broken"), [rule])[0][0].state


def test_a_nic_nearby_that_may_be_its_rail_is_no_fault() -> None:
    """Of three NICs on its switch none could be told to be the rail; a dead one or a guest's is none."""
    other = msgspec.structs.replace(far().topology.nics[0], id="0000:16:00.0", pci=None, label="mlx5_9", role="unknown")
    way = Path(a=GPU, b=other.id, kind="PIX", pcie_kind="PIX")
    case = topology(far(), nics=[*far().topology.nics, other], paths=[*far().topology.paths, way])
    given = msgspec.structs.replace(other, state="vfio")

    assert [Unknown(f"gpu:{GPU}", "whether the NIC near it is a rail is not known")] == answers(
        rule, case, f"gpu:{GPU}"
    )
    assert 1 == len(fails(rule, topology(case, nics=[*far().topology.nics, given])))


def test_gpus_in_doubt_are_not_near() -> None:
    """Two of four surely have a rail near, one may, and there are two rails: built so, as with 2 NICs for 4 GPUs."""
    case = moved(far(), 2)
    other = msgspec.structs.replace(case.topology.nics[2], label="mlx5_9", role="unknown")
    nics = [*case.topology.nics[:1], other, case.topology.nics[3]]
    way = Path(a=gpu_id(2), b=other.id, kind="PIX", pcie_kind="PIX")
    case = topology(case, nics=nics, paths=[*case.topology.paths, way])

    assert [("node", "info")] == [(fault.subject, fault.severity) for fault in fails(rule, case)]


def test_rails_that_are_not_known_are_not_absent() -> None:
    """Several models are as near: which are rails is not known."""
    assert {Unknown} == kinds(rule, changed_nics(far(), role="unknown"))
    assert {NotApplicable} == kinds(rule, virtual(changed_nics(far(), role="unknown")))


def one_socket_off(distance: int = 21, gpus: int = 2):
    """Every GPU on NUMA node 0, the only rail on node 1, and no switches."""
    case = topology(server(gpus), nics=server(1).topology.nics)
    ways = [Path(a=gpu_id(n), b=nic_id(0), kind="SYS", pcie_kind="SYS") for n in range(gpus)]
    nodes = [NumaNode(id=0, cpus="0-1", distances=[10, distance]), NumaNode(id=1, cpus="2-3", distances=[distance, 10])]
    placed = changed_nic(changed_gpus(case, numa_node=0), 0, numa_node=1)
    return node(topology(placed, paths=ways), numa_nodes=nodes)


def test_the_only_rail_on_the_other_socket_is_a_warning() -> None:
    """One finding for the node: the NIC is in the wrong slot."""
    (fault,) = fails(rule, one_socket_off())

    assert ("node", "warning", "other-socket") == (fault.subject, fault.severity, fault.cause)
    assert "every rail is on another socket than GPU0, GPU1" == fault.summary


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: one_socket_off(12), NotApplicable, id="another node of the same socket (NPS, SNC)"),
        pytest.param(lambda c: node(c, virtualization_known=False), Unknown, id="perhaps a guest"),
        pytest.param(lambda c: changed_nics(c, numa_node=None), Unknown, id="node of the NIC not known"),
        pytest.param(lambda c: node(c, numa_nodes=[]), Unknown, id="distances not known"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip"),
        pytest.param(
            lambda c: topology(c, paths=[msgspec.structs.replace(p, pcie_kind="NODE") for p in c.topology.paths]),
            NotApplicable,
            id="on its socket",
        ),
    ],
)  # fmt: skip
def test_a_guard_keeps_the_other_socket_silent(circumstance, kind) -> None:
    """The same machine and this circumstance."""
    assert {kind} == kinds(rule, circumstance(one_socket_off()))


@pytest.mark.parametrize(("distance", "faults"), [(19, 0), (20, 1), (21, 1)])
def test_from_which_distance_on_it_is_another_socket(distance: int, faults: int) -> None:
    """20, as firmware says of another socket; nodes of one socket are nearer."""
    assert faults == len(fails(rule, one_socket_off(distance)))


def test_one_answer_for_the_node_where_all_are_on_the_other_socket() -> None:
    """And none for each GPU."""
    assert ["node"] == [answer.subject for answer in rule.check(one_socket_off())]


def test_distances_that_are_cut_short_are_not_known() -> None:
    """A table without a column for the node of the NIC."""
    case = one_socket_off()
    rows = [msgspec.structs.replace(row, distances=row.distances[:1]) for row in case.node.numa_nodes]

    assert {Unknown} == kinds(rule, node(case, numa_nodes=rows))


def test_the_way_is_told_by_the_rail_whichever_end_it_is() -> None:
    """A path may begin at the NIC."""
    case = far()
    turned = topology(case, paths=[msgspec.structs.replace(p, a=p.b, b=p.a) for p in case.topology.paths])
    (one,), (other,) = fails(rule, case), fails(rule, turned)

    assert [row.what for row in one.evidence] == [row.what for row in other.evidence]
    assert any("mlx5_" in row.what for row in one.evidence)


def test_a_way_that_only_the_driver_names_is_none() -> None:
    """NVLink, or a word of tomorrow."""
    case = far()
    paths = [msgspec.structs.replace(p, pcie_kind=None) if p.a == GPU else p for p in case.topology.paths]

    assert [Unknown] == [type(answer) for answer in answers(rule, topology(case, paths=paths), f"gpu:{GPU}")]


def beside(case, **changes):
    """One more NIC of unknown use at PIX of the far GPU, unless told otherwise."""
    address = "0000:16:00.0"
    kind = changes.pop("kind", "PIX")
    state = changes.pop("state", "present")
    other = msgspec.structs.replace(
        case.topology.nics[0], **({"id": address, "pci": address, "label": "mlx5_9", "role": "unknown"} | changes)
    )
    there = msgspec.structs.replace(case.functions[nic_id(0)], id=address, state=state)
    return topology(
        case,
        pci=[*case.topology.pci, there],
        nics=[*case.topology.nics, other],
        paths=[*case.topology.paths, Path(a=GPU, b=other.id, kind=kind, pcie_kind=kind)],
    )


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        pytest.param({}, 0, id="it may be the rail"),
        pytest.param({"state": "gone"}, 1, id="it does not answer: no rail any more"),
        pytest.param({"kind": "NODE"}, 1, id="it is not near either"),
        pytest.param({"role": "storage"}, 1, id="it is for something else"),
    ],
)
def test_which_nic_puts_a_far_gpu_in_doubt(changes, faults: int) -> None:
    """One near the GPU that answers, and of which its use is unknown."""
    assert faults == len(fails(rule, beside(far(), **changes)))


def test_a_nic_near_another_gpu_is_no_doubt_here() -> None:
    """GPU 0 has two NICs behind its switch, one of unknown use; GPU 1 has none."""
    case = beside(far())
    paths = [msgspec.structs.replace(p, a=gpu_id(0)) if p.b == "0000:16:00.0" else p for p in case.topology.paths]

    assert [f"gpu:{GPU}"] == [fault.subject for fault in fails(rule, topology(case, paths=paths))]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"pci": None}, id="no function known"),
        pytest.param({"pci": "0000:ff:00.0"}, id="its function left the bus"),
    ],
)
def test_gpus_whose_place_is_not_known_are_groups_of_their_own(change) -> None:
    """Half of four GPUs are far: a fault where each could have a rail, as designed where there are fewer rails."""
    case = changed_gpus(moved(far(), 2), **change)
    (few,) = fails(rule, changed_nic(case, 1, role="unused"))

    assert 2 == len(fails(rule, case))
    assert ("node", "few-nics") == (few.subject, few.cause)


def test_gpus_of_the_host_bridge_are_groups_of_their_own() -> None:
    """They have no port above them to share."""
    case = moved(far(), 2)
    for n in range(4):
        case = function(case, gpu_id(n), parent=None)

    assert [f"gpu:{gpu_id(1)}", f"gpu:{gpu_id(2)}"] == [fault.subject for fault in fails(rule, case)]


def test_the_finding_is_about_the_gpu_and_its_place_on_the_bus() -> None:
    """A GPU is not always named by its address."""
    case = changed_gpu(far(), 1, id="GPU-1")
    paths = [msgspec.structs.replace(p, a="GPU-1") if p.a == GPU else p for p in case.topology.paths]
    (fault,) = fails(rule, topology(case, paths=paths))

    assert {"GPU-1", GPU, "rail of GPU-1"} == fault.places


def test_the_socket_that_counts_is_that_of_the_nearest_rail() -> None:
    """A second rail on the GPUs' socket, to which no way is known, changes nothing."""
    case = one_socket_off()
    near = msgspec.structs.replace(case.topology.nics[0], id=nic_id(1), pci=nic_id(1), label="mlx5_1", numa_node=0)

    assert ["other-socket"] == [f.cause for f in fails(rule, topology(case, nics=[near, *case.topology.nics]))]
