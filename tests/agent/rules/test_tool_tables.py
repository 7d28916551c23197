"""Tables that people paste, alone: the finding that each gives, and none of a healthy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import ibstat, scan_text, warnings_of
from tests.probes.gpu.test_nvidia_smi_table import R390, TABLE, row, table
from tests.probes.sources.test_wrappers import ULIMIT
from tests.probes.tool_reports import tool_texts as texts

NODE = texts.NODE_WORDS
LOST = "N/A   ERR!   ERR!           ERR! /  700W |              GPU is lost | ERR!      Default"
NO_FAN = "ERR!  30C    P0              72W /  700W |       1MiB /  81559MiB |      0%      Default"
NO_SENSORS = "ERR!  ERR!   P0             ERR! /  700W |       1MiB /  81559MiB |      0%      Default"
LSPCI = "17:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
FAULTS = {  # name: text, and its findings of warning or more
    "an ECC count": (TABLE, {"error gpu-ecc GPU1 high"}),
    "a lost GPU": (table(row(), row(1, "2A", second=LOST)), {"error gpu-missing GPU1 medium"}),
    "no sensors": (table(row(second=NO_SENSORS)), {"error tool-reports-fault GPU0 medium"}),
    "no fan": (table(row(second=NO_FAN)), {"warning tool-reports-fault GPU0 medium"}),
    "ECC of one GPU off": (table(row(), row(1, "2A", ecc="Off")), {"warning gpu-ecc GPU1 high"}),
    "device handle": (
        "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n",
        {"error gpu-missing GPU0 medium"},
    ),
    "mismatch": (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n",
        {"error gpu-driver-unusable node medium"},
    ),
    "no devices": ("No devices were found\n", {"error gpu-driver-unusable node medium"}),
    "no driver": (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n",
        {"error gpu-driver-unusable node medium"},
    ),
    "a lost container": ("Failed to initialize NVML: Unknown Error\n", {"error gpu-driver-unusable node medium"}),
    "ulimit -a": (ULIMIT, {"warning gdr-memlock-low node medium"}),
    "ulimit -l": ("$ ulimit -l\n64\n", {"warning gdr-memlock-low node medium"}),
    "npu-smi": (texts.NPU.format(state="Alarm"), {"error tool-reports-fault GPU32 medium"}),
    "hl-smi": (texts.HL.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "rocm-smi": (texts.RAS.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi metric": (texts.AMD_METRIC.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi": (texts.AMD_BOX.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi bad-pages": (
        texts.AMD_PAGES.format(pending=texts.PAGES.format(state="PENDING"), unreservable=texts.NO_PAGES),
        {"warning tool-reports-fault GPU1 medium"},
    ),
    "dcgmi health": (
        texts.UNHEALTHY,
        {"error tool-reports-fault GPU3 medium", "warning tool-reports-fault GPU1 medium"},
    ),
    "dcgmi health, R1": (texts.UNHEALTHY_R1, {"warning tool-reports-fault GPU0 medium"}),
    "dcgmi health -j": (texts.HEALTH_JSON, {"error tool-reports-fault GPU3 medium"}),
    "dcgmi diag": (texts.DIAG, {"error tool-reports-fault GPU3 medium", "error tool-reports-fault node medium"}),
    "dcgmi diag -j": (texts.DIAG_JSON, {"error tool-reports-fault GPU5 medium"}),
    "ibqueryerrors": (texts.PORT_ERRORS, {"warning ib-fabric-errors port 7 of MF0;leaf3:MQM9700/U1 medium"}),
    "perfquery": (texts.PERFQUERY.format(symbols=65535), {"warning ib-fabric-errors port 1 of LID 33 medium"}),
    "kubectl": (texts.NODE.format(**{**NODE, "allocatable": "7"}), {"error tool-reports-fault node medium"}),
    "pod": (texts.POD, {"error tool-reports-fault node medium"}),
    "docker": (texts.DOCKER, {"error tool-reports-fault node medium"}),
    "kubectl get node": (texts.NODE_YAML.format(left=7), {"error tool-reports-fault node medium"}),
    "device plugin": (f"the pod logs:\n```\n{texts.PLUGIN_LOG}```\n", {
        "error tool-reports-fault node medium",
    }),
    "dcgmi nvlink": (texts.LINK_STATES.format(states="U D U U _ _"), {"error tool-reports-fault GPU1 medium"}),
    "dcgmi nvlink, all": (texts.LINK_STATES.format(states="D D D D _ _"), {"warning tool-reports-fault GPU1 low"}),
    "dcgmi diag without its head": (
        "+-----  Integration  -------+-----------------------------------------+\n"
        "| PCIe                      | Fail - GPU: 2                           |\n"
        "| Warning                   | GPU 2 NvLink link 3 is currently down   |\n",
        {"error tool-reports-fault GPU2 medium"},
    ),
    "dcgmi health without its head": (
        "| Overall Health            | Failure                                 |\n"
        "| -> 4                      | Failure                                 |\n"
        "|    -> NVLINK system       | Failure                                 |\n",
        {"error tool-reports-fault GPU4 medium"},
    ),
    "remapped rows": ("    Remapped Rows\n        Uncorrectable Error : 4\n        Pending : Yes\n", {
        "warning tool-reports-fault node medium",
    }),
    "a failed remapping": (
        "$ nvidia-smi -q | grep -A5 Remapped\n    Remapped Rows\n        Pending : No\n"
        "        Remapping Failure Occurred : Yes\n",
        {"error tool-reports-fault node medium"},
    ),
    "the fabric of some GPU": ("$ nvidia-smi -q | grep -A2 Fabric\n    Fabric\n        State : In Progress\n", {
        "warning tool-reports-fault node low",
    }),
    "nvidia-smi -q of one GPU": (
        "$ nvidia-smi -q -d ROW_REMAPPER -i 3\n\n==============NVSMI LOG==============\n\n"
        "Attached GPUs                             : 8\nGPU 00000000:5D:00.0\n    Remapped Rows\n"
        "        Correctable Error                 : 0\n        Uncorrectable Error               : 8\n"
        "        Pending                           : No\n        Remapping Failure Occurred        : Yes\n",
        {"error gpu-remap-failed GPU0 high"},
    ),
    "rocm-smi without a driver": (
        "$ rocm-smi\nERROR:root:Driver not initialized (amdgpu not found in modules)\n",
        {"error tool-reports-fault node medium"},
    ),
    "npu-smi without a driver": (
        "dcmi module initialize failed. ret is -8005\n", {"error tool-reports-fault node medium"},
    ),
    "a log from pdsh": (
        "n7: [142.445220] mlx5_core 0000:61:00.0: wait_func:1132:(pid 1): CREATE_DCT(0x710) timeout. Will cause a leak "
        "of a command resource\nn7: [142.445224] mlx5_core 0000:61:00.0: wait_func:1132:(pid 2): CREATE_DCT(0x710) "
        "timeout. Will cause a leak of a command resource\n",
        {"warning nic-firmware-dead NIC 0000:61:00.0 medium"},
    ),
    "one NVLink of one GPU": (
        "$ nvidia-smi nvlink --status\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-1111)\n"
        + "".join(f"\t Link {n}: {'<inactive>' if n == 3 else '25 GB/s'}\n" for n in range(12)),
        {"warning nvlink-inactive GPU0 low"},
    ),
    "a GPU that did not start": (
        "$ sudo dmesg | grep amdgpu\n[    8.839735] amdgpu 0000:c3:00.0: amdgpu: Fatal error during GPU init\n"
        "$ lspci | grep MI\nc3:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] MI210 (rev 02)\n",
        {"warning pci-driver-missing 0000:c3:00.0 medium"},
    ),
    "lspci | grep": (f"$ lspci | grep -i nvidia\n{LSPCI}{LSPCI.replace('17', '3d').replace('a1', 'ff')}", {
        "critical pcie-device-gone GPU1 high",
    }),
}  # fmt: skip
HEALTHY = {
    "nvidia-smi": table(row(), row(1, "2A")),
    "nvidia-smi R390": R390.replace("                  Off |", "                    0 |"),
    "nvidia-smi with MIG": table(*(row(n, f"{n}8", ecc="On", mig="Enabled") for n in range(2))),
    "nvidia-smi -L in a file of that name": "GPU 0: NVIDIA H200 (UUID: GPU-6f3b5fe1-0000-0000-0000-000000000000)\n",
    "ulimit -a": ULIMIT.replace(" 64\n", " unlimited\n"),
    "npu-smi": texts.NPU.format(state="OK"),
    "hl-smi": texts.HL.format(count=0),
    "rocm-smi": texts.RAS.format(count=0),
    "amd-smi metric": texts.AMD_METRIC.format(count=0),
    "amd-smi": texts.AMD_BOX.format(count=0),
    "amd-smi bad-pages": texts.AMD_PAGES.format(pending=texts.NO_PAGES, unreservable=texts.NO_PAGES),
    "dcgmi health": texts.HEALTHY,
    "dcgmi diag": texts.DIAG_PASSED,
    "ibqueryerrors": texts.PORT_WAITS,
    "perfquery": texts.PERFQUERY.format(symbols=3),
    "kubectl": texts.NODE.format(**NODE),
    "pod": texts.POD_WAITS,
    "kubectl get node": texts.NODE_YAML.format(left=8),
    "dcgmi nvlink": texts.LINK_STATES.format(states="U U U U _ _"),
    "lspci | grep ACSCtl": (
        "\t\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
        "\t\tACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    ),
    "LnkSta alone": "\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1 (downgraded)\n\t\t\tTrErr- Train-\n",
    "two bridged GPUs": (
        "GPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-47\t\tN/A\nGPU1\tNV4\t X \t0-47\t\tN/A\n"
    ),
    "ibdev2netdev | column": "mlx5_0  port  1  ==>  ibp26s0  (Down)  # rail 0\nmlx5_1  port  1  ==>  eno1  (Up)\n",
    "lspci -s | grep": (
        "$ sudo lspci -s 3b:00.0 -vv | grep -E 'LnkCap:|LnkSta:'\n"
        "\t\tLnkCap: Port #0, Speed 32GT/s, Width x16, ASPM L1\n\t\tLnkSta: Speed 32GT/s, Width x16\n"
    ),
    "lspci | grep": f"$ lspci | grep -i nvidia\n{LSPCI}",
    "lspci | grep LnkSta": f'$ lspci -vv | grep -E "LnkSta|^[0-9]"\n{LSPCI}\t\tLnkSta:\tSpeed 32GT/s, Width x16\n',
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_table_alone_gives_a_finding(name: str, tmp_path: Path) -> None:
    text, expected = FAULTS[name]
    report = scan_text(tmp_path, text, "issue.txt")

    assert expected == {f"{f.severity} {f.rule} {f.label} {f.confidence}" for f in warnings_of(report)}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_table_gives_no_warning(name: str, tmp_path: Path) -> None:
    report = scan_text(tmp_path, HEALTHY[name], "issue.txt")

    assert [] == warnings_of(report)
    assert "critical" != report.summary.verdict


@pytest.mark.parametrize("head", ["3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n", ""])
def test_lines_that_a_filter_left_are_of_the_address_of_the_command(head: str, tmp_path: Path) -> None:
    text = (
        f"$ lspci | grep 3b:00\n{head}$ sudo lspci -s 3b:00.0 -vv | grep -E 'LnkCap:|LnkSta:'\n"
        "\t\tLnkCap: Port #0, Speed 32GT/s, Width x16, ASPM L1\n\t\tLnkSta: Speed 32GT/s, Width x8 (downgraded)\n"
    )
    (finding,) = scan_text(tmp_path, text, "issue.txt").findings

    expected = ("pcie-width-downgraded", "pci:0000:3b:00.0", "warning" if head else "info")
    assert expected == (finding.rule, finding.subject, finding.severity)


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "ulimit -l"])
def test_the_steps_have_no_words_to_fill_in(name: str, tmp_path: Path) -> None:
    for finding in warnings_of(scan_text(tmp_path, FAULTS[name][0], "issue.txt")):
        assert not {"NPU_CARD", "NPU_CHIP", "GPU_INDEX", "ADDRESS", "DEVICE"} & set(finding.remedy.split())


@pytest.mark.parametrize(("links", "ports"), [(texts.LINKS, ()), (texts.SLOW_LINKS, (8, 9))], ids=["healthy", "slow"])
def test_slow_links_of_the_fabric_around_a_host_are_named(tmp_path: Path, links: str, ports: tuple[int, ...]) -> None:
    """A fabric alone is no host: `fleet topology` reads it."""
    (tmp_path / "iblinkinfo.txt").write_text(links)
    report = scan_text(tmp_path, ibstat(*["Active"] * 4))

    assert {f"ib-fabric-errors port {port} of MF0;leaf3:MQM9700/U1 low" for port in ports} == {
        f"{f.rule} {f.label} {f.confidence}" for f in warnings_of(report)
    }


def test_a_list_that_ends_at_a_lost_gpu_is_of_no_other_host(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi.txt").write_text(FAULTS["device handle"][0])
    listed = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-6f3b5fe{n}-0000-0000-0000-000000000000)\n" for n in range(2))
    report = scan_text(tmp_path, listed, "nvidia-smi_-L.txt")

    assert not report.source.hosts
    assert ["gpu-missing"] == [finding.rule for finding in warnings_of(report)]


def test_a_filtered_list_concludes_nothing_from_what_is_absent(tmp_path: Path) -> None:
    report = scan_text(tmp_path, HEALTHY["lspci | grep"], "issue.txt")

    assert "unknown" == report.summary.verdict
    assert "partial" in (report.summary.devices_unread or "")


def test_lines_that_state_no_device_are_refused_with_a_reason(tmp_path: Path) -> None:
    lines = f"{LSPCI}$ lspci -vvv | grep ACSCtl\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir-\n"
    (file,) = (file for file in scan_text(tmp_path, lines, "issue.txt").source.files if file.read_as is None)

    assert "do not state their device" in (file.reason or "")


def test_a_service_that_starts_jobs_outweighs_a_shell(tmp_path: Path) -> None:
    """The limit of a login says nothing of a scheduler's jobs."""
    unit = tmp_path / "etc" / "systemd" / "system"
    unit.mkdir(parents=True)
    (unit / "slurmd.service").write_text("[Service]\nLimitMEMLOCK=infinity\n")

    assert [] == warnings_of(scan_text(tmp_path, ULIMIT, "ulimit_-a.txt"))
