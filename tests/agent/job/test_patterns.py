"""The table of failure lines: every row has lines that it is for, and lines that are like it and are not."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agent.job.catalogue import ROLES, FailureRow, find_patterns, load_codes, load_rows
from agent.model.job_answer import FAULT_KINDS

ROWS = load_rows()


def matching(line: str) -> set[str]:
    """The rows that match a line, found as a log's lines are."""
    return {pattern.row.id for pattern in find_patterns(line.encode()) if pattern.search(line)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_fires_on_its_lines_and_on_no_line_like_them(row: FailureRow) -> None:
    """Found by its words, then by its pattern."""
    assert row.fires
    assert row.silent
    for line in row.fires:
        assert row.id in matching(line), line
    for line in row.silent:
        assert row.id not in matching(line), line


def test_rows_are_well_formed() -> None:
    """A name once, a role and a fault that exist, words without digits, a summary whose names exist."""
    assert {} == {name: count for name, count in Counter(row.id for row in ROWS).items() if count > 1}
    for row in ROWS:
        assert row.role in ROLES, row.id
        assert row.info is None or row.info in ROLES, row.id
        assert row.fault in FAULT_KINDS, row.id
        assert not any(re.search(r"\d", word) for word in row.words), row.id
        names = set(re.findall(r"\{(\w+)\}", " ".join([row.summary, *row.next])))
        known = {"who", "where", "host", "text", "line", "meaning", "check", *re.compile(row.pattern).groupindex}
        assert names <= known, row.id


def test_no_pattern_is_slower_than_the_length_of_its_line() -> None:
    """A line of one repeated piece, twice as long, takes about twice the time: bounded repeats only."""
    import time

    for row in ROWS:
        search = re.compile(row.pattern).search
        for piece in (*row.fires, row.words[0], "a", "[rank1]:", "1,", "failed ", "NET/IB : "):
            line = (piece * 4000)[:4000]
            start = time.perf_counter()
            search(line)
            assert time.perf_counter() - start < 0.25, (row.id, piece)


def test_codes_have_meanings() -> None:
    """Of every table."""
    for table, codes in load_codes().items():
        assert codes
        for code, entry in codes.items():
            assert entry["means"], (table, code)
            assert entry.get("fault", "unknown") in FAULT_KINDS, (table, code)
            assert entry.get("role", "note") in ROLES, (table, code)
