"""An engine that holds the tables already: whatever `ibis.connect` knows by its address."""

from __future__ import annotations

from typing import Any

import ibis

from agent.fleet.engines.backend import Backend, refused
from agent.fleet.engines.engine import EngineRefused, one_line
from agent.fleet.store import shown


class Server(Backend):
    """PostgreSQL as tried; ClickHouse, Trino, BigQuery and others as Ibis has them."""

    def __init__(self, url: str) -> None:
        name = url.partition(":")[0]
        super().__init__(name, reached(url))
        with refused(name):
            there = set(self._backend.list_tables())
        if "host" not in there:
            raise EngineRefused(f"{shown(url)}: no table host: `fabricscope fleet load --engine URL` puts them there")


def reached(url: str) -> Any:
    """The Ibis backend at an address. Raises EngineRefused, which never tells a password."""
    try:
        return ibis.connect(url)
    except ImportError as error:
        raise EngineRefused(one_line(f"{shown(url)}: a library is missing", error)) from error
    except Exception as error:  # as in `refused`; many repeat the address
        said = one_line(shown(url), error)
        raise EngineRefused(said.replace(url, shown(url))) from error
