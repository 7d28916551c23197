"""What tools, plugins and switches state about a network: where a sentence stands, and which rows are faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.rules.host.tool_findings import MEANINGS
from probes.sources.identify import identify_command
from probes.sources.pieces import name_pieces
from probes.sources.unwrap import join_wrapped
from probes.text import ParseError
from probes.tool_reports import containers, host, slurm, unnamed
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.network import addresses, host_interfaces, nic_settings, port_tools, switch_ports, ufm
from probes.tool_reports.network.port_errors import list_port_errors
from probes.tool_reports.sentences import stated
from tests.agent.rules.test_fragments import scan_text


def test_a_failure_that_no_sentence_states_is_shown_as_it_is() -> None:
    line = 'time=2026-02-03 level=error msg="cannot move RDMA device mlx5_6 into the namespace of the pod"'
    (report,) = stated.list_tool_errors(f"starting\n{line}\n")
    assert (report.code, report.text) == ("unexplained-line", line)
    assert identify_command(line) == (("error", "of", "program"),)
    assert identify_command("Our RDMA fails with an error: what can we do?\n") == ()


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


def test_rows_of_settings_are_not_taken_for_broken_lines() -> None:
    """Where all are as wide, and some begin with a star."""
    head = "Configurations:                              Default         Current         Next Boot"
    rows = (
        "*        KEEP_LINK_UP_P2{0}False(0)        True(1)         True(1)\n"
        "         KEEP_LINK_UP_P1{0}False(0)        False(0)        False(0)\n"
    )
    text = f"Device type:    ConnectX4\n{head}\n{rows.format(' ' * 21) * 2}"

    assert join_wrapped(text) == text


def test_ibping_is_none_of_ping() -> None:
    """Both print the same line of statistics."""
    text = "--- n7.(none) (Lid 44) ibping statistics ---\n10 packets transmitted, 0 received, 100% packet loss\n"

    assert [report.code for report in stated.list_tool_errors(text)] == ["mad-unanswered"]
    assert [report.code for report in stated.list_tool_errors(text.replace("ibping", "ping"))] == ["no-answer"]


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ("# mpirun -np 2 -x NCCL_IB_GID_INDEX=3 ./all_reduce_perf\n", True),
        ("export NCCL_IB_GID_INDEX=3\n", True),
        ("export NCCL_IB_GID_INDEX=3\nexport NCCL_IB_GID_INDEX=5\n", False),
        ("Should NCCL_IB_GID_INDEX=3 work here?\n", False),
    ],
    ids=["mpirun", "export", "two attempts", "prose"],
)
def test_what_a_command_sets_for_nccl_is_compared_with_the_host(commands: str, expected: bool, tmp_path: Path) -> None:
    gids = "DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\n" + "".join(
        f"mlx5_{device}\t1\t{index}\t0000:0000:0000:0000:0000:ffff:0a98:0{device}0c\t10.152.{device}.12\t"
        f"v{index - 5}\tnet1\n"
        for device in (1, 2)
        for index in (6, 7)
    )
    text = f"# show_gids\n{gids}n_gids_found=4\n\n{commands}"
    rules = {finding.rule for finding in scan_text(tmp_path, text, "issue.md").findings}

    assert ("roce-gid-index-wrong" in rules) is expected


def test_a_sentence_in_the_log_of_a_job_is_left_to_the_job() -> None:
    log = "n1:5:5 [0] NCCL INFO Bootstrap : Using eth0\nNo IB devices found\n"
    assert not any(name.startswith("error_of_") for name in name_pieces("log", log)[0])
    assert identify_command(log) == ()


def test_a_line_of_ucx_is_none_of_the_kernel() -> None:
    line = (
        "[17.2] [n4:81:0] ucp_context.c:9 UCX WARN network device 'mlx5_9:1' is not available, please use one or more "
        "of: 'eth0'(tcp)"
    )
    assert [report.code for report in stated.list_tool_errors(line)] == ["ucx-device"]
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
DROPS_OF_ONE = (
    "      IFACE    STATE     RX_OK    RX_ERR    RX_DRP     TX_OK    TX_ERR    TX_DRP\n"
    "  Ethernet4  U  500,000,000,000 0 0  500,000,000,000 0 {}\n"
    "  Ethernet8  U  510,000,000,000 0 0  490,000,000,000 0 {}\n"
    "  Ethernet12  U  505,000,000,000 0 0  495,000,000,000 0 0\n"
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
ACTIVE = (
    "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\nMII Status: up\nActive Aggregator Info:\n\tAggregator ID: "
    "{}\nSlave Interface: eth4\nMII Status: up\nAggregator ID: 1\nSlave Interface: eth5\nMII Status: up\n"
    "Aggregator ID: {}\n"
)
NO_ACTIVE = (
    "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n802.3ad info\nbond bond1 has no active aggregator\n"
    "Slave Interface: eth4\nMII Status: {}\nAggregator ID: N/A\n"
)
OUTPUT_ERRORS = (
    "Ethernet1/9 is up\n  RX\n    80112233445 input packets  7 bytes\n    0 CRC  0 no buffer\n"
    "  TX\n    90112233445 output packets  7 bytes\n    {} output error  0 collision\n"
)
LANES = "Ethernet64: SFP EEPROM detected\n   RX1Power: -40.0dBm\n   RX2Power: {}dBm\n   TX1Power: 0.4dBm\n"
DARK = STATUS.format("down") + LANES.format("-inf").replace("-inf", "-40.0")
WATCHDOG = (
    "  IFACE    STATE    RX_OK   RX_ERR   RX_DRP   TX_OK   TX_ERR   TX_DRP\n"
    "Ethernet8      U    8,112        0        0   9,111        0        0\n"
    "       QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP\n"
    "------------  -----------  -------------------------  ------------\n"
    " Ethernet8:3  {}                        1/{}     0/90821\n"
)
ROUTES = (
    "default via 10.8.0.1 dev eno1 proto dhcp metric 100\n10.8.0.0/16 dev {} proto kernel scope link src 10.8.4.4\n"
    "10.8.0.0/16 dev {} proto kernel scope link src 10.8.5.4\n"
)
LINKS = (
    "8: {}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n    inet 10.9.1.4/24 scope global eth1\n"
    "9: {}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n    inet 10.9.{}.5/24 scope global eth2\n"
)
CARD = "Device type:    ConnectX7\nName:           MCX1\nDevice:         {}\n\nConfigurations:      Next Boot\n"
CARDS = "".join(
    f"{CARD.format(f'{bus}:00.0')}        LINK_TYPE_P1      {{}}\n        MAC_BASE    {bus}\n" for bus in range(11, 15)
)
PENDING = (
    "Device: c1:00.0\nConfigurations:     Default   Current   Next Boot\n*   NUM_OF_VFS     8         0       {}\n"
)
OPA = (
    "hfi1_0:1                      PortGID:0xfe80000000000000:0011750101aabbcc\n   PortState:     {}\n"
    "   LinkWidth      Act: 4            En: 4\n   LinkWidthDnGrd ActTx: 4  Rx: {}   En: 3,4\n   Link Quality: {} (x)\n"
)
CXI = (
    "Device: cxi0\n    Network device: hsn0\n    Link state: {}\n"
    "Device: cxi1\n    Network device: hsn1\n    Link state: up\n"
)
CXI_PCIE = CXI.format("up").replace("    Link", "    PCIE speed/width: 16.0 GT/s PCIe x{}\n    Link", 1) + (
    "    PCIE speed/width: 16.0 GT/s PCIe x16\n"
)
UFM = "2026-02-03 0{}:05:06.123 [71] [{}] {} [{}] [Switch: aa - leaf2 Port 21] : {} (leaf2: 21)<->(n7 mlx5_4: 1)\n"
WENT_DOWN = UFM.format(1, 329, "INFO", "Link", "link went down")
CAME_UP = UFM.format(2, 328, "INFO", "Link", "link is up")
OF_DEVICE = (
    "2026-02-03 04:05:06.123 [71] [112] WARNING [Hardware] IBPort [default(3) / Switch: tor-2 / NA / 7] "
    "[dev_id: 94090d03]: {}\n"
)
NVUE_STATES = (
    "$ nv show interface swp9 link\noper-status    {}\n[breakout]\nstate          up      up\nmtu            9216\n"
)
NVUE_LINK = (
    "cumulus@leaf1:mgmt:~$ nv show interface swp12 link\n                     operational    applied\n"
    "-----------------  -------------  -------\nadmin-status       up\noper-status        {}\n"
    'diagnostics\n  diagnostics-status   "Cable is unplugged."\n'
)
MODULE = "Rx Power Current [dBm]    : {} [-8.4..4]\nTemperature [C]           : {} [-5..70]\n"
COMWARE = (
    "<spine1>display interface HundredGigE1/0/5\nHundredGigE1/0/5\nCurrent state: {}\nLine protocol state: DOWN\n"
    "Description: to leaf7\n"
)
INACTIVE = (
    "Port Channel Port-Channel12 (Fallback State: Unconfigured):\nActive Ports:\n   Port              Time Became"
    " Active    Protocol    State\n   Ethernet12/1      Tue 10:11:12          LACP        Rx,Tx\n{}"
)
WAITING = (
    "Configured, but inactive ports:\n   Port              Time Became Inactive  Reason\n"
    "   Ethernet13/1      Tue 10:14:31          waiting for LACP response\n"
)
CMA = "$ cma_roce_mode -d mlx5_0 -p 1\nRoCE v2\n$ cma_roce_mode -d mlx5_1 -p 1\n{}\n"
FLINT = "Image type:            FS4\nFW Version:            28.39.1002\nFW Version(Running):   {}\n"
GUID = "hca_id:\tmlx5_5\n\tnode_guid:\t\t\t{}\n"
ROWS: list[tuple[Callable[[str], list[ToolReport]], str, list[str]]] = [
    (switch_ports.list_switch_ports, FEC.format("12"), ["switch-uncorrected-few"]),
    (switch_ports.list_switch_ports, FEC.format("14,000"), ["switch-uncorrected"]),
    (switch_ports.list_switch_ports, FEC.format("0"), []),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "0", "9,000,000", "40,000"), ["switch-drops"]),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "900,000", "9,000,000", "0"), ["switch-drops"]),
    (switch_ports.list_switch_ports, DROPS.format("8,000,000", "9,000", "9,000,000", "4,000"), []),
    (switch_ports.list_switch_ports, DROPS_OF_ONE.format("4,204,551", "0"), ["switch-drops-most"]),
    (switch_ports.list_switch_ports, DROPS_OF_ONE.format("4,204,551", "4,117,002"), []),
    (switch_ports.list_switch_ports, DROPS_OF_ONE.format("42,551", "0"), []),
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
    (host_interfaces.list_bond_faults, BOND.format("up", "churned"), ["bond-no-partner"]),
    (host_interfaces.list_bond_faults, BOND.format("up", "none"), []),
    (host_interfaces.list_bond_faults, ACTIVE.format(1, 1), []),
    (host_interfaces.list_bond_faults, ACTIVE.format(2, 2), ["bond-not-joined"]),
    (host_interfaces.list_bond_faults, NO_ACTIVE.format("up"), ["bond-no-partner"]),
    (host_interfaces.list_bond_faults, NO_ACTIVE.format("down"), ["bond-member-down"]),
    (switch_ports.list_switch_ports, OUTPUT_ERRORS.format(812_113), ["switch-errors-sent"]),
    (switch_ports.list_switch_ports, OUTPUT_ERRORS.format(1_113), []),
    (switch_ports.list_switch_ports, DARK, ["switch-port-down"]),
    (switch_ports.list_switch_ports, STATUS.format("up") + LANES.format("-40.0"), []),
    (switch_ports.list_switch_ports, WATCHDOG.format("stormed    ", 0), ["switch-storm"]),
    (switch_ports.list_switch_ports, WATCHDOG.format("operational", 1), ["switch-stormed"]),
    (addresses.list_shared_networks, ROUTES.format("eno1", "eth5"), ["network-shared"]),
    (addresses.list_shared_networks, ROUTES.format("eno1", "docker0"), []),
    (addresses.list_shared_networks, ROUTES.format("eno1", "eno1"), []),
    (addresses.list_shared_networks, ROUTES.format("eno1", "eth5").replace("5.4", "5.4 linkdown"), []),
    (addresses.list_link_faults, LINKS.format("eth1", "eth2", 1), ["network-shared"]),
    (nic_settings.list_settings, CARDS.format("IB(1)", "IB(1)", "ETH(2)", "IB(1)"), ["firmware-setting-odd"]),
    (nic_settings.list_settings, CARDS.format("IB(1)", "ETH(2)", "ETH(2)", "IB(1)"), []),
    (nic_settings.list_settings, PENDING.format(16), ["firmware-pending"]),
    (nic_settings.list_settings, PENDING.format(0), []),
    (switch_ports.list_switch_ports, COMWARE.format("DOWN ( Transceiver absent )"), ["switch-port-down"]),
    (switch_ports.list_switch_ports, COMWARE.format("DOWN ( Administratively )"), []),
    (switch_ports.list_switch_ports, COMWARE.format("UP"), []),
    (switch_ports.list_switch_ports, INACTIVE.format(WAITING), ["switch-member-out"]),
    (switch_ports.list_switch_ports, INACTIVE.format(""), []),
    (nic_settings.list_roce_modes, CMA.format("IB/RoCE v1"), ["cma-mode"]),
    (nic_settings.list_roce_modes, CMA.format("RoCE v2"), []),
    (nic_settings.list_versions, FLINT.format("28.36.1010"), ["firmware-pending"]),
    (nic_settings.list_versions, FLINT.format("28.39.1002"), []),
    (port_tools.list_omni_path_ports, OPA.format("Active", 4, 5), []),
    (port_tools.list_omni_path_ports, OPA.format("Init (LinkUp)", 4, 5), ["opa-waits"]),
    (port_tools.list_omni_path_ports, OPA.format("Down (Offline)", 4, 5), ["nic-ports-down"]),
    (port_tools.list_omni_path_ports, OPA.format("Active", 3, 5), ["opa-lanes"]),
    (port_tools.list_omni_path_ports, OPA.format("Active", 4, 2), ["opa-lanes"]),
    (port_tools.list_nic_ports, CXI.format("down"), ["nic-port-down"]),
    (port_tools.list_nic_ports, CXI.format("starting"), ["nic-port-down"]),
    (port_tools.list_nic_ports, CXI.format("up"), []),
    (port_tools.list_nic_ports, CXI_PCIE.format(8), ["nic-pcie-narrow"]),
    (port_tools.list_nic_ports, CXI_PCIE.format(16), []),
    (ufm.list_ufm_events, WENT_DOWN, ["ufm-link-down"]),
    (ufm.list_ufm_events, WENT_DOWN + CAME_UP, []),
    (ufm.list_ufm_events, WENT_DOWN + CAME_UP + WENT_DOWN + CAME_UP, ["ufm-link-flaps"]),
    (ufm.list_ufm_events, UFM.format(1, 110, "WARNING", "Port", "Symbol Error rate exceeded"), ["ufm-threshold"]),
    (ufm.list_ufm_events, UFM.format(1, 110, "INFO", "Port", "Symbol Error rate exceeded"), []),
    (ufm.list_ufm_events, UFM.format(1, 115, "WARNING", "Port", "Congested Bandwidth threshold reached"), []),
    (
        ufm.list_ufm_events,
        OF_DEVICE.format("Link went down: (Switch:tor-2:QM9700)94:7 - (Switch:top-1)95:3"),
        ["ufm-link-down"],
    ),
    (
        ufm.list_ufm_events,
        OF_DEVICE.format("Link went down: (Switch:tor-2:QM9700)94:7 - (Switch:top-1)95:3")
        + OF_DEVICE.format("Link went up: (Switch:tor-2)94:7 - (Switch:top-1)95:3"),
        [],
    ),  # the same link, in other words
    (
        ufm.list_ufm_events,
        "Feb  3 04:05:06 ufm-1 eventlog[71]: WARNING - "
        + OF_DEVICE.format("Link-Downed counter delta threshold exceeded."),
        ["ufm-threshold"],
    ),
    (switch_ports.list_switch_ports, NVUE_LINK.format("down"), ["switch-port-down"]),
    (switch_ports.list_switch_ports, NVUE_STATES.format("down"), ["switch-port-down"]),
    (switch_ports.list_switch_ports, NVUE_STATES.format("up"), []),
    (switch_ports.list_switch_ports, NVUE_LINK.format("up"), []),
    (port_tools.list_link_states, MLXLINK.format("Active", MODULE.format("1.2,-9.8", 46)), ["module-beyond"]),
    (port_tools.list_link_states, MLXLINK.format("Active", MODULE.format("1.2,1.1", 71)), ["module-beyond"]),
    (port_tools.list_link_states, MLXLINK.format("Active", MODULE.format("1.2,1.1", 46)), []),
    (port_tools.list_link_states, MLXLINK.format("Active", "Rx Power [dBm] : 0 [0..0]\n"), []),
    (port_tools.list_link_states, MLXLINK.format("Polling", MODULE.format("-40,-40", 46)), ["link-inactive"]),
    (port_tools.list_link_states, MLXLINK.format("Physical LinkUp", ""), ["link-inactive"]),
    (port_tools.list_link_states, MLXLINK.format("Active", ""), []),
    (port_tools.list_link_states, MLXLINK.format("Polling", "Recommendation : No issue was observed\n"), []),
    (host.list_storage_faults, GDS.format("Unsupported", "Up: 0 Down: 0"), ["gds-none"]),
    (host.list_storage_faults, GDS.format("Supported", "Up: 2 Down: 0"), []),
    (host.list_storage_faults, GDS.format("Supported", "Up: 3 Down: 1"), ["gds-rdma-down"]),
    (containers.list_node_faults, CONDITION.format("InfiniBandCheck", "True"), ["kube-condition"]),
    (containers.list_node_faults, CONDITION.format("DiskPressure", "True"), ["kube-pressure"]),
    (containers.list_node_faults, CONDITION.format("ReadonlyFilesystem", "False"), []),
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
    ("read", "text"),
    [
        (addresses.list_link_faults, LINKS.format("eth1", "eth2", 2)),
        (addresses.list_link_faults, LINKS.format("eth1", "veth2", 1)),
        (addresses.list_link_faults, LINKS.format("eth1", "eth2", 1).replace("UP,LOWER_UP", "UP", 1)),
        (addresses.list_link_faults, LINKS.format("eth1", "eth2", 1).replace("/24", "/31")),
        (nic_settings.list_versions, "FW Version:            28.39.1002\n"),
        (addresses.list_empty_tables, "n_gids_found=10\n"),
        (port_tools.list_omni_path_ports, "hfi1_0: an adapter\n"),
        (ufm.list_ufm_events, "2026-02-03 UFM was updated\n"),
        (nic_settings.list_settings, CARD.format("11:00.0") + "        LINK_TYPE_P1      IB(1)\n"),
    ],
    ids=[
        "two networks",
        "a pod's interface",
        "no link",
        "two hosts",
        "one version",
        "GIDs",
        "no port",
        "no event",
        "one card",
    ],
)
def test_what_is_compared_with_nothing_is_no_fault(read: Callable[[str], list[ToolReport]], text: str) -> None:
    with pytest.raises(ParseError):
        read(text)


def test_a_port_without_light_is_named_as_one() -> None:
    details = [dict(report.detail) for report in switch_ports.list_switch_ports(DARK)]

    assert details == [{"what": "it receives no light (-40 dBm)"}]


def test_what_several_commands_of_one_switch_print_is_read_together() -> None:
    """Each below its prompt, as a terminal has it."""
    text = f"leaf1# show interfaces status\n{STATUS.format('down')}leaf1# show transceiver\n{LANES.format('-40.0')}"
    pieces, _ = name_pieces("a.txt", text)

    assert [report.detail for report in switch_ports.list_switch_ports(pieces["show_interfaces"].text)] == [
        (("what", "it receives no light (-40 dBm)"),)
    ]


@pytest.mark.parametrize(
    ("state", "physical", "codes"),
    [("Down", "Disabled", ["disabled"]), ("Down", "Polling", ["polling"]), ("Active", "LinkUp", [])],
)
def test_a_port_of_the_fabric_without_a_link_is_named(state: str, physical: str, codes: list[str]) -> None:
    assert codes == [report.code for report in list_port_errors(PORT_INFO.format(state, physical))]


@pytest.mark.parametrize(
    "text",
    [
        CONDITION.format("GpuCountCheck", "True"),
        "Name: n7\nConditions:\n  Type  Status  LastHeartbeatTime  Reason  Message\n"
        "  GpuCountCheck  True  Tue, 11 Nov 2025 08:12:11 +0000  GpuCountWrong  port 1\n",
    ],
)
def test_a_condition_is_shown_with_its_message(text: str) -> None:
    assert [dict(report.detail)["message"] for report in containers.list_node_faults(text)] == ["port 1"]


def test_rows_of_one_width_below_their_command_are_a_table() -> None:
    row = "nvidia-device-plugin-{}                        0/1     CrashLoopBackOff   {}         10d\n"
    table = "$ kubectl get pods\n" + row.format("a1", 76) + row.format("b2", 12) + row.format("c3", 29)

    assert join_wrapped(table) == table


def test_what_a_check_found_stands_beside_its_failure() -> None:
    text = "Found XID errors: 48\nERROR:  nhc:  Health check failed:  Check check_xid_errors returned 1\n"

    assert ["nhc-failed", "check-xid"] == [report.code for report in slurm.list_controller_lines(text)]


def test_the_number_of_a_process_behind_the_name_of_the_check_is_no_obstacle() -> None:
    text = "2026-02-03T04:05:06 n7 nhc[4711]: Health check failed:  Script timed out.\n"

    assert ["nhc-failed"] == [report.code for report in slurm.list_controller_lines(text)]
