"""Cables by LLDP of both sides: rails on another leaf, uneven trunks, and the same in `fleet topology` and `cables`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.fleet.cluster.answer import build_topology_answer
from agent.fleet.cluster.build import build as build_graph
from agent.fleet.cluster.cabling_plan import judge_by_plan, read_plan
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.lossless.answer import Inputs, judge
from agent.fleet.lossless.cluster_links import SwitchOutputs
from agent.fleet.lossless.host_ports import HostPort
from agent.fleet.lossless.join import join
from bench.switches.fabric import MadeFabric, build
from bench.switches.render import write
from probes.switches.collection import read_collection
from probes.switches.facts import PortFacts, SwitchFacts, SwitchNeighbor
from tests.agent.fleet.lossless.made import judge_made

SYSTEM = ("sonic",)


def make() -> MadeFabric:
    """Four leaves, four spines; rail r of eight hosts on leaf r of their unit."""
    return build(4, 4, 8, systems=SYSTEM)


def swap(fabric: MadeFabric) -> None:
    """Both rails of the first host, as both sides of LLDP have them."""
    one, other = fabric.rails[:2]
    ports = [fabric.port(rail.switch, rail.port) for rail in (one, other)]
    ports[0].far_port, ports[1].far_port = other.name, one.name
    one.switch, one.port, one.alias, other.switch, other.port, other.alias = (
        other.switch, other.port, other.alias, one.switch, one.port, one.alias
    )  # fmt: skip


def unplug(fabric: MadeFabric) -> str:
    """A cable between a leaf and a spine; the leaf."""
    port = next(fabric.ports(False))
    fabric.switches[port.far].ports.remove(fabric.port(port.far, port.far_port))
    fabric.switches[port.switch].ports.remove(port)
    fabric.lengths = {}
    return port.switch


def graph(folder: Path, fabric: MadeFabric, hosts: list[HostPort] | None = None) -> FabricGraph:
    write(fabric, folder)
    return build_graph([], None, SwitchOutputs(read_collection([str(folder / "now")]).switches, hosts))


@pytest.mark.parametrize("planned", [True, False])
def test_swapped_rails(tmp_path: Path, planned: bool) -> None:
    """By the plan one finding that names both; without one by what most hosts of the unit do."""
    fabric = make()
    if planned:
        rails = [f"{rail.host},{rail.rail},{rail.switch},{rail.alias}" for rail in fabric.rails]
        swap(fabric)
        fabric.lengths = {}
        write(fabric, tmp_path)
        (tmp_path / "plan.csv").write_text("\n".join(["node,rail,switch,port", *rails]))
    else:
        swap(fabric)
    answer = judge_made(fabric, tmp_path, plan=(tmp_path / "plan.csv").read_text() if planned else None)

    found = {(row.rule, row.subject) for row in answer.findings}
    assert found == (
        {("sw-rail-elsewhere", "swport:leaf2/Ethernet0")}
        if planned
        else {("sw-rail-elsewhere", "swport:leaf1/Ethernet0"), ("sw-rail-elsewhere", "swport:leaf2/Ethernet0")}
    )


def test_a_missing_uplink(tmp_path: Path) -> None:
    fabric = make()
    leaf = unplug(fabric)

    [finding] = judge_made(fabric, tmp_path).findings

    assert (finding.rule, finding.severity, finding.subject) == ("sw-trunk-uneven", "warning", f"switch:{leaf}")


def test_what_was_not_saved_is_not_missing(tmp_path: Path) -> None:
    """A leaf whose LLDP is not there has no fewer uplinks; one whose outputs are not there neither."""
    fabric = make()
    write(fabric, tmp_path)
    (tmp_path / "now" / "leaf1" / "show_lldp_table.txt").unlink()
    for path in (tmp_path / "now" / "leaf2").iterdir():
        path.unlink()
    switches = read_collection([str(tmp_path / "now")]).switches

    cluster = build_graph([], None, SwitchOutputs(switches))

    assert build_topology_answer(cluster, build_views(cluster)).breaks == []


def test_switches_alone_have_a_topology(tmp_path: Path) -> None:
    """Hosts by the switches' LLDP, spines above the leaves."""
    cluster = graph(tmp_path, make())

    [fabric] = build_topology_answer(cluster, build_views(cluster)).fabrics

    assert (fabric.hosts, fabric.ports, fabric.levels, fabric.cables) == (8, 16, 2, 16)
    assert cluster.sources == ("outputs of 8 switches",)


def test_a_spine_without_outputs_is_known_by_its_neighbors(tmp_path: Path) -> None:
    fabric = make()
    del fabric.switches["spine4"]
    fabric.lengths = {}

    cluster = graph(tmp_path, fabric)

    assert len(cluster.switch_links) == 16
    assert not cluster.switches["spine4"].whole


def test_a_plan_may_use_aliases(tmp_path: Path) -> None:
    """SONiC's LLDP sends "etp1" for the port that its tables call "Ethernet0"; a plan has either."""
    fabric = make()
    cluster = graph(tmp_path, fabric)
    lines = ["node,rail,switch,port"]
    for number, rail in enumerate(fabric.rails):
        lines.append(f"{rail.host},{rail.name},{rail.switch},{(rail.port, rail.alias.upper())[number % 2]}")

    cables = judge_by_plan(cluster, build_views(cluster), read_plan(f"{line}\n" for line in lines))

    assert (cables.right, cables.wrong) == (16, [])


def test_a_port_that_only_the_switch_reports(tmp_path: Path) -> None:
    """A host without LLDP is found by its MAC address, and has the name of its report."""
    fabric = make()
    for port in fabric.ports(True):
        port.far_port = next(rail.mac for rail in fabric.rails if (rail.host, rail.name) == (port.far, port.far_port))
    hosts = [HostPort(rail.host, rail.name, rail.rail, rail.mac, True, 400.0) for rail in fabric.rails]

    cluster = graph(tmp_path, fabric, hosts)

    assert {(link.host, link.rail, link.device) for link in cluster.host_links} == {
        (rail.host, f"rail {rail.rail}", rail.name) for rail in fabric.rails
    }


@pytest.mark.parametrize("unknown", ["a", "b"])
def test_a_port_by_a_name_that_it_does_not_have(unknown: str) -> None:
    """An index of SNMP in place of the name: one hop by the other side's LLDP, and no contradiction."""
    switches = {}
    for name, other in (("a", "b"), ("b", "a")):
        port = PortFacts(
            "Ethernet0", oper="up", neighbors=[SwitchNeighbor(other, "531" if name == unknown else "Ethernet0")]
        )
        switches[name] = SwitchFacts(name, "sonic", ports={"Ethernet0": port})

    [hop] = join(switches, {}, [], [], only_known_hosts=False).hops

    assert (hop.label, hop.told_by, hop.disagreement) == ("a Ethernet0 - b Ethernet0", "both", "")


def test_a_switch_without_lldp_beside_one_that_names_it() -> None:
    """One hop, told by the other side; whichever is read first."""
    for order in (("a", "b"), ("b", "a")):
        ports = {name: PortFacts("Ethernet0", oper="up") for name in order}
        ports["b"].neighbors = [SwitchNeighbor("a", "Ethernet0")]
        switches = {name: SwitchFacts(name, "sonic", ports={"Ethernet0": ports[name]}) for name in order}

        [hop] = join(switches, {}, [], [], only_known_hosts=False).hops

        assert {hop.a.label, hop.b.label} == {"a Ethernet0", "b Ethernet0"}
        assert hop.disagreement == ""
        assert (hop.a if hop.told_by == "a" else hop.b).node == "b"


def test_what_would_settle_a_hop() -> None:
    """The LLDP of the switch's own system; a configuration that was read is not asked for again."""
    for nos, wanted in (
        ("sonic", "leaf1: show lldp table"),
        ("cumulus", "leaf1: nv show interface lldp -o json"),
        ("eos", "leaf1: its LLDP neighbors"),
    ):
        port = PortFacts("p1", trust="dscp", dscp_prio={26: 3}, pfc=frozenset((3,)))
        alone = SwitchFacts("leaf1", nos, ports={"p1": port}, sources=["x"], configuration=True)
        [hop] = judge(Inputs({"leaf1": alone}, {}, [], [], [], 26)).hops
        assert (hop.verdict, hop.settle) == ("unknown", wanted)
        port.dscp_prio, port.dscp_map = None, "AZURE"
        [hop] = judge(Inputs({"leaf1": alone}, {}, [], [], [], 26)).hops
        assert "the map of DSCP to priority (AZURE)" in hop.reason
        assert hop.settle == ("" if nos != "eos" else "leaf1: its configuration")
