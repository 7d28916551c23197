"""Roles of NICs: every line of the table, and what the machines of the field must come to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from probes.gpu.facts import Gpu, GpuFacts
from probes.gpu.nvidia_smi_topo import parse_matrix
from probes.kernel.system import KernelFacts
from probes.netdev.probe import Netdev, NetdevFacts
from probes.optics.facts import ModuleReading
from probes.optics.probe import ModuleSocket, OpticsFacts
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from tests.agent.assemble.boards import GEN3, GEN4, Board, assemble_facts, driver, hgx


def roles(**facts: object) -> dict[str, str]:
    """Role by NIC."""
    return {nic.id: nic.role for nic in assemble_facts(**facts).topology.nics}


def ports(rates: Mapping[str, int | None], layer: str = "InfiniBand") -> RdmaFacts:
    """One device a function: active at a rate (Gb/s), or dark."""
    result = []
    for place, (address, rate) in enumerate(rates.items()):
        port = RdmaPort(1, layer, "DOWN", "Polling", "10 Gb/sec (4X SDR)")
        if rate is not None:
            port = RdmaPort(1, layer, "ACTIVE", "LinkUp", f"{rate} Gb/sec")
        result.append(RdmaDevice(f"mlx5_{place}", address, ports=(port,)))
    return RdmaFacts(tuple(result))


def with_card(board: Board, bus: str, device: str, functions: int, numa: int = 0, **fields: object) -> list[str]:
    """Adds a card of its own root port, near to no GPU."""
    root = board.root_port(f"0000:{bus}:01.0", numa=numa)
    card = f"{int(bus, 16) + 1:02x}"
    return [board.nic(f"0000:{card}:00.{n}", root, device=device, **fields) for n in range(functions)]


def test_one_nic_a_switch_and_all_are_rails() -> None:
    """HGX with a NIC for every GPU."""
    assert {"rail"} == set(roles(pci=hgx(8).facts()).values())


def test_dual_port_cards_are_two_rails_each() -> None:
    """A RoCE HGX with 16 ports."""
    board = hgx(8)
    for function in [f for f in board.functions if f.vendor == "0x15b3"]:
        board.nic(f"{function.address[:-1]}1", function.parent)
    result = roles(pci=board.facts())

    assert (16, {"rail"}) == (len(result), set(result.values()))


def test_four_nics_for_eight_gpus_are_all_rails() -> None:
    """Half of the GPUs have none nearby."""
    board = hgx(8)
    nics = [f.address for f in board.functions if f.vendor == "0x15b3"]
    board.functions = [f for f in board.functions if f.address not in nics[::2]]

    assert {"rail"} == set(roles(pci=board.facts()).values())


def test_a_slower_model_beside_the_rails_is_for_management() -> None:
    """On the same switch as GPU and rail; reported by its host link where no port says a rate."""
    board = hgx(4)
    board.nic("0000:19:00.0", board.downstream("0000:12:09.0", "0000:11:00.0"), "0x101d", speed=GEN4)
    result = roles(pci=board.facts())
    rated = roles(pci=board.facts(), rdma=ports({"0000:19:00.0": 100, "0000:14:00.0": 400}))

    assert "management" == result.pop("0000:19:00.0")
    assert {"rail"} == set(result.values())
    assert "management" == rated["0000:19:00.0"]


def test_a_far_dual_port_card_of_another_board_is_for_storage() -> None:
    """The DGX A100: the same chip as the rails on another board, as fast."""
    board = hgx(8, nic="0x101b")
    for function in [f for f in board.functions if f.vendor == "0x15b3"]:
        board.change(function.address, subsystem_vendor="0x15b3", subsystem_device="0x0007")
    card = with_card(board, "e0", "0x101b", 2, subsystem_vendor="0x15b3", subsystem_device="0x0009")
    result = roles(pci=board.facts())

    assert ["storage", "storage"] == [result.pop(function) for function in card]
    assert {"rail"} == set(result.values())


def test_a_near_card_of_another_model_as_fast_is_ambiguous() -> None:
    """Storage is reported by its distance; a fast card beside a rail may be anything."""
    board = hgx(4)
    port = board.downstream("0000:12:09.0", "0000:11:00.0")
    cards = [board.nic(f"0000:19:00.{n}", port, "0xa2dc") for n in (0, 1)]
    result = roles(pci=board.facts())

    assert ["unknown", "unknown"] == [result[card] for card in cards]


def test_a_far_card_like_the_rails_is_ambiguous() -> None:
    """A spare, a storage NIC, or a rail in the wrong slot: it is not called a rail."""
    board = hgx(4)
    (far,) = with_card(board, "e0", "0x1021", 1)

    assert "unknown" == roles(pci=board.facts())[far]


def test_slow_cards_are_for_management_whatever_is_near() -> None:
    """25 Gb/s on the board; but a rail that fell to 25 Gb/s is still of a fast model."""
    board = hgx(2)
    slow = with_card(board, "e0", "0x1015", 2)
    interfaces = NetdevFacts(tuple(Netdev(f"eno{n}", item, speed_mbit_s=25000) for n, item in enumerate(slow)))
    result = roles(pci=board.facts(), netdev=interfaces)
    fallen = roles(pci=board.facts(), rdma=ports({"0000:14:00.0": 25, "0000:24:00.0": 400}))

    assert ["management", "management"] == [result[item] for item in slow]
    assert ["rail", "rail"] == [fallen["0000:14:00.0"], fallen["0000:24:00.0"]]


def test_a_narrow_host_link_is_slow_enough_to_tell() -> None:
    """Gen3 x4 carries no 100 Gb/s."""
    board = hgx(2)
    (narrow,) = with_card(board, "e0", "0x1017", 1, speed=GEN3, width=4)

    assert "management" == roles(pci=board.facts())[narrow]


@pytest.mark.parametrize("kind", ["limited", "software", "function"])
def test_what_is_not_for_jobs_is_auxiliary(kind: str) -> None:
    """The fabric manager's, software, and virtual functions beside physical ones."""
    board = hgx(1)
    odd = "0000:15:00.0"
    board.nic(odd, "0000:12:01.0", physical_function="0000:14:00.0" if kind == "function" else None)
    device = RdmaDevice("mlx5_9", odd, limited="SW_MNG") if kind == "limited" else RdmaDevice("mlx5_9", odd)
    device = RdmaDevice("rxe0", software=True) if kind == "software" else device
    result = roles(pci=board.facts(), rdma=RdmaFacts((device,)))

    assert "auxiliary" == result["rxe0" if kind == "software" else odd]
    assert "rail" == result["0000:14:00.0"]


def test_a_nic_given_to_a_guest_is_nobody_s_rail_here() -> None:
    """vfio."""
    board = hgx(2)
    board.change("0000:14:00.0", driver="vfio-pci")

    assert {"0000:14:00.0": "unknown", "0000:24:00.0": "rail"} == roles(pci=board.facts())


def test_a_rail_without_a_driver_is_still_a_rail() -> None:
    """It is missed by its place."""
    board = hgx(2)
    board.change("0000:14:00.0", driver="")

    assert "rail" == roles(pci=board.facts())["0000:14:00.0"]


def test_without_gpus_nothing_is_a_rail() -> None:
    """A CPU node with an InfiniBand card."""
    board = Board()
    with_card(board, "e0", "0x1021", 1)

    assert ["unknown"] == list(roles(pci=board.facts()).values())


def test_where_nothing_tells_distances_nothing_is_a_rail() -> None:
    """GPUs of nvidia-smi -q and NICs of ibstat: no tree, no matrix."""
    tool = GpuFacts((Gpu(index=0, address="0000:13:00.0"),))

    assert {"mlx5_0": "unknown"} == roles(nvidia_smi=tool, rdma_tools=RdmaFacts((RdmaDevice("mlx5_0"),)))


def plain(cards: Mapping[str, str], gpus: int = 2) -> Board:
    """GPUs and NICs each on a root port of its own: bus -> device id of a dual-port card."""
    board = Board()
    for place in range(gpus):
        board.gpu(f"0000:{0x10 * place + 1:02x}:00.0", board.root_port(f"0000:{0x10 * place:02x}:01.0"))
    for bus, device in cards.items():
        with_card(board, bus, device, 2)
    return board


def test_a_server_without_switches_has_rails_where_there_is_one_model() -> None:
    """PCIe servers: two cards of one model; two models at one distance are ambiguous, a nearer one is not."""
    nearer = plain({"80": "0x1021"})
    port = nearer.root_port("0000:00:05.0")
    nearer.nic("0000:09:00.0", port, device="0x1023")

    assert {"rail"} == set(roles(pci=plain({"80": "0x1021", "a0": "0x1021"}).facts()).values())
    assert {"unknown"} == set(roles(pci=plain({"80": "0x1021", "a0": "0x1023"}).facts()).values())
    assert "rail" == roles(pci=nearer.facts())["0000:09:00.0"]


def test_where_all_gpus_are_given_to_guests_what_is_left_far_from_them_is_no_rail() -> None:
    """Their NICs may be given away, too: what is left is the host's own. One GPU of the host needs rails."""
    board = plain({"80": "0x1021"})
    board.change("0000:01:00.0", driver="vfio-pci")

    assert {"rail"} == set(roles(pci=board.facts()).values())
    board.change("0000:11:00.0", driver="vfio-pci")
    assert {"unknown"} == set(roles(pci=board.facts()).values())


def test_on_c2c_platforms_the_model_of_most_cards_is_the_rail() -> None:
    """GB200: four ConnectX-7, two dual-port BlueField-3; NODE or SYS from every GPU is normal."""
    board = plain({}, gpus=4)
    board.root_port("0008:00:00.0", vendor="0x10de", device="0x22b1")
    rails = [with_card(board, bus, "0x1021", 1)[0] for bus in ("80", "90", "a0", "b0")]
    dpus = with_card(board, "c0", "0xa2dc", 2) + with_card(board, "d0", "0xa2dc", 2)
    result = roles(pci=board.facts(), rdma=ports(dict.fromkeys(rails, 400) | dict.fromkeys(dpus, 200)))

    assert ["rail"] * 4 == [result[rail] for rail in rails]
    assert ["management"] * 4 == [result[dpu] for dpu in dpus]


def test_gpu_memory_that_is_a_numa_node_tells_a_c2c_platform() -> None:
    """Where neither NVML nor the bus says C2C, as in a saved matrix: GPU NUMA ID is a number."""
    board = plain({}, gpus=1)
    rails = [with_card(board, bus, "0x1021", 1)[0] for bus in ("80", "90")]
    (dpu,) = with_card(board, "c0", "0xa2dc", 1)
    gpu = Gpu(index=0, address="0000:01:00.0", memory_numa_node=1)
    result = roles(pci=board.facts(), nvml=driver([gpu]))
    otherwise = roles(pci=board.facts())

    assert (["rail", "rail"], "unknown") == ([result[rail] for rail in rails], result[dpu])
    assert {"unknown"} == set(otherwise.values())


def test_in_a_virtual_machine_most_functions_are_the_rails() -> None:
    """A cloud: InfiniBand functions of one model, and one for the front-end."""
    board = Board()
    for place in range(4):
        board.gpu(f"{place + 1:04x}:00:00.0", None)
        board.nic(f"{0x101 + place:04x}:00:00.0", None, device="0x101e")
    board.nic("7000:00:00.0", None, device="0x101e", kind="0x020000")
    devices = ports({f"{0x101 + n:04x}:00:00.0": 400 for n in range(4)}).devices
    front = RdmaDevice("mlx5_an0", "7000:00:00.0", ports=(RdmaPort(1, "Ethernet", "ACTIVE", rate_text="100 Gb/sec"),))
    machine = KernelFacts(virtualization="microsoft", virtualization_known=True)
    result = roles(pci=board.facts(), rdma=RdmaFacts((*devices, front)), kernel=machine)

    assert "management" == result.pop("7000:00:00.0")
    assert {"rail"} == set(result.values())


def test_a_dark_rail_among_lit_ones_is_a_rail() -> None:
    """Its cable is missed."""
    lit = {f"0000:{0x10 * n + 4:02x}:00.0": 400 for n in range(1, 5)}

    assert {"rail"} == set(roles(pci=hgx(4).facts(), rdma=ports(lit | {"0000:14:00.0": None})).values())


def test_second_ports_that_are_all_dark_were_never_cabled() -> None:
    """But one dark among lit second ports lost its cable."""
    board = hgx(2)
    for bus in ("14", "24"):
        board.nic(f"0000:{bus}:00.1", f"0000:{int(bus, 16) - 2:02x}:01.0")
    first = {"0000:14:00.0": 400, "0000:24:00.0": 400}
    never = roles(pci=board.facts(), rdma=ports(first | {"0000:14:00.1": None, "0000:24:00.1": None}))
    lost = roles(pci=board.facts(), rdma=ports(first | {"0000:14:00.1": None, "0000:24:00.1": 400}))

    assert ["rail", "unused", "rail", "unused"] == list(never.values())
    assert {"rail"} == set(lost.values())


@pytest.mark.parametrize(
    ("interface", "role"),
    [
        ({"addresses": ("10.0.0.1/31",), "admin_up": True}, "rail"),
        ({"addresses": ("10.0.0.1/31",), "admin_up": None}, "rail"),
        ({"addresses": ("10.0.0.1/31",), "admin_up": False}, "unused"),
        ({"addresses": ("fe80::1/64",), "admin_up": True}, "unused"),
        ({"admin_up": True}, "unused"),
        ({"name": "with_module", "admin_up": True}, "rail"),
        ({"name": "empty_cage", "admin_up": True}, "unused"),
        ({"name": "with_module", "admin_up": False}, "unused"),
    ],
)
def test_dark_second_ports_that_are_set_up_were_cabled(interface: Mapping[str, object], role: str) -> None:
    """An address that somebody gave, or a module in the cage, of an interface that is not switched off."""
    board = hgx(2)
    seconds = ["0000:14:00.1", "0000:24:00.1"]
    for address in seconds:
        board.nic(address, f"0000:{int(address[5:7], 16) - 2:02x}:01.0")
    rates = {"0000:14:00.0": 400, "0000:24:00.0": 400, **dict.fromkeys(seconds)}
    netdevs = NetdevFacts(tuple(Netdev(**{"name": f"eth{n}", "address": seconds[n], **interface}) for n in (0, 1)))
    optics = OpticsFacts((ModuleSocket("with_module", ModuleReading("OSFP")), ModuleSocket("empty_cage", reason="EIO")))

    assert {role} == {roles(pci=board.facts(), rdma=ports(rates), netdev=netdevs, optics=optics)[s] for s in seconds}


def test_rails_that_are_all_dark_are_a_fault_but_a_single_dark_card_is_not() -> None:
    """A switch that is down must be seen; a card that nobody uses must not be."""
    board = hgx(2)
    (single,) = with_card(board, "e0", "0x101d", 1)
    dark = {"0000:14:00.0": None, "0000:24:00.0": None}

    assert {"rail"} == set(roles(pci=hgx(2).facts(), rdma=ports(dark)).values())
    assert {"unused"} == set(roles(pci=hgx(1).facts(), rdma=ports({"0000:14:00.0": None})).values())
    assert "unused" == roles(pci=board.facts(), rdma=ports(dark | {single: None}))[single]


@pytest.mark.parametrize(("lid", "role"), [(17, "rail"), (0, "unused"), (0xFFFF, "unused"), (None, "unused")])
def test_a_dark_port_with_a_lid_was_cabled(lid: int | None, role: str) -> None:
    """A subnet manager gave it one; without it, the second ports were never used."""
    board = hgx(2)
    for bus in ("14", "24"):
        board.nic(f"0000:{bus}:00.1", f"0000:{int(bus, 16) - 2:02x}:01.0")
    facts = ports({"0000:14:00.0": 400, "0000:24:00.0": 400, "0000:14:00.1": None, "0000:24:00.1": None})
    last = facts.devices[-1]
    lost = last._replace(ports=(last.ports[0]._replace(lid=lid),))

    found = roles(pci=board.facts(), rdma=RdmaFacts((*facts.devices[:-1], lost)))

    assert (role, "unused") == (found["0000:24:00.1"], found["0000:14:00.1"])


@pytest.mark.parametrize("others", [100, None])
def test_a_dark_rail_whose_gpu_is_gone_stays_a_rail(others: int | None) -> None:
    """Its switch has nothing where the others have a GPU: it was cabled, all rails dark or not."""
    board = hgx(8)
    board.functions = [f for f in board.functions if f.address != "0000:33:00.0"]
    nics = [f.address for f in board.functions if f.vendor == "0x15b3"]

    found = roles(pci=board.facts(), rdma=ports({nic: None if nic == "0000:34:00.0" else others for nic in nics}))

    assert {"rail"} == set(found.values())


@pytest.mark.parametrize("case", ["another shape", "something in its place", "no switch", "another board"])
def test_a_nic_like_the_rails_whose_switch_lacks_no_gpu_is_no_rail(case: str) -> None:
    """Its switch must be like theirs, with nothing where theirs have a GPU."""
    board = hgx(8)
    board.functions = [f for f in board.functions if f.address != "0000:33:00.0"]
    if case == "another shape":
        board.downstream("0000:32:09.0", "0000:31:00.0")
    elif case == "something in its place":
        board.device("0000:33:00.0", "0000:32:00.0", "0x010802", "0x144d", "0xa80a")
    elif case == "another board":
        board.change("0000:34:00.0", subsystem_vendor="0x15b3", subsystem_device="0x0009")
    else:
        board.change("0000:34:00.0", parent="0000:30:01.0")

    assert "unknown" == roles(pci=board.facts())["0000:34:00.0"]


def test_every_role_has_its_evidence() -> None:
    """Distance first, in the words of the matrix, then why."""
    board = hgx(2)
    result = assemble_facts(pci=board.facts(), nvml=driver([Gpu(index=7, address="0000:13:00.0")]))

    assert ["PIX to GPU7", "ConnectX-7 is near to 2 of 2 GPUs"] == result.topology.nics[0].role_evidence


# (rails, neither rail nor anything else that we could know) of saved matrices without any other source
MATRICES = {
    "8gpu-dgxa100-nps4-12mlx5": ({0, 1, 2, 3, 6, 7, 8, 9}, {4, 5, 10, 11}),
    "8gpu-nv18-12nic-single-numa": ({0, 1, 2, 5, 6, 7, 8, 11}, {3, 4, 9, 10}),
    "8gpu-h200-10nic-ansi": ({3, 4, 5, 6, 7, 8, 9}, {0, 1, 2}),
    "8gpu-h200-8nic-shuffled-rails": (set(range(8)), set()),
    "8gpu-b300-8xcx8-bond-pxb": (set(range(8)), set()),
    "8gpu-a800-8bond-vm-124cpu": (set(range(8)), set()),
    "8gpu-h100-dell-6nic-cpuset-affinity": (set(), set(range(6))),
    "4gpu-a100-leonardo-4hdr100": (set(range(4)), set()),
    "4gpu-h100-nv6-1nic-each-numa8": (set(range(4)), set()),
    "4gpu-gb200-8nic-gpunumaid": (set(), set(range(8))),
    "4gpu-gb200-6nic-TRUNCATED": (set(), set(range(6))),
    "2gpu-h100pcie-4nic-all-on-socket0": (set(range(4)), set()),
    "2gpu-rtx6000ada-2nic-wrx90": ({0, 1}, set()),
    "4gpu-v100-nic-remote-socket": ({0}, set()),
    "8gpu-p40-pcie-nic-on-other-socket": ({0}, set()),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_of_real_machines(corpus: Path, name: str) -> None:
    """No model, no speed, only distances: what is a rail is told, and what is not is left open."""
    output = parse_matrix((corpus / "text" / "nvidia-smi-topo-m" / f"{name}.txt").read_text())
    made = assemble_facts(nvidia_smi=GpuFacts(output.gpus, pairs=output.pairs, nic_names=output.nic_names))
    result: dict[str, set[int]] = {"rail": set(), "unknown": set()}
    for nic in made.topology.nics:
        result[nic.role].add(int("".join(filter(str.isdigit, nic.label.rpartition("_")[2]))))

    assert MATRICES[name] == (result["rail"], result["unknown"])
