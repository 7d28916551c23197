"""`watch`: options, output and exit. The work is in agent/watch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, printable
from agent.cli.output import can_encode_lines

if TYPE_CHECKING:
    from agent.cli.request import ReportRequest
    from agent.model.report import Report
    from agent.watch.debounce import Batch
    from agent.watch.evaluate import AddHistory, Evaluation, Evaluator
    from agent.watch.loop import WatchSignals
    from agent.watch.screen import Screen


STDOUT = 1
DUMB_TERMINALS = ("", "dumb", "unknown")
REMEMBERED_LINES = 64  # lines on stderr that are not repeated

WatchFormat = Literal["text", "ndjson"]


def watch(
    root: opt.Root = None,
    only: opt.Only = None,
    skip: opt.Skip = None,
    timeout: Annotated[float, opt.shown_option("SECONDS", "Time limit of each scan.", min=0.1)] = 30.0,
    settle: Annotated[
        float, opt.shown_option("SECONDS", "Debounce interval after an event (hard limit: 10x).", min=0)
    ] = 2.0,
    every: Annotated[float, opt.shown_option("SECONDS", "Full scan every SECONDS.", min=1)] = 3600.0,
    state_dir: opt.StateDir = None,
    config: opt.ConfigFile = None,
    profile: opt.ProfileName = "auto",
    form: Annotated[WatchFormat, typer.Option("--format", help="text or ndjson.")] = "text",
    output: Annotated[
        str | None, opt.option("FILE", "Keep the current report in FILE (JSON, atomically).", "--output", "-o")
    ] = None,
    screen: Annotated[
        bool, typer.Option("--screen", help="Show the machine on the whole terminal: links, changes, events.")
    ] = False,
    no_color: opt.NoColor = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not print the event sources.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print each check and its reason on stderr.")
    ] = False,
) -> None:
    """Re-check when the kernel reports a change.

    A link, a device, an Xid: one line per change. SIGUSR1 starts a full scan. Runs until a signal; exit 0.
    """
    import signal

    from agent.cli.request import HistoryOptions, ReportRequest
    from agent.watch.debounce import Debouncer
    from agent.watch.loop import Watch, WatchSignals
    from probes.kernel.events import listeners

    request = ReportRequest(
        root=root, only=only, skip=skip, timeout=timeout, config=config, quiet=quiet,
        earlier=HistoryOptions(state_dir), profile=profile,
    )  # fmt: skip
    if screen:
        _reject_screen(form)
    reporter = _WatchOutput(form, output, verbose)
    with WatchSignals(*([signal.SIGQUIT] if screen else [])) as signals, ExitStack() as stack:
        evaluator = _build_evaluator(request, signals, reporter)
        places, refused = listeners()
        for place in places:
            stack.callback(place.close)
        names = ", ".join(listener.name for listener in places) or "nothing"
        sources = f"listens to {names}; a full scan every {every:g} s"
        if screen:  # a narrow one cuts the end
            footer = f"full scan every {every:g} s; listens to {names}"
            reporter.screen = stack.enter_context(_open_screen(footer, no_color))
        for line in refused:
            reporter.warn(line)
        if not request.quiet and not screen:
            reporter.warn(sources)
        Watch(places, Debouncer(settle, every), evaluator, signals, reporter, reporter.screen).run()


def _reject_screen(form: WatchFormat) -> None:
    """Raises CliError where no screen can be shown."""
    lines = "without --screen, watch prints one line per change"
    if form != "text":
        raise CliError(f"--screen and --format {form} exclude each other")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        stream = "stdout" if sys.stdin.isatty() else "stdin"
        raise CliError(f"--screen needs a terminal, and {stream} is not one", lines)
    if os.environ.get("TERM", "") in DUMB_TERMINALS:
        kind = os.environ.get("TERM") or "not set"
        raise CliError(f"--screen needs a terminal that can move its cursor, and TERM is {kind}", lines)


@contextmanager
def _open_screen(sources: str, no_color: bool) -> Iterator[Screen]:
    """The screen, until the terminal is given back."""
    from agent.watch.screen import Screen
    from agent.watch.terminal import Terminal

    sys.stdout.flush()
    has_colours = not no_color and not os.environ.get("NO_COLOR")
    with Terminal(sys.stdin.fileno(), STDOUT, has_colours, can_encode_lines(sys.stdout.encoding)) as terminal:
        yield Screen(terminal, sources)


def _build_evaluator(request: ReportRequest, signals: WatchSignals, reporter: _WatchOutput) -> Evaluator:
    """Build the evaluator, with all options checked. Raises CliError."""
    from agent.cli.request import load_profile, parse_probe_names
    from agent.diagnose import ScanPlan
    from agent.watch.evaluate import Evaluator
    from probes.host.interface import Host
    from probes.sources.open_source import BadSource, open_source
    from probes.topology_files.preparsed import FactsSource

    def host() -> Host:
        with ErrorTranslation(BadSource):
            opened = open_source(None, request.root)
        assert not isinstance(opened, FactsSource), "a live host is read"
        return opened

    configuration = request.configuration()
    if request.profile not in ("auto", "none"):
        load_profile(request.profile)
    plan = ScanPlan(
        only=parse_probe_names("--only", request.only),
        skip=parse_probe_names("--skip", request.skip),
        timeout_seconds=request.time_limit,
        configuration=configuration,
        profile=request.profile,
    )
    why = getattr(host(), "other_kernel", None)
    if why:
        raise CliError(f"--root: the running kernel's events are used, and {why.removeprefix('not asked: ')}")
    return Evaluator(host, plan, _history_of(request, reporter), reporter.earlier(), signals)


def _history_of(request: ReportRequest, reporter: _WatchOutput) -> AddHistory | None:
    """The history function of the state directory; None: of this process alone."""
    directory = request.earlier.state_dir
    if directory is None:
        return None
    from agent.history.store import apply_state_file

    def known(report: Report, whole: bool) -> Report:
        return apply_state_file(directory, report, reporter.warn_once, keep=whole and not request.only)

    return known


class _WatchOutput:
    """Where results go: stdout, the report's file, stderr."""

    def __init__(self, form: WatchFormat, output: str | None, verbose: bool) -> None:
        self._form = form
        self._output = output
        self._verbose = verbose
        self._written = False
        self._printed: set[str] = set()
        self.screen: Screen | None = None  # takes all that would be a line

    def earlier(self) -> Report | None:
        """The report of a former run in the output file; None if there is none or it cannot be read."""
        from agent.reports import ReportError, is_report, read_report

        if self._output is None or not os.path.isfile(self._output) or not is_report(self._output):
            return None  # /dev/stdout, a named pipe: to read from it would be to wait
        try:
            return read_report(self._output)
        except ReportError as error:
            self.warn(f"not compared with an earlier report: {error}")
            return None

    def write_changes(self, batch: Batch, evaluation: Evaluation) -> None:
        """Write the changes to stdout, unbuffered, so that nothing is lost at the end. Raises OSError."""
        from agent.cli.request import warn_of_holders
        from agent.watch.output import describe_processes, format_ndjson, format_reasons, format_text

        if self.screen:
            data = b""
            self.screen.show_evaluation(evaluation)
        elif self._form == "ndjson":
            data = format_ndjson(batch, evaluation)
        else:
            data = "".join(f"{line}\n" for line in format_text(batch, evaluation)).encode("utf-8", "replace")
        while data:
            data = data[os.write(STDOUT, data) :]
        for line in describe_processes(batch):
            self.warn(line)
        warn_of_holders(evaluation.report, self.warn_once)
        if self._verbose:
            read = "all probes" if batch.full else ", ".join(evaluation.read)
            took = f"{evaluation.report.duration_seconds:.1f} s"
            self.warn(f"judged in {took}: {format_reasons(batch)}; read {read}; changes: {len(evaluation.changes)}")

    def warn(self, text: str) -> None:
        """One line on stderr, or on the screen."""
        if self.screen:
            self.screen.show_note(text[:1000])
            return
        print(printable(text[:1000]), file=sys.stderr, flush=True)

    def warn_once(self, text: str) -> None:
        """Print one line on stderr, unless it was printed before."""
        if len(self._printed) > REMEMBERED_LINES:
            self._printed.clear()
        if text not in self._printed:
            self._printed.add(text)
            self.warn(text)

    def write_report(self, report: Report) -> None:
        """Write the report's file, before its changes are printed. Raises CliError if it can never be written.

        A disk that fills up later is reported, and the write is retried.
        """
        from agent.reports import ReportError, encode_report, write_atomically

        if self._output is None:
            return
        try:
            write_atomically(self._output, encode_report(report))
        except (OSError, ReportError) as error:
            why = f"{self._output}: {error.strerror}" if isinstance(error, OSError) else str(error)
            if not self._written:
                raise CliError(why) from error
            self.warn_once(f"the report is not kept: {why}")
            return
        self._written = True
