"""The matrix, and the section about GPUDirect."""

from __future__ import annotations

from itertools import combinations

import msgspec

from agent.model.finding import Gpudirect
from agent.model.topology import Disagreement, Path, Topology
from agent.outputs.text.gpudirect import render_gpudirect
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.matrix import join_side_by_side, render_gpu_matrix, render_rail_matrix
from tests.agent.outputs.text.reports import make_path, report
from tests.agent.rules import rows

# The matrices: one sentence, one row for neighbours that are alike, blocks that fit.


GPUS = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(4)]
NICS = [rows.nic(f"0000:{n + 16:02x}:00.0", n) for n in range(4)]


def near(a: int, b: int) -> str:
    """Neighbours of one half of the machine are near."""
    return "PXB" if a // 2 == b // 2 else "SYS"


def machine(**more: list[Path]) -> Topology:
    """Four GPUs and four rails in two halves."""
    paths = [make_path(g.id, o.id, near(g.index or 0, o.index or 0)) for g in GPUS for o in GPUS if g.id < o.id]
    paths += [make_path(g.id, n.id, near(k, j)) for k, g in enumerate(GPUS) for j, n in enumerate(NICS)]
    return Topology(gpus=GPUS, nics=NICS, paths=more.get("paths", paths))


def test_rows_and_columns_that_are_alike_are_one() -> None:
    """Four by four becomes two by two."""
    assert (
        "          mlx5_0,1  mlx5_2,3\n  GPU0,1  PXB*      SYS\n  GPU2,3  SYS       PXB*\n  * nearest rail\n"
    ) == to_plain_text(render_rail_matrix(report(machine()), 80))


def test_gpus_stand_each_for_itself() -> None:
    """People look for a pair there."""
    assert (
        "        GPU0  GPU1  GPU2  GPU3\n"
        "  GPU0  X     PXB   SYS   SYS\n"
        "  GPU1  PXB   X     SYS   SYS\n"
        "  GPU2  SYS   SYS   X     PXB\n"
        "  GPU3  SYS   SYS   PXB   X\n"
    ) == to_plain_text(render_gpu_matrix(report(machine()), 80)).replace("; over PCIe it would be PIX", "")


def test_what_does_not_fit_goes_into_a_second_block() -> None:
    """Each block has the names of its rows."""
    text = to_plain_text(render_gpu_matrix(report(machine()), 21))

    assert 2 == text.count("GPU0  X") + text.count("GPU0  SYS")
    assert all(len(line) <= 21 for line in text.splitlines())


def test_a_disagreement_is_told_with_its_pairs() -> None:
    """What the driver says is not hidden."""
    output = make_path(GPUS[0].id, GPUS[1].id, "PXB", disagrees=Disagreement(source="nvml", kind="SYS"))

    assert "nvml reports SYS, the PCI tree has PIX: GPU0-GPU1" in to_plain_text(
        render_gpu_matrix(report(machine(paths=[output])), 80)
    )


def test_side_by_side_only_where_both_are_tables_and_fit() -> None:
    """A sentence beside a table would leave a hole."""
    output = report(machine())
    tables = render_gpu_matrix(output, 200), render_rail_matrix(output, 200)
    both = join_side_by_side(*tables, 80)

    assert both is not None
    assert to_plain_text(both).splitlines()[1] == "  GPU0  X     PXB   SYS   SYS       GPU0,1  PXB*      SYS"
    assert join_side_by_side(*tables, 40) is None
    assert join_side_by_side(tables[0][:1], tables[1], 200) is None


def test_a_hundred_gpus_are_counted() -> None:
    """Nobody reads a matrix of a hundred columns."""
    gpus = [rows.gpu(f"{n:04x}:00:00.0", n) for n in range(100)]
    paths = [make_path(g.id, o.id, near(g.index or 0, o.index or 0)) for g in gpus for o in gpus if g.id < o.id]

    assert "  pairs of each kind: PXB 50, SYS 4900 (each pair: --format json)\n" == to_plain_text(
        render_gpu_matrix(report(Topology(gpus=gpus, paths=paths)), 80)
    )


# The section about GPUDirect: groups of pairs that are alike, the worst first.


GPUS_GPUDIRECT = [rows.gpu(f"0000:{n}4:00.0", n) for n in range(1, 5)]
NICS_GPUDIRECT = [rows.nic(f"0000:{n}5:00.0", n) for n in range(1, 5)]


def pair(n: int, verdict: str = "ready", via: str = "dma-buf", *causes: str) -> Gpudirect:
    return Gpudirect(gpu=GPUS_GPUDIRECT[n].id, nic=NICS_GPUDIRECT[n].id, verdict=verdict, via=via, causes=list(causes))


def render(*pairs: Gpudirect, width: int = 80) -> str:
    changed = msgspec.structs.replace(report(Topology(gpus=GPUS_GPUDIRECT, nics=NICS_GPUDIRECT)), gpudirect=list(pairs))
    return to_plain_text(render_gpudirect(changed, width))


def test_all_ready_is_one_sentence() -> None:
    """With the way."""
    assert "  ready (DMA-BUF): GPU1-4 – mlx5_1-4\n" == render(*(pair(n) for n in range(4)))
    assert "" == render()


def test_the_worst_come_first_with_their_causes() -> None:
    """Devices as people call them, and reasons as they are."""
    port = f"ib-port-down port:{NICS_GPUDIRECT[0].id}/1"
    acs = f"gdr-acs-on-path pair:{GPUS_GPUDIRECT[1].id}+{NICS_GPUDIRECT[1].id}"
    text = render(
        pair(3),
        pair(2, "unknown", "unknown", "gdr-no-path: modules could not be listed"),
        pair(1, "degraded", "peermem", acs, "gdr-iommu-translated node"),
        pair(0, "blocked", "none", port, "distance NODE: NCCL uses GPUDirect up to PXB"),
    )

    assert (
        "  blocked: GPU1 – mlx5_1\n"
        "    - ib-port-down of mlx5_1\n"
        "    - distance NODE: NCCL uses GPUDirect up to PXB\n"
        "  degraded (nvidia_peermem): GPU2 – mlx5_2\n"
        "    - gdr-acs-on-path\n"
        "    - gdr-iommu-translated\n"
        "  unknown: GPU3 – mlx5_3\n"
        "    - gdr-no-path: modules could not be listed\n"
        "  ready (DMA-BUF): GPU4 – mlx5_4\n"
    ) == text


def torus(side: int, broken: tuple[int, int] | None = None) -> Topology:
    """Devices of a square torus; `broken`: two of which the link is missing."""
    gpus = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(side * side)]
    paths = []
    for a, b in combinations(range(side * side), 2):
        apart = sorted(abs(x - y) for x, y in zip(divmod(a, side), divmod(b, side), strict=True))
        joined = apart in ([0, 1], [0, side - 1]) and (a, b) != broken
        paths.append(make_path(gpus[a].id, gpus[b].id, "NEURON" if joined else "PHB"))
    return Topology(gpus=gpus, paths=paths)


def test_a_whole_torus_is_drawn_as_one() -> None:
    """Row by row, and a sentence for all pairs without a link."""
    text = to_plain_text(render_gpu_matrix(report(torus(4)), 80))

    assert "torus of 4 x 4" in text
    assert "    GPU4   GPU5   GPU6   GPU7\n" in text
    assert text.endswith("all other pairs over PCIe: PHB (each pair: --format json)\n")
    assert "torus of 3 x 3" in to_plain_text(render_gpu_matrix(report(torus(3)), 80))


def test_what_is_no_whole_torus_is_a_matrix() -> None:
    """A link that is missing or one too many, a pair that is not known, a device without number, other counts."""
    whole = torus(4)
    replace = msgspec.structs.replace
    others = [
        torus(4, (5, 6)),
        replace(whole, paths=[replace(path, kind="NEURON") if k == 4 else path for k, path in enumerate(whole.paths)]),
        replace(whole, paths=whole.paths[:-1]),
        replace(whole, gpus=[replace(whole.gpus[0], index=None), *whole.gpus[1:]]),
        replace(whole, gpus=[replace(whole.gpus[0], index=16), *whole.gpus[1:]]),
        replace(whole, gpus=[*whole.gpus, rows.gpu("0000:40:00.0", 16)]),
        torus(2),
    ]

    assert [""] * 7 == ["torus" * ("torus" in to_plain_text(render_gpu_matrix(report(each), 200))) for each in others]
