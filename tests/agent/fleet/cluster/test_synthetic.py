"""Made-up fleets with planted cable faults: every one is found, none is invented; by fabric files, and by LLDP."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.cli.main import run
from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import Break, breaks
from agent.fleet.cluster.cabling_pattern import by_pattern
from agent.fleet.cluster.expected_cables import Cable
from agent.fleet.cluster.fabric_kind import what
from agent.fleet.cluster.fabric_view import views
from bench.fleet.cables import CABLES
from bench.fleet.plan import Plan, plan
from probes.fabric.files import read_fabric

pytestmark = pytest.mark.slow
INFINIBAND = {"h100-ib": 0.5, "b200-ib": 0.2, "gb200-ib": 0.15, "a100-ib": 0.15}
FAULTS = dict.fromkeys(CABLES, 3)


@cache
def fleet(seed: int, layout: str, oversubscription: float) -> Plan:
    """240 nodes on InfiniBand."""
    return plan(240, seed, FAULTS, mix=INFINIBAND, layout=layout, oversubscription=oversubscription)


def found(made: Plan) -> tuple[list[Break], list[Cable], set[tuple[str, int, float | None]]]:
    """What breaks every fabric, which cables are not right, what each fabric is."""
    wrong: list[Break] = []
    moved: list[Cable] = []
    kinds = set()
    for name in made.fabrics:
        cluster = build([FabricFile(name, read_fabric("".join(made.fabric_text(name)), name))], None)
        seen = views(cluster)
        wrong += breaks(cluster, seen)
        moved += by_pattern(cluster, seen).wrong
        kinds |= {(kind.kind, kind.levels, kind.oversubscription) for kind in map(what, seen)}
    return wrong, moved, kinds


def told(wrong: list[Break], moved: list[Cable]) -> set[tuple[str, str]]:
    """In the words of the truth: kind, and host or place."""
    said: set[tuple[str, str]] = set()
    for each in wrong:
        if each.kind == "swapped-cables":
            said.add(("cable-swapped-rails", "+".join(each.hosts)))
        elif each.kind == "rail-elsewhere":
            said.add(("rail-wrong-leaf", each.hosts[0]))
        elif each.kind == "missing-uplink":
            said |= {("uplink-missing", end) for end in each.should}
        elif each.kind == "swapped-uplinks":
            said.add(("uplink-swapped", "+".join(sorted(each.ports))))
        elif each.kind == "fewer-uplinks":
            said.add(("uplink-half-unit", each.ports[0]))
        elif each.kind == "uneven-pace":
            said.add(("uplink-slower", next(port for port in each.ports if "leaf" in port)))
        else:
            said.add((each.kind, each.text))
    rails = {host for each in wrong for host in each.hosts}
    pairs = {
        tuple(sorted((each.end.split()[0], (each.there or "").split()[0])))
        for each in moved
        if each.state == "swapped" and each.there and each.end.split()[0] not in rails
    }
    return said | {("cable-swapped-ports", "+".join(pair)) for pair in pairs}


def truth(made: Plan) -> set[tuple[str, str]]:
    """What was planted."""
    said = set()
    for odd in made.truth["oddities"]:
        kind = "uplink-slower" if odd["kind"] in ("uplink-slow", "uplink-narrow") else odd["kind"]
        said.add((kind, "+".join(sorted(odd["hosts"])) or odd["subject"].removeprefix("switch:")))
    return said


def test_rail_optimized_fabrics() -> None:
    """Swaps, wrong leaves, missing and slow cables, each once and in its words."""
    made = fleet(1, "rail", 1.0)

    wrong, moved, kinds = found(made)

    assert truth(made) == told(wrong, moved)
    assert len(truth(made)) >= 15
    assert {kind for kind, _ in truth(made)} >= {"uplink-half-unit", "uplink-swapped"}
    assert {("rail-optimized", 2, 1.0)} == kinds


def test_fat_trees() -> None:
    """Their oversubscription is what was stated."""
    made = fleet(3, "fat-tree", 2.0)

    wrong, moved, kinds = found(made)

    assert truth(made) == told(wrong, moved)
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


def test_by_lldp_of_the_reports(tmp_path: Path, capfdbinary: Any, real_commands: None) -> None:
    """RoCE: no fabric file; through ingest and the command line. NVLink domains are racks."""
    faults = dict.fromkeys(("cable-swapped-rails", "cable-swapped-ports", "rail-wrong-leaf"), 1)
    made = plan(70, 1, faults, mix={"h200-roce": 0.7, "gb200-ib": 0.3})
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

    said = told(msgspec.convert(answer["breaks"], list[Break]), msgspec.convert(cables["wrong"], list[Cable]))
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
