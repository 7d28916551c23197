"""tests/peers.tsv: every check of the other tools has our rules, or the reason why there is none.

A line is a check of a tool: its name in our words, our rules, and a remark; without a rule the remark states why.
`python -m tests.test_peers` prints the totals of each tool and the rules that no other tool has.
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


def test_the_summary_counts_every_check_and_names_every_rule_that_only_we_have() -> None:
    """Each row is in the total; a rule is in the list if no row names it."""
    table = rows()
    lines = summary().splitlines()
    total = next(line for line in lines if line.startswith("together"))
    named = {rule for row in table for rule in row.rules}

    assert [str(len(table)), str(sum(bool(row.rules) for row in table))] == total.split()[1:]
    assert {rule.name for rule in every_rule()} - named == set(lines[-1].partition(": ")[2].split(", "))


def test_every_rule_that_is_named_is_one() -> None:
    """A rule that was renamed is renamed here too."""
    assert set() == {rule for row in rows() for rule in row.rules} - {rule.name for rule in every_rule()}


def test_every_check_has_a_rule_or_a_reason() -> None:
    """And stands once for its tool."""
    table = rows()

    assert [] == [row for row in table if not row.rules and not row.remark]
    assert len(table) == len({(row.peer, row.check) for row in table})
    assert [] == [row for row in table if "|" in "".join((row.peer, row.check, row.remark))]


if __name__ == "__main__":
    sys.stdout.write(summary())
