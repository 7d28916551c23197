"""Rows by the values of some columns: as they are written into queries, for engines that know no better."""

from __future__ import annotations

import duckdb
import ibis
import pytest

from agent.fleet.engines.query import ASKED, Choice, in_pieces, joined

ROWS = [("a", 1, None), ("a", None, "x"), (None, 1, "x"), ("b", 2, "y"), ("b", 3, None), (None, None, None)]
TABLE = ibis.table({"one": "string", "two": "int64", "three": "string"}, name="things")


class Things:
    """One table, and how many queries it was asked."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self.database.execute("CREATE TABLE things (one VARCHAR, two BIGINT, three VARCHAR)")
        self.database.executemany("INSERT INTO things VALUES (?, ?, ?)", ROWS)
        self.asked: list[str] = []

    def latest(self, name):
        assert name == "things"
        return TABLE

    def rows(self, expression):
        self.asked.append(str(ibis.to_sql(expression, dialect="duckdb")))
        return self.database.execute(self.asked[-1]).fetchall()


def choice(*keys):
    return Choice("things", keys, lambda tables, those: those(tables.latest("things")))


@pytest.mark.parametrize(
    ("keys", "values", "places"),
    [
        (("one",), [("a",)], [0, 1]),
        (("one",), [(None,)], [2, 5]),
        (("one",), [(None,), ("b",)], [2, 3, 4, 5]),
        (("one",), [("c",)], []),
        (("one", "two"), [("a", 1)], [0]),
        (("one", "two"), [("a", None), (None, 1)], [1, 2]),
        (("one", "two"), [("b", 2), ("b", 3), ("a", 3)], [3, 4]),
        (("two", "one"), [(1, "a"), (1, None)], [0, 2]),
        (("one", "two", "three"), [(None, None, None), ("b", 3, None), ("b", 3, "y")], [4, 5]),
    ],
)
def test_those_that_have_one_of_the_values(keys, values, places):
    things, types = Things(), []
    wanted = sorted((ROWS[place] for place in places), key=str)
    assert sorted(in_pieces(things, choice(*keys), values), key=str) == wanted

    sql = ibis.to_sql(choice(*keys).make(things, joined(keys, types)), dialect="duckdb")
    given = ", ".join(f"unnest(?) AS k{at}" for at in range(len(keys)))
    lists = [list(each) for each in zip(*values, strict=True)]
    assert types == [{"two": "int64"}.get(key, "string") for key in keys]
    found = things.database.execute(f"WITH {ASKED} AS (SELECT {given}) FROM ({sql})", lists).fetchall()
    assert sorted(found, key=str) == wanted


def test_many_values_are_asked_for_in_several_goes():
    things = Things()
    assert len(in_pieces(things, choice("two"), ((n,) for n in range(1201)))) == 4
    assert len(things.asked) == 3
    assert in_pieces(things, choice("two"), []) == []
    assert len(things.asked) == 3


def test_what_is_alike_but_for_one_key_is_one_term():
    things = Things()
    in_pieces(things, choice("one", "two"), [("b", n) for n in range(400)])
    (sql,) = things.asked
    assert sql.count(" IN (") == 1
    assert " OR " not in sql
