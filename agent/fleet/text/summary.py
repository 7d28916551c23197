"""`fleet summary` for people."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.questions.options import NODE_STATES
from agent.fleet.questions.summary import FleetSummary
from agent.fleet.text.parts import STYLES, count, hosts, number, share, table, wrap_item
from agent.model.reasons import NO_EARLIER_RUN
from agent.outputs.text.lines import BLANK, Line, Span, line_length, make_heading, make_line, wrap_paragraph

_REASONS = 12  # why rules could not be judged; the rest is counted
_RULES = 6  # of one reason that are named
_FINDINGS = 3  # of one of the worst nodes that are named
_LOST = 5  # nodes with fewer GPUs than before that are named
_CLASS = 30  # characters that a hardware class needs beside columns of numbers


def page(answer: FleetSummary, width: int = 80) -> list[Line]:
    """The whole answer."""
    if not answer.nodes:
        return [make_line("no nodes")]
    spans = [
        (f"{number(answer.verdicts[verdict])} {verdict.replace('_', ' ')}", STYLES.get(verdict, ""))
        for verdict in NODE_STATES
        if verdict in answer.verdicts
    ]
    lines = _wrap_spans([(f"{count(answer.nodes, 'node')}:", "bold"), *spans], width)
    lines += wrap_paragraph(f"newest report {answer.newest}, oldest {answer.oldest}", width)
    if answer.silent:
        lines += wrap_paragraph(describe_silence(answer), width, "  ", "warning")
    if answer.stale:
        than = "than the newest by more than" if answer.silent else "than"
        text = f"stale (report older {than} {duration(answer.stale_after_seconds)}): "
        bad = answer.stale - answer.verdicts.get("stale", 0)
        known = f"; {number(bad)} of them {'counts' if bad == 1 else 'count'} by the last report" if bad else ""
        lines += wrap_item(text + hosts(answer.stale_hosts, answer.stale) + known, width)
    if answer.lost_gpus:
        lines += wrap_item(describe_lost_gpus(answer), width, style="warning")
    if answer.worst:
        lines += [BLANK, make_heading("Worst nodes"), *_worst(answer, width)]
    lines += [BLANK, make_heading("Classes"), *_classes(answer, width)]
    lines += [BLANK, make_heading("Coverage"), *_coverage(answer, width)]
    return lines


def describe_silence(answer: FleetSummary) -> str:
    """Of a fleet from which nothing arrives; the page has the same sentence."""
    return f"no report arrived for more than {duration(answer.stale_after_seconds)}: check how reports are collected"


def describe_lost_gpus(answer: FleetSummary) -> str:
    """Which nodes report nothing wrong but lost GPUs; the page has the same sentence."""
    named = [f"{lost.node} ({lost.before} -> {lost.now})" for lost in answer.lost_gpus[:_LOST]]
    more = len(answer.lost_gpus) - len(named)
    rest = f" and {number(more)} more" if more > 0 else ""
    who = "1 node reports" if len(answer.lost_gpus) == 1 else f"{number(len(answer.lost_gpus))} nodes report"
    counted = ", ".join(sorted({lost.state for lost in answer.lost_gpus}))
    return f"counted as {counted}: {who} nothing wrong and had more GPUs within the last week: {', '.join(named)}{rest}"


def _wrap_spans(spans: Sequence[Span], width: int) -> list[Line]:
    lines: list[Line] = []
    for span in spans:
        if not lines or line_length(lines[-1]) + 2 + len(span[0]) > width:
            lines.append(make_line("  ", span) if lines else make_line(span))
        else:
            lines[-1] = (*lines[-1], *make_line("  ", span))
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


def _classes(answer: FleetSummary, width: int) -> list[Line]:
    verdicts = [verdict for verdict in NODE_STATES if verdict in answer.verdicts]
    head = [
        "class",
        "nodes",
        *(verdict.replace("_", " ") for verdict in verdicts),
    ]
    rows = [
        [
            hardware_class.hardware_class,
            number(hardware_class.nodes),
            *(
                number(hardware_class.verdicts[verdict]) if verdict in hardware_class.verdicts else "-"
                for verdict in verdicts
            ),
        ]
        for hardware_class in answer.classes
    ]
    if width - sum(len(name) + 2 for name in head[1:]) < _CLASS:
        return table(["nodes", "class"], [[row[1], _describe_class(head, row)] for row in rows], width, 2)
    return table(head, rows, width)


def _describe_class(head: Sequence[str], row: Sequence[str]) -> str:
    """Where there is no room for a column of each verdict."""
    verdicts = ", ".join(f"{many} {name}" for name, many in zip(head[2:], row[2:], strict=True) if many != "-")
    return f"{row[0]}: {verdicts}"


def _describe_findings(findings: Sequence[str]) -> str:
    more = len(findings) - _FINDINGS
    return "; ".join(findings[:_FINDINGS]) + (f"; and {count(more, 'rule')} more" if more > 0 else "")


def describe_coverage(answer: FleetSummary) -> str:
    """How many rules were checked on every node that they apply to; the page has the same sentence."""
    if answer.stale == answer.nodes:
        return "nothing: every node is stale"
    whole = sum(not coverage.unknown and not coverage.missing for coverage in answer.coverage)
    text = f"{number(whole)} of {count(len(answer.coverage), 'rule')} judged on every node that they apply to"
    return text + (" (without stale nodes)" if answer.stale else "")


def describe_reason(reason: str) -> str:
    """Why a rule could not be checked, and what of it the fleet shows; the page has the same words."""
    return f"{reason}; fleet drift compares the reports of a node" if reason == NO_EARLIER_RUN else reason


def _coverage(answer: FleetSummary, width: int) -> list[Line]:
    """By why a rule was not judged, as one reason holds for many rules. Stale nodes are in no number here."""
    fresh = answer.nodes - answer.stale
    lines = wrap_item(describe_coverage(answer), width, "  ")
    if not fresh:
        return lines
    reasons: dict[str, list[tuple[str, int]]] = {}
    for coverage in answer.coverage:
        for reason, nodes in coverage.reasons:
            reasons.setdefault(reason, []).append((coverage.rule, nodes))
        if coverage.missing:
            reasons.setdefault("not in the report: written by another version", []).append(
                (coverage.rule, coverage.missing)
            )
    ranked = sorted(reasons.items(), key=lambda item: (-max(nodes for _, nodes in item[1]), -len(item[1]), item[0]))
    for reason, rules in ranked[:_REASONS]:
        lines += wrap_item(_reason(reason, rules, fresh), width)
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
    return f"{on}: {describe_reason(reason)} [{names}{more}]"


def _worst(answer: FleetSummary, width: int) -> list[Line]:
    rows = [
        [worst.node, worst.verdict + (" (stale)" if worst.stale else ""), _describe_findings(worst.findings)]
        for worst in answer.worst
    ]
    lines = table(["node", "verdict", "findings"], rows, width, 3)
    if answer.more_worst:
        lines += wrap_paragraph(f"and {count(answer.more_worst, 'node')} more with findings", width, "  ", "dim")
    return lines
