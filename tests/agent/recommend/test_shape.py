"""What the shape of a measured table shows."""

from __future__ import annotations

import pytest

from agent.job.measured_tables import read_tables
from agent.recommend.shape import describe_shape, describe_share

HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong"
)


def table(values: list[tuple[float, float]], wrong: int = 0, prefix: str = "") -> str:
    """Rows from 8 MiB on: out of place and in place."""
    lines = [HEAD]
    for number, (out, into) in enumerate(values):
        size = 1 << (23 + number)
        lines.append(f"{size} {size // 4} float sum -1 100 1.0 {out} 0 100 1.0 {into} {wrong}")
    return "\n".join(prefix + line for line in lines)


def shape(values: list[float], **more: int) -> str:
    """Both columns alike."""
    return " ".join(describe_shape(read_tables(table([(value, value) for value in values], **more).splitlines())))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([100, 150, 180, 190, 195, 196], ""),
        ([100, 150, 180, 12, 11, 12], "falls from 180 to 12 GB/s at 64 MiB and stays"),
        ([100, 150, 110, 170, 190, 195], "recovers"),
        ([100, 150, 60, 170, 190, 195], "only the row of 32 MiB is off"),
        ([100, 60, 110, 60, 115, 50], "goes up and down"),
        ([0, 0, 0, 0], "bus bandwidth is 0 in every row"),
    ],
)
def test_shapes(values: list[float], words: str) -> None:
    """By the rows of large messages."""
    text = shape(values)

    assert words in text
    assert bool(words) == bool(text)


def test_corrupted_data() -> None:
    """Comes first."""
    assert "wrong values" in shape([100, 150, 180], wrong=2)


def test_out_of_place_against_in_place() -> None:
    """From 15% on."""
    cold = describe_shape(read_tables(table([(100, 130), (100, 131), (101, 132), (100, 130)]).splitlines()))
    even = describe_shape(read_tables(table([(100, 105), (100, 104), (101, 106), (100, 105)]).splitlines()))

    assert any("in place is 30% off" in text for text in cold)
    assert [] == even


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:", "[pod/launcher-0/main] ", "2026-11-03T04:12:09Z "])
def test_prefixes_of_launchers(prefix: str) -> None:
    """One reader for `job` and `recommend --measured`."""
    rows = read_tables(table([(100, 120)], prefix=prefix).splitlines()).rows

    assert [(120.0, 100.0, 120.0)] == [(row.gbyte_s, row.out_of_place_gbyte_s, row.in_place_gbyte_s) for row in rows]


def test_columns_are_counted_from_the_right() -> None:
    """Without redop and root, with more columns of later versions."""
    old = (
        "# size count type time algbw busbw error time algbw busbw error\n1048576 262144 float 10 1.0 2.0 N/A "
        "10 1.5 3.0 N/A"
    )
    new = f"{HEAD} i_min i_max\n1048576 262144 float sum -1 10 1.0 2.0 0 10 1.5 3.0 0 9 11"
    for text in (old, new):
        assert [(3.0, 1.5)] == [(row.gbyte_s, row.algbw_gbyte_s) for row in read_tables(text.splitlines()).rows]


def test_shares_of_rails() -> None:
    """What part would give what was measured."""
    assert "1/2" in (describe_share(180, 360, 8) or "")
    assert "3/4" in (describe_share(270, 360, 8) or "")
    assert describe_share(300, 360, 8) is None
