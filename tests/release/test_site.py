"""The documentation site: every page is there, every link leads to one, and MkDocs builds it without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.rules.catalogue import names
from release.site import ROOT, main, relink, write_pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all pages."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    write_pages(folder)
    return folder


def test_every_rule_has_a_page_and_a_line_in_the_index(pages: Path) -> None:
    """And every link of one leads to a page."""
    rules = pages / "rules"
    written = {path.name for path in rules.iterdir()}
    links = {link for path in rules.iterdir() for link in re.findall(r"\]\(([^)/]+\.md)\)", path.read_text())}

    assert written == {"README.md"} | {f"{name}.md" for name in names()}
    assert len(names()) == (rules / "README.md").read_text().count("| [")
    assert links <= written


def test_a_rule_page_starts_with_its_title_and_a_table_of_its_head(pages: Path) -> None:
    """Severity, whether it is essential, what it needs."""
    text = (pages / "rules" / "gpu-missing.md").read_text()

    assert text.startswith("# gpu-missing\n\nA GPU is on the PCI bus, but the driver does not offer it.\n\n| | |\n")
    assert "| Severity | critical |\n| Essential | yes: " in text
    assert "## What it checks\n" in text


def test_the_reference_has_every_command_and_the_coverage_every_tool(pages: Path) -> None:
    """Both are made from what the program and the table of other tools hold."""
    assert "## fabricscope fleet drift\n" in (pages / "command-reference.md").read_text()
    assert "| DCGM | " in (pages / "coverage.md").read_text()


def test_links_are_turned_to_pages_and_to_names_of_files() -> None:
    """A page of ours, a file that is none, an address, an anchor; a file that does not exist is refused."""
    readme = ROOT / "README.md"
    table = {ROOT / "docs" / "safety.md": "safety.md"}

    assert "[a](../safety.md#x)" == relink("[a](docs/safety.md#x)", readme, "decisions/y.md", table)
    assert "a (`LICENSE`)" == relink("[a](LICENSE)", readme, "index.md", table)
    assert "[a](https://b.example/c) [d](#e)" == relink("[a](https://b.example/c) [d](#e)", readme, "index.md", table)
    with pytest.raises(FileNotFoundError, match=r"README\.md: no file docs/nowhere\.md"):
        relink("[a](docs/nowhere.md)", readme, "index.md", table)


@pytest.mark.release
def test_mkdocs_finds_no_broken_link_or_anchor(real_commands: None, tmp_path: Path) -> None:
    """As `make site` runs it, with the sample report; a link that is broken makes it fail."""
    site = tmp_path / "site"
    command = [sys.executable, "-m", "release.site", str(site)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)

    assert (0, "") == (built.returncode, "".join(re.findall(r"WARNING .*", built.stderr)))
    assert {"index.html", "sitemap.xml", "sample", "rules"} <= {path.name for path in site.iterdir()}
    for page in ("report.html", "fleet.html"):
        assert "<!doctype html>" in (site / "sample" / page).read_text().lower()


def test_wrong_usage_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit 2."""
    assert 2 == main([])
    assert 2 == main(["--write"])
    assert "usage:" in capsys.readouterr().err
