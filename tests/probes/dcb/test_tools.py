"""Outputs of dcb and of mlnx_qos. Those of dcb are what iproute2 6.1 made of an answer of the fixture machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.dcb.facts import Application, Dcb
from probes.dcb.tools import parse_dcb, parse_mlnx_qos
from probes.netdev.lldp import parse_lldp
from probes.text import ParseError

# Outputs of dcb and of mlnx_qos. Those of dcb are what iproute2 6.1 made of an answer of the fixture machines.


# Outputs of dcb. The texts are what dcb of iproute2 6.1 made of an answer of the fixture machines.


PFC = """pfc-cap 8 macsec-bypass off delay 30
prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off
requests 0:0 1:0 2:0 3:11 4:0 5:0 6:0 7:0
indications 0:0 1:0 2:0 3:22 4:0 5:0 6:0 7:0
"""
PFC_JSON = (
    '{"pfc_cap":8,"macsec_bypass":false,"delay":30,"prio_pfc":[false,false,false,true,false,false,false,false],'
    '"requests":[0,0,0,11,0,0,0,0],"indications":[0,0,0,22,0,0,0,0]}'
)
ETS = """willing off ets-cap 8 cbs off
tc-bw 0:25 1:25 2:0 3:50 4:0 5:0 6:0 7:0
pg-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
tc-tsa 0:ets 1:ets 2:strict 3:ets 4:strict 5:vendor 6:cbs 7:strict
prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7
reco-tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
"""
ETS_JSON = (
    '{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[25,25,0,50,0,0,0,0],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":["ets","ets","strict","ets","strict","vendor","cbs","strict"],"prio_tc":[0,1,2,3,4,5,6,7]}'
)
APP = "ethtype-prio 8906:3 \ndscp-prio 1:0 CS1:1 AF31:3 EF:5 63:7 \ndgram-port-prio 4791:3 \n"
APP_JSON = (
    '{"ethtype_prio":[[35078,3]],"dscp_prio":[[1,0],[8,1],[26,3," "],[46,5],[63,7]],"dgram_port_prio":[[4791,3]]}'
)
BUFFER = """prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0
buffer-size 0:20016b 1:262272b 2:0b 3:0b 4:0b 5:0b 6:0b 7:1Mb
total-size 1330864b
"""
BUFFER_JSON = '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[20016,262272,0,0,0,0,0,1048576],"total_size":1330864}'
SAMPLES = [("pfc", PFC), ("pfc", PFC_JSON), ("ets", ETS), ("ets", ETS_JSON), ("app", APP), ("app", APP_JSON)]
SAMPLES += [("buffer", BUFFER), ("buffer", BUFFER_JSON)]


@pytest.mark.parametrize("text", [PFC, PFC_JSON])
def test_pfc(text: str) -> None:
    assert parse_dcb("pfc", text) == Dcb(
        "dcb",
        pfc=(False, False, False, True, False, False, False, False),
        delay=30,
        frames_sent=(0, 0, 0, 11, 0, 0, 0, 0),
        frames_received=(0, 0, 0, 22, 0, 0, 0, 0),
    )


@pytest.mark.parametrize("text", [ETS, ETS_JSON])
def test_ets(text: str) -> None:
    assert parse_dcb("ets", text) == Dcb(
        "dcb",
        tc_bandwidth=(25, 25, 0, 50, 0, 0, 0, 0),
        tc_tsa=("ets", "ets", "strict", "ets", "strict", "vendor", "cbs", "strict"),
        prio_tc=(0, 1, 2, 3, 4, 5, 6, 7),
    )


@pytest.mark.parametrize("text", [APP, APP_JSON])
def test_app(text: str) -> None:
    dscps = [Application("dscp", dscp, priority) for dscp, priority in ((1, 0), (8, 1), (26, 3), (46, 5), (63, 7))]
    others = Application("ethertype", 0x8906, 3), Application("udp", 4791, 3)
    assert parse_dcb("app", text).applications == tuple(sorted([*dscps, *others]))


@pytest.mark.parametrize("text", [BUFFER, BUFFER_JSON])
def test_buffer(text: str) -> None:
    result = parse_dcb("buffer", text)
    assert result.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert result.buffer_bytes == (20016, 262272, 0, 0, 0, 0, 0, 1 << 20)


def test_dcbx_and_trust() -> None:
    assert parse_dcb("dcbx", "host ieee \n").dcbx == ("host", "ieee")
    assert parse_dcb("dcbx", '{"lld-managed":true,"cee":true}').dcbx == ("lld_managed", "cee")
    assert parse_dcb("apptrust", "order: dscp pcp \n").trust_order == ("dscp", "pcp")
    assert parse_dcb("apptrust", '{"order":["pcp"]}').trust_order == ("pcp",)


@pytest.mark.parametrize("text", ["", "{ }", "{}"])
def test_an_empty_table_is_empty(text: str) -> None:
    assert parse_dcb("app", text).applications == ()


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ("pfc", "Attribute read: Operation not supported"),
        ("app", "Attribute read: Operation not supported"),
        ("pfc", ""),
        ("dcbx", ""),
        ("pfc", '{"prio_pfc":[true]}'),
        ("pfc", '{"prio_pfc":"on"}'),
        ("ets", "[1, 2]"),
        ("ets", "{"),
        ("buffer", '{"prio_buffer":[0,0,0,-1,0,0,0,0]}'),
    ],
)
def test_what_says_nothing_is_refused(about: str, text: str) -> None:
    with pytest.raises(ParseError):
        parse_dcb(about, text)


def test_entries_that_cannot_be_are_left_out() -> None:
    text = '{"dscp_prio":[[64,1],[1,8],["AF44",1],[26],"x",[26,3]]}'
    assert parse_dcb("app", text).applications == (Application("dscp", 26, 3),)


# mlnx_qos as OFED prints it.


DSCPS = "".join(
    f"\tprio:{priority} dscp:{''.join(f'{dscp:02},' for dscp in range(priority * 8 + 7, priority * 8 - 1, -1))}\n"
    for priority in range(8)
)
CLASSES = "".join(
    f"tc: {tc} ratelimit: {'10.0 Gbps' if tc == 5 else 'unlimited'}, tsa: {'ets, bw: 50%' if tc < 2 else 'strict'}\n"
    f"\t priority:  {tc}\n"
    for tc in range(8)
)
TEXT = f"""DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
{DSCPS}default priority:
Receive buffer size (bytes): 19872,220896,0,0,0,0,0,0,max_buffer_size=4151520
Cable len: 30
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
{CLASSES}"""


def test_everything_that_it_says() -> None:
    result = parse_mlnx_qos(TEXT)

    assert (result.trust, result.dcbx_owner, result.delay) == ("dscp", "host", 30)
    assert result.pfc == (False, False, False, True, False, False, False, False)
    assert result.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert result.buffer_bytes == (19872, 220896, 0, 0, 0, 0, 0, 0)
    assert result.applications is not None
    assert len(result.applications) == 64
    assert Application("dscp", 26, 3) in result.applications
    assert result.prio_tc == (0, 1, 2, 3, 4, 5, 6, 7)
    assert result.tc_tsa == ("ets", "ets", *["strict"] * 6)
    assert result.tc_bandwidth == (50, 50, 0, 0, 0, 0, 0, 0)
    assert result.max_rate_kbit_s == (0, 0, 0, 0, 0, 10_000_000, 0, 0)


def test_several_priorities_of_a_class() -> None:
    lines = ["tc: 0 ratelimit: unlimited, tsa: vendor", "\t priority:  0 1 2 3 4 5 6 7"]
    lines += [f"tc: {tc} ratelimit: unlimited, tsa: vendor" for tc in range(1, 8)]
    result = parse_mlnx_qos("\n".join(lines))

    assert result.prio_tc == (0,) * 8
    assert result.tc_bandwidth is None


@pytest.mark.parametrize(("share", "shares"), [(33, None), (50, (50, 0, 0, 50, 0, 0, 0, 0))])
def test_classes_without_a_priority_may_be_left_out(share: int, shares: tuple[int, ...] | None) -> None:
    """Where all priorities are stated they are unused, and have no share where others have all."""
    rows = {0: (0, 1, 2, 4, 5, 7), 3: (3,), 6: (6,)}
    tsa = {0: f"ets, bw: {share}%", 3: f"ets, bw: {share}%", 6: f"ets, bw: {share}%" if share == 33 else "vendor"}
    lines = [f"tc: {tc} ratelimit: unlimited, tsa: {tsa[tc]}" + "".join(f"\n\t priority:  {n}" for n in of)
             for tc, of in rows.items()]  # fmt: skip
    result = parse_mlnx_qos("\n".join(lines))

    assert result.prio_tc == (0, 0, 0, 3, 0, 0, 6, 0)
    assert result.tc_tsa is not None
    assert [tc for tc in range(8) if result.tc_tsa[tc] != "unused"] == [0, 3, 6]
    assert (result.tc_bandwidth, result.max_rate_kbit_s) == (shares, None)
    with pytest.raises(ParseError):
        parse_mlnx_qos("\n".join(lines[:2]))


def test_firmware_and_pcp() -> None:
    result = parse_mlnx_qos("DCBX mode: Firmware controlled\nPriority trust state: pcp\n")
    assert (result.dcbx_owner, result.trust, result.applications, result.pfc) == ("firmware", "pcp", (), None)


def test_what_is_cut_is_not_known() -> None:
    result = parse_mlnx_qos(TEXT[: TEXT.index("tc: 4")])
    assert result.pfc is not None
    assert (result.prio_tc, result.tc_tsa, result.max_rate_kbit_s) == (None, None, None)


@pytest.mark.parametrize("text", ["", "Priority trust state is not supported on your system\n", "Device not found\n"])
def test_what_says_nothing_is_refused_mlnx_qos(text: str) -> None:
    with pytest.raises(ParseError):
        parse_mlnx_qos(text)


# Real outputs of mlnx_qos, dcb and lldpctl: what their index states.


def test_mlnx_qos(corpus: Path) -> None:
    result = parse_mlnx_qos((corpus / "text/qos-mlnx_qos/cx-dscp-pfc3-vendor-tsa.txt").read_text())
    assert (result.trust, result.dcbx_owner, result.delay, result.pfc and result.pfc.index(True)) == (
        "dscp",
        "host",
        7,
        3,
    )
    assert (result.tc_tsa, result.prio_tc) == (("vendor",) * 8, (1, 0, 2, 3, 4, 5, 6, 7))
    with pytest.raises(ParseError):
        parse_mlnx_qos((corpus / "text/qos-mlnx_qos/not-supported-vlan-iface.txt").read_text())


@pytest.mark.parametrize(("name", "on"), [("pfc-show-cx3-before-alloff", 0), ("pfc-show-cx3-prio3", 1)])
def test_dcb_pfc(corpus: Path, name: str, on: int) -> None:
    pfc = parse_dcb("pfc", (corpus / f"text/qos-dcb/{name}.txt").read_text()).pfc
    assert pfc is not None
    assert pfc.count(True) == pfc[3:4].count(True) == on


def test_dcb_app(corpus: Path) -> None:
    result = parse_dcb("app", (corpus / "text/qos-dcb/app-show-cx3-af31.txt").read_text())
    assert result.applications == (Application("dscp", 26, 3),)


@pytest.mark.parametrize(
    ("name", "interface", "port", "frame"),
    [("bjg45", "ens11f0", "25GE1/0/39", 9216), ("dracog24", "eth1", "ethernet12a", None)],
)
def test_lldpctl(corpus: Path, name: str, interface: str, port: str, frame: int | None) -> None:
    (result,) = parse_lldp((corpus / f"text/lldp/lldpctl-json-{name}.txt").read_text()).neighbors
    assert (result.interface, result.port, result.max_frame_bytes, result.system is not None) == (
        interface,
        port,
        frame,
        True,
    )


def test_a_dscp_of_many_digits_is_none() -> None:
    """More digits than a number can have."""
    text = f"Priority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:26,{'9' * 5000},\n"

    assert (("dscp", 26, 3),) == parse_mlnx_qos(text).applications
