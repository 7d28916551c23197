"""The libraries that only the fleet side has."""

from __future__ import annotations

from importlib.util import find_spec

from agent.cli.refused import Refused

INSTALL = "the fleet's libraries are not installed: pip install 'fabricscope[fleet]'"


def fleet_libraries(*modules: str) -> None:
    """Raises Refused, with how to install them, where one is missing."""
    missing = [each for each in modules or ("pyarrow", "duckdb") if find_spec(each) is None]
    if missing:
        raise Refused(f"{INSTALL} (missing: {', '.join(missing)})")
