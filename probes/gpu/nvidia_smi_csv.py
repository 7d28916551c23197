"""`nvidia-smi --query-gpu=... --format=csv`: a GPU a line below a heading of field names, whichever were asked for."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from probes.gpu import nvidia_smi_values as nvidia_smi_words
from probes.gpu.facts import GpuFacts
from probes.text import Unparsable

_LIMIT_CHARACTERS = 16 << 20
_LIMIT_COLUMNS = 2000

# by our names: the field of --help-query-gpu, newest first
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "gpu_name"),
    "address": ("pci.bus_id", "gpu_bus_id"),
    "uuid": ("uuid", "gpu_uuid"),
    "serial": ("serial", "gpu_serial"),
    "compute_capability": ("compute_cap",),
    "vbios": ("vbios_version",),
    "module_id": ("platform.module_id",),
    "pstate": ("pstate",),
    "utilization": ("utilization.gpu",),
    "memory": ("memory.total",),
    "persistence": ("persistence_mode",),
    "addressing_mode": ("addressing_mode",),
    "c2c": ("c2c.mode",),
    "link_generation": ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"),
    "link_width": ("pcie.link.width.current",),
    "link_max_generation": ("pcie.link.gen.max",),
    "link_max_width": ("pcie.link.width.max",),
    "gpu_max_generation": ("pcie.link.gen.gpumax",),
    "host_max_generation": ("pcie.link.gen.hostmax",),
    "chassis_serial": ("platform.chassis_serial_number",),
    "slot": ("platform.slot_number",),
    "tray": ("platform.tray_index",),
    "mig_current": ("mig.mode.current",),
    "mig_pending": ("mig.mode.pending",),
    "recovery_action": ("gpu_recovery_action",),
    "fabric_state": ("fabric.state",),
    "fabric_status": ("fabric.status",),
    "fabric_clique": ("fabric.cliqueId",),
    "fabric_uuid": ("fabric.clusterUuid",),
    "health_summary": ("fabric.health.summary",),
    "health_bandwidth": ("fabric.health.bandwidth",),
    "health_route_recovery": ("fabric.health.route_recovery_in_progress",),
    "health_route_unhealthy": ("fabric.health.route_unhealthy",),
    "health_access_timeout": ("fabric.health.access_timeout_recovery",),
    "health_configuration": ("fabric.health.incorrect_configuration",),
    "health_partition": ("fabric.health.partition_assigned",),
}


def parse(text: str) -> tuple[GpuFacts, str | None]:
    r"""The GPUs of the CSV, and what is missing from it. Raises Unparsable, also where the heading was left out.

    >>> said, _ = parse("index, uuid, pci.bus_id, memory.total [MiB], pstate\n"
    ...                 "0, GPU-34bf77d1, 00000000:18:00.0, 81559 MiB, P0\n")
    >>> said.gpus[0].index, said.gpus[0].address, said.gpus[0].memory_mib, said.gpus[0].pstate
    (0, '0000:18:00.0', 81559, 0)
    """
    heading, rows = _table(text)
    fitting = [dict(zip(heading, row, strict=True)) for row in rows if len(row) == len(heading)]
    if not fitting:
        raise Unparsable(f"no line with the {len(heading)} fields of the heading")
    first = fitting[0]
    count = nvidia_smi_words.number(first.get("count", ""))
    facts = GpuFacts(
        gpus=tuple(
            nvidia_smi_words.gpu(_values(row), index=nvidia_smi_words.number(row.get("index", ""))) for row in fitting
        ),
        driver_version=nvidia_smi_words.meaning(first.get("kmd_version") or first.get("driver_version", "")),
        attached=count,
    )
    broken = len(rows) - len(fitting)
    return facts, f"{broken} lines do not have the fields of the heading" if broken else None


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    if len(text) > _LIMIT_CHARACTERS:
        raise Unparsable(f"longer than {_LIMIT_CHARACTERS} characters")
    try:
        rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]
    except csv.Error as error:
        raise Unparsable(f"not CSV: {error}") from None
    if rows and not text.endswith(("\n", "\r")):
        rows[-1][-1] = ""  # it may be cut
    fields = {field for fields in _FIELDS.values() for field in fields}
    for at, row in enumerate(rows):
        heading = [name.partition(" [")[0].strip() for name in row]
        if len(heading) <= _LIMIT_COLUMNS and fields.intersection(heading):
            return heading, rows[at + 1 :]
    first = ",".join(rows[0]) if rows else "nothing"
    raise Unparsable(f"no heading with field names; it begins with: {first[:120]}")


def _values(row: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for name, fields in _FIELDS.items():
        said = next((row[field] for field in fields if field in row), None)
        if said is not None:
            values[name] = said
    return values
