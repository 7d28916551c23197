"""The pages of rules for a documentation site."""

from __future__ import annotations

import re
from pathlib import Path

from agent.rules.catalogue import names
from release.rule_pages import main, write


def test_every_rule_has_a_page_and_a_line_in_the_index(tmp_path: Path) -> None:
    """And every link leads to a page."""
    write(tmp_path)
    written = {path.name for path in tmp_path.iterdir()}
    links = {link for path in tmp_path.iterdir() for link in re.findall(r"\]\(([^)]+\.md)\)", path.read_text())}

    assert written == {"README.md"} | {f"{name}.md" for name in names()}
    assert len(names()) == (tmp_path / "README.md").read_text().count("| [")
    assert links <= written


def test_a_page_starts_with_its_title_and_a_table_of_its_head(tmp_path: Path) -> None:
    write(tmp_path)
    page = (tmp_path / "gpu-missing.md").read_text()

    assert page.startswith("# gpu-missing\n\nA GPU is on the PCI bus, and the driver does not offer it.\n\n| | |\n")
    assert "| Severity | critical |\n| Essential | yes: " in page
    assert "## What it checks\n" in page


def test_wrong_usage_writes_nothing(tmp_path: Path, capsys) -> None:
    assert 2 == main([])
    assert 2 == main(["--write"])
    assert "usage:" in capsys.readouterr().err
    assert 0 == main([str(tmp_path / "pages")])
