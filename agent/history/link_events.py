"""Changes since the last run: links that went down, settings that differ."""

from __future__ import annotations

from collections.abc import Mapping

from agent.history.window import CounterSample, compare_samples
from agent.model.counters import NETDEV, PORT
from agent.model.identity import Earlier
from agent.model.nic import Netdev, Port
from agent.model.report import Report

Settings = dict[str, dict[str, str]]  # subject -> name -> value

_DOWN_COUNTERS = ("link_downed", "carrier_down_count", "link_down_events_phy")
_NETDEV_UP = {"up": True, "down": False, "lowerlayerdown": False}
# LinkUp and what a cable without a signal gives; "Disabled" is switched off on purpose, or an interface that is down
_PORT_UP = {"LinkUp": True, "Polling": False, "Sleep": False, "LinkErrorRecovery": False}


def link_states(report: Report) -> dict[str, bool]:
    """Whether the link of each port and interface is up. What is down on purpose, or not known, is left out."""
    states: dict[str, bool | None] = {}
    for nic in report.topology.nics:
        states |= {f"{PORT}:{nic.id}/{port.port}": _PORT_UP.get(port.phys_state or "") for port in nic.ports}
    for netdev in report.topology.netdevs:
        if netdev.nic and netdev.admin_up is not False:
            states[f"{NETDEV}:{netdev.id}"] = _NETDEV_UP.get(netdev.operstate or "")
    return {subject: up for subject, up in states.items() if up is not None}


def link_down_events(
    was_up: Mapping[str, bool], last: CounterSample, report: Report, earlier: Earlier
) -> dict[str, int]:
    """How often each link went down since the last run of this boot: by its counters, else by its state.

    The counters of one link count the same events: the most that one of them states.
    """
    counts: dict[str, int] = {}
    moved = compare_samples(last, report, (PORT, NETDEV)).moved
    off = {f"{NETDEV}:{netdev.id}" for netdev in report.topology.netdevs if netdev.admin_up is False or not netdev.nic}
    for subject, counters in moved.items():
        times = max((counters.get(name, 0) for name in _DOWN_COUNTERS), default=0)
        if times and subject not in off:
            counts[subject] = times
    for subject, up in link_states(report).items():
        if not up and was_up.get(earlier.subject(subject) or ""):
            counts.setdefault(subject, 1)
    return counts


def collect_settings(report: Report) -> Settings:
    """Settings and versions whose change is worth a word, by subject; what is not known is left out."""
    rows: dict[str, dict[str, str | None]] = {
        "node": {
            "kernel": report.node.kernel,
            "driver": report.software.driver.version,
            "rdma_stack": report.software.rdma_stack.version,
            "numa_nodes": _cpu_node_count(report),
        }
    }
    for gpu in report.topology.gpus:
        rows[f"gpu:{gpu.id}"] = {
            "vbios": gpu.vbios,
            "numa_node": _number(gpu.numa_node),
            "mig": _on_off(gpu.mig.current) if gpu.mig else None,
            "nvlink_bandwidth_mode": gpu.nvlink_bandwidth_mode,
        }
    for nic in report.topology.nics:
        if not nic.software and not nic.virtual_function:
            rows[f"nic:{nic.id}"] = {"firmware": nic.firmware, "numa_node": _number(nic.numa_node)}
            rows |= {f"{PORT}:{nic.id}/{port.port}": _port_settings(port) for port in nic.ports}
    for netdev in report.topology.netdevs:
        if netdev.nic:
            rows[f"{NETDEV}:{netdev.id}"] = _netdev_settings(netdev)
    known = {
        subject: {name: text for name, text in sorted(row.items()) if text is not None} for subject, row in rows.items()
    }
    return {subject: row for subject, row in known.items() if row}


def _cpu_node_count(report: Report) -> str | None:
    """NUMA nodes that have CPUs; those of GPU and CXL memory come and go with their devices."""
    nodes = report.node.numa_nodes
    return str(sum(bool(node.cpus) for node in nodes)) if nodes and all(n.cpus is not None for n in nodes) else None


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _port_settings(port: Port) -> dict[str, str | None]:
    """Addresses that a subnet manager deals out; 0 is none yet."""
    numbers = {"lid": port.lid, "sm_lid": port.sm_lid}
    return {
        name: str(number) if number and port.link_layer == "InfiniBand" else None for name, number in numbers.items()
    }


def _netdev_settings(netdev: Netdev) -> dict[str, str | None]:
    row: dict[str, str | None] = {
        "mtu": str(netdev.mtu) if netdev.mtu else None,
        "fec": netdev.fec.active if netdev.fec else None,
    }
    if netdev.pause:
        row |= {"pause_rx": _on_off(netdev.pause.rx), "pause_tx": _on_off(netdev.pause.tx)}
    if netdev.qos:
        on = ",".join(str(priority) for priority, enabled in enumerate(netdev.qos.pfc) if enabled)
        row |= {
            "trust": netdev.qos.trust,
            "dcbx": netdev.qos.dcbx,
            "pfc": (on or "none") if netdev.qos.pfc else None,
        }
    return row


def _on_off(switch: bool | None) -> str | None:
    return None if switch is None else "on" if switch else "off"
