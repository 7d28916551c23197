"""What the NVIDIA driver states of its GPUs, through NVML: the `nvml` probe.

Numbers and field ids: nvml.h, https://docs.nvidia.com/deploy/nvml-api. The calls: `probes/host/nvml.py`. Each call, and
each entry of an answer about fields, may fail alone (not supported, an older driver, no permission): what it would have
reported is then None, and no zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.gpu.facts import (
    CLOCK_LIMITS,
    Gpu,
    GpuFacts,
    GpuHealth,
    PairCell,
    find_address,
    normal_address,
    with_known_remotes,
)
from probes.gpu.nvml_enums import (
    ADDRESSING_MODES,
    ARCHITECTURES,
    BANDWIDTH_MODES,
    C2C_ERRORS,
    C2C_STATES,
    P2P_INDEXES,
    P2P_STATUSES,
    PCIE_COUNTERS,
    RECOVERY_ACTIONS,
    TOPOLOGY_LEVELS,
    VIRTUALIZATIONS,
    fabric,
)
from probes.gpu.nvml_nvlink import Fields, NvmlQueryProtocol, nvlinks, pair_kind, plausible_count
from probes.gpu.query_guard import find_missing_driver, require_driver
from probes.host.interface import Absent, Denied, Failed, Host, ReadError, TimedOut
from probes.probe import Reading
from probes.text import ParseError

_C2C_COUNT, _C2C_STATUS, _C2C_MAX = 170, 171, 172
_MOST_C2C = 64  # a Grace Hopper has 10


def pcie_counters(ask: NvmlQueryProtocol, index: int) -> dict[str, int] | None:
    """Counters of the GPU's own PCIe link; None where the driver has none of them."""
    return _counters(ask.fields(index, [(field, 0) for field in PCIE_COUNTERS]), PCIE_COUNTERS)


def c2c_links(ask: NvmlQueryProtocol, index: int) -> dict[str, Any]:
    """State of every C2C link; bandwidth and errors of all together, each only where every link reported its own."""
    count = plausible_count(ask.fields(index, [(_C2C_COUNT, 0)]).get((_C2C_COUNT, 0)), _MOST_C2C)
    if not count:
        return {}
    answers = ask.fields(index, [(_C2C_STATUS, link) for link in range(count)])
    more = ask.fields(index, [(field, link) for link in range(count) for field in (_C2C_MAX, *C2C_ERRORS)])
    sums: dict[tuple[int, int], int | float] = {}
    for field in (_C2C_MAX, *C2C_ERRORS):
        values = [more[field, link] for link in range(count) if (field, link) in more]
        if len(values) == count:
            sums[field, 0] = sum(values)
    most = sums.get((_C2C_MAX, 0))
    return {
        "c2c_links": tuple(
            C2C_STATES.get(int(answers.get((_C2C_STATUS, link), -1)), "unknown") for link in range(count)
        ),
        "c2c_max_gbyte_s": most / 1000 if most else None,
        "c2c_errors": _counters(sums, C2C_ERRORS),
    }


def _counters(answers: Fields, names: Mapping[int, str]) -> dict[str, int] | None:
    """Counters by name, of fields of scope 0; None where the driver has none of them."""
    return {name: int(answers[field, 0]) for field, name in names.items() if (field, 0) in answers} or None


def bandwidth_mode(answer: Mapping[str, int] | None) -> str | None:
    """`bIsBest` states whether anything was taken away. `bwMode` is one of up to 23 that the GPU lists, not a number of
    the system's five modes."""
    if answer is None:
        return None
    return "full" if answer["bIsBest"] else "reduced"


def place(answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Where in a rack the GPU sits. Without a chassis the numbers mean nothing: they are then zeros."""
    if answer is None or not answer["chassisSerialNumber"]:
        return {}
    return {
        "chassis_serial": answer["chassisSerialNumber"],
        "slot": str(answer["slotNumber"]),
        "tray": str(answer["trayIndex"]),
    }


_RECOVERY = 230
_MIB = 1 << 20
_MOST_GPUS, _MOST_MIG = 1024, 64  # a host has 16, a GPU 7
_NO_HANDLE = {"NOT_SUPPORTED", "FUNCTION_NOT_FOUND", None}  # of GetPciInfo: reports nothing about the GPU's health


class NvmlQuery:
    """Asks NVML and survives: None for no answer, and a note of what a person could change."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.notes: list[str] = []
        self.code: str | None = None  # the NVML error of the last call, where it had one
        self.lost: set[int] = set()  # indexes of GPUs that went away while they were read

    def __call__(self, function: str, *arguments: Any) -> Any:
        """The answer of one call, or None."""
        self.code = None
        try:
            return self.host.nvml(function, *arguments)
        except ReadError as why:
            self.code = why.code
            if why.code == "GPU_IS_LOST" and arguments:
                self.lost.add(arguments[0])
            note = why.reason if isinstance(why, (Denied, TimedOut)) else None
            if note and note not in self.notes:
                self.notes.append(note)
            return None

    def word(self, words: Mapping[int, str], function: str, *arguments: Any) -> str | None:
        """A call whose answer is a number of an enumeration."""
        return _word(words, self(function, *arguments))

    def fields(self, index: int, ids: list[tuple[int, int]]) -> dict[tuple[int, int], int | float]:
        """Field values by (id, scope); a field that failed is left out."""
        answer = self("nvmlDeviceGetFieldValues", index, [list(field) for field in ids])
        return {
            (entry["id"], entry["scope"]): entry["value"]
            for entry in answer or ()
            if entry["return"] == 0 and entry["value"] is not None
        }


def read(host: Host) -> Reading:
    """GPUs, their links, and how they reach each other. Raises Skipped and Absent as the gate states, and what
    nvmlInit answers where it fails."""
    require_driver(host)
    _init(host)
    ask = NvmlQuery(host)
    device_count = host.nvml("nvmlDeviceGetCount_v2")
    count = plausible_count(device_count, _MOST_GPUS)
    if count is None:
        raise Failed(f"nvmlDeviceGetCount_v2 returns {device_count!r:.40}: no number of GPUs")
    gpus = with_known_remotes(_with_addresses(host, [_gpu(ask, index) for index in range(count)]))
    p2p = _p2p(ask, gpus)
    cuda = ask("nvmlSystemGetCudaDriverVersion_v2")
    facts = GpuFacts(
        gpus=tuple(gpus),
        driver_version=ask("nvmlSystemGetDriverVersion"),
        cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        pairs=_pairs(ask, gpus, p2p),
        p2p=p2p,
        bandwidth_mode=ask.word(BANDWIDTH_MODES, "nvmlSystemGetNvlinkBwMode"),
        confidential_computing=_flag((ask("nvmlSystemGetConfComputeState") or {}).get("ccFeature")),
        attached=count,
    )
    lost = [f"{gpu.address or f'GPU{gpu.index}'}: {gpu.error}" for gpu in gpus if gpu.error]
    return Reading(facts, ("NVML (libnvidia-ml.so.1)",), "; ".join(lost + ask.notes) or None)


def _init(host: Host) -> None:
    """nvmlInit. A capture of a host without the driver states that again, and not that NVML was not recorded."""
    try:
        host.nvml("nvmlInit_v2")
    except Absent as why:
        missing = find_missing_driver(host) if host.kind == "capture" and why.code is None else None
        if missing:
            raise Absent(missing) from None
        raise


def _gpu(ask: NvmlQuery, index: int) -> Gpu:
    pci = ask("nvmlDeviceGetPciInfo_v3", index)
    if pci is None and ask.code not in _NO_HANDLE:
        return Gpu(index=index, error=ask.code)

    def of(name: str, *arguments: Any) -> Any:
        return ask(f"nvmlDeviceGet{name}", index, *arguments)

    architecture, capability = of("Architecture"), of("CudaComputeCapability")
    mig, virtualization = of("MigMode") or (None, None), _word(VIRTUALIZATIONS, of("VirtualizationMode"))
    links = nvlinks(ask, index, architecture, _flag(mig[0]), virtualization)
    fabric_info, c2c, pcie = of("GpuFabricInfoV"), of("C2cModeInfoV"), _pcie(ask, index)
    return Gpu(
        index=index,
        address=find_address(pci["busId"]) if pci else None,
        uuid=of("UUID"),
        serial=of("Serial"),
        minor=of("MinorNumber"),
        name=of("Name"),
        architecture=_word(ARCHITECTURES, architecture),
        compute_capability=".".join(map(str, capability)) if capability else None,
        vbios=of("VbiosVersion"),
        memory_mib=_mib(of("MemoryInfo"), "total"),
        bar1_mib=_mib(of("BAR1MemoryInfo"), "bar1Total"),
        module_id=of("ModuleId"),
        replays=of("PcieReplayCounter"),
        memory_numa_node=_node(of("NumaNodeId")),
        mig_current=_flag(mig[0]),
        mig_pending=_flag(mig[1]),
        mig_instances=_mig_instances(ask, index) if mig[0] == 1 else (),
        virtualization=virtualization,
        nvlink_supported=links.supported,
        nvlink_reason=links.reason,
        nvlinks=links.links,
        fabric=fabric(fabric_info) if fabric_info else None,
        c2c_enabled=_flag(c2c["isC2cEnabled"]) if c2c else None,
        addressing_mode=_word(ADDRESSING_MODES, of("AddressingMode")),
        recovery_action=_word(RECOVERY_ACTIONS, ask.fields(index, [(_RECOVERY, 0)]).get((_RECOVERY, 0))),
        pcie_counters=pcie_counters(ask, index),
        nvlink_bandwidth_mode=bandwidth_mode(of("NvlinkBwMode")),
        **place(of("PlatformInfo")),
        **(c2c_links(ask, index) if c2c and c2c["isC2cEnabled"] else {}),
        **pcie,
        health=read_health(ask, index, pcie["utilization_percent"]),
        error="GPU_IS_LOST" if index in ask.lost else None,
    )


def _pcie(ask: NvmlQuery, index: int) -> dict[str, Any]:
    """The PCIe link between two readings of the P-state: an idle GPU slows its link down, so that a P-state is reported
    only where it was the same before and after, and so shows what the sample is worth."""
    before = ask("nvmlDeviceGetPerformanceState", index)
    link = {
        "link_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration", index),
        "link_width": ask("nvmlDeviceGetCurrPcieLinkWidth", index),
        "link_max_generation": ask("nvmlDeviceGetMaxPcieLinkGeneration", index),
        "link_max_width": ask("nvmlDeviceGetMaxPcieLinkWidth", index),
    }
    utilization = ask("nvmlDeviceGetUtilizationRates", index)
    after = ask("nvmlDeviceGetPerformanceState", index)
    steady = before if before == after and before in range(16) else None
    return {**link, "pstate": steady, "utilization_percent": utilization["gpu"] if utilization else None}


def _mig_instances(ask: NvmlQuery, index: int) -> tuple[str, ...]:
    count = plausible_count(ask("nvmlDeviceGetMaxMigDeviceCount", index), _MOST_MIG) or 0
    uuids = (ask("nvmlDeviceGetMigDeviceHandleByIndex", index, instance) for instance in range(count))
    return tuple(uuid for uuid in uuids if uuid)  # places without an instance are NOT_FOUND


def _with_addresses(host: Host, gpus: list[Gpu]) -> list[Gpu]:
    """Give the GPUs that NVML could not open their addresses: they are the ones of /proc/driver/nvidia/gpus that no
    other GPU has. Only where the numbers fit; and which of several lost ones has which index is not known."""
    lost = [gpu for gpu in gpus if gpu.address is None and gpu.error]
    if not lost:
        return gpus
    try:
        bound = {normal_address(name) for name in host.listdir("/proc/driver/nvidia/gpus")}
    except (ReadError, ParseError):
        return gpus
    free = sorted(bound - {gpu.address for gpu in gpus})
    if len(free) != len(lost) or len({gpu.error for gpu in lost}) != 1:
        return gpus
    sure = len(lost) == 1
    named = (gpu._replace(address=at, index=gpu.index if sure else None) for gpu, at in zip(lost, free, strict=True))
    return [gpu for gpu in gpus if gpu not in lost] + list(named)


def _p2p(ask: NvmlQuery, gpus: list[Gpu]) -> dict[tuple[int, int], dict[str, str]]:
    states = {}
    for a, b in _ordered_pairs(gpus):
        words = {name: ask.word(P2P_STATUSES, "nvmlDeviceGetP2PStatus", a, b, at) for name, at in P2P_INDEXES.items()}
        if any(words.values()):
            states[a, b] = {name: word for name, word in words.items() if word}
    return states


def _pairs(ask: NvmlQuery, gpus: list[Gpu], p2p: Mapping[tuple[int, int], Mapping[str, str]]) -> tuple[PairCell, ...]:
    by_index = {gpu.index: gpu for gpu in gpus}
    cells = []
    for a, b in _ordered_pairs(gpus):
        if a < b:
            pcie = ask.word(TOPOLOGY_LEVELS, "nvmlDeviceGetTopologyCommonAncestor", a, b)
            kind = pair_kind(by_index[a], by_index[b], p2p.get((a, b), {}).get("nvlink"), by_index.values()) or pcie
            if kind:
                cells.append(PairCell(f"GPU{a}", f"GPU{b}", kind))
    return tuple(cells)


def _ordered_pairs(gpus: list[Gpu]) -> list[tuple[int, int]]:
    here = [gpu.index for gpu in gpus if gpu.index is not None and not gpu.error]
    return [(a, b) for a in here for b in here if a != b]


def _mib(answer: Mapping[str, int] | None, name: str) -> int | None:
    return answer[name] // _MIB if answer else None


def _flag(number: int | None) -> bool | None:
    return None if number is None else number == 1


def _node(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def _word(words: Mapping[int, str], number: int | float | None) -> str | None:
    """The word; None for a number that is newer than we are."""
    return None if number is None else words.get(int(number))


_GRAPHICS, _SM = 0, 1  # nvmlClockType_t
_UNCORRECTED, _VOLATILE, _AGGREGATE = 1, 0, 1  # nvmlMemoryErrorType_t, nvmlEccCounterType_t


def read_health(ask: NvmlQueryProtocol, index: int, utilization_percent: int | None) -> GpuHealth | None:
    """None where no call gave an answer: nothing of it is known."""

    def of(name: str, *arguments: Any) -> Any:
        return ask(f"nvmlDeviceGet{name}", index, *arguments)

    ecc = of("EccMode") or (None, None)
    rows, pages, parts = of("RemappedRows"), of("RetiredPagesPendingStatus"), of("RepairStatus") or (0, 0)
    health = GpuHealth(
        clock_limits=clock_limits(of("CurrentClocksEventReasons")),
        sm_clock_mhz=of("ClockInfo", _SM),
        sm_clock_max_mhz=of("MaxClockInfo", _SM),
        application_clock_mhz=of("ApplicationsClock", _GRAPHICS),
        application_clock_default_mhz=of("DefaultApplicationsClock", _GRAPHICS),
        power_limit_watts=_watts(of("EnforcedPowerLimit")),
        power_limit_requested_watts=_watts(of("PowerManagementLimit")),
        power_limit_default_watts=_watts(of("PowerManagementDefaultLimit")),
        persistence=_flag(of("PersistenceMode")),
        ecc=_flag(ecc[0]),
        ecc_pending=_flag(ecc[1]),
        uncorrectable_volatile=of("TotalEccErrors", _UNCORRECTED, _VOLATILE),
        uncorrectable_aggregate=of("TotalEccErrors", _UNCORRECTED, _AGGREGATE),
        sram_threshold_exceeded=_flag((of("SramEccErrorStatus") or {}).get("bThresholdExceeded")),
        repairs_pending=_name_repairs(
            rows is not None or pages is not None,
            {"row_remap": rows and rows[2], "page_retirement": pages, "channel": parts[0], "tpc": parts[1]},
        ),
        repairs_failed=_name_repairs(
            rows is not None, {"row_remap": rows and rows[3], "memory": of("UnrepairableMemoryFlag_v1")}
        ),
    )
    return None if health == GpuHealth() else health._replace(utilization_percent=utilization_percent)


def clock_limits(bits: int | None) -> tuple[str, ...] | None:
    """Names of the bits that are set; None for no answer.

    >>> clock_limits(0x48), clock_limits(0)
    (('hw_slowdown', 'hw_thermal_slowdown'), ())
    """
    return None if bits is None else tuple(name for bit, name in CLOCK_LIMITS.items() if bits & bit)


def _name_repairs(known: bool, flags: Mapping[str, int | None]) -> tuple[str, ...] | None:
    """Names of those that are set; None where none is, and that of rows or pages is not known."""
    names = tuple(name for name, flag in flags.items() if flag)
    return names if names or known else None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
