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
    read: Callable[[PortFacts, Row], None] | None = None
    also: tuple[str, ...] = ()
    counters: Mapping[str, str] = {}  # names by column: of a table with a column TxQ, without the queue's number
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
        port = switch.port(name)
        if kind.read is not None:
            kind.read(port, {**row, "queue": queue})
        _add_counters(kind, port, row)
    return others


def _add_counters(kind: TableKind, port: PortFacts, row: Row) -> None:
    queue = _queue_number(row["TxQ"]) if "TxQ" in row else None
    if "TxQ" in row and queue is None:
        return
    for column, name in kind.counters.items():
        if column == kind.numbered:
            for number in range(8):
                port.count(f"{name}_{number}", row.get(f"{column}{number}"))
        else:
            port.count(name if queue is None else f"{name}_{queue}", row.get(column))


def _read_status(port: PortFacts, row: Row) -> None:
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


def _read_neighbor(port: PortFacts, row: Row) -> None:
    if row["RemoteDevice"] in NOTHING and row["RemotePortID"] in NOTHING:
        return
    neighbor = SwitchNeighbor(
        row["RemoteDevice"] or None, row["RemotePortID"] or None, row.get("RemotePortDescr") or None
    )
    if neighbor not in port.neighbors:
        port.neighbors.append(neighbor)


def _read_fec_status(port: PortFacts, row: Row) -> None:
    if row["FEC Oper"] not in NOTHING:
        port.fec_active = row["FEC Oper"]
    if row["FEC Admin"] not in NOTHING:
        port.fec_set = row["FEC Admin"]


def _read_error_rate(port: PortFacts, row: Row) -> None:
    try:
        ber = float(row.get("FEC_PRE_BER", ""))
    except ValueError:
        return
    port.pre_fec_ber = ber if 0 <= ber <= 1 else None


def _read_fec_bins(port: PortFacts, row: Row) -> None:
    """Codewords by their errors; FEC of 544 symbols (RS-544, 514) corrects up to 15 in one."""
    counts = [parse_count(row.get(f"BIN{number}")) for number in NEAR_LIMIT]
    if None not in counts:
        port.counters["fec_near_limit"] = sum(count or 0 for count in counts)


def _read_priorities(port: PortFacts, row: Row) -> None:
    if port.pfc is None:  # the configuration states it already
        port.pfc = parse_priorities(row["Lossless priorities"])


def _read_asymmetric(port: PortFacts, row: Row) -> None:
    port.pfc_asymmetric = {"on": True, "off": False}.get(row["Asymmetric"], port.pfc_asymmetric)


def _read_watchdog(port: PortFacts, row: Row) -> None:
    port.watchdog_configured = True
    port.watchdog_action = row["ACTION"] if row["ACTION"] not in NOTHING else port.watchdog_action
    port.watchdog_detect_ms = parse_count(row["DETECTION TIME"]) or port.watchdog_detect_ms


def _read_storms(port: PortFacts, row: Row) -> None:
    queue = parse_count(row["queue"])
    if queue is None or queue > 7:
        return
    if row["STATUS"] not in NOTHING:
        port.watchdog_state[queue] = row["STATUS"]
    found, _, restored = row["STORM DETECTED/RESTORED"].partition("/")
    port.count(f"storms_{queue}", found)
    port.count(f"storms_restored_{queue}", restored)
    for column, way in (("TX OK/DROP", "tx"), ("RX OK/DROP", "rx")):
        port.count(f"watchdog_drop_{way}_{queue}", row.get(column, "").partition("/")[2])


def _read_link_retry(port: PortFacts, row: Row) -> None:
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


def _queue_number(name: str) -> int | None:
    """Of a unicast queue: RoCE is unicast."""
    match = _TRAFFIC_QUEUE.fullmatch(name)
    return int(match[1]) if match else None


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
        _read_error_rate,
        ("STATE", "FEC_SYMBOL_ERR", "FEC_PRE_BER", "FEC_POST_BER"),
        {"FEC_CORR": "fec_corrected", "FEC_UNCORR": "fec_uncorrected"},
    ),
    TableKind("show pfc counters", ("Port Rx", "PFC3"), counters={"PFC": "pfc_rx"}, numbered="PFC"),
    TableKind("show pfc counters", ("Port Tx", "PFC3"), counters={"PFC": "pfc_tx"}, numbered="PFC"),
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
        also=("Counter/bytes", "Drop/bytes"),
        counters={"Counter/pkts": "queue_packets", "Counter/bytes": "queue_bytes", "Drop/pkts": "drop_queue"},
    ),
    TableKind(
        "show queue wredcounters",
        ("Port", "TxQ", "EcnMarked/pkts"),
        also=("WredDrp/pkts", "WredDrp/bytes", "EcnMarked/bytes"),
        counters={"EcnMarked/pkts": "ecn_marked", "WredDrp/pkts": "wred_drop"},
    ),
    TableKind(
        "show queue counters --trim",
        ("Port", "TxQ", "Trim/pkts", "TrimDrop/pkts"),
        also=("TrimSent/pkts",),
        counters={"Trim/pkts": "trim", "TrimDrop/pkts": "trim_drop"},
    ),
    TableKind(
        "show priority-group drop counters",
        ("Port", "PG3"),
        counters={"PG": "drop_pg"},
        title="dropped",
        numbered="PG",
    ),
    TableKind(
        "show priority-group watermark headroom",
        ("Port", "PG3"),
        counters={"PG": "headroom_watermark"},
        title="headroom",
        numbered="PG",
    ),
    TableKind("show headroom-pool watermark", ("Pool", "Bytes"), title="headroom pool", of_switch=_read_pool),
    TableKind(
        "show interfaces flap",
        ("Interface", "Flap Count"),
        also=("Admin", "Oper", "Link Down TimeStamp(UTC)", "Link Up TimeStamp(UTC)"),
        counters={"Flap Count": "flaps"},
    ),
    TableKind("show llr interface", ("PORT", "LLR Mode", "LLR Local", "LLR Remote", "LLR Profile"), _read_link_retry),
    TableKind("show interfaces counters", ("IFACE", "RX_OK", "TX_OK")),  # known, and without a fact that is judged
    TableKind("portstat -fh", ("IFACE", "BIN0"), _read_fec_bins, numbered="BIN"),
    TableKind("show priority-group watermark shared", ("Port", "PG3"), title="shared", numbered="PG"),  # likewise
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
                port.count(f"{_QUEUE_FIELDS[field]}_{number}", row[field])
    command = "show queue wredcounters" if "ecnmarkedpacket" in fields else "show queue counters"
    switch.outputs.add(command)
    return command


def is_group_table(data: object) -> bool:
    """Whether a JSON document is a list of rows of ports and priority groups."""
    return isinstance(data, list) and bool(data) and all(isinstance(row, dict) and "Port" in row for row in data)
