"""Every command of the fleet, and whether it leaves out what the fleet's silence file is for."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from agent.cli.fleet import fleet
from agent.cli.main import run
from tests.agent.fleet.questions.nodes import finding, node
from tests.agent.fleet.small import take

HONOURED = {  # command -> its arguments; all but the page leave the finding out
    "findings": [],
    "html": [],
    "news": ["--since", "2026-01-01"],
    "repeat": ["--since", "2026-01-01", "--times", "2"],
    "expected": ["{here}/nodes", "--drain-at", "error", "--format", "slurm-drain"],
    "export": ["prometheus"],
}
OTHERS = {  # command -> what it is about instead
    "summary": "verdicts of the nodes' own reports",
    "lossless": "what switches have set",
    "drift": "what changed in reports",
    **dict.fromkeys(("outliers", "duplicates", "topology", "cables"), "no finding"),
    **dict.fromkeys(("query", "load"), "tables as nodes reported them; finding.silenced has what nodes silenced"),
    **dict.fromkeys(("ingest", "pull", "forget"), "the dataset"),
}
MARK = {"export": 'rule="bad-link"', "html": "silenced until 2999-12-31: known"}


def test_each_command_is_one_or_the_other() -> None:
    callbacks = {command.name: command.callback for command in fleet.registered_commands}
    assert callbacks.keys() == HONOURED.keys() | OTHERS.keys()
    assert {
        name
        for name, callback in callbacks.items()
        if callback and "silences" in inspect.signature(callback).parameters
    } == HONOURED.keys()


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize("command", HONOURED)
def test_what_is_silenced(
    command: str, by: str, tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [finding("bad-link", severity="error")]
    reports = [
        node(f"n{n}", hour, findings=found if n == 3 and hour != 1 else []) for hour in range(3) for n in range(5)
    ]
    take(tmp_path / "d", *reports)
    (tmp_path / "nodes").write_text("n[0-4]\n")
    silences = tmp_path / "silences.toml"
    silences.write_text(
        '[[silence]]\nrule = "bad-link"\nnode = "n3"\nreason = "known <7>"\nticket = "OPS-1"\nuntil = 2999-12-31\n'
    )
    words = [
        "fleet",
        command,
        *(word.format(here=tmp_path) for word in HONOURED[command]),
        "--dataset",
        f"{tmp_path}/d",
    ]
    out = [_answer(words, capfdbinary)]
    if by == "option":
        words += ["--silences", str(silences)]
    else:
        monkeypatch.setenv("FABRICSCOPE_SILENCES", str(silences))
    out.append(_answer(words, capfdbinary))
    mark = MARK.get(command, "bad-link")
    assert (mark in out[0], mark in out[1]) == ((False, True) if command == "html" else (True, False))


def _answer(words: list[str], capfdbinary: Any) -> str:
    assert run(words) in ((0, 1) if words[1] == "news" else (0,))
    return capfdbinary.readouterr().out.decode()
