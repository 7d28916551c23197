"""What a newer kernel says besides: trust tables, PCP entries, exclusive RDMA namespaces. See docs/real-kernel.md."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from probes import netlink
from probes import netlink as codec
from probes.dcb import netlink as dcb_netlink
from probes.dcb.facts import Application, Dcb
from probes.dcb.tools import parse_dcb
from probes.ethtool import netlink as genl
from probes.ethtool import saved
from probes.rdma import netlink as rdma_netlink
from probes.rdma.netlink import parse_dev, parse_devices, parse_system
from tests.probes.system.system_machine import Machine

KERNEL: dict[str, Any] = json.loads((Path(__file__).parent / "linux-6.12.json").read_text())
FULL, MIXED, CEE = "ens1np0", "ens2np0", "ens3np0"
SAID: dict[str, Any] = KERNEL["said"]


def reply(about: str, protocol: int, request: bytes) -> bytes:
    """What the kernel answered to this very question: codecs ask as they asked then."""
    (row,) = [
        row
        for row in KERNEL["netlink"]
        if (row["about"], row["protocol"]) == (about, protocol)
        and netlink.messages(base64.b64decode(row["request"])) == netlink.messages(request)
    ]
    return base64.b64decode(row["reply"])


def dcb(port: str) -> Dcb:
    answer = reply(port, netlink.ROUTE, dcb_netlink.question(port, dcb_netlink.IEEE_GET))
    (message,) = netlink.messages(answer)
    return dcb_netlink.parse_ieee(message.payload)


@pytest.mark.parametrize("port", [FULL, MIXED])
@pytest.mark.parametrize("about", ["pfc", "ets", "app", "buffer", "dcbx", "apptrust"])
def test_dcb_is_what_the_tool_says(port: str, about: str) -> None:
    """Value by value."""
    text = SAID[f"dcb -s -j pfc show dev {port}" if about == "pfc" else f"dcb -j {about} show dev {port}"]
    theirs, ours = parse_dcb(about, text)._asdict(), dcb(port)._asdict()
    told = {name: value for name, value in theirs.items() if value is not None and name != "source"}

    assert told
    assert told == {name: ours[name] for name in told}


def test_trust_and_entries_as_they_were_set() -> None:
    """`dcb apptrust set order dscp pcp`, `dcb app add pcp-prio 3nd:3 5de:5`: PCP 5 with DEI is 13 to the kernel."""
    assert (("dscp", "pcp"), ("pcp",)) == (dcb(FULL).trust_order, dcb(MIXED).trust_order)
    tags = {Application("pcp", 3, 3), Application("pcp", 13, 5)}
    assert tags < set(dcb(MIXED).applications or ())
    assert tags < set(parse_dcb("app", SAID[f"dcb app show dev {MIXED}"]).applications or ())  # as text, too


def test_a_driver_without_a_trust_table_has_none() -> None:
    """With CEE alone."""
    assert "Attribute not found: Success" == SAID[f"dcb apptrust show dev {CEE}"]["stderr"]
    assert dcb(CEE).trust_order is None


@pytest.mark.parametrize("port", [FULL, MIXED])
def test_ethtool_is_what_the_tool_says(port: str) -> None:
    index = {FULL: 4, MIXED: 5}[port]
    family = 22  # as the guest's kernel numbered it

    def asked(command: int) -> bytes:
        return reply(port, codec.GENERIC, genl.get_request(family, command, index))

    assert saved.parse_pause(SAID[f"ethtool -a {port}"]) == genl.parse_pause(asked(genl.PAUSE_GET))
    assert saved.parse_fec(SAID[f"ethtool -I --show-fec {port}"]) == genl.parse_fec(asked(genl.FEC_GET))
    modes = saved.parse_settings(SAID[f"ethtool {port}"])
    assert modes is not None
    assert modes._replace(speed_mbit_s=None) == genl.parse_link_modes(asked(genl.LINKMODES_GET))


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_rdma_namespaces(mode: str) -> None:
    """`rdma system set netns exclusive`; the kernel says more settings in the same answer."""
    here = Machine(live=True)
    here.answers = {
        rdma_netlink.question(rdma_netlink.GET): b"",
        rdma_netlink.question(rdma_netlink.SYSTEM_GET): reply(
            mode, rdma_netlink.RDMA, rdma_netlink.question(rdma_netlink.SYSTEM_GET)
        ),
    }
    assert mode == rdma_netlink.read(here).facts.namespaces
    assert "shared" == parse_system(SAID["rdma system"])


def test_rdma_devices_are_what_the_tool_says() -> None:
    """Protocols too: this version prints them."""
    answer = reply("devices", rdma_netlink.RDMA, rdma_netlink.question(rdma_netlink.GET))
    found = parse_devices([message.payload for message in netlink.messages(answer)])

    assert 10 == len(found)
    assert parse_dev(SAID["rdma dev"]) == tuple(device for _, device in found)
