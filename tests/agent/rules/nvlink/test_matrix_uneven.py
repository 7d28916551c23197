"""Where nothing but the matrix of nvidia-smi is there. nvlink-matrix-uneven: switches, four wired to each other, a cube
mesh; nvlink-path-missing: a GPU outside it; and every guard alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.model.topology import Path
from agent.rules.context import RuleContext
from agent.rules.nvlink.paths import nvlink_matrix_uneven as rule
from agent.rules.nvlink.paths import nvlink_path_missing as path_missing
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    changed_gpu,
    changed_gpus,
    fails,
    gpu_id,
    kinds,
    nic_id,
    node,
    probe,
    server,
    topology,
    virtual,
)
from tests.agent.rules.fabric import hgx


def matrix(cells: dict[tuple[int, int], int | None], gpus: int = 8, other: str | None = "SYS"):
    """A machine of which only the matrix is known: "NV<n>", or `other`."""
    pairs = combinations(range(gpus), 2)
    kind = {pair: f"NV{cells[pair]}" if cells.get(pair) else other for pair in pairs}
    paths = [Path(a=gpu_id(a), b=gpu_id(b), kind=item, source="nvidia-smi") for (a, b), item in kind.items()]
    return topology(changed_gpus(server(gpus), links=[]), paths=paths)


def mesh(links: int, gpus: int = 8, **changed: int):
    cells = dict.fromkeys(combinations(range(gpus), 2), links)
    return {**cells, **{tuple(map(int, pair[1:].split("_"))): n for pair, n in changed.items()}}


def sums(cells):
    return [sum(n for pair, n in cells.items() if gpu in pair) for gpu in range(8)]


@pytest.mark.parametrize(
    ("cells", "gpus", "subject"),
    [
        (mesh(18, p1_2=16), 8, f"pair:{gpu_id(1)}+{gpu_id(2)}"),
        ({pair: 16 if 3 in pair else 18 for pair in mesh(18)}, 8, f"gpu:{gpu_id(3)}"),
        (mesh(18, p1_2=16, p3_4=16), 8, "node"),
        (mesh(6, 4, p0_1=5), 4, f"pair:{gpu_id(0)}+{gpu_id(1)}"),
        (mesh(18, 3, p0_1=17), 3, f"pair:{gpu_id(0)}+{gpu_id(1)}"),
    ],
)
def test_thin_pairs(cells, gpus: int, subject: str) -> None:
    """One pair, one GPU, or several."""
    (fault,) = fails(rule, matrix(cells, gpus))

    assert subject == fault.subject


def test_most_decide_what_is_due() -> None:
    """One pair with more is no fault of the others."""
    assert [] == fails(rule, matrix(mesh(16, p1_2=18)))


def cube(**changed: int):
    """A DGX-1: 6 links in every row."""
    cells = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 1}
    cells |= {(a + 4, b + 4): n for (a, b), n in cells.items()} | {(n, n + 4): 2 for n in range(4)}
    return {**cells, **{tuple(map(int, pair[1:].split("_"))): n for pair, n in changed.items()}}


def test_a_cube_mesh_has_equal_sums() -> None:
    """NV1, NV2 and none; a pair that lost a link shows in two rows."""
    assert {6} == set(sums(cube()))
    assert {Pass} == kinds(rule, matrix(cube()))
    assert [f"pair:{gpu_id(0)}+{gpu_id(4)}"] == [fault.subject for fault in fails(rule, matrix(cube(p0_4=1)))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="a guest"),
        pytest.param(lambda c: node(c, container="docker"), NotApplicable, id="container"),
        pytest.param(lambda c: changed_gpu(c, 7, driver_state="error"), NotApplicable, id="one is not offered"),
    ],
)
def test_a_guard_keeps_the_cube_silent(circumstance, kind) -> None:
    """Not all of the board is seen."""
    context = circumstance(matrix(cube(p0_4=1)))

    assert [] == fails(rule, context)
    assert kind in kinds(rule, context)


def test_gpus_that_nothing_names() -> None:
    """All of them NV#: judged; some of them not: bridges, perhaps."""
    nameless = [
        topology(changed_gpus(c, pci=None, name=None), pci=[])
        for c in (matrix(mesh(18, p1_2=16)), matrix({(0, 1): 12}))
    ]

    assert 1 == len(fails(rule, nameless[0]))
    assert {Unknown} == kinds(rule, nameless[1])


@pytest.mark.parametrize(
    ("links", "thin", "kind"), [(9, 8, Fail), (8, 7, Fail), (7, 6, NotApplicable), (3, 2, NotApplicable)]
)
def test_eight_links_of_a_pair_are_switches_also_where_another_has_none(links: int, thin: int, kind: type) -> None:
    """Fewer are a mesh; one with gaps is its builder's own."""
    assert {kind} == kinds(rule, matrix(mesh(links, p1_2=thin, p3_4=0)))


@pytest.mark.parametrize(("gpus", "links"), [(4, 3), (8, 4)])
def test_wired_to_each_other_with_gaps_is_not_judged(gpus: int, links: int) -> None:
    """More than 2 links a pair, and one pair without any."""
    assert {NotApplicable} == kinds(rule, matrix(mesh(links, gpus, p0_1=0, p0_2=links - 1), gpus))


def test_a_cube_with_a_ninth_gpu_that_is_not_offered() -> None:
    """Its links to the others are not in the matrix: the rows may be uneven."""
    eight, ninth = matrix(cube(p0_4=1)), server(9).topology
    context = topology(eight, gpus=[*eight.topology.gpus, ninth.gpus[8]], pci=ninth.pci)

    assert [] == fails(rule, changed_gpu(context, 8, driver_state="not_open"))
    assert 1 == len(fails(rule, eight))


@pytest.mark.parametrize(
    ("cells", "subject", "named"),
    [
        (cube(p0_1=0), f"pair:{gpu_id(0)}+{gpu_id(1)}", "GPU0 - GPU1 no NVLink"),
        (cube(p0_3=1), f"pair:{gpu_id(0)}+{gpu_id(3)}", "GPU0 - GPU3 NV1"),
        (cube(p0_3=0), f"pair:{gpu_id(0)}+{gpu_id(3)}", "GPU0 - GPU3 no NVLink"),
        (cube(p0_1=0, p0_2=0), f"gpu:{gpu_id(0)}", "GPU0 - GPU1 no NVLink, GPU0 - GPU2 no NVLink"),
        (cube(p0_3=1, p2_3=0), f"gpu:{gpu_id(3)}", "GPU0 - GPU3 NV1, GPU2 - GPU3 no NVLink"),
        (cube(p0_4=1, p1_5=1), "node", "GPU0,1,4,5"),
        (cube(p0_3=1, p0_4=1, p3_4=1), f"gpu:{gpu_id(0)}", "GPU0"),
    ],
    ids=[
        "its only link",
        "one of two",
        "both",
        "two of a GPU",
        "two of another",
        "two pairs",
        "a row that nothing fits",
    ],
)
def test_rows_of_a_cube_that_are_short(cells, subject: str, named: str) -> None:
    """What lost links is named, and no pair that has all of its own."""
    (fault,) = fails(rule, matrix(cells))

    assert subject == fault.subject
    assert fault.summary.endswith(f"(6 links in each row): {named}")


def outside_matrix(outside: Sequence[int], kind: str | None = "NV18", gpus: int = 8) -> RuleContext:
    """Eight GPUs, of which nothing is known but how they reach each other."""
    context = changed_gpus(
        hgx(gpus), links=[], links_known=None, links_reason="x", p2p=None, mig=None, pci=None, name=None
    )
    paths = [
        Path(
            a=min(gpu_id(a), gpu_id(b)),
            b=max(gpu_id(a), gpu_id(b)),
            kind="SYS" if {a, b} & set(outside) else kind,
            source="nvidia-smi",
        )
        for a, b in combinations(range(gpus), 2)
    ]
    return probe(topology(context, paths=paths, pci=[], nvswitches=[]), "pci", "absent", "no list")


def change(context: RuleContext, kinds: Mapping[tuple[int, int], str | None]) -> RuleContext:
    """Another cell between some of them; None: no such path."""
    ends = {frozenset((gpu_id(a), gpu_id(b))): kind for (a, b), kind in kinds.items()}
    paths = [
        msgspec.structs.replace(path, kind=ends.get(frozenset((path.a, path.b)), path.kind))
        for path in context.topology.paths
        if ends.get(frozenset((path.a, path.b)), "") is not None
    ]
    return topology(context, paths=paths)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (outside_matrix([7]), [7]),
        (outside_matrix([2, 7]), [2, 7]),
        (outside_matrix([2, 3, 7]), []),
        (outside_matrix([3], gpus=4), [3]),
        (outside_matrix([2], gpus=3), []),
        (outside_matrix([]), []),
        (outside_matrix([], "SYS"), []),
        (outside_matrix([7], "NV8"), [7]),
        (outside_matrix([7], "NV7"), []),
        (change(outside_matrix([7]), {(0, 1): "NV17"}), []),
        (change(outside_matrix([7]), {(0, 1): "SYS"}), []),
        (change(outside_matrix([7]), {(0, 7): None}), []),
        (change(outside_matrix([2]), {(6, 7): None}), [2]),  # the last rows were not pasted
        (change(outside_matrix([2]), dict.fromkeys(combinations((1, 4, 5, 6, 7), 2))), []),
        (probe(outside_matrix([7]), "pci", "ok"), []),
        (changed_gpu(outside_matrix([7]), 7, mig=Mig(current=True)), []),
        (changed_gpu(outside_matrix([7]), 7, mig=Mig(current=False)), [7]),
        (changed_gpu(outside_matrix([7]), 7, name="NVIDIA H200"), []),
    ],
)
def test_a_gpu_outside_the_matrix(context: RuleContext, expected: Sequence[int]) -> None:
    found = fails(path_missing, context)
    assert [f"gpu:{gpu_id(n)}" for n in expected] == [fault.subject for fault in found]
    assert all((fault.confidence, fault.situation) == ("low", "matrix") for fault in found)


def test_what_it_states() -> None:
    """The cells of its row, and what the others have."""
    context = change(outside_matrix([7]), {(0, 7): "NODE"})
    beside = Path(a=gpu_id(7), b=nic_id(0), kind="PIX", source="nvidia-smi")
    (fault,) = fails(path_missing, topology(context, paths=[*context.topology.paths, beside]))
    assert "the others are joined by NV18" in str(fault.summary)
    assert [("GPU7 - GPU0", "NODE"), *((f"GPU7 - GPU{n}", "SYS") for n in range(1, 7))] == [
        (row.what, row.value) for row in fault.evidence
    ]
