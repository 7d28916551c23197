"""The same questions to every engine, and the same answers: `make engines`. What is not installed is skipped."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import time
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from agent.fleet.engines import connect
from agent.fleet.engines.engine import Where, narrowed
from agent.fleet.questions.drift import drift
from agent.fleet.questions.duplicates import duplicates
from agent.fleet.questions.findings import findings
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600), pytest.mark.usefixtures("real_commands")]
SINCE = datetime(2026, 1, 15, 8, 59, 59)  # noqa: DTZ001  # UTC without a zone is what is asked for


def answers(tables):
    """All answers as JSON."""
    asked = {
        "summary": summary(tables),
        "outliers": outliers(tables),
        "findings": findings(tables),
        "duplicates": duplicates(tables),
        "drift": drift(tables, SINCE),
    }
    some = narrowed(tables, Where(classes=("gb200",), nodes=("gpu0003", "gpu0004", "gpu0005")))
    asked["some"] = summary(some)
    return {name: msgspec.json.format(msgspec.json.encode(each)).decode() for name, each in asked.items()}


@pytest.fixture(scope="session")
def expected(dataset):
    engine = connect(None, str(dataset))
    found = answers(engine)
    engine.close()
    return found


def needed(*modules):
    """Skip in one line where a library is not installed."""
    missing = [each for each in modules if importlib.util.find_spec(each) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (make engines)")


def compared(url, dataset, expected):
    engine = connect(url, dataset)
    try:
        found = answers(engine)
    finally:
        engine.close()
    for name, answer in expected.items():
        assert found[name] == answer, name


def test_there_is_something_to_compare(expected):
    for name in ("outliers", "duplicates", "findings"):
        assert len(msgspec.json.decode(expected[name])[name]) > 3
    assert msgspec.json.decode(expected["drift"])["changes"]


def test_clickhouse_in_this_process(dataset, expected):
    needed("chdb", "clickhouse_connect")
    compared("chdb://", str(dataset), expected)


def test_spark_in_this_process(dataset, expected):
    needed("pyspark")
    if not shutil.which("java"):
        pytest.skip("no java")
    compared("local", str(dataset), expected)


@pytest.fixture
def spark(tmp_path):
    """A Spark master with two workers; the address of the master."""
    needed("pyspark")
    if not shutil.which("java"):
        pytest.skip("no java")
    home = Path(importlib.util.find_spec("pyspark").origin).parent
    port = free_port()
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
    url = f"spark://127.0.0.1:{port}"
    places = [str(tmp_path / f"worker{number}") for number in (1, 2)]
    commands = [
        [*master, "--webui-port", "0"],
        *([*worker, "--webui-port", "0", "--work-dir", place, url] for place in places),
    ]
    started = [
        subprocess.Popen(
            [str(home / "bin" / "spark-class"), *each],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for each in commands
    ]
    try:
        reachable(port, started[0])
        yield url
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait(60)


def test_spark_with_workers_of_its_own(dataset, expected, spark):
    compared(spark, str(dataset), expected)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A PostgreSQL server of ours as an unprivileged user; its address."""
    needed("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
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
            if parent.owner() == "root" and parent != Path("/tmp") and parent.is_relative_to("/tmp"):
                parent.chmod(0o711)
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    subprocess.run(
        [str(found[-1]), "-D", str(data), "-U", "fabricscope", "-A", "trust", "--no-sync", "-E", "UTF8"],
        check=True, stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip
    server = subprocess.Popen(
        [str(found[-1].parent / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), "-F"],
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


def test_postgresql_after_a_load(dataset, expected, postgres):
    from agent.fleet.engines.loading import load

    source = connect(None, str(dataset))
    for _ in range(2):  # the second takes the place of the first
        counts = load(source, postgres)
    source.close()
    assert counts["host"] > 50
    compared(postgres, None, expected)


def test_postgresql_without_a_load_says_what_to_do(postgres):
    from agent.fleet.engines.engine import EngineRefused

    with pytest.raises(EngineRefused, match="fleet load"):
        connect(postgres.replace("/postgres", "/template1").replace("template1://", "postgres://"), None)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def reachable(port, process):
    until = time.monotonic() + 90
    while time.monotonic() < until:
        assert process.poll() is None, "it ended by itself"
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("it does not answer")
