"""Where nodes are: rack, NVLink domain. Pure; what nothing tells is None, never guessed."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

FEWEST = 2  # nodes of one rack or chassis, else it says nothing
LETTERS = 300  # of a pattern
SECONDS = 5.0  # of processor time for all names: 100,000 take 0.1 s by a pattern that is not at odds with itself


class BadPattern(Exception):
    """The pattern for racks cannot be used; the message says why."""


def find_racks(names: Sequence[str], chassis: Sequence[str | None], pattern: str | None) -> list[str | None]:
    """By the pattern where there is one, else by the chassis that several nodes share, else by the host names.

    >>> find_racks(["r1n1", "r1n2", "r2n1", "r2n2", "login"], [None] * 5, None)
    ['r1', 'r1', 'r2', 'r2', None]
    >>> find_racks(["gpu1", "gpu2"], [None] * 2, None)
    [None, None]
    """
    if pattern is not None:
        return _match_pattern(names, pattern)
    shared = _keep_shared(chassis)
    if sum(name is not None for name in shared) * 2 > len(names):
        return shared
    return _keep_shared([_cut_last_number(name) for name in names])


def find_domains(values: Sequence[str | None]) -> list[str | None]:
    """The start of the cluster's UUID and the clique, where that tells them apart."""
    short = {value: _shorten(value) for value in values if value}
    apart = len(set(short.values())) == len(short)
    return [None if value is None else short[value] if apart else value for value in values]


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


def _cut_last_number(name: str) -> str | None:
    """What is before the last of two or more numbers: r12n03 -> r12.

    >>> _cut_last_number("dgx-r12-u03.site"), _cut_last_number("gpu012"), _cut_last_number("r1-2-3")
    ('dgx-r12', None, 'r1-2')
    """
    host = name.rpartition("/")[2]
    host = host.partition(".")[0]
    numbers = list(re.finditer(r"[0-9]+", host))
    if len(numbers) < 2:
        return None
    return host[: numbers[-2].end()]


def _keep_shared(values: Sequence[str | None]) -> list[str | None]:
    counts: dict[str, int] = {}
    for value in values:
        if value:
            counts[value] = counts.get(value, 0) + 1
    return [value if value and counts[value] >= FEWEST else None for value in values]


def _shorten(domain: str) -> str:
    uuid, _, clique = domain.rpartition(".")
    return f"{uuid[:8]}.{clique}"
