"""Expected nodes beside those that report: never reported, silent, unexpected; and which to drain."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query
from agent.fleet.episodes.history import is_at_least
from agent.fleet.expected.sources import ExpectedNode
from agent.fleet.hostlist import fold
from agent.fleet.node_names import NodeNames, short_name
from agent.fleet.questions.options import Options, find_reference_time, format_stamp, subtract_time

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
ARRIVALS = query("episodes", "named_arrivals")
FINDINGS = query("episodes", "severe_findings")


class ExpectedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `what`: never | silent | unexpected | out | drain."""

    what: str
    node: str
    hostname: str | None = None  # of an unexpected node, where it is not what the dataset calls it
    state: str | None = None  # in the words of the list
    reason: str | None = None
    last_report: str | None = None
    rules: list[str] = []  # of `drain`: findings that state it


class ExpectedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet expected`. `out`: out of service by the list, and so neither missing nor to be drained."""

    format: str = "fabricscope.expected/1"
    expected: int
    reporting: int  # of these
    rows: list[ExpectedRow] = []

    def of(self, what: str) -> list[ExpectedRow]:
        """The rows of one kind."""
        return [row for row in self.rows if row.what == what]

    def hosts(self, what: str) -> str:
        """Their nodes, folded."""
        return fold(row.node for row in self.of(what))


def compare(
    tables: Tables, nodes: Iterable[ExpectedNode], options: Options, drain_at: str = "critical"
) -> ExpectedAnswer:
    """Nodes of a list beside those of the dataset. Names are compared without a cluster's prefix and a domain.

    Raises AmbiguousName.
    """
    listed = {short_name(node.name): node for node in nodes}
    there = {node: (hostname, received) for node, hostname, received in tables.rows(ARRIVALS)}
    names = NodeNames((node, hostname) for node, (hostname, _) in there.items())
    found = {short: names.find_short(expected.name) for short, expected in listed.items()}
    newest = max((received for _, received in there.values() if received), default=None)
    cut = (
        subtract_time(find_reference_time(newest, options), timedelta(seconds=options.stale_after_seconds))
        if newest
        else None
    )
    bad: dict[str, set[str]] = {}
    for node, rule, severity in tables.rows(FINDINGS):
        if is_at_least(severity, drain_at):
            bad.setdefault(node, set()).add(rule)
    rows, reporting = [], 0
    for short, expected in listed.items():
        node = found[short]
        received = there[node][1] if node is not None else None
        silent = node is not None and cut is not None and (received is None or received < cut)
        reporting += node is not None and not silent
        last = format_stamp(received) if received else None
        if expected.out:
            rows.append(_row("out", expected, last))
        elif node is None:
            rows.append(_row("never", expected, None))
        elif silent:
            rows.append(_row("silent", expected, last))
        if node is not None and not silent and not expected.out and node in bad:
            rows.append(_row("drain", expected, last, sorted(bad[node])))
    matched = set(found.values())
    rows += [
        ExpectedRow(
            what="unexpected",
            node=node,
            hostname=hostname if hostname and short_name(hostname) != short_name(node) else None,
            last_report=format_stamp(received) if received else None,
        )
        for node, (hostname, received) in there.items()
        if node not in matched
    ]
    return ExpectedAnswer(expected=len(listed), reporting=reporting, rows=rows)


def _row(what: str, expected: ExpectedNode, last: str | None, rules: list[str] | None = None) -> ExpectedRow:
    return ExpectedRow(
        what=what,
        node=expected.name,
        state=expected.state,
        reason=expected.reason,
        last_report=last,
        rules=rules or [],
    )


def slurm_drain(answer: ExpectedAnswer) -> str:
    """Lines for a shell: nothing here runs them."""
    return _commands(answer, 'scontrol update NodeName={node} State=DRAIN Reason="fabricscope: {reason}"')


def kubernetes_drain(answer: ExpectedAnswer) -> str:
    """Lines for a shell: cordon, so that running pods end by themselves."""
    return _commands(answer, "kubectl cordon {node}  # fabricscope: {reason}")


def _commands(answer: ExpectedAnswer, command: str) -> str:
    """One for each node to drain; a name that a shell could take for something else gets a comment."""
    lines = [
        command.format(node=row.node, reason=_reason(row))
        if _PLAIN.fullmatch(row.node)
        else f"# no command for a node of this name: {ascii(row.node)[:80]}"
        for row in answer.of("drain")
    ]
    return "".join(f"{line}\n" for line in lines)


def _reason(row: ExpectedRow) -> str:
    """Names of rules: letters, digits and hyphens only."""
    return " ".join(rule for rule in row.rules if rule.replace("-", "").isalnum())[:200]
