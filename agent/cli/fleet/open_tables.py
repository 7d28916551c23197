"""Opens the tables that a fleet command asks, and prints its answer; what its options are parsed into."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any

from agent.cli.errors import INTERRUPTED, CliError, ErrorTranslation, print_error, print_warning
from agent.cli.output import choose_format as output_format
from agent.cli.output import write_answer
from agent.cli.stdin import notice_pipe
from agent.fleet.collection import without_collection

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Engine, Tables, Where
    from agent.fleet.episodes.silences import Silences
    from agent.outputs.text.lines import Line

_INTERRUPTED_MESSAGE = "Query interrupted"  # DuckDB's own error on Ctrl-C
_GRACE_SECONDS = 0.7
_DURATION = re.compile(r"([0-9]{1,6})(s|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_ADDRESS_SPACE = 1 << 30  # measured: 0.8 GiB end in the loader or in a thread that cannot start

_FORMS = {"": "text", ".txt": "text", ".json": "json", ".csv": "csv"}


def choose_format(form: str | None, output: str | None) -> str:
    """The format of the answer. Raises CliError."""
    return form or output_format(output, _FORMS)


def unfold_nodes(nodes: str | None, about: str) -> list[str]:
    """The names of a host list. Raises CliError."""
    from agent.fleet.hostlist import BadHostlist, unfold

    with ErrorTranslation(BadHostlist, about=about):
        return unfold(nodes) if nodes is not None else []


def parse_where(where: list[str] | None) -> Where:
    """Parse --where; several values of one key are alternatives. Raises CliError."""
    from agent.fleet.engines.engine import Where

    conditions: dict[str, list[str]] = {"cluster": [], "class": [], "nodes": []}
    for condition in where or []:
        key, equals, value = condition.partition("=")
        if not equals or key not in conditions or not value.strip():
            raise CliError(f"--where {condition!r:.80}: expected cluster=NAME, class=PART or nodes=HOSTLIST")
        conditions[key] += unfold_nodes(value, "--where nodes") if key == "nodes" else [value]
    return Where(frozenset(conditions["cluster"]), tuple(conditions["class"]), tuple(conditions["nodes"]))


@contextmanager
def open_engine(dataset: str | None, engine: str | None) -> Iterator[Engine]:
    """Open an engine with the dataset's tables. Raises CliError."""
    require_libraries("duckdb")
    with without_collection():
        from agent.fleet.engines import connect

        with translate_engine_errors():
            engine_ = connect(engine, dataset)
        close = engine_.close
        try:
            with translate_engine_errors():
                yield engine_
        except KeyboardInterrupt:
            close = partial(_close_soon, engine_)
            raise
        finally:
            close()


@contextmanager
def translate_engine_errors() -> Iterator[None]:
    """Translate an engine's errors to CliError, and its own Ctrl-C error to KeyboardInterrupt."""
    from agent.fleet.engines.engine import EngineRefused

    try:
        with ErrorTranslation(EngineRefused):
            yield
    except RuntimeError as error:
        if str(error) == _INTERRUPTED_MESSAGE:
            raise KeyboardInterrupt from error
        raise


def _close_soon(engine: Engine) -> None:
    """Close the engine, or exit without: a query may ignore the interrupt, and freeing its memory may take long.
    Python's own exit would wait for both. No output is lost: it is unwritten or removed by now.
    """
    closing = Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(_GRACE_SECONDS)
    if closing.is_alive():
        print_error("interrupted")
        os._exit(INTERRUPTED)


@contextmanager
def query_tables(
    dataset: str | None, engine: str | None, where: list[str] | None, silences: Silences | None = None
) -> Iterator[Tables]:
    """Open the tables of the selected nodes; findings of a silence file are silenced in them. Raises CliError."""
    require_libraries("duckdb")
    chosen = parse_where(where)
    with open_engine(dataset, engine) as engine_:
        tables = select_nodes(engine_, chosen, where)
        if silences is not None:
            from agent.fleet.episodes.silences import silence

            tables = silence(tables, silences)
        yield tables


def select_nodes(engine_: Engine, chosen: Where, where: list[str] | None) -> Tables:
    """An open engine's tables of the selected nodes; `where`: the option's text. Raises CliError."""
    from agent.fleet.engines.engine import narrow
    from agent.fleet.engines.query import query

    missing: set[str] = set()
    if chosen.nodes:
        chosen, missing = _name_nodes(engine_, chosen, where or [])
    tables = narrow(engine_, chosen)
    if any(chosen) and not tables.rows(query("fleet", "scope")):
        raise CliError(f"no node of the dataset matches {' '.join(where or [])}")
    if missing:
        from agent.fleet.hostlist import fold

        print_warning(f"no report from {fold(missing)}")
    return tables


AMBIGUOUS_HINT = "name one of them instead"


def _name_nodes(engine_: Engine, chosen: Where, where: list[str]) -> tuple[Where, set[str]]:
    """The same with nodes as the dataset calls them, as people have host names; and names of no report. Raises
    CliError.

    A list that names no node may be the name of one: gpu[001-128].
    """
    from agent.fleet.engines.query import query
    from agent.fleet.hostlist import AmbiguousName, NodeNames

    names = NodeNames((node, host) for node, host in engine_.rows(query("fleet", "names")))
    with ErrorTranslation(AmbiguousName, about="--where nodes", hint=AMBIGUOUS_HINT):
        nodes = {name: names.find(name) for name in chosen.nodes}
        if not any(nodes.values()):
            texts = [text.partition("=")[2] for text in where if text.startswith("nodes=")]
            literal = {text: names.find(text) for text in texts}
            nodes = literal if all(literal.values()) else nodes
    missing = {name for name, node in nodes.items() if node is None}
    return chosen._replace(nodes=tuple(node or name for name, node in nodes.items())), missing


def read_silences(path: str | None) -> Silences:
    """The fleet's silence file; entries that have ended are counted on stderr. Raises CliError."""
    from agent.fleet.episodes.silences import NONE, SilenceFile, Silences
    from agent.fleet.hostlist import BadHostlist
    from agent.toml_file import TomlError, read_toml

    if path is None:
        return NONE
    with ErrorTranslation(TomlError), ErrorTranslation(BadHostlist, about=f"{path}: node"), notice_pipe(path):
        found = Silences(read_toml(path, SilenceFile).silence, datetime.now(timezone.utc).date())
    if found.ended:
        print_warning(f"{path}: {found.ended} {'entry has' if found.ended == 1 else 'entries have'} ended")
    return found


INSTALL = f"the fleet's libraries are not installed: in the checkout, {sys.executable} -m pip install '.[fleet]'"


def require_libraries(*modules: str) -> None:
    """Raises CliError, with installation help, if a library is missing, or has no room: below it DuckDB's loader ends
    the process with a line of its own."""
    import resource

    missing = [module for module in modules or ("pyarrow", "duckdb") if find_spec(module) is None]
    if missing:
        raise CliError(f"{INSTALL} (missing: {', '.join(missing)})")
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= space < _ADDRESS_SPACE:
        need = f"the fleet's libraries need {_ADDRESS_SPACE >> 30} GiB"
        raise CliError(
            f"the address space is limited to {space >> 20} MiB: {need}", "ulimit -v unlimited sets no limit"
        )


def utc_now() -> datetime:
    """Now, UTC without a zone, as times of a dataset are."""
    return datetime.now(timezone.utc).replace(tzinfo=None)


def parse_duration(text: str) -> float:
    """Parse a duration such as "90m" to seconds. Raises CliError."""
    matched = _DURATION.fullmatch(text.strip())
    if not matched:
        raise CliError(f"{text!r:.60}: not a duration; expected a number with s, m, h, d or w, such as 24h")
    return float(int(matched[1]) * _UNITS[matched[2]])


def parse_time(text: str) -> datetime:
    """Parse a time, or a duration before now, to naive UTC. Raises CliError."""
    try:
        if _DURATION.fullmatch(text.strip()):
            moment = datetime.now(timezone.utc) - timedelta(seconds=parse_duration(text))
        else:
            moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc).replace(tzinfo=None)
    except ValueError as error:
        raise CliError(f"{text!r:.60}: not a time; expected 2026-01-15, 2026-01-15T08:00:00Z or 24h") from error
    except OverflowError as error:
        raise CliError(f"{text!r:.60}: not a time of the years 1 to 9999") from error


def print_answer(
    answer: Any, rows: str, page: Callable[[Any, int], list[Line]], form: str, output: str | None, no_color: bool
) -> None:
    """Print an answer: its field `rows` is what CSV has."""
    from agent.fleet.text.tables import sheet

    write_answer(answer, form, page, output, no_color, csv=lambda: sheet(answer, rows))
