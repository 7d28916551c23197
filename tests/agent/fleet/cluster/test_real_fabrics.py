"""Two real clusters: what is said of them is in their files, line by line, and nothing else is said."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from agent.fleet.cluster.answer import TopologyAnswer, build_topology_answer
from agent.fleet.cluster.build import FabricFile, build, read_generated_date
from agent.fleet.cluster.cabling_faults import CablingFault
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.picture import draw_picture
from agent.fleet.cluster.slurm import format_conf
from probes.fabric.files import read_fabric

SELENE, EXAMPLE = "selene.compute.txt", "topograph-example.out"


@cache
def judged(path: Path) -> TopologyAnswer:
    """The whole answer."""
    text = path.read_text()
    cluster = build([FabricFile(path.name, read_fabric(text, path.name), read_generated_date(text))], None)
    return build_topology_answer(cluster, build_views(cluster))


@cache
def ports(path: Path) -> dict[str, dict[str, str]]:
    """Switch -> port -> what the line says of the far end. Read by other means than the tool's."""
    result: defaultdict[str, dict[str, str]] = defaultdict(dict)
    switch = ""
    for line in path.read_text().splitlines():
        if head := re.match(r'Switch\s+\d+ "[^"]+"\s+# "MF0;([^:"]+):', line):
            switch = head[1]
        elif line.startswith("Ca"):
            switch = ""
        elif switch and (port := re.match(r'\[(\d+)\].*# "(?:MF0;)?([^:"]*)', line)):
            result[switch][port[1]] = port[2].strip()
    return dict(result)


def fabric(corpus: Path, name: str) -> Path:
    """Its file."""
    return corpus / "fabric" / name


def test_selene_is_what_it_is(corpus: Path) -> None:
    """DGX A100 SuperPOD: eight rails, three levels, 25 units; management switches are none of its rails."""
    answer = judged(fabric(corpus, SELENE))

    (only,) = answer.fabrics
    assert ("rail-optimized", "sure", 3, 1.0) == (only.kind, only.sure, only.levels, only.oversubscription)
    assert (666, 469) == (only.switches, only.hosts)
    units = [unit for unit in only.units if len(unit.rails) == 8]
    assert 25 == len(units)
    assert 458 == sum(unit.nodes for unit in units)
    assert {f"LG{number:02d}" for number in (*range(1, 19), *range(22, 29))} == {unit.name for unit in units}
    assert all([f"{unit.name}-{rail:02d}" for rail in range(1, 9)] == unit.leaves for unit in units)
    assert [(3, 140), (2, 322), (1, 204)] == [(row.row, row.switches) for row in reversed(only.rows)]
    assert ["selene.compute.txt (ibnetdiscover, Tue Feb 23 14:02:06 2021)"] == answer.sources


def test_the_example_is_what_it_is(corpus: Path) -> None:
    """Four rails, two levels, 18 up and 18 down; hosts that say nothing of themselves are not invented."""
    answer = judged(fabric(corpus, EXAMPLE))

    (only,) = answer.fabrics
    assert ("rail-optimized", "sure", 2, 1.0) == (only.kind, only.sure, only.levels, only.oversubscription)
    assert ["A09-P1-IBLEAF-01", "A09-P1-IBLEAF-02"] == [unit.name for unit in only.units][:2]
    assert 8 == len(only.units)
    assert ["72 adapters in the fabric do not name the host they are in"] == answer.notes


@pytest.mark.parametrize(("name", "kinds"), [
    (SELENE, {"missing-uplink": 28}),
    (EXAMPLE, {"swapped-cables": 1, "short-unit": 1, "missing-uplink": 9}),
])  # fmt: skip
def test_what_breaks_it(corpus: Path, name: str, kinds: dict[str, int]) -> None:
    """So many of each kind, no other."""
    result: defaultdict[str, int] = defaultdict(int)
    for each in judged(fabric(corpus, name)).breaks:
        result[each.kind] += 1

    assert kinds == result


@pytest.mark.parametrize("name", [SELENE, EXAMPLE])
def test_each_missing_cable_is_missing_in_the_file(corpus: Path, name: str) -> None:
    """The port has no line, at either end where both are named, and most peers' same port leads to that switch."""
    path = fabric(corpus, name)
    lines = ports(path)
    result = 0
    for each in judged(path).breaks:
        if each.kind != "missing-uplink":
            continue
        for place, far in each.should.items():
            switch, port = place.rsplit("/", 1)
            upper, _, far_port = far.partition("/")
            assert port not in lines[switch]
            assert not far_port or far_port not in lines[upper]
            role = re.sub(r"\d+", "#", switch)[1:]  # leaves in rows A and B are peers
            there = [ends.get(port) for peer, ends in lines.items() if re.sub(r"\d+", "#", peer)[1:] == role]
            assert there.count(upper) >= 3
            result += 1
    # 200 leaves with 20 and 320 spines with 14; 31 leaves with 18; less the cables that are in the file
    assert result == (200 * 20 - 3987 + 320 * 14 - 4464 if name == SELENE else 31 * 18 - 532)


def test_the_swap_in_the_example_is_in_the_file(corpus: Path) -> None:
    """HCA-5 and HCA-6 of one node, each where the other's peers are."""
    path = fabric(corpus, EXAMPLE)
    lines = ports(path)
    (swap,) = (each for each in judged(path).breaks if each.kind == "swapped-cables")

    assert ("b08-p1-dgx-08-c01",) == swap.hosts
    for place, own in zip(swap.ports, ("HCA-5", "HCA-6"), strict=True):
        switch, port = place.rsplit("/", 1)
        assert f"b08-p1-dgx-08-c01 {own}" == lines[switch][port]
        beside = [far.split()[-1] for at, far in lines[switch].items() if "dgx" in far and at != port]
        assert {"HCA-6" if own == "HCA-5" else "HCA-5"} == set(beside)


def test_ports_that_are_exchanged_in_the_example_are_so_in_the_file(corpus: Path) -> None:
    """`fleet cables`: c07 and c08 on each other's port of one leaf; on the other leaves they are not."""
    path = fabric(corpus, EXAMPLE)
    text = path.read_text()
    cluster = build([FabricFile(path.name, read_fabric(text, path.name))], None)
    lines = ports(path)

    result = {
        item.end: item
        for item in judge_by_pattern(cluster, build_views(cluster)).wrong
        if item.state in ("swapped", "elsewhere")
    }

    assert {"b06-p1-dgx-06-c02 HCA-1", "b06-p1-dgx-06-c07 HCA-2", "b06-p1-dgx-06-c08 HCA-2", "b08-p1-dgx-08-c01 HCA-5",
            "b08-p1-dgx-08-c01 HCA-6"} == set(result)  # fmt: skip
    assert "b06-p1-dgx-06-c08 HCA-2" == lines["B09-P1-IBLEAF-02-06"]["7"]
    assert "b06-p1-dgx-06-c07 HCA-2" == lines["B09-P1-IBLEAF-02-06"]["8"]
    assert "b06-p1-dgx-06-c07 HCA-1" == lines["B09-P1-IBLEAF-01-06"]["7"]
    assert "b06-p1-dgx-06-c02 HCA-1" == lines["B09-P1-IBLEAF-01-06"]["4"]
    assert "b06-p1-dgx-06-c02 HCA-2" == lines["B09-P1-IBLEAF-02-06"]["2"]


def wrong_places(faults: Iterable[CablingFault]) -> set[tuple[str, str]]:
    """Switches and nodes that lack a cable or have a wrong one, by kind."""
    return {
        (each.kind, end.partition("/")[0]) for each in faults for end in each.should or [each.text.split(" has ")[0]]
    }


@pytest.mark.parametrize("part", [0.03, 0.13, 0.22, 0.38, 0.46, 0.6, 0.9])
def test_a_file_that_is_cut_invents_nothing(corpus: Path, part: float) -> None:
    """Wherever it ends: whoever is said to lack a cable, or to be moved, is so in the whole file too."""
    path = fabric(corpus, EXAMPLE)
    whole = wrong_places(judged(path).breaks)
    text = path.read_text()
    for end in (int(len(text) * part), text.index("\n", int(len(text) * part)) + 1):
        cut = text[:end]
        file = FabricFile(path.name, read_fabric(cut, path.name), read_generated_date(cut))
        cluster = build([file], None)

        answer = build_topology_answer(cluster, build_views(cluster))

        assert wrong_places(answer.breaks) <= whole
        assert any("a file is cut" in note for note in answer.notes)


def test_selene_is_read_judged_and_drawn_in_seconds(corpus: Path) -> None:
    """Of the process's own time: less than three seconds where this was written."""
    path = fabric(corpus, SELENE)
    start = time.process_time()
    text = path.read_text()
    cluster = build([FabricFile(path.name, read_fabric(text, path.name))], None)
    seen = build_views(cluster)
    answer = build_topology_answer(cluster, seen)
    drawn = draw_picture(cluster, seen, answer.breaks)
    slurm = format_conf(cluster, seen)

    assert time.process_time() - start < 10
    assert len(drawn) < 100_000
    assert "SwitchName=CCORE Switches=CSPINE[1-4],MLG01-04" in slurm
