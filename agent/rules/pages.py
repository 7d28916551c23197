"""The pages of all rules as Markdown: `python -m agent.rules.pages --write DIR` makes them, `--check DIR` holds them.

A page is the rule's docstring under its metadata, so that `explain` and the documentation cannot differ.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from agent.rules.catalogue import every_rule
from agent.rules.rule import Rule

HEADINGS = (
    "What it checks",
    "Why it matters",
    "How it is decided",
    "What keeps it silent",
    "How to confirm",
    "How to fix",
    "Source",
)


def page(rule: Rule) -> str:
    """One rule's page."""
    title, _, body = rule.page.partition("\n")
    facts = [
        ("Severity", rule.severity),
        ("Essential", "yes: the verdict is unknown where this rule is" if rule.essential else "no"),
        ("Needs", ", ".join(need.replace("|", " or ") for need in rule.needs)),
        ("Stands for", ", ".join(f"[{name}]({name}.md)" for name in rule.absorbs) or "-"),
        ("References", ", ".join(rule.references)),
    ]
    table = "".join(f"| {key} | {value} |\n" for key, value in facts)
    return f"# {rule.name}\n\n{title.strip()}\n\n| | |\n|---|---|\n{table}\n{body.strip()}\n"


def index(rules: Sequence[Rule]) -> str:
    """The list of all rules."""
    rows = "".join(
        f"| [{r.name}]({r.name}.md) | {r.severity} | {'yes' if r.essential else ''} | {r.title} |\n" for r in rules
    )
    return f"# Rules\n\n| rule | severity | essential | what is wrong |\n|---|---|---|---|\n{rows}"


def pages() -> dict[str, str]:
    """Every file of docs/rules by name."""
    return {"README.md": index(every_rule())} | {f"{rule.name}.md": page(rule) for rule in every_rule()}


def write(folder: str) -> None:
    """Write all pages, and remove those of rules that are no more."""
    os.makedirs(folder, exist_ok=True)
    made = pages()
    for name in os.listdir(folder):
        if name.endswith(".md") and name not in made:
            os.unlink(os.path.join(folder, name))
    for name, text in made.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def differences(folder: str) -> list[str]:
    """Files that are not as they should be, each with what is wrong."""
    made = pages()
    there = {name for name in os.listdir(folder) if name.endswith(".md")} if os.path.isdir(folder) else set()
    wrong = [f"{name}: of no rule" for name in sorted(there - made.keys())]
    for name, text in sorted(made.items()):
        if name not in there:
            wrong.append(f"{name}: missing")
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if file.read() != text:
                wrong.append(f"{name}: differs from the rule's docstring")
    return wrong


def main(arguments: Sequence[str]) -> int:
    """`--write DIR` or `--check DIR`; 1 where the check finds a difference, 2 for wrong usage."""
    if len(arguments) != 2 or arguments[0] not in ("--write", "--check"):
        sys.stderr.write("usage: python -m agent.rules.pages --write|--check DIR\n")
        return 2
    if arguments[0] == "--write":
        write(arguments[1])
        return 0
    wrong = differences(arguments[1])
    sys.stderr.write("".join(f"{arguments[1]}/{line}; run --write\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
