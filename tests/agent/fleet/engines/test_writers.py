"""Several loads into one database at once, some of them killed: it has the dataset, each row once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from agent.fleet.engines import connect, load
from agent.fleet.engines.clickhouse import connect_client
from agent.fleet.engines.engine import EngineRefused
from tests.agent.fleet.engines.servers import every_row, needed
from tests.agent.fleet.small import report, take
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900), pytest.mark.usefixtures("real_commands")]
NODES = 30


@pytest.fixture
def place(tmp_path):
    take(tmp_path / "dataset", *(report(f"n{number}") for number in range(NODES)))
    return tmp_path / "dataset"


@pytest.fixture
def chdb(tmp_path):
    needed("chdb", "clickhouse_connect")
    return f"chdb://{tmp_path}/database"


def start_load(place, url):
    """By the real command line."""
    command = [sys.executable, "-m", "fabricscope", "fleet", "load", "--engine", url, "--dataset", str(place)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_loads_of_one_moment_into_clickhouse(place, chdb):
    """In one process, as several clients of a server would: those that do not load say so."""
    answers = []

    def try_load():
        try:
            answers.append(load(str(place), chdb)["host"])
        except EngineRefused as error:
            answers.append(str(error))

    for _ in range(3):
        loads = [threading.Thread(target=try_load) for _ in range(4)]
        for one in loads:
            one.start()
        for one in loads:
            one.join()
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert len(refused) < len(answers) == 12
    assert all("another load was at work" in answer or "began later" in answer for answer in refused)
    load(str(place), chdb)
    assert every_row(connect(None, str(place))) == every_row(connect(chdb, None))
    client = connect_client(chdb)
    assert [(NODES,)] == client.query("SELECT count() FROM rows_of_host").result_rows
    client.close()


def test_a_folder_of_chdb_is_open_in_one_process(place, chdb):
    load(str(place), chdb)
    held = connect(chdb, None)
    second = start_load(place, chdb)
    said = second.communicate()[1]
    held.close()
    assert second.returncode == 2
    assert said.count("\n") == 1
    assert "has it open; chDB serves one process at a time" in said


def test_two_loads_into_postgresql_of_which_one_is_killed(place, postgres):
    """The other one waits for it, and has the database at once when it is dead."""
    began = time.monotonic()
    assert 0 == start_load(place, postgres).wait()
    whole = time.monotonic() - began
    expected = every_row(connect(None, str(place)))
    killed = 0
    for share in (0.3, 0.6, 0.8, 0.95):
        first, second = start_load(place, postgres), start_load(place, postgres)
        time.sleep(whole * share)
        first.kill()
        said = second.communicate()[1]
        killed += first.wait() == -signal.SIGKILL
        first.stderr.close()
        assert second.returncode == 0, said
        assert expected == every_row(connect(postgres, None))
    assert killed > 1


def test_a_load_into_postgresql_does_not_wait_for_ever(place, postgres, monkeypatch):
    import psycopg

    monkeypatch.setattr("agent.fleet.engines.postgres._LOCK_SECONDS", 1)
    with psycopg.connect(postgres) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('fabricscope fleet load'))")
        with pytest.raises(EngineRefused, match=r"^another load is at work \(waited 1 s\)$"):
            load(str(place), postgres)
