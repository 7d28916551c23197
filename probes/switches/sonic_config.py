"""SONiC's configuration database as JSON: /etc/sonic/config_db.json, `sonic-cfggen -d --print-data`, or a part of it.

Tables and fields: sonic-buildimage, src/sonic-yang-models. Enterprise SONiC has the same tables. A table that is
there is complete for itself; a configuration is complete where it lists the switch's ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from probes.switches.facts import (
    EcnProfile,
    Headroom,
    PortFacts,
    SwitchFacts,
    parse_count,
    parse_name,
    parse_priorities,
    share_map,
)
from probes.text import lazy_pattern

TABLES = frozenset(
    ("DEVICE_METADATA", "PORT", "PORT_QOS_MAP", "DSCP_TO_TC_MAP", "DOT1P_TO_TC_MAP", "TC_TO_PRIORITY_GROUP_MAP",
     "TC_TO_QUEUE_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "PFC_PRIORITY_TO_QUEUE_MAP", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
     "QUEUE", "WRED_PROFILE", "SCHEDULER", "PFC_WD", "BUFFER_PG", "BUFFER_PROFILE", "BUFFER_POOL", "CABLE_LENGTH",
     "SWITCH_TRIMMING", "DEFAULT_LOSSLESS_BUFFER_PARAMETER", "LOSSLESS_TRAFFIC_PATTERN")
)  # fmt: skip
COMMUNITY, ENTERPRISE = "sonic", "sonic-enterprise"
_PORT_NAME = lazy_pattern(r"Ethernet[0-9]{1,5}|Eth[0-9]{1,3}(?:/[0-9]{1,3}){1,3}")
_REFERENCE = lazy_pattern(r"\[[A-Z_]{1,64}\|([^\]|]{1,200})\]")
_METRES = lazy_pattern(r"([0-9]{1,6})m")
_DSCPS, _TCS = range(64), range(16)
Rows = Mapping[str, Mapping[str, Any]]


def nest(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a document; keys "TABLE|KEY", as gNMI and redis have them, become rows of TABLE."""
    tables: dict[str, Any] = {}
    for key, value in data.items():
        table, bar, row = key.partition("|")
        if not bar:
            tables[key] = value
        elif isinstance(tables.setdefault(table, {}), dict):
            tables[table][row] = value
    return tables


def is_configuration(data: object) -> bool:
    """Whether a JSON document has tables of the configuration database."""
    return isinstance(data, dict) and any(
        table in TABLES and isinstance(value, dict) for table, value in nest(data).items()
    )


def host_name(data: Mapping[str, Any]) -> str | None:
    """The switch's own name in its configuration."""
    name = _rows(nest(data), "DEVICE_METADATA").get("localhost", {}).get("hostname")
    return name if isinstance(name, str) and name.strip() else None


def read_configuration(data: Mapping[str, Any], switch: SwitchFacts) -> None:
    """Add what a configuration states."""
    tables = nest(data)
    flat = any("|" in key for key in data)
    meta = _rows(tables, "DEVICE_METADATA").get("localhost", {})
    switch.nos = "sonic"
    switch.chassis = parse_name(meta.get("mac")) or switch.chassis
    switch.model = parse_name(meta.get("hwsku")) or parse_name(meta.get("platform")) or switch.model
    switch.role = {"torrouter": "leaf", "leafrouter": "leaf", "spinerouter": "spine"}.get(
        str(meta.get("type", "")).lower(), switch.role
    )
    ports = _rows(tables, "PORT")
    switch.configuration = switch.configuration or (bool(ports) and not flat)
    _read_trimming(tables, switch)
    for name in _list_ports(tables):
        switch.port(name)
    names = {name: name for name in switch.ports} | {
        alias: name
        for name, row in ports.items()
        if (alias := parse_name(row.get("alias"))) and alias not in switch.ports
    }
    switch.cli = ENTERPRISE if any("/" in name and name.startswith("Eth") for name in names) else COMMUNITY
    for name, row in ports.items():
        if name in switch.ports:
            _read_port(switch.ports[name], row)
    _read_lengths(tables, switch, names)
    _Qos(tables, switch, names).read()


def _list_ports(tables: Mapping[str, Any]) -> Iterator[str]:
    """Front-panel ports; of a render without them those that its tables name."""
    own = [name for table in ("PORT", "PORT_QOS_MAP", "PFC_WD") for name in _rows(tables, table)]
    named = [name for name in own if _PORT_NAME.fullmatch(name)]
    if not named:
        keys = [key.split("|") for table in ("QUEUE", "BUFFER_PG") for key in _rows(tables, table)]
        named = [port for parts in keys if len(parts) in (2, 4) for port in parts[-2].split(",")]
        named = [name for name in named if _PORT_NAME.fullmatch(name)]
    yield from dict.fromkeys(named)


def _read_port(port: PortFacts, row: Mapping[str, Any]) -> None:
    port.alias = parse_name(row.get("alias")) or port.alias
    port.description = parse_name(row.get("description")) or port.description
    port.admin = parse_name(row.get("admin_status")) or port.admin
    speed = parse_count(row.get("speed"))
    port.speed_gbit_s = speed / 1000 if speed else port.speed_gbit_s
    port.mtu = parse_count(row.get("mtu")) or port.mtu
    port.fec_set = parse_name(row.get("fec")) or port.fec_set
    if "pfc_asym" in row:
        port.pfc_asymmetric = {"on": True, "off": False}.get(str(row["pfc_asym"]).lower())


def _read_lengths(tables: Mapping[str, Any], switch: SwitchFacts, names: Mapping[str, str]) -> None:
    for lengths in _rows(tables, "CABLE_LENGTH").values():
        for name, length in lengths.items():
            match = _METRES.fullmatch(length) if isinstance(length, str) else None
            if match and name in names:
                switch.ports[names[name]].cable_metres = int(match[1])


def _read_trimming(tables: Mapping[str, Any], switch: SwitchFacts) -> None:
    row = _rows(tables, "SWITCH_TRIMMING").get("GLOBAL")
    if row is not None:
        switch.trimming = parse_count(row.get("size")) is not None


class _Qos:
    """The maps of one configuration, joined for its ports. Ports with the same maps share the result."""

    def __init__(self, tables: Mapping[str, Any], switch: SwitchFacts, names: Mapping[str, str]) -> None:
        self.tables, self.switch, self.names = tables, switch, names
        self.has_maps = "PORT_QOS_MAP" in tables or switch.configuration
        self.joined: dict[tuple[Any, ...], Any] = {}
        rows = _rows(tables, "PORT_QOS_MAP")
        self.default = rows.get("global", {})
        self.rows = {names[key]: row for key, row in rows.items() if key in names}

    def read(self) -> None:
        """Fill in the ports."""
        if self.has_maps:
            for port in self.switch.ports.values():
                self._read_classes(port, self.rows.get(port.name, {}))
        self._read_watchdog()
        self._read_queues()
        self._read_headroom()

    def _read_classes(self, port: PortFacts, row: Mapping[str, Any]) -> None:
        enabled = row.get("pfc_enable", "")
        port.pfc = parse_priorities(enabled)
        dscp_map, pcp_map = _name(row.get("dscp_to_tc_map")), _name(row.get("dot1p_to_tc_map"))
        if dscp_map is None and pcp_map is None and not row:
            dscp_map = _name(self.default.get("dscp_to_tc_map"))
        port.trust = "dscp" if dscp_map else "pcp" if pcp_map else "none"
        port.dscp_map = dscp_map
        key = (dscp_map, *(_name(row.get(field)) for field in ("tc_to_pg_map", "pfc_to_pg_map", "tc_to_queue_map")))
        if key not in self.joined:
            self.joined[key] = self._join(*key)
        port.dscp_prio, port.dscp_queue = self.joined[key] if dscp_map else (None, None)
        queues = self._map(("MAP_PFC_PRIORITY_TO_QUEUE", "PFC_PRIORITY_TO_QUEUE_MAP"), row.get("pfc_to_queue_map"))
        port.pfc_queue = share_map(queues) if queues is not None else None

    def _join(
        self, dscp_map: str | None, group_map: str | None, pfc_map: str | None, queue_map: str | None
    ) -> tuple[dict[int, int] | None, dict[int, int] | None]:
        """DSCP -> PFC priority, and DSCP -> queue."""
        classes = self._map(("DSCP_TO_TC_MAP",), dscp_map)
        if classes is None:
            return None, None
        groups = self._map(("TC_TO_PRIORITY_GROUP_MAP",), group_map)
        queues = self._map(("TC_TO_QUEUE_MAP",), queue_map)
        priorities = self._map(("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",), pfc_map)
        if pfc_map is None:
            of_group: dict[int, int] | None = {number: number for number in range(8)}
        elif priorities is None:
            of_group = None
        else:
            of_group = {group: priority for priority, group in priorities.items() if priority < 8}
        dscp_prio = dscp_queue = None
        if groups is not None and of_group is not None:
            dscp_prio = {
                dscp: of_group[groups[tc]]
                for dscp, tc in classes.items()
                if dscp in _DSCPS and tc in groups and groups[tc] in of_group
            }
        if queues is not None:
            dscp_queue = {dscp: queues[tc] for dscp, tc in classes.items() if dscp in _DSCPS and tc in queues}
        return dscp_prio, dscp_queue

    def _map(self, tables: Iterable[str], name: object) -> dict[int, int] | None:
        """A map by its name; None where it is not set or not there."""
        known = _name(name)
        for table in tables:
            row = _rows(self.tables, table).get(known or "")
            if row is None:
                continue
            pairs = ((parse_count(key), parse_count(value)) for key, value in row.items())
            return {key: value for key, value in pairs if key is not None and value is not None and value in _TCS}
        return None

    def _read_watchdog(self) -> None:
        rows = _rows(self.tables, "PFC_WD")
        if "PFC_WD" not in self.tables and not self.switch.configuration:
            return
        self.switch.poll_ms = parse_count(rows.get("GLOBAL", {}).get("POLL_INTERVAL"))
        by_port = {self.names[key]: row for key, row in rows.items() if key in self.names}
        for port in self.switch.ports.values():
            row = by_port.get(port.name)
            port.watchdog_configured = row is not None
            if row is None:
                port.watchdog = frozenset()
                continue
            port.watchdog_action = parse_name(row.get("action"))
            port.watchdog_detect_ms = parse_count(row.get("detection_time"))
            watched = self.rows.get(port.name, {}).get("pfcwd_sw_enable")
            port.watchdog = parse_priorities(watched) if watched is not None else port.pfc

    def _read_queues(self) -> None:
        if "QUEUE" not in self.tables and not self.switch.configuration:
            return
        ecn: dict[str, dict[int, EcnProfile]] = {name: {} for name in self.switch.ports}
        schedulers: dict[str, dict[int, tuple[str, int | None]]] = {name: {} for name in self.switch.ports}
        profiles = {name: _read_profile(row) for name, row in _rows(self.tables, "WRED_PROFILE").items()}
        kinds = _rows(self.tables, "SCHEDULER")
        for name, queue, row in self._list_parts("QUEUE"):
            wred, scheduler = _name(row.get("wred_profile")), _name(row.get("scheduler"))
            if wred is not None:
                ecn[name][queue] = profiles.get(wred, EcnProfile())
            kind = kinds.get(scheduler or "", {})
            if isinstance(kind.get("type"), str):
                schedulers[name][queue] = (kind["type"].lower(), parse_count(kind.get("weight")))
        for port in self.switch.ports.values():
            port.ecn, port.scheduler = ecn[port.name], schedulers[port.name]

    def _read_headroom(self) -> None:
        profiles, pools = _rows(self.tables, "BUFFER_PROFILE"), _rows(self.tables, "BUFFER_POOL")
        sizes = [size for pool in pools.values() if (size := parse_count(pool.get("xoff")))]
        shared = any("xoff" in pool for pool in pools.values())
        if len(sizes) == 1:
            self.switch.headroom_pool_bytes = sizes[0]
        self.switch.headroom_ratio = self._only("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "over_subscribe_ratio")
        self.switch.lossless_mtu = self._only("LOSSLESS_TRAFFIC_PATTERN", "mtu")
        for name, group, row in self._list_parts("BUFFER_PG"):
            profile = profiles.get(_name(row.get("profile")) or "")
            if profile is None or "xoff" not in profile:
                continue
            port = self.switch.ports[name]
            headroom = dict(port.headroom or {})
            headroom[group] = Headroom(parse_count(profile.get("size")), parse_count(profile["xoff"]), shared)
            port.headroom = headroom

    def _only(self, table: str, field: str) -> int | None:
        """A number that a table has once."""
        values = {parse_count(row[field]) for row in _rows(self.tables, table).values() if field in row}
        return values.pop() if len(values) == 1 else None

    def _list_parts(self, table: str) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        """Port, queue or priority group, row: of keys "Ethernet0|3", "Ethernet0,Ethernet4|3-4"."""
        for key, row in _rows(self.tables, table).items():
            parts = key.split("|")
            if len(parts) not in (2, 4):
                continue
            low, dash, high = parts[-1].partition("-")
            first, last = parse_count(low), parse_count(high if dash else low)
            if first is None or last is None or last > 63:
                continue
            for name in parts[-2].split(","):
                if name in self.names:
                    for number in range(first, last + 1):
                        yield self.names[name], number, row


def _read_profile(row: Mapping[str, Any]) -> EcnProfile:
    """The green packets of a WRED profile: RoCE has no others."""
    mode = str(row.get("ecn", "ecn_none")).lower()
    percent = parse_count(row.get("green_drop_probability"))
    return EcnProfile(
        mode in ("ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red"),
        parse_count(row.get("green_min_threshold")),
        parse_count(row.get("green_max_threshold")),
        percent,
    )


def _rows(tables: Mapping[str, Any], table: str) -> Rows:
    """Rows of a table; what is no row is left out."""
    rows = tables.get(table)
    if not isinstance(rows, dict):
        return {}
    return {key: row for key, row in rows.items() if isinstance(row, dict)}


def _name(value: object) -> str | None:
    """The name of a row that a field refers to: "AZURE", of older releases "[DSCP_TO_TC_MAP|AZURE]"."""
    if not isinstance(value, str) or not value.strip():
        return None
    match = _REFERENCE.fullmatch(value)
    return match[1] if match else value
