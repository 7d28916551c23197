"""Hosts' RoCE interfaces, of reports and of a dataset's rows, and the DSCP that they mark RDMA with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.fleet.lossless.hop import HostPort
from agent.fleet.stored_rows import build_part
from agent.model.report import Report

DEFAULT_DSCP = 26  # what NVIDIA's and Broadcom's guides mark RoCE with


class DscpMarking(NamedTuple):
    """The DSCP to judge. `by_hosts`: what hosts mark; `why`: how it is known."""

    dscp: int
    by_hosts: bool
    why: str


def read_report_ports(report: Report) -> list[HostPort]:
    """Interfaces of a report that carry RoCE: of rails; where none is known, of every NIC with RDMA over Ethernet."""
    nics = {nic.id: nic for nic in report.topology.nics}
    rails = [nic for nic in nics.values() if nic.role == "rail"]
    chosen = rails or [nic for nic in nics.values() if nic.rdma_device and not nic.virtual_function]
    numbers = {nic.id: number for number, nic in enumerate(rails)}
    forced = {nic.id: port.traffic_class for nic in chosen for port in nic.ports if port.traffic_class is not None}
    common = _find_setting_dscp(" ".join(f"{row.key}={row.value}" for row in report.software.nccl.settings))
    has_vlans = any(netdev.vlan for netdev in report.topology.netdevs)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for finding in report.findings:
        if finding.rule.startswith("roce-") and finding.severity in ("error", "critical", "warning"):
            for device in finding.list_concerned():
                found[device].add(finding.rule)
    ports = []
    for netdev in report.topology.netdevs:
        if netdev.nic not in {nic.id for nic in chosen} or netdev.vlan:
            continue
        nic = nics[netdev.nic]
        if any(port.link_layer == "InfiniBand" for port in nic.ports):
            continue
        qos, neighbor = netdev.qos, netdev.neighbor
        counters = dict(netdev.counters)
        for port in nic.ports:
            counters.update(port.hw_counters)
        ports.append(
            HostPort(
                report.node.hostname or "host",
                netdev.label,
                rail=numbers.get(nic.id),
                mac=netdev.mac,
                up=None if netdev.operstate is None else netdev.operstate == "up",
                speed_gbit_s=netdev.speed_gbit_s,
                mtu=netdev.mtu,
                fec=netdev.fec.active if netdev.fec else None,
                trust=qos.trust if qos else None,
                tagged=None if has_vlans else False,
                dscp_prio=_parse_map(qos.dscp_prio if qos else {}),
                pfc=frozenset(at for at, on in enumerate(qos.pfc) if on) if qos and qos.pfc else None,
                dscp=forced[nic.id] >> 2 if nic.id in forced else common,
                cnp_dscp=qos.cnp_dscp if qos else None,
                module_metres=netdev.module.length_m if netdev.module else None,
                global_pause=netdev.pause.rx or netdev.pause.tx if netdev.pause else None,
                neighbor_name=neighbor.system if neighbor else None,
                neighbor_port=neighbor.port if neighbor else None,
                neighbor_chassis=neighbor.chassis if neighbor else None,
                counters=counters,
                findings=tuple(sorted(found[netdev.id] | found[nic.id])),
            )
        )
    return ports


def _find_setting_dscp(settings: str) -> int | None:
    """The DSCP of NCCL_IB_TC in settings "KEY=VALUE ..".

    >>> _find_setting_dscp("NCCL_DEBUG=INFO NCCL_IB_TC=106"), _find_setting_dscp("NCCL_IB_TC=x"), _find_setting_dscp("")
    (26, None, None)
    """
    for word in settings.split():
        key, _, value = word.partition("=")
        if key == "NCCL_IB_TC":
            try:
                number = int(value, 0)
            except ValueError:
                return None
            return number >> 2 if 0 < number < 256 else None
    return None


def _parse_map(pairs: Mapping[str, int]) -> dict[int, int] | None:
    known = {int(dscp): priority for dscp, priority in pairs.items() if dscp.isdecimal() and len(dscp) < 3}
    return known or None


DATASET_COLUMNS = {
    "host": ("node", "hostname", "settings"),
    "netdev": (
        "node", "id", "label", "nic", "rail", "mac", "operstate", "speed_gbit_s", "mtu", "driver", "fec", "pause_rx",
        "pause_tx", "trust", "pfc", "dscp_prio", "neighbor_system", "neighbor_chassis", "neighbor_port", "cnp_dscp",
    ),
    "port": ("node", "nic", "link_layer"),
    "port_counter": ("node", "nic", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err"),
    "finding": ("node", "rule", "severity", "subject", "silenced"),
}  # fmt: skip


def read_dataset_ports(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[HostPort]:
    """The rails' interfaces of a dataset: rows by table, each by the columns of DATASET_COLUMNS."""
    hosts = {row["node"]: row for row in rows["host"]}
    count = Counter(row["hostname"] for row in rows["host"])
    names = {node: row["hostname"] for node, row in hosts.items() if count[row["hostname"]] == 1}
    ethernet = {(row["node"], row["nic"]) for row in rows["port"] if row["link_layer"] != "InfiniBand"}
    counters: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows["port_counter"]:
        for name in DATASET_COLUMNS["port_counter"][2:]:
            if row[name] is not None:
                counters[row["node"], row["nic"]][name] = counters[row["node"], row["nic"]].get(name, 0) + row[name]
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows["finding"]:
        if str(row["rule"]).startswith("roce-") and row["severity"] != "info" and not row["silenced"]:
            device = str(row["subject"]).partition(":")[2].partition("/")[0]
            found[row["node"], device].add(row["rule"])
    tagged = {row["node"] for row in rows["netdev"] if "." in str(row["label"]) or "VLAN" in str(row["driver"])}
    ports = []
    for row in rows["netdev"]:
        node = row["node"]
        if row["rail"] is None or (node, row["nic"]) not in ethernet or "." in str(row["label"]):
            continue
        pfc = row["pfc"]
        ports.append(
            build_part(
                HostPort,
                row,
                host=str(names.get(node) or node),
                name=str(row["label"]),
                up=None if row["operstate"] is None else row["operstate"] == "up",
                tagged=None if node in tagged else False,
                dscp_prio=_parse_pairs(row["dscp_prio"]),
                pfc=frozenset(at for at, digit in enumerate(pfc) if digit == "1") if pfc else None,
                dscp=_find_setting_dscp(str(hosts.get(node, {}).get("settings") or "")),
                global_pause=row["pause_rx"] or row["pause_tx"],
                neighbor_name=row["neighbor_system"],
                counters=counters[node, row["nic"]],
                findings=tuple(sorted(found[node, row["id"]] | found[node, row["nic"]])),
            )
        )
    return ports


def _parse_pairs(text: str | None) -> dict[int, int] | None:
    """
    >>> _parse_pairs("26:3 48:6"), _parse_pairs(None)
    ({26: 3, 48: 6}, None)
    """
    pairs = (part.partition(":") for part in (text or "").split())
    known = {int(dscp): int(prio) for dscp, _, prio in pairs if dscp.isdecimal() and prio.isdecimal()}
    return known or None


def choose_marking(wanted: int | None, hosts: Sequence[HostPort]) -> DscpMarking:
    """What the user asks about; else what most hosts mark; else the commonest value."""
    if wanted is not None:
        return DscpMarking(wanted, False, "as asked")
    counts = Counter(host.dscp for host in hosts if host.dscp is not None)
    if counts:
        dscp, count = counts.most_common(1)[0]
        others = len(counts) - 1
        more = f", {others} other value{'s'[: others != 1]} elsewhere" if others else ""
        return DscpMarking(dscp, True, f"marked by {count:,} of {len(hosts):,} host ports{more}")
    return DscpMarking(DEFAULT_DSCP, False, "assumed: no host states its marking; --dscp N asks about another")


def commonest(values: Iterable[int | None]) -> int | None:
    """The value of most; None where none is known."""
    counts = Counter(value for value in values if value is not None)
    return counts.most_common(1)[0][0] if counts else None
