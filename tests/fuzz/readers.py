"""Every reader of outside bytes, in one table: what it is called with, how it may refuse, and what its seeds are.

A function that reads text or bytes of a host and is not here fails `test_readers.py`.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import importlib
import json
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from agent.config import ConfigurationError
from agent.reports import ReportError
from agent.rules.catalogue import every_rule
from probes.compression import DamagedData
from probes.fabric.topology import MOST_PROBLEMS
from probes.gaudi.wiring import PORTS
from probes.host.commands import DCB_OBJECTS
from probes.host.interface import BadSource, Failed
from probes.kernel.log_lines import lines
from probes.pci.lspci_fields import LspciBlock
from probes.sources.file_commands import FileCommand
from probes.switches.normalized import Room
from probes.system.cpu import MOST_CPUS
from probes.text import ParseError
from tests.fuzz import ethernet, mutations, seeds
from tests.probes.amd import test_kfd, test_smi
from tests.probes.ascend import test_ascend
from tests.probes.dcb import test_tools
from tests.probes.fabric import fabric_texts
from tests.probes.gaudi import test_gaudi
from tests.probes.gpu import nvidia_smi_texts as smi
from tests.probes.gpu import test_nvidia_smi_table
from tests.probes.netdev import test_lldp
from tests.probes.neuron import test_neuron
from tests.probes.pci.lspci_sample import SAMPLE
from tests.probes.rdma import tool_texts as rdma_texts
from tests.probes.services import test_logs as test_service_logs
from tests.probes.switch_ports import switch_texts
from tests.probes.switches import outputs
from tests.probes.tool_reports import tool_texts

ADDRESS, LINES = "0000:1a:00.0", "a b\nc: d\n"


class Reader(NamedTuple):
    """One way in. `refuses`: the only errors that it may end with; none: it has an answer for everything."""

    function: str  # "probes.system.cpu:parse_cpuinfo"
    seeds: Callable[[], Sequence[bytes]]
    refuses: tuple[type[Exception], ...] = ()
    adapt: Callable[[Callable[..., Any]], Callable[[bytes], Any]] = lambda read: lambda data: read(data)
    mend: Callable[[bytes], bytes] | None = None  # makes a checksum true again, else damage gets no further

    @property
    def name(self) -> str:
        """The function's dotted name."""
        return self.function.replace(":", ".")

    def call(self) -> Callable[[bytes], Any]:
        """What to call with the bytes; what it yields is taken to the end."""
        module, _, name = self.function.partition(":")
        read = self.adapt(getattr(importlib.import_module(module), name))

        def whole(data: bytes) -> None:
            result = read(data)
            if isinstance(result, Iterator):
                result = list(result)
            assert self.function not in HOLDS or HOLDS[self.function](result, data), result

        return whole


def _text(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    return lambda data: read(data.decode("utf-8", "replace"))


def _then(*more: Any) -> Callable[[Callable[..., Any]], Callable[[bytes], Any]]:
    """Text, and arguments behind it."""
    return lambda read: lambda data: read(data.decode("utf-8", "replace"), *more)


def _file(*more: Any) -> Callable[[Callable[..., Any]], Callable[[bytes], Any]]:
    """The path of a file that holds the bytes."""

    def adapted(read: Callable[..., Any]) -> Callable[[bytes], Any]:
        def call(data: bytes) -> Any:
            path = os.path.join(_folder().name, "input")
            with open(path, "wb") as file:
                file.write(data)
            return read(path, *more)

        return call

    return adapted


def _or_refused(read: Callable[..., Any], about: str, data: bytes) -> Any:
    """Each object's text is refused by the readers of the others."""
    with contextlib.suppress(ParseError):
        return read(about, data.decode("utf-8", "replace"))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fabricscope-fuzz-")


def parser(function: str, *expected: str) -> Reader:
    """A parser of text that refuses by the one declared error."""
    return Reader(function, seeds.texts(*expected), (ParseError,), _text)


def lenient(function: str, *expected: str) -> Reader:
    """A parser of text that has an answer for everything."""
    return Reader(function, seeds.texts(*expected), (), _text)


LOOP_OVER_FILES = FileCommand("for d in mlx5_0 mlx5_1; do echo $d: $(cat /sys/class/infiniband/$d/ports/1/state); done")
LAST_BLOCK = LspciBlock("0000:19:00.0", "", {"Control": [""]})  # what a list that is cut may end with

_LANES = 'nvidia_smi_pcie_link_width_{}{{uuid="a1"}} {}\n'
_CARRIER = "Feb  2 03:04:05 n7 systemd-networkd[811]: ens3f1np1: {} carrier\n"
_CLOCKS = "index, clocks.current.sm [MHz], utilization.gpu [%]\n" + "".join(
    f"{gpu}, {345 if gpu == 2 else 1980} MHz, 99 %\n" for gpu in range(4)
)
_SLOWED = "GPU 00000000:2D:00.0\n  Clocks Event Reasons Counters\n    HW Thermal Slowdown : 903000000 us\n"
_OWN_SCREEN = (
    "ERROR  1 error\n  84 checks ran\nERROR  GPU2: PCIe link is x8\n  confirm   ibstat\n"
    "  rule      pcie-width-downgraded\n"
    '"rule": "mtu-small", "severity": "info", "subject": "a", "label": "b", "summary": "c \\u00e9"\n'
)
_SHEET = "host,gpu,pcie_width\nn1,0,16\nn2,0,16\nn3,0,16\nn4,0,8\n"
READERS: tuple[Reader, ...] = (
    # text of files
    parser("probes.system.cpu:parse_cpuinfo", seeds.CPUINFO),
    parser(
        "probes.amd.smi_output:parse_smi", test_smi.TABLE, test_smi.ROCM, test_smi.STATIC, test_smi.BOX, test_smi.JSON
    ),
    parser("probes.gaudi.probe:parse_hl_smi", test_gaudi.TABLE),
    parser("probes.gpu.nvidia_smi_table:parse_table", test_nvidia_smi_table.TABLE, test_nvidia_smi_table.R390),
    lenient("probes.gpu.nvidia_smi_table:list_unreadable", test_nvidia_smi_table.TABLE.replace("32C", "ERR!")),
    lenient("probes.tool_reports.accelerators:list_smi_errors", test_nvidia_smi_table.TABLE.replace("32C", "ERR!")),
    parser("probes.tool_reports.accelerators:list_npu_states", tool_texts.NPU.format(state="Alarm")),
    parser("probes.tool_reports.accelerators:list_gaudi_errors", tool_texts.HL.format(count=3)),
    parser("probes.tool_reports.accelerators:list_ras_errors", tool_texts.RAS.format(count=3)),
    parser(
        "probes.tool_reports.accelerators:list_amd_errors",
        tool_texts.AMD_METRIC.format(count=3),
        tool_texts.AMD_BOX.format(count=3),
        tool_texts.AMD_MONITOR.format(count=3),
        tool_texts.AMD_PAGES.format(pending=tool_texts.PAGES.format(state="PENDING"), unreservable="N/A"),
    ),
    parser("probes.tool_reports.dcgmi:parse_health", tool_texts.UNHEALTHY, tool_texts.HEALTH_JSON),
    parser("probes.tool_reports.dcgmi:parse_diag", tool_texts.DIAG, tool_texts.DIAG_R4, tool_texts.DIAG_JSON),
    parser("probes.tool_reports.containers:list_node_faults", tool_texts.NODE.format(**tool_texts.NODE_WORDS)),
    parser("probes.tool_reports.sentences.stated:list_stated", tool_texts.DOCKER, tool_texts.POD),
    parser("probes.tool_reports.accelerators:list_bad_pages", tool_texts.PAGES_INFO),
    parser(
        "probes.tool_reports.nvidia_tools:list_held_back",
        "# gpu    pwr  gtemp  pviol  tviol\n" + 2 * "    0    690     88      3      1\n",
    ),
    parser(
        "probes.tool_reports.counted:list_counts",
        "NPU ID : 3\n  HBM Double Bit Error Count : 2\n",
        '{"neuron_device_index": 6, "sram_ecc_uncorrected": 1}',
    ),
    parser(
        "probes.tool_reports.accelerators:list_amd_links",
        "GPU0 0000:05:00.0 U U D X\nGPU1 0000:26:00.0 U D D X\n",
        "GPU:0\n  U U D X\n",
    ),
    parser(
        "probes.tool_reports.nvidia_tools:list_c2c_links", "GPU 1: NVIDIA GB200 (UUID: G)\n C2C Link 0: <inactive>\n"
    ),
    parser(
        "probes.tool_reports.nvidia_tools:list_spent_banks",
        "GPU 00000000:2D:00.0\n  Bank Remap Availability Histogram\n    None : 1 bank(s)\n",
    ),
    parser("probes.tool_reports.nvidia_tools:list_slow_amd", "GPU  POWER  GFX_CLK  GFX%\n  0  744 W  612 MHz  100 %\n"),
    parser(
        "probes.tool_reports.nvidia_tools:list_unready_nodes",
        "Node #1  - 10.9.0.2  - UNAVAILABLE - Version: 580\nDomain State: DEGRADED\n",
    ),
    parser(
        "probes.tool_reports.host:list_storage_faults",
        "".join(f" {name} : Unsupported\n" for name in ("NVMe", "NVMeOF", "NFS", "WekaFS")),
    ),
    parser("probes.tool_reports.pods:list_pods", "nvidia-driver-daemonset-x2 0/1 CrashLoopBackOff 7 (2m ago) 9m\n"),
    parser(
        "probes.tool_reports.pods:list_failed_containers",
        "Name: nvidia-dcgm-a1\nContainers:\n  x:\n    State: Waiting\n      Reason: CrashLoopBackOff\n",
    ),
    parser("probes.tool_reports.unnamed:list_zero_guids", "mlx5_0 506b4b03002811a0\nmlx5_2 0000000000000000\n"),
    # labels of devices, lines out of outputs, and what tools of networks and hosts print
    lenient("probes.tool_reports.labels:split_devices", "Features for ens1f0:\ntx-checksumming: on\n\ttx-ipv4: off\n"),
    lenient("probes.tool_reports.labels:split_functions", SAMPLE),
    lenient("probes.tool_reports.labels:split_table", "index, pstate\n0, P0\n1, P2\n"),
    lenient("probes.tool_reports.labels:split_xml", smi.XML),
    lenient("probes.tool_reports.labels:split_settings", "net.ipv4.conf.ens1f0.arp_ignore = 1\n"),
    lenient("probes.tool_reports.labels:split_json", '[{"gpu": 0, "limit": {"max": 750}}, {"gpu": 1}]'),
    lenient("probes.tool_reports.unread:has_labels", "Features for ens1f0:\ntx-checksumming: on\n"),
    lenient("probes.tool_reports.checks:is_of_checks", "node health check\n| Host | Result |\n| n1 | PASS |\n"),
    lenient("probes.sources.excerpts:find_excerpt", "\tRate: 400\n\tBase lid: 12\n"),
    lenient("probes.tool_reports.unnamed:find_repeated", "State: Active\n" * 3 + "State: Down\n"),
    parser("probes.tool_reports.unnamed:list_repeated_lines", "State: Active\n" * 3 + "State: Down\n"),
    lenient("probes.nccl.jobs:list_setting_lines", "n1:2:3 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n"),
    lenient("probes.sources.file_commands:list_loop_values", "{0..3}"),
    parser("probes.gpu.nvidia_smi_query:parse_log", smi.XML),
    parser(
        "probes.tool_reports.host:list_memory_faults",
        "Memory Device\n\tSize: 64 GB\n\tLocator: CPU0_DIMM_A1\n\tSpeed: 4800 MT/s\n",
    ),
    parser(
        "probes.tool_reports.nvidia_tools:list_hot_gpus",
        "GPU 00000000:2D:00.0\n  Temperature\n    GPU Current Temp : 93 C\n    GPU Slowdown Temp : 92 C\n",
    ),
    lenient(
        "probes.tool_reports.nvidia_tools:list_hot_rows",
        "".join(
            f"|  {n}  HL-325L  N/A  | 0000:2{n}:00.0  N/A |  0 |\n| N/A  {41 + n * 19}C  N/A  9W |\n" for n in range(4)
        ),
    ),
    lenient("probes.sources.output_names:find_device_command", "mlxlink_-d_37:00.1_-m_-c.txt"),
    parser("probes.tool_reports.network.addresses:list_empty_tables", "n_gids_found=0\n"),
    parser(
        "probes.tool_reports.network.addresses:list_open_settings",
        "net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.ens3.rp_filter = 1\nnet.ipv4.conf.ens4.rp_filter = 0\n",
    ),
    parser(
        "probes.tool_reports.network.addresses:list_link_faults",
        "3: ib0: <UP,LOWER_UP> mtu 4092\n    vf 1     link/infiniband 00:28 brd 00:ff, link-state disable\n",
    ),
    parser(
        "probes.tool_reports.network.addresses:list_shared_networks",
        "10.8.0.0/16 dev eno1 proto kernel scope link\n10.8.0.0/16 dev eth5 proto kernel scope link\n",
    ),
    parser(
        "probes.tool_reports.network.nic_settings:list_roce_modes",
        "$ cma_roce_mode -d mlx5_0 -p 1\nRoCE v2\n$ cma_roce_mode -d mlx5_1 -p 1\nIB/RoCE v1\n",
    ),
    parser(
        "probes.tool_reports.network.nic_settings:list_settings",
        "Device: 0000:c1:00.0\nConfigurations:   Default   Current   Next Boot\n* LINK_TYPE_P1  IB(1)  IB(1)  ETH(2)\n",
    ),
    parser(
        "probes.tool_reports.network.nic_settings:list_versions",
        "FW Version: 28.39.1002\nFW Version(Running): 28.36.1010\n",
    ),
    parser(
        "probes.tool_reports.network.port_tools:list_omni_path_ports",
        "hfi1_0:1      PortGID:0x1\n   PortState:     Init (LinkUp)\n",
    ),
    parser(
        "probes.tool_reports.network.moments:list_growing", "13:00 rx_crc_errors_phy: 1\n13:05 rx_crc_errors_phy: 9\n"
    ),
    lenient("probes.tool_reports.network.moments:has_series", "t0 symbol_error: 1\nt1 symbol_error: 9\n"),
    parser(
        "probes.tool_reports.network.ufm:list_ufm_events",
        "2026-02-03 04:05:06.123 [71] [110] WARNING [Port] [Computer: n7 Port 1] : Symbol Error rate exceeded\n",
    ),
    Reader(
        "probes.compression:decompress",
        lambda: [pack(b"a line\n" * 20) for pack in (bytes, gzip.compress, bz2.compress, lzma.compress)],
        (DamagedData,),
        lambda read: lambda data: read(data, 1 << 20),
    ),
    parser("probes.tool_reports.host:list_missing_libraries", "\tlibucp.so.0 => not found\n"),
    parser("probes.tool_reports.sentences.stated:list_stated", "vfio 0000:41:00.0: group 27 is not viable\n"),
    lenient("probes.tool_reports.sentences.stated:find_tool_errors", "# Port number 1 state is Down\n"),
    lenient("probes.tool_reports.sentences.stated:list_stated_lines", "# Port number 1 state is Down\n"),
    parser("probes.tool_reports.sentences.stated:list_unexplained_beside", "ERROR: mlx5_3 refuses to arm\n"),
    lenient("probes.tool_reports.sentences.xids:list_stated_xids", "GPU 6: XID 48 (3x), Xids 63 and 94\n"),
    lenient("probes.layout:list_cells", "| 0 | OK |\n| 1 | O"),
    lenient("probes.tool_reports.sentences.stated:is_stated", "# Port number 1 state is Down\n"),
    lenient("probes.rdma.lost_heading:find_lost_heading", "\t\tState: Active\n\t\tPhysical state: LinkUp\n"),
    *(
        lenient(f"probes.tool_reports.sentences.unexplained:{name}", "E0102 11:22:33.1 7 a.cc:9] Failed to open ib0\n")
        for name in ("find_unexplained", "list_unexplained", "list_logged")
    ),
    *(
        lenient(f"probes.tool_reports.sentences.parts:{name}", "E0102 11:22:33.1 7 a.cc:9] Failed to open ib0\n")
        for name in ("find_part", "find_place", "list_parts", "list_all_parts")
    ),
    lenient("probes.sources.unwrap:squeeze", "GPU 0\n\n  ECC: 1\n\n\n\n"),
    lenient("probes.switch_ports.vocabulary:find_meaning", "inputcrcerrors"),
    lenient("probes.tool_reports.alerts:list_narrow_links", _LANES.format("max", 16) + _LANES.format("current", 8)),
    parser("probes.tool_reports.network.host_interfaces:list_carrier_faults", _CARRIER.format("Lost") * 3),
    parser(
        "probes.tool_reports.network.pauses:list_unanswered_marks",
        "np_cnp_sent:0\nnp_ecn_marked_roce_packets:774109\nrp_cnp_handled:118\n",
    ),
    parser(
        "probes.tool_reports.network.pauses:list_lossy_class",
        "rx_vport_rdma_unicast_bytes: 88\nrx_prio0_bytes: 90\nrx_prio0_discards: 71\nrx_prio3_bytes: 0\n",
    ),
    parser(
        "probes.tool_reports.network.host_interfaces:list_queue_drops",
        "qdisc mq 0: dev ens6 root\n Sent 81 bytes 900000 pkt (dropped 5600, overlimits 0 requeues 9)\n",
    ),
    parser(
        "probes.tool_reports.network.host_interfaces:list_allowances",
        "NIC statistics:\n     bw_in_allowance_exceeded: 31\n",
    ),
    parser(
        "probes.tool_reports.network.switch_unjudged:list_unjudged",
        "Ethernet1/3 is up, line protocol is up\n    0 runts  123188 giants  5 stomped\n",
    ),
    parser("probes.tool_reports.nvidia_tools:list_slow_clocks", _CLOCKS),
    parser("probes.tool_reports.nvidia_tools:list_slowed_gpus", _SLOWED),
    lenient("probes.tool_reports.sentences.compared:find_claims", "sminfo: sm lid 3 sm guid 0x1a, SMINFO_MASTER"),
    lenient("probes.tool_reports.sentences.compared:list_compared", "GPU 5 shows PCIe width x8 (others x16)"),
    lenient("probes.tool_reports.own_report:leave_out_own", _OWN_SCREEN),
    lenient("probes.tool_reports.own_report:list_own_findings", _OWN_SCREEN),
    lenient("probes.tool_reports.tables.sheets:is_sheet", _SHEET),
    parser("probes.tool_reports.tables.sheets:list_sheet_faults", _SHEET),
    parser("probes.cut_json:load_first", ' {"data": [1, 2]} and after'),
    parser("probes.cut_json:load_json", '[{"memdev": "mem0", "health": {"maintenance_needed": true,'),
    lenient("probes.tool_reports.tables.sheets:has_records", "node=a1 gpus=8\nnode=a2 gpus=8\nnode=a3 gpus=7\n"),
    lenient(
        "probes.tool_reports.tables.records:list_record_tables", '[{"host": "a1", "ib": {"up": 8}}, {"host": "a2"}]'
    ),
    lenient("probes.tool_reports.tables.records:list_record_tables", "a1\n    state = free\na2\n    state = down\n"),
    lenient(
        "probes.tool_reports.tables.measured_lines:list_slow_lines",
        "bandwidth\n" + "".join(f"host n{at}: {rate} GB/s\n" for at, rate in enumerate((180, 181, 21, 179))),
    ),
    parser("probes.tool_reports.pods:list_nodes", "NAME STATUS ROLES AGE VERSION\nn2 NotReady <none> 9d v1.30.4\n"),
    lenient("probes.kernel.unexplained:is_harmless", "mlx5_core 0000:3b:00.0: error(0)\n"),
    lenient("probes.sources.identify:is_sentence_of_smi", "No devices were found\n"),
    Reader(
        "probes.switches.facts:load_json",
        lambda: [json.dumps(outputs.CONFIG).encode()],
        (ValueError, RecursionError),
        _text,
    ),
    lenient("probes.switch_ports.reading:list_port_facts", switch_texts.ERRORS, switch_texts.INTERFACE),
    lenient("probes.switch_ports.alarms:list_module_alarms", switch_texts.MARKED, switch_texts.LISTED),
    lenient("probes.switch_ports.members:list_members", switch_texts.MEMBERS, switch_texts.UNSELECTED),
    lenient("probes.switch_ports.labels:list_pairs", "    CRC:     129300,   Giants:    0\n", " 7713 CRC  0 no buffer"),
    lenient("probes.switch_ports.names:find_head", "400GE1/0/3 current state : UP (ifindex: 17)"),
    lenient("probes.switch_ports.names:is_port", "Ethernet1/7"),
    lenient("probes.switch_ports.names:find_row", "  100GE1/0/33(R)     Selected 100GE    32768"),
    lenient("probes.switch_ports.names:find_command", "<leaf-2>display error-down recovery"),
    lenient("probes.switch_ports.names:find_port_of_command", "show interfaces ethernet 1/17 counters"),
    lenient("probes.switch_ports.columns:simplify", "Err (pkts)"),
    lenient("probes.switch_ports.columns:is_rule", "-----  --------"),
    lenient("probes.tool_reports.network.switch_ports:is_of_switch", switch_texts.ERRORS),
    parser(
        "probes.tool_reports.alerts:list_alerts",
        'ALERTS{alertname="IBLinkDown",alertstate="firing",device="mlx5_4",description="Xid 79"} 1\n',
        "[FIRING:1] InfinibandLinkDown mlx5_4\n",
    ),
    parser("probes.tool_reports.alerts:list_gpu_metrics", 'gpu_ecc_uncorrect_total{gpu_id="3"} 7\n'),
    parser(
        "probes.tool_reports.checks:list_failed_results",
        "node health\n| Node | Status |\n| n4 | FAIL |\n[FAIL] GPU 3\n",
    ),
    parser("probes.tool_reports.redfish:list_resource_faults", switch_texts.REDFISH),
    lenient("probes.switches.text_tables:find_tables", outputs.STATUS, outputs.LLDP, outputs.PFC),
    Reader(
        "probes.switches.normalized:read_lines",
        lambda: [b'{"switch": "leaf1", "port": "Ethernet0", "speed_gbit_s": 400}\n{"name": "leaf1", "nos": "sonic"}\n'],
        adapt=lambda read: lambda data: read(data.decode("utf-8", "replace"), "leaf1.ndjson", {}, Room()),
    ),
    parser(
        "probes.tool_reports.network.port_errors:list_port_errors",
        tool_texts.PORT_ERRORS,
        tool_texts.PERFQUERY.format(symbols=3),
        tool_texts.OLD_DIAGNET,
        tool_texts.PORT_INFO.format(state="Initialize"),
    ),
    parser("probes.tool_reports.network.port_errors:list_slow_links", tool_texts.SLOW_LINKS),
    parser(
        "probes.tool_reports.measured:list_slow_gpus", "bandwidth (GB/s)\n 0 1 2\n 0 N/A 2 9\n 1 2 N/A 2\n 2 9 2 N/A\n"
    ),
    parser("probes.tool_reports.dcgmi:list_failed_checks", "GPU link width [0000:1b:00.0][x8]..... UnHealthy\n"),
    parser("probes.tool_reports.dcgmi:list_links_down", tool_texts.LINK_STATES.format(states="U U D U _ _")),
    parser(
        "probes.tool_reports.sentences.stated:list_tool_errors",
        "ERROR:root:Driver not initialized (amdgpu not found in modules)\n",
    ),
    parser(
        "probes.tool_reports.unnamed:list_pci_lines", "ACSCtl: SrcValid+ ReqRedir+\n\tLnkSta: Width x1 (downgraded)\n"
    ),
    parser("probes.tool_reports.network.port_tools:list_link_states", tool_texts.MLXLINK),
    parser("probes.tool_reports.network.port_tools:list_nic_ports", tool_texts.NIC_PORTS.format(state="DOWN")),
    parser(
        "probes.tool_reports.network.host_interfaces:list_bond_faults",
        tool_texts.BOND.format(state="up", failures=41, aggregator=2),
    ),
    parser(
        "probes.tool_reports.network.switch_ports:list_switch_ports",
        tool_texts.SONIC.format(errors="91,231"),
        tool_texts.EOS.format(errors=91_231),
        tool_texts.EOS_LIGHT.format(light="-18.20"),
        tool_texts.EOS_PORT.format(errors=812_312),
        tool_texts.NVUE.format(errors=812_312),
        tool_texts.STORM.format(state="stormed"),
        tool_texts.SONIC_STATUS,
        tool_texts.CLOSED,
    ),
    parser(
        "probes.tool_reports.accelerators:list_xgmi_errors", tool_texts.XGMI_ERRORS.format(count=2, state="Multiple")
    ),
    parser("probes.tool_reports.accelerators:list_npu_health", tool_texts.NPU_HEALTH.format(state="Alarm")),
    parser(
        "probes.tool_reports.bmc:list_log_events",
        "1 | 02/19/2025 | 03:41:55 | Temperature GPU4 Temp | Upper Critical going high | Asserted | Reading 94 > "
        "Threshold 92 degrees C\n",
        "Record: 14\nDate/Time: 03/03/2025 10:11:12\nSeverity: Critical\nDescription: error at bus 203 device 0\n",
        '{"Members": [{"Severity": "Critical", "Message": "GPU 3", "Created": "2025-03-03T10:11:12Z"}]}',
    ),
    parser(
        "probes.tool_reports.bmc:list_sensor_states", "GPU2 Temp  | 95 degrees C  | cr\n", "FAN | 4h | lcr | 0 RPM\n"
    ),
    parser(
        "probes.tool_reports.slurm:list_node_states",
        "NodeName=n7 Arch=x\n   State=DOWN+DRAIN\n   Reason=Xid 79 [a@b]\n",
    ),
    parser(
        "probes.tool_reports.slurm:list_held_nodes",
        "REASON  USER  TIMESTAMP  NODELIST\nXid 79  root  2025-03-02T08:00:00 n[3,7]\n",
    ),
    parser("probes.tool_reports.slurm:list_controller_lines", "update_node: node n7 reason set to: Xid 79\n"),
    parser("probes.tool_reports.accelerators:list_silent_rows", "0 2 41.0°C 138.0W 0%\n1 3 N/A N/A unknown 0%\n"),
    parser("probes.tool_reports.accelerators:list_link_errors", "GPU 2: A100\n Link 1: Replay Errors: 771\n"),
    parser(
        "probes.tool_reports.network.port_tools:list_fec_off",
        "Configured FEC encodings: RS\nActive FEC encoding: Off\n",
    ),
    parser(
        "probes.tool_reports.network.port_tools:list_failed_reporters",
        "pci/0000:08:00.0:\n  reporter fw_fatal\n    state error error 3 recover 2\n",
    ),
    parser("probes.tool_reports.dcgmi:list_metrics", 'DCGM_FI_DEV_XID_ERRORS{gpu="3",device="nvidia3"} 79\n'),
    parser("probes.tool_reports.network.port_tools:list_gaudi_ports", tool_texts.GAUDI_PORTS),
    parser("probes.tool_reports.network.port_tools:list_lost_link", tool_texts.ETHTOOL.format(state="no (No cable)")),
    lenient(
        "probes.sources.sysfs_lines:read_shown_files", "/sys/class/net/ens1/mtu:9000\n==> /sys/class/net/a/b <==\n1\n"
    ),
    lenient(
        "probes.sources.file_commands:find_file_command", "root@n7:/sys/class/net/ens1# grep . mtu\n", "cat /proc/a"
    ),
    Reader(
        "probes.sources.file_commands:show_files",
        seeds.texts("mlx5_0: 4: ACTIVE\nmlx5_1 2: INIT\n", "/sys/class/net/ens1/mtu:9000\n"),
        (),
        lambda read: lambda data: read(LOOP_OVER_FILES, data.decode("utf-8", "replace")),
    ),
    lenient("probes.sources.host_table:expand_hosts", "gn[008-010,12]"),
    lenient("probes.sources.host_lines:is_name_of_host", "gpu-node-07"),
    lenient("probes.tool_reports.counted:has_counts", "GPU 0\n  ECC uncorrectable: 3\n"),
    lenient("probes.sources.host_table:tabulate_loop", "$ for i in 0 1 2 3; do cat x$i; done\na 1\na 1\na 2\na 1\n"),
    parser(
        "probes.tool_reports.tables.loops:list_loop_faults", "n0\tmtu 9000\nn1\tmtu 1500\nn2\tmtu 9000\nn3\tmtu 9000\n"
    ),
    parser(
        "probes.tool_reports.tables.loops:list_weak_faults", "n0\tmtu 9000\nn1\tmtu 1500\nn2\tmtu 9000\nn3\tmtu 9000\n"
    ),
    parser(
        "probes.tool_reports.ends.agree:list_disagreements",
        "leaf1# show run\ninterface Eth1/4\n description ens2\n mtu 1500\n\nn1:~ # ip link\n2: ens2: <UP> mtu 9000\n",
        "# slurm.conf\nNodeName=c[1-8] CPUs=64 Gres=gpu:4 State=UNKNOWN\nNodeName=c1 Name=gpu File=/dev/nvidia[0-2]\n",
        "Cable plan\nn7 ens7 -> swp7\nLLDP\nn7 ens7 swp8\n$ cat /etc/hosts\n10.4.0.80 n8\n$ dig +short n8\n10.4.0.8\n",
        "a=0x21: 0xb83fd20300aa0001=full;\n$ cat g pkeys/0\nfe80::b83f:d203:00aa:0003\n0xffff\n0x0000\nib0.8021\n",
        "$ cat /etc/a.conf\nvm.a = 1\n$ sysctl vm.a\nvm.a = 2\nrouter bgp 65000\n neighbor 10.0.0.1 remote-as 1",
    ),
    lenient("probes.tool_reports.ends.read:read_facts", "admin@tor:~$ show pfc priority\nLossless prio\nEth1  3\n"),
    lenient("probes.sources.host_table:may_have_sides", "switch mtu 1500\n10.0.0.1 a\n"),
    lenient("probes.tool_reports.ends.forms:expand_numbers", "110-112, 120"),
    lenient("probes.tool_reports.ends.forms:read_setting", "4096 Y 'on'"),
    lenient("probes.sources.host_table:tabulate_hosts", "$ pdsh -a cat /sys/class/net/e1/mtu\nn1: 9000\nn2: 1500\n"),
    lenient("probes.sources.host_lines:find_hosts", "n1: 400\nn2: 100\n", "n1 | CHANGED | rc=0 >>\nup\n"),
    Reader("probes.text:short_lines", seeds.texts(LINES), (ParseError,), _then(9)),
    lenient("probes.tool_reports.sentences.values:list_values", "GPU 5\n  Health: BAD\n  errors: 3\n  lanes: 8/16\n"),
    lenient("probes.tool_reports.sentences.values:is_of_field", "GPU 5\n"),
    lenient("probes.tool_reports.tables.cells:list_all_values", "port state: FAILED\nrail1 200G\nrail2 400G\n"),
    lenient("probes.tool_reports.tables.cells:list_odd_numbers", "hca_id: a\nfw: 1.2.3\nhca_id: b\nfw: 1.2.3\n"),
    lenient("probes.tool_reports.sentences.unexplained:states_failure", "port 3 is down"),
    lenient("probes.tool_reports.tables.cells:list_table_values", "gpu a max\n0 1 2\n1 2 2\n2 2 2\n"),
    lenient("probes.tool_reports.tables.entries:read_number", "11 240,5 W"),
    lenient(
        "probes.tool_reports.tables.rows:read_rows",
        "".join(f"rail{at} {at}00 Gb/s\n" for at in range(5)),
        "gpu_0_x=1\ngpu_1_x=1\ngpu_2_x=2\n",
        'a_rpm{fan="F1"} 1\na_rpm{fan="F2"} 1\na_rpm{fan="F3"} 2\n',
    ),
    parser("probes.tool_reports.unnamed:list_shown_files", tool_texts.NUMA_NODES.format(node=-1), tool_texts.RATES),
    parser("probes.tool_reports.network.port_errors:list_narrow_links", tool_texts.discovered(4, narrow=3)),
    parser("probes.tool_reports.unnamed:list_module_lines", "nouveau 2596864 4\nmlx5_core 1 1 mlx5_ib\n"),
    parser(
        "probes.tool_reports.accelerators:list_gaudi_counts",
        "index, bus_id, ecc.errors.uncorrected.aggregate.total\n0, 0000:33:00.0, 3\n",
    ),
    lenient(
        "probes.sources.identify:identify_unnamed", "NIC statistics:\n     rx_packets: 1\n", "driver: a\nversion: 1\n"
    ),
    parser("probes.tool_reports.unnamed:list_gpu_lines", "Remapped Rows\n  Correctable Error : 0\n  Pending : Yes\n"),
    lenient("probes.system.limits:parse_ulimit", "max locked memory       (kbytes, -l) 64\n", "unlimited\n"),
    lenient("probes.gaudi.probe:parse_mask", "0x23", "ffffff"),
    Reader("probes.text:parse_digits", lambda: [b"3", b"-1"], adapt=_then(20)),
    lenient("probes.text:first_line", "usage: tool"),
    lenient("probes.gpu.facts:find_address", "00000000:1B:00.0"),
    parser("probes.neuron.probe:parse_neuron_ls", test_neuron.TABLE, test_neuron.JSON),
    parser("probes.amd.kfd:parse_properties", "simd_count 416\nunique_id 1801979520617338022\n"),
    lenient("probes.amd.probe:parse_errors", "ue: 0\nce: 12\n"),
    lenient("probes.amd.probe:parse_options", "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n"),
    lenient("probes.sources.identify:find_missing_name", test_ascend.HCCS, "link status: UP\n"),
    parser("probes.ascend.npu_smi:parse_info", test_ascend.INFO_A2),
    parser("probes.ascend.npu_smi:parse_topology", test_ascend.TOPOLOGY),
    parser("probes.ascend.npu_smi:parse_hccs", test_ascend.HCCS),
    parser("probes.ascend.npu_smi:parse_sio", test_ascend.SIO),
    parser(
        "probes.ascend.hccn_tool:parse_hccn",
        "hccn_tool -i 3 -ip -g\nipaddr:10.0.0.1\n[devid 2]link down count : 1\nenabled  0 0 0 0 1 0 0 0\n",
    ),
    lenient("probes.ascend.hccn:parse_hccn_conf", "address_0=10.0.0.1\nbitmap_0=0,0,0,0,1,0,0,0\n"),
    parser(
        "probes.ascend.hccn:parse_rank_table",
        '{"server_list": [{"server_id": "n", "device": [{"device_id": "1", "device_ip": "10.0.0.2"}]}]} // x',
    ),
    lenient("probes.cxl.probe:parse_number", "0x2000000000", "2"),
    parser(
        "probes.cxl.cxl_list:parse_cxl_list",
        json.dumps(
            [
                {"memdev": "mem0", "ram_size": 268435456, "host": "0000:d3:00.0"},
                {
                    "bus": "root0",
                    "ports:root0": [
                        {
                            "port": "port1",
                            "endpoints:port1": [
                                {
                                    "endpoint": "endpoint2",
                                    "memdev": {
                                        "memdev": "mem1",
                                        "ram_size": "128.00 GiB (137.44 GB)",
                                        "host": "0000:5b:00.0",
                                    },
                                    "decoders:endpoint2": [{"decoder": "decoder2.0", "size": 1, "region": "region0"}],
                                }
                            ],
                        }
                    ],
                },
                {"region": "region0", "size": 1, "interleave_ways": 2, "mappings": [{"position": 0, "memdev": "mem1"}]},
            ]
        ),
    ),
    lenient("probes.system.cpu:cpuinfo_values", seeds.CPUINFO),
    parser("probes.system.cpu:parse_cpulist", "0-55,112-167\n", "0"),
    lenient(
        "probes.system.dmi:parse_modalias", "dmi:bvnDell:bvr2.1:bd01/01/2024:svnDellInc.:pnPowerEdge:pvr:rvn:rn:\n"
    ),
    lenient("probes.system.dmi:meaning", "Not Specified", "Dell Inc."),
    lenient("probes.kernel.system:parse_version", "Linux version 6.8.0-60-generic (buildd@x) (gcc 13) #63 SMP\n"),
    lenient("probes.kernel.system:parse_os_release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n'),
    lenient("probes.kernel.system:parse_gathered", LINES),
    lenient("probes.kernel.system:parse_uname", "Linux h1 6.8.0-60-generic #63-Ubuntu SMP x86_64 GNU/Linux\n"),
    parser("probes.kernel.system:parse_uptime_seconds", "864000.25 1234567.89\n"),
    Reader("probes.kernel.system:arch_of", seeds.texts(seeds.CPUINFO), (), _then("6.8.0")),
    lenient(
        "probes.kernel.containers:container_of_cgroup",
        "0::/docker/0123456789abcdef\n",
        "12:pids:/kubepods/besteffort/pod1\n",
    ),
    lenient("probes.kernel.containers:job_of_cgroup", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user\n"),
    lenient("probes.kernel.containers:is_whole_uid_map", "         0          0 4294967295\n"),
    parser("probes.kernel.modules:parse_modules", seeds.MODULES),
    parser("probes.kernel.modules:parse_lsmod", seeds.LSMOD),
    parser("probes.kernel.modules:parse_nvidia_version", seeds.VERSION),
    lenient("probes.kernel.modules:parse_params", 'EnableMSI: 1\nRmMsg: ""\n'),
    lenient("probes.kernel.modules:parse_information", "Model: \t NVIDIA L4\nGPU Excluded:\t No\n", "Model"),
    parser("probes.system.numa:parse_distances", "10 21\n"),
    parser("probes.system.numa:parse_memory_mib", "Node 0 MemTotal:       65843220 kB\nNode 0 MemFree: 1 kB\n"),
    parser("probes.netdev.sysfs:parse_vlans", "VLAN Dev name    | VLAN ID\nName-Type: X\nens1.100  | 100  | ens1\n"),
    lenient("probes.netdev.sysfs:place_of", "../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/net/ens1"),
    lenient("probes.netdev.sysfs:whole", "1500", "-1"),
    lenient("probes.netdev.sysfs:mac", "b8:3f:d2:00:00:01"),
    Reader(
        "probes.nccl.jobs:parse_conf", seeds.texts("NCCL_IB_TC = 106\n# x\nNCCL_DEBUG\n"), (), _then("file", "user")
    ),
    lenient("probes.nccl.jobs:parse_stated", "[0] NCCL INFO NCCL_IB_TC set by environment to 106.\n"),
    Reader("probes.nccl.jobs:parse_environ", seeds.texts("HOME=/root\0NCCL_IB_TC=106\0")),
    lenient("probes.nccl.jobs:parse_maps", "7f-80 r-xp 00000000 08:02 1 /usr/lib/libnccl.so.2.21.5\n"),
    lenient("probes.nccl.jobs:version_of", "/usr/lib/libnccl.so.2.21.5"),
    lenient("probes.nccl.probe:parse_shared_memory", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n"),
    lenient(
        "probes.system.limits:parse_limits",
        "Max locked memory         8388608              8388608              bytes \n",
    ),
    lenient("probes.system.limits:parse_exempt", "CapEff:\t000001ffffffffff\n"),
    lenient("probes.system.limits:bytes_of", "infinity", "64K"),
    Reader(
        "probes.system.limits:parse_unit",
        seeds.texts("[Service]\nLimitMEMLOCK=64K\n", "[Service]\nLimitMEMLOCK = infinity:infinity\n"),
        (),
        lambda read: lambda data: read([data.decode("utf-8", "replace")] * 2),
    ),
    lenient("probes.kernel.log:parse_boot_time", "cpu 1 2\nbtime 1700000000\nprocesses 5\n"),
    Reader(
        "probes.kernel.log_lines:split_boots",
        seeds.texts(*seeds.KERNEL_LOGS),
        (),
        lambda read: lambda data: read(data.decode("utf-8", "replace")),
    ),
    lenient("probes.kernel.log_lines:convert_to_utc", "2026-01-15T08:00:00,25+0100"),
    Reader("probes.kernel.log_lines:lines", seeds.texts(*seeds.KERNEL_LOGS), (), _then(1_700_000_000)),
    Reader(
        "probes.kernel.log_events:events",
        seeds.texts(*seeds.KERNEL_LOGS),
        (),
        lambda read: lambda data: read(lines(data.decode("utf-8", "replace"), None)),
    ),
    Reader("probes.system.limits:parse_pam", seeds.texts("*  soft memlock unlimited\n"), (), _then("limits.conf")),
    Reader(
        "probes.host.filter_secrets:filter_content",
        seeds.texts("HOME=/root\0NCCL_IB_TC=106\0", "7f-80 r-xp 0 08:02 1 /usr/lib/libnccl.so.2\n"),
        (),
        lambda read: lambda data: [read(f"/proc/1/{name}", data) for name in ("environ", "maps", "mounts")],
    ),
    Reader(
        "probes.services.logs:read_logs",
        seeds.texts(test_service_logs.STATUS, test_service_logs.JOURNAL, test_service_logs.HEALTHY_JOURNALS),
        (),
        lambda read: lambda data: [read([("x", data.decode("utf-8", "replace"), mixed)]) for mixed in (True, False)],
    ),
    lenient("probes.services.logs:list_lines", test_service_logs.JOURNAL),
    lenient("probes.services.probe:is_oneshot", "[Service]\nType=oneshot\nRemainAfterExit=yes\n"),
    lenient("probes.services.probe:parse_populated", "populated 1\nfrozen 0\n"),
    lenient("probes.services.probe:parse_version", "Fabric Manager version is : 570.124.06\n"),
    lenient("probes.services.probe:parse_nodes", "# nodes\n10.0.0.1\n10.0.0.2\n"),
    lenient("probes.services.probe:parse_state", "READY\n"),
    lenient("probes.sources.identify:identify_command", "PCI-DMA: x\n"),
    lenient("probes.kernel.log_lines:has_kernel_line", "[ 12.5] mlx5_core 0000:3b:00.0: x\n"),
    lenient("probes.kernel.unexplained:reads_as_failure", "mlx5_core 0000:3b:00.0: x failed, err(-12)\n"),
    lenient("probes.kernel.network_families:read_family", "ice 0000:3b:00.0: Failed to initialize the mailbox, err -5"),
    lenient("probes.sources.pasted:split_pasted", "$ lspci | grep x\n```\n[root@n1 ~]# ip -d link # all\n> CA 'a'\n"),
    lenient("probes.host.udev:properties", "E:ID_NET_NAME_PATH=ens1\nN:x\n"),
    lenient("probes.sources.tree:parse_date_output", "Thu Jan 15 09:00:00 UTC 2026", "Thu Oct 27 08:50:11 PM -03 2022"),
    # sysfs values
    lenient("probes.pci.sysfs:link_speed", "32.0 GT/s PCIe\n", "Unknown"),
    lenient("probes.pci.sysfs:decimal", "16\n", "255"),
    lenient("probes.pci.sysfs:identifier", "0x10de\n"),
    Reader("probes.pci.sysfs:bars", seeds.files("/resource"), (), _text),
    Reader("probes.pci.sysfs:aer_counters", seeds.files("/aer_dev_correctable", "/aer_dev_fatal"), (), _text),
    lenient("probes.text:is_pci_address", ADDRESS, "10000:e1:00.0"),
    Reader(
        "probes.pci.tree:place_in_path",
        seeds.texts(f"/sys/devices/pci0000:17/0000:17:01.0/{ADDRESS}"),
        (),
        _then({ADDRESS}),
    ),
    parser("probes.gpu.facts:normal_address", "00000000:1B:00.0"),
    lenient("probes.gpu.nvml_enums:dashed_uuid", "0123456789abcdef0123456789abcdef"),
    parser("probes.rdma.normalize:parse_rate", "400 Gb/sec (4X NDR)\n"),
    *(
        lenient(
            f"probes.rdma.normalize:{name}", "4: ACTIVE", "5: LinkUp", "InfiniBand", "b83f:d203:0076:f96b", "0x0102"
        )
        for name in ("state", "physical_state", "link_layer", "guid", "gid", "number")
    ),
    # binary
    Reader("probes.pci.config_space:decode", seeds.config_spaces, (ParseError,)),
    Reader("probes.redact.binary:serial_at", seeds.config_spaces),
    Reader(
        "probes.amd.metrics:parse_xgmi",
        lambda: [test_kfd.metrics(5, 1, rate=(16, 32), states=(1, 0)), test_kfd.attributes(*test_kfd.LISTED)],
    ),
    Reader("probes.amd.metrics:parse_metrics", lambda: [test_kfd.metrics(5, 1), test_kfd.metrics(5, 1, (1, 8))]),
    Reader("probes.netlink:messages", seeds.netlink, (ParseError,)),
    Reader("probes.netlink:attributes", seeds.attributes, (ParseError,)),
    Reader("probes.netlink:iter_attributes", seeds.attributes, (ParseError,)),
    Reader("probes.netlink:whole_messages", seeds.netlink),
    Reader("probes.netlink:flagged_attributes", seeds.attributes),
    Reader(
        "probes.netlink:generic_attributes", ethernet.replies(4), (ParseError,), lambda read: lambda data: read(data, 4)
    ),
    Reader(
        "probes.netdev.rtnetlink:parse_links",
        seeds.payloads,
        (ParseError,),
        lambda read: lambda data: read([data, data]),
    ),
    Reader("probes.netdev.rtnetlink:parse_address", seeds.payloads, (ParseError,)),
    Reader("probes.netdev.rtnetlink:parse_statistics", seeds.payloads, (ParseError,)),
    Reader("probes.netdev.rtnetlink:mac_text", seeds.payloads),
    # what the kernel says by itself
    Reader("probes.kernel.events:parse_uevent", seeds.uevents, (ParseError,)),
    Reader("probes.kernel.events:device_events", seeds.uevents, (ParseError,)),
    Reader(
        "probes.kernel.events:Interfaces",
        seeds.link_messages,
        (ParseError,),
        lambda make: lambda data: make().told(data),
    ),
    Reader(
        "probes.kernel.events:Log", seeds.texts(*seeds.KERNEL_LOGS), (), lambda make: lambda data: make().told(data)
    ),
    # ethtool, and memory of modules
    Reader("probes.netlink:parse_family", ethernet.replies(1), (ParseError,)),
    Reader("probes.ethtool.netlink:parse_link_modes", ethernet.replies(4), (ParseError,)),
    Reader("probes.ethtool.netlink:parse_pause", ethernet.replies(22), (ParseError,)),
    Reader("probes.ethtool.netlink:parse_fec", ethernet.replies(30), (ParseError,)),
    Reader("probes.ethtool.netlink:parse_eeprom", ethernet.replies(32), (ParseError,)),
    Reader("probes.ethtool.ioctl:parse_driver", ethernet.structs(0x03), (ParseError,)),
    Reader("probes.ethtool.ioctl:parse_count", ethernet.structs(0x37), (ParseError,)),
    Reader("probes.ethtool.ioctl:parse_pause", ethernet.counters, (ParseError,)),
    Reader("probes.ethtool.ioctl:parse_fec", ethernet.counters, (ParseError,)),
    Reader(
        "probes.ethtool.ioctl:parse_counters",
        ethernet.counters,
        (ParseError,),
        lambda read: lambda data: read(data[:76], data[76:]),
    ),
    Reader("probes.ethtool.netlink:set_bits", ethernet.small),
    lenient("probes.netdev.lldp_forms:parse_plain", test_lldp.PLAIN),
    lenient("probes.netdev.lldp_forms:parse_keyvalue", test_lldp.KEYVALUE),
    parser("probes.netdev.lldp_forms:parse_xml", test_lldp.XML),
    lenient("probes.sources.given:find_early_end", rdma_texts.IBSTAT),
    lenient("probes.sources.given:cut_early_end", rdma_texts.IBSTAT),
    lenient("probes.sources.given:end_pasted_line", rdma_texts.IBSTAT.rstrip()),
    lenient("probes.sources.given:drop_cut_number", rdma_texts.IBSTAT.rstrip()),
    lenient("probes.sources.examples:blank_examples", "Such lines, for example:\n\n[ 1.5] NVRM: Xid\n\n"),
    lenient("probes.sources.given:is_log_of_job", "gpu01:4711:4790 [0] NCCL INFO comm 0x7f rank 0 nranks 2\n"),
    lenient("probes.sources.pasted:find_silent_command", "[root@n7 ~]# dmesg | grep -i xid\n[root@n7 ~]# \n"),
    lenient("probes.sources.pasted:find_prompt_host", f"[root@n7 ~]# ibstat\n{rdma_texts.IBSTAT}"),
    lenient("probes.sources.unwrap:join_wrapped", rdma_texts.IBSTAT),
    lenient("probes.sources.host_lines:list_quoted_lines", "Name: n7\n  x node/n8 NVRM: Xid (PCI:0000:1b:00): 79\n"),
    Reader(
        "probes.sources.host_lines:split_hosts",
        seeds.texts("n7: CA 'a'\nn8: CA 'a'\n", "n7 | CHANGED | rc=0 >>\nup\nn8 | CHANGED | rc=0 >>\nup\n"),
        (),
        lambda read: lambda data: read(data.decode("utf-8", "replace"), bool),
    ),
    Reader(
        "probes.sources.documents:extract_text",
        seeds.texts('{"MESSAGE": "x", "stdout": "a\\nb"}', "<pre>a&gt;b</pre>", '"Time","up{a=""b""}"\n"1","2"\n'),
        (),
        lambda read: lambda data: read(data.decode("utf-8", "replace"), str.isspace),
    ),
    Reader(
        "probes.sources.margins:cut_margin",
        seeds.texts("x.log:1:CA 'a'\nx.log:2:\tPort 1:\nx.log:3:\n", "\u2502 a\n\u2502 b\n\u2502 c\n"),
        (),
        lambda read: lambda data: read(data.decode("utf-8", "replace"), lambda lines: len(lines) > 1),
    ),
    Reader(
        "probes.sources.unwrap:unwrap",
        seeds.texts("  1 | CA 'a'\n  2 | x\n> y\n", "1:$ lsmod\n2:x\n"),
        (),
        lambda read: lambda data: read(data.decode("utf-8", "replace"), lambda lines: True),
    ),
    Reader(
        "probes.sources.pieces:name_pieces",
        seeds.texts(f"[root@n7 ~]# ibstat\n{rdma_texts.IBSTAT}$ lspci | grep x\n```\n", "[root@n1 ~]# dmesg\n"),
        (),
        lambda read: lambda data: read("issue.md", data.decode("utf-8", "replace")),
    ),
    Reader(
        "probes.sources.pasted:read_saved",
        seeds.texts(f"[root@n7 ~]# ibstat\n{rdma_texts.IBSTAT}", "$ for i in 1 2; do ibstat $i; done\nCA 'a'\n"),
        (),
        _then("ibstat"),
    ),
    lenient("probes.layout:whole_lines", ethernet.SETTINGS),
    lenient("probes.text:natural", "ens10f0np0"),
    lenient("probes.layout:read_tree", test_smi.STATIC),
    lenient("probes.layout:read_switch", "on"),
    lenient("probes.text:text_or_none", "mlx5_core"),
    lenient("probes.ethtool.saved:parse_settings", ethernet.SETTINGS),
    lenient("probes.ethtool.saved:parse_pause", ethernet.PAUSE),
    lenient("probes.ethtool.saved:parse_fec", ethernet.FEC),
    lenient("probes.ethtool.saved:parse_statistics", ethernet.STATISTICS),
    lenient("probes.ethtool.saved:parse_counters", ethernet.STATISTICS),
    lenient("probes.ethtool.saved:parse_driver", ethernet.DRIVER),
    lenient("probes.optics.saved:parse", ethernet.MODULE),
    Reader("probes.optics.facts:text", ethernet.small),
    *(
        Reader(f"probes.optics.facts:{name}", ethernet.small, (), lambda read: lambda data: read(data[:2]))
        for name in ("celsius", "volts", "milliamperes", "dbm")
    ),
    Reader("probes.optics.facts:thresholds", ethernet.small, (), lambda read: lambda data: read("voltage", "v", data)),
    Reader("probes.optics.cmis:parse", ethernet.memory("osfp"), (), ethernet.cmis),
    Reader("probes.optics.cmis:is_paged", ethernet.memory("osfp"), (), ethernet.one_page),
    Reader("probes.optics.sff:parse_sff8636", ethernet.memory("qsfp28"), (), ethernet.sff8636),
    Reader("probes.optics.sff:is_paged", ethernet.memory("qsfp28"), (), ethernet.one_page),
    Reader("probes.optics.sff:parse_sff8472", ethernet.memory("qsfp28"), (), ethernet.sff8472),
    Reader("probes.optics.sff:has_monitors", ethernet.memory("qsfp28"), (), ethernet.one_page),
    Reader(
        "probes.redact.binary:module_serial",
        ethernet.replies(32),
        (),
        lambda read: lambda data: read(ethernet.QUESTION, data),
    ),
    Reader("probes.redact.binary:rewrite_generic_netlink", ethernet.replies(32), (), ethernet.redacting),
    Reader("probes.redact.binary:rewrite_ioctl", ethernet.structs(0x03), (), ethernet.redacting),
    Reader("probes.dcb.netlink:parse_ieee", seeds.dcb_answers, (ParseError,)),
    Reader("probes.dcb.netlink:parse_dcbx", seeds.dcb_answers, (ParseError,)),
    Reader("probes.dcb.netlink:parse_cee", seeds.dcb_answers, (ParseError,)),
    Reader(
        "probes.rdma.netlink:parse_devices", seeds.attributes, (Failed,), lambda read: lambda data: read([data, data])
    ),
    Reader(
        "probes.rdma.netlink:parse_ports", seeds.attributes, (Failed,), lambda read: lambda data: read([data, data])
    ),
    Reader("probes.host_reader:as_text", seeds.texts(LINES)),
    # outputs of tools
    parser("probes.pci.lspci:parse_lspci", SAMPLE),
    parser("probes.pci.lspci_fields:blocks", SAMPLE),
    Reader("probes.pci.lspci_fields:find_cut", seeds.texts(SAMPLE), (), _then((), LAST_BLOCK)),
    lenient("probes.text:to_plain_characters", "State\uff1a\u3000Down\u200f, \uff14\uff10\u2028", "GPU\0\0"),
    Reader("probes.text:decode_saved", lambda: [b"\xff\xfeG\x00P\x00U\x00", b"\xef\xbb\xbfGPU", b"\xfe\xff\x00G"]),
    lenient("probes.pci.lspci_fields:vendor_of", "NVIDIA Corporation GH100 [H100 SXM5 80GB]"),
    Reader("probes.pci.lspci_fields:class_code", seeds.texts("3D controller"), (), _then(None, None)),
    parser("probes.gpu.nvidia_smi_query:parse_text", smi.QUERY),
    parser("probes.gpu.nvidia_smi_query:parse_xml", smi.XML),
    parser("probes.gpu.nvidia_smi_query:parse_csv", smi.CSV),
    parser("probes.gpu.nvidia_smi:parse_list", smi.LIST),
    parser(
        "probes.gpu.nvidia_smi:lost_gpus",
        "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n",
    ),
    lenient("probes.gpu.nvidia_smi:refusal", "Failed to initialize NVML: Driver/library version mismatch\n"),
    parser("probes.gpu.nvidia_smi_topo:parse_matrix", smi.TOPO),
    parser("probes.gpu.nvidia_smi_topo:parse_p2p", smi.P2P),
    Reader(
        "probes.gpu.nvidia_smi_topo:parse_table",
        seeds.texts(smi.TOPO, smi.P2P),
        (ParseError,),
        _then(("X", "OK", "NV1")),
    ),
    lenient("probes.gpu.nvidia_smi_values:meaning", "[N/A]", "16x"),
    lenient("probes.gpu.nvidia_smi_values:number", "81559 MiB"),
    parser("probes.gpu.nvidia_smi_nvlink:parse_status", smi.STATUS),
    parser("probes.gpu.nvidia_smi_nvlink:parse_errors", smi.ERRORS),
    parser("probes.gpu.nvidia_smi_nvlink:parse_remotes", smi.REMOTES),
    parser("probes.gpu.nvidia_smi_nvlink:parse_capabilities", smi.CAPABILITIES),
    parser("probes.rdma.ofed_scripts:parse_ibdev2netdev", rdma_texts.IBDEV2NETDEV),
    parser("probes.rdma.ibstat:parse_ibstat", rdma_texts.IBSTAT),
    parser("probes.rdma.ibstat:parse_ibstatus", rdma_texts.IBSTATUS),
    parser("probes.rdma.ibv_devinfo:parse_ibv_devinfo", rdma_texts.IBV_DEVINFO),
    parser(
        "probes.rdma.ibv_devinfo:parse_ibv_devices",
        "    device\t node GUID\n    ------\t ---------\n    mlx5_0\t b83fd2030076f96b\n",
    ),
    parser("probes.rdma.tools:parse_rdma_link", rdma_texts.RDMA_LINK),
    parser("probes.rdma.ofed_scripts:parse_show_gids", rdma_texts.SHOW_GIDS),
    parser("probes.dcb.tools:parse_mlnx_qos", test_tools.TEXT),
    Reader(
        "probes.dcb.tools:parse_dcb",
        seeds.texts(*(text for _, text in test_tools.SAMPLES)),
        (ParseError,),
        lambda read: lambda data: [_or_refused(read, about, data) for about in DCB_OBJECTS],
    ),
    lenient("probes.dcb.tools:dscp_of", "AF31", "26"),
    lenient("probes.ethtool.saved:parse_flow_control", "rx_discards_phy: 0\nrx_prio0_bytes: 7\nrx_prio7_bytes: 0\n"),
    lenient("probes.dcb.probe:traffic_class", "Global tclass=106\n"),
    lenient("probes.rdma.netlink:parse_system", "netns shared copy-on-fork on\n"),
    lenient("probes.rdma.netlink:parse_dev", "0: mlx5_0: node_type ca protocol roce fw 28.43.2026\n"),
    parser(
        "probes.netdev.lldp:parse_lldp", json.dumps({"lldp": {"interface": {"eth0": test_lldp.ROW | test_lldp.DCBX}}})
    ),
    # whole documents
    parser("probes.system.dmi:parse_dmidecode", seeds.DMIDECODE),
    parser("probes.netdev.ip_link:parse_ip_link", seeds.IP_LINK),
    parser("probes.netdev.ip_link:parse_exported", 'node_network_receive_errs_total{device="ens1"} 8.12e+05\n'),
    parser(
        "probes.netdev.ip_link:parse_ifconfig",
        "ens7: flags=4163<UP,RUNNING>  mtu 9000\n        RX errors 912312  dropped 0  overruns 0  frame 912312\n",
    ),
    parser("probes.system.cpu:members", "00000000,0000000f"),
    Reader("probes.topology_files.nccl_topo:parse", seeds.texts(seeds.NCCL), (ParseError,)),
    Reader("probes.topology_files.hwloc_xml:parse", seeds.texts(seeds.HWLOC), (ParseError,)),
    Reader("probes.topology_files.recognize:start_of", seeds.texts(seeds.NCCL, seeds.HWLOC, seeds.RDMA_TOPO)),
    lenient("probes.fabric.files:fabric_format", *fabric_texts.EVERY.values()),
    Reader("probes.fabric.files:read_fabric", seeds.texts(*fabric_texts.EVERY.values()), (), _then("f")),
    *(
        Reader(f"probes.fabric.{function}", seeds.texts(fabric_texts.EVERY[name]), (), _then("f"))
        for function, name in (
            ("ibnetdiscover:parse", "ibnetdiscover"),
            ("iblinkinfo:parse", "iblinkinfo"),
            ("ibnetdiscover:parse_ports", "ibnetdiscover -p"),
            ("ibdiagnet:parse_net_dump", "ibdiagnet net_dump"),
            ("ibdiagnet:parse_db_csv", "ibdiagnet db_csv"),
        )
    ),
    Reader("probes.fabric.ibnetdiscover:parse_nodes", seeds.texts(fabric_texts.NODES), (), _then("f")),
    lenient("probes.fabric.topology:numbered_lines", LINES),
    *(
        lenient(f"probes.fabric.formatting:{name}", "MF0;leaf-1:MQM9700/U1", "gpu-7 HCA-1", "4X", "106.25 Gbps", "NDR")
        for name in ("kind_in_name", "lanes", "lid_of", "speed_named", "speed_signalled")
    ),
    Reader(
        "probes.topology_files.recognize:facts_source",
        seeds.texts(seeds.NCCL, seeds.HWLOC, seeds.RDMA_TOPO),
        (BadSource,),
        lambda read: lambda data: read("input", data),
    ),
    Reader("probes.topology_files.rdma_topo:parse", seeds.texts(seeds.RDMA_TOPO), (ParseError,)),
    Reader(
        "probes.topology_files.xml_tree:parse",
        seeds.texts(seeds.NCCL, smi.XML),
        (ParseError,),
        lambda read: lambda data: read(data, "system"),
    ),
    Reader("probes.sources.archive:is_tar", seeds.archives),
    Reader("probes.sources.archive:load", seeds.archives, (BadSource,), _file(), mutations.with_checksums),
    Reader("probes.sources.bug_report:bug_report_host", seeds.bug_reports, (BadSource,), _file()),
    Reader("probes.sources.open_source:open_source", seeds.archives, (BadSource,), _file(), mutations.with_checksums),
    Reader("agent.reports:read_report", seeds.reports, (ReportError,), _file()),
    Reader("agent.reports:is_report", seeds.reports, (), _file()),
    Reader(
        "agent.config:load_configuration",
        seeds.texts('[rules]\noff = ["roce-mtu-small"]\n\n[facts]\nroce_mode = "lossy"\n'),
        (ConfigurationError,),
        _file(frozenset(rule.name for rule in every_rule())),
    ),
    Reader(
        "agent.config:load_ship_settings",
        seeds.texts('[ship]\nto = "https://inventory.example/reports"\ntoken_file = "token"\nspool_limit = 1000000\n'),
        (ConfigurationError,),
        _file(),
    ),
)

# What holds of every answer, whatever the bytes: numbers that there can be, names of the text, known ends of links
HOLDS: dict[str, Callable[[Any, bytes], bool]] = {
    "probes.amd.kfd:parse_properties": lambda properties, _: bool(properties),
    "probes.amd.probe:parse_errors": lambda errors, _: set(errors) <= {"uncorrectable", "correctable", "deferred"},
    "probes.fabric.files:read_fabric": lambda fabric, _: (
        all(end.guid in fabric.nodes for link in fabric.links for end in (link.a, link.b) if end)
        and len(fabric.problems) <= MOST_PROBLEMS + 1
    ),
    "probes.gaudi.probe:parse_mask": lambda mask, _: mask is None or mask <= frozenset(range(PORTS)),
    "probes.kernel.modules:parse_params": lambda params, _: all(params),
    "probes.kernel.system:parse_gathered": lambda gathered, _: all(gathered.values()),
    "probes.kernel.system:parse_os_release": lambda name, _: name is None or name != "",
    "probes.kernel.system:parse_uptime_seconds": lambda seconds, _: 0 <= seconds < 1e12,
    "probes.netdev.rtnetlink:parse_links": lambda links, _: len(links) <= 2 and all(link.name for link in links),
    "probes.netdev.sysfs:mac": lambda mac, data: mac in (None, data.decode("utf-8", "replace")),
    "probes.netdev.sysfs:parse_vlans": lambda vlans, _: all(0 <= number <= 9999 for number, _ in vlans.values()),
    "probes.netdev.sysfs:place_of": lambda place, data: place.pci is None or place.pci.encode() in data,
    "probes.netdev.sysfs:whole": lambda number, _: (number or 0) >= 0,
    "probes.pci.config_space:decode": lambda space, data: (
        space.size == len(data)
        and (space.pcie is None or space.pcie.max_payload_bytes in (None, *(128 << code for code in range(8))))
    ),
    "probes.pci.tree:place_in_path": lambda place, _: len(place) == 2,
    "probes.rdma.normalize:parse_rate": lambda rate, _: rate.gbit_s >= 0,
    "probes.sources.pasted:split_pasted": lambda pieces, _: (
        [piece.line for piece in pieces] == sorted(piece.line for piece in pieces)
    ),
    "probes.system.cpu:parse_cpuinfo": lambda cpu, _: cpu.sockets is None or cpu.sockets > 0,
    "probes.system.cpu:parse_cpulist": lambda cpus, _: (
        list(cpus) == sorted(set(cpus)) and all(0 <= cpu < MOST_CPUS for cpu in cpus)
    ),
    "probes.system.dmi:parse_modalias": lambda dmi, data: (
        dmi.vendor is None or dmi.vendor in data.decode("utf-8", "replace")
    ),
    "probes.system.numa:parse_distances": lambda row, _: min(row, default=0) >= 0,
    "probes.system.numa:parse_memory_mib": lambda mib, _: mib >= 0,
}

# What takes a text or bytes and reads nothing of a host: names, paths and questions that are ours.
NOT_READERS = {
    "probes.compression.find_compression": "a question about the begin of bytes",
    "probes.tool_reports.facts.state_fault": "the code of a fault that was read",
    "probes.tool_reports.labels.read_labels": "lines of one device that split_devices found",
    "probes.tool_reports.unequal.compare_labels": "the name of a command",
    "probes.tool_reports.unequal.varies": "a label that was read",
    "probes.tool_reports.ends.forms.read_group": "what one of its own patterns found in a line",
    "probes.tool_reports.ends.read.without_names": "a line that read_facts reads",
    "probes.tool_reports.sentences.values.is_among": "a name and names of hosts that were read",
    "probes.tool_reports.sentences.values.judge": "the label and the value of a line that list_values read",
    "probes.tool_reports.sentences.values.normalize": "a label that was read",
    "probes.tool_reports.tables.entries.is_complete": "a cell that was read",
    "probes.tool_reports.tables.entries.is_incomplete": "the same",
    "probes.tool_reports.tables.entries.is_below": "the same",
    "probes.tool_reports.tables.entries.shape": "the name of a row that was read",
    "probes.tool_reports.tables.quantities.find_quantity": "the heading of a column that was read",
    "probes.tool_reports.tables.quantities.is_by_use": "the same",
    "probes.tool_reports.tables.quantities.is_place": "the same",
    "probes.tool_reports.tables.quantities.is_less": "the same",
    "probes.tool_reports.tables.quantities.is_sweep": "the same",
    "probes.tool_reports.tables.forms.cut": "a line of a table; read_tables cuts with it",
    "probes.sources.identify.identify_by_words": "identify_command does the same after its own",
    "probes.tool_reports.tables.forms.read_tables": "list_table_values reads with it",
    "probes.cut_json.list_whole_objects": "takes a question besides; list_log_events reads with it",
    "probes.prose.is_denied": "a line in which a sentence was found",
    "probes.kernel.log_lines.find_form": "the text of a line that was read",
    "probes.sources.dump.may_be_document": "a question about the begin of a file",
    "probes.sources.given.find_job_line": "a text of which parts were recognized",
    "probes.switches.facts.parse_count": "a value of a document, and read with it",
    "probes.switches.facts.parse_priorities": "a value of a document, and read with it",
    "probes.switches.normalized.looks_normalized": "its text is read with load_json",
    "probes.switches.nvue.counters_port": "the name of a file",
    "probes.switches.recipe.format_recipe": "a system's name",
    "probes.locks.find_stuck": "a folder of ours",
    "probes.host.process.find_opener": "a path of ours",
    "probes.host.process.find_uninterruptible": "a path of ours",
    "probes.sources.file_commands.is_device_name": "a word of a line that was read",
    "probes.sources.file_commands.substitute": "a line that was read",
    "probes.sources.output_names.group_by_prefix": "names of files that were listed",
    "probes.sources.output_names.is_of_device": "the name of a file",
    "probes.sources.output_names.file_stem": "the same",
    "probes.sources.output_names.find_path": "the same",
    "probes.sources.dump.refuse_several": "the path that was given",
    "probes.sources.given.is_log": "a command's name",
    "probes.sources.examples.may_hold_examples": "a question about bytes",
    "agent.reports.open_atomically": "a path that we write",
    "probes.catalogue.probe": "a probe's name",
    "probes.dcb.netlink.question": "an interface's name, in a request that we make",
    "probes.netlink.parse_unsigned": "an attribute; fuzzed as messages",
    "probes.netlink.parse_text": "the same",
    "probes.host.ethtool_ioctl.request_ioctl": "an interface's name",
    "probes.host.ethtool_ioctl.check": "a request that we made",
    "probes.host.ethtool_ioctl.check_netlink": "the same",
    "probes.host.files.read_error": "a path that was opened",
    "probes.host.files.open_regular": "the same",
    "probes.host.files.open_saved": "the same",
    "probes.host.netlink_socket.require_interface": "an interface's name",
    "probes.locks.describe_holder": "a probe's name",
    "probes.planted.follow_links": "a path that was given",
    "probes.planted.make_folder": "the same",
    "probes.text.find_required": "a pattern of ours",
    "probes.text.check_length": "counts characters, reads none",
    "probes.host_reader.parse_files": "a table of ours; its parsers are fuzzed",
    "probes.switches.facts.parse_name": "a value of a document; fuzzed as outputs of switches",
    "probes.rdma.normalize.describe_cut": "a tool's name",
    "probes.netlink.link_request": "an interface's name, in a request that we make",
    "probes.netlink.requested_family": "a request that we made",
    "probes.host.files.follow": "a path; fuzzed as entries of archives",
    "probes.host.files.follow_on": "the same",
    "probes.host.files.locate": "the same",
    "probes.host.files.parent_and_name": "the same",
    "probes.sources.memory.make_absent": "a path that was asked for",
    "probes.netlink.same_question": "a request that we made",
    "probes.netlink.family_request": "a family's name, in a request that we make",
    "probes.host.nvml.call": "a function's name",
    "probes.sources.capture_nvml.check_shape": "a function's name; fuzzed as nvml.json, test_evidence.py",
    "probes.redact.text.addresses_in": "takes out what looks like an address; every text is one",
    "probes.sources.sosreport.is_of_sos": "a member's name; fuzzed as an archive",
    "probes.sources.sosreport.is_read": "the same",
    "probes.sources.sosreport.sos_host": "an archive that was opened; fuzzed through open_source",
    "probes.host.udev.record_of": "a path that we make",
    "probes.host.files.refuse_never_read": "the same",
    "probes.kernel.sentence.row": "a row of a table that we write",
    "probes.tool_reports.sentences.sentence.row": "the same",
    "probes.tool_reports.sentences.sentence.rows_of": "the same",
    "probes.kernel.sentence.address": "an address that a pattern found",
    "probes.kernel.log_files.group_logs": "names of files, by one pattern; tests/probes/kernel/test_log_files.py",
    "probes.kernel.log_files.is_log_file": "the same",
    "probes.kernel.log_files.is_rotated": "the same",
    "probes.kernel.log_files.is_further_log": "the same",
    "probes.kernel.log_files.is_of_earlier_boot": "the same",
    "probes.kernel.log_files.is_packed": "the same",
    "probes.sources.sosreport.is_read_log": "a member's name; fuzzed as an archive",
    "probes.sources.sosreport.shorten_log": "lines are found and kept, none is parsed",
    "probes.kernel.log_lines.keep_lines": "lines are found and kept, none is parsed",
    "probes.services.logs.shorten_mixed": "the same",
    "probes.services.logs.shorten_own": "the same",
    "probes.kernel.log_lines.keep_read_lines": "lines are found and kept, none is parsed",
    "probes.planted.check_not_planted": "a path, and what is there; tests/agent/test_given_folders.py",
    "probes.locks.acquire_lock": "a folder of ours",
    "probes.kernel.modules.is_relevant": "a name that was parsed",
    "probes.fabric.formatting.guid16": "digits that a pattern found",
    "probes.nccl.jobs.is_nccl": "a path that was parsed",
    "probes.nccl.jobs.is_plugin": "the same",
    "probes.pci.facts.has_link_control_2": "a word of ours",
    "probes.pci.tree.address_key": "an address that is_pci_address accepted",
    "probes.pci.tree.bus_of": "the same",
    "probes.pci.tree.neighbour": "the same",
    "probes.pci.tree.places_from_buses": "the same",
    "probes.rdma.lost_heading.restore_heading": "a text that find_lost_heading took",
    "probes.rdma.normalize.is_software": "a name that was parsed",
    "probes.topology_files.xml_tree.is_gpu": "a class code that was parsed",
    "agent.reports.replace_file": "writes",
    "probes.own_files.create_private": "writes",
    "probes.own_files.create_temporary": "writes",
    "probes.own_files.create_temporary_folder": "writes",
    "probes.own_files.empty_own_file": "writes",
    "probes.own_files.is_own_file": "a path of ours",
    "probes.own_files.is_temporary": "a name, by one pattern; tests/probes/test_own_files.py",
    "probes.own_files.list_foreign": "a folder's names; the same",
    "probes.own_files.open_lock": "a path of ours",
    "probes.own_files.remove_left_behind": "a folder's names; the same",
    "probes.own_files.remove_own_file": "a path of ours",
    "probes.own_files.temporary_path": "a path of ours",
    "agent.reports.sync_folder": "writes",
    "agent.reports.write_atomically": "writes",
}
