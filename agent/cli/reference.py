"""`rules`, `explain`, `schema`: reference output that needs no host."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from agent.cli.errors import CliError, hint_path, print_warning
from agent.cli.output import deliver_text, show
from agent.rules.catalogue import FAMILIES, every_rule
from agent.rules.renamed import find_renamed
from agent.rules.rule import Rule
from agent.version import VERSION

if TYPE_CHECKING:
    from agent.model.finding import Finding
    from agent.model.report import Report

_NUMBER = re.compile(r"(?<=[A-Za-z])-?(?=[0-9])")  # where a word ends and its number begins
_PART = re.compile(r"(GPU|NIC|mlx5_|bnxt_|irdma|eth|ens|enp|node$|[0-9a-f]{4}:)")
_LABELS = 12  # of parts with findings, in a hint
_SHORT = ("What it checks", "Why it matters", "How to confirm")  # sections that everyone reads
_SHORT_FIX = 12  # lines


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
    _print_list(every_rule())


def print_rule(name: str, everything: bool = False) -> None:
    """Print what one rule checks and why, or its whole page; of a prefix or family the list of its rules. Raises
    CliError."""
    rules = {rule.name: rule for rule in every_rule()}
    renamed = find_renamed(name)
    if renamed:
        if renamed.name is None:
            sys.stdout.write(f"{renamed.note}\n")
            return
        print_warning(renamed.note)
        name = renamed.name
    if name in rules:
        rule = rules[name]
        essential = ", essential" if rule.essential else ""
        page = f"{rule.name} ({rule.severity}{essential})\n\n{rule.page if everything else shorten_page(rule)}\n"
        if sys.stdout.isatty():
            from agent.outputs.text.rule_page import fold_page

            show(lambda width: fold_page(page, width), None, no_color=False)
        else:
            sys.stdout.write(page)
        return
    family = next((set(family.rules) for family in FAMILIES if family.name == name), set())
    matching = [
        rule for rule in rules.values() if rule.name in family or rule.name.startswith(name.rstrip("-*") or " ")
    ]
    if matching:
        _print_list(matching)
        return
    if _print_switch_rules(name):
        return
    hint = _hint_name(name, list(rules))
    matching = _find_by_words(name, rules.values(), in_pages=hint is None)
    if not matching and hint is None:
        matching = _find_by_words(_NUMBER.sub(" ", name), rules.values(), in_pages=True)  # xid79
    if not matching:
        raise CliError(f"no rule, prefix or family {name!r:.80}", hint or "fabricscope rules lists all rules")
    _print_list(matching)


def _find_by_words(text: str, rules: Iterable[Rule], in_pages: bool) -> list[Rule]:
    """Rules whose name or title has these words, else whose page has them: first those whose title has most."""
    words = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![0-9])", re.IGNORECASE) for word in text.split()]
    titles, pages = [], {}
    for rule in rules if words else ():
        in_title = sum(bool(word.search(f"{rule.name} {rule.title}")) for word in words)
        if in_title == len(words):
            titles.append(rule)
        elif in_pages and not titles and all(word.search(rule.page) for word in words):
            pages[rule.name] = -in_title, rule
    return titles or [rule for _, rule in sorted(pages.values(), key=lambda row: row[0])]


def _hint_name(name: str, rules: Sequence[str]) -> str | None:
    """What was meant by a name that no rule has: a rule, also by its beginning, a part of a report, a file."""
    if path := hint_path("explain", name):
        return path
    if _PART.match(name):
        return f"findings of a part are in a report: fabricscope explain {name} --report FILE"
    near = difflib.get_close_matches(name, rules, n=1, cutoff=0.75)
    if name and not near:
        cut = {rule[: len(name)]: rule for rule in reversed(rules)}
        near = [cut[begin] for begin in difflib.get_close_matches(name, cut, n=1, cutoff=0.8)]
    return f"did you mean {near[0]}?" if near else None


def _print_switch_rules(name: str) -> bool:
    """Print a rule of `fleet lossless`, or those that begin so; whether there is one."""
    from agent.fleet.lossless.fault import switch_rules

    rules = switch_rules()
    if name in rules:
        rule = rules[name]
        lines = [f"{rule.id} ({rule.severity}, of fabricscope fleet lossless)", "", rule.title, "", rule.impact, ""]
        for family, steps in rule.remedy.items():
            lines += [f"Fix ({family}):", *(f"  {step}" for step in steps)]
        sys.stdout.write("\n".join(lines) + "\n")
        return True
    matching = [rule for rule in rules.values() if rule.id.startswith(name.rstrip("-*") or " ")]
    for rule in matching:
        sys.stdout.write(f"{rule.id:<24} {rule.severity:<9} {rule.title}\n")
    return bool(matching)


def shorten_page(rule: Rule) -> str:
    """The page without what a finding states better: how it is decided, when it does not apply, fixes of every part.

    A fix of one way only stays; of ways to confirm that which is for most kinds.
    """
    first, *sections = rule.page.split("\n## ")
    kept = [section for section in sections if section.partition("\n")[0] in _SHORT or _is_one_way(section)]
    left = [section.partition("\n")[0].lower() for section in sections if section not in kept]
    several = next((section for section in kept if section.startswith("How to confirm") and "\nFor " in section), None)
    if several is not None:
        from agent.rules.instructions import choose_blocks  # lazy: few pages have several

        heading, _, text = several.partition("\n")
        kept[kept.index(several)] = "\n".join((heading, *choose_blocks(text, ("other",))))
        left.append("how to confirm each kind")
    more = f"\n\nWith --all also: {', '.join(left)}." if left else ""
    more += " With --report FILE: how to fix the part at hand." if "how to fix" in left else ""
    return "\n## ".join([first, *(section.rstrip() + "\n" for section in kept)]).rstrip() + more


def _is_one_way(section: str) -> bool:
    return section.startswith("How to fix") and "\nFor " not in section and section.count("\n") <= _SHORT_FIX


def print_findings(name: str, path: str, everything: bool = False) -> None:
    """Print the findings of one rule or part in a report; with `everything` also the pages of their rules. Raises
    CliError."""
    from msgspec.structs import replace

    from agent.cli.request import load_report
    from agent.outputs.text.findings import render_findings

    report = load_report(path)
    devices = report.topology.find_named(name) or report.topology.find_named(name.partition("/")[0])
    findings = [finding for finding in report.findings if _is_about(finding, name, devices)]
    if not findings:
        raise _describe_nothing(report, path, name, devices)
    selected = replace(report, findings=findings)
    show(lambda width: render_findings(selected, width, everything=True), None, no_color=False)
    for rule in dict.fromkeys(finding.rule for finding in findings) if everything else ():
        sys.stdout.write("\n")
        print_rule(rule, everything)


def _is_about(finding: Finding, name: str, devices: set[str]) -> bool:
    """Whether a finding is of that rule or explains one of it, or is about that part; "mlx5_0/1" is a port of one."""
    subject, explained = finding.subject, [line.partition(" ")[0] for line in finding.absorbs]
    if name in (finding.rule, finding.label, subject, subject.partition(":")[2], *explained):
        return True
    of_port, own = name.partition("/")[2], subject.partition("/")[2]
    return bool(devices & finding.list_concerned()) and (not of_port or own in ("", of_port))


def _describe_nothing(report: Report, path: str, name: str, devices: set[str]) -> CliError:
    """The error where a report has no such finding."""
    from agent.model.finding import list_devices
    from agent.model.labels import name_first

    labels = ", ".join(sorted({finding.label for finding in report.findings})[:_LABELS])
    hint = f"findings are on {labels}" if labels else "the report has no findings"
    if not devices:
        return CliError(f"{path}: no finding of a rule or part {name!r:.80}", hint)
    unjudged = [
        check.rule
        for check in report.checks
        if any(devices.intersection(list_devices(unknown.subject)) for unknown in check.unknown_subjects)
    ]
    if unjudged:
        hint = f"not judged there: {name_first(unjudged, _LABELS)}"
    return CliError(f"{path}: no finding on {name:.80}", hint)


def _print_list(rules: Sequence[Rule]) -> None:
    """One line a rule for a pipe, so that `grep` finds all of it."""
    from agent.outputs.text.rule_page import list_rules

    rows = [(rule.name, rule.severity, rule.essential, rule.title) for rule in rules]
    show(lambda width: list_rules(rows, width if sys.stdout.isatty() else sys.maxsize), None, no_color=False)


def print_completion(app: typer.Typer, shell: str) -> None:
    """Print the completion of a shell, made from the commands."""
    from agent.cli.command_tree import read_commands
    from agent.cli.completions import bash_completion, fish_completion, zsh_completion

    make = {"bash": bash_completion, "zsh": zsh_completion, "fish": fish_completion}[shell]
    deliver_text(make(read_commands(app), f"fabricscope {VERSION}"), None)


def print_schema() -> None:
    """Print the JSON Schema of the report."""
    from agent.model.report import schema_text

    sys.stdout.write(schema_text())
