"""What a text shows as an example is no evidence; what its writer saw is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli.main import run
from probes.sources.examples import blank_examples
from tests.machines import scan_text

LINE = "[Tue Feb  3 11:12:13 2026] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "text",
    [
        f"A GPU can be lost. For example:\n\n{LINE}\n",
        f"## Sample output:\n```\n{LINE}\n```\n",
        f"A lost GPU would look like this:\n{LINE}\n",
        f"* Typical examples of such lines:\n{LINE}\n{LINE}\n",
    ],
)
def test_an_example_is_no_evidence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With other evidence beside it or alone."""
    (tmp_path / "page.md").write_text(text)
    assert run(["scan", str(tmp_path / "page.md")]) == 2
    assert "is not recognized" in capsys.readouterr().err
    assert text.count("\n") == blank_examples(text).count("\n")  # places of what is behind stay
    report = scan_text(tmp_path, f"{text}\n[Tue Feb  3 11:15:13 2026] NVRM: Xid (PCI:0000:1c:00): 79, GPU has fallen\n")
    assert ["pci:0000:1c:00.0"] == [finding.subject for finding in report.findings]


@pytest.mark.parametrize(
    "text",
    [
        f"We lose a GPU each week, for example:\n{LINE}\n",
        f"It happened on two nodes.\n\nExample:\n{LINE}\n",
        f"Example: a job on this node\n{LINE}\n",
        f"dmesg:\n{LINE}\n",
    ],
)
def test_what_was_seen_is_evidence(text: str, tmp_path: Path) -> None:
    """A writer, a time or a place."""
    assert text == blank_examples(text)
    assert ["gpu-xid"] == [finding.rule for finding in scan_text(tmp_path, text).findings]
