"""`fleet topology`: how the cluster hangs together and what breaks it; for Slurm, topograph and Kubernetes too."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.delivery import deliver, show
from agent.cli.fleet.asked import EngineUrl
from agent.cli.fleet.gathered import All, Dataset, Fabric, gathered
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.fleet.cluster.graph import Cluster
    from agent.fleet.cluster.view import View


class TopologyFormat(str, Enum):
    """Forms of the answer."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    SLURM_CONF = "slurm-conf"
    SLURM_YAML = "slurm-yaml"
    TOPOGRAPH = "topograph"
    NFD = "nfd"


_SUFFIXES = {
    ".json": TopologyFormat.JSON,
    ".svg": TopologyFormat.SVG,
    ".conf": TopologyFormat.SLURM_CONF,
    ".txt": TopologyFormat.TEXT,
    "": TopologyFormat.TEXT,
}
Form = Annotated[
    TopologyFormat | None,
    typer.Option("--format", help="text (default), or what the suffix of --output asks for.", show_default=False),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="HOSTLIST",
        help="The nodes that Slurm has, as gpu[001-128]: no others get into its files. sinfo -hN -o %N tells them.",
        show_default=False,
    ),
]


def topology(
    fabric: Fabric = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    form: Form = None,
    nodes: Nodes = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """How the cluster hangs together: what it is, what breaks it; a picture, Slurm's files, topograph's model."""
    from agent.fleet.cluster.view import views

    wanted = form or _form_of(output)
    only = _only(nodes)
    cluster = gathered(fabric, dataset, engine)
    seen = views(cluster)
    if wanted is TopologyFormat.TEXT:
        from agent.fleet.cluster.answer import topology as answer
        from agent.fleet.cluster.words import page

        made = answer(cluster, seen)
        show(lambda width: page(made, width, everything), output, no_color)
    else:
        deliver(_data(wanted, cluster, seen, only), output)


def _data(wanted: TopologyFormat, cluster: Cluster, seen: list[View], only: frozenset[str] | None) -> bytes:
    """The answer in a form for machines. Raises Refused."""
    if wanted is TopologyFormat.JSON:
        import msgspec

        from agent.fleet.cluster.answer import topology as answer

        return msgspec.json.format(msgspec.json.encode(answer(cluster, seen))) + b"\n"
    if wanted is TopologyFormat.SVG:
        from agent.fleet.cluster.breaks import breaks
        from agent.fleet.cluster.picture import picture

        return picture(cluster, seen, breaks(cluster, seen)).encode("utf-8", "replace")
    if wanted in (TopologyFormat.TOPOGRAPH, TopologyFormat.NFD):
        from agent.fleet.cluster.topograph import labels, model

        text = model(cluster, seen) if wanted is TopologyFormat.TOPOGRAPH else labels(cluster, seen)
        return text.encode("utf-8", "replace")
    from agent.fleet.cluster.slurm import Nothing, conf, yaml

    try:
        text = (conf if wanted is TopologyFormat.SLURM_CONF else yaml)(cluster, seen, only)
    except Nothing as error:
        raise Refused(str(error)) from error
    return text.encode("utf-8", "replace")


def _form_of(output: str | None) -> TopologyFormat:
    suffix = os.path.splitext(output or "")[1].lower()
    if os.path.basename(output or "") == "topology.yaml":
        return TopologyFormat.SLURM_YAML
    if suffix not in _SUFFIXES:
        raise Refused(f"{output}: which format? --format {', '.join(each.value for each in TopologyFormat)}")
    return _SUFFIXES[suffix]


def _only(nodes: str | None) -> frozenset[str] | None:
    if nodes is None:
        return None
    from agent.fleet.hostlist import BadHostlist, unfold

    try:
        return frozenset(unfold(nodes))
    except BadHostlist as error:
        raise Refused(f"--nodes: {error}") from error
