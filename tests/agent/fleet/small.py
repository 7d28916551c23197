"""Small reports of nodes with one thing or another, and what a dataset states: asked of an engine, or read back by
DuckDB, which shares no code with what wrote it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect
from agent.fleet.ingest.run import Ingested, IngestOptions, ingest
from agent.fleet.tables import TABLES

START = datetime(2026, 1, 15, 8, tzinfo=timezone.utc)


def at(hour: float) -> str:
    """A time of a report: hours since the start of the day that tests are about."""
    return (START + timedelta(hours=hour)).isoformat().replace("+00:00", "Z")


def report(
    host: str = "gpu1", hour: float = 0, driver: str = "570.1", gpus: Sequence[str] = ("a", "b"), **more: Any
) -> bytes:
    """A report of two GPUs. `more`: top-level fields."""
    document = {
        "schema": "fabricscope.report/1",
        "schema_minor": 2,
        "generated_at": at(hour),
        "observed_at": at(hour),
        "generator": {"name": "fabricscope", "version": "0.1.0"},
        "source": {"kind": "live", "path": None},
        "duration_seconds": hour,
        "node": {"hostname": host, "vendor": "V", "product": "P", "uptime_seconds": hour * 3600},
        "software": {"driver": {"version": driver}},
        "topology": {"gpus": [{"id": f"0000:0{n}:00.0", "label": f"GPU{n}", "uuid": u} for n, u in enumerate(gpus)]},
        "summary": {"verdict": "ok", "counts": {}, "unknown_rules": []},
        **more,
    }
    return json.dumps(document).encode()


def take(dataset: Path, *reports: bytes, **more: Any) -> Ingested:
    """Ingest reports from lines of one file."""
    source = dataset.parent / f"{dataset.name}.ndjson"
    source.write_bytes(b"".join(report.replace(b"\n", b" ") + b"\n" for report in reports))
    return taken(dataset, source, **more)


def taken(dataset: Path, *sources: Path | str, **more: Any) -> Ingested:
    """Ingest sources."""
    request = IngestOptions(sources=[str(source) for source in sources], dataset=str(dataset), **more)
    return ingest(request, lambda _stage, _done: None)


def rows(dataset: Path, table: str, columns: str = "*", where: str = "true") -> list[Any]:
    """Rows of a table's newest state, sorted; of the files of the manifest."""
    return _asked(open_dataset(str(dataset)).latest(table), columns, where)


def history(dataset: Path, table: str, columns: str = "*", where: str = "true") -> list[Any]:
    """Rows of a table's history, sorted."""
    return _asked(open_dataset(str(dataset)).history(table), columns, where)


def lasting(table: str) -> str:
    """The columns of a table that are not volatile, for SELECT."""
    return ", ".join(f'"{column.name}"' for column in TABLES[table].columns if not column.volatile)


def as_of(dataset: Path, table: str, moment: datetime) -> list[Any]:
    """Lasting columns of a table at a moment, as docs/fleet-dataset.md says to ask for it."""
    opened = open_dataset(str(dataset))
    return _sql(
        f"""
        WITH since AS (
            SELECT node, max(observed_at) AS observed_at FROM {_files(opened.history("change"))}
            WHERE "table" = '{table}' AND observed_at <= '{moment.isoformat()}' GROUP BY node
        )
        SELECT {lasting(table)} FROM {_files(opened.history(table))} SEMI JOIN since USING (node, observed_at)
        """
    )


def plain(folder: Path, pattern: str, columns: str = "count(*)") -> list[Any]:
    """What a user gets who knows no manifest."""
    return _sql(f"SELECT {columns} FROM read_parquet('{folder}/{pattern}', hive_partitioning = false)")


def files(dataset: Path) -> set[str]:
    """Parquet files on disk, below the dataset."""
    return {str(item.relative_to(dataset)) for item in dataset.rglob("*.parquet")}


def named(dataset: Path) -> set[str]:
    """Parquet files that the manifest names."""
    manifest = open_dataset(str(dataset)).manifest
    parts = [*manifest.latest.values(), *manifest.history.values(), manifest.state]
    return {file.path for part in parts for file in part}


def _asked(paths: list[str], columns: str, where: str) -> list[Any]:
    return _sql(f"SELECT {columns} FROM {_files(paths)} WHERE {where}")


def _files(paths: Iterable[str]) -> str:
    return f"read_parquet([{', '.join(repr(path) for path in paths)}], hive_partitioning = false)"


def _sql(text: str) -> list[Any]:
    result = _database().sql(text).to_arrow_table()  # fetchall wants pytz for times
    return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


@functools.cache
def _database() -> Any:
    import duckdb

    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return database


def node(host: str, hour: float = 0, **more: Any) -> bytes:
    """A report. Keywords: fields of `node`, or `software`, `nics`, `netdevs`, `gpus` (UUIDs), `findings`, `summary`."""
    top = {
        key: more.pop(key)
        for key in ("software", "findings", "summary", "probes", "checks", "platform", "counters_window")
        if key in more
    }
    uuids = more.pop("gpus", [f"{host}-a", f"{host}-b"])
    topology = {"nics": more.pop("nics", []), "netdevs": more.pop("netdevs", [])}
    names = more.pop("gpu_names", [more.pop("gpu_name", None)] * len(uuids))  # None: as a source without a driver
    topology["gpus"] = [
        {"id": f"0000:0{n}:00.0", "label": f"GPU{n}", "uuid": uuid, **({"name": name} if name else {})}
        for n, (uuid, name) in enumerate(zip(uuids, names, strict=True))
    ]
    facts = {"hostname": host, "vendor": "V", "product": "P", "machine_id": f"id-of-{host}", "serial": f"no-of-{host}"}
    return report(host, hour, node={**facts, **more}, topology=topology, **top)


def finding(rule: str, label: str = "GPU0", severity: str = "warning") -> dict[str, Any]:
    """A finding of a report."""
    return {
        "rule": rule,
        "severity": severity,
        "subject": f"gpu:{label}",
        "label": label,
        "summary": f"{rule} on {label}",
        "impact": "i",
        "remedy": "r",
        "fingerprint": f"{rule}-{label}",
    }


def port(lid: int, guid: str, prefix: str = "fe80:0000:0000:0000") -> dict[str, Any]:
    """A NIC with one InfiniBand port."""
    gid = {"index": 0, "gid": f"{prefix}:{guid}", "type": "IB/RoCE v1", "netdev": None}
    state = {"link_layer": "InfiniBand", "state": "ACTIVE", "lid": lid, "sm_lid": 1, "port_guid": guid}
    return {
        "id": "0000:10:00.0",
        "label": "mlx5_0",
        "node_guid": guid,
        "role": "rail",
        "state": "present",
        "ports": [{"port": 1, "gids": [gid], "gids_known": True, **state}],
    }


def interface(label: str, mac: str, *addresses: str, driver: str | None = "mlx5_core") -> dict[str, Any]:
    """A network interface."""
    return {"id": label, "label": label, "mac": mac, "addresses": list(addresses), "driver": driver}


@contextmanager
def asked(place: Any, *reports: bytes, **more: Any) -> Any:
    """The tables of these reports."""
    take(place / "dataset", *reports, **more)
    engine = connect(None, str(place / "dataset"))
    try:
        yield engine
    finally:
        engine.close()
