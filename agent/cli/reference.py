"""`rules`, `explain`, `schema`: reference output that needs no host."""

from __future__ import annotations

import difflib
import sys

from agent.cli.errors import CliError
from agent.rules.catalogue import every_rule


def print_rules(form: str) -> None:
    """Print all rules."""
    if form == "json":
        import msgspec

        rows = [
            {"rule": r.name, "severity": r.severity, "essential": r.essential, "title": r.title,
             "needs": list(r.needs), "absorbs": list(r.absorbs), "references": list(r.references)}
            for r in every_rule()
        ]  # fmt: skip
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")
        return
    wide = max(len(rule.name) for rule in every_rule())
    for rule in every_rule():
        sys.stdout.write(
            f"{rule.name:{wide}}  {rule.severity:8}  {'essential' if rule.essential else '':9}  {rule.title}\n"
        )


def print_rule(name: str) -> None:
    """Print one rule's page."""
    for rule in every_rule():
        if rule.name == name:
            essential = ", essential" if rule.essential else ""
            sys.stdout.write(f"{rule.name} ({rule.severity}{essential})\n\n{rule.page}\n")
            return
    near = difflib.get_close_matches(name, [rule.name for rule in every_rule()], n=1, cutoff=0)
    raise CliError(f"no rule {name!r}" + (f"; the nearest is {near[0]}" if near else ""))


def print_schema() -> None:
    """Print the JSON Schema of the report."""
    from agent.model.schema import schema_text

    sys.stdout.write(schema_text())
