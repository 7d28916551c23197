"""The options that all questions to a fleet share, and what they are turned into."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.fleet.needed import fleet_libraries
from agent.cli.refused import Refused
from agent.fleet.collection import without_collection

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Engine, Tables, Where


class AnswerFormat(str, Enum):
    """Forms of an answer."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


_HEARD = "Query interrupted"  # what DuckDB says where it heard Ctrl-C itself
_GRACE_SECONDS = 0.7

Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URL",
        help="What `fleet ingest` made.",
        envvar="FABRICSCOPE_DATASET",
        show_default=False,
    ),
]
EngineUrl = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="URL",
        help="Who answers: duckdb:// (default), chdb://, spark://HOST:PORT, local, postgres://...",
        envvar="FABRICSCOPE_ENGINE",
        show_default=False,
    ),
]
WhereIs = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only these nodes: cluster=NAME, class=PART OF ITS NAME, nodes=gpu[001-128]. May be given again.",
        show_default=False,
    ),
]
Form = Annotated[
    AnswerFormat | None,
    typer.Option("--format", help="text (default), json or csv; else by the suffix of --output.", show_default=False),
]


def form_of(form: AnswerFormat | None, output: str | None) -> str:
    """How the answer is written. Raises Refused."""
    if form is not None:
        return form.value
    suffix = os.path.splitext(output or "")[1].lower()
    forms = {".json": "json", ".csv": "csv", ".txt": "text", "": "text"}
    if suffix not in forms:
        raise Refused(f"{output}: no format has the suffix {suffix}; say --format text, json or csv")
    return forms[suffix]


def where_of(given: list[str] | None) -> Where:
    """Which nodes are meant; several values of one key are any of them. Raises Refused."""
    from agent.fleet.engines.engine import Where
    from agent.fleet.hostlist import BadHostlist, unfold

    found: dict[str, list[str]] = {"cluster": [], "class": [], "nodes": []}
    for each in given or []:
        key, equals, value = each.partition("=")
        if not equals or key not in found or not value.strip():
            raise Refused(f"--where {each!r:.80}: cluster=NAME, class=PART OF ITS NAME or nodes=HOSTLIST is meant")
        try:
            found[key] += unfold(value) if key == "nodes" else [value]
        except BadHostlist as error:
            raise Refused(f"--where nodes: {error}") from error
    return Where(frozenset(found["cluster"]), tuple(found["class"]), tuple(found["nodes"]))


@contextmanager
def opened(dataset: str | None, engine: str | None) -> Iterator[Engine]:
    """The engine with the dataset's tables. Raises Refused."""
    fleet_libraries("duckdb")
    with without_collection():
        from agent.fleet.engines import connect

        with _refusals():
            found = connect(engine, dataset)
        close = found.close
        try:
            with _refusals():
                yield found
        except KeyboardInterrupt:
            close = partial(_close_soon, found)
            raise
        finally:
            close()


@contextmanager
def _refusals() -> Iterator[None]:
    """An engine's own as the command's: what it refuses, and Ctrl-C where it heard that itself."""
    from agent.fleet.engines.engine import EngineRefused

    try:
        yield
    except EngineRefused as error:
        raise Refused(str(error)) from error
    except RuntimeError as error:
        if str(error) == _HEARD:
            raise KeyboardInterrupt from error
        raise


def _close_soon(engine: Engine) -> None:
    """Or end without: a query may hear nothing, and giving back its memory may take long. Python's own end would wait
    for both. Whoever asked wrote nothing, or has removed it by now.
    """
    closing = Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(_GRACE_SECONDS)
    if closing.is_alive():
        from agent.cli.main import INTERRUPTED

        print("fabricscope: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)


@contextmanager
def asked(dataset: str | None, engine: str | None, where: list[str] | None) -> Iterator[Tables]:
    """The tables of the nodes that are meant. Raises Refused."""
    fleet_libraries("duckdb")
    chosen = where_of(where)
    with opened(dataset, engine) as found:
        yield meant(found, chosen, where)


def meant(found: Engine, chosen: Where, where: list[str] | None) -> Tables:
    """An opened engine's tables of the nodes that are meant, which `where` says in words. Raises Refused."""
    from agent.fleet.engines.engine import narrowed
    from agent.fleet.engines.query import table_query

    tables = narrowed(found, chosen)
    if any(chosen) and not tables.rows(table_query("host", ["node"])):
        raise Refused(f"no node of the dataset is meant by {' '.join(where or [])}")
    return tables
