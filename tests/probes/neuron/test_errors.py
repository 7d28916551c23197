"""Error counts of Neuron devices: sums over cores, what is no count, and files that are not where they were."""

from __future__ import annotations

from agent.diagnose import ScanPlan, diagnose
from probes.catalogue import probe
from probes.kernel.log_events import events, lines
from probes.neuron.errors import DEVICES, MOST_CORES, MOST_DEVICES, NeuronErrors
from probes.probe import Outcome, Status, outcome_of
from tests.machines import scan_machine
from tests.matrix.cases import overlaid
from tests.probes.rdma.rdma_machine import Machine

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
