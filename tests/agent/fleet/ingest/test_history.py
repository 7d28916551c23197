"""What is kept of earlier reports, and what is forgotten."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.main import run
from agent.fleet.dataset import BadDataset
from agent.fleet.engines import connect
from agent.fleet.ingest.boots import BootTime, order_by_uptime
from agent.fleet.ingest.forgetting import ForgetRequest, Forgotten, forget
from agent.fleet.ingest.history import Edit, NodeHistory, Sighting, TableVersion, is_late, merge_reports
from agent.fleet.ingest.spill import Entry
from agent.fleet.questions.drift import find_drift
from tests.agent.fleet.small import START, as_of, at, files, history, named, report, rows, take

# A node's history depends on its reports, never on the order in which they came.


TABLES = ("gpu", "nic")


class Fake(NamedTuple):
    """A report: when it is of, and a digest a table."""

    sighting: Sighting
    digests: tuple[str, ...]

    def change(self, table: str) -> TableVersion:
        digest = self.digests[TABLES.index(table)]
        return TableVersion(digest, len(digest))


_SIGHTING = st.builds(Sighting, st.integers(1, 6), st.integers(1, 2), st.sampled_from("xyz"))
FAKES = st.lists(st.builds(Fake, _SIGHTING, st.tuples(*[st.sampled_from(["", "a", "b"])] * 2)), min_size=1, max_size=9)


class Past:
    """A history that edits are applied to, with what the rows of each change are (their digest)."""

    def __init__(self) -> None:
        self.sightings: dict[int, Sighting] = {}
        self.changes: dict[str, dict[int, TableVersion]] = {table: {} for table in TABLES}
        self.rows: dict[tuple[str, int], str] = {}
        self.latest: Fake | None = None

    def short(self) -> NodeHistory:
        """What ingest knows without looking into the past: the newest sighting, and digests that are not empty."""
        if self.latest is None:
            return NodeHistory({}, {})
        moment = self.latest.sighting.observed
        now = {table: self.latest.change(table) for table in TABLES}
        return NodeHistory(
            {moment: self.latest.sighting},
            {table: {moment: TableVersion(item.digest, 0)} for table, item in now.items() if item.digest},
        )

    def put(self, reports: list[Fake]) -> Edit:
        short = self.short()
        known = NodeHistory(self.sightings, self.changes) if is_late(short, reports) else short
        edit = merge_reports(known, reports, TABLES)
        copied = {(a.table, a.moment): self.rows.get((a.table, a.copied), "") for a in edit.added if a.given is None}
        for table, moment in edit.removed:
            del self.changes[table][moment], self.rows[table, moment]
        for item in edit.added:
            assert item.moment not in self.changes[item.table], "a moment has one change"
            self.changes[item.table][item.moment] = item.change
            given = item.given
            self.rows[item.table, item.moment] = (
                given.change(item.table).digest if given else copied[item.table, item.moment]
            )
        for moment in edit.unseen:
            del self.sightings[moment]
        for sighting in edit.seen:
            assert sighting.observed not in self.sightings
            self.sightings[sighting.observed] = sighting
        if edit.newest is not None:
            assert isinstance(edit.newest, Fake)
            self.latest = edit.newest
        return edit


def expected(reports: list[Fake]) -> tuple[dict[str, list[tuple[int, str]]], Fake]:
    """The same, from all reports at once, in the plainest way."""
    best: dict[int, Fake] = {}
    for one_report in sorted(reports, key=lambda r: r.sighting):
        best[one_report.sighting.observed] = one_report
    changes: dict[str, list[tuple[int, str]]] = {table: [] for table in TABLES}
    for table in TABLES:
        state = ""
        for moment in sorted(best):
            digest = best[moment].change(table).digest
            if digest != state:
                changes[table].append((moment, digest))
                state = digest
    return changes, best[max(best)]


def unique(reports: list[Fake]) -> list[Fake]:
    """Two reports of one SHA-256 are one report."""
    return list({one_report.sighting: one_report for one_report in reports}.values())


@given(FAKES, st.data())
def test_any_order_in_any_pieces_and_repeated(reports: list[Fake], data: st.DataObject) -> None:
    reports = unique(reports)
    wanted, newest = expected(reports)
    queue = data.draw(st.permutations(reports + reports[: data.draw(st.integers(0, len(reports)))]))
    past = Past()
    while queue:
        count = data.draw(st.integers(1, len(queue)))
        past.put(queue[:count])
        queue = queue[count:]

    assert {t: sorted((m, c.digest) for m, c in past.changes[t].items()) for t in TABLES} == wanted
    assert past.latest == newest
    for (table, moment), digest in past.rows.items():
        assert digest == past.changes[table][moment].digest, "the rows of a change are its own"


@given(FAKES)
def test_the_same_reports_again_change_nothing(reports: list[Fake]) -> None:
    reports = unique(reports)
    past = Past()
    past.put(reports)
    again = past.put(reports)

    assert again == Edit(None, [], [], [], [], 0, len(reports))


def test_counts_say_what_came_late_and_what_was_known() -> None:
    past = Past()
    first: Any = Fake(Sighting(5, 5, "x"), ("a", "a"))
    past.put([first])
    edit = past.put([first, Fake(Sighting(3, 3, "y"), ("b", "a")), Fake(Sighting(7, 7, "z"), ("a", "a"))])

    assert (len(edit.seen), edit.late, edit.repeated) == (2, 1, 1)


# What is forgotten is gone from every table; what is kept says the same as before.


pytest.importorskip("duckdb")


def gone(dataset: Path, now: datetime | None = None, **wanted: object) -> Forgotten:
    """Forget something."""
    return forget(ForgetRequest(dataset=str(dataset), **wanted), now)  # type: ignore[arg-type]


def test_a_node_is_gone_from_every_table_and_no_majority_counts_it(tmp_path: Path) -> None:
    take(tmp_path / "d", *(report(f"n{number}") for number in range(5)))

    result = gone(tmp_path / "d", nodes=["n3", "nowhere"])

    assert (["n3"], ["nowhere"]) == (result.nodes, result.unknown)
    for table in ("host", "gpu"):
        assert {"n0", "n1", "n2", "n4"} == {node for (node,) in rows(tmp_path / "d", table, "node")}
    assert files(tmp_path / "d") == named(tmp_path / "d")


def test_its_history_ends_then_and_the_rest_is_untouched(tmp_path: Path) -> None:
    take(tmp_path / "d", report("n1"), report("n2"))
    now = START + timedelta(hours=5)

    gone(tmp_path / "d", now, nodes=["n1"])

    assert 4 == len(as_of(tmp_path / "d", "gpu", START + timedelta(hours=4)))
    assert 2 == len(as_of(tmp_path / "d", "gpu", START + timedelta(hours=6)))


def test_a_node_that_came_and_was_forgotten_is_no_new_node_of_drift(tmp_path: Path) -> None:
    reports = [report("node-1", 0), report("node-1", 2), report("node-2", 2), report("node-3", 2)]
    take(tmp_path / "d", *reports)

    gone(tmp_path / "d", START + timedelta(hours=5), nodes=["node-2"])

    engine = connect(None, str(tmp_path / "d"))
    drift = find_drift(engine, (START + timedelta(hours=1)).replace(tzinfo=None))
    assert ("node-3", 1, 1) == (drift.added, drift.added_nodes, drift.compared_nodes)


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

    result = gone(tmp_path / "d", now, history=timedelta(days=5))

    assert result.history_rows > 0
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
    output = capsys.readouterr()
    assert ("1 node would be forgotten: n1\n", "warning: not in the dataset: n7\n") == (output.out, output.err)
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


SECOND = 1_000_000


def entry(uptime: float | None, observed: float, boot: str | None = "b") -> Entry:
    """A report at seconds of uptime and of the node's clock."""
    return Entry("n", round(observed * SECOND), 0, f"{uptime} {observed}", [], [], "", boot, uptime)


def moments(entries: list[Entry], newest: BootTime | None = None) -> dict[float | None, float]:
    """Uptime -> the moment that counts, in seconds."""
    return {row.uptime_seconds: row.observed / SECOND for row in order_by_uptime(entries, newest)}


def test_clocks_that_go_on_stay_as_they_are() -> None:
    given = [entry(20, 120), entry(10, 110), entry(30, 130)]
    assert all(not row.corrected for row in order_by_uptime(given, BootTime("b", 5, 105 * SECOND)))


def test_a_clock_that_is_set_back_counts_on_by_uptime() -> None:
    assert {10: 110, 20: 120, 30: 130} == moments([entry(30, 11), entry(10, 110), entry(20, 5)])
    assert {30: 130} == moments([entry(30, 7)], BootTime("b", 10, 110 * SECOND))
    assert {30: 7} == moments([entry(30, 7)], BootTime("other", 10, 110 * SECOND))


def test_a_report_of_before_stays_before() -> None:
    newest = BootTime("b", 30, 130 * SECOND)
    assert {20: 119} == moments([entry(20, 119)], newest)
    assert {20: 120} == moments([entry(20, 999)], newest)
    assert {30: 7} == moments([entry(30, 7)], newest)  # the same evidence, of a clock that was read wrong


@pytest.mark.parametrize("given", [entry(None, 7), entry(30, 7, None)])
def test_without_boot_or_uptime_the_clock_counts(given: Entry) -> None:
    assert [given] == order_by_uptime([given], BootTime("b", 10, 110 * SECOND))


def test_less_than_a_microsecond_is_an_order() -> None:
    newest = BootTime("b", 10.0, 110 * SECOND)
    (late,), (early,) = (
        order_by_uptime([entry(up, clock)], newest) for up, clock in ((10 + 1e-9, 3), (10 - 1e-9, 200))
    )
    assert early.observed < newest.moment < late.observed


def observed(uptime_hours: float, clock: float, driver: str) -> bytes:
    """A report of one boot."""
    node = {"hostname": "gpu1", "boot_id": "b", "uptime_seconds": uptime_hours * 3600}
    return report(hour=clock, driver=driver, node=node)


@pytest.mark.parametrize("together", [True, False])
def test_a_node_whose_clock_is_set_back_has_its_newest_state(tmp_path: Path, together: bool) -> None:
    given = [observed(1, 10, "570.1"), observed(2, 3, "570.2"), observed(4, 5, "570.3")]
    counted = [take(tmp_path / "d", *given)] if together else [take(tmp_path / "d", one) for one in given]

    assert 0 == sum(one.late for one in counted)
    (row,) = rows(tmp_path / "d", "host", "driver, observed_at, received_at >= observed_at")
    assert ("570.3", at(13), True) == (row[0], row[1].strftime("%Y-%m-%dT%H:%M:%SZ"), row[2])
    assert 3 == len(history(tmp_path / "d", "host", "driver"))
    assert "570.2" in as_of(tmp_path / "d", "host", START + timedelta(hours=11.5))[0]
