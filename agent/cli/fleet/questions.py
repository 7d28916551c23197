"""`fleet summary`, `outliers`, `findings`, `duplicates`, `drift`: run a query and print its result."""

from __future__ import annotations

from typing import Annotated

from agent.cli import options as opt
from agent.cli.fleet import answers
from agent.cli.fleet import options as shared


def summary(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    stale_after: shared.StaleAfter = "24h",
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Verdicts, coverage, stale and worst nodes."""
    answers.show_summary(locals())


def outliers(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    majority: Annotated[
        float, opt.shown_option("SHARE", "Share of a class that makes a value its majority.", min=0.51, max=1.0)
    ] = 0.8,
    fewest: Annotated[int, opt.shown_option("COUNT", "Smallest class that is compared.", min=3)] = 5,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Nodes that differ from their hardware class.

    Firmware, drivers, links, QoS, settings.
    """
    answers.show_outliers(locals())


def findings(
    name: Annotated[
        str | None, opt.argument("[RULE|NODES]", "Parts and steps: of this rule, or on these nodes.")
    ] = None,
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    silences: shared.SilencesOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Findings of all nodes, grouped by rule.

    A table; with RULE or NODES what each is about and what to do.
    """
    answers.show_findings(locals())


def duplicates(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Identifiers that appear on more than one node.

    GUIDs, serial numbers, machine ids, LIDs, addresses.
    """
    answers.show_duplicates(locals())


def drift(
    since: Annotated[
        str, opt.shown_option("TIME|DURATION", "2026-01-15, 2026-01-15T08:00:00Z, or 24h, 7d before now.")
    ],
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Changes since a point in time.

    Versions, settings, devices, findings, nodes.
    """
    answers.show_drift(locals())
