"""Lays pairs of causes in random order for some time, and writes what came of it into docs/scope.md (`make pairs`).

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

PAGE = ROOT / "docs" / "scope.md"
_SECTION = re.compile(r"(?<=## Two causes at once\n\n).*?(?=\n## |\Z)", re.DOTALL)


def every_pair() -> list[tuple[str, str, str]]:
    """Machine and two causes."""
    return [(shape, *names) for shape in dict.fromkeys(where for _, where in pairs()) for names in together(shape)]


def measure(chosen: Iterable[tuple[str, str, str]], until: float | None = None) -> tuple[Counter[str], list[str]]:
    """Figures of what was laid before a time (monotonic), and a line for each finding hidden without a reason."""
    figures: Counter[str] = Counter()
    unlisted: list[str] = []
    for shape, first, second in chosen:
        if until is not None and time.monotonic() > until:
            break
        try:
            laid = lay(shape, first, second)
        except Collision:
            figures["collide"] += 1
            continue
        figures["laid"] += 1
        figures["named"] += laid.named
        figures["explained"] += len(laid.explained)
        for missing in laid.missing:
            row = find_reason(missing, (first, second))
            if row is None:
                unlisted.append(f"{shape}: {first} + {second}: {missing.rule} {missing.severity} {missing.subject}")
            else:
                figures["open" if row.get("open") else "listed"] += 1
    return figures, unlisted


def format_section(figures: Counter[str], pairs_in_all: int) -> str:
    """The table of the page."""
    rows = [
        ("pairs of causes that one machine can have", pairs_in_all),
        ("laid, drawn at random", figures["laid"]),
        ("not laid: both change one fact", figures["collide"]),
        ("findings that are named", figures["named"]),
        ("findings that the other cause's finding lists as its consequence", figures["explained"]),
        ("findings that do not exist beside the other cause, listed with the reason", figures["listed"]),
        ("findings that are hidden: a known gap", figures["open"]),
    ]
    return "".join(("| | |\n|---|---|\n", *(f"| {what} | {count:,} |\n" for what, count in rows)))


def main(seconds: float, machines: Sequence[str] = ()) -> int:
    """Two processes, each with machines of its own: what a machine with one cause gives is kept."""
    drawn = [row for row in every_pair() if not machines or row[0] in machines]
    random.Random(3).shuffle(drawn)
    shapes = sorted({shape for shape, _, _ in drawn})
    halves = [[row for row in drawn if shapes.index(row[0]) % 2 == half] for half in (0, 1)]
    gc.disable()  # what is kept is large, and nothing is in cycles
    with Pool(2) as pool:
        results = pool.starmap(measure, [(half, time.monotonic() + seconds) for half in halves])
    figures = sum((found for found, _ in results), Counter[str]())
    unlisted = [line for _, lines in results for line in lines]
    section = format_section(figures, len(drawn))
    if machines:
        sys.stdout.write(section)
    else:
        PAGE.write_text(_SECTION.sub(lambda _: INTRODUCTION + section, PAGE.read_text()))
    sys.stdout.write("".join(f"hidden, and no reason is listed: {line}\n" for line in unlisted))
    return 1 if unlisted else 0


INTRODUCTION = """\
The tests lay two causes on one fixture machine. Both must be named, or one finding lists the other as its \
consequence. Else `tests/matrix/consequences.toml` has the reason why the second cannot be judged beside the first.

`make test` lays a fixed sample. `make pairs` lays pairs in random order for 15 minutes and writes these figures.

"""

if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 900, sys.argv[2:]))
