"""A small made fabric, judged: from files to findings without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent.fleet.cluster.cabling_plan import read_plan
from agent.fleet.lossless.answer import Inputs, LosslessAnswer, judge
from agent.fleet.lossless.host_ports import read_report_ports
from agent.model.report import Report
from bench.switches.fabric import MadeFabric, build
from bench.switches.render import write
from probes.switches.collection import read_collection

DECODER = msgspec.json.Decoder(Report)  # its making costs more than a fabric


def make(system: str, **more: Any) -> MadeFabric:
    """Two leaves, two spines, four hosts with two rails each, of one system."""
    return build(2, 2, 4, systems=(system,), **more)


def judge_made(
    fabric: MadeFabric,
    folder: Path,
    before: bool = True,
    dscp: int | None = None,
    hosts: bool = True,
    plan: str | None = None,
    rewrite: bool = True,
) -> LosslessAnswer:
    """Written, read and judged. `before`: with the earlier collection; `plan`: another one; `rewrite`: the fabric is
    not there yet."""
    if rewrite:
        write(fabric, folder)
    now, earlier = (read_collection([str(folder / moment)]) for moment in ("now", "before"))
    ports = [
        port
        for line in (folder / "reports.ndjson").read_text().splitlines()
        for port in read_report_ports(DECODER.decode(line))
    ]
    text = plan if plan is not None else (folder / "plan.csv").read_text()
    planned = list(read_plan(text.splitlines(keepends=True)))
    return judge(
        Inputs(
            now.switches,
            earlier.switches if before else {},
            ports if hosts else [],
            planned,
            now.problems,
            dscp,
            only_known_hosts=hosts,
        )
    )


def named(answer: LosslessAnswer, least: str = "warning") -> set[tuple[str, str]]:
    """Rule and port of every finding that is no note."""
    return {
        (finding.rule, subject)
        for finding in answer.findings
        for subject in finding.devices or [finding.subject]
        if finding.severity != "info" or least == "info"
    }
