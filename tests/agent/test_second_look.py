"""A GPU that is removed or comes back while a scan reads: both sources are read again before it is called missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.diagnose import ScanPlan, diagnose, scan
from agent.model.report import Report
from probes.capture.writer import write_capture
from probes.sources.capture import CaptureHost
from probes.sources.open_source import open_source
from tests.machines import machine

HEALTHY, MISSING = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "gpu-not-in-nvml"


class Changing:
    """A host that is live, and another one as soon as the scan says that it reads again."""

    live = True
    kind = "live"
    path = None

    def __init__(self, first: CaptureHost, then: CaptureHost) -> None:
        self.now, self._then = first, then
        self.lines: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)

    def progress(self, line: str) -> None:
        """What a person sees."""
        self.lines.append(line)
        if "reading both again" in line:
            self.now = self._then


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts here change at once."""
    monkeypatch.setattr("agent.diagnose._SETTLE_SECONDS", 0.01)


def critical(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "critical"]


@pytest.mark.parametrize(
    ("first", "then", "found", "again"),
    [
        (MISSING, None, [], True),
        (MISSING, MISSING, ["gpu-missing"], True),
        (None, MISSING, [], False),
    ],
)
def test_a_gpu_is_missing_where_it_is_missing_twice(
    first: str | None, then: str | None, found: list[str], again: bool, tmp_path: Path
) -> None:
    """What agrees is read once; and the capture of the run shows what the report shows."""
    host = Changing(machine(HEALTHY, first), machine(HEALTHY, then))
    result = scan(host, ScanPlan(progress=host.progress, record=True))  # type: ignore[arg-type]

    assert result.recording is not None
    write_capture(result.recording, str(tmp_path / "scan.tar.gz"))
    replay, _ = diagnose(open_source(str(tmp_path / "scan.tar.gz")), ScanPlan())

    assert found == critical(result.report) == critical(replay)
    assert result.report.topology == replay.topology
    assert again == any("reading both again" in line for line in host.lines)


def test_without_time_the_first_answer_stands() -> None:
    """The bound of a run holds."""
    host = Changing(machine(HEALTHY, MISSING), machine(HEALTHY))
    result = scan(host, ScanPlan(progress=host.progress, timeout_seconds=0.015))  # type: ignore[arg-type]

    assert not any("reading both again" in line for line in host.lines)
    assert "unknown" == result.report.summary.verdict or critical(result.report)
