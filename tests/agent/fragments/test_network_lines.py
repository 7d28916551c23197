"""Texts about networks as people paste them: excerpts, lines of programs, counters of two moments, rows of switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from tests.agent.rules.test_fragments import warnings_of

_DEVINFO = (
    "hca_id:\t{name}\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t{state}\n\t\t\tlink_layer:\t{layer}\n\n"
)
_DOWN, _UP = "PORT_DOWN (1)", "PORT_ACTIVE (4)"
_SONIC = "Port Errors    Count  Last timestamp(UTC)\n-----------  -------  ---------------------\n"


def _scan(folder: Path, text: str) -> Report:
    """A file, as a person gives it."""
    file = folder / "chat.txt"
    file.write_text(text)
    return diagnose(open_source(str(file), None), ScanPlan())[0]


def _devices(*states: str, layer: str = "InfiniBand") -> str:
    return "".join(_DEVINFO.format(name=f"mlx5_{n}", state=state, layer=layer) for n, state in enumerate(states))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job 4 ended: IBV_WC_RETRY_EXC_ERR on mlx5_2 to n17\n", [("mlx5_2", "did not answer")]),
        ("[ERROR] (net.c:18 errno: Cannot allocate memory) Failed to create qp\n", [("node", "queue pair")]),
        ("ibv_modify_qp(RTR) failed: No such device (errno 19)\n", [("node", "could not connect")]),
        ("    case IBV_WC_RETRY_EXC_ERR:\n        return retry();\n", []),
        ("What does IBV_WC_RETRY_EXC_ERR on mlx5_2 mean?\n", []),
        ("13:00 rx_crc_errors_phy: 18201\n13:05 rx_crc_errors_phy: 90442\n", [("node", "grew")]),
        ("Port 7\nbefore:\n  SymbolErrorCounter: 4\nafter 10 min:\n  SymbolErrorCounter: 712\n", [("Port 7", "grew")]),
        ("13:00 rx_crc_errors_phy: 18201\n13:05 rx_crc_errors_phy: 18201\n", []),
        ("13:00 rx_bytes_phy: 18201\n13:05 rx_bytes_phy: 90442\n", []),
        ("Raw Physical BER : 3E-5\nEffective Physical BER : 2E-8\n", [("node", "FEC")]),
        ("Raw Physical BER : 3E-9\nEffective Physical BER : 15E-255\n", []),
        ('"State": "Polling",\n"Status Opcode": "2",\n"Recommendation": "No partner"\n', [("node", "No partner")]),
        ("".join(f"rx_power lane{n}: {-28.5 if n == 3 else -1.2} dBm\n" for n in range(1, 5)), [("ethX", "lane 3")]),
        ("".join(f"rx_power lane{n}: -1.{n} dBm\n" for n in range(1, 5)), []),
        ("CA mlx5_4 port 1: state INIT, physical_state LINK_UP, sm_lid 0\n", [("mlx5_4/1", "INIT")]),
        (
            "   GUID 0x11 port 14: [SymbolErrorCounter == 65535] [LinkDownedCounter == 255]\n",
            [("port 14 of 11", "symbol")],
        ),
        (
            "Interface ErrDisable Cause Time left\n--------- ---------------- ---------\nxe11 link-flap 38\n",
            [("xe11", "link-flap")],
        ),
        ("Ethernet48:3  stormed  2/1  2/1  1000/0  4000/0\n", [("Ethernet48:3", "paused it")]),
        (
            "    device                 node GUID\n    ------              ----------------\n\n",
            [("node", "no RDMA device")],
        ),
    ],
)
def test_what_lines_of_a_network_state(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    try:
        findings = warnings_of(_scan(tmp_path, text))
    except BadSource:
        findings = []
    assert [label for label, _ in expected] == [finding.label for finding in findings]
    assert all(words in finding.summary for (_, words), finding in zip(expected, findings, strict=True))


@pytest.mark.parametrize("layer", ["InfiniBand", "Ethernet"])
def test_ports_of_which_none_has_a_link_are_a_note(tmp_path: Path, layer: str) -> None:
    """Of several that are shown alone it is not known whether they are cabled; one that is up shows that some are."""
    notes = [f for f in _scan(tmp_path, _devices(_DOWN, _DOWN, _DOWN, layer=layer)).findings if "all ports" in f.label]
    assert [("info", "low")] == [(note.severity, note.confidence) for note in notes]
    assert "mlx5_0-2" in notes[0].summary
    report = _scan(tmp_path, _devices(_UP, _UP, _UP, layer=layer))
    assert not [finding for finding in report.findings if "all ports" in finding.label]


def test_faults_of_a_link_that_a_switch_counted_are_a_note(tmp_path: Path) -> None:
    command = "admin@leaf3:~$ show interfaces errors Ethernet16\n"
    many = command + _SONIC + "mac local fault      7  2025-06-27 23:36:28\ncrc rate      0  Never\n"
    (note,) = _scan(tmp_path, many).findings
    assert ("Ethernet16", "info") == (note.label, note.severity)
    with pytest.raises(BadSource, match="no fault of its ports"):
        _scan(tmp_path, many.replace(" 7 ", " 1 "))


def test_a_module_that_a_switch_does_not_see(tmp_path: Path) -> None:
    """An empty cage is none; one whose link is up has a module."""
    seen = "Port       Presence\n---------  -----------\nEthernet4  Not present\n"
    with pytest.raises(BadSource, match="of a switch"):
        _scan(tmp_path, seen)
    up = "Interface  Oper  Admin\n---------  ----  -----\nEthernet4  up    up\n"
    (note,) = _scan(tmp_path, f"sw$ show int transceiver presence\n{seen}sw$ show int status\n{up}").findings
    assert ("Ethernet4", "info") == (note.label, note.severity)


def test_a_command_that_printed_nothing_is_told_from_what_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match=r"printed nothing \(`dmesg \| grep -i mlx5`\)"):
        _scan(tmp_path, "[root@n7 ~]# dmesg | grep -i mlx5\n[root@n7 ~]# \n")


def test_an_error_that_a_daemon_of_sonic_logs_is_a_note(tmp_path: Path) -> None:
    line = "Nov 12 08:11:02.1 leaf7 {} pmon#xcvrd: Unable to read data for '17' port, page '0'\n"
    (note,) = _scan(tmp_path, line.format("ERR")).findings
    assert "Unable to read data" in note.summary
    with pytest.raises(BadSource):
        _scan(tmp_path, line.format("NOTICE"))


_QUERY = "# Port counters: Lid {lid} port 1 (CapMask: 0x5A00)\nSymbolErrorCounter:..............0\n" + (
    "LinkDownedCounter:...............{downs}\n"
)
_BGP = "Neighbor  V  AS  MsgRcvd  MsgSent  InQ  OutQ  Up/Down  State/PfxRcd\n"
_PFC = "n{}: prio-pfc 0:off 1:off 2:off 3:{} 4:off 5:off 6:off 7:off\n"


_WATCHDOG = (  # of EOS
    "leaf-a1#show priority-flow-control\nGlobal PFC : Enabled\n"
    "Port  Status  Priorities  Action  Timeout  Recovery  Polling  Note\n"
)


def _sessions(state: str) -> str:
    rows = ((n, state if n == 3 else 52) for n in range(1, 5))
    return _BGP + "".join(f"spine{n}(swp5{n})  4  65000  402211  402198  0  0  3d02h11m  {last}\n" for n, last in rows)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (_QUERY.format(lid=118, downs=17), "port 1 of LID 118"),
        (_QUERY.format(lid=118, downs=4), None),
        ("".join(_QUERY.format(lid=lid, downs=17) for lid in range(9)), None),
        (_sessions("Idle"), "swp53"),
        (_sessions("Active"), "swp53"),
        (_sessions("51"), None),
        ("".join(_PFC.format(n, "off" if n == 4 else "on") for n in range(1, 7)), "node"),
        ("".join(_PFC.format(n, "on") for n in range(1, 7)), None),
        (_WATCHDOG + "".join(f"Et{n}/1 E A W 3 errdisable 0.2 0.4 auto / 0.100\n" for n in range(1, 5)), None),
    ],
    ids=[
        "downs",
        "few downs",
        "a list",
        "BGP idle",
        "BGP active",
        "BGP",
        "PFC of one host",
        "PFC",
        "what a watchdog would do",
    ],
)
def test_what_may_be_usual_is_a_note(tmp_path: Path, text: str, label: str | None) -> None:
    try:
        findings = _scan(tmp_path, text).findings
    except BadSource:
        findings = []

    assert ([(label, "info", "low")] if label else []) == [(f.label, f.severity, f.confidence) for f in findings]


_WAITS = (
    '           7    {n}[  ] ==( 4X      25.78125 Gbps Initialize/  LinkUp)==>       0    1[  ] "n{n} mlx5_0" ( )\n'
)
_INIT = (
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tNode GUID: 0xa088c20300ab0001\n\tPort 1:\n"
    "\t\tState: Initializing\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 0\n\t\tLMC: 0\n\t\tSM lid: 0\n"
    "\t\tCapability mask: 0xa759e848\n\t\tPort GUID: 0xa088c20300ab0001\n\t\tLink layer: InfiniBand\n"
)


def test_links_that_wait_for_a_subnet_manager_follow_from_it(tmp_path: Path) -> None:
    """Of the host's own port the rule about it explains the links of the fabric."""
    links = "".join(_WAITS.format(n=n) for n in (1, 2, 3))
    report = _scan(tmp_path, f"$ ibstat\n{_INIT}$ iblinkinfo\nSwitch: 0x0000000000200001 leaf2:\n{links}")

    assert ["ib-no-sm"] == [finding.rule for finding in warnings_of(report)]
