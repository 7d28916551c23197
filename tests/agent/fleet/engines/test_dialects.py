"""Engines that no test can start: every statement of every question can be written in their SQL."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from agent.fleet.engines.translated import translated
from tests.agent.fleet.engines.statements import statements

DIALECTS = ("spark", "clickhouse", "postgres", "bigquery", "snowflake", "trino")
UNKNOWN = ("array_to_string", "list_sort", "epoch", "contains")  # functions of DuckDB that others have by other names


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_has_its_sql(dialect):
    for name, query in statements().items():
        for sql in (query.sql, *(select for _, select in query._replace(scoped=True).ctes())):
            written = translated(sql, dialect)
            typed = re.sub(r"\{(\w+): \}", r"{\1: String}", written)  # ClickHouse's type is added where it is bound
            tree = sqlglot.parse_one(typed, dialect=dialect)
            left = {each.name.lower() for each in tree.find_all(exp.Anonymous)}
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
        (
            "spark",
            "SELECT array_to_string(list_sort(list(a)), 'x') FROM t",
            "SELECT ARRAY_JOIN(ARRAY_SORT(COLLECT_LIST(a)), 'x') FROM t",
        ),
    ],
)
def test_what_dialects_have_by_other_names(dialect, sql, written):
    assert translated(sql, dialect) == written
