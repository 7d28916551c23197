"""Assembly of a report: the whole, its node, its software, and the order of its parts."""

from __future__ import annotations

import random
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.assemble import Assembled, assemble
from agent.assemble.facts import ProbeFacts, card_address, sort_key
from agent.assemble.node import build_limits, build_nccl, compute_shared_memory, list_device_nodes, select_parameters
from agent.model.node import Chassis, Nccl, Node, Software
from agent.model.topology import Topology
from probes.catalogue import providers
from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.kernel.modules import KernelModule, ModuleFacts
from probes.kernel.system import KernelFacts
from probes.nccl.jobs import NcclVariable
from probes.nccl.probe import NcclFacts, NcclLibraryFile
from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.facts import PciFacts
from probes.probe import Outcome, Status
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.services.probe import ServiceFacts, ServiceState
from probes.system.cpu import CpuPackage
from probes.system.dmi import DmiFacts
from probes.system.limits import LimitFacts, ResourceLimit
from probes.system.numa import NumaFacts, NumaNodeFacts
from tests.agent.assemble.boards import assemble_facts, driver, hgx, outcome
from tests.texts import read_fields

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

    assert ("n1", "kvm", True, 5.123) == read_fields(
        node, "hostname virtualization virtualization_known uptime_seconds"
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


# Software of a report: driver, modules, services, NCCL and limits.


def test_the_running_driver_speaks_before_a_tool() -> None:
    """NVML, then /proc, then what nvidia-smi printed; the flavour is known from /proc."""
    loaded = ModuleFacts((), nvidia_version="570.86.15", nvidia_open=True)
    tool = GpuFacts((), driver_version="560.1", cuda_version="12.6")
    live = assemble_facts(nvml=GpuFacts((), driver_version="570.86.15"), modules=loaded, nvidia_smi=tool).software
    proc = assemble_facts(modules=loaded, nvidia_smi=tool).software
    text = assemble_facts(nvidia_smi=tool).software

    assert ("570.86.15", True, "12.6") == (live.driver.version, live.driver.open, live.driver.cuda)
    assert "570.86.15" == proc.driver.version
    assert ("560.1", None) == (text.driver.version, text.driver.open)


def test_modules_of_both_sources_are_one_sorted_list() -> None:
    """lsmod knows names, sysfs knows versions."""
    software_facts = assemble_facts(
        modules=ModuleFacts(
            (KernelModule("nvidia", "570.1"),), rdma_stack="ofed", ofed="24.10", peer_memory_clients=("b", "a")
        ),
        lsmod=ModuleFacts((KernelModule("nvidia"), KernelModule("mlx5_ib"))),
        services=ServiceFacts(
            (ServiceState("nvidia-persistenced", "active"), ServiceState("nvidia-fabricmanager", "failed", "1"))
        ),
    ).software

    assert [("mlx5_ib", None), ("nvidia", "570.1")] == [(m.name, m.version) for m in software_facts.modules]
    assert ("ofed", "24.10") == (software_facts.rdma_stack.kind, software_facts.rdma_stack.version)
    assert ["a", "b"] == software_facts.peer_memory_clients
    assert [("nvidia-fabricmanager", "failed", "1"), ("nvidia-persistenced", "active", None)] == [
        (s.name, s.state, s.version) for s in software_facts.services
    ]


def test_silence_about_software_is_unknown() -> None:
    """Nothing answered."""
    assert Software() == assemble_facts().software


def test_the_fabric_s_daemons_and_confidential_computing() -> None:
    """Not known is null, or nothing."""
    services = ServiceFacts((), imex={"node": "READY", "nodes_config": "18"})
    software_facts = assemble_facts(nvml=GpuFacts((), confidential_computing=True), services=services).software

    assert ({"node": "READY", "nodes_config": "18"}, True) == (
        software_facts.imex,
        software_facts.driver.confidential_computing,
    )
    assert {} == assemble_facts(services=ServiceFacts(())).software.imex


def software_facts(**of: object) -> ProbeFacts:
    """Outcomes of probes that answered."""
    return ProbeFacts((Outcome(name, Status.OK, item, None, (), 0.0) for name, item in of.items()), providers())


def test_without_a_probe_nothing_is_known() -> None:
    """Not: nothing is there."""
    assert Nccl() == build_nccl(software_facts())
    assert (None, None, {}, {}) == (
        list_device_nodes(software_facts()),
        compute_shared_memory(software_facts()),
        build_limits(software_facts()),
        select_parameters(None),
    )
    assert None is build_nccl(software_facts()).jobs


def test_settings_stand_in_the_order_of_lines() -> None:
    """Line 10 after line 9."""
    rows = tuple(NcclVariable(f"NCCL_{n}", "x", f"/etc/nccl.conf:{n}", "system", "l") for n in (10, 9, 1))
    result = build_nccl(
        software_facts(
            nccl=NcclFacts(settings=rows, libraries=(NcclLibraryFile("/b"), NcclLibraryFile("/a", "2.1", 3)), jobs=2)
        )
    )

    assert ["NCCL_1", "NCCL_9", "NCCL_10"] == [setting.key for setting in result.settings]
    assert [("/a", "2.1", 3), ("/b", None, 0)] == [
        (library.path, library.version, library.used_by) for library in result.libraries
    ]
    assert (2, None) == (result.jobs, result.jobs_unread)


def test_limits_of_services_and_jobs() -> None:
    """What binds a process stands beside its limit."""
    result = software_facts(
        limits=LimitFacts(
            services=(ResourceLimit("slurmd.service", "65536", True),), device_nodes=("nvidia10", "nvidia9")
        ),
        nccl=NcclFacts(limits=(ResourceLimit("pid 7 (x)", "unlimited", False, True),)),
    )

    assert {
        "memlock slurmd.service": "65536",
        "exempt slurmd.service": "yes",
        "memlock pid 7 (x)": "unlimited",
        "exempt pid 7 (x)": "no",
        "rdma pid 7 (x)": "yes",
    } == build_limits(result)
    assert ["nvidia9", "nvidia10"] == list_device_nodes(result)


@pytest.mark.parametrize(
    ("expected", "memory_mib", "size"),
    [("65536", None, 64), ("default", 1000, 500), ("default", None, None), (None, 1000, None)],
)
def test_the_size_of_shared_memory(expected: str | None, memory_mib: int | None, size: int | None) -> None:
    """Half of the memory where the mount names no size."""
    result = software_facts(nccl=NcclFacts(shared_memory=expected), kernel=KernelFacts(memory_mib=memory_mib))

    assert size == compute_shared_memory(result)


def test_parameters_of_the_driver_are_an_allow_list() -> None:
    """Those that matter for links, of bounded length."""
    loaded = ModuleFacts(
        (), nvidia_params={"RegistryDwords": "x" * 999, "DeviceFileUID": "0", "EnableStreamMemOPs": "1"}
    )

    assert {"EnableStreamMemOPs": "1", "RegistryDwords": "x" * 512} == select_parameters(loaded)
