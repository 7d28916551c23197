"""`scan` and `capture`: one run, its report or its evidence."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from agent.cli.asked import Asked
from agent.cli.refused import Refused
from agent.model.report import Report
from agent.reports import encode, write
from agent.version import VERSION

if TYPE_CHECKING:
    from probes.host.recording import Recording

FILE_WIDTH = 100  # a text report in a file or a pipe has no terminal to fit


def scan(asked: Asked, wanted: str | None, output: str | None, capture_to: str | None, no_color: bool) -> None:
    """Write one report to stdout or a file."""
    form = wanted or _form(output)
    report, recording = asked.reported(record=capture_to is not None)
    if capture_to is not None:
        _keep(recording, capture_to, report)
    if form == "json":
        _deliver(encode(report), output)
    else:
        _show(report, output, no_color)


def capture(asked: Asked, output: str | None) -> None:
    """Write the evidence of one run, and say on stderr where it is."""
    report, recording = asked.reported(record=True)
    stamp = report.generated_at.replace("-", "").replace(":", "")
    place = output or f"fabricscope-{_file_name(report.node.hostname)}-{stamp}.tar.gz"
    _keep(recording, place, report)
    print(f"fabricscope: wrote {place}", file=sys.stderr)


def _form(output: str | None) -> str:
    if output is None:
        return "text"
    suffix = os.path.splitext(output)[1].lower()
    forms = {".json": "json", ".txt": "text", "": "text"}
    if suffix not in forms:
        raise Refused(f"{output}: no format has the suffix {suffix}; say --format text or json")
    return forms[suffix]


def _show(report: Report, output: str | None, no_color: bool) -> None:
    from agent.outputs.text import page
    from agent.outputs.text.lines import plain

    terminal = output is None and sys.stdout.isatty()
    width = shutil.get_terminal_size((FILE_WIDTH, 24)).columns if terminal else FILE_WIDTH
    lines = page(report, width)
    if terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        from agent.outputs.terminal import show

        show(lines, sys.stdout)
    else:
        _deliver(plain(lines).encode("utf-8", "replace"), output)


def _deliver(data: bytes, output: str | None) -> None:
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        write(output, data)
    except OSError as error:
        raise Refused(f"{output}: {error.strerror}") from error


def _keep(recording: Recording | None, place: str, report: Report) -> None:
    assert recording is not None, "a run that records gives a recording"
    from probes.host.capture import write_capture

    try:
        write_capture(recording, place, VERSION)
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}") from error


def _file_name(host: str | None) -> str:
    return "".join(c if c.isalnum() or c in "-." else "_" for c in host or "unknown-host")[:80]
