"""Grafana's dashboards on PostgreSQL and ClickHouse: after a load every query runs and has rows where the fleet has."""

from __future__ import annotations

import json
import re

import pytest

from agent.fleet.engines import load
from agent.fleet.engines.clickhouse import connect_client
from tests.agent.fleet.engines.servers import needed
from tests.conftest import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]
DASHBOARD = json.loads((ROOT / "packaging" / "grafana" / "fabricscope-postgresql.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
MAY_BE_EMPTY = {"Settings of NCCL and its like", "Services", "Time until a finding was gone", "Repeat offenders"}


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


ON_CLICKHOUSE = json.loads((ROOT / "packaging" / "grafana" / "fabricscope-clickhouse.json").read_text())


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
