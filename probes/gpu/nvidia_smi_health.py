"""Memory errors, repairs, clocks and power of one GPU, as `nvidia-smi -q` names them in text, XML and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from probes.gpu.facts import CLOCK_LIMITS, GpuHealth
from probes.text import lazy_pattern

Names = Mapping[str, tuple[str, ...]]

_LIMIT, _ECC, _MASK = "limit:", "unc:", "limits"
_ENABLED = {"enabled": True, "disabled": False}
_YES = {"yes": True, "no": False, "1": True, "0": False}  # as numbers: --query-remapped-rows
_ACTIVE = {"active": True, "not active": False}
_NUMBER = lazy_pattern(r"(\d{1,12}(?:\.\d{1,6})?)(?: ?(?:W|MHz|%))?", re.ASCII)
_HEX = lazy_pattern(r"0x[0-9a-fA-F]{1,16}")
_REPAIRS_PENDING = {
    "remap_pending": "row_remap", "pages_pending": "page_retirement", "channel_pending": "channel",
    "tpc_pending": "tpc",
}  # fmt: skip
_REPAIRS_FAILED = {"remap_failed": "row_remap", "memory_unrepairable": "memory"}
# The uncorrectable errors of a count of nvidia-smi: one of these groups, of the newest layout that is there
_GROUPS = (("sram_parity", "sram_secded", "dram"), ("sram", "dram"), ("total",))

_TEXT_LIMITS = {
    "idle": "Idle", "applications_clocks_setting": "Applications Clocks Setting", "sw_power_cap": "SW Power Cap",
    "hw_slowdown": "HW Slowdown", "sync_boost": "Sync Boost", "sw_thermal_slowdown": "SW Thermal Slowdown",
    "hw_thermal_slowdown": "HW Thermal Slowdown", "hw_power_brake_slowdown": "HW Power Brake Slowdown",
    "display_clock_setting": "Display Clock Setting",
}  # fmt: skip
_POWER = ("GPU Power Readings/GPU Ceiling Power Limit", "GPU Power Readings")  # R610 has a heading more
TEXT: Names = {
    **{
        _LIMIT + name: tuple(f"Clocks {head} Reasons/{label}" for head in ("Event", "Throttle"))
        for name, label in _TEXT_LIMITS.items()
    },
    "sm_clock_mhz": ("Clocks/SM",),
    "sm_clock_max_mhz": ("Max Clocks/SM",),
    "application_clock_mhz": ("Applications Clocks/Graphics",),
    "application_clock_default_mhz": ("Default Applications Clocks/Graphics",),
    "power_limit_watts": (*(f"{head}/Current Power Limit" for head in _POWER), "Power Readings/Enforced Power Limit"),
    "power_limit_requested_watts": (
        *(f"{head}/Requested Power Limit" for head in _POWER),
        "Power Readings/Power Limit",
    ),
    "power_limit_default_watts": (
        *(f"{head}/Default Power Limit" for head in _POWER),
        "Power Readings/Default Power Limit",
    ),
    "persistence": ("Persistence Mode",),
    "ecc": ("ECC Mode/Current", "Ecc Mode/Current"),
    "ecc_pending": ("ECC Mode/Pending", "Ecc Mode/Pending"),
    **{
        f"{_ECC}{kind}:{part}": (f"ECC Errors/{head}/{label}",)
        for kind, head in (("volatile", "Volatile"), ("aggregate", "Aggregate"))
        for part, label in (
            ("sram_parity", "SRAM Uncorrectable Parity"),
            ("sram_secded", "SRAM Uncorrectable SEC-DED"),
            ("sram", "SRAM Uncorrectable"),
            ("dram", "DRAM Uncorrectable"),
            ("total", "Double Bit/Total"),
        )
    },
    "sram_threshold_exceeded": ("ECC Errors/Aggregate/SRAM Threshold Exceeded",),
    "remap_pending": ("Remapped Rows/Pending",),
    "remap_failed": ("Remapped Rows/Remapping Failure Occurred",),
    "pages_pending": ("Retired Pages/Pending Page Blacklist", "Retired Pages/Pending"),
    "channel_pending": ("ECC Errors/Channel Repair Pending",),
    "tpc_pending": ("ECC Errors/TPC Repair Pending",),
    "memory_unrepairable": ("ECC Errors/Unrepairable Memory",),
}
_XML_LIMITS = {name: name for name in CLOCK_LIMITS.values()} | {
    "idle": "gpu_idle",
    "applications_clocks_setting": "applications_clocks_setting",
    "display_clock_setting": "display_clocks_setting",
}
_XML_POWER = ("gpu_power_readings", "power_readings")
XML: Names = {
    **{
        _LIMIT + name: tuple(f"clocks_{head}_reasons/clocks_{head}_reason_{label}" for head in ("event", "throttle"))
        for name, label in _XML_LIMITS.items()
    },
    "sm_clock_mhz": ("clocks/sm_clock",),
    "sm_clock_max_mhz": ("max_clocks/sm_clock",),
    "application_clock_mhz": ("applications_clocks/graphics_clock",),
    "application_clock_default_mhz": ("default_applications_clocks/graphics_clock",),
    "power_limit_watts": ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"),
    "power_limit_requested_watts": ("gpu_power_readings/requested_power_limit", "power_readings/power_limit"),
    "power_limit_default_watts": tuple(f"{head}/default_power_limit" for head in _XML_POWER),
    "persistence": ("persistence_mode",),
    "ecc": ("ecc_mode/current_ecc",),
    "ecc_pending": ("ecc_mode/pending_ecc",),
    **{
        f"{_ECC}{kind}:{part}": (f"ecc_errors/{kind}/{label}",)
        for kind in ("volatile", "aggregate")
        for part, label in (
            ("sram_parity", "sram_uncorrectable_parity"),
            ("sram_secded", "sram_uncorrectable_secded"),
            ("sram", "sram_uncorrectable"),
            ("dram", "dram_uncorrectable"),
            ("total", "double_bit/total"),
        )
    },
    "sram_threshold_exceeded": ("ecc_errors/aggregate/sram_threshold_exceeded",),
    "remap_pending": ("remapped_rows/remapped_row_pending",),
    "remap_failed": ("remapped_rows/remapped_row_failure",),
    "pages_pending": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
}
_CSV_LIMITS = {name: name for name in CLOCK_LIMITS.values()} | {"idle": "gpu_idle"}
CSV: Names = {
    **{
        _LIMIT + name: tuple(f"clocks_{head}_reasons.{label}" for head in ("event", "throttle"))
        for name, label in _CSV_LIMITS.items()
    },
    _MASK: ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    "sm_clock_mhz": ("clocks.current.sm", "clocks.sm"),
    "sm_clock_max_mhz": ("clocks.max.sm",),
    "application_clock_mhz": ("clocks.applications.graphics",),
    "application_clock_default_mhz": ("clocks.default_applications.graphics",),
    "power_limit_watts": ("enforced.power.limit",),
    "power_limit_requested_watts": ("power.limit",),
    "power_limit_default_watts": ("power.default_limit",),
    "persistence": ("persistence_mode",),
    "ecc": ("ecc.mode.current",),
    "ecc_pending": ("ecc.mode.pending",),
    **{
        f"{_ECC}{kind}:{part}": (f"ecc.errors.uncorrected.{kind}.{part}",)
        for kind in ("volatile", "aggregate")
        for part in ("sram", "dram", "total")
    },
    "sram_threshold_exceeded": ("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",),
    "remap_pending": ("remapped_rows.pending",),
    "remap_failed": ("remapped_rows.failure",),
    "pages_pending": ("retired_pages.pending",),
}


def read_health(values: Mapping[str, str], utilization_percent: int | None) -> GpuHealth | None:
    """The health in these values, by the names of the tables above; None where there is nothing of it.

    >>> read_health({"limit:hw_slowdown": "Active", "unc:volatile:dram": "2", "unc:volatile:sram": "1"}, None)[:1]
    (('hw_slowdown',),)
    """
    health = GpuHealth(
        **{name: read(values[name]) for name, read in _READERS.items() if name in values},
        clock_limits=_clock_limits(values),
        uncorrectable_volatile=_uncorrectable(values, "volatile"),
        uncorrectable_aggregate=_uncorrectable(values, "aggregate"),
        repairs_pending=_repairs(values, _REPAIRS_PENDING),
        repairs_failed=_repairs(values, _REPAIRS_FAILED),
    )
    return None if health == GpuHealth() else health._replace(utilization_percent=utilization_percent)


def _clock_limits(values: Mapping[str, str]) -> tuple[str, ...] | None:
    """None where a reason is neither active nor not, or where none is active and the list has no end; a mask of all of
    them (nvml.h, nvmlClocksEventReasons) counts before their list.

    >>> _clock_limits({"limits": "0x0000000000000048"}), _clock_limits({"limits": "N/A"})
    (('hw_slowdown', 'hw_thermal_slowdown'), None)
    """
    if mask := _HEX.fullmatch(values.get(_MASK, "")):
        return tuple(name for bit, name in CLOCK_LIMITS.items() if int(mask[0], 16) & bit)
    states = {name: _flag(_ACTIVE, values[_LIMIT + name]) for name in CLOCK_LIMITS.values() if _LIMIT + name in values}
    active = tuple(name for name, state in states.items() if state)
    if None in states.values() or not (active or {"hw_slowdown", "sw_thermal_slowdown"} <= states.keys()):
        return None
    return active


def _uncorrectable(values: Mapping[str, str], kind: str) -> int | None:
    """Errors of all memories together; None where one of them is not printed."""
    for group in _GROUPS:
        counts = [_whole(values.get(f"{_ECC}{kind}:{part}", "")) for part in group]
        known = [count for count in counts if count is not None]
        if len(known) == len(group):
            return sum(known)
    return None


def _repairs(values: Mapping[str, str], names: Mapping[str, str]) -> tuple[str, ...] | None:
    """None where none is reported, and that of rows or pages is not known."""
    states = {word: state for name, word in names.items() if (state := _flag(_YES, values.get(name, ""))) is not None}
    words = tuple(word for word, state in states.items() if state)
    return words if words or {"row_remap", "page_retirement"} & states.keys() else None


def _flag(words: Mapping[str, bool], word: str) -> bool | None:
    return words.get(word.lower())


def _number(word: str) -> float | None:
    match = _NUMBER.fullmatch(word)
    return float(match[1]) if match else None


def _whole(word: str) -> int | None:
    value = _number(word)
    return None if value is None else int(value)


# Facts by name: how the word of each is read
_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("sm_clock_mhz", "sm_clock_max_mhz"), _whole),
    **dict.fromkeys(("application_clock_mhz", "application_clock_default_mhz"), _whole),
    **dict.fromkeys(("power_limit_watts", "power_limit_requested_watts", "power_limit_default_watts"), _number),
    **dict.fromkeys(("persistence", "ecc", "ecc_pending"), partial(_flag, _ENABLED)),
    "sram_threshold_exceeded": partial(_flag, _YES),
}
