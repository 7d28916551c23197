"""Loads into ClickHouse, here chDB: what is new is copied, all is in force at one moment, nothing else is touched."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from agent.fleet.engines import connect, load, schema
from agent.fleet.engines.clickhouse import connect_client
from agent.fleet.engines.clickhouse_load import _FileLoad
from agent.fleet.engines.engine import EngineRefused
from tests.agent.fleet.engines.servers import every_row, needed
from tests.agent.fleet.small import report, take
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900), pytest.mark.usefixtures("real_commands")]


@pytest.fixture(autouse=True)
def libraries():
    needed("chdb", "clickhouse_connect")


@pytest.fixture
def database(tmp_path):
    return f"chdb://{tmp_path}/database"


def ask(database, sql):
    client = connect_client(database)
    rows = client.query(sql).result_rows
    client.close()
    return rows


def test_a_load_copies_what_is_new(tmp_path, database):
    """And what is no more in force is deleted: the database has as many rows as the dataset."""
    place = tmp_path / "dataset"
    take(place, report("n0"), report("n1"))
    first = load(str(place), database)
    assert first["host"] == 2
    assert 0 == sum(load(str(place), database).values())
    take(place, report("n2", hour=24))
    again = load(str(place), database)
    assert 0 < sum(again.values()) < sum(first.values())
    assert every_row(connect(None, str(place))) == every_row(connect(database, None))
    for name in schema.names():
        ((stored,),) = ask(database, f"SELECT count() FROM rows_of_{name}")
        ((shown,),) = ask(database, f'SELECT count() FROM "{name}"')
        assert stored == shown, name


def test_another_dataset_takes_the_place_of_the_first(tmp_path, database):
    for name in ("a", "b"):
        take(tmp_path / name, report(f"node-{name}"))
        load(str(tmp_path / name), database)
    assert [("node-b",)] == ask(database, "SELECT node FROM host")


@pytest.mark.parametrize("name", ["host", "rows_of_gpu", "finding_open", "load_event"])
def test_a_table_of_somebody_else_is_not_touched(tmp_path, database, name):
    ask(database, f"CREATE TABLE {name} (a Int64) ENGINE = MergeTree ORDER BY a")
    take(tmp_path / "dataset", report("n0"))
    with pytest.raises(EngineRefused, match=f"{name} was not made by `fleet load`"):
        load(str(tmp_path / "dataset"), database)
    assert [(name,)] == ask(database, "SELECT name FROM system.tables WHERE database = currentDatabase()")


def test_a_column_that_a_new_version_has_is_added(tmp_path, database):
    take(tmp_path / "dataset", report("n0"))
    load(str(tmp_path / "dataset"), database)
    ask(database, "ALTER TABLE rows_of_host DROP COLUMN kernel")
    load(str(tmp_path / "dataset"), database)
    assert [(None,)] == ask(database, "SELECT kernel FROM host")


def test_a_load_gives_up_while_another_is_at_work(tmp_path, database):
    """One that was killed counts for 15 minutes as one that is at work, since its last sign."""
    take(tmp_path / "dataset", report("n0"))
    load(str(tmp_path / "dataset"), database)
    began = "INSERT INTO load_event (load, event, at) SELECT max(load) + 1, 'began', now() - INTERVAL {} MINUTE"
    ask(database, began.format(16) + " FROM load_event")
    assert 0 == load(str(tmp_path / "dataset"), database)["host"]
    ask(database, began.format(40) + " FROM load_event")
    ask(database, "INSERT INTO load_event (load, event) SELECT max(load), 'at work' FROM load_event")
    with pytest.raises(EngineRefused, match=r"another load was at work at .* UTC: wait for its end; one that was kill"):
        load(str(tmp_path / "dataset"), database)


def test_a_load_says_that_it_is_at_work(tmp_path, database, monkeypatch):
    monkeypatch.setattr("agent.fleet.engines.clickhouse_load._SIGN_SECONDS", 0)
    take(tmp_path / "dataset", report("n0"))
    load(str(tmp_path / "dataset"), database)
    ((signs, last),) = ask(
        database, "SELECT countIf(event = 'at work'), argMax(event, (at, event = 'in force')) FROM load_event"
    )
    assert signs > 3
    assert last == "in force"


def test_a_load_that_another_took_for_dead_gives_up(tmp_path, database, monkeypatch):
    """It changes nothing that is shown, and the next load deletes what it copied."""
    place = tmp_path / "dataset"
    take(place, report("n0"))
    load(str(place), database)
    take(place, report("n1"), report("n2"))
    copy = _FileLoad._copy

    def slow(self, file, number):
        copy(self, file, number)
        monkeypatch.setattr(_FileLoad, "_copy", copy)
        ask(database, "INSERT INTO load_event (load, event) SELECT max(load) + 1, 'began' FROM load_event")

    monkeypatch.setattr(_FileLoad, "_copy", slow)
    with pytest.raises(EngineRefused, match=r"^a load that began later has taken its place$"):
        load(str(place), database)
    assert [(1,)] == ask(database, "SELECT count() FROM host")
    ask(database, "INSERT INTO load_event (load, event) SELECT max(load), 'given up' FROM load_event")
    load(str(place), database)
    assert [(3, 3)] == ask(database, "SELECT (SELECT count() FROM host), (SELECT count() FROM rows_of_host)")


def test_a_load_that_fails_is_not_at_work(tmp_path, database, monkeypatch):
    take(tmp_path / "dataset", report("n0"))
    with monkeypatch.context() as patched:
        patched.setattr(_FileLoad, "_copy", lambda *_: 1 / 0)
        with pytest.raises(EngineRefused, match="division by zero"):
            load(str(tmp_path / "dataset"), database)
    assert 1 == load(str(tmp_path / "dataset"), database)["host"]


def test_a_load_that_is_killed_changes_nothing_that_is_shown(tmp_path, database):
    """At any moment; the next one that runs to its end leaves no row of it."""
    place = tmp_path / "dataset"
    take(place, report("n0"))
    load(str(place), database)
    take(place, *(report(f"n{number}") for number in range(1, 40)))
    began = time.monotonic()
    assert 0 == start_load(place, f"chdb://{tmp_path}/other").wait()
    whole = time.monotonic() - began
    left = set()
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        loading = start_load(place, database)
        time.sleep(whole * share)
        loading.kill()
        loading.wait()
        assert ask(database, "SELECT count() FROM host") in ([(1,)], [(40,)])
        left |= set(ask(database, "SELECT argMax(event, at) FROM load_event GROUP BY load"))
        ask(database, "INSERT INTO load_event (load, event) SELECT DISTINCT load, 'given up' FROM load_event")
    assert ("began",) in left
    load(str(place), database)
    assert every_row(connect(None, str(place))) == every_row(connect(database, None))
    assert [(40,)] == ask(database, "SELECT count() FROM rows_of_host")


def start_load(dataset, database):
    code = f"from agent.fleet.engines import load; load({str(dataset)!r}, {database!r})"
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
