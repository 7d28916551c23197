"""Real outputs of switches, and a fabric that another hand made."""

from __future__ import annotations

import pytest

from agent.fleet.cluster.cabling_plan import read_plan
from agent.fleet.lossless.answer import Inputs, LosslessAnswer, judge
from agent.fleet.lossless.host_ports import HostPort
from probes.switches.collection import read_collection
from tests.conftest import CORPUS

SAMPLES = CORPUS / "switches"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")


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
