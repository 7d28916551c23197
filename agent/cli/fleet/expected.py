"""`fleet expected`: nodes that there should be, beside those that report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.cli import options as opt
from agent.cli.errors import ErrorTranslation
from agent.cli.fleet import open_tables
from agent.cli.fleet import options as shared
from agent.cli.fleet.cluster import read_bounded
from agent.cli.fleet.news import Severity
from agent.cli.output import deliver_text

if TYPE_CHECKING:
    from agent.fleet.expected import ExpectedNode

ExpectedFormat = Literal["text", "json", "csv", "slurm-drain", "kubernetes-drain"]


def expected(
    sources: Annotated[
        list[str],
        opt.argument(
            "SOURCE...",
            "Host lists; output of sinfo -hN -o '%N %T %E' or kubectl get nodes -o json; devices of NetBox's "
            "REST API; - for stdin.",
        ),
    ],
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    silences: shared.SilencesOption = None,
    stale_after: shared.StaleAfter = "24h",
    drain_at: Annotated[
        Severity, typer.Option("--drain-at", help="Lowest severity of a finding for which a node is drained.")
    ] = "critical",
    form: Annotated[
        ExpectedFormat,
        typer.Option("--format", help="slurm-drain, kubernetes-drain: commands that take nodes out of service."),
    ] = "text",
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Nodes missing, silent, or in no list.

    Compares lists of hosts with the nodes that report: which never reported, stopped reporting or are in no list, and
    which to drain. Nodes that the list marks as out of service are listed separately.
    """
    nodes = [node for source in sources for node in _read(source)]
    seconds = open_tables.parse_duration(stale_after)
    with open_tables.query_tables(dataset, engine, where, open_tables.read_silences(silences)) as tables:
        from agent.fleet.expected import compare, kubernetes_drain, slurm_drain
        from agent.fleet.hostlist import AmbiguousName
        from agent.fleet.questions.options import Options
        from agent.fleet.text.expected import page

        with ErrorTranslation(AmbiguousName, hint=open_tables.AMBIGUOUS_HINT):
            answer = compare(tables, nodes, Options(stale_after_seconds=seconds, now=open_tables.utc_now()), drain_at)
        if form in ("slurm-drain", "kubernetes-drain"):
            write = slurm_drain if form == "slurm-drain" else kubernetes_drain
            deliver_text(write(answer), output)
            return
        open_tables.print_answer(answer, "rows", page, form, output, no_color)


def _read(source: str) -> list[ExpectedNode]:
    """The nodes of a list. Raises CliError."""
    from agent.fleet.expected import LIMIT_BYTES, BadNodeList, read_expected

    with ErrorTranslation(BadNodeList, about="stdin" if source == "-" else source):
        return read_expected(read_bounded(source, LIMIT_BYTES))
