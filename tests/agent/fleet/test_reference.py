"""The page about the dataset has the tables as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.fleet.columns import schema
from agent.fleet.dataset import Manifest
from agent.fleet.reference import renew_page
from agent.fleet.tables import HISTORY, TABLES
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "fleet-dataset.md"


def test_the_page_is_current() -> None:
    text = PAGE.read_text()
    assert renew_page(text) == text, "make docs"


def test_a_page_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="no lines"):
        renew_page("# Tables")


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
