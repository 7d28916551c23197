"""What the cluster's topology tells of a made-up fleet, beside what is odd in it: both as (kind, hosts or place)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.cabling_plan import Cable
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables
from probes.fabric.files import read_fabric

Told = set[tuple[str, str]]

# kinds of the truth, in the words of the answer; all others of bench/fleet/cables.py have the same word in both
_ALIKE = {
    "rails-exchanged-half": "rails-exchanged",
    "uplink-slow": "uneven-pace",
    "uplink-narrow": "uneven-pace",
    "port-slow": "uneven-pace",
    "port-down": "missing-rail",
    "nic-lost": "missing-rail",
    "nic-no-driver": "missing-rail",
    "nvlink-clique": "domain-rack",
    "nvlink-domain": "domain-rack",
    "nvlink-domain-other": "domain-rack",
}
_OF_CABLES = ("cable-", "rail-wrong", "rails-", "leaves-", "uplink-", "spine-", "port-shared")


def found(fabrics: Mapping[str, str], tables: ClusterTables | None = None) -> tuple[list[CablingFault], list[Cable]]:
    """What breaks the cluster and which cables are wrong. `fabrics`: text of each fabric's file, by its name."""
    cluster = build([FabricFile(name, read_fabric(text, name)) for name, text in fabrics.items()], tables)
    seen = build_views(cluster)
    return find_cabling_faults(cluster, seen), judge_by_pattern(cluster, seen).wrong


def told(wrong: Iterable[CablingFault], moved: Iterable[Cable]) -> Told:
    """In the words of the truth."""
    said: Told = set()
    wrong = list(wrong)
    for each in wrong:
        if each.kind == "exchanged-rails":
            units = "leaves" if "each other's leaf" in each.text else "rails"
            said.add((f"{units}-exchanged", "+".join(sorted(each.hosts))))
        elif each.kind == "swapped-uplinks" and len(each.ports) > 4:
            said.add(("uplink-side-exchanged", "+".join(sorted({port.partition("/")[0] for port in each.ports}))))
        elif each.kind == "fewer-uplinks" and each.should:
            said.add(("uplink-ragged-unit", min(port.partition("/")[0] for port in each.ports)))
        elif each.kind == "swapped-cables":
            said.add(("cable-swapped-rails", "+".join(each.hosts)))
        elif each.kind in ("rail-elsewhere", "no-unit"):  # of two rails none is the one that is right
            said.add(("rail-wrong-leaf", each.hosts[0]))
        elif each.kind == "missing-uplink":
            said |= {("uplink-missing", end) for end in each.should}
        elif each.kind == "swapped-uplinks":
            said.add(("uplink-swapped", "+".join(sorted(each.ports))))
        elif each.kind == "fewer-uplinks":
            said.add(("uplink-half-unit", each.ports[0]))
        elif each.kind == "dark-spine":
            said.add(("spine-dark", each.text.partition(" is not in the fabric")[0]))
        elif each.kind == "one-port-twice":
            said.add(("port-shared", "+".join(sorted(each.hosts))))
        elif each.kind == "uneven-pace":
            said.add((each.kind, "+".join(each.hosts) or next(port for port in each.ports if "leaf" in port)))
        elif each.kind in ("missing-rail", "domain-rack"):
            said.add((each.kind, "+".join(each.hosts)))
        else:
            said.add((each.kind, each.text))
    rails = {host for each in wrong for host in each.hosts}
    pairs = {
        tuple(sorted((each.end.split()[0], (each.there or "").split()[0])))
        for each in moved
        if each.state == "swapped" and each.there and each.end.split()[0] not in rails
    }
    return said | {("cable-swapped-ports", "+".join(pair)) for pair in pairs}


def planted(truth: Mapping[str, Any], by_reports: bool = False) -> Told:
    """What was planted. `by_reports`: also what only the reports of nodes can show."""
    said: Told = set()
    for odd in truth["oddities"]:
        kind = odd["kind"]
        if odd["detail"].get("rails") == 2 and kind in _ALIKE:
            continue  # with one of two rails it may be meant so; its own report names the NIC
        if kind.startswith(_OF_CABLES) or (kind in _ALIKE and by_reports):
            said.add((_ALIKE.get(kind, kind), "+".join(sorted(odd["hosts"])) or odd["subject"].removeprefix("switch:")))
    return said
