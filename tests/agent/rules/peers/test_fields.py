"""The peer table, as a page too: no field without a word, no reason and no rule that does not exist."""

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
from agent.rules.peers.fields import list_fields, read_all
from tests.agent.rules.rows import netdev

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


ROWS = {row.path: row.word for row in list_rows()}


def test_every_field_of_every_part_has_a_word() -> None:
    """No default: who adds a field decides how it compares."""
    assert [] == [path for path, word in ROWS.items() if word is None]
    assert len(ROWS) == len(list(list_rows()))


def test_every_free_field_has_a_reason_of_the_list_and_every_other_a_title() -> None:
    """And each reason of the list is of a field."""
    free = {word.reason for word in ROWS.values() if word is not None and word.word == "free"}

    assert FREE.keys() == free
    assert [] == [path for path, word in ROWS.items() if word and word.word != "free" and not word.title]


def test_every_field_that_a_rule_judges_is_compared() -> None:
    """A rule that names a free field, or none, would explain no difference."""
    judged = {field for rule in every_rule() for field in rule.fields}

    assert set() == {field for field in judged if (word := ROWS.get(field)) is None or word.word == "free"}


def test_a_value_that_is_not_known_is_none_and_off_is_one() -> None:
    """Empty lists, tables and texts are not known; nor is a field of a struct that is not there."""
    fields = {field.path: field for word in ("equal", "usual") for field in list_fields(Netdev, word)}
    bare = Netdev(id="a", label="a", bond={"mode": "802.3ad", "slaves": ["b"]}, autoneg=False)

    assert None is fields["qos.trust"].read(bare)
    assert None is fields["arp"].read(bare)
    assert {"mode": "802.3ad"} == fields["bond"].read(bare)
    assert False is fields["autoneg"].read(bare)
    assert "dscp" == fields["qos.trust"].read(netdev("0000:15:00.0", 0))


def test_values_are_compared_only_where_two_differ() -> None:
    """Nothing is one of them."""
    (mtu,) = (field for field in list_fields(Netdev, "equal") if field.path == "mtu")
    parts = [Netdev(id=str(n), label=str(n), mtu=mtu) for n, mtu in enumerate((9000, None, 9000))]

    assert [9000, None, 9000] == read_all(mtu, parts)
    assert None is read_all(mtu, parts[::2])
    assert None is read_all(mtu, [parts[1], parts[1]])
    assert [1500, 9000] == read_all(mtu, [Netdev(id="x", label="x", mtu=1500), parts[0]])
