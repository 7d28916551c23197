"""Neighbours as lldpctl prints them, in both shapes of its JSON."""

import json

import pytest

from probes.catalogue import probe
from probes.host.interface import Completed
from probes.netdev.lldp import COMMANDS, LldpNeighbor, parse_lldp
from probes.probe import Status, outcome_of
from probes.text import ParseError
from tests.probes.machine import Machine

PFC = {"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,08"}
ETS = {"oui": "00,80,C2", "subtype": "9", "len": "21", "value": "00,00,03,00,00,32,00,00,32" + ",00" * 12}
APP = {"oui": "00,80,C2", "subtype": "12", "len": "7", "value": "00,63,12,B7,65,00,1A"}
OTHER = {"oui": "00,90,69", "subtype": "11", "len": "2", "value": "08,FF"}
CHASSIS = {"leaf1": {"id": {"type": "mac", "value": "0c:4f:9b:9e:24:61"}, "mgmt-ip": ["192.0.2.1"]}}
PORT = {"id": {"type": "ifname", "value": "swp1"}, "descr": "to gpu-1", "mfs": "9216", "ttl": "120"}
ROW = {"via": "LLDP", "chassis": CHASSIS, "port": PORT, "vlan": {"vlan-id": "7", "pvid": True}}
ROW_0 = {
    "name": "eth0",
    "via": "LLDP",
    "chassis": [{"id": [{"type": "mac", "value": "0c:4f:9b:9e:24:61"}], "name": [{"value": "leaf1"}]}],
    "port": [
        {"id": [{"type": "ifname", "value": "swp1"}], "descr": [{"value": "to gpu-1"}], "mfs": [{"value": "9216"}]}
    ],
    "vlan": [{"vlan-id": "7", "pvid": True, "value": "vlan7"}],
}
DCBX = {"unknown-tlvs": {"unknown-tlv": [ETS, PFC, APP, OTHER]}}
EXPECTED = LldpNeighbor("eth0", "leaf1", "0c:4f:9b:9e:24:61", "swp1", "to gpu-1", 9216, 7)


@pytest.mark.parametrize(
    "said",
    [
        {"lldp": {"interface": {"eth0": ROW}}},
        {"lldp": {"interface": [{"eth0": ROW}]}},
        {"lldp": [{"interface": [ROW_0]}]},
    ],
)
def test_the_shapes_say_the_same(said: object) -> None:
    assert parse_lldp(json.dumps(said)).neighbors == (EXPECTED,)


@pytest.mark.parametrize(
    "tlvs",
    [
        DCBX,
        {"unknown-tlvs": [{"unknown-tlv": [OTHER, APP, PFC, ETS]}]},
    ],
)
def test_dcbx(tlvs: dict[str, object]) -> None:
    result = parse_lldp(json.dumps({"lldp": {"interface": {"eth0": ROW | tlvs}}})).neighbors[0]

    assert result.pfc == (False, False, False, True, False, False, False, False)
    assert result.prio_tc == (0, 0, 0, 3, 0, 0, 0, 0)
    assert result.tc_bandwidth == (50, 0, 0, 50, 0, 0, 0, 0)
    assert result.applications == (("dscp:26", 3), ("udp:4791", 3))


def test_one_tlv_alone() -> None:
    result = parse_lldp(json.dumps({"lldp": {"interface": {"eth0": {"unknown-tlvs": {"unknown-tlv": PFC}}}}}))
    assert result.neighbors[0].pfc is not None


@pytest.mark.parametrize("value", ["", "08", "zz,08", None, 8, ["08"]])
def test_a_tlv_that_cannot_be_read_tells_nothing(value: object) -> None:
    result = parse_lldp(
        json.dumps({"lldp": {"interface": {"eth0": {"unknown-tlvs": {"unknown-tlv": PFC | {"value": value}}}}}})
    )
    assert result.neighbors[0].pfc is None


def test_of_many_vlans_the_own() -> None:
    vlans = [{"vlan-id": "5", "pvid": False}, {"vlan-id": "6", "pvid": True}]
    own = parse_lldp(json.dumps({"lldp": {"interface": {"eth0": {"vlan": vlans}}}}))
    none = parse_lldp(json.dumps({"lldp": {"interface": {"eth0": {"vlan": [*vlans[:1], {"vlan-id": "7"}]}}}}))
    assert (own.neighbors[0].vlan, none.neighbors[0].vlan) == (6, None)


def test_two_neighbours_of_one_interface_stay_two() -> None:
    result = parse_lldp(json.dumps({"lldp": {"interface": [{"eth0": ROW}, {"eth0": ROW}, {"eth1": ROW}]}}))
    assert [row.interface for row in result.neighbors] == ["eth0", "eth0", "eth1"]


def test_nobody_is_heard() -> None:
    assert parse_lldp('{"lldp": {}}').neighbors == ()
    assert parse_lldp('{"lldp": [{}]}').neighbors == ()


@pytest.mark.parametrize("text", ["", "unable to connect", "[]", "{}", "[" * 100_000])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_lldp(text)


def saying(stdout: str, *, argv: tuple[str, ...] = COMMANDS[0], code: int = 0, live: bool = True) -> Machine:
    """A host whose lldpctl says this."""
    here = Machine(live=live)
    here.outputs = {argv: Completed(argv, code, stdout, "", 0.0)}
    return here


@pytest.mark.parametrize("argv", COMMANDS)
def test_every_saved_form_is_read(argv: tuple[str, ...]) -> None:
    host = saying(json.dumps({"lldp": {"interface": {"eth0": ROW}}}), argv=argv, live=False)
    outcome = outcome_of(probe("lldp"), host)
    assert (outcome.status, outcome.sources) == (Status.OK, (" ".join(argv),))
    assert outcome.facts.neighbors == (EXPECTED,)


def test_a_live_host_is_asked_in_one_form() -> None:
    text = json.dumps({"lldp": {"interface": {"eth0": ROW}}})
    assert outcome_of(probe("lldp"), saying(text)).facts.neighbors == (EXPECTED,)
    assert outcome_of(probe("lldp"), saying(text, argv=COMMANDS[1])).status is Status.ABSENT


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (Machine(), Status.ABSENT),
        (Machine(live=True), Status.ABSENT),
        (saying("unable to connect to socket", code=1), Status.ABSENT),
        (saying("not JSON"), Status.FAILED),
    ],
)
def test_without_an_answer_there_is_a_reason(host: Machine, status: Status) -> None:
    outcome = outcome_of(probe("lldp"), host)
    assert (outcome.status, outcome.facts, bool(outcome.reason)) == (status, None, True)


PLAIN = """-------------------------------------------------------------------------------
LLDP neighbors:
-------------------------------------------------------------------------------
Interface:    eth0, via: LLDP, RID: 1, Time: 0 day, 00:05:03
  Chassis:
    ChassisID:    mac 0c:4f:9b:9e:24:61
    SysName:      leaf1
    SysDescr:     Linux: 4.19
    MgmtIP:       192.0.2.1
    Capability:   Bridge, on
  Port:
    PortID:       ifname swp1
    PortDescr:    to gpu-1
    TTL:          120
    MFS:          9216
    PMD autoneg:  supported: yes, enabled: yes
  VLAN:         7, pvid: yes vlan7
  VLAN:         8, pvid: no vlan8
  Unknown TLVs:
    TLV:          OUI: 00,80,C2, SubType: 11, Len: 2 08,08
    TLV:          OUI: 00,80,C2, SubType: 12, Len: 7 00,63,12,B7,65,00,1A
-------------------------------------------------------------------------------
"""
KEYVALUE = """lldp.eth0.via=LLDP
lldp.eth0.rid=1
lldp.eth0.chassis.mac=0c:4f:9b:9e:24:61
lldp.eth0.chassis.name=leaf1
lldp.eth0.chassis.Bridge.enabled=on
lldp.eth0.port.ifname=swp1
lldp.eth0.port.descr=to gpu-1
lldp.eth0.port.mfs=9216
lldp.eth0.vlan.vlan-id=7
lldp.eth0.vlan.pvid=yes
lldp.eth0.vlan=vlan7
lldp.eth0.vlan.vlan-id=8
lldp.eth0.vlan.pvid=no
lldp.eth0.unknown-tlvs.unknown-tlv.oui=00,80,C2
lldp.eth0.unknown-tlvs.unknown-tlv.subtype=11
lldp.eth0.unknown-tlvs.unknown-tlv.len=2
lldp.eth0.unknown-tlvs.unknown-tlv=08,08
lldp.eth0.unknown-tlvs.unknown-tlv.oui=00,80,C2
lldp.eth0.unknown-tlvs.unknown-tlv.subtype=12
lldp.eth0.unknown-tlvs.unknown-tlv.len=7
lldp.eth0.unknown-tlvs.unknown-tlv=00,63,12,B7,65,00,1A
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<lldp label="LLDP neighbors">
 <interface label="Interface" name="eth0" via="LLDP" rid="1" age="0 day, 00:05:03">
  <chassis label="Chassis"><id label="ChassisID" type="mac">0c:4f:9b:9e:24:61</id>
   <name label="SysName">leaf1</name></chassis>
  <port label="Port"><id label="PortID" type="ifname">swp1</id><descr label="PortDescr">to gpu-1</descr>
   <mfs>9216</mfs></port>
  <vlan label="VLAN" vlan-id="7" pvid="yes">vlan7</vlan><vlan label="VLAN" vlan-id="8" pvid="no">vlan8</vlan>
  <unknown-tlvs label="Unknown TLVs"><unknown-tlv oui="00,80,C2" subtype="11" len="2">08,08</unknown-tlv>
   <unknown-tlv oui="00,80,C2" subtype="12" len="7">00,63,12,B7,65,00,1A</unknown-tlv></unknown-tlvs>
 </interface>
</lldp>
"""
FORMS = {"plain": PLAIN, "keyvalue": KEYVALUE, "xml": XML}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("margin", [True, False])
def test_the_forms_for_people_say_the_same(form: str, margin: bool) -> None:
    """Also in a mail that lost the margin."""
    text = FORMS[form] if margin else "".join(line.lstrip() + "\n" for line in FORMS[form].splitlines())
    pfc = (False, False, False, True, False, False, False, False)

    assert (EXPECTED._replace(pfc=pfc, applications=(("dscp:26", 3), ("udp:4791", 3))),) == parse_lldp(text).neighbors


def test_two_neighbours_of_one_interface_are_two() -> None:
    for text in (PLAIN + PLAIN.replace("RID: 1", "RID: 2"), KEYVALUE + KEYVALUE):
        assert 2 == len(parse_lldp(text).neighbors)


@pytest.mark.parametrize(
    "text",
    ["", "lldpd is not running\n", "<lldp", "<!DOCTYPE lldp [<!ENTITY a 'b'>]><lldp>&a;</lldp>", "<a>" * 99],
)
def test_what_names_no_neighbour_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_lldp(text)
