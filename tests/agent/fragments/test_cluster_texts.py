"""Texts about accelerators that NVIDIA did not make, CXL, clusters and several hosts, as people paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import scan_text, warnings_of

_LINKS = "[root@{host} ~]# for i in 0 1 2 3; do hccn_tool -i $i -link -g; done\n{states}"
_UP = "link status: UP\n"
_DOWN = "link status: DOWN\n"
_METRIC = "$ amd-smi metric -g 2 --pcie\nGPU: 2\n    PCIE:\n        WIDTH: {width}\n        SPEED: 32 GT/s\n\n"
_STATIC = "$ amd-smi static -g 2 --bus\nGPU: 2\n    BUS:\n        BDF: 0000:75:00.0\n        MAX_PCIE_WIDTH: 16\n"
_CXL = (
    '# cxl list -M\n[\n  {\n    "memdev":"mem4",\n    "ram_size":68719476736,\n    "health":{\n'
    '      "maintenance_needed":%s,\n      "performance_degraded":false,\n      "hw_repl'
)
_NODE = (
    "`kubectl get node` shows:\n\n    status:\n"
    '      allocatable:\n        cpu: "64"\n        nvidia.com/gpu: "{left}"\n'
    '      capacity:\n        cpu: "64"\n        nvidia.com/gpu: "4"\n'
)
_COUNTS = "NPU ID : 5\nChip ID : 0\n  TX Error Count : 0\n  RX Error Count : {count}\n  LCRC Error Count : {count}\n"
_EVENT = (
    '{{"time":"2026-01-02T03:04:05Z","level":"INFO","node":"worker-4","event":"[{{\\"checkName\\":\\"GpuMemWatch\\",'
    '\\"isFatal\\":true,\\"errorCode\\":[\\"DCGM_FR_UNCONTAINED_ERROR\\"],\\"entitiesImpacted\\":[{{\\"entityType\\":'
    '\\"GPU\\",\\"entityValue\\":\\"{gpu}\\"}}]}}]"}}\n'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ hccn_tool -i 6 -link -g\n" + _DOWN, [("npu-roce-port-down", "NPU 6", "low")]),
        ("$ hccn_tool -i 6 -link -g\n" + _UP, []),
        (_METRIC.format(width=8) + _STATIC, [("pcie-width-downgraded", "GPU2", "low")]),
        (_METRIC.format(width=16) + _STATIC, []),
        (_CXL % "true", [("cxl-health", "device mem4", "high")]),
        (_CXL % "false", []),
        (_NODE.format(left=0), [("tool-reports-fault", "node", "medium")]),
        (_NODE.format(left=4), []),
        (_COUNTS.format(count=57), [("tool-reports-fault", "NPU 5", "low")]),
        (_COUNTS.format(count=2), []),
        (_EVENT.format(gpu=5), [("tool-reports-fault", "GPU5", "medium")]),
    ],
)
def test_what_a_cut_or_lone_output_states(tmp_path: Path, text: str, expected: list[tuple[str, str, str]]) -> None:
    findings = warnings_of(scan_text(tmp_path, text, "chat.txt"))
    assert expected == [(finding.rule, finding.label, finding.confidence) for finding in findings]


def test_a_loop_on_each_of_two_hosts(tmp_path: Path) -> None:
    """The lines of the second host are one output, too: NPU 2 is compared with the others of its host."""
    first = _LINKS.format(host="node-1", states=4 * _UP)
    second = _LINKS.format(host="node-2", states=2 * _UP + _DOWN + _UP)
    (finding,) = warnings_of(scan_text(tmp_path, first + second, "chat.txt"))
    assert ("npu-roce-port-down", "node-2: NPU 2", "error") == (finding.rule, finding.label, finding.severity)


def test_a_cut_list_of_cxl_states_no_region(tmp_path: Path) -> None:
    """Of a region whose mappings are cut the rest is not known."""
    text = (
        _CXL.partition('"health"')[0] % ()
        + '"host":"0000:c4:00.0"},\n{"region":"region0","interleave_ways":2,"mappings":['
    )
    report = scan_text(tmp_path, text + '{"position":0,"memdev":"mem4"},', "chat.txt")
    assert ([], []) == (warnings_of(report), report.topology.cxl.regions if report.topology.cxl else None)


def test_one_line_of_a_controller_is_one_finding(tmp_path: Path) -> None:
    head = "May 03 02:00:00 ctl1 slurmctld[9]: slurmctld: "
    log = (
        f"{head}_node_config_validate: gres/gpu: Count changed on node w7 (8 != 7)\n"
        f"{head}error: Setting node w7 state to INVAL with reason:gres/gpu count reported lower than "
        "configured (7 < 8)\n"
    )
    (finding,) = warnings_of(scan_text(tmp_path, log, "chat.txt"))
    assert "w7" == finding.label


@pytest.mark.parametrize(
    ("status", "expected"), [("NotReady", ["w2"]), ("NotReady,SchedulingDisabled", ["w2"]), ("Ready", [])]
)
def test_nodes_of_a_cluster(tmp_path: Path, status: str, expected: list[str]) -> None:
    rows = "NAME STATUS ROLES  AGE VERSION\nw1   Ready  <none> 9d  v1.31.2\nw2   {}   <none> 9d  v1.31.2\n"
    report = scan_text(tmp_path, rows.format(status), "chat.txt")
    assert expected == [finding.label for finding in warnings_of(report)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("AcceleratedHardwareReady False {0} {0} NvidiaXID79Error XID 79 detected on GPU 6", "GPU6 Xid 79"),
        ("AcceleratedHardwareReady True {0} {0} NvidiaGPUIsReady Monitoring is active, and finds no fault", ""),
        ("DiskPressure True {0} {0} KubeletHasDiskPressure kubelet has disk pressure", "Kubernetes short"),
        ("MemoryPressure False {0} {0} KubeletHasSufficientMemory kubelet has sufficient memory available", ""),
    ],
)
def test_a_condition_without_its_heading(tmp_path: Path, condition: str, expected: str) -> None:
    report = scan_text(tmp_path, f"  {condition.format('Mon, 12 May 2025 10:00:00 +0000')}\n", "chat.txt")
    shown = [f"{finding.label} {finding.summary}" for finding in warnings_of(report)]
    assert bool(shown) == bool(expected)
    assert all(word in shown[0] for word in expected.split() if shown)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ('`DCGM_FI_DEV_XID_ERRORS{err_code="79", Hostname="w7"}`', ["Xid 79"]),
        ('DCGM_FI_DEV_XID_ERRORS{gpu="1", err_code="0"} 0', []),
        ('  expr: DCGM_FI_DEV_XID_ERRORS{err_code="79"} > 0', []),  # of an alert, not a value
    ],
)
def test_series_that_name_an_xid(tmp_path: Path, series: str, expected: list[str]) -> None:
    report = scan_text(tmp_path, f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",device="nvidia0"}} 44\n{series}\n', "chat.txt")
    assert expected == [part for part in ("Xid 79",) for finding in warnings_of(report) if part in finding.summary]


@pytest.mark.parametrize("reason", ["Low RealMemory", "Low CPUs", "Low socket*core*thread count"])
def test_a_node_with_less_than_slurm_expects(tmp_path: Path, reason: str) -> None:
    """What slurmctld itself states of a node is compared with its configuration."""
    (finding,) = warnings_of(
        scan_text(tmp_path, f"REASON                          NODELIST\n{reason:32}c[1-3]\n", "chat.txt")
    )

    assert "Slurm's configuration does not fit" in finding.summary
    assert "`scontrol show node 'c[1-3]'`" in finding.steps[0].do
