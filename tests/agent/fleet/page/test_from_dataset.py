"""A dataset as the real ingest made it, compared node by node with the reports that it was made from."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

pytest.importorskip("duckdb", reason="the extra fleet is not installed")
from agent.fleet.cluster.answer import FabricRow, TopologyAnswer
from agent.fleet.cluster.build import build
from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.engines import connect
from agent.fleet.hostlist import fold
from agent.fleet.ingest.run import IngestOptions, ingest
from agent.fleet.page.answers import NodeIndex, build_cluster
from agent.fleet.page.devices import format_gbyte_s
from agent.fleet.page.from_dataset import PageOptions, list_finding_changes, list_verdicts_by_day
from agent.fleet.page.from_dataset import build_scene as made_of
from agent.fleet.page.page import page
from agent.fleet.page.reading import read_errors
from agent.fleet.page.scene import SEVERITY, STATES, FleetScene, list_looks, sort_worst_first
from agent.model.finding import Check
from agent.model.reasons import needs_sample
from agent.reports import encode_report
from bench.fleet.plan import plan
from tests.agent.fleet import small
from tests.agent.fleet.cluster.given import read_whole
from tests.agent.fleet.small import finding
from tests.conftest import MakeOnce
from tests.machines import scan_machine

FAULTS = {
    "gpu-link-narrow": 1, "driver": 1, "nvlink-fewer": 1, "mtu-1500": 1, "unknown-checks": 1, "stale": 1, "vbios": 1,
    "nic-firmware-one": 1, "drift-driver": 1, "duplicate-serial": 1, "rail-wrong-leaf": 1, "damaged-truncated": 1,
}  # fmt: skip


class Fleet(NamedTuple):
    """The page's scene, the newest report of every node, and what was planted."""

    scene: FleetScene
    reports: dict[str, dict[str, Any]]
    truth: dict[str, Any]

    def at(self, host: str) -> int:
        """Its number on the page."""
        return self.scene.nodes.names.index(host)

    def hosts(self, kind: str) -> list[str]:
        """Nodes that this was planted on."""
        return sorted(host for odd in self.truth["oddities"] if odd["kind"] == kind for host in odd["hosts"])

    def said(self, anchor: str, words: str) -> list[str]:
        """The nodes of all that is said in that section with those words in it."""
        nodes = self.scene.nodes.names
        section = next(each for each in self.scene.sections if each.anchor == anchor)
        cards = [each for each in section.said if words in " ".join((each.words, *(text for _, text in each.more)))]
        return sorted({nodes[at] for each in cards for at in each.nodes})


@pytest.fixture(scope="module")
def fleet(make_once: MakeOnce) -> Fleet:
    _, result = make_once("page", _make)
    assert isinstance(result, Fleet)
    return result


def _make(place: Path) -> Fleet:
    fleet = plan(100, 7, FAULTS, sweeps=2, mix={"h100-ib": 2, "h200-roce": 2, "gb200-ib": 1})
    reports: dict[str, dict[str, Any]] = {}
    for sweep in (0, 1):
        source = place / f"{sweep}.ndjson"
        with source.open("wb") as file:
            for data in fleet.reports(sweep, one_line=True):
                file.write(data.replace(b"\n", b" ") + b"\n")
                _keep(reports, data)
        ingest(IngestOptions(sources=[str(source)], dataset=str(place / "dataset")), lambda _stage, _done: None)
    engine = connect(None, str(place / "dataset"))
    wires = read_wiring(build_from_reports(engine))
    assert wires == read_wiring(build([], read_whole(engine)))  # what it leaves out tells nothing
    scene = made_of(engine, lambda: wires, PageOptions(), datetime(2026, 1, 16, tzinfo=timezone.utc), quarantined=2)
    engine.close()
    return Fleet(scene, reports, fleet.truth)


def _keep(reports: dict[str, dict[str, Any]], data: bytes) -> None:
    try:
        told = json.loads(data)
    except ValueError:
        return
    reports[told["node"]["hostname"]] = told


def test_every_node_is_there_with_its_verdict(fleet: Fleet) -> None:
    """As its newest report has it."""
    nodes = fleet.scene.nodes

    assert sorted(fleet.reports) == sorted(nodes.names)
    told = dict(zip(nodes.names, nodes.verdicts, strict=True))
    assert {host: report["summary"]["verdict"] for host, report in fleet.reports.items()} == told


def test_only_what_is_ok_looks_ok(fleet: Fleet) -> None:
    """Old and unjudged nodes have looks of their own; the worst come first."""
    shown = dict(zip(fleet.scene.nodes.names, list_looks(fleet.scene.nodes), strict=True))
    (old,), (unknown,), (narrow,) = (fleet.hosts(each) for each in ("stale", "unknown-checks", "gpu-link-narrow"))

    assert ("stale", "unknown", "error") == (shown[old], shown[unknown], shown[narrow])
    verdicts = {host: report["summary"]["verdict"] for host, report in fleet.reports.items()}
    assert {host for host, each in shown.items() if each == "ok"} == {
        host for host, each in verdicts.items() if each == "ok"
    } - {old}
    worst = [fleet.scene.nodes.names[at] for at in sort_worst_first(fleet.scene.nodes)]
    assert worst.index(narrow) < worst.index(unknown) < worst.index(old)
    assert len(worst) == sum(each != "ok" for each in shown.values())


def test_every_rule_of_every_node_is_as_reported(fleet: Fleet) -> None:
    """In one order for all; rules that need an earlier sample are judged with that of the sweep before."""
    told = fleet.scene.nodes.judged
    later: set[str] = set()
    for host, report in fleet.reports.items():
        shown = dict(zip(told.rules, told.vectors[told.codes[fleet.at(host)]], strict=True))
        pending = {each["rule"] for each in report["checks"] if needs_sample(msgspec.convert(each, Check))}
        states = {each["rule"]: STATES[each["state"]] for each in report["checks"]}
        assert set(states) == set(shown)
        differing = {rule for rule, state in states.items() if shown[rule] != state}
        assert differing <= pending
        later |= differing
    assert "ib-hwcounter-transport" in later


def test_every_finding_of_every_node_is_there(fleet: Fleet) -> None:
    """With its words and what was seen."""
    nodes = fleet.scene.nodes
    for host, report in fleet.reports.items():
        code = nodes.found_codes[fleet.at(host)]
        found = [nodes.found[each] for each in nodes.found_sets[code]] if code >= 0 else []
        names = ("rule", "severity", "label", "summary", "impact", "remedy")
        assert sorted(tuple(each[name] for name in names) for each in report["findings"]) == sorted(
            (each.rule, each.severity, each.label, each.summary, each.impact, each.remedy) for each in found
        )
    (narrow,) = fleet.hosts("gpu-link-narrow")
    (found,) = (
        nodes.found[each]
        for each in nodes.found_sets[nodes.found_codes[fleet.at(narrow)]]
        if nodes.found[each].severity == "error"
    )
    assert found.evidence
    assert any("x8" in each.value or "8" in each.value for each in found.evidence)


def test_a_rail_is_a_cell_with_its_rate_leaf_and_findings(fleet: Fleet) -> None:
    """Of every rail that the report names."""
    told = fleet.scene.nodes.rails
    for host, report in fleet.reports.items():
        rails = [each for each in report["topology"]["nics"] if each["role"] == "rail"]
        code = told.codes[fleet.at(host)]
        cells = told.sets[code] if code >= 0 else []
        assert list(range(len(rails))) == sorted(each.number for each in cells)
        rates = sorted(f"{each['ports'][0]['rate_gbit_s']:g} Gbit/s" for each in rails)
        assert rates == sorted(told.rates[each.rate] for each in cells)
        bad = {
            device
            for each in report["findings"]
            for device in each["devices"] or [each["subject"].partition(":")[2].partition("/")[0]]
            if each["severity"] != "info"
        }
        assert len(bad & {each["id"] for each in rails}) == sum(each.severity > SEVERITY["info"] for each in cells)
        leaves = {each["neighbor"]["system"] for each in report["topology"]["netdevs"] if each.get("neighbor")}
        if leaves:
            assert leaves == {told.leaves[each.leaf] for each in cells}


def test_a_fault_of_all_rails_is_marked_at_each(tmp_path: Path) -> None:
    """It is one finding of the node."""
    report = msgspec.structs.replace(scan_machine("", "ib-no-sm"), generated_at=small.at(0))
    small.take(tmp_path / "d", encode_report(report))
    engine = connect(None, str(tmp_path / "d"))
    now = datetime(2026, 1, 16, tzinfo=timezone.utc)
    scene = made_of(engine, lambda: read_wiring(build_from_reports(engine)), PageOptions(), now)
    engine.close()

    assert [SEVERITY["critical"]] * 8 == [rail.severity for rails in scene.nodes.rails.sets for rail in rails]


def test_metrics_are_the_lowest_of_the_report(fleet: Fleet) -> None:
    """Slowest link of GPUs and rails; and the node with a narrow one is under its class's usual."""
    metric = next(each for each in fleet.scene.nodes.metrics if each.key == "pcie")
    for host, report in fleet.reports.items():
        links = {each["id"]: each["link"] for each in report["topology"]["pci"] if each["link"]}
        devices = [each["pci"] for each in report["topology"]["gpus"]]
        devices += [each["pci"] for each in report["topology"]["nics"] if each["role"] == "rail"]
        sure = [links[each] for each in devices if each in links and links[each]["quality"]["state"] == "conclusive"]
        code = metric.codes[fleet.at(host)]
        lowest = min((each["bandwidth_gbyte_s"] for each in sure), default=None)
        assert (None if lowest is None else format_gbyte_s(lowest)) == (metric.labels[code] if code >= 0 else None)
    assert fleet.hosts("gpu-link-narrow") == [fleet.scene.nodes.names[at] for at in metric.below]
    nvlink = next(each for each in fleet.scene.nodes.metrics if each.key == "nvlink")
    assert fleet.hosts("nvlink-fewer") == [fleet.scene.nodes.names[at] for at in nvlink.below]


def test_answers_name_the_planted_nodes(fleet: Fleet) -> None:
    """By number, so that the map can show them."""
    assert fleet.hosts("vbios") == fleet.said("outliers", "VBIOS")
    assert fleet.hosts("driver")[0] in fleet.said("outliers", "driver")
    assert fleet.hosts("nic-firmware-one")[0] in fleet.said("findings", "NIC firmware is 28.")
    assert fleet.hosts("drift-driver") == fleet.said("drift", "driver")
    assert fleet.hosts("duplicate-serial") == fleet.said("duplicates", "serial number")
    assert fleet.hosts("rail-wrong-leaf")[0] in fleet.said("cluster", "leaf")
    for odd in ("gpu-link-narrow", "mtu-1500", "nvlink-fewer"):
        (host,) = fleet.hosts(odd)
        assert host in fleet.said("findings", "")


def test_coverage_adds_up(fleet: Fleet) -> None:
    """Each node once in each rule; the old one apart, and reasons where there is something unknown."""
    (old,) = fleet.hosts("stale")
    states = {each["rule"]: each["state"] for each in fleet.reports[old]["checks"]}
    for each in fleet.scene.coverage:
        total = each.passed + each.failed + each.unknown + each.not_applicable + each.stale + each.missing
        assert len(fleet.reports) == total
        assert (each.rule in states) == each.stale
        assert not each.unknown or each.reasons


def test_one_fault_is_one_card(fleet: Fleet) -> None:
    """What differs from peers because of a finding is reported there, and is no outlier beside it; all are counted."""
    (section,) = [each for each in fleet.scene.sections if each.anchor == "outliers"]
    told = [text for each in fleet.scene.sections[0].said for name, text in each.more if name == "compared with peers"]
    joined, _, of = section.note.partition(".")[2].strip().partition(" differences")[0].partition(" of ")

    assert {"pcie-width", "rail-mtu", "gpu-nvlinks-active"}.isdisjoint(each.about for each in section.said)
    assert (len(told), len(told) + len(section.said)) == (int(joined), int(of))


def test_classes_are_named_by_models(fleet: Fleet) -> None:
    """ConnectX-7 with its board; once above the differences of a class."""
    assert all("x ConnectX-7 (MT_" in label for label in fleet.scene.nodes.classes.labels)
    assert all(each.group not in each.words for section in fleet.scene.sections for each in section.said if each.group)


def test_scalable_units_and_domains_are_places(fleet: Fleet) -> None:
    """Units where LLDP tells leaves, domains where NVLink leaves the node; nothing for the others."""
    places = {each.key: each for each in fleet.scene.nodes.places}
    roce = {
        host for host, report in fleet.reports.items() if any(n.get("neighbor") for n in report["topology"]["netdevs"])
    }
    gb200 = {host for host, report in fleet.reports.items() if "GB200" in report["topology"]["gpus"][0]["name"]}

    known = {
        key: {fleet.scene.nodes.names[at] for at, code in enumerate(each.codes) if code >= 0}
        for key, each in places.items()
    }
    assert roce == known["unit"]
    assert gb200 == known["domain"]


def test_the_page_says_it_all(fleet: Fleet) -> None:
    """And what could not be read."""
    text = page(fleet.scene)

    assert "2 reports could not be read" in text
    assert "; fleet drift compares the reports of a node (" in text
    assert "1 could not be checked and 1 is stale (no report for 24 h): not counted as ok." in text
    assert fold(fleet.hosts("duplicate-serial")) in text
    assert len(text) < 600_000


def test_several_fabrics_are_numbered(fleet: Fleet) -> None:
    fabric = FabricRow(
        kind="rail-optimized", sure="sure", evidence=[], levels=1, oversubscription=None, hosts=1, ports=1, cables=1,
        switches=2, rows=[], units=[], in_no_unit=[],
    )  # fmt: skip
    one = TopologyAnswer(sources=[], fabrics=[fabric], nvlink=[], nvlink_words="", breaks=[], notes=[])
    two = msgspec.structs.replace(one, fabrics=[fabric, fabric])
    first, both = (build_cluster(answer, NodeIndex(fleet.scene.nodes)).note for answer in (one, two))
    assert first == "rail-optimized: 1 host on 2 switches, 0 scalable units."
    assert both == f"Fabric 1, {first} Fabric 2, {first}"


def test_a_fleet_that_stopped_reporting_is_named(tmp_path: Path) -> None:
    small.take(tmp_path / "d", small.report())
    engine = connect(None, str(tmp_path / "d"))
    later, wires = PageOptions(now=datetime(2026, 1, 18, 8)), read_wiring(build_from_reports(engine))  # noqa: DTZ001  # UTC
    notes = [made_of(engine, lambda: wires, given, datetime(2026, 1, 18)).notes for given in (PageOptions(), later)]  # noqa: DTZ001  # UTC
    engine.close()
    assert [[], ["No report arrived for more than 1 day: check how reports are collected"]] == [
        [note for note in of_page if "report" in note] for of_page in notes
    ]


def test_days_and_changes_of_findings(tmp_path: Path) -> None:
    """The state at the end of each day, up to the last report; what came and went in the 24 hours before the newest."""

    def made(host: str, hour: float, verdict: str, *rules: str) -> bytes:
        return small.report(
            host, hour, summary={"verdict": verdict, "counts": {}}, findings=[finding(rule) for rule in rules]
        )

    small.take(
        tmp_path / "d",
        made("a", 0, "ok"), made("a", 1, "error", "r1"), made("a", 30, "warning", "r1", "r2"),
        made("a", 50, "ok", "r2"), made("b", 0, "unknown"), made("c", 50, "error", "r1"),
    )  # fmt: skip
    engine = connect(None, str(tmp_path / "d"))
    newest = datetime(2026, 1, 17, 10)  # noqa: DTZ001  # UTC without a zone is what a dataset has
    last = {"a": newest, "b": datetime(2026, 1, 15, 8), "c": newest, "d": None}  # noqa: DTZ001
    days = list_verdicts_by_day(engine, last, newest)
    changes = list_finding_changes(engine, newest)
    engine.close()
    assert {node: text[-4:] for node, text in days.items()} == {"a": ".ewo", "b": ".u..", "c": "...e"}
    assert {len(text) for text in days.values()} == {14}
    assert changes == {"a": ["gone: r1 on GPU0", "new: r2 on GPU0"]}


def test_a_severity_that_became_another_is_neither_new_nor_gone(tmp_path: Path) -> None:
    small.take(
        tmp_path / "d",
        *(small.report("a", hour, findings=[finding("r1", severity=severity)])
          for hour, severity in ((0, "warning"), (1, "error"), (2, "critical"))),
        *(small.report("b", hour, findings=[finding("r1", severity="info")] * there)
          for hour, there in ((0, 0), (1, 1), (2, 0))),
    )  # fmt: skip
    engine = connect(None, str(tmp_path / "d"))
    assert list_finding_changes(engine, datetime(2026, 1, 15, 10)) == {}  # noqa: DTZ001
    engine.close()


def test_error_counters_are_summed_and_others_only_show_that_they_were_read(tmp_path: Path) -> None:
    def node(name: str, **counters: int) -> bytes:
        port = {"port": 1, "counters": counters}
        return small.report(name, topology={"nics": [{"id": "0000:01:00.0", "label": "mlx5_0", "ports": [port]}]})

    small.take(
        tmp_path / "dataset",
        node("bad", symbol_error=3, link_downed=2, port_rcv_data=7, VL15_Dropped=1),
        node("upper", PORT_XMIT_DISCARDS=5),
        node("good", port_rcv_data=9),
        node("silent"),
    )
    engine = connect(None, str(tmp_path / "dataset"))
    assert read_errors(engine) == ({"bad": 5, "upper": 5}, {"bad", "upper", "good"})
    engine.close()
