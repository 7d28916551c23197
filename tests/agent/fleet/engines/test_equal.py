"""The same questions to every engine, and the same answers: `make engines`. What is not installed is skipped."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone

import msgspec
import pytest

from agent.cli.main import run
from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.engines import connect, load, translated
from agent.fleet.engines.engine import ABOUT, EngineRefused, Where, narrow
from agent.fleet.engines.query import table_query
from agent.fleet.episodes.silences import FleetSilence, Silences, silence
from agent.fleet.page.from_dataset import PageOptions, build_scene
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.duplicates import find_duplicates
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from tests.agent.fleet.engines.servers import needed
from tests.agent.fleet.questions.test_silenced import OF_THE_NEWEST, QUESTIONS, SILENCED, fleet
from tests.agent.fleet.small import finding, take

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]
SINCE = datetime(2026, 1, 15, 8, 59, 59)  # noqa: DTZ001  # UTC without a zone is what is asked for
MADE = datetime(2026, 1, 16, tzinfo=timezone.utc)
QUERIES = [
    "select hardware_class, driver, count(*) as nodes from host group by all having count(*) < 20 order by nodes",
    "select node, observed_at, verdict from history_host",
    "select node, gpus from host where node like 'gpu000%' and contains(lower(hardware_class), 'gb200')",
    *(f"select * from {name}" for name in ABOUT if name != "port_day"),
    "select node, nic, port, day, symbol_error from port_day",
]
ENGINES = ["clickhouse", "loaded_postgres"]


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


def test_clickhouse_after_a_load(expected, clickhouse):
    compared(clickhouse, None, expected)


def test_the_page_by_clickhouse(dataset, clickhouse, tmp_path):
    (folder, _), (database, _) = page(tmp_path, "--dataset", str(dataset)), page(tmp_path, "--engine", clickhouse)
    assert folder == database


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_of_a_person_has_the_same_rows(dataset, request, sql, engine):
    """In DuckDB's SQL, with every engine; of each view, too."""
    url = request.getfixturevalue(engine)
    expected, found = (rows_of(connect(*address), sql) for address in ((None, str(dataset)), (url, None)))
    assert found == expected
    assert expected[1]


def rows_of(engine, sql):
    names, pieces = engine.query(sql)
    rows = sorted((row for piece in pieces for row in piece), key=repr)
    engine.close()
    return names, rows


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_without_rows_has_columns_and_a_large_one_is_refused(request, engine, monkeypatch):
    asked = connect(request.getfixturevalue(engine), None)
    assert rows_of_open(asked, "select node, gpus from host where node = 'none'") == (["node", "gpus"], [])
    monkeypatch.setattr(translated, "MOST_ROWS", 3)
    with pytest.raises(EngineRefused, match=r"^\w+: the answer has more than 3 rows: "):
        asked.query("select node from host")
    monkeypatch.setattr(translated, "MOST_ROWS", 10_000)
    monkeypatch.setattr(translated, "MOST_BYTES", 3)
    with pytest.raises(EngineRefused, match=r"^\w+: the answer has more than 0 MiB: "):
        asked.rows(table_query("host", ["node"]))
    monkeypatch.undo()
    assert rows_of_open(asked, "select count(*) as number from host")[1][0][0] > 3
    asked.close()


def rows_of_open(engine, sql):
    names, pieces = engine.query(sql)
    return list(names), [row for piece in pieces for row in piece]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sql", ["drop table host", "select 1; select 2", "insert into host values (1)", "", "selec"])
def test_a_query_that_is_no_select_is_refused(request, engine, sql):
    asked = connect(request.getfixturevalue(engine), None)
    with pytest.raises(EngineRefused, match=r"^[^\n]+$"):
        asked.query(sql)
    asked.close()


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


def test_silenced_findings_by_clickhouse(silenced, tmp_path):
    needed("chdb", "clickhouse_connect")
    load(str(silenced[0]), f"chdb://{tmp_path}/silenced")
    same_of_silenced(f"chdb://{tmp_path}/silenced", None, silenced[1])


def test_silenced_findings_by_postgresql(silenced, postgres):
    load(str(silenced[0]), postgres)
    same_of_silenced(postgres, None, silenced[1])


def same_of_silenced(url, dataset, expected):
    engine = connect(url, dataset)
    try:
        result = answers_of_silenced(engine)
    finally:
        engine.close()
    assert result == expected


def test_postgresql_after_a_load(dataset, expected, postgres):
    for _ in range(2):  # the second takes the place of the first
        counts = load(str(dataset), postgres)
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
