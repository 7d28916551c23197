"""DCB, neighbours and markings: of several sources one row, and a reason where nothing is known."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Port
from agent.model.nic import Netdev as Row
from probes.dcb.facts import Application, Dcb, DcbFacts, DcbInterface, TrafficMarking
from probes.netdev.lldp import LldpFacts
from probes.netdev.lldp import LldpNeighbor as Heard
from probes.netdev.probe import Netdev, NetdevFacts
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.rdma.netlink import NetlinkDevice, RdmaNetlinkFacts
from tests.agent.assemble.boards import assemble_facts
from tests.texts import read_fields

PCI = "0000:1a:00.0"
ON_3 = (False, False, False, True, False, False, False, False)
DSCPS = (Application("dscp", 26, 3), Application("udp", 4791, 5))
KERNEL = Dcb("DCB netlink", pfc=ON_3, applications=DSCPS, delay=30, dcbx=("host", "ieee"))


def row(*sources: Dcb, driver: str | None = "mlx5_core", reason: str | None = None, **words: object) -> Row:
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
    result = row(KERNEL)
    assert result.qos is not None
    assert result.qos_reason is None
    assert (result.qos.pfc, result.qos.dscp_prio, result.qos.cable_metres) == (list(ON_3), {"26": 3}, 30)
    assert (result.qos.dcbx, result.qos.dcbx_modes) == ("host", ["host", "ieee"])


def test_the_best_source_speaks_first_and_others_fill_its_gaps() -> None:
    later = Dcb("mlnx_qos", pfc=(True,) * 8, delay=7, dcbx_owner="firmware", buffer_bytes=(1,) * 8)
    result = row(KERNEL, later).qos
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
    result = row(*sources, driver=driver).qos
    assert result is not None
    assert (result.trust, result.trust_source) == (trust, source)


def test_of_several_entries_for_a_dscp_the_highest_priority_counts() -> None:
    result = row(KERNEL._replace(applications=(Application("dscp", 26, 3), Application("dscp", 26, 1)))).qos
    assert result is not None
    assert result.dscp_prio == {"26": 3}


@pytest.mark.parametrize(("driver", "metres"), [("mlx5_core", 30), ("bnxt_en", None), (None, None)])
def test_a_delay_is_a_length_on_mlx5_only(driver: str | None, metres: int | None) -> None:
    result = row(KERNEL, driver=driver).qos
    assert result is not None
    assert result.cable_metres == metres


@pytest.mark.parametrize(
    ("modes", "owner"), [(("cee", "ieee"), "firmware"), (("host",), "host"), ((), None), (None, None)]
)
def test_who_sets_it(modes: tuple[str, ...] | None, owner: str | None) -> None:
    result = row(KERNEL._replace(dcbx=modes)).qos
    assert result is not None
    assert result.dcbx == owner


def test_a_refusal_is_the_reason() -> None:
    result = row(reason="EOPNOTSUPP: the driver has no DCB here")
    assert (result.qos, result.qos_reason) == (None, "EOPNOTSUPP: the driver has no DCB here")


def test_pfc_that_is_not_told_has_a_reason_beside_what_is_told() -> None:
    result = row(KERNEL._replace(pfc=None))
    assert result.qos is not None
    assert (result.qos.pfc, result.qos_reason) == ([], "the driver does not report its PFC")


def test_ecn_of_which_a_part_is_not_known_is_not_known() -> None:
    result = row(KERNEL, ecn={"np": ON_3, "rp": (None,) * 8}, cnp_dscp=48, cnp_priority=6).qos
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
