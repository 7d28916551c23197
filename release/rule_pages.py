"""The pages of all rules with an index, for a documentation site: `python -m release.rule_pages DIR`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from agent.rules.catalogue import FAMILIES, every_rule
from agent.rules.pages import page_paths
from agent.rules.rule import Rule


def page(rule: Rule) -> str:
    """One page, its head as a table."""
    title, _, body = rule.page.partition("\n")
    facts = [
        ("Severity", rule.severity),
        ("Essential", "yes: the verdict is unknown where this rule is" if rule.essential else "no"),
        ("Needs", ", ".join(need.replace("|", " or ") for need in rule.needs)),
        ("Stands for", ", ".join(f"[{name}]({name}.md)" for name in rule.absorbs) or "-"),
        ("References", ", ".join(rule.references)),
    ]
    table = "".join(f"| {key} | {value} |\n" for key, value in facts)
    return f"# {rule.name}\n\n{title}\n\n| | |\n|---|---|\n{table}\n{body.strip()}\n"


def index() -> str:
    """The list of all rules, by family."""
    lines = ["# Rules", ""]
    rules = {rule.name: rule for rule in every_rule()}
    for family in FAMILIES:
        lines += [f"## {family.name}", "", "| rule | severity | essential | what is wrong |", "|---|---|---|---|"]
        for name in family.rules:
            rule = rules[name]
            essential = "yes" if rule.essential else ""
            lines.append(f"| [{name}]({name}.md) | {rule.severity} | {essential} | {rule.title} |")
        lines.append("")
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the index and every page; what else is in the folder stays."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(index(), encoding="utf-8")
    for rule in every_rule():
        (folder / f"{rule.name}.md").write_text(page(rule), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write the pages into the folder that is named; 2 for wrong usage."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m release.rule_pages DIR\n")
        return 2
    write(Path(arguments[0]))
    print(f"{arguments[0]}: {len(page_paths())} rules")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
