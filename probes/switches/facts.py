"""What saved outputs state of a switch and its ports. None is unknown: never "off", never 0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any

LARGEST_COUNT = 2**64 - 1
_SMALL = {str(number): number for number in range(256)}  # most numbers of outputs


@dataclass(slots=True, frozen=True)
class EcnProfile:
    """ECN of a queue. `marks`: packets are marked; False: a WRED profile that drops only."""

    marks: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    percent: float | None = None


@dataclass(slots=True, frozen=True)
class Headroom:
    """The ingress buffer of a priority. `shared`: the headroom is a pool of the switch, `size` is without it."""

    size_bytes: int | None = None
    xoff_bytes: int | None = None
    shared: bool | None = None


@dataclass(slots=True, frozen=True)
class SwitchNeighbor:
    """The far end by LLDP, in the words of the far end."""

    name: str | None = None
    port: str | None = None
    description: str | None = None
    chassis: str | None = None


@dataclass(slots=True, frozen=True)
class LinkRetry:
    """Link layer retry of a port, and the cable length in its profile's name."""

    enabled: bool | None = None
    profile: str | None = None
    metres: int | None = None


@dataclass(slots=True)
class PortFacts:
    """One port. Priorities are PFC priorities, as pause frames have them; queues are egress queues."""

    name: str
    alias: str | None = None
    description: str | None = None
    oper: str | None = None  # up | down
    admin: str | None = None
    speed_gbit_s: float | None = None
    mtu: int | None = None  # of IP packets
    fec_set: str | None = None
    fec_active: str | None = None
    neighbors: list[SwitchNeighbor] = field(default_factory=list)
    trust: str | None = None  # dscp | pcp | both | none
    dscp_prio: Mapping[int, int] | None = None  # a DSCP that is not here: unknown
    dscp_queue: Mapping[int, int] | None = None
    dscp_map: str | None = None  # name of the map, where the switch has names
    pfc: frozenset[int] | None = None
    pfc_active: frozenset[int] | None = None  # that the port really uses, where a switch states both
    pfc_on: bool | None = None  # PFC is on, whatever its priorities are
    pfc_queue: Mapping[int, int] | None = None  # the queue that a received pause of a priority stops
    pfc_asymmetric: bool | None = None
    global_pause: bool | None = None
    watchdog: frozenset[int] | None = None  # priorities that the watchdog watches
    watchdog_configured: bool | None = None  # a watchdog is set on the port, whatever it watches
    watchdog_action: str | None = None
    watchdog_detect_ms: int | None = None
    watchdog_state: dict[int, str] = field(default_factory=dict)  # by queue
    ecn: Mapping[int, EcnProfile] | None = None  # by queue; a queue that is not here has none
    ecn_active: Mapping[int, EcnProfile] | None = None  # what the chip has, where a switch states both
    scheduler: Mapping[int, tuple[str, int | None]] | None = None  # by queue: strict | dwrr, weight
    headroom: Mapping[int, Headroom] | None = None
    cable_metres: int | None = None  # that the switch's headroom is computed for
    link_retry: LinkRetry | None = None
    counters: dict[str, int] = field(default_factory=dict)  # pfc_rx_3, pfc_tx_3, drop_queue_3, drop_pg_3, ..
    pre_fec_ber: float | None = None

    def count(self, name: str, value: object) -> None:
        """Keep a counter, where its value is one."""
        count = parse_count(value)
        if count is not None:
            self.counters[name] = count


@dataclass(slots=True)
class SwitchFacts:
    """One switch, of all its saved outputs. `sources`: their names; `configuration`: it is complete."""

    name: str
    nos: str | None = None  # sonic | cumulus | any other word of normalized lines
    cli: str | None = None  # sonic | sonic-enterprise | nvue: whose commands change it
    chassis: str | None = None
    model: str | None = None
    version: str | None = None
    role: str | None = None
    roce_mode: str | None = None  # lossless | lossy | .., where the switch declares one
    trimming: bool | None = None  # packets are trimmed in place of being dropped: no PFC by design
    poll_ms: int | None = None  # of the PFC watchdog
    headroom_pool_bytes: int | None = None  # shared by all ports
    headroom_pool_peak: int | None = None  # most that was in use since it was cleared
    headroom_ratio: int | None = None  # by how much the pool may be oversubscribed
    lossless_mtu: int | None = None  # that headroom is computed with
    configuration: bool = False
    observed_at: str | None = None
    saved_at: float = 0.0  # time of the newest of its files, seconds since 1970; 0: not known
    ports: dict[str, PortFacts] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)  # which commands were read
    sources: list[str] = field(default_factory=list)
    unknown_columns: int = 0

    def port(self, name: str) -> PortFacts:
        """The port of that name, made where it is new."""
        facts = self.ports.get(name)
        if facts is None:
            facts = self.ports[name] = PortFacts(name)
        return facts

    def drop_other_classes(self, dscp: int | None = None) -> None:
        """Forget counters of classes without PFC, most of what large fabrics have, but for that of a DSCP.

        Of queues that are scheduled first the bytes are kept, and the sum of all queues' bytes.
        """
        wanted: dict[tuple[object, ...], _Wanted] = {}  # most ports have the maps of others
        for port in self.ports.values():
            if port.pfc is None or not port.counters:
                continue
            key = (port.pfc, *map(id, (port.pfc_queue, port.dscp_queue, port.dscp_prio)))
            names = wanted.get(key)
            if names is None:
                names = wanted[key] = _Wanted(_list_classes(port, port.pfc, dscp))
            first = _sum_first_queues(port)
            port.counters = {intern(name): value for name, value in port.counters.items() if names[name]} | first


class _Wanted(dict[str, bool]):
    """Whether a counter is kept, by its name. `classes`: priorities and queues whose counters are."""

    def __init__(self, classes: frozenset[str]) -> None:
        super().__init__()
        self._classes = classes

    def __missing__(self, name: str) -> bool:
        kept = not name[-1].isdigit() or name.rpartition("_")[2] in self._classes or name.startswith("trim")
        self[name] = kept
        return kept


def _list_classes(port: PortFacts, pfc: frozenset[int], dscp: int | None) -> frozenset[str]:
    """Priorities with PFC, the queues of these, and that of a DSCP."""
    kept = {str(number) for number in pfc}
    kept.update(str(queue) for priority, queue in (port.pfc_queue or {}).items() if priority in pfc)
    queues = port.dscp_queue or {}
    for each, priority in (port.dscp_prio or {}).items():
        if each in queues and (priority in pfc or each == dscp):
            kept.add(str(queues[each]))
    return frozenset(kept)


def _sum_first_queues(port: PortFacts) -> dict[str, int]:
    """Bytes of queues that are scheduled first, and of all queues together; none where no queue is."""
    counters = port.counters
    first = {
        intern(name): counters[name]
        for queue, (kind, _) in (port.scheduler or {}).items()
        if kind == "strict" and (name := f"queue_bytes_{queue}") in counters
    }
    if first:
        first["queue_bytes"] = sum(value for name, value in counters.items() if name.startswith("queue_bytes_"))
    return first


def parse_count(text: object) -> int | None:
    """A counter as tables write it.

    >>> [parse_count(text) for text in ("130,402", "0", "N/A", "-", "1.2", "", None, 7)]
    [130402, 0, None, None, None, None, None, 7]
    """
    if isinstance(text, str):
        small = _SMALL.get(text)
        if small is not None:
            return small
        digits = text if text.isdigit() else text.strip().replace(",", "")
    elif isinstance(text, int) and not isinstance(text, bool):
        return text if 0 <= text <= LARGEST_COUNT else None
    else:
        return None
    if not digits.isascii() or not digits.isdigit() or len(digits) > 20:
        return None
    value = int(digits)
    return value if value <= LARGEST_COUNT else None


def parse_name(value: object) -> str | None:
    """A text without the blanks around it, up to 200 characters of it; None for anything else."""
    return value.strip()[:200] if isinstance(value, str) and value.strip() else None


def parse_priorities(text: object) -> frozenset[int] | None:
    """Priorities of a list or a range; None: it is no list of priorities.

    >>> [sorted(parse_priorities(text) or ()) for text in ("3,4", "3-4", "", "8", "x")]
    [[3, 4], [3, 4], [], [], []]
    >>> parse_priorities(""), parse_priorities("8")
    (frozenset(), None)
    """
    if not isinstance(text, str) or len(text) > 64:
        return None
    values: set[int] = set()
    for part in text.replace(" ", "").split(","):
        if not part:
            continue
        low, dash, high = part.partition("-")
        ends = (low, high if dash else low)
        if not all(len(end) == 1 and end in "01234567" for end in ends):
            return None
        values.update(range(int(ends[0]), int(ends[1]) + 1))
    return frozenset(values)


def share_map(pairs: Mapping[int, int]) -> Mapping[int, int]:
    """The same map for all ports that have it: most ports of a fabric do."""
    return _keep_map(tuple(pairs.items()))


@lru_cache(4096)
def _keep_map(items: tuple[tuple[int, int], ...]) -> Mapping[int, int]:
    return dict(items)


def load_json(text: str) -> Any:
    """A JSON document, half characters in it replaced: none of them can be written again. Raises ValueError,
    RecursionError.

    >>> load_json('{"mtu": 9100, "alias": "' + chr(92) + 'ud800"}')
    {'mtu': 9100, 'alias': '?'}
    """
    data = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    return data
