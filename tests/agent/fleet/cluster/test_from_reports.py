"""What reports tell: adapters by GUID, LLDP, domains, and where they and the fabric file do not agree."""

from __future__ import annotations

from datetime import datetime

import pytest

from agent.fleet.cluster.build import build
from agent.fleet.cluster.cabling_faults import find_cabling_faults
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, GpuRow, HostRow, NetdevRow, NicRow, PortRow, read_domains
from tests.agent.fleet.cluster.given import Plant, rails

SEEN = datetime(2026, 1, 15, 9, 30)  # noqa: DTZ001  # as engines give it: UTC without a zone


def colons(guid: str) -> str:
    """As the kernel writes a GUID."""
    return ":".join(guid[n : n + 4] for n in range(0, 16, 4))


def reports(plant: Plant, down: tuple[str, ...] = ()) -> ClusterTables:
    """Of every host of a plant, as its own report would be; `down`: adapters whose port is not up."""
    nics, ports, hosts = [], [], []
    for name, node in plant.nodes.items():
        if node.kind != "ca":
            continue
        host, device = name.split()
        rail = int(device[-1])
        hosts.append(HostRow(f"gpu-{host}", SEEN, 4))
        nics.append(NicRow(f"gpu-{host}", device, device, rail, device, colons(node.guid), False))
        state = "DOWN" if name in down else "ACTIVE"
        ports.append(
            PortRow(f"gpu-{host}", device, 1, rail, "InfiniBand", state, 400.0 if state == "ACTIVE" else None,
                    colons(node.guid))
        )  # fmt: skip
    return ClusterTables(host=sorted(set(hosts)), nic=nics, port=ports)


def test_hosts_are_joined_by_guid() -> None:
    """Whatever the descriptions say; rails are those of the reports."""
    plant = rails()
    tables = reports(plant)
    for name, node in plant.nodes.items():
        if node.kind == "ca":
            plant.nodes[name] = node._replace(name="MT4129 ConnectX7   Mellanox Technologies")

    cluster = plant.cluster(tables)

    assert {f"gpu-n{number:03d}" for number in range(1, 9)} == {link.host for link in cluster.host_links}
    assert {"rail 0", "rail 1", "rail 2", "rail 3"} == {link.rail for link in cluster.host_links}
    assert not cluster.nameless
    assert [] == find_cabling_faults(cluster, build_views(cluster))


def test_a_swap_is_told_by_rail_and_adapter() -> None:
    """As the report numbers it and the host calls it."""
    plant = rails(nodes=6)
    tables = reports(plant)
    plant.swap("n002 mlx5_0", "n002 mlx5_3")

    (result,) = plant.breaks(tables)

    assert result.text.startswith("gpu-n002 rail 0 (mlx5_0) is on su1-leaf4/2 and rail 3 (mlx5_3) on su1-leaf1/2")


def test_a_guid_of_two_ports_joins_nothing() -> None:
    """It is a duplicate, which is another question; a note says so."""
    plant = rails()
    tables = reports(plant)
    port = tables.port[0]
    twice = tables._replace(
        port=[*tables.port, port._replace(node="other")], nic=[*tables.nic, tables.nic[0]._replace(node="other")]
    )

    cluster = plant.cluster(twice)

    assert "n001" in {link.host for link in cluster.host_links}
    assert any("in the reports of more than one port" in note for note in cluster.notes)


def test_a_port_that_is_up_and_not_in_the_file() -> None:
    """Both times are said."""
    plant = rails(nodes=6)
    tables = reports(plant)
    plant.cut("n003 mlx5_2")

    result = {each.kind: each.text for each in plant.breaks(tables)}

    assert result["not-in-fabric"] == (
        "gpu-n003 rail 2: up for its host (report of 2026-01-15 09:30), "
        "not in the fabric (file Thu Jan 15 08:00:00 2026)"
    )
    assert "missing-rail" in result


@pytest.mark.parametrize(("count", "told"), [(2, 2), (3, 0), (4, 0)])
def test_several_nodes_that_are_wholly_gone_are_of_another_fabric(count: int, told: int) -> None:
    """Of a fabric whose file is not given, fewer than a quarter of all: none of them is a break."""
    plant = rails(nodes=20)
    tables = reports(plant)
    for node in range(1, count + 1):
        for rail in range(4):
            plant.cut(f"n{node:03d} mlx5_{rail}")

    assert told == sum(each.kind == "not-in-fabric" for each in plant.breaks(tables))


def test_a_node_that_is_wholly_gone_is_one_break() -> None:
    """Its leaf ports are free, its report says up."""
    plant = rails(nodes=6)
    tables = reports(plant)
    for rail in range(4):
        plant.cut(f"n003 mlx5_{rail}")

    (result,) = plant.breaks(tables)

    assert result.text.startswith("gpu-n003 all 4 rails: up for its host")


def test_nodes_of_another_fabric_are_no_break() -> None:
    """The file has a few of the nodes that have reports."""
    plant, other = rails(nodes=2), rails(units=6, nodes=6)
    for name, node in other.nodes.items():
        other.nodes[name] = node._replace(guid=f"f{node.guid[1:]}")
    mine, theirs = reports(plant), reports(other)
    hosts = [*mine.host, *(row._replace(node=f"far-{row.node}") for row in theirs.host)]
    nics = [*mine.nic, *(row._replace(node=f"far-{row.node}") for row in theirs.nic)]
    ports = [*mine.port, *(row._replace(node=f"far-{row.node}") for row in theirs.port)]
    tables = ClusterTables(host=hosts, nic=nics, port=ports)

    cluster = plant.cluster(tables)

    assert [] == find_cabling_faults(cluster, build_views(cluster))
    assert any(note.startswith("36 of 40 nodes are not in the switch data") for note in cluster.notes)


def test_without_switch_data_no_node_is_missing_in_it() -> None:
    hosts = reports(rails(nodes=6)).host

    assert () == tuple(build([], ClusterTables(host=hosts)).notes)


def test_a_port_that_the_file_has_and_the_host_calls_down() -> None:
    """With its place."""
    plant = rails(nodes=6)

    (result,) = plant.breaks(reports(plant, down=("n003 mlx5_2",)))

    assert ("down-in-report", ("su1-leaf3/3",)) == (result.kind, result.ports)


def test_far_ends_that_hosts_were_told() -> None:
    """Without a fabric file, what each host's own capture says of its ports' far ends."""
    rows = [
        PortRow(f"n{node}", f"x{rail}", 1, rail, "InfiniBand", "ACTIVE", 400.0, f"{node:08x}{rail:08x}",
                f"aaaa{rail:012x}", f"MF0;leaf{rail}:MQM9700/U1", node + 1)
        for node in range(6) for rail in range(2)
    ]  # fmt: skip
    back = PortRow("n0", "x9", 1, None, "InfiniBand", "ACTIVE", 400.0, "1", "bbbb", "n1 mlx5_9", 1)

    cluster = build([], ClusterTables(port=[*rows, back]))

    assert {"leaf0", "leaf1"} == {switch.name for switch in cluster.switches.values()}
    assert {("n3", "rail 1", "4")} == {
        (link.host, link.rail, link.at.port)
        for link in cluster.host_links
        if link.host == "n3" and link.rail[-1] == "1"
    }


def test_lldp_of_rails_only() -> None:
    """Management interfaces have neighbours too."""
    rows = [NetdevRow("n1", "eth0", "x", 0, 400.0, "leaf0", "00:01", "swp1"),
            NetdevRow("n1", "mgmt0", None, None, 1.0, "office", "00:99", "7")]  # fmt: skip

    cluster = build([], ClusterTables(netdev=rows))

    assert ["leaf0"] == [switch.name for switch in cluster.switches.values()]


def test_lldp_where_no_rail_is_known() -> None:
    """Every interface of an RDMA device, no other."""
    rows = [NetdevRow("n1", "eth0", "x", None, 100.0, "leaf0", None, "swp1"),
            NetdevRow("n1", "mgmt0", None, None, 1.0, "office", None, "7"),
            NetdevRow("n1", "eth1", "y", None, 100.0, None, None, "8")]  # fmt: skip

    cluster = build([], ClusterTables(netdev=rows))

    assert [("n1", "eth0")] == [(link.host, link.rail) for link in cluster.host_links]


def test_one_switch_however_it_is_told() -> None:
    """With its chassis and without, without its name; three switches of one name are three."""
    rows = [
        NetdevRow("n1", "eth0", "x", 0, 400.0, "leaf0", "00:01", "1"),
        NetdevRow("n2", "eth0", "x", 0, 400.0, "leaf0", None, "2"),
        NetdevRow("n3", "eth0", "x", 0, 400.0, None, "00:01", "3"),
        *(NetdevRow(f"n{node}", "eth1", "y", 1, 400.0, "sonic", f"00:a{node}", "1") for node in range(1, 4)),
        NetdevRow("n4", "eth1", "y", 1, 400.0, None, "00:a1", "4"),
    ]

    cluster = build([], ClusterTables(netdev=rows))

    assert ["leaf0", "sonic 00:a1", "sonic 00:a2", "sonic 00:a3"] == sorted(
        switch.name for switch in cluster.switches.values()
    )


def test_a_port_that_two_hosts_claim() -> None:
    """A cable was moved, and one report is old: the newer one has it."""
    old = SEEN.replace(month=1, day=1)
    rows = [NetdevRow(f"n{node}", "eth0", "x", 0, 400.0, "leaf0", "00:01", "1") for node in (1, 2)]
    hosts = [HostRow("n1", old), HostRow("n2", SEEN)]

    (link,) = build([], ClusterTables(host=hosts, netdev=rows)).host_links

    assert "n2" == link.host


def test_a_port_that_two_hosts_report_names_both() -> None:
    """The newest report first; and the older one is not blamed for a cable that is missing."""
    rows = [
        NetdevRow(f"n{node}", f"eth{rail}", f"x{rail}", rail, 400.0, f"leaf{rail}", f"00:0{rail}", str(node))
        for node in range(1, 7)
        for rail in range(4)
    ]
    rows[0] = rows[0]._replace(neighbor_port="2")  # n1 rail 0: where n2 is
    hosts = [HostRow(f"n{node}", SEEN.replace(hour=8 + (node == 2))) for node in range(1, 7)]
    cluster = build([], ClusterTables(host=hosts, netdev=rows))

    (result,) = find_cabling_faults(cluster, build_views(cluster))

    assert ("one-port-twice", ("n2", "n1"), ("leaf0/2",)) == (result.kind, result.hosts, result.ports)
    assert "leaf0/2 is reported by n2 rail 0 (eth0) and by n1 rail 0 (eth0)" == result.text
    assert [] == judge_by_pattern(cluster, build_views(cluster)).wrong


def test_domains_that_leave_a_node() -> None:
    """Not the one that ends there; GPUs are counted."""
    own, rack = "00000000-0000-0000-0000-000000000000", "11111111-0000-4000-8000-000000000001"
    rows = [
        GpuRow("a", own, 0),
        GpuRow("b", rack, 3),
        GpuRow("b", rack, 3),
        GpuRow("c", rack, 3),
        GpuRow("d", rack, None),
    ]

    (result,) = read_domains(ClusterTables(gpu=rows))

    assert (f"{rack}.3", ("b", "c"), 3) == result


def test_a_host_in_two_domains() -> None:
    """GPUs of one node with two cliques."""
    rack = "11111111-0000-4000-8000-000000000001"
    cluster = build([], ClusterTables(gpu=[GpuRow("a", rack, 1), GpuRow("a", rack, 2), GpuRow("b", rack, 1)]))

    (result,) = find_cabling_faults(cluster, [])

    assert ("split-domain", ("a",)) == (result.kind, result.hosts)


def racks(sizes: tuple[int, ...], serials: bool = True) -> tuple[list[HostRow], list[GpuRow]]:
    """NVLink domains of trays with 4 GPUs, one per rack."""
    hosts = [
        HostRow(f"r{rack}t{tray:02d}", SEEN, 4, f"rack-{rack}" if serials else None)
        for rack, size in enumerate(sizes)
        for tray in range(size)
    ]
    gpus = [GpuRow(row.node, f"{row.node[1]:0>8}-0000-4000-8000-000000000001", 7) for row in hosts for _ in range(4)]
    return hosts, gpus


def domain_breaks_of(hosts: list[HostRow], gpus: list[GpuRow]) -> list[tuple[str, tuple[str, ...]]]:
    """Kinds and hosts of what is wrong."""
    return [(each.kind, each.hosts) for each in find_cabling_faults(build([], ClusterTables(host=hosts, gpu=gpus)), [])]


def test_whole_racks_are_no_break() -> None:
    """Also where the others are of another product."""
    assert [] == domain_breaks_of(*racks((18, 18, 18, 18)))
    assert [] == domain_breaks_of(*racks((18, 9), serials=False))


def test_a_tray_in_the_domain_of_another_rack() -> None:
    """19 trays in one domain, 17 in the other: one deviation, about the tray."""
    hosts, gpus = racks((18, 18, 18, 18))
    gpus = [row._replace(cluster_uuid=gpus[0].cluster_uuid) if row.node == "r1t03" else row for row in gpus]

    assert [("domain-rack", ("r1t03",))] == domain_breaks_of(hosts, gpus)


def test_a_tray_alone_in_a_domain() -> None:
    """Its rack's others are in another one."""
    hosts, gpus = racks((18, 18))
    alone = "99999999-0000-4000-8000-000000000001"
    gpus = [row._replace(cluster_uuid=alone) if row.node == "r1t03" else row for row in gpus]

    assert [("domain-rack", ("r1t03",))] == domain_breaks_of(hosts, gpus)


def test_trays_of_several_racks_in_a_domain_of_their_own() -> None:
    """No rack has most of that domain, and each of them has another."""
    hosts, gpus = racks((18, 18, 18))
    other = "99999999-0000-4000-8000-000000000001"
    gpus = [row._replace(cluster_uuid=other) if row.node in ("r0t05", "r1t03") else row for row in gpus]

    assert [("domain-rack", ("r0t05",)), ("domain-rack", ("r1t03",))] == sorted(domain_breaks_of(hosts, gpus))


def test_a_domain_of_two_racks() -> None:
    """Trays of nine and nine: neither rack has most, and both have no other domain."""
    hosts, gpus = racks((9, 9, 9, 9))
    first = {row.node: row.cluster_uuid for row in gpus}
    gpus = [row._replace(cluster_uuid=first[f"r{int(row.node[1]) // 2 * 2}t00"]) for row in gpus]

    assert [] == domain_breaks_of(hosts, gpus)


def test_a_domain_larger_than_a_rack() -> None:
    """Without serial numbers of racks, and with no other domain to compare."""
    ((kind, hosts),) = domain_breaks_of(*racks((19,), serials=False))

    assert ("domain-size", 19) == (kind, len(hosts))


def test_a_domain_with_fewer_hosts_than_the_others() -> None:
    """Named with how many the others have."""
    assert [("domain-size", 17)] == [(kind, len(hosts)) for kind, hosts in domain_breaks_of(*racks((18, 18, 18, 17)))]
