"""Hosts by GUID before names; adapters of no host; parts of switches are no hosts; one cable per port; and rows of a
dataset that are left out would have changed nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import find_cabling_faults
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_dataset import read_identity_rows
from agent.fleet.cluster.from_fabric import Adapter, parse_node_description, read
from agent.fleet.cluster.graph import SwitchPort
from agent.fleet.engines import connect
from bench.fleet.plan import plan
from probes.fabric.files import read_fabric
from probes.fabric.topology import (
    Fabric,
    FabricEnd,
    FabricLink,
    FabricNode,
)
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails, read_whole
from tests.agent.fleet.small import report, take

FAR = {"node_guid": "0002:c903:0000:0001", "name": "MF0;leaf1:MQM9700/U1", "port": 7}
GPUS = [{"id": "0000:81:00.0", "fabric": {"cluster_uuid": "c", "clique": 0}}, {"id": "0000:82:00.0"}]
NETDEVS = [
    {"id": "eth0", "label": "eth0", "nic": "0000:03:00.0", "neighbor": {"system": "tor1", "port": "Ethernet4"}},
    {"id": "eth1", "label": "eth1", "nic": "0000:02:00.0", "neighbor": {"chassis": "aa:bb:cc:dd:ee:ff"}},
    {"id": "eth2", "label": "eth2"},
]


def test_a_report_knows_better_than_the_description() -> None:
    """A host that was renamed is the one that its adapters' GUIDs belong to."""
    plant = rails(units=1, nodes=1, per_node=2)
    guid = plant.guid("n001 mlx5_0")

    result = read([plant.fabric()], {guid: Adapter("gpu7", "rail 0", "mlx5_0")})

    assert {("gpu7", "rail 0"), ("n001", "mlx5_1")} == {(link.host, link.rail) for link in result.host_links}


def test_adapters_that_name_no_host_are_kept_apart() -> None:
    """Vendor's text, localhost, and a name that two machines have."""
    plant = Plant()
    plant.switch("leaf")
    for port, result in enumerate(
        ["MT4129 ConnectX7   Mellanox Technologies", "localhost mlx5_0", "twin mlx5_0", ""], 1
    ):
        plant.add(f"{port}", said=result)
        plant.cable(f"{port}", 1, "leaf", port)
    plant.add("again", said="twin mlx5_0")
    plant.cable("again", 1, "leaf", 9)
    plant.cable("n1 mlx5_0", 1, "leaf", 10)

    cluster = plant.cluster()

    assert ["n1"] == [link.host for link in cluster.host_links]
    assert {"1", "2", "3", "4", "9"} == {item.at.port for item in cluster.nameless}
    assert any(note.startswith("3 adapters in the fabric do not name") for note in cluster.notes)
    assert any(
        note.startswith("twin: several machines are called so; which of their 2 adapters") for note in cluster.notes
    )


def test_what_is_in_a_switch_is_no_host() -> None:
    """An aggregation node, by its name or by the system image that it shares."""
    plant = Plant()
    plant.switch("leaf")
    plant.add("sharp", said="Mellanox Technologies Aggregation Node")
    plant.cable("sharp", 1, "leaf", 65)
    plant.cable("n1 mlx5_0", 1, "leaf", 1)
    plant.cable("quiet", 1, "leaf", 66)
    for name in ("leaf", "quiet"):
        plant.nodes[name] = plant.nodes[name]._replace(system_image_guid="aa")

    cluster = plant.cluster()

    assert ["n1"] == [link.host for link in cluster.host_links]
    assert not cluster.nameless


def test_both_ports_of_an_adapter_are_told_apart() -> None:
    """Of a description that names the adapter once; also where a file names a node a port."""
    plant = Plant()
    plant.switch("leaf")
    plant.add("n1 mlx5_0", ports=2)
    plant.cable("n1 mlx5_0", 1, "leaf", 1)
    plant.cable("n1 mlx5_0", 2, "leaf", 2)
    for port in (1, 2):
        plant.add(f"port{port}", ports=None, said="n2 mlx5_0")
        plant.cable(f"port{port}", port, "leaf", 2 + port)

    cluster = plant.cluster()

    assert {("n1", "mlx5_0/1"), ("n1", "mlx5_0/2"), ("n2", "mlx5_0"), ("n2", "mlx5_0/2")} == {
        (link.host, link.rail) for link in cluster.host_links
    }


def test_two_files_of_one_fabric_are_one_and_the_first_counts() -> None:
    """A cable that was moved between two files is where the first one has it."""
    first, second = rails(), rails()
    second.swap("n001 mlx5_0", "n002 mlx5_0")
    both = [FabricFile("a", first.fabric()), FabricFile("b", second.fabric())]

    cluster = build(both, None)

    assert len(first.cluster().host_links) == len(cluster.host_links)
    assert len(first.cluster().switch_links) == len(cluster.switch_links)
    (link,) = (host_link for host_link in cluster.host_links if (host_link.host, host_link.rail) == ("n001", "mlx5_0"))
    assert SwitchPort(first.guid("su1-leaf1"), "1") == link.at


def test_loose_ends_are_left_out() -> None:
    """A port without a peer, one that is down, routers, two hosts without a switch, ends that no node is for."""
    nodes = {name: FabricNode(name, kind, name) for name, kind in (("s", "switch"), ("n1 a1", "ca"), ("n2 a1", "ca"))}
    nodes["r"] = FabricNode("r", "router", "router")
    s, one, other = FabricEnd("s", 1), FabricEnd("n1 a1", 1), FabricEnd("n2 a1", 1)
    links = [FabricLink(s, None), FabricLink(s, one, state="Down"), FabricLink(one, other)]
    links += [FabricLink(FabricEnd("s", 2), FabricEnd("r", 1)), FabricLink(FabricEnd("s", 3), FabricEnd("gone", 1))]

    result = read([Fabric("iblinkinfo", nodes, tuple(links), ("line 7: odd",))], {})

    assert not result.host_links
    assert not result.switch_links
    assert ("iblinkinfo: line 7: odd", "1 links of two adapters without a switch are left out") == result.notes


def test_descriptions_of_no_host_name_none() -> None:
    """Names that nothing can be done with."""
    for result in ("", "   ", "a b c d", "-x mlx5_0", "n1 (none)", "host;rm mlx5_0", "x" * 300):
        assert parse_node_description(result) is None


def test_boards_of_a_chassis_keep_their_place() -> None:
    plant = Plant()
    for board in ("L01", "L02"):
        plant.add(board, "switch", 64, said=f"MF0;director-1:CS7520/{board}/U1")
        plant.cable(f"n{board} mlx5_0", 1, board, 1)
    for name in ("a", "b"):
        plant.add(name, "switch", 64, said="MF0;twin:MQM9700/U1")
        plant.cable(f"n{name} mlx5_0", 1, name, 1)

    names = sorted(value.name for value in plant.cluster().switches.values())

    assert ["director-1/L01/U1", "director-1/L02/U1"] == names[:2]
    assert [f"twin {plant.guid('a')}", f"twin {plant.guid('b')}"] == names[2:]


def test_one_guid_at_two_ports() -> None:
    """Nobody misses the second: who has it is not known."""
    plant = rails(nodes=4)
    plant.cut("n002 mlx5_1")
    fabric = plant.fabric()
    leaf, guid = plant.guid("su1-leaf2"), plant.guid("n001 mlx5_1")
    fabric = fabric._replace(twice=(FabricLink(FabricEnd(leaf, 2), FabricEnd(guid, 1), 4, "NDR"),))
    cluster = build([FabricFile("f", fabric)], None)

    assert [] == find_cabling_faults(cluster, build_views(cluster))
    assert [] == judge_by_pattern(cluster, build_views(cluster)).wrong
    assert any(
        f"GUID {guid} (n001 mlx5_1) is at another port, and at su1-leaf2/2 too" in note for note in cluster.notes
    )
    assert plant.breaks()


def test_of_a_file_that_is_cut_nothing_is_missed() -> None:
    """By its own end, or by switches that it names and does not list; the one it was at is not blamed."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf06", 33)
    assert plant.breaks()
    fabric = plant.fabric()
    every = [plant.guid(name) for name in plant.nodes if "leaf" in name or "spine" in name]
    for format_name in ("iblinkinfo", "ibdiagnet net_dump"):
        some = tuple(item for item in every if item not in (plant.guid("spine01"), plant.guid("leaf06")))
        result = fabric._replace(format_name=format_name, listed=(*some, plant.guid("leaf06")))
        cluster = build([FabricFile("f", result)], None)
        assert [] == find_cabling_faults(cluster, build_views(cluster))
        assert any("a file is cut" in note for note in cluster.notes)
        whole = build([FabricFile("f", result._replace(listed=tuple(every)))], None)
        assert find_cabling_faults(whole, build_views(whole))
    cluster = build([FabricFile("f", fabric._replace(format_name="ibdiagnet db_csv", listed=(), cut=True))], None)
    assert [] == find_cabling_faults(cluster, build_views(cluster))


def port(number: int, layer: str, far: dict[str, Any] | None = None) -> dict[str, Any]:
    guid = f"0002:c903:00aa:000{number}"
    return {"port": number, "link_layer": layer, "state": "ACTIVE", "port_guid": guid, "neighbor": far}


def nic(number: int, *ports: dict[str, Any]) -> dict[str, Any]:
    name = f"mlx5_{number}"
    return {"id": f"0000:0{number}:00.0", "label": name, "rdma_device": name, "role": "rail", "ports": list(ports)}


NICS = [
    nic(1, port(1, "InfiniBand", FAR), port(2, "InfiniBand")),
    nic(2, port(3, "InfiniBand"), port(4, "Ethernet")),
    nic(3, port(5, "Ethernet")),
    nic(4, port(6, "InfiniBand", {**FAR, "port": 8})),
]


@pytest.mark.parametrize("beside_files", [False, True])
def test_of_an_adapter_all_ports_or_none(tmp_path: Path, beside_files: bool) -> None:
    topology = {"gpus": GPUS, "nics": NICS, "netdevs": NETDEVS}
    take(tmp_path / "dataset", report("gpu1", topology=topology), report("gpu2"))
    engine = connect(None, str(tmp_path / "dataset"))

    chosen = read_identity_rows(engine, beside_files)

    assert sorted((row.nic[6:7], row.port) for row in chosen.port) == (
        [("1", 1), ("1", 2), ("2", 3), ("2", 4), ("4", 6)] if beside_files else [("1", 1), ("1", 2), ("4", 6)]
    )
    assert [row.label for row in chosen.nic] == (
        ["mlx5_1", "mlx5_2", "mlx5_4"] if beside_files else ["mlx5_1", "mlx5_4"]
    )
    assert [row.label for row in chosen.netdev] == ["eth0"]
    assert [row.clique for row in chosen.gpu] == [0]
    assert [row.node for row in chosen.host] == ["gpu1", "gpu2"]
    text = 'Switch\t40 "S-0002c90300000001"\t# "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 1 lmc 0\n'
    text += '[7]\t"H-0002c90300aa0001"[1](2c90300aa0001)\t# "gpu1 mlx5_1" lid 2 4xNDR\n'
    files = [FabricFile("fabric", read_fabric(text, "fabric"))] if beside_files else []
    result = build(files, chosen)
    assert result == build(files, read_whole(engine))
    assert "mlx5_1/1" in {link.device for link in result.host_links}
    engine.close()


def test_made_up_fabrics(tmp_path: Path) -> None:
    mix = {"h100-ib": 1.0, "h200-roce": 1.0, "gb200-ib": 1.0}
    result = plan(60, 5, {"cable-swapped-rails": 1, "port-down": 1}, mix=mix)
    take(tmp_path / "dataset", *result.reports(one_line=True))
    engine = connect(None, str(tmp_path / "dataset"))
    files = [FabricFile(name, read_fabric("".join(result.fabric_text(name)), name)) for name in result.fabrics]

    for given in ([], files):
        assert build(given, read_identity_rows(engine, bool(given))) == build(given, read_whole(engine))
    engine.close()
