"""Answers of a server: bounded in rows, bytes and time, with the reason in one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent.fleet.engines import translated
from agent.fleet.engines.engine import EngineRefused
from agent.fleet.engines.query import Relation, Row, table_query
from agent.fleet.engines.translated import AnswerSize, Translated


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
