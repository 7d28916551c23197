"""What was otherwise in the last run: links that have gone down since, settings that have changed."""

from __future__ import annotations

from collections.abc import Mapping

from agent.history.window import Sample, between
from agent.model.counters import NETDEV, PORT
from agent.model.identity import Earlier
from agent.model.nic import Netdev, Port
from agent.model.report import Report

Settings = dict[str, dict[str, str]]  # subject -> name -> value

_DOWN_COUNTERS = ("link_downed", "carrier_down_count", "link_down_events_phy")
_NETDEV_UP = {"up": True, "down": False, "lowerlayerdown": False}
# LinkUp and what a cable without a signal gives; "Disabled" is switched off on purpose, or an interface that is down
_PORT_UP = {"LinkUp": True, "Polling": False, "Sleep": False, "LinkErrorRecovery": False}


def links_up(report: Report) -> dict[str, bool]:
    """Whether the link of each port and interface is up. What is down on purpose, or not known, is left out."""
    found: dict[str, bool | None] = {}
    for nic in report.topology.nics:
        found |= {f"{PORT}:{nic.id}/{port.port}": _PORT_UP.get(port.phys_state or "") for port in nic.ports}
    for netdev in report.topology.netdevs:
        if netdev.nic and netdev.admin_up is not False:
            found[f"{NETDEV}:{netdev.id}"] = _NETDEV_UP.get(netdev.operstate or "")
    return {subject: up for subject, up in found.items() if up is not None}


def went_down(was_up: Mapping[str, bool], last: Sample, report: Report, earlier: Earlier) -> dict[str, int]:
    """How often each link went down since the last run of this boot: by its counters, else by its state.

    The counters of one link count the same events: the most that one of them says.
    """
    found: dict[str, int] = {}
    moved = between(last, report, (PORT, NETDEV)).moved
    off = {f"{NETDEV}:{netdev.id}" for netdev in report.topology.netdevs if netdev.admin_up is False or not netdev.nic}
    for subject, counters in moved.items():
        times = max((counters.get(name, 0) for name in _DOWN_COUNTERS), default=0)
        if times and subject not in off:
            found[subject] = times
    for subject, up in links_up(report).items():
        if not up and was_up.get(earlier.subject(subject) or ""):
            found.setdefault(subject, 1)
    return found


def settings(report: Report) -> Settings:
    """Settings and versions whose change is worth a word, by subject; what is not known is left out."""
    found: dict[str, dict[str, str | None]] = {
        "node": {
            "kernel": report.node.kernel,
            "driver": report.software.driver.version,
            "rdma_stack": report.software.rdma_stack.version,
        }
    }
    for gpu in report.topology.gpus:
        found[f"gpu:{gpu.id}"] = {
            "vbios": gpu.vbios,
            "mig": _word(gpu.mig.current) if gpu.mig else None,
            "nvlink_bandwidth_mode": gpu.nvlink_bandwidth_mode,
        }
    for nic in report.topology.nics:
        if not nic.software and not nic.virtual_function:
            found[f"nic:{nic.id}"] = {"firmware": nic.firmware}
            found |= {f"{PORT}:{nic.id}/{port.port}": _port(port) for port in nic.ports}
    for netdev in report.topology.netdevs:
        if netdev.nic:
            found[f"{NETDEV}:{netdev.id}"] = _netdev(netdev)
    known = {
        subject: {name: text for name, text in sorted(row.items()) if text is not None}
        for subject, row in found.items()
    }
    return {subject: row for subject, row in known.items() if row}


def _port(port: Port) -> dict[str, str | None]:
    """Addresses that a subnet manager deals out; 0 is none yet."""
    numbers = {"lid": port.lid, "sm_lid": port.sm_lid}
    return {
        name: str(number) if number and port.link_layer == "InfiniBand" else None for name, number in numbers.items()
    }


def _netdev(netdev: Netdev) -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "mtu": str(netdev.mtu) if netdev.mtu else None,
        "fec": netdev.fec.active if netdev.fec else None,
    }
    if netdev.pause:
        found |= {"pause_rx": _word(netdev.pause.rx), "pause_tx": _word(netdev.pause.tx)}
    if netdev.qos:
        on = ",".join(str(n) for n, each in enumerate(netdev.qos.pfc) if each)
        found |= {
            "trust": netdev.qos.trust,
            "dcbx": netdev.qos.dcbx,
            "pfc": (on or "none") if netdev.qos.pfc else None,
        }
    return found


def _word(switch: bool | None) -> str | None:
    return None if switch is None else "on" if switch else "off"
