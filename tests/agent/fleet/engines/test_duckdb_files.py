"""DuckDB over the dataset's files: while an ingest replaces them, of earlier versions, and shut for queries."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pytest
from pyarrow import parquet

from agent.fleet import columns
from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect, schema
from agent.fleet.engines.engine import EngineRefused, Where, narrow
from agent.fleet.engines.query import lookup, table_query
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from agent.fleet.table import TEXT
from tests.agent.fleet.engines.statements import statements
from tests.agent.fleet.small import report, take, taken


@pytest.fixture
def dataset(tmp_path):
    take(tmp_path / "dataset", *(report(f"n{n}") for n in range(6)))
    return tmp_path / "dataset"


def engine_of(place):
    return connect(None, str(place))


def test_shapes_are_those_of_the_files():
    for name in schema.names():
        bare = name.removeprefix(schema.HISTORY)
        assert [column.name for column in schema.columns(name)] == columns.schema(bare, history=bare != name).names


def test_an_ingest_while_a_question_is_asked(dataset, tmp_path):
    engine = engine_of(dataset)
    assert build_summary(engine).nodes == 6
    before = set(open_dataset(str(dataset)).latest("host"))
    taken(dataset, _source(tmp_path, report("n9", 1)))
    assert not before & set(open_dataset(str(dataset)).latest("host")), "the files are others now"
    assert build_summary(engine).nodes == 7
    engine.close()


def test_what_is_asked_ahead_while_an_ingest_replaces_the_files(dataset, tmp_path):
    engine = engine_of(dataset)
    before = engine.submit(table_query("host", ["node"]))
    assert sorted(before()) == [(f"n{n}",) for n in range(6)]
    taken(dataset, _source(tmp_path, report("n9", 1)))
    after = engine.submit(table_query("host", ["node"]))
    assert ("n9",) in after()
    shutil.rmtree(dataset / "latest")
    gone = engine.submit(table_query("host", ["node"]))
    with pytest.raises(EngineRefused, match=r"^[^\n]+$"):
        gone()
    engine.close()


def _source(place, data):
    path = place / "more.json"
    path.write_bytes(data)
    return path


def test_files_that_are_gone_for_good_are_said_in_one_line(dataset):
    engine = engine_of(dataset)
    shutil.rmtree(dataset / "latest")
    with pytest.raises(EngineRefused) as refused:
        build_summary(engine)
    assert "\n" not in str(refused.value)
    engine.close()


def test_a_damaged_file_is_said_in_one_line(dataset):
    for path in open_dataset(str(dataset)).latest("host"):
        with open(path, "r+b") as file:
            file.write(b"nothing")
            file.truncate(100)
    engine = engine_of(dataset)
    with pytest.raises(EngineRefused, match=r"^duckdb: [^\n]*$"):
        build_summary(engine)
    engine.close()


def test_files_of_an_earlier_version_lack_columns(dataset):
    for table in ("host", "gpu"):
        for path in open_dataset(str(dataset)).latest(table):
            whole = parquet.read_table(path)
            parquet.write_table(whole.drop_columns(["bios" if table == "host" else "vbios"]), path)
    engine = engine_of(dataset)
    assert find_outliers(engine).outliers == []
    assert engine.rows(table_query("host", ["bios"])) == [(None,)] * 6
    engine.close()


@pytest.mark.parametrize("older", [0, -1])
def test_a_column_that_some_files_have(tmp_path, monkeypatch, older):
    """Those of the ingests of an earlier version have fewer: all of one ingest have the same."""
    monkeypatch.setattr("agent.fleet.ingest.run.NODES_A_BUCKET", 4)
    take(tmp_path / "dataset", *(report(f"n{n}") for n in range(6)))
    files = sorted(open_dataset(str(tmp_path / "dataset")).latest("host"))
    assert len(files) == 2
    whole = parquet.read_table(files[older])
    earlier = os.path.basename(files[older]).replace("00000001-", "00000000-", 1)
    parquet.write_table(whole.drop_columns(["driver"]), os.path.join(os.path.dirname(files[older]), earlier))
    manifest = tmp_path / "dataset" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(os.path.basename(files[older]), earlier))
    engine = engine_of(tmp_path / "dataset")
    rows = engine.rows(table_query("host", ["node", "driver"]))
    assert {node for node, driver in rows if driver is None} == set(whole["node"].to_pylist())
    assert len(rows) == 6
    engine.close()


def test_files_of_a_later_version_have_more(dataset):
    for path in open_dataset(str(dataset)).latest("host"):
        whole = parquet.read_table(path)
        parquet.write_table(whole.append_column("moon_phase", pa.array(["full"] * len(whole))), path)
    engine = engine_of(dataset)
    assert build_summary(engine).nodes == 6
    engine.close()


def queried(place, sql):
    engine = engine_of(place)
    try:
        names, batches = engine.query(sql)
        return names, [row for batch in batches for row in batch]
    finally:
        engine.close()


def test_queries(dataset):
    assert queried(dataset, "select count(*) as n from host") == (["n"], [(6,)])
    assert queried(dataset, "select count(*) from history_host join history_change using (node)")[1][0][0] > 0
    assert queried(dataset, "with a as (select 1 as x) from a") == (["x"], [(1,)])
    assert queried(dataset, "select 1 where false") == (["1"], [])


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "selct 1",
        "select 1; select 2",
        "copy host to '{place}/out.csv'",
        "copy (select 1) to '{host}' (format parquet)",
        "create table x as select 1",
        "drop view host",
        "insert into host values (1)",
        "attach '{place}/x.db'",
        "set enable_external_access = true",
        "install httpfs",
        "load httpfs",
        "pragma threads = 1",
        "explain analyze select 1",
        "select * from '/etc/passwd'",
        "select * from read_text('/etc/passwd')",
        "select * from read_csv('/etc/passwd')",
        "select * from glob('/etc/*')",
        "select * from read_parquet('{place}/other.parquet')",
        "select * from 'https://example.com/x.parquet'",
        "select * from nothing_here",
        "select cast('x' as int) from host",
    ],
)
def test_nothing_else_can_be_done(dataset, sql):
    other = dataset.parent / "other.parquet"
    parquet.write_table(pa.table({"a": [1]}), other)
    host = open_dataset(str(dataset)).latest("host")[0]
    before = sorted(path.name for path in dataset.rglob("*")), dataset.joinpath(host).read_bytes()
    with pytest.raises(EngineRefused, match=r"^[^\n]+$"):
        queried(dataset, sql.format(place=dataset.parent, host=host))
    assert (sorted(path.name for path in dataset.rglob("*")), dataset.joinpath(host).read_bytes()) == before


def test_which_dataset(tmp_path):
    with pytest.raises(EngineRefused, match="--dataset"):
        connect(None, None)
    with pytest.raises(EngineRefused, match=r"no dataset.*manifest\.json"):
        connect(None, str(tmp_path))


def test_no_engine_of_that_name():
    with pytest.raises(EngineRefused, match="nonsense"):
        connect("nonsense://x:secret@host/y", None)
    with pytest.raises(EngineRefused) as refused:
        connect("nonsense://x:secret@host/y", None)
    assert "secret" not in str(refused.value)


def test_another_engine_needs_its_extra(monkeypatch):
    monkeypatch.setattr("agent.fleet.engines.find_spec", lambda name: None)
    with pytest.raises(EngineRefused, match=r"^postgres://.*h/d: .* missing: sqlglot .*'\.\[engines\]'\)$"):
        connect("postgres://u:secret@h/d", None)
    with pytest.raises(EngineRefused, match="no such engine"):
        connect("nonsense://h", None)


@pytest.fixture
def buckets(tmp_path, monkeypatch):
    """A dataset of four buckets, of which `n3` is in one."""
    monkeypatch.setattr("agent.fleet.ingest.run.NODES_A_BUCKET", 4)
    take(tmp_path / "dataset", *(report(f"n{n}") for n in range(16)))
    assert open_dataset(str(tmp_path / "dataset")).manifest.buckets == 4
    return tmp_path / "dataset"


def test_rows_of_some_nodes_are_read_from_their_buckets(buckets):
    dataset = open_dataset(str(buckets))
    (own,) = dataset.latest("host", [dataset.bucket("n3")])
    engine = engine_of(buckets)
    asked = lookup({"node": TEXT}, "job_hosts", "now", columns="thing.os", table='"host"')
    before = engine.fetch_by_keys(asked, [("n3",)])
    for path in {*dataset.latest("host")} - {own}:
        os.remove(path)
    assert engine.fetch_by_keys(asked, [("n3",)]) == before
    assert narrow(engine, Where(nodes=("n3",))).rows(table_query("host", ["node"])) == [("n3",)]
    with pytest.raises(EngineRefused):
        engine.rows(table_query("host", ["node"]))
    engine.close()


def test_of_some_buckets_every_lookup_reads_the_same(buckets, monkeypatch):
    engine = engine_of(buckets)
    by_node = {
        name: query._replace(relations=(query.relations[0]._replace(rows=[("n3",)]),))
        for name, query in statements().items()
        if [list(relation.columns) for relation in query.relations] == [["node"]]
    }
    some = {name: sorted(engine.rows(query), key=str) for name, query in by_node.items()}
    monkeypatch.setattr(type(engine), "_narrow", lambda *_: {})
    assert some == {name: sorted(engine.rows(query), key=str) for name, query in by_node.items()}
    assert sum(bool(rows) for rows in some.values()) > 10
    engine.close()
