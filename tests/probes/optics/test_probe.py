"""Cables and modules: what each layout of memory says, and what is never read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.description import ModuleSpec as Words
from fixtures.ethtool import THRESHOLDS, build_pages
from probes.catalogue import probe
from probes.host.interface import Absent, Denied, Failed, TimedOut
from probes.optics import cmis as optics_cmis
from probes.optics import sff
from probes.optics.facts import LaneReading, ModuleReading
from probes.optics.module import Memory, read_module
from probes.optics.probe import ModuleSocket
from probes.optics.saved import parse
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from probes.text import ParseError
from tests.machines import HOSTS, NO_NIC, machine
from tests.probes.netdev.ethernet_machines import HIDDEN, INTERFACE, NIC, Answering, told
from tests.probes.overlay import OverlayHost

OPTICAL = {"form": "osfp", "media": "optical"}
QSFP = {"form": "qsfp28", "media": "optical"}


def socket(host: object, name: str = INTERFACE) -> ModuleSocket:
    """What the probe says of one port."""
    found: ModuleSocket = next(each for each in probe("optics").read(host).facts.sockets if each.name == name)  # type: ignore[arg-type]
    return found


def module(**words: Any) -> ModuleReading:
    """The module that these words describe, through a capture."""
    said = socket(told({"module": words})).module
    assert said is not None
    return said


@pytest.mark.parametrize("shape", [shape for shape in HOSTS if shape not in NO_NIC])
def test_every_machine_says_what_is_plugged_in_or_why_that_is_not_known(shape: str) -> None:
    """Never both, never neither."""
    reading = probe("optics").read(machine(shape))

    assert reading.missing is None
    assert all((each.module is None) != (each.reason is None) for each in reading.facts.sockets)


@pytest.mark.parametrize("form", ["osfp", "qsfp-dd", "qsfp28"])
def test_a_module_within_its_limits(form: str) -> None:
    """Names, monitors, thresholds, lanes: the same in all layouts."""
    said = module(form=form, vendor="ACME", part="SR4", serial="AB123", temperature_c=51.5, voltage_v=3.28)
    lanes = said.lanes

    assert {"osfp": "OSFP", "qsfp-dd": "QSFP-DD", "qsfp28": "QSFP28"}[form] == said.identifier
    assert ("optical", "ACME", "SR4", "AB123", None) == (said.media, said.vendor, said.part, said.serial, said.length_m)
    assert (51.5, 3.28, None if form == "qsfp28" else "ready") == (said.temperature_c, said.voltage_v, said.state)
    assert [LaneReading(lane, 1.0, 1.5, 7.5) for lane in (1, 2, 3, 4)] == list(lanes)
    assert 20 == len(said.thresholds)
    for name, values in THRESHOLDS.items():
        what, _, unit = name.rpartition("_")
        levels = ("high_alarm", "low_alarm", "high_warning", "low_warning")
        assert pytest.approx(values, abs=0.01) == [said.thresholds[f"{what}_{level}_{unit}"] for level in levels]


@pytest.mark.parametrize("form", ["osfp", "qsfp28"])
def test_powers_flags_and_limits_of_single_lanes(form: str) -> None:
    """Each lane is its own; no light is the end of the scale."""
    flags = {
        "2": ["rx_los", "rx_lol", "rx_power_low_alarm", "rx_power_low_warning"],
        "3": ["tx_fault", "tx_los", "tx_lol", "tx_power_high_alarm", "tx_power_high_warning"],
        "4": ["tx_bias_low_alarm", "tx_bias_high_warning", "rx_power_high_alarm", "tx_power_low_warning"],
    }
    said = module(
        form=form,
        rx_power_dbm=[-3.0, -60.0, 0.5],
        tx_power_dbm=[0.0, -1.25],
        tx_bias_ma=[6.0],
        lane_flags=flags,
        flags=["temperature_high_alarm", "voltage_low_warning"],
        thresholds={"rx_power_low_alarm_dbm": -12.0},
    )

    assert [-3.0, -40.0, 0.5, 1.0] == [lane.rx_power_dbm for lane in said.lanes]
    assert [0.0, -1.25, 1.5, 1.5] == [lane.tx_power_dbm for lane in said.lanes]
    assert [6.0, 7.5, 7.5, 7.5] == [lane.tx_bias_ma for lane in said.lanes]
    assert {"1": [], **{lane: sorted(names) for lane, names in flags.items()}} == {
        str(lane.lane): sorted(lane.flags) for lane in said.lanes
    }
    assert {"temperature_high_alarm", "voltage_low_warning"} == set(said.flags)
    assert pytest.approx(-12.0, abs=0.02) == said.thresholds["rx_power_low_alarm_dbm"]


@pytest.mark.parametrize("form", ["osfp", "qsfp28"])
@pytest.mark.parametrize("media", ["copper", "active_copper"])
def test_copper_measures_nothing(form: str, media: str) -> None:
    """Its monitors read 0; three short parts are all that is asked for."""
    host = Answering(told({"module": {"form": form, "media": media, "length_m": 2.0}}))
    said = socket(host).module
    assert said is not None

    assert (media, 2.0, None, None, {}, (), ()) == (
        said.media,
        said.length_m,
        said.temperature_c,
        said.voltage_v,
        dict(said.thresholds),
        said.flags,
        said.lanes,
    )


def test_how_much_is_asked() -> None:
    """Each part of I2C memory costs up to 100 ms."""

    def questions(**words: Any) -> int:
        shape = {"device": {"0000:9b:00.0": {"net": {"module": {"form": "qsfp28", "media": "copper"}}}}}
        host = Answering(told({"module": words}, **shape))
        assert socket(host).module
        return host.memory

    cable = questions(form="qsfp28", media="copper")
    assert 1 == questions(form="qsfp28", media="optical") - cable
    assert 4 == questions(form="osfp", media="optical") - cable


def test_what_a_module_does_not_measure_is_unknown() -> None:
    """CMIS advertises its monitors; with SFF-8636 all zero says so."""
    for form in ("osfp", "qsfp28"):
        said = module(form=form, monitors=False)
        assert (None, None, ()) == (said.temperature_c, said.voltage_v, said.lanes)
        assert not said.thresholds


def test_a_module_in_a_fault() -> None:
    """CMIS has a state of its own."""
    assert "fault" == module(state="fault").state
    assert "low_power" == module(state="low_power").state


def test_lanes_that_do_not_exist_are_left_out() -> None:
    """One wavelength in a module of four lanes: no light, no current. A laser that failed stays."""
    dark: dict[str, Any] = {"rx_power_dbm": [0.0] + [-99.0] * 3, "tx_power_dbm": [0.0] + [-99.0] * 3}
    single = module(**QSFP, **dark, tx_bias_ma=[7.0, 0.0, 0.0, 0.0])
    failed = module(**QSFP, **dark, tx_bias_ma=[7.0, 0.0, 0.0, 0.0], lane_flags={"3": ["tx_fault"]})

    assert [1] == [lane.lane for lane in single.lanes]
    assert [1, 3] == [lane.lane for lane in failed.lanes]
    assert [1, 2] == [lane.lane for lane in module(**OPTICAL, lanes=2).lanes]


def memory(**words: Any) -> dict[int, bytearray]:
    """Pages of a module; the lower memory is -1."""
    return {page: bytearray(content) for page, content in build_pages(Words(**words), "S1").items()}


def cmis(made: dict[int, bytearray]) -> ModuleReading:
    return optics_cmis.parse(bytes(made[-1]), bytes(made[0]), {k: bytes(v) for k, v in made.items() if k > 0})


def qsfp(made: dict[int, bytearray]) -> ModuleReading:
    return sff.parse_sff8636(bytes(made[-1]), bytes(made[0]), {k: bytes(v) for k, v in made.items() if k > 0})


def test_only_advertised_monitors_and_flags_of_cmis() -> None:
    """Bits of page 1: 159 temperature and voltage, 160 bias, transmit and receive power, 157 and 158 flags."""
    made = memory(lane_flags={"1": ["rx_los", "tx_fault", "rx_power_low_alarm"]}, flags=["temperature_high_alarm"])
    made[1][159 - 128], made[1][160 - 128], made[1][157 - 128] = 0x02, 0x04, 0
    said = cmis(made)

    assert (None, 3.3, ()) == (said.temperature_c, said.voltage_v, said.flags)
    assert LaneReading(1, 1.0, None, None, ("rx_los", "rx_power_low_alarm")) == said.lanes[0]
    assert {"voltage", "rx_power"} == {name.rsplit("_", 3)[0] for name in said.thresholds}


@pytest.mark.parametrize(("bits", "bias"), [(0, 7.5), (1, 15.0), (2, 30.0), (3, None)])
def test_bias_has_a_scale(bits: int, bias: float | None) -> None:
    """Times 1, 2, 4; the fourth is reserved."""
    made = memory()
    made[1][160 - 128] |= bits << 3
    said = cmis(made)

    assert bias == said.lanes[0].tx_bias_ma
    assert (12.0 * bias / 7.5 if bias else None) == said.thresholds.get("tx_bias_high_alarm_ma")


@pytest.mark.parametrize(
    ("technology", "kind", "media"),
    [(0x00, 1, "optical"), (0x06, 2, "optical"), (0x0B, 3, "copper"), (0x0D, 4, "active_copper"), (0x10, 4, "optical"),
     (0x20, 5, "unknown"), (0x20, 3, "copper")],
)  # fmt: skip
def test_media_of_cmis(technology: int, kind: int, media: str) -> None:
    """Technology first; then the kind of medium."""
    made = memory()
    made[0][212 - 128], made[-1][85] = technology, kind
    assert media == cmis(made).media


@pytest.mark.parametrize(("byte", "metres"), [(0, None), (0x05, 0.5), (0x43, 3.0), (0x82, 20.0), (0xC1, 100.0)])
def test_length_of_a_cable(byte: int, metres: float | None) -> None:
    """A number and its unit: 0.1, 1, 10, 100 m."""
    made = memory()
    made[0][202 - 128] = byte
    assert metres == cmis(made).length_m


def test_pages_that_did_not_answer_lose_only_what_they_hold() -> None:
    """And a module without pages is not asked for them."""
    without = {page: memory() for page in (1, 2, 0x11)}
    for page, made in without.items():
        del made[page]
    assert cmis(without[1]).temperature_c is None
    assert (45.0, {}) == (cmis(without[2]).temperature_c, dict(cmis(without[2]).thresholds))
    assert ((), 20) == (cmis(without[0x11]).lanes, len(cmis(without[0x11]).thresholds))
    flat = memory()
    flat[-1][2] |= 0x80
    assert (False, None) == (optics_cmis.is_paged(bytes(flat[-1])), cmis(flat).temperature_c)


def test_flags_that_a_qsfp_does_not_have() -> None:
    """Bytes 194 and 195 advertise them; that of lost light every module has."""
    made = memory(**QSFP, lane_flags={"1": ["rx_los", "rx_lol", "tx_los", "tx_lol", "tx_fault"]})
    assert 5 == len(qsfp(made).lanes[0].flags)
    made[0][194 - 128] = made[0][195 - 128] = 0
    assert ("rx_los",) == qsfp(made).lanes[0].flags


def test_an_active_cable_that_measures_no_light() -> None:
    """All four lanes at zero say nothing about light; transmit power only where it is advertised."""
    made = memory(**QSFP)
    made[-1][34:42] = bytes(8)
    made[0][220 - 128] &= ~0x04
    said = qsfp(made)

    assert {(None, None, 7.5)} == {lane[1:4] for lane in said.lanes}
    assert not [name for name in said.thresholds if name.startswith("tx_power")]


def test_length_of_a_qsfp_is_that_of_a_cable() -> None:
    """Byte 146 of a module with a separable connector tells how far fibre may go."""
    made = memory(**QSFP, length_m=7)
    assert qsfp(made).length_m is None
    made[0][130 - 128] = 0x23
    assert 7.0 == qsfp(made).length_m


def sfp() -> tuple[bytearray, bytearray]:
    """An SFP28 of 850 nm: 96 bytes of its first address, 120 of the second."""
    serial, more = bytearray(96), bytearray(120)
    serial[0], serial[18], serial[92] = 0x03, 10, 0x68
    serial[20:36], serial[40:56], serial[68:84] = b"SONT".ljust(16), b"XP28-8G25".ljust(16), b"S123".ljust(16)
    more[0:8] = bytes.fromhex("4b00 fb00 4600 0000")
    more[8:16] = bytes.fromhex("8dcc 7404 875a 7a76")
    more[16:24] = bytes.fromhex("157c 01f4 1388 03e8")
    more[24:32] = bytes.fromhex("6b96 0390 55ae 05a5")
    more[32:40] = bytes.fromhex("5576 01d3 43e2 03a5")
    more[96:106] = bytes.fromhex("3054 846c 0dcc 2621 0001")
    more[110], more[112], more[113], more[116], more[117] = 0x02, 0x00, 0x40, 0x20, 0x40
    return serial, more


def test_an_sfp() -> None:
    """One lane; the second address measures. Warnings stand four bytes after alarms."""
    serial, more = sfp()
    said = sff.parse_sff8472(bytes(serial), bytes(more))

    assert ("SFP", "optical", "SONT", "XP28-8G25", "S123", None) == said[:6]
    assert (48.328, 3.39, ("voltage_high_warning",)) == (said.temperature_c, said.voltage_v, said.flags)
    assert (
        LaneReading(1, -40.0, -0.11, 7.064, ("rx_power_low_alarm", "rx_power_low_warning", "rx_los")),
    ) == said.lanes
    assert (75.0, 3.63, 11.0, 4.4, -13.31) == tuple(
        said.thresholds[name]
        for name in (
            "temperature_high_alarm_c",
            "voltage_high_alarm_v",
            "tx_bias_high_alarm_ma",
            "tx_power_high_alarm_dbm",
            "rx_power_low_alarm_dbm",
        )
    )


@pytest.mark.parametrize(
    ("byte", "value", "media"), [(8, 0x04, "copper"), (8, 0x08, "active_copper"), (2, 0x21, "copper")]
)
def test_an_sfp_cable(byte: int, value: int, media: str) -> None:
    """No monitors, and a length."""
    serial, more = sfp()
    serial[byte] = value
    said = sff.parse_sff8472(bytes(serial), bytes(more))
    assert (media, 10.0, None, ()) == (said.media, said.length_m, said.temperature_c, said.lanes)


@pytest.mark.parametrize("kinds", [0x00, 0x50, 0x20])
def test_an_sfp_whose_numbers_mean_nothing_yet(kinds: int) -> None:
    """It measures nothing, or leaves the calculation to the host."""
    serial, more = sfp()
    serial[92] = kinds
    assert not sff.has_monitors(bytes(serial))
    assert sff.parse_sff8472(bytes(serial), bytes(more)).temperature_c is None


def test_an_ordinary_user_is_told_what_it_needs() -> None:
    """One refusal is enough: nobody else is asked."""
    host = Answering(told({}, privileged=False))
    reading = probe("optics").read(host)

    assert "reading a module's memory needs CAP_NET_ADMIN" == reading.missing
    assert all(each.reason == "EPERM: reading a module's memory needs CAP_NET_ADMIN" for each in reading.facts.sockets)
    assert 1 == host.memory


@pytest.mark.parametrize(
    ("why", "reason", "gap"),
    [
        (Failed("x", "EOPNOTSUPP"), "EOPNOTSUPP: the driver cannot read a module's memory", False),
        (Failed("x", "EIO"), "EIO: no module answers", False),
        (Failed("I2C", "EBUSY"), "EBUSY: I2C", True),
        (TimedOut("I2C", "ETIMEDOUT"), "ETIMEDOUT: I2C", True),
        (Absent("not recorded"), "not recorded", False),
    ],
)
def test_why_a_module_is_not_known(why: Exception, reason: str, gap: bool) -> None:
    """The errno and what it means."""

    def refuse(request: bytes) -> bytes | None:
        if request[16] == 31:
            raise why
        return None

    reading = probe("optics").read(Answering(told({}), refuse))
    assert reason == next(each.reason for each in reading.facts.sockets if each.name == INTERFACE)
    assert gap == (f"{INTERFACE}: " in (reading.missing or ""))


def test_memory_that_is_no_memory_is_a_gap() -> None:
    """Damaged, short, and of a kind that nobody knows yet."""
    for answer in (b"\xff" * 9, b""):
        reading = probe("optics").read(Answering(told({}), lambda r, a=answer: a if r[16] == 31 else None))  # type: ignore[misc]
        assert reading.missing

    class Odd(Memory):
        def __init__(self) -> None:
            pass

        def bytes_of(self, part: tuple[int, int, int, int]) -> bytes:
            return b"\x7f" * part[2]

    with pytest.raises(ParseError, match="kind 0x7f"):
        read_module(Odd())


def test_flags_of_the_past_are_read_away_first() -> None:
    """A flag stands until it is read: those of the second reading count."""
    parts: list[tuple[int, ...]] = []

    def note(request: bytes) -> bytes | None:
        if request[16] == 31:
            numbers = [request[at : at + 4] for at in range(20, len(request), 4)]
            parts.append(tuple(int.from_bytes(each, "little") for each in numbers))
        return None

    assert socket(Answering(told({"module": OPTICAL}), note)).module
    assert 8 < len(parts) == len({*parts})  # every question differs, so a recording keeps both answers


def test_functions_that_have_no_module_are_left_alone() -> None:
    """Virtual functions, functions of the fabric manager, InfiniBand ports, sleeping devices."""
    host = Answering(machine(HIDDEN))
    reasons = {each.name: each.reason for each in probe("optics").read(host).facts.sockets}
    assert "InfiniBand" in (reasons["ibp24s0"] or "")
    virtual = OverlayHost(told({}), {f"/sys/bus/pci/devices/{NIC}/device": "0x101e\n"})
    assert "a virtual function has no module" == socket(virtual).reason
    asleep = OverlayHost(told({}), {f"/sys/bus/pci/devices/{NIC}/power/runtime_status": "suspended\n"})
    assert INTERFACE not in {each.name for each in probe("optics").read(asleep).facts.sockets}


def test_modules_that_were_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is for all of them; the reason says so."""
    clock = iter(range(0, 10_000, 7))
    monkeypatch.setattr("probes.optics.probe.time.monotonic", lambda: float(next(clock)))
    reading = probe("optics").read(told({}))
    assert any((each.reason or "").startswith("not reached") for each in reading.facts.sockets)
    assert "not reached" in (reading.missing or "")


def test_no_ethtool_netlink() -> None:
    """Before kernel 5.6 there is no other way that is asked."""

    def none(_: bytes) -> bytes:
        raise Failed("no such family", "ENOENT")

    with pytest.raises(Absent):
        probe("optics").read(Answering(told({}), none))


QSFP_TEXT = """\tIdentifier                                : 0x11 (QSFP28)
\tTransmitter technology                    : 0x00 (850 nm VCSEL)
\tVendor name                               : ACME
\tVendor SN                                 : MT1652FT00065
\tRx loss of signal                         : [ No, Yes, No, No ]
\tTx fault                                  : None
\tModule temperature                        : 47.11 degrees C / 116.79 degrees F
\tModule voltage                            : 3.2531 V
\tLaser tx bias current (Channel 1)         : 6.600 mA
\tLaser tx bias current (Channel 2)         : 6.700 mA
\tTransmit avg optical power (Channel 1)    : 0.9077 mW / -0.42 dBm
\tTransmit avg optical power (Channel 2)    : 0.9077 mW / -0.43 dBm
\tRcvr signal avg optical power(Channel 1)  : 0.9522 mW / -0.21 dBm
\tRcvr signal avg optical power(Channel 2)  : 0.0000 mW / -inf dBm
\tLaser bias current high alarm   (Chan 1)  : On
\tLaser rx power low alarm    (Channel 2)   : On
\tModule temperature high warning           : On
\tLaser rx power low alarm threshold        : 0.0467 mW / -13.31 dBm
\tLaser bias current high alarm threshold   : 0.000 mA
"""


def test_text_of_a_qsfp() -> None:
    """Lanes, flags, thresholds; those that are all zero are none."""
    said = parse(QSFP_TEXT)
    assert said is not None

    assert ("QSFP28", "optical", "ACME", 47.11, 3.2531) == (
        said[0],
        said[1],
        said[2],
        said.temperature_c,
        said.voltage_v,
    )
    assert (
        LaneReading(1, -0.21, -0.42, 6.6, ("tx_bias_high_alarm",)),
        LaneReading(2, -40.0, -0.43, 6.7, ("rx_los", "rx_power_low_alarm")),
    ) == said.lanes
    assert {"rx_power_low_alarm_dbm": -13.31} == dict(said.thresholds)
    assert ("temperature_high_warning",) == said.flags
    from_zero = parse(QSFP_TEXT.replace("(Channel 1)", "(Channel 0)").replace("(Channel 2)", "(Channel 1)"))
    assert from_zero is not None
    assert [-0.21, -40.0] == [lane.rx_power_dbm for lane in from_zero.lanes]


def test_flags_of_lanes_in_text_of_a_cmis_module() -> None:
    """ethtool prints them at the wrong lane, or not; the module's own flags and what cannot be read wrongly stay."""
    said = parse(QSFP_TEXT.replace("0x11 (QSFP28)", "0x19 (OSFP 8X Pluggable Transceiver)"))
    assert said is not None
    assert ("OSFP", ("temperature_high_warning",)) == (said.identifier, said.flags)
    assert [(), ("rx_los",)] == [lane.flags for lane in said.lanes]


def test_saved_text_by_the_interfaces_name() -> None:
    """Where a dump holds it."""
    files = {
        "ip_-d_link.txt": b"2: eth0: <UP> mtu 9000 state UP mode DEFAULT\n    link/ether b8:3f:d2:00:00:01\n",
        "ethtool_-m_eth0.txt": QSFP_TEXT.encode(),
    }
    host = TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles(files)))
    said = socket(host, "eth0").module
    assert said is not None
    assert "MT1652FT00065" == said.serial
    del files["ethtool_-m_eth0.txt"]
    with pytest.raises(Absent):
        probe("optics").read(TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles(files))))


SFP_LINE, QSFP_LINE = "Identifier : 0x03 (SFP)", "Identifier : 0x11 (QSFP28)"
LIGHT = ("Laser wavelength : 850nm", "Optical diagnostics support : Yes", "Laser bias current : 7.0 mA")


@pytest.mark.parametrize(
    ("lines", "media", "length", "lanes"),
    [
        ((SFP_LINE, "Transceiver type : Passive Cable", "Length (Copper) : 2m"), "copper", 2.0, 0),
        ((QSFP_LINE, "Transmitter technology : 0xa0 (Copper cable unequalized)", "Length (Copper or Active cable) : 1m",
          "Length (Copper) : 3m"), "copper", 1.0, 0),
        ((QSFP_LINE, "Transceiver type : 40G Ethernet: 40G Base-CR4"), "copper", None, 0),
        ((SFP_LINE, *LIGHT, "Length (Copper) : 4m"), "optical", None, 1),
        ((SFP_LINE, LIGHT[0]), "optical", None, 0),
        ((SFP_LINE,), "unknown", None, 0),
    ],
)  # fmt: skip
def test_cables_and_modules(lines: tuple[str, ...], media: str, length: float | None, lanes: int) -> None:
    """A module has no length of copper, whatever the label; a monitor that names no channel is of lane 1."""
    said = parse("".join(f"\t{line}\n" for line in lines))
    assert said is not None
    assert (media, length, lanes) == (said.media, said.length_m, len(said.lanes))


@pytest.mark.parametrize(
    ("file", "media", "length", "lanes"),
    [
        ("dac-sfp28-copper", "copper", 2.0, 0),
        ("qsfp28-dac-1m-mellanox", "copper", 1.0, 0),
        ("qsfp28-40g-cr4-dac-in-100g-port", "copper", None, 0),
        ("sfp-10glr-no-fiber", "optical", None, 1),
        ("sfp-noddm", "optical", None, 0),
        ("sfp28-dell-wrapped", "optical", None, 1),
        ("sfp28-sr-full-ddm", "optical", None, 1),
    ],
)
def test_real_texts(corpus: Path, file: str, media: str, length: float | None, lanes: int) -> None:
    """Of cables and modules in the field."""
    said = parse((corpus / f"text/ethtool-m/{file}.txt").read_text())
    assert said is not None
    assert (media, length, lanes) == (said.media, said.length_m, len(said.lanes))


def test_text_of_something_else() -> None:
    """A refusal, another tool, another language."""
    for text in ("", "Cannot get Module EEPROM data: Operation not permitted\n", "Identifier : unbekannt\n", "\0" * 99):
        assert parse(text) is None


def test_denied_is_denied() -> None:
    """EACCES of a container is no other than EPERM."""

    def refuse(request: bytes) -> bytes | None:
        if request[16] == 31:
            raise Denied("no", "EACCES")
        return None

    assert "EACCES: reading a module's memory needs CAP_NET_ADMIN" == socket(Answering(told({}), refuse)).reason


@pytest.mark.parametrize(
    ("extended", "code", "standard"), [(0x80, 0x03, "100GBASE-LR4"), (0x00, 0x03, None), (0x80, 0x7F, None)]
)
def test_the_standard_of_a_qsfp28_module(extended: int, code: int, standard: str | None) -> None:
    """The extended code counts where the first byte refers to it."""
    pages = build_pages(Words(form="qsfp28"), "AB1")
    upper = bytearray(pages[0])
    upper[3], upper[64] = extended, code

    assert standard == sff.parse_sff8636(bytes(pages[-1]), bytes(upper), {}).standard


def test_the_standard_in_a_saved_output() -> None:
    """As ethtool prints it."""
    said = parse("Identifier : 0x11 (QSFP28)\nTransceiver type : 100G Ethernet: 100G Base-ER4\n")
    assert said is not None
    assert "100GBASE-ER4" == said.standard
