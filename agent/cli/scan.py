"""`scan` and `capture`: one run, written as a report or as evidence."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from agent.cli.errors import CliError, ErrorTranslation, print_warning, program_name
from agent.cli.output import choose_format, deliver, deliver_text, print_written, show
from agent.cli.request import ReportRequest, build_request
from agent.model.report import Report
from agent.reports import ReportError, encode_compact, encode_indented
from agent.version import VERSION
from probes.sources.open_source import OF_DEMO

if TYPE_CHECKING:
    from probes.host.recording import Recording


DEMO = os.path.join(os.path.dirname(__file__), "demo.tar.zst")


class CaptureTarget(msgspec.Struct, frozen=True):
    """Where a run's evidence is written, and whether it is redacted."""

    place: str | None
    redact: bool


class OutputChoice(msgspec.Struct, frozen=True):
    """What a scan writes, and where."""

    form: str | None
    output: str | None
    no_color: bool
    detail: str = "normal"


def choose_detail(brief: bool, topology: bool, verbose: bool) -> str:
    """How much of the text to show. Raises CliError for more than one option."""
    chosen = [name for name, given in (("brief", brief), ("topology", topology), ("verbose", verbose)) if given]
    if len(chosen) > 1:
        raise CliError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    return chosen[0] if chosen else "normal"


def scan_host(values: Mapping[str, Any]) -> None:
    """Run `scan` with the values of its parameters."""
    choice = OutputChoice(
        values["form"],
        values["output"],
        values["no_color"],
        choose_detail(values["brief"], values["topology"], values["verbose"]),
    )
    if values["path"] and values["source"]:
        raise CliError("PATH and --source exclude each other")
    run_scan(
        build_request({**values, "source": values["source"] or values["path"]}),
        choice,
        CaptureTarget(values["capture"], values["redact"]),
    )


def export_host(values: Mapping[str, Any]) -> None:
    """Run `export` with the values of its parameters."""
    from agent.outputs.export import export_report

    report, _ = build_request(values).make_report()
    deliver_text(export_report(values["form"], report), values["output"], public=True)


def run_scan(request: ReportRequest, choice: OutputChoice, target: CaptureTarget) -> None:
    """Run `scan`: write one report to stdout or a file."""
    form, output = choice.form or choose_format(choice.output), choice.output
    if choice.detail != "normal" and form != "text":
        raise CliError(f"--{choice.detail} needs the format text, not {form}")
    if target.redact and target.place is None:
        raise CliError("--redact needs --capture: it redacts the capture, not the report")
    if form == "text" and output is None and target.place is None:
        request = msgspec.structs.replace(request, explain_job=partial(_explain_job, choice.no_color))
    report, recording = request.make_report(record=target.place is not None)
    if target.place is not None:
        print_written(_write_capture(recording, target, report))
    if form in ("json", "ndjson"):
        with ErrorTranslation(ReportError):
            data = encode_indented(report) if form == "json" else encode_compact(report)
        deliver(data, output, end=b"\n")
    elif form == "html":
        from agent.outputs.export import export_report

        deliver_text(export_report("html", report), output)
    else:
        from agent.outputs.text.page import Detail, render_page

        detail, program = Detail(choice.detail), program_name()
        show(lambda width: render_page(report, width, detail, program), output, choice.no_color)


def _explain_job(no_color: bool, path: str, name: str) -> None:
    """Print what `job` answers, if it has an answer, above the error that names the log of a job as one."""
    from agent.cli.job import JobOptions, answer_job
    from agent.outputs.text.job import render_job

    with contextlib.suppress(CliError):
        answer = answer_job([path], JobOptions([], quiet=True))
        show(lambda width: [tuple((text.replace(path, name), style) for text, style in line)
                            for line in render_job(answer, width)], None, no_color)  # fmt: skip
        sys.stdout.flush()


def run_demo(choice: OutputChoice) -> None:
    """Run `demo`: scan the recorded machine of this package."""
    print(f"{OF_DEMO}: 8 GPUs, 8 InfiniBand rails, and one fault.", file=sys.stderr)
    run_scan(ReportRequest(source=DEMO, quiet=True), choice, CaptureTarget(None, False))


def run_capture(request: ReportRequest, target: CaptureTarget) -> None:
    """Run `capture`: write the evidence of one run, and print its path on stderr."""
    report, recording = request.make_report(record=True)
    print_written(_write_capture(recording, target, report))


def _write_capture(recording: Recording | None, target: CaptureTarget, report: Report) -> str:
    """Write the capture and return its path; by default in the current folder, named by host and time."""
    assert recording is not None, "a run that records gives a recording"
    from probes.capture.writer import missing, write_capture

    host = report.node.hostname or "unknown-host"
    if target.redact:
        from probes.redact.redact import Unredactable, redact_recording

        with ErrorTranslation(Unredactable):
            recording, texts = redact_recording(recording)
        host = texts.names.host(host)
    stamp = report.generated_at.replace("-", "").replace(":", "")
    place = target.place or f"fabricscope-{_file_name(host)}-{stamp}.tar.gz"
    with ErrorTranslation(OSError, about=place):
        write_capture(recording, place, VERSION)
    if lines := missing(recording):
        print_warning(f"{place} is not complete: {'; '.join(lines)}")
    return place


def _file_name(host: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "_" for c in host)[:80]
