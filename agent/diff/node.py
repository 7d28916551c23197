"""The node itself: kernel, firmware of the machine, command line, NUMA, software, platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.diff.devices import was_read
from agent.diff.ledger import ChangedThing, Ledger
from agent.model.node import Node
from agent.model.report import Report

NODE_FIELDS = {
    "kernel": "software", "os": "software", "arch": "software", "virtualization": "settings", "container": "settings",
    "vendor": "devices", "product": "devices", "bios_version": "software",
}  # fmt: skip
OWN_FIELDS = {"hostname": "settings", "machine_id": "settings", "serial": "devices"}  # of one host, not of two
CPU_FIELDS = {"vendor": "devices", "family": "devices", "model": "devices", "name": "devices", "sockets": "devices"}
MEMORY_TOLERANCE = 0.01  # a kernel keeps some for itself, and not always the same
NODE = ChangedThing(old="node", new="node", label="node")


def node(ledger: Ledger, old: Report, new: Report, same_host: bool) -> None:
    """What is one of a kind on a node."""
    a, b = old.node, new.node
    ledger.fields(NODE, a, b, NODE_FIELDS)
    if same_host:
        ledger.fields(NODE, a, b, OWN_FIELDS)
        ledger.fields(NODE, a.chassis, b.chassis, dict.fromkeys(("serial", "slot", "tray"), "devices"), "chassis ")
    ledger.fields(NODE, a.cpu, b.cpu, CPU_FIELDS, "cpu ")
    _memory(ledger, "memory_mib", NODE, a.memory_mib, b.memory_mib)
    _arguments(ledger, a.cmdline, b.cmdline)
    _numa(ledger, a, b)
    ledger.compare("settings", "platform profile", NODE, old.platform.profile or "none", new.platform.profile or "none")


def software(ledger: Ledger, old: Report, new: Report) -> None:
    """Driver, modules, services, RDMA stack, NCCL, limits."""
    a, b = old.software, new.software
    ledger.fields(NODE, a.driver, b.driver, dict.fromkeys(("version", "open", "cuda"), "software"), "driver ")
    ledger.fields(NODE, a.rdma_stack, b.rdma_stack, {"kind": "software", "version": "software"}, "rdma stack ")
    if was_read(old, ("modules", "lsmod")) and was_read(new, ("modules", "lsmod")):
        versions = [{module.name: module.version for module in side.modules} for side in (a, b)]
        _compare_named(ledger, "module", versions[0], versions[1])
    states = [
        {service.name: f"{service.state} {service.version or ''}".strip() for service in side.services}
        for side in (a, b)
    ]
    if states[0] and states[1]:
        _compare_named(ledger, "service", states[0], states[1])
    _words(ledger, "software", "peer memory clients", a.peer_memory_clients, b.peer_memory_clients)
    libraries = [
        [f"{library.path} {library.version or ''}".strip() for library in side.nccl.libraries] for side in (a, b)
    ]
    _words(ledger, "software", "nccl libraries", libraries[0], libraries[1])
    settings = [
        [f"{setting.key}={setting.value} ({setting.source})" for setting in side.nccl.settings] for side in (a, b)
    ]
    _words(ledger, "settings", "nccl settings", settings[0], settings[1])
    for name in sorted(a.limits.keys() & b.limits.keys()):
        ledger.compare("settings", f"limit {name}", NODE, a.limits[name], b.limits[name])


def _memory(ledger: Ledger, what: str, place: ChangedThing, old: int | None, new: int | None) -> None:
    if old and new and abs(new - old) <= MEMORY_TOLERANCE * max(old, new):
        return
    ledger.compare("devices", what, place, old, new)


def _arguments(ledger: Ledger, old: str | None, new: str | None) -> None:
    """Of the kernel's command line only the arguments that differ. Their order has a meaning only among equals."""
    if old is None or new is None:
        ledger.compare("settings", "cmdline", NODE, old, new)
        return
    _words(ledger, "settings", "cmdline", _without_image(old), _without_image(new))


def _without_image(cmdline: str) -> list[str]:
    return [word for word in cmdline.split() if not word.startswith("BOOT_IMAGE=")]


def _numa(ledger: Ledger, a: Node, b: Node) -> None:
    if not ledger.have_both("numa nodes", NODE, a.numa_nodes, b.numa_nodes):
        return
    before, after = ({numa_node.id: numa_node for numa_node in side.numa_nodes} for side in (a, b))
    for number in sorted(before.keys() | after.keys()):
        one, other = before.get(number), after.get(number)
        name = f"numa:{number}"
        place = ChangedThing(old=name if one else None, new=name if other else None, label=f"NUMA {number}")
        if one is None or other is None:
            ledger.add("devices", "gone" if one else "new", "numa node", place)
            continue
        ledger.compare("settings", "cpus", place, one.cpus, other.cpus)
        distances = [[str(distance) for distance in side.distances] or None for side in (one, other)]
        ledger.compare("settings", "distances", place, distances[0], distances[1])
        _memory(ledger, "memory_mib", place, one.memory_mib, other.memory_mib)


def _compare_named(ledger: Ledger, what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name in sorted(old.keys() | new.keys()):
        ident = f"{what}:{name}"
        if name not in old:
            ledger.add("software", "new", what, ChangedThing(new=ident, label=name))
        elif name not in new:
            ledger.add("software", "gone", what, ChangedThing(old=ident, label=name))
        else:
            ledger.compare("software", what, ChangedThing(old=ident, new=ident, label=name), old[name], new[name])


def _words(ledger: Ledger, group: str, what: str, old: list[str], new: list[str]) -> None:
    before, after = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    if before or after:
        ledger.add(group, "changed", what, NODE, before, after)
