"""Jobs that the bench makes, of one and of eight hosts: every planted cause is named, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.cli.job import JobOptions, answer_job
from bench.job_logs import CASES, Job
from bench.jobs import score


@pytest.mark.parametrize("ranks", [8, 64])
@pytest.mark.parametrize("case", CASES)
def test_planted_causes_are_found(tmp_path: Path, case: str, ranks: int) -> None:
    """First of all, with ranks, host and NIC."""
    truth = CASES[case](Job(tmp_path / "job", ranks, ranks))
    answer = msgspec.to_builtins(answer_job([str(tmp_path / "job")], JobOptions([])))
    found, first, alarms = score(answer, truth)

    assert (len(truth.causes), True, 0) == (found, first, alarms), [cause["summary"] for cause in answer["causes"]]


def test_the_generator_imports_nothing_of_the_readers() -> None:
    """Else it would prove nothing."""
    text = (Path(__file__).parents[3] / "bench" / "job_logs.py").read_text()

    assert "agent" not in [
        line.split()[1].partition(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))
    ]
