"""Runs a page of the documentation as a reader would, command by command in a fresh clone, and compares the samples.

A block of a page without a language, or `sh`, holds commands. A line `$ COMMAND` in it is followed by what that command
prints, `...` standing for whatever is not shown. A block that needs root, systemd or another host has the line
`<!-- not run: REASON -->` above it. Other languages (`text`, `toml`) are no commands.

`python -m tests.release.docs_run` writes the printed samples of all pages again.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

PAGES = ("README.md", "docs/tutorial.md", "docs/tutorial-fleet.md", "docs/installing.md")
SHORTER = {"--interval 60": "--interval 1"}  # what would only take longer
LEFT_OUT = "..."
_FENCE = re.compile(r"^(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.S | re.M)
_NOT_CLONED = re.compile(r"\.git|\.venv|build|dist|.*cache.*|.*egg-info")

# An environment that is made in no time: its programs run this checkout, and its pip installs only what a fresh machine
# could install: a folder with a pyproject.toml and extras that it has. No index has a package fabricscope.
_PIP = """
import pathlib, re, sys
words = [word for word in sys.argv[1:] if word not in ("-e", "--editable", "--quiet", "--disable-pip-version-check")]
folder, _, extras = words[-1].partition("[")
project = pathlib.Path(folder) / "pyproject.toml"
if words[0] != "install" or not project.is_file():
    sys.exit(f"ERROR: No matching distribution found for {words[-1]}")
names = filter(None, extras.strip("]").split(","))
unknown = [name for name in names if not re.search(rf"^{name} = ", project.read_text(), re.M)]
sys.exit(f"ERROR: no extra {unknown}" if unknown else 0)
"""
_PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") mkdir -p "$3/bin" && exec cp {made}/* "$3/bin/" ;;
  "-m pip") shift 2; exec {python} {made}/pip.py "$@" ;;
  "-m compileall") exit 0 ;;
esac
exec {python} "$@"
"""
_PROGRAM = """#!{python}
import sys
sys.path.insert(0, "{tree}")
from fabricscope import console
if __name__ == "__main__":
    console()
"""


class PageCommand(NamedTuple):
    """One command of a page, or a block of them, and the sample of what it prints; None: no sample."""

    text: str
    sample: list[str] | None = None


class PageBlock(NamedTuple):
    """A block of commands; `reason`: why it is not run."""

    commands: list[PageCommand]
    reason: str | None


def read_blocks(page: str) -> Iterator[PageBlock]:
    """Every block of commands of a page, in order."""
    for match in _FENCE.finditer(page):
        if match["language"] in ("", "sh"):
            yield PageBlock(list(_read_commands(match["text"])), match["reason"])


def _read_commands(text: str) -> Iterator[PageCommand]:
    if not text.startswith("$ "):
        yield PageCommand(text)
        return
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *sample = session.splitlines()
        yield PageCommand(command, sample)


def clone(folder: Path) -> Path:
    """What a fresh clone holds, below this folder; files of the checkout are linked, not copied."""
    tree = folder / "clone"
    tree.mkdir()
    for path in ROOT.iterdir():
        if not _NOT_CLONED.fullmatch(path.name):
            (tree / path.name).symlink_to(path)
    made = folder / "environment"
    made.mkdir()
    programs = {
        "python": _PYTHON.format(python=sys.executable, made=made),
        "pip": f'#!/bin/sh\nexec {sys.executable} {made}/pip.py "$@"\n',
        "pip.py": _PIP,
        "fabricscope": _PROGRAM.format(python=sys.executable, tree=tree),
        "pytest": "#!/bin/sh\n",  # the suite is what runs this
    }
    for name, text in programs.items():
        (made / name).write_text(text)
        (made / name).chmod(0o755)
    (folder / "bin").mkdir()
    for name in ("python3", *(f"python3.{minor}" for minor in range(10, 15))):
        (folder / "bin" / name).symlink_to(made / "python")
    return tree


def run_page(page: str, folder: Path) -> list[tuple[PageCommand, str]]:
    """Each command of a page that is run, in order, with what it printed. Raises AssertionError where one fails."""
    tree = clone(folder)
    commands = [command for block in read_blocks(page) if block.reason is None for command in block.commands]
    script = "set -e\n" + "".join(
        f"{{\n{_localize(command.text, folder)}\n}} >{folder}/{number}.out 2>&1 </dev/null\n"
        f"touch {folder}/{number}.done\n"
        for number, command in enumerate(commands)
    )
    subprocess.run(["bash"], input=script, cwd=tree, env=_environment(folder), text=True, check=False)
    printed = []
    for number, command in enumerate(commands):
        output = (folder / f"{number}.out").read_text() if (folder / f"{number}.out").exists() else ""
        assert (folder / f"{number}.done").exists(), f"{command.text}\n{output[-2000:]}"
        printed.append((command, output.replace(f"{tree}/", "")))
    return printed


def _localize(text: str, folder: Path) -> str:
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text.replace("/opt/", f"{folder}/opt/")


def _environment(folder: Path) -> Mapping[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("FABRICSCOPE_", "MAKE"))}
    return known | {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "COLUMNS": "100", "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }  # fmt: skip


def matches(sample: list[str], printed: str) -> bool:
    """Whether the sample is what is printed; `...` is any text within a line, and as a line any lines."""
    parts = [
        r"(?:.*\n)*?"
        if line.strip() == LEFT_OUT
        else ".*".join(map(re.escape, line.rstrip().split(LEFT_OUT))) + r" *\n"
        for line in sample
    ]
    lines = "".join(f"{line}\n" for line in printed.splitlines())
    return re.fullmatch("".join(parts), lines) is not None


def renew(sample: list[str], printed: str) -> list[str]:
    """The sample with the lines that are printed now: each run of lines from the line most like its first, as long."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if LEFT_OUT not in map(str.strip, sample):
        return lines
    result, place = [], 0
    for left_out, run in groupby(sample, key=lambda line: line.strip() == LEFT_OUT):
        shown = list(run)
        if left_out:
            result.append(LEFT_OUT)
            continue
        near = difflib.get_close_matches(shown[0], lines[place:], 1, 0.3)
        place = lines.index(near[0], place) if near else place
        result += lines[place : place + len(shown)]
        place += len(shown)
    return result


def write_samples(page: str, printed: Iterable[tuple[PageCommand, str]]) -> str:
    """The page with samples that match."""
    for command, output in printed:
        if command.sample is not None and not matches(command.sample, output):
            old = "\n".join([f"$ {command.text}", *command.sample])
            page = page.replace(old, "\n".join([f"$ {command.text}", *renew(command.sample, output)]), 1)
    return page


def main() -> None:
    """Write the samples of all pages again."""
    for name in PAGES:
        path = ROOT / name
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(write_samples(path.read_text(), run_page(path.read_text(), Path(folder))))


if __name__ == "__main__":
    main()
