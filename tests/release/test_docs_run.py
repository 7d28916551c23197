"""Every command of the README, the tutorials and the page of installing runs in a fresh clone and prints its sample."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.release import docs_run

NOT_RUN = {  # pages and why blocks of them are not run; test_packages.py and others of this folder try these by parts
    "docs/tutorial.md": ["needs a text and a log of yours"],
    "docs/installing.md": [
        "needs a wheelhouse", "needs root", "needs root and RHEL", "needs root", "needs podman", "needs a cluster",
        "needs root and man",
    ]
}  # fmt: skip


@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize("page", docs_run.PAGES)
def test_every_command_runs_and_prints_its_sample(page: str, tmp_path: Path) -> None:
    """`python -m tests.release.docs_run` writes samples again."""
    if page == "docs/tutorial-fleet.md":
        pytest.importorskip("duckdb", reason="the extra fleet is not installed")

    for command, printed in docs_run.run_page((ROOT / page).read_text(), tmp_path):
        assert command.sample is None or docs_run.matches(command.sample, printed), f"{command.text}\n{printed}"


def test_what_is_not_run_is_marked_and_little() -> None:
    """Everything else is run."""
    blocks = {page: list(docs_run.read_blocks((ROOT / page).read_text())) for page in docs_run.PAGES}
    reasons = {page: [block.reason for block in of_page if block.reason] for page, of_page in blocks.items()}

    assert NOT_RUN == {page: of_page for page, of_page in reasons.items() if of_page}
    assert all(len(of_page) > len(reasons[page]) for page, of_page in blocks.items())


def test_samples_are_compared_and_written_again() -> None:
    """A sample with lines left out stays as short as it is."""
    printed = "one 1\ntwo 2\nthree 3\nfour 4\nfive 5\n"

    assert docs_run.matches(["one 1", "...", "four ...", "five 5"], printed)
    assert docs_run.matches(["..."], printed)
    assert not docs_run.matches(["one 1", "..."], "none\n")
    assert not docs_run.matches(["one 1", "...", "four 5", "..."], printed)
    assert ["one 1", "...", "three 3", "four 4", "..."] == docs_run.renew(
        ["one 0", "...", "three 9", "four 8", "..."], printed
    )
    page = "```\n$ count\none 0\n...\nthree 9\n...\n```\n"
    ((command,), _) = next(docs_run.read_blocks(page))
    assert docs_run.write_samples(page, [(command, printed)]) == page.replace("0", "1").replace("9", "3")


@pytest.mark.usefixtures("real_commands")
def test_a_package_that_no_index_has_is_not_installed(tmp_path: Path) -> None:
    """The stand-in for pip refuses what would fail on a fresh machine."""
    tree = docs_run.clone(tmp_path)

    def install(*words: str) -> bool:
        program = tmp_path / "environment" / "pip"
        return subprocess.run([program, "install", *words], cwd=tree, check=False, capture_output=True).returncode == 0

    assert (True, True) == (install("."), install("--quiet", "-e", ".[fleet]"))
    assert (False, False) == (install("fabricscope[fleet]"), install("-e", ".[no-such-extra]"))
