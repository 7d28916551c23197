"""Interface rows: identity; pause, FEC, module and counters of ethtool; DCB, neighbours and markings, of several
sources one row, and a reason where nothing is known.
"""

from __future__ import annotations

import pytest

from agent.assemble import assemble
from agent.model.nic import Fec, Lane, Neighbor, Pause, Port, TransceiverModule
from agent.model.nic import Netdev as Row
from probes.catalogue import providers
from probes.dcb.facts import Application, Dcb, DcbFacts, DcbInterface, TrafficMarking
from probes.ethtool import netlink as genl
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.ethtool.saved import parse_settings
from probes.netdev.lldp import LldpFacts
from probes.netdev.lldp import LldpNeighbor as Heard
from probes.netdev.probe import Netdev, NetdevFacts
from probes.optics.facts import LaneReading, ModuleReading
from probes.optics.probe import ModuleSocket, OpticsFacts
from probes.probe import Outcome, Status
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.rdma.netlink import NetlinkDevice, RdmaNetlinkFacts
from tests.agent.assemble.boards import assemble_facts, hgx, outcome
from tests.texts import read_fields

NIC = "0000:14:00.0"
PLAIN = Netdev("ens1", NIC, counters={"rx_packets": 5, "rx_crc_errors": 2})
PCI = "0000:1a:00.0"
ON_3 = (False, False, False, True, False, False, False, False)
DSCPS = (Application("dscp", 26, 3), Application("udp", 4791, 5))
KERNEL = Dcb("DCB netlink", pfc=ON_3, applications=DSCPS, delay=30, dcbx=("host", "ieee"))


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


def qos_row(*sources: Dcb, driver: str | None = "mlx5_core", reason: str | None = None, **words: object) -> Row:
    """The interface as the report has it."""
    facts = DcbFacts((DcbInterface("ens1", PCI, sources, reason, **words),))  # type: ignore[arg-type]
    netdev = Netdev("ens1", address=PCI, type=1, driver=driver)
    (result,) = assemble_facts(netdev=NetdevFacts((netdev,)), dcb=facts).topology.netdevs
    return result


def port(*, dcb: DcbFacts | None = None, kernel: RdmaNetlinkFacts | None = None, netdevs: tuple[str, ...] = ()) -> Port:
    """The port of one RDMA device as the report has it."""
    device = RdmaDevice("mlx5_0", PCI, ports=(RdmaPort(1, link_layer="Ethernet", netdevs=netdevs),))
    result = assemble_facts(rdma=RdmaFacts((device,)), dcb=dcb, rdma_netlink=kernel)
    return result.topology.nics[0].ports[0]


def test_one_source_whole() -> None:
    result = qos_row(KERNEL)
    assert result.qos is not None
    assert result.qos_reason is None
    assert (result.qos.pfc, result.qos.dscp_prio, result.qos.cable_metres) == (list(ON_3), {"26": 3}, 30)
    assert (result.qos.dcbx, result.qos.dcbx_modes) == ("host", ["host", "ieee"])


def test_the_best_source_speaks_first_and_others_fill_its_gaps() -> None:
    later = Dcb("mlnx_qos", pfc=(True,) * 8, delay=7, dcbx_owner="firmware", buffer_bytes=(1,) * 8)
    result = qos_row(KERNEL, later).qos
    assert result is not None
    assert read_fields(result, "pfc cable_metres dcbx buffers") == (list(ON_3), 30, "host", {"size_bytes": [1] * 8})


@pytest.mark.parametrize(
    ("sources", "driver", "trust", "source"),
    [
        ([KERNEL], "mlx5_core", "dscp", "APP table"),
        ([KERNEL], "bnxt_en", "dscp", "APP table"),
        ([KERNEL._replace(applications=())], "mlx5_core", "pcp", "APP table"),
        ([KERNEL._replace(applications=DSCPS[1:])], "mlx5_core", "pcp", "APP table"),
        ([KERNEL._replace(applications=())], "bnxt_en", None, None),
        ([KERNEL._replace(applications=())], None, None, None),
        ([KERNEL._replace(applications=None)], "mlx5_core", None, None),
        ([KERNEL._replace(applications=(), trust_order=("dscp", "pcp"))], "mlx5_core", "dscp", "trust table"),
        ([KERNEL._replace(trust_order=("pcp", "dscp"))], "sparx5", "dscp", "trust table"),
        ([KERNEL._replace(trust_order=("pcp",))], "sparx5", "pcp", "trust table"),
        ([KERNEL._replace(trust_order=())], "sparx5", "dscp", "APP table"),
        ([KERNEL, Dcb("qos/trust", trust="pcp")], "mlx5_core", "pcp", "qos/trust"),
        ([Dcb("mlnx_qos", trust="dscp")], None, "dscp", "mlnx_qos"),
    ],
)
def test_trust(sources: list[Dcb], driver: str | None, trust: str | None, source: str | None) -> None:
    result = qos_row(*sources, driver=driver).qos
    assert result is not None
    assert (result.trust, result.trust_source) == (trust, source)


def test_of_several_entries_for_a_dscp_the_highest_priority_counts() -> None:
    result = qos_row(KERNEL._replace(applications=(Application("dscp", 26, 3), Application("dscp", 26, 1)))).qos
    assert result is not None
    assert result.dscp_prio == {"26": 3}


@pytest.mark.parametrize(("driver", "metres"), [("mlx5_core", 30), ("bnxt_en", None), (None, None)])
def test_a_delay_is_a_length_on_mlx5_only(driver: str | None, metres: int | None) -> None:
    result = qos_row(KERNEL, driver=driver).qos
    assert result is not None
    assert result.cable_metres == metres


@pytest.mark.parametrize(
    ("modes", "owner"), [(("cee", "ieee"), "firmware"), (("host",), "host"), ((), None), (None, None)]
)
def test_who_sets_it(modes: tuple[str, ...] | None, owner: str | None) -> None:
    result = qos_row(KERNEL._replace(dcbx=modes)).qos
    assert result is not None
    assert result.dcbx == owner


def test_a_refusal_is_the_reason() -> None:
    result = qos_row(reason="EOPNOTSUPP: the driver has no DCB here")
    assert (result.qos, result.qos_reason) == (None, "EOPNOTSUPP: the driver has no DCB here")


def test_pfc_that_is_not_told_has_a_reason_beside_what_is_told() -> None:
    result = qos_row(KERNEL._replace(pfc=None))
    assert result.qos is not None
    assert (result.qos.pfc, result.qos_reason) == ([], "the driver does not report its PFC")


def test_ecn_of_which_a_part_is_not_known_is_not_known() -> None:
    result = qos_row(KERNEL, ecn={"np": ON_3, "rp": (None,) * 8}, cnp_dscp=48, cnp_priority=6).qos
    assert result is not None
    assert (result.ecn, result.cnp_dscp, result.cnp_priority) == ({"np": list(ON_3)}, 48, 6)


@pytest.mark.parametrize(
    "netdev",
    [
        Netdev("ens1", type=1),
        Netdev("ens1", address=PCI, type=32),
        Netdev("ens1", address=PCI, type=1, virtual=True),
        Netdev("ens1", address=PCI, type=1, vlan={"id": 5}),
    ],
)
def test_what_has_no_dcb_of_its_own_has_no_reason(netdev: Netdev) -> None:
    (result,) = assemble_facts(netdev=NetdevFacts((netdev,)), dcb=DcbFacts(())).topology.netdevs
    assert (result.qos, result.qos_reason) == (None, None)


def test_who_was_not_asked_sleeps() -> None:
    netdev = Netdev("ens1", address=PCI, type=1)
    (result,) = assemble_facts(netdev=NetdevFacts((netdev,)), dcb=DcbFacts(())).topology.netdevs
    assert result.qos_reason == "not asked: the device sleeps"


def test_a_probe_that_failed_gives_its_reason() -> None:
    netdev = Netdev("ens1", address=PCI, type=1)
    (result,) = assemble_facts(netdev=NetdevFacts((netdev,)), dcb=None).topology.netdevs
    assert result.qos_reason == "not there"


def test_one_neighbour_is_the_far_end_and_two_are_none() -> None:
    neighbor = Heard("ens1", "leaf1", port="swp1", max_frame_bytes=9216, pfc=ON_3, applications=(("udp:4791", 3),))
    netdevs = NetdevFacts((Netdev("ens1", address=PCI), Netdev("ens2")))
    one, other = assemble_facts(netdev=netdevs, lldp=LldpFacts((neighbor,))).topology.netdevs
    two, _ = assemble_facts(netdev=netdevs, lldp=LldpFacts((neighbor, neighbor))).topology.netdevs

    expected = Neighbor(system="leaf1", port="swp1", max_frame_bytes=9216, pfc=list(ON_3), applications={"udp:4791": 3})
    assert (one.neighbor, other.neighbor, two.neighbor) == (expected, None, None)


def test_a_port_has_its_protocol_and_what_marks_its_traffic() -> None:
    kernel = RdmaNetlinkFacts((NetlinkDevice("mlx5_0", "roce", ((1, "ens1"), (2, "ens2"))),), "exclusive")
    result = port(dcb=DcbFacts((), (TrafficMarking("mlx5_0", 1, 106, "RoCE v2"),)), kernel=kernel)
    assert read_fields(result, "protocol netdevs traffic_class default_roce_mode") == ("roce", ["ens1"], 106, "RoCE v2")


def test_markings_of_another_port_are_not_this_one_s() -> None:
    result = port(dcb=DcbFacts((), (TrafficMarking("mlx5_0", 2, 106), TrafficMarking("mlx5_1", 1, 106))))
    assert (result.protocol, result.traffic_class, result.default_roce_mode) == (None, None, None)


def test_interfaces_that_sysfs_names_stay() -> None:
    kernel = RdmaNetlinkFacts((NetlinkDevice("mlx5_0", "roce", ((1, "bond0"),)),))
    assert port(kernel=kernel, netdevs=("ens1",)).netdevs == ["ens1"]


@pytest.mark.parametrize("mode", ["shared", "exclusive", None])
def test_rdma_namespaces(mode: str | None) -> None:
    assert assemble_facts(rdma_netlink=RdmaNetlinkFacts((), mode)).software.rdma_namespaces == mode
