"""What is forgotten is gone from every table; what is kept says the same as before."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.fleet.dataset import BadDataset
from agent.fleet.ingest.forgetting import Forgotten, Wanted, forget
from tests.agent.fleet.small import START, as_of, files, history, named, report, rows, take

pytest.importorskip("duckdb")


def gone(dataset: Path, now: datetime | None = None, **wanted: object) -> Forgotten:
    """Forget something."""
    return forget(Wanted(dataset=str(dataset), **wanted), now)  # type: ignore[arg-type]


def test_a_node_is_gone_from_every_table_and_no_majority_counts_it(tmp_path: Path) -> None:
    take(tmp_path / "d", *(report(f"n{number}") for number in range(5)))

    made = gone(tmp_path / "d", nodes=["n3", "nowhere"])

    assert (["n3"], ["nowhere"]) == (made.nodes, made.unknown)
    for table in ("host", "gpu"):
        assert {"n0", "n1", "n2", "n4"} == {node for (node,) in rows(tmp_path / "d", table, "node")}
    assert files(tmp_path / "d") == named(tmp_path / "d")


def test_its_history_ends_then_and_the_rest_is_untouched(tmp_path: Path) -> None:
    take(tmp_path / "d", report("n1"), report("n2"))
    now = START + timedelta(hours=5)

    gone(tmp_path / "d", now, nodes=["n1"])

    assert 4 == len(as_of(tmp_path / "d", "gpu", START + timedelta(hours=4)))
    assert 2 == len(as_of(tmp_path / "d", "gpu", START + timedelta(hours=6)))


def test_the_same_report_again_does_not_bring_it_back_a_new_one_does(tmp_path: Path) -> None:
    take(tmp_path / "d", report("n1"), report("n2"))
    gone(tmp_path / "d", nodes=["n1"])

    take(tmp_path / "d", report("n1"), report("n2"))
    assert [("n2",)] == rows(tmp_path / "d", "host", "node")
    take(tmp_path / "d", report("n1", hour=24 * 400))
    assert [("n1",), ("n2",)] == rows(tmp_path / "d", "host", "node")


def test_nodes_without_a_report_for_long(tmp_path: Path) -> None:
    take(tmp_path / "d", report("old"), report("new", hour=24 * 40))
    now = START + timedelta(days=41)

    assert ["old"] == gone(tmp_path / "d", now, unseen=timedelta(days=30), dry_run=True).nodes
    assert 2 == len(rows(tmp_path / "d", "host"))
    assert ["old"] == gone(tmp_path / "d", now, unseen=timedelta(days=30)).nodes
    assert [("new",)] == rows(tmp_path / "d", "host", "node")


def test_old_history_goes_and_the_state_of_that_moment_stays(tmp_path: Path) -> None:
    for day in range(10):
        take(tmp_path / "d", report("n1", hour=24 * day, driver=str(day // 2)), report("n2", hour=24 * day))
    moments = [START + timedelta(days=day, hours=1) for day in (5, 6, 9)]
    before = [as_of(tmp_path / "d", table, moment) for table in ("host", "gpu") for moment in moments]
    now = START + timedelta(days=10)

    made = gone(tmp_path / "d", now, history=timedelta(days=5))

    assert made.history_rows > 0
    assert before == [as_of(tmp_path / "d", table, moment) for table in ("host", "gpu") for moment in moments]
    assert ["2", "3", "4"] == [driver for (driver,) in history(tmp_path / "d", "host", "driver", "node = 'n1'")]
    assert files(tmp_path / "d") == named(tmp_path / "d")
    assert 0 == gone(tmp_path / "d", now, history=timedelta(days=5)).history_rows
    late = take(tmp_path / "d", report("n1", hour=24 * 11, driver="5"))
    assert 1 == late.fresh


def test_all_nodes_may_go(tmp_path: Path) -> None:
    take(tmp_path / "d", report("n1"))
    gone(tmp_path / "d", nodes=["n1"])

    assert [] == rows(tmp_path / "d", "host")
    take(tmp_path / "d", report("n2"))
    assert [("n2",)] == rows(tmp_path / "d", "host", "node")


def test_there_is_nothing_to_forget_where_there_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="no dataset"):
        gone(tmp_path / "nowhere", nodes=["n1"])
    assert [] == os.listdir(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = (datetime.now(timezone.utc) - START) / timedelta(hours=1)
    take(tmp_path / "d", report("n1"), report("n2"), report("n3", hour=now))
    dataset = ["--dataset", str(tmp_path / "d")]

    assert 0 == run(["fleet", "forget", "n[1,7]", "--dry-run", *dataset])
    said = capsys.readouterr()
    assert ("1 node would be forgotten: n1\n", "warning: not in the dataset: n7\n") == (said.out, said.err)
    assert 0 == run(["fleet", "forget", "--unseen", "30d", "--history", "400d", *dataset])
    assert "2 nodes forgotten: n[1-2]\n0 rows of history forgotten\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "{here}"], "nothing to forget: name nodes, or use --unseen DURATION or --history DURATION"),
        (["n1"], "--dataset is missing"),
        (["n[1", "--dataset", "{here}"], "a bracket is not closed"),
        (["--unseen", "long", "--dataset", "{here}"], "'long': not a duration"),
        (["n1", "--dataset", "{here}/none"], "none: no dataset: nothing to forget"),
    ],
)
def test_asked_the_wrong_way(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FABRICSCOPE_DATASET", raising=False)
    assert 2 == run(["fleet", "forget", *(word.format(here=tmp_path) for word in arguments)])
    assert said in capsys.readouterr().err
