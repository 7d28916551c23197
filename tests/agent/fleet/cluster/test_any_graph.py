"""Any graph at all: nothing raises, what is written can be read, and a healthy fabric of any size is silent. Made-up
fleets with planted cable faults: every one is found, none is invented.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.main import run
from agent.fleet.cluster.answer import build_topology_answer
from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import CablingFault
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.cabling_plan import Cable, Cables
from agent.fleet.cluster.fabric_kind import classify_fabric
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, NetdevRow
from agent.fleet.cluster.picture import draw_picture
from agent.fleet.cluster.slurm import Nothing, format_conf
from agent.fleet.cluster.slurm import format_yaml as written
from agent.fleet.cluster.text import page, render_cables_page
from agent.fleet.cluster.topograph import format_labels, format_model
from agent.outputs.text.lines import to_plain_text
from bench.fleet import cabling
from bench.fleet.cables import CABLES
from bench.fleet.plan import Plan, plan
from probes.fabric.files import read_fabric
from probes.fabric.topology import (
    Fabric,
    FabricEnd,
    FabricLink,
    FabricNode,
)
from tests.agent.fleet.cluster.given import fat_tree, rails

NAMES = st.one_of(
    st.text(max_size=20),
    st.builds("n{} mlx5_{}".format, st.integers(1, 6), st.integers(0, 3)),
    st.builds("MF0;leaf{}:X/U1".format, st.integers(1, 9)),
)
IDS = st.sampled_from([f"{number:016x}" for number in range(1, 15)])
NODES = st.builds(
    FabricNode, IDS, st.sampled_from(["switch", "switch", "ca", "ca", "router", "unknown"]), NAMES,
    st.one_of(st.none(), st.integers(-1, 65)), system_image_guid=st.one_of(st.none(), IDS),
)  # fmt: skip
ENDS = st.builds(FabricEnd, IDS, st.integers(-1, 9), st.one_of(st.none(), IDS))
LINKS = st.builds(
    FabricLink, ENDS, st.one_of(st.none(), ENDS), st.sampled_from([None, 0, 1, 2, 4, 12]),
    st.sampled_from([None, "HDR", "NDR", "?"]), st.sampled_from([None, "Active", "Down"]), st.none(),
    st.sampled_from([None, 4]), st.sampled_from([None, "XDR"]),
)  # fmt: skip
FABRICS = st.builds(
    lambda nodes, links: Fabric("any", {node.guid: node for node in nodes}, tuple(links)),
    st.lists(NODES, max_size=14),
    st.lists(LINKS, max_size=60),
)
NETDEVS = st.builds(
    NetdevRow, st.sampled_from(["n1", "n2", "x/n1"]), st.sampled_from(["e0", "e1"]), st.sampled_from([None, "a"]),
    st.sampled_from([None, 0, 1]), st.sampled_from([None, 0.0, 400.0]), st.one_of(st.none(), NAMES), st.none(), NAMES,
)  # fmt: skip
pytestmark = pytest.mark.slow
INFINIBAND = {"h100-ib": 0.3, "b200-ib": 0.14, "gb200-ib": 0.42, "a100-ib": 0.14}
FAULTS = dict.fromkeys(CABLES, 3) | {"spine-dark": 2}


@given(st.lists(FABRICS, max_size=2), st.lists(NETDEVS, max_size=12))
def test_any_graph_is_answered(fabrics: list[Fabric], netdevs: list[NetdevRow]) -> None:
    """Text, data, picture, Slurm's files, topograph's model, labels."""
    cluster = build([FabricFile("f", fabric) for fabric in fabrics], ClusterTables(netdev=netdevs) if netdevs else None)
    seen = build_views(cluster)
    answer = build_topology_answer(cluster, seen)

    for width in (40, 80, 200):
        assert all(line.isprintable() for line in to_plain_text(page(answer, width)).splitlines())
        to_plain_text(render_cables_page(judge_by_pattern(cluster, seen), cluster.sources, width))
    fromstring(draw_picture(cluster, seen, answer.breaks))
    assert isinstance(yaml.safe_load(format_model(cluster, seen)), dict)
    assert format_labels(cluster, seen).isascii()
    try:
        assert format_conf(cluster, seen).isascii()
        assert isinstance(yaml.safe_load(written(cluster, seen)), list)
    except Nothing:
        pass


@given(
    st.integers(1, 5), st.integers(1, 9), st.integers(1, 8), st.integers(1, 5), st.integers(1, 3), st.randoms()
)  # fmt: skip
def test_a_healthy_fabric_of_any_size_is_silent(
    units: int, nodes: int, per_node: int, spines: int, each: int, random: object
) -> None:
    """Whole nodes may be off: that is no break of the fabric; and every cable follows the pattern."""
    plant = rails(units, nodes, per_node, spines, each)
    for number in range(1, units * nodes + 1):
        if random.random() < 0.3:  # type: ignore[attr-defined]
            for rail in range(per_node):
                plant.cut(f"n{number:03d} mlx5_{rail}")
    cluster = plant.cluster()
    seen = build_views(cluster)

    assert [] == build_topology_answer(cluster, seen).breaks
    assert [] == judge_by_pattern(cluster, seen).wrong


@given(st.integers(1, 8), st.integers(0, 9), st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3))
def test_a_healthy_fat_tree_of_any_size_is_silent(
    leaves: int, nodes: int, spines: int, each: int, pods: int, cores: int
) -> None:
    """Two or three levels; also leaves without hosts."""
    plant = fat_tree(leaves, nodes, spines, each, pods, cores)
    cluster = plant.cluster()
    seen = build_views(cluster)

    assert [] == build_topology_answer(cluster, seen).breaks
    assert [] == judge_by_pattern(cluster, seen).wrong


@cache
def fleet(seed: int, layout: str, oversubscription: float) -> Plan:
    """240 nodes on InfiniBand."""
    return plan(240, seed, FAULTS, mix=INFINIBAND, layout=layout, oversubscription=oversubscription)


def found(made: Plan) -> tuple[list[CablingFault], list[Cable], set[tuple[str, int, float | None]]]:
    """What breaks every fabric, which cables are not right, what each fabric is."""
    wrong: list[CablingFault] = []
    moved: list[Cable] = []
    kinds = set()
    dark = {odd["detail"]["fabric"] for odd in made.truth["oddities"] if odd["kind"] == "spine-dark"}
    for name in made.fabrics:
        text = "".join(made.fabric_text(name))
        breaks, cables = cabling.found({name: text})
        wrong, moved = wrong + breaks, moved + cables
        seen = build_views(build([FabricFile(name, read_fabric(text, name))], None))
        if name not in dark:  # without a spine there is less bandwidth up
            kinds |= {(kind.kind, kind.levels, kind.oversubscription) for kind in map(classify_fabric, seen)}
    return wrong, moved, kinds


def test_rail_optimized_fabrics() -> None:
    """Swaps, wrong leaves, missing and slow cables, each once and in its words."""
    made = fleet(1, "rail", 1.0)

    wrong, moved, kinds = found(made)

    assert cabling.planted(made.truth) == cabling.told(wrong, moved)
    assert len(cabling.planted(made.truth)) >= 15
    assert {kind for kind, _ in cabling.planted(made.truth)} >= {"uplink-half-unit", "uplink-swapped"}
    assert {("rail-optimized", 2, 1.0)} == kinds


def test_fat_trees() -> None:
    """Their oversubscription is what was stated."""
    made = fleet(3, "fat-tree", 2.0)

    wrong, moved, kinds = found(made)

    assert cabling.planted(made.truth) == cabling.told(wrong, moved)
    assert {("fat-tree", 2, 2.0)} == kinds


def test_a_fleet_without_a_fault_is_silent() -> None:
    """And no cable is judged wrong."""
    made = plan(160, 5, {}, mix=INFINIBAND)

    wrong, moved, _ = found(made)

    assert ([], []) == (wrong, moved)


def test_where_a_rail_belongs() -> None:
    """The leaf that it was meant to be on."""
    made = fleet(1, "rail", 1.0)
    meant = {
        odd["hosts"][0]: odd["detail"]["meant"] for odd in made.truth["oddities"] if odd["kind"] == "rail-wrong-leaf"
    }

    wrong, _, _ = found(made)

    assert meant == {each.hosts[0]: next(iter(each.should.values())) for each in wrong if each.kind == "rail-elsewhere"}


def test_a_link_that_can_do_no_more_is_not_slow() -> None:
    """iblinkinfo has what both ends can do."""
    made = plan(240, 2, FAULTS | {"uplink-older": 2}, mix=INFINIBAND)
    older = [each["hosts"] for each in made.truth["noise"] if each["kind"] == "uplink-older"]
    said, by_ibnetdiscover = set(), set()
    for name in made.fabrics:
        said |= cabling.told(*cabling.found({name: "".join(made.fabric_text(name, "iblinkinfo"))}))
        by_ibnetdiscover |= cabling.told(*cabling.found({name: "".join(made.fabric_text(name))}))

    assert cabling.planted(made.truth) == said
    assert {("uneven-pace", each) for each in older} == by_ibnetdiscover - said
    assert older


def test_a_file_that_lost_its_tabs() -> None:
    """As mail and chat do it: the same answer."""
    made = plan(60, 2, {"cable-swapped-rails": 1}, mix={"a100-ib": 1})
    text = "".join(made.fabric_text())

    assert cabling.found({"f": text}) == cabling.found({"f": text.replace("\t", " ")})
    assert cabling.planted(made.truth) == cabling.told(*cabling.found({"f": text.replace("\t", " ")}))


def test_the_plan_of_ufm(tmp_path: Path, capfdbinary: Any) -> None:
    """It has what was planted and no more; that of another fabric is refused."""
    made = plan(60, 2, {"cable-swapped-rails": 1, "cable-swapped-ports": 1, "uplink-missing": 1}, mix={"a100-ib": 1})
    other = plan(60, 3, {}, mix={"gb200-ib": 1})
    for name, whose, form in (("f", made, "ibnetdiscover"), ("ndt", made, "ndt"), ("other", other, "ndt")):
        (tmp_path / name).write_text("".join(whose.fabric_text(form=form)))
    fabric = ["fleet", "cables", "--fabric", str(tmp_path / "f")]

    assert 0 == run([*fabric, "--plan", str(tmp_path / "ndt"), "--format", "json"])
    wrong = msgspec.json.decode(capfdbinary.readouterr().out, type=Cables).wrong
    assert 2 == run([*fabric, "--plan", str(tmp_path / "other")])
    assert b"is it the plan of another fabric" in capfdbinary.readouterr().err

    kinds = {odd["kind"]: odd for odd in made.truth["oddities"]}
    moved = [each.end.split()[0] for each in wrong if each.state == "swapped"]
    swapped = [*kinds["cable-swapped-rails"]["hosts"] * 2, *kinds["cable-swapped-ports"]["hosts"]]
    assert sorted(swapped) == sorted(moved)
    (missing,) = [each for each in wrong if each.state != "swapped"]
    assert "missing" == missing.state
    assert kinds["uplink-missing"]["subject"].removeprefix("switch:") in (missing.end, missing.should)


def test_one_swapped_pair_of_uplinks_merges_no_pods_for_slurm() -> None:
    """Three tiers: each pod stays a switch of its own, and all names are such as the switches have."""
    said = []
    for faults in ({"uplink-swapped": 1}, {}):
        made = plan(100, 2, faults, mix={"a100-ib": 1}, layout="fat-tree")
        assert len(faults) == len(made.truth["oddities"])
        cluster = build([FabricFile("f", read_fabric("".join(made.fabric_text()), "f"))], None)
        said.append(
            [line for line in format_conf(cluster, build_views(cluster)).splitlines() if line.startswith("SwitchName")]
        )
    names = [line.split()[0].partition("=")[2] for line in said[0]]

    assert said[0] == said[1]
    assert len(names) == len(set(names)) > 50
    known = re.compile(r"a100-ib-1-leaf-\d+|a100-ib-1-(spine|core)(-\d)?")
    assert [] == [name for name in names if not known.fullmatch(name)]


def test_two_leaves_that_are_joined_with_each_other_are_one_pair() -> None:
    """By several cables."""
    made = plan(8, 1, {}, mix={"h100-ib": 1}, layout="pair")
    (view,) = build_views(build([FabricFile("f", read_fabric("".join(made.fabric_text()), "f"))], None))

    assert "1 of 1 pairs of them are joined" in classify_fabric(view).evidence
    assert ([], []) == found(made)[:2]


def test_by_lldp_of_the_reports(tmp_path: Path, capfdbinary: Any, real_commands: None) -> None:
    """RoCE: no fabric file; through ingest and the command line. NVLink domains are racks."""
    faults = dict.fromkeys(("cable-swapped-rails", "cable-swapped-ports", "rail-wrong-leaf", "port-shared"), 1)
    made = plan(104, 1, faults, mix={"h200-roce": 0.5, "gb200-ib": 0.2, "l40s-tor": 0.3})
    mine = {odd["kind"]: odd for odd in made.truth["oddities"] if odd["hosts"][0] in _roce(made)}
    with (tmp_path / "reports.ndjson").open("wb") as file:
        for data in made.reports(0, one_line=True):
            file.write(data.strip() + b"\n")
    assert 0 == run(
        ["fleet", "ingest", str(tmp_path / "reports.ndjson"), "--dataset", str(tmp_path / "d"), "--jobs", "1"]
    )
    capfdbinary.readouterr()

    assert 0 == run(["fleet", "topology", "--dataset", str(tmp_path / "d"), "--format", "json"])
    answer = msgspec.json.decode(capfdbinary.readouterr().out)
    assert 0 == run(["fleet", "cables", "--dataset", str(tmp_path / "d"), "--format", "json"])
    cables = msgspec.json.decode(capfdbinary.readouterr().out)

    said = cabling.told(
        msgspec.convert(answer["breaks"], list[CablingFault]), msgspec.convert(cables["wrong"], list[Cable])
    )
    assert {(kind, "+".join(sorted(odd["hosts"]))) for kind, odd in mine.items()} == said
    assert mine
    assert ["rail-optimized"] == [fabric["kind"] for fabric in answer["fabrics"]]
    racks = [(row["nodes"], row["gpus"]) for row in answer["nvlink"]]
    nodes = sum(group["nodes"] for group in made.truth["groups"] if group["platform"].startswith("gb200"))
    assert [(18, 72), (nodes - 18, 4 * (nodes - 18))] == racks


def _roce(made: Plan) -> set[str]:
    from agent.fleet.hostlist import unfold

    return {
        host for group in made.truth["groups"] if group["link_layer"] == "Ethernet" for host in unfold(group["hosts"])
    }
