"""What the packages bring besides: completion and the manual page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent.cli.command_tree import read_commands, walk_commands
from agent.cli.commands import app
from agent.rules.catalogue import every_rule
from release.share import BASH, FISH, MANUAL, ZSH, shared_files
from tests.conftest import ROOT

# Each shell offers from them what the commands take.


HERE = Path(__file__).parent
COMPLETE = """
source "$1"
shift
compopt() { :; }  # works while completing only
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_fabricscope
printf '%s\\n' "${COMPREPLY[@]}"
"""
CASES = {
    "a command": ("", "sc", {"scan", "schema"}),
    "a command of a group": ("profile", "", {"list", "show", "learn"}),
    "an option": ("scan", "--for", {"--format"}),
    "a short list": ("scan --format", "", {"text", "json", "ndjson", "html"}),
    "a word of it": ("check --as", "n", {"nagios", "npd"}),
    "after another option": ("--debug check --report x.json --as", "np", {"npd"}),
    "an argument": ("export --report scan", "prom", {"prometheus"}),
    "a rule": ("explain", "gpu-miss", {r.name for r in every_rule() if r.name.startswith("gpu-miss")}),
    "a built-in profile": ("profile show", "dgx-h", {"dgx-h100", "dgx-h200"}),
    "one that is told": ("scan --profile", "dgx-h", {"dgx-h100", "dgx-h200"}),
    "a folder": ("scan --state-dir", "docs/dec", {"docs/decisions"}),
    "a file": ("diff", "CHANGE", {"CHANGELOG.md"}),
    "a file for an option": ("scan --config", "CHANGE", {"CHANGELOG.md"}),
    "the second of a list": ("scan --only", "pci,num", {"pci,numa"}),
}


def test_every_command_and_option_is_in_every_file() -> None:
    """In the words of each shell."""
    texts = {name: text for name, text in shared_files().items() if name in (BASH, ZSH, FISH)}
    assert 3 == len(texts)
    for name, text in texts.items():
        for command in walk_commands(read_commands(app)):
            for long in (option.names[-1] for option in command.options):
                word = f"-l {long[2:]}" if name.endswith(".fish") else long
                assert word in text, (name, command.name, long)


def offered(argv: list[str]) -> set[str]:
    """What a shell prints, a candidate a line."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, timeout=100)
    assert ("", 0) == (done.stderr, done.returncode)
    return {line for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("case", CASES)
def test_bash(case: str, share: dict[str, Path], real_commands: None) -> None:
    """By its own function, as bash calls it."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    before, begun, expected = CASES[case]
    words = ["fabricscope", *before.split(), begun]

    assert expected == offered(["bash", "-c", COMPLETE, "bash", str(share[BASH]), *words])


def test_bash_completes_after_an_equals_sign(share: dict[str, Path], real_commands: None) -> None:
    """Which bash makes a word of its own."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    words = ["fabricscope", "scan", "--format", "=", "j"]

    assert {"json"} == offered(["bash", "-c", COMPLETE, "bash", str(share[BASH]), *words])


@pytest.mark.parametrize("case", CASES)
def test_fish(
    case: str, share: dict[str, Path], real_commands: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `complete -C`, which prints what TAB would offer."""
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    monkeypatch.setenv("HOME", str(tmp_path))
    before, begun, expected = CASES[case]
    line = " ".join(("fabricscope", *before.split(), begun))
    result = offered(["fish", "-N", "-c", f"source {share[FISH]}; complete -C '{line}'"])

    assert expected <= {item.partition("\t")[0].rstrip("/") for item in result}
    assert all(item.startswith(begun) for item in result)


@pytest.mark.parametrize("case", CASES)
def test_zsh(
    case: str, share: dict[str, Path], real_commands: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an interactive shell of its own: completion works nowhere else."""
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    monkeypatch.setenv("HOME", str(tmp_path))
    before, begun, expected = CASES[case]
    line = " ".join(("fabricscope", *before.split(), begun))
    result = offered(["zsh", "-f", str(HERE / "zsh_matches.zsh"), str(share[ZSH].parent), line])

    last = {item.rpartition(",")[2].rpartition("/")[2] for item in expected}  # zsh tells the part that it completes
    assert last == result & last
    assert len(result) < 12 or not begun


# The manual page: whole, and without a complaint of what renders it.


def test_mandoc_has_no_complaint(share: dict[str, Path], real_commands: None) -> None:
    """At its strictest level: style."""
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")

    assert "" == subprocess.run(["mandoc", "-Tlint", share[MANUAL]], capture_output=True, text=True, check=False).stdout


def test_groff_has_no_complaint_and_shows_every_command_and_option(share: dict[str, Path], real_commands: None) -> None:
    """As `man -l` prints it, 80 columns wide."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man and groff are not installed")
    done = subprocess.run(
        ["man", "--warnings", "-l", str(share[MANUAL])], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    output = " ".join(done.stdout.replace("‐\n", "").split())

    assert ("", 0) == (done.stderr, done.returncode)
    assert 80 >= max(len(line) for line in done.stdout.splitlines())
    for command in walk_commands(read_commands(app)):
        if command.words and not command.commands:
            assert f" fabricscope {command.name} " in output
        for option in command.options:
            assert ", ".join(option.names) in output
