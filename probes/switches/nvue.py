"""Cumulus Linux: the configuration and the state of interfaces as NVUE prints them with `-o json`.

Objects are maps by id. `nv config show`, `nv show interface`, `nv show interface PORT counters qos`: NVUE reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from probes.switches.facts import (
    EcnProfile,
    Headroom,
    PortFacts,
    SwitchFacts,
    SwitchNeighbor,
    parse_count,
    parse_name,
    share_map,
)
from probes.text import lazy_pattern

CLI = "nvue"
_PORT = lazy_pattern(r"swp[0-9]{1,4}(?:s[0-9]{1,2})?")
_RANGE = lazy_pattern(r"(swp(?:[0-9]{1,4}s)?)([0-9]{1,4})-(?:swp(?:[0-9]{1,4}s)?)?([0-9]{1,4})")
_SPEED = lazy_pattern(r"([0-9]{1,5})([GM])")
_OF_FILE = lazy_pattern(r"interface_(swp[0-9]{1,4}(?:s[0-9]{1,2})?)_")
_TRUST = {"l3": "dscp", "l2": "pcp", "both": "both", "port": "none"}
# What `nv set qos roce` sets by default: Cumulus Linux, RDMA over Converged Ethernet
_ROCE_PRIORITIES = {**dict.fromkeys(range(24, 32), 3), **dict.fromkeys(range(48, 56), 6)}
_ROCE_ECN = EcnProfile(True, 150_000, 1_501_500, 100)
_ROCE_METRES = 100
_LOSSLESS_MODES = ("lossless", "lossless-single-ipool")
DEFAULT = "default-global"
# Rows of QoS counters by the fields that only they have: names of the counters by field
_COUNTERS: tuple[tuple[frozenset[str], Mapping[str, str]], ...] = (
    (
        frozenset(("rx-pause-frames", "tx-pause-frames")),
        {"rx-pause-frames": "pfc_rx", "tx-pause-frames": "pfc_tx"},
    ),
    (
        frozenset(("tx-uc-buffer-discards",)),
        {
            "tx-frames": "queue_packets",
            "tx-bytes": "queue_bytes",
            "tx-uc-buffer-discards": "drop_queue",
            "wred-discards": "wred_drop",
        },
    ),
    (frozenset(("rx-buffer-discards",)), {"rx-buffer-discards": "drop_pg"}),
)
_Maps = dict[int, Mapping[int, int]]  # priorities by DSCP, by the id of the profile in the document


def find_root(data: object) -> Mapping[str, Any] | None:
    """The root of a configuration: `nv config show` wraps it into a list with `set`."""
    parts = data if isinstance(data, list) else [data]
    for part in parts:
        if not isinstance(part, dict):
            continue
        root = part.get("set", part)
        if isinstance(root, dict) and ("qos" in root or ("interface" in root and "system" in root)):
            return root
    return None


def host_name(root: Mapping[str, Any]) -> str | None:
    """The switch's name in its configuration."""
    name = _dict(root.get("system")).get("hostname")
    return name if isinstance(name, str) and name.strip() else None


def read_configuration(root: Mapping[str, Any], switch: SwitchFacts) -> None:
    """Add what a root configuration states."""
    switch.nos, switch.cli = "cumulus", CLI
    switch.configuration = True
    qos = _dict(root.get("qos"))
    roce = _dict(qos.get("roce"))
    on = _is_on(roce)
    mode = str(roce.get("mode", "lossless")) if on else None
    switch.roce_mode = mode
    switch.poll_ms = parse_count(_dict(qos.get("pfc-watchdog")).get("polling-interval"))
    maps: _Maps = {}
    for names, row in _dict(root.get("interface")).items():
        for name in _expand(names):
            port = switch.port(name)
            link = _dict(_dict(row).get("link"))
            _read_link(port, link, active=False)
            _read_port_qos(port, qos, _dict(_dict(row).get("qos")), mode, maps)


def is_interfaces(data: object) -> bool:
    """Whether a document is `nv show interface -o json` or `nv show interface lldp -o json`."""
    return (
        isinstance(data, dict)
        and any(_PORT.fullmatch(name) for name in data)
        and all(isinstance(row, dict) for row in data.values())
        and any("link" in row or "lldp" in row for row in data.values())
    )


def read_interfaces(data: Mapping[str, Any], switch: SwitchFacts) -> None:
    """Add the state of interfaces and their neighbors."""
    switch.nos, switch.cli = "cumulus", CLI
    for name, row in data.items():
        if _PORT.fullmatch(name) is None:
            continue
        port = switch.port(name)
        _read_link(port, _dict(row.get("link")), active=True)
        for far, neighbor in _dict(_dict(row.get("lldp")).get("neighbor")).items():
            far_port, chassis = _dict(_dict(neighbor).get("port")), _dict(_dict(neighbor).get("chassis"))
            found = SwitchNeighbor(
                parse_name(chassis.get("system-name")) or parse_name(far),
                parse_name(far_port.get("name")),
                parse_name(far_port.get("description")),
                parse_name(chassis.get("chassis-id")),
            )
            if found not in port.neighbors:
                port.neighbors.append(found)


def counters_port(file: str) -> str | None:
    """The port of `nv show interface PORT counters qos`, which is in the name of the file only.

    >>> counters_port("nv_show_interface_swp1s0_counters_qos_-o_json.json")
    'swp1s0'
    """
    match = _OF_FILE.search(file)
    return match[1] if match else None


def is_counters(data: object) -> bool:
    """Whether a document has QoS counters of one port."""
    return isinstance(data, dict) and any(_list_counter_rows(data))


def read_counters(data: Mapping[str, Any], switch: SwitchFacts, name: str) -> None:
    """Add the QoS counters of one port."""
    switch.nos, switch.cli = "cumulus", CLI
    port = switch.port(name)
    for counters, number, row in _list_counter_rows(data):
        for field, name in counters.items():
            port.count(f"{name}_{number}", row.get(field))


def is_watchdog(data: object) -> bool:
    """Whether a document is `nv show interface PORT qos pfc-watchdog -o json`."""
    return isinstance(data, dict) and "state" in data and "status" in data and "link" not in data


def read_watchdog(data: Mapping[str, Any], port: PortFacts) -> None:
    """Add the watchdog's state of one port."""
    port.watchdog_configured = _is_on(data)
    for number, row in _dict(data.get("status")).items():
        queue = parse_count(number)
        if queue is None or queue > 7 or not isinstance(row, dict):
            continue
        status = str(row.get("status", ""))
        if status in ("OK", "DEADLOCK"):
            port.watchdog_state[queue] = "operational" if status == "OK" else "stormed"
        port.count(f"storms_{queue}", row.get("deadlock-count"))


def _read_link(port: PortFacts, link: Mapping[str, Any], active: bool) -> None:
    port.mtu = parse_count(link.get("mtu")) or port.mtu
    match = _SPEED.fullmatch(str(link.get("speed", "")))
    if match:
        port.speed_gbit_s = int(match[1]) / (1 if match[2] == "G" else 1000)
    fec = parse_name(link.get("fec"))
    if fec and active:
        port.fec_active = fec.lower()
    elif fec:
        port.fec_set = fec.lower()
    state = link.get("state")
    words = [*state] if isinstance(state, dict) else [state]
    if active and words and words[0] in ("up", "down"):
        port.oper = str(words[0])


def _read_priorities(maps: _Maps, mapping: Mapping[str, Any]) -> Mapping[int, int]:
    """Priorities by DSCP of a profile; most ports share it, or have one like it."""
    known = maps.get(id(mapping)) if mapping else {}
    if known is None:
        listed = ((dscp, _dict(row).get("switch-priority")) for dscp, row in _dict(mapping.get("dscp")).items())
        pairs = [(dscp, prio) for dscp, prio in islice(listed, 256) if type(prio) in (int, str)]
        known = maps[id(mapping)] = _parse_priorities(tuple(pairs))
    return known


@lru_cache(4096)
def _parse_priorities(listed: tuple[tuple[str, int | str], ...]) -> Mapping[int, int]:
    pairs = ((parse_count(dscp), parse_count(prio)) for dscp, prio in listed)
    return share_map({
        dscp: prio for dscp, prio in pairs if dscp is not None and prio is not None and dscp < 64 and prio < 8
    })  # fmt: skip


def _read_port_qos(
    port: PortFacts, qos: Mapping[str, Any], own: Mapping[str, Any], mode: str | None, maps: _Maps
) -> None:
    lossless = mode in _LOSSLESS_MODES
    mapping = _profile(qos, own, "mapping")
    port.trust = _TRUST.get(str(mapping.get("trust")), "both" if mode else "pcp")
    priorities = _read_priorities(maps, mapping)
    port.dscp_prio = priorities or (_ROCE_PRIORITIES if mode else None)
    port.dscp_map = None if priorities or not mode else "default of qos roce"
    pfc = _profile(qos, own, "pfc")
    listed_pfc = _numbers(pfc.get("switch-priority"))
    both = all(pfc.get(way) in (None, "enable") for way in ("tx", "rx"))
    port.pfc = frozenset(listed_pfc if both else ()) if pfc else frozenset((3,) if lossless else ())
    metres = parse_count(pfc.get("cable-length"))
    port.cable_metres = metres or (_ROCE_METRES if lossless and port.pfc else None)
    size = parse_count(pfc.get("port-buffer"))
    if size:
        port.headroom = {number: Headroom(size, None, None) for number in port.pfc}
    queues = {
        parse_count(number): parse_count(_dict(row).get("traffic-class"))
        for number, row in _dict(_profile(qos, own, "egress-queue-mapping").get("switch-priority")).items()
    }
    known = {prio: queue for prio, queue in queues.items() if prio is not None and queue is not None}
    if not known and mode:
        known = {0: 0, 3: 3, 6: 6}
    if port.dscp_prio is not None and known:
        port.dscp_queue = share_map({dscp: known[prio] for dscp, prio in port.dscp_prio.items() if prio in known})
        port.pfc_queue = share_map({prio: queue for prio, queue in known.items() if prio in port.pfc})
    _read_queues(port, _profile(qos, own, "congestion-control"), _profile(qos, own, "egress-scheduler"), mode)
    watchdog = _dict(own.get("pfc-watchdog"))
    port.watchdog_configured = "pfc-watchdog" in own and (not watchdog or _is_on(watchdog))
    port.watchdog = port.pfc if port.watchdog_configured else frozenset()


def _read_queues(
    port: PortFacts, congestion: Mapping[str, Any], scheduler: Mapping[str, Any], mode: str | None
) -> None:
    ecn: dict[int, EcnProfile] = {0: _ROCE_ECN, 3: _ROCE_ECN} if mode and not congestion else {}
    for queue, row in _numbered(congestion.get("traffic-class")):
        percent = parse_count(row.get("probability"))
        low, high = parse_count(row.get("min-threshold")), parse_count(row.get("max-threshold"))
        ecn[queue] = EcnProfile(row.get("ecn") in ("enable", "enabled", "on"), low, high, percent)
    port.ecn = ecn
    kinds = {6: ("strict", None), 3: ("dwrr", 50)} if mode and not scheduler else {}
    for queue, row in _numbered(scheduler.get("traffic-class")):
        kinds[queue] = (str(row.get("mode", "dwrr")).lower(), parse_count(row.get("bw-percent")))
    port.scheduler = kinds


def _profile(qos: Mapping[str, Any], own: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The profile that is in force on a port."""
    chosen = _dict(own.get(kind)).get("profile", DEFAULT)
    return _dict(_dict(qos.get(kind)).get(str(chosen)))


def _numbers(value: object) -> list[int]:
    """Priorities 0 to 7 as the keys of a map."""
    numbers = (parse_count(key) for key in _dict(value))
    return [number for number in numbers if number is not None and number < 8]


def _numbered(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for key, row in _dict(value).items():
        number = parse_count(key)
        if number is not None and number < 8 and isinstance(row, dict):
            yield number, row


def _list_counter_rows(
    data: Mapping[str, Any], depth: int = 4
) -> Iterator[tuple[Mapping[str, str], int, Mapping[str, Any]]]:
    """Names of counters by field, number and row, wherever they are: releases name the parts differently."""
    for number, row in _numbered(data):
        counters = next((names for marks, names in _COUNTERS if not marks.isdisjoint(row)), None)
        if counters is not None:
            yield counters, number, row
    if depth:
        for value in data.values():
            if isinstance(value, dict):
                yield from _list_counter_rows(value, depth - 1)


def _expand(names: str) -> Iterator[str]:
    """Names of ports; "swp1-3,swp7" are four.

    >>> list(_expand("swp1-3,swp7s0-1,eth0"))
    ['swp1', 'swp2', 'swp3', 'swp7s0', 'swp7s1']
    """
    for part in names.split(",")[:1024]:
        match = _RANGE.fullmatch(part)
        if match:
            for number in range(int(match[2]), min(int(match[3]), int(match[2]) + 1024) + 1):
                yield f"{match[1]}{number}"
        elif _PORT.fullmatch(part):
            yield part


def _is_on(row: Mapping[str, Any]) -> bool:
    return row.get("enable", row.get("state")) in ("on", "enable", "enabled", True)


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
