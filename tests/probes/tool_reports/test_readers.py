"""Faults that saved outputs of tools state: each reader on a fault, a healthy machine, and what it cannot read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports import accelerators, bmc, containers, counted, dcgmi, nvidia_tools, unnamed
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.network.port_errors import list_narrow_links, list_port_errors, list_slow_links
from probes.tool_reports.nvidia_tools import list_held_back
from probes.tool_reports.sentences import stated
from tests.probes.gpu.test_nvidia_smi_table import TABLE
from tests.probes.tool_reports import tool_texts as texts

Reader = Callable[[str], Sequence[ToolReport]]
NODE = texts.NODE.format(**texts.NODE_WORDS)
NODE_JSON = {"status": {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "16"}}}


def node(**words: str) -> str:
    return texts.NODE.format(**{**texts.NODE_WORDS, **words})


COUNT = 'DCGM_EXP_XID_ERRORS_COUNT{{gpu="2",UUID="GPU-aa",Hostname="n7",xid="{xid}"}} {value}\n'
XGMI_ROWS = "XGMI LINK STATUS:\n     bdf  link_status\n" + "".join(
    f"GPU{n}   0000:{n}7:00.0  U  U  {{{n}}}  X\n" for n in range(4)
)
RDCI_ROWS = "GPUs:\n    GPU:0\n        U U D X \n    GPU:1\n        U D D X \n\n* U:Up D:Down X:Disabled\n"
C2C_ROWS = (
    "GPU 0: NVIDIA GB200 (UUID: GPU-0a)\n\t C2C Link 0: 40.1 GB/s\n\t C2C Link 1: {0}\n"
    "GPU 1: NVIDIA GB200 (UUID: GPU-0b)\n\t C2C Link 0: {1}\n\t C2C Link 1: 40.1 GB/s\n"
)
NPU_ECC = (
    "\tNPU ID                                     : {npu}\n\tChip Count                                 : 1\n\n"
    "\tHBM Single Bit Error Count                 : 40\n\tHBM Double Bit Error Count                 : {count}\n"
    "\tHBM Double Bit Aggregate Total Err Cnt     : 9\n\tHBM Double Bit Isolated Pages Count        : 9\n"
)
IPMI_SENSORS = (
    "ID  | Name        | Type        | State    | Reading | Units | Event\n"
    "11  | GPU6_TEMP   | Temperature | {state}  | 96.00   | C     | 'OK'\n"
)
IPMI_LIMIT = (
    "ID  | Name        | Type        | Reading | Units | Event\n"
    "11  | GPU6_TEMP   | Temperature | 96.00   | C     | 'At or Above (>=) {limit} Threshold'\n"
)
IPMI_POWER = (
    "ID  | Name        | Type         | Reading | Units | Event\n"
    "40  | PSU2_Status | Power Supply | N/A     | N/A   | 'Presence detected' 'Power Supply input lost (AC/DC)'\n"
    "41  | PSU3_Status | Power Supply | N/A     | N/A   | 'Presence detected'\n"
)
DCGM_SAMPLES = (
    "#Entity   TMPTR   GPUTL   TVIOL\nID        C       %       ns\nGPU 0     60      99      0\n"
    "GPU 1     87      99      91000000000\nGPU 0     60      99      0\nGPU 1     88      99      {held}\n"
)
AMD_MONITOR = "GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%\n" + "".join(
    f"  {n}  700 W   61 °C   52 °C  {'{clock}' if n == 3 else 2090} MHz  {'{use}' if n == 3 else 99} %\n"
    for n in range(5)
)
BANKS = (
    "GPU 00000000:2D:00.0\n    Remapped Rows\n        Uncorrectable Error               : 12\n"
    "        Pending                           : No\n        Bank Remap Availability Histogram\n"
    "            Low                           : 0 bank(s)\n"
    "            None                          : {spent} bank(s)\n"
)
NEURON = (
    '{{"system_data": {{"neuron_hw_counters": {{"neuron_devices": [{{"neuron_device_index": 9, "mem_ecc_corrected": 6, '
    '"mem_ecc_uncorrected": {count}}}, {{"neuron_device_index": 10, "mem_ecc_uncorrected": 0}}]}}}}}}\n'
)
SDR = "FAN_2_F          | 41h | {state} | 29.2 | 0 RPM\nINLET_TEMP       | 01h | ok  |  7.1 | 24 degrees C\n"
XID_OF_2 = ("metric-xid", "NVIDIA 2")
NPU = "\tNPU ID                         : 5\n\tChip Count                     : 1\n\n\tHealth     : {state}\n"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (XGMI_ROWS.format(*"UUUU"), ("amd-smi", "xgmi", "-l")),
        (RDCI_ROWS, ("amd-smi", "xgmi", "-l")),
        (C2C_ROWS.format("<inactive>", "40.1 GB/s"), ("nvidia-smi", "c2c", "-s")),
        (NPU_ECC.format(npu=1, count=0), ("counts", "of", "devices")),
        (NEURON.format(count=0), ("counts", "of", "devices")),
        (SDR.format(state="ucr"), ("ipmitool", "sdr")),
        (IPMI_POWER, ("ipmitool", "sdr")),
        (DCGM_SAMPLES.format(held=0), ("dcgmi", "dmon")),
        (AMD_MONITOR.format(clock=2090, use=99), ("amd-smi", "monitor")),
    ],
)
def test_a_text_without_its_command_is_recognized(text: str, command: tuple[str, ...]) -> None:
    assert identify_command(text)[0] == command


NPU_ROWS = "".join(
    f"| {npu}     910B3    | OK    | 93.1        {{}}                0    / 0             |\n"
    f"| 0             | 0000:0{npu + 1}:00.0  | 0           0    / 0          3400 / 65536         |\n"
    for npu in range(4)
)


def hot_table(*degrees):
    """Four cards in the table of hl-smi, these first, the others at 41 °C."""
    return "".join(
        f"|   {card}  HL-325L             N/A  | 0000:{22 + card}:00.0     N/A |                   0  |\n"
        f"| N/A   {heat}C   N/A  223W /  900W |    672MiB / 131072MiB |     0%           N/A |\n"
        for card, heat in enumerate([*degrees, 41, 41, 41][:4])
    )


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (accelerators.list_npu_states, texts.NPU.format(state="Alarm"), [("npu-alarm", "0000:83:00.0")]),
        (accelerators.list_npu_states, texts.NPU.format(state="Warning"), [("npu-warning", "0000:83:00.0")]),
        (accelerators.list_npu_states, texts.NPU.format(state="Critical"), [("npu-critical", "0000:83:00.0")]),
        (accelerators.list_npu_states, texts.NPU.format(state="UNKNOWN"), [("npu-unknown", "0000:83:00.0")]),
        (accelerators.list_npu_states, texts.NPU.format(state="OK"), []),
        (dcgmi.list_links_down, texts.LINK_STATES.format(states="U U D U _ _"), [("dcgm-link-down", "NVIDIA 1")]),
        (dcgmi.list_links_down, texts.LINK_STATES.format(states="D D D D _ _"), [("dcgm-links-down", "NVIDIA 1")]),
        (dcgmi.list_links_down, texts.LINK_STATES.format(states="U U X U _ _"), []),
        (containers.list_node_faults, texts.NODE_YAML.format(left=7), [("kube-unhealthy", None)]),
        (containers.list_node_faults, texts.NODE_YAML.format(left=8), []),
        (containers.list_node_faults, json.dumps(NODE_JSON, indent=2), [("kube-unhealthy", None)]),
        (stated.list_stated, texts.PLUGIN_LOG, [("kube-xid", None), ("kube-marked", None)]),
        (accelerators.list_gaudi_errors, texts.HL.format(count=3), [("gaudi-events", "0000:22:00.0")]),
        (accelerators.list_gaudi_errors, texts.HL.format(count=0), []),
        (nvidia_tools.list_hot_rows, hot_table(98), [("value-odd", "0000:22:00.0")]),
        (nvidia_tools.list_hot_rows, hot_table(88), []),  # busy, and no more
        (nvidia_tools.list_hot_rows, hot_table(98, 98, 97, 96), []),  # all of them: the room is hot
        (nvidia_tools.list_hot_rows, NPU_ROWS.format(38, 97, 40, 39), [("value-odd", "0000:02:00.0")]),
        (accelerators.list_amd_links, XGMI_ROWS.format("U", "U", "D", "U"), [("amd-link-down", "0000:27:00.0")]),
        (accelerators.list_amd_links, XGMI_ROWS.format("D", "D", "D", "D"), []),  # the board does not wire it
        (accelerators.list_amd_links, RDCI_ROWS, [("amd-link-down", "AMD 1")]),
        (nvidia_tools.list_c2c_links, C2C_ROWS.format("40.1 GB/s", "<inactive>"), [("c2c-down", "NVIDIA 1")]),
        (nvidia_tools.list_c2c_links, C2C_ROWS.format("40.1 GB/s", "40.1 GB/s"), []),
        (
            counted.list_counts,
            NPU_ECC.format(npu=1, count=0) + NPU_ECC.format(npu=2, count=3),
            [("count-memory", "NPU 2")],
        ),
        (counted.list_counts, NPU_ECC.format(npu=1, count=0), []),
        (bmc.list_sensor_states, IPMI_SENSORS.format(state="Critical"), [("sensor-critical", "GPU6_TEMP")]),
        (bmc.list_sensor_states, IPMI_SENSORS.format(state="Nominal"), []),
        (bmc.list_sensor_states, IPMI_LIMIT.format(limit="Upper Critical"), [("sensor-critical", "GPU6_TEMP")]),
        (bmc.list_sensor_states, IPMI_LIMIT.format(limit="Upper Non-Critical"), []),
        (bmc.list_sensor_states, IPMI_POWER, [("sensor-failed", "PSU2_Status")]),
        (nvidia_tools.list_held_back, DCGM_SAMPLES.format(held=93000000000), [("dmon-hot", "NVIDIA 1")]),
        (nvidia_tools.list_held_back, DCGM_SAMPLES.format(held=91000000000), []),  # long ago
        (nvidia_tools.list_slow_amd, AMD_MONITOR.format(clock=702, use=100), [("amd-slow", "AMD 3")]),
        (nvidia_tools.list_slow_amd, AMD_MONITOR.format(clock=702, use=4), []),  # idle
        (nvidia_tools.list_spent_banks, BANKS.format(spent=2), [("banks-spent", "0000:2d:00.0")]),
        (nvidia_tools.list_spent_banks, BANKS.format(spent=0), []),
        (counted.list_counts, NEURON.format(count=2), [("count-memory", "Neuron 9")]),
        (counted.list_counts, NEURON.format(count=0), []),
        (bmc.list_sensor_states, SDR.format(state="lcr"), [("sensor-critical", "FAN_2_F")]),
        (bmc.list_sensor_states, SDR.format(state="lnc"), []),
        (accelerators.list_ras_errors, texts.RAS.format(count=5), [("amd-uncorrectable", "AMD 1")]),
        (accelerators.list_ras_errors, texts.RAS.format(count=0), []),
        (
            accelerators.list_bad_pages,
            texts.PAGES_INFO.format(state="pending"),
            [("amd-pages-pending", "AMD 1")],
        ),
        (
            accelerators.list_bad_pages,
            texts.PAGES_INFO.format(state="unreservable"),
            [("amd-pages-unreservable", "AMD 1")],
        ),
        (accelerators.list_bad_pages, texts.PAGES_INFO.format(state="reserved"), []),
        (accelerators.list_amd_errors, texts.AMD_METRIC.format(count=2), [("amd-uncorrectable", "AMD 1")]),
        (accelerators.list_amd_errors, texts.AMD_METRIC.format(count=0), []),
        (accelerators.list_amd_errors, texts.AMD_MONITOR.format(count=7), [("amd-uncorrectable", "AMD 1")]),
        (accelerators.list_amd_errors, texts.AMD_MONITOR.format(count=0), []),
        (accelerators.list_amd_errors, texts.AMD_MONITOR.format(count="N/A"), []),
        (accelerators.list_amd_errors, texts.AMD_MONITOR.format(count=0).replace("    0     283", "10 283"), []),
        (
            accelerators.list_ras_errors,
            texts.RAS.format(count=5).replace("]:", "]\t\t:"),
            [("amd-uncorrectable", "AMD 1")],
        ),
        (accelerators.list_amd_errors, texts.AMD_BOX.format(count=1), [("amd-uncorrectable", "0000:22:00.0")]),
        (accelerators.list_amd_errors, texts.AMD_BOX.format(count=0), []),
        (
            accelerators.list_amd_errors,
            texts.AMD_PAGES.format(pending=texts.PAGES.format(state="PENDING"), unreservable=texts.NO_PAGES),
            [("amd-pages-pending", "AMD 1")],
        ),
        (
            accelerators.list_amd_errors,
            texts.AMD_PAGES.format(pending=texts.NO_PAGES, unreservable=texts.PAGES.format(state="UNRESERVABLE")),
            [("amd-pages-unreservable", "AMD 1")],
        ),
        (accelerators.list_amd_errors, texts.AMD_PAGES.format(pending=texts.NO_PAGES, unreservable=texts.NO_PAGES), []),
        (
            accelerators.list_amd_errors,
            '[{"gpu": 2, "retired": "No bad pages found.", "pending": [{"page_address": "0x1"}], "un_res": "N/A"}]',
            [("amd-pages-pending", "AMD 2")],
        ),
        (dcgmi.parse_health, texts.HEALTHY, []),
        (
            dcgmi.parse_health,
            texts.UNHEALTHY,
            [("dcgm-health-warning", "NVIDIA 1"), ("dcgm-health-failure", "NVIDIA 3")],
        ),
        (dcgmi.parse_health, texts.UNHEALTHY_R1, [("dcgm-health-warning", "NVIDIA 0")]),
        (dcgmi.parse_health, texts.HEALTH_JSON, [("dcgm-health-failure", "NVIDIA 3")]),
        (dcgmi.parse_diag, texts.DIAG_PASSED, []),
        (dcgmi.parse_diag, texts.DIAG, [("dcgm-diag-failure", "NVIDIA 3"), ("dcgm-diag-failure", None)]),
        (dcgmi.parse_diag, texts.DIAG_R4, [("dcgm-diag-failure", "NVIDIA 1")]),
        (dcgmi.parse_diag, texts.DIAG_EARLY, [("dcgm-diag-failure", "NVIDIA 3")]),
        (dcgmi.parse_diag, texts.DIAG_JSON, [("dcgm-diag-failure", "NVIDIA 5")]),
        (dcgmi.parse_diag, texts.DIAG_JSON_R3, [("dcgm-diag-failure", "NVIDIA 2")]),
        (containers.list_node_faults, NODE, []),
        (containers.list_node_faults, node(allocatable="7"), [("kube-unhealthy", None)]),
        (containers.list_node_faults, node(capacity="0", allocatable="0"), [("kube-no-devices", None)]),
        (containers.list_node_faults, node(ready="False"), [("kube-not-ready", None)]),
        (containers.list_node_faults, node(ready="Unknown"), [("kube-not-ready", None)]),
        (containers.list_node_faults, node(gpus="False"), [("kube-condition", None)]),
        (stated.list_stated, texts.POD, [("kube-allocate", None)]),
        (stated.list_stated, texts.POD_WAITS, [("kube-free", None)]),
        (stated.list_stated, texts.DOCKER * 3, [("container-version", None)]),
        (accelerators.list_smi_errors, TABLE, []),
        (
            accelerators.list_smi_errors,
            TABLE.replace("N/A   32C", "ERR!  32C", 1),
            [("fan-unreadable", "0000:18:00.0")],
        ),
        (accelerators.list_smi_errors, TABLE.replace(" 32C", "ERR!", 1), [("sensors-unreadable", "0000:18:00.0")]),
        (
            list_port_errors,
            texts.PORT_ERRORS,
            [("counters", "port 7 of MF0;leaf3:MQM9700/U1"), ("counters", "port 9 of MF0;leaf3:MQM9700/U1")],
        ),
        (list_port_errors, texts.DATA_COUNTERS, []),
        (list_slow_links, texts.LINKS, []),
        (
            list_slow_links,
            texts.SLOW_LINKS,
            [("width", "port 8 of MF0;leaf3:MQM9700/U1"), ("speed", "port 9 of MF0;leaf3:MQM9700/U1")],
        ),
        (list_port_errors, texts.PERFQUERY.format(symbols=9), [("counters", "port 1 of LID 33")]),
        (list_narrow_links, texts.discovered(4, narrow=3), [("width", "port 13 of ib-leaf:MQM9700/U1")]),
        (list_narrow_links, texts.discovered(4, narrow=3) * 2, [("width", "port 13 of ib-leaf:MQM9700/U1")]),
        (list_narrow_links, texts.discovered(3, narrow=3), []),
        (list_narrow_links, 'Ca\t1 "H-0000000000100000"\t\t# "node1 mlx5_0"\n', []),
        (list_narrow_links, texts.discovered(4, narrow=0), []),
        (containers.list_node_faults, texts.KUBE_TABLE.format(left=7), [("kube-unhealthy", "n2")]),
        (containers.list_node_faults, texts.KUBE_TABLE.format(left=8), []),
        (
            containers.list_node_faults,
            texts.KUBE_COUNTS.format(gpus=7, hcas="<none>"),
            [("below-count", "n3"), ("below-count", "n4")],
        ),
        (containers.list_node_faults, texts.KUBE_COUNTS.format(gpus=8, hcas=8), []),
        (containers.list_node_faults, texts.KUBE_COUNTS.format(gpus=8, hcas=8) + "cpu1 <none> <none>\n", []),
        (containers.list_node_faults, texts.KUBE_PATH.format(left=7), [("kube-unhealthy", "n2")]),
        (containers.list_node_faults, texts.KUBE_JQ.format(gpus=8, hcas=0), [("kube-none", None)]),
        (containers.list_node_faults, texts.KUBE_JQ.format(gpus=8, hcas=8), []),
        (containers.list_node_faults, texts.KUBE_JQ.format(gpus=0, hcas=0), []),  # no node for GPUs
        (unnamed.list_shown_files, "/proc/cmdline:ro intel_iommu=on\n", [("cmdline-iommu", None)]),
        (unnamed.list_shown_files, "==> /proc/cmdline <==\nro amd_iommu=on\n", [("cmdline-iommu", None)]),
        (unnamed.list_shown_files, texts.NUMA_NODES.format(node=-1), [("numa-none", None)]),
        (unnamed.list_shown_files, texts.RATES.format(rate="100 Gb/sec (1X NDR)"), [("file-odd", None)]),
        (dcgmi.list_metrics, COUNT.format(xid=79, value=2), [("metric-xid", "NVIDIA 2")]),
        (dcgmi.list_metrics, COUNT.format(xid=79, value=0), []),
        (dcgmi.list_metrics, 'DCGM_FI_DEV_XID_ERRORS{Hostname="n7", UUID="GPU-aa", gpu="2"} 79', [XID_OF_2]),
        (dcgmi.list_metrics, COUNT.format(xid=79, value=1) + COUNT.format(xid=94, value=1), 2 * [XID_OF_2]),
        (accelerators.list_npu_health, NPU.format(state="Warning"), [("npu-warning", "NPU 5")]),
        (accelerators.list_npu_health, NPU.format(state="OK"), []),
    ],
)
def test_what_a_tool_states(read: Reader, text: str, expected: list[tuple[str, str | None]]) -> None:
    assert expected == [(report.code, report.subject) for report in read(text)]


def test_a_message_is_joined_over_the_lines_of_its_cell() -> None:
    assert "Memory system: Failure A DBE has been detected in GPU 3." == dcgmi.parse_health(texts.UNHEALTHY)[1].text
    assert dcgmi.parse_diag(texts.DIAG)[0].text.endswith("pending page retirements or row remaps.")


def test_both_ends_of_a_link_are_named() -> None:
    detail = dict(list_port_errors(texts.PORT_ERRORS)[0].detail)

    assert {
        "symbol_error": "65535",
        "link_error_recovery": "31",
        "link_downed": "9",
        "far": "port 1 of n07 mlx5_2",
    } == detail


def test_a_slow_link_states_what_it_could_be() -> None:
    width, speed = (dict(report.detail) for report in list_slow_links(texts.SLOW_LINKS))

    assert {"runs": "2X", "could": "4X", "far": "port 1 of n08 mlx5_2", "links": "9"} == width
    assert {"runs": "HDR", "could": "NDR", "far": "port 1 of n09 mlx5_2", "links": "9"} == speed


def test_lines_of_ibdiagnet_name_the_port_and_what_grew() -> None:
    lines = (
        '-W- n07/U1/P1 - "symbol_error_counter" increased during the run (difference value=40,difference allowed '
        "threshold=1)\n-E- Link: S01/N01/P20<-->n07/U1/P1 - Unexpected actual link speed 14 (enable_speed1=...)\n"
        '-W- n07/U1/P1 - "port_xmit_wait" increased during the run (difference value=9,difference allowed)\n'
    )
    assert [
        ("growing", "n07/U1/P1", (("symbol_error", "40"),)),
        ("speed", "S01/N01/P20", (("runs", "14"), ("far", "n07/U1/P1"))),
    ] == [(report.code, report.subject, report.detail) for report in list_port_errors(lines)]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (unnamed.list_shown_files, "/proc/cmdline:ro intel_iommu=on iommu=pt\n"),
        (unnamed.list_shown_files, "/proc/cmdline:ro quiet\n"),
        (unnamed.list_shown_files, texts.NUMA_NODES.format(node=0)),
        (unnamed.list_shown_files, texts.RATES.format(rate="400 Gb/sec (4X NDR)")),
        (list_narrow_links, 'Ca 2 "H-00"  # "n1 HCA-1"\n'),
        (containers.list_node_faults, "$ kubectl get nodes -o custom-columns=N:.metadata.name\nN\nn1\n"),
        (dcgmi.parse_health, "| GPU | |\n"),
        (dcgmi.parse_health, '{"body": {}}'),
        (dcgmi.parse_health, '{"body": '),
        (dcgmi.parse_diag, "| GPU Memory | none |\n"),
        (dcgmi.parse_diag, '{"DCGM Diagnostic": [], "test_categories": 1}'),
        (containers.list_node_faults, "Capacity:\n  nvidia.com/gpu: 8\n"),
        (containers.list_node_faults, NODE * 2),
        (list_port_errors, "LinkDownedCounter: 9\n"),
        (list_slow_links, "Switch: 0x10 leaf:\n"),
        (accelerators.list_amd_errors, "GPU 0 is hot\n"),
    ],
)
def test_what_is_no_such_output_is_refused(read: Reader, text: str) -> None:
    with pytest.raises(ParseError):
        read(text)


def test_a_last_line_that_may_be_cut_is_no_count() -> None:
    assert [] == accelerators.list_gaudi_errors(texts.HL.format(count=31).partition("31")[0] + "3")


def test_links_that_are_all_down_are_an_answer_of_iblinkinfo() -> None:
    line = '      0x0000000000100001      1    1[  ] ==(                Down/ Polling)==>             [  ] "" ( )\n'

    assert list_slow_links(f"CA: node1 mlx5_0:\n{line}") == []


@pytest.mark.parametrize("state", ["Initialize", "Armed"])
def test_a_link_that_waits_for_the_subnet_manager(state: str) -> None:
    """Also of `iblinkinfo -l`, and behind a filter."""
    far = '0x043f720300a1b2c4     20   17[  ] "leaf3" ( )'
    (report,) = list_slow_links(
        f'0x0c42a103007f1a2b "  node3 HCA-3"  14   1[  ] ==( 4X  53.125 Gbps {state}/  LinkUp)==>  {far}\n'
    )

    assert ("state", "port 1 of node3 HCA-3") == (report.code, report.subject)
    assert {"runs": state, "far": "port 17 of leaf3"} == dict(report.detail)


def _dmon(clocks: Sequence[int], busy: int = 100) -> str:
    head = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk\n# Idx      W      C      C     %     %  MHz  MHz\n"
    rows = (f"    {gpu}    612     64     78    {busy}     45   2619   {clock}\n" for gpu, clock in enumerate(clocks))
    return head + "".join(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_dmon([1755, 1740, 645, 1750]), [("NVIDIA 2", "645 MHz, the others 1745 MHz")]),
        (_dmon([1755, 1740, 1300, 1750]), []),
        (_dmon([1755, 1740, 645, 1750], busy=4), []),
        (_dmon([1755, 645, 1750]), []),
        (
            _dmon([1755] * 4 + [1756]).replace(
                "64     78    100     45   2619   1756", "91     99    100 45 2619 1756"
            ),
            [("NVIDIA 4", "GPU 4: GPU temp 91 °C, the others 64 °C; memory temp 99 °C, the others 78 °C")],
        ),
        (
            _dmon([1755] * 4 + [1756], busy=4).replace(
                "64     78      4     45   2619   1756", "91 78 99 45 2619 1756"
            ),
            [],
        ),
    ],
    ids=["one far below", "a power limit", "idle ones", "three", "a hot one", "the only busy one"],
)
def test_a_clock_far_below_the_others(text: str, expected: Sequence[tuple[str, str]]) -> None:
    assert expected == [(report.subject, dict(report.detail)["what"]) for report in list_held_back(text)]


def test_counts_that_jq_prints_are_those_of_a_node() -> None:
    assert identify_command(texts.KUBE_JQ.format(gpus=8, hcas=0)) == (("kubectl", "get", "node"),)
