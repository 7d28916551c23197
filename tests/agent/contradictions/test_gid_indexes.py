"""The index of one GID on several pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import scan_text

TABLE = """\
root@{pod}:/# show_gids
DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
---     ----    -----   ---                                     ------------    ---     ---
mlx5_2  1       {v1}    0000:0000:0000:0000:0000:ffff:0a11:{tail}  10.17.2.{last}  v1      net1
mlx5_2  1       {v2}    0000:0000:0000:0000:0000:ffff:0a11:{tail}  10.17.2.{last}  v2      net1
n_gids_found=2

"""


def _write(pod: str, index: int, last: int) -> str:
    return TABLE.format(pod=pod, v1=index - 1, v2=index, tail=f"02{last:02x}", last=last)


@pytest.mark.parametrize(("index", "expected"), [(11, ["gid"]), (5, [])], ids=["another index", "the same"])
def test_one_index_for_all_pods_is_judged_against_the_table_of_each(
    index: int, expected: list[str], tmp_path: Path
) -> None:
    text = _write("train-0", 5, 17) + _write("train-1", index, 18)
    findings = scan_text(tmp_path, text, "issue.txt").findings

    assert ["gid" for finding in findings if "another index" in finding.summary] == expected
    if expected:
        assert "index 5 on train-0, index 11 on train-1" in findings[0].summary
        assert (findings[0].severity, findings[0].confidence) == ("info", "low")
        assert "show_gids" in findings[0].remedy


def test_two_tables_of_one_pod_are_not_compared(tmp_path: Path) -> None:
    findings = scan_text(tmp_path, _write("train-0", 5, 17) + _write("train-0", 11, 18), "issue.txt").findings

    assert not any("another index" in finding.summary for finding in findings)
