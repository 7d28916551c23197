"""docs/lab.md from what the last run of the lab told: `python -m tests.lab.page`."""

from __future__ import annotations

import json
import sys

from tests.lab.conftest import ROWS
from tests.lab.exceptions import EXCEPTIONS
from tests.lab.setup import LAB, ROOT

PAGE = ROOT / "docs" / "lab.md"


def page(rows: list[list[str]]) -> str:
    """The whole page."""
    table = "".join(f"| {' | '.join(cell(each) for each in row)} |\n" for row in rows)
    reasons = "".join(f"| `{name}` | {why} |\n" for name, why in sorted(EXCEPTIONS.items()))
    text = (LAB / "page.md").read_text()
    return text.replace("{rows}\n", table).replace("{differences}\n", reasons)


def cell(text: str) -> str:
    """Text of several lines, in one cell."""
    return "; ".join(" ".join(line.split()) for line in text.strip().splitlines() if line.strip()).replace("|", "\\|")


if __name__ == "__main__":
    if not ROWS.exists():
        print("lab: nothing was run, docs/lab.md stays", file=sys.stderr)
        raise SystemExit(0)
    PAGE.write_text(page(list(json.loads(ROWS.read_text()).values())))
