"""A dataset that is moved away while an ingest reads or writes, also with another one put in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.fleet.dataset import BadDataset
from agent.fleet.ingest.locked_dataset import open_dataset
from agent.fleet.ingest.run import IngestOptions, ingest
from tests.agent.fleet.small import report, rows, take, taken


def contents(folder: Path) -> dict[str, bytes]:
    """Its files; what an ingest stages is none of the dataset."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".staging" not in path.parts
    }


@pytest.mark.parametrize("stage", ["read", "write"])
@pytest.mark.parametrize("then", ["gone", "replaced", "copied"])
def test_it_stays_as_it_was(stage: str, then: str, tmp_path: Path) -> None:
    """One line; the moved one is whole, and a later ingest goes on with it; the other one is not touched, also where it
    has what this ingest stages (a copy with all files)."""
    dataset, moved, other = tmp_path / "d", tmp_path / "moved", tmp_path / "other"
    take(dataset, report("gpu1"))
    take(other, report("gpu9"))
    before, of_other = contents(dataset), contents(other)
    source = tmp_path / "in.ndjson"
    source.write_bytes(report("gpu2").replace(b"\n", b" ") + b"\n")
    stages = []

    def tell(now: str, _done: int) -> None:
        stages.append(now)
        if now == stage and not moved.exists():
            dataset.rename(moved)
            if then != "gone":
                shutil.copytree(moved if then == "copied" else other, dataset)

    with pytest.raises((BadDataset, OSError), match=r"moved or replaced|No such file"):
        ingest(IngestOptions(sources=[str(source)], dataset=str(dataset)), tell)

    assert stage in stages
    assert before == contents(moved)
    assert [("gpu1",)] == rows(moved, "host", "node")
    if then == "gone":
        assert not dataset.exists()
    else:
        assert (before if then == "copied" else of_other) == contents(dataset)
    assert 1 == taken(moved, source).fresh
    assert [("gpu1",), ("gpu2",)] == rows(moved, "host", "node")
    assert not (moved / ".staging").exists()


def test_what_is_moved_before_the_end_is_not_written_to(tmp_path: Path) -> None:
    """Nothing is new in it: its list of known files is not left at the old path."""
    dataset, source = tmp_path / "d", tmp_path / "in.ndjson"
    source.write_bytes(report("gpu1").replace(b"\n", b" ") + b"\n")
    taken(dataset, source)

    def tell(_now: str, _done: int) -> None:
        if dataset.exists():
            dataset.rename(tmp_path / "moved")

    source.write_bytes(source.read_bytes() * 2)
    ingest(IngestOptions(sources=[str(source)], dataset=str(dataset)), tell)

    assert not dataset.exists()


def test_what_another_ingest_writes_in_a_dataset_put_in_its_place_stays(tmp_path: Path) -> None:
    """The path is that of our staging, the folder is another one's."""
    dataset, source = tmp_path / "d", tmp_path / "in.ndjson"
    source.write_bytes(report("gpu1").replace(b"\n", b" ") + b"\n")
    taken(dataset, source)

    with open_dataset(str(dataset), 5.0):
        dataset.rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", dataset)
        assert (dataset / ".staging" / "files").is_dir()

    assert (dataset / ".staging" / "files").is_dir()
