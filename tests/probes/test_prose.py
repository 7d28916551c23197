"""A fault that a person names to state that it is not there, or is over, is no fault of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.sources.open_source import open_source

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
TOOL = "0000:41:00.0: group 27 is not viable"
DENIED = (
    "I checked and there is no '{}' in dmesg.",
    "If you see `{}` in your logs then reseat it.",
    "We do not see any {} here",
    "Last month: {} was fixed by reseating the board",
    "{} (fixed since)",
    "{} RMA done, new GPU.",
)
STATED = (
    "{}",
    "We get {} on this node",
    "the job hangs when {}",
    "{} How can this be fixed?",
    "{} which is not fixed yet",
    "GPU is not healthy: {}",
    "several errors, such as {}",
)


@pytest.mark.parametrize("form", DENIED)
@pytest.mark.parametrize("line", [XID, TOOL])
def test_what_a_person_denies_is_no_finding(tmp_path: Path, form: str, line: str) -> None:
    assert [] == find_rules(tmp_path, form.format(line))


@pytest.mark.parametrize("form", STATED)
@pytest.mark.parametrize(("line", "rule"), [(XID, "gpu-xid"), (TOOL, "tool-reports-fault")])
def test_what_a_person_reports_is_one(tmp_path: Path, form: str, line: str, rule: str) -> None:
    assert [rule] == find_rules(tmp_path, form.format(line))


def find_rules(folder: Path, sentence: str) -> list[str]:
    """The rules that find something in a text with this sentence above an output."""
    (folder / "issue.md").write_text(f"{sentence}\n\n$ lsmod\nModule   Size  Used by\nmlx5_core  2093056  0\n")
    report, _ = diagnose(open_source(str(folder / "issue.md")), ScanPlan())
    return [finding.rule for finding in report.findings if finding.severity != "info"]
