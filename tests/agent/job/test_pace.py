"""Steps that became slower, by the lines of the job itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agent.job.pace import find_form
from agent.model.job_answer import JobAnswer
from tests.agent.job import jobs

MEGATRON = (
    " iteration {n:8d}/  500000 | consumed samples: {n} | elapsed time per iteration (ms): {ms:.1f} | "
    "learning rate: 1.5E-04 | global batch size:  1024 | lm loss: 2.1E+00 |"
)
FORMS: dict[str, Callable[[int, float], str]] = {
    "Megatron": lambda n, s: MEGATRON.format(n=n, ms=s * 1e3),
    "ms/step": lambda n, s: f"step {n} | loss 2.31 | {s * 1e3:.0f} ms/step",
    "tqdm": lambda n, s: f"Training:  {n}%|###  | {n}/900 [00:12<01:20,  {s:.2f}s/it, loss=2.1]",
    "tqdm, fast": lambda n, s: f"Epoch 0:  {n}%|###  | {n}/900 [00:12<01:20,  {1 / s:.2f}it/s]",
    "DeepSpeed": lambda n, s: (
        f"[INFO] step={n}, RunningAvgSamplesPerSec=9.1, CurrSamplesPerSec={64 / s:.3f}, MemAlloc=1"
    ),
    "NeMo": lambda n, s: f"step {n} | reduced_train_loss: 2.1 | train_step_timing in s: {s:.3f}",
    "tokens": lambda n, s: f"[rank0] step: {n} loss: 2.1 tokens_per_second: {8192 / s:,.0f} memory: 61GiB",
}


def paces(*parts: tuple[int, float], seed: int = 1) -> list[float]:
    """Times of steps, with a jitter of 1 %: so many of a time, one part after the other."""
    jitter = random.Random(seed)
    return [time * jitter.uniform(0.99, 1.01) for count, time in parts for _ in range(count)]


def answer(tmp_path: Path, lines: Iterable[str]) -> JobAnswer:
    return jobs.answer(tmp_path, **{"job.log": "\n".join(lines) + "\n"})


def pace_of(told: JobAnswer) -> list[str]:
    return [cause.summary for cause in told.causes if cause.id == "pace-dropped"]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_in_which_a_pace_is_printed(form: str, tmp_path: Path) -> None:
    lines = [FORMS[form](number, pace) for number, pace in enumerate(paces((60, 0.8), (30, 2.0)), 100)]

    (found,) = pace_of(answer(tmp_path, lines))

    assert found.startswith("steps became 2.5 times as long from line 61 on: ")


def test_lines_of_steps_that_print_no_pace_have_times(tmp_path: Path) -> None:
    at, lines = 0.0, []
    for number, pace in enumerate(paces((60, 8.0), (30, 20.0))):
        at += pace
        clock = f"2026-11-30 {int(at) // 3600:02}:{int(at) // 60 % 60:02}:{int(at) % 60:02}"
        lines.append(f"{clock} step {number} loss 2.1")

    (found,) = pace_of(answer(tmp_path, lines))

    assert found == "steps became 2.5 times as long since 2026-11-30T00:08:19: 20 s, and 8 s before"


@pytest.mark.parametrize(
    "parts",
    [
        [(90, 0.8)],
        [(10, 2.4), (80, 0.8)],
        [(20, 0.8), (1, 9.0)] * 4,
        [(60, 0.8), (30, 0.9)],
        [(60, 2.0), (30, 0.8)],
        [(8, 0.8), (3, 2.4)],
        [(4, 0.8), (8, 2.4)],
        [(8, 0.8), (1, 2.4), (1, 0.9), (6, 2.4)],
    ],
    ids=["steady", "warm-up", "checkpoints", "hardly slower", "faster", "few after it", "few before it", "not all"],
)
def test_what_is_no_drop(parts: list[tuple[int, float]], tmp_path: Path) -> None:
    lines = [FORMS["Megatron"](number, pace) for number, pace in enumerate(paces(*parts))]

    assert [] == pace_of(answer(tmp_path, lines))


@pytest.mark.parametrize("form", ["Megatron", "ms/step"])
def test_few_steps_that_are_all_much_slower(form: str, tmp_path: Path) -> None:
    """A paste has few lines: what is plain in them counts, and is not sure."""
    lines = [FORMS[form](number, pace) for number, pace in enumerate(paces((6, 0.8), (8, 2.4)))]

    result = answer(tmp_path, lines)

    assert pace_of(result)[0].startswith("steps became 3 times as long from line 7 on: 2.4 s")
    assert ["low"] == [cause.confidence for cause in result.causes]


def test_steps_that_are_as_fast_again(tmp_path: Path) -> None:
    lines = [FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((40, 0.8), (30, 2.4), (40, 0.8)))]

    (found,) = pace_of(answer(tmp_path, lines))

    assert found.endswith("; back again after 30 of them")


def test_another_batch_size_explains_it(tmp_path: Path) -> None:
    lines = [
        FORMS["Megatron"](number, pace).replace("1024", "1024" if number < 60 else "2048")
        for number, pace in enumerate(paces((60, 0.8), (30, 1.6)))
    ]

    assert [] == pace_of(answer(tmp_path, lines))


def test_a_server_is_as_fast_as_it_is_asked(tmp_path: Path) -> None:
    form = "INFO Engine 000: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: 31.0 tokens/s"
    lines = ["vLLM engine", *(form.format(800 / pace) for pace in paces((60, 0.8), (30, 2.0)))]

    assert [] == pace_of(answer(tmp_path, lines))


def test_a_steady_pace_is_a_note(tmp_path: Path) -> None:
    told = answer(tmp_path, [FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((90, 0.8)))])

    assert ["its pace is steady: 800 ms in the middle of 90 values"] == [
        note.summary for note in told.notes if "pace" in note.summary
    ]


def test_a_long_log_is_measured_whole(tmp_path: Path) -> None:
    """Most of its lines are only counted by the other readers."""
    lines = [FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((9000, 0.8), (3000, 2.0)))]

    (found,) = pace_of(answer(tmp_path, lines))

    assert "from line 9001 on" in found or "from line 8" in found


def test_a_failure_comes_before_the_pace(tmp_path: Path) -> None:
    lines = [FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((60, 0.8), (30, 2.0)))]
    told = answer(tmp_path, [*lines, "RuntimeError: CUDA error: uncorrectable ECC error encountered"])

    assert ["cuda-214", "pace-dropped"] == [cause.id for cause in told.causes]


@pytest.mark.parametrize("line", [b"loss 2.1", b"Map: 100%|##| 812 examples/s", b"read 3.2 GB/s of checkpoints"])
def test_what_is_no_pace(line: bytes) -> None:
    assert find_form(line, line, False) is None


def test_what_the_kernel_logged_at_that_time_is_named(tmp_path: Path) -> None:
    (tmp_path / "dmesg.txt").write_text(
        "[Mon Nov 30 00:00:01 2026] mlx5_core 0000:1a:00.0 ens1np0: Link up\n"
        "[Mon Nov 30 00:08:21 2026] NVRM: Xid (PCI:0000:3b:00): 74, pid='<unknown>', NVLink: fatal error on link 3\n"
    )
    at, lines = 0.0, []
    for number, pace in enumerate(paces((60, 8.0), (30, 20.0))):
        at += pace
        clock = f"2026-11-30 {int(at) // 3600:02}:{int(at) // 60 % 60:02}:{int(at) % 60:02}"
        lines.append(f"{clock} step {number} loss 2.1")

    told = answer(tmp_path, lines)

    (found,) = pace_of(told)
    assert "Xid" in found
    assert "Link up" not in found


def test_what_is_wrong_with_the_host_is_joined(tmp_path: Path) -> None:
    """A report of the host of each rank: any finding may be what slows all of them."""
    query = "index, pcie.link.gen.current, pcie.link.width.current\n0, 5, 16\n1, 5, 8\n2, 5, 16\n3, 5, 16\n"
    (tmp_path / "gpus.csv").write_text(query)
    lines = [FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((60, 0.8), (30, 2.0)))]
    (cause,) = answer(tmp_path, lines).causes

    assert [True] == ["PCIe width is 8 lanes" in row.text for row in cause.evidence if "peer-differs" in row.text]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("Epoch: [0][{n}/900]  Time  3.2{n} ( 3.30)  Data  2.9{n} ( 2.95)  Loss 6.9", "waits-for-data"),
        ("iter: {n}  total_loss: 1.2  time: 1.71  data_time: 1.2{n}  lr: 0.02", "waits-for-data"),
        ("iter: {n}  total_loss: 1.2  time: 1.71  data_time: 0.01{n}  lr: 0.02", ""),
        ("step={n} loss=3.1 step_time=9.1s n_compiles={n}", "compiles-again"),
        ("step={n} loss=3.1 step_time=9.1s n_compiles=4", ""),
    ],
)
def test_what_is_printed_beside_the_time_of_a_step(line: str, cause: str, tmp_path: Path) -> None:
    told = answer(tmp_path, [line.format(n=number) for number in range(10, 50)])

    assert [row.id for row in told.causes] == ([cause] if cause else [])


@pytest.mark.parametrize(("stalls", "found"), [(4, ["data-stalls"]), (2, [])])
def test_steps_that_wait_for_data_now_and_then(stalls: int, found: list[str], tmp_path: Path) -> None:
    """Two of them are chance; the first step is a start."""
    slow = range(0, 8 * stalls + 1, 8)
    lines = [
        f"[{n}] step_time {24.1 if n in slow else 1.2} s data_time {23.0 if n in slow else 0.02} s loss 2"
        for n in range(40)
    ]

    assert found == [cause.id for cause in answer(tmp_path, lines).causes]


def test_a_short_log_may_have_values_between_fast_and_slow(tmp_path: Path) -> None:
    lines = [
        FORMS["ms/step"](number, pace) for number, pace in enumerate(paces((7, 1.0), (1, 1.3), (1, 1.5), (6, 2.0)))
    ]

    (found,) = pace_of(answer(tmp_path, lines))

    assert found.startswith("steps became 2 times as long from line 10 on: ")
