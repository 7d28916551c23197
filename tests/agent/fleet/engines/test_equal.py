"""The same questions to every engine, and the same answers: `make engines`. What is not installed is skipped."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import time
from datetime import date, datetime, timezone
from pathlib import Path

import msgspec
import pytest

from agent.cli.main import run
from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.engines import connect
from agent.fleet.engines.engine import EngineRefused, Where, narrow
from agent.fleet.episodes.silences import FleetSilence, Silences, silence
from agent.fleet.page.build import build_scene
from agent.fleet.page.from_dataset import PageOptions
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.duplicates import find_duplicates
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from tests.agent.fleet.engines.servers import free_port, java_needed, needed, run_server, stop
from tests.agent.fleet.questions.nodes import finding
from tests.agent.fleet.questions.test_silenced import OF_THE_NEWEST, QUESTIONS, SILENCED, fleet
from tests.agent.fleet.small import take

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]
SINCE = datetime(2026, 1, 15, 8, 59, 59)  # noqa: DTZ001  # UTC without a zone is what is asked for
MADE = datetime(2026, 1, 16, tzinfo=timezone.utc)


def answers(tables):
    """All answers as JSON."""
    request = {
        "summary": build_summary(tables),
        "outliers": find_outliers(tables),
        "findings": find_findings(tables),
        "duplicates": find_duplicates(tables),
        "drift": find_drift(tables, SINCE),
        "page": build_scene(tables, lambda: read_wiring(build_from_reports(tables)), PageOptions(), MADE),
    }
    some = narrow(tables, Where(classes=("gb200",), nodes=("gpu0003", "gpu0004", "gpu0005")))
    request["some"] = build_summary(some)
    return {name: msgspec.json.format(msgspec.json.encode(item)).decode() for name, item in request.items()}


@pytest.fixture(scope="session")
def expected(dataset):
    engine = connect(None, str(dataset))
    result = answers(engine)
    engine.close()
    return result


def compared(url, dataset, expected):
    engine = connect(url, dataset)
    try:
        result = answers(engine)
    finally:
        engine.close()
    for name, answer in expected.items():
        assert result[name] == answer, name


def page(place, *words):
    """What `fleet html` writes, without the minute of its making; and what it says of reports that it cannot hold."""
    assert run(["fleet", "html", "-o", str(place / "fleet.html"), *words]) == 0
    text = re.sub(r"20..-..-.. ..:.. UTC", "", (place / "fleet.html").read_text())
    unread = " How many reports could not be read is not known[.]| [0-9]+ reports? could not be read[.]"
    return re.sub(unread, "", text), re.findall(unread, text)


def test_there_is_something_to_compare(expected):
    for name in ("outliers", "duplicates", "findings"):
        assert len(msgspec.json.decode(expected[name])[name]) > 3
    assert msgspec.json.decode(expected["drift"])["changes"]
    assert len(expected["page"]) > 100_000


def test_clickhouse_in_this_process(dataset, expected):
    needed("chdb", "clickhouse_connect")
    compared("chdb://", str(dataset), expected)


def test_the_page_by_clickhouse(dataset, tmp_path):
    needed("chdb", "clickhouse_connect")
    request = ("--dataset", str(dataset))
    assert page(tmp_path, *request, "--engine", "chdb://") == page(tmp_path, *request)


@pytest.fixture(scope="session")
def silenced(tmp_path_factory):
    """A small dataset with findings that are silenced, and the answers about it."""
    place = tmp_path_factory.mktemp("silenced") / "dataset"
    take(place, *fleet(SILENCED, finding("bad-link", "GPU1", "error")))
    engine = connect(None, str(place))
    result = answers_of_silenced(engine)
    engine.close()
    return place, result


def answers_of_silenced(engine):
    """Also with what the operator of the fleet silenced, of all nodes and of some."""
    entries = [{"node": "n0"}, {"device": "GPU1"}]
    known = [Silences([FleetSilence(rule="bad-link", reason="r", **entry)], date.min) for entry in entries]
    here, some = silence(engine, known[0]), silence(narrow(engine, Where(nodes=("n0", "n4"))), known[1])
    found = answers(engine) | {name: str(ask(engine)) for name, ask in QUESTIONS.items()}
    found |= {f"{name}, silenced here": str(QUESTIONS[name](here)) for name in OF_THE_NEWEST}
    found |= {f"{name} of some, silenced here": str(QUESTIONS[name](some)) for name in OF_THE_NEWEST}
    assert found["findings, silenced here"] != found["findings"] != found["findings of some, silenced here"]
    return found


def test_silenced_findings_by_clickhouse(silenced):
    needed("chdb", "clickhouse_connect")
    same_of_silenced("chdb://", str(silenced[0]), silenced[1])


def test_silenced_findings_by_spark(silenced):
    needed("pyspark")
    java_needed()
    same_of_silenced("local", str(silenced[0]), silenced[1])


def test_silenced_findings_by_postgresql(silenced, postgres):
    from agent.fleet.engines.postgres import load

    source = connect(None, str(silenced[0]))
    load(source, postgres)
    source.close()
    same_of_silenced(postgres, None, silenced[1])


def same_of_silenced(url, dataset, expected):
    engine = connect(url, dataset)
    try:
        result = answers_of_silenced(engine)
    finally:
        engine.close()
    assert result == expected


def test_spark_in_this_process(dataset, expected):
    needed("pyspark")
    java_needed()
    compared("local", str(dataset), expected)


@pytest.fixture
def spark(tmp_path):
    """A Spark master with two workers; the address of the master."""
    needed("pyspark")
    java_needed()
    home = Path(importlib.util.find_spec("pyspark").origin).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    begin = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy."]
    own = ["--host", "127.0.0.1", "--webui-port", "0"]
    worker = [begin[0], f"{begin[1]}worker.Worker", *own, "--cores", "1", "--memory", "1g", "--work-dir"]

    def master(port: int) -> list[str]:
        return [begin[0], f"{begin[1]}master.Master", *own, "--port", str(port)]

    with run_server(master, tmp_path / "master.log", env=environment) as port:
        url = f"spark://127.0.0.1:{port}"
        workers = []
        for name in ("worker1", "worker2"):
            with (tmp_path / f"{name}.log").open("wb") as log:
                command = [*worker, str(tmp_path / name), url]
                workers.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
        try:
            yield url
        finally:
            stop(*workers)


@pytest.mark.parametrize("url", ["spark://127.0.0.1:PORT", "spark://nowhere", "spark://nowhere.invalid:7077"])
def test_a_spark_that_is_not_there_is_said_at_once(dataset, url):
    """Spark itself tries for a minute, and then speaks of a stopped context."""
    needed("pyspark")
    url = url.replace("PORT", str(free_port()))
    began = time.monotonic()
    with pytest.raises(EngineRefused, match=rf"^{url}: [^\n]+$"):
        connect(url, str(dataset))
    assert time.monotonic() - began < 45


def test_spark_with_workers_of_its_own(dataset, expected, spark):
    compared(spark, str(dataset), expected)


def test_postgresql_after_a_load(dataset, expected, postgres):
    from agent.fleet.engines.postgres import load

    source = connect(None, str(dataset))
    for _ in range(2):  # the second takes the place of the first
        counts = load(source, postgres)
    source.close()
    assert counts["host"] > 50
    compared(postgres, None, expected)


def test_the_page_and_the_cluster_by_postgresql(dataset, postgres, tmp_path, monkeypatch, capsys):
    """Without a dataset: what is in the database is enough, but for the reports that could not be read."""
    request = ("--dataset", str(dataset))
    assert run(["fleet", "load", "--engine", postgres, *request]) == 0
    (folder, counted), (database, unknown) = page(tmp_path, *request), page(tmp_path, "--engine", postgres)
    assert folder == database
    assert (len(counted), len(unknown)) == (1, 1)
    assert counted != unknown
    for question in ("topology", "cables"):
        capsys.readouterr()
        assert run(["fleet", question, *request]) == 0
        embedded = capsys.readouterr().out
        monkeypatch.setenv("FABRICSCOPE_ENGINE", postgres)
        assert run(["fleet", question]) == 0
        monkeypatch.delenv("FABRICSCOPE_ENGINE")
        assert capsys.readouterr().out == embedded


def test_postgresql_without_a_load_says_what_to_do(postgres):
    with pytest.raises(EngineRefused, match="fleet load"):
        connect(postgres.replace("/postgres", "/template1").replace("template1://", "postgres://"), None)
