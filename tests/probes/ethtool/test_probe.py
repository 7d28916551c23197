"""The ethtool probe: what drivers tell, what they refuse, and what is never asked."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.ethtool.ioctl import select_wanted
from probes.ethtool.netlink import FecReading, LinkModes, PauseReading
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.host.interface import Absent, Denied, Failed, TimedOut
from probes.rdma.sysfs import OF_ACCELERATOR
from probes.sources.capture import CaptureHost
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from tests.machines import HOSTS, NO_NIC, machine
from tests.probes.netdev.ethernet_machines import HIDDEN, INTERFACE, NIC, Answering, told
from tests.probes.overlay import OverlayHost


def of(host: object, name: str = INTERFACE) -> Ethernet:
    """What the probe says of one interface."""
    facts = probe("ethtool").read(host).facts  # type: ignore[arg-type]
    assert isinstance(facts, EthtoolFacts)
    return next(interface for interface in facts.interfaces if interface.name == name)


@pytest.mark.parametrize("shape", [shape for shape in HOSTS if shape not in NO_NIC])
def test_every_machine_answers_whole(shape: str) -> None:
    """Nothing is missing; rails have pause and FEC, InfiniBand neither."""
    reading = probe("ethtool").read(machine(shape))

    assert reading.missing is None
    for interface in reading.facts.interfaces:
        assert interface.driver
        if interface.name.startswith("ib"):
            assert (None, None) == (interface.pause, interface.fec)


def test_words_of_a_description_arrive() -> None:
    """Pause, FEC, link modes, counters: through captures' bytes."""
    result = of(
        told(
            {
                "pause": "rx",
                "pause_autoneg": True,
                "autoneg": False,
                "fec": "baser",
                "fec_configured": ["baser"],
                "fec_supported": ["off", "rs", "baser"],
                "max_speed_mbit_s": 800_000,
                "counters": {"rx_discards_phy": 42, "fec_corrected_blocks": 9, "rx_crc_errors": 5},
            }
        )
    )

    assert PauseReading(True, False, True) == result.pause
    assert LinkModes(False, 800_000, ("off", "rs", "baser")) == result.modes
    assert result.fec is not None
    assert ("baser", ("baser",), False, 9) == (*result.fec[:3], result.fec.counters["fec_corrected_blocks"])
    assert result.counters is not None
    assert (42, None) == (result.counters["rx_discards_phy"], result.counters.get("rx_crc_errors"))
    assert not {"rx0_packets", "ch0_poll", "rx_packets"} & set(result.counters)
    assert "mlx5_core" == result.driver


def test_what_a_driver_lacks_is_no_gap() -> None:
    """EOPNOTSUPP is an answer: there is no such thing here."""
    reading = probe("ethtool").read(told({"pause": "", "fec": ""}))
    result = next(interface for interface in reading.facts.interfaces if interface.name == INTERFACE)

    assert (None, None, None) == (result.pause, result.fec, reading.missing)


@pytest.mark.parametrize("why", [Denied("no", "EPERM"), Failed("no", "EIO"), TimedOut("no", "ETIMEDOUT")])
def test_another_refusal_is_a_gap_and_loses_nothing_else(why: Exception) -> None:
    """The reason names the interface and the question."""

    def refuse(request: bytes) -> bytes | None:
        if request[16] == 21:
            raise why
        return None

    reading = probe("ethtool").read(Answering(told({}), refuse))
    result = next(interface for interface in reading.facts.interfaces if interface.name == INTERFACE)

    assert (None, "rs") == (result.pause, result.fec and result.fec.active)
    assert f"{INTERFACE}: ethtool -a: no" in (reading.missing or "")


def test_bytes_that_are_no_answer_are_a_gap() -> None:
    """By netlink and by ioctl."""
    host = Answering(
        told({}), lambda r: b"\xff" * 7 if r[16] == 29 else None, lambda _, r: b"\x1d" if r[0] == 0x1D else None
    )
    reading = probe("ethtool").read(host)
    result = next(interface for interface in reading.facts.interfaces if interface.name == INTERFACE)

    assert (None, None) == (result.fec, result.counters)
    assert "ethtool --show-fec" in (reading.missing or "")
    assert "ethtool -S" in (reading.missing or "")


def test_a_kernel_without_ethtool_netlink_is_asked_by_ioctl() -> None:
    """Before 5.6."""

    def none(_: bytes) -> bytes:
        raise Failed("no such family", "ENOENT")

    def struct_of(_: str, request: bytes) -> bytes | None:
        if request[0] == 0x12:
            return struct.pack("=IIII", 0x12, 0, 1, 1)
        return struct.pack("=IIII", 0x50, 8, 2, 0) if request[0] == 0x50 else None

    result = of(Answering(told({}), none, struct_of))

    assert (PauseReading(True, True, False), FecReading("rs", (), True), None) == (
        result.pause,
        result.fec,
        result.modes,
    )


def test_counters_of_the_fabric_managers_functions_stay_unread() -> None:
    """Reading them floods the kernel log. Those of a NIC for management alone are no news."""
    host = Answering(machine(HIDDEN))
    facts = probe("ethtool").read(host).facts
    owned = {interface.name for interface in facts.interfaces if interface.name.startswith("ibp5s0f")}
    counted = {name for name, command in host.asked if command in (0x1B, 0x1D, 0x37)}

    assert 4 == len(owned)
    assert counted
    assert not counted & owned
    assert all(
        (interface.driver, interface.modes, interface.counters) == ("mlx5_core", None, None)
        for interface in facts.interfaces
        if interface.name in owned
    )
    plain = Answering(machine("cpu-only-2s"))
    assert probe("ethtool").read(plain).facts.interfaces
    assert {0x03} == {command for _, command in plain.asked}


def test_a_port_of_an_accelerator_is_asked_for_its_driver_alone() -> None:
    """Each counter of a Gaudi's ports is a question to its firmware; a module is not read either."""
    host = Answering(told({"module": {}}, device={NIC: {"driver": "habanalabs", "rdma": None}}))
    sockets = {socket.name: socket for socket in probe("optics").read(host).facts.sockets}

    assert ("habanalabs", None, None) == (of(host).driver, of(host).modes, of(host).counters)
    assert {0x03} == {command for name, command in host.asked if name == INTERFACE}
    assert (None, OF_ACCELERATOR) == (sockets[INTERFACE].module, sockets[INTERFACE].reason)
    netdevs = {netdev.name: netdev for netdev in probe("netdev").read(host).facts.netdevs}
    assert netdevs[INTERFACE].counters is None
    assert [] == [name for name, item in netdevs.items() if item.driver == "mlx5_core" and not item.counters]


def test_a_sleeping_device_is_not_asked() -> None:
    """Every question would wake it."""
    status = f"/sys/bus/pci/devices/{NIC}/power/runtime_status"
    base = told({})
    asleep = OverlayHost(base, {status: "suspended\n"})

    assert INTERFACE not in {interface.name for interface in probe("ethtool").read(asleep).facts.interfaces}


def test_a_busy_lock_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read so far stays, and the reason says what is missing."""
    clock = iter(range(0, 10_000, 4))
    monkeypatch.setattr("probes.ethtool.probe.time.monotonic", lambda: float(next(clock)))
    reading = probe("ethtool").read(told({}))

    assert 1 == len(reading.facts.interfaces)
    assert "busy for more than 6 s" in (reading.missing or "")


def test_a_machine_without_such_interfaces() -> None:
    """Nothing to ask is said so."""
    lonely = CaptureHost("x", *_empty())
    with pytest.raises(Absent):
        probe("ethtool").read(lonely)


def _empty() -> tuple[MemoryFiles, MemoryFiles]:
    manifest = b'{"format": "fabricscope.capture/1", "captured_at": null}'
    return MemoryFiles({"manifest.json": manifest}), MemoryFiles({})


SAVED = {
    "ip_-d_link.txt": "2: eth0: <UP> mtu 9000 state UP mode DEFAULT\n    link/ether b8:3f:d2:00:00:01\n",
    "ethtool_-a_eth0.txt": "Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n",
    "ethtool_--show-fec_eth0": "FEC parameters for eth0:\nConfigured FEC encodings: RS\nActive FEC encoding: RS\n"
    "Statistics:\n  corrected_blocks: 4\n  uncorrectable_blocks: 0\n",
    "ethtool_-S_eth0": "NIC statistics:\n     rx_packets: 5\n     rx_prio3_pause: 6\n     [0]: rx_discards: 7\n",
    "ethtool_eth0": "Settings for eth0:\n\tSupported link modes:   100000baseKR4/Full\n\t                        "
    "400000baseCR8/Full\n\tSupported FEC modes: None\t RS\n\tAdvertised link modes:  800000baseCR8/Full\n"
    "\tSpeed: 100000Mb/s\n\tAuto-negotiation: on\n",
    "ethtool_-i_eth0": "driver: mlx5_core\nversion: 6.8.0\nfirmware-version: 28.43.2026 (MT_0000000838)\n",
}


def saved(files: dict[str, str]) -> TreeHost:
    """A dump of these outputs."""
    return TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles({k: v.encode() for k, v in files.items()})))


def test_saved_outputs_are_found_by_the_interfaces_name() -> None:
    """All five kinds."""
    assert Ethernet(
        "eth0",
        PauseReading(True, False, False),
        FecReading("rs", ("rs",), False, {"fec_corrected_blocks": 4, "fec_uncorrectable_blocks": 0}),
        LinkModes(True, 400_000, ("off", "rs"), 100_000),
        {"rx_packets": 5, "rx_prio3_pause": 6},
        "mlx5_core",
        "6.8.0",
        "28.43.2026 (MT_0000000838)",
    ) == of(saved(SAVED), "eth0")


def test_a_saved_refusal_says_nothing() -> None:
    """Whatever the tool printed instead."""
    only = {
        "ip_-d_link.txt": SAVED["ip_-d_link.txt"],
        "ethtool_-a_eth0": "Cannot get device pause settings: Operation not supported\n",
    }
    with pytest.raises(Absent):
        probe("ethtool").read(saved(only))


@pytest.mark.parametrize(
    ("file", "some"),
    [
        ("mlx5_core", {"link_down_events_phy": 0, "rx_out_of_buffer": 0}),
        ("ice-full-priority-xon-xoff", {"rx_priority_0_xon.nic": 0}),
    ],
)
def test_statistics_of_real_drivers(corpus: Path, file: str, some: dict[str, int]) -> None:
    """Counters of rings and queues stay out."""
    from probes.ethtool.saved import parse_statistics

    result = parse_statistics((corpus / f"text/ethtool-S/{file}.txt").read_text())
    assert result is not None
    assert some.items() <= result.items()
    assert not [name for name in result if "queue" in name or name.startswith(("[", "rx0", "ch0"))]


def test_no_report_grows_without_bound() -> None:
    """A hostile driver's names are cut."""
    assert 512 == len(
        select_wanted({f"outbound_pci_{chr(97 + i % 26)}{chr(97 + i // 26)}{'x' * (i % 5)}": i for i in range(676)})
    )


def test_a_sosreport_holds_them_too(tmp_path: Path) -> None:
    """Where sos's networking plugin puts them."""
    folder = tmp_path / "sos_commands" / "networking"
    folder.mkdir(parents=True)
    for name, text in SAVED.items():
        (folder / name.removesuffix(".txt")).write_text(text)

    assert PauseReading(True, False, False) == of(open_source(str(tmp_path)), "eth0").pause
