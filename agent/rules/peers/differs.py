"""Parts whose setting or property differs from that of their peers: one rule for every field of the model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import one_level_lower
from agent.rules.peers.comparing import PeerDifference, PeerGap, compare_parts
from agent.rules.peers.parts import PeerPart, list_parts
from agent.rules.peers.voting import is_irregular
from agent.rules.rule import NODE, Fail, NotApplicable, Result, Unknown, rule
from agent.rules.wording import join_labels

_ANSWERED = ("gpu", "nic", "port", "netdev")  # kinds that have an answer for each part, not only for a fault
_SHOWN = 8
_LARGE_BYTES = 1 << 20  # from here on in binary units
_NOUNS = {
    "gpu": "GPUs", "link": "links", "pci": "PCI functions", "nic": "NICs", "port": "ports", "netdev": "interfaces",
    "npu": "NPU ports", "cxl": "expanders", "numa": "NUMA nodes",
}  # fmt: skip
_WIDTH = "gpu.pcie.width"
_SITUATIONS = {
    **dict.fromkeys(("gpu", "link"), "gpu-setting"),
    **dict.fromkeys(("nic", "port", "netdev"), "port-setting"),
    _WIDTH: "gpu-width",
}
_IMPACTS = {
    "gpu": "A job on all GPUs runs at the pace of the slowest one, and no setting of the job explains this difference.",
    "network": "Traffic over this path is handled differently from that of its peers: collectives run at the pace of "
    "the slowest path.",
    "numa": "Programs on its CPUs use the memory of other nodes: copies to and from its devices are slower, and the "
    "host has less memory than it could.",
    "cxl": "A region over several expanders is as fast as the slowest of them, and uses of each what the smallest has.",
}
_TOOLS = {  # by maker of the GPU
    "NVIDIA": "nvidia-smi -q", "AMD": "amd-smi static", "Huawei": "npu-smi info", "Intel Habana": "hl-smi",
    "Amazon": "neuron-ls",
}  # fmt: skip
_XGMI = "amd-smi xgmi --metric"
_LINK_TOOLS = {  # by protocol; the others are of Ascend NPUs
    "nvlink": "nvidia-smi nvlink -s", "xgmi": _XGMI, "gaudi": "hl-smi", "neuron": "neuron-ls --topology",
}  # fmt: skip
_STATED_BY_ABSENCE = frozenset({"driver", "bond", "vlan", "addresses.prefix"})  # none is a value
_NOT_STATED = "None by itself: these are not compared, so another value of this part would pass."
_CHOICE = "None by itself: the values follow an order, so they look intended."
_NOTE = "None by itself: a suspect where this part behaves differently from its peers."


@rule("peer-differs")
def peer_differs(context: RuleContext) -> Iterator[Result]:
    groups: dict[tuple[str, str], list[PeerPart]] = defaultdict(list)
    parts: list[PeerPart] = []
    known: list[PeerDifference] = []
    listed = list(context.once(list_parts))
    for part in listed:
        if isinstance(part, PeerPart):
            parts.append(part)
            groups[part.kind, part.role].append(part)
        elif part.is_open:
            yield Unknown(part.subject, part.reason)
        else:
            yield NotApplicable(part.subject, part.reason)
    differing: set[str] = set()
    compared: set[str] = set()
    for group in groups.values():
        if len(group) > 1:
            compared |= _list_compared(group)
            found = list(compare_parts(group, context.settings.free_fields | _list_judged(context, group)))
            differences = [_turn(one) for one in found if isinstance(one, PeerDifference)]
            differences = _drop_repeated(differences)
            faults = [_describe(one) for one in differences]
            known += differences
            faults += _describe_gaps([one for one in found if isinstance(one, PeerGap)])
            for fault in faults:
                differing |= {part.subject for part in fault.parts} | {fault.subject}
                yield fault
    unequal = context.topology.unequal_labels
    if unequal is not UNSET:
        from agent.rules.peers.labels import compare_labels  # lazy: saved outputs alone have any

        notes = compare_labels(context, unequal, listed, known)
        differing |= {note.subject for note in notes}
        yield from notes
    for part in parts:
        if part.kind in _ANSWERED and part.subject not in differing:
            alone = Reason("nothing-to-compare", detail="no other part of its kind")
            yield part.passes() if part.subject in compared else part.not_applicable(alone)


def _drop_repeated(differences: list[PeerDifference]) -> list[PeerDifference]:
    """Without the modes after the next reset that are what differs already."""
    now = {one.field.path: (one.parts, one.values) for one in differences}
    return [one for one in differences if now.get(one.field.now) != (one.parts, one.values)]


def _list_judged(context: RuleContext, group: Sequence[PeerPart]) -> set[str]:
    """Fields that other rules judge: the width of a GPU's link, by the bus or by the most that the driver states. Of
    other makers it is not compared: their GPUs save power by it."""
    rows = [part.row for part in group if part.kind == "gpu"]
    is_alone = all(gpu.vendor == "NVIDIA" and not (gpu.pcie and gpu.pcie.max_width) for gpu in rows)
    return set() if is_alone and context.why_bus_unread is not None else {_WIDTH}


def _list_compared(group: Sequence[PeerPart]) -> set[str]:
    """The parts that have a peer: settings of NICs are compared across boards, all else within a product."""
    products = Counter(part.product for part in group)
    return {part.subject for part in group if part.role or products[part.product] > 1}


def _describe(difference: PeerDifference) -> Fail:
    odd = [difference.parts[n] for n in difference.vote.odd]
    faults = [_fail_part(difference, n) for n in difference.vote.odd]
    if len(faults) == 1:
        return faults[0]
    word, some = difference.field.word, odd[0]
    return NODE.fail(
        summary=f"{word.title} differs among {len(difference.parts)} {_name_peers(some)}: {_list_values(difference)}"
        + (f" (by {difference.vote.pattern})" if difference.vote.pattern else ""),
        impact=faults[0].impact,
        evidence=_list_evidence(difference),
        severity=faults[0].severity,
        confidence=faults[0].confidence,
        cause=faults[0].cause,
        situation=faults[0].situation,
        field=faults[0].field,
        ids=frozenset().union(*(fault.ids for fault in faults)),
        peers=faults[0].peers,
        parts=tuple(faults),
    )


def _fail_part(difference: PeerDifference, number: int) -> Fail:
    part, word, result = difference.parts[number], difference.field.word, difference.vote
    severity, confidence = _weigh(difference)
    path = f"{part.kind}.{difference.field.path}"
    usual = difference.values[result.usual[0]]
    first = difference.parts[result.usual[0]]
    of_two = first.ids if len(difference.parts) == 2 else frozenset()  # a fault of either explains it
    title, mine, theirs = format_difference(word.title, difference.values[number], usual, word.unit)
    others = f"the other {len(result.usual)} {_name_peers(part)}" if len(result.usual) > 1 else first.label
    return part.fail(
        summary=f"{title} is {mine} ({others}: {theirs})",
        impact=_choose_impact(part, severity, result.pattern),
        evidence=_list_evidence(difference, number),
        severity=severity,
        confidence=confidence,
        cause=path,
        situation="no-memory" if _is_without(difference) else _SITUATIONS.get(path) or _SITUATIONS.get(part.kind, ""),
        field=path,
        ids=part.ids | of_two,
        peers=frozenset() if of_two else frozenset(difference.parts[n].key for n in result.usual),
    )


def _weigh(difference: PeerDifference) -> tuple[str, str]:
    """Severity and confidence: all alike is a choice, a minority is a fault, halves are one only without an order."""
    part, word, result = difference.parts[0], difference.field.word, difference.vote
    if _is_without(difference):
        return "warning", "medium"
    is_felt = word.word == "equal" and not (word.enough and min(difference.values) >= word.enough)
    if not is_felt or result.pattern or (result.halves and not is_irregular(result)):
        return "info", "high"
    severity = one_level_lower("warning") if part.role.startswith("storage") else "warning"
    return severity, "low" if result.halves else "high"


def _is_without(difference: PeerDifference) -> bool:
    """Whether a part has nothing of an amount that its peers have."""
    return difference.field.word.tolerance > 0 and min(difference.values) == 0


def _turn(difference: PeerDifference) -> PeerDifference:
    """Of two halves the one that has nothing is the odd one."""
    result = difference.vote
    if not (result.halves and _is_without(difference) and difference.values[result.usual[0]] == 0):
        return difference
    return replace(difference, vote=replace(result, odd=result.usual, usual=result.odd))


def _describe_gaps(gaps: Sequence[PeerGap]) -> list[Fail]:
    """One finding for each part: its output ends early, or its driver is silent of it alone."""
    by_part: dict[str, list[PeerGap]] = defaultdict(list)
    for gap in gaps:
        if gap.field.path not in _STATED_BY_ABSENCE and not gap.part.is_partial:
            by_part[gap.part.key].append(gap)
    return [_fail_gaps(some) for some in by_part.values()]


def _fail_gaps(gaps: Sequence[PeerGap]) -> Fail:
    part, count = gaps[0].part, max(gap.count for gap in gaps)
    titles = list(dict.fromkeys(gap.field.word.title for gap in gaps))
    more = " and others" if titles[_SHOWN:] else ""
    return part.fail(
        summary=f"no value of {', '.join(titles[:_SHOWN])}{more}; {count} other {_name_peers(part)} have one",
        impact=_NOT_STATED,
        evidence=tuple(
            Evidence(
                f"{gap.field.word.title} of {gap.peer.label}",
                format_value(gap.value, gap.field.word.unit),
                find_source(gap.peer, gap.field.path),
            )
            for gap in gaps[:_SHOWN]
        ),
        severity="info",
        confidence="medium",
        cause="not-stated",
        situation="not-stated",
        remedy=f"Read it again for this part alone: {find_source(part, gaps[0].field.path)}",
    )


def _choose_impact(part: PeerPart, severity: str, pattern: str) -> str:
    if pattern:
        return _CHOICE
    if severity == "info":
        return _NOTE
    return _IMPACTS[part.kind if part.kind in _IMPACTS else "network" if part.role else "gpu"]


def _name_peers(part: PeerPart) -> str:
    role = part.role.partition(" ")[2] or part.role
    return f"{role} {_NOUNS[part.kind]}" if role else _NOUNS[part.kind]


def _list_values(difference: PeerDifference) -> str:
    labels: dict[str, list[str]] = defaultdict(list)
    for part, value in zip(difference.parts, difference.values, strict=True):
        labels[format_value(value, difference.field.word.unit)].append(part.label)
    rows = sorted(labels.items(), key=lambda row: -len(row[1]))
    return "; ".join(f"{value} on {join_labels(some)}" for value, some in rows[:_SHOWN])


def _list_evidence(difference: PeerDifference, number: int | None = None) -> tuple[Evidence, ...]:
    """The value of the odd parts, then of peers."""
    first = difference.vote.odd if number is None else (number,)
    numbers = [*first[:_SHOWN], *difference.vote.usual[: max(1, _SHOWN - len(first))]]
    word = difference.field.word
    return tuple(
        Evidence(
            f"{word.title} of {difference.parts[n].label}",
            format_value(difference.values[n], word.unit),
            find_source(difference.parts[n], difference.field.path),
        )
        for n in numbers
    )


def find_source(part: PeerPart, path: str) -> str:
    """The command that shows it."""
    row = part.row
    if part.kind == "pci":
        return f"lspci -vvv -s {row.id}"
    if part.kind == "netdev":
        tools = {"qos": "dcb -j ets show dev {}", "pause": "ethtool -a {}", "fec": "ethtool --show-fec {}",
                 "module": "ethtool -m {}", "neighbor": "lldpctl {}", "arp": "sysctl net.ipv4.conf.{}"}  # fmt: skip
        return tools.get(path.partition(".")[0], "ip -d link show {}").format(row.label)
    if part.kind == "link":
        return _LINK_TOOLS.get(row.protocol, "npu-smi info -t topo")
    if part.kind == "gpu":
        return _XGMI if path.startswith("xgmi.") else _TOOLS.get(row.vendor or "NVIDIA", "lspci -vvv")
    return {
        "nic": "ibv_devinfo -v",
        "port": "ibv_devinfo -v",
        "npu": "/etc/hccn.conf",
        "cxl": "cxl list -vv",
        "numa": "numactl -H",
    }[part.kind]


def format_difference(title: str, one: Any, other: Any, unit: str) -> tuple[str, str, str]:
    """What differs, and the two values; of tables what they do not have in common.

    >>> format_difference("BAR", {"0": 1 << 24, "2": 1 << 28}, {"0": 1 << 24, "2": 1 << 37}, "bytes")
    ('BAR 2', '256 MiB', '128 GiB')
    """
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return title, format_value(one, unit), format_value(other, unit)
    keys = sorted(key for key in {**one, **other} if one.get(key) != other.get(key))
    if len(keys) == 1:
        key = keys[0]
        what = key if key.startswith(title.partition(" ")[0]) else f"{title} {key}"  # VLAN setting: VLAN id
        return what, _format_entry(one, key, unit), _format_entry(other, key, unit)
    texts = [", ".join(f"{key} {_format_entry(table, key, unit)}" for key in keys[:_SHOWN]) for table in (one, other)]
    return title, texts[0], texts[1]


def _format_entry(table: dict[str, Any], key: str, unit: str) -> str:
    return format_value(table[key], unit) if key in table else "missing"


def format_value(value: Any, unit: str = "") -> str:
    """As a person would write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        if value and all(isinstance(entry, bool) for entry in value):
            return ",".join(str(n) for n, entry in enumerate(value) if entry) or "none"
        return ",".join(map(format_value, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(entry)}" for key, entry in list(value.items())[:_SHOWN])
    if unit == "bytes" and isinstance(value, int) and value >= _LARGE_BYTES:
        return _format_large(value)
    text = f"{value:g}" if isinstance(value, float) else str(value) or "none"
    return f"{text}{'' if unit == '%' else ' '}{unit}" if unit else text


def _format_large(value: int) -> str:
    """Bytes in the largest binary unit that has at least one: BARs are powers of two."""
    power = min((value.bit_length() - 1) // 10, 4)
    return f"{value / (1 << 10 * power):g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
