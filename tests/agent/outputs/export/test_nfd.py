"""Labels: names and values that Kubernetes takes, an expiry that NFD reads, no label for what is not known."""

from __future__ import annotations

import re

import msgspec
import pytest

from agent.model.gpu import Fabric
from agent.model.report import Report
from agent.outputs.export.nfd import export
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile, with_gpu, with_topology
from tests.machines import scan_machine

NAME = re.compile(r"fabricscope\.feature\.node\.kubernetes\.io/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def labels(report: Report) -> dict[str, str]:
    """What NFD would make of the file: comments and directives aside, `name=value`."""
    lines = [line for line in export(report).splitlines() if not line.startswith("#")]
    return {name.rpartition("/")[2]: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_kubernetes_takes_every_label(host: str, fault: str | None) -> None:
    """Names and values as k8s.io/apimachinery validates them; the file is far below NFD's limit."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    text = export(hostile(report, host == "hostile") if bad else report)
    output = [line.split("=", 1) for line in text.splitlines() if not line.startswith("#")]

    assert output
    assert [] == [item for item in output if not NAME.fullmatch(item[0]) or not VALUE.fullmatch(item[1])]
    assert len(output) == len({name for name, _ in output})
    assert len(text) < 65_536


def test_the_labels_of_a_good_node():
    """What schedulers ask for."""
    output = labels(scan_machine(H100))

    assert ("ok", "8", "NVIDIA-H100-80GB-HBM3", "18", "8", "400", "InfiniBand", "ready") == tuple(
        output[name]
        for name in (
            "verdict", "gpu-count", "gpu-model", "nvlinks-per-gpu", "rail-count", "rail-gbit-s", "rail-link-layer",
            "gpudirect",
        )
    )  # fmt: skip
    assert "nvlink-domain" not in output


def test_what_is_not_known_has_no_label():
    """Nothing read: the verdict alone."""
    assert {"verdict"} == {name for name in labels(bare(scan_machine(H100))) if not name.startswith("findings-")} - {
        "profile"
    }
    assert "nvlinks-per-gpu" not in labels(with_gpu(scan_machine(H100), links_known=False, links=[]))


def test_no_gpu_is_zero_only_where_the_bus_was_read():
    """A node without GPUs says 0."""
    report = scan_machine("cpu-only-2s")
    unread = [msgspec.structs.replace(run, status="denied") for run in report.probes]

    assert "0" == labels(report)["gpu-count"]
    assert "gpu-count" not in labels(msgspec.structs.replace(report, probes=unread))


def test_what_differs_between_devices_has_no_label():
    """Two models, two rates: none is the node's."""
    assert "gpu-model" not in labels(scan_machine("2xa10-2xt4-1s-idle"))
    assert "rail-gbit-s" not in labels(scan_machine("", "ib-rate-hdr"))


def test_gpudirect_is_the_worst_of_all_pairs():
    """One blocked pair is said."""
    report = scan_machine(H100)
    first, *others = report.gpudirect
    blocked = msgspec.structs.replace(report, gpudirect=[msgspec.structs.replace(first, verdict="blocked"), *others])

    assert "blocked" == labels(blocked)["gpudirect"]


@pytest.mark.parametrize("clique", [0, 7])
def test_the_nvlink_domain_is_that_of_topograph(clique: int) -> None:
    """ClusterUUID.CliqueId, where all GPUs agree."""
    cluster = "a1b2c3d4-0000-1111-2222-333344445555"
    report = scan_machine(H100)
    fabric = Fabric(state="completed", status="success", clique=clique, cluster_uuid=cluster)
    gpus = [msgspec.structs.replace(gpu, fabric=fabric) for gpu in report.topology.gpus]
    joined = with_topology(report, gpus=gpus)
    split = with_gpu(joined, fabric=msgspec.structs.replace(fabric, clique=99))

    assert f"{cluster}.{clique}" == labels(joined)["nvlink-domain"]
    assert "nvlink-domain" not in labels(split)
    assert "nvlink-domain" not in labels(with_gpu(joined, fabric=None))


def test_labels_expire_three_hours_after_the_node_was_seen():
    """RFC 3339, before the labels, counted from the observation."""
    report = msgspec.structs.replace(
        scan_machine(H100), observed_at="2026-01-02T23:04:05Z", generated_at="2026-09-09T00:00:00Z"
    )

    assert "# +expiry-time=2026-01-03T02:04:05Z" == export(report).splitlines()[1]
    assert "+expiry" not in export(msgspec.structs.replace(report, observed_at="yesterday"))
