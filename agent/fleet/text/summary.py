"""`fleet summary` for people."""

from __future__ import annotations

from agent.fleet.questions.summary import FleetSummary
from agent.fleet.text.parts import STYLES, count, hosts, number, share, table, told
from agent.model.finding import VERDICTS
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

_REASONS = 12  # why rules could not be judged; the rest is counted
_RULES = 6  # of one reason that are named


def page(found: FleetSummary, width: int = 80) -> list[Line]:
    """The whole answer."""
    if not found.nodes:
        return [make_line("no nodes")]
    first = f"{count(found.nodes, 'node')}, newest report {found.newest}, oldest {found.oldest}"
    lines = wrap_paragraph(first, width, "  ", "bold", first="")
    if found.silent:
        said = f"no report arrived for more than {duration(found.stale_after_seconds)}: check how reports are collected"
        lines += wrap_paragraph(said, width, "  ", "warning")
    spans = [
        (f"{number(found.verdicts[verdict])} {verdict.replace('_', ' ')}", STYLES.get(verdict, ""))
        for verdict in VERDICTS
        if verdict in found.verdicts
    ]
    if found.stale:
        spans.append((f"{number(found.stale)} stale", "warning"))
    joined = [piece for span in spans for piece in (span, "  ")]
    lines.append(make_line("  ", *joined[:-1]))
    if found.stale:
        than = "than the newest by more than" if found.silent else "than"
        text = f"stale (report older {than} {duration(found.stale_after_seconds)}): "
        lines += told(text + hosts(found.stale_hosts, found.stale), width)
    lines += [BLANK, make_heading("Classes"), *_classes(found, width)]
    lines += [BLANK, make_heading("Coverage"), *_coverage(found, width)]
    if found.worst:
        lines += [BLANK, make_heading("Worst nodes"), *_worst(found, width)]
    return lines


def duration(seconds: float) -> str:
    """
    >>> duration(86400), duration(5400), duration(90)
    ('1 day', '1.5 hours', '1.5 minutes')
    """
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"
    return f"{seconds:g} s"


def _classes(found: FleetSummary, width: int) -> list[Line]:
    shown = [each for each in VERDICTS if each in found.verdicts]
    head = ["class", "nodes", *(each.replace("_", " ") for each in shown), *(["stale"] if found.stale else [])]
    rows = [
        [
            hardware_class.hardware_class,
            number(hardware_class.nodes),
            *(
                number(hardware_class.verdicts[verdict]) if verdict in hardware_class.verdicts else "-"
                for verdict in shown
            ),
            *([number(hardware_class.stale) if hardware_class.stale else "-"] if found.stale else []),
        ]
        for hardware_class in found.classes
    ]
    return table(head, rows, width)


def describe_coverage(found: FleetSummary) -> str:
    """How many rules were checked on every node that they apply to; the page has the same sentence."""
    if found.stale == found.nodes:
        return "nothing: every node is stale"
    whole = sum(not coverage.unknown and not coverage.missing for coverage in found.coverage)
    text = f"{number(whole)} of {count(len(found.coverage), 'rule')} judged on every node that has what they are for"
    return text + (", stale ones left out" if found.stale else "")


def _coverage(found: FleetSummary, width: int) -> list[Line]:
    """By why a rule was not judged, as one reason holds for many rules. Stale nodes are in no number here."""
    fresh = found.nodes - found.stale
    lines = told(describe_coverage(found), width, "  ")
    if not fresh:
        return lines
    reasons: dict[str, list[tuple[str, int]]] = {}
    for coverage in found.coverage:
        for reason, nodes in coverage.reasons:
            reasons.setdefault(reason, []).append((coverage.rule, nodes))
        if coverage.missing:
            reasons.setdefault("not in the report: written by another version", []).append(
                (coverage.rule, coverage.missing)
            )
    ranked = sorted(reasons.items(), key=lambda item: (-max(nodes for _, nodes in item[1]), -len(item[1]), item[0]))
    for reason, rules in ranked[:_REASONS]:
        lines += told(_reason(reason, rules, fresh), width)
    if len(ranked) > _REASONS:
        lines.append(
            make_line((f"  and {count(len(ranked) - _REASONS, 'reason')} more (--format json has all)", "dim"))
        )
    return lines


def _reason(reason: str, rules: list[tuple[str, int]], nodes: int) -> str:
    most = max(many for _, many in rules)
    least = min(many for _, many in rules)
    on = (
        f"{count(most, 'node')} ({share(most, nodes)})" if most == least else f"{number(least)} to {number(most)} nodes"
    )
    names = ", ".join(sorted(rule for rule, _ in rules)[:_RULES])
    more = f" and {number(len(rules) - _RULES)} more" if len(rules) > _RULES else ""
    return f"{on}: {reason} [{names}{more}]"


def _worst(found: FleetSummary, width: int) -> list[Line]:
    head = ["node", "verdict", "class", "critical", "error", "warning"]
    rows = [
        [
            worst.node,
            worst.verdict + (" (stale)" if worst.stale else ""),
            worst.hardware_class or "",
            *(number(many) if many else "-" for many in (worst.critical, worst.error, worst.warning)),
        ]
        for worst in found.worst
    ]
    lines = table(head, rows, width, 3, fold=False)  # whole under Classes
    if found.more_worst:
        lines += wrap_paragraph(f"and {count(found.more_worst, 'node')} more with findings", width, "  ", "dim")
    return lines
