"""A made-up fleet holds what its truth says, and nothing else is odd in it; past mistakes of answers can be planted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.report import Report
from agent.reports import ReportError, encode_report, read_report
from bench.fleet.fabric import LAYOUTS
from bench.fleet.kinds import KINDS, STALE_DAYS
from bench.fleet.overlaid import merge_overlays
from bench.fleet.plan import FABRIC_FORMS, Plan, plan
from bench.fleet.planting import has_restarted
from bench.fleet.platforms import BY_NAME

KINDS_HERE = (
    "gpu-link-narrow", "nic-firmware-one", "driver", "unknown-checks", "drift-driver", "node-gone", "duplicate-guid",
    "duplicate-serial", "duplicate-machine-id", "duplicate-ip", "duplicate-lid", "duplicate-gpu-uuid",
    "cable-swapped-rails", "cable-swapped-ports", "uplink-missing", "uplink-slow", "stale", "slow-probe",
    "damaged-truncated", "damaged-not-json", "damaged-schema", "newer-minor",
)  # fmt: skip


@pytest.fixture(scope="module")
def fleet() -> Plan:
    return plan(96, 5, dict.fromkeys(KINDS_HERE, 1), sweeps=2, mix={"gb200-ib": 2, "l40s-roce": 1})


@pytest.fixture(scope="module")
def sent(fleet: Plan) -> dict[str, bytes]:
    """What came in the first sweep, by host."""
    return dict(fleet.named())


@pytest.fixture(scope="module")
def reports(fleet: Plan, sent: dict[str, bytes]) -> dict[str, Report]:
    """The readable ones of them."""
    return _readable(fleet, sent)


@pytest.fixture(scope="module")
def later(fleet: Plan) -> dict[str, Report]:
    """The readable ones of the second sweep."""
    return _readable(fleet, dict(fleet.named(1)))


def _readable(fleet: Plan, sent: dict[str, bytes]) -> dict[str, Report]:
    damaged = {host for odd in fleet.truth["oddities"] if odd["kind"].startswith("damaged") for host in odd["hosts"]}
    return {host: msgspec.json.decode(data, type=Report) for host, data in sent.items() if host not in damaged}


def _odd(fleet: Plan, kind: str) -> dict[str, object]:
    return next(odd for odd in fleet.truth["oddities"] if odd["kind"] == kind)


def test_every_kind_that_was_asked_for_is_there_once(fleet: Plan) -> None:
    planted = Counter(odd["kind"] for odd in fleet.truth["oddities"])
    assert set(KINDS_HERE) - planted.keys() == {"newer-minor"}  # which is none: it is read as any other
    assert set(planted.values()) == {1}
    assert "newer-minor" in {each["kind"] for each in fleet.truth["noise"]}
    assert set(KINDS_HERE) < set(KINDS)


def test_every_node_has_one_report_a_sweep_in_another_order(
    fleet: Plan, sent: dict[str, bytes], later: dict[str, Report]
) -> None:
    first, second = list(sent), list(later)
    assert len(first) == len(list(fleet.reports())) == 96
    first = [host for host in first if host in later or host in _odd(fleet, "node-gone")["hosts"]]
    assert set(first) - set(second) == set(_odd(fleet, "node-gone")["hosts"])
    assert [host for host in first if host in second] != second
    told = [(row["files"], row["readable"]) for row in fleet.truth["reports"]]
    assert told == [(96, 93), (95, 92)]


def test_reports_are_as_a_scan_writes_them(fleet: Plan, sent: dict[str, bytes], reports: dict[str, Report]) -> None:
    newer = next(each["hosts"] for each in fleet.truth["noise"] if each["kind"] == "newer-minor")
    assert len(reports) == 93
    for host, report in reports.items():
        assert report.node.hostname == host
        assert encode_report(report) == sent[host] or host == newer


def test_a_report_a_line_says_the_same(fleet: Plan, sent: dict[str, bytes], reports: dict[str, Report]) -> None:
    for host, line in zip(sent, fleet.reports(one_line=True), strict=True):
        assert line.count(b"\n") == (0 if host in _odd(fleet, "damaged-truncated")["hosts"] else 1)
        if host in reports:
            assert msgspec.json.decode(line) == msgspec.json.decode(sent[host])


def test_judging_them_again_says_the_same(reports: dict[str, Report], fleet: Plan) -> None:
    odd = {host for each in fleet.truth["oddities"] for host in each["hosts"]}
    healthy = [host for host in reports if host not in odd]
    for host in [*sorted(odd & reports.keys()), *healthy[::12]]:
        again = evaluate_report(reports[host], Configuration())
        assert (again.checks, again.findings, again.summary) == (
            reports[host].checks, reports[host].findings, reports[host].summary,
        ), host  # fmt: skip


def test_a_node_says_what_the_truth_says_of_it_and_others_are_well(reports: dict[str, Report], fleet: Plan) -> None:
    usual: dict[str | None, Counter[object]] = {}
    for report in reports.values():
        rows = frozenset((finding.rule, finding.subject) for finding in report.findings)
        usual.setdefault(report.platform.profile, Counter())[rows] += 1
    assert set(usual) == {group["platform"] for group in fleet.truth["groups"]}
    told = {host: each for each in fleet.truth["oddities"] if each["sweep"] == 0 for host in each["hosts"]}
    for host, report in reports.items():
        healthy = usual[report.platform.profile].most_common(1)[0][0]
        found = {(finding.rule, finding.subject) for finding in report.findings} - healthy
        planted = {(row["rule"], row["subject"]) for row in told.get(host, {}).get("findings", [])}
        assert found == planted, host
        if host not in told:
            assert report.summary.verdict == "ok", host
    assert reports[_odd(fleet, "unknown-checks")["hosts"][0]].summary.verdict == "unknown"


def test_what_should_differ_between_nodes_differs_but_where_it_was_planted(
    reports: dict[str, Report], fleet: Plan
) -> None:
    seen: dict[str, Counter[object]] = {}

    def count(kind: str, value: object) -> None:
        if value is not None:
            seen.setdefault(kind, Counter())[value] += 1

    for report in reports.values():
        subnet = next((gid.gid[:19] for nic in report.topology.nics for p in nic.ports for gid in p.gids), "")
        for name in ("hostname", "machine_id", "boot_id", "serial"):
            count(name, getattr(report.node, name))
        count("chassis", report.node.chassis.serial if report.node.chassis.tray is None else None)  # else the rack
        for gpu in report.topology.gpus:
            count("uuid", gpu.uuid)
            count("gpu serial", gpu.serial)
        for nic in report.topology.nics:
            count("node_guid", nic.node_guid)
            for port in nic.ports:
                count("lid", (subnet, port.lid) if port.link_layer == "InfiniBand" else None)
        for netdev in report.topology.netdevs:
            count("mac", netdev.mac)
            count("module", netdev.module.serial if netdev.module else None)
            for address in netdev.addresses if netdev.pci else []:
                count("address", address.partition("/")[0] if "." in address else None)
    twice = {kind: {value for value, n in values.items() if n > 1} for kind, values in seen.items()}
    guid = _odd(fleet, "duplicate-guid")["detail"]
    lid = _odd(fleet, "duplicate-lid")["detail"]
    assert {kind: values for kind, values in twice.items() if values} == {
        "machine_id": {_odd(fleet, "duplicate-machine-id")["detail"]["machine_id"]},
        "serial": {_odd(fleet, "duplicate-serial")["detail"]["serial"]},
        "uuid": {_odd(fleet, "duplicate-gpu-uuid")["detail"]["uuid"]},
        "address": {_odd(fleet, "duplicate-ip")["detail"]["address"]},
        "node_guid": {guid["node_guid"]},
        "mac": {guid["mac"]},
        "lid": {(lid["subnet"], lid["lid"])},
    }


def test_between_two_sweeps_only_what_moves_by_itself_and_what_was_planted_changes(
    reports: dict[str, Report], later: dict[str, Report], fleet: Plan
) -> None:
    drifted = _odd(fleet, "drift-driver")
    changed = set()
    for host, report in later.items():
        before = reports[host]
        assert report.generated_at > before.generated_at or host in _odd(fleet, "stale")["hosts"]
        if report.software != before.software:
            changed.add(host)
        assert report.checks == before.checks or host in drifted["hosts"]
        for one, other in zip(before.topology.nics, report.topology.nics, strict=True):
            assert (one.node_guid, one.firmware, one.label) == (other.node_guid, other.firmware, other.label)
            assert [port.lid for port in one.ports] == [port.lid for port in other.ports]
    assert changed == set(drifted["hosts"])


def test_a_stale_node_and_a_slow_probe_are_told_by_their_times(reports: dict[str, Report], fleet: Plan) -> None:
    stale = _odd(fleet, "stale")["hosts"]
    old = [host for host, report in reports.items() if report.observed_at < "2026-01-15"]
    assert old == stale
    assert reports[stale[0]].observed_at[:10] == f"2026-01-{15 - STALE_DAYS:02d}"
    slow = [host for host, report in reports.items() if max(run.duration_seconds for run in report.probes) > 5]
    assert slow == _odd(fleet, "slow-probe")["hosts"]


def test_damaged_reports_are_refused_and_a_newer_one_is_read(
    fleet: Plan, sent: dict[str, bytes], tmp_path: Path
) -> None:
    refused = {"damaged-truncated": "not a report", "damaged-not-json": "not a report", "damaged-schema": "report/9"}
    path = tmp_path / "report.json"
    for kind, why in refused.items():
        path.write_bytes(sent[_odd(fleet, kind)["hosts"][0]])
        with pytest.raises(ReportError, match=why):
            read_report(str(path))
    later = next(each["hosts"] for each in fleet.truth["noise"] if each["kind"] == "newer-minor")
    path.write_bytes(sent[later])
    assert read_report(str(path)).node.hostname == later
    assert b"colour" in sent[later]


def test_the_same_plan_gives_the_same_bytes_and_another_seed_others() -> None:
    made = [list(plan(12, seed, {"kernel": 1}, mix={"cpu": 1}).named()) for seed in (3, 3, 4)]
    assert made[0] == made[1]
    assert {host for host, _ in made[0]} == {host for host, _ in made[2]}
    assert not {data for _, data in made[0]} & {data for _, data in made[2]}


def test_a_mixed_rollout_and_a_class_of_two_are_noise() -> None:
    mixed = plan(32, 1, {}, mix={"l40s-roce": 1})
    firmware = Counter(_firmware(data) for data in mixed.reports())
    assert set(firmware.values()) == {16}
    assert [each["kind"] for each in mixed.truth["noise"]] == ["firmware-rollout"]
    assert mixed.truth["oddities"] == []
    pair = plan(2, 1, {}, mix={"rtx3090": 1})
    drivers = {msgspec.json.decode(data, type=Report).software.driver.version for data in pair.reports()}
    assert len(drivers) == 2
    assert pair.truth["groups"][0]["judged_alike"] is False


def _firmware(data: bytes) -> str:
    (only,) = set(re.findall(rb'"firmware": "([^"]+)"', data))
    return only.decode()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"nodes": 0}, "from 1 to"),
        ({"nodes": 1 << 20}, "from 1 to"),
        ({"nodes": 4, "faults": {"mtu": 1}}, "no kind 'mtu'"),
        ({"nodes": 4, "mix": {"h200": 1}}, "no platform 'h200'"),
        ({"nodes": 4, "mix": {"cpu": -1}}, "a share is more than 0"),
        ({"nodes": 4, "sweeps": 0}, "at least 1"),
        ({"nodes": 4, "oversubscription": 0.0}, "at least 1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plan(**wrong)


# a mistake -> what plants it: kinds; platforms, forms of a fabric's file and layouts where it is no oddity
MISTAKES = {
    "one swapped pair of uplinks joins two pods": {"uplink-swapped"},
    "clocks that are wrong make others stale": {"clock-ahead", "clock-behind"},
    "machines without a name of their own are one node": {"same-name"},
    "rails behind a lost NIC are at the wrong leaf": {"nic-lost", "port-down"},
    "a file that lost its tabs is many fabrics": {"ibnetdiscover"},
    "a plan in UFM's form": {"ndt"},
    "different causes are one answer": {"mtu-1500", "mtu-1500-first"},
    "findings of nodes that are gone are current": {"stale", "stale-finding"},
    "a tray in another rack's NVLink domain": {"nvlink-domain", "nvlink-domain-other", "nvlink-clique"},
    "one address with two prefix lengths": {"duplicate-ip", "duplicate-ip-prefix"},
    "nodes that are asked for and never reported": {"node-never"},
    "two RoCE switches per rack follow no pattern": {"l40s-tor"},
    "two hosts at one port of a switch": {"port-shared"},
    "pairs of switches are counted twice": {"pair"},
    "a link that can do no more is slow": {"uplink-older", "iblinkinfo"},
    "a long map is printed whole": {"dscp-map"},
    "a GPU that moved is several changes": {"gpu-moved"},
    "nodes without most of their GPUs are a class of their own": {"gpus-half-lost", "gpus-all-lost"},
    "small classes are compared with nothing": {
        "small-class-kernel", "small-class-os", "small-class-cmdline", "small-class-driver", "small-class-nccl-version",
        "small-class-nccl-setting", "h200-twin-1",
    },
    "attributes that were not compared": {
        "nic-board", "nic-numa", "gpu-numa", "numa-memory", "smt-off", "gid-index", "payload-small",
        "read-request-small", "acs-on", "relaxed-ordering-off", "prio-tc", "cnp-dscp", "cnp-priority", "nccl-setting",
        "nccl-version",
    },
    "a spine that is off is silent": {"spine-dark"},
    "a pod that is half wired is many lines": {"uplink-half-unit"},
    "a finding that comes and goes": {"flapping"},
}  # fmt: skip
# what no node and no cable can show: tables that `fleet load` replaced (tests/agent/fleet/engines/test_postgres.py),
# SQL in the documentation (test_queries.py), names of groups (test_any_graph.py has all names of a fabric)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_can_be_planted(mistake: str) -> None:
    assert MISTAKES[mistake] <= {*KINDS, *BY_NAME, *FABRIC_FORMS, *LAYOUTS}


def test_overlays_of_two_causes_on_one_device_are_both_in_the_result() -> None:
    one, other = (
        {"device": {"a": {"width": 8}}},
        {"device": {"a": {"gpu": {"name": "x"}}, "b": {}}, "node": {"os": "y"}},
    )

    assert {"device": {"a": {"width": 8, "gpu": {"name": "x"}}, "b": {}}, "node": {"os": "y"}} == merge_overlays(
        {}, one, other
    )
    assert {"device": {"a": {"width": 8}}} == one


def test_rates_are_planted_on_nodes_that_do_not_restart() -> None:
    """Of 97 nodes exactly one does between two sweeps."""
    assert [1] * 3 == [sum(has_restarted(index, sweep) for index in range(97)) for sweep in (1, 2, 3)]
