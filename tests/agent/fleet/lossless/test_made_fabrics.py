"""Made fabrics with one planted fault each: it is named, at its port, and nothing beside it. Real outputs of switches,
and a fabric that another hand made.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from agent.fleet.cluster.cabling_plan import read_plan
from agent.fleet.lossless.answer import Inputs, LosslessAnswer, judge
from agent.fleet.lossless.host_ports import HostPort
from bench.switches.fabric import SYSTEMS
from bench.switches.faults import FAULTS, Plant
from probes.switches.collection import read_collection
from tests.agent.fleet.lossless.made import judge_made, make, named
from tests.conftest import CORPUS, sample_of

LOSSY = {
    "sw-dscp-lossy", "sw-pfc-one-end", "sw-class-differs", "sw-trust-differs", "sw-ecn-drops", "sw-mtu-small",
    "sw-lossless-drops", "sw-storm", "sw-pause-unheard", "sw-pfc-on-no-class",
    "sw-pfc-not-operational", "sw-lossy-drops",
}  # fmt: skip
CASES = sample_of(
    [
        (rule, change, system, to_host)
        for rule, change, systems, kinds in FAULTS
        if rule != "sw-rail-elsewhere"  # of a majority of hosts: test_cabling.py
        for system in systems
        for to_host in kinds
    ]
)
SAMPLES = CORPUS / "switches"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_healthy_fabric_has_no_finding(tmp_path: Path, system: str) -> None:
    """Trunks are proved by two collections, host links set up; every pair has a path."""
    answer = judge_made(make(system), tmp_path)

    assert named(answer, "info") == set()
    assert answer.counts == {"proved": 4, "set": 8, "trimmed": 0, "unknown": 0, "lossy": 0}
    assert answer.paths.by_verdict == {"set": 24}
    assert answer.not_read == []
    assert {hop.told_by for hop in answer.hops} == {"both"}


@pytest.mark.parametrize(
    ("rule", "change", "system", "to_host"), CASES, ids=[f"{r} {s} {'host' if h else 'trunk'}" for r, _, s, h in CASES]
)
def test_a_planted_fault_is_named_and_nothing_beside_it(
    tmp_path: Path, rule: str, change: Plant, system: str, to_host: bool
) -> None:
    fabric = make(system)
    port = next(fabric.ports(to_host))
    change(fabric, port)

    answer = judge_made(fabric, tmp_path)

    assert named(answer) == {(rule, port.subject)}
    lossy = [hop for hop in answer.hops if hop.verdict == "lossy"]
    assert [rule in hop.findings for hop in lossy] == ([True] if rule in LOSSY else [])
    assert sum(hop.verdict == "proved" for hop in answer.hops) == 4 - (not to_host)


def test_one_collection_proves_nothing(tmp_path: Path) -> None:
    answer = judge_made(make("sonic"), tmp_path, before=False)

    assert answer.counts["proved"] == 0
    assert {hop.reason for hop in answer.hops if hop.a.kind == "switch"} >= {
        "not proved: leaf1: one collection, two are needed (--before)"
    }


def test_little_traffic_proves_nothing(tmp_path: Path) -> None:
    fabric = make("sonic")
    for port in fabric.ports():
        port.now["bytes"] = port.before["bytes"] + 10**9 - 1

    answer = judge_made(fabric, tmp_path)

    assert answer.counts["proved"] == 0


def test_a_fault_of_every_port_is_one_finding(tmp_path: Path) -> None:
    """One map for all ports of a switch: one cause, and each port in it."""
    fabric = make("sonic")
    for port in fabric.switches["leaf1"].ports:
        port.priorities = {26: 0}

    [finding] = [row for row in judge_made(fabric, tmp_path).findings if row.severity != "info"]

    assert (finding.rule, finding.subject) == ("sw-dscp-lossy", "switch:leaf1")
    assert sorted(finding.devices) == sorted(f"swport:leaf1/Ethernet{number * 8}" for number in range(6))


def test_another_marking_is_judged(tmp_path: Path) -> None:
    """What no host marks, as asked: DSCP 10 is in priority 0 everywhere."""
    answer = judge_made(make("sonic"), tmp_path, dscp=10)

    assert answer.counts["lossy"] == len(answer.hops)
    assert {finding.rule for finding in answer.findings} == {"sw-dscp-lossy"}


def test_a_host_without_pfc_is_the_end_to_blame(tmp_path: Path) -> None:
    """The switch pauses a host that does not heed it."""
    fabric = make("cumulus")
    fabric.rails[0].pfc = []

    answer = judge_made(fabric, tmp_path)

    assert named(answer) == {("sw-pfc-one-end", "host:gpu00001/eth0")}
    [finding] = answer.findings
    assert all(step.do.startswith("Enable PFC for priority 3 on the host") for step in finding.steps)


def test_a_switch_without_outputs_leaves_its_hops_unknown(tmp_path: Path) -> None:
    fabric = make("sonic")
    del fabric.switches["spine2"]
    fabric.lengths = {}

    answer = judge_made(fabric, tmp_path)

    assert answer.counts["unknown"] == 2
    assert {hop.settle for hop in answer.hops if hop.verdict == "unknown"} == {"spine2: its report, or its outputs"}
    assert answer.findings == []


def test_drops_since_the_start_are_a_warning_and_no_verdict(tmp_path: Path) -> None:
    """They may be older than the configuration; a host that lost packets too makes them an error."""
    fabric = make("sonic")
    port = next(fabric.ports(True))
    port.now["group_drops"] = 4211

    alone = judge_made(fabric, tmp_path / "alone", before=False)
    next(rail for rail in fabric.rails if rail.port == port.name and rail.switch == port.switch).losses = 917
    both = judge_made(fabric, tmp_path / "both", before=False)

    assert [(row.severity, row.rule) for row in alone.findings] == [("warning", "sw-lossless-drops")]
    assert [(row.severity, row.rule) for row in both.findings] == [("error", "sw-lossless-drops")]
    assert (alone.counts["lossy"], both.counts["lossy"]) == (0, 1)


def test_a_watchdog_on_trunks_only_is_named(tmp_path: Path) -> None:
    """And one on host ports only is a design in use: a note."""
    trunks, hosts = make("sonic"), make("sonic")
    for port in trunks.ports(True):
        port.watchdog = False
    for port in hosts.ports(False):
        port.watchdog = False

    on_trunks = judge_made(trunks, tmp_path / "trunks")
    on_hosts = judge_made(hosts, tmp_path / "hosts")

    assert {row.rule for row in on_trunks.findings} == {"sw-pfcwd-partial"}
    assert [(row.severity, row.subject) for row in on_hosts.findings if "leaf" in row.subject] == [
        ("info", "switch:leaf1"),
        ("info", "switch:leaf2"),
    ]


def test_a_class_that_changes_on_the_way(tmp_path: Path) -> None:
    """Both ends of each trunk of one spine agree on priority 4, and the leaves' other ports on 3."""
    fabric = make("sonic")
    for port in fabric.switches["spine1"].ports:
        for end in (port, fabric.port(port.far, port.far_port)):
            end.priorities, end.pfc = {26: 4, 48: 6}, [4]

    answer = judge_made(fabric, tmp_path)

    assert {row.rule for row in answer.findings} == {"sw-path-class-changes"}


def test_uneven_ecn(tmp_path: Path) -> None:
    """By factors of more than two, where three of four agree."""
    fabric = make("sonic")
    next(fabric.ports(True)).ecn = (100_000, 3_000_000)

    assert {row.rule for row in judge_made(fabric, tmp_path).findings} == {"sw-ecn-uneven"}


def test_a_host_that_pauses_without_being_paused(tmp_path: Path) -> None:
    fabric = make("sonic")
    port = next(fabric.ports(True))
    port.now["rx"] = port.before["rx"] + 50_000

    [finding] = judge_made(fabric, tmp_path).findings

    assert (finding.rule, finding.severity) == ("sw-storm-source", "warning")
    assert port.far in finding.summary


def test_switches_that_pause_each_other_in_a_cycle(tmp_path: Path) -> None:
    """leaf1 > spine1 > leaf2 > spine2 > leaf1; the far ends receive what is sent."""
    fabric = make("sonic")
    ring = ["leaf1", "spine1", "leaf2", "spine2", "leaf1"]
    for here, there in pairwise(ring):
        port = next(port for port in fabric.switches[here].ports if port.far == there)
        port.now["tx"] = port.before["tx"] + 50_000
        far = fabric.port(port.far, port.far_port)
        far.now["rx"] = far.before["rx"] + 50_000

    assert {row.rule for row in judge_made(fabric, tmp_path).findings} == {"sw-pause-loop"}


def test_pauses_both_ways_on_one_link_are_no_cycle(tmp_path: Path) -> None:
    fabric = make("sonic")
    port = next(fabric.ports(False))
    for end in (port, fabric.port(port.far, port.far_port)):
        end.now["tx"] = end.before["tx"] + 50_000
        end.now["rx"] = end.before["rx"] + 50_000

    assert judge_made(fabric, tmp_path).findings == []


def test_switches_alone_judge_host_ports_by_one_end(tmp_path: Path) -> None:
    """Without reports a host's end is unknown; trunks are judged as before."""
    answer = judge_made(make("sonic"), tmp_path, hosts=False)

    assert answer.counts == {"proved": 4, "set": 0, "trimmed": 0, "unknown": 8, "lossy": 0}
    assert answer.findings == []


def test_a_way_out_of_the_fabric_is_not_judged(tmp_path: Path) -> None:
    """A port without PFC to a router of which nothing was given; with PFC its hop is unknown."""
    fabric = make("sonic")
    port = next(fabric.ports(False))
    port.told_far, port.far_alias, port.pfc = ("border1", "Ethernet7"), "Ethernet7", []
    fabric.switches[port.far].ports = [far for far in fabric.switches[port.far].ports if far.far_port != port.name]
    fabric.lengths = {}

    answer = judge_made(fabric, tmp_path)

    assert answer.findings == []
    assert answer.counts["lossy"] == 0
    assert any("1 port without PFC" in note for note in answer.notes)


def test_no_pfc_on_some_ports_only_is_less_sure(tmp_path: Path) -> None:
    """Without reports what is at the port is not known: a warning where other ports of the switch have PFC."""
    fabric = make("sonic")
    port = next(fabric.ports(True))
    port.pfc = []

    [finding] = judge_made(fabric, tmp_path, hosts=False).findings

    assert (finding.rule, finding.severity, finding.subject) == ("sw-pfc-off", "warning", port.subject)


def test_every_sample_is_read_or_refused_with_a_reason() -> None:
    """Each by itself: no traceback, and never silence."""
    for path in sorted(path for path in SAMPLES.rglob("*") if path.is_file()):
        result = read_collection([str(path)])

        [file] = result.files
        assert file.read_as or file.reason, path


def test_default_renders_are_lossy_for_the_commonest_dscp() -> None:
    """The one that has PFC nowhere by a rule of its own, as two ports of another that have none."""
    switches = read_collection([str(SAMPLES / "sonic" / "config_db")]).switches
    renders = {name: switch for name, switch in switches.items() if name.startswith("qos-")}

    rules = {}
    for name, switch in renders.items():
        answer = judge(Inputs({name: switch}, {}, [], [], [], 26))
        assert {hop.verdict for hop in answer.hops} == {"lossy"}, name
        rules[name] = {finding.rule for finding in answer.findings}

    assert len(renders) == 5
    assert rules.pop("qos-no-config") == {"sw-pfc-off"}
    assert all("sw-dscp-lossy" in names for names in rules.values())


def test_the_made_fabric() -> None:
    """Every planted fault, and nothing beside."""
    folder = SAMPLES / "fabric-sonic-dscp26"
    header, *lines = (line.split("\t") for line in (folder / "hosts.tsv").read_text().splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    hosts = [
        HostPort(
            row["node"], row["netdev"], int(row["rail"]), up=True, speed_gbit_s=float(row["speed_gbit_s"]),
            mtu=int(row["mtu"]), fec=row["fec"], trust=row["trust"], tagged=False,
            dscp_prio={int(a): int(b) for a, b in (pair.split(":") for pair in row["dscp_prio"].split())},
            pfc=frozenset(at for at, digit in enumerate(row["pfc"]) if digit == "1"), dscp=int(row["roce_dscp"]),
            module_metres=float(row["cable_metres"]), neighbor_name=row["neighbor_system"],
            neighbor_port=row["neighbor_port"], counters={"retransmits": int(row["retransmits"])},
        )
        for row in rows
    ]  # fmt: skip
    plan = list(read_plan((folder / "plan.csv").read_text().splitlines(keepends=True)))

    answer = judge(Inputs(read_collection([str(folder)]).switches, {}, hosts, plan, [], None, only_known_hosts=True))

    assert _found(answer) == {
        ("sw-dscp-lossy", "error", "leaf1 Ethernet16"),
        ("sw-pfc-one-end", "error", "spine2 Ethernet8"),
        ("sw-pfcwd-off", "warning", "leaf2 Ethernet256"),
        ("sw-mtu-small", "error", "leaf2 Ethernet24"),
        ("sw-fec-differs", "error", "spine1 Ethernet0"),
        ("sw-lossless-drops", "error", "leaf2 Ethernet8"),
        ("sw-ecn-missing", "warning", "leaf1 Ethernet0"),
        ("sw-headroom-short", "warning", "leaf1 Ethernet264"),
        ("sw-rail-elsewhere", "error", "leaf2 Ethernet0"),
    }
    assert len(answer.hops) == 12
    assert answer.counts["unknown"] == 0


def _found(answer: LosslessAnswer) -> set[tuple[str, str, str]]:
    return {(finding.rule, finding.severity, finding.label) for finding in answer.findings}
