"""Queries, and their statements in the SQL of engines that no test can start; answers of a server, bounded in rows,
bytes and time, with the reason in one line.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import resources
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from agent.fleet.engines import connect, schema, translated
from agent.fleet.engines.engine import EngineRefused, Where, narrow, views
from agent.fleet.engines.query import (
    LookupQuery,
    Query,
    Relation,
    Row,
    identifiers,
    lookup,
    matching,
    query,
    quote,
    statement,
    table_query,
)
from agent.fleet.engines.translated import AnswerSize, Translated, translate
from agent.fleet.known_duplicates import NOWHERE_ELSE
from agent.fleet.questions import drift, drift_rows, identities, summary
from agent.fleet.table import INT, TEXT
from tests.agent.fleet.engines.statements import statements
from tests.agent.fleet.questions.conftest import made
from tests.agent.fleet.small import report, take

# The SQL of the questions: every statement runs, is used, and is written by its rules.


STATEMENTS = statements()
FILES = [*(resources.files("agent.fleet") / "queries").iterdir()]
QUESTIONS = ("summary", "outliers", "findings", "duplicates", "drift", "html")
ROWS = [("a", 1, None), ("a", None, "x"), (None, 1, "x"), ("b", 2, "y"), ("b", 3, None), (None, None, None)]
DIALECTS = ("clickhouse", "postgres", "bigquery", "snowflake", "trino")
UNKNOWN = ("array_to_string", "list_sort", "epoch", "contains")  # functions of DuckDB that others have by other names


@pytest.fixture(scope="module")
def dataset(make_once):
    """Nodes of which some are odd, silent, doubled."""
    place, _ = make_once("queries", lambda place: made(place, 120, 5, {"gb200-ib": 2, "l40s-roce": 1}).truth)
    return str(place / "dataset")


@pytest.fixture(scope="module")
def engine(dataset):
    result = connect(None, dataset)
    yield result
    result.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_runs(engine, name):
    """And of some nodes no rows are given that are not of all."""
    everywhere = engine.rows(STATEMENTS[name])
    some = narrow(engine, Where(nodes=("gpu0003", "gpu0004"))).rows(STATEMENTS[name])
    assert len(some) <= len(everywhere)
    assert not narrow(engine, Where(nodes=("no such node",))).rows(table_query("host"))


def test_every_statement_of_the_files_is_used():
    used = "\n".join([*(sql.sql for sql in STATEMENTS.values()), *views().values(), *views(with_zone=True).values()])
    for file in FILES:
        for name in re.findall(r"^-- name: (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE):
            if name in ("columns", "scope", "names"):  # asked by table_query, Narrowed and --where
                continue
            pieces = re.split(r"\{\w+\}", _raw(file.name[:-4], name))
            assert any(len(piece.strip()) > 3 and piece in used for piece in pieces), (file.name, name)


def _raw(file: str, name: str) -> str:
    """A statement with its places left open."""
    text = (resources.files("agent.fleet") / "queries" / f"{file}.sql").read_text(encoding="utf-8")
    wanted = set(re.findall(r"\{(\w+)\}", text))
    return statement(file, name, **{item: f"{{{item}}}" for item in wanted})


def test_places_are_filled_and_comments_left_out():
    for name, item in STATEMENTS.items():
        assert "{" not in item.sql, name
        assert "--" not in item.sql, name
        assert set(re.findall(r"\$(\w+)", item.sql)) == set(item.parameters), name


def test_tables_of_a_statement_are_known_by_its_text():
    assert query("drift", "changes").tables == ["history_change"]
    assert drift_rows.PAIRS[1].query.tables == ["history_gpu"]
    assert summary.STATES.tables == ["check"]
    assert set(identities.SUBNETS.tables) == {"port", "host"}
    for name in schema.names():
        assert table_query(name).tables == [name]


def test_identifiers_are_those_of_the_catalogue():
    assert identifiers(("a", "b_1"), "thing") == 'thing."a", thing."b_1"'
    for name in ('a"', "a b", "A", "", "a;"):
        with pytest.raises(AssertionError):
            quote(name)
    with pytest.raises(KeyError):
        statement("outliers", "value_counts", keys="a")


def test_addresses_within_a_host_are_those_that_python_leaves_out():
    assert tuple(re.findall(r"starts_with\(thing\.address, '(.*)'\)", statement("duplicates", "known_address"))) == (
        NOWHERE_ELSE
    )


@pytest.mark.parametrize(
    ("keys", "values", "places"),
    [
        (("hostname",), [("a",)], [0, 1]),
        (("hostname",), [(None,)], [2, 5]),
        (("hostname",), [(None,), ("b",)], [2, 3, 4, 5]),
        (("hostname",), [("c",)], []),
        (("hostname",), [("'; DROP TABLE host; --",)], []),
        (("hostname", "sockets"), [("a", 1)], [0]),
        (("hostname", "sockets"), [("a", None), (None, 1)], [1, 2]),
        (("hostname", "sockets"), [("b", 2), ("b", 3), ("a", 3)], [3, 4]),
        (("sockets", "hostname"), [(1, "a"), (1, None)], [0, 2]),
        (("hostname", "sockets", "vendor"), [(None, None, None), ("b", 3, None), ("b", 3, "y")], [4, 5]),
    ],
)
def test_those_that_have_one_of_the_values(tmp_path, keys, values, places):
    """Null is a value."""
    reports = [
        report(f"n{n}", node={"hostname": f"n{n}", "vendor": vendor, "cpu": {"sockets": sockets}, "product": hostname})
        for n, (hostname, sockets, vendor) in enumerate(ROWS)
    ]
    take(tmp_path / "dataset", *reports)
    columns = {"hostname": "product", "sockets": "sockets", "vendor": "vendor"}
    keys = tuple(columns[key] for key in keys)
    types = {key: INT if key == "sockets" else TEXT for key in keys}
    sql = f'SELECT thing.node FROM "host" AS thing SEMI JOIN wanted ON {matching(keys)}'
    engine = connect(None, str(tmp_path / "dataset"))
    assert sorted(engine.fetch_by_keys(LookupQuery(Query(sql), types), values)) == [(f"n{n}",) for n in places]
    assert engine.fetch_by_keys(LookupQuery(Query(sql), types), []) == []
    engine.close()


def test_many_values_are_asked_for_at_once(engine):
    wanted = lookup({"node": TEXT}, "summary", "rule_states_of_nodes")
    nodes = [(f"gpu{n:04d}",) for n in range(50_000)]
    assert sum(row[-1] for row in engine.fetch_by_keys(wanted, nodes)) == sum(
        row[-1] for row in engine.rows(summary.STATES)
    )


@pytest.mark.parametrize("hour", [7, 8, 9, 10])
def test_a_moment(engine, hour):
    """The fleet was looked at twice: at eight, and at nine."""
    moment = datetime(2026, 1, 15, hour, 30)  # noqa: DTZ001  # UTC without a zone
    late = {(row[0], row[1]) for row in engine.rows(table_query("history_change", ["node", "table", "observed_at"]))
            if row[2] > moment}  # fmt: skip
    assert {row[:2] for row in engine.rows(drift_rows.MOMENTS.bind(moment=moment))} == late
    silent = {row[:1] for row in engine.rows(table_query("host", ["node", "observed_at"])) if row[1] <= moment}
    assert set(engine.rows(drift.SILENT.bind(moment=moment))) == silent
    assert (late and silent) or hour != 8


@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_to_duckdb_translates_nothing(dataset, question, tmp_path):
    """What other engines need would take longer to come than many an answer."""
    more = {"drift": ["--since", "2026-01-15T08:30:00Z"], "html": ["-o", str(tmp_path / "page.html")]}.get(question, [])
    heavy = "{'sqlglot', 'pandas', 'psycopg', 'clickhouse_connect'}"
    code = (
        "import sys\nfrom agent.cli.main import run\n"
        f"rc = run(['fleet', {question!r}, '--dataset', {dataset!r}, *{more!r}])\n"
        f"sys.exit(rc or (bool({heavy} & set(sys.modules)) and 77))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout or question == "html"


# Engines that no test can start: every statement of every question can be written in their SQL.


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_has_its_sql(dialect):
    for name, item in statements().items():
        for sql in (item.sql, *(select for _, select in item._replace(scoped=True, silenced=True).ctes())):
            written = translate(sql, dialect)
            typed = re.sub(r"\{(\w+): \}", r"{\1: String}", written)  # ClickHouse's type is added where it is bound
            tree = sqlglot.parse_one(typed, dialect=dialect)
            left = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
            assert not left & set(UNKNOWN), (name, written)
            assert tree.find(exp.Select), name


@pytest.mark.parametrize(
    ("dialect", "sql", "written"),
    [
        ("postgres", "SELECT a // b", "SELECT a / b"),
        ("postgres", "SELECT contains(a, 'x')", "SELECT STRPOS(a, 'x') > 0"),
        (
            "postgres",
            "SELECT array_to_string(list_sort(list(a)), chr(30)) FROM t",
            "SELECT STRING_AGG(a, CHR(30) ORDER BY a) FROM t",
        ),
        (
            "postgres",
            "SELECT t.a FROM t SEMI JOIN wanted "
            "ON t.a IS NOT DISTINCT FROM wanted.a AND t.b IS NOT DISTINCT FROM wanted.b",
            "SELECT t.a FROM t WHERE EXISTS(SELECT 1 FROM wanted "
            "WHERE CAST(ROW(t.a, t.b) AS record) = CAST(ROW(wanted.a, wanted.b) AS record))",
        ),
        ("clickhouse", "SELECT a // b", "SELECT intDiv(a, b)"),
        ("clickhouse", "SELECT a << b", "SELECT bitShiftLeft(a, b)"),
        ("clickhouse", "SELECT regexp_replace(a, $b, ' ', 'g')", "SELECT replaceRegexpAll(a, {b: }, ' ')"),
        ("clickhouse", "SELECT string_agg(a, 'x') FROM t", "SELECT arrayStringConcat(groupArray(a), 'x') FROM t"),
        (
            "clickhouse",
            "SELECT array_to_string(list_sort(list(a)), 'x') FROM t",
            "SELECT arrayStringConcat(arraySort(groupArray(a)), 'x') FROM t",
        ),
        ("clickhouse", "SELECT split_part(a, '=', 1)", "SELECT arrayElement(splitByString('=', a), 1)"),
        (
            "clickhouse",
            "SELECT t.b, i.w FROM t CROSS JOIN unnest(regexp_split_to_array(t.a, ' ')) AS i(w) WHERE i.w <> ''",
            "SELECT t.b, w FROM t ARRAY JOIN splitByRegexp(' ', ifNull(t.a, '')) AS w WHERE w <> ''",
        ),
    ],
)
def test_what_dialects_have_by_other_names(dialect, sql, written):
    assert translate(sql, dialect) == written


class Server(Translated):
    """One whose answer takes what `answer` takes."""

    dialect = "postgres"

    def __init__(self, answer: Callable[[], list[Row]]) -> None:
        super().__init__("server")
        self.answer = answer

    def relation(self, relation: Relation) -> str:
        """Of none."""
        return relation.name

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """The answer."""
        return self.answer()

    def fetch_named(self, sql: str) -> tuple[list[str], list[Row]]:
        """The answer."""
        return ["node"], self.answer()

    def close(self) -> None:
        """Nothing."""


ASKED: dict[str, Callable[[Server], object]] = {
    "a table": lambda server: server.rows(table_query("host", ["node"])),
    "batches": lambda server: server.batches(table_query("host", ["node"])),
    "a query of a person": lambda server: server.query("select node from host"),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_server_that_trickles_is_not_waited_for(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of each read begins again with every byte."""
    monkeypatch.setattr(translated, "ANSWER_SECONDS", 0.05)

    def trickle() -> list[Row]:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            time.sleep(0.005)
        return []

    began = time.monotonic()
    with pytest.raises(EngineRefused, match=r"^server: no whole answer within 0.05 s: ask about fewer nodes"):
        ASKED[what](Server(trickle))
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("limit", "why"), [("MOST_ROWS", "more than 9 rows"), ("MOST_BYTES", "more than 0 MiB")], ids=["rows", "bytes"]
)
def test_an_answer_that_is_too_large_is_refused(limit: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pieces together; what is at the limit is not."""
    monkeypatch.setattr(translated, limit, 9)
    size = AnswerSize("server")
    size.add(4, 4)
    size.add(5, 5)
    with pytest.raises(EngineRefused, match=rf"^server: the answer has {why}: ask about fewer nodes"):
        size.add(1, 1)


@pytest.mark.parametrize("what", ASKED)
def test_the_limit_is_of_the_answer_alone(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sqlglot imports a dialect when it is first needed: interrupted there, half of it would stay for the process."""
    monkeypatch.setattr(translated, "ANSWER_SECONDS", 0.05)

    def slow(sql: str, dialect: str) -> str:
        time.sleep(0.1)
        return sql

    monkeypatch.setattr(translated, "translate", slow)
    ASKED[what](Server(list))
