"""The spool: bounded, honest about what it drops, and nothing in it is believed."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from agent.ship.payload import compress
from agent.ship.spool import NoSpool, make_entry
from probes.own_files import temporary_path
from tests.agent.ship.servers import (
    Down,
    Run,
    Up,
    make_payload,
    report,
)


def verdicts(run: Run) -> str:
    """Of what waits, by time: "oeo"."""
    return "".join(name.split("_")[1][0] for name in run.waiting)


def test_what_waits_goes_when_the_endpoint_is_back(run: Run) -> None:
    """A week of it."""
    for number in range(7):
        result = run.ship(Down(), report(number))
    assert (0, 7) == (result.accepted, result.waiting)

    up = Up()
    result = run.ship(up)
    assert (7, 0, True) == (result.accepted, result.waiting, result.all_handed_over)
    assert {report(number) for number in range(7)} == {payload.data for payload in up.payloads}
    assert (7, 0, None) == (run.state["handed_over"], run.state["waiting"], run.state["last_failure"])


def test_healthy_reports_go_first_then_the_not_judged_then_findings(run: Run) -> None:
    """By count; each drop is told and counted, by kind."""
    small = run._replace(count=5)
    kinds = ["ok", "error", "ok", "unknown", "critical", "warning", "ok", "unknown", "error", "error", "warning"]
    result = [small.ship(Down(), report(number, kind)) for number, kind in enumerate(kinds)]

    assert ["critical", "warning", "error", "error", "warning"] == [name.split("_")[1] for name in small.waiting]
    assert {"healthy": 3, "not_judged": 2, "with_findings": 1, "set_aside": 0} == small.state["dropped"]
    assert 6 == sum(sum(item.dropped.values()) for item in result) == result[-1].dropped_ever
    assert [] == list((small.path / "dropped").iterdir())


def test_the_oldest_healthy_report_goes_first(run: Run) -> None:
    """Of three places, the newest three."""
    small = run._replace(count=3)
    for number in (4, 0, 3, 1, 2):
        small.ship(Down(), report(number))

    assert [f"20260115T000{number}00Z" for number in (2, 3, 4)] == [name.split("_")[0] for name in small.waiting]


def test_a_healthy_report_does_not_push_out_a_finding(run: Run) -> None:
    """It is tried at once, and given up only where that fails."""
    small = run._replace(count=2)
    small.ship(Down(), report(0, "error"), report(1, "warning"))

    result = small.ship(Down(), report(2, "ok"))
    assert {"healthy": 1, "not_judged": 0, "with_findings": 0, "set_aside": 0} == result.dropped
    assert not result.all_handed_over
    assert "ew" == verdicts(small)
    up = Up()
    result = small.ship(up, report(3, "ok"))
    assert (3, True) == (result.accepted, result.all_handed_over)
    assert report(3) == up.payloads[0].data


def test_nothing_is_dropped_where_the_endpoint_is_back(run: Run) -> None:
    """A full spool, and many new reports: they are tried before anything is given up."""
    small = run._replace(count=2)
    small.ship(Down(), report(0), report(1))
    result = small.ship(Up(), *[report(number) for number in range(2, 9)])

    assert (9, True) == (result.accepted, result.all_handed_over)


def test_the_bound_in_bytes(run: Run) -> None:
    """Of what lies there; a report that is larger than all of it is given up and takes nothing with it."""
    size = len(compress(report(0, pad=2000), "gzip"))
    small = run._replace(limit=3 * size + size // 2)
    for number in range(6):
        small.ship(Down(), report(number, "error" if number == 0 else "ok", pad=2000))
        assert sum(item.stat().st_size for item in (small.path / "waiting").iterdir()) <= small.limit
    assert "eoo" == verdicts(small)

    result = small.ship(Down(), report(7, "critical", pad=20_000))
    assert 1 == result.dropped["with_findings"]
    assert "eoo" == verdicts(small)


def test_a_smaller_bound_than_before(run: Run) -> None:
    """What is beyond it goes at the end of the next run, not before it was tried."""
    for number in range(6):
        run.ship(Down(), report(number, "error" if number < 2 else "ok"))
    result = run._replace(count=3).ship(Down())

    assert 3 == result.dropped["healthy"]
    assert "eeo" == verdicts(run)


def test_the_same_report_waits_once(run: Run) -> None:
    """However often it is named."""
    run.ship(Down(), report(), report())
    run.ship(Down(), report())

    assert 1 == len(run.waiting)


def damage(run: Run, how: str) -> None:
    """Spoil what waits, or put something else there."""
    folder = run.path / "waiting"
    one = folder / run.waiting[0]
    if how == "torn":
        one.write_bytes(one.read_bytes()[:100])
    elif how == "empty":
        one.write_bytes(b"")
    elif how == "another report":
        one.write_bytes(gzip.compress(report(77)))
    elif how == "another verdict":
        one.rename(folder / one.name.replace("_ok_", "_error_"))
    elif how == "a bomb":
        one.write_bytes(gzip.compress(b" " * (64 << 20)))
    elif how == "noise":
        one.write_bytes(os.urandom(500))
    elif how == "a folder":
        one.unlink()
        one.mkdir()
    elif how == "a pipe":
        one.unlink()
        os.mkfifo(one)
    elif how == "a link to nothing":
        one.unlink()
        one.symlink_to("/no/such")


DAMAGE = [
    "torn",
    "empty",
    "another report",
    "another verdict",
    "a bomb",
    "noise",
    "a folder",
    "a pipe",
]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_goes_aside_with_its_reason(how: str, run: Run) -> None:
    """The others go."""
    run.ship(Down(), report(0), report(1), report(2))
    damage(run, how)
    up = Up()
    result = run.ship(up)

    assert (2, 0) == (result.accepted, result.waiting)
    assert {report(1), report(2)} == {payload.data for payload in up.payloads}
    (why,) = (run.path / "aside").glob("*.why")
    assert len(why.read_text()) > 10
    assert any("set aside" in line for line in run.warnings)
    assert 1 == run.state["set_aside"]
    assert run.ship(Up()).all_handed_over


def test_a_link_that_leads_nowhere_is_told_and_kept(run: Run) -> None:
    """What cannot be read today may be tomorrow."""
    run.ship(Down(), report(0), report(1))
    damage(run, "a link to nothing")
    result = run.ship(Up())

    assert (1, 1) == (result.accepted, result.waiting)
    assert any("No such file" in line for line in run.warnings)


def test_what_is_aside_is_within_the_bound_and_goes_first(run: Run) -> None:
    """It is counted as what it is."""
    small = run._replace(count=3)
    small.ship(Down(), report(0), report(1))
    damage(small, "torn")
    assert 1 == small.ship(Up()).accepted
    assert 2 == len(list((small.path / "aside").iterdir()))
    small.ship(Down(), report(2), report(3), report(4))

    assert 1 == small.state["dropped"]["set_aside"]  # type: ignore[index]  # a map
    assert [] == list((small.path / "aside").iterdir())
    assert 3 == len(small.waiting)


@pytest.mark.parametrize("text", ["", "{", '{"schema": "other/1"}', '{"handed_over": "many"}', "[" * 5000])
def test_a_damaged_state_is_put_aside(text: str, run: Run) -> None:
    """Reports are not concerned."""
    run.ship(Down(), report())
    (run.path / "state.json").write_text(text)
    result = run.ship(Up())

    assert result.all_handed_over
    assert (run.path / "state.json.damaged").exists()
    assert any("damaged" in line for line in run.warnings)
    assert 1 == run.state["handed_over"]


def test_tombstones_are_counted_once(run: Run) -> None:
    """A run that was killed after it had dropped, after it had counted, and before it had removed them."""
    run.ship(Down())
    first, second = (f"healthy.{make_entry(make_payload(number), 0).name}" for number in (1, 2))
    for name in (first, second):
        (run.path / "dropped" / name).touch()
    state = run.state
    state["folding"] = [first]
    (run.path / "state.json").write_text(json.dumps(state))
    run.ship(Down())

    assert 1 == run.state["dropped"]["healthy"]  # type: ignore[index]  # a map
    assert [] == list((run.path / "dropped").iterdir())
    (run.path / "dropped" / first).touch()  # the same report, dropped anew on another day
    run.ship(Down())
    assert 2 == run.state["dropped"]["healthy"]  # type: ignore[index]  # a map


def test_what_killed_runs_left_is_removed(run: Run) -> None:
    """The holder's file at once, that of a run which may still be alive only after an hour; also of older versions."""
    run.ship(Down())
    folder = run.path / "waiting"
    entry = str(folder / make_entry(make_payload(), 0).name)
    of_the_holder, young, old = temporary_path(entry, sole=True), temporary_path(entry), temporary_path(entry)
    earlier = [str(folder / name) for name in (".new.tmp", f".late-{'1' * 16}.tmp", f".late-{'2' * 16}.tmp")]
    for path in (of_the_holder, young, old, *earlier):
        Path(path).touch()
    for path in (old, earlier[0], earlier[1]):
        os.utime(path, (time.time() - 4000, time.time() - 4000))
    run.ship(Down())

    assert {young, earlier[2]} == {str(item) for item in folder.iterdir()}


FOREIGN = {
    "dropped/notes.txt": "dropped",
    "dropped/healthy.txt": "named like a tombstone",
    "aside/thesis.tex": "aside",
    "waiting/report.json": "waiting",
    "waiting/.hidden.tmp": "hidden",
    ".bashrc": "beside",
}


def fill_with_foreign(folder: Path) -> None:
    """Files of somebody else, old and young, in folders that are named as a spool's."""
    for number, (name, text) in enumerate(FOREIGN.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (1e9 + number * 1e8, 1e9 + number * 1e8))


def test_files_of_somebody_else_in_a_spool_are_left_as_they_are(run: Run) -> None:
    """They are not read, moved, counted, emptied or removed, however full the spool is; one line names them."""
    small = run._replace(count=2)
    small.ship(Down(), report())
    fill_with_foreign(run.path)
    for number in range(5):
        small.ship(Down(), report(number))

    assert FOREIGN == {name: (run.path / name).read_text() for name in FOREIGN}
    assert 0 == run.state["set_aside"]
    assert 3 == run.state["dropped"]["healthy"]  # type: ignore[index]  # a map
    assert sum("left as they are" in line and "'.bashrc' and 5 more" in line for line in run.warnings) == 5


@pytest.mark.parametrize("name", [*FOREIGN, "state.json"])
def test_a_folder_of_somebody_else_is_no_spool(name: str, run: Run) -> None:
    """Nothing in it is touched, nothing is added to it."""
    (run.path / name).parent.mkdir(parents=True, exist_ok=True)
    (run.path / name).write_text('{"schema": "other/1"}')
    before = sorted(run.path.rglob("*"))

    with pytest.raises(NoSpool, match="not a spool, and not empty"):
        run.ship(Down(), report())
    assert before == sorted(run.path.rglob("*"))
    assert '{"schema": "other/1"}' == (run.path / name).read_text()


def test_a_link_in_place_of_an_entry_is_not_emptied(run: Run, tmp_path: Path) -> None:
    """When there is no room for it any more, the link goes, not what it leads to or is another name of."""
    run.ship(Down(), report(0), report(1))
    victims = [tmp_path / "victim", tmp_path / "second"]
    for victim, waiting, make in zip(victims, run.waiting, (os.symlink, os.link), strict=True):
        victim.write_text("mine")
        (run.path / "waiting" / waiting).unlink()
        make(victim, run.path / "waiting" / waiting)
    run._replace(count=0).ship(Down())

    assert ["mine", "mine"] == [victim.read_text() for victim in victims]
    assert [] == run.waiting
