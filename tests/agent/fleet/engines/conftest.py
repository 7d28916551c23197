"""A made-up fleet of its own: engines are compared on every kind of oddity that reports can tell."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from bench.fleet.kinds import KINDS
from tests.agent.fleet.engines.servers import free_port, needed, reachable
from tests.agent.fleet.questions.conftest import EVERY_KIND, OF_CABLES, ON_THEIR_OWN, made


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    place = tmp_path_factory.mktemp("engines")
    fleet = made(place, 256, 8, EVERY_KIND)
    odd = {oddity["kind"] for oddity in (*fleet.truth["oddities"], *fleet.truth["noise"])}
    assert not KINDS.keys() - odd - {*OF_CABLES, *ON_THEIR_OWN}
    return place / "dataset"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A PostgreSQL server of ours as an unprivileged user; its address."""
    needed("psycopg")
    result = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not result:
        pytest.skip("no PostgreSQL server (Debian: postgresql)")
    folder = tmp_path_factory.mktemp("postgres")
    port = free_port()
    data = folder / "data"
    data.mkdir()
    options: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses root
        user = pwd.getpwnam("nobody")
        for place in (folder, data):
            os.chown(place, user.pw_uid, user.pw_gid)
        for parent in folder.parents:
            if not parent.stat().st_mode & stat.S_IXOTH:  # pytest's own folders
                parent.chmod(0o711)
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    subprocess.run(
        [str(result[-1]), "-D", str(data), "-U", "fabricscope", "-A", "trust", "--no-sync", "-E", "UTF8"],
        check=True, stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip
    server = subprocess.Popen(
        [str(result[-1].parent / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), "-F"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    try:
        reachable(port, server)
        yield f"postgres://fabricscope@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(60)
