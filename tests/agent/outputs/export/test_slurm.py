"""gres.conf: slurmd reads the same devices, cores and links back; cores only where their numbers are certain. Labels of
NFD: names and values that Kubernetes takes, an expiry that it reads, no label for what is not known.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from agent.model.gpu import Fabric, Mig
from agent.model.nic import Neighbor
from agent.model.node import Cpu, Node, NumaNode
from agent.model.report import Report
from agent.outputs.export.nfd import export as export_labels
from agent.outputs.export.slurm import compute_core_ranges, export
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile, with_gpu, with_topology
from tests.machines import HOSTS, scan_machine

OF_OTHERS = ("16x910c", "8x910b", "8xgaudi", "8xmi", "cpu-only", "trn")  # no GPU of NVIDIA
SLURMD = shutil.which("slurmd")
LINE = re.compile(
    r"(NodeName=[A-Za-z0-9][A-Za-z0-9_-]* )?Name=gpu( Type=[a-z0-9_.-]+)? File=/dev/nvidia\d+"
    r"( Cores=\d+(-\d+)?)?( Links=-?\d+(,-?\d+)*)?"
)
NAME = re.compile(r"fabricscope\.feature\.node\.kubernetes\.io/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def lines(report: Report) -> list[str]:
    """What Slurm reads: no comments."""
    return [line for line in export(report).splitlines() if not line.startswith("#")]


def node(threads: int | None, sockets: int | None, *lists: str | None) -> Node:
    """A node whose NUMA nodes have these processors."""
    rows = [NumaNode(id=number, cpus=cpus) for number, cpus in enumerate(lists)]
    return Node(cpu=Cpu(sockets=sockets, threads_per_core=threads), numa_nodes=rows)


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_every_line_is_of_the_grammar(host: str, fault: str | None) -> None:
    """gres.conf(5); links in a square with -1 on its diagonal."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    output = lines(hostile(report, host == "hostile") if bad else report)
    links = [[int(n) for n in item.partition("Links=")[2].split(",")] for item in output if "Links=" in item]

    assert [] == [item for item in output if not LINE.fullmatch(item)]
    assert len(links) in (0, len(output))
    assert all(row[place] == -1 and len(row) == len(output) for place, row in enumerate(links))
    assert all(row[b] == links[b][a] for a, row in enumerate(links) for b in range(len(row)))


@pytest.mark.slow
@pytest.mark.skipif(SLURMD is None, reason="slurmd is not installed (Debian: slurmd)")
@pytest.mark.parametrize("host", [host for host in HOSTS if not host.startswith(OF_OTHERS)])
def test_slurmd_reads_the_same(host: str, tmp_path: Path, real_commands: None) -> None:
    """`slurmd -G` prints each GRES as it understood it. Device files are links to /dev/null here."""
    report = scan_machine(host)
    text = export(report)
    for gpu in report.topology.gpus:
        (tmp_path / f"nvidia{gpu.minor}").symlink_to("/dev/null")
    (tmp_path / "gres.conf").write_text(text.replace("/dev/nvidia", f"{tmp_path}/nvidia"))
    expected = re.findall(r"^# slurm.conf: (NodeName=(\S+) .*)$", text, re.MULTILINE)
    cpus = sum(len(cpu_count) for cpu_count in _cpu_counts(report))
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=t\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\nGresTypes=gpu\n"
        "ProctrackType=proctrack/linuxproc\nSelectType=select/cons_tres\nSlurmdParameters=config_overrides\n"
        f"SlurmdSpoolDir={tmp_path}\n{expected[0][0]} CPUs={cpus}\n"
    )
    done = subprocess.run(
        [str(SLURMD), "-G", "-N", expected[0][1], "-f", str(tmp_path / "slurm.conf")], capture_output=True, timeout=60
    )
    output = re.findall(r"Gres (Name=.*)", done.stderr.decode())

    assert 0 == done.returncode
    assert [_fields(line) for line in lines(report)] == [
        _fields(item.replace(f"{tmp_path}/", "/dev/")) for item in output
    ]


def _cpu_counts(report: Report) -> list[range]:
    spans = [
        part.split("-") for numa_node in report.node.numa_nodes for part in (numa_node.cpus or "").split(",") if part
    ]
    return [range(int(span[0]), int(span[-1]) + 1) for span in spans]


def _fields(text: str) -> dict[str, str]:
    output = dict(re.findall(r"(\w+)=(\S+)", text))
    return {name: output.get(name, "") for name in ("Name", "Type", "File", "Cores", "Links")}


def test_cores_are_logical():
    """Processors 48-63 and their second threads are the fourth NUMA node's 16 cores: 48 to 63 of 128."""
    output = {
        line.split("File=")[1].split(" ")[0]: line for line in lines(scan_machine("8xa100-sxm4-2s-nps4-8xcx6-ib-6nvsw"))
    }

    assert " Cores=48-63 " in output["/dev/nvidia0"]
    assert " Cores=112-127 " in output["/dev/nvidia4"]


@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        (node(2, 2, "0-55,112-167", "56-111,168-223"), {0: "0-55", 1: "56-111"}),
        (node(1, 2, "0-71", "72-143", "", ""), {0: "0-71", 1: "72-143"}),
        (node(2, 2, "0-7", "8-15"), {0: "0-3", 1: "4-7"}),  # threads of a core stand together
        (node(2, 2, "0,2,4,6", "1,3,5,7"), {0: "0-1", 1: "2-3"}),  # a node a package, interleaved
        (node(2, 1, "0,1", "2,3"), {0: "0", 1: "1"}),
        (node(2, 2, "56-111", "0-55"), {0: "28-55", 1: "0-27"}),  # the second node comes first
        (node(2, 2, "0,4,8,12", "1,5,9,13", "2,6,10,14", "3,7,11,15"), {}),  # which package is whose?
        (node(None, 2, "0-7", "8-15"), {}),
        (node(2, None, "0-7", "8-15"), {}),
        (node(2, 2, "0-7", None), {}),
        (node(2, 2, "0-6", "8-15"), {}),  # a thread is offline
        (node(2, 2, "0-7", "0-7"), {}),
        (node(2, 2, "0-7", "nonsense"), {}),
        (node(2, 1), {}),
    ],
)
def test_cores_of_numa_nodes(given: Node, ranges: dict[int, str]) -> None:
    """Known only where no other reading is possible."""
    assert ranges == compute_core_ranges(given)


def test_links_are_left_out_where_one_gpus_are_not_known():
    """A 0 would be read as no connection."""
    assert "Links" in export(scan_machine(H100))
    assert "Links" not in export(with_gpu(scan_machine(H100), links_known=False, links=[]))
    assert "Links" not in export(scan_machine("8xl40s-pcie-2s-2xcx7-roce"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"driver_state": "vfio"}, "the driver does not offer it (vfio)"),
        ({"driver_state": "unknown"}, "the driver does not offer it (unknown)"),
        ({"minor": None}, "its device file is not known"),
        ({"mig": Mig(current=True)}, "MIG is on"),
        ({"vendor": "AMD"}, "not an NVIDIA GPU"),
    ],
)
def test_a_gpu_that_jobs_cannot_have_has_no_line(change: dict[str, object], why: str) -> None:
    """A comment says why, and the count is one less."""
    report = with_gpu(scan_machine(H100), **change)

    assert 7 == len(lines(report))
    assert f"# GPU0 is left out: {why}" in export(report)
    assert "Gres=gpu:nvidia_h100_80gb_hbm3:7" in export(report)


@pytest.mark.parametrize(("name", "output"), [("h100-01.example.org", "NodeName=h100-01 "), ("a b", ""), (None, "")])
def test_a_node_is_called_by_its_short_name(name: str | None, output: str) -> None:
    """A name that Slurm would read as something else is none."""
    report = scan_machine(H100)
    changed = msgspec.structs.replace(report, node=msgspec.structs.replace(report.node, hostname=name))

    assert lines(changed)[0].startswith(f"{output}Name=gpu")


def test_the_leaf_is_the_switch_that_all_rails_name():
    """One switch: a line of topology.conf. Two: a comment that says so."""
    report = scan_machine("8xh200-sxm-2s-16xcx7-roce-4nvsw")
    rails = {nic.id for nic in report.topology.nics if nic.role == "rail"}

    def led_to(*names: str) -> str:
        rows = [netdev for netdev in report.topology.netdevs if netdev.nic in rails]
        output = [
            msgspec.structs.replace(row, neighbor=Neighbor(system=names[place % len(names)]))
            for place, row in enumerate(rows)
        ]
        return export(with_topology(report, netdevs=output))

    assert "# topology.conf: SwitchName=leaf-7 Nodes=h200-01\n" in led_to("leaf-7")
    assert "SwitchName" not in led_to("leaf-7", "leaf-8")
    assert "rails lead to 2 switches (leaf-7, leaf-8)" in led_to("leaf-7", "leaf-8")
    assert "SwitchName" not in led_to("leaf 7\nNodes=ALL")


def test_an_nvlink_domain_is_a_block():
    """Of rack products."""
    report = scan_machine(H100)
    fabric = Fabric(clique=3, cluster_uuid="a1b2c3d4-0000-1111-2222-333344445555")
    gpus = [msgspec.structs.replace(gpu, fabric=fabric) for gpu in report.topology.gpus]

    assert "# topology.conf: BlockName=a1b2c3d4-0000-1111-2222-333344445555.3 Nodes=h100-01\n" in export(
        with_topology(report, gpus=gpus)
    )
    assert "BlockName" not in export(report)


def labels(report: Report) -> dict[str, str]:
    """What NFD would make of the file: comments and directives aside, `name=value`."""
    lines = [line for line in export_labels(report).splitlines() if not line.startswith("#")]
    return {name.rpartition("/")[2]: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_kubernetes_takes_every_label(host: str, fault: str | None) -> None:
    """Names and values as k8s.io/apimachinery validates them; the file is far below NFD's limit."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    text = export_labels(hostile(report, host == "hostile") if bad else report)
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

    assert "# +expiry-time=2026-01-03T02:04:05Z" == export_labels(report).splitlines()[1]
    assert "+expiry" not in export_labels(msgspec.structs.replace(report, observed_at="yesterday"))
