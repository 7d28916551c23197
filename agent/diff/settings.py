"""Differences of two rows of one device: links, firmware, drivers, settings; how pairs of devices reach each other, and
whether GPUDirect works between them. Load and warmth are no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agent.diff.ledger import ChangedThing, Ledger, Value, plain
from agent.diff.pairing import Pairing
from agent.model.gpu import Gpu, GpuLink, link_name
from agent.model.nic import Netdev, Port
from agent.model.pci import Link
from agent.model.report import Report
from agent.model.topology import Path

PCI_FIELDS = {
    "state": "devices", "revision": "devices", "driver": "software", "numa_node": "settings",
    "iommu_type": "settings", "ats": "settings", "max_payload_bytes": "settings",
    "max_read_request_bytes": "settings", "relaxed_ordering": "settings", "extended_tags": "settings",
    "aspm": "settings", "bars_bytes": "settings", "virtual_functions": "settings",
}  # fmt: skip
LINK_FIELDS = {"max_speed_gt_s": "links", "max_width": "links"}
GPU_FIELDS = {
    "vbios": "software",
    "memory_mib": "devices", "bar1_mib": "settings", "memory_numa_node": "settings", "virtualization": "settings",
    "addressing_mode": "settings", "recovery_action": "devices",
}  # fmt: skip
FABRIC_FIELDS = {"state": "links", "status": "links", "clique": "links", "cluster_uuid": "links", "health": "links"}
NVLINK_FIELDS = {"version": "links", "signal_gbyte_s": "links"}
NIC_FIELDS = {
    "state": "devices", "model": "devices", "board_id": "devices", "firmware": "software", "role": "settings",
    "node_type": "settings", "limited": "settings", "bond": "settings",
}  # fmt: skip
PORT_FIELDS = {
    "link_layer": "links", "state": "links", "phys_state": "links", "sm_lid": "links", "active_mtu": "settings",
}  # fmt: skip
RATE_FIELDS = {"rate_gbit_s": "links", "width": "links", "speed": "links"}  # of active ports only
NETDEV_FIELDS = {
    "operstate": "links", "max_speed_gbit_s": "links", "neighbor": "links",
    "admin_up": "settings", "autoneg": "settings", "mtu": "settings", "master": "settings", "bond": "settings",
    "vlan": "settings",
}  # fmt: skip
QOS_FIELDS = ("trust", "pfc", "prio_tc", "dscp_prio", "tc_bandwidth", "tc_tsa", "buffers", "dcbx", "ecn")
SURE, TREE = "conclusive", "pci-tree"
READABLE = (SURE, "idle", "untrusted")
BETWEEN = " - "  # of the labels of a pair


def pci(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Functions and their links. A link is shown at its lower end; a function that is asleep or gone has none."""
    called = {
        row.pci: pairs.place(kind, one, row)
        for kind, table in (("nic", pairs.nics), ("gpu", pairs.gpus))
        for one, row in table.pairs
        if row.pci and pairs.ids.get(one.pci or "") == row.pci
    }
    upper_old, upper_new = _upper_ends(old), _upper_ends(new)
    for a, b in pairs.pci.pairs:
        place = called.get(b.id) or pairs.place("pci", a, b)
        if a.state != b.state:
            ledger.compare("devices", "state", place, a.state, b.state)
            continue
        ledger.fields(place, a, b, PCI_FIELDS)
        if a.acs and b.acs:
            ledger.compare("settings", "acs", place, sorted(a.acs.control), sorted(b.acs.control))
        elif (a.acs or b.acs) and (a.config_bytes or 0) != (b.config_bytes or 0):
            ledger.unknown("lost" if a.acs else "gained", "acs", place)
        _link(ledger, place, a.link, b.link, upper=a.id in upper_old or b.id in upper_new)


def gpus(ledger: Ledger, pairs: Pairing) -> None:
    """GPUs, their NVLinks and their fabric."""
    for a, b in pairs.gpus.pairs:
        place = pairs.place("gpu", a, b)
        before, after = (None if gpu.driver_state == "unknown" else gpu.driver_state for gpu in (a, b))
        ledger.compare("software", "driver_state", place, before, after, note=b.driver_error or a.driver_error)
        if before == after == "open":
            ledger.compare("devices", "name", place, a.name, b.name)
        ledger.fields(place, a, b, GPU_FIELDS)
        if not (a.pci in pairs.ids and b.pci):
            ledger.compare("settings", "numa_node", place, a.numa_node, b.numa_node)
            if a.pcie and b.pcie:  # the driver's view, where there is no other
                fields = {"width": "links", "max_width": "links", "max_generation": "links"}
                if a.pstate == b.pstate == "P0":
                    fields["generation"] = "links"
                ledger.fields(place, a.pcie, b.pcie, fields, "pcie ")
        if a.mig and b.mig:
            ledger.fields(place, a.mig, b.mig, dict.fromkeys(("current", "pending", "instances"), "settings"), "mig ")
        if ledger.have_both("fabric", place, a.fabric, b.fabric):
            ledger.fields(place, a.fabric, b.fabric, FABRIC_FIELDS, "fabric ")
        if a.c2c and b.c2c:
            ledger.fields(place, a.c2c, b.c2c, {"enabled": "links", "links": "links"}, "c2c ")
        _nvlinks(ledger, pairs, a, b)


def nics(ledger: Ledger, pairs: Pairing) -> None:
    """NICs and their ports."""
    for a, b in pairs.nics.pairs:
        place = pairs.place("nic", a, b)
        if a.state != b.state:
            ledger.fields(place, a, b, {"state": "devices", "role": "settings"})
            continue
        ledger.fields(place, a, b, NIC_FIELDS)
        if not (a.pci in pairs.ids and b.pci):
            ledger.fields(place, a, b, {"numa_node": "settings", "driver": "software"})
        ports_old, ports_new = {port.port: port for port in a.ports}, {port.port: port for port in b.ports}
        for number in sorted(ports_old.keys() | ports_new.keys()):
            one, other = ports_old.get(number), ports_new.get(number)
            where = pairs.place("nic", a, b, f"/{number}")
            if one and other:
                _port(ledger, pairs, where, one, other)
            else:
                ledger.add("devices", "gone" if one else "new", "port", where)


def netdevs(ledger: Ledger, pairs: Pairing) -> None:
    """Interfaces."""
    for a, b in pairs.netdevs.pairs:
        place = pairs.place("netdev", a, b)
        ledger.fields(place, a, b, NETDEV_FIELDS)
        if a.operstate == b.operstate:  # without a signal there is no speed
            ledger.fields(place, a, b, {"speed_gbit_s": "links"})
            if a.fec and b.fec:
                ledger.fields(place, a.fec, b.fec, {"active": "links", "auto": "settings"}, "fec ")
        if a.module and b.module:
            ledger.compare("devices", "module", place, _module(a), _module(b))
        if a.pause and b.pause:
            ledger.fields(place, a.pause, b.pause, {"rx": "settings", "tx": "settings"}, "pause ")
        if ledger.have_both("qos", place, a.qos, b.qos):
            for name in QOS_FIELDS:
                before, after = plain(getattr(a.qos, name)), plain(getattr(b.qos, name))
                ledger.compare("settings", f"qos {name}", place, before or None, after or None)
        if pairs.same_host:
            _sets(ledger, "addresses", place, a.addresses, b.addresses)
            if not (a.mac or "").count(":") > 5:  # an IPoIB address begins with a number that is dealt out again
                ledger.compare("settings", "mac", place, a.mac, b.mac)


def _upper_ends(report: Report) -> set[str]:
    """Ports whose link is that of a function below them; a switch's own upward link is not."""
    above = {row.parent for row in report.topology.pci if row.link}
    return {row.id for row in report.topology.pci if row.id in above and row.port_type != "upstream"}


def _link(ledger: Ledger, place: ChangedThing, a: Link | None, b: Link | None, upper: bool) -> None:
    if not ledger.have_both("link", place, a, b) or a is None or b is None:
        return
    before, after = a.quality.state, b.quality.state
    unread = after if before in READABLE else before
    if not ledger.have_both(f"link ({unread})", place, before in READABLE, after in READABLE):
        return
    ledger.fields(place, a, b, LINK_FIELDS)
    if upper:
        return
    if before == after == SURE:
        ledger.fields(place, a, b, {"speed_gt_s": "links", "width": "links"})
    else:  # speed follows load; the width of an idle link is worth a word
        unsure = after if after != SURE else before
        ledger.compare("links", "width", place, a.width, b.width, note=f"the link is {unsure}")


def link_word(links: list[GpuLink]) -> str:
    """What changed, in small letters: nvlink, xgmi link."""
    name = link_name(links)
    return name.lower() if name == "NVLink" else f"{name.lower()} link"


def _nvlinks(ledger: Ledger, pairs: Pairing, a: Gpu, b: Gpu) -> None:
    what = link_word(b.links or a.links)
    if not ledger.have_both(f"{what}s", pairs.place("gpu", a, b), a.links_known, b.links_known):
        return
    before, after = {link.link: link for link in a.links}, {link.link: link for link in b.links}
    for number in sorted(before.keys() | after.keys()):
        one, other = before.get(number), after.get(number)
        place = pairs.place("gpu", a, b, f"/{number}")
        if one is None or other is None:
            ledger.add("links", "gone" if one else "new", what, place)
            continue
        ledger.compare("links", f"{what} state", place, one.state, other.state)
        if one.state == other.state:
            ledger.fields(place, one, other, NVLINK_FIELDS, f"{what} ")
            ledger.compare("links", f"{what} remote", place, _far_end(one, pairs.ids), _far_end(other, {}))


def _far_end(link: GpuLink, ids: Any) -> str | None:
    """The device at the other end, by its id in NEW; its link number is the driver's business."""
    if link.remote is None or link.remote.kind == "unknown":
        return None
    end = link.remote.id or ""
    return f"{link.remote.kind} {ids.get(end, end)}".strip()


def _port(ledger: Ledger, pairs: Pairing, place: ChangedThing, a: Port, b: Port) -> None:
    ledger.fields(place, a, b, PORT_FIELDS)
    if a.state == b.state:
        ledger.fields(place, a, b, RATE_FIELDS)
    ledger.compare("links", "neighbor", place, _neighbor(a), _neighbor(b))
    _sets(ledger, "pkeys", place, a.pkeys, b.pkeys)
    if ledger.have_both("gids", place, a.gids_known, b.gids_known):
        _sets(ledger, "gids", place, _gids(a, pairs.same_host), _gids(b, pairs.same_host))


def _neighbor(port: Port) -> str | None:
    """Where its cable leads; what runs on it is reported by the port itself."""
    far = port.neighbor
    return f"{far.name or far.node_guid} port {far.port}" if far and (far.name or far.node_guid) else None


def _gids(port: Port, addresses: bool) -> list[str]:
    return [f"{gid.index}: {gid.type or '?'}{f' {gid.gid}' if addresses else ''}" for gid in port.gids]


def _sets(ledger: Ledger, what: str, place: ChangedThing, old: list[str], new: list[str]) -> None:
    """Two lists of words: only what one of them has and the other has not."""
    before: Value = [word for word in old if word not in set(new)]
    after: Value = [word for word in new if word not in set(old)]
    if before or after:
        ledger.add("settings", "changed", what, place, before, after)


def _module(netdev: Netdev) -> Value:
    """The plugged module: what it is, not how warm it is."""
    module = netdev.module
    if module is None:
        return plain({})
    named = {"identifier": module.identifier, "vendor": module.vendor, "part": module.part, "serial": module.serial}
    return plain({key: value for key, value in named.items() if value})


class _Sides(NamedTuple):
    """What both reports call their devices, and which of their links may be trusted."""

    old: Report
    new: Report
    pairs: Pairing
    labels: Mapping[str, str]
    unsure: tuple[frozenset[str], frozenset[str]]


def paths(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Pairs whose both ends are on both sides: a pair that went with its device is no news."""
    sides = _Sides(old, new, pairs, _labels(new), (_unsure(old), _unsure(new)))
    after = {_ends(path.a, path.b): path for path in new.topology.paths}
    for path in old.topology.paths:
        ends = _map_ends(path.a, path.b, pairs)
        other = after.get(ends) if ends else None
        if ends and other:
            _path(ledger, sides, path, other)


def gpudirect(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Verdicts of pairs on both sides."""
    labels = _labels(new)
    after = {_ends(verdict.gpu, verdict.nic): verdict for verdict in new.gpudirect}
    for verdict in old.gpudirect:
        ends = _map_ends(verdict.gpu, verdict.nic, pairs)
        other = after.get(ends) if ends else None
        if ends and other:
            place = _place((verdict.gpu, verdict.nic), (other.gpu, other.nic), labels)
            ledger.compare("links", "gpudirect", place, verdict.verdict, other.verdict)
            if verdict.verdict == other.verdict:
                ledger.compare("links", "gpudirect via", place, verdict.via, other.via)


def _path(ledger: Ledger, sides: _Sides, old: Path, new: Path) -> None:
    place = _place((old.a, old.b), (new.a, new.b), sides.labels)
    if (old.source == TREE) != (new.source == TREE):  # the tree has no NVLink: that is less evidence, not less link
        if old.kind != new.kind:
            ledger.unknown("gained" if old.source == TREE else "lost", "path by the driver", place)
        ledger.compare("links", "path by PCIe", place, old.pcie_kind, new.pcie_kind)
        return
    ledger.compare("links", "path", place, old.kind, new.kind)
    if old.kind != old.pcie_kind or new.kind != new.pcie_kind:  # else it is the same word again
        ledger.compare("links", "path by PCIe", place, old.pcie_kind, new.pcie_kind)
    if old.limiting in sides.unsure[0] or new.limiting in sides.unsure[1]:
        return  # the speed of an idle link follows the load
    if old.bandwidth_gbyte_s is not None and new.bandwidth_gbyte_s is not None:
        limiting = new.limiting or old.limiting
        note = f"limited by {sides.labels.get(limiting, limiting)}" if limiting else None
        ledger.compare("links", "path gbyte_s", place, old.bandwidth_gbyte_s, new.bandwidth_gbyte_s, note=note)


def _unsure(report: Report) -> frozenset[str]:
    return frozenset(row.id for row in report.topology.pci if row.link and row.link.quality.state != SURE)


def _labels(report: Report) -> dict[str, str]:
    topology = report.topology
    return {row.id: row.label for rows in (topology.nics, topology.gpus) for row in rows}


def _ends(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _map_ends(a: str, b: str, pairs: Pairing) -> tuple[str, str] | None:
    one, other = pairs.ids.get(a), pairs.ids.get(b)
    return _ends(one, other) if one and other else None


def _place(old: tuple[str, str], new: tuple[str, str], labels: Mapping[str, str]) -> ChangedThing:
    label = BETWEEN.join(labels.get(end, end) for end in new)
    return ChangedThing(old=f"pair:{'+'.join(old)}", new=f"pair:{'+'.join(new)}", label=label)
