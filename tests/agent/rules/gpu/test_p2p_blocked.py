"""gpu-p2p-blocked: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.gpu.devices import gpu_p2p_blocked as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    kinds,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.rows import B200

PAIR = f"pair:{gpu_id(1)}+{gpu_id(2)}"


def joined(case, pairs, kind: str | None):
    """The same machine with pairs that are joined otherwise."""
    ends = [{gpu_id(a), gpu_id(b)} for a, b in pairs]
    paths = [
        msgspec.structs.replace(path, kind=kind) if {path.a, path.b} in ends else path for path in case.topology.paths
    ]
    return topology(case, paths=paths)


def blocked(pairs=((1, 2),), word: str | None = "CNS", kind: str | None = "PIX", gpus: int = 4, way: str = "read"):
    case = joined(server(gpus), pairs, kind)
    for a, b in pairs:
        words = {"read": "OK", "write": "OK", "nvlink": "OK"} | ({way: word} if word else {})
        words = words if word else {}
        case = changed_gpu(case, a, p2p={**(case.topology.gpus[a].p2p or {}), gpu_id(b): words})
        case = case if word else changed_gpu(case, b, p2p={**(case.topology.gpus[b].p2p or {}), gpu_id(a): {}})
    return case


@pytest.mark.parametrize("word", ["CNS", "GNS", "TNS", "NS", "DR"])
@pytest.mark.parametrize("kind", ["PIX", "PXB", "NV18"])
@pytest.mark.parametrize("way", ["read", "write"])
def test_a_joined_pair_that_is_blocked_is_an_error(word: str, kind: str, way: str) -> None:
    """One direction is enough."""
    (fault,) = fails(rule, blocked(word=word, kind=kind, way=way))

    assert (PAIR, "error", word) == (fault.subject, fault.severity, fault.cause)


def test_the_other_direction_counts_too() -> None:
    """GPU 2 of GPU 1."""
    assert [PAIR] == [fault.subject for fault in fails(rule, blocked([(2, 1)]))]


@pytest.mark.parametrize("kind", ["SYS", "NODE", "PHB", None])
def test_a_registry_key_is_one_wherever_they_are(kind: str | None) -> None:
    """The key, not the way."""
    assert ["DR"] == [fault.cause for fault in fails(rule, blocked(word="DR", kind=kind))]


def test_all_pairs_are_one_finding_and_so_are_those_of_one_gpu() -> None:
    """Subjects: node, GPU."""
    every = blocked(list(combinations(range(4), 2)))
    alone = blocked([(2, n) for n in (0, 1, 3)])

    assert ["node"] == [fault.subject for fault in fails(rule, every)]
    assert [f"gpu:{gpu_id(2)}"] == [fault.subject for fault in fails(rule, alone)]
    assert frozenset({gpu_id(2)}) == fails(rule, alone)[0].places


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090", "NVIDIA TITAN RTX"])
def test_consumer_cards_are_so_by_choice(name: str) -> None:
    """Info; one other card among them is none."""
    case = changed_gpus(blocked(), name=name)

    assert ["info"] == [fault.severity for fault in fails(rule, case)]
    assert ["error"] == [fault.severity for fault in fails(rule, changed_gpu(case, 1, name="NVIDIA L40S"))]


def test_a_key_stands_for_the_path_that_it_closes() -> None:
    """One finding."""
    case = blocked(word="DR", kind="NODE", way="nvlink")
    case = changed_gpu(case, 1, p2p={**(case.topology.gpus[1].p2p or {}), gpu_id(2): {"read": "DR", "nvlink": "DR"}})
    _, findings, _ = judge(case, every_rule())
    told = {finding.rule for finding in findings}

    assert "gpu-p2p-blocked" in told
    assert "nvlink-path-missing" not in told


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: joined(c, [(1, 2)], "SYS"), NotApplicable, id="over sockets"),
        pytest.param(lambda c: joined(c, [(1, 2)], "PHB"), NotApplicable, id="over a host bridge"),
        pytest.param(lambda c: joined(c, [(1, 2)], None), Unknown, id="nobody knows how"),
        pytest.param(virtual, NotApplicable, id="over PCIe in a guest"),
        pytest.param(lambda c: function(c, gpu_id(2), device=B200), NotApplicable, id="unlike GPUs"),
        pytest.param(lambda c: blocked(word="OK"), Pass, id="open"),
        pytest.param(lambda c: blocked(word="U"), Unknown, id="unknown"),
        pytest.param(lambda c: blocked(word=None), Unknown, id="not told"),
    ],
)
def test_a_guard_keeps_the_pair_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    assert [kind] == [type(answer) for answer in answers(rule, circumstance(blocked()), PAIR)]


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), id="MIG"),
        pytest.param(lambda c: changed_gpu(c, 2, virtualization="vgpu"), id="vGPU"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="error"), id="lost"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="unknown", p2p=None), id="driver does not list it"),
        pytest.param(lambda c: function(c, gpu_id(2), state="asleep"), id="asleep"),
        pytest.param(lambda c: function(c, gpu_id(2), vendor="0x1002"), id="another vendor"),
    ],
)
def test_a_guard_keeps_the_gpu_silent(circumstance) -> None:
    """No pair of it is looked at."""
    case = circumstance(blocked())

    assert [] == fails(rule, case)
    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"gpu:{gpu_id(2)}")]


def test_confidential_computing_closes_it() -> None:
    """As it should."""
    driver = msgspec.structs.replace(server().software.driver, confidential_computing=True)

    assert {NotApplicable} == kinds(rule, software(blocked(), driver=driver))


def test_nvlink_in_a_guest_and_off_modes_change_nothing() -> None:
    """The hypervisor gives the links."""
    case = changed_gpu(virtual(blocked(kind="NV18")), 2, mig=Mig(current=False), virtualization="passthrough")

    assert 1 == len(fails(rule, case))


def test_one_gpu_has_no_pair() -> None:
    """Not applicable."""
    assert {NotApplicable} == kinds(rule, server(1))


def test_a_guest_with_a_key_and_a_saved_matrix() -> None:
    """A key is the guest's own; GPUs of saved outputs have no state."""
    assert 1 == len(fails(rule, virtual(blocked(word="DR"))))
    assert 1 == len(fails(rule, changed_gpus(blocked(), driver_state="unknown")))


@pytest.mark.parametrize(
    ("pairs", "subject"),
    [([(1, 2)], PAIR), ([(1, 2), (2, 3)], f"gpu:{gpu_id(2)}"), ([(0, 1), (2, 3)], "node")],
)
def test_two_pairs_of_one_gpu_are_its_own_and_others_the_node_s(pairs, subject: str) -> None:
    """One finding in each case."""
    assert [subject] == [fault.subject for fault in fails(rule, blocked(pairs))]


def test_a_healthy_node_passes() -> None:
    """Nothing else is said of it."""
    assert {Pass} == kinds(rule, server())


def test_no_gpu_is_able_where_mig_divides_all() -> None:
    """Each is not applicable, and there is no pair."""
    assert {NotApplicable} == kinds(rule, changed_gpus(server(), mig=Mig(current=True)))


def test_an_open_pair_passes_however_it_is_joined() -> None:
    """P2P works: nobody has to know over what."""
    assert [Pass] == [type(answer) for answer in answers(rule, joined(server(), [(1, 2)], None), PAIR)]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({"read": "OK", "write": "OK"}, Pass),
        ({"read": "OK"}, Pass),
        ({"read": "OK", "write": "U"}, Unknown),
        ({"read": "U", "write": "OK"}, Unknown),
        ({"read": "OK", "write": "NEW"}, Unknown),
        ({"write": "OK"}, Unknown),
    ],
)
def test_read_must_be_ok_and_nothing_in_doubt(words: dict[str, str], kind: type) -> None:
    """A saved matrix has reads alone; a word that nobody knows is no OK."""
    case = changed_gpu(server(2), 0, p2p={gpu_id(1): words})
    case = changed_gpu(case, 1, p2p=None)

    assert {kind} == kinds(rule, case)
