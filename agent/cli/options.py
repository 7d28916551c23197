"""The options that several commands share, with their help."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import typer

from agent.cli.plain import EXPORT_FORMATS, ScanFormat

FLEET_HELP = "Compare the reports of many nodes. Needs the extra fleet."

TextOrJson = Literal["text", "json"]


def _reject_no_value(value: Any) -> Any:
    """Reject "" and blanks, as of a variable that is not set (a source "" would be this host), and "nan"."""
    given = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(each, str) and not each.strip() for each in given):
        raise typer.BadParameter("it is empty; is a variable not set?")
    if isinstance(value, float) and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option whose help shows no default."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, callback=_reject_no_value, **more)


def shown_option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """The same, whose help shows its default."""
    return typer.Option(*names, metavar=metavar, help=text, callback=_reject_no_value, **more)


def argument(metavar: str, text: str, **more: Any) -> Any:
    """An argument, the same."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, callback=_reject_no_value, **more)


EXPORT_FORMS = f"{', '.join(EXPORT_FORMATS[:-1])} or {EXPORT_FORMATS[-1]}"

Shell = Literal["bash", "zsh", "fish"]


Source = Annotated[
    str | None, option("PATH", "Read a capture, support bundle or saved outputs instead of this host (- for stdin).")
]
Root = Annotated[str | None, option("DIR", "Filesystem of this host, mounted elsewhere: /host in a container.")]
ReportFile = Annotated[str | None, option("FILE", "Evaluate this finished report again; no probe runs.", "--report")]
FindingsFile = Annotated[
    str | None, option("FILE", "Explain the findings of this report for RULE or part.", "--report")
]
Only = Annotated[str | None, option("PROBE,...", "Run only these probes.")]
Skip = Annotated[str | None, option("PROBE,...", "Skip these probes.")]
TIME_LIMIT = "Time limit of the whole run; the report is still written."
Timeout = Annotated[float | None, option("SECONDS", f"{TIME_LIMIT} Default: 30, plus --interval.", min=0.1)]
CaptureTimeout = Annotated[
    float, shown_option("SECONDS", "Time limit of the whole run; the archive is still written.", "--timeout", min=0.1)
]
SourceTimeout = Annotated[
    float | None,
    option(
        "SECONDS", "Time limit of reading a source; what is read by then counts. Default: 30.", "--timeout", min=0.1
    ),
]
StateDir = Annotated[
    str | None, option("DIR", "Keep counters and inventory in DIR, and compare with earlier runs.", "--state-dir")
]
AcceptInventory = Annotated[
    bool, typer.Option("--accept-inventory", help="Accept the current hardware as the new baseline (with --state-dir).")
]
Interval = Annotated[
    float | None,
    option("SECONDS", "Sample counters twice, SECONDS apart, within --timeout.", min=1),
]
ProfileName = Annotated[
    str, shown_option("NAME|FILE", "Expected hardware: auto, none, a built-in profile, or a file.", "--profile")
]
ScanForm = Annotated[
    ScanFormat | None, typer.Option("--format", help="text (default), json, ndjson or html.", show_default=False)
]
ConfigFile = Annotated[str | None, option("FILE", "Configuration file (TOML).", "--config")]
Output = Annotated[str | None, option("FILE", "Write to FILE (atomically).", "--output", "-o")]
Redact = Annotated[bool, typer.Option("--redact", help="Replace names, serials and addresses in the capture.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; the variable NO_COLOR does the same.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Brief = Annotated[bool, typer.Option("--brief", help="Only the verdict and one line per finding.")]
TopologyOnly = Annotated[bool, typer.Option("--topology", help="Only the host and its topology.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="All evidence, and every check that could not run.")]
JobTimeout = Annotated[
    float | None,
    option(
        "SECONDS",
        "Time limit; what is read by then is answered. Default: 30, plus 1 for each 4 MiB.",
        "--timeout",
        min=0.1,
    ),
]
