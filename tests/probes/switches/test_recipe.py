"""The commands of `--recipe`: each has a reader, and none changes a switch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from probes.switches.collection import read_collection
from probes.switches.recipe import RECIPES, RecipeLine, format_recipe
from tests.probes.switches.outputs import OUTPUTS

LINES = [(system, line) for system, lines in RECIPES.items() for line in lines]


@pytest.mark.parametrize(("system", "line"), LINES, ids=[f"{system} {line.output}" for system, line in LINES])
def test_every_command_has_a_reader(tmp_path: Path, system: str, line: RecipeLine) -> None:
    """A sample of its output, in the file that the recipe names, is read as that output."""
    folder = tmp_path / "leaf1"
    folder.mkdir()
    name = line.file.replace("PORT", "swp1")
    sample = OUTPUTS[line.output, name.rpartition(".")[2] if line.output.startswith("show") else ""]
    (folder / name).write_text(sample if isinstance(sample, str) else json.dumps(sample))

    [file] = read_collection([str(folder)]).files

    assert file.read_as == line.output


@pytest.mark.parametrize("system", RECIPES)
def test_commands_only_read(system: str) -> None:
    commands = format_recipe(system)

    assert not re.search(r"\b(set|apply|config (?!show)|clear|reload|start|rm)\b", commands)
    assert all(line.split("#")[0] == line or line.startswith("#") for line in commands.splitlines())
