"""A command that is interrupted, in the way of another, or without colours."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.commands import USAGE_ERROR, app
from agent.cli.main import run
from agent.cli.plain import COMMANDS, ENVIRONMENT, EXPORT_FORMATS, SECONDS, SWITCH, TEXT, TEXTS, parse_plain
from agent.cli.program import build_full_program
from fixtures.build import write_capture
from probes.locks import FOLDER_VARIABLE
from tests.conftest import ROOT

# Ctrl-C: one line, the shell's exit code, and no file half-written.


@pytest.mark.usefixtures("real_commands")
def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    """While it waits for a profile from a pipe that nobody writes to."""
    source = tmp_path / "profile.toml"
    os.mkfifo(source)
    write_capture("cpu-only-2s", None, tmp_path / "host")
    command = [sys.executable, "-m", "fabricscope", "scan", "--source", str(tmp_path / "host")]
    command += ["--profile", str(source), "--output", str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    writer = _opened(source, process)
    assert process.stderr is not None
    notice = process.stderr.readline()  # after some seconds without a word
    output = _interrupt(process)
    os.close(writer)

    assert f"warning: {source}: waiting for what is written to this pipe\n" == notice
    assert (130, "error: interrupted\n") == (process.returncode, output)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize(
    "arguments",
    [("job",), ("fleet", "ingest", "--dataset", "d"),
     ("recommend", "--profile", "dgx-h100", "--measured"), ("fleet", "topology", "--fabric"),
     ("ship", "--config"), ("receive", "--spool", "spool", "--plain", "--listen", "127.0.0.1:0", "--clients")],
)  # fmt: skip
def test_a_command_that_waits_for_a_pipe_names_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Also where the pipe is no report, profile or configuration."""
    source = tmp_path / "pipe"
    os.mkfifo(source)
    command = [sys.executable, "-m", "fabricscope", *arguments, str(source)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr is not None
    notice = process.stderr.readline()
    process.kill()
    process.communicate()

    assert f"warning: {source}: waiting for what is written to this pipe\n" == notice


def _interrupt(process: subprocess.Popen[str]) -> str:
    """What it prints; Ctrl-C again where it came just before a read: Python looks for signals before one and after."""
    for seconds in (5, 5, 5, 60):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[1]
    raise AssertionError("it goes on after four interrupts")


def _opened(source: Path, process: subprocess.Popen[str]) -> int:
    """The writing end, once the program has opened the reading one."""
    for _ in range(600):
        try:
            return os.open(source, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    raise AssertionError("the program did not open its profile")


def test_a_profile_of_a_pipe_is_read_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`<(ssh HOST cat FILE)`: it is checked before the run, and used after it."""
    write_capture("cpu-only-2s", None, tmp_path / "host")
    reading, writing = os.pipe()
    os.write(writing, b'name = "own"\n')
    os.close(writing)
    try:
        code = run(["scan", str(tmp_path / "host"), "--format", "json", "--profile", f"/dev/fd/{reading}"])
    finally:
        os.close(reading)
    assert 0 == code
    assert "own" == json.loads(capsys.readouterr().out)["platform"]["profile"]


# Which process holds the lock of a probe: told on stderr when a run is refused by it, and in no report.


HOLD = """
import sys, time
from probes.locks import Lock, run_folder, acquire_lock
lock = acquire_lock(run_folder(), "numa")
assert isinstance(lock, Lock)
lock.name_holder(__import__("os").getpid(), -100.0)  # long over its bound
print("held", flush=True)
time.sleep(60)
"""


def test_a_process_that_holds_a_lock_is_named_and_the_fact_is_read(
    real_commands: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name, user, pid, state and age of a process that an earlier run could not end."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "run"))
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        assert 0 == run(["scan", "--only", "numa", "--format", "json"])
    finally:
        holder.kill()
        holder.communicate()

    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    pid = holder.pid
    place = re.escape(str(tmp_path / "run" / "numa.lock"))
    assert re.fullmatch(
        r"warning: numa: a process that an earlier run left, read beside it: "
        rf"\S+ of \S+, pid {pid}, state S \(sleeping\)(, in \w+)?, running for \d+ s, holds {place}",
        line,
    )
    (probe,) = (probe for probe in json.loads(output.out)["probes"] if probe["name"] == "numa")
    assert ("ok", False) == (probe["status"], probe["hung"])
    assert "running for" not in output.out


# What is read without typer is read as typer reads it.


PROGRAM: Any = typer.main.get_command(build_full_program(app))


def read_by_typer(command: str, arguments: list[str]) -> dict[str, Any] | None:
    """The values that typer's command would run with; None: it refuses."""
    try:
        context = find_command(command).make_context(command, list(arguments))
    except USAGE_ERROR:
        return None
    several = {param.name for param in find_command(command).params if param.nargs < 0 or _may_come_again(param)}
    values = {name: tuple(value or ()) if name in several else value for name, value in context.params.items()}
    return {name: value for name, value in values.items() if name != "help"}


def find_command(name: str) -> Any:
    """What typer made of it; of a command of `fleet`, too."""
    found = PROGRAM
    for word in name.split():
        found = found.commands[word]
    return found


def _may_come_again(param: Any) -> bool:
    return bool(getattr(param, "multiple", False))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_are_those_of_typer(command: str) -> None:
    """Every flag of a command with its parameter, kind and choices; none more, but what is left to typer."""
    options = {flag: option for option in find_command(command).params for flag in option.opts}
    for argument in ("path", "paths", "name"):  # of `scan`, `job` and `fleet findings`, by their place
        options.pop(argument, None)
    for left in ("--help", "--majority", "--fewest"):
        options.pop(left, None)
    if command == "export":
        assert EXPORT_FORMATS == tuple(options.pop("form").type.choices)
    kinds: dict[str, Any] = {}
    for flag, option in options.items():
        number = SECONDS if option.type.name.startswith("float") else TEXTS if option.multiple else TEXT
        kinds[flag] = SWITCH if option.is_flag else tuple(getattr(option.type, "choices", ())) or number
        assert option.name == COMMANDS[command][flag][0]
        assert option.envvar == (ENVIRONMENT.get(option.name) if command.startswith("fleet ") else None)

    assert {flag: kind for flag, (_, kind) in COMMANDS[command].items()} == kinds


WORDS = st.sampled_from(
    [*sorted({flag for options in COMMANDS.values() for flag in options}), *EXPORT_FORMATS, "json", "text", "npd",
     "error", "1", "30", "0", "0.05", "007", "nan", "-1", "1e3", "٣", "a b", "", "-", "--", "-qv", "-h", "--help",
     "--format=json", "--timeout=3", "--quiet=1", "--source=", "--source=a=b", "-o=x", "-ox", "--time", "@file", "~"]
)  # fmt: skip


@given(st.sampled_from(list(COMMANDS)), st.lists(WORDS, max_size=6))
def test_any_line_is_read_alike_or_left_to_typer(command: str, words: list[str]) -> None:
    """Help, errors and whatever is unusual are typer's; no value is another."""
    plain = parse_plain([*command.split(), *words])

    assert plain is None or (command, read_by_typer(command, words)) == plain


@pytest.mark.parametrize(
    "line",
    ["scan", "scan --source x --format json --timeout 30", "check -q --as npd", "export prometheus -o x --root=/host",
     "scan --state-dir d --output=r.json", "scan -", "scan dmesg.txt --format json", "job run.log --timeout 60",
     "job a.log b.log --report r.json --report=s.json", "scan --source - -q",
     "check --report r.json --max-age 60 --fail-on error", "fleet outliers --dataset d", "fleet findings gpu[1-8]",
     "fleet summary --where cluster=a --where class=H100 --format=csv -o s.csv", "fleet duplicates --no-color"],
)  # fmt: skip
def test_lines_of_every_day_need_no_typer(line: str) -> None:
    """What timers, monitoring and jobs call, and questions of the fleet."""
    words = line.split()
    size = 2 if words[0] == "fleet" else 1
    command, rest = " ".join(words[:size]), words[size:]

    assert (command, read_by_typer(command, rest)) == parse_plain(words)


@pytest.mark.parametrize("value", ["d", "", "-d"])
@pytest.mark.parametrize("words", [[], ["--dataset", "other"]])
def test_a_dataset_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, words: list[str]) -> None:
    """An empty value is none; one that looks like an option is left to typer."""
    monkeypatch.setenv("FABRICSCOPE_DATASET", value)
    plain = parse_plain(["fleet", "outliers", *words])

    assert plain == (None if value == "-d" else ("fleet outliers", read_by_typer("fleet outliers", words)))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "export",
        "export form",
        "capture -o x",
        "scan --help",
        "scan --unknown",
        "rules",
        "job",
        "scan a b",
        "fleet",
        "fleet html",
        "fleet outliers --majority 0.9",
        "fleet outliers x",
        "fleet findings a b",
    ],
)
def test_the_rest_is_left_to_typer(line: str) -> None:
    """Other commands, help, and what is wrong."""
    assert parse_plain(line.split()) is None


def test_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is then what is being typed."""
    monkeypatch.setenv("_FABRICSCOPE_COMPLETE", "complete_bash")

    assert parse_plain(["scan"]) is None
