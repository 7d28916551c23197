"""Outputs of community SONiC's commands: tables by the names of their columns, and counters as JSON.

sonic-utilities, doc/Command-Reference.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from probes.named_tuple import NamedTuple
from probes.switches.facts import LinkRetry, PortFacts, SwitchFacts, SwitchNeighbor, parse_count, parse_priorities
from probes.switches.text_tables import TextTable
from probes.text import lazy_pattern

Row = Mapping[str, str]
_SPEED = lazy_pattern(r"([0-9]{1,7})([GMT])")
_TRAFFIC_QUEUE = lazy_pattern(r"UC([0-9]{1,2})")
_PROFILE_METRES = lazy_pattern(r"_([0-9]{1,5})m_")
_PORT = lazy_pattern(r"Ethernet[0-9]{1,5}|Eth[0-9]{1,3}(?:/[0-9]{1,3}){1,3}")
_GBIT = {"M": 0.001, "G": 1.0, "T": 1000.0}
NOTHING = ("N/A", "-", "")
NEAR_LIMIT = range(10, 16)  # symbol errors in a codeword


class TableKind(NamedTuple):
    """One output: columns that it must have, those that are read beside them, and the reader of a row."""

    command: str
    needs: tuple[str, ...]
    read: Callable[[SwitchFacts, PortFacts, Row], None]
    also: tuple[str, ...] = ()
    title: str = ""  # a word of the line above the table, where the columns do not show it
    numbered: str = ""  # columns of a name and a number: "PFC"
    of_switch: Callable[[SwitchFacts, Row], None] | None = None  # reads a row that is of no port


def find_kind(table: TextTable) -> TableKind | None:
    """Which output a table is; None: none of those that are read."""
    columns = set(table.columns)
    return next(
        (kind for kind in KINDS if columns >= set(kind.needs) and kind.title in table.title.lower()),
        None,
    )


def read_table(kind: TableKind, table: TextTable, switch: SwitchFacts) -> int:
    """Add the rows of a table; how many of them are of no port that this switch can have."""
    switch.nos = switch.nos or "sonic"
    switch.cli = switch.cli or "sonic"
    switch.outputs.add(kind.command)
    known = {*kind.needs, *kind.also}
    switch.unknown_columns += sum(
        name not in known and not (kind.numbered and re.fullmatch(f"{kind.numbered}[0-9]{{1,2}}", name))
        for name in table.columns
    )
    others = 0
    for cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        if kind.of_switch is not None:
            kind.of_switch(switch, row)
            continue
        name, _, queue = cells[0].partition(":")
        if _PORT.fullmatch(name) is None:
            others += not name.startswith(("PortChannel", "eth0", "Ethernet-", "Loopback", "Vlan", "Management"))
            continue
        kind.read(switch, switch.port(name), {**row, "queue": queue})
    return others


def _read_status(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    port.oper = row["Oper"] if row["Oper"] in ("up", "down") else port.oper
    port.admin = row["Admin"] if row["Admin"] in ("up", "down") else port.admin
    port.mtu = parse_count(row["MTU"]) or port.mtu
    match = _SPEED.fullmatch(row["Speed"])
    if match:
        port.speed_gbit_s = int(match[1]) * _GBIT[match[2]]
    if row.get("Alias", "") not in NOTHING:
        port.alias = row["Alias"]
    if row.get("FEC", "") not in NOTHING:
        port.fec_active = row["FEC"]
    if row.get("Asym PFC") in ("on", "off"):
        port.pfc_asymmetric = row["Asym PFC"] == "on"


def _read_neighbor(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    if row["RemoteDevice"] in NOTHING and row["RemotePortID"] in NOTHING:
        return
    neighbor = SwitchNeighbor(
        row["RemoteDevice"] or None, row["RemotePortID"] or None, row.get("RemotePortDescr") or None
    )
    if neighbor not in port.neighbors:
        port.neighbors.append(neighbor)


def _read_fec_status(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    if row["FEC Oper"] not in NOTHING:
        port.fec_active = row["FEC Oper"]
    if row["FEC Admin"] not in NOTHING:
        port.fec_set = row["FEC Admin"]


def _read_fec_counters(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count(port, "fec_corrected", row["FEC_CORR"])
    _count(port, "fec_uncorrected", row["FEC_UNCORR"])
    try:
        ber = float(row.get("FEC_PRE_BER", ""))
    except ValueError:
        return
    port.pre_fec_ber = ber if 0 <= ber <= 1 else None


def _read_fec_bins(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    """Codewords by their errors; FEC of 544 symbols (RS-544, 514) corrects up to 15 in one."""
    counts = [parse_count(row.get(f"BIN{number}")) for number in NEAR_LIMIT]
    if None not in counts:
        port.counters["fec_near_limit"] = sum(count or 0 for count in counts)


def _read_pfc_received(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count_numbered(port, "pfc_rx", row, "PFC")


def _read_pfc_sent(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count_numbered(port, "pfc_tx", row, "PFC")


def _read_priorities(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    if port.pfc is None:  # the configuration states it already
        port.pfc = parse_priorities(row["Lossless priorities"])


def _read_asymmetric(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    port.pfc_asymmetric = {"on": True, "off": False}.get(row["Asymmetric"], port.pfc_asymmetric)


def _read_watchdog(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    port.watchdog_configured = True
    port.watchdog_action = row["ACTION"] if row["ACTION"] not in NOTHING else port.watchdog_action
    port.watchdog_detect_ms = parse_count(row["DETECTION TIME"]) or port.watchdog_detect_ms


def _read_storms(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    queue = parse_count(row["queue"])
    if queue is None or queue > 7:
        return
    if row["STATUS"] not in NOTHING:
        port.watchdog_state[queue] = row["STATUS"]
    found, _, restored = row["STORM DETECTED/RESTORED"].partition("/")
    _count(port, f"storms_{queue}", found)
    _count(port, f"storms_restored_{queue}", restored)
    for column, way in (("TX OK/DROP", "tx"), ("RX OK/DROP", "rx")):
        _count(port, f"watchdog_drop_{way}_{queue}", row.get(column, "").partition("/")[2])


def _read_queue(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    queue = _queue_number(row["TxQ"])
    if queue is not None:
        _count(port, f"queue_packets_{queue}", row["Counter/pkts"])
        _count(port, f"queue_bytes_{queue}", row.get("Counter/bytes"))
        _count(port, f"drop_queue_{queue}", row["Drop/pkts"])


def _read_marks(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    queue = _queue_number(row["TxQ"])
    if queue is not None:
        _count(port, f"ecn_marked_{queue}", row["EcnMarked/pkts"])
        _count(port, f"wred_drop_{queue}", row.get("WredDrp/pkts"))


def _read_trims(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    queue = _queue_number(row["TxQ"])
    if queue is not None:
        _count(port, f"trim_{queue}", row["Trim/pkts"])
        _count(port, f"trim_drop_{queue}", row["TrimDrop/pkts"])


def _read_group_drops(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count_numbered(port, "drop_pg", row, "PG")


def _read_watermarks(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count_numbered(port, "headroom_watermark", row, "PG")


def _read_flaps(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    _count(port, "flaps", row["Flap Count"])


def _read_link_retry(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    states = [row[column].lower() for column in ("LLR Local", "LLR Remote")]
    enabled = None
    if all(state in ("enabled", "disabled") for state in states):
        enabled = states[0] == "enabled"
    profile = row["LLR Profile"] if row["LLR Profile"] not in NOTHING else None
    metres = _PROFILE_METRES.search(profile or "")
    port.link_retry = LinkRetry(enabled, profile, int(metres[1]) if metres else None)


def _read_pool(switch: SwitchFacts, row: Row) -> None:
    """The largest of the pools: the headroom is in one of them."""
    peak = parse_count(row["Bytes"])
    if peak is not None:
        switch.headroom_pool_peak = max(peak, switch.headroom_pool_peak or 0)


def _read_nothing(switch: SwitchFacts, port: PortFacts, row: Row) -> None:
    """Known, and without a fact that is judged."""


def _queue_number(name: str) -> int | None:
    """Of a unicast queue: RoCE is unicast."""
    match = _TRAFFIC_QUEUE.fullmatch(name)
    return int(match[1]) if match else None


def _count(port: PortFacts, name: str, text: object) -> None:
    value = parse_count(text)
    if value is not None:
        port.counters[name] = value


def _count_numbered(port: PortFacts, name: str, row: Row, prefix: str) -> None:
    for number in range(8):
        _count(port, f"{name}_{number}", row.get(f"{prefix}{number}"))


KINDS = (
    TableKind(
        "show interfaces status",
        ("Interface", "Speed", "MTU", "Oper", "Admin"),
        _read_status,
        ("Lanes", "FEC", "Alias", "Vlan", "Type", "Asym PFC"),
    ),
    TableKind(
        "show lldp table",
        ("LocalPort", "RemoteDevice", "RemotePortID"),
        _read_neighbor,
        ("Capability", "RemotePortDescr"),
    ),
    TableKind("show interfaces fec status", ("Interface", "FEC Oper", "FEC Admin"), _read_fec_status),
    TableKind(
        "show interfaces counters fec-stats",
        ("IFACE", "FEC_CORR", "FEC_UNCORR"),
        _read_fec_counters,
        ("STATE", "FEC_SYMBOL_ERR", "FEC_PRE_BER", "FEC_POST_BER"),
    ),
    TableKind("show pfc counters", ("Port Rx", "PFC3"), _read_pfc_received, numbered="PFC"),
    TableKind("show pfc counters", ("Port Tx", "PFC3"), _read_pfc_sent, numbered="PFC"),
    TableKind("show pfc priority", ("Interface", "Lossless priorities"), _read_priorities),
    TableKind("show pfc asymmetric", ("Interface", "Asymmetric"), _read_asymmetric),
    TableKind(
        "show pfcwd config", ("PORT", "ACTION", "DETECTION TIME"), _read_watchdog, ("RESTORATION TIME", "HISTORY")
    ),
    TableKind(
        "show pfcwd stats",
        ("QUEUE", "STATUS", "STORM DETECTED/RESTORED"),
        _read_storms,
        ("TX OK/DROP", "RX OK/DROP", "TX LAST OK/DROP", "RX LAST OK/DROP"),
    ),
    TableKind(
        "show queue counters",
        ("Port", "TxQ", "Counter/pkts", "Drop/pkts"),
        _read_queue,
        ("Counter/bytes", "Drop/bytes"),
    ),
    TableKind(
        "show queue wredcounters",
        ("Port", "TxQ", "EcnMarked/pkts"),
        _read_marks,
        ("WredDrp/pkts", "WredDrp/bytes", "EcnMarked/bytes"),
    ),
    TableKind(
        "show queue counters --trim",
        ("Port", "TxQ", "Trim/pkts", "TrimDrop/pkts"),
        _read_trims,
        ("TrimSent/pkts",),
    ),
    TableKind("show priority-group drop counters", ("Port", "PG3"), _read_group_drops, title="dropped", numbered="PG"),
    TableKind(
        "show priority-group watermark headroom", ("Port", "PG3"), _read_watermarks, title="headroom", numbered="PG"
    ),
    TableKind(
        "show headroom-pool watermark", ("Pool", "Bytes"), _read_nothing, title="headroom pool", of_switch=_read_pool
    ),
    TableKind(
        "show interfaces flap",
        ("Interface", "Flap Count"),
        _read_flaps,
        ("Admin", "Oper", "Link Down TimeStamp(UTC)", "Link Up TimeStamp(UTC)"),
    ),
    TableKind("show llr interface", ("PORT", "LLR Mode", "LLR Local", "LLR Remote", "LLR Profile"), _read_link_retry),
    TableKind("show interfaces counters", ("IFACE", "RX_OK", "TX_OK"), _read_nothing),
    TableKind("portstat -fh", ("IFACE", "BIN0"), _read_fec_bins, numbered="BIN"),
    TableKind("show priority-group watermark shared", ("Port", "PG3"), _read_nothing, title="shared", numbered="PG"),
)
_QUEUE_FIELDS = {
    "totalpacket": "queue_packets",
    "totalbytes": "queue_bytes",
    "droppacket": "drop_queue",
    "ecnmarkedpacket": "ecn_marked",
    "wreddroppacket": "wred_drop",
    "trimpacket": "trim",
    "trimdroppacket": "trim_drop",
}


def is_queue_counters(data: object) -> bool:
    """Whether a JSON document is `show queue counters -j` or `show queue wredcounters --json`."""
    if not isinstance(data, dict) or not data:
        return False
    queues = next(iter(data.values()))
    return (
        isinstance(queues, dict)
        and bool(queues)
        and all(isinstance(row, dict) or name == "time" for name, row in queues.items())
        and any(isinstance(row, dict) and not _QUEUE_FIELDS.keys().isdisjoint(row) for row in queues.values())
    )


def read_queue_counters(data: Mapping[str, Any], switch: SwitchFacts) -> str:
    """Add the counters of every unicast queue; which command wrote them."""
    switch.nos, switch.cli = switch.nos or "sonic", switch.cli or "sonic"
    fields: set[str] = set()
    for name, queues in data.items():
        if not isinstance(queues, dict) or _PORT.fullmatch(name) is None:
            continue
        port = switch.port(name)
        for queue, row in queues.items():
            number = _queue_number(queue)
            if number is None or not isinstance(row, dict):
                continue
            for field in row.keys() & _QUEUE_FIELDS.keys():
                fields.add(field)
                _count(port, f"{_QUEUE_FIELDS[field]}_{number}", row[field])
    command = "show queue wredcounters" if "ecnmarkedpacket" in fields else "show queue counters"
    switch.outputs.add(command)
    return command


def is_group_table(data: object) -> bool:
    """Whether a JSON document is a list of rows of ports and priority groups."""
    return isinstance(data, list) and bool(data) and all(isinstance(row, dict) and "Port" in row for row in data)
