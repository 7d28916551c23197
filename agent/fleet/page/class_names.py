"""Hardware classes by the names that people use: a NIC by its model, where a dataset's class has its board id."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query
from agent.outputs.names import short_model

BOARDS = query("page", "boards")
_RAILS = re.compile(r"(.*, \d+x )([^,]+)")


def make_display_names(tables: Tables, classes: Iterable[str]) -> dict[str, str]:
    """Class -> its name with the NIC's model. Where that would be the name of two classes, the board id stays in it."""
    models = {board: short_model(model) for board, model in sorted(tables.rows(BOARDS), key=str) if board and model}
    names = {name: _replace_board(name, models, "{model}") for name in classes}
    common = Counter(names.values())
    return {
        name: short_name if common[short_name] == 1 else _replace_board(name, models, "{model} ({board})")
        for name, short_name in names.items()
    }


def _replace_board(name: str, models: dict[str, str], form: str) -> str:
    """
    >>> _replace_board("Dell Inc. XE9680, 8x H100, 8x MT_0000000838", {"MT_0000000838": "ConnectX-7"}, "{model}")
    'Dell Inc. XE9680, 8x H100, 8x ConnectX-7'
    """
    match = _RAILS.fullmatch(name)
    if match is None or match[2] not in models:
        return name
    return match[1] + form.format(model=models[match[2]], board=match[2])
