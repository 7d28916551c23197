"""Seven GPUs in a saved list: boards have four or eight, and a container may have been given fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.model.report import Report
from tests.machines import scan_text


def _list(folder: Path, count: int, name: str = "NVIDIA H200", behind: str = "") -> Report:
    rows = (f"GPU {n}: {name} (UUID: GPU-7a7a7a7a-0000-1111-2222-33333333333{n})\n" for n in range(count))
    return scan_text(folder, "".join(rows) + behind)


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_a_number_that_no_board_has_is_a_note(count: int, tmp_path: Path) -> None:
    (finding,) = _list(tmp_path, count).findings
    assert ("gpu-missing", "info", "low") == (finding.rule, finding.severity, finding.confidence)
    assert f"{count} NVIDIA H200 are listed, and boards of this model have 4 or 8" == finding.summary
    assert "container" in str(finding.steps[0])


@pytest.mark.parametrize(
    ("count", "name", "behind"),
    [
        (8, "NVIDIA H200", ""),
        (4, "NVIDIA H200", ""),
        (2, "NVIDIA H200", ""),
        (7, "NVIDIA L40S", ""),  # as many as a server has slots
        (7, "NVIDIA H200 NVL", ""),
        (7, "NVIDIA H200", "GPU 7: NVIDIA H100 80GB HBM3 (UUID: GPU-7a7a7a7a-0000-1111-2222-333333333339)\n"),
        (7, "NVIDIA H200", "Killed\n"),  # the list is cut
    ],
)
def test_every_other_list_is_none(count: int, name: str, behind: str, tmp_path: Path) -> None:
    assert [] == _list(tmp_path, count, name, behind).findings
