"""The table of `nvidia-smi`: the layouts of its drivers, what it states of each GPU, and of lost ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.gpu.facts import Gpu, GpuFacts
from probes.gpu.nvidia_smi_table import list_unreadable, parse_table
from probes.probe import Outcome, outcome_of
from probes.sources.open_source import open_source
from probes.text import ParseError

_WIDE = """\
Sat Nov 28 10:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
_FRAME = "+-----------------------------------------+------------------------+----------------------+\n"
_PROCESSES = """
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    7   N/A  N/A     31337      C   python                                      1024MiB |
+-----------------------------------------------------------------------------------------+
"""


def row(
    index: int = 0, bus: str = "18", ecc: str = "0", second: str = "", mig: str = "Disabled", persistence: str = "On"
) -> str:
    """A GPU of the wide table."""
    second = second or "N/A   32C    P0             72W /  700W |       1MiB /  81559MiB |      0%      Default"
    return (
        f"|   {index}  NVIDIA H100 80GB HBM3          {persistence:3} |   00000000:{bus}:00.0 Off | {ecc:>20} |\n"
        f"| {second} |\n|                                         |                        | {mig:>20} |\n{_FRAME}"
    )


def table(*rows: str) -> str:
    return _WIDE + "".join(rows) + _PROCESSES


TABLE = table(row(), row(1, "2A", ecc="17"))
R390 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 390.30                 Driver Version: 390.30                    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  Off  | 00000000:06:00.0 Off |                  Off |
| N/A   36C    P0    45W / 300W |      0MiB / 16160MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  GeForce GTX 108...  Off  | 00000000:07:00.0  On |                  N/A |
| 31%   44C    P8    N/A /  N/A |     14MiB / 11178MiB |     N/A      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
+-----------------------------------------------------------------------------+
"""


def read_gpus(text: str) -> tuple[Gpu, ...]:
    return parse_table(text)[0].gpus


def saved(folder: Path, text: str, name: str = "nvidia-smi.txt") -> Outcome:
    (folder / name).write_text(text)
    return outcome_of(probe("nvidia_smi"), open_source(str(folder), None))


def test_a_wide_table_states_versions_and_gpus() -> None:
    facts, missing = parse_table(TABLE)

    assert ("570.86.15", "12.8", None) == (facts.driver_version, facts.cuda_version, missing)
    assert [
        (0, "0000:18:00.0", "NVIDIA H100 80GB HBM3", 81559, 0),
        (1, "0000:2a:00.0", "NVIDIA H100 80GB HBM3", 81559, 0),
    ] == [(gpu.index, gpu.address, gpu.name, gpu.memory_mib, gpu.pstate) for gpu in facts.gpus]
    assert [(True, True, 0), (True, True, 17)] == [
        (gpu.health.persistence, gpu.health.ecc, gpu.health.uncorrectable_volatile) for gpu in facts.gpus if gpu.health
    ]


def test_an_old_table_has_two_lines_for_each_gpu() -> None:
    facts, _ = parse_table(R390)

    assert ("390.30", None) == (facts.driver_version, facts.cuda_version)
    assert [("Tesla V100-SXM2...", False, None), ("GeForce GTX 108...", None, None)] == [
        (gpu.name, gpu.health and gpu.health.ecc, gpu.mig_current) for gpu in facts.gpus
    ]


@pytest.mark.parametrize(
    ("mig", "current", "pending"),
    [
        ("Disabled", False, False),
        ("Enabled", True, True),
        ("Enabled*", True, False),
        ("Disabled*", False, True),
        ("N/A", None, None),
    ],
)
def test_mig_is_the_third_line(mig: str, current: bool | None, pending: bool | None) -> None:
    (gpu,) = read_gpus(table(row(ecc="On" if current else "0", mig=mig)))

    assert (current, pending) == (gpu.mig_current, gpu.mig_pending)
    assert gpu.health is not None
    assert (None if current else 0) == gpu.health.uncorrectable_volatile


def test_memory_that_is_not_stated_is_no_fault() -> None:
    second = "N/A   26C    P0            144W /  700W |                  N/A   |     N/A      Default"
    (gpu,) = read_gpus(table(row(second=second)))

    assert (None, None) == (gpu.memory_mib, gpu.error)


@pytest.mark.parametrize(
    ("second", "error"),
    [
        ("N/A   ERR!   ERR!           ERR! /  700W |              GPU is lost | ERR!      Default", "GPU_IS_LOST"),
        ("N/A   ERR!   ERR!           ERR! /  700W | GPU requires reset      | ERR!      Default", "RESET_REQUIRED"),
        ("N/A   ERR!   ERR!           ERR! /  700W |                   ERR!  | ERR!      Default", "Unknown Error"),
        ("N/A   30C    P0             ERR! /  700W |        1MiB / 81559MiB  |      0%   Default", None),
    ],
)
def test_a_lost_gpu_has_an_error(second: str, error: str | None) -> None:
    assert error == read_gpus(table(row(second=second)))[0].error


@pytest.mark.parametrize(
    ("ecc", "second", "columns"),
    [
        ("0", "ERR!  30C    P0              72W /  700W", "fan"),
        ("0", "ERR!  30C    P0             ERR! /  700W", "fan, power"),
        ("0", "N/A   ERR!   ERR!            72W /  ERR!", "temperature, performance state, power limit"),
        ("ERR!", "N/A   30C    P0              72W /  700W", "ECC errors"),
    ],
)
def test_err_in_a_column_is_reported(ecc: str, second: str, columns: str) -> None:
    second = f"{second} |       1MiB /  81559MiB |      0%      Default"
    (gpu,) = list_unreadable(table(row(ecc=ecc, second=second)))

    assert ("0000:18:00.0", columns) == (gpu.address, ", ".join(gpu.columns))
    assert "ERR!" in gpu.line


def test_err_of_a_lost_gpu_is_not_reported_twice() -> None:
    lost = "N/A   ERR!   ERR!           ERR! /  700W |              GPU is lost | ERR!      Default"

    assert [] == list_unreadable(table(row(second=lost)))


def test_a_table_that_ends_within_a_gpu_is_known_to_be_cut() -> None:
    text = table(row(), row(1, "2A"))
    _, missing = parse_table(text[: text.index("|   1")] + "|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2A")

    assert "the table has no end" == missing


@pytest.mark.parametrize("text", ["", "No devices were found\n", "| NVIDIA-SMI 570.86.15 |\n", "x" * ((1 << 20) + 1)])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_table(text)


def test_a_saved_table_gives_the_gpus(tmp_path: Path) -> None:
    outcome = saved(tmp_path, TABLE)

    assert isinstance(outcome.facts, GpuFacts)
    assert ("nvidia-smi",) == outcome.sources
    assert ["0000:18:00.0", "0000:2a:00.0"] == [gpu.address for gpu in outcome.facts.gpus]


def test_it_adds_to_what_a_query_states(tmp_path: Path) -> None:
    (tmp_path / "query.txt").write_text("index, uuid, pci.bus_id\n0, GPU-34bf77d1, 00000000:18:00.0\n")
    facts = saved(tmp_path, table(row(ecc="3"))).facts

    assert [("GPU-34bf77d1", 3)] == [(gpu.uuid, gpu.health.uncorrectable_volatile) for gpu in facts.gpus]
    assert ("570.86.15", "12.8") == (facts.driver_version, facts.cuda_version)


def test_a_file_of_that_name_may_hold_another_output(tmp_path: Path) -> None:
    outcome = saved(tmp_path, "GPU 0: NVIDIA H200 (UUID: GPU-6f3b5fe1-0000-0000-0000-000000000000)\n")

    assert ("nvidia-smi -L",) == outcome.sources


def test_the_sentence_about_a_lost_gpu_stands_alone(tmp_path: Path) -> None:
    outcome = saved(tmp_path, "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n")

    assert [("0000:cb:00.0", "Unknown Error")] == [(gpu.address, gpu.error) for gpu in outcome.facts.gpus]


def test_the_sentence_that_nothing_works_is_the_reason(tmp_path: Path) -> None:
    outcome = saved(
        tmp_path, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"
    )

    assert outcome.facts is None
    assert "Driver/library version mismatch" in (outcome.reason or "")
