"""The options that several commands share, each in one place with its help."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer


class ScanFormat(str, Enum):
    """Forms that `scan` prints."""

    TEXT = "text"
    JSON = "json"


class ListFormat(str, Enum):
    """Forms of a catalogue."""

    TEXT = "text"
    JSON = "json"


class FailOn(str, Enum):
    """From which severity on a finding counts."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class CheckAs(str, Enum):
    """Whose contract the answer follows."""

    NAGIOS = "nagios"
    NPD = "npd"
    SLURM_PROLOG = "slurm-prolog"


Source = Annotated[
    str | None,
    typer.Option(help="Look at this capture, tree or folder of outputs instead of this host.", show_default=False, metavar="PATH"),
]
Root = Annotated[
    str | None,
    typer.Option(help="This host's filesystem, seen elsewhere (/host in a container, metavar="DIR").", show_default=False),
]
ReportFile = Annotated[
    str | None, typer.Option("--report", help="Judge this finished report again; probe nothing.", show_default=False, metavar="FILE")
]
Only = Annotated[str | None, typer.Option(help="Run only these probes (a,b,c, metavar="PROBE,...").", show_default=False)]
Skip = Annotated[str | None, typer.Option(help="Leave out these probes (a,b,c, metavar="PROBE,...").", show_default=False)]
Timeout = Annotated[float, typer.Option(help="Seconds for the whole run; what is not reached is timed_out.", min=0.1, metavar="SECONDS")]
ConfigFile = Annotated[
    str | None, typer.Option("--config", help="TOML: rules off, declared facts.", show_default=False, metavar="FILE")
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="Write here, whole or not at all.", show_default=False, metavar="FILE")
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (NO_COLOR too).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr how every probe ended.")]
