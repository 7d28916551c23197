"""NIC rows and their ports: joined from the bus, RDMA devices and interfaces."""

from __future__ import annotations

import pytest

from agent.assemble.rdma import build_ports
from agent.model.nic import Nic, Port
from probes.gpu.facts import GpuFacts
from probes.netdev.probe import Netdev, NetdevFacts
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaFacts, RdmaPort
from tests.agent.assemble.boards import Board, assemble_facts, hgx
from tests.texts import read_fields

NIC = "0000:14:00.0"
ETHERNET = RdmaPort(1, link_layer="Ethernet", state="ACTIVE")


def nics(**facts: object) -> dict[str, Nic]:
    """The rows of a machine by id."""
    return {nic.id: nic for nic in assemble_facts(**facts).topology.nics}


def rdma(*devices: RdmaDevice) -> RdmaFacts:
    """What the RDMA probe would say."""
    return RdmaFacts(devices)


def netdevs(*interfaces: Netdev) -> NetdevFacts:
    """What the interface probe would say."""
    return NetdevFacts(interfaces)


def test_a_function_and_its_rdma_device_are_one_row() -> None:
    """The address is the id, the device's name the label."""
    device = RdmaDevice("mlx5_0", NIC, firmware="28.41.1000", board_id="MT_0000000838", node_guid="b83f:d203:0:1")
    row = nics(pci=hgx(1).facts(), rdma=rdma(device))[NIC]

    assert ("mlx5_0", "mlx5_0", NIC, "ConnectX-7", "28.41.1000", "mlx5_core", "present") == read_fields(
        row, "label rdma_device pci model firmware driver state"
    )


@pytest.mark.parametrize(
    ("bound", "kind", "device", "interfaces", "state"),
    [
        ("", "0x020000", None, None, "no_driver"),
        ("vfio-pci", "0x020000", None, None, "vfio"),
        ("mlx5_core", "0x020000", None, netdevs(Netdev("ens1", NIC)), "no_rdma_device"),
        ("mlx5_core", "0x020000", None, netdevs(Netdev("eno1", "0000:01:00.0")), "other_namespace"),
        ("mlx5_core", "0x020700", None, netdevs(), "no_rdma_device"),
        (None, "0x020000", None, None, "present"),
        ("mlx5_core", "0x020000", RdmaDevice("mlx5_0", NIC, ports=(ETHERNET,)), netdevs(), "other_namespace"),
        ("mlx5_core", "0x020000", RdmaDevice("mlx5_0", NIC, ports=(ETHERNET,)), None, "present"),
        (
            "mlx5_core",
            "0x020000",
            RdmaDevice("mlx5_0", NIC, ports=(ETHERNET,)),
            netdevs(Netdev("ens1", NIC)),
            "present",
        ),
    ],
)
def test_why_a_function_has_no_rdma_device_or_no_interface(
    bound: str | None, kind: str, device: RdmaDevice | None, interfaces: NetdevFacts | None, state: str
) -> None:
    """Absent, unbound, handed away and moved into a container are four things."""
    board = hgx(1)
    board.change(NIC, driver=bound, class_code=kind)
    result = nics(pci=board.facts(), rdma=rdma(*([device] if device else [])), netdev=interfaces)

    assert state == result[NIC].state


def test_without_an_answer_about_rdma_nothing_is_said_to_be_missing() -> None:
    """A tree that holds no class folder, or a saved list of devices without their places."""
    nameless = rdma(RdmaDevice("mlx5_7"))

    assert "present" == nics(pci=hgx(1).facts())[NIC].state
    assert "present" == nics(pci=hgx(1).facts(), rdma_tools=nameless)[NIC].state
    assert ["mlx5_7"] == [row.id for row in nics(rdma_tools=nameless).values()]


def test_a_list_of_rdma_devices_that_is_cut_shows_no_missing_one() -> None:
    """The device of this function may be in the rest of the text."""
    whole = RdmaFacts(())

    assert "no_rdma_device" == nics(pci=hgx(1).facts(), rdma_tools=whole)[NIC].state
    assert "present" == nics(pci=hgx(1).facts(), rdma_tools=whole._replace(whole=False))[NIC].state


def test_software_devices_and_devices_without_a_place_are_rows_by_name() -> None:
    """rxe is never a NIC for GPUs; an HCA type names its model."""
    result = nics(rdma=rdma(RdmaDevice("rxe0", software=True), RdmaDevice("mlx5_1", hca_type="MT4129")))

    assert ["mlx5_1", "rxe0"] == list(result)
    assert ("ConnectX-7", False, True) == (result["mlx5_1"].model, result["mlx5_1"].software, result["rxe0"].software)


def test_ordinary_network_cards_are_no_nics_of_ours_unless_they_have_a_device() -> None:
    """The BCM5720 of every server cannot do RDMA; an unknown card with an RDMA device can."""
    board = Board()
    root = board.root_port("0000:00:0c.0")
    board.device("0000:01:00.0", root, "0x020000", "0x14e4", "0x165f")
    board.device("0000:02:00.0", root, "0x020000", "0x14e4", "0x1750")
    board.device("0000:03:00.0", root, "0x020000", "0x8086", "0x37d2")
    result = nics(pci=board.facts(), rdma=rdma(RdmaDevice("irdma0", "0000:03:00.0")))

    assert ["0000:02:00.0", "0000:03:00.0"] == list(result)


def test_tools_fill_what_sysfs_does_not_say_port_by_port() -> None:
    """Only ibv_devinfo knows the active MTU."""
    live = RdmaDevice("mlx5_0", NIC, ports=(RdmaPort(1, link_layer="InfiniBand", state="ACTIVE"),))
    tool = RdmaDevice(
        "mlx5_0", firmware="28.1", ports=(RdmaPort(1, state="DOWN", active_mtu=4096), RdmaPort(2, state="DOWN"))
    )
    row = nics(pci=hgx(1).facts(), rdma=rdma(live), rdma_tools=rdma(tool))[NIC]

    assert ("28.1", [(1, "ACTIVE", 4096), (2, "DOWN", None)]) == (
        row.firmware,
        [(port.port, port.state, port.active_mtu) for port in row.ports],
    )


def test_a_name_by_udev_s_rule_holds_the_place() -> None:
    """rocep20s0 is bus 0x14, slot 0."""
    board = hgx(1)
    result = nics(pci=board.facts(), rdma_tools=rdma(RdmaDevice("rocep20s0"), RdmaDevice("rocep99s0")))

    assert {NIC: "rocep20s0", "rocep99s0": "rocep99s0"} == {row.id: row.rdma_device for row in result.values()}


def test_the_second_port_of_a_bonded_card_is_not_without_rdma() -> None:
    """RoCE LAG: one device stands for both ports."""
    board = hgx(1)
    board.change(NIC, class_code="0x020000")
    board.nic("0000:14:00.1", "0000:12:01.0", kind="0x020000")
    bonded = RdmaDevice("mlx5_bond_0", NIC, ports=(RdmaPort(1, link_layer="Ethernet", netdevs=("bond0",)),))
    interfaces = netdevs(
        Netdev("bond0", virtual=True, bond={"mode": "802.3ad", "slaves": ("ens1f0", "ens1f1")}),
        Netdev("ens1f0", NIC, master="bond0"),
        Netdev("ens1f1", "0000:14:00.1", master="bond0"),
    )
    result = nics(pci=board.facts(), rdma=rdma(bonded), netdev=interfaces)
    second = result["0000:14:00.1"]

    assert ("bond0", "present") == (result[NIC].bond, result[NIC].state)
    assert ("bond0", "present", "auxiliary", None) == (second.bond, second.state, second.role, second.rdma_device)


def test_a_matrix_alone_still_names_nics() -> None:
    """A saved `nvidia-smi topo -m` and nothing else."""
    matrix = GpuFacts((), nic_names={"NIC1": "mlx5_10", "NIC0": "mlx5_9"})

    assert ["mlx5_9", "mlx5_10"] == list(nics(nvidia_smi=matrix))
    assert [NIC] == list(nics(pci=hgx(1).facts(), nvidia_smi=matrix))


def test_virtual_functions_are_marked_by_their_link_or_their_id() -> None:
    """In a guest there is no link to the physical function."""
    board = hgx(1)
    board.nic("0000:14:00.1", "0000:12:01.0", physical_function=NIC)
    guest = hgx(1, nic="0x101e")

    assert [False, True] == [row.virtual_function for row in nics(pci=board.facts()).values()]
    assert [True] == [row.virtual_function for row in nics(pci=guest.facts()).values()]


def test_functions_of_the_fabric_manager_are_marked_without_any_rdma_source() -> None:
    """By subsystem (DGX B200) or by product name."""
    board = hgx(1, nics_per_switch=2)
    board.change(NIC, subsystem_vendor="0x15b3", subsystem_device="0x0087")
    board.change("0000:15:00.0", name="ConnectX-7 mezz internal for Nvidia Umbriel system")

    assert ["auxiliary", "auxiliary"] == [row.role for row in nics(pci=board.facts()).values()]


def test_ports_of_an_accelerator_are_no_nic() -> None:
    """By its PCI function, or by the name that its driver gives: no GPU shares them with another."""
    board = hgx(1)
    board.change("0000:13:00.0", vendor="0x1da3", device="0x1060", class_code="0x120000")
    own, placeless = RdmaDevice("ours", "0000:13:00.0"), RdmaDevice("hbl_3")
    result = nics(pci=board.facts(), rdma=rdma(own, placeless, RdmaDevice("hlib_0"), RdmaDevice("mlx5_0", NIC)))

    assert [NIC] == list(result)


def test_iwarp_is_told_apart_by_the_node_type() -> None:
    """Nothing of RoCE applies to it: with a PCI function and without."""
    result = nics(
        pci=hgx(1).facts(), rdma=rdma(RdmaDevice("iw0", NIC, node_type="RNIC"), RdmaDevice("iw1", node_type="RNIC"))
    )

    assert ["RNIC", "RNIC"] == [result[NIC].node_type, result["iw1"].node_type]


def test_a_sub_function_is_a_row_of_its_own() -> None:
    """It shares its parent's PCI function; neither takes the other's place, and it is no physical function."""
    result = nics(pci=hgx(1).facts(), rdma=rdma(RdmaDevice("mlx5_0", NIC), RdmaDevice("mlx5_9", NIC)))

    assert ("mlx5_0", False) == (result[NIC].label, result[NIC].virtual_function)
    assert ("mlx5_9", NIC, True) == (result["mlx5_9"].label, result["mlx5_9"].pci, result["mlx5_9"].virtual_function)


def test_a_nameless_device_is_where_its_interface_is_named_to_be() -> None:
    """ibdev2netdev beside lspci: "enp20s0np0" is 0000:14:00.0. Two places, and other names, tell none."""
    board = hgx(2)

    def placed(*names: str) -> list[str | None]:
        ports = tuple(RdmaPort(port=number, netdevs=(name,)) for number, name in enumerate(names, start=1))
        result = assemble_facts(lspci=board.facts(), rdma_tools=RdmaFacts((RdmaDevice(name="mlx5_0", ports=ports),)))
        return [nic.pci for nic in result.topology.nics if nic.rdma_device == "mlx5_0"]

    assert ["0000:14:00.0"] == placed("enp20s0np0")
    assert ["0000:14:00.0"] == placed("enp20s0", "enp20s0d1")
    assert [None] == placed("enp20s0np0", "enp36s0np0")
    assert [None] == placed("ens14np0")
    assert [None] == placed("enp99s0np0")


def port(rdma_port: RdmaPort, *netdevs: Netdev) -> Port:
    """One port as a row."""
    return build_ports(RdmaDevice("mlx5_0", ports=(rdma_port,)), netdevs)[0]


def test_an_active_infiniband_port_has_rate_width_and_speed() -> None:
    """As the kernel prints it."""
    row = port(RdmaPort(1, "InfiniBand", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)", lid=7))

    assert (400.0, "4X", "NDR", 7) == (row.rate_gbit_s, row.width, row.speed, row.lid)


@pytest.mark.parametrize("state", ["DOWN", "INIT", "ARMED", None])
def test_a_port_that_is_not_active_has_no_rate(state: str | None) -> None:
    """The kernel prints SDR for a port that is down."""
    row = port(RdmaPort(1, "InfiniBand", state, "Polling", "10 Gb/sec (4X SDR)"))

    assert (None, None, None) == (row.rate_gbit_s, row.width, row.speed)


def test_on_ethernet_the_interface_s_speed_counts_and_lanes_say_nothing() -> None:
    """The text is a translation there; where the interface is silent, its leading number serves."""
    rdma_port = RdmaPort(1, "Ethernet", "ACTIVE", rate_text="100 Gb/sec (4X EDR)")
    fast = port(rdma_port, Netdev("ens1", "0000:14:00.0", speed_mbit_s=200000))
    silent = port(rdma_port, Netdev("ens1", "0000:14:00.0"))

    assert (200.0, None, None) == (fast.rate_gbit_s, fast.width, fast.speed)
    assert (100.0, None, None) == (silent.rate_gbit_s, silent.width, silent.speed)


def test_two_ports_on_one_function_take_their_own_interfaces() -> None:
    """By dev_port."""
    device = RdmaDevice("mlx4_0", ports=(RdmaPort(2, "Ethernet", "ACTIVE"), RdmaPort(1, "Ethernet", "ACTIVE")))
    interfaces = [Netdev("b", dev_port=1, speed_mbit_s=40000), Netdev("a", dev_port=0, speed_mbit_s=10000)]

    assert [(1, 10.0, ["a"]), (2, 40.0, ["b"])] == [
        (row.port, row.rate_gbit_s, row.netdevs) for row in build_ports(device, interfaces)
    ]


def test_a_rate_that_is_no_rate_is_null() -> None:
    """Never a guess."""
    assert port(RdmaPort(1, "InfiniBand", "ACTIVE", rate_text="fast")).rate_gbit_s is None


@pytest.mark.parametrize(
    ("netdev_mtu", "active"), [(1500, 1024), (4192, 4096), (4191, 2048), (9000, 4096), (300, None), (None, None)]
)
def test_the_roce_mtu_is_what_fits_into_the_interface_s(netdev_mtu: int | None, active: int | None) -> None:
    """96 bytes are headers."""
    assert active == port(RdmaPort(1, "Ethernet"), Netdev("ens1", mtu=netdev_mtu)).active_mtu


def test_infiniband_takes_no_mtu_from_its_interface() -> None:
    """IPoIB's MTU is another thing."""
    assert port(RdmaPort(1, "InfiniBand"), Netdev("ib0", mtu=2044)).active_mtu is None


def test_tables_are_sorted_and_unread_ones_are_known_to_be_unread() -> None:
    """GIDs by index."""
    gids = (GidEntry(10, "fe80::a", "RoCE v2", "ens1"), GidEntry(9, "fe80::b"))
    read = port(RdmaPort(1, "Ethernet", gids=gids, gids_known=True, counters={"b": 2, "a": 1}))

    assert ([9, 10], True, ["a", "b"]) == ([gid.index for gid in read.gids], read.gids_known, list(read.counters))
    assert not port(RdmaPort(1)).gids_known


def test_an_unknown_link_layer_is_unspecified() -> None:
    """EFA says Unknown."""
    assert ["unspecified", None] == [port(RdmaPort(1, layer)).link_layer for layer in ("Unknown", None)]
