"""A described machine (fixtures/) as lines for fabsim and `ip`: one description makes the fixture and the guest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from fixtures import ethtool, identifiers
from fixtures.config_space import PCIE, PM, assign_addresses, build_config_space
from fixtures.description import NetSpec, RdmaSpec
from fixtures.machine import FunctionNode, Machine
from fixtures.net import ipv4, list_interfaces, mac_of, operstate_of
from fixtures.nvml import build_nvml_records
from fixtures.rdma import COUNTERS, ETHERNET_COUNTERS, HARDWARE_COUNTERS, PHYSICAL, STATES, list_devices, node_guid
from tests.lab.place import NVML_ANSWERS
from tests.nvml.answers import table

Key = tuple[str, str, str]  # "fabsim", "ip" or "file"; address or path; what

CHUNK = 256
ACS = 0x000D  # an extended capability
SPEED_BITS = {"SDR": 1, "DDR": 2, "QDR": 4, "FDR10": 8, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128}
WIDTH_BITS = {"1X": 1, "4X": 2, "8X": 4, "12X": 8, "2X": 16}
OWN_BUS = "0000:00"  # of QEMU's own devices: what a description has there cannot be shown
STAND_INS = ("mlx5_core", "mlx5_ib", "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "gdrdrv")
NOT_IN_THE_AGENT = {"multicast_rcv_packets", "multicast_xmit_packets", "unicast_rcv_packets", "unicast_xmit_packets"}
ERROR_BITS = {  # as in the registers of AER
    "RxErr": 0, "BadTLP": 6, "BadDLLP": 7, "Rollover": 8, "Timeout": 12, "NonFatalErr": 13,
    "DLP": 4, "SDES": 5, "TLP": 12, "CmpltTO": 14, "CmpltAbrt": 15, "UnxCmplt": 16, "MalfTLP": 18, "UnsupReq": 20,
}  # fmt: skip
_NO_GPUS = {"nvmlInit_v2": None, "nvmlSystemGetDriverVersion": "570.124.06", "nvmlDeviceGetCount_v2": 0}
NOTHING = table({"function": name, "arguments": [], "answer": answer} for name, answer in _NO_GPUS.items())
LOAD_MODULES = (
    "modprobe -a ib_core ib_uverbs ib_umad rdma_cm rdma_ucm; "
    + "; ".join(f"insmod /lab/objects/{name}.ko" for name in [*STAND_INS, "fabsim"])
    + "; mknod /dev/nvidiactl c 195 255; for i in 0 1 2 3 4 5 6 7; do mknod /dev/nvidia$i c 195 $i; done"
)


def visible_functions(machine: Machine) -> list[FunctionNode]:
    """The functions that can be shown."""
    return [node for node in machine.nodes if node.root_bus != OWN_BUS]


def tree(machine: Machine) -> list[str]:
    """The PCI tree as the kernel is to find it, and then the ports below it."""
    last = {}
    for node in visible_functions(machine):
        key = (node.root_bus, node.bridge_numa)
        last[key] = max(last.get(key, 0), node.bus, node.subordinate)
    lines = []
    for (root, numa), bus in last.items():
        domain, first = root.split(":")
        lines.append(f"host {domain} {first} {bus:x} {numa}")
    placed = assign_addresses(machine)
    for node in visible_functions(machine):
        space = space_of(machine, node, placed)
        lines += list(_bytes("poke", node.address, space))
        lines += list(_bytes("writable", node.address, _writable(node, placed[node.address].bars, space)))
    lines.append("scan")
    for _, node, _, list_interface in list_interfaces(machine):
        if list_interface.type == 1 and node.root_bus != OWN_BUS:
            mac = mac_of(machine, node, list_interface)
            lines.append(f"net {node.address} {list_interface.speed_mbit_s} {mac} {list_interface.port_name}".rstrip())
    return lines


def space_of(machine: Machine, node: FunctionNode, placed: Any = None) -> bytes:
    """A config space as it is while the function answers."""
    return build_config_space(node, (placed or assign_addresses(machine))[node.address], machine.hostname)


def _bytes(word: str, address: str, space: bytes | bytearray) -> Iterator[str]:
    for offset in range(0, len(space), CHUNK):
        block = bytes(space[offset : offset + CHUNK])
        if any(block) or not offset:
            yield f"{word} {address} {offset:x} {block.hex()}"


def _writable(node: FunctionNode, bars: dict[int, tuple[int, int, bool]], space: bytes) -> bytearray:
    """What a kernel may change: it finds sizes of BARs and windows by writing to them, puts devices to sleep, and
    switches ACS on, by which the groups of the IOMMU are made."""
    mask = bytearray(4096)
    mask[4:6] = b"\x47\x05"
    mask[PM + 4] = 0x03
    mask[PCIE + 8 : PCIE + 10] = b"\xff\x7f"  # no reset by function
    for number, (_, size, wide) in bars.items():
        width = 8 if wide else 4
        start = 0x10 + 4 * number
        mask[start : start + width] = ((1 << 8 * width) - size & ~0xF).to_bytes(width, "little")
    index = 0x100 if len(space) > 0x100 else 0
    while index:
        header = int.from_bytes(space[index : index + 4], "little")
        if header & 0xFFFF == ACS:
            mask[index + 6] = 0x7F
        index = header >> 20
    if node.is_bridge:
        mask[0x18:0x1B] = b"\xff\xff\xff"
        mask[0x20:0x30] = b"\xf0\xff\xf0\xff\xf0\xff\xf0\xff" + b"\xff" * 8
    return mask


def repaired(machine: Machine) -> list[str]:
    """The capabilities and the command register again: a kernel evens payloads out, and switches ACS on by itself."""
    lines = []
    placed = assign_addresses(machine)
    for node in visible_functions(machine):
        if node.function.port != "conventional":
            space = space_of(machine, node, placed)
            lines += [f"poke {node.address} 4 {space[4:6].hex()}", f"poke {node.address} 40 {space[0x40:0x100].hex()}"]
            for start in range(0x100, len(space), CHUNK):
                if any(space[start : start + CHUNK]):
                    lines.append(f"poke {node.address} {start:x} {space[start : start + CHUNK].hex()}")
    return lines


def virtual_functions(machine: Machine, address: str, count: int) -> list[str]:
    """Config spaces of virtual functions, before the kernel is told to have them: SR-IOV with offset 2, stride 1."""
    (physical,) = [node for node in machine.nodes if node.address == address]
    empty = {"vendor": "ffff", "device": "ffff", "virtual_functions_supported": 0, "max_gen": 0, "aer": False}
    function = msgspec.structs.replace(physical.function, **empty)
    lines = []
    for number in range(2, 2 + count):
        node = replace(physical, address=f"{address[:-1]}{number}", function=function, gen=0, width=0)
        space = build_config_space(node, assign_addresses(machine)[address], machine.hostname)
        lines += list(_bytes("poke", node.address, space[:0x10] + bytes(0x24) + space[0x34:]))
    return lines


def pokes(before: Machine, after: Machine) -> list[str]:
    """What differs in the registers of two machines with the same tree."""
    lines = []
    old_places, new_places = assign_addresses(before), assign_addresses(after)
    old = {node.address: node for node in visible_functions(before)}
    for node in visible_functions(after):
        was, now = old[node.address].function, node.function
        if was.gone != now.gone:
            lines.append(f"{'gone' if now.gone else 'back'} {node.address}")
        if was.gone or now.gone:
            continue
        one, two = space_of(before, old[node.address], old_places), space_of(after, node, new_places)
        lines += [
            f"poke {node.address} {offset:x} {two[offset : offset + 4].hex()}"
            for offset in range(0, len(two), 4)
            if one[offset : offset + 4] != two[offset : offset + 4]
        ]
    return lines


def settings(machine: Machine) -> dict[Key, str]:
    """Everything that may change while a machine runs, a line each, in an order in which it can be told."""
    lines: dict[Key, str] = {}
    for node in visible_functions(machine):
        lines |= {("fabsim", node.address, key): line for key, line in _function(node)}
    for _, node, name, list_interface in list_interfaces(machine):
        if list_interface.type == 1 and node.root_bus != OWN_BUS:
            lines |= {("fabsim", node.address, key): line for key, line in _port(node, list_interface)}
            lines |= {("ip", node.address, key): line for key, line in _addresses(node, name, list_interface)}
    for number, node, rdma, name in list_devices(machine):
        if node.root_bus != OWN_BUS:
            output = _card(machine, number, node, rdma, name)
            lines |= {("fabsim", node.address, f"ib {key}"): line for key, line in output}
    files = machine.description.files | {NVML_ANSWERS: build_answers(machine)}
    return lines | {("file", path, ""): text for path, text in files.items()}


def build_answers(machine: Machine) -> str:
    """What NVML says of it."""
    records = build_nvml_records(machine)
    return table(records) if records else NOTHING


def differing(before: dict[Key, str], after: dict[Key, str]) -> tuple[list[str], list[str], dict[str, str]]:
    """What leads from the one to the other: lines for fabsim, lines for `ip`, files to write (empty: to remove)."""
    anew = {key[1] for key, line in after.items() if key[2] == "ib device" and before.get(key) != line}
    lines: dict[str, list[str]] = {"fabsim": [], "ip": []}
    lines["fabsim"] += [f"remove {address}" for address in anew if ("fabsim", address, "ib device") in before]
    changed = [key for key in before | after if before.get(key) != after.get(key)]
    files = {key[1]: after.get(key, "") for key in changed if key[0] == "file"}
    for key, line in after.items():
        if key[0] == "file":
            continue
        if before.get(key) != line or (key[1] in anew and key[2].startswith("ib ")):
            lines[key[0]].append(line)
    return lines["fabsim"], lines["ip"], files


def _function(node: FunctionNode) -> Iterator[tuple[str, str]]:
    if node.function.aer:
        for kind in ("correctable", "fatal", "nonfatal"):
            output = [name.partition(".") for name in node.function.errors if name.startswith(f"{kind}.")]
            counts = [f"{ERROR_BITS[name]}:{node.function.errors[f'{kind}.{name}']}" for _, _, name in output]
            yield f"aer {kind}", " ".join(["aer", node.address, kind[0], *counts])
    yield "numa", f"numa {node.address} {node.numa}"


def _port(node: FunctionNode, output: NetSpec) -> Iterator[tuple[str, str]]:
    index = node.address
    up = operstate_of(node, output) == "up"
    yield "speed", f"speed {index} {output.speed_mbit_s}"
    pause = output.pause.split()
    yield "pause", f"pause {index} {int('rx' in pause)} {int('tx' in pause)}"
    if output.qos:
        yield "pfc", f"pfc {index} {sum(1 << priority for priority in output.qos.pfc):x}"
        entries = "".join(f"\ndscp {index} {dscp} {priority}" for dscp, priority in output.qos.dscp.items())
        yield "trust", f"trust {index} {output.qos.trust}{entries}"
    if node.function.rdma:
        yield "firmware", f"firmware {index} {node.function.rdma.firmware} ({node.function.rdma.board_id})"
    for counter, value in ethtool.build_counters(output).items():
        yield f"stat {counter}", f"stat {index} {counter} {value}"
    yield "carrier", f"carrier {index} {int(up)}"


def _addresses(node: FunctionNode, name: str, output: NetSpec) -> Iterator[tuple[str, str]]:
    yield "mtu", f"link set dev {name} mtu {output.mtu}"
    yield "up", f"link set dev {name} up"
    if output.address:
        yield "address", f"address add {ipv4(node, output)}/24 dev {name}"


def _card(machine: Machine, number: int, node: FunctionNode, output: RdmaSpec, name: str) -> Iterator[tuple[str, str]]:
    at, infiniband = node.address, output.link_layer == "InfiniBand"
    layer = "ib" if infiniband else "eth" if "RoCE v2" in output.gid_types else "v1"
    first = node.address.rpartition(".")[0] + ".0"
    image = identifiers.guid_of_mac(identifiers.make_mac(machine.hostname, output.image or first)).replace(":", "")
    own = node_guid(machine, node).replace(":", "")
    yield "device", f"ib {at} {name} {layer} {own} {image} {machine.hostname}"
    yield "card", f"card {at} {output.hca_type} {output.board_id} {output.firmware}"
    up = output.state in ("ARMED", "ACTIVE")
    lid = 0x100 + number if up else 0xFFFF if output.state == "DOWN" else 0
    width, speed = output.rate.rpartition("(")[2].rstrip(")").split()
    if output.state == "DOWN" and infiniband:
        width, speed = "4X", "SDR"
    words = [STATES[output.state], PHYSICAL[output.phys_state], SPEED_BITS[speed], WIDTH_BITS[width]]
    words += [lid if infiniband else 0, output.sm_lid if infiniband and up else 0]
    yield "port", f"port {at} {' '.join(map(str, words))}"
    known = [name for name in COUNTERS if name not in NOT_IN_THE_AGENT] + HARDWARE_COUNTERS
    known += [] if infiniband else ETHERNET_COUNTERS
    for counter in known:
        default = 1_000_000 if counter.endswith(("_data", "_packets")) and up and counter in COUNTERS else 0
        yield counter, f"counter {at} {counter} {output.counters.get(counter, default)}"
