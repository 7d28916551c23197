"""`watch`: options, what is told where, and how it ends. The work is in agent/watch."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt

if TYPE_CHECKING:
    from agent.cli.asked import Asked
    from agent.model.report import Report
    from agent.watch.judging import Judge, Judged, Remember
    from agent.watch.pace import Turn
    from agent.watch.signals import Signals


STDOUT = 1
MOST_SAID = 64  # lines that are remembered, not to be said again


class WatchFormat(str, Enum):
    """Forms of what changed."""

    TEXT = "text"
    NDJSON = "ndjson"


def watch(
    root: opt.Root = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Bound on each reading.", min=0.1, callback=opt.a_number),
    ] = 30.0,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Quiet time after an event; judged after ten times that at the latest.",
            min=0,
            callback=opt.a_number,
        ),
    ] = 2.0,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="A full scan so often, events or not.", min=1, callback=opt.a_number),
    ] = 3600.0,
    state_dir: opt.StateDir = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    form: Annotated[WatchFormat, typer.Option("--format", help="text or ndjson.")] = WatchFormat.TEXT,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Keep the current report there (JSON), whole at any time.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not say on stderr what is listened to.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr when it judges, and why.")] = False,
) -> None:
    """Stay, and judge again when the kernel says that something changed. SIGUSR1: a full scan now. Exit 0."""
    from agent.cli.asked import Asked, Earlier

    asked = Asked(None, root, None, only, skip, timeout, config, quiet, verbose, Earlier(state_dir), profile)
    _watch(asked, settle, every, _Telling(form, output, asked))


def _watch(asked: Asked, settle: float, every: float, telling: _Telling) -> None:
    """Until a signal. Raises Refused."""
    from agent.watch.loop import Watch
    from agent.watch.pace import Pace
    from agent.watch.signals import Signals
    from probes.events import listeners

    with Signals() as signals:
        judge = _judge(asked, signals, telling)
        places, refused = listeners()
        try:
            for line in refused:
                telling.say(line)
            if not asked.quiet:
                names = ", ".join(each.name for each in places) or "nothing"
                telling.say(f"listens to {names}; a full scan every {every:g} s")
            Watch(places, Pace(settle, every), judge, signals, telling).run()
        finally:
            for place in places:
                place.close()


def _judge(asked: Asked, signals: Signals, telling: _Telling) -> Judge:
    """What reads and judges, all options checked. Raises Refused."""
    from agent.cli.asked import probe_names
    from agent.cli.refused import Refused
    from agent.diagnose import ScanPlan
    from agent.watch.judging import Judge
    from probes.host.door import Host
    from probes.host.source import BadSource, open_source
    from probes.readers.told import FactsSource

    def host() -> Host:
        try:
            opened = open_source(None, asked.root)
        except BadSource as error:
            raise Refused(str(error)) from error
        assert not isinstance(opened, FactsSource), "a live host is asked"
        return opened

    configuration = asked.configuration()
    if asked.profile not in ("auto", "none"):
        asked.check_profile()
    plan = ScanPlan(
        only=probe_names("--only", asked.only),
        skip=probe_names("--skip", asked.skip),
        timeout_seconds=asked.timeout,
        configuration=configuration,
        profile=asked.profile,
    )
    why = getattr(host(), "other_kernel", None)
    if why:
        raise Refused(f"--root: the kernel that runs here is listened to, and {why.removeprefix('not asked: ')}")
    return Judge(host, plan, _memory(asked, telling), telling.earlier(), signals)


def _memory(asked: Asked, telling: _Telling) -> Remember | None:
    """What earlier runs know: of the state directory; None: of this process alone."""
    directory = asked.earlier.state_dir
    if directory is None:
        return None
    from agent.history.store import remembered

    def known(report: Report, whole: bool) -> Report:
        return remembered(directory, report, telling.say_once, keep=whole and not asked.only)

    return known


class _Telling:
    """Where everything goes that is told: stdout, the report's file, stderr."""

    def __init__(self, form: WatchFormat, output: str | None, asked: Asked) -> None:
        self._form = form
        self._output = output
        self._verbose = asked.verbose
        self._written = False
        self._said: set[str] = set()

    def earlier(self) -> Report | None:
        """The report that the file holds from a former run; None where there is none that can be read."""
        from agent.reports import ReportError, is_report, read_report

        if self._output is None or not os.path.isfile(self._output) or not is_report(self._output):
            return None  # /dev/stdout, a named pipe: to read from it would be to wait
        try:
            return read_report(self._output)
        except ReportError as error:
            self.say(f"not compared with an earlier report: {error}")
            return None

    def tell(self, turn: Turn, made: Judged) -> None:
        """What changed, on stdout: past its buffer, so that nothing is left when it is told to end. Raises OSError."""
        from agent.watch.lines import ndjson, reasons, text

        if self._form is WatchFormat.NDJSON:
            data = ndjson(turn, made)
        else:
            data = "".join(f"{line}\n" for line in text(turn, made)).encode("utf-8", "replace")
        while data:
            data = data[os.write(STDOUT, data) :]
        if self._verbose:
            read = "all probes" if turn.full else ", ".join(made.read)
            took = f"{made.report.duration_seconds:.1f} s"
            self.say(f"judged in {took}: {reasons(turn)}; read {read}; changes: {len(made.changes)}")

    def say(self, text: str) -> None:
        """One line on stderr."""
        print(f"fabricscope: {text}"[:1000], file=sys.stderr, flush=True)

    def say_once(self, text: str) -> None:
        """The same, where it was not said before."""
        if len(self._said) > MOST_SAID:
            self._said.clear()
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def keep(self, report: Report) -> None:
        """The report's file, before anything is told of it. Raises Refused for one that can never be written.

        A disk that is full later is told, and tried again.
        """
        from agent.cli.refused import Refused
        from agent.reports import ReportError, encode_report, write_atomically

        if self._output is None:
            return
        try:
            write_atomically(self._output, encode_report(report))
        except (OSError, ReportError) as error:
            why = f"{self._output}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if not self._written:
                raise Refused(why) from error
            self.say_once(f"the report is not kept: {why}")
            return
        self._written = True
