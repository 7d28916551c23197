"""The options that choose the evidence of a report, and how the report is made from them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from agent.cli.errors import CliError, ErrorTranslation, print_warning, printable
from agent.cli.output import DEBUG, ProgressLine
from agent.cli.stdin import STDIN, copy_stdin, notice_pipe
from agent.config import Configuration, ConfigurationError, load_configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.profile import BadProfile, Profile
from agent.model.report import Report
from agent.reports import ReportError, is_report, read_report
from agent.rules.catalogue import names
from probes.catalogue import probes
from probes.host.interface import JobLog
from probes.sources.open_source import BadSource, open_source
from probes.time_limit import TimeIsUp, TimeLimit
from probes.topology_files.preparsed import FactsSource

if TYPE_CHECKING:
    from probes.host.interface import Host
    from probes.host.recording import Recording

LOOKED_INTO = 200  # files of a folder that is no source
UNREAD_SHOWN = 8  # lines on stderr about saved files that are not read
TIME_LIMIT = 30.0  # seconds of a run, besides the wait between two samples
EXTRAS_SECONDS = 20.0  # time for a capture's extras, after its probes


class OfJob(CliError):
    """The source is what `fabricscope job` reads."""


class HistoryOptions(msgspec.Struct, frozen=True):
    """The options that add earlier or second samples."""

    state_dir: str | None = None
    accept: bool = False  # the current hardware becomes the new inventory
    interval: float | None = None  # seconds


class ReportRequest(msgspec.Struct, frozen=True):
    """The options that choose the evidence and how it is evaluated."""

    source: str | None = None
    root: str | None = None
    report: str | None = None
    only: str | None = None
    skip: str | None = None
    timeout: float | None = None  # seconds; None: TIME_LIMIT, and the wait between two samples
    config: str | None = None
    quiet: bool = False
    earlier: HistoryOptions = HistoryOptions()
    profile: str = "auto"
    explain_job: Callable[[str, str], None] | None = None  # prints what `job` answers about a path, by its name

    @property
    def time_limit(self) -> float:
        """Seconds of the whole run."""
        return TIME_LIMIT + (self.earlier.interval or 0.0) if self.timeout is None else self.timeout

    def make_report(self, record: bool = False) -> tuple[Report, Recording | None]:
        """Make one report, from a host or from a finished report. Raises CliError."""
        if self.source == STDIN:
            return self._read_stdin(record)
        sources = [name for name in ("source", "root", "report") if getattr(self, name)]
        if len(sources) > 1:
            raise CliError(f"--{sources[0]} and --{sources[1]} exclude each other")
        configuration = self.configuration()
        began = time.monotonic()
        with self._limit_opening(began):
            report_file = self.report or (self.source if self.source and is_report(self.source) else None)
        if report_file:
            return self._evaluate(report_file, configuration, record), None
        if self.profile not in ("auto", "none"):  # report a bad one before probing
            load_profile(self.profile)
        only, skip = parse_probe_names("--only", self.only), parse_probe_names("--skip", self.skip)
        try:
            with self._limit_opening(began):
                host = self._open()
            if record and isinstance(host, FactsSource):
                raise CliError(f"--capture needs a host: {host.path} holds a topology only")
            if getattr(host, "saved", None) is None:
                warn_of_unread([f"not read: {output}" for output in getattr(host, "unread", ())])
            self._check_earlier(live=host.live, record=record)
            report, recording = self._scan(host, ScanPlan(
                only, skip, self.time_limit, configuration, record, None, self.earlier.interval, self.profile,
                self._history(only), began=began,
            ))  # fmt: skip
        except BadSource as error:
            raise CliError(str(error), error.hint) from error
        except OfJob:
            if self.source and self.explain_job is not None:
                self.explain_job(self.source, self.source)
            raise
        if DEBUG.get():
            for run in report.probes:
                ended = f"{run.name:12} {run.status:9} {run.duration_seconds:7.3f} s  {run.reason or ''}"
                print(printable(ended), file=sys.stderr)
        return report, recording

    def _read_stdin(self, record: bool) -> tuple[Report, Recording | None]:
        """The same of a copy of stdin. Raises CliError."""
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="fabricscope-") as folder:
            with self._limit_opening(time.monotonic()):
                path = copy_stdin(folder)
            try:
                explain = self.explain_job
                named = explain and (lambda place, _: explain(place, "stdin"))
                request = msgspec.structs.replace(self, source=path, explain_job=named)
                report, recording = request.make_report(record)
            except CliError as error:
                hint = error.hint and error.hint.replace(f"--switches {path}", "--switches FILE").replace(path, STDIN)
                raise CliError(str(error).replace(path, "stdin"), hint) from error
        source = msgspec.structs.replace(report.source, path=STDIN) if report.source.path == path else report.source
        return msgspec.structs.replace(report, source=source), recording

    def _open(self) -> Host | FactsSource:
        """Raises CliError."""
        try:
            return open_source(self.source, self.root)
        except BadSource as error:
            if self.source and _is_of_switch(self.source):
                from shlex import quote

                raise CliError(
                    f"{self.source}: holds outputs of a switch, not of a host",
                    f"`fabricscope fleet lossless --switches {quote(self.source)}` reads them",
                ) from error
            if error.parts:
                from agent.rules.host.failure_words import list_commands

                shown = "; ".join(
                    f"of {part.replace('NVIDIA ', 'GPU ')}: `{list_commands(part)}`" for part in error.parts
                )
                raise CliError(str(error), f"save what shows them, and scan it: {shown}") from error
            kind = OfJob if isinstance(error, JobLog) else CliError
            raise kind(str(error), error.hint) from error

    def _evaluate(self, report_file: str, configuration: Configuration, record: bool) -> Report:
        """A finished report, judged again. Raises CliError."""
        if record:
            raise CliError("--capture needs a scan: not with a finished report")
        self._check_earlier(live=False, record=False)
        if self.earlier.state_dir is not None:
            print_warning("--state-dir is ignored with a finished report")
        with ErrorTranslation(ReportError), notice_pipe(report_file):
            report = read_report(report_file)
        with ErrorTranslation(BadProfile), notice_pipe(self.profile):
            return evaluate_report(report, configuration, self.profile)

    def _scan(self, host: Host | FactsSource, plan: ScanPlan) -> tuple[Report, Recording | None]:
        """Raises BadSource."""
        with ProgressLine(host.live and not self.quiet) as line:
            progress = line.show if line.enabled else None
            report, recording = diagnose(host, msgspec.structs.replace(plan, progress=progress))
            if host.live:
                warn_of_holders(report, print_warning)
            warn_of_unread(describe_unread(report))
            if recording is not None and not isinstance(host, FactsSource):
                from probes.capture.extras import record_extras

                record_extras(recording, host, EXTRAS_SECONDS, progress)
        return report, recording

    @contextlib.contextmanager
    def _limit_opening(self, began: float) -> Iterator[None]:
        """Raises CliError where it takes too long."""
        try:
            with TimeLimit(began + self.time_limit):
                yield
        except TimeIsUp:
            name = "stdin" if self.source == STDIN else self.source or self.root
            text = f"{name}: cannot be opened within {self.time_limit:g} s"
            raise CliError(text, "--timeout SECONDS gives it more") from None

    def _check_earlier(self, live: bool, record: bool) -> None:
        """Raises CliError for conflicting options about earlier or second samples."""
        accept, interval = self.earlier.accept, self.earlier.interval
        if accept and self.earlier.state_dir is None:
            raise CliError("--accept-inventory needs --state-dir")
        if accept and self.report:
            raise CliError("--accept-inventory needs a scan: not with --report")
        if interval is None:
            return
        if not live:
            raise CliError("--interval needs a live host: a recorded source does not change")
        if record:
            raise CliError("--interval and --capture exclude each other: a capture has one sample")
        if interval >= self.time_limit:
            raise CliError(f"--interval {interval:g} must be shorter than --timeout {self.time_limit:g}")

    def _history(self, only: tuple[str, ...]) -> Callable[[Report], Report] | None:
        """A function that adds earlier runs to a report; runs of a few probes are compared, not stored."""
        state_dir, accept = self.earlier.state_dir, self.earlier.accept
        if state_dir is None:
            return None
        from agent.history.store import apply_state_file

        return lambda report: apply_state_file(state_dir, report, print_warning, keep=not only, accept=accept)

    def configuration(self) -> Configuration:
        """The configuration of --config. Raises CliError."""
        if not self.config:
            return Configuration()
        with ErrorTranslation(ConfigurationError), notice_pipe(self.config):
            return load_configuration(self.config, names(), print_warning)


def load_report(path: str) -> Report:
    """A finished report, as it is. Raises CliError."""
    with ErrorTranslation(ReportError), notice_pipe(path):
        return read_report(path)


def load_profile(name: str) -> Profile | None:
    """A profile by its name, or a file; None for "auto" and "none". Raises CliError."""
    from agent.model.node import Platform
    from agent.platforms.profiles import choose_profile

    with ErrorTranslation(BadProfile), notice_pipe(name):
        return choose_profile(name, Platform()).profile


def _is_of_switch(path: str) -> bool:
    from probes.switches.collection import UnreadableCollection, read_collection

    try:
        if os.path.isdir(path) and len(os.listdir(path)) > LOOKED_INTO:
            return False
        return any(switch.ports for switch in read_collection([path]).switches.values())
    except (UnreadableCollection, OSError):
        return False


def build_request(values: Mapping[str, Any]) -> ReportRequest:
    """The request of a command that has all of these parameters, from their values by name."""
    earlier = HistoryOptions(values["state_dir"], values["accept_inventory"], values["interval"])
    names = ("source", "root", "report", "only", "skip", "timeout", "config", "quiet", "profile")
    return ReportRequest(**{name: values[name] for name in names}, earlier=earlier)


def describe_unread(report: Report) -> list[str]:
    """A line for each saved file that is not read or not whole, and why."""
    files = [file for file in report.source.files or [] if file.reason]
    return [
        f"not read: {file.name}: {file.reason}"
        if file.read_as is None
        else f"{file.name}, read as {file.read_as}: {file.reason}"
        for file in files
    ]


def warn_of_unread(lines: list[str]) -> None:
    """Print what is not read of a source; of many the first."""
    for line in lines[:UNREAD_SHOWN]:
        print_warning(line)
    if len(lines) > UNREAD_SHOWN:
        print_warning(f"and {len(lines) - UNREAD_SHOWN} more: `source.files` of the report (--format json) lists them")


def warn_of_holders(report: Report, warn: Callable[[str], None]) -> None:
    """Print which process holds the lock of a probe: one that hangs, another run's, or what a tool left running.

    Live facts, for the administrator who looks at this host now: they are not in the report.
    """
    from probes.locks import describe_holder

    for run in report.probes:
        is_late = run.status == "timed_out"
        if run.status != "skipped" and (holder := describe_holder(run.name, of_a_run=is_late)):
            left = "" if is_late else "a process that an earlier run left, read beside it: "
            warn(f"{run.name}: {left}{holder}")


def parse_probe_names(option: str, text: str | None) -> tuple[str, ...]:
    """Parse an option's list of probes. Raises CliError for an unknown one."""
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    known = [probe.name for probe in probes()]
    for name in names:
        if name not in known:
            import difflib  # lazy: few commands name one that is not there

            near = difflib.get_close_matches(name, known, 1)
            raise CliError(
                f"{option}: no probe {name!r}; valid: {', '.join(known)}", f"did you mean {near[0]}?" if near else None
            )
    return names
