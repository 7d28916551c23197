"""The fabric's file and the nodes' reports tell of one and the same wiring."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import msgspec
import pytest

from agent.model.report import Report
from bench.fleet.fabric import Fabric, Port
from bench.fleet.plan import Plan, plan
from bench.fleet.platforms import HDR, NDR

SWITCH = re.compile(r'^Switch\t(\d+) "S-([0-9a-f]{16})"\t\t# "MF0;(\S+):\w+/U1" enhanced port 0 lid (\d+) lmc 0$')
TO_SWITCH = re.compile(r'^\[(\d+)\]\t"S-([0-9a-f]{16})"\[(\d+)\]\t\t# "MF0;(\S+):\w+/U1" lid (\d+) (\w+)$')
TO_HOST = re.compile(r'^\[(\d+)\]\t"H-([0-9a-f]{16})"\[1\]\(([0-9a-f]+)\) \t\t# "([^"]+)" lid (\d+) (\w+)$')
HOST = re.compile(
    r'^\[1\]\(([0-9a-f]+)\) \t"S-([0-9a-f]{16})"\[(\d+)\]\t\t# lid (\d+) lmc 0 "MF0;(\S+):\w+/U1" lid (\d+) (\w+)$'
)


class Read(NamedTuple):
    """The file as its lines say."""

    switches: dict[str, str]  # GUID -> name
    cables: dict[tuple[str, int], tuple[str, int, str]]  # both ways
    hosts: dict[str, tuple[str, int, str, int, str]]  # GUID -> switch, port, description, LID, speed
    lids: list[int]


def _read(text: str) -> Read:
    result = Read({}, {}, {}, [])
    at, descriptions = "", {}
    for line in text.splitlines():
        if switch := SWITCH.match(line):
            at = switch[3]
            result.switches[switch[2]] = at
            result.lids.append(int(switch[4]))
        elif end := TO_SWITCH.match(line):
            result.cables[at, int(end[1])] = (end[4], int(end[3]), end[6])
        elif end := TO_HOST.match(line):
            descriptions[end[2]] = (at, int(end[1]), end[4], int(end[5]), end[6])
        elif end := HOST.match(line):
            result.hosts[end[1]] = (end[5], int(end[3]), descriptions[end[1]][2], int(end[4]), end[7])
            result.lids.append(int(end[4]))
        else:
            assert re.match(r'^(#.*|\w+=0x[0-9a-f]+(\([0-9a-f]+\))?|Ca\t1 "H-[0-9a-f]{16}"\t\t# "[^"]+"|)$', line), line
    assert descriptions == result.hosts  # both ends tell of the cable
    assert all(result.cables[far[:2]] == (*near, far[2]) for near, far in result.cables.items())
    return result


@pytest.fixture(scope="module")
def fleet() -> Plan:
    faults = (
        "cable-swapped-rails",
        "cable-swapped-ports",
        "rail-wrong-leaf",
        "uplink-missing",
        "uplink-slow",
        "port-slow",
        "port-down",
    )
    return plan(64, 2, dict.fromkeys((*faults, "uplink-narrow", "duplicate-lid"), 1), mix={"gb200-ib": 1})


def test_every_rail_of_a_report_is_in_the_file_with_its_guid_lid_and_name(fleet: Plan) -> None:
    read = _read("".join(fleet.fabric_text()))
    hosts = {guid: row for guid, row in read.hosts.items() if "Aggregation" not in row[2]}
    assert len(read.hosts) - len(hosts) == len(read.switches)
    outlier = next(outlier for outlier in fleet.truth["oddities"] if outlier["kind"] == "port-down")
    down = (outlier["hosts"][0], outlier["subject"])
    for data in fleet.reports():
        report = msgspec.json.decode(data, type=Report)
        for nic in report.topology.nics:
            if nic.role != "rail":
                continue
            if nic.ports[0].state != "ACTIVE":
                assert (report.node.hostname, f"port:{nic.id}/1") == down
                continue
            _, _, description, lid, speed = hosts.pop(str(nic.node_guid).replace(":", ""))
            assert description == f"{report.node.hostname} {nic.rdma_device}"
            assert lid == nic.ports[0].lid
            assert speed == f"{nic.ports[0].width.lower()}{nic.ports[0].speed}"
    assert not hosts


def test_what_is_wired_otherwise_is_what_the_truth_says(fleet: Plan) -> None:
    read = _read("".join(fleet.fabric_text()))
    truth = {item["kind"]: item for item in fleet.truth["oddities"]}
    where = {}
    for switch, port, description, *_ in read.hosts.values():
        where.setdefault(description.split()[0], set()).add((switch, port))
    outlier = set()
    for number in range(64):
        unit, place = divmod(number, 18)
        intended = {(f"gb200-ib-1-leaf-u{unit + 1:02d}-r{rail}", place + 1) for rail in range(4)}
        if not where[f"gpu{number + 1:04d}"] <= intended:
            outlier.add(f"gpu{number + 1:04d}")
    # two rails of a node that are swapped are on the right leaves and ports, but not each on its own
    assert outlier == {*truth["cable-swapped-ports"]["hosts"], *truth["rail-wrong-leaf"]["hosts"]}
    (swapped,) = truth["cable-swapped-rails"]["hosts"]
    wired = [row for row in read.hosts.values() if row[2].split()[0] == swapped]
    by_device = {row[2].split()[1]: row[0][-1] for row in wired}
    assert [by_device[name] for name in sorted(by_device)] == ["0", "2", "1", "3"]
    (lost,) = truth["rail-wrong-leaf"]["hosts"]
    detail = truth["rail-wrong-leaf"]["detail"]
    assert (detail["switch"], detail["port"]) in where[lost]
    assert not any(switch == detail["meant"] for switch, _ in where[lost])


def test_uplinks_are_all_alike_but_where_one_was_planted(fleet: Plan) -> None:
    read = _read("".join(fleet.fabric_text()))
    truth = {item["kind"]: item for item in fleet.truth["oddities"]}
    assert Counter(what for *_, what in read.cables.values()) == {"4xNDR": 2 * (16 * 18 - 3), "4xHDR": 2, "2xNDR": 2}
    for kind in ("uplink-missing", "uplink-slow", "uplink-narrow"):
        name, _, port = truth[kind]["subject"].removeprefix("switch:").partition("/")
        there = read.cables.get((name, int(port)))
        assert (there and there[2]) == truth[kind]["detail"]["link"]
    assert len(read.lids) - len(set(read.lids)) == 1  # the one that was planted


@pytest.mark.parametrize(
    ("nodes", "wiring", "unit", "layout", "oversubscription", "tiers"),
    [
        (20, NDR, 32, "rail", 1.0, 2),
        (100, NDR, 32, "rail", 2.0, 2),
        (256, NDR, 32, "rail", 1.0, 2),
        (1024, NDR, 32, "rail", 1.0, 3),
        (400, HDR, 20, "rail", 1.0, 3),
        (64, NDR, 32, "fat-tree", 1.0, 2),
        (500, NDR, 32, "fat-tree", 4.0, 3),
    ],
)
def test_no_port_is_used_twice_and_every_leaf_reaches_every_other(
    nodes: int, wiring: object, unit: int, layout: str, oversubscription: float, tiers: int
) -> None:
    fabric = Fabric("f", 1, 0, nodes, unit, 8, wiring.radix, layout, oversubscription, wiring)
    assert fabric.tiers == tiers
    used = Counter(fabric.port(node, rail) for node in range(nodes) for rail in range(8))
    up = Counter()
    joined = list(range(fabric.switches))

    def root(n: int) -> int:
        while joined[n] != n:
            n = joined[n]
        return n

    for lower, upper, _ in fabric.cables():
        used.update((lower, upper))
        up[lower.switch] += 1
        joined[root(lower.switch)] = root(upper.switch)
    assert set(used.values()) == {1}
    assert all(1 <= port.number <= wiring.radix and port.switch < fabric.switches for port in used)
    assert len({root(n) for n in range(fabric.leaves)}) == 1
    down = Counter(fabric.port(node, rail).switch for node in range(nodes) for rail in range(8))
    assert all(up[leaf] * oversubscription >= fabric.down - oversubscription for leaf in down)
    assert len({fabric.lid(node, rail) for node in range(nodes) for rail in range(8)}) == nodes * 8
    assert fabric.lid(nodes - 1, 7) < 0xC000


def test_a_moved_rail_is_where_it_was_moved_to() -> None:
    fabric = Fabric("f", 1, 0, 40, 32, 8, 64, wiring=NDR)
    fabric.moved[3, 5] = Port(9, 33)
    assert (fabric.port(3, 5), fabric.meant(3, 5)) == (Port(9, 33), Port(5, 4))


def test_without_infiniband_there_is_no_fabric_to_print() -> None:
    with pytest.raises(ValueError, match="no InfiniBand fabric"):
        plan(4, 1, {}, mix={"cpu": 1}).fabric_text()


def test_lldp_tells_of_the_leaf_and_port_that_the_plan_says() -> None:
    faults = {"cable-swapped-ports": 1, "rail-wrong-leaf": 1}
    fleet = plan(40, 2, faults, mix={"h200-roce": 1})
    truth = {item["kind"]: item for item in fleet.truth["oddities"]}
    collected = {}
    for data in fleet.reports():
        report = msgspec.json.decode(data, type=Report)
        far = [netdev.neighbor for netdev in report.topology.netdevs if netdev.neighbor]
        unit, place = divmod(int(str(report.node.hostname)[3:]) - 1, 32)
        for rail, end in enumerate(far):
            if (end.system, end.port) != (f"h200-roce-1-leaf-u{unit + 1:02d}-r{rail}", f"Ethernet{place + 1}"):
                collected[report.node.hostname, rail] = (end.system, end.port)
    swapped, lost = truth["cable-swapped-ports"], truth["rail-wrong-leaf"]
    one, other = swapped["detail"]["ports"]
    leaf, rail = swapped["detail"]["switch"], swapped["detail"]["rail"]
    assert collected == {
        (swapped["hosts"][0], rail): (leaf, f"Ethernet{other}"),
        (swapped["hosts"][1], rail): (leaf, f"Ethernet{one}"),
        (lost["hosts"][0], 0): (lost["detail"]["switch"], f"Ethernet{lost['detail']['port']}"),
    }
