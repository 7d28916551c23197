"""Layouts of training jobs: what they send, whether they fit, how long a step takes; the shape of a measured table."""

from __future__ import annotations

import json

import pytest

from agent.cli.main import run
from agent.job.measured_tables import read_tables
from agent.model.recommend_answers import TrainingPlan
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.recommend_answers import render_plan
from agent.platforms.profiles import load_profile
from agent.recommend.constants import NEWEST
from agent.recommend.judge import describe_shape, describe_share
from agent.recommend.machine import assume_node
from agent.recommend.plan import (
    Cluster,
    Degrees,
    Model,
    Speeds,
    data_traffic,
    expert_traffic,
    pipeline_traffic,
    plan_training,
    tensor_traffic,
)

NODE = assume_node(load_profile("hgx-h100-8"), (8, 400.0))
LLAMA = Model(70e9, 80, 8192, 8192, 4 * 2**20, active_params=70e9, kv_share=0.125)
MIXTURE = Model(235e9, 96, 4096, 4096, 4 * 2**20, experts=128, top_k=8, active_params=22e9, kv_share=0.0625)


def plan(model: Model, gpus: int, memory: float = 80.0) -> TrainingPlan:
    """Layouts on nodes of eight H100."""
    answer = plan_training(model, Cluster(NODE, gpus, memory, NEWEST))
    text = to_plain_text(render_plan(answer, 80))
    assert "Arithmetic" in text
    assert max(map(len, text.splitlines())) <= 80
    return answer


@pytest.mark.parametrize("model", [LLAMA, MIXTURE])
@pytest.mark.parametrize("gpus", [8, 64, 384, 512])
def test_layouts_use_every_gpu_and_fit(model: Model, gpus: int) -> None:
    """The product is the number of GPUs; tensor parallel stays in a node; the shortest is first."""
    answer = plan(model, gpus)

    assert answer.layouts or answer.rejected
    for row in answer.layouts:
        assert gpus == row.tensor * row.context * row.pipeline * row.data
        assert row.tensor <= 8
        assert row.memory_gbyte <= 72
        assert 0 < row.compute_seconds <= row.step_seconds[0] <= row.step_seconds[1]
        assert row.expert == 1 or row.data * row.context % row.expert == 0
    steps = [sum(row.step_seconds) for row in answer.layouts]
    assert sorted(steps) == steps


def test_volumes_of_a_70b_model() -> None:
    """The worked example: 0.94 GB a layer for tensor parallel 8, 32.8 GB of gradients for data parallel 16."""
    speeds = Speeds(NODE, NEWEST)
    at = Degrees(8, 1, 1, 1, 16)
    tensor, data = tensor_traffic(LLAMA, at, speeds, 1), data_traffic(LLAMA, at, speeds, 1, False, 0.0)

    assert 0.94 == pytest.approx(tensor.gbyte / 80, abs=0.005)
    assert (32.8, 48.0) == (pytest.approx(data.gbyte, abs=0.05), data.gbyte_s)
    assert 0.68 == pytest.approx(data.seconds, abs=0.01)
    stage = pipeline_traffic(LLAMA, Degrees(8, 1, 1, 4, 16), speeds, 4)
    assert 0.00035 == pytest.approx(stage.seconds / 8, abs=0.00001)
    assert ("NVLink", "one NIC of each GPU") == (tensor.where, data.where)


def test_experts_stay_in_a_node_or_leave_it() -> None:
    """All-to-all across nodes has one NIC a GPU."""
    speeds = Speeds(NODE, NEWEST)
    inside = expert_traffic(MIXTURE, Degrees(1, 1, 8, 1, 64), speeds, 1)
    across = expert_traffic(MIXTURE, Degrees(1, 1, 64, 1, 64), speeds, 1)

    assert ("NVLink", "one NIC of each GPU") == (inside.where, across.where)
    assert across.seconds > 5 * inside.seconds


def test_a_model_that_fits_nowhere_says_so() -> None:
    """With the reason and how many layouts it holds for."""
    answer = plan(Model(2e12, 80, 8192, 8192, 4 * 2**20, active_params=2e12), 8)

    assert [] == answer.layouts
    assert {"does not fit the memory of a GPU"} <= answer.rejected.keys()
    assert "none fits" in to_plain_text(render_plan(answer, 100))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of the wire are right; what is missing is named in one line, exit 2."""
    row = ["recommend", "plan", "--params", "70e9", "--layers", "80", "--hidden", "8192", "--gpus", "512"]
    machine = ["--profile", "hgx-h100-8", "--rails", "8x400"]

    assert 0 == run([*row, *machine, "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert ("fabricscope.plan/1", 8) == (answer["schema"], answer["layouts"][0]["tensor"])
    assert 0 == run([*row, *machine])
    text = " ".join(capsys.readouterr().out.split())
    assert "a GPU sends at most 450 GB/s over its NVLinks and 50 GB/s over NICs, one direction" in text
    for wrong in (
        [*row, "--profile", "hgx-h100-8"],
        [*row, "--profile", "mi300x-8", "--rails", "8x400"],
        [*row, *machine, "--experts", "8"],
        [*row, *machine, "--gpus", "500"],
        [*row, *machine, "--batch", "100"],
    ):
        assert 2 == run(wrong)
        assert capsys.readouterr().err.startswith("error: ")


# What the shape of a measured table shows.


HEAD = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong"
)


def table(values: list[tuple[float, float]], wrong: int = 0, prefix: str = "") -> str:
    """Rows from 8 MiB on: out of place and in place."""
    lines = [HEAD]
    for number, (out, into) in enumerate(values):
        size = 1 << (23 + number)
        lines.append(f"{size} {size // 4} float sum -1 100 1.0 {out} 0 100 1.0 {into} {wrong}")
    return "\n".join(prefix + line for line in lines)


def shape(values: list[float], **more: int) -> str:
    """Both columns alike."""
    return " ".join(describe_shape(read_tables(table([(value, value) for value in values], **more).splitlines())))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([100, 150, 180, 190, 195, 196], ""),
        ([100, 150, 180, 12, 11, 12], "falls from 180 to 12 GB/s at 64 MiB and stays"),
        ([100, 150, 110, 170, 190, 195], "recovers"),
        ([100, 150, 60, 170, 190, 195], "only the row of 32 MiB is off"),
        ([100, 60, 110, 60, 115, 50], "goes up and down"),
        ([0, 0, 0, 0], "bus bandwidth is 0 in every row"),
    ],
)
def test_shapes(values: list[float], words: str) -> None:
    """By the rows of large messages."""
    text = shape(values)

    assert words in text
    assert bool(words) == bool(text)


def test_corrupted_data() -> None:
    """Comes first."""
    assert "wrong values" in shape([100, 150, 180], wrong=2)


def test_out_of_place_against_in_place() -> None:
    """From 15% on."""
    cold = describe_shape(read_tables(table([(100, 130), (100, 131), (101, 132), (100, 130)]).splitlines()))
    even = describe_shape(read_tables(table([(100, 105), (100, 104), (101, 106), (100, 105)]).splitlines()))

    assert any("in place is 30% off" in text for text in cold)
    assert [] == even


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:", "[pod/launcher-0/main] ", "2026-11-03T04:12:09Z "])
def test_prefixes_of_launchers(prefix: str) -> None:
    """One reader for `job` and `recommend --measured`."""
    rows = read_tables(table([(100, 120)], prefix=prefix).splitlines()).rows

    assert [(120.0, 100.0, 120.0)] == [(row.gbyte_s, row.out_of_place_gbyte_s, row.in_place_gbyte_s) for row in rows]


def test_columns_are_counted_from_the_right() -> None:
    """Without redop and root, with more columns of later versions."""
    old = (
        "# size count type time algbw busbw error time algbw busbw error\n1048576 262144 float 10 1.0 2.0 N/A "
        "10 1.5 3.0 N/A"
    )
    new = f"{HEAD} i_min i_max\n1048576 262144 float sum -1 10 1.0 2.0 0 10 1.5 3.0 0 9 11"
    for text in (old, new):
        assert [(3.0, 1.5)] == [(row.gbyte_s, row.algbw_gbyte_s) for row in read_tables(text.splitlines()).rows]


def test_shares_of_rails() -> None:
    """What part would give what was measured."""
    assert "1/2" in (describe_share(180, 360, 8) or "")
    assert "3/4" in (describe_share(270, 360, 8) or "")
    assert describe_share(300, 360, 8) is None
