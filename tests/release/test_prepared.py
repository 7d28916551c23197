"""The committed queries are those that Ibis makes of the questions today."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime

import ibis
import pytest

from agent.fleet.engines import connect
from agent.fleet.engines.embedded import prepared_queries
from agent.fleet.engines.query import Choice, Dated, Query
from agent.fleet.questions.drift import drift
from agent.fleet.questions.duplicates import duplicates
from agent.fleet.questions.findings import findings
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary
from release.prepared import prepared, queries, text
from tests.agent.fleet.questions.conftest import made
from tests.conftest import ROOT

FILE = ROOT / "agent" / "fleet" / "engines" / "prepared.json"
COMMITTED = json.loads(FILE.read_text(encoding="utf-8"))
QUERIES = {query.name: query for query in queries()}
SINCE = datetime(2026, 1, 15, 8, 30)  # noqa: DTZ001  # UTC without a zone
QUESTIONS = {
    "summary": summary,
    "outliers": outliers,
    "findings": findings,
    "duplicates": duplicates,
    "drift": lambda tables: drift(tables, SINCE),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Nodes of which some are odd, silent, doubled."""
    place = tmp_path_factory.mktemp("prepared")
    made(place, 120, 5, {"gb200-ib": 2, "l40s-roce": 1})
    return str(place / "dataset")


@pytest.fixture
def engine(dataset):
    found = connect(None, dataset)
    yield found
    found.close()


@pytest.mark.skipif(COMMITTED["compiled_by"] != f"ibis {ibis.__version__}", reason="another Ibis writes other SQL")
def test_the_committed_file_is_current() -> None:
    """`make docs` renews it."""
    assert FILE.read_text(encoding="utf-8") == text()


def test_no_two_have_one_name() -> None:
    assert len(QUERIES) == len(list(queries()))


def test_they_ask_the_same_tables_by_the_same_names() -> None:
    """With any Ibis."""
    now = {name: prepared(query) for name, query in QUERIES.items()}
    assert {name: (each["tables"], each.get("asked", [])) for name, each in now.items()} == {
        name: (each.tables, each.asked) for name, each in prepared_queries().items()
    }


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if isinstance(query, Query)])
def test_a_query_gives_the_rows_of_its_expression(engine, name) -> None:
    assert sorted(engine.begun(QUERIES[name])(), key=str) == sorted(engine.rows(QUERIES[name].make(engine)), key=str)


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if isinstance(query, Choice)])
def test_a_choice_gives_the_rows_of_its_expression(engine, name, monkeypatch) -> None:
    """All values of its keys but some, nulls with them, are asked for: by one join, and written into queries."""
    choice = QUERIES[name]
    keyed = []
    choice.make(engine, lambda table: keyed.append(table.select(*choice.keys).distinct()) or table)
    values = sorted(engine.rows(keyed[0]), key=str)[::3]
    joined = engine.chosen(choice, values)
    monkeypatch.setattr("agent.fleet.engines.embedded.prepared_queries", dict)
    written = engine.chosen(choice, values)

    assert sorted(joined, key=str) == sorted(written, key=str)
    assert not values or joined or choice.name.endswith("of nodes")
    assert not engine.chosen(choice, [])


@pytest.mark.parametrize("hour", [7, 8, 9, 10])
@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if isinstance(query, Dated)])
def test_a_dated_one_gives_the_rows_of_its_expression(engine, name, hour, monkeypatch) -> None:
    """The fleet was looked at twice: at eight, and at nine."""
    moment = datetime(2026, 1, 15, hour, 30)  # noqa: DTZ001  # UTC without a zone
    known = engine.since(QUERIES[name], moment)()
    monkeypatch.setattr("agent.fleet.engines.embedded.prepared_queries", dict)
    assert sorted(known, key=str) == sorted(engine.since(QUERIES[name], moment)(), key=str)
    assert known or hour != 8 or name not in ("drift: silent", "drift: moments", "drift: host", "drift: NIC")


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_the_same_without_any(engine, question, monkeypatch) -> None:
    before = QUESTIONS[question](engine)
    monkeypatch.setattr("agent.fleet.engines.embedded.prepared_queries", dict)
    assert before == QUESTIONS[question](engine)


@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_does_without_ibis(dataset, question) -> None:
    """It would take longer to come than many an answer."""
    more = ["--since", "2026-01-15T08:30:00Z"] if question == "drift" else []
    code = (
        "import sys\nfrom agent.cli.main import run\n"
        f"rc = run(['fleet', {question!r}, '--dataset', {dataset!r}, *{more!r}])\n"
        "sys.exit(rc or ('ibis' in sys.modules and 77))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_one_that_is_not_known_is_compiled(engine) -> None:
    """A question that somebody just wrote."""
    one = Query("a new one", lambda tables: tables.latest("host").aggregate(n=tables.latest("host").count()))
    some = Choice("a new choice", ("node",), lambda tables, those: those(tables.latest("host")).select("node"))
    ((count,),) = engine.begun(one)()
    assert count > 100
    assert engine.chosen(some, [("no such node",)]) == []
