"""What a command was asked to look at, and the report that comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from agent.cli.refused import Refused
from agent.config import Configuration, ConfigurationError, load_configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.profile import BadProfile
from agent.model.report import Report
from agent.reports import ReportError, read_report
from agent.rules.catalogue import names
from probes.catalogue import probes
from probes.host.recording import Recording
from probes.host.source import BadSource, open_source
from probes.readers.told import FactsSource

EXTRAS_SECONDS = 20.0  # what a capture may take beyond its probes


class Earlier(NamedTuple):
    """The options that bring in what was at another time."""

    state_dir: str | None = None
    accept: bool = False  # what is here now is the inventory
    interval: float | None = None  # seconds


class Asked(NamedTuple):
    """The options that choose the evidence and how it is judged."""

    source: str | None
    root: str | None
    report: str | None
    only: str | None
    skip: str | None
    timeout: float
    config: str | None
    quiet: bool
    verbose: bool
    earlier: Earlier = Earlier()
    profile: str = "auto"

    def reported(self, record: bool = False) -> tuple[Report, Recording | None]:
        """One report, from a host or from a finished report. Raises Refused."""
        chosen = [name for name in ("source", "root", "report") if getattr(self, name)]
        if len(chosen) > 1:
            raise Refused(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        configuration = self.configuration()
        if self.report:
            if record:
                raise Refused("--capture records a host: there is none with --report")
            self._check_earlier(live=False, record=False)
            if self.earlier.state_dir is not None:
                say("--state-dir is not used with --report: it is judged by what it holds")
            try:
                return evaluate_report(read_report(self.report), configuration, self.profile), None
            except (ReportError, BadProfile) as error:
                raise Refused(str(error)) from error
        if self.profile not in ("auto", "none"):  # a bad one is told before anything is probed
            self.check_profile()
        only, skip = probe_names("--only", self.only), probe_names("--skip", self.skip)
        try:
            host = open_source(self.source, self.root)
            if record and isinstance(host, FactsSource):
                raise Refused(f"--capture records a host: {host.path} is read, and cannot be asked")
            self._check_earlier(live=host.live, record=record)
            with Progress(live=host.live and not self.quiet) as progress:
                plan = ScanPlan(
                    only,
                    skip,
                    self.timeout,
                    configuration,
                    record,
                    progress,
                    self.earlier.interval,
                    self.profile,
                    self._history(only),
                )
                report, recording = diagnose(host, plan)
                if recording is not None and not isinstance(host, FactsSource):
                    from probes.extras import record_extras

                    record_extras(recording, host, EXTRAS_SECONDS, progress)
        except BadSource as error:
            raise Refused(str(error)) from error
        if self.verbose:
            for run in report.probes:
                print(
                    f"{run.name:12} {run.status:9} {run.duration_seconds:7.3f} s  {run.reason or ''}", file=sys.stderr
                )
        return report, recording

    def check_profile(self) -> None:
        """Raises Refused for a --profile that is not there or cannot be read."""
        from agent.model.node import Platform
        from agent.platforms.profiles import choose_profile

        try:
            choose_profile(self.profile, Platform())
        except BadProfile as error:
            raise Refused(str(error)) from error

    def _check_earlier(self, live: bool, record: bool) -> None:
        """Raises Refused where options about other times do not go together."""
        state_dir, accept, interval = self.earlier
        if accept and state_dir is None:
            raise Refused("--accept-inventory is about what --state-dir keeps")
        if accept and self.report:
            raise Refused("--accept-inventory takes what a host has now: there is none with --report")
        if interval is None:
            return
        if not live:
            raise Refused("--interval reads a live host twice: this source does not change")
        if record:
            raise Refused("--interval reads twice, and a capture holds one reading: take --capture or --interval")
        if interval >= self.timeout:
            raise Refused(f"--interval {interval:g} leaves no time to probe: --timeout is {self.timeout:g}")

    def _history(self, only: tuple[str, ...]) -> Callable[[Report], Report] | None:
        """What adds the state directory's knowledge to a report; a run of a few probes is compared, not remembered."""
        state_dir, accept, _ = self.earlier
        if state_dir is None:
            return None
        from agent.history.store import remembered

        return lambda report: remembered(state_dir, report, say, keep=not only, accept=accept)

    def configuration(self) -> Configuration:
        """What --config says. Raises Refused."""
        if not self.config:
            return Configuration()
        try:
            return load_configuration(self.config, names())
        except ConfigurationError as error:
            raise Refused(str(error)) from error


def say(text: str) -> None:
    """One line on stderr."""
    print(f"fabricscope: {text}"[:1000], file=sys.stderr)


class Progress:
    """A line on stderr while a live scan takes longer than a second, where somebody can see it; gone at the end."""

    def __init__(self, live: bool) -> None:
        self.shown = False
        self.wanted = live and sys.stderr.isatty()

    def __enter__(self) -> Callable[[str], None] | None:
        return self.show if self.wanted else None

    def show(self, text: str) -> None:
        """Replace the line."""
        sys.stderr.write(f"\r\x1b[K{text[:78]}")
        sys.stderr.flush()
        self.shown = True

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def probe_names(option: str, text: str | None) -> tuple[str, ...]:
    """The probes that an option lists. Raises Refused for one that there is not."""
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    known = [probe.name for probe in probes()]
    for name in names:
        if name not in known:
            raise Refused(f"{option}: no probe {name!r}; the probes are {', '.join(known)}")
    return names
