"""docs/coverage.md: the checks of other tools, and which of our rules finds the same; of tests/peers.tsv.

A line is a check of a tool: its name in our words, our rules, and a remark; without a rule the remark says why.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agent.rules.catalogue import every_rule
from tests.conftest import ROOT

TABLE = Path(__file__).with_name("peers.tsv")
DOCUMENT = ROOT / "docs" / "coverage.md"
HEAD = """\
# What others check

Every check of links, NICs, GPUs and their settings that the surveyed tools make on a node, and the rules here that find
the same fault; where there is none, why. Facts of their sources and documentation as of 2026; a tool may have changed
since. This page is generated from `tests/peers.tsv` (`make docs`); a rule that it names and that does not exist fails
a test.

"""


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


def text() -> str:
    """The document."""
    table = rows()
    peers = list(dict.fromkeys(row.peer for row in table))
    named = {rule for row in table for rule in row.rules}
    alone = [f"[`{rule.name}`](rules/{rule.name}.md)" for rule in every_rule() if rule.name not in named]
    lines = ["| tool | its checks | found by a rule here | not, and why |", "|---|---|---|---|"]
    for peer in [*peers, None]:
        own = [row for row in table if peer in (row.peer, None)]
        found = sum(bool(row.rules) for row in own)
        lines.append(f"| {peer or 'together'} | {len(own)} | {found} | {len(own) - found} |")
    for peer in peers:
        lines += ["", f"## {peer}", "", "| check | rules | remark |", "|---|---|---|"]
        for row in table:
            if row.peer == peer:
                ours = ", ".join(f"[`{rule}`](rules/{rule}.md)" for rule in row.rules)
                lines.append(f"| {row.check} | {ours or '-'} | {row.remark} |")
    lines += [
        "",
        "## Rules that no check above asks for",
        "",
        f"{len(alone)} rules: {', '.join(alone)}.",
    ]
    return HEAD + "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """`--write` or `--check`; 1 where the check finds a difference, 2 for wrong usage."""
    if list(arguments) == ["--write"]:
        DOCUMENT.write_text(text(), encoding="utf-8")
        return 0
    if list(arguments) != ["--check"]:
        sys.stderr.write("usage: python -m tests.peers --write|--check\n")
        return 2
    same = DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == text()
    sys.stderr.write("" if same else f"{DOCUMENT}: differs from tests/peers.tsv and the catalogue; run --write\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
