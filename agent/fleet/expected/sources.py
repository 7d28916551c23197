"""Lists of expected nodes: host lists, sinfo, `kubectl get nodes -o json`, devices of NetBox; distinguished by content.

Contracts: sinfo(1) (node states and their suffixes), Kubernetes' core/v1 NodeList, NetBox's REST API (dcim/devices).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from agent.fleet.hostlist import BadHostlist, unfold

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
