"""The options that fleet commands share, as typer declares them."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.plain import ENVIRONMENT, AnswerFormat

Dataset = Annotated[str | None, opt.option("DIR|URL", "Dataset of `fleet ingest`.", envvar=ENVIRONMENT["dataset"])]
EngineUrl = Annotated[
    str | None,
    opt.option(
        "URL",
        "Query engine: duckdb:// (default), or what `fleet load` filled: postgres://..., clickhouse://..., chdb://FOLDER.",
        "--engine",
        envvar=ENVIRONMENT["engine"],
    ),
]
WhereOption = Annotated[
    list[str] | None,
    opt.option(
        "KEY=VALUE", "Only these nodes: cluster=NAME, class=PART, nodes=gpu[001-128]. May be repeated.", "--where"
    ),
]
SilencesOption = Annotated[
    str | None,
    opt.option(
        "FILE",
        "TOML with [[silence]] entries: the keys of a node's configuration, and node.",
        envvar=ENVIRONMENT["silences"],
    ),
]
StaleAfter = Annotated[str, opt.shown_option("DURATION", "Reports older than this are stale: 90m, 24h, 7d.")]
Form = Annotated[
    AnswerFormat | None,
    typer.Option("--format", help="text (default), json or csv, or by the suffix of --output.", show_default=False),
]
