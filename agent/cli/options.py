"""The options that several commands share, with their help."""

from __future__ import annotations

import math
from enum import Enum
from typing import Annotated

import typer

FLEET_HELP = "Many reports: what is odd, what drifted, which cable is wrong. Needs the extra: fabricscope[fleet]."


class ScanFormat(str, Enum):
    """Output formats of `scan`."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    HTML = "html"


class DiffFormat(str, Enum):
    """Output formats of `diff`."""

    TEXT = "text"
    JSON = "json"


class ExportFormat(str, Enum):
    """Output formats of `export`: one module of agent/outputs/export each, which the command line does not import."""

    ANSIBLE = "ansible"
    HTML = "html"
    JUNIT = "junit"
    NCCL_TOPO = "nccl-topo"
    NETBOX = "netbox"
    NFD = "nfd"
    PROMETHEUS = "prometheus"
    SLURM = "slurm"
    SVG = "svg"


EXPORT_FORMS = ", ".join(form.value for form in list(ExportFormat)[:-1]) + f" or {list(ExportFormat)[-1].value}"


class ListFormat(str, Enum):
    """Output formats of a list."""

    TEXT = "text"
    JSON = "json"


class FailOn(str, Enum):
    """Lowest severity that fails the check."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class CheckAs(str, Enum):
    """Output format of `check`."""

    NAGIOS = "nagios"
    NPD = "npd"
    SLURM_PROLOG = "slurm-prolog"


def reject_nan(value: float | None) -> float | None:
    """Reject "nan", which passes every bound."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def reject_empty_name(value: str | None) -> str | None:
    """Reject "", which would be the current folder."""
    if value == "":
        raise typer.BadParameter("a file is to have a name")
    return value


Source = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="A capture, tree or folder of outputs to look at; not this host.", show_default=False
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="This host's filesystem, seen elsewhere: /host in a container.", show_default=False
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE", help="Judge this finished report again; probe nothing.", show_default=False
    ),
]
Only = Annotated[str | None, typer.Option(metavar="PROBE,...", help="Run only these probes.", show_default=False)]
Skip = Annotated[str | None, typer.Option(metavar="PROBE,...", help="Leave out these probes.", show_default=False)]
Timeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="Bound on the whole run; what is not reached is timed_out.",
        min=0.1,
        callback=reject_nan,
    ),
]
StateDir = Annotated[
    str | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Keep counters and inventory here, and compare with earlier runs.",
        show_default=False,
    ),
]
AcceptInventory = Annotated[
    bool, typer.Option("--accept-inventory", help="With --state-dir: what was taken out is no longer missed.")
]
Interval = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Read all counters twice, so long apart, within --timeout.",
        min=1,
        callback=reject_nan,
        show_default=False,
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile", metavar="NAME|FILE", help="What to expect of this node: auto, none, a built-in name, or a file."
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="TOML: rules off, declared facts.", show_default=False),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write here, whole or not at all.",
        callback=reject_empty_name,
        show_default=False,
    ),
]
Redact = Annotated[
    bool, typer.Option("--redact", help="In the capture, pseudonyms instead of names, serials and addresses.")
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (NO_COLOR too).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
