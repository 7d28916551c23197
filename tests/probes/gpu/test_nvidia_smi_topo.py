"""`topo -m` and `topo -p2p`: every way in which people hand on the table, and that no lost cell shifts a row unseen."""

from __future__ import annotations

import pytest

from probes.gpu import nvidia_smi_topo
from probes.gpu.facts import Gpu, PairCell
from probes.gpu.nvidia_smi_topo import Matrix
from probes.sources.identify import identify_command
from probes.text import ParseError
from tests.probes.gpu.nvidia_smi_texts import P2P, TOPO

KINDS = {
    "GPU0-GPU1": "PHB",
    "GPU0-GPU2": "NV4",
    "GPU0-GPU3": "SYS",
    "GPU0-NIC0": "PIX",
    "GPU0-NIC1": "SYS",
    "GPU1-GPU2": "SYS",
    "GPU1-GPU3": "NV12",
    "GPU1-NIC0": "NODE",
    "GPU1-NIC1": "SYS",
    "GPU2-GPU3": "PXB",
    "GPU2-NIC0": "SYS",
    "GPU2-NIC1": "NODE",
    "GPU3-NIC0": "SYS",
    "GPU3-NIC1": "PIX",
    "NIC0-NIC1": "SYS",
}


def kinds(matrix: Matrix) -> dict[str, str]:
    return {f"{pair.a}-{pair.b}": pair.kind for pair in matrix.pairs}


def near(index: int, cpus: str, numa: int) -> Gpu:
    return Gpu(index=index, cpu_affinity=cpus, numa_node=numa)


def spaced(text: str) -> str:
    """As a terminal shows it and a person copies it: tabs are blanks, blanks at the ends are gone."""
    return "".join(f"{line.expandtabs().rstrip()}\n" for line in text.splitlines())


def wrapped(text: str, width: int) -> str:
    """As a narrow terminal gives it: every line goes on in the next one, in the middle of a word if need be."""
    lines = []
    for line in spaced(text).splitlines():
        lines += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    return "\n".join(lines) + "\n"


COPIES = {
    "as printed": TOPO,
    "no underline": TOPO.replace("\x1b[4m", "").replace("\x1b[0m", ""),
    "underline without its escape": TOPO.replace("\x1b", ""),
    "Windows line ends": TOPO.replace("\n", "\r\n"),
    "blanks for tabs": spaced(TOPO),
    "indented": "".join(f"    {line}\n" for line in TOPO.splitlines()),
    "tabs doubled": TOPO.replace(" X ", "X").replace("\t", "\t\t"),
    "squeezed": "\n".join(" ".join(line.split()) for line in TOPO.splitlines()) + "\n",
    "ragged ends": "".join(f"{line.rstrip()}\n" for line in TOPO.splitlines()),
    "behind a prompt": "$ nvidia-smi topo -m\nGPU0 is busy\n\n" + TOPO,
    "wrapped at 60": wrapped(TOPO.partition("\nLegend")[0], 60)
    + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n",
    "wrapped at 43": wrapped(TOPO.partition("\nLegend")[0], 43)
    + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n",
}


@pytest.mark.parametrize("copy", ["as printed", "no underline", "underline without its escape", "blanks for tabs"])
def test_a_copy_of_any_name_is_known(copy: str) -> None:
    """By what it holds."""
    assert (("nvidia-smi", "topo", "-m"),) == identify_command(COPIES[copy])


@pytest.mark.parametrize("copy", COPIES)
def test_every_copy_of_a_table_says_the_same(copy: str) -> None:
    """Pairs once each, affinity and NUMA of every GPU, device names of the NICs."""
    matrix = nvidia_smi_topo.parse_matrix(COPIES[copy])

    assert kinds(matrix) == KINDS
    assert {"NIC0": "mlx5_0", "NIC1": "mlx5_bond_0"} == matrix.nic_names
    assert matrix.gpus == (
        near(0, "0-15,32-47", 0),
        near(1, "0-15,32-47", 0),
        near(2, "16-31,48-63", 1),
        near(3, "16-31,48-63", 1),
    )
    assert matrix.missing is None


def test_the_oldest_form_names_devices_and_says_soc() -> None:
    """No NUMA column, NICs by their own names, SOC for SYS, POWER's way to write CPU lists."""
    matrix = nvidia_smi_topo.parse_matrix(
        "        GPU0    GPU1    mlx5_0  mlx5_bond_1  CPU Affinity\n"
        "GPU0     X      PIX     SOC     SOC     0-0,8-8,16-23\n"
        "GPU1    PIX      X      SOC     SOC     0-0,8-8,16-23\n"
        "mlx5_0  SOC     SOC      X      PIX\n"
        "mlx5_bond_1  SOC     SOC     PIX      X\n"
    )

    assert {"GPU0-GPU1": "PIX", "GPU0-mlx5_0": "SYS"} == {k: kinds(matrix)[k] for k in ("GPU0-GPU1", "GPU0-mlx5_0")}
    assert (Gpu(index=0, cpu_affinity="0,8,16-23"), Gpu(index=1, cpu_affinity="0,8,16-23")) == matrix.gpus
    assert {} == matrix.nic_names
    assert matrix.missing is None


def test_coherent_platforms_have_lists_and_nodes_of_their_own() -> None:
    """GB200: several nodes near the GPU are no single node; its memory is one."""
    matrix = nvidia_smi_topo.parse_matrix(
        "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t0,3-9,11-17\t\t2\n\nLegend:\n"
    )

    assert (Gpu(index=0, cpu_affinity="0-71", memory_numa_node=2),) == matrix.gpus


def test_an_empty_affinity_stays_empty() -> None:
    """A cpuset hides the CPUs; the NUMA node must not slip into their place."""
    matrix = nvidia_smi_topo.parse_matrix(
        "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t1\t\tN/A\n\nLegend:\n"
    )

    assert (Gpu(index=0, numa_node=1),) == matrix.gpus


def test_an_empty_affinity_among_blanks_is_not_guessed() -> None:
    """Which of three headings two words belong to is not known."""
    matrix = nvidia_smi_topo.parse_matrix(
        "  GPU0 CPU Affinity  NUMA Affinity  GPU NUMA ID\nGPU0   X     1   N/A\n\nLegend:\n"
    )

    assert (Gpu(index=0),) == matrix.gpus
    assert "no clear CPU Affinity and NUMA Affinity and GPU NUMA ID for GPU0" == matrix.missing


def test_sixteen_gpus() -> None:
    """A DGX-2: GPU10 is not GPU1 followed by 0."""
    names = [f"GPU{index}" for index in range(16)]
    rows = "".join(f"{a}\t" + "\t".join(" X " if a == b else "NV6" for b in names) + "\t0-23\n" for a in names)

    matrix = nvidia_smi_topo.parse_matrix("\t" + "\t".join(names) + "\tCPU Affinity\n" + rows)

    assert (16, 120, {"NV6"}, None) == (
        len(matrix.gpus),
        len(matrix.pairs),
        {pair.kind for pair in matrix.pairs},
        matrix.missing,
    )


@pytest.mark.parametrize(
    ("damage", "unreadable"),
    [
        (("\tPIX\tSYS\t0-15,32-47\t0\t\tN/A\nGPU1", "\tPIX\tSY0-15,32-47\t0\t\tN/A\nGPU1"), "GPU0"),  # fused
        (("GPU0\t X \tPHB\tNV4", "GPU0\t X \tPHB"), "GPU0"),  # one cell lost: the affinity would slip in
        (("GPU1\tPHB\t X \tSYS", "GPU1\t X \tPHB\tSYS"), "GPU1"),  # shifted: X is not under its own name
        (("NIC0\tPIX\tNODE", "NIC0\tPIX\tNODE\tNODE"), "NIC0"),  # one too many
        (("GPU3\tSYS\tNV12\tPXB", "GPU3\tSYS\tNV122\tPXB"), "GPU3"),  # no such word
    ],
)
def test_a_damaged_row_is_named_and_says_nothing(damage: tuple[str, str], unreadable: str) -> None:
    """What the other rows say of its pairs stays."""
    text = TOPO.replace(*damage)
    assert text != TOPO

    matrix = nvidia_smi_topo.parse_matrix(text)

    assert f"rows without one word for each of 6 columns: {unreadable}" == matrix.missing
    assert kinds(matrix) == KINDS


def test_a_table_without_a_readable_row_still_counts_its_gpus() -> None:
    """Unreadable is not absent."""
    matrix = nvidia_smi_topo.parse_matrix("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV0-15\nGPU1\tNV4X0\n\nLegend:\n")

    assert (2, ()) == (len(matrix.gpus), matrix.pairs)
    assert "rows without one word for each of 2 columns: GPU0, GPU1" == matrix.missing


def test_rows_that_contradict_each_other_give_no_pair() -> None:
    """Which of the two is right is not for the parser to say."""
    matrix = nvidia_smi_topo.parse_matrix(TOPO.replace("GPU1\tPHB\t X \tSYS\tNV12", "GPU1\tPHB\t X \tSYS\tNV8"))

    assert "GPU1-GPU3 is NV12 one way and NV8 the other" == matrix.missing
    assert {**KINDS, "GPU1-GPU3": None} == {**kinds(matrix), "GPU1-GPU3": kinds(matrix).get("GPU1-GPU3")}


@pytest.mark.parametrize("cell", ["N/A", "ERR"])
def test_a_cell_that_says_nothing_is_no_pair(cell: str) -> None:
    """The other direction may know."""
    one_way = nvidia_smi_topo.parse_matrix(TOPO.replace("GPU0\t X \tPHB", f"GPU0\t X \t{cell}"))
    both_ways = nvidia_smi_topo.parse_matrix(TOPO.replace("\tPHB\t", f"\t{cell}\t"))

    assert kinds(one_way) == KINDS
    assert "GPU0-GPU1" not in kinds(both_ways)
    assert both_ways.missing is None


def test_an_authors_cut_keeps_what_is_whole() -> None:
    """The last row may end within a word: "0-1" may be "0-15"."""
    matrix = nvidia_smi_topo.parse_matrix(
        TOPO[: TOPO.index("GPU2\tNV4") + len("GPU2\tNV4\tSYS\t X \tPXB\tSYS\tNODE\t16-3")]
    )

    assert "no row for GPU3; no clear CPU Affinity and NUMA Affinity and GPU NUMA ID for GPU2" == matrix.missing
    assert Gpu(index=2) == matrix.gpus[2]
    assert kinds(matrix) == {
        name: kind for name, kind in KINDS.items() if name not in ("GPU3-NIC0", "GPU3-NIC1", "NIC0-NIC1")
    }


@pytest.mark.parametrize(
    ("heading", "end", "kind", "cpus"),
    [
        ("", "NV1\n", None, None),  # may be NV18
        ("", "SYS\n", "SYS", None),
        ("\tCPU Affinity", "SYS\t0-1\n", "SYS", None),  # may be 0-15
        ("", "SYS\nGPU2\tPIX\tSYS\tX\n", "SYS", None),
        ("\tCPU Affinity", "SYS\t16,18-18\nGPU2\tPIX\tSYS\tX\t16,18-19\n", "SYS", "16,18"),
    ],
)
def test_the_last_word_counts_where_it_is_whole(heading: str, end: str, kind: str | None, cpus: str | None) -> None:
    """An author cut rows, the last one within a word; a table that has all its rows was not cut."""
    first = "GPU0\tX\tNV4\tPIX" + ("\t0-15" if heading else "")
    matrix = nvidia_smi_topo.parse_matrix(f"\tGPU0\tGPU1\tGPU2{heading}\n{first}\nGPU1\tNV4\tX\t{end}")

    assert (kind, cpus) == (kinds(matrix).get("GPU1-GPU2"), matrix.gpus[1].cpu_affinity)
    assert ("NV4", "0-15" if heading else None) == (kinds(matrix)["GPU0-GPU1"], matrix.gpus[0].cpu_affinity)
    assert (matrix.missing is None) == ("GPU2" in end)
    assert ("16,18-19" if cpus else None) == matrix.gpus[2].cpu_affinity


@pytest.mark.parametrize("end", range(0, len(TOPO), 3))
def test_a_cut_text_says_nothing_that_the_whole_does_not(end: int) -> None:
    """Wherever it is cut: pairs, affinity and names are those of the whole, or not there."""
    whole = nvidia_smi_topo.parse_matrix(TOPO)
    try:
        start = nvidia_smi_topo.parse_matrix(TOPO[:end])
    except ParseError:
        return

    assert set(start.pairs) <= set(whole.pairs)
    assert start.nic_names.items() <= whole.nic_names.items()
    for gpu, known in zip(start.gpus, whole.gpus, strict=False):
        result = (gpu.cpu_affinity, gpu.numa_node, gpu.memory_numa_node)
        assert all(a in (None, b) for a, b in zip(result, (known.cpu_affinity, known.numa_node, None), strict=True))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "ERROR: Option -m is missing its value. Please run 'nvidia-smi -h' for help.\n",
            "ERROR: Option -m is missing",
        ),
        ("", "nothing"),
        ("GPU0 GPU1\nand no row\n", "no row"),
        ("No devices were found\n", "No devices were found"),
        ("\tGPU0\tGPU0\nGPU0\t X \tX\n", "no heading"),
        ("x" * (1 << 21), "longer than"),
    ],
)
def test_what_is_no_table_is_refused_with_its_own_words(text: str, reason: str) -> None:
    """An error text is never zero GPUs."""
    with pytest.raises(ParseError, match=reason):
        nvidia_smi_topo.parse_matrix(text)


def test_p2p_words_both_ways() -> None:
    """Every ordered pair, whatever its word."""
    words, missing = nvidia_smi_topo.parse_p2p(P2P)

    assert missing is None
    assert 12 == len(words)
    assert {"OK", "CNS", "GNS", "NS", "DR"} == set(words.values())
    assert ("GNS", "GNS", "OK") == (words[1, 2], words[2, 1], words[0, 2])


def test_p2p_copied_from_a_terminal() -> None:
    """Blanks for tabs, no legend."""
    assert ({(0, 1): "CNS", (1, 0): "CNS"}, None) == nvidia_smi_topo.parse_p2p(
        "        GPU0    GPU1\n GPU0   X       CNS\n GPU1   CNS     X\n"
    )


def test_one_pair_once_a_before_b() -> None:
    """Order of the heading, not of the alphabet."""
    assert PairCell("GPU0", "NIC0", "PIX") in nvidia_smi_topo.parse_matrix(TOPO).pairs


def test_names_of_a_heading_that_ran_together_are_read() -> None:
    """Two labels have no blank between them; the rows still have a cell for each."""
    columns = ("GPU0", "NIC11", "NIC12")
    rows = "".join(
        f"{row}\t" + "\t".join("X" if row == column else "PIX" for column in columns) + "\n" for row in columns
    )
    matrix = nvidia_smi_topo.parse_matrix(f"\tGPU0\tNIC11NIC12\n{rows}")

    assert {("GPU0", "NIC11"), ("GPU0", "NIC12"), ("NIC11", "NIC12")} == {(pair.a, pair.b) for pair in matrix.pairs}
    assert matrix.missing is None


def cut_heading(*rows: str) -> nvidia_smi_topo.Matrix:
    return nvidia_smi_topo.parse_matrix("\n".join(rows) + "\n")


def test_a_matrix_below_a_heading_that_is_cut_off() -> None:
    """Columns behind those of the GPUs have no name; what stands in them is left out."""
    matrix = cut_heading("GPU0  X  NV4  NV4 PIX SYS 0-31 0 N/A", "GPU1  NV4  X  NV4 SYS PIX 32-63 1 N/A")

    assert {"GPU0-GPU1": "NV4", "GPU0-GPU2": "NV4", "GPU1-GPU2": "NV4"} == kinds(matrix)
    assert "no row for GPU2" in (matrix.missing or "")


@pytest.mark.parametrize(
    "rows",
    [
        ("GPU0  X  SYS PIX",),
        ("GPU1  X  NV4 PIX", "GPU2  NV4 X PIX"),  # which columns these are is not known
    ],
)
def test_a_matrix_whose_columns_cannot_be_told(rows: tuple[str, ...]) -> None:
    with pytest.raises(ParseError, match="no heading"):
        cut_heading(*rows)
