"""Libraries that `ldd` does not find: those of the fabric count, and one list that has all is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import scan_text

ROWS = (
    "\tlinux-vdso.so.1 (0x00007ffc11122000)\n\tlibmpi.so.40 => /opt/mpi/lib/libmpi.so.40 (0x00007f1122334000)\n"
    "\t{} => not found\n\tlibc.so.6 => /lib64/libc.so.6 (0x00007f1122000000)\n"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ROWS.format("libucp.so.0"), ["A program does not find libraries that it was linked with: libucp.so.0"]),
        (ROWS.format("libgfortran.so.5"), []),
        (ROWS.replace("\t{} => not found\n", ""), []),
    ],
    ids=["of UCX", "of a compiler", "all are there"],
)
def test_a_library_of_the_fabric_that_is_missing(tmp_path: Path, text: str, found: list[str]) -> None:
    """The list alone: what is pasted of a node on which an MPI is slow."""
    summaries = [finding.summary for finding in scan_text(tmp_path, text, "notes.txt").findings]

    assert [text.casefold() for text in found] == [summary.casefold() for summary in summaries]
