"""The tables of a dataset as a page for people: `python -m agent.fleet.reference --write docs/fleet-dataset.md`."""

from __future__ import annotations

import sys

from agent.fleet.tables import CHANGE, SIGHTING, TABLES, Table

BEGIN, END = "<!-- tables: written by agent/fleet/reference.py -->", "<!-- end of tables -->"


def tables() -> str:
    """Every table with its columns, in Markdown."""
    return "\n".join(_table(table) for table in (*TABLES.values(), CHANGE, SIGHTING))


def renew_page(page: str) -> str:
    """A page with its tables as they are now. Raises ValueError where it has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def _table(table: Table) -> str:
    """Volatile columns are in italics."""
    key = ", ".join(f"`{name}`" for name in ("node", *table.key))
    note = "" if table.history else " No history."
    lines = [f"### {table.name}", "", f"{table.about} Key: {key}.{note}", "", "| column | type | |", "|---|---|---|"]
    for column in table.columns[1:]:
        name = f"*{column.name}*" if column.volatile else f"`{column.name}`"
        lines.append(f"| {name} | {column.type} | {column.about.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        text = file.read()
    if sys.argv[1] == "--write":
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(renew_page(text))
    elif renew_page(text) != text:
        sys.exit(f"{sys.argv[2]} is not current: make docs")
