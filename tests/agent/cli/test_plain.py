"""What is read without typer is read as typer reads it."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.commands import USAGE_ERROR, _values, app
from agent.cli.plain import COMMANDS, EXPORT_FORMATS, SECONDS, SWITCH, TEXT, parse_plain

PROGRAM: Any = typer.main.get_command(app)


def read_by_typer(command: str, arguments: list[str]) -> dict[str, Any] | None:
    """The values that typer's command would run with; None: it refuses."""
    try:
        context = PROGRAM.commands[command].make_context(command, list(arguments))
    except USAGE_ERROR:
        return None
    return _values({name: value for name, value in context.params.items() if name != "help"})


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_are_those_of_typer(command: str) -> None:
    """Every flag of a command with its parameter, kind and choices; none more."""
    options = {flag: option for option in PROGRAM.commands[command].params for flag in option.opts}
    options.pop("--help", None)
    if command == "export":
        assert EXPORT_FORMATS == tuple(options.pop("form").type.choices)
    kinds: dict[str, Any] = {}
    for flag, option in options.items():
        number = SECONDS if option.type.name.startswith("float") else TEXT
        kinds[flag] = SWITCH if option.is_flag else tuple(getattr(option.type, "choices", ())) or number
        assert option.name == COMMANDS[command][flag][0]

    assert {flag: kind for flag, (_, kind) in COMMANDS[command].items()} == kinds


WORDS = st.sampled_from(
    [*sorted({flag for options in COMMANDS.values() for flag in options}), *EXPORT_FORMATS, "json", "text", "npd",
     "error", "1", "30", "0", "0.05", "007", "nan", "-1", "1e3", "٣", "a b", "", "-", "--", "-qv", "-h", "--help",
     "--format=json", "--timeout=3", "--quiet=1", "--source=", "--source=a=b", "-o=x", "-ox", "--time", "@file", "~"]
)  # fmt: skip


@given(st.sampled_from(list(COMMANDS)), st.lists(WORDS, max_size=6))
def test_any_line_is_read_alike_or_left_to_typer(command: str, words: list[str]) -> None:
    """Help, errors and whatever is unusual are typer's; no value is another."""
    plain = parse_plain([command, *words])

    assert plain is None or (command, read_by_typer(command, words)) == plain


@pytest.mark.parametrize(
    "line",
    ["scan", "scan --source x --format json --timeout 30", "check -q --as npd", "export prometheus -o x --root=/host",
     "scan --state-dir d --output=r.json", "check --report r.json --max-age 60 --fail-on error"],
)  # fmt: skip
def test_lines_of_every_day_need_no_typer(line: str) -> None:
    """What timers, monitoring and jobs call."""
    command, *rest = line.split()

    assert (command, read_by_typer(command, rest)) == parse_plain([command, *rest])


@pytest.mark.parametrize(
    "line", ["", "export", "export form", "capture -o x", "scan --help", "scan --unknown", "rules"]
)
def test_the_rest_is_left_to_typer(line: str) -> None:
    """Other commands, help, and what is wrong."""
    assert parse_plain(line.split()) is None


def test_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is then what is being typed."""
    monkeypatch.setenv("_FABRICSCOPE_COMPLETE", "complete_bash")

    assert parse_plain(["scan"]) is None
