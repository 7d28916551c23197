"""How rules ended on every node. Pure, on folded texts."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.page.reading import Texts, cells
from agent.fleet.page.scene import Judged

LINES = 40  # rules that a node's panel gives the reason of
REASON = 200  # letters


def judged(nodes: Sequence[str], rules: list[str], texts: Texts) -> Judged:
    """Rules, and of every node a letter for each."""
    return Judged(rules=rules, vectors=texts.all, codes=[texts.of.get(node, -1) for node in nodes])


def lines(text: str) -> list[str]:
    """Rules that could not be judged, those of one reason in a line."""
    alike: dict[str, list[str]] = {}
    for row in cells(text):
        alike.setdefault(row[1] if len(row) > 1 else "", []).append(row[0])
    said = [f"{reason[:REASON] or 'no reason is given'}: {', '.join(rules)}" for reason, rules in alike.items()]
    return said if len(said) <= LINES else [*said[:LINES], f"and for {len(said) - LINES} more reasons"]
