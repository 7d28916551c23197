"""The tables of docs/lab.md, from what the last run of the lab told: `python -m tests.lab.page`."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.lab.exceptions import EXCEPTIONS
from tests.lab.place import LAB, ROOT, ROWS

PAGE = ROOT / "docs" / "lab.md"


def renew(page: str, rows: list[list[str]]) -> str:
    """The page with its tables as they are now: what was shown, and where fixture and kernel differ."""
    shown = "".join(f"| {' | '.join(cell(line) for line in row)} |\n" for row in rows)
    reasons = "".join(f"| `{name}` | {why} |\n" for name, why in sorted(EXCEPTIONS.items()))
    tables = iter((shown, reasons))
    return re.sub(r"(?<=---\|\n)(?:\|.*\n)+", lambda _: next(tables), page)


def cell(text: str) -> str:
    """Text of several lines, in one cell."""
    return "; ".join(" ".join(line.split()) for line in text.strip().splitlines() if line.strip()).replace("|", "\\|")


def read_results() -> list[list[str]]:
    """The rows of all tests, in the order in which these are written."""
    rows: dict[str, list[list[str]]] = {}
    for file in ROWS.glob("*.json"):
        rows |= json.loads(file.read_text())
    listing = (sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", "lab", str(LAB))
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [row for name in names for row in rows.get(name, [])]


if __name__ == "__main__":
    if not ROWS.exists():
        print("lab: nothing was run, docs/lab.md stays", file=sys.stderr)
        raise SystemExit(0)
    PAGE.write_text(renew(PAGE.read_text(), read_results()))
