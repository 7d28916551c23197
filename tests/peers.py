"""The checks of other tools, and which of our rules finds the same: tests/peers.tsv.

A line is a check of a tool: its name in our words, our rules, and a remark; without a rule the remark says why.
`python -m tests.peers` prints the totals of each tool and the rules that no other tool has.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

from agent.rules.catalogue import every_rule

TABLE = Path(__file__).with_name("peers.tsv")


class Row(NamedTuple):
    """A check of a peer. `rules`: ours, by name; none: `remark` says why."""

    peer: str
    check: str
    rules: tuple[str, ...]
    remark: str


def rows() -> list[Row]:
    """The table without its heading."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Row(peer, check, tuple(rules.split()), remark) for peer, check, rules, remark in lines[1:]]


def summary() -> str:
    """The number of checks of each tool, how many have a rule here, and the rules that no other tool has."""
    table = rows()
    lines = [f"{'tool':20}{'checks':>8}{'with a rule here':>18}"]
    for peer in [*dict.fromkeys(row.peer for row in table), None]:
        own = [row for row in table if peer in (row.peer, None)]
        lines.append(f"{peer or 'together':20}{len(own):8}{sum(bool(row.rules) for row in own):18}")
    named = {rule for row in table for rule in row.rules}
    alone = [rule.name for rule in every_rule() if rule.name not in named]
    return "\n".join([*lines, "", f"{len(alone)} rules of no other tool: {', '.join(alone)}", ""])


if __name__ == "__main__":
    sys.stdout.write(summary())
