"""What `fabricscope fleet` answers about a made-up fleet, beside what is odd in it.

python -m bench.fleet.make --nodes 10000 --sweeps 2 --out - --ndjson --truth truth.json |
    fabricscope fleet ingest - --dataset DIR
python -m bench.fleet.answers DIR truth.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from agent.fleet.cluster.from_dataset import read_identity_rows
from agent.fleet.engines import connect
from agent.fleet.engines.engine import Tables
from agent.fleet.episodes.finding_changes import news_since
from agent.fleet.expected import ExpectedNode, compare
from agent.fleet.hostlist import fold, unfold
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.duplicates import find_duplicates
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.options import ORDINARY
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from agent.model.finding import UNDATED_RULE
from bench.fleet import cabling

# what is planted -> what tells it
OUTLIERS = {
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
    "read-request-small": {"pcie-max-read-request-bytes"},
    "relaxed-ordering-off": {"pcie-relaxed-ordering"},
    "gpus-half-lost": {"gpus"},
    "gpus-all-lost": {"gpus"},
    "nic-board": {"nic-board"},
    "nic-numa": {"nic-numa-node"},
    "gpu-numa": {"gpu-numa-node"},
    "payload-small": {"pcie-max-payload-bytes"},
    "gid-index": {"port-roce-gid-index"},
    "prio-tc": {"rail-prio-tc"},
    "cnp-dscp": {"rail-cnp-dscp"},
    "cnp-priority": {"rail-cnp-priority"},
    "acs-on": {"pcie-acs"},
    "os": {"os"},
    "smt-off": {"threads-per-core"},
    "numa-memory": {"memory"},
    "nvlink-clique": {"gpu-clique"},
    "nvlink-domain": {"gpu-cluster-uuid"},
    "mtu-1500-first": {"rail-mtu"},
    "dscp-map": {"rail-dscp-prio"},
    "nic-lost": {"rails"},
    "nccl-setting": {"settings"},
    "nccl-version": {"nccl"},
    "nvlink-domain-other": {"gpu-cluster-uuid"},
    "small-class-kernel": {"kernel"},
    "small-class-os": {"os"},
    "small-class-cmdline": {"cmdline"},
    "small-class-driver": {"driver"},
    "small-class-nccl-version": {"nccl"},
    "small-class-nccl-setting": {"settings"},
    "clock-ahead": {"clock"},
    "flapping": {"pcie-width"},
    "stale-finding": {"pcie-width"},
    "drift-driver": {"driver"},
    "drift-gpu-lost": {"gpus"},
    "drift-firmware": {"nic-firmware"},
    "slow-probe": {"probe-seconds"},
    "gpu-model": {"gpu-models"},
    "rate-link-downs": {"error-rate-wire"},
    "rate-symbol-errors": {"error-rate-wire"},
}
DUPLICATES = {
    "duplicate-guid": {"node GUID"},
    "duplicate-serial": {"serial number"},
    "duplicate-machine-id": {"machine-id"},
    "duplicate-ip": {"IP address"},
    "duplicate-ip-prefix": {"IP address"},
    "duplicate-lid": {"LID"},
    "duplicate-gpu-uuid": {"GPU UUID"},
    "same-name": {"node name"},
}
RATE_RULES = {  # by the fleet's history
    "rate-link-downs": "ib-link-flap",
    "rate-symbol-errors": "ib-symbol-errors",
    "rate-retransmissions": "roce-rt-retrans",
}
SAME_GUID = ("port GUID", "MAC address")  # a NIC that has another's GUID has these, too
DRIFT = {
    "drift-driver": {"host driver"},
    "drift-gpu-lost": {"GPU gone"},
    "drift-firmware": {"NIC firmware"},
    "gpu-moved": {"GPU moved"},
}
NEWS = {"flapping": {"flapping"}}
STALE = ("stale", "stale-finding")
SILENT = (*STALE, "node-gone")
UNREADABLE = ("damaged-truncated", "damaged-not-json", "damaged-schema")


class Compared(NamedTuple):
    """(what, node) of a question: planted and not told, told and not planted, both."""

    missed: set[tuple[str, str]]
    invented: set[tuple[str, str]]
    right: int


def hosts(truth: Mapping[str, Any], *kinds: str) -> set[str]:
    """Nodes with one of these oddities, by the names that a dataset has."""
    return {host for outlier in truth["oddities"] if outlier["kind"] in kinds for host in _names(outlier)}


def _names(odd: Mapping[str, Any]) -> list[str]:
    return [odd["detail"]["name"]] if odd["kind"] == "same-name" else list(odd["hosts"])


def compared(tables: Tables, truth: Mapping[str, Any], fabrics: Mapping[str, str] | None = None) -> dict[str, Compared]:
    """Every question beside the truth. `fabrics`: text of each InfiniBand fabric's file; None: nothing of cables."""
    before, last = (_before(truth["sweeps"][number]) for number in (min(1, len(truth["sweeps"]) - 1), -1))
    changes = find_drift(tables, before)
    shared = _told((each.kind, each.hosts) for each in find_duplicates(tables).duplicates)
    shared -= {(kind, host) for host in hosts(truth, "duplicate-guid") for kind in SAME_GUID}
    wrong = find_findings(tables).findings
    result = _told((item.rule, item.hosts) for item in wrong if not item.of_class)
    lost = hosts(truth, "gpus-half-lost", "gpus-all-lost")  # by its own report such a node is in a class of its own
    outlier = [item for item in truth["oddities"] if item["kind"] not in UNREADABLE]
    own = {
        (one["rule"], host)
        for odd in outlier
        for one in odd["findings"]
        for host in odd["hosts"]
        if (one["rule"], odd["kind"] in RATE_RULES) != (UNDATED_RULE, True)  # two reports date it
    }
    own |= {(RATE_RULES[odd["kind"]], host) for odd in outlier if odd["kind"] in RATE_RULES for host in odd["hosts"]}
    own |= {("peer-differs", odd["hosts"][1]) for odd in outlier if odd["kind"] == "duplicate-ip-prefix"}  # the length
    result -= {(item.rule, host) for item in wrong if item.of_class for host in lost} - own
    answers = {
        "outliers": _sides(
            truth, OUTLIERS, _told((outlier.attribute, outlier.hosts) for outlier in find_outliers(tables).outliers)
        ),
        "duplicates": _sides(truth, DUPLICATES, shared),
        "findings": _compared(own, result),
        "drift": _sides(
            truth,
            DRIFT,
            _told((f"{each.subject} {each.what}", each.hosts) for each in changes.changes if each.subject != "finding"),
        ),
        "stale": _compared(
            {("stale", host) for host in hosts(truth, *STALE)}, _told([("stale", build_summary(tables).stale_hosts)])
        ),
        "silent": _compared(
            {("silent", host) for host in hosts(truth, *SILENT)}, _told([("silent", find_drift(tables, last).silent)])
        ),
        "expected": _expected(tables, truth),
        "news": _sides(truth, NEWS, _told((item.kind, item.node) for item in news_since(tables, before, ORDINARY).items
                                          if item.kind in ("flapping", "back"))),
    }  # fmt: skip
    if fabrics is not None:
        answers["cables"] = _of_cables(tables, truth, fabrics)
    return answers


def _before(sweep: str) -> datetime:
    return datetime.fromisoformat(sweep.removesuffix("Z")) - timedelta(seconds=1)


def _expected(tables: Tables, truth: Mapping[str, Any]) -> Compared:
    """Beside a list of all nodes by their own names."""
    listed = [ExpectedNode(host) for group in truth["groups"] for host in unfold(group["hosts"])]
    answer = compare(tables, listed, ORDINARY)
    nameless = {host for odd in truth["oddities"] if odd["kind"] == "same-name" for host in odd["hosts"]}
    never = hosts(truth, "node-never", *UNREADABLE) | nameless
    return _compared(
        {("never", host) for host in never} | {("unexpected", name) for name in hosts(truth, "same-name")},
        {(row.what, row.node) for row in answer.rows if row.what in ("never", "unexpected")},
    )


def _of_cables(tables: Tables, truth: Mapping[str, Any], fabrics: Mapping[str, str]) -> Compared:
    said = cabling.told(*cabling.found(fabrics, read_identity_rows(tables, bool(fabrics))))
    return _compared(cabling.planted(truth, by_reports=True), said)


def _told(answers: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(what, host) for what, folded in answers for host in unfold(folded)}


def _sides(truth: Mapping[str, Any], kinds: Mapping[str, set[str]], told: set[tuple[str, str]]) -> Compared:
    return _compared({(what, host) for kind, by in kinds.items() for host in hosts(truth, kind) for what in by}, told)


def _compared(planted: set[tuple[str, str]], told: set[tuple[str, str]]) -> Compared:
    return Compared(planted - told, told - planted, len(planted & told))


def main() -> None:
    """Print a line a question; exit 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("truth")
    parser.add_argument(
        "--fabric", metavar="FOLDER", help="files of all InfiniBand fabrics; then cables are judged, too"
    )
    given = parser.parse_args()
    paths = sorted(Path(given.fabric).iterdir()) if given.fabric else []
    fabrics = {path.name: path.read_text() for path in paths} if given.fabric else None
    with open(given.truth, encoding="utf-8") as file:
        truth = json.load(file)
    engine = connect(None, given.dataset)
    wrong = 0
    for question, sides in compared(engine, truth, fabrics).items():
        print(f"{question}: {sides.right} found, {len(sides.missed)} missed, {len(sides.invented)} invented")
        for result, side in (("missed", sides.missed), ("invented", sides.invented)):
            for what in sorted({what for what, _ in side}):
                print(f"  {result} {what}: {fold(host for one, host in side if one == what)}")
            wrong += len(side)
    engine.close()
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
