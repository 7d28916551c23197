"""What a run leaves for later ones, and what it makes of what earlier ones left: links that went down, settings and
inventory that differ. Data in, data out: no file, no clock.

Counters are compared within one boot. What lasts, the inventory and settings, is compared over reboots, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.history.window import CounterSample, compare_samples, make_window, select_samples, take_sample, time_of
from agent.model.counters import NETDEV, PORT
from agent.model.identity import Earlier, identities
from agent.model.nic import Netdev, Port
from agent.model.report import CountersWindow, History, Known, Report
from agent.rules.context import SETTLE_SECONDS
from agent.rules.host.inventory_matching import (
    build_inventory,
    healthy_subjects,
    match_devices,
    merge_inventory,
    owner_of,
)

Settings = dict[str, dict[str, str]]  # subject -> name -> value

_DOWN_COUNTERS = ("link_downed", "carrier_down_count", "link_down_events_phy")
_NETDEV_UP = {"up": True, "down": False, "lowerlayerdown": False}
# LinkUp and what a cable without a signal gives; "Disabled" is switched off on purpose, or an interface that is down
_PORT_UP = {"LinkUp": True, "Polling": False, "Sleep": False, "LinkErrorRecovery": False}
STATE = "fabricscope.state/1"
LINK_DOWN_SECONDS = 86_400.0  # how long it is remembered that a link went down
LINK_DOWN_LIMIT = 64  # of one link, the newest
INVENTORY_LIMIT = 4096  # things of an inventory
LIVE_SOURCES = ("live", "rooted")  # sources that are a host as it is now, never an older one
FIRST_RUN = "first run with this state: the next run is compared with it"
OLDER_EVIDENCE = "the last run saw this host at the time of this evidence, or later"


def link_states(report: Report) -> dict[str, bool]:
    """Whether the link of each port and interface is up. What is down on purpose, or not known, is left out."""
    states: dict[str, bool | None] = {}
    for nic in report.topology.nics:
        states |= {f"{PORT}:{nic.id}/{port.port}": _PORT_UP.get(port.phys_state or "") for port in nic.ports}
    for netdev in report.topology.netdevs:
        if netdev.nic and netdev.admin_up is not False:
            states[f"{NETDEV}:{netdev.id}"] = _NETDEV_UP.get(netdev.operstate or "")
    return {subject: up for subject, up in states.items() if up is not None}


def count_link_downs(
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


class LinkDownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which a run saw that a link had gone down."""

    uptime_seconds: float
    at: str


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that earlier runs on one host left."""

    schema: str = STATE
    hostname: str | None = None
    serial: str | None = None
    boot_id: str | None = None
    last_run: str | None = None
    runs: int = 0
    samples: list[CounterSample] = []  # of this boot, the oldest first; the last is of the last run
    links_up: dict[str, bool] = {}
    downs: dict[str, list[LinkDownEvent]] = {}  # of this boot
    settings: Settings = {}
    identity: dict[str, str] = {}  # what lasts of the subjects of all these
    inventory: list[Known] = []
    last_good: str | None = None


def add_history(state: HostState | None, report: Report) -> Report:
    """The report with what earlier runs left of its host."""
    why = _why_unusable(state, report)
    own_window = report.counters_window  # of this run's own two readings
    if state is not None and not why:
        report = _restore_roles(state, report)
    if state is None or why:
        window = own_window or CountersWindow(reset_reason=why)
        return msgspec.structs.replace(report, counters_window=window, history=History(reason=why))
    return msgspec.structs.replace(
        report,
        counters_window=own_window or _window_of(state, report),
        history=History(
            last_good=state.last_good,
            last_run=state.last_run,
            runs=state.runs,
            inventory=state.inventory,
            link_downs={
                subject: [down.at for down in downs] for subject, downs in _link_down_events(state, report).items()
            },
            settings=_changed_settings(state, report),
        ),
    )


def _restore_roles(state: HostState, report: Report) -> Report:
    """A NIC that is dark with all like it, and was in use in an earlier run, has the role that it had then."""
    topology = report.topology
    if not any(nic.role == "unused" for nic in topology.nics):
        return report
    match = match_devices(state.inventory, build_inventory(topology))
    used = {
        owner_of(match.at[known.subject]).partition(":")[2]: known.role
        for known in state.inventory
        if known.rate_gbit_s and known.subject in match.at and known.role not in (None, "unused")
    }
    taken = state.last_good or "an earlier run"
    nics = [
        msgspec.structs.replace(
            nic, role=used[nic.id], role_evidence=[*nic.role_evidence, f"active in the inventory of {taken}"]
        )
        if nic.role == "unused" and nic.id in used
        else nic
        for nic in topology.nics
    ]
    return msgspec.structs.replace(report, topology=msgspec.structs.replace(topology, nics=nics))


def update_state(state: HostState | None, report: Report) -> HostState:
    """What the next run reads. Evidence that is older than what is known teaches nothing."""
    why = _why_unusable(state, report)
    if state is not None and why == OLDER_EVIDENCE:
        return state
    if state is None or why:
        state = HostState()
    new_sample, same_boot = take_sample(report), _is_same_boot(state, report)
    samples = state.samples if same_boot else []
    known, whole = merge_inventory(state.inventory, report.topology)
    now = collect_settings(report)
    earlier = Earlier(state.identity, state.settings, report.topology)
    current = {
        subject: {**state.settings.get(earlier.subject(subject) or "", {}), **row} for subject, row in now.items()
    }
    away = {item.subject for item in known} - now.keys()
    return HostState(
        hostname=report.node.hostname,
        serial=report.node.serial or state.serial,
        boot_id=report.node.boot_id,
        last_run=time_of(report),
        runs=state.runs + 1,
        samples=select_samples(samples, new_sample) if new_sample else samples,
        links_up=link_states(report),
        downs=_link_down_events(state, report),
        settings={**{subject: row for subject, row in state.settings.items() if subject in away}, **current},
        identity={**{s: own for s, own in state.identity.items() if s in away}, **identities(report.topology)},
        inventory=known[:INVENTORY_LIMIT],
        last_good=time_of(report) if whole else state.last_good,
    )


def accept_inventory(state: HostState | None, report: Report) -> HostState | None:
    """The state of a host of which things were taken out on purpose: what is here is the inventory."""
    if state is None:
        return None
    here = healthy_subjects(report.topology)
    rows = [row for row in build_inventory(report.topology) if row.subject in here]
    return msgspec.structs.replace(state, inventory=rows[:INVENTORY_LIMIT], last_good=time_of(report))


def _why_unusable(state: HostState | None, report: Report) -> str | None:
    """Why nothing can be compared with this state; None where it is this host's, and older than the report."""
    if state is None or not state.runs:
        return FIRST_RUN
    if _is_other_host(state, report):
        return f"the state is of another host with the same machine id ({state.hostname})"
    if report.source.kind in LIVE_SOURCES:
        return None
    up, last = report.node.uptime_seconds, state.samples[-1].uptime_seconds if state.samples else None
    if _is_same_boot(state, report):
        return OLDER_EVIDENCE if up is not None and last is not None and up <= last else None
    return OLDER_EVIDENCE if (report.observed_at or "9999") < (state.last_run or "") else None


def _is_other_host(state: HostState, report: Report) -> bool:
    """Clones of one image have one machine id: reported by serial, else by a name and devices that are all others."""
    node = report.node
    if node.serial and state.serial:
        return node.serial != state.serial
    if not node.hostname or not state.hostname or node.hostname == state.hostname:
        return False
    match = match_devices(state.inventory, build_inventory(report.topology))
    here = set(identities(report.topology).values())
    lasting = {item.identity for item in state.inventory if item.identity}
    return bool(lasting and match.replaced and not lasting & here)


def _is_same_boot(state: HostState, report: Report) -> bool:
    return state.boot_id is not None and state.boot_id == report.node.boot_id


def _window_of(state: HostState, report: Report) -> CountersWindow:
    if report.node.boot_id is None or state.boot_id is None:
        return CountersWindow(reset_reason="the source does not name the boot that its counters are of")
    if not _is_same_boot(state, report):
        return CountersWindow(reset_reason="the host was restarted since the last run")
    up = report.node.uptime_seconds
    if up is not None and state.samples and up < state.samples[-1].uptime_seconds:
        return CountersWindow(reset_reason="the clock since boot went back: not the same system as in the last run")
    return make_window(state.samples, report)


def _link_down_events(state: HostState, report: Report) -> dict[str, list[LinkDownEvent]]:
    """Times at which links of this boot were seen to have gone down, those of this run too."""
    up = report.node.uptime_seconds
    if up is None or not _is_same_boot(state, report):
        return {}
    earlier = Earlier(state.identity, {*state.links_up, *state.downs}, report.topology)
    last = state.samples[-1] if state.samples else None
    times: dict[str, int] = {}
    if last and SETTLE_SECONDS <= last.uptime_seconds < up:  # while a host starts, links go up and down
        times = count_link_downs(state.links_up, last, report, earlier)
    events: dict[str, list[LinkDownEvent]] = {}
    subjects = [f"port:{nic.id}/{port.port}" for nic in report.topology.nics for port in nic.ports]
    for subject in [*subjects, *(f"netdev:{netdev.id}" for netdev in report.topology.netdevs)]:
        before = [
            down
            for down in state.downs.get(earlier.subject(subject) or "", ())
            if 0 <= up - down.uptime_seconds <= LINK_DOWN_SECONDS
        ]
        now = [LinkDownEvent(uptime_seconds=up, at=time_of(report))] * min(times.get(subject, 0), LINK_DOWN_LIMIT)
        if before or now:
            events[subject] = [*before, *now][-LINK_DOWN_LIMIT:]
    return events


def _changed_settings(state: HostState, report: Report) -> Settings:
    """What settings were in the last run, where they are others now."""
    earlier = Earlier(state.identity, state.settings, report.topology)
    changes: Settings = {}
    for subject, now in collect_settings(report).items():
        was = state.settings.get(earlier.subject(subject) or "", {})
        changed = {name: was[name] for name, value in now.items() if name in was and was[name] != value}
        if changed:
            changes[subject] = changed
    return changes
