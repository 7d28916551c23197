"""The committed queries are those that Ibis makes of the questions today."""

from __future__ import annotations

import json

import ibis
import pytest

from agent.fleet.engines import connect
from agent.fleet.engines.embedded import prepared_queries
from agent.fleet.questions.outliers import outliers
from release.prepared import QUESTIONS, Noting, text
from tests.agent.fleet.small import report, take
from tests.conftest import ROOT

FILE = ROOT / "agent" / "fleet" / "engines" / "prepared.json"
COMMITTED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, object]]:
    noting = Noting()
    for question in QUESTIONS:
        question(noting)
    return noting.queries


@pytest.mark.skipif(COMMITTED["compiled_by"] != f"ibis {ibis.__version__}", reason="another Ibis writes other SQL")
def test_the_committed_file_is_current() -> None:
    """`make docs` renews it."""
    assert FILE.read_text(encoding="utf-8") == text()


def test_they_ask_the_same_tables_by_the_same_names(made) -> None:
    """With any Ibis."""
    assert {name: each["tables"] for name, each in made.items()} == {
        name: each.tables for name, each in prepared_queries().items()
    }


def test_their_answers_are_those_of_the_expressions(made, tmp_path) -> None:
    """With any Ibis, on nodes of which one is odd."""
    take(tmp_path / "dataset", *(report(f"n{n}") for n in range(6)))
    engine = connect(None, str(tmp_path / "dataset"))
    for name, each in prepared_queries().items():
        assert sorted(engine.prepared(name, lambda _: pytest.fail("it is known"))(), key=str) == sorted(
            engine._fetched(made[name]["sql"]), key=str
        ), name
        assert each.sql
    engine.close()


def test_one_that_is_not_known_is_compiled(tmp_path, monkeypatch) -> None:
    """A question that somebody just wrote."""
    take(tmp_path / "dataset", *(report(f"n{n}") for n in range(6)))
    engine = connect(None, str(tmp_path / "dataset"))
    before = outliers(engine)
    monkeypatch.setattr("agent.fleet.engines.embedded.prepared_queries", dict)

    assert before == outliers(engine)
    assert [(6,)] == engine.prepared("a new one", lambda tables: tables.latest("host").count().as_table())()
    engine.close()
