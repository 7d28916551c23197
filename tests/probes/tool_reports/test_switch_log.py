"""Lines of a switch's log: which port, and what they state."""

from __future__ import annotations

import pytest

from agent.rules.host.tool_findings import MEANINGS
from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports.network.switch_ports import list_switch_ports

LINE = "2026 Feb  3 04:05:06.123456 leaf3 {} swss#orchagent: :- {}: {}\n"
STORM = LINE.format(
    "NOTICE",
    "report",
    "PFC Watchdog detected PFC storm on port Ethernet64, queue index 3, queue id 0x15 and port id 0x1.",
)
PAUSED = LINE.format("WARNING", "pfcFrameCounterCheck", "Got PFC {} frame(s) on lossy queue 4 port Ethernet12")
FAULT = LINE.format("NOTICE", "updatePortErrorStatus", "Port Ethernet8 oper error event: fec_sync_loss occurred")
CHANGE = LINE.format("NOTICE", "updatePortOperStatus", "Port Ethernet8 oper state set from {}")
UP, DOWN = CHANGE.format("down to up"), CHANGE.format("up to down")
NXOS = "2026 Feb  3 04:0{minute}:06 leaf7 %ETHPORT-5-IF_{what}: Interface Ethernet1/{port} is {state}\n"
LOST, LOST_LINK = "down (Link failure)", "DOWN_LINK_FAILURE"
FLAPS = "".join(
    NXOS.format(minute=minute, what=LOST_LINK, port=5, state=LOST)
    + NXOS.format(minute=minute, what="UP", port=5, state="up in mode access")
    for minute in range(3)
)
HISTORY = "leaf2# show interfaces Ethernet7/1 status history\nTime                   Status\n" + "".join(
    f"2026-02-03 04:{minute:02}:05    down\n2026-02-03 04:{minute:02}:07    up\n" for minute in (32, 28, 21)
)
XR = "RP/0/RP0/CPU0:Feb  3 04:05:06.1 : ifmgr[213]: %PKT_INFRA-{}Interface HundredGigE0/0/0/9, changed state to {}\n"
TRAP = "Feb  3 04:05:06  leaf4 mib2d[9]: SNMP_TRAP_LINK_{}: ifIndex 6, ifAdminStatus up(1), ifName et-0/0/12\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (STORM, ["switch-storm Ethernet64:3"]),
        (PAUSED.format(71) + PAUSED.format(912), ["switch-lossy-pause Ethernet12:4 912 frames"]),
        (FAULT, ["switch-port-fault Ethernet8 fec sync loss"]),
        (FAULT + UP, []),
        (UP + FAULT, ["switch-port-fault Ethernet8 fec sync loss"]),
        (DOWN, ["switch-log-down Ethernet8"]),
        (DOWN + UP, []),
        (FLAPS, ["switch-log-flaps Ethernet1/5 3 times"]),
        ("".join(FLAPS.replace("1/5", f"1/{port}") for port in range(1, 6)),
         [f"switch-flaps Ethernet1/{port} 3 times" for port in range(1, 6)]),
        (NXOS.format(minute=1, what=LOST_LINK, port=9, state=LOST), ["switch-log-down Ethernet1/9"]),
        (NXOS.format(minute=1, what="DOWN_ADMIN_DOWN", port=9, state="down (Administratively down)"), []),
        (HISTORY, ["switch-log-flaps Ethernet7/1 3 times"]),
        (HISTORY.replace("04:28:05    down", "04:28:05    up"), []),
        (TRAP.format("DOWN"), ["switch-log-down et-0/0/12"]),
        (TRAP.format("DOWN") + TRAP.format("UP"), []),
        ("Feb  3 04:05:06 s5 %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet5/1, changed state to down\n",
         ["switch-log-down Ethernet5/1"]),
        ("%LINEPROTO-5-UPDOWN: Line protocol on Interface FastEthernet0/7, changed state to down\n"
         "%PM-4-ERR_DISABLE: link-flap error detected on Fa0/7, putting Fa0/7 in err-disable state\n",
         ["switch-disabled Fa0/7 link-flap", "switch-log-down FastEthernet0/7"]),
        (XR.format("LINK-3-UPDOWN : ", "Down") + XR.format("LINEPROTO-5-UPDOWN : Line protocol on ", "Down"),
         ["switch-log-down HundredGigE0/0/0/9"]),
        ((XR.format("LINK-3-UPDOWN : ", "Down") + XR.format("LINEPROTO-5-UPDOWN : Line protocol on ", "Down")
         + XR.format("LINK-3-UPDOWN : ", "Up")) * 3, ["switch-log-flaps HundredGigE0/0/0/9 3 times"]),
        ("0d00h02m10s:I:ERR_DISABLE: Link flaps on port ethernet 1/2/3 exceeded threshold; port in err-disable state\n",
         ["switch-disabled ethernet 1/2/3 Link flaps"]),
        ("Feb  3 2026 04:05:06 ce8 %%01ERRDOWN/4/ERRDOWN_DOWNNOTIFY(l)[2]:Notify interface to change status to "
         "error-down. (InterfaceName=100GE1/0/9, Cause=crc-statistics)\n",
         ["switch-disabled 100GE1/0/9 crc-statistics"]),
        ("02/03/2026 04:05:06.42 <Noti:vlan.msgs.PortLinkFlapActLogEvent> Port 1:9 link-flap detection operational "
         "status is disabled. Link has flapped more than 10 times in 5 seconds.\n"
         "02/03/2026 04:05:07.42 <Info:vlan.msgs.portLinkStateDown> Port 1:9 link down\n",
         ["switch-log-flaps 1:9 more than 10 times in 5 s", "switch-log-down 1:9"]),
        ("Feb  3 2026 04:05:06 ce8 %%01IFNET/2/linkDown_active(l):The interface status changes. "
         "(ifName=100GE1/0/3, AdminStatus=UP, OperStatus=DOWN, Reason=Interface physical link is down)\n",
         ["switch-log-down 100GE1/0/3"]),
        ("%Feb  3 04:05:06:789 2026 h3c IFNET/3/PHY_UPDOWN: Physical state on the interface HundredGigE1/0/5 changed "
         "to down.\n", ["switch-log-down HundredGigE1/0/5"]),
        ("<165>1 2026-02-03T04:05:06 os10 %IFM_OSTATE_DN: Interface operational state is down :ethernet1/1/5\n",
         ["switch-log-down ethernet1/1/5"]),
    ],
    ids=[
        "a storm", "pause frames of a lossy class, twice", "a link", "a link that came up again", "and then failed",
        "a lost link", "that came back", "flaps", "flaps of many ports", "NX-OS", "closed by a person", "a history",
        "a quiet history", "Junos", "Junos, back", "EOS", "IOS", "XR", "XR, flaps", "ICX", "VRP, closed",
        "EXOS", "VRP", "Comware", "OS10",
    ],
)  # fmt: skip
def test_what_the_log_of_a_switch_states_of_a_port(text: str, codes: list[str]) -> None:
    """Its last state counts."""
    reports = list_switch_ports(text)

    assert codes == [" ".join([report.code, report.subject or "", *dict(report.detail).values()]) for report in reports]
    assert {report.code for report in reports} <= set(MEANINGS)
    assert identify_command(text) == (("show", "interfaces"),)


@pytest.mark.parametrize(
    "text",
    [
        LINE.format("NOTICE", "addHostIntfs", "Create host interface for port Ethernet8"),
        "The port Ethernet8 is down, what can we do?\n",
    ],
    ids=["a port that is created", "a person"],
)
def test_other_lines_about_a_port_are_no_fault(text: str) -> None:
    with pytest.raises(ParseError):
        list_switch_ports(text)
