"""Memory, clocks and power of GPUs: by NVML, by nvidia-smi in three formats, and the findings of a bad one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.gpu.facts import GpuHealth
from probes.gpu.nvidia_smi_query import parse_csv, parse_text, parse_xml
from probes.host.interface import Denied
from probes.sources.open_source import open_source
from tests.probes.gpu.gpu_machine import (
    FUNCTION_NOT_FOUND,
    NOT_SUPPORTED,
    GpuMachine,
    facts_of,
    gpu_answers,
    system_answers,
)
from tests.probes.gpu.nvidia_smi_texts import ADDRESSES, HEALTH_TEXT, QUERY, query_gpu

BAD = GpuHealth(
    clock_limits=("applications_clocks_setting", "hw_slowdown", "hw_thermal_slowdown"),
    sm_clock_mhz=990,
    sm_clock_max_mhz=1980,
    application_clock_mhz=1200,
    application_clock_default_mhz=1980,
    utilization_percent=97,
    power_limit_watts=500.0,
    power_limit_requested_watts=650.5,
    power_limit_default_watts=700.0,
    persistence=False,
    ecc=True,
    ecc_pending=False,
    uncorrectable_volatile=6,
    uncorrectable_aggregate=60,
    sram_threshold_exceeded=True,
    repairs_pending=("row_remap", "channel"),
    repairs_failed=("row_remap", "memory"),
)
NVML = {
    ("CurrentClocksEventReasons",): 0x4A,
    ("ClockInfo", 1): 990,
    ("MaxClockInfo", 1): 1980,
    ("ApplicationsClock", 0): 1200,
    ("DefaultApplicationsClock", 0): 1980,
    ("EnforcedPowerLimit",): 500_000,
    ("PowerManagementLimit",): 650_500,
    ("PowerManagementDefaultLimit",): 700_000,
    ("PersistenceMode",): 0,
    ("EccMode",): [1, 0],
    ("TotalEccErrors", 1, 0): 6,
    ("TotalEccErrors", 1, 1): 60,
    ("SramEccErrorStatus",): {"bThresholdExceeded": 1},
    ("RemappedRows",): [0, 3, 1, 1],
    ("RetiredPagesPendingStatus",): NOT_SUPPORTED,
    ("RepairStatus",): [1, 0],
    ("UnrepairableMemoryFlag_v1",): 1,
    ("UtilizationRates",): {"gpu": 97, "memory": 1},
}


def health(answers: dict) -> GpuHealth | None:
    """What NVML says of one GPU with these answers."""
    result = system_answers(1) | gpu_answers(0, "0000:19:00.0", GetPersistenceMode=NOT_SUPPORTED)
    result |= {(f"nvmlDeviceGet{name}", 0, *arguments): value for (name, *arguments), value in answers.items()}
    return facts_of(GpuMachine(result, otherwise=NOT_SUPPORTED).with_pci("0000:19:00.0")).gpus[0].health


def test_nvml_reports_all_of_a_bad_gpu() -> None:
    """Bits by name, milliwatts as watts, repairs by what they are of."""
    assert BAD == health(NVML)


@pytest.mark.parametrize("call", NVML)
@pytest.mark.parametrize("error", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, Denied("no", "NO_PERMISSION")])
def test_a_call_that_fails_takes_nothing_else_with_it(call: tuple, error: Exception) -> None:
    """What it would have reported is unknown, never a zero."""
    without = health(NVML | {call: error})

    assert without is not None
    known = [name for name in GpuHealth._fields if getattr(without, name) == getattr(BAD, name)]
    assert len(GpuHealth._fields) - 2 <= len(known)
    assert all(getattr(without, name) != getattr(BAD, name) or name in known for name in GpuHealth._fields)


def test_a_gpu_of_which_no_call_answers_has_no_health() -> None:
    """Not even where its utilization is known."""
    assert health({("UtilizationRates",): {"gpu": 97, "memory": 1}}) is None


@pytest.mark.parametrize(
    ("pending", "parts", "expected"),
    [
        (1, NOT_SUPPORTED, ("page_retirement",)),
        (0, NOT_SUPPORTED, ()),
        (NOT_SUPPORTED, [0, 1], ("tpc",)),
        (NOT_SUPPORTED, [0, 0], None),
        (NOT_SUPPORTED, NOT_SUPPORTED, None),
    ],
)
def test_repairs_before_ampere_and_of_r590(pending: object, parts: object, expected: object) -> None:
    """Each call alone; unknown where none of them answers."""
    result = health({("RetiredPagesPendingStatus",): pending, ("RepairStatus",): parts, ("EccMode",): [1, 1]})

    assert result is not None
    assert (expected, None) == (result.repairs_pending, result.repairs_failed)


def bad_text(text: str = HEALTH_TEXT) -> str:
    """`nvidia-smi -q` of four GPUs, the second one bad."""
    return QUERY.replace(query_gpu(1), query_gpu(1).replace("    Persistence Mode  ", f"{text}    Ignored  "))


def test_the_text_reports_all_of_a_bad_gpu() -> None:
    """And of the next one, which prints none of it, its persistence mode alone."""
    gpus = parse_text(bad_text())[0].gpus

    assert BAD == gpus[1].health
    assert GpuHealth(persistence=True, utilization_percent=0) == gpus[2].health


@pytest.mark.parametrize(
    ("new", "old", "name"),
    [
        ("Clocks Event Reasons", "Clocks Throttle Reasons", "clock_limits"),
        ("        Current Power Limit ", "        Enforced Power Limit ", "power_limit_watts"),
        ("        Requested Power Limit ", "        Power Limit ", "power_limit_requested_watts"),
        ("        Default Power Limit ", "        Default Power Limit ", "power_limit_default_watts"),
        ("SRAM Uncorrectable Parity   ", "SRAM Uncorrectable SEC-DED  ", None),
    ],
)
def test_layouts_of_older_drivers(new: str, old: str, name: str | None) -> None:
    """R525 has other names; one of two SRAM counters alone is no sum."""
    text = HEALTH_TEXT.replace("    GPU Power Readings\n", "    Power Readings\n") if "Power" in new else HEALTH_TEXT
    assert new in text
    result = parse_text(bad_text(text.replace(new, old)))[0].gpus[1].health

    assert result is not None
    assert getattr(BAD, name) == getattr(result, name) if name else result.uncorrectable_volatile is None


@pytest.mark.parametrize("word", ["N/A", "Perhaps", ""])
def test_a_word_that_is_not_known_is_unknown(word: str) -> None:
    """Of reasons one such word makes all unknown: it could be the one that matters."""
    text = HEALTH_TEXT.replace(": Not Active", f": {word}").replace(": Yes", f": {word}").replace(": Enabled", ": ?")
    result = parse_text(bad_text(text))[0].gpus[1].health

    assert result is not None
    assert (None, None, None) == (result.sram_threshold_exceeded, result.ecc, result.repairs_failed)
    assert result.clock_limits is None or word in ("N/A", "")


def test_xml_and_csv_name_the_same() -> None:
    """Document type 12, and the fields of --query-gpu."""
    xml = parse_xml(
        '<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu id="00000000:19:00.0"><persistence_mode>Disabled'
        "</persistence_mode><clocks_event_reasons><clocks_event_reason_gpu_idle>Not Active"
        "</clocks_event_reason_gpu_idle><clocks_event_reason_hw_slowdown>Active</clocks_event_reason_hw_slowdown>"
        "</clocks_event_reasons><ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Disabled</pending_ecc>"
        "</ecc_mode><ecc_errors><volatile><sram_uncorrectable>1</sram_uncorrectable><dram_uncorrectable>2"
        "</dram_uncorrectable></volatile><aggregate><double_bit><total>7</total></double_bit></aggregate></ecc_errors>"
        "<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages><remapped_rows>"
        "<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>Yes</remapped_row_failure>"
        "</remapped_rows><gpu_power_readings><current_power_limit>500.00 W</current_power_limit>"
        "<default_power_limit>700.00 W</default_power_limit></gpu_power_readings></gpu></nvidia_smi_log>"
    )[0]
    names = (
        "persistence_mode, clocks_event_reasons.gpu_idle, clocks_event_reasons.hw_slowdown, ecc.mode.current, "
        "ecc.mode.pending, ecc.errors.uncorrected.volatile.total, ecc.errors.uncorrected.aggregate.total, "
        "retired_pages.pending, remapped_rows.pending, remapped_rows.failure, enforced.power.limit [W], "
        "power.default_limit [W]"
    )
    csv = parse_csv(
        f"{names}\nDisabled, Not Active, Active, Enabled, Disabled, 3, 7, Yes, No, Yes, 500.00 W, 700.00 W\n"
    )

    expected = GpuHealth(
        clock_limits=("hw_slowdown",),
        power_limit_watts=500.0,
        power_limit_default_watts=700.0,
        persistence=False,
        ecc=True,
        ecc_pending=False,
        uncorrectable_volatile=3,
        uncorrectable_aggregate=7,
        repairs_pending=("page_retirement",),
        repairs_failed=("row_remap",),
    )
    assert [expected, expected] == [xml.gpus[0].health, csv[0].gpus[0].health]


def test_a_saved_text_of_a_bad_gpu_gives_every_finding(tmp_path: Path) -> None:
    """The folder of saved outputs has nothing else; the other three GPUs are well."""
    slow = {"gpu-throttled", "gpu-power-limited", "gpu-clocks-limited"}
    repaired = re.sub(r"(Failure Occurred|Unrepairable Memory)( +): Yes", r"\1\2: No", HEALTH_TEXT)
    for text, rule in ((repaired, "gpu-ecc"), (HEALTH_TEXT, "gpu-remap-failed")):
        (tmp_path / "nvidia-smi_-q.txt").write_text(bad_text(text))
        report, _ = diagnose(open_source(str(tmp_path), None), ScanPlan())

        result = {finding.rule: finding for finding in report.findings if finding.subject == f"gpu:{ADDRESSES[1]}"}
        assert {*slow, rule} <= result.keys()
        assert "gpu-persistence-off" in result["peer-differs"].absorbs[0]  # its peers have it on
        assert "gpu-remap-pending" in [name.split()[0] for name in result[rule].absorbs]
    assert {"gpu-ecc", "gpu-remap-pending"} == {name.split()[0] for name in result["gpu-remap-failed"].absorbs}


def test_a_cut_text_reports_nothing_that_the_whole_does_not() -> None:
    """A list of reasons or repairs without its end is not one that has none."""
    quiet = HEALTH_TEXT.replace(": Active", ": Not Active").replace(": Yes", ": No").replace("N/A", "No")
    for text in (bad_text(), bad_text(quiet)):
        whole = parse_text(text)[0].gpus[1].health
        assert whole is not None
        start = text.index("Disabled\n    Clocks Event")
        for end in range(start, start + len(HEALTH_TEXT), 7):
            result = parse_text(text[:end])[0].gpus[1].health or GpuHealth()
            for name, value, of_whole in zip(GpuHealth._fields, result, whole, strict=True):
                assert value in (None, of_whole) or (value and set(value) <= set(of_whole)), (name, end)
