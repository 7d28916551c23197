"""Columns that hold many small facts at once: the kernel's command line, settings, services. Compared word by word."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Pending, Row, lookup, query, quote, statement
from agent.fleet.known_duplicates import OWN, PATTERN
from agent.fleet.questions.baseline import CLASS, Baseline, find_baseline, sum_by_key
from agent.fleet.questions.deviations import Deviation, PeerGroup
from agent.fleet.questions.kinds import find_members
from agent.fleet.questions.options import Options
from agent.fleet.questions.peer_classes import PeerClasses
from agent.fleet.table import TEXT

ABSENT = "(absent)"


class Multiset(NamedTuple):
    """One such column. `whole`: a word that is not there is known to be absent.

    `chosen`: a small class may have words of its own; of those that no node of it has as the wider class, none is odd.
    """

    key: str
    what: str
    column: str
    whole: bool = True
    own: frozenset[str] = frozenset()
    chosen: bool = False
    common: str | None = None  # column without these; null: ingested before there was that column


BAGS = (
    Multiset("cmdline", "kernel command line", "cmdline", own=OWN, common="cmdline_common"),
    Multiset("settings", "NCCL setting", "settings", chosen=True),
    Multiset("services", "service", "services", whole=False),
    Multiset("part-settings", "setting of its parts", "part_settings", whole=False),
)


def parse_words(text: str, own: frozenset[str] = frozenset()) -> dict[str, str]:
    """Name -> the words of that name, in their order.

    >>> parse_words("ro iommu=pt console=tty0 console=ttyS0 root=/dev/sda", frozenset({"root"}))
    {'ro': 'ro', 'iommu': 'iommu=pt', 'console': 'console=tty0 console=ttyS0'}
    """
    counts_of: dict[str, str] = {}
    for word in text.split():
        name = word.partition("=")[0]
        if name not in own:
            counts_of[name] = f"{counts_of[name]} {word}" if name in counts_of else word
    return counts_of


def find_multiset_deviations(
    tables: Tables, begun: list[Pending], peers: PeerClasses, options: Options
) -> Iterator[Deviation]:
    """Words that nearly all nodes of a class have and some have not, and the other way round."""
    for bag, choice, counts in zip(BAGS, NODES, begun, strict=True):
        rows = counts()
        yield from _find_deviations(
            tables, bag, choice, [row for row in rows if row[0] in peers.of], peers.of, peers.of, options
        )
        for wider in peers.wider:
            if bag.key in wider.attributes:
                of = dict.fromkeys(wider.members, wider.name)
                members = [row for row in rows if row[0] in of]
                yield from _find_deviations(tables, bag, choice, members, of, wider.small, options, chosen=bag.chosen)


def _describe_compared(bag: Multiset) -> str:
    return statement("outliers", "common_command_line") if bag.common else quote(bag.column)


def _parse_parameters(bag: Multiset) -> dict[str, str]:
    return {"own_words": PATTERN} if bag.common else {}


def _query_nodes(bag: Multiset) -> LookupQuery:
    """The nodes that have some of these texts."""
    keys = {CLASS: TEXT, "compared": TEXT}
    nodes = lookup(keys, "outliers", "text_nodes", compared=_describe_compared(bag))
    return nodes.bind(**_parse_parameters(bag))


COUNTS = [
    query("outliers", "text_counts", compared=_describe_compared(bag)).bind(**_parse_parameters(bag)) for bag in BAGS
]
NODES = [_query_nodes(bag) for bag in BAGS]


def _find_deviations(
    tables: Tables,
    bag: Multiset,
    choice: LookupQuery,
    rows: list[Row],
    of: Mapping[str, str],
    judged: Container[str],
    options: Options,
    chosen: bool = False,
) -> Iterator[Deviation]:
    """`rows`: class, text, how many. `of`: as which class each is compared. `chosen`: see Bag."""  # fmt: skip
    texts = sum_by_key((of[name], text, count) for name, text, count in rows)
    parsed = {text: parse_words(text, bag.own) for _, text, *_ in rows}
    expected = {
        name: _find_baselines({text: parsed[text] for text in often}, often, bag, options)
        for name, often in texts.items()
    }
    meant: dict[str, set[str]] = {}  # words by class that all of its texts have otherwise
    for name, text, *_ in rows if chosen else ():
        differing = {word for word, *_ in _compare_words(parsed[text], expected[of[name]], bag)}
        meant[name] = meant.get(name, differing) & differing
    deviating = [
        (name, each)
        for name, each, _ in rows
        if name in judged
        and any(word not in meant.get(name, ()) for word, *_ in _compare_words(parsed[each], expected[of[name]], bag))
    ]
    for (name, text), nodes in find_members(tables, choice, deviating).items():
        for word, has, should, normal in _compare_words(parsed[text], expected[of[name]], bag):
            if word in meant.get(name, ()):
                continue
            group = PeerGroup(bag.key, bag.what, of[name], word, "node")
            yield from (Deviation(group, normal, has, should, node, None) for node in nodes)


def _find_baselines(
    parsed: dict[str, dict[str, str]], counts: dict[str, int], bag: Multiset, options: Options
) -> dict[str, Baseline]:
    """The usual words of every name that any node has."""
    values = sum_by_key(
        (name, value, counts[text]) for text, counts_of in parsed.items() for name, value in counts_of.items()
    )
    of = sum(counts.values())
    expected = {}
    for name, multiset in values.items():
        has = sum(multiset.values())
        if bag.whole and has < of:
            multiset[ABSENT] = of - has
        if len(multiset) > 1:
            normal = find_baseline(multiset, options)
            if normal is not None:
                expected[name] = normal
    return expected


def _compare_words(
    counts_of: dict[str, str], expected: dict[str, Baseline], bag: Multiset
) -> Iterator[tuple[str, str, str, Baseline]]:
    for name, normal in expected.items():
        has = counts_of.get(name, ABSENT)
        if has != normal.value and (bag.whole or has != ABSENT):
            lacks = ABSENT if normal.value == ABSENT else normal.value
            yield name, has, lacks, normal
