"""Whether packets of a RoCE port have a VLAN tag, and which priority stands in it (PCP)."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.nic import Gid, Netdev
from agent.rules.case import Case
from agent.rules.nccl.settings import effective, number
from agent.rules.roce.ports import RocePort

_V2, _LINK_LOCAL = "RoCE v2", "fe80:"


class Tags(NamedTuple):
    """Priorities that packets may carry in their tags; an untagged packet has priority 0."""

    priorities: tuple[int, ...] = ()  # empty: not known
    how: str = ""
    vlan: Netdev | None = None  # a VLAN that is in use, where every address in use is on one
    reason: str = ""  # why not known


def tags(case: Case, each: RocePort) -> Tags:
    """What the addresses in use say: VLANs have a tag, the port's own interface has none."""
    used = _used(case, each)
    if not each.port.gids_known or not used:
        return Tags(reason="which addresses RoCE uses could not be read")
    if any(gid.netdev not in case.netdevs for gid in used):
        return Tags(reason="whether its addresses are on a VLAN could not be read")
    on = {gid.netdev: case.netdevs[gid.netdev] for gid in used if gid.netdev}
    vlans = [on[name] for name in sorted(on) if on[name].vlan]
    if not vlans:
        return Tags((0,), "no VLAN tag")
    found = tuple(_priority(case, each, vlan) for vlan in vlans)
    known = tuple(priority for priority in found if priority is not None)
    if len(known) < len(found):
        return Tags(reason=f"the egress map of {vlans[0].label} could not be read")
    if len(vlans) < len(on):
        return Tags((0, *known), "no VLAN tag, and VLAN tags")
    return Tags(known, f"VLAN tag of {vlans[0].label}", vlans[0])


def service_level(case: Case) -> int:
    """The priority that NCCL asks for: it becomes the PCP of a tagged packet."""
    return next((value & 7 for one in effective(case, "NCCL_IB_SL") if (value := number(one.value) or 0) > 0), 0)


def egress_map(vlan: Netdev) -> tuple[int, ...] | None:
    """Priorities that a VLAN writes into its tags ("0:3,4:3"); None: not read."""
    text = (vlan.vlan or {}).get("egress_map")
    if text is None:
        return None
    ends = [pair.partition(":")[2] for pair in str(text).replace(" ", ",").split(",")]
    return tuple(int(end) & 7 for end in ends if end.isdecimal() and len(end) < 4)


def _priority(case: Case, each: RocePort, vlan: Netdev) -> int | None:
    """The lossless one where the service level or the map of the VLAN leads to one; else what NCCL asks for."""
    qos = each.netdev.qos if each.netdev else None
    mapped, asked = egress_map(vlan), service_level(case)
    lossless = [n for n in (asked, *(mapped or ())) if qos and n < len(qos.pfc) and qos.pfc[n]]
    if lossless:
        return lossless[0]
    return None if mapped is None else asked


def _used(case: Case, each: RocePort) -> list[Gid]:
    """RoCE v2 addresses: the one that NCCL is told to take, else those that can be routed, else all."""
    version_2 = [gid for gid in each.port.gids if gid.type == _V2]
    index = next((number(one.value) for one in effective(case, "NCCL_IB_GID_INDEX")), None)
    told = [gid for gid in version_2 if gid.index == index]
    return told or [gid for gid in version_2 if not gid.gid.lower().startswith(_LINK_LOCAL)] or version_2
