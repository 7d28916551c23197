"""Every fact of a report has a reader: a rule, an output, a command, or the comparison of peers; else a reason."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from agent.model.peers import find_word
from agent.model.report import Report
from tests.conftest import ROOT

# What only a person reads, in the JSON of the report
UNREAD = {
    "Ascend.driver_version": "no public table states which firmware a driver needs",
    "Ascend.firmware_version": "no public table states which firmware a driver needs",
    "CxlRegion.granularity_bytes": "any granularity works; which is fast depends on the job",
    "FabricNeighbor.could_rate_gbit_s": "its width and speed, which are judged, give it",
}
MAKERS = ("model", "assemble")  # packages that declare facts and fill them in


def list_structs(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Every struct that a report holds, by name."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint.__name__ not in found:
        found[hint.__name__] = hint
        for inner in typing.get_type_hints(hint).values():
            list_structs(inner, found)
    for inner in typing.get_args(hint):
        list_structs(inner, found)
    return found


def list_unread() -> Iterator[str]:
    """The fields that no module reads as an attribute, and that are not compared among peers."""
    folders = [path for path in (ROOT / "agent").iterdir() if path.name not in MAKERS]
    paths = [file for folder in folders for file in (folder.rglob("*.py") if folder.is_dir() else [folder])]
    read = {name for path in paths if path.suffix == ".py" for name in re.findall(r"\.([a-z_0-9]+)", path.read_text())}
    for name, struct in list_structs(Report, {}).items():
        hints = typing.get_type_hints(struct, include_extras=True)
        for field in struct.__struct_fields__:
            word = find_word(hints[field])
            if field not in read and (word is None or word.word == "free"):
                yield f"{name}.{field}"


def test_every_fact_has_a_reader() -> None:
    """A new one without a reader needs a reason, and one that has got a reader needs none any more."""
    assert sorted(UNREAD) == sorted(list_unread())
