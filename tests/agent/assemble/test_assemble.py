"""Assembly of a report: the whole, its node and the order of its parts."""

from __future__ import annotations

import random
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.assemble import Assembled, assemble
from agent.assemble.facts import card_address, sort_key
from agent.model.node import Chassis, Node
from agent.model.topology import Topology
from probes.catalogue import providers
from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.kernel.system import KernelFacts
from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.facts import PciFacts
from probes.probe import Outcome, Status
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.system.cpu import CpuPackage
from probes.system.dmi import DmiFacts
from probes.system.numa import NumaFacts, NumaNodeFacts
from tests.agent.assemble.boards import assemble_facts, driver, hgx, outcome

# The whole assembly: the same facts give the same bytes, whatever order they come in.


def encode_assembled(assembled_: Assembled) -> bytes:
    """The body of a report."""
    return msgspec.json.encode(
        [assembled_.node, assembled_.platform, assembled_.software, assembled_.events, assembled_.topology]
    )


def facts(shuffle: random.Random | None = None) -> list[Outcome]:
    """A machine of every kind of row; shuffled, the same in another order."""
    functions = list(hgx(8, nics_per_switch=2).functions)
    addresses = [f"0000:{0x10 * n + 3:02x}:00.0" for n in range(1, 9)]
    gpus = [Gpu(index=n, address=address) for n, address in enumerate(addresses)]
    nics = [f"0000:{0x10 * n + 4:02x}:00.0" for n in range(1, 9)]
    devices = [RdmaDevice(f"mlx5_{n}", a, ports=(RdmaPort(1, state="ACTIVE"),)) for n, a in enumerate(nics)]
    interfaces = [Netdev(f"ib{n}", address) for n, address in enumerate(nics)]
    cells = [PairCell(f"GPU{a}", f"GPU{b}", "NV18") for a in range(8) for b in range(a + 1, 8)]
    for rows in (functions, gpus, devices, interfaces, cells) if shuffle else ():
        shuffle.shuffle(rows)  # type: ignore[arg-type]  # lists of several kinds
    outcomes = [
        outcome("pci", PciFacts(tuple(functions))),
        outcome("nvml", driver(gpus, pairs=tuple(cells))),
        outcome("rdma", RdmaFacts(tuple(devices))),
        outcome("netdev", NetdevFacts(tuple(interfaces))),
    ]
    if shuffle:
        shuffle.shuffle(outcomes)
    return outcomes


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_facts_does_not_show(seed: int) -> None:
    """Lists are sorted by identity, not by arrival."""
    assert encode_assembled(assemble(facts(), providers())) == encode_assembled(
        assemble(facts(random.Random(seed)), providers())
    )


def test_nothing_known_is_an_empty_topology() -> None:
    """No probe answered."""
    failed = Outcome("pci", Status.FAILED, None, "broken", (), 0.0)

    assert Topology() == assemble([failed], providers()).topology
    assert Topology() == assemble([], providers()).topology


def test_every_reference_leads_to_a_row() -> None:
    """By id."""
    result = assemble(facts(), providers()).topology
    functions = {row.id for row in result.pci}
    ends = {row.id for row in (*result.gpus, *result.nics)}

    assert {row.pci for row in (*result.gpus, *result.nics, *result.netdevs)} <= functions
    assert {row.parent for row in result.pci if row.parent} <= functions
    assert {end for path in result.paths for end in (path.a, path.b)} <= ends
    assert {row.nic for row in result.netdevs} <= ends
    assert len(result.paths) == 8 * 7 / 2 + 8 * 16


def test_the_bandwidth_mode_is_the_driver_s() -> None:
    """Of either source."""
    assert "half" == assemble_facts(nvidia_smi=GpuFacts((), bandwidth_mode="half")).topology.bandwidth_mode


def test_gpus_that_the_driver_names_and_the_bus_lacks_leave_no_fingerprint() -> None:
    """A listing that was cut after four of eight GPUs is no machine of four."""
    listed = hgx(4)
    some = [Gpu(index=n, address=f"0000:{0x13 + 0x10 * n:02x}:00.0") for n in range(5)]

    assert "hgx-h100-4" == assemble_facts(pci=listed.facts(), nvml=driver(some[:4])).platform.profile
    assert None is assemble_facts(pci=listed.facts(), nvml=driver(some)).platform.profile


def test_the_cost_of_all_pairs_stays_small() -> None:
    """Parent walks are cached: a third more functions a pair would show as a square."""
    small, large = (_steps(hgx(n, nics_per_switch=4).functions) for n in (5, 15))

    assert large <= small * 12  # nine times the pairs, three times the functions


def _steps(functions: object) -> int:
    """Python calls that one assembly makes: what a clock would measure, without its noise."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    outcomes = [outcome("pci", PciFacts(tuple(functions)))]  # type: ignore[arg-type]  # a list of functions
    sys.setprofile(counted)
    try:
        assemble(outcomes, providers())
    finally:
        sys.setprofile(None)
    return count


# The node: what the host probes say, and null where they are silent.


def test_every_probe_gives_its_part() -> None:
    """A NUMA node without CPUs keeps its empty list: it is memory of a GPU."""
    node = assemble_facts(
        kernel=KernelFacts(hostname="n1", virtualization="kvm", virtualization_known=True, uptime_seconds=5.12345),
        dmi=DmiFacts(vendor="NVIDIA", product="DGXH100", serial="S1", chassis_serial="C1"),
        cpu=CpuPackage(vendor="ARM", sockets=2),
        numa=NumaFacts((NumaNodeFacts(1, "", 98304), NumaNodeFacts(0, "0-71", distances=(10, 80)))),
    ).node

    assert ("n1", "kvm", True, 5.123) == (
        node.hostname,
        node.virtualization,
        node.virtualization_known,
        node.uptime_seconds,
    )
    assert ("NVIDIA", "DGXH100", "S1", "C1") == (node.vendor, node.product, node.serial, node.chassis.serial)
    assert ("ARM", 2) == (node.cpu.vendor, node.cpu.sockets)
    assert [(0, "0-71", [10, 80]), (1, "", [])] == [(n.id, n.cpus, n.distances) for n in node.numa_nodes]


def test_silence_is_null() -> None:
    """Nothing answered."""
    assert Node() == assemble_facts(kernel=None, dmi=None).node


def rack(*places: tuple[str | None, str, str]) -> GpuFacts:
    return GpuFacts(tuple(Gpu(index=n, chassis_serial=c, slot=s, tray=t) for n, (c, s, t) in enumerate(places)))


def test_gpus_of_a_rack_say_where_they_sit() -> None:
    """Where they agree; the serial number of firmware comes first."""
    same = rack(("R1", "24", "15"), ("R1", "24", "15"))
    alone = assemble_facts(nvml=same).node.chassis
    firmware = assemble_facts(dmi=DmiFacts(chassis_serial="C1"), nvidia_smi=same).node.chassis

    assert ("R1", "24", "15") == (alone.serial, alone.slot, alone.tray)
    assert ("C1", "24", "15") == (firmware.serial, firmware.slot, firmware.tray)
    assert Chassis() == assemble_facts(nvml=rack(("R1", "24", "15"), ("R1", "25", "16"))).node.chassis
    assert Chassis() == assemble_facts(nvml=rack((None, "24", "15"))).node.chassis


# Rows are ordered by identity, numbers as numbers.


def test_addresses_come_first_by_domain_as_a_number() -> None:
    """A five-digit domain is greater than every four-digit one, whatever its letters."""
    names = ["mlx5_2", "10000:00:02.0", "0009:01:00.0", "ffff:00:00.0", "0009:01:00.1", "mlx5_10"]

    assert ["0009:01:00.0", "0009:01:00.1", "ffff:00:00.0", "10000:00:02.0", "mlx5_2", "mlx5_10"] == sorted(
        names, key=sort_key
    )


@given(st.lists(st.text(max_size=12), unique=True), st.randoms())
def test_any_names_have_one_order(names: list[str], random: object) -> None:
    """The order does not depend on the order in which names come, and no name is too odd to be ordered."""
    shuffled = sorted(names)

    assert sorted(shuffled, key=lambda n: (sort_key(n), n)) == sorted(names, key=lambda n: (sort_key(n), n))


def test_functions_of_one_card_share_their_slot() -> None:
    """The card is the address without its function."""
    assert card_address("0000:1b:00.0") == card_address("0000:1b:00.1")


def test_a_number_of_any_length_is_ordered() -> None:
    long = "9" * 65_530
    assert sorted([f"eth{long}", "eth10", "eth9", "eth\u0663" + "\u0663" * 5000], key=sort_key)[:2] == ["eth9", "eth10"]
