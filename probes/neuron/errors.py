"""Error counts of Neuron devices: the driver's files, by the number that `neuron-ls` gives a device.

Source: aws-neuron-driver 2.24, neuron_sysfs_metrics.c. Counts of runs are kept by the driver; those of ECC are
registers of the device, and a read of one waits while the device is in reset: so this is no part of the probe of
devices. Driver 2.31 moved its files (Neuron Sysfs User Guide); where to is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import parse_digits

DEVICES = "/sys/devices/virtual/neuron_device"
ECC = ("mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_uncorrected")
RUNS = ("hw_error", "hw_hbm_ue_error", "hw_repairable_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error")
MOST_DEVICES, MOST_CORES = 64, 32
_DEVICE, _CORE = re.compile(r"neuron([0-9]{1,4})"), re.compile(r"neuron_core[0-9]{1,4}")


class NeuronErrors(NamedTuple):
    """Counts since the driver was loaded (runs, summed over cores) and since the device was started (ECC)."""

    devices: Mapping[int, Mapping[str, int]]  # by number; what could not be read is left out


def read(host: Host) -> Reading:
    """The counts of every device. Raises ReadError where the driver shows no device."""
    names = [name for name in host.listdir(DEVICES) if _DEVICE.fullmatch(name)][:MOST_DEVICES]
    if not names:
        raise Absent(f"no device in {DEVICES}")
    reader = HostReader(host)
    devices = {int(name[6:]): _read_device(reader, f"{DEVICES}/{name}") for name in names}
    if not all(devices.values()):
        reader.gap("error counts are not where drivers before 2.31 have them")
    return Reading(NeuronErrors(devices), reader.sources, reader.missing)


def _read_device(reader: HostReader, folder: str) -> dict[str, int]:
    said = reader.attributes(f"{folder}/stats/hardware", ECC, source=f"{DEVICES}/*/stats/hardware/*")
    counts = {name: number for name in ECC if (number := parse_digits(said.get(name), 20)) is not None}
    cores = [name for name in reader.names(folder) or () if _CORE.fullmatch(name)][:MOST_CORES]
    source = f"{DEVICES}/*/neuron_core*/stats/status/*/total"
    for core in cores:
        totals = [f"{name}/total" for name in RUNS]
        said = reader.attributes(f"{folder}/{core}/stats/status", totals, source=source)
        for name in RUNS:
            number = parse_digits(said.get(f"{name}/total"), 20)
            if number is not None:
                counts[name] = counts.get(name, 0) + number
    return counts
