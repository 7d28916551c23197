"""DCB as rtnetlink describes it (linux/dcbnl.h): requests made, payloads of replies read. No socket here.

An attribute that is not there means that the driver has no such operation: not known, never "off". Of a structure
that is longer than the header's (a newer kernel), the first bytes are the same; a shorter one is refused.
"""

from __future__ import annotations

import struct

from probes.dcb.facts import Application, Dcb
from probes.netlink import IS_REQUEST, attribute, attributes, iter_attributes, request
from probes.text import require

SOURCE = "DCB netlink"
GET_DCB = 78  # RTM_GETDCB: the type of the question and of its answer
IEEE_GET, GET_DCBX, CEE_GET = 21, 22, 26  # DCB_CMD_*
HEAD = struct.Struct("=BBH")  # struct dcbmsg: family, command, pad

INTERFACE, IEEE, DCBX, CEE = 1, 13, 14, 16  # DCB_ATTR_*
ETS, PFC, APP_TABLE, PEER_PFC, MAXRATE, BUFFER, TRUST_TABLE = 1, 2, 3, 5, 7, 10, 11  # DCB_ATTR_IEEE_*
CEE_PFC = 6  # DCB_ATTR_CEE_PFC: nests one byte a priority
IEEE_APP, DCB_APP = 1, 2  # types of the entries of an APP table

ETS_STRUCT = struct.Struct("=3B56B")  # willing, capability, cbs, then seven lists by traffic class or priority
PFC_STRUCT = struct.Struct("=3BxH2x8Q8Q")  # capability, enabled, mbc, delay, frames sent, frames received
MAXRATE_STRUCT = struct.Struct("=8Q")  # kbit/s by traffic class
BUFFER_STRUCT = struct.Struct("=8B8II")  # buffer of every priority, bytes of every buffer, bytes in all
APP_STRUCT = struct.Struct("=BBH")  # selector, priority, protocol

DSCP, PCP = 5, 255
SELECTORS = {1: "ethertype", 2: "tcp", 3: "udp", 4: "port", DSCP: "dscp", PCP: "pcp"}
TSA = {0: "strict", 1: "cbs", 2: "ets", 255: "vendor"}
MODES = {1: "host", 2: "lld_managed", 4: "cee", 8: "ieee", 16: "static"}  # DCB_CAP_DCBX_*


def question(name: str, command: int) -> bytes:
    """What DCB states of one interface.

    >>> question("lo", IEEE_GET)[16:].hex()
    '00150000070001006c6f0000'
    """
    body = HEAD.pack(0, command, 0) + attribute(INTERFACE, name.encode("utf-8", "surrogateescape") + b"\0")
    return request(GET_DCB, IS_REQUEST, body)


def parse_ieee(payload: bytes) -> Dcb:
    """The answer to IEEE_GET. Raises ParseError."""
    top = _body(payload)
    payloads = attributes(top.get(IEEE, b""))
    ets = _unpack(ETS_STRUCT, payloads.get(ETS))
    pfc = _unpack(PFC_STRUCT, payloads.get(PFC))
    rates = _unpack(MAXRATE_STRUCT, payloads.get(MAXRATE))
    buffer = _unpack(BUFFER_STRUCT, payloads.get(BUFFER))
    peer = _unpack(PFC_STRUCT, payloads.get(PEER_PFC))
    return Dcb(
        SOURCE,
        trust_order=_order(payloads.get(TRUST_TABLE)),
        pfc=_bits(pfc[1]) if pfc else None,
        delay=pfc[3] if pfc else None,
        frames_sent=pfc[4:12] if pfc else None,
        frames_received=pfc[12:20] if pfc else None,
        tc_bandwidth=ets[3:11] if ets else None,
        tc_tsa=tuple(TSA.get(code, str(code)) for code in ets[19:27]) if ets else None,
        prio_tc=ets[27:35] if ets else None,
        max_rate_kbit_s=rates,
        prio_buffer=buffer[:8] if buffer else None,
        buffer_bytes=buffer[8:16] if buffer else None,
        applications=_applications(payloads[APP_TABLE]) if APP_TABLE in payloads else None,
        dcbx=_modes(top.get(DCBX)),
        peer_pfc=_bits(peer[1]) if peer else None,
    )


def parse_dcbx(payload: bytes) -> tuple[str, ...] | None:
    """The answer to GET_DCBX: the words of its bits. Raises ParseError."""
    return _modes(_body(payload).get(DCBX))


def parse_cee(payload: bytes) -> Dcb:
    """The answer to CEE_GET: PFC, and who sets it; priority groups are no traffic classes. Raises ParseError."""
    top = _body(payload)
    payloads = attributes(top.get(CEE, b""))
    priorities = attributes(payloads.get(CEE_PFC, b""))  # DCB_PFC_UP_ATTR_0 is 1
    groups = [priorities.get(number, b"") for number in range(1, 9)]
    return Dcb(
        SOURCE,
        pfc=tuple(bool(value[0]) for value in groups) if all(groups) else None,
        dcbx=_modes(top.get(DCBX)),
    )


def _body(payload: bytes) -> dict[int, bytes]:
    require(len(payload) >= HEAD.size, f"DCB: an answer of {len(payload)} bytes")
    return attributes(payload, HEAD.size)


def _unpack(form: struct.Struct, raw: bytes | None) -> tuple[int, ...] | None:
    """The fields of a structure; raises ParseError where it is too short to be one."""
    if raw is None:
        return None
    require(len(raw) >= form.size, f"DCB: a structure of {len(raw)} bytes where {form.size} are expected")
    return form.unpack_from(raw)


def _bits(mask: int) -> tuple[bool, ...]:
    """By priority.

    >>> _bits(0b1000).index(True)
    3
    """
    return tuple(bool(mask >> priority & 1) for priority in range(8))


def _applications(raw: bytes) -> tuple[Application, ...]:
    applications = []
    for kind, value in iter_attributes(raw):
        if kind in (IEEE_APP, DCB_APP) and len(value) >= APP_STRUCT.size:
            selector, priority, protocol = APP_STRUCT.unpack_from(value)
            if priority < 8:
                applications.append(Application(SELECTORS.get(selector, str(selector)), protocol, priority))
    return tuple(sorted(set(applications)))


def _order(raw: bytes | None) -> tuple[str, ...] | None:
    if raw is None:
        return None
    codes = [value[0] for kind, value in iter_attributes(raw) if kind in (IEEE_APP, DCB_APP) and value]
    return tuple(SELECTORS.get(code, str(code)) for code in codes)


def _modes(raw: bytes | None) -> tuple[str, ...] | None:
    return tuple(word for bit, word in MODES.items() if raw[0] & bit) if raw else None
