"""Fixtures of tests that run probes in children of their own."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes import locks, worker, worker_pool


@pytest.fixture
def lock_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of the tests' own, and no probe of theirs left behind."""
    folder = tmp_path / "run"
    monkeypatch.setenv(locks.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    """No descriptor and no child is left after a run, and none of ours is closed; garbage of earlier tests stays."""
    gc.disable()
    try:
        before = descriptors()

        yield

        assert before == descriptors()
    finally:
        gc.enable()
    until = time.monotonic() + worker.DYING_SECONDS
    while worker_pool._left_behind and time.monotonic() < until:  # one that has answered may wait for a CPU to end
        worker_pool._left_behind[:] = [child for child in worker_pool._left_behind if child.reap() is None]
        time.sleep(0.01)
    assert [] == worker_pool._left_behind


def descriptors() -> set[tuple[str, int, int]]:
    """Those that are open, and what they are of; without the one that lists them."""
    result = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            of = os.stat(f"/proc/self/fd/{number}")
            result.add((number, of.st_dev, of.st_ino))
    return result
