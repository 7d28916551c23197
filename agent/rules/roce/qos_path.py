"""The QoS settings that RoCE packets of a port meet: marking, trust, priority, PFC."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.counters import netdev_counters, port_counters
from agent.model.nic import Gid, Netdev, Qos
from agent.model.node import NcclLibrary
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.nccl.settings import (
    EffectiveSetting,
    effective_settings,
    parse_number,
    why_files_unread,
    why_jobs_unread,
)
from agent.rules.roce.plain_ethernet import is_plain_ethernet
from agent.rules.roce.ports import ELSEWHERE, NOT_SHOWN, RocePort, roce_ports
from agent.rules.rule import NamedSubject, Result, Subject
from agent.rules.wording import format_ranges, join_labels

VARIABLE = "NCCL_IB_TC"
# Drivers that give packets of traffic class 0 a class of their own settings (bnxt_re: DSCP 26, priority 3 by default)
_NAMED = 4  # ports of a reason; more are counted
_MARKS_BY_ITSELF = ("bnxt_", "ionic", "irdma", "ice", "i40e")
_CLASS_BY_PROGRAM = (2, 26)  # of NCCL: from here a program can set the class of a communicator itself


_NO_REASON = Reason("undecided", detail="")
_DECLARED_LOSSY = Reason("declared", detail="declared lossy: facts.roce_mode of the configuration")


class Marking(msgspec.Struct, frozen=True):
    """One traffic class that packets of a port may carry."""

    traffic_class: int  # 0 to 255
    text: str  # as it is written where it is set: "106", "0x6a"
    source: str
    kind: str  # forced | job | declared | file | default
    wrong: str | None = None  # what is wrong with the text itself
    doubt: Reason | None = None  # why packets may carry another all the same

    @property
    def dscp(self) -> int:
        """The upper six bits."""
        return self.traffic_class >> 2


def markings(context: RuleContext, roce_port: RocePort) -> Sequence[Marking]:
    """Traffic classes of a port, those that are in force for it only; empty where `unknown_marking_reason` states why.

    A class that the driver forces is that of all queue pairs; else running jobs show it, else the operator, else files,
    else it is NCCL's default, 0.
    """
    forced = roce_port.port.traffic_class
    if forced is not None:
        return (Marking(forced & 0xFF, str(forced), _forced_file(roce_port), "forced"),)
    settings = effective_settings(context, VARIABLE)
    jobs = [one for one in settings if one.scope == "job"]
    declared = context.settings.facts.get("roce_traffic_class")
    if jobs:
        return [_marking_from(one) for one in jobs]
    if isinstance(declared, int):
        return (Marking(declared & 0xFF, str(declared), "configuration: facts.roce_traffic_class", "declared"),)
    if settings:
        return [_marking_from(one) for one in settings if one.scope == settings[0].scope]
    if why_marking_unknown(context):
        return ()
    return (Marking(0, "not set", _searched_sources(context), "default", doubt=_why_doubtful(context)),)


def why_marking_unknown(context: RuleContext) -> Reason | None:
    """Why it is not known what marks packets, where nothing does; None where NCCL's files were read."""
    return why_files_unread(context)


def _marking_from(setting: EffectiveSetting) -> Marking:
    value = parse_number(setting.value)
    wrong = None
    if not setting.value.strip()[:1].isdigit():
        wrong = "is not a number from 0 to 255: NCCL uses 0"
    elif value is None or value > 255:
        wrong = "is above 255: it does not fit into the byte"
    marked = max(value or 0, 0) & 0xFF
    return Marking(marked, setting.value, setting.source, "job" if setting.scope == "job" else "file", wrong)


def _why_doubtful(context: RuleContext) -> Reason | None:
    """Why a class may be set although nothing that was read sets one."""
    unread = why_jobs_unread(context)
    if unread:
        return unread
    plugins = context.software.nccl.plugins
    if plugins:
        return Reason("undecided", detail=f"a network plugin may mark by itself: {plugins[0].path}")
    chosen = next((one for key in ("NCCL_NET_PLUGIN", "NCCL_NET") for one in effective_settings(context, key)), None)
    if chosen and chosen.value.strip().lower() not in ("", "ib", "none"):
        return Reason("undecided", detail=f"a network plugin may mark by itself: {chosen.value} ({chosen.source})")
    able = next((lib for lib in context.software.nccl.libraries if lib.used_by and _sets_class_by_program(lib)), None)
    text = f"a program may set the class itself (ncclConfig_t.trafficClass, NCCL {able.version})" if able else None
    return Reason("undecided", detail=text) if text else None


def _sets_class_by_program(library: NcclLibrary) -> bool:
    numbers = [int(part) for part in (library.version or "").split(".")[:2] if part.isdecimal() and len(part) < 6]
    return tuple(numbers) >= _CLASS_BY_PROGRAM


def _searched_sources(context: RuleContext) -> str:
    return ", ".join(context.software.nccl.searched[:4])


def _forced_file(roce_port: RocePort) -> str:
    return f"/sys/class/infiniband/{roce_port.nic.label}/tc/{roce_port.port.port}/traffic_class"


_V2, _LINK_LOCAL = "RoCE v2", "fe80:"


class Tags(msgspec.Struct, frozen=True):
    """Priorities that packets may carry in their tags; an untagged packet has priority 0."""

    priorities: tuple[int, ...] = ()  # empty: not known
    how: str = ""
    vlan: Netdev | None = None  # a VLAN that is in use, where every address in use is on one
    reason: Reason = _NO_REASON  # why not known


def address_tags(context: RuleContext, roce_port: RocePort) -> Tags:
    """What the addresses in use state: VLANs have a tag, the port's own interface has none."""
    used = _used_addresses(context, roce_port)
    if not roce_port.port.gids_known or not used:
        return Tags(reason=Reason("not-read", fact="which addresses RoCE uses"))
    if any(gid.netdev not in context.netdevs for gid in used):
        return Tags(reason=Reason("not-read", fact="whether its addresses are on a VLAN"))
    on = {gid.netdev: context.netdevs[gid.netdev] for gid in used if gid.netdev}
    vlans = [on[name] for name in sorted(on) if on[name].vlan]
    if not vlans:
        return Tags((0,), "no VLAN tag")
    tags = tuple(_priority(context, roce_port, vlan) for vlan in vlans)
    known = tuple(priority for priority in tags if priority is not None)
    if len(known) < len(tags):
        return Tags(reason=Reason("not-read", fact=f"the egress map of {vlans[0].label}"))
    if len(vlans) < len(on):
        return Tags((0, *known), "no VLAN tag, and VLAN tags")
    return Tags(known, f"VLAN tag of {vlans[0].label}", vlans[0])


def service_level(context: RuleContext) -> int:
    """The priority that NCCL asks for: it becomes the PCP of a tagged packet."""
    return next(
        (value & 7 for one in effective_settings(context, "NCCL_IB_SL") if (value := parse_number(one.value) or 0) > 0),
        0,
    )


def egress_map(vlan: Netdev) -> tuple[int, ...] | None:
    """Priorities that a VLAN writes into its tags ("0:3,4:3"); None: not read."""
    text = (vlan.vlan or {}).get("egress_map")
    if text is None:
        return None
    ends = [pair.partition(":")[2] for pair in str(text).replace(" ", ",").split(",")]
    return tuple(int(end) & 7 for end in ends if end.isdecimal() and len(end) < 4)


def _priority(context: RuleContext, roce_port: RocePort, vlan: Netdev) -> int | None:
    """The lossless one where the service level or the map of the VLAN leads to one; else what NCCL asks for."""
    qos = roce_port.netdev.qos if roce_port.netdev else None
    mapped, level = egress_map(vlan), service_level(context)
    lossless = [n for n in (level, *(mapped or ())) if qos and n < len(qos.pfc) and qos.pfc[n]]
    if lossless:
        return lossless[0]
    return None if mapped is None else level


def _used_addresses(context: RuleContext, roce_port: RocePort) -> list[Gid]:
    """RoCE v2 addresses: the one that NCCL is set to take, else those that can be routed, else all."""
    version_2 = [gid for gid in roce_port.port.gids if gid.type == _V2]
    index = next((parse_number(one.value) for one in effective_settings(context, "NCCL_IB_GID_INDEX")), None)
    gids = [gid for gid in version_2 if gid.index == index]
    return gids or [gid for gid in version_2 if not gid.gid.lower().startswith(_LINK_LOCAL)] or version_2


EMPIRICAL_BYTES = 10_000_000_000  # of RDMA in the window: what proves which class is in use
_RDMA_SHARE = 0.8  # of the port's bytes: below it they are not known to be RDMA
_ORDER = ("lossy", "unknown", "pause", "by_design", "lossless")
_LOSSES = (
    "packet_seq_err",
    "local_ack_timeout_err",
    "out_of_sequence",
    "seq_err_naks_rcvd",  # bnxt
    "to_retransmits",
    "oos_drop_count",
)
_DROPPED = ("rx_discards_phy", *(f"rx_prio{n}_discards" for n in range(8)))
_MANY = 100  # dropped packets that are worth a word without a date


class QosPath(Subject, frozen=True):
    """What becomes of RDMA packets on one interface of a port."""

    each: RocePort
    verdict: str  # lossless | pause (802.3x) | lossy | by_design | unknown
    reason: Reason = _NO_REASON  # of unknown and by_design
    cause: str = ""  # the rule that shows a lossy port's cause
    qos: Qos = Qos()
    marking: Marking | None = None
    priority: int | None = None
    how: str = ""  # how the priority is known: "DSCP 26", "no VLAN tag", "bytes of the window"
    meant: str = ""  # why PFC is meant to be on; "" where nothing states it
    losses: tuple[tuple[str, int], ...] = ()  # counters of lost packets that moved
    undated: tuple[tuple[str, int], ...] = ()  # what they have counted since boot or load, where there is no window
    is_plain: bool = False  # nothing on the node states that its Ethernet NICs are meant for RDMA

    @property
    def about(self) -> Subject:
        """The port and its interface."""
        port = self.each
        return NamedSubject(port.subject, port.label, port.ids | ({port.netdev.id} if port.netdev else set()))

    @property
    def netdev(self) -> Netdev:
        """The interface, of a path whose settings could be read."""
        assert self.each.netdev is not None
        return self.each.netdev

    @property
    def protected(self) -> tuple[int, ...]:
        """Priorities with PFC."""
        return lossless_priorities(self.qos)

    @property
    def severity(self) -> str:
        """An error where PFC is configured or meant, or packets were lost; else a warning. Less on storage.

        Info where RDMA may not be meant at all.
        """
        if self.is_plain and not self.losses and not self.meant:
            return "info"
        return self.each.severity("error" if self.losses or self.meant or self.protected else "warning")


def lossless_priorities(qos: Qos) -> tuple[int, ...]:
    """Priorities with PFC."""
    return tuple(n for n, on in enumerate(qos.pfc[:8]) if on)


def qos_paths(context: RuleContext) -> tuple[QosPath | Result, ...]:
    """The chain of every RoCE port that is judged; an answer for every other. Worked out once for all rules."""
    return context.once(_build_paths)


def _build_paths(context: RuleContext) -> Iterator[QosPath | Result]:
    for port in roce_ports(context):
        yield build_path(context, port) if isinstance(port, RocePort) else port


def build_path(context: RuleContext, roce_port: RocePort) -> QosPath:
    """The chain of one port; of several interfaces below a bond the worst."""
    ways = [
        _build_interface_path(context, replace(roce_port, netdev=netdev))
        for netdev in dcb_interfaces(context, roce_port)
    ]
    worst = min(ways, key=lambda one: _ORDER.index(one.verdict))
    if context.settings.facts.get("roce_mode") != "lossy":
        return worst
    return replace(worst, verdict="by_design", cause="", reason=_DECLARED_LOSSY)


def dcb_interfaces(context: RuleContext, roce_port: RocePort) -> Sequence[Netdev | None]:
    """The interfaces that hold a port's DCB: below a bond its members, below a VLAN its parent."""
    netdev = roce_port.netdev
    if netdev and netdev.vlan:
        netdev = context.netdevs.get(str(netdev.vlan.get("parent"))) or netdev
    if netdev is None or not netdev.bond:
        return (netdev,)
    return [one for one in context.topology.netdevs if one.master == netdev.label] or (netdev,)


def why_unreadable(roce_port: RocePort) -> Reason | None:
    """Why DCB of a port's interface is not known; None where its PFC state is."""
    if roce_port.nic.virtual_function:
        return Reason(
            "guest-hides",
            detail="a virtual function: classes are set on its physical function, which another system holds",
        )
    if roce_port.nic.state == "other_namespace":
        return ELSEWHERE
    if roce_port.netdev is None:
        return NOT_SHOWN
    if roce_port.netdev.qos is None:
        return quote_source(roce_port.netdev.qos_reason) or Reason("not-shown", detail="DCB was not read")
    if not roce_port.netdev.qos.pfc:
        return quote_source(roce_port.netdev.qos_reason) or Reason("not-read", fact="its PFC state")
    return None


def loss_deltas(context: RuleContext, roce_port: RocePort, netdev: Netdev) -> tuple[tuple[str, int], ...]:
    """Counters of lost and repeated packets that moved in the window, of a port and of its interface."""
    now = port_counters(roce_port.port)
    moved = [(name, context.counter_delta(roce_port.subject, name, now)) for name in _LOSSES]
    subject, now = f"netdev:{netdev.id}", netdev_counters(netdev)
    moved += [(name, context.counter_delta(subject, name, now)) for name in _DROPPED]
    return tuple((name, by) for name, by in moved if by)


def list_undated_drops(context: RuleContext, netdev: Netdev) -> tuple[tuple[str, int], ...]:
    """Counters of packets that an interface dropped since boot or load, where none of them has a window."""
    subject, now = f"netdev:{netdev.id}", netdev_counters(netdev)
    counts = [(name, now[name]) for name in _DROPPED if now.get(name, 0) >= _MANY]
    return () if any(context.counter_delta(subject, name, now) is not None for name in _DROPPED) else tuple(counts)


def measured_priority(context: RuleContext, netdev: Netdev) -> int | None:
    """The priority that most bytes of the window left with, where they are known to be RDMA; else None."""
    subject, now = f"netdev:{netdev.id}", netdev_counters(netdev)
    sent = [context.counter_delta(subject, f"tx_prio{n}_bytes", now) or 0 for n in range(8)]
    rdma = context.counter_delta(subject, "tx_vport_rdma_unicast_bytes", now) or 0
    if rdma < EMPIRICAL_BYTES or rdma < _RDMA_SHARE * sum(sent):
        return None
    return sent.index(max(sent)) if 2 * max(sent) > sum(sent) else None


def _build_interface_path(context: RuleContext, roce_port: RocePort) -> QosPath:
    netdev, why = roce_port.netdev, why_unreadable(roce_port)
    if why or netdev is None or netdev.qos is None:
        return QosPath(roce_port, "unknown", why or NOT_SHOWN)
    losses, undated = loss_deltas(context, roce_port, netdev), list_undated_drops(context, netdev)
    known = _worst_class(context, QosPath(roce_port, "unknown", qos=netdev.qos, losses=losses, undated=undated), netdev)
    if known.protected:
        return known
    return _path_without_pfc(context, replace(known, verdict="unknown", reason=_NO_REASON, cause=""), netdev)


def _path_without_pfc(context: RuleContext, known: QosPath, netdev: Netdev) -> QosPath:
    pause = netdev.pause
    receives, sends = (pause.rx, pause.tx) if pause else (None, None)
    known = replace(known, meant=_pfc_expected_reason(context, known.each, netdev), is_plain=is_plain_ethernet(context))
    if receives and sends:
        return replace(known, verdict="pause")
    if not known.meant and netdev.neighbor and "udp:4791" in netdev.neighbor.applications:
        reason = Reason("by-design", detail="lossy by design: the switch announces a class for RoCE, and no PFC")
        return replace(known, verdict="by_design", reason=reason)
    if (receives is None and sends is not False) or (sends is None and receives is not False):
        fact = f"PFC is off, and whether global pause of {netdev.label} is on"
        return replace(known, reason=Reason("not-read", fact=fact))
    return replace(known, verdict="lossy", cause="roce-pfc-off")


def _pfc_expected_reason(context: RuleContext, roce_port: RocePort, netdev: Netdev) -> str:
    """Why PFC should be on here, where it is off."""
    if context.settings.facts.get("roce_mode") == "lossless":
        return "declared lossless: facts.roce_mode of the configuration"
    neighbor = netdev.neighbor
    if neighbor and any(neighbor.pfc):
        on = format_ranges(n for n, is_on in enumerate(neighbor.pfc) if is_on)
        return f"the switch announces PFC on priority {on}"
    like = [
        other for other in roce_ports(context) if isinstance(other, RocePort) and other.nic.role == roce_port.nic.role
    ]
    on_at = [one for other in like for one in dcb_interfaces(context, other) if one and one.qos and any(one.qos.pfc)]
    at = join_labels([one.label for one in on_at]) if len(on_at) <= _NAMED else f"{len(on_at)} other ports"
    return f"it is on at {at}" if on_at else ""


def _worst_class(context: RuleContext, known: QosPath, netdev: Netdev) -> QosPath:
    """The class that packets get, of several markings the worst, and whether it is lossless."""
    marked = markings(context, known.each)
    ways = [_class_of_marking(context, known, marking) for marking in marked] or [
        _class_of_marking(context, known, None)
    ]
    worst = min(ways, key=lambda one: _ORDER.index(one.verdict))
    seen = measured_priority(context, netdev)
    if seen is None or (seen == worst.priority and worst.verdict in ("lossy", "lossless")):
        return worst
    by_bytes = replace(worst, priority=seen, how="most bytes of the window", reason=_NO_REASON, marking=worst.marking)
    if seen in known.protected:
        return replace(by_bytes, verdict="lossless", cause="")
    return replace(by_bytes, verdict="lossy", cause="roce-class-mismatch")


def _class_of_marking(context: RuleContext, known: QosPath, marking: Marking | None) -> QosPath:
    """What becomes of packets with this marking; None: it is not known how they are marked."""
    qos, on = known.qos, known.protected
    known = replace(known, marking=marking)
    if len(on) == 8:
        return replace(known, verdict="lossless")
    if qos.trust == "pcp":
        return _class_of_tag(known, address_tags(context, known.each))
    if qos.trust != "dscp":
        return replace(known, reason=Reason("not-read", fact="whether the port trusts DSCP or PCP"))
    if not qos.dscp_prio:
        return replace(known, reason=Reason("not-read", fact="to which priority a DSCP goes"))
    if marking is None:
        why = why_marking_unknown(context) or _NO_REASON
        return replace(known, reason=why.prefixed("how RDMA packets are marked is not known: "))
    if marking.dscp == 0 and marking.kind != "forced" and (known.each.nic.driver or "").startswith(_MARKS_BY_ITSELF):
        text = f"{known.each.nic.driver} marks packets of traffic class 0 itself, and its setting is not read"
        return replace(known, reason=Reason("not-shown", detail=text))
    priority = qos.dscp_prio.get(str(marking.dscp), 0) & 7
    known = replace(known, priority=priority, how=f"DSCP {marking.dscp}")
    if priority in on:
        return replace(known, verdict="lossless")
    if marking.doubt:
        doubt = marking.doubt.prefixed("nothing marks RDMA packets, but ")
        return replace(known, reason=doubt, cause="roce-marking-unset")
    return replace(known, verdict="lossy", cause=_cause(marking, known))


def _cause(marking: Marking, known: QosPath) -> str:
    as_dscp = known.qos.dscp_prio.get(str(marking.traffic_class), 0)
    if marking.kind == "default":
        return "roce-marking-unset"
    if marking.wrong or (marking.traffic_class < 64 and as_dscp in known.protected):
        return "roce-nccl-tc-suspect"
    return "roce-class-mismatch"


def _class_of_tag(known: QosPath, tagged: Tags) -> QosPath:
    """With trust in PCP the VLAN tag decides; without one it is priority 0."""
    if not tagged.priorities:
        return replace(known, reason=tagged.reason.prefixed("the port trusts PCP, and "))
    good = [priority in known.protected for priority in tagged.priorities]
    known = replace(known, priority=tagged.priorities[0], how=tagged.how)
    if all(good):
        return replace(known, verdict="lossless")
    if any(good):
        text = "the port trusts PCP, and some of its addresses have a VLAN tag, others none"
        return replace(known, reason=Reason("undecided", detail=text))
    return replace(
        known, verdict="lossy", cause="roce-vlan-no-egress-map" if tagged.vlan else "roce-trust-pcp-untagged"
    )
