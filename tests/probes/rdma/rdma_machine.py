"""Machines with an RDMA card, in memory; what parsers must keep."""

from __future__ import annotations

from collections.abc import Callable

from probes.catalogue import probe
from probes.probe import Outcome, outcome_of
from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.normalize import ParsedTool
from probes.sources.archive import load
from probes.sources.memory import MemoryFiles, SymlinkNode
from probes.text import ParseError
from tests.probes.machine import Machine

CLASS = "/sys/class/infiniband"
ADDRESS = "0000:19:00.0"
FUNCTION = f"/sys/devices/pci0000:00/{ADDRESS}"
DEVICE = f"{FUNCTION}/infiniband/mlx5_0"
PORT = f"{DEVICE}/ports/1"


def unpacked(archive: str, below: str = "") -> Machine:
    """The machine of a tree in an archive; `below`: where the archive's root belongs."""
    files = load(archive)
    assert files is not None, archive
    if below:
        whole = MemoryFiles()
        whole.add(below, files.root)
        files = whole
    return Machine(files)


def pci_device(name: str, address: str, **attributes: str) -> dict[str, str | SymlinkNode]:
    """The files of one RDMA device on a PCI function: path -> text. A key with a slash lies below the device, any
    other below its function; "__" stands for the slash."""
    function = f"/sys/devices/pci0000:00/{address}"
    device = f"{function}/infiniband/{name}"
    paths: dict[str, str | SymlinkNode] = {
        f"{CLASS}/{name}": SymlinkNode(f"../../devices/pci0000:00/{address}/infiniband/{name}"),
        f"{device}/device": SymlinkNode(f"../../../{address}"),
        f"/sys/bus/pci/devices/{address}": SymlinkNode(f"../../../devices/pci0000:00/{address}"),
    }
    return paths | {f"{function}/{key.replace('__', '/')}": text for key, text in attributes.items()}


def one_card(live: bool = True) -> Machine:
    """One RoCE card with a port, a VLAN and a virtual function's representor."""
    files = pci_device(
        "mlx5_0",
        ADDRESS,
        vendor="0x15b3\n",
        device="0x1021\n",
        subsystem_vendor="0x15b3\n",
        subsystem_device="0x0050\n",
        power__runtime_status="active\n",
        net__ens1f0np0__dev_port="0\n",
        net__ens1f0npf0vf3__dev_port="0\n",
        net__ens1f1np1__dev_port="1\n",
    )
    return (
        Machine(live=live, kind="live" if live else "tree")
        .put(files)
        .put(
            {
                f"{FUNCTION}/class": "0x020000\n",
                f"{DEVICE}/node_type": "1: CA\n",
                f"{DEVICE}/node_guid": "0002:c903:00a1:0010\n",
                f"{DEVICE}/sys_image_guid": "0002:c903:00a1:0010\n",
                f"{DEVICE}/node_desc": "node1 mlx5_0\n",
                f"{DEVICE}/fw_ver": "28.41.1000\n",
                f"{DEVICE}/board_id": "MT_0000000838\n",
                f"{DEVICE}/hca_type": "MT4129\n",
                f"{PORT}/link_layer": "Ethernet\n",
                f"{PORT}/state": "4: ACTIVE\n",
                f"{PORT}/phys_state": "5: LinkUp\n",
                f"{PORT}/rate": "400 Gb/sec (4X NDR)\n",
                f"{PORT}/lid": "0x0\n",
                f"{PORT}/sm_lid": "0x0\n",
                f"{PORT}/gids/0": "fe80:0000:0000:0000:0002:c9ff:fea1:0010\n",
                f"{PORT}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000\n",
                f"{PORT}/gids/10": "0000:0000:0000:0000:0000:ffff:c0a8:0105\n",
                f"{PORT}/gid_attrs/types/0": "RoCE v2\n",
                f"{PORT}/gid_attrs/types/10": "RoCE v2\n",
                f"{PORT}/gid_attrs/ndevs/0": "ens1f0np0\n",
                f"{PORT}/gid_attrs/ndevs/10": "ens1f0np0.100\n",
                f"{PORT}/pkeys/0": "0xffff\n",
                f"{PORT}/counters/link_downed": "255\n",
                f"{PORT}/counters/port_rcv_data": "4294967295\n",
                f"{PORT}/counters/symbol_error": "N/A (no PMA)\n",
                f"{PORT}/hw_counters/out_of_sequence": "7\n",
                f"{PORT}/hw_counters/rx_icrc_encapsulated": "18446744073709551615\n",
                f"{PORT}/hw_counters/lifespan": "10\n",
            }
        )
    )


def probed(host: Machine) -> Outcome:
    return outcome_of(probe("rdma"), host)


def devices(host: Machine) -> dict[str, RdmaDevice]:
    return {device.name: device for device in probed(host).facts.devices}


def first_port(host: Machine) -> RdmaPort:
    return devices(host)["mlx5_0"].ports[0]


Parser = Callable[[str], ParsedTool]
KEYED = frozenset({"name", "port", "ports", "gids", "gids_known", "netdevs"})


def understood(parse: Parser, text: str) -> ParsedTool | None:
    """The answer, or None where the parser declares the text unparsable; any other error is the test's failure."""
    try:
        return parse(text)
    except ParseError:
        return None


def says_only_what_is_true(parse: Parser, text: str, length: int) -> None:
    """The first `length` characters tell nothing that the whole text does not tell."""
    whole = {device.name: device for device in parse(text).devices}
    start = understood(parse, text[:length])
    for device in start.devices if start else ():
        assert_told(device, whole[device.name])
        ports = {port.port: port for port in whole[device.name].ports}
        for port in device.ports:
            assert_told(port, ports[port.port])
            assert set(port.netdevs) <= set(ports[port.port].netdevs)
            assert set(port.gids) <= set(ports[port.port].gids)
            assert not port.gids_known or port.gids == ports[port.port].gids


def assert_told(part: RdmaDevice | RdmaPort, whole: RdmaDevice | RdmaPort) -> None:
    for field in part._fields:
        result = getattr(part, field)
        assert field in KEYED or result in (None, False) or result == getattr(whole, field), field
