"""Labels that no field of the model has: of which part a saved output states something else than of its peers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.topology import UnequalLabel
from agent.rules.context import RuleContext
from agent.rules.peers.comparing import PeerDifference
from agent.rules.peers.parts import PartsSkipped, PeerPart
from agent.rules.peers.voting import find_pattern
from agent.rules.rule import Fail
from agent.rules.wording import quote_name

_SHARE = 4  # at most one in so many differs
_ANOTHER_KIND = 8  # labels in which a part of unknown product differs: it is no peer
_SHOWN = 8
_KINDS = ("netdev", "pci", "npu", "nic", "gpu")  # the last one counts where an address is of several
_OF_NO_COMMAND = "labels of devices"  # a text that states its devices, and not which tool printed it
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:GPU|NPU|CARD|AIP|DEVICE) (\d{1,3})", re.IGNORECASE)
_QUANTITY = re.compile(r"-?\d+(?:\.\d+)?")
_SWITCH = {"enabled": "on", "yes": "on", "true": "on", "disabled": "off", "no": "off", "false": "off"}
_NOTE = "None by itself: a suspect where this part behaves differently from its peers."
_NOUNS = {"gpu": "GPUs", "netdev": "interfaces"}  # by the subject


class LabelDifference(msgspec.Struct, frozen=True):
    """What an output states of one part, and of most of its peers."""

    row: UnequalLabel
    part: PeerPart
    value: str
    usual: str
    peers: tuple[PeerPart, ...]


def compare_labels(
    context: RuleContext,
    rows: Iterable[UnequalLabel],
    listed: Sequence[PeerPart | PartsSkipped],
    known: Iterable[PeerDifference],
) -> list[Fail]:
    """One note for each part that is the odd one. `known`: differences of fields, which are reported by themselves."""
    seen = {(part.key, *pair) for one in known for part, *pair in _list_values(one)}
    parts = _name_parts(context, listed)
    by_part: dict[str, dict[str, LabelDifference]] = defaultdict(dict)
    for row in rows:
        for one in _vote(row, parts):
            if not any((key, _plain(one.value), _plain(one.usual)) in seen for key in (one.part.key, *one.part.ids)):
                by_part[one.part.key].setdefault(_last_words(row.label), one)
    return [_fail(list(some.values())) for some in by_part.values() if _is_peer(list(some.values()))]


def _list_values(one: PeerDifference) -> Iterator[tuple[PeerPart, str, str]]:
    usual = one.values[one.vote.usual[0]]
    for number in one.vote.odd:
        yield one.parts[number], _plain(one.values[number]), _plain(usual)


def _plain(value: Any) -> str:
    """A value without its unit and the words of its source, so that "350.00 W" is 350.0, and "Enabled" is on.

    >>> _plain("350.00 W"), _plain(350.0), _plain("Enabled"), _plain(True), _plain("Default")
    ('350', '350', 'on', 'on', 'default')
    """
    text = str(value).strip().lower()
    quantity = _QUANTITY.match(text)
    if quantity:
        return f"{float(quantity[0]):g}"
    return _SWITCH.get(text, text)


def _last_words(label: str) -> str:
    """The same label of two forms of an output: "Compute Mode" and compute_mode."""
    return re.sub(r"[_.\W]+", " ", label.lower()).strip()


def _name_parts(context: RuleContext, listed: Sequence[PeerPart | PartsSkipped]) -> Mapping[str, PeerPart | None]:
    """Parts by every name that an output may have for them; None of those that are not compared."""
    topology = context.topology
    names: dict[str, PeerPart | None] = dict.fromkeys(function.id for function in topology.pci)
    skipped = [one.subject for one in listed if isinstance(one, PartsSkipped) and not one.is_open]
    left_out = {place for subject in skipped for place in topology.find_named(subject.partition(":")[2])}
    for nic in topology.nics:
        peer = None if nic.id in left_out else _assume_peer(nic)
        names |= dict.fromkeys(filter(None, (nic.id, nic.pci, nic.label, nic.rdma_device)), peer)
        own = [netdev for netdev in topology.netdevs if netdev.nic == nic.id]
        names |= {one.label: peer and _rename(peer, f"netdev:{one.id}", one.label) for one in own}
    names |= dict.fromkeys(left_out)
    parts = [one for one in listed if isinstance(one, PeerPart) and one.kind in _KINDS]
    for part in sorted(parts, key=lambda part: _KINDS.index(part.kind)):
        more = [f"#{part.row.index}", part.row.uuid] if part.kind == "gpu" else []
        names |= dict.fromkeys((*part.ids, part.label, *more), part)
    return names


def _assume_peer(nic: Nic) -> PeerPart | None:
    """A NIC whose role is not known, among those of its product; None of one that is down."""
    if nic.ports and not any(port.state in ("ACTIVE", None) for port in nic.ports):
        return None
    layers = sorted({port.link_layer or "" for port in nic.ports})
    product = " ".join(filter(None, (nic.model, nic.board_id, nic.driver, *layers)))
    return PeerPart("device", f"pci:{nic.id}", nic.label, None, frozenset({nic.id}), nic.id, "", product, order=nic.id)


def _rename(part: PeerPart, subject: str, label: str) -> PeerPart:
    return msgspec.structs.replace(part, subject=subject, label=label, key=label, ids=part.ids | {label})


def _find_part(name: str, names: Mapping[str, PeerPart | None]) -> PeerPart | None:
    """The part of that name; one that nothing else names is a peer of those that are named alike."""
    address, number = _ADDRESS.fullmatch(name), _NUMBERED.fullmatch(name)
    key = f"{(address[1] or '0000')[-4:]}:{address[2]}".lower() if address else f"#{number[1]}" if number else name
    if key in names:
        return names[key]
    subject = f"pci:{key}" if address else f"gpu:{name}" if number else f"netdev:{name}"
    product = "" if address else re.sub(r"\d+(?!\d*_pciconf)", "#", name)
    return PeerPart("device", subject, name, None, frozenset({key}), key, "", product, order=key)


def _vote(row: UnequalLabel, names: Mapping[str, PeerPart | None]) -> Iterator[LabelDifference]:
    groups: dict[tuple[str, str, str], list[tuple[PeerPart, str]]] = defaultdict(list)
    for value, devices in row.values.items():
        for device in devices:
            part = _find_part(device, names)
            if part is not None:
                groups[part.kind, part.role, part.product].append((part, value))
    for group in groups.values():
        values = [value for _, value in group]
        usual = max(set(values), key=lambda value: (values.count(value), value))
        odd = [(part, value) for part, value in group if value != usual]
        if len(odd) * _SHARE > len(group) or find_pattern(values, [part for part, _ in group], False):
            continue
        peers = tuple(part for part, value in group if value == usual)
        yield from (LabelDifference(row, part, value, usual, peers) for part, value in odd)


def _is_peer(some: Sequence[LabelDifference]) -> bool:
    return some[0].part.kind != "device" or len(some) < _ANOTHER_KIND


def _fail(some: Sequence[LabelDifference]) -> Fail:
    part, peers = some[0].part, some[0].peers
    others = f"the {len(peers)} other {_NOUNS.get(part.subject.partition(':')[0], 'devices')}"
    texts = [f"{one.row.label} {one.value} ({one.usual})" for one in some[:_SHOWN]]
    more = f", and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    first = some[0]
    return part.fail(
        summary=f"{first.row.label} is {first.value} ({others}: {first.usual})"
        if len(some) == 1
        else f"differs from {others} in {len(some)} labels: {'; '.join(texts)}{more}",
        impact=_NOTE,
        evidence=tuple(
            Evidence(f"{one.row.label} of {who.label}", value, _name_source(one.row, who))
            for one in some[:_SHOWN]
            for who, value in ((part, one.value), (one.peers[0], one.usual))
        ),
        severity="info",
        cause="stated-labels",
        situation="stated-label",
        remedy="Read it again with the command that printed it."
        if first.row.source == _OF_NO_COMMAND
        else f"Read it again: `{first.row.source.replace('INTERFACE', quote_name(part.label))}`.",
        peers=frozenset(one.key for one in peers),
    )


def _name_source(row: UnequalLabel, part: PeerPart) -> str:
    return row.source.replace("INTERFACE", part.label)
