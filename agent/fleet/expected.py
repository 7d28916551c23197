"""Nodes that there should be, beside those that report: never reported, silent, unexpected; and which to drain.

Lists are distinguished by content: host lists, sinfo(1) (node states and their suffixes), `kubectl get nodes -o json`
(Kubernetes' core/v1 NodeList), devices of NetBox's REST API (dcim/devices). Not here: hardware that a node should have
(agent.platforms), and what NetBox is sent (agent.netbox).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query
from agent.fleet.episodes import is_at_least
from agent.fleet.hostlist import BadHostlist, NodeNames, fold, short_name, unfold
from agent.fleet.questions.options import Options, find_stale_cut, format_stamp
from agent.model.labels import group_by_key

LIMIT_BYTES = 1 << 28
_MOST_REASON = 200
_SUFFIXES = "*~#!%$@^-+"  # of a node's state: not responding, powered off, ..
_SLURM_STATES = frozenset(
    ("alloc", "allocated", "block", "blocked", "boot", "cloud", "comp", "completing", "down", "drain", "drained",
     "draining", "drng", "fail", "failg", "failing", "futr", "future", "idle", "inval", "maint", "mix", "mixed", "npc",
     "perfctrs", "planned", "plnd", "pow_dn", "pow_up", "power_down", "power_up", "powered_down", "powering_down",
     "powering_up", "reboot", "reboot_issued", "reboot_requested", "reserved", "resv", "unk", "unknown")
)  # fmt: skip
_OUT_OF_SLURM = ("down", "drain", "drng", "fail", "futr", "future", "maint", "inval", "power_down", "powered_down")
_OUT_OF_NETBOX = frozenset(("offline", "failed", "decommissioning", "inventory", "planned", "staged"))
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
ARRIVALS = query("episodes", "named_arrivals")
FINDINGS = query("episodes", "severe_findings")


class BadNodeList(ValueError):
    """The list cannot be used; the message states why, without its name."""


class ExpectedNode(NamedTuple):
    """A node that there should be. `out`: taken out of service; `state`: in the words of its source."""

    name: str
    state: str | None = None
    out: bool = False
    reason: str | None = None


def read_expected(data: bytes) -> list[ExpectedNode]:
    """The nodes of a list, each once; of several entries one that is in service counts. Raises BadNodeList."""
    text = data.decode("utf-8-sig", "replace")
    nodes: dict[str, ExpectedNode] = {}
    for node in _of_json(text) if text.lstrip().startswith(("{", "[")) and _is_json(text) else _of_lines(text):
        known = nodes.get(node.name)
        if known is None or (known.out and not node.out):
            nodes[node.name] = node
    if not nodes:
        raise BadNodeList("it names no node")
    return list(nodes.values())


def _is_json(text: str) -> bool:
    """A host list may begin with a bracket, too."""
    return re.match(r'\s*(\{|\[\s*[\[{"\]])', text) is not None


def _of_json(text: str) -> Iterator[ExpectedNode]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadNodeList(f"damaged JSON: {error}") from error
    items = document if isinstance(document, list) else _get(document, "items") or _get(document, "results")
    if not isinstance(items, list):
        raise BadNodeList("its JSON is neither of `kubectl get nodes -o json` nor of NetBox's dcim/devices")
    for item in items:
        node = _of_kubernetes(item) if _get(item, "metadata") is not None else _of_netbox(item)
        if node is not None:
            yield node


def _of_kubernetes(item: Any) -> ExpectedNode | None:
    name = _get(item, "metadata", "name")
    if not isinstance(name, str) or not name or _get(item, "kind") not in ("Node", None):
        return None
    conditions = _get(item, "status", "conditions")
    ready = next(
        (_get(condition, "status") for condition in conditions if _get(condition, "type") == "Ready"), None
    ) if isinstance(conditions, list) else None  # fmt: skip
    cordoned = _get(item, "spec", "unschedulable") is True
    words = [*(["cordoned"] if cordoned else []), *([] if ready in (None, "True") else ["not ready"])]
    return ExpectedNode(name, ", ".join(words) or "ready", cordoned)


def _of_netbox(item: Any) -> ExpectedNode | None:
    name, status = _get(item, "name"), _get(item, "status")
    state = _get(status, "value") if isinstance(status, dict) else status
    if not isinstance(name, str) or not name:
        return None
    word = state if isinstance(state, str) else None
    return ExpectedNode(name, word, word in _OUT_OF_NETBOX)


def _get(item: Any, *keys: str) -> Any:
    for key in keys:
        item = item.get(key) if isinstance(item, dict) else None
    return item


def _of_lines(text: str) -> Iterator[ExpectedNode]:
    """Host lists, or lines of `sinfo -hN -o "%N %T %E"`."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        state = words[1].lower().rstrip(_SUFFIXES) if len(words) > 1 else ""
        is_slurm = bool(state) and set(state.split("+")) <= _SLURM_STATES
        try:
            names = unfold(words[0] if is_slurm else ",".join(_until_comment(words)))
        except BadHostlist as error:
            raise BadNodeList(f"line {number}: {error}") from error
        reason = " ".join(words[2:])[:_MOST_REASON] if is_slurm else ""
        for name in names:
            out = is_slurm and any(flag.startswith(_OUT_OF_SLURM) for flag in state.split("+"))
            yield ExpectedNode(name, words[1] if is_slurm else None, out, None if reason in ("", "none") else reason)


def _until_comment(words: list[str]) -> list[str]:
    end = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:end]


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
    cut = find_stale_cut(newest, options) if newest else None
    findings = tables.rows(FINDINGS)
    bad = group_by_key((node, rule) for node, rule, severity in findings if is_at_least(severity, drain_at))
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
        elif node in bad:
            rows.append(_row("drain", expected, last, sorted(set(bad[node]))))
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


def _row(what: str, expected: ExpectedNode, last: str | None, rules: Sequence[str] = ()) -> ExpectedRow:
    name, state, _, reason = expected
    return ExpectedRow(what=what, node=name, state=state, reason=reason, last_report=last, rules=list(rules))


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
