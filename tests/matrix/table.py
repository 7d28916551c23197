"""docs/fault-matrix.md: every cause of tests/matrix/*.toml with what finds it, and on which machines that is tested.

Nothing is scanned but the healthy machines, to know what each has; `test_matrix.py` proves the findings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from agent.rules.catalogue import every_rule
from tests.conftest import ROOT
from tests.machines import HOSTS
from tests.matrix.cases import Cause, causes, machines_of

DOCUMENT = ROOT / "docs" / "fault-matrix.md"
HEAD = """\
# The fault matrix

Each root cause is told once ([tests/matrix](../tests/matrix)) and laid over every machine of the fixtures that it can
happen to. On each, `tests/matrix/test_matrix.py` demands these findings and no other above info: consequences are
folded into the cause. `tests/test_healthy.py` demands that the machines without a fault give none. This page is
generated (`make docs`).

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


def main(arguments: Sequence[str]) -> int:
    """`--write` or `--check`; 1 where the check finds a difference, 2 for wrong usage."""
    if list(arguments) == ["--write"]:
        DOCUMENT.write_text(text(), encoding="utf-8")
        return 0
    if list(arguments) != ["--check"]:
        sys.stderr.write("usage: python -m tests.matrix.table --write|--check\n")
        return 2
    same = DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == text()
    sys.stderr.write("" if same else f"{DOCUMENT}: differs from tests/matrix; run --write\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
