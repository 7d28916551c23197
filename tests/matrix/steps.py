"""The steps of every rule as printed, by what a person would do them for: read them after a change of pages.

`python -m tests.matrix.steps FILE` writes them for every finding of the rows of tests/matrix/rules, alike ones once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from agent.rules.engine import judge
from tests.matrix.rule_rows import row, row_ids, rules


def list_steps() -> list[str]:
    """A block for each rule, situation and form factor."""
    blocks: dict[str, str] = {}
    for rule, name in row_ids():
        for finding in judge(row(rule, name)[0], [rules()[rule]])[1]:
            lines = [f"   {number}. {step.do}" for number, step in enumerate(finding.steps, 1)]
            outcomes = [[f"      - {outcome}" for outcome in step.outcomes] for step in finding.steps]
            text = "\n".join(line for step, below in zip(lines, outcomes, strict=True) for line in (step, *below))
            form = finding.location.form_factor if finding.location else None
            blocks.setdefault(
                text, f"## {rule}: {name}\n   {finding.severity}, {form or 'no form factor'}: {finding.summary}"
            )
    return [f"{head}\n{text}\n" for text, head in blocks.items()]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(list_steps()))
