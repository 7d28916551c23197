"""Netlink and ethtool replies of a real kernel, byte for byte, against what iproute2 and ethtool said of the objects.

The tools' answers go through the readers of saved outputs, which so are held against real tools as well; besides
stand the values that were set.
"""

from __future__ import annotations

import json

import pytest

from probes.catalogue import probe
from probes.dcb.facts import DcbInterface
from probes.dcb.tools import parse_dcb
from probes.ethtool import saved
from probes.optics import saved as optics_text
from probes.optics.probe import NEEDS, ModuleSocket
from probes.probe import Status, outcome_of
from tests.probes.kernel_replies.real_guest import (
    CEE,
    COPPER,
    E1000E,
    EMPTY,
    FULL,
    LEGACY,
    MIXED,
    OLD_SFP,
    PORTS,
    VIRTIO,
    Guest,
    of_port,
    tool,
    why_not,
)

# --- DCB


def dcb(port: str) -> DcbInterface:
    result: DcbInterface = of_port("dcb", "interfaces", port)
    return result


@pytest.mark.parametrize("port", [FULL, MIXED])
@pytest.mark.parametrize("about", ["pfc", "ets", "buffer", "app", "dcbx"])
def test_dcb_is_what_the_tool_says(port: str, about: str) -> None:
    """Value by value: of each object of the tool, everything that its reader knows."""
    command = f"dcb -s -j pfc show dev {port}" if about == "pfc" else f"dcb -j {about} show dev {port}"
    theirs, ours = parse_dcb(about, tool(command) or "")._asdict(), dcb(port).said[0]._asdict()
    result = {name: value for name, value in theirs.items() if value is not None and name != "source"}

    assert result
    assert result == {name: ours[name] for name in result}


def test_dcb_of_the_ports_as_they_were_set() -> None:
    """Not only by our own readers: these values were set by `dcb` and read by it."""
    (result,) = dcb(FULL).said
    assert [False, False, False, True, False, False, False, False] == list(result.pfc or ())
    assert (30, 1234567, 7654321) == (result.delay, (result.frames_sent or ())[3], (result.frames_received or ())[3])
    assert (0, 30, 20, 40, 10, 0, 0, 0) == result.tc_bandwidth
    assert (0, 1, 2, 3, 4, 0, 6, 5) == result.prio_tc
    assert ("strict", "ets", "ets", "ets", "ets", "strict", "strict", "strict") == result.tc_tsa
    assert ((0, 0, 0, 1, 2, 0, 0, 0), (262016, 524288, 65536, 0, 0, 0, 0, 0)) == (
        result.prio_buffer,
        result.buffer_bytes,
    )
    assert [dscp >> 3 for dscp in range(64)] == [application.priority for application in result.applications or ()]
    assert result.peer_pfc == result.pfc

    (result,) = dcb(MIXED).said
    assert {("dscp", 26, 3), ("dscp", 46, 5), ("dscp", 48, 6), ("ethertype", 8906, 3)} | {
        ("tcp", 3260, 4),
        ("udp", 4791, 3),
        ("port", 5555, 2),
    } == {tuple(application) for application in result.applications or ()}


def test_rates_are_the_bytes_of_the_structure() -> None:
    """The header has kbit/s, and drivers too; iproute2 writes and prints bytes a second. Ours is the header's."""
    assert json.loads(tool(f"dcb -j maxrate show dev {FULL}") or "")["tc_maxrate"] == list(
        dcb(FULL).said[0].max_rate_kbit_s or ()
    )


def test_a_driver_with_cee_alone() -> None:
    """The kernel answers to the IEEE question with an empty table, and of PFC only to CEE's."""
    assert "Attribute not found: Success" == why_not(f"dcb -s -j pfc show dev {CEE}")
    (result,) = dcb(CEE).said
    assert (False, False, False, False, True, False, False, False) == result.pfc
    assert (("host", "cee"), (), None) == (result.dcbx, result.applications, result.prio_tc)


@pytest.mark.parametrize("port", [LEGACY, E1000E, VIRTIO])
def test_a_driver_without_dcb(port: str) -> None:
    assert "Attribute read: Operation not supported" == why_not(f"dcb -s -j pfc show dev {port}")
    assert ((), "the driver has no DCB here (EOPNOTSUPP)") == (dcb(port).said, dcb(port).reason)


# --- ethtool


@pytest.mark.parametrize("port", PORTS)
def test_ethtool_is_what_the_tool_says(port: str) -> None:
    """Pause, FEC with its counters, modes, driver."""
    ours = of_port("ethtool", "interfaces", port)
    driver = saved.parse_driver(tool(f"ethtool -i {port}") or "")

    assert saved.parse_pause(tool(f"ethtool -a {port}") or "") == ours.pause
    assert saved.parse_fec(tool(f"ethtool -I --show-fec {port}") or "") == ours.fec
    modes = saved.parse_settings(tool(f"ethtool {port}") or "")
    elsewhere = {"speed_mbit_s": None, "has_link": None}  # sysfs has these
    assert (modes._replace(**elsewhere) if modes else None) == ours.modes
    assert driver is not None
    assert tuple(driver) == (ours.driver, ours.version, ours.firmware)


@pytest.mark.parametrize("port", [FULL, MIXED])
def test_counters_are_what_the_tool_says(port: str) -> None:
    """All bits set is "not known" to the driver; the tool prints the number."""
    ours = of_port("ethtool", "interfaces", port).counters
    assert saved.parse_statistics(tool(f"ethtool -S {port}") or "") == ours
    assert "rx_corrected_bits_phy: 18446744073709551615" in (tool(f"ethtool -S {MIXED}") or "")
    assert ("rx_corrected_bits_phy" in ours) == (port == FULL)


def test_ethtool_of_the_ports_as_they_were_set() -> None:
    full, mixed, plain = (of_port("ethtool", "interfaces", port) for port in (FULL, MIXED, CEE))
    assert (400_000, ("off", "rs", "baser")) == (full.modes.max_speed_mbit_s, full.modes.fec_supported)
    assert ("rs", ("rs",), True) == full.fec[:3]
    assert {"fec_corrected_blocks": 555, "fec_uncorrectable_blocks": 1, "fec_corrected_bits": 777} == full.fec.counters
    assert (100_000, ("rs", "baser"), ()) == (
        mixed.modes.max_speed_mbit_s,
        mixed.modes.fec_supported,
        mixed.fec.configured,
    )
    assert (True, False, False) == tuple(mixed.pause)
    assert (25_000, ("rs", "baser"), False) == (plain.modes.max_speed_mbit_s, plain.fec.configured, plain.fec.auto)
    assert 10_000_000_000_013 == full.counters["rx_corrected_bits_phy"]


# --- modules


def socket(port: str) -> ModuleSocket:
    result: ModuleSocket = of_port("optics", "sockets", port)
    return result


@pytest.mark.parametrize("port", [FULL, MIXED, CEE, COPPER])
def test_a_module_is_what_the_tool_says(port: str) -> None:
    """CMIS, SFF-8636 and SFF-8472 memory, by pages. Flags of lanes apart: the tool does not print them all."""
    theirs, ours = optics_text.parse(tool(f"ethtool -m {port}") or ""), socket(port).module
    assert theirs is not None
    assert ours is not None
    assert theirs._replace(lanes=()) == ours._replace(lanes=())
    assert [lane[:4] for lane in theirs.lanes] == [lane[:4] for lane in ours.lanes]


def test_flags_of_lanes() -> None:
    """As they were set: the bit of lane 4, of which `ethtool -m` of a CMIS module prints nothing."""
    flags = {port: {lane.lane: lane.flags for lane in socket(port).module.lanes if lane.flags} for port in PORTS[:3]}  # type: ignore[union-attr]
    assert {2: ("tx_fault", "rx_lol"), 4: ("rx_power_low_warning",)} == flags[FULL]
    assert {3: ("rx_los", "rx_power_low_alarm")} == flags[MIXED]
    assert {1: ("rx_los",)} == flags[CEE]
    assert "On" not in [line.split()[-1] for line in (tool(f"ethtool -m {FULL}") or "").splitlines() if "(Chan" in line]


def test_memory_of_drivers_without_pages() -> None:
    """The kernel translates the question for drivers that know only get_module_eeprom: the same modules."""
    flat, sfp = socket(LEGACY).module, socket(OLD_SFP).module
    assert sfp is not None
    assert flat is not None
    assert sfp == socket(CEE).module
    assert ("QSFP28", "MT1934FT00002") == (flat.identifier, flat.serial)
    assert [0.5, 0.25, 0.0, -1.0] == [lane.rx_power_dbm for lane in flat.lanes]
    assert flat.thresholds == getattr(socket(MIXED).module, "thresholds", None)  # page 3


def test_no_module_and_none_to_read() -> None:
    assert "netlink error: Input/output error" == why_not(f"ethtool -m {EMPTY}")
    assert "EIO: no module answers" == socket(EMPTY).reason
    assert "netlink error: Operation not supported" == why_not(f"ethtool -m {E1000E}")
    assert "EOPNOTSUPP: the driver cannot read a module's memory" == socket(E1000E).reason


def test_nobody_may_not_read_modules() -> None:
    """EPERM, and for that question alone: every other answer was the same as root's."""
    outcome = outcome_of(probe("optics"), Guest(privileged=False))
    assert (Status.PARTIAL, NEEDS) == (outcome.status, outcome.reason)
    assert {f"EPERM: {NEEDS}"} == {socket.reason for socket in outcome.facts.sockets}
