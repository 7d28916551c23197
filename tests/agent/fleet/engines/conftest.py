"""A made-up fleet of its own: engines are compared on every kind of oddity that reports can tell."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent.fleet.engines import load
from bench.fleet.kinds import KINDS
from tests.agent.fleet.engines.servers import NotReadyError, needed, run_server
from tests.agent.fleet.questions.conftest import EVERY_KIND, OF_CABLES, ON_THEIR_OWN, made


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    place = tmp_path_factory.mktemp("engines")
    fleet = made(place, 256, 8, EVERY_KIND)
    odd = {oddity["kind"] for oddity in (*fleet.truth["oddities"], *fleet.truth["noise"])}
    assert not KINDS.keys() - odd - {*OF_CABLES, *ON_THEIR_OWN}
    return place / "dataset"


@pytest.fixture(scope="session")
def clickhouse(dataset, tmp_path_factory):
    """The fleet in a ClickHouse of this process: its address. No server is at hand that a test could start."""
    needed("chdb", "clickhouse_connect")
    url = f"chdb://{tmp_path_factory.mktemp('clickhouse') / 'database'}"
    assert load(str(dataset), url)["host"] > 50
    return url


@pytest.fixture(scope="session")
def loaded_postgres(dataset, postgres):
    """The fleet in a PostgreSQL server: its address."""
    assert load(str(dataset), postgres)["host"] > 50
    return postgres


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of ours as an unprivileged user; its address.

    Its folder is none of pytest's, which any other run of pytest closes to other users.
    """
    needed("psycopg")
    result = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not result:
        pytest.skip("no PostgreSQL server (Debian: postgresql)")
    place = tempfile.TemporaryDirectory(prefix="fabricscope-postgres-", dir="/tmp")
    with place, _start_postgres(result[-1].parent, Path(place.name)) as port:
        yield _address(port)


def _start_postgres(binaries: Path, folder: Path) -> AbstractContextManager[int]:
    """The port of a server with its data in the folder."""
    data = folder / "data"
    data.mkdir()
    options: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses root
        user = pwd.getpwnam("nobody")
        for place in (folder, data):
            os.chown(place, user.pw_uid, user.pw_gid)
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    done = subprocess.run(
        [str(binaries / "initdb"), "-D", str(data), "-U", "fabricscope", "-A", "trust", "--no-sync", "-E", "UTF8"],
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, **options,
    )  # fmt: skip
    assert done.returncode == 0, f"initdb ended with exit code {done.returncode}:\n{done.stdout[-4000:]}"
    settings = ("dynamic_shared_memory_type=mmap", "shared_buffers=16MB")  # a small /dev/shm is enough
    command = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder), "-F"]
    command += [part for setting in settings for part in ("-c", setting)]
    return run_server(lambda port: [*command, "-p", str(port)], folder / "log", _ask_postgres, cwd=folder, **options)


def _address(port: int) -> str:
    return f"postgres://fabricscope@127.0.0.1:{port}/postgres"


def _ask_postgres(port: int) -> None:
    """While it starts it accepts connections, and refuses them: "the database system is starting up"."""
    import psycopg

    try:
        with psycopg.connect(_address(port), connect_timeout=5) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        raise NotReadyError(str(error).strip()) from error
