"""What a scan costs grows with the machine and not faster: counts where there are any, else ratios of one run."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from bench.timing import measure_once
from fixtures.generated import write_generated_tree
from tests.conftest import ROOT

SMALL, LARGE = 300, 1000
GROWTH = 3.5  # times the CPU time for 3.33 times the functions
ROUNDS = 5


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Generated trees of both sizes."""
    place = tmp_path_factory.mktemp("trees")
    for count in (SMALL, LARGE):
        write_generated_tree(place / str(count), count)
    return {count: place / str(count) for count in (SMALL, LARGE)}


def audited(tree: Path) -> dict[str, int]:
    """What one scan opened, listed and started."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.audit", "scan", "--source", str(tree), "--format", "json"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", done.stderr.splitlines()[-1])}


def test_opens_grow_with_the_functions_and_nothing_is_started(trees: dict[int, Path], real_commands: None) -> None:
    """As many opens for each further function as for the first ones; no process at all."""
    small, large = audited(trees[SMALL]), audited(trees[LARGE])

    assert 0 == small["processes"] == large["processes"]
    assert large["opens"] / LARGE <= small["opens"] / SMALL * 1.05
    assert large["listings"] / LARGE <= small["listings"] / SMALL * 1.05


@pytest.mark.slow
def test_cpu_time_grows_no_faster_than_the_machine(trees: dict[int, Path], real_commands: None) -> None:
    """Medians of interleaved runs of whole processes, start-up included."""
    spent: dict[int, list[float]] = {SMALL: [], LARGE: []}
    for _ in range(ROUNDS):
        for count, seconds in spent.items():
            argv = [sys.executable, "-m", "fabricscope", "scan", "--source", str(trees[count]), "--format", "json"]
            seconds.append(measure_once(argv, {}).cpu_seconds)

    assert statistics.median(spent[LARGE]) <= GROWTH * statistics.median(spent[SMALL])
