"""`job`: why a job failed, hung or was slow, from what it left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.cli.errors import CliError
from agent.cli.output import choose_format, deliver_json, deliver_text, show

if TYPE_CHECKING:
    from agent.job.conclusion import Conclusion
    from agent.job.evidence import Evidence
    from agent.job.files import FileReader
    from agent.job.join.context import HostReport
    from agent.model.job_answer import JobAnswer
    from agent.model.profile import Profile
    from agent.model.report import Report


class JobOptions(NamedTuple):
    """What the job is joined with."""

    reports: list[str]
    source: str | None = None
    dataset: str | None = None
    at: str | None = None
    profile: str | None = None
    quiet: bool = False
    timeout: float | None = None


def explain_job(values: Mapping[str, Any]) -> None:
    """Run `job` with the values of its parameters."""
    others = {name: values[name] for name in JobOptions._fields if name != "reports"}
    options = JobOptions(list(values["report"] or ()), **others)
    run_job(list(values["paths"]), options, values["form"], values["output"], values["no_color"])


def run_job(paths: list[str], options: JobOptions, form: str | None, output: str | None, no_color: bool) -> None:
    """Answer and write it. Raises CliError."""
    form = form or choose_format(output)
    if form == "ndjson":
        raise CliError(f"{output}: use --format text, json or html")
    answer = answer_job(paths, options)
    if form == "json":
        deliver_json(answer, output, indent=1, sort_keys=True)
    elif form == "html":
        from agent.outputs.html.job import render_job_page

        deliver_text(render_job_page(answer), output)
    else:
        from agent.outputs.text.job import render_job

        show(lambda width: render_job(answer, width), output, no_color)


def answer_job(paths: list[str], options: JobOptions) -> JobAnswer:
    """The answer about what these paths hold. Raises CliError."""
    from agent.cli.job_inputs import choose_limit, end_parts, list_inputs, read_inputs
    from agent.job.answer import LOOKED_FOR, add_other_jobs, write_answer
    from agent.job.conclusion import Conclusion
    from agent.job.files import ReadLimit
    from agent.job.join import join_reports
    from agent.job.machine import add_machine
    from agent.job.runs import MOST_RUNS, find_runs

    check_options(options)
    with _open_folder(paths) as folder:
        began = time.monotonic()
        files = list_inputs(paths, folder, options.timeout)
        seconds = choose_limit(files, options.timeout)
        began = began if options.timeout is not None else time.monotonic()
        # half of the time: the lines of several jobs are read once more, those of each by itself
        half = max(began + seconds / 2, time.monotonic() + seconds / 4)
        reader = read_inputs(files, options.quiet, ReadLimit(half, seconds))
        limit = ReadLimit(began + seconds, seconds)
        check_read(reader)
        runs = find_runs(reader.evidence)
        conclusions = [Conclusion(reader.evidence)]
        if len(runs) > 1:
            kept = [end_parts(run.parts, reader.evidence) for run in runs[-MOST_RUNS:]]
            readers = [read_inputs(files, options.quiet, limit, parts) for parts in kept]
            conclusions = [Conclusion(one.evidence) for one in readers]
        chosen = choose_run(conclusions, is_retried=runs[-1].is_attempt)
        reader = readers[chosen] if len(runs) > 1 else reader
        conclusion, evidence = conclusions[chosen], reader.evidence
        reports = list(collect_reports(evidence, reader, options, limit.until))
        if any(one.guessed for one in reports):  # which files are outputs of commands is known now
            conclusion = conclusions[chosen] = Conclusion(evidence)
    if not any(file.read_as for file in evidence.files) and not any(one.report.findings for one in reports):
        hint = "give the output of the job: NCCL_DEBUG=INFO shows the most"
        raise CliError(f"no data of a job in it ({describe_unread(reader)}; {LOOKED_FOR})", hint)
    joined = join_reports(conclusion, reports)
    answer = write_answer(conclusion, datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
    answer = add_other_jobs(answer, conclusions, runs, chosen)
    return add_machine(answer, conclusion, joined, reports, _load_platform(options.profile))


def _open_folder(paths: list[str]) -> AbstractContextManager[str]:
    """A folder for a copy of stdin; none where it is not asked for."""
    if "-" not in paths:
        return nullcontext("")
    from tempfile import TemporaryDirectory

    return TemporaryDirectory(prefix="fabricscope-")


def choose_run(conclusions: Sequence[Conclusion], is_retried: bool = False) -> int:
    """Of several jobs the last that did not end well, else the last; of attempts of one job the last that counts."""
    if is_retried and conclusions[-1].ended == "well":
        return len(conclusions) - 1
    failed = [number for number, one in enumerate(conclusions) if one.ended in ("failed", "hung", "killed")]
    return failed[-1] if failed else len(conclusions) - 1


def check_read(reader: FileReader) -> None:
    """Raises CliError where no file could be read."""
    if not any(file.read_as for file in reader.evidence.files) and not reader.others:
        raise CliError(f"nothing could be read: {describe_unread(reader)}")


def describe_unread(reader: FileReader) -> str:
    """Why files could not be read."""
    reasons = [f"{file.name}: {file.reason}" for file in reader.evidence.files if file.reason][:3]
    return "; ".join(reasons) or ("no line of a job" if reader.evidence.files else "no file")


def check_options(options: JobOptions) -> None:
    """Raises CliError for options that exclude each other."""
    given = [name for name, value in (("--report", options.reports), ("--source", options.source),
                                      ("--dataset", options.dataset)) if value]  # fmt: skip
    if len(given) > 1:
        raise CliError(f"{given[0]} and {given[1]} exclude each other")
    if options.at is not None and options.dataset is None:
        raise CliError("--at needs --dataset DIR")
    if options.at is not None:
        try:
            datetime.fromisoformat(options.at.replace("Z", "+00:00"))
        except ValueError as error:
            raise CliError(f"--at {options.at}: expected a time such as 2026-11-03T04:12:09Z") from error


def collect_reports(evidence: Evidence, reader: FileReader, options: JobOptions, until: float) -> list[HostReport]:
    """The reports that the job may be joined with: given ones, one of other files in the folder, of a dataset."""
    from agent.job.join.context import HostReport

    reports = [HostReport(read_one(path), os.path.basename(path)) for path in options.reports]
    if options.source is not None:
        from agent.cli.request import ReportRequest

        request = ReportRequest(source=options.source, quiet=options.quiet)
        reports.append(HostReport(request.make_report()[0], os.path.basename(options.source.rstrip("/"))))
    if options.dataset is not None:
        from agent.cli.job_inputs import read_dataset

        reports += read_dataset(options.dataset, evidence, options.at)
    for other in reader.others:
        if other.is_report:
            try:
                reports.append(HostReport(read_one(other.path), other.name))
            except CliError as error:
                evidence.note_unread(other.name, str(error).removeprefix(f"{other.path}: "))
    saved = [other for other in reader.others if not other.is_report]
    if saved:
        from agent.cli.job_inputs import scan_saved

        reports += scan_saved(saved, evidence, until)
    return reports


def read_one(path: str) -> Report:
    """A finished report. Raises CliError."""
    from agent.cli.request import ReportRequest

    return ReportRequest(report=path, quiet=True).make_report()[0]


def _load_platform(profile: str | None) -> Profile | None:
    if profile is None:
        return None
    from agent.cli.recommend.machine import load_platform

    return load_platform(profile)
