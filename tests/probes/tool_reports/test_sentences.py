"""The tables of sentences: each row has a line that it is, a meaning, and a place among healthy lines. Libraries that
`ldd` does not find: those of the fabric count.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.rules.host.tool_findings import MEANINGS
from probes.host.commands import TOOL_ERRORS_SAVED
from probes.sources.identify import identify_command
from probes.sources.pieces import name_pieces
from probes.text import ParseError
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.sentences import cluster, gpu, network
from probes.tool_reports.sentences.sentence import ToolSentence
from probes.tool_reports.sentences.stated import list_needles, list_stated, list_tool_errors
from probes.tool_reports.sentences.table import ANYWHERE, IN_PLACE, UNKNOWN
from tests.agent.rules.test_fragments import scan_text, warnings_of
from tests.probes.tool_reports.sentence_lines import CALM, LINES

ROWS = (
    *network.VERBS, *network.FIRMWARE, *network.INFINIBAND, *network.INTERFACES,
    *gpu.DCGM, *gpu.PCIE_LINKS, *gpu.STATES, *gpu.NVIDIA, *gpu.OTHER_MAKERS, *cluster.CLUSTER, *UNKNOWN,
)  # fmt: skip
PORTS = "".join(
    f"hca_id:\tmlx5_{n}\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n"
    for n in range(4)
)


def read(text: str) -> list[ToolReport]:
    """What both readers make of a text."""
    try:
        return [*list_tool_errors(text), *list_stated(text)]
    except ParseError:
        return list_stated(text)


@pytest.mark.parametrize(("line", "code", "part"), LINES)
def test_a_sentence_is_recognized_and_names_its_part(line: str, code: str, part: str) -> None:
    reports = [report for report in read(f"{line}\n") if report.code == code]
    assert reports
    assert part in (reports[0].subject or "") or any(part in value for _, value in reports[0].detail)
    assert code in MEANINGS
    rows = [row for row in IN_PLACE if row.code == code and any(map(row.pattern.search, line.splitlines()))]
    command = identify_command(f"{line}\n")
    assert command in ([(("error", "of", rows[0].tool),), (("nvidia-smi",),)] if rows else [command or "none"])


@pytest.mark.parametrize(("line", "code", "part"), LINES)
def test_a_sentence_beside_a_healthy_output_is_read(line: str, code: str, part: str) -> None:
    pieces, _ = name_pieces("mail.txt", f"$ ibv_devinfo\n{PORTS}\nand then:\n\n{line}\n")
    texts = [piece.text for name, piece in pieces.items() if name.startswith(("error_of_", "sentences_of_"))]
    assert any(report.code == code for text in texts for report in read(text))


@pytest.mark.parametrize("line", CALM)
def test_a_line_of_a_healthy_machine_is_none(line: str) -> None:
    assert [report.code for report in read(f"{line}\n")] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_each_row_has_a_line_that_it_is_first_to_fit(row: ToolSentence) -> None:
    table = IN_PLACE if row.tool else ANYWHERE
    lines = [part for line, *_ in LINES for part in line.splitlines()]
    assert any(next((one for one in table if one.pattern.search(line)), None) is row for line in lines)


@pytest.mark.parametrize("row", [*IN_PLACE, *ANYWHERE], ids=lambda row: row.code)
def test_each_row_has_a_plain_text_by_which_it_is_looked_for(row: ToolSentence) -> None:
    assert list_needles(row)
    assert min(map(len, list_needles(row))) >= 4
    assert row.code in MEANINGS
    assert row.tool is None or ("error", "of", row.tool) in TOOL_ERRORS_SAVED


def test_of_each_tool_the_first_sentence_counts_and_a_graver_one_of_another_is_not_hidden() -> None:
    text = (
        'Cannot find device "ens9"\nRTNETLINK answers: Operation not permitted\n'
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\npoll CQ failed -1\n"
    )
    assert [report.code for report in list_tool_errors(text)] == ["cuda-memory", "interface-missing"]
    text = (
        "libibverbs: Warning: couldn't load driver 'libbnxt_re-rdmav34.so': cannot open\n"
        " Unable to find the Infiniband/RoCE device\n"
    )
    assert [report.code for report in list_tool_errors(text)] == ["verbs-no-provider"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPU 3's NvLink link 4 is currently down\n", {"error tool-reports-fault GPU3 medium"}),
        ("GPU-0a1b2c3d needs reset (detected pending row remapping)\n",
         {"warning tool-reports-fault GPU-0a1b2c3d medium"}),
        ("RTNETLINK answers: Operation not supported\n", set()),
        ("# Out of bounds values : 7 FAILED\n", {"error tool-reports-fault node medium"}),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.\n",
         {"error tool-reports-fault node medium"}),
    ],
)  # fmt: skip
def test_what_follows_from_a_sentence(tmp_path: Path, text: str, expected: set[str]) -> None:
    report = scan_text(tmp_path, text, "issue.txt")
    assert report.findings
    assert expected == {f"{one.severity} {one.rule} {one.label} {one.confidence}" for one in warnings_of(report)}


LDD = (
    "\tlinux-vdso.so.1 (0x00007ffc11122000)\n\tlibmpi.so.40 => /opt/mpi/lib/libmpi.so.40 (0x00007f1122334000)\n"
    "\t{} => not found\n\tlibc.so.6 => /lib64/libc.so.6 (0x00007f1122000000)\n"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LDD.format("libucp.so.0"), ["A program does not find libraries that it was linked with: libucp.so.0"]),
        (LDD.format("libgfortran.so.5"), []),
        (LDD.replace("\t{} => not found\n", ""), []),
    ],
    ids=["of UCX", "of a compiler", "all are there"],
)
def test_a_library_of_the_fabric_that_is_missing(tmp_path: Path, text: str, found: list[str]) -> None:
    """The list alone: what is pasted of a node on which an MPI is slow."""
    summaries = [finding.summary for finding in scan_text(tmp_path, text, "notes.txt").findings]

    assert [text.casefold() for text in found] == [summary.casefold() for summary in summaries]
