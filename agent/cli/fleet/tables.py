"""`fleet query`, `fleet export`, `fleet load`: access to the tables."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated, Literal

from agent.cli import options as opt
from agent.cli.errors import CliError
from agent.cli.fleet import open_tables
from agent.cli.fleet import options as shared
from agent.cli.output import deliver_text, open_output

TableFormat = Literal["csv", "parquet", "json", "prometheus"]


def query(
    sql: Annotated[str, opt.argument("SQL", "One SELECT; - reads it from stdin.")],
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    form: shared.Form = None,
    output: opt.Output = None,
) -> None:
    """Run one SELECT over the tables.

    DuckDB's SQL, with every engine, read-only: host, gpu, ..., history_host, ...
    """
    format_name = open_tables.choose_format(form, output)
    text = sys.stdin.read(1 << 20) if sql == "-" else sql
    with open_tables.open_engine(dataset, engine) as tables:
        from agent.fleet.text.tables import write

        names, batches = tables.query(text)
        is_terminal = output is None and sys.stdout.isatty()
        with open_output(output) as out:
            width = shutil.get_terminal_size().columns if is_terminal else None
            write(names, batches, format_name, out, width)


def export(
    form: Annotated[TableFormat, opt.argument("FORMAT", "csv, parquet, json; prometheus.")],
    table: Annotated[
        str | None, opt.argument("[TABLE]", "host, gpu, .., or history_host, ..; none for prometheus.")
    ] = None,
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    silences: shared.SilencesOption = None,
    output: opt.Output = None,
) -> None:
    """Export a table, or metrics for Prometheus.

    CSV, JSON (one object per line) or one Parquet file. Silences count for prometheus; a table has what nodes reported.
    """
    open_tables.require_libraries("duckdb")
    from agent.fleet.engines import schema

    if form == "prometheus":
        if table is not None:
            raise CliError("prometheus exports no table: fleet export prometheus")
        _export_metrics(dataset, engine, where, silences, output)
        return
    if table is None:
        raise CliError(f"which table? tables: {', '.join(schema.names())}")
    if table not in schema.names():
        from difflib import get_close_matches

        near = get_close_matches(table, schema.names(), 1)
        raise CliError(
            f"no table {table!r:.60}; tables: {', '.join(schema.names())}", f"did you mean {near[0]}?" if near else None
        )
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise CliError("Parquet is binary: use --output FILE")
    with open_tables.query_tables(dataset, engine, where) as tables:
        from agent.fleet.text.tables import write_parquet, write_table

        with open_output(output) as out:
            if form == "parquet":
                write_parquet(tables, table, out)
            else:
                write_table(tables, table, form, out)


def _export_metrics(
    dataset: str | None, engine: str | None, where: list[str] | None, silences: str | None, output: str | None
) -> None:
    from agent.fleet.dataset import open_dataset
    from agent.fleet.metrics import metrics
    from agent.fleet.questions.options import Options

    silenced = open_tables.read_silences(silences)
    with open_tables.query_tables(dataset, engine, where, silenced) as tables:
        quarantined = open_dataset(dataset).manifest.quarantined if dataset else None
        text = metrics(tables, Options(now=open_tables.utc_now()), quarantined, silenced)
    deliver_text(text, output, public=True)


def load(
    engine: Annotated[
        str,
        opt.option(
            "URL", "postgres://USER@HOST/DATABASE, clickhouse://USER@HOST/DATABASE or chdb://FOLDER.", "--engine"
        ),
    ],
    dataset: shared.Dataset = None,
    quiet: opt.Quiet = False,
) -> None:
    """Copy the tables into PostgreSQL or ClickHouse.

    For `--engine URL` afterwards. All tables take the place of earlier ones at one moment; ClickHouse gets only what is
    new.
    """
    open_tables.require_libraries("duckdb", "pyarrow", "sqlglot")
    with open_tables.translate_engine_errors():
        from agent.fleet.engines import load as load_tables

        rows = load_tables(dataset, engine)
    if not quiet:
        print(f"{sum(rows.values()):,} rows of {len(rows)} tables")
