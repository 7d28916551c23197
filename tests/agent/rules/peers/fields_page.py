"""The page of all fields of parts: how each compares among peers, and the rules that judge it besides."""

from __future__ import annotations

import typing
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from agent.model.gpu import Ascend, Gpu, NvSwitch
from agent.model.nic import Netdev, Nic
from agent.model.node import Node
from agent.model.pci import CxlDevice, CxlRegion, PciFunction
from agent.model.peers import FREE, PeerWord, list_words
from agent.rules.catalogue import every_rule

_PARTS: dict[str, type] = {
    "gpu": Gpu, "nvswitch": NvSwitch, "ascend": Ascend, "nic": Nic, "netdev": Netdev, "pci": PciFunction,
    "cxl": CxlDevice, "cxl-region": CxlRegion, "node": Node,
}  # fmt: skip
# Parts by themselves, and how findings name their fields
_OWN = {"gpu.links": "link", "nic.ports": "port", "ascend.ports": "npu", "node.numa_nodes": "numa"}

_HEAD = """# How fields compare among peers

Every field of every part, as it is declared in `agent/model`: `equal` (a minority with another value is a warning of
`peer-differs`), `setting` (equal, and alike on parts of different boards), `usual` (a minority is a note), `unique`
(two parts with one value: `duplicate-identity`), `free` (may differ, and why). Run `make docs` after a change.

A finding names the field as this table does (`findings[].field`); `[peers] free = ["netdev.mtu"]` of the
[configuration](monitoring.md#known-findings) takes a field out, and a `[[silence]]` may have a `field`.

"""


class Row(typing.NamedTuple):
    """One field."""

    path: str
    word: PeerWord | None  # None: undeclared


def list_rows() -> Iterator[Row]:
    """Every field of every part and of what it holds; one whose type is a struct has the rows of that."""
    for name, struct in _PARTS.items():
        yield from _walk(name, struct)


def _walk(name: str, struct: Any) -> Iterator[Row]:
    words, hints = list_words(struct), typing.get_type_hints(struct)
    for field in struct.__struct_fields__:
        path = f"{name}.{field}"
        inner = _find_struct(hints[field])
        if field in words or inner is None:
            yield Row(path, words.get(field))
        else:
            yield from _walk(_OWN.get(path, path), inner)


def _find_struct(hint: Any) -> Any:
    """The struct of a field, of its list or of its union."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    return next((found for part in typing.get_args(hint) if (found := _find_struct(part)) is not None), None)


def describe_peer_fields() -> str:
    """The page as Markdown."""
    judges = defaultdict(list)
    for rule in every_rule():
        for path in rule.fields:
            judges[path].append(rule.name)
    rows = list(list_rows())
    lines = ["| field | word | title, or why it is free | judged by, too |", "|---|---|---|---|"]
    lines += [_describe_row(row, judges[row.path]) for row in rows]
    shares = ["", "## How many are free", "", "| part | fields | free |", "|---|---|---|", *_count_free(rows)]
    reasons = ["", "## Why a field is free", "", *(f"- `{name}`: {why}" for name, why in FREE.items())]
    return _HEAD + "\n".join([*lines, *shares, *reasons, ""])


def _describe_row(row: Row, rules: list[str]) -> str:
    word = row.word or PeerWord("undeclared")
    name = "setting" if word.word == "equal" and word.mixed_boards else word.word
    title = word.reason or (f"{word.title}, {word.unit}" if word.unit else word.title)
    return f"| `{row.path}` | {name} | {title} | {', '.join(f'`{rule}`' for rule in rules)} |"


def _count_free(rows: list[Row]) -> Iterator[str]:
    parts = Counter(row.path.partition(".")[0] for row in rows)
    free = Counter(row.path.partition(".")[0] for row in rows if row.word and row.word.word == "free")
    return (f"| {part} | {count} | {free[part]} |" for part, count in parts.items())
