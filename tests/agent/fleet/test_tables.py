"""The tables of a dataset: keys, history, and how the page for people describes them."""

from __future__ import annotations

from pathlib import Path

from agent.fleet.columns import schema
from agent.fleet.dataset import Manifest
from agent.fleet.tables import FROM_MODEL, HISTORY, TABLES, Column
from agent.fleet.tables import PAGE as TABLES_PAGE
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "fleet-dataset.md"


def describe_tables() -> str:
    """The page, with the columns that the model states as they are now."""
    page = Path(TABLES_PAGE).read_text()
    for name, columns in FROM_MODEL.items():
        before, head, rest = page.partition(f"\n## {name}\n")
        begin, rule, rows = rest.partition("|---|---|---|\n")
        page = "".join((before, head, begin, rule, *map(_describe, columns), rows[rows.index("\n\n") + 1 :]))
    return page


def _describe(column: Column) -> str:
    """Volatile columns are in italics."""
    name = f"*{column.name}*" if column.volatile else f"`{column.name}`"
    return f"| {name} | {column.type} | {column.about} |\n"


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
