"""What tools, plugins and switches state about a network: where a sentence stands, and which rows are faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.rules.host.tool_meanings import MEANINGS
from probes.sources.identify import identify_command
from probes.sources.pieces import name_pieces
from probes.sources.unwrap import join_wrapped
from probes.text import ParseError
from probes.tool_reports import bonding, containers, port_tools, storage, switch_ports, unnamed
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.port_errors import list_port_errors
from probes.tool_reports.sentences import stated, table

SENTENCES = {
    "libibverbs: Warning: couldn't load driver 'libbnxt_re-rdmav34.so': cannot open": (
        "verbs-no-provider",
        "libbnxt_re",
    ),
    "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs3": (
        "verbs-no-provider",
        "uverbs3",
    ),
    "Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)": ("verbs-no-device", ""),
    "Failed to open device": ("verbs-not-passed", ""),
    "ibpanic: [812] main: stat of IB device 'mlx5_11' failed: No such file or directory": (
        "verbs-device-gone",
        "mlx5_11",
    ),
    " Unable to create QP.": ("perftest-queue", ""),
    "cma event RDMA_CM_EVENT_ADDR_ERROR, error -19": ("rdma-address", "ADDR_ERROR"),
    "rdma_resolve_addr: No such device": ("rdma-address", "No such device"),
    "cma event RDMA_CM_EVENT_REJECTED, error 8": ("rdma-refused", "REJECTED"),
    "ibping: iberror: failed: can't resolve destination port 12": ("mad-unanswered", ""),
    "[17.2] [n4:81:0] ucp_context.c:9 UCX WARN network device 'mlx5_9:1' is not available, please use one or more of: "
    "'eth0'(tcp)": ("ucx-device", "mlx5_9"),
    "[17.2] [n4:81:0]   ib_md.c:11 UCX  DEBUG mlx5_2: cuda GPUDirect RDMA is disabled": ("ucx-no-gdr", "mlx5_2"),
    "-E- Cannot open Device: /dev/mst/mt4129_pciconf2. Operation not permitted. MFE_CMDIF_GO_BIT_BUSY": (
        "firmware-tool",
        "pciconf2",
    ),
    "E0102 gpumem_manager.cc:7] Number of GPUs detected in the PCI tree 6 is not equal to the actual number of GPUs "
    "reported by CUDA 8": ("tcpx-gpus", "6 is not equal"),
    "gdr_open error: Is gdrdrv driver installed and loaded?": ("gdrcopy-unloaded", ""),
    'GDRCOPY library "libgdrapi.so" unable to open GDR driver, is gdrdrv.ko loaded?': ("gdrcopy-unloaded", ""),
    "file register error: GPUDirect Storage not supported on current file filename:/data/a": ("gds-file", ""),
    "W0102 context.cpp:5] No suitable GID found on rocep7s0/": ("gid-none", "rocep7s0"),
    "E0102 context.cpp:4] Failed to query GID 12 on rocep7s0/: No data available [61]": ("gid-none", "rocep7s0"),
    '2025/01/02 error creating new device: "missing RDMA device spec for device 0000:9a:00.0, RDMA device \\"umad\\" '
    'not found"': ("plugin-no-umad", "umad"),
    'desc = failed: infiniBand SRI-OV CNI failed to configure VF "VF ib4 GUID is not valid"': ("cni-no-guid", "ib4"),
    'network: [ml/train-0:rail3]: error adding container to network "rail3": no VF of the pool is free': (
        "cni-failed",
        "no VF of the pool is free",
    ),
    "  lastSyncError: cannot change the e-switch mode": ("sriov-sync", "cannot change"),
    "Loading Mellanox MLX5_IB HCA driver:                       [FAILED]": ("stack-failed", "MLX5_IB"),
    "Loading HCA driver and Access Layer:                       [FAILED]": ("stack-failed", ""),
    "No OFED driver found for kernel 5.15.0-122-generic": ("stack-modules", "5.15.0-122-generic"),
    "modprobe: FATAL: Module ib_uverbs not found in directory /lib/modules/5.15.0": ("module-missing", "ib_uverbs"),
    "2024/03/11 08:12:40 Exiting.. can not change : incorrect RDMA subsystem network namespace": ("rdma-netns", ""),
    "From node2-ib (10.4.1.254) icmp_seq=1 Destination Host Unreachable": ("no-answer", ""),
    "PING node7-ib (10.4.1.7) 56(84) bytes of data.\nFrom 10.4.1.2 icmp_seq=1 Destination Host Unreachable": (
        "no-answer",
        "node7-ib",
    ),
    "Failed status transport retry counter exceeded (12) for wr_id 2": ("verbs-retries", ""),
}
SENTENCES |= {
    "  Failed status 10: wr_id 3 syndrom 0x88": ("completion-memory", "status 10"),
    "  Failed status 9: wr_id 0 syndrom 0x8a": ("completion-request", "status 9"),
    "[WARN n3 44 poll] CQE error, wr_id=7, status=2 (local QP operation error), opcode=1": (
        "completion-local",
        "local QP",
    ),
    "-E- PSID mismatch. The PSID on flash (DEL0000000004) differs from the PSID in the given image (MT_0000000838).": (
        "firmware-psid",
        "DEL0000000004",
    ),
    "Module mlx5_ib does not exist, skipping...      [FAILED]": ("stack-modules", "mlx5_ib"),
    "/src/ibrc.cpp:init:18: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.": (
        "gdr-no-peermem",
        "",
    ),
    "WARN: device efa_2 is not enumerated as an mlx5 device. Skipping...": ("ibgda-failed", "efa_2"),
    "/src/ibgda.cpp:18: NULL value cannot allocate mlx5dv_devx_uar": ("ibgda-failed", ""),
    "/src/transport.cpp:init:27: init failed for transport: IBGDA": ("ibgda-failed", ""),
}
CALM = [
    "  Failed status 5: wr_id 0 syndrom 0xf9",
    '  lastSyncError: ""',
    "Port number 1 state is Active",
    "cma event RDMA_CM_EVENT_ESTABLISHED, error 0",
    "We had 'No IB devices found' before the update.",
    "[17.2] [n4:81:0]   ib_md.c:11 UCX  DEBUG mlx5_2: cuda GPUDirect RDMA is enabled",
    "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': cannot open",
    "Loading Mellanox MLX5 HCA driver:                          [  OK  ]",
    "modprobe: FATAL: Module floppy not found in directory /lib/modules/5.15.0",
]


@pytest.mark.parametrize("line", SENTENCES)
def test_a_sentence_of_a_tool_is_recognized_and_has_a_meaning(line: str) -> None:
    code, what = SENTENCES[line]
    (report,) = stated.list_tool_errors(f"$ run\n{line}\n")
    assert report.code == code
    assert what in dict(report.detail).get("what", "")
    assert code in MEANINGS
    assert identify_command(f"{line}\n") == (("error", "of", _tool_of(code, line)),)


def _tool_of(code: str, line: str) -> str | None:
    return next(
        row.tool for row in table.IN_PLACE if row.code == code and any(map(row.pattern.search, line.splitlines()))
    )


@pytest.mark.parametrize("line", CALM)
def test_a_line_that_states_no_fault_is_none(line: str) -> None:
    assert stated.find_tool_errors(f"{line}\n") == []


def test_a_failure_that_no_sentence_states_is_shown_as_it_is() -> None:
    line = 'time=2026-02-03 level=error msg="cannot move RDMA device mlx5_6 into the namespace of the pod"'
    (report,) = stated.list_tool_errors(f"starting\n{line}\n")
    assert (report.code, report.text) == ("unexplained-line", line)
    assert identify_command(line) == (("error", "of", "program"),)
    assert identify_command("Our RDMA fails with an error: what can we do?\n") == ()


def test_every_sentence_names_a_tool_whose_output_is_known() -> None:
    from probes.host.commands import TOOL_ERRORS_SAVED

    assert {("error", "of", row.tool) for row in table.IN_PLACE} <= set(TOOL_ERRORS_SAVED)


@pytest.mark.parametrize(
    "text",
    [
        "root@pod-7:/# ibdev2netdev\nmlx5_4 port 1 ==> net1 (Down)\nroot@pod-7:/#  Port number 1 state is Down\n",
        "CA 'mlx5_3'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n"
        "ibpanic: [4] main: stat of IB device 'mlx5_4' failed: No such file or directory\n",
    ],
)
def test_a_sentence_beside_another_output_is_read(text: str) -> None:
    pieces, _ = name_pieces("issue.txt", text)
    assert len(pieces) == 2
    assert any(name.startswith("error_of_") for name in pieces)


def test_a_sentence_in_the_log_of_a_job_is_left_to_the_job() -> None:
    log = "n1:5:5 [0] NCCL INFO Bootstrap : Using eth0\nNo IB devices found\n"
    assert not any(name.startswith("error_of_") for name in name_pieces("log", log)[0])
    assert identify_command(log) == ()


def test_a_line_of_ucx_is_none_of_the_kernel() -> None:
    line = "[1700000009.123456] [n7:991:0]  ib_verbs.h:84  UCX  ERROR ibv_query_device(mlx5_1) returned 38\n"
    assert identify_command(line) == ()


def test_a_table_with_a_whole_rule_is_not_taken_for_broken_lines() -> None:
    heading = "      IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR\n"
    rule = "-----------  -------  ----------  ------------  ----------------\n"
    rows = "  Ethernet0        U     136,403             4                41\n Ethernet16 U 0 0 0\n"
    table = f"Last cached\n{heading}{rule}{rows}"
    assert join_wrapped(table) == table


PORT_INFO = "# Port info: Lid 9 port 22\nLinkState:.......................{}\nPhysLinkState:...................{}\n"
FEC = "      IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR\n  Ethernet4        U   9,136,403    {}     0\n"
DROPS = (
    "      IFACE    STATE     RX_OK    RX_ERR    RX_DRP     TX_OK    TX_ERR    TX_DRP\n"
    "  Ethernet4  U  {} 0 {}  {} 0 {}\n"
)
QUEUES = (
    "     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes\n---------  -----  ----\n"
    "Ethernet4    {}      90,000,111            7,872       {}             0\n"
)
PFC = (
    "Global PFC : Enabled\nE: PFC Enabled, D: PFC Disabled\nPort       Status  Priorities  Action  Timeout\n"
    "Et9        {} - -               -           -        - / -\nEt10       D - -        -           -     - / -\n"
)
FLAGS = "Ethernet12:\n  Rx power low alarm flag on lane 3: {}\n  Tx fault flag on media lane 1: False\n"
_STATES = ("True", "True", "False")
MANY_FLAGS = "".join(FLAGS.format(state).replace("12", f"1{port}") for port, state in enumerate(_STATES))
STATUS = (
    "  Interface    Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin    Type    Asym PFC\n"
    "Ethernet64  1,2,3,4  100G  9100  rs  etp9  routed  {}  up  QSFP28 or later  N/A\n"
)
EOS = "Ethernet3/1 is up, line protocol is up\n  {} link status changes since last clear\n     0 input errors, 0 CRC\n"
BOND = "Slave Interface: eth4\nMII Status: {}\nAggregator ID: 1\nPartner Churn State: {}\n"
MLXLINK = "Operational Info\nState : {}\nPhysical state : LinkUp\nSpeed : 100GbE\n{}"
GDS = "GDS release version: 1.14\n NVMe : {}\n NVMeOF : Unsupported\n NFS : Unsupported\n --rdma_device_status  : {}\n"
CONDITION = '{{"type": "{}", "status": "{}", "lastHeartbeatTime": "2026-02-03T04:05:06Z", "message": "port 1"}}'
GUID = "hca_id:\tmlx5_5\n\tnode_guid:\t\t\t{}\n"
ROWS: list[tuple[Callable[[str], list[ToolReport]], str, list[str]]] = [
    (switch_ports.list_switch_ports, FEC.format("12"), ["switch-uncorrected-few"]),
    (switch_ports.list_switch_ports, FEC.format("14,000"), ["switch-uncorrected"]),
    (switch_ports.list_switch_ports, FEC.format("0"), []),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "0", "9,000,000", "40,000"), ["switch-drops"]),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "900,000", "9,000,000", "0"), ["switch-drops"]),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "9,000", "9,000,000", "4,000"), []),
    (switch_ports.list_switch_ports, DROPS.format("8,000", "7,000", "9,000", "7,000"), []),
    (switch_ports.list_switch_ports, QUEUES.format("UC3", "812,442"), ["switch-drops"]),
    (switch_ports.list_switch_ports, QUEUES.format("UC3", "442"), []),
    (switch_ports.list_switch_ports, QUEUES.format("MC11", "812,442"), []),
    (switch_ports.list_switch_ports, PFC.format("D"), ["switch-pfc-nowhere"]),
    (switch_ports.list_switch_ports, PFC.format("E"), []),
    (switch_ports.list_switch_ports, FLAGS.format("True"), ["module-flags"]),
    (switch_ports.list_switch_ports, FLAGS.format("False"), []),
    (switch_ports.list_switch_ports, MANY_FLAGS, ["modules-flags", "modules-flags"]),
    (switch_ports.list_switch_ports, STATUS.format("down"), ["switch-port-down"]),
    (
        switch_ports.list_switch_ports,
        STATUS.replace("  rs", "").replace("    FEC", "").format("down"),
        ["switch-port-down"],
    ),
    (switch_ports.list_switch_ports, STATUS.format("up"), []),
    (switch_ports.list_switch_ports, EOS.format(55), ["switch-flaps"]),
    (switch_ports.list_switch_ports, EOS.format(3), []),
    (bonding.list_bond_faults, BOND.format("up", "churned"), ["bond-no-partner"]),
    (bonding.list_bond_faults, BOND.format("up", "none"), []),
    (port_tools.list_link_states, MLXLINK.format("Physical LinkUp", ""), ["link-inactive"]),
    (port_tools.list_link_states, MLXLINK.format("Active", ""), []),
    (port_tools.list_link_states, MLXLINK.format("Polling", "Recommendation : No issue was observed\n"), []),
    (storage.list_storage_faults, GDS.format("Unsupported", "Up: 0 Down: 0"), ["gds-none"]),
    (storage.list_storage_faults, GDS.format("Supported", "Up: 2 Down: 0"), []),
    (storage.list_storage_faults, GDS.format("Supported", "Up: 3 Down: 1"), ["gds-rdma-down"]),
    (containers.list_node_faults, CONDITION.format("InfiniBandCheck", "True"), ["kube-condition"]),
    (containers.list_node_faults, CONDITION.format("InfiniBandCheck", "False"), []),
    (unnamed.list_zero_guids, GUID.format("0000:0000:0000:0000"), ["guid-zero"]),
]


@pytest.mark.parametrize(("read", "text", "codes"), ROWS)
def test_rows_of_a_table_are_faults_or_not(
    read: Callable[[str], list[ToolReport]], text: str, codes: list[str]
) -> None:
    assert [report.code for report in read(text)] == codes
    assert set(codes) <= set(MEANINGS)


@pytest.mark.parametrize("text", [GUID.format("98:03:9b:03:00:a1:b2:00"), "rdmap0s6 0000000000000000\n", "CA 'x'\n"])
def test_a_guid_that_is_no_fault_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        unnamed.list_zero_guids(text)


@pytest.mark.parametrize(
    ("state", "physical", "codes"),
    [("Down", "Disabled", ["disabled"]), ("Down", "Polling", ["polling"]), ("Active", "LinkUp", [])],
)
def test_a_port_of_the_fabric_without_a_link_is_named(state: str, physical: str, codes: list[str]) -> None:
    assert codes == [report.code for report in list_port_errors(PORT_INFO.format(state, physical))]
