"""`fleet topology`: cluster topology and deviations; also for Slurm, topograph and Kubernetes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.fleet.cluster import All, Dataset, Fabric, Switches, load_cluster
from agent.cli.fleet.open_tables import unfold_nodes
from agent.cli.fleet.options import EngineUrl
from agent.cli.output import deliver_text, write_answer

if TYPE_CHECKING:
    from agent.fleet.cluster.fabric_view import View
    from agent.fleet.cluster.graph import FabricGraph

TopologyFormat = Literal["text", "json", "svg", "slurm-conf", "slurm-yaml", "topograph", "nfd"]

_SUFFIXES: dict[str, TopologyFormat] = {
    ".json": "json",
    ".svg": "svg",
    ".conf": "slurm-conf",
    ".txt": "text",
    "": "text",
}
Form = Annotated[
    TopologyFormat | None,
    typer.Option("--format", help="text (default), or by the suffix of --output.", show_default=False),
]
Nodes = Annotated[
    str | None,
    opt.option("HOSTLIST", "Only these nodes in Slurm's files, as gpu[001-128]; sinfo -hN -o %N lists them."),
]


def topology(
    fabric: Fabric = None,
    switches: Switches = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    form: Form = None,
    nodes: Nodes = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Cluster topology, and deviations from the layout.

    As text, a picture, Slurm's files or topograph's model.
    """
    from agent.fleet.cluster.fabric_view import build_views

    format_ = form or _choose_format(output)
    only = None if nodes is None else frozenset(unfold_nodes(nodes, "--nodes"))
    cluster = load_cluster(fabric, dataset, engine, switches)
    seen = build_views(cluster)
    if format_ in ("text", "json"):
        from agent.fleet.cluster.answer import build_topology_answer
        from agent.fleet.cluster.text import page

        answer = build_topology_answer(cluster, seen)
        write_answer(answer, format_, lambda answer, width: page(answer, width, everything), output, no_color)
    else:
        deliver_text(_render(format_, cluster, seen, only), output, public=True)


def _render(format_: TopologyFormat, cluster: FabricGraph, seen: list[View], only: frozenset[str] | None) -> str:
    """Render the topology for another program, or as a picture. Raises CliError."""
    if format_ == "svg":
        from agent.fleet.cluster.cabling_faults import find_cabling_faults
        from agent.fleet.cluster.picture import draw_picture

        return draw_picture(cluster, seen, find_cabling_faults(cluster, seen))
    if format_ in ("topograph", "nfd"):
        from agent.fleet.cluster.topograph import format_labels, format_model

        return (format_model if format_ == "topograph" else format_labels)(cluster, seen)
    from agent.fleet.cluster.slurm import Nothing, format_conf, format_yaml

    with ErrorTranslation(Nothing):
        return (format_conf if format_ == "slurm-conf" else format_yaml)(cluster, seen, only)


def _choose_format(output: str | None) -> TopologyFormat:
    suffix = os.path.splitext(output or "")[1].lower()
    if os.path.basename(output or "") == "topology.yaml":
        return "slurm-yaml"
    if suffix not in _SUFFIXES:
        raise CliError(f"{output}: which format? --format {', '.join(get_args(TopologyFormat))}")
    return _SUFFIXES[suffix]
