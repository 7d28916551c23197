"""`fleet outliers` for people: by hardware class, one line per answer, each difference as a sentence."""

from __future__ import annotations

from itertools import groupby

from agent.fleet.questions.deviations import NoMajority, Outlier
from agent.fleet.questions.multisets import ABSENT
from agent.fleet.questions.outliers import Outliers
from agent.fleet.text.parts import count, hosts, name_asked, number, share, wrap_item
from agent.model.gpu import Gpu, NpuPort
from agent.model.nic import Netdev
from agent.model.peers import COMPARED_WORDS
from agent.outputs.text.lines import BLANK, Line, make_heading, wrap_paragraph
from agent.rules.peers.fields import list_fields

_KINDS = {"gpu": (Gpu, "all GPUs"), "netdev": (Netdev, "all rails"), "npu": (NpuPort, "all NPUs")}
_OWN = {"driver": "driver parameter {}", "module": "version of module {}", "imex": "number of {} that IMEX is set to"}
_STATES = {
    "no_driver": "no driver is bound",
    "vfio": "it is passed to a guest (vfio)",
    "no_rdma_device": "it has no RDMA device",
    "other_namespace": "its interface is in another network namespace",
    "present": "a driver is bound",
}


def describe_outlier(outlier: Outlier) -> str:
    """What it has, how far that is away, and what its peers have."""
    words = f"{_has(outlier)}{_away(outlier)}; {_usually(outlier)}"
    return f"{words[:1].upper()}{words[1:]}."


_LABELS = 4


def page(answer: Outliers, width: int = 80) -> list[Line]:
    """The whole answer."""
    asked = name_asked(answer.compared_nodes, answer.compared_switches)
    compared = f"{asked} of {count(len(answer.classes), 'hardware class')} compared"
    many = count(len(answer.outliers), "outlier") if answer.outliers else "no outliers"
    first = f"{compared}: {many}" if answer.classes else "no node has enough others of its class to compare with"
    lines = wrap_paragraph(first, width, "  ", first="")
    for name, outliers in groupby(answer.outliers, lambda outlier: outlier.hardware_class):
        lines += [BLANK, *_class(name, answer.classes.get(name), width)]
        for outlier in outliers:
            lines += wrap_item(sentence(outlier), width)
    mixed = sorted(answer.mixed, key=lambda outlier: outlier.hardware_class)
    if mixed:
        lines += [BLANK, make_heading("No majority value, outliers not computed")]
        for group in mixed:
            lines += wrap_item(mixture(group), width)
    if answer.too_few:
        alone = ", ".join(f"{name} ({number(nodes)})" for name, nodes in answer.too_few.items())
        text = f"Too few nodes for a majority: {alone}"
        lines += [BLANK, *wrap_paragraph(text, width, "  ", "dim", first="")]
    return lines


def sentence(outlier: Outlier) -> str:
    """One answer without its class."""
    words = f"{_has(outlier)}{_away(outlier)}{_describe_place(outlier)}; {_usually(outlier)}"
    parts = [f"{hosts(outlier.hosts, outlier.nodes)}: {words}"]
    if outlier.also:
        parts.append(f"With it: {'; '.join(outlier.also)}")
    if outlier.common:
        parts.append(f"In common: {'; '.join(outlier.common)}")
    if outlier.stale:
        parts.append(f"No recent report from {hosts(outlier.stale, outlier.nodes)}")
    return ". ".join(parts)


def mixture(group: NoMajority) -> str:
    """One group without a usual value."""
    values = ", ".join(f"{value} on {share(count, group.of)}" for value, count in group.values)
    places = f" of {group.places[0]}" if len(group.places) == 1 else ""
    return f"{group.what}{places}: {values} of {count(group.of, group.one)} of {group.hardware_class}"


def _away(outlier: Outlier) -> str:
    return f" ({outlier.by})" if outlier.by else ""


def _has(outlier: Outlier) -> str:
    if outlier.attribute in ("cmdline", "settings"):
        if outlier.value == ABSENT:
            return f"{outlier.what} has no {outlier.usual}"
        return f"{outlier.what} has {outlier.value}"
    if outlier.attribute == "services":
        return f"service {outlier.value.replace('=', ' is ', 1)}"
    if outlier.attribute == "part-settings":
        return _format_setting(outlier.value)
    if outlier.attribute == "probe-status":
        return f"status of the probe {', '.join(outlier.places)}: {outlier.value}"
    if outlier.attribute.endswith("-pfc"):
        return "PFC is off" if outlier.value == "off" else f"PFC is on for {outlier.value}"
    if outlier.attribute == "nic-state" and outlier.value in _STATES:
        return _STATES[outlier.value]
    what = outlier.what.removesuffix(" of a rail").removesuffix(" of a switch port")
    return f"{what} is {outlier.value}"


def _format_setting(text: str) -> str:
    """
    >>> _format_setting("gpu.health.power_limit_watts=600"), _format_setting("driver.NvLinkDisable=1")
    ('power limit of all GPUs is 600 W', 'driver parameter NvLinkDisable is 1')
    >>> _format_setting("npu.driver_version=25.5.1"), _format_setting("imex.nodes=17")
    ('driver version of all NPUs is 25.5.1', 'number of nodes that IMEX is set to is 17')
    """
    name, _, value = text.partition("=")
    kind, _, path = name.partition(".")
    if kind in _OWN:
        return f"{_OWN[kind].format(path)} is {value}"
    struct, parts = _KINDS[kind]
    words = (field.word for name in COMPARED_WORDS for field in list_fields(struct, name) if field.path == path)
    word = next(words, None)
    if word is None:
        return f"{path.replace('_', ' ')} of {parts} is {value}"
    return f"{word.title} of {parts} is {value}{f' {word.unit}' * bool(word.unit)}"


def _describe_place(outlier: Outlier) -> str:
    if outlier.attribute in ("probe-status", "probe-seconds") or outlier.one in ("node", "switch"):
        return ""
    if outlier.things == 1 and outlier.labels:
        rail = f"{outlier.places[0]}, " if outlier.one == "rail" else ""
        return f" on {rail}{outlier.labels[0]}"
    per_node = f" ({', '.join(outlier.labels)})" if 0 < len(outlier.labels) <= _LABELS else ""
    return f" on {count(outlier.things, outlier.one)}{per_node}"


def _usually(outlier: Outlier) -> str:
    of = f"{number(outlier.usual_count)} of {count(outlier.of, outlier.one)}"
    percent = share(outlier.usual_count, outlier.of)
    if outlier.attribute in ("cmdline", "settings"):
        if outlier.value == ABSENT:
            return f"{of} have it ({percent})"
        if outlier.usual == ABSENT:
            return f"{of} do not have this option ({percent})"
    peers_value = outlier.usual
    if outlier.attribute in ("services", "part-settings"):
        peers_value = peers_value.partition("=")[2]
    if outlier.attribute == "nic-state":
        peers_value = _STATES.get(peers_value, peers_value)
    board = outlier.places[0] if outlier.attribute.startswith("nic-") and len(outlier.places) == 1 else ""
    return f"usually {peers_value} ({of}{f' with board {board}' if board.startswith('MT_') else ''}, {percent})"


def _class(name: str, nodes: int | None, width: int) -> list[Line]:
    size = f" ({count(nodes, 'node')})" if nodes else ""
    return wrap_paragraph(f"{name}{size}", width, "  ", "head", first="")
