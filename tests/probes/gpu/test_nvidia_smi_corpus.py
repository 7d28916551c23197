"""Real outputs of nvidia-smi: what the corpus' index states of each, and what the sample itself shows, is what we read.

The facts stand in two tables beside this file. A fact of a matrix is "GPU[0-3]-NIC* SYS" (every pair of that pattern
is of that kind, and there is one), "GPU0 cpu 0-71", "GPU0 numa 3", "GPU0 own 2" (its memory's node), "NIC0 is
mlx5_0", or "missing" with the beginning of what is missing. Where index and sample disagree, the sample is right: of
8gpu-h800-hdr-2nic-cut the index says NV8 and the sample NV18; of 8gpu-a100-vm-fused-cell the index states kinds, and
every row of the sample lost a cell, so that none is believed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from probes.gpu import nvidia_smi, nvidia_smi_query, nvidia_smi_topo
from probes.gpu import nvidia_smi_nvlink as nvlink_text
from probes.gpu.facts import Gpu, GpuFacts, normal_address
from probes.gpu.nvidia_smi_topo import Matrix
from probes.text import ParseError
from tests.fuzz.mutations import LONGEST_BYTES
from tests.probes.gpu import nvidia_smi_texts as texts

HERE = Path(__file__).parent


def table(name: str) -> dict[str, list[str]]:
    """The lines of a TSV file beside this one, by their first column."""
    lines = (HERE / name).read_text().splitlines()[1:]
    return {path: columns for path, *columns in (line.split("\t") for line in lines)}


MATRICES = table("nvidia_smi_matrices.tsv")
QUERIES = table("nvidia_smi_queries.tsv")
BLOCKS = "blocks/nvidia-smi-topo"
P2P = {
    "text/nvidia-smi-topo-p2p/r-2gpu-l4-cns.txt": (2, "CNS"),
    "text/nvidia-smi-topo-p2p/rw-2gpu-rtx3090-ok-patched.txt": (2, "OK"),
    "text/nvidia-smi-topo-p2p/rw-2gpu-rtx5090-gns-spaces.txt": (2, "GNS"),
    f"{BLOCKS}/meta-pytorch+torchcomms__ocs_userguide_source_troubleshooting_gpu_troubleshooting.rst__31.txt": (
        8,
        "OK",
    ),
    f"{BLOCKS}/stas00+ml-engineering__network_debug_README.md__209.txt": (2, "CNS"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_says_what_its_index_states(corpus: Path, name: str) -> None:
    """Counts, kinds, affinity, and what an author cut."""
    gpus, nics, stated = MATRICES[name]
    facts = stated.split(" | ")

    matrix = nvidia_smi_topo.parse_matrix(text_of(corpus / name))

    labels = {pair.a for pair in matrix.pairs} | {pair.b for pair in matrix.pairs}
    assert int(gpus) == len(matrix.gpus)
    assert int(nics) == len([label for label in labels if not label.startswith("GPU")]) or not matrix.pairs
    assert [] == [fact for fact in facts if not holds(matrix, fact)]
    assert (matrix.missing is not None) == any(fact.startswith("missing") for fact in facts)


def test_windows_has_no_matrix(corpus: Path) -> None:
    """Unsupported is not zero GPUs."""
    with pytest.raises(ParseError, match="Option -m is missing its value"):
        nvidia_smi_topo.parse_matrix(text_of(corpus / "text/nvidia-smi-topo-m/win-591-error-option-m.txt"))


def test_the_facts_of_this_test_can_fail() -> None:
    """A pattern that matches nothing does not hold."""
    matrix = nvidia_smi_topo.parse_matrix("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n")

    assert [True, False, False, False] == [
        holds(matrix, fact) for fact in ("GPU*-GPU* NV2", "GPU*-GPU* NV4", "GPU*-NIC* SYS", "missing rows")
    ]


@pytest.mark.parametrize("name", P2P)
def test_every_p2p_matrix(corpus: Path, name: str) -> None:
    """One word for all."""
    gpus, word = P2P[name]

    words, missing = nvidia_smi_topo.parse_p2p(text_of(corpus / name))

    assert (gpus * (gpus - 1), {word}, None) == (len(words), set(words.values()), missing)


# file: by GPU index: (active links, inactive links, GB/s of each, supported)
NVLINKS: dict[str, dict[int, tuple[int, int, float | None, bool | None]]] = {
    "text/nvidia-smi-nvlink/s-a100pcie-inactive.txt": {0: (0, 0, None, True), 1: (0, 0, None, True)},
    "text/nvidia-smi-nvlink/s-azure-good.txt": {7: (12, 0, 25.0, True)},
    "text/nvidia-smi-nvlink/s-h100-590.txt": {0: (18, 0, 26.562, True)},
    "text/nvidia-smi-nvlink/s-h100mig-590.txt": {0: (0, 0, None, None)},
    "text/nvidia-smi-nvlink/s-h800-3gpu-8links.txt": dict.fromkeys((0, 1, 7), (8, 0, 26.562, True)),
    "text/nvidia-smi-nvlink/s-l40s-595.txt": {0: (0, 0, None, False)},
    "text/nvidia-smi-nvlink/s-v100-gpu3-2inactive-excerpt.txt": {3: (4, 2, 25.781, True)},
    "blocks/nvlink-s/aws-samples+awsome-distributed-training__1.architectures_efa-cheatsheet.md__47.txt": {
        0: (12, 0, 25.0, True)
    },
    "blocks/nvlink-s/liguodongiot+llm-action__docs_llm-base_nvidia-smi.md__301.txt": dict.fromkeys(
        (0, 1, 7), (8, 0, 26.562, True)
    ),
}


@pytest.mark.parametrize("name", NVLINKS)
def test_every_link_status(corpus: Path, name: str) -> None:
    """Links by state and speed; having none, not telling and all down are told apart."""
    gpus = nvlink_text.parse_status(text_of(corpus / name)).gpus

    assert NVLINKS[name] == {gpu.index: links_of(gpu) for gpu in gpus}
    assert all(gpu.nvlinks or gpu.nvlink_reason for gpu in gpus)


def test_link_status_is_not_read_from_what_is_none(corpus: Path) -> None:
    """Throughput counters, firmware versions and dcgmi's own table are other things."""
    for name in (
        "text/nvidia-smi-nvlink/gt-r-h800-raw-throughput.txt",
        "text/nvidia-smi-nvlink/info-gb200-UNCERTAIN-TRUNCATED.txt",
    ):
        gpus = nvlink_text.parse_status(text_of(corpus / name)).gpus
        assert {(None, ())} == {(gpu.nvlink_supported, gpu.nvlinks) for gpu in gpus}, name
    with pytest.raises(ParseError):
        nvlink_text.parse_status(text_of(corpus / "text/nvidia-smi-nvlink/dcgmi-nvlink-s-8h100.txt"))


def test_far_ends_errors_and_capabilities(corpus: Path) -> None:
    """A switch of an Azure guest, counters of an H100, what an H800's links can do."""
    remote = nvlink_text.parse_remotes(text_of(corpus / "text/nvidia-smi-nvlink/R-a100-azure-vm-excerpt.txt")).gpus[0]
    errors = nvlink_text.parse_errors(
        text_of(corpus / "blocks/nvlink-s/stas00+ml-engineering__compute_accelerator_nvidia_debug.md__287.txt")
    )
    able = nvlink_text.parse_capabilities(text_of(corpus / "text/nvidia-smi-nvlink/c-h800-capabilities.txt")).gpus[0]

    assert (5, [("0008:00:00.0", 32), ("0008:00:00.0", 33)]) == (
        remote.index,
        [(link.remote_address, link.remote_link) for link in remote.nvlinks],
    )
    assert {0: {"replay": 0, "recovery": 0, "crc": 0}} == {
        link.link: link.errors for link in errors.gpus[0].nvlinks[:1]
    }
    assert ([0, 1, 17], "its author cut the text") == ([link.link for link in errors.gpus[0].nvlinks], errors.missing)
    assert 8 == len(able.nvlinks)
    assert {True} == {(link.capabilities or {})["P2P is supported"] for link in able.nvlinks}


@pytest.mark.parametrize(("name", "migs"), [("h100mig-590.txt", 4), ("h200mig-590.txt", 5)])
def test_every_list(corpus: Path, name: str, migs: int) -> None:
    """One GPU and its instances."""
    gpus = nvidia_smi.parse_list(text_of(corpus / "text/nvidia-smi-L" / name))

    assert [(0, migs)] == [(gpu.index, len(gpu.mig_instances)) for gpu in gpus]


Query = Callable[[str], tuple[GpuFacts, str | None]]
PARSERS: dict[str, Query] = {
    "text/nvidia-smi-q": nvidia_smi_query.parse_text,
    "text/nvidia-smi-query-csv": nvidia_smi_query.parse_csv,
    ".xml": nvidia_smi_query.parse_xml,
    ".txt": nvidia_smi_query.parse_text,
}


@pytest.mark.parametrize("name", QUERIES)
def test_every_query(corpus: Path, name: str) -> None:
    """Text R510 to R610, XML of document types 10 to 13 and without one, CSV of every field."""
    driver, cuda, count, facts_of_the_first = QUERIES[name]
    expected = dict(fact.split(" ", 1) for fact in facts_of_the_first.split(" | "))
    parse = next(parse for kind, parse in PARSERS.items() if name.startswith(f"{kind}/") or name.endswith(kind))

    facts, missing = parse(text_of(corpus / name))

    assert (driver, cuda, count) == (str(facts.driver_version), str(facts.cuda_version), str(len(facts.gpus)))
    assert expected == {field: str(value_of(facts.gpus[0], field)) for field in expected}
    assert (missing is None) == (facts.attached in (None, len(facts.gpus)))


@pytest.mark.parametrize("machine", ["h100-590-load", "rtx2080s-595-idle"])
def test_the_csv_of_a_machine_says_what_its_text_says(corpus: Path, machine: str) -> None:
    """Two formats of one moment."""
    text = nvidia_smi_query.parse_text(text_of(corpus / f"text/nvidia-smi-q/{machine}.txt"))[0].gpus[0]
    table = nvidia_smi_query.parse_csv(text_of(corpus / f"text/nvidia-smi-query-csv/{machine}-allfields.txt"))[0].gpus[
        0
    ]
    moving = {"utilization_percent", "replays", "health"}
    both = [
        name for name in Gpu._fields if None not in (getattr(text, name), getattr(table, name)) and name not in moving
    ]

    assert 15 <= len(both)
    assert {name: getattr(text, name) for name in both} == {name: getattr(table, name) for name in both}


def test_no_sample_of_the_corpus_is_left_out(corpus: Path) -> None:
    """A new sample needs a line in a table above."""
    known = {*MATRICES, *P2P, *NVLINKS, *QUERIES}
    folders = ("text/nvidia-smi-topo-m", "text/nvidia-smi-topo-p2p", "text/nvidia-smi-q", "text/nvidia-smi-query-csv")
    more = ("blocks/nvidia-smi-topo", "nvidia-smi")
    samples = {str(path.relative_to(corpus)) for folder in (*folders, *more) for path in (corpus / folder).iterdir()}

    assert {"text/nvidia-smi-topo-m/win-591-error-option-m.txt"} == samples - known


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def holds(matrix: Matrix, fact: str) -> bool:
    pattern, _, rest = fact.partition(" ")
    if pattern == "missing":
        return (matrix.missing or "").startswith(rest)
    word, _, value = rest.partition(" ")
    if word == "is":
        return matrix.nic_names.get(pattern) == value
    if value:
        field = {"cpu": "cpu_affinity", "numa": "numa_node", "own": "memory_numa_node"}[word]
        result = {str(getattr(gpu, field)) for gpu in matrix.gpus if fnmatchcase(f"GPU{gpu.index}", pattern)}
        return result == {value}
    kinds = {pair.kind for pair in matrix.pairs if fnmatchcase(f"{pair.a}-{pair.b}", pattern)}
    return kinds == {word}


def links_of(gpu: Gpu) -> tuple[int, int, float | None, bool | None]:
    states = [link.state for link in gpu.nvlinks]
    speeds = {link.speed_gbyte_s for link in gpu.nvlinks if link.state == "active"} or {None}
    assert len(speeds) == 1
    return states.count("active"), states.count("inactive"), speeds.pop(), gpu.nvlink_supported


def value_of(gpu: Gpu, field: str) -> Any:
    value: Any = gpu
    for name in field.split("."):
        value = getattr(value, name)
    return value


# Texts that nvidia-smi never printed are read or refused soon; damaged outputs: tests/fuzz/readers.py


PARSERS_OF_CUT_TEXT: dict[str, tuple[Callable[[str], Any], str]] = {
    "-q": (nvidia_smi_query.parse_text, texts.QUERY),
    "-q -x": (nvidia_smi_query.parse_xml, texts.XML),
    "--query-gpu": (nvidia_smi_query.parse_csv, texts.CSV),
    "-L": (nvidia_smi.parse_list, texts.LIST),
    "lost": (
        nvidia_smi.lost_gpus,
        "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n",
    ),
    "refusal": (nvidia_smi.refusal, "Failed to initialize NVML: Driver/library version mismatch\n"),
    "topo -m": (nvidia_smi_topo.parse_matrix, texts.TOPO),
    "topo -p2p": (nvidia_smi_topo.parse_p2p, texts.P2P),
    "nvlink -s": (nvlink_text.parse_status, texts.STATUS),
    "nvlink -e": (nvlink_text.parse_errors, texts.ERRORS),
    "nvlink -R": (nvlink_text.parse_remotes, texts.REMOTES),
    "nvlink -c": (nvlink_text.parse_capabilities, texts.CAPABILITIES),
    "address": (normal_address, "00000000:1B:00.0"),
}


def refused_or_read(parse: Callable[[str], Any], text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(text)


PATTERNS = {
    "blanks": " ",
    "lines": "\n",
    "opened": "GPU 0: a (",
    "rows": "GPU0 X\n",
    "headings": "GPU0 GPU1\n",
    "wide heading": "GPU0 mlx5_1 ",
    "wide row": "GPU0\t X ",
    "addresses": "00000000:",
    "deeper": "    \n  a\n",
    "entries": "a : b\n",
    "tags": "<nvidia_smi_log>",
    "nested": "<gpu>",
    "quotes": '"name,',
    "links": "Link 1: ",
    "nics": "\n\n  NIC0: ",
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("parser", PARSERS_OF_CUT_TEXT)
def test_no_input_takes_more_than_its_share_of_time(parser: str, pattern: str) -> None:
    """Four times the text takes nowhere near sixteen times as long; the slack is for a busy machine."""
    parse, text = PARSERS_OF_CUT_TEXT[parser]

    def seconds(size: int) -> float:
        result = text[: len(text) // 2] + PATTERNS[pattern] * (size // len(PATTERNS[pattern])) + text[len(text) // 2 :]
        started = time.process_time()
        refused_or_read(parse, result)
        return time.process_time() - started

    small = min(seconds(16 << 10) for _ in range(2))
    large = min(seconds(LONGEST_BYTES) for _ in range(2))

    assert large < max(12 * small, 0.25)
