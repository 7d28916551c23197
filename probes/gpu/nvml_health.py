"""Memory errors, repairs, clocks and power of one GPU, through NVML. Numbers: nvml.h; every call may fail alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.gpu.facts import CLOCK_LIMITS, GpuHealth
from probes.gpu.nvml_nvlink import NvmlQueryProtocol

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


def _flag(number: int | None) -> bool | None:
    return None if number is None else number == 1
