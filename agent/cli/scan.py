"""`scan` and `capture`: one run, its report or its evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agent.cli.asked import Asked
from agent.cli.delivery import deliver, form_of, show
from agent.cli.refused import Refused
from agent.model.report import Report
from agent.reports import encode
from agent.version import VERSION

if TYPE_CHECKING:
    from probes.host.recording import Recording


def scan(asked: Asked, wanted: str | None, output: str | None, capture_to: str | None, no_color: bool) -> None:
    """Write one report to stdout or a file."""
    form = wanted or form_of(output)
    report, recording = asked.reported(record=capture_to is not None)
    if capture_to is not None:
        _keep(recording, capture_to, report)
    if form == "json":
        deliver(encode(report), output)
    else:
        from agent.outputs.text import page

        show(lambda width: page(report, width), output, no_color)


def capture(asked: Asked, output: str | None) -> None:
    """Write the evidence of one run, and say on stderr where it is."""
    report, recording = asked.reported(record=True)
    stamp = report.generated_at.replace("-", "").replace(":", "")
    place = output or f"fabricscope-{_file_name(report.node.hostname)}-{stamp}.tar.gz"
    _keep(recording, place, report)
    print(f"fabricscope: wrote {place}", file=sys.stderr)


def _keep(recording: Recording | None, place: str, report: Report) -> None:
    assert recording is not None, "a run that records gives a recording"
    from probes.host.capture import write_capture

    try:
        write_capture(recording, place, VERSION)
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}") from error


def _file_name(host: str | None) -> str:
    return "".join(c if c.isalnum() or c in "-." else "_" for c in host or "unknown-host")[:80]
