"""The rack of each node, for outliers, topology and page. Pure; what nothing shows is None, never guessed."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

FEWEST = 2  # nodes of one rack or chassis, else it reports nothing
MOST = 96  # nodes of one rack: what has more is the name of a cluster, or a maker's placeholder
_DIGITS, _NUMBER = "0123456789", re.compile(r"[0-9]+")
LETTERS = 300  # of a pattern
SECONDS = 5.0  # of processor time for all names: 100,000 take 0.1 s by a pattern that is not at odds with itself


class BadPattern(Exception):
    """The pattern for racks cannot be used; the message states why."""


def find_racks(names: Sequence[str], chassis: Sequence[str | None], pattern: str | None = None) -> list[str | None]:
    """By the pattern where there is one, else by the chassis that several nodes share, else by the host names.

    The trays of a rack share its chassis serial; a server that is alone in its chassis has one of its own.

    >>> find_racks(["r1n1", "r1n2", "r2n1", "r2n2", "login"], [None] * 5, None)
    ['r1', 'r1', 'r2', 'r2', None]
    >>> find_racks(["gpu1", "gpu2"], [None] * 2, None)
    [None, None]
    """
    if pattern is not None:
        return _match_pattern(names, pattern)
    shared = {value for value, count in Counter(chassis).items() if value and FEWEST <= count <= MOST}
    placed = [serial if serial in shared else None for serial in chassis]
    by_name = find_named_racks(Counter(name for name, rack in zip(names, placed, strict=True) if rack is None))
    return [rack or by_name.get(name) for name, rack in zip(names, placed, strict=True)]


def find_named_racks(nodes: Mapping[str, int]) -> dict[str, str]:
    """The rack of each name that has one. `nodes`: how many have each name, whose last number is any.

    >>> find_named_racks({"r1n0": 18, "r2n0": 17, "login0": 3, "r3n0": 1})
    {'r1n0': 'r1', 'r2n0': 'r2'}
    """
    racks = _cut_last_numbers(list(nodes))
    sizes: Counter[str | None] = Counter()
    for rack, count in zip(racks, nodes.values(), strict=True):
        sizes[rack] += count
    shared = {rack for rack, count in sizes.items() if rack and FEWEST <= count <= MOST}
    if len(shared) < 2:  # one name for all shows no racks apart
        return {}
    return {name: rack for name, rack in zip(nodes, racks, strict=True) if rack and rack in shared}


def drop_last_number(name: str) -> str:
    """One name for all that differ in the number at their end, as statement `rack_nodes` makes it.

    >>> drop_last_number("r12n03"), drop_last_number("r12n03.site")
    ('r12n0', 'r12n03.site')
    """
    stem = name.rstrip(_DIGITS)
    return name if stem == name else f"{stem}0"


def _match_pattern(names: Sequence[str], pattern: str) -> list[str | None]:
    if len(pattern) > LETTERS:
        raise BadPattern(f"--rack {pattern[:60]!r}...: longer than {LETTERS} letters")
    too_slow = (
        f"--rack {pattern[:60]!r}: takes more than {SECONDS:.0f} s for these names; repeats within repeats do that"
    )
    with _limit_time(SECONDS, too_slow):
        try:
            compiled = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise BadPattern(f"--rack {pattern[:60]!r}: no regular expression: {error}") from error
        matches = [compiled.search(name) for name in names]
    return [(match[1] if compiled.groups else match[0]) or None if match else None for match in matches]


@contextmanager
def _limit_time(seconds: float, otherwise: str) -> Iterator[None]:
    """BadPattern after so much of the process' own time; a search looks for signals while it goes on.

    Only the main thread, which is a command's, can be bounded so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> NoReturn:
        raise BadPattern(otherwise)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _cut_last_numbers(names: Sequence[str]) -> list[str | None]:
    """What is before the last of two or more numbers of each: r12n03 -> r12.

    >>> _cut_last_numbers(["dgx-r12-u03.site", "gpu012", "r1-2-3", "a/r1n2b", "", "7"])
    ['dgx-r12', None, 'r1-2', 'r1', None, None]
    """
    letters = "".join(names)
    if "/" in letters or "." in letters:
        names = [name.rpartition("/")[2].partition(".")[0] for name in names]
    stems = [name.rstrip(_DIGITS) for name in names]
    stems = [_cut_number(stem) if stem == name else stem for name, stem in zip(names, stems, strict=True)]
    known = {stem: _cut_behind_number(stem) for stem in set(stems)}  # nodes of a rack have the same
    return [known[stem] for stem in stems]


def _cut_number(name: str) -> str:
    """What is before its last number, behind which there are letters."""
    numbers = list(_NUMBER.finditer(name))
    return name[: numbers[-1].start()] if numbers else ""


def _cut_behind_number(stem: str) -> str | None:
    numbers = list(_NUMBER.finditer(stem))
    return stem[: numbers[-1].end()] if numbers else None
