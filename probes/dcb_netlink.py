"""DCB as rtnetlink describes it (linux/dcbnl.h): requests made, payloads of replies read. No socket here.

An attribute that is not there means that the driver has no such operation: not known, never "off". Of a structure
that is longer than the header's (a newer kernel), the first bytes are the same; a shorter one is not read.
"""

from __future__ import annotations

import struct

from probes.netlink import IS_REQUEST, attribute, request

GET_DCB = 78  # RTM_GETDCB: the type of the question and of its answer
IEEE_GET, GET_DCBX, CEE_GET = 21, 22, 26  # DCB_CMD_*
HEAD = struct.Struct("=BBH")  # struct dcbmsg: family, command, pad

INTERFACE, IEEE, DCBX, CEE = 1, 13, 14, 16  # DCB_ATTR_*
ETS, PFC, APP_TABLE, PEER_ETS, PEER_PFC, PEER_APP, MAXRATE = 1, 2, 3, 4, 5, 6, 7  # DCB_ATTR_IEEE_*
BUFFER, TRUST_TABLE = 10, 11
CEE_PEER_PFC, CEE_TX_GROUPS, CEE_PFC, CEE_APP_TABLE = 2, 4, 6, 7  # DCB_ATTR_CEE_*
GROUP_OF_CLASS = 1  # DCB_TC_ATTR_PARAM_PGID
IEEE_APP, DCB_APP = 1, 2  # types of the entries of an APP table

ETS_STRUCT = struct.Struct("=3B56B")  # willing, capability, cbs, then seven lists by traffic class or priority
PFC_STRUCT = struct.Struct("=3BxH2x8Q8Q")  # capability, enabled, mbc, delay, frames sent, frames received
MAXRATE_STRUCT = struct.Struct("=8Q")  # kbit/s by traffic class
BUFFER_STRUCT = struct.Struct("=8B8II")  # buffer of every priority, bytes of every buffer, bytes in all
APP_STRUCT = struct.Struct("=BBH")  # selector, priority, protocol
DSCP, PCP = 5, 255  # selectors of 802.1Q and the kernel's own
HOST, LLD_MANAGED, DCBX_CEE, DCBX_IEEE, STATIC = 1, 2, 4, 8, 16  # DCB_CAP_DCBX_*


def question(name: str, command: int) -> bytes:
    """What DCB says of one interface.

    >>> question("lo", IEEE_GET)[16:].hex()
    '00150000070001006c6f0000'
    """
    body = HEAD.pack(0, command, 0) + attribute(INTERFACE, name.encode("utf-8", "surrogateescape") + b"\0")
    return request(GET_DCB, IS_REQUEST, body)
