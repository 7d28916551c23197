"""Interface rows: identity, and pause, FEC, module and counters of ethtool."""

from __future__ import annotations

import pytest

from agent.assemble import assemble
from agent.model.nic import Fec, Lane, Pause, TransceiverModule
from agent.model.nic import Netdev as Row
from probes.catalogue import providers
from probes.ethtool import netlink as genl
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.ethtool.saved import parse_settings
from probes.netdev.probe import Netdev, NetdevFacts
from probes.optics.facts import LaneReading, ModuleReading
from probes.optics.probe import ModuleSocket, OpticsFacts
from probes.probe import Outcome, Status
from tests.agent.assemble.boards import assemble_facts, hgx, outcome
from tests.texts import read_fields

NIC = "0000:14:00.0"


def rows(*interfaces: Netdev) -> list[Row]:
    """The rows of a machine with one NIC."""
    return assemble_facts(pci=hgx(1).facts(), netdev=NetdevFacts(interfaces)).topology.netdevs


def test_an_interface_is_known_by_its_function() -> None:
    """Names change; the function below does not. Its NIC is referred to."""
    (row,) = rows(Netdev("ens1f0np0", NIC, speed_mbit_s=400000, mtu=9000, addresses=("fe80::2/64", "10.0.0.1/24")))

    assert (NIC, "ens1f0np0", NIC, NIC, 400.0, ["10.0.0.1/24", "fe80::2/64"]) == read_fields(
        row, "id label pci nic speed_gbit_s addresses"
    )


def test_two_ports_on_one_function_are_told_apart_by_port_or_by_name() -> None:
    """As ConnectX-3 has them."""
    by_port = rows(Netdev("a", NIC, dev_port=0), Netdev("b", NIC, dev_port=1))
    by_name = rows(Netdev("a", NIC), Netdev("b", NIC, dev_port=1))
    alike = rows(Netdev("a", NIC, dev_port=0), Netdev("b", NIC, dev_port=0))

    assert [f"{NIC}/0", f"{NIC}/1"] == [row.id for row in by_port]
    assert ["a", "b"] == [row.id for row in by_name] == [row.id for row in alike]


def test_what_is_stacked_on_a_port_does_not_take_its_identity() -> None:
    """Representors of virtual functions and VLANs share the address."""
    interfaces = (
        Netdev("eth0", NIC, port_name="p0"),
        Netdev("eth0_rep3", NIC, port_name="pf0vf3"),
        Netdev("eth0.100", NIC, vlan={"parent": "eth0", "id": 100}),
        Netdev("br0", virtual=True),
    )
    result = {row.label: row.id for row in rows(*interfaces)}

    assert {"eth0": NIC, "eth0_rep3": "eth0_rep3", "eth0.100": "eth0.100", "br0": "br0"} == result


def test_unknown_stays_null() -> None:
    """A port that is down has no speed, not 0."""
    (row,) = rows(Netdev("eth0", NIC))

    assert (None, None, None, {}) == (row.speed_gbit_s, row.mtu, row.bond, row.counters)


def test_bonds_keep_their_slaves() -> None:
    """In the source's order."""
    (row,) = rows(Netdev("bond0", bond={"slaves": ("b", "a"), "mode": "802.3ad"}, virtual=True))

    assert {"mode": "802.3ad", "slaves": ["b", "a"]} == row.bond


PLAIN = Netdev("ens1", NIC, counters={"rx_packets": 5, "rx_crc_errors": 2})


def row(interface: Netdev = PLAIN, ethernet: Ethernet | None = None, socket: ModuleSocket | None = None) -> Row:
    """The row of an interface of which these were said."""
    facts = {
        "ethtool": EthtoolFacts((ethernet,) if ethernet else ()),
        "optics": OpticsFacts((socket,) if socket else ()),
    }
    (result,) = assemble_facts(pci=hgx(1).facts(), netdev=NetdevFacts((interface,)), **facts).topology.netdevs
    return result


def test_nothing_said_is_nothing_known() -> None:
    """No pause that is off, no FEC, no module."""
    for result in (row(), row(ethernet=Ethernet("other", pause=genl.PauseReading(True, True, True)))):
        assert (None, None, None, None, None, None) == read_fields(
            result, "pause fec max_speed_gbit_s autoneg module module_reason"
        )
        assert {"rx_packets": 5, "rx_crc_errors": 2} == result.counters


def test_pause_fec_and_link_modes() -> None:
    """In the report's units."""
    ethernet = Ethernet(
        "ens1",
        genl.PauseReading(False, True, None),
        genl.FecReading("rs", ("rs", "baser"), False),
        genl.LinkModes(True, 2_500, ("off", "rs")),
    )
    result = row(ethernet=ethernet)

    assert Pause(rx=False, tx=True, autoneg=None) == result.pause
    assert Fec(active="rs", configured=["rs", "baser"], supported=["off", "rs"], auto=False) == result.fec
    assert (2.5, True) == (result.max_speed_gbit_s, result.autoneg)


def test_a_saved_output_s_speed_stands_where_the_kernel_said_none() -> None:
    """Both in Gbit/s."""
    ethernet = Ethernet("ens1", modes=genl.LinkModes(True, 400_000, (), 100_000))

    assert (100.0, 400.0) == (row(ethernet=ethernet).speed_gbit_s, row(ethernet=ethernet).max_speed_gbit_s)
    assert 200.0 == row(PLAIN._replace(speed_mbit_s=200_000), ethernet).speed_gbit_s


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("Speed: 400000Mb/s", 400_000), ("Speed: 100000Mb/s (4x25G)", 100_000), ("Speed: Unknown!", None),
        ("Speed: 0Mb/s", None), ("Speed: -1Mb/s", None),
    ],
)  # fmt: skip
def test_the_speed_that_ethtool_prints(text: str, speed: int | None) -> None:
    settings = parse_settings(f"Settings for ens1:\n\t{text}\n\tAuto-negotiation: on\n")

    assert settings is not None
    assert speed == settings.speed_mbit_s


def test_fec_that_a_port_supports_is_known_without_the_current_one() -> None:
    """An older driver has no operation for it."""
    assert Fec(supported=["rs"]) == row(ethernet=Ethernet("ens1", modes=genl.LinkModes(None, None, ("rs",)))).fec
    assert row(ethernet=Ethernet("ens1", modes=genl.LinkModes(None, None, ()))).fec is None


def test_counters_of_kernel_and_driver_are_one_table() -> None:
    """Sorted; the kernel's value stands where both use a name; the carrier's too."""
    interface = PLAIN._replace(carrier_changes=4, carrier_up_count=2, carrier_down_count=2)
    fec = genl.FecReading("rs", (), True, {"fec_corrected_blocks": 8})
    result = row(
        interface, Ethernet("ens1", fec=fec, counters={"rx_crc_errors": 9, "rx_discards_phy": 3, "carrier_changes": 77})
    )

    assert {
        "carrier_changes": 4,
        "carrier_down_count": 2,
        "carrier_up_count": 2,
        "fec_corrected_blocks": 8,
        "rx_crc_errors": 2,
        "rx_discards_phy": 3,
        "rx_packets": 5,
    } == result.counters
    assert sorted(result.counters) == list(result.counters)
    assert {} == row(Netdev("br0", virtual=True, carrier_changes=3)).counters


def test_a_module_with_its_lanes() -> None:
    """Field by field."""
    lane = LaneReading(1, -1.5, 0.5, 7.5, ("rx_power_low_warning", "rx_los"))
    seen = ModuleReading(
        *("OSFP", "optical", "ACME", "P1", "S1", 3.0, "400GBASE-DR4", "ready", 45.0, 3.3),
        thresholds={"voltage_high_alarm_v": 3.6, "rx_power_low_alarm_dbm": -8.0},
        flags=("voltage_low_alarm", "temperature_high_alarm"),
        lanes=(lane,),
    )
    result = row(socket=ModuleSocket("ens1", seen))

    assert result.module_reason is None
    assert (
        TransceiverModule(
            identifier="OSFP",
            media="optical",
            vendor="ACME",
            part="P1",
            serial="S1",
            length_m=3.0,
            standard="400GBASE-DR4",
            state="ready",
            temperature_c=45.0,
            voltage_v=3.3,
            thresholds={"rx_power_low_alarm_dbm": -8.0, "voltage_high_alarm_v": 3.6},
            flags=["temperature_high_alarm", "voltage_low_alarm"],
            lanes=[
                Lane(
                    lane=1,
                    rx_power_dbm=-1.5,
                    tx_power_dbm=0.5,
                    tx_bias_ma=7.5,
                    flags=["rx_los", "rx_power_low_warning"],
                )
            ],
        )
        == result.module
    )


def test_why_a_module_is_not_known() -> None:
    """The interface's own reason."""
    assert "EIO: no module answers" == row(socket=ModuleSocket("ens1", reason="EIO: no module answers")).module_reason


def test_a_probe_that_did_not_answer_is_the_reason() -> None:
    """Of interfaces of devices: a bridge has no module."""
    timed_out = Outcome("optics", Status.TIMED_OUT, None, "optics: no answer within 15 s", (), 15.0)
    interfaces = NetdevFacts((PLAIN, Netdev("br0", virtual=True)))
    result = assemble(
        [outcome("pci", hgx(1).facts()), outcome("netdev", interfaces), timed_out], providers()
    ).topology.netdevs

    assert {"ens1": "optics: no answer within 15 s", "br0": None} == {item.label: item.module_reason for item in result}
