"""`scan` and `capture`: one run, its report or its evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from agent.cli.asked import Asked
from agent.cli.delivery import deliver, form_of, show
from agent.cli.refused import Refused
from agent.model.report import Report
from agent.reports import ReportError, encode_report
from agent.version import VERSION

if TYPE_CHECKING:
    from probes.host.recording import Recording

LINE_CHARACTERS = 1000  # of one line on stderr


class Kept(NamedTuple):
    """Where a run's evidence goes, and whether with pseudonyms."""

    place: str | None
    redact: bool


def scan(asked: Asked, wanted: str | None, output: str | None, kept: Kept, no_color: bool) -> None:
    """Write one report to stdout or a file."""
    form = wanted or form_of(output)
    if kept.redact and kept.place is None:
        raise Refused("--redact is about what --capture writes; the report itself names everything")
    report, recording = asked.reported(record=kept.place is not None)
    if kept.place is not None:
        _keep(recording, kept, report)
    if form == "json":
        try:
            data = encode_report(report)
        except ReportError as error:
            raise Refused(str(error)) from error
        deliver(data, output)
    elif form == "html":
        from agent.outputs.export import exported

        deliver(exported("html", report).encode("utf-8", "replace"), output)
    else:
        from agent.outputs.text import page

        show(lambda width: page(report, width), output, no_color)


def capture(asked: Asked, kept: Kept) -> None:
    """Write the evidence of one run, and say on stderr where it is."""
    report, recording = asked.reported(record=True)
    print(f"fabricscope: wrote {_keep(recording, kept, report)}", file=sys.stderr)


def _keep(recording: Recording | None, kept: Kept, report: Report) -> str:
    """Write it; where it is. Without a place it lies here, by a name that sorts by host and time."""
    assert recording is not None, "a run that records gives a recording"
    from probes.host.capture import missing, write_capture

    host = report.node.hostname or "unknown-host"
    if kept.redact:
        from probes.host.redact import Unredactable, redacted

        try:
            recording, texts = redacted(recording)
        except Unredactable as error:
            raise Refused(str(error)) from error
        host = texts.names.host(host)
    stamp = report.generated_at.replace("-", "").replace(":", "")
    place = kept.place or f"fabricscope-{_file_name(host)}-{stamp}.tar.gz"
    try:
        write_capture(recording, place, VERSION)
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}") from error
    if lines := missing(recording):
        print(f"fabricscope: {place} is not whole: {'; '.join(lines)}"[:LINE_CHARACTERS], file=sys.stderr)
    return place


def _file_name(host: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "_" for c in host)[:80]
