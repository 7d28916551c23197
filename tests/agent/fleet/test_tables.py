"""The tables of a dataset: keys, history, and how the page for people describes them."""

from __future__ import annotations

from pathlib import Path

from agent.fleet.columns import schema
from agent.fleet.dataset import Manifest
from agent.fleet.tables import CHANGE, HISTORY, SIGHTING, TABLES, Table
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "fleet-dataset.md"
BEGIN, END = "<!-- tables: written by make docs -->", "<!-- end of tables -->"


def describe_tables() -> str:
    """The page, with every table and its columns as they are now."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin
    assert end
    tables = "\n".join(_describe(table) for table in (*TABLES.values(), CHANGE, SIGHTING))
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def _describe(table: Table) -> str:
    """Volatile columns are in italics."""
    key = ", ".join(f"`{name}`" for name in ("node", *table.key))
    note = "" if table.history else " No history."
    lines = [f"### {table.name}", "", f"{table.about} Key: {key}.{note}", "", "| column | type | |", "|---|---|---|"]
    for column in table.columns[1:]:
        name = f"*{column.name}*" if column.volatile else f"`{column.name}`"
        lines.append(f"| {name} | {column.type} | {column.about.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, ""])


def test_columns_are_told_once_and_keys_are_columns() -> None:
    for table in (*TABLES.values(), *HISTORY.values()):
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names)), table.name
        assert set(table.key) <= set(names), table.name
        assert names[0] == "node"


def test_history_has_its_moment() -> None:
    for name in HISTORY:
        assert schema(name, True).names[:1] == ["node"]
        assert schema(name, True).names.count("observed_at") == 1
    assert Manifest().buckets == 1


def test_the_way_to_ask_is_the_one_that_is_tested() -> None:
    """tests/agent/fleet/small.py asks as the page says."""
    small = (Path(__file__).parent / "small.py").read_text()
    for words in ("max(observed_at) AS observed_at", "SEMI JOIN since USING (node, observed_at)"):
        assert words in PAGE.read_text()
        assert words in small
