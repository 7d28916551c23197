"""How rules ended on every node, and how much of the fleet each was judged on. Pure, on folded texts."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.page.reading import Texts, cells
from agent.fleet.page.scene import Coverage, Judged

LINES = 40  # rules that a node's panel gives the reason of
REASON = 200  # letters


def judged(nodes: Sequence[str], rules: list[str], texts: Texts) -> Judged:
    """Rules, and of every node a letter for each."""
    return Judged(rules=rules, vectors=texts.all, codes=[texts.of.get(node, -1) for node in nodes])


def coverage(told: Judged, stale: Sequence[bool], reasons: Texts, nodes: Sequence[str]) -> list[Coverage]:
    """In the order of the rules; stale nodes are in one number, whatever was judged there."""
    counts: dict[tuple[int, bool], int] = {}
    for code, old in zip(told.codes, stale, strict=True):
        counts[code, old] = counts.get((code, old), 0) + 1
    why = _reasons(reasons, {node for node, old in zip(nodes, stale, strict=True) if not old})
    made = []
    for at, rule in enumerate(told.rules):
        tally: dict[str, int] = {}
        for (code, old), count in counts.items():
            letter = told.vectors[code][at] if code >= 0 else "u"
            key = "n" if letter in "nd " else "stale" if old else letter
            tally[key] = tally.get(key, 0) + count
        found = sorted(why.get(rule, {}).items(), key=lambda each: (-each[1], each[0]))
        made.append(
            Coverage(
                rule=rule, passed=tally.get("p", 0), failed=tally.get("f", 0), unknown=tally.get("u", 0),
                not_applicable=tally.get("n", 0), stale=tally.get("stale", 0), reasons=found[:8],
            )
        )  # fmt: skip
    return made


def lines(text: str) -> list[str]:
    """Rules that could not be judged, those of one reason in a line."""
    alike: dict[str, list[str]] = {}
    for row in cells(text):
        alike.setdefault(row[1] if len(row) > 1 else "", []).append(row[0])
    said = [f"{reason[:REASON] or 'no reason is given'}: {', '.join(rules)}" for reason, rules in alike.items()]
    return said if len(said) <= LINES else [*said[:LINES], f"and for {len(said) - LINES} more reasons"]


def _reasons(texts: Texts, fresh: set[str]) -> dict[str, dict[str, int]]:
    """rule -> reason -> nodes."""
    counts: dict[int, int] = {}
    for node, code in texts.of.items():
        if node in fresh:
            counts[code] = counts.get(code, 0) + 1
    found: dict[str, dict[str, int]] = {}
    for code, count in counts.items():
        for row in cells(texts.all[code]):
            reason = (row[1] if len(row) > 1 else "")[:REASON] or "no reason is given"
            of = found.setdefault(row[0], {})
            of[reason] = of.get(reason, 0) + count
    return found
