"""Our wheel and all that it needs, fetched and built once for all tests of a run."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from release import wheelhouse
from release.share import write_shared_files


@pytest.fixture(scope="session")
def share(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The manual and the completions, built; by their path below a prefix."""
    return write_shared_files(tmp_path_factory.mktemp("prefix"))


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder of wheels for this Python; skipped without a package index, but in CI."""
    base = tmp_path_factory.getbasetemp()
    place = (base if worker_id == "master" else base.parent) / "wheels"  # one for all workers of this run
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            try:
                wheelhouse.download_wheels(place.with_suffix(".new"))
            except subprocess.CalledProcessError:
                if os.environ.get("CI"):
                    raise
                pytest.skip("pip cannot fetch hatchling or the dependencies here")
            place.with_suffix(".new").rename(place)
    return place
