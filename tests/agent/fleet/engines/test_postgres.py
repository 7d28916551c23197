"""`fleet load`: what it leaves in a database, and what of others it leaves alone."""

from __future__ import annotations

import pytest

from agent.fleet.engines import connect, schema
from agent.fleet.engines.engine import ABOUT, EngineRefused, views
from agent.fleet.engines.postgres import load
from tests.agent.fleet.engines.servers import needed
from tests.agent.fleet.small import at, report, take

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800), pytest.mark.usefixtures("real_commands")]


@pytest.fixture
def database(postgres, request):
    """An empty database of its own, and a connection to it."""
    needed("psycopg")
    import psycopg

    name = f"d{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = postgres.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(url, autocommit=True) as connection:
        yield url, connection


def loaded(place, url, *reports):
    take(place / "dataset", *(reports or [report("gpu1"), report("gpu2")]))
    source = connect(None, str(place / "dataset"))
    try:
        return load(source, url)
    finally:
        source.close()


def values(connection, sql):
    return [row[0] for row in connection.execute(sql).fetchall()]


def test_tables_of_others_by_the_same_names_are_left_alone(tmp_path, database):
    url, connection = database
    for name in ("host", "port", "path", "check"):
        connection.execute(f'CREATE TABLE "{name}" (owner text)')
        connection.execute(f"INSERT INTO \"{name}\" VALUES ('another application')")
    loaded(tmp_path, url)

    for name in ("host", "port", "path", "check"):
        assert values(connection, f'SELECT owner FROM public."{name}"') == ["another application"]
    assert values(connection, "SELECT node FROM fabricscope.host ORDER BY node") == ["gpu1", "gpu2"]


@pytest.mark.parametrize("kind", ["TABLE fabricscope.host (owner text)", "VIEW fabricscope.host AS SELECT 1 AS owner",
                                  "TABLE fabricscope.node_day (owner text)"])  # fmt: skip
def test_a_table_in_the_schema_that_no_load_created_is_refused(tmp_path, database, kind):
    url, connection = database
    connection.execute("CREATE SCHEMA fabricscope")
    connection.execute(f"CREATE {kind}")
    name = kind.split()[1]
    with pytest.raises(EngineRefused, match=rf"^{name} was not created by `fleet load`: rename it or drop it$"):
        loaded(tmp_path, url)

    assert values(connection, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'history%'") == [0]
    connection.execute(f"SELECT owner FROM {name}")


def test_what_others_made_of_the_tables_survives_a_load(tmp_path, database):
    url, connection = database
    loaded(tmp_path, url)
    for sql in (
        "CREATE INDEX of_mine ON fabricscope.host (product)",
        "CREATE VIEW public.busy AS SELECT node, gpus, product FROM fabricscope.host",
        "CREATE ROLE reader",
        "GRANT SELECT ON fabricscope.host TO reader",
        "ALTER TABLE fabricscope.host ADD COLUMN rack text",
    ):
        connection.execute(sql)
    try:
        loaded(tmp_path, url, report("gpu1", 1), report("gpu3", 1))

        assert values(connection, "SELECT node FROM public.busy ORDER BY node") == ["gpu1", "gpu2", "gpu3"]
        assert values(connection, "SELECT indexname FROM pg_indexes WHERE indexname = 'of_mine'") == ["of_mine"]
        assert values(connection, "SELECT has_table_privilege('reader', 'fabricscope.host', 'SELECT')") == [True]
        assert values(connection, "SELECT count(rack) FROM fabricscope.host") == [0]
    finally:
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_column_that_an_earlier_version_did_not_have_is_added(tmp_path, database):
    url, connection = database
    loaded(tmp_path, url)
    connection.execute("DROP VIEW fabricscope.node_day")
    connection.execute("ALTER TABLE fabricscope.host DROP COLUMN uptime_seconds")
    connection.execute("ALTER TABLE fabricscope.gpu DROP COLUMN uuid, ADD COLUMN uuid bytea")
    with pytest.raises(EngineRefused, match=r"^fabricscope\.gpu\.uuid is bytea, expected text: drop it$"):
        loaded(tmp_path, url)
    connection.execute("ALTER TABLE fabricscope.gpu DROP COLUMN uuid")
    loaded(tmp_path, url, report("gpu1", 2))

    assert values(connection, "SELECT uptime_seconds FROM fabricscope.host WHERE node = 'gpu1'") == [7200.0]
    assert values(connection, "SELECT count(uuid) FROM fabricscope.gpu") == [4]


def test_a_failed_load_changes_nothing(tmp_path, database, monkeypatch):
    url, connection = database
    loaded(tmp_path, url)
    source = connect(None, str(tmp_path / "dataset"))
    batches = source.batches

    def broken(query):
        if query.tables == ["identity"]:
            raise EngineRefused("duckdb: a file is damaged")
        return batches(query)

    monkeypatch.setattr(source, "batches", broken)
    with pytest.raises(EngineRefused, match=r"^duckdb: a file is damaged$"):
        load(source, url)
    source.close()

    assert values(connection, "SELECT count(*) FROM fabricscope.host") == [2]


def test_a_load_does_not_wait_for_ever(tmp_path, database, monkeypatch):
    url, connection = database
    loaded(tmp_path, url)
    monkeypatch.setattr("agent.fleet.engines.postgres._LOCK_SECONDS", 1)
    connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM fabricscope.host")
    with pytest.raises(EngineRefused, match=r"another session has used its tables for 1 s$"):
        loaded(tmp_path, url)
    connection.execute("COMMIT")
    loaded(tmp_path, url)


def test_keys_comments_and_times(tmp_path, database):
    url, connection = database
    counts = loaded(tmp_path, url)

    assert list(counts) == schema.names()
    keys = connection.execute(
        "SELECT table_name, string_agg(column_name, ' ' ORDER BY ordinal_position)"
        " FROM information_schema.key_column_usage AS used"
        " JOIN information_schema.table_constraints AS made USING (table_schema, table_name, constraint_name)"
        " WHERE table_schema = 'fabricscope' AND constraint_type = 'PRIMARY KEY' AND table_name <> 'loaded_table'"
        " GROUP BY table_name"
    ).fetchall()
    assert {name: tuple(columns.split()) for name, columns in keys} == {name: schema.key(name) for name in counts}
    assert values(
        connection, "SELECT count(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY'"
    ) == [len([name for name in counts if not name.startswith("history_")]) - 1]
    assert values(connection, "SELECT obj_description('fabricscope.host'::regclass)") == ["One row a node."]
    assert values(
        connection,
        "SELECT col_description('fabricscope.host'::regclass, attnum) FROM pg_attribute"
        " WHERE attrelid = 'fabricscope.host'::regclass AND attname = 'driver'",
    ) == ["GPU driver's version"]
    assert values(connection, "SELECT DISTINCT pg_typeof(observed_at)::text FROM fabricscope.history_gpu") == [
        "timestamp with time zone"
    ]
    assert values(connection, f"SELECT count(*) FROM fabricscope.host WHERE observed_at = '{at(0)}'") == [2]
    assert dict(connection.execute("SELECT name, rows FROM fabricscope.loaded_table").fetchall()) == {
        **counts, **dict.fromkeys(ABOUT),
    }  # fmt: skip


def test_views_have_the_rows_that_duckdb_gives(dataset, database):
    url, connection = database
    source = connect(None, str(dataset))
    load(source, url)
    source.close()
    connection.execute("SET TIME ZONE 'Asia/Tokyo'")  # a day is one of UTC, whatever a session has
    for name in views():
        source = connect(None, str(dataset))
        columns, pieces = source.query(f"SELECT * FROM {name}")
        expected = sorted((row for piece in pieces for row in piece), key=str)
        source.close()
        cursor = connection.execute(f"SELECT * FROM fabricscope.{name}")
        rows = [tuple(_utc(value) for value in row) for row in cursor.fetchall()]
        assert [column.name for column in cursor.description] == columns
        assert sorted(rows, key=str) == expected
        assert rows


def _utc(value):
    from datetime import datetime, timezone

    return value.astimezone(timezone.utc).replace(tzinfo=None) if isinstance(value, datetime) else value
