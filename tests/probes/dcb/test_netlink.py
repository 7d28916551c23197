"""DCB netlink: requests and structures against linux/dcbnl.h, answers of the kind that mlx5 gives, damage."""

import struct

import pytest

from fixtures import dcb as made
from fixtures.description import QosSpec
from probes import netlink
from probes.dcb import netlink as dcb
from probes.dcb.facts import Application
from probes.netlink import attribute
from probes.text import ParseError

# What Linux 6.18 was asked by this code and by `dcb pfc show dev lo` of iproute2 (strace), from family on.
ASKED = "00150000070001006c6f0000"


def answer(**words: object) -> bytes:
    """The payload of an answer that the fixture machines give."""
    return netlink.messages(made.build_reply("eth0", QosSpec(**words)))[0].payload  # type: ignore[arg-type]


def ieee(*children: bytes) -> bytes:
    return dcb.HEAD.pack(0, dcb.IEEE_GET, 0) + attribute(dcb.IEEE, b"".join(children))


def test_the_request_is_the_one_that_iproute2_sends() -> None:
    assert dcb.question("lo", dcb.IEEE_GET)[netlink.HEADER.size :].hex() == ASKED
    assert netlink.HEADER.unpack_from(dcb.question("lo", dcb.IEEE_GET))[1:3] == (dcb.GET_DCB, netlink.IS_REQUEST)


def test_structures_have_the_sizes_of_the_header() -> None:
    """sizeof, as a C compiler gives it for linux/dcbnl.h on x86-64 and arm64."""
    forms = (dcb.ETS_STRUCT, dcb.PFC_STRUCT, dcb.MAXRATE_STRUCT, dcb.BUFFER_STRUCT, dcb.APP_STRUCT, dcb.HEAD)
    assert [form.size for form in forms] == [59, 136, 64, 44, 4, 4]


def test_fields_stand_where_the_header_has_them() -> None:
    """Offsets: pfc_en 1, delay 4, requests 8, indications 72; tc_tx_bw 3, tc_tsa 19, prio_tc 27."""
    pfc = bytearray(136)
    pfc[1], pfc[4:6] = 0x08, struct.pack("=H", 30)
    pfc[8 + 3 * 8 : 16 + 3 * 8], pfc[72 + 3 * 8 : 80 + 3 * 8] = struct.pack("=Q", 11), struct.pack("=Q", 22)
    ets = bytearray(59)
    ets[3 + 3], ets[19 + 3], ets[27 + 5] = 50, 2, 3
    result = dcb.parse_ieee(ieee(attribute(dcb.PFC, bytes(pfc)), attribute(dcb.ETS, bytes(ets))))

    assert result.pfc == (False, False, False, True, False, False, False, False)
    assert result.delay == 30
    assert result.frames_sent == (0, 0, 0, 11, 0, 0, 0, 0)
    assert result.frames_received == (0, 0, 0, 22, 0, 0, 0, 0)
    assert result.tc_bandwidth == (0, 0, 0, 50, 0, 0, 0, 0)
    assert result.tc_tsa == ("strict", "strict", "strict", "ets", "strict", "strict", "strict", "strict")
    assert result.prio_tc == (0, 0, 0, 0, 0, 3, 0, 0)


def test_a_whole_answer() -> None:
    result = dcb.parse_ieee(
        answer(pfc=[3], trust="dscp", app={"udp:4791": 3}, peer_pfc=[4], max_rate_kbit_s=[1000] * 8)
    )

    assert result.applications is not None
    assert len(result.applications) == 65
    assert Application("dscp", 26, 3) in result.applications
    assert Application("udp", 4791, 3) in result.applications
    assert result.dcbx == ("host", "ieee")
    assert result.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert result.buffer_bytes == (156096, 262272, 0, 0, 0, 0, 0, 0)
    assert result.max_rate_kbit_s == (1000,) * 8
    assert result.peer_pfc is not None
    assert result.peer_pfc.index(True) == 4
    assert result.trust_order is None


@pytest.mark.parametrize(
    ("missing", "field"),
    [
        ("pfc", "pfc"),
        ("ets", "prio_tc"),
        ("buffer", "prio_buffer"),
        ("maxrate", "max_rate_kbit_s"),
        ("app", "applications"),
        ("dcbx", "dcbx"),
    ],
)
def test_what_the_driver_does_not_have_is_not_known(missing: str, field: str) -> None:
    assert getattr(dcb.parse_ieee(answer(missing=[missing])), field) is None
    assert getattr(dcb.parse_ieee(answer()), field) is not None


def test_an_empty_table_is_known_to_be_empty() -> None:
    assert dcb.parse_ieee(answer(trust="pcp")).applications == ()


def test_a_trust_table_keeps_its_order() -> None:
    assert dcb.parse_ieee(answer(trust_table=["pcp", "dscp"])).trust_order == ("pcp", "dscp")


def test_a_longer_structure_is_read_as_far_as_it_is_known() -> None:
    pfc = made.pack_pfc([3], 7, [0] * 8, [0] * 8) + bytes(16)
    assert dcb.parse_ieee(ieee(attribute(dcb.PFC, pfc))).pfc == dcb.parse_ieee(answer(pfc=[3])).pfc


@pytest.mark.parametrize("kind", [dcb.ETS, dcb.PFC, dcb.MAXRATE, dcb.BUFFER, dcb.PEER_PFC])
def test_a_shorter_structure_is_refused(kind: int) -> None:
    with pytest.raises(ParseError, match="a structure of 8 bytes"):
        dcb.parse_ieee(ieee(attribute(kind, bytes(8))))


def test_entries_that_cannot_be_are_left_out() -> None:
    table = attribute(1, bytes([5, 9, 0, 0])) + attribute(1, b"x") + attribute(9, bytes(4))
    assert dcb.parse_ieee(ieee(attribute(dcb.APP_TABLE, table))).applications == ()


def test_a_selector_that_nobody_knows_keeps_its_number() -> None:
    table = attribute(1, bytes([77, 1, 2, 0]))
    assert dcb.parse_ieee(ieee(attribute(dcb.APP_TABLE, table))).applications == (Application("77", 2, 1),)


def test_dcbx_modes() -> None:
    head = dcb.HEAD.pack(0, dcb.GET_DCBX, 0)
    assert dcb.parse_dcbx(head + attribute(dcb.DCBX, b"\x0c")) == ("cee", "ieee")
    assert dcb.parse_dcbx(head) is None


def test_cee_says_pfc_by_priority() -> None:
    priorities = b"".join(attribute(number, bytes([int(number == 4)])) for number in range(1, 9))
    body = attribute(dcb.CEE, attribute(dcb.CEE_PFC, priorities)) + attribute(dcb.DCBX, b"\x05")
    result = dcb.parse_cee(dcb.HEAD.pack(0, dcb.CEE_GET, 0) + body)
    assert (result.pfc, result.dcbx) == ((False, False, False, True, False, False, False, False), ("host", "cee"))


def test_cee_without_all_priorities_says_nothing() -> None:
    body = attribute(dcb.CEE, attribute(dcb.CEE_PFC, attribute(1, b"\1")))
    assert dcb.parse_cee(dcb.HEAD.pack(0, dcb.CEE_GET, 0) + body).pfc is None


@pytest.mark.parametrize("payload", [b"", b"\0\0", bytes(4) + b"\x03\0\1\0", bytes(4) + b"\xff\xff\x0d\0"])
def test_damage_is_refused(payload: bytes) -> None:
    with pytest.raises(ParseError):
        dcb.parse_ieee(payload)
