"""Lines out of the middle of an output, as people paste them: recognized by themselves, judged where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import BadSource
from probes.sources.excerpts import find_excerpt
from probes.sources.identify import identify_command, identify_unnamed
from probes.sources.open_source import open_source

ODD, TOOL = "one of several devices differs from the others", "tool-reports-fault"
SMI_ROW = "|   3  NVIDIA H100 80GB HBM3          On  |   00000000:5D:00.0 Off |                   {} |\n"
ETHTOOL = (
    "Settings for ens{}f0np0:\n\tSpeed: {}Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"  # below it a list of modes
)
LINK = "{}: enp{}s0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {} qdisc mq state UP mode DEFAULT qlen 1000\n"
_PFC = "\tpriority    0   1   2   3   4   5   6   7\n\tenabled " + "   {}" * 8 + "\n"
QUERY = "$ nvidia-smi --query-gpu=index,pcie.link.width.current --format=csv,noheader\n"


def _scan(tmp_path: Path, text: str) -> Report:
    (tmp_path / "paste.txt").write_text(text)
    return diagnose(open_source(str(tmp_path / "paste.txt")), ScanPlan())[0]


def _repeat(line: str, usual: str, odd: str, count: int = 8) -> str:
    return "".join(line.format(odd if number == 2 else usual) for number in range(count))


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        pytest.param(
            SMI_ROW.format("ERR!")
            + "|ERR!  ERR! ERR!             ERR! / ERR! |    0MiB /  81559MiB |   N/A   ERR! |\n",
            f"{TOOL} error",
            id="rows of nvidia-smi",
        ),
        pytest.param(
            "|   2  HL-325L              N/A  | 0000:9a:00.0     N/A |                   1 |\n"
            "| N/A   35C   N/A   220W / 900W  |  98304MiB / 98304MiB |     0%          100% |\n",
            f"{TOOL} error",
            id="rows of hl-smi",
        ),
        pytest.param(
            "SymbolErrorCounter:..............65535\nLinkErrorRecoveryCounter:........255\n",
            "ib-fabric-errors warning",
            id="perfquery",
        ),
        pytest.param("| GPU ID: 3      | Warning |\n|   | NVLink system: Warning |\n", f"{TOOL} warning", id="health"),
        pytest.param("| nvlink      | Fail         |\n| Warning: GPU 4 | CRC errors |\n", f"{TOOL} error", id="diag"),
        pytest.param("BOOT_IMAGE=/vmlinuz-6 root=/dev/sda1 ro intel_iommu=on quiet\n", f"{TOOL} info", id="cmdline"),
        pytest.param(_PFC.format(*"00000000"), "roce-pfc-off info", id="mlnx_qos"),
        pytest.param("\t Link 2: 26.562 GB/s\n\t Link 3: <inactive>\n", f"{TOOL} warning", id="nvlink -s"),
        pytest.param("\t Link 3: Replay Errors: 1532\n\t Link 4: Replay Errors: 0\n", f"{TOOL} info", id="nvlink -e"),
        pytest.param(
            "        Health\n            Summary         : Unhealthy\n            Bandwidth       : Full\n",
            f"{TOOL} warning",
            id="fabric",
        ),
        pytest.param("\tUESta:\tDLP- SDES+ TLP- FCP- CmpltTO- UnsupReq-\n", f"{TOOL} info", id="lspci"),
        pytest.param(
            "$ cluster-check -o custom-columns=NODE,STATE\nNODE  STATE\n"
            + "".join(f"gn{at}  {'error' if at == 2 else 'ready'}\n" for at in range(4)),
            f"{TOOL} info",
            id="a command that is not known",
        ),
        pytest.param(
            "$ cat /proc/mdstat\nmd3 : active raid1 sdb1[1]\n   523264 blocks [2/1] [U_]\n", f"{TOOL} info", id="mdstat"
        ),
        pytest.param(
            "$ ipmitool sdr type Fan\nFAN1 | 30h | ok | 29.1 | 8800 RPM\n$ ipmitool sdr type 'Power Supply'\n"
            "PS2 | 61h | ok | 10.2 | Presence detected, Failure detected\n",
            f"{TOOL} warning",
            id="sensors of two commands",
        ),
        pytest.param(
            "State                : Polling\nPhysical state       : ETH_AN_FSM_ENABLE\nSpeed  : N/A\n",
            f"{TOOL} warning",
            id="mlxlink",
        ),
        pytest.param(
            "".join(ETHTOOL.format(slot, 100000 if slot == 3 else 400000) for slot in range(3, 7)),
            "roce-speed-degraded info",
            id="speeds of four interfaces",
        ),
        pytest.param(
            "".join(LINK.format(slot, slot, 1500 if slot == 3 else 9000) for slot in range(3, 7)),
            "roce-mtu-mismatch warning",
            id="ip link, the lines of names alone",
        ),
        pytest.param(
            "mlx5_0/ports/1/hw_counters/local_ack_timeout_err:4421\nmlx5_0/ports/1/hw_counters/out_of_sequence:0\n",
            "ib-hwcounter-transport warning",
            id="counters below /sys/class/infiniband",
        ),
        pytest.param(QUERY + "0, 16\n1, 16\n2, 4\n3, 16\n", "peer-differs warning", id="a query without its heading"),
    ],
)
def test_an_excerpt_with_a_fault(text: str, finding: str, tmp_path: Path) -> None:
    report = _scan(tmp_path, text)

    assert finding in [f"{one.rule} {one.severity}" for one in report.findings]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\tLnkSta:\tSpeed 32GT/s, Width x16\n", id="lspci"),
        pytest.param("\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+\n\tUESta:\tDLP- SDES- TLP- UnsupReq+\n", id="AER"),
        pytest.param("\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n", id="nvlink"),
        pytest.param("    Minor Number     : 3\n    VBIOS Version    : 96.00.A5.00.01\n", id="nvidia-smi -q"),
        pytest.param(_PFC.format(*"00010000"), id="mlnx_qos"),
        pytest.param("\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.2048\n", id="ibstat"),
        pytest.param("\tSpeed: 400000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n", id="ethtool"),
        pytest.param("RX:\t\ton\nTX:\t\ton\n", id="ethtool -a"),
        pytest.param("bus-info: 0000:04:00.0\nsupports-statistics: yes\n", id="ethtool -i"),
        pytest.param("Vendor name      : ACME\nVendor PN        : X-1\n", id="ethtool -m"),
        pytest.param("Configured FEC encodings: RS\nActive FEC encoding: RS\n", id="ethtool --show-fec"),
        pytest.param("BOOT_IMAGE=/vmlinuz-6 root=/dev/sda1 ro amd_iommu=on iommu=pt\n", id="cmdline"),
        pytest.param(
            "    mlx5_1              a088c20300947f4e\n    mlx5_2        a088c20300ff05ae\n", id="ibv_devices"
        ),
        pytest.param("mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a03:4704\t10.3.71.4\tv2\teth0\n", id="show_gids"),
        pytest.param("| GPU ID: 3      | Healthy |\n", id="dcgmi health"),
        pytest.param("| memory     | Pass         |\n| pcie | Pass |\n", id="dcgmi diag"),
        pytest.param(_repeat("\t\tState: {}\n\t\tRate: 400\n", "Active", "Active"), id="states, all alike"),
        pytest.param("State: Down\n" * 4 + "State: Active\n" * 4, id="half of them"),
    ],
)
def test_an_excerpt_without_a_fault(text: str, tmp_path: Path) -> None:
    assert [] == [finding.summary for finding in _scan(tmp_path, text).findings if finding.severity != "info"]


def test_too_few_lines_to_compare_are_refused_with_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(BadSource) as refused:
        _scan(tmp_path, _repeat("\t\tState: {}\n", "Active", "Down", 3))

    assert "$ ibv_devinfo -v" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (_repeat("\t\t\tstate:\t\t\t{}\n", "PORT_ACTIVE (4)", "PORT_DOWN (1)"), "state: PORT_DOWN (1) (number 3)"),
        (_repeat("\t\tState: {0}\n\t\tRate: 400\n", "Active", "Down"), "State: Down (number 3)"),
        (_repeat("{}\n", "4: ACTIVE", "1: DOWN"), "values: 1: DOWN (number 3)"),
        (_repeat("{}\n", "16", "8"), "values: 8 (number 3)"),
    ],
    ids=["ibv_devinfo", "ibstat", "files of states", "widths"],
)
def test_one_of_several_lines_without_the_names_of_devices(text: str, what: str, tmp_path: Path) -> None:
    found = [finding for finding in _scan(tmp_path, text).findings if finding.severity == "warning"]

    assert [True] == [ODD in finding.summary.lower() and what in finding.summary for finding in found]


MATRIX = [
    ["NV18"] * gpu + ["X"] + ["NV18"] * (3 - gpu) + ["PXB" if nic == gpu else "SYS" for nic in range(4)]
    for gpu in range(4)
]
TAIL = "\t0-47\t0\t\tN/A"


def _rows(cells: Sequence[Sequence[str]], tail: str = TAIL) -> str:
    return "".join(f"GPU{number}\t" + "\t".join(row) + f"{tail}\n" for number, row in enumerate(cells))


def test_rows_of_the_matrix_without_their_heading(tmp_path: Path) -> None:
    """An X is under the name of its own row; an NVLink ends at a GPU, so what is behind the last is a NIC."""
    topology = _scan(tmp_path, _rows(MATRIX)).topology
    ways = {(path.a, path.b): path.kind for path in topology.paths}

    assert ["GPU0", "GPU1", "GPU2", "GPU3"] == [gpu.label for gpu in topology.gpus]
    assert "NV18" in str(ways)


def test_a_gpu_outside_of_rows_without_their_heading(tmp_path: Path) -> None:
    rows = [[*row[:3], "SYS", *row[4:]] for row in MATRIX[:3]] + [["SYS", "SYS", "SYS", "X", *MATRIX[3][4:]]]

    assert "nvlink-path-missing GPU3" in [f"{one.rule} {one.label}" for one in _scan(tmp_path, _rows(rows)).findings]


def test_rows_of_which_nothing_states_what_the_columns_are(tmp_path: Path) -> None:
    """Without an NVLink one row fits GPUs and NICs alike."""
    with pytest.raises(BadSource):
        _scan(tmp_path, "Hello\n")
    report = _scan(tmp_path, "GPU1\tPHB\tX\tSYS\tSYS\n")

    assert [] == report.topology.gpus


def test_lines_of_prose_are_no_excerpt() -> None:
    for text in ("Dear all,\nour State: is fine\n", "| a | b |\n| c | d |\n", "key: value\nother: 12\n", "1\n2\n3\n"):
        assert (None, (), None) == (find_excerpt(text), identify_command(text), identify_unnamed(text)), text


def test_a_list_of_values_in_a_document_is_of_the_document(tmp_path: Path) -> None:
    with pytest.raises(BadSource):
        _scan(tmp_path, '{"slots": {"speeds": ["16 GT/s", "16 GT/s", "8 GT/s", "16 GT/s", "16 GT/s"]}}\n')


def test_counters_of_an_npu_are_of_no_interface(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="NPU"):
        _scan(tmp_path, "packet statistics:\nmac_tx_pfc_pkt_num: 0\nrx_bad_pkt_drop: 4\nrx_pause_pkts_phy: 4\n")
