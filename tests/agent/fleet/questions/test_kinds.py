"""Answers from one node of each kind are those from all nodes: few kinds, too many, and nodes without digests."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from pyarrow import parquet

from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect, schema
from agent.fleet.page import reading
from agent.fleet.page.build import build_scene
from agent.fleet.page.from_dataset import PageOptions
from agent.fleet.questions.attributes import PARTS, THINGS
from agent.fleet.questions.baseline import CLASS
from agent.fleet.questions.kinds import KINDS, DigestGroups
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import STATES, build_summary
from agent.fleet.row_digests import COMPARED, digest_column
from bench.fleet.plan import plan
from tests.agent.fleet.small import take

FAULTS = {
    "gpu-link-narrow": 1, "nic-firmware-one": 1, "vbios": 1, "mtu-1500": 1, "pfc-off": 2, "port-down": 1, "acs-on": 1,
    "read-request-small": 1, "unknown-checks": 1, "gpus-half-lost": 1, "nic-board": 1, "nvlink-domain": 1, "stale": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def dataset(make_once):
    def write(place):
        fleet = plan(26, 4, FAULTS, mix={"gb200-ib": 1, "h200-roce": 1})
        take(place / "dataset", *fleet.reports(0, one_line=True))

    return make_once("kinds", write)[0] / "dataset"


def answers(place):
    """Of the questions that read one node of each kind, and every SELECT that was asked."""
    engine = connect(None, str(place))
    asked = []
    rows, many_rows, submit = engine.rows, engine.many_rows, engine.submit
    engine.rows = lambda query: asked.append(query.sql) or rows(query)
    engine.many_rows = lambda query: asked.append(query.sql) or many_rows(query)
    engine.submit = lambda query: asked.append(query.sql) or submit(query)
    now = datetime(2026, 1, 16, tzinfo=timezone.utc)
    page = build_scene(engine, lambda: read_wiring(build_from_reports(engine)), PageOptions(), now)
    found = find_outliers(engine), build_summary(engine), page
    engine.close()
    return found, set(asked)


OF_ALL = {
    *(part.counts.sql for part in PARTS if part.table in COMPARED),
    *(query.sql for query in (STATES, reading.GPU_KINDS, reading.RAIL_KINDS, reading.UNJUDGED_KINDS)),
}


def without_digests(dataset, place, keep):
    """A copy in which an earlier version ingested the nodes after the first `keep`."""
    shutil.copytree(dataset, place)
    for path in open_dataset(str(place)).latest("host"):
        whole = parquet.ParquetFile(path).read()
        for name in map(digest_column, COMPARED):
            digests = whole[name].to_pylist()[:keep]
            column = pa.array(digests + [None] * (len(whole) - keep), pa.int64())
            whole = whole.set_column(whole.column_names.index(name), name, column)
        parquet.write_table(whole, path)
    return place


def test_all_ways_give_the_same(dataset, tmp_path, monkeypatch):
    by_kind, asked = answers(dataset)
    assert {each.attribute for each in by_kind[0].outliers} > {"nic-firmware", "pcie-width", "pcie-acs", "port-state"}
    assert not asked & OF_ALL
    for keep in (0, 12):
        some, asked = answers(without_digests(dataset, tmp_path / str(keep), keep))
        assert some == by_kind
        assert {reading.GPU_KINDS.sql, reading.UNJUDGED_KINDS.sql} <= asked
        assert STATES.sql not in asked, "nodes without digests are kinds of their own"
    monkeypatch.setattr("agent.fleet.questions.kinds.MOST", 0)
    monkeypatch.setattr("agent.fleet.page.reading.MOST_KINDS", 0)
    by_engine, asked = answers(dataset)
    assert by_engine == by_kind
    assert asked >= OF_ALL


@pytest.mark.parametrize("few", [0, 2])
def test_nodes_of_a_kind_that_are_many_are_asked_for(dataset, monkeypatch, few):
    by_kind, _ = answers(dataset)
    monkeypatch.setattr("agent.fleet.questions.outliers.KINDS", KINDS.bind(few=few))
    assert answers(dataset)[0] == by_kind


def test_more_kinds_than_are_read_are_none(dataset, monkeypatch):
    engine = connect(None, str(dataset))
    assert DigestGroups(engine, engine.submit(KINDS)).of("pci")
    assert DigestGroups(engine, engine.submit(KINDS)).of("host") is None
    monkeypatch.setattr("agent.fleet.questions.kinds._MOST_ROWS", 2)
    assert DigestGroups(engine, engine.submit(KINDS.bind(most=3))).of("pci") is None
    engine.close()


def test_what_is_compared_is_in_the_digests():
    needed: dict[str, set[str]] = {}
    for table, things in THINGS.items():
        needed[table] = set(re.findall(r"thing\.\"?(\w+)\"?", things.of_nodes.query.sql))
    cells = [*reading._GPU_CELLS, *reading._RAIL_CELLS]
    for table, name in cells:
        needed[{"wide": "link"}.get(table, table)].add(name)
    needed["check"] = {"rule", "state", "reason"}
    for table, columns in COMPARED.items():
        known = {column.name for column in schema.columns(table)}
        assert set(columns) <= known
        assert needed[table] - {"node", CLASS} <= set(columns), table
    assert needed.keys() - {"host", "switch", "switch_port"} == COMPARED.keys()  # switches have no row in table host
