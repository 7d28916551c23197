"""The fault matrix: every cause of tests/matrix/*.toml with what finds it, and on which machines that is tested.

`python -m tests.matrix.table` prints it as a page of Markdown; it is not in git.

Nothing is scanned but the healthy machines, to know what each has; `test_matrix.py` proves the findings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from agent.rules.catalogue import every_rule
from tests.machines import HOSTS
from tests.matrix.cases import Cause, causes, machines_of

HEAD = """\
# The fault matrix

Each root cause is described once (tests/matrix) and laid over every machine of the fixtures that it can happen to. On
each, `tests/matrix/test_matrix.py` requires these findings and no other above info: consequences are folded into the
cause. `tests/test_healthy.py` requires that the machines without a fault have none.

"""


def text() -> str:
    """The document."""
    all_causes = causes()
    on = {name: machines_of(cause) for name, cause in all_causes.items()}
    letters = {shape: chr(ord("A") + n) for n, shape in enumerate(sorted(HOSTS))}
    rules = {rule for cause in all_causes.values() for rule in _rules(cause)}
    lines = [
        "| total | |",
        "|---|---|",
        f"| distinct causes | {len(all_causes)} |",
        f"| pairs of a cause and a machine | {sum(map(len, on.values()))} |",
        f"| rules that some cause is found by | {len(rules)} |",
        f"| machines without a fault, and findings above info on them | {len(HOSTS)}, 0 |",
        "",
        "| | machine | causes laid over it |",
        "|---|---|---|",
        *(f"| {letters[s]} | `{s}` | {sum(s in shapes for shapes in on.values())} |" for s in sorted(HOSTS)),
    ]
    for family in sorted({name.partition("/")[0] for name in all_causes}):
        lines += ["", f"## {family}", "", "| cause | what finds it | on |", "|---|---|---|"]
        for name, cause in all_causes.items():
            if name.startswith(f"{family}/"):
                where = "".join(sorted(letters[shape] for shape in on[name]))
                lines.append(f"| {_cell(cause.about)} | {', '.join(_found(cause)) or 'nothing, rightly'} | {where} |")
    bare = [f"`{rule.name}`" for rule in every_rule() if rule.name not in rules]
    if bare:
        lines += ["", "## Rules that no cause here is found by", "", "Their own tests hold them.", "", ", ".join(bare)]
    return HEAD + "\n".join(lines) + "\n"


def _rules(cause: Cause) -> set[str]:
    return {rule for rule, _, _ in cause.finds} | {rule for rule, _ in cause.informs}


def _found(cause: Cause) -> Iterator[str]:
    """Each rule once, with how grave it is."""
    yield from dict.fromkeys(f"`{rule}` {severity}" for rule, severity, _ in cause.finds)
    yield from dict.fromkeys(f"`{rule}` info" for rule, _ in cause.informs)
    yield from dict.fromkeys(f"`{rule}` unknown" for rule in cause.unknown)


def _cell(said: str) -> str:
    return said.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(text())
