"""The worked patches of docs/adding-*.md: each applies to this tree, changes few files, and passes the checks it names.

The last block of commands of such a page is what a person types; the test types it in a copy of the tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted(path.name for path in (ROOT / "docs").glob("adding-*.md"))
# that a patch may change; goldens are not counted
EXISTING_FILES = {"adding-a-gpu-vendor.md": 10, "adding-a-fact.md": 3}
EXISTING_FILES_OF_OTHERS = 5
BLOCK = re.compile(r"^```\n(git apply docs/patches/[\w-]+\.patch\n.*?)```", re.MULTILINE | re.DOTALL)


def commands_of(page: str) -> list[str]:
    """What the page's block says to type; the first line applies the patch."""
    blocks = BLOCK.findall((ROOT / "docs" / page).read_text())
    assert 1 == len(blocks), page
    return [line.partition("  #")[0].rstrip() for line in blocks[0].splitlines()]


def patch_of(page: str) -> Path:
    """The patch that the page applies."""
    return ROOT / commands_of(page)[0].removeprefix("git apply ")


@pytest.fixture
def copy(tmp_path: Path, real_commands: None) -> Path:
    """The files of this tree that git would hold."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    for name in listing.stdout.split("\0"):
        source, target = ROOT / name, tmp_path / "tree" / name
        if name and (source.is_file() or source.is_symlink()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return tmp_path / "tree"


@pytest.mark.parametrize("page", PAGES)
def test_a_patch_changes_few_existing_files(page: str) -> None:
    """A kind of thing that is often added has few places."""
    patch = patch_of(page).read_text()
    changed = re.findall(r"^--- a/(.+)$", patch, re.MULTILINE)
    counted = [name for name in changed if not name.startswith("fixtures/expected/")]

    assert changed
    assert len(counted) <= EXISTING_FILES.get(page, EXISTING_FILES_OF_OTHERS), counted


def test_patches_apply_to_this_tree(real_commands: None) -> None:
    """All of them in a moment, before the checks of their pages are run."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    patches = sorted(str(path) for path in (ROOT / "docs" / "patches").glob("*.patch"))
    refused = {
        patch: done.stderr
        for patch in patches
        if (
            done := subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, capture_output=True, check=False)
        ).returncode
    }

    assert patches
    assert {} == refused


@pytest.mark.release
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_a_patch_applies_and_passes_the_checks_of_its_page(page: str, copy: Path) -> None:
    """As typed, with the interpreter that runs here; what is imported is the copy's."""
    apply, *checks = commands_of(page)
    (copy / ".venv").symlink_to(Path(sys.executable).parents[1])  # all of it: an interpreter finds its packages so
    outer = ("GIT_", "PYTEST_", "UPDATE_GOLDENS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    environment |= {"PYTHONPATH": str(copy), "PYTEST_ADDOPTS": "-n 0 -p no:cacheprovider"}

    assert checks
    for command in (apply, *checks):
        done = subprocess.run(
            command, shell=True, cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
        assert 0 == done.returncode, f"{command}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
