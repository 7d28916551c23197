"""What a command was asked to look at, and the report that comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from agent.cli.refused import Refused
from agent.config import BadConfiguration, Configuration, load
from agent.diagnose import Plan, diagnose, judged
from agent.model.report import Report
from agent.reports import BadReport, read
from agent.rules.catalogue import names
from probes.catalogue import probes
from probes.host.recording import Recording
from probes.host.source import BadSource, open_source
from probes.readers.told import FactsSource

EXTRAS_SECONDS = 20.0  # what a capture may take beyond its probes


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

    def reported(self, record: bool = False) -> tuple[Report, Recording | None]:
        """One report, from a host or from a finished report. Raises Refused."""
        chosen = [name for name in ("source", "root", "report") if getattr(self, name)]
        if len(chosen) > 1:
            raise Refused(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        configuration = self._configuration()
        if self.report:
            if record:
                raise Refused("--capture records a host: there is none with --report")
            try:
                return judged(read(self.report), configuration), None
            except BadReport as error:
                raise Refused(str(error)) from error
        only, skip = _names("--only", self.only), _names("--skip", self.skip)
        try:
            host = open_source(self.source, self.root)
            if record and isinstance(host, FactsSource):
                raise Refused(f"--capture records a host: {host.path} is read, and cannot be asked")
            with Progress(live=host.live and not self.quiet) as progress:
                plan = Plan(only, skip, self.timeout, configuration, record, progress)
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

    def _configuration(self) -> Configuration:
        if not self.config:
            return Configuration()
        try:
            return load(self.config, names())
        except BadConfiguration as error:
            raise Refused(str(error)) from error


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


def _names(option: str, text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    known = [probe.name for probe in probes()]
    for name in names:
        if name not in known:
            raise Refused(f"{option}: no probe {name!r}; the probes are {', '.join(known)}")
    return names
