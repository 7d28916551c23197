"""The steps of every rule as printed, with what each costs: read them after a change of pages.

`python -m tests.matrix.steps FILE` writes them for every finding of the rows of tests/matrix/rules and of every fixture
and fault, alike ones once; docs/adding-a-rule.md names it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from agent.model.finding import Finding, describe_step_cost
from agent.rules.engine import judge
from tests.machines import FAULTS, HOSTS, scan_machine
from tests.matrix.rule_rows import row, row_ids, rules


def list_steps() -> list[str]:
    """A block for each rule, situation and form factor."""
    blocks: dict[str, str] = {}
    for name, finding in _list_findings():
        lines = []
        for number, step in enumerate(finding.steps, 1):
            lines.append(f"   {number}. {step.do} {describe_step_cost(step)}".rstrip())
            lines += [f"      - {outcome}" for outcome in step.outcomes]
        form = finding.location.form_factor if finding.location else None
        head = f"## {finding.rule}: {name}\n   {finding.severity}, {form or 'no form factor'}: {finding.summary}"
        blocks.setdefault("\n".join(lines), head)
    return [f"{head}\n{text}\n" for text, head in sorted(blocks.items(), key=lambda block: block[1])]


def _list_findings() -> Iterator[tuple[str, Finding]]:
    """Every finding with the row, fixture or fault that gives it."""
    for rule, name in row_ids():
        yield from ((name, finding) for finding in judge(row(rule, name)[0], [rules()[rule]])[1])
    for host in HOSTS:
        yield from ((host, finding) for finding in scan_machine(host).findings)
    for fault in FAULTS:
        yield from ((fault, finding) for finding in scan_machine("", fault).findings)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(list_steps()))
