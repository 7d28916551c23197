"""Saved outputs of AMD's tools in each of their forms, a stand-in for the library, and both beside the graph."""

from __future__ import annotations

import enum
import json
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.amd.smi import build_facts
from probes.amd.smi_output import parse_smi
from probes.catalogue import probe
from probes.gpu.facts import GpuFacts
from probes.host.amdsmi import ask_library
from probes.host.interface import Absent, Failed
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from probes.sources.open_source import open_source
from probes.text import ParseError
from tests.machines import machine, scan_files
from tests.probes.machine import Machine
from tests.probes.overlay import OverlayHost

SHAPE, A, B = "8xmi300x-2s-8xcx7-roce", "0000:0c:00.0", "0000:22:00.0"
TABLE = f"""\
LINK TYPE TABLE:
             {A} {B}
{A} SELF         XGMI
{B} XGMI         SELF

NUMA BW TABLE:
             {A} {B}
{A} N/A          64000-64000
{B} 64000-64000  N/A

WEIGHT TABLE:
             {A} {B}
{A} 0            15
{B} 15           0
"""
ROCM = """\
======================= ROCm System Management Interface =======================
=========================== Weight between two GPUs ============================
       GPU0         GPU1
GPU0   0            40
GPU1   40           0

========================== Link Type between two GPUs ==========================
       GPU0         GPU1
GPU0   0            PCIE
GPU1   PCIE         0

================================== Numa Nodes ==================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[1]\t\t: (Topology) Numa Node: 1
============================= End of ROCm SMI Log ==============================
"""
BUS = "GPU[0]\t\t: PCI Bus: 0000:0C:00.0\nGPU[1]\t\t: PCI Bus: 0000:22:00.0\n"
STATIC = """\
GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
        DEVICE_ID: 0x74a1
        ASIC_SERIAL: 0x07386A321FA45D1E
        OAM_ID: 1
    BUS:
        BDF: 0000:0c:00.0
    VBIOS:
        PART_NUMBER: 113-M3000100-103
    DRIVER:
        VERSION: 6.8.5
    PARTITION:
        COMPUTE_PARTITION: SPX
        MEMORY_PARTITION: NPS1
    NUMA:
        NODE: 1
    VRAM:
        SIZE: 196592 MB
"""
METRIC = {"gpu": 0, "mem_usage": {}, "ecc_blocks": {"XGMI_WAFL": {"correctable_count": 3, "uncorrectable_count": 1}}}
BOX = """\
+------------------------------------------------------------------------------+
| AMD-SMI            27.0.0                                                     |
| amdgpu Version:    6.10.5                                                    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:0c:00.0    AMD Instinct MI300X | 0 %      43 C    0           157/750 W |
|   0       0       3        CPX/NPS4 | 0 %        N/A           285/196592 MB |
"""
JSON = json.dumps([{"gpu": 0, "bdf": A, "links": [{"gpu": 1, "link_type": "XGMI", "weight": 15}]}, METRIC])


def row(number: int, bdf: str, links: list[dict[str, object]], **more: object) -> dict[str, object]:
    """A GPU of a JSON output."""
    return {"gpu": number, "bdf": bdf, "links": links, **more}


def link(number: int, kind: str = "XGMI", weight: int = 15, bandwidth: str = "64000-64000") -> dict[str, object]:
    """What such a GPU states of another one."""
    return {"gpu": number, "link_type": kind, "weight": weight, "bandwidth": bandwidth}


def facts(*texts: str) -> GpuFacts:
    """All of some outputs together."""
    found = parse_smi(texts[0])
    for text in texts[1:]:
        more = parse_smi(text)
        for name, said in more.gpus.items():
            found.gpus.setdefault(name, {}).update(said)
        found.pairs.update(more.pairs)
    return build_facts(found)


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        (TABLE, "amd-smi topology"),
        (ROCM, "rocm-smi --showtopo"),
        (ROCM.partition("\n")[2], "rocm-smi --showtopo"),
        (STATIC, "amd-smi static"),
        (BOX, "amd-smi"),
        ("GPU: 0\n    BDF: 0000:0c:00.0\n    UUID: 1\n    KFD_ID: 7\n", "amd-smi list"),
        ("GPU: 0\n    MEM_USAGE:\n        TOTAL_VRAM: 7 MB\n", "amd-smi metric"),
        ("LINK METRIC TABLE:\n  bdf  bit_rate\nGPU0   0000:0c:00.0 32 Gb/s  512 Gb/s XGMI\n", "amd-smi xgmi"),
        (json.dumps([row(0, A, [link(1)])]), "amd-smi topology --json"),
        (json.dumps([METRIC]), "amd-smi metric --json"),
        (json.dumps([{"gpu": 0, "asic": {"oam_id": 1}}]), "amd-smi static --json"),
        (json.dumps([{"gpu": 0, "bdf": A, "kfd_id": 3}]), "amd-smi list --json"),
        (json.dumps([{"gpu_id": 0, "memory": "NPS1", "accelerator_type": "SPX"}]), "amd-smi partition --json"),
        (json.dumps({"card0": {"PCI Bus": A}}), "rocm-smi --showtopo --json"),
    ],
)
def test_an_output_is_recognized_by_what_it_holds(tmp_path: Path, text: str, argv: str) -> None:
    """Whatever its file is called."""
    (tmp_path / "notes").write_text(text)
    report, _ = diagnose(open_source(str(tmp_path / "notes"), None), ScanPlan())
    run = next(run for run in report.probes if run.name == "amd_smi")

    assert ("ok", [argv]) == (run.status, list(run.sources))
    assert report.topology.gpus


def test_all_forms_of_json_are_one() -> None:
    """A list with links; the same inside gpu_data; and a table for each column, as older releases print."""
    rows = [row(0, A, [link(1)]), row(1, B, [link(0)])]
    old = [
        {
            "gpu": n,
            "bdf": bdf,
            "link_type": {peer: "XGMI"},
            "weight": {peer: 15},
            "numa_bandwidth": {peer: "64000-64000"},
        }
        for n, bdf, peer in ((0, A, "gpu_1"), (1, B, "gpu_0"))
    ]
    new = facts(json.dumps(rows))

    assert new == facts(json.dumps({"gpu_data": rows})) == facts(json.dumps(old))
    assert [(0, A, 1), (1, B, 1)] == [(gpu.index, gpu.address, len(gpu.nvlinks)) for gpu in new.gpus]


def test_sections_and_documents_of_one_gpu() -> None:
    """Identity, module slot, partition, memory and errors, from text and JSON; "N/A" is nothing."""
    (gpu,) = facts(STATIC, json.dumps([METRIC])).gpus

    assert (0, A, "0x74a1", "GPU-07386a321fa45d1e", "AMD Instinct MI300X", "113-M3000100-103", 196_592, 1, 1) == (
        gpu.index, gpu.address, gpu.device, gpu.uuid, gpu.name, gpu.vbios, gpu.memory_mib, gpu.module_id, gpu.numa_node
    )  # fmt: skip
    assert ("SPX", "NPS1") == (gpu.compute_partition, gpu.memory_partition)
    assert {"xgmi_wafl.correctable": 3, "xgmi_wafl.uncorrectable": 1} == gpu.error_counts
    assert facts(STATIC).driver_version == "6.8.5"
    assert facts(STATIC.replace("OAM_ID: 1", "OAM_ID: N/A")).gpus[0].module_id is None
    assert facts(BOX).gpus[0].compute_partition == "CPX"


def test_several_documents_in_one_output() -> None:
    """`partition` prints one after the other."""
    current = {"current_partition": [{"gpu_id": 0, "memory": "NPS4", "accelerator_type": "CPX"}]}
    (gpu,) = facts(json.dumps(current) + "\n" + json.dumps([{"gpu": 0, "memory_partition": {"current": "NPS4"}}])).gpus

    assert ("CPX", "NPS4") == (gpu.compute_partition, gpu.memory_partition)


@pytest.mark.parametrize(
    ("said", "links", "kind"),
    [
        (link(1, weight=30, bandwidth="0-0"), 0, "XGMI"),  # two hops
        (link(1, weight=0, bandwidth="0-0"), 0, "XGMI"),  # MI355X of 2025: not stated
        (link(1, weight=41, bandwidth="0-0"), 1, "XGMI"),  # both in partitions
        (link(1, kind="PCIE", weight=40), 0, None),
    ],
)
def test_weights_tell_what_is_direct(said: dict[str, object], links: int, kind: str | None) -> None:
    """HOPS counts none: it is 1 for every XGMI route. What is not stated is no link and not "no link"."""
    read = facts(json.dumps([row(0, A, [said]), row(1, B, [said | {"gpu": 0}])]))

    assert [links, links] == [len(gpu.nvlinks) for gpu in read.gpus]
    assert kind == (read.pairs[0].kind if read.pairs else None)
    assert [False if kind is None else None] * 2 == [gpu.nvlink_supported for gpu in read.gpus]


ACCESS = f"""\
ACCESS TABLE:
             {A} {B}
{A} ENABLED      ENABLED
{B} DISABLED     ENABLED
"""


@pytest.mark.parametrize(
    ("text", "peers"),
    [
        (TABLE.replace("XGMI", "PCIE") + ACCESS, [(B,), ()]),
        (TABLE.replace("XGMI", "PCIE") + ACCESS.replace("DISABLED", "N/A     "), [(B,), None]),
        (TABLE + ACCESS, [(), ()]),
        (TABLE, [(), ()]),
        (TABLE.replace("XGMI", "PCIE"), [None, None]),
        (ACCESS, [None, None]),
        (ROCM, [None, None]),
    ],
)
def test_access_over_pcie(text: str, peers: list[tuple[str, ...] | None]) -> None:
    """Each direction by itself; GPUs that XGMI joins have none, nor is it known of GPUs without an address."""
    assert peers == [gpu.pcie_peers for gpu in facts(text).gpus]
    states = [{**link(other, "PCIE"), "link_status": "ENABLED"} for other in (1, 0)]
    assert [(B,), (A,)] == [
        g.pcie_peers for g in facts(json.dumps([row(0, A, states[:1]), row(1, B, states[1:])])).gpus
    ]


def test_a_pair_that_one_end_states_is_none() -> None:
    """Nor is it where both say something else."""
    read = facts(json.dumps([row(0, A, [link(1)]), row(1, B, [link(0, kind="PCIE")])]))

    assert () == read.pairs


def test_numbers_without_addresses_stand_alone_and_get_them_from_showbus() -> None:
    """rocm-smi's tables have no addresses; --showbus has."""
    alone = facts(ROCM)

    assert [(0, None, 0), (1, None, 1)] == [(gpu.index, gpu.address, gpu.numa_node) for gpu in alone.gpus]
    assert [False, False] == [gpu.nvlink_supported for gpu in alone.gpus]
    assert [A, B] == [gpu.address for gpu in facts(ROCM, BUS).gpus]


def test_rocm_smi_in_json() -> None:
    """Pairs stand once, under "system"."""
    about = "(Topology) {} between DRM devices 0 and 1"
    system = {about.format("Weight"): "15", about.format("Hops"): "1", about.format("Link type"): "XGMI"}
    read = facts(json.dumps({"system": system, "card0": {"(Topology) Numa Node": "1"}, "cardinal": 7}))

    assert [1, 1] == [len(gpu.nvlinks) for gpu in read.gpus]
    assert [("GPU0", "GPU1", "XGMI")] == [tuple(cell) for cell in read.pairs]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "nothing of a GPU"),
        ("[{]", "no JSON"),
        ('[{"gpu": 0, "links": [{"gpu": 1,}, ...', "no JSON"),
        ('{"gpu_data": 7}', "nothing of a GPU"),
        ('[{"gpu": true}, 7, {"gpu": -1}]', "nothing of a GPU"),
        (TABLE[: TABLE.index("\n" + B)], "LINK TYPE TABLE: the row of"),
        (TABLE.replace("XGMI         SELF", "XGMI"), f"the row of {B} has 1 of 2 values"),
        (BOX.replace("|   0       0", "|   x       0"), f"no second line of {A}"),
        ("GPU: 0\n    A: 1\n        B:\n    A:\n", "is a value and a section"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_what_is_cut_or_elided_is_refused(text: str, why: str) -> None:
    """In one line that says where."""
    with pytest.raises(ParseError) as refused:
        parse_smi(text)
    assert why in str(refused.value)


def test_a_log_without_its_end_is_read_and_named(tmp_path: Path) -> None:
    """Its tables are whole."""
    report = scan_files(tmp_path, **{"rocm-smi_--showtopo": ROCM[: ROCM.index("====== End")]})
    run = next(run for run in report.probes if run.name == "amd_smi")

    assert ("partial", "rocm-smi --showtopo: the output is cut, its end is missing") == (run.status, run.reason)


def test_one_bad_output_does_not_take_the_others(tmp_path: Path) -> None:
    """It is named; and where there is no other, nothing is known."""
    good = scan_files(
        tmp_path, **{"amd-smi_topology": TABLE, "amd-smi_static": "GPU: 0\n    A: 1\n        B:\n    A:\n"}
    )

    assert "amd-smi static: a: is a value" in (next(r for r in good.probes if r.name == "amd_smi").reason or "").lower()
    assert 2 == len(good.topology.gpus)
    (tmp_path / "amd-smi_topology.txt").unlink()
    bad = diagnose(open_source(str(tmp_path), None), ScanPlan())[0]
    assert ("failed", []) == (next(r for r in bad.probes if r.name == "amd_smi").status, bad.topology.gpus)


def test_outputs_fill_what_the_driver_does_not_show() -> None:
    """Numbers and module slots beside the graph; GPUs with a number only are not placed, nor are their pairs."""
    host = OverlayHost(
        machine(SHAPE), commands={("amd-smi", "static"): STATIC.replace("0c:00.0", "15:00.0")}, kind="tree"
    )
    first = read_gpus(host)[0]

    assert ("0000:15:00.0", 0, 1, 7, "open") == (
        first.id, first.index, first.module_id, len(first.links), first.driver_state
    )  # fmt: skip
    numbered = OverlayHost(machine(SHAPE), commands={("rocm-smi", "--showtopo"): ROCM}, kind="tree")
    assert 8 == len(read_gpus(numbered))


def read_gpus(host: object) -> list[object]:
    """The GPUs of its report."""
    return list(diagnose(host, ScanPlan())[0].topology.gpus)  # type: ignore[arg-type]  # the host interface


def test_real_outputs(corpus: Path) -> None:
    """Eight MI300X as a text table and as the newest table, two GPUs without XGMI, and two hives."""

    def of(path: str) -> GpuFacts:
        read = outcome_of(probe("amd_smi"), open_source(str(corpus / path), None)).facts  # type: ignore[arg-type]
        assert isinstance(read, GpuFacts)
        return read

    mesh, hives = (
        of("second/text/amd/amd-smi-topology-mi300x.txt"),
        of("second/text/amd/showtopo-8gpu-2hives-mi210.txt"),
    )
    slots = of("accelerators/amd/amd-smi-8x-mi300x-table.txt")
    pcie = of("accelerators/amd/amd-smi-topology-2gpu-pcie.json")

    assert ({7: 8}, 28) == (Counter(len(gpu.nvlinks) for gpu in mesh.gpus), len(mesh.pairs))
    assert ({3: 8}, 12) == (Counter(len(gpu.nvlinks) for gpu in hives.gpus), len(hives.pairs))
    assert [1, 0, 3, 2, 6, 7, 5, 4] == [gpu.module_id for gpu in slots.gpus]
    assert [("0000:08:00.0", False), ("0000:44:00.0", False)] == [(g.address, g.nvlink_supported) for g in pcie.gpus]
    assert ([(), ()], 8 * [()], 8 * [None]) == tuple([g.pcie_peers for g in f.gpus] for f in (pcie, mesh, slots))
    cut = outcome_of(probe("amd_smi"), open_source(str(corpus / "text/amd/showtopo-mi250x-partialmesh-TRUNCATED.txt")))  # type: ignore[arg-type]
    assert Status.FAILED is cut.status
    assert "the row of GPU1 has 0 of 8 values" in (cut.reason or "")


class _Error(Exception):
    pass


def library(monkeypatch: pytest.MonkeyPatch, *, old: bool = True, broken: str | None = None) -> types.ModuleType:
    """A stand-in for the amdsmi module with two GPUs; `broken`: the function that fails."""
    module = types.ModuleType("amdsmi")
    io_kinds = enum.IntEnum("AmdSmiIoLinkType", {"UNDEFINED": 0, "PCIEXPRESS": 1, "XGMI": 2})
    kinds = enum.IntEnum("AmdSmiLinkType", {"AMDSMI_LINK_TYPE_XGMI": 1, "AMDSMI_LINK_TYPE_PCIE": 2})

    def failing(*_: object) -> object:
        raise _Error("AMDSMI_STATUS_NOT_SUPPORTED")

    functions = {
        "amdsmi_init": lambda: print("noise"),
        "amdsmi_shut_down": lambda: None,
        "amdsmi_get_processor_handles": lambda: ["h0", "h1"],
        "amdsmi_get_gpu_device_bdf": {"h0": A, "h1": B}.__getitem__,
        "amdsmi_get_gpu_asic_info": lambda h: {
            "market_name": "AMD Instinct MI300X",
            "device_id": "0x74a1",
            "oam_id": 5,
        },
        "amdsmi_get_gpu_driver_info": lambda h: {"driver_version": "6.8.5"},
        "amdsmi_get_gpu_compute_partition": failing,
        "amdsmi_topo_get_link_type": lambda a, b: {"type": 2 if old else 1, "hops": 1},
        "amdsmi_topo_get_link_weight": lambda a, b: 15,
        "amdsmi_get_minmax_bandwidth_between_processors": lambda a, b: {"min_bandwidth": 64000, "max_bandwidth": 64000},
    }
    module.__dict__.update(functions | {"AmdSmiException": _Error, "AmdSmiLinkType": kinds})
    if old:
        module.__dict__["AmdSmiIoLinkType"] = io_kinds
    if broken:
        module.__dict__[broken] = failing
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    return module


@pytest.mark.parametrize("old", [True, False])
def test_the_library_answers_as_its_tool_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], old: bool
) -> None:
    """Releases number kinds of links differently; a getter that fails leaves its fact out; nothing is printed."""
    library(monkeypatch, old=old)
    read = facts(ask_library(("amdsmi",)).stdout)

    assert [(0, A, 5, None, 1), (1, B, 5, None, 1)] == [
        (gpu.index, gpu.address, gpu.module_id, gpu.compute_partition, len(gpu.nvlinks)) for gpu in read.gpus
    ]
    assert ("6.8.5", [(A, B, "XGMI")]) == (read.driver_version, [tuple(cell) for cell in read.pairs])
    assert "" == capsys.readouterr().out


@pytest.mark.parametrize("broken", ["amdsmi_init", "amdsmi_get_processor_handles", "amdsmi_get_gpu_device_bdf"])
def test_a_library_that_fails_is_a_reason(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Without handles or addresses there is nothing to describe."""
    library(monkeypatch, broken=broken)
    with pytest.raises(Failed, match="NOT_SUPPORTED"):
        ask_library(("amdsmi",))


def test_a_host_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it is not installed, or does not load, is no failure."""
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(Absent, match="amdsmi cannot be used"):
        ask_library(("amdsmi",))


@pytest.mark.parametrize(("state", "status"), [("suspended\n", Status.SKIPPED), ("active\n", Status.ABSENT)])
def test_the_library_is_not_asked_while_a_gpu_sleeps(state: str, status: Status) -> None:
    """It would wake it."""
    host = Machine(live=True, kind="live")
    host.put({f"/sys/devices/{A}/power/runtime_status": state})
    host.put({f"/sys/bus/pci/devices/{A}": SymlinkNode(f"../../../devices/{A}")})
    host.put({f"/sys/bus/pci/drivers/amdgpu/{A}": SymlinkNode(f"../../../../devices/{A}")})

    assert status is outcome_of(probe("amd_smi"), host).status  # type: ignore[arg-type]


def test_a_node_without_amd_gpus_does_not_run_it() -> None:
    """Gated by the bus."""
    report, _ = diagnose(machine("cpu-only-2s"), ScanPlan())
    run = next(run for run in report.probes if run.name == "amd_smi")

    assert ("absent", "no accelerator of PCI vendor 0x1002") == (run.status, run.reason)


LANES = (
    "$ amd-smi static --bus\nGPU: 0\n    BUS:\n        BDF: 0000:05:00.0\n        MAX_PCIE_WIDTH: 16\n"
    "GPU: 1\n    BUS:\n        BDF: 0000:26:00.0\n        MAX_PCIE_WIDTH: 16\n\n"
    "$ amd-smi metric --pcie\nGPU: 0\n    PCIE:\n        WIDTH: 16\nGPU: 1\n    PCIE:\n        WIDTH: {width}\n"
)


@pytest.mark.parametrize(("width", "found"), [(16, []), (8, [("pcie-width-downgraded", "GPU1")])])
def test_lanes_that_the_tools_state(tmp_path: Path, width: int, found: list[tuple[str, str]]) -> None:
    """One of two below the width that both could have."""
    (tmp_path / "issue.md").write_text(LANES.format(width=width))
    report, _ = diagnose(open_source(str(tmp_path / "issue.md")), ScanPlan())

    assert found == [(finding.rule, finding.label) for finding in report.findings]
    sources = [row.source for finding in report.findings for row in finding.evidence]
    assert all("(amd-smi metric)" in source for source in sources)
