"""The options that several commands share, with their help."""

from __future__ import annotations

import math
from enum import Enum
from typing import Annotated

import typer

FLEET_HELP = "Compare the reports of many nodes. Needs the extra fleet."


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


class Shell(str, Enum):
    """Shells with a completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


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
        raise typer.BadParameter("nan is not a number")
    return value


def reject_empty_name(value: str | None) -> str | None:
    """Reject "", which would be the current folder."""
    if value == "":
        raise typer.BadParameter("the file name is empty")
    return value


Source = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Read a capture, support bundle or saved outputs instead of this host (- for stdin).",
        show_default=False,
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Filesystem of this host, mounted elsewhere: /host in a container.", show_default=False
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE", help="Evaluate this finished report again; no probe runs.", show_default=False
    ),
]
FindingsFile = Annotated[
    str | None,
    typer.Option(
        "--report", metavar="FILE", help="Explain the findings of this report for RULE or part.", show_default=False
    ),
]
Only = Annotated[str | None, typer.Option(metavar="PROBE,...", help="Run only these probes.", show_default=False)]
Skip = Annotated[str | None, typer.Option(metavar="PROBE,...", help="Skip these probes.", show_default=False)]
TIME_LIMIT = "Time limit of the whole run; the report is still written."
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help=f"{TIME_LIMIT} Default: 30, plus --interval.",
        show_default=False,
        min=0.1,
        callback=reject_nan,
    ),
]
CaptureTimeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help=TIME_LIMIT, min=0.1, callback=reject_nan)
]
StateDir = Annotated[
    str | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Keep counters and inventory in DIR, and compare with earlier runs.",
        show_default=False,
    ),
]
AcceptInventory = Annotated[
    bool, typer.Option("--accept-inventory", help="Accept the current hardware as the new baseline (with --state-dir).")
]
Interval = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Sample counters twice, SECONDS apart, within --timeout.",
        min=1,
        callback=reject_nan,
        show_default=False,
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile", metavar="NAME|FILE", help="Expected hardware: auto, none, a built-in profile, or a file."
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Configuration file (TOML).", show_default=False),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to FILE (atomically).",
        callback=reject_empty_name,
        show_default=False,
    ),
]
Redact = Annotated[bool, typer.Option("--redact", help="Replace names, serials and addresses in the capture.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; the variable NO_COLOR does the same.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Brief = Annotated[bool, typer.Option("--brief", help="Only the verdict and one line per finding.")]
TopologyOnly = Annotated[bool, typer.Option("--topology", help="Only the host and its topology.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="All evidence, and every check that could not run.")]
