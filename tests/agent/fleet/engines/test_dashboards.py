"""Grafana's dashboards on PostgreSQL and ClickHouse: after a load every query runs and has rows where the fleet has.
The walkthrough of docs/fleet.md from nothing to an answer, as it is printed there, by the real command line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from agent.fleet.engines import load
from agent.fleet.engines.clickhouse import connect_client
from bench.fleet.plan import plan
from tests.agent.fleet.engines.servers import needed
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]
DASHBOARD = json.loads((ROOT / "packaging" / "grafana" / "fabricscope-postgresql.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
MAY_BE_EMPTY = {"Settings of NCCL and its like", "Services", "Time until a finding was gone", "Repeat offenders"}
ON_CLICKHOUSE = json.loads((ROOT / "packaging" / "grafana" / "fabricscope-clickhouse.json").read_text())
PRINTED = re.compile(r"From nothing to an answer, here with chDB.*?```\n(.*?)```", re.DOTALL)


def expand(sql: str, classes: str) -> str:
    """Macros and variables as Grafana's data source expands them, for the whole range of times."""
    sql = re.sub(
        r"\$__timeFilter\((CAST\(.*?\)|\w+)\)", r"\1 BETWEEN '1970-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z'", sql
    )
    sql = re.sub(r"\$__timeGroupAlias\((\w+), '1d'\)", r'floor(extract(epoch from \1)/86400)*86400 AS "time"', sql)
    sql = sql.replace("${hardware_class:sqlstring}", classes)
    assert "$" not in sql
    return sql


@pytest.fixture(scope="module")
def connection(dataset, postgres):
    """To a database with the fleet in it, as a role that may only read: what Grafana should have."""
    needed("psycopg")
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE grafana")
    url = postgres.rpartition("/")[0] + "/grafana"
    load(str(dataset), url)
    with psycopg.connect(url, autocommit=True) as connection:
        page = (ROOT / "docs" / "monitoring.md").read_text()
        (grants,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
        connection.execute(grants)
    with psycopg.connect(url.replace("fabricscope@", "grafana@"), autocommit=True) as connection:
        yield connection


def test_every_query_runs(connection):
    """For all classes that the variable lists."""
    (variable,) = DASHBOARD["templating"]["list"]
    classes = [row[0] for row in connection.execute(variable["query"]).fetchall()]
    assert len(classes) > 1
    quoted = ",".join("'" + name.replace("'", "''") + "'" for name in classes)
    for panel in PANELS:
        for target in panel["targets"]:
            cursor = connection.execute(expand(target["rawSql"], quoted))
            rows = cursor.fetchall()
            assert rows or panel["title"] in MAY_BE_EMPTY, panel["title"]
            names = [column.name for column in cursor.description]
            assert len(names) == len(set(names))
            if target["format"] == "time_series":
                assert names[:2] == ["time", "metric"]
            if panel["type"] == "stat":
                assert len(rows) == 1
                assert len(names) == 1


def test_a_class_that_is_not_chosen_has_no_rows(connection):
    """Each query but that of the load's age looks at the variable."""
    for panel in PANELS:
        rows = connection.execute(expand(panel["targets"][0]["rawSql"], "'none'")).fetchall()
        assert rows in ([], [(0,)]) or panel["title"] == "Last load"


def test_the_dashboard_on_clickhouse_has_the_same_panels():
    places = [
        [(panel["type"], panel["title"], panel["gridPos"]) for panel in board["panels"]]
        for board in (DASHBOARD, ON_CLICKHOUSE)
    ]
    assert places[0] == places[1]


@pytest.mark.parametrize("chosen", ["all", "none"])
def test_every_query_runs_on_clickhouse(clickhouse, chosen):
    """And looks at the variable, but for that of the load's age."""
    client = connect_client(clickhouse)
    (variable,) = ON_CLICKHOUSE["templating"]["list"]
    classes = [row[0] for row in client.query(variable["query"]).result_rows]
    assert len(classes) > 1
    quoted = ",".join(f"'{name}'" for name in classes) if chosen == "all" else "'none'"
    for panel in ON_CLICKHOUSE["panels"]:
        for target in panel.get("targets", []):
            sql = re.sub(r"\$__timeFilter\((toDateTime\(\w+\)|\w+)\)", r"\1 >= toDateTime(0)", target["rawSql"])
            answer = client.query(sql.replace("${hardware_class:sqlstring}", quoted))
            rows, is_series = answer.result_rows, target["queryType"] == "timeseries"
            if chosen == "all" or panel["title"] == "Last load":
                assert rows or panel["title"] in MAY_BE_EMPTY, panel["title"]
            else:
                assert rows in ([], [(0,)]), panel["title"]
            assert not rows or not is_series or answer.column_names[:2] == ("time", "metric")
            assert panel["type"] != "stat" or (1, 1) == (len(rows), len(answer.column_names))
    client.close()


@pytest.fixture
def reports(tmp_path):
    fleet = plan(40, 8, {"gpu-link-narrow": 1, "driver": 1}, mix={"h200-roce": 1})
    (tmp_path / "reports").mkdir()
    for number, data in enumerate(fleet.reports(0, one_line=True)):
        (tmp_path / "reports" / f"{number}.json").write_bytes(data)
    return tmp_path


def printed():
    """The commands, a line each."""
    (block,) = PRINTED.findall((ROOT / "docs" / "fleet.md").read_text())
    return [shlex.split(line) for line in block.splitlines()]


def told(place, words):
    """Exit code, stdout and stderr of a command that was started there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FABRICSCOPE_")}
    assert words[0] == "fabricscope"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=place, env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def with_postgres(words, address):
    return [address if word.startswith("chdb://") else word for word in words]


def test_with_chdb(reports):
    needed("chdb", "clickhouse_connect")
    walk(reports, list)


def test_with_postgresql(reports, postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as session:  # other tests have loaded into the server's first one
        session.execute("CREATE DATABASE walkthrough")
    walk(reports, lambda words: with_postgres(words, f"{postgres.rpartition('/')[0]}/walkthrough"))


def walk(place, change):
    """Each command answers; those of the engine as DuckDB does."""
    first, *others = map(change, printed())
    code, _, progress = told(place, first)
    assert code == 0, progress
    early = told(place, others[1])
    assert early[0] == 2
    assert early[2].count("\n") == 1
    assert "`fabricscope fleet load --engine URL` puts" in early[2]  # asked before the load
    load, *questions = others
    code, loaded, error = told(place, load)
    assert code == 0, error
    assert re.fullmatch(r"[0-9,]+ rows of [0-9]+ tables\n", loaded)
    for words in questions:
        at = words.index("--engine")
        embedded = [*words[:at], "--dataset", "dataset", *words[at + 2 :]]
        answer = told(place, [*words, "--format", "json"])
        assert answer[0] == 0, answer[2]
        assert sorted(answer[1].splitlines()) == sorted(told(place, [*embedded, "--format", "json"])[1].splitlines())
    assert '{"rule":"pcie-width-downgraded","findings":1}' in answer[1]
