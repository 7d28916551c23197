"""What becomes of RDMA packets of one DSCP at one end of a hop."""

from __future__ import annotations

from typing import NamedTuple

from agent.fleet.lossless.hop import LOSSY_BY_DESIGN, CableEnd, HostPort
from probes.switches.facts import PortFacts, SwitchFacts

LEAST_BYTES = 10**9  # between two collections: with less, counters are no evidence
_SAVE_NEIGHBORS = {"sonic": "show lldp table", "cumulus": "nv show interface lldp -o json"}
_SAVE = {  # what to save on a switch where its configuration is missing, by its system
    "sonic": "/etc/sonic/config_db.json",
    "cumulus": "nv config show -o json",
}


class TrafficClass(NamedTuple):
    """`priority`: the PFC priority of the packets; `pfc`: priorities with PFC. None: unknown, and `reason` states why.

    `settle`: the one command that would decide it.
    """

    priority: int | None = None
    pfc: frozenset[int] | None = None
    queue: int | None = None
    trusts_dscp: bool | None = None
    reason: str = ""
    settle: str = ""
    by_design: str = ""  # lossy | trimmed: the switch is set up without PFC

    @property
    def protected(self) -> frozenset[int]:
        """Priorities that are known to have PFC."""
        return self.pfc or frozenset()

    @property
    def lossless(self) -> bool | None:
        """Whether the packets are in a class with PFC; None: unknown."""
        if self.pfc is not None and not self.pfc:
            return False
        if self.priority is None or self.pfc is None:
            return None
        if self.priority not in self.pfc:
            return False
        return None if self.reason else True


def classify(end: CableEnd, dscp: int, tagged: bool | None) -> TrafficClass:
    """The traffic class of a DSCP at an end. `tagged`: whether RDMA packets of the hop carry a VLAN tag."""
    if end.facts is not None and end.switch is not None:
        return _classify_port(end.switch, end.facts, dscp, tagged)
    if end.host is not None:
        return _classify_host(end.host, dscp)
    if end.switch is not None:
        return TrafficClass(reason=f"which port of {end.node} it is", settle=settle_neighbors(end.switch))
    if not end.node:
        return TrafficClass(reason="what is at the far end", settle="")
    name = f"{end.node} {end.port}".rstrip()
    return TrafficClass(reason=f"{name}: no report and no output", settle=f"{end.node}: its report, or its outputs")


def settle_neighbors(switch: SwitchFacts) -> str:
    """What to save for a switch's neighbors."""
    return f"{switch.name}: {_SAVE_NEIGHBORS.get(switch.nos or '', 'its LLDP neighbors')}"


def _classify_port(switch: SwitchFacts, port: PortFacts, dscp: int, tagged: bool | None) -> TrafficClass:
    design = ""
    if switch.trimming:
        design = "trimmed"
    elif switch.roce_mode in LOSSY_BY_DESIGN:
        design = "lossy"
    trusts = None if port.trust is None else port.trust in ("dscp", "both")
    settle = f"{switch.name}: {_SAVE.get(switch.nos or '', 'its configuration')}"
    priority = reason = None
    if trusts is None:
        reason = "its trust mode and DSCP map"
    elif not trusts:
        # A port that trusts nothing has one priority for all; one that trusts tags, for packets without a tag
        priority = 0 if port.trust == "none" or tagged is False else None
        reason = None if priority is not None else "it trusts VLAN tags, and whether packets carry one"
    elif port.dscp_prio is None:
        reason = f"the map of DSCP to priority{f' ({port.dscp_map})' if port.dscp_map else ''}"
        if switch.configuration and switch.nos in _SAVE:  # read already: saving it again settles nothing
            reason, settle = f"{reason}, a part of which its configuration does not have", ""
    else:
        priority = port.dscp_prio.get(dscp)
        reason = f"the priority of DSCP {dscp}" if priority is None else None
    if port.pfc is None:
        reason = reason or "which priorities have PFC"
    queue = (port.dscp_queue or {}).get(dscp) if trusts else None
    if reason is None and priority is not None and queue is not None and _pauses_another_queue(port, priority, queue):
        reason = f"whether a pause of priority {priority} stops queue {queue}, in which DSCP {dscp} is"
    text = f"{switch.name} {port.name}: {reason}" if reason else ""
    return TrafficClass(priority, port.pfc, queue, trusts, text, settle if reason else "", design)


def _pauses_another_queue(port: PortFacts, priority: int, queue: int) -> bool:
    return port.pfc_queue is not None and port.pfc_queue.get(priority, queue) != queue


def _classify_host(host: HostPort, dscp: int) -> TrafficClass:
    trusts = None if host.trust is None else host.trust == "dscp"
    priority = reason = None
    if trusts is None:
        reason = "its trust mode"
    elif not trusts:
        priority = 0 if host.tagged is False else None
        reason = None if priority is not None else "it trusts VLAN tags, and whether packets carry one"
    elif host.dscp_prio is None:
        reason = "its map of DSCP to priority"
    else:
        priority = host.dscp_prio.get(dscp, 0)  # a DSCP without an entry lands in priority 0
    if host.pfc is None:
        reason = reason or "which priorities have PFC"
    text = f"{host.host} {host.name}: {reason}" if reason else ""
    return TrafficClass(
        priority, host.pfc, None, trusts, text, f"{host.host}: fabricscope scan as root" if reason else ""
    )


def describe_priorities(priorities: frozenset[int]) -> str:
    """ "priority 3", "priorities 3 and 4", "no priority".

    >>> [describe_priorities(frozenset(numbers)) for numbers in ((), (3,), (4, 3), (1, 2, 3))]
    ['no priority', 'priority 3', 'priorities 3 and 4', 'priorities 1, 2 and 3']
    """
    if not priorities:
        return "no priority"
    words = [str(number) for number in sorted(priorities)]
    if len(words) == 1:
        return f"priority {words[0]}"
    return f"priorities {', '.join(words[:-1])} and {words[-1]}"
