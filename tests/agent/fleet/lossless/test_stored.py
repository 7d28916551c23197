"""Switches in a dataset: what changed on them, what is new, and which differ from their peers."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from agent.cli.fleet.switches import read_hops
from agent.cli.main import run
from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect
from agent.fleet.episodes.finding_changes import news_since
from agent.fleet.ingest.forgetting import ForgetRequest, forget
from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.lossless.changes import list_changes
from agent.fleet.lossless.stored_answer import read_stored_answer
from agent.fleet.lossless.text import page
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.options import ORDINARY
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.store import Folder
from agent.fleet.text.drift import page as drift_page
from agent.fleet.text.outliers import describe_outlier
from agent.fleet.text.outliers import page as outliers_page
from agent.outputs.text.lines import to_plain_text
from bench.switches.fabric import MadeFabric
from bench.switches.render import write
from probes.switches.facts import EcnProfile, PortFacts, SwitchFacts, SwitchNeighbor
from tests.agent.fleet.lossless.made import judge_made, make
from tests.agent.fleet.small import history, report, rows, take

FIRST, SECOND = "2026-01-15T08:00:00Z", "2026-01-16T08:00:00Z"
BETWEEN = datetime(2026, 1, 15, 20)  # noqa: DTZ001  # times of a dataset have no zone
LEAVES = 8


def write_lines(path: Path, moment: str, changed: bool) -> Path:
    """Leaves with two hosts and two uplinks each. `changed`: PFC is off on a port of leaf 2; a host's cable is gone."""
    lines: list[dict[str, Any]] = []
    for leaf in range(1, LEAVES + 1):
        name = f"leaf{leaf}"
        lines.append({"name": name, "nos": "eos", "model": "DCS-7060", "observed_at": moment})
        for number, (far, far_port) in enumerate(
            (
                (f"gpu{leaf}a", "eth0"),
                (f"gpu{leaf}b", "eth0"),
                ("spine1", f"Ethernet{leaf}"),
                ("spine2", f"Ethernet{leaf}"),
            )
        ):
            off = changed and (leaf, number) == (2, 2)
            lines.append({
                "switch": name, "port": f"Ethernet{number}", "oper": "up", "speed_gbit_s": 400, "mtu": 9214,
                "neighbor_name": far, "neighbor_port": far_port, "trust": "dscp", "dscp_prio": "26:3 48:6",
                "prio_queue": "3:3 6:6", "pfc": "00000000" if off else "00010000", "pfc_wd": "on",
                "headroom_bytes": 19456, "xoff_bytes": 131072 if leaf == 5 else 660480, "cable_metres_assumed": 40,
                "ecn": {"3": {"min_bytes": 150000, "max_bytes": 1500000, "percent": 100}},
            })  # fmt: skip
            lines.append({"subject": f"swport:{name}/Ethernet{number}", "name": "pfc_rx_prio3", "value": 7 + changed})
    for spine in (1, 2):
        lines.append({"name": f"spine{spine}", "nos": "eos", "model": "DCS-7800", "observed_at": moment})
        lines += [
            {
                "switch": f"spine{spine}", "port": f"Ethernet{leaf}", "oper": "up", "speed_gbit_s": 400, "mtu": 9214,
                "neighbor_name": f"leaf{leaf}", "neighbor_port": f"Ethernet{spine + 1}", "trust": "dscp",
                "dscp_prio": "26:3 48:6", "pfc": "00010000", "pfc_wd": "on", "cable_metres_assumed": 40,
            }
            for leaf in range(1, LEAVES + 1)
        ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def store(dataset: Path, lines: Path) -> None:
    assert run(["fleet", "lossless", "--switches", str(lines), "--dataset", str(dataset), "--store"]) == 0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a host and two collections of the same switches."""
    folder = tmp_path_factory.mktemp("stored")
    dataset = folder / "dataset"
    take(dataset, report("gpu9"))
    store(dataset, write_lines(folder / "first.jsonl", FIRST, changed=False))
    store(dataset, write_lines(folder / "second.jsonl", SECOND, changed=True))
    return dataset


@pytest.fixture(scope="module")
def engine(stored: Path) -> Iterator[Any]:
    engine = connect(None, str(stored))
    yield engine
    engine.close()


def test_a_setting_that_changed_is_drift(engine: Any) -> None:
    drift = find_drift(engine, BETWEEN)
    changes = {(change.subject, change.what, change.old, change.new, change.hosts) for change in drift.changes}

    assert ("switch port", "pfc", "00010000", "00000000", "switch:leaf2") in changes
    assert {change[4] for change in changes} == {"switch:leaf2"}, "nothing else changed"
    assert ("hop", "verdict", "set", "lossy", "switch:leaf2") in changes
    assert drift.added == ""
    assert drift.compared_nodes == 1
    text = to_plain_text(drift_page(drift, 100))
    assert "Switch ports" in text
    assert "switch:leaf2: pfc 00010000 -> 00000000 (Ethernet2)" in text


def test_a_finding_of_a_switch_is_news(engine: Any) -> None:
    news = [item for item in news_since(engine, BETWEEN, ORDINARY).items if item.node.startswith("switch:")]

    assert [(item.kind, item.node, item.rule, item.subject) for item in news] == [
        ("new", "switch:leaf2", "sw-pfc-one-end", "swport:leaf2/Ethernet2")
    ]


def test_a_leaf_with_another_buffer_profile_is_an_outlier(engine: Any) -> None:
    answer = find_outliers(engine)
    found = {(outlier.attribute, outlier.hosts, outlier.value, outlier.usual) for outlier in answer.outliers}

    assert ("switch-port-headroom", "switch:leaf5", "3:19456+131072", "3:19456+660480") in found
    assert {row[1] for row in found} == {"switch:leaf5", "switch:leaf2"}, "the port without PFC, too, and nothing else"
    assert answer.compared_switches == LEAVES
    assert answer.compared_nodes == 0
    assert f"{LEAVES} switches" in to_plain_text(outliers_page(answer, 100))


def test_the_same_outputs_are_stored_once(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = history(stored, "switch_port", "count(*)"), open_dataset(str(stored)).manifest.generation
    store(stored, stored.parent / "second.jsonl")

    assert "10 switches stored: 0 new, 10 known" in capsys.readouterr().err
    assert (history(stored, "switch_port", "count(*)"), open_dataset(str(stored)).manifest.generation) == before


def test_history_keeps_what_changed_alone(stored: Path) -> None:
    assert len(rows(stored, "switch_port")) == LEAVES * 6
    assert history(stored, "switch_port", "DISTINCT node", "observed_at > '2026-01-16'") == [("switch:leaf2",)]
    assert rows(stored, "switch", "DISTINCT observed_at::varchar")[0][0].startswith("2026-01-16 08:00:00")
    assert rows(stored, "hop", "switch, far_kind, verdict", "port = 'Ethernet2' AND switch = 'leaf2'") == [
        ("leaf2", "switch", "lossy")
    ]
    assert rows(stored, "counter", "DISTINCT value", "subject = 'swport:leaf1/Ethernet0'") == [(8,)]


def test_switches_are_no_nodes(stored: Path) -> None:
    assert open_dataset(str(stored)).manifest.nodes == 1
    assert rows(stored, "host", "node") == [("gpu9",)]


def test_a_host_cannot_take_the_place_of_a_switch(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    store(dataset, write_lines(tmp_path / "first.jsonl", FIRST, changed=False))  # a dataset begins with switches, too
    take(dataset, report("switch:leaf1"))

    assert rows(dataset, "host", "node") == [("switch?leaf1",)]
    assert len(rows(dataset, "switch_port", where="node = 'switch:leaf1'")) == 4

    forgotten = forget(ForgetRequest(dataset=str(dataset), nodes=["switch:leaf1"]), datetime.now(timezone.utc))
    assert forgotten.nodes == ["switch:leaf1"]
    assert rows(dataset, "switch_port", where="node = 'switch:leaf1'") == []
    assert rows(dataset, "host", "node") == [("switch?leaf1",)]


def test_a_dataset_that_cannot_be_written_stays_as_it_was(
    stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (stored / "manifest.json").read_bytes()
    third = write_lines(stored.parent / "third.jsonl", "2026-01-17T08:00:00Z", changed=False)
    monkeypatch.setattr(Folder, "replace", _refuse_write)

    assert run(["fleet", "lossless", "--switches", str(third), "--dataset", str(stored), "--store"]) == 2
    assert capsys.readouterr().err == f"error: {stored}: cannot be written: No space left on device; it is as it was\n"
    assert (stored / "manifest.json").read_bytes() == before


def _refuse_write(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_outputs_without_a_date_are_of_the_time_of_their_file(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "lines.jsonl", "no date", changed=False)
    os.utime(lines, (1_768_500_000, 1_768_500_000))
    store(tmp_path / "dataset", lines)

    assert rows(tmp_path / "dataset", "switch", "DISTINCT epoch(observed_at)") == [(1_768_500_000,)]


@pytest.mark.parametrize("more", [[], ["--dataset", "x", "--report", "y"], ["--engine", "duckdb:x"]])
def test_storing_needs_a_dataset(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = write_lines(tmp_path / "lines.jsonl", FIRST, changed=False)

    assert run(["fleet", "lossless", "--switches", str(lines), "--store", *more]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def _in_short(answer: LosslessAnswer) -> tuple[Any, ...]:
    """What a page shows of an answer."""
    hops = sorted(
        (
            *((end.kind, end.node, end.port, end.priority, end.pfc) for end in (hop.a, hop.b)),
            *(hop.verdict, hop.reason, hop.settle, hop.told_by, hop.findings),
        )
        for hop in answer.hops
    )
    findings = sorted(
        (each.rule, each.severity, each.subject, each.label, each.summary, each.remedy, each.devices,
         [(row.what, row.value, row.source) for row in each.evidence])
        for each in answer.findings
    )  # fmt: skip
    switches = sorted((switch.name, switch.nos, switch.model, switch.ports) for switch in answer.switches)
    return hops, findings, switches, answer.counts, answer.paths, answer.dscp


def test_the_page_shows_what_was_stored(stored: Path, engine: Any, tmp_path: Path) -> None:
    """The same as of the outputs themselves; where nothing was stored there is no such section."""
    kept = read_stored_answer(engine)
    assert kept is not None
    assert _in_short(kept) == _in_short(read_hops([str(stored.parent / "second.jsonl")], engine).answer)
    assert kept.dscp_source == "as stored, from outputs of 2026-01-16 08:00 UTC"

    page, none = tmp_path / "page.html", tmp_path / "none.html"
    assert run(["fleet", "html", "--dataset", str(stored), "-o", str(page)]) == 0
    assert "swport:leaf2/Ethernet2" in page.read_text() or "leaf2 Ethernet2" in page.read_text()
    take(tmp_path / "hosts", report("gpu9"))
    assert run(["fleet", "html", "--dataset", str(tmp_path / "hosts"), "-o", str(none)]) == 0
    assert "Lossless RoCE" in page.read_text()
    assert "Lossless RoCE" not in none.read_text()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nodes=switch:leaf2", "1 kind of findings on 1 switch"),
        ("nodes=switch:leaf[1,3-4]", "no findings on 3 switches"),
        ("nodes=switch:leaf2,gpu9", "1 kind of findings on 1 node and 1 switch"),
        ("nodes=gpu9", "no findings on 1 node"),
        ("class=switch: eos DCS-7060", f"1 kind of findings on {LEAVES} switches"),
    ],
)
def test_switches_are_chosen_as_nodes_are(
    where: str, said: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "findings", "--dataset", str(stored), "--where", where]) == 0
    assert capsys.readouterr().out.splitlines()[0] == said


def test_values_of_an_outlier_are_words_wherever_they_are_shown(engine: Any) -> None:
    answer = find_outliers(engine)
    [pfc] = [outlier for outlier in answer.outliers if outlier.attribute == "switch-port-pfc"]

    assert (pfc.value, pfc.usual) == ("off", "priority 3")
    assert describe_outlier(pfc) == "PFC is off; usually priority 3 (15 of 16 switch ports, 94%)."
    assert "switch:leaf2: PFC is off on Ethernet2; usually priority 3 (15 of 16 switch ports, 94%)" in (
        to_plain_text(outliers_page(answer, 200))
    )


def test_what_was_stored_is_shown_again(stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In every form; a question that needs the outputs is refused as before."""
    second = str(stored.parent / "second.jsonl")
    assert run(["fleet", "lossless", "--dataset", str(stored), "--format", "csv"]) == 0
    kept = capsys.readouterr().out
    assert run(["fleet", "lossless", "--dataset", str(stored), "--switches", second, "--format", "csv"]) == 0
    assert sorted(kept.splitlines()) == sorted(capsys.readouterr().out.splitlines())
    assert run(["fleet", "lossless", "--dataset", str(stored)]) == 0
    said = capsys.readouterr().out
    assert "sw-pfc-one-end  leaf2 Ethernet2" in said
    assert "→ Enable PFC for priority 3 on leaf2 Ethernet2 by the vendor's guide." in said
    assert run(["fleet", "lossless", "--dataset", str(stored), "--dscp", "3"]) == 2
    assert "--switches DIR is needed" in capsys.readouterr().err
    take(tmp_path / "hosts", report("gpu9"))
    assert run(["fleet", "lossless", "--dataset", str(tmp_path / "hosts")]) == 2
    assert "--switches DIR is needed" in capsys.readouterr().err


def test_a_finding_of_switches_is_shown_by_its_rule(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the share of the switches that it is compared with."""
    assert run(["fleet", "findings", "sw-pfc-one-end", "--dataset", str(stored)]) == 0
    said = capsys.readouterr().out
    assert f"1 kind of findings on 1 node and {LEAVES + 2} switches" in said
    assert f"1 of {LEAVES} switches of switch: eos DCS-7060" in " ".join(said.split())
    assert "fix: Enable PFC for priority 3 on leaf2 Ethernet2" in said


PORT = PortFacts(
    "Ethernet0", trust="dscp", dscp_prio={26: 3}, dscp_queue={26: 3}, pfc=frozenset((3,)), mtu=9100, speed_gbit_s=400,
    ecn={3: EcnProfile(True, 1000, 2000)}, watchdog_configured=True, watchdog_action="drop", fec_set="rs",
    pfc_asymmetric=False, global_pause=False, cable_metres=40, neighbors=[SwitchNeighbor("spine1", "etp1")],
)  # fmt: skip


def compare(**changed: object) -> list[tuple[str, str, str]]:
    now, then = (
        {"leaf1": SwitchFacts("leaf1", ports={port.name: port})}
        for port in (replace(PORT, **changed), PORT)  # type: ignore[arg-type]
    )
    return [(change.what, change.before, change.after) for change in list_changes(now, then, 26)]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("pfc", frozenset(), ("PFC", "priority 3", "no priority")),
        ("dscp_prio", {26: 0}, ("priority of DSCP 26", "3", "0")),
        ("trust", "none", ("trust", "dscp", "none")),
        ("watchdog_configured", False, ("PFC watchdog", "on", "off")),
        ("watchdog_action", "alert", ("action of the PFC watchdog", "drop", "alert")),
        ("ecn", {}, ("ECN of DSCP 26", "1,000 to 2,000 bytes", "none")),
        ("ecn", {3: EcnProfile(False, 5)},
         ("ECN of DSCP 26", "1,000 to 2,000 bytes", "5 to ? bytes, without marking")),
        ("pfc_asymmetric", True, ("asymmetric PFC", "off", "on")),
        ("global_pause", True, ("802.3x pause", "off", "on")),
        ("mtu", 1500, ("MTU", "9100", "1500")),
        ("speed_gbit_s", 200, ("speed in Gbit/s", "400", "200")),
        ("fec_active", "none", ("FEC", "rs", "none")),
        ("cable_metres", 5, ("cable length in metres", "40", "5")),
        ("neighbors", [SwitchNeighbor("spine2", "etp1")], ("neighbor", "spine1 etp1", "spine2 etp1")),
    ],
)  # fmt: skip
def test_each_setting(field: str, value: object, expected: tuple[str, str, str]) -> None:
    assert compare(**{field: value}) == [expected]


@pytest.mark.parametrize(
    "field", ["pfc", "dscp_prio", "trust", "watchdog_configured", "watchdog_action", "ecn", "mtu", "dscp_queue"]
)
def test_what_one_collection_does_not_state_is_no_change(field: str) -> None:
    assert compare(**{field: None}) == []
    assert compare(neighbors=[]) == []
    assert compare(neighbors=[SwitchNeighbor("spine1", "etp1"), SwitchNeighbor("x", "y")]) == []


def test_ports_and_switches_of_one_collection_are_no_change() -> None:
    there, other = ({name: SwitchFacts(name, ports={"p": PORT})} for name in ("leaf1", "leaf2"))

    assert list_changes(there, other, 26) == []
    assert list_changes(there, {"leaf1": SwitchFacts("leaf1")}, 26) == []


def test_one_change_of_many_ports(tmp_path: Path) -> None:
    """In one line of the page, with the first ports by name."""
    earlier: MadeFabric = make("sonic")
    for port in earlier.switches["leaf1"].ports:
        port.watchdog = False
    write(earlier, tmp_path / "earlier")
    fabric = make("sonic")
    (tmp_path / "all").mkdir()
    write(fabric, tmp_path / "all")
    (tmp_path / "all" / "before").rename(tmp_path / "unused")
    (tmp_path / "earlier" / "before").rename(tmp_path / "all" / "before")

    answer = judge_made(fabric, tmp_path / "all", rewrite=False)

    [change] = answer.changes
    assert (change.switch, change.what, change.before, change.after) == ("leaf1", "PFC watchdog", "off", "on")
    assert change.ports == [f"Ethernet{number * 8}" for number in range(6)]
    text = " ".join("".join(part[0] for part in line) for line in page(answer, 200))
    assert "leaf1 Ethernet0, Ethernet8," in text
    assert "PFC watchdog off -> on" in text
