"""GPU and NVSwitch rows, joined from the bus and the driver; the far end of a port, found by GUIDs, agreed by all
outputs, or not told.
"""

from __future__ import annotations

import pytest

from agent.model.gpu import Gpu as Row
from agent.model.nic import FabricNeighbor
from probes.fabric.files import read_fabric
from probes.fabric.probe import IbFabricFacts, SavedFabric
from probes.gpu.facts import Gpu, GpuFacts, NvLink
from probes.kernel.modules import ModuleFacts, NvidiaGpu
from probes.kernel.system import KernelFacts
from probes.pci.facts import PciFacts, PciFunction
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from tests.agent.assemble.boards import Board, assemble_facts, driver, hgx
from tests.probes.fabric.fabric_texts import EVERY, HCA0, HCA1
from tests.texts import read_fields

A, B, C = "0000:13:00.0", "0000:23:00.0", "0000:33:00.0"
LEAF = {"name": "MF0;leaf-2:MQM9700/U1", "port": 1, "lid": 12, "width": "2X", "speed": "HDR", "rate_gbit_s": 100.0}
GUID = {"node_guid": "0c42:a103:00bb:0200"}
COULD = {"could_width": "4X", "could_speed": "NDR", "could_rate_gbit_s": 400.0}


def gpus(**facts: object) -> list[Row]:
    """The rows of a machine."""
    return assemble_facts(**facts).topology.gpus


def test_bus_and_driver_meet_at_the_address() -> None:
    """The driver's words win over the table of ids; the node comes from the bus."""
    nvml = driver([Gpu(index=1, address=A, name="NVIDIA H100 80GB HBM3", pstate=0), Gpu(index=0, address=B)])
    first, second = gpus(pci=hgx(2).facts(), nvml=nvml)

    assert (A, "GPU1", "NVIDIA H100 80GB HBM3", "P0", "open", 0) == read_fields(
        first, "id label name pstate driver_state numa_node"
    )
    assert ("GPU0", "H100 SXM5 80GB", "Hopper", 1) == (second.label, second.name, second.architecture, second.numa_node)


def test_nvidia_smi_fills_what_nvml_does_not_say() -> None:
    """Matched by address, and NVML wins."""
    nvml = driver([Gpu(index=0, address=A, serial=None, vbios="96.00.1")], driver_version="570.1")
    tool = GpuFacts((Gpu(index=0, address=A, serial="165", vbios="95.00.9"),), driver_version="570.1")
    row = gpus(pci=hgx(1).facts(), nvml=nvml, nvidia_smi=tool)[0]

    assert ("165", "96.00.1") == (row.serial, row.vbios)


@pytest.mark.parametrize(
    ("bound", "nvml", "limit", "state"),
    [
        ("nvidia", [Gpu(index=0, address=B)], None, "not_open"),
        (None, [Gpu(index=0, address=B)], None, "not_open"),
        ("nvidia", [Gpu(index=0, address=B)], KernelFacts(container="docker"), "unknown"),
        ("nvidia", [Gpu(index=0, address=B)], KernelFacts(job_limit="Slurm job 4711"), "unknown"),
        ("nvidia", [Gpu(index=0, address=A, error="NO_PERMISSION"), Gpu(index=1, address=B)], None, "unknown"),
        ("nvidia", None, None, "unknown"),
        ("", [Gpu(index=0, address=B)], None, "no_driver"),
        ("", None, None, "no_driver"),
        ("vfio-pci", None, None, "vfio"),
        ("nouveau", None, None, "no_driver"),
        ("nvidia", [Gpu(index=0, address=A, error="GPU_IS_LOST"), Gpu(index=1, address=B)], None, "error"),
        ("nvidia", [Gpu(index=0, address=A), Gpu(index=1, address=B)], None, "open"),
    ],
)
def test_a_gpu_that_the_driver_does_not_list_is_told_apart(
    bound: str | None, nvml: list[Gpu] | None, limit: KernelFacts | None, state: str
) -> None:
    """Not open, no driver, vfio, lost, or not known; a container sees only what it was given."""
    board = hgx(2)
    board.change(A, driver=bound)
    facts = driver(nvml) if nvml is not None else None

    assert state == gpus(pci=board.facts(), nvml=facts, kernel=limit or KernelFacts())[0].driver_state


def test_a_list_without_places_proves_nothing_about_who_is_missing() -> None:
    """Three on the bus, two by index only: which one is missing cannot be said."""
    rows = gpus(pci=hgx(3).facts(), nvidia_smi=GpuFacts((Gpu(index=0), Gpu(index=1))))

    assert ["unknown"] * 3 == [row.driver_state for row in rows if row.pci]
    assert ["gpu-index-0", "gpu-index-1"] == [row.id for row in rows if not row.pci]


@pytest.mark.parametrize(("attached", "state"), [(None, "unknown"), (1, "not_open")])
def test_nvidia_smi_that_ends_at_a_lost_gpu_says_nothing_of_the_others(attached: int | None, state: str) -> None:
    """It ends at the first GPU that it cannot open; only where it counted them, one left out is missing."""
    tool = GpuFacts((Gpu(address=B, error="Unknown Error"),), attached=attached)
    first, lost, last = gpus(pci=hgx(3).facts(), nvidia_smi=tool)

    assert (state, "error", state) == (first.driver_state, lost.driver_state, last.driver_state)
    assert attached or f"may have ended at {B}" in (first.driver_error or "")


def test_a_gpu_is_known_by_what_the_driver_s_own_files_say() -> None:
    """Its name, UUID and VBIOS where neither NVML nor nvidia-smi told them; and that it was left out on purpose."""
    proc_gpus = {A: NvidiaGpu("NVIDIA H100 80GB HBM3", "GPU-1", "96.00.1", False), B: NvidiaGpu(excluded=True)}
    loaded = ModuleFacts((), nvidia_gpus=(A, B), nvidia_held=proc_gpus)
    first, second = gpus(pci=hgx(2).facts(), modules=loaded, nvml=driver([Gpu(index=0, address=C)]))[:2]

    assert ("NVIDIA H100 80GB HBM3", "GPU-1", "96.00.1", "not_open") == read_fields(
        first, "name uuid vbios driver_state"
    )
    assert ("unknown", "the driver is set to leave this GPU out") == (second.driver_state, second.driver_error)


def test_as_many_by_index_as_on_the_bus_are_the_same_in_order() -> None:
    """A saved matrix names no addresses; the driver counts in bus order. A lost GPU has no address either."""
    rows = gpus(pci=hgx(2).facts(), nvidia_smi=GpuFacts((Gpu(index=0), Gpu(index=1))))
    lost = gpus(pci=hgx(2).facts(), nvml=driver([Gpu(index=1, address=B), Gpu(index=0, error="GPU_IS_LOST")]))

    assert [(A, "GPU0"), (B, "GPU1")] == [(row.id, row.label) for row in rows]
    assert [(A, "GPU0", "error"), (B, "GPU1", "open")] == [(r.id, r.label, r.driver_state) for r in lost]


def test_a_lost_gpu_is_where_its_number_puts_it_among_others() -> None:
    """Another one is not listed at all: the GPUs around each decide which is which, where only one is left there."""
    listed = [Gpu(index=0, address=A), Gpu(index=1, error="GPU_IS_LOST"), Gpu(index=2, address=C)]
    lost, hidden = gpus(pci=hgx(4).facts(), nvml=driver(listed)._replace(attached=3))[1::2]
    undecided = gpus(pci=hgx(4).facts(), nvml=driver([listed[0], listed[1]]))

    assert (B, "GPU1", "error") == read_fields(lost, "id label driver_state")
    assert "not_open" == hidden.driver_state
    assert ["open", "unknown", "unknown", "unknown", "error"] == [row.driver_state for row in undecided]


def test_labels_never_pretend_to_be_the_driver_s() -> None:
    """Bus order numbers GPUs only where the driver numbers none."""
    some = gpus(pci=hgx(2).facts(), nvml=driver([Gpu(index=0, address=B)]))
    none = gpus(pci=hgx(2).facts())

    assert [f"GPU@{A}", "GPU0"] == [row.label for row in some]
    assert ["GPU0", "GPU1"] == [row.label for row in none]


def test_display_chips_of_boards_and_bridges_of_grace_are_no_gpus() -> None:
    """ASPEED, Matrox, an AMD desktop card; AMD and Huawei accelerators are."""
    board = Board()
    root = board.root_port("0000:60:01.0", vendor="0x10de", device="0x22b1")
    for number, (kind, vendor, device) in enumerate(
        [
            ("0x030000", "0x1a03", "0x2000"),
            ("0x030000", "0x102b", "0x0536"),
            ("0x030000", "0x1002", "0x744c"),
            ("0x120000", "0x1002", "0x74a1"),
            ("0x038000", "0x1002", "0x7408"),
            ("0x120000", "0x19e5", "0xd802"),
            ("0x120000", "0x1bcf", "0x001c"),
        ]
    ):
        board.device(f"0000:61:{number:02x}.0", root, kind, vendor, device, driver=None)
    rows = gpus(pci=board.facts())

    assert [("0000:61:03.0", "AMD"), ("0000:61:04.0", "AMD"), ("0000:61:05.0", "Huawei")] == [
        (row.id, row.vendor) for row in rows
    ]
    assert ["unknown"] * 3 == [row.driver_state for row in rows]


def test_virtual_gpus_of_a_host_are_not_counted_as_gpus() -> None:
    """An SR-IOV host shows dozens of functions for one card."""
    board = hgx(1)
    board.gpu("0000:13:00.4", "0000:12:00.0", physical_function=A)

    assert [A] == [row.id for row in gpus(pci=board.facts())]


def test_a_gpu_without_ids_is_known_by_the_driver_that_holds_it() -> None:
    """Some recorded trees hold no vendor files."""
    bare = PciFacts((PciFunction("0004:05:00.0", None, None, class_code="0x030200"),))

    assert [("0004:05:00.0", "NVIDIA")] == [
        (row.id, row.vendor) for row in gpus(pci=bare, modules=ModuleFacts((), nvidia_gpus=("0004:05:00.0",)))
    ]


def test_links_name_their_far_ends_and_missing_ones_say_why() -> None:
    """A GPU or an NVSwitch of this host by its id; 'no NVLink' is known, 'MIG' is not."""
    board = hgx(3)
    board.device("0000:83:00.0", board.root_port("0000:80:01.0"), "0x068000", "0x10de", "0x22a3")
    links = (
        NvLink(10, "active", speed_gbyte_s=26.5625, remote_address=B, remote_link=3),
        NvLink(2, "inactive", remote_kind="unknown", remote_address="0000:83:00.0", errors={"replay": 0, "crc": 1}),
        NvLink(3, "active"),
    )
    nvml = driver(
        [
            Gpu(index=0, address=A, nvlinks=links, nvlink_supported=True),
            Gpu(index=1, address=B, nvlink_supported=False),
            Gpu(index=2, address=C, nvlink_reason="MIG"),
        ]
    )
    first, second, third = gpus(pci=board.facts(), nvml=nvml)

    assert [2, 3, 10] == [link.link for link in first.links]
    assert ("switch", "0000:83:00.0", ["crc", "replay"]) == (
        first.links[0].remote.kind,
        first.links[0].remote.id,
        list(first.links[0].errors),
    )
    assert first.links[1].remote is None
    assert ("gpu", B, 3, 26.562) == read_fields(first.links[2], "remote.kind remote.id remote.link signal_gbyte_s")
    assert (True, "no NVLink") == (second.links_known, second.links_reason)
    assert (False, "MIG") == (third.links_known, third.links_reason)


def test_peers_are_named_by_id() -> None:
    """The matrix of nvidia-smi counts; the report refers."""
    nvml = driver(
        [Gpu(index=0, address=A), Gpu(index=1, address=B)],
        p2p={(0, 1): {"write": "OK", "read": "OK"}, (1, 0): {"read": "CNS"}, (0, 9): {"read": "OK"}},
    )
    first, second = gpus(pci=hgx(2).facts(), nvml=nvml)

    assert {B: {"read": "OK", "write": "OK"}} == first.p2p
    assert {A: {"read": "CNS"}} == second.p2p


def test_without_a_bus_the_driver_s_gpus_are_rows() -> None:
    """A saved nvidia-smi and nothing else: the address is the id, and refers to no PCI row."""
    row = gpus(nvidia_smi=GpuFacts((Gpu(index=0, address=A, numa_node=1),)))[0]

    assert (A, None, "NVIDIA", 1, "open") == (row.id, row.pci, row.vendor, row.numa_node, row.driver_state)


def test_a_file_about_gpus_is_no_driver_s_list() -> None:
    """One that it describes need not be open, and one that it leaves out may be."""
    listed = GpuFacts((Gpu(index=0, address=A),), told_by="nccl-topo")
    result = gpus(pci=hgx(2).facts(), nvml=listed)

    assert {"unknown"} == {gpu.driver_state for gpu in result}
    assert "nccl-topo: not the driver's own list" == result[0].driver_error
    assert "GPU0" == result[0].label


def test_what_is_listed_as_a_gpu_is_one_whatever_its_ids_are() -> None:
    """A file that names no devices lists its GPUs."""
    board = hgx(1)
    board.change(A, device=None, vendor="0x1002", class_code="0x038000")

    assert [A] == [gpu.pci for gpu in gpus(pci=board.facts(), nvml=GpuFacts((Gpu(index=0, address=A),)))]


def test_counters_and_modes_of_a_gpu() -> None:
    """Every driver tells of replays; newer ones by field, which comes first. C2C only where something was said."""
    output = Gpu(index=0, replays=3, nvlink_bandwidth_mode="half", c2c_enabled=True, c2c_max_gbyte_s=447.1)
    old = Gpu(index=1, replays=3, pcie_counters={"replays": 4, "bad_tlp": 0}, c2c_errors={"replays": 2})
    one, other = assemble_facts(nvml=GpuFacts((output, old))).topology.gpus

    assert ({"replays": 3}, "half") == (one.pcie_counters, one.nvlink_bandwidth_mode)
    assert {"bad_tlp": 0, "replays": 4} == other.pcie_counters
    assert one.c2c is not None
    assert (447.1, {}) == (one.c2c.max_gbyte_s, one.c2c.errors)
    assert other.c2c is None


def test_only_switches_are_switches() -> None:
    """Not the bridges of the third generation, not the root port of Grace, not a memory controller."""
    board = Board()
    root = board.root_port("0008:00:00.0", vendor="0x10de", device="0x22b1")
    for number, (kind, device) in enumerate(
        [
            ("0x068000", "0x22a3"),
            ("0x068000", "0x1af1"),
            ("0x068000", "0x1ac2"),
            ("0x060400", "0x22a8"),
            ("0x068000", "0x22b8"),
        ]
    ):
        board.device(f"0008:01:{number:02x}.0", root, kind, "0x10de", device)
    switches = assemble_facts(pci=board.facts()).topology.nvswitches

    assert ["0008:01:00.0", "0008:01:01.0", "0008:01:02.0"] == [switch.id for switch in switches]
    assert [switch.pci for switch in switches] == [switch.id for switch in switches]


def grouped(guid: str) -> str:
    return ":".join(guid[index : index + 4] for index in range(0, 16, 4))


def far(*names: str, device: RdmaDevice | None = None, **texts: str) -> FabricNeighbor | None:
    """The neighbour of the second HCA's port as the report has it, by outputs of EVERY, or by other texts."""
    saved = [SavedFabric(name, read_fabric(texts.get(name.replace(" ", "_"), EVERY[name]), name)) for name in names]
    result = assemble_facts(rdma=RdmaFacts((device or hca(),)), ib_fabric=IbFabricFacts(tuple(saved)))
    return result.topology.nics[0].ports[0].neighbor


def hca(guid: str | None = HCA1, node: str | None = HCA1, layer: str = "InfiniBand", **words: bool) -> RdmaDevice:
    port = RdmaPort(1, link_layer=layer, port_guid=grouped(guid) if guid else None)
    return RdmaDevice("mlx5_1", node_guid=grouped(node) if node else None, ports=(port,), **words)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ibnetdiscover", GUID),
        ("iblinkinfo", COULD),
        ("iblinkinfo -l", COULD),
        ("ibnetdiscover -p", {}),
        ("ibdiagnet net_dump", GUID),
        ("ibdiagnet db_csv", GUID | COULD),
    ],
)
def test_one_output_tells_the_far_end(name: str, more: dict) -> None:
    """As much as it knows; a GUID of a port is not given out as a node's."""
    assert FabricNeighbor(**LEAF, **more, source=name) == far(name)


def test_outputs_complete_each_other() -> None:
    """One knows the GUID of the switch, the other what both ends could do."""
    assert FabricNeighbor(**LEAF, **GUID, **COULD, source="ibnetdiscover, iblinkinfo") == far(
        "ibnetdiscover", "iblinkinfo"
    )


def test_what_they_tell_differently_is_not_known() -> None:
    """The link trained in between: which of the two it runs at now, nobody says."""
    trained = EVERY["ibnetdiscover"].replace("2xHDR", "4xHDR")
    output = far("ibnetdiscover", "iblinkinfo", ibnetdiscover=trained)

    assert output is not None
    assert (None, "HDR", None) == (output.width, output.speed, output.rate_gbit_s)


@pytest.mark.parametrize(("one", "other"), [('"S-0c42a10300bb0200"[1]\t', '"S-0c42a10300bb0200"[2]\t')])
def test_two_far_ends_are_none(one: str, other: str) -> None:
    """A cable was moved between the outputs."""
    text = EVERY["ibnetdiscover"].replace(one, other)
    moved = "\n".join(line for line in text.split("\n") if "2xHDR" not in line or "lid 22 lmc" in line)

    assert far("ibnetdiscover", ibnetdiscover=moved) is not None
    assert far("ibnetdiscover", "iblinkinfo", ibnetdiscover=moved) is None


@pytest.mark.parametrize(
    ("device", "result"),
    [
        (hca(), True),
        (hca(node=None), True),
        (hca(guid=None), True),
        (hca(guid=None, node="2" * 16), False),
        (hca(guid="1" * 16, node=None), False),
        (hca(guid=None, node=None), False),
        (hca(layer="Ethernet"), False),
        (hca(software=True), False),
    ],
)
def test_a_port_is_found_by_its_guid_or_by_its_nodes(device: RdmaDevice, result: bool) -> None:
    """On InfiniBand only."""
    assert result is (far("ibnetdiscover", device=device) is not None)


def test_a_guid_of_a_port_is_no_guid_of_a_node() -> None:
    """With iblinkinfo a node is called by its first port: port 1 of the node with that GUID is another."""
    assert far("iblinkinfo", device=hca(guid=None, node=HCA1)) is None
    assert far("iblinkinfo", device=hca(guid=HCA1, node=HCA0)) is not None


def test_without_outputs_nothing_is_told() -> None:
    """And the port is there."""
    result = assemble_facts(rdma=RdmaFacts((hca(),)), ib_fabric=None)

    assert [None] == [port.neighbor for port in result.topology.nics[0].ports]
