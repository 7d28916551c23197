"""Lays pairs and triples of causes in random order for some time, and writes what came of it into docs/scope.md
(`make pairs`).

`python -m tests.matrix.measure 300 MACHINE ..` lays those of some machines only, and prints the figures.
"""

from __future__ import annotations

import gc
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from multiprocessing import Pool

from tests.conftest import ROOT
from tests.matrix.cases import pairs
from tests.matrix.together import Collision, find_reason, lay, together

_OF_PAIRS = 0.7  # of the time
_COLLECTED = 300  # machines until their contexts, which are in cycles with what they remember, are freed: 1 MB each
PAGE = ROOT / "docs" / "scope.md"
_SECTION = re.compile(r"(?<=## Two causes at once\n\n).*?(?=\n## |\Z)", re.DOTALL)


def every_pair() -> list[tuple[str, str, str]]:
    """Machine and two causes."""
    return [(shape, *names) for shape in dict.fromkeys(where for _, where in pairs()) for names in together(shape)]


def measure(chosen: Iterable[Sequence[str]], until: float | None = None) -> tuple[Counter[str], list[str]]:
    """Figures of what was laid before a time (monotonic), and a line for each finding hidden without a reason.

    `chosen`: a machine, and the causes on it.
    """
    figures: Counter[str] = Counter()
    unlisted: list[str] = []
    for shape, *names in chosen:
        if until is not None and time.monotonic() > until:
            break
        try:
            laid = lay(shape, *names)
        except Collision:
            figures["collide"] += 1
            continue
        figures["laid"] += 1
        if figures["laid"] % _COLLECTED == 0:
            gc.collect()
        figures["named"] += laid.named
        figures["explained"] += len(laid.explained)
        for missing in laid.missing:
            row = find_reason(missing, names)
            if row is None:
                figures["unlisted"] += 1
                unlisted.append(f"{shape}: {' + '.join(names)}: {missing.rule} {missing.severity} {missing.subject}")
            else:
                figures["open" if row.get("open") else "listed"] += 1
    return figures, unlisted


def format_section(pairs_laid: Counter[str], triples_laid: Counter[str], pairs_in_all: int) -> str:
    """The table of the page."""
    rows = [
        ("laid, drawn at random", "laid"),
        ("not laid: two change one fact", "collide"),
        ("findings that are named", "named"),
        ("findings that another cause's finding lists as its consequence", "explained"),
        ("findings that do not exist beside another cause, listed with the reason", "listed"),
        ("findings that are hidden: a known gap", "open"),
        ("findings that are hidden, and no reason is listed", "unlisted"),
    ]
    head = f"| of {pairs_in_all:,} pairs that one machine can have | pairs | triples |\n|---|---|---|\n"
    return head + "".join(f"| {what} | {pairs_laid[key]:,} | {triples_laid[key]:,} |\n" for what, key in rows)


def draw_triples(drawn: Sequence[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    """For some pairs a third cause of the same machine."""
    causes: dict[str, list[str]] = {}
    for shape, first, second in drawn:
        causes.setdefault(shape, []).extend((first, second))
    draw = random.Random(3)
    triples = [(*row, draw.choice(causes[row[0]])) for row in drawn]
    return [row for row in triples if row[3] not in row[:3]]


def main(seconds: float, machines: Sequence[str] = ()) -> int:
    """Two processes, each with machines of its own: what a machine with one cause gives is kept."""
    drawn = [row for row in every_pair() if not machines or row[0] in machines]
    random.Random(3).shuffle(drawn)
    shapes = sorted({shape for shape, _, _ in drawn})
    halves = [[row for row in drawn if shapes.index(row[0]) % 2 == half] for half in (0, 1)]
    gc.disable()  # what is kept is large: see measure
    began, results = time.monotonic(), []
    with Pool(2) as pool:
        for chosen, until in ((halves, began + seconds * _OF_PAIRS), (map(draw_triples, halves), began + seconds)):
            results.append(pool.starmap(measure, [(half, until) for half in chosen], chunksize=1))
    laid = [sum((figures for figures, _ in halves), Counter[str]()) for halves in results]
    unlisted = [line for halves in results for _, lines in halves for line in lines]
    section = format_section(laid[0], laid[1], len(drawn))
    if machines:
        sys.stdout.write(section)
    else:
        PAGE.write_text(_SECTION.sub(lambda _: INTRODUCTION + section, PAGE.read_text()))
    sys.stdout.write("".join(f"hidden, and no reason is listed: {line}\n" for line in unlisted))
    return 1 if unlisted else 0


INTRODUCTION = """\
The tests lay two causes on one fixture machine. Both must be named, or one finding lists the other as its \
consequence. Else `tests/matrix/consequences.toml` has the reason why the second cannot be judged beside the first.

`make test` lays a fixed sample. `make pairs` lays pairs and then triples for some minutes and writes these figures.

"""

if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 900, sys.argv[2:]))
