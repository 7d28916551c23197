"""`neuron-ls` in its forms: text, JSON, elided and hostile ones; the described instance; error counts from sysfs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.outputs.text.page import render_page
from probes.catalogue import probe
from probes.gpu.facts import GpuFacts
from probes.kernel.log_events import events
from probes.kernel.log_lines import lines
from probes.neuron.errors import DEVICES, MOST_CORES, MOST_DEVICES, NeuronErrors
from probes.neuron.probe import parse_neuron_ls
from probes.probe import Outcome, Status, outcome_of
from probes.sources.open_source import open_source
from probes.text import ParseError
from tests.machines import machine, scan_machine
from tests.matrix.cases import overlaid
from tests.probes.machine import Machine

SHAPE = "trn1-16xtrainium"
TABLE = """\
$ neuron-ls
instance-type: trn1.2xlarge
+--------+--------+--------+-----------+---------+------+
| NEURON | NEURON | NEURON | CONNECTED |   PCI   | NUMA |
| DEVICE | CORES  | MEMORY |  DEVICES  |   BDF   | NODE |
+--------+--------+--------+-----------+---------+------+
| 0      | 2      | 32 GB  | 1         | 10:1c.0 | 0    |
|        |        |        |           |         |      |
| 1      | 2      | 512 MB | 0         | a0:1d.0 | -1   |
+--------+--------+--------+-----------+---------+------+
"""
JSON = json.dumps(
    [
        {"neuron_device": 0, "bdf": "cc:00.0", "connected_to": [1], "memory_size": 103_079_215_104, "numa_node": "1"},
        {"neuron_device": 1, "bdf": "0000:b5:00.0", "connected_to": [0, 7], "numa_node": "-1"},
    ]
)


def rows(read: GpuFacts) -> list[tuple[object, ...]]:
    """What the report takes of each."""
    return [
        (g.index, g.address, g.memory_mib, g.numa_node, [link.remote_address for link in g.nvlinks]) for g in read.gpus
    ]


def test_a_list_of_devices_among_fields_of_the_instance() -> None:
    document = {"instance_type": "trn2.48xlarge", "devices": json.loads(JSON)}

    assert parse_neuron_ls(JSON) == parse_neuron_ls(json.dumps(document))
    with pytest.raises(ParseError, match="no device"):
        parse_neuron_ls(json.dumps({**document, "more": json.loads(JSON)}))


def test_the_table_and_its_json() -> None:
    """Short addresses are in domain 0; -1 is no node; a device beyond this instance has no address."""
    assert [
        (0, "0000:10:1c.0", 32_768, 0, ["0000:a0:1d.0"]),
        (1, "0000:a0:1d.0", 512, None, ["0000:10:1c.0"]),
    ] == rows(parse_neuron_ls(TABLE))
    assert [
        (0, "0000:cc:00.0", 98_304, 1, ["0000:b5:00.0"]),
        (1, "0000:b5:00.0", None, None, ["0000:cc:00.0", None]),
    ] == rows(parse_neuron_ls(JSON))


def test_a_link_that_one_end_states_is_no_pair() -> None:
    """Both ends must."""
    one = json.dumps([{"neuron_device": n, "bdf": f"cc:0{n}.0", "connected_to": [1] if n == 0 else []} for n in (0, 1)])
    read = parse_neuron_ls(one)

    assert ((), "neuron-ls states no connected device") == (read.pairs, read.gpus[1].nvlink_reason)
    assert [("0000:b5:00.0", "0000:cc:00.0")] == [
        tuple(sorted((cell.a, cell.b))) for cell in parse_neuron_ls(JSON).pairs
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no device"),
        ("[{]", "no JSON"),
        ('[{"neuron_device": 0}, ...', "no JSON"),
        ('[7, {"neuron_device": true, "bdf": "cc:00.0"}, {"neuron_device": 0, "bdf": 7}]', "no device"),
        ('[{"neuron_device": 0, "bdf": "cc:00.0", "connected_to": ["1"]}]', "no device"),
        ('[{"neuron_device": 0, "bdf": "somewhere"}]', "not a PCI address"),
        (TABLE.replace("a0:1d.0", "10:1c.0"), "one number or one address"),
        (TABLE.replace("| 1 ", "| 0 "), "one number or one address"),
        ("| NEURON |", "no device"),
    ],
)
def test_what_is_none_is_refused(text: str, why: str) -> None:
    """In one line."""
    with pytest.raises(ParseError, match=why):
        parse_neuron_ls(text)


ALONE = TABLE.replace("| 1         | 10", "|           | 10").partition("|        |   ")[0]


@pytest.mark.parametrize(
    ("text", "devices", "reason"),
    [(TABLE, 2, None), (JSON, 2, None), (ALONE, 1, None), (f"{JSON[:-60]}...\n", 0, "cut or elided")],
    ids=["table", "JSON", "no peers", "elided"],
)
def test_a_saved_output(tmp_path: Path, text: str, devices: int, reason: str | None) -> None:
    """What a person cut is named; the output is asked of no host."""
    file = tmp_path / "neuron-ls.txt"
    file.write_text(text)
    saved = outcome_of(probe("neuron"), open_source(str(file), None))  # type: ignore[arg-type]

    assert devices == len(saved.facts.gpus if saved.facts else ())
    assert (reason or "") in (saved.reason or "")
    assert (Status.FAILED if reason else Status.OK) is saved.status
    assert Status.ABSENT is outcome_of(probe("neuron"), Machine()).status  # type: ignore[arg-type]


def test_real_outputs(corpus: Path) -> None:
    """Two instances of 16 in a torus of 4 by 4, one device alone, and an elided output that is refused."""
    folder = corpus / "accelerators" / "other"

    for name in ("neuron-ls-trn1.32xlarge.txt", "neuron-ls-trn2n.48xlarge.txt", "neuron-ls-topology-trn2n.txt"):
        read = outcome_of(probe("neuron"), open_source(str(folder / name), None)).facts  # type: ignore[arg-type]
        assert (16, 32) == (len(read.gpus), len(read.pairs))
        assert {4} == {len(gpu.nvlinks) for gpu in read.gpus}
    alone = outcome_of(probe("neuron"), open_source(str(folder / "neuron-ls-1device-numa-minus1.txt"), None)).facts  # type: ignore[arg-type]
    assert [(0, "0000:00:1e.0", 32_768, None, [])] == rows(alone)
    elided = outcome_of(probe("neuron"), open_source(str(folder / "neuron-ls-trn2n-elided.json.txt"), None))  # type: ignore[arg-type]
    assert Status.FAILED is elided.status
    assert "cut or elided" in (elided.reason or "")


def test_the_described_instance() -> None:
    """Numbers are those of the tool, not of the bus; the matrix shows neighbors and the distance of the others."""
    report = scan_machine(SHAPE)
    gpus = {gpu.id: gpu for gpu in report.topology.gpus}

    assert (0, "Trainium", "open", 4) == (
        gpus["0000:10:1c.0"].index, gpus["0000:10:1c.0"].name, gpus["0000:10:1c.0"].driver_state,
        len(gpus["0000:10:1c.0"].links),
    )  # fmt: skip
    assert 32 == sum(path.kind == "NEURON" for path in report.topology.paths)
    assert "trn1.32xlarge" == report.platform.profile
    assert "NEURON" in "".join(part for line in render_page(report, 100) for part, _ in line)
    assert Status.OK is outcome_of(probe("neuron"), machine(SHAPE)).status


LINE = (
    "[ 4711.250000] NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 "
    "hostname=ip-172-31-61-252 nd-id=0 nc-id=3 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE"
)


def counts(files: dict[str, str]) -> Outcome:
    """What the probe answers where the driver has these files."""
    host = Machine(live=True, kind="live").put({f"{DEVICES}/{path}": text for path, text in files.items()})
    return outcome_of(probe("neuron_errors"), host)  # type: ignore[arg-type]  # the host interface, in memory


def test_counts_of_cores_are_summed_and_what_is_none_is_left_out() -> None:
    """ECC is of the device; a file that is missing or holds no number is no 0."""
    reading = counts(
        {
            "neuron0/stats/hardware/sram_ecc_uncorrected": "2\n",
            "neuron0/stats/hardware/mem_ecc_uncorrected": "many\n",
            "neuron0/neuron_core0/stats/status/hw_error/total": "3\n",
            "neuron0/neuron_core1/stats/status/hw_error/total": "4\n",
            "neuron0/neuron_core1/stats/status/hw_nc_ue_error/total": f"{'9' * 21}\n",
            "neuron0/reset": "never read\n",
            "neurons/stats/hardware/sram_ecc_uncorrected": "1\n",
        }
    )

    assert (Status.OK, NeuronErrors({0: {"sram_ecc_uncorrected": 2, "hw_error": 7}})) == (reading.status, reading.facts)


def test_files_that_are_elsewhere_and_a_host_without_any() -> None:
    """A device of which nothing is found is a gap; no folder of the driver is absence."""
    reading = counts({"neuron0/stats/hardware/sram_ecc_uncorrected": "0", "neuron1/core_count": "2"})

    assert (Status.PARTIAL, {0: {"sram_ecc_uncorrected": 0}, 1: {}}) == (reading.status, reading.facts.devices)
    assert "before 2.31" in (reading.reason or "")
    assert [Status.ABSENT] * 2 == [counts(files).status for files in ({}, {"other/x": "1"})]


def test_a_hostile_tree_is_read_in_part() -> None:
    """So many devices and cores, and no more."""
    folder = "stats/status/hw_error/total"
    cores = {f"neuron0/neuron_core{n}/{folder}": "1" for n in range(MOST_CORES + 5)}
    devices = {f"neuron{n}/stats/hardware/sram_ecc_uncorrected": "0" for n in range(MOST_DEVICES + 5)}

    assert {"hw_error": MOST_CORES} == counts(cores).facts.devices[0]
    assert MOST_DEVICES == len(counts(devices).facts.devices)


def test_the_report_joins_counts_by_the_number_of_a_device() -> None:
    """Not by the order of the bus; in a container numbers are others."""
    gpus = {gpu.index: gpu for gpu in scan_machine("", "neuron-ecc").topology.gpus}

    assert ({1}, {"sram_ecc_uncorrected", "hw_error", "hw_nc_ue_error"}) == (
        {count for count in gpus[6].error_counts.values() if count},
        {name for name, count in gpus[6].error_counts.items() if count},
    )
    assert [0] * 15 == [sum(gpu.error_counts.values()) for number, gpu in gpus.items() if number != 6]


def test_in_a_container_counts_are_joined_with_no_device() -> None:
    """There a device has another number than in the driver's files."""
    overlay = {"files": {"/.dockerenv": ""}, "neuron": {"errors": {"6": {"sram_ecc_uncorrected": 1}}}}
    report, _ = diagnose(overlaid("trn1-16xtrainium", overlay), ScanPlan())

    assert report.node.container
    assert [{}] * 16 == [gpu.error_counts for gpu in report.topology.gpus]


def test_a_line_of_the_runtime_in_the_kernel_log() -> None:
    """Its kind, device, core and what it asks for; a line without a device is none."""
    found, _ = events(lines(f"{LINE}\n[ 4712.000000] NEURON_HW_ERR=DMA_ABORT nothing else\n", 1_700_000_000))

    assert [("neuron_hw", "SRAM_UNCORRECTABLE_ERROR", None)] == [(e.kind, e.code, e.subject) for e in found]
    assert (("action", "TERMINATE_INSTANCE"), ("core", "3"), ("device", "0")) == found[0].detail
