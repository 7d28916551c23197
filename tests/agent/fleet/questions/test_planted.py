"""Every planted oddity is found, and none is invented."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from agent.fleet.hostlist import unfold
from agent.fleet.questions.drift import drift
from agent.fleet.questions.duplicates import duplicates
from agent.fleet.questions.findings import findings
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary
from bench.fleet.kinds import KINDS
from tests.agent.fleet.questions.conftest import OF_CABLES

# what is planted -> the attributes of `fleet outliers` that tell it
TOLD_BY = {
    "gpu-link-narrow": {"pcie-width"},
    "gpu-link-slow": {"pcie-speed"},
    "nic-link-narrow": {"pcie-width"},
    "nic-firmware-one": {"nic-firmware"},
    "nic-firmware-node": {"nic-firmware"},
    "driver": {"driver"},
    "vbios": {"gpu-vbios"},
    "bios": {"bios"},
    "kernel": {"kernel"},
    "cmdline": {"cmdline"},
    "nvlink-fewer": {"gpu-nvlinks-active"},
    "mtu-1500": {"rail-mtu"},
    "pfc-off": {"rail-pfc"},
    "trust-pcp": {"rail-trust"},
    "port-slow": {"port-speed"},
    "port-down": {"port-state"},
    "nic-no-driver": {"nic-state"},
    "unknown-checks": {"probe-status"},
    "drift-driver": {"driver"},
    "drift-gpu-lost": {"gpus"},
    "drift-firmware": {"nic-firmware"},
    "slow-probe": {"probe-seconds"},
}
DUPLICATES = {
    "duplicate-guid": {"node GUID"},
    "duplicate-serial": {"serial number"},
    "duplicate-machine-id": {"machine-id"},
    "duplicate-ip": {"IP address"},
    "duplicate-lid": {"LID"},
    "duplicate-gpu-uuid": {"GPU UUID"},
}


OTHERWISE = {"node-gone", "stale", "damaged-truncated", "damaged-not-json", "damaged-schema", "newer-minor"}


def test_every_kind_of_oddity_is_asked_for():
    kinds = {kind for kind in KINDS if not kind.startswith(OF_CABLES)}
    assert kinds == {*TOLD_BY, *DUPLICATES, *OTHERWISE}


def of(fleet, kinds):
    """(what tells it, node), as planted."""
    return {(told, host) for kind, by in kinds.items() for host in fleet.hosts(kind) for told in by}


def test_outliers(fleet):
    answer = outliers(fleet.engine)
    told = {(each.attribute, host) for each in answer.outliers for host in unfold(each.hosts)}
    assert of(fleet, TOLD_BY) - told == set(), "planted and not found"
    assert told - of(fleet, TOLD_BY) == set(), "found and not planted"


def test_outliers_say_what_is_usual_and_how_many_have_it(fleet):
    answer = outliers(fleet.engine)
    for each in answer.outliers:
        assert each.usual != each.value
        assert each.nodes == len(unfold(each.hosts))
        assert 0.8 * each.of <= each.usual_count < each.of
        assert answer.classes[each.hardware_class] >= 5


def test_a_planned_roll_out_is_mixed_and_nobody_is_odd(fleet):
    half = [each for each in fleet.truth["noise"] if each["kind"] == "firmware-rollout"]
    mixed = {(each.attribute, value) for each in outliers(fleet.engine).mixed for value, _ in each.values}
    assert half
    assert {("nic-firmware", each["detail"]["firmware"]) for each in half} <= mixed


def test_duplicates(fleet):
    answer = duplicates(fleet.engine)
    told = {(each.kind, host) for each in answer.duplicates for host in unfold(each.hosts)}
    also = {(kind, host) for host in fleet.hosts("duplicate-guid") for kind in ("port GUID", "MAC address")}
    assert of(fleet, DUPLICATES) - told == set(), "planted and not found"
    assert told - of(fleet, DUPLICATES) - also == set(), "found and not planted"
    assert not answer.not_judged


def test_findings_are_those_of_the_nodes(fleet):
    healthy = Counter[str]()
    told: set[tuple[str, str]] = set()
    for each in findings(fleet.engine).findings:
        if each.of_class:
            healthy[each.rule] += each.nodes
        else:
            told |= {(each.rule, host) for host in unfold(each.hosts)}
    planted = {
        (finding["rule"], host)
        for odd in fleet.truth["oddities"]
        if not odd["kind"].startswith("damaged")
        for finding in odd["findings"]
        for host in odd["hosts"]
    }
    assert planted - told == set()
    assert {host for rule, host in told - planted if rule not in healthy} == set()


def test_summary(fleet):
    answer = summary(fleet.engine)
    assert set(unfold(answer.stale_hosts)) == fleet.hosts("stale")
    assert sum(answer.verdicts.values()) + answer.stale == answer.nodes
    wrong = {host for odd in fleet.truth["oddities"] if odd["findings"] for host in odd["hosts"]} - fleet.hosts(
        "damaged-truncated", "damaged-not-json", "damaged-schema"
    )
    assert {each.node for each in answer.worst} <= wrong
    assert len(answer.worst) + answer.more_worst <= len(wrong)
    denied = [each for each in answer.coverage if any("denied" in reason for reason, _ in each.reasons)]
    assert denied, "the node whose driver could not be asked is missing in the coverage"
    for each in answer.coverage:
        judged = each.passed + each.failed + each.unknown + each.not_applicable + each.disabled
        assert judged + each.stale + each.missing == answer.nodes, each.rule


def test_drift(fleet):
    _, second = (datetime.fromisoformat(each.removesuffix("Z")) for each in fleet.truth["sweeps"])
    answer = drift(fleet.engine, second - timedelta(seconds=1))
    told = {
        (each.subject, each.what, host)
        for each in answer.changes
        for host in unfold(each.hosts)
        if each.subject != "finding"
    }
    planted = {("host", "driver", host) for host in fleet.hosts("drift-driver")}
    planted |= {("GPU", "gone", host) for host in fleet.hosts("drift-gpu-lost")}
    planted |= {("NIC", "firmware", host) for host in fleet.hosts("drift-firmware")}
    assert told == planted
    assert set(unfold(answer.silent)) == fleet.hosts("stale", "node-gone")
    assert (answer.added, answer.reinstalled, answer.replaced) == ("", "", "")


def test_nothing_drifted_before(fleet):
    answer = drift(fleet.engine, datetime(2025, 1, 1))  # noqa: DTZ001  # UTC without a zone is what is asked for
    assert answer.changes == []
    assert answer.compared_nodes == 0
