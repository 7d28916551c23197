"""Logs and states of the services of a GPU node, in whatever form they were saved: `systemctl status`, the journal,
syslog, and the files that the fabric manager, the subnet managers, IMEX and DCGM write.

Each line is read by itself: the journal names the program in it, the services' own files begin with their kind of
date. systemd.unit(5), systemctl(1) (status), journalctl(1); forms of dates: the sources of the services.
"""

from collections.abc import Iterable, Mapping

from probes.host.commands import KERNEL_LOG, KERNEL_LOG_SAVED, OF_SERVICE, SERVICE_LOG, SERVICE_SAVED
from probes.host.interface import Host
from probes.host_reader import HostReader
from probes.kernel.log_facts import LogEvent
from probes.kernel.log_files import FOLDER, list_log_files, read_log_file
from probes.kernel.log_lines import convert_to_utc, keep_lines, keep_read_lines
from probes.kernel.sentence import address
from probes.kernel.unexplained import UNEXPLAINED, VARIABLE, reads_as_failure
from probes.named_tuple import NamedTuple
from probes.services.sentences import (
    BEGUN,
    DCGM,
    LOG_FILES,
    MANAGER,
    NEEDLES,
    OWN_NEEDLES,
    PROGRAMS,
    RECOVERED,
    SERVICE,
    SERVICE_SENTENCES,
    SUBNET_MANAGER,
    UNITS,
)
from probes.text import ESCAPES, lazy_pattern

LINE_CHARACTERS = 1000
TEXT_CHARACTERS = 300
EVENTS_LIMIT = 200
_FORMS = 3  # of lines of one service that fit no row
_ERRORS = ("ERROR", "CRITICAL", "FATAL")
_OPENSM_ERROR = lazy_pattern(r"\w{1,60}: ERR [0-9A-F]{4}: ")
FAILED = "failed"  # the code of what systemd states of a service

_DATE = (
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:[^\W\d]{3,12}\.?|\d{1,2}[^\W\d]) {1,2}\d{1,2} \d\d:\d\d:\d\d)"
)
_TAGGED = lazy_pattern(
    rf"[ \t]*(?P<date>{_DATE})(?:\.\d{{1,9}})? \S{{1,255}} "
    r"(?P<program>[\w./@-]{1,64})(?:\[\d{1,10}\])?: (?P<text>.*)"
)
_PREFIXED = lazy_pattern(r"[\w.:-]{7,64}: (?P<program>[\w./@-]{1,64}): (?P<text>.*)")  # a node's, as talosctl prints it
_OWN = lazy_pattern(
    r"\[(?P<date>\w{3} \d\d \d{4} \d\d:\d\d:\d\d)\] \[(?P<level>[A-Z]{1,10})\] (?:\[tid \d{1,10}\] )?(?P<text>.*)"
    r"|(?P<date2>\w{3} \d\d \d\d:\d\d:\d\d) \d{6} \[[0-9A-Fa-f]{8}\] 0x[0-9a-f]{2} -> (?P<text2>.*)"
    r"|(?P<date3>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{3} +(?P<level3>[A-Z]{4,7}) +\[\d{1,10}:\d{1,10}\] (?P<text3>.*)"
)
_HEAD = lazy_pattern(r"[ \t]*(?:[^\w\s] )?(?P<unit>[\w@.-]{1,64})\.service(?: - .*)?$")
_ACTIVE = lazy_pattern(
    r"[ \t]*Active: (?P<state>[a-z]{1,16})(?: \([a-z-]{1,24}\))?(?: \(Result: (?P<result>[\w-]{1,24})\))?"
)
_NOT_FOUND = lazy_pattern(r"Unit (?P<unit>[\w@.-]{1,64})\.service could not be found")
_NOT_STARTED = lazy_pattern(  # what systemctl prints where it is started
    r"Job for (?P<unit>[\w@.-]{1,64})\.service failed because (?P<result>[\w, ]{4,60})"
)
_WITH_ZONE = lazy_pattern(r"\d{4}-\d\d-[\d T:.,]{11,24}(?:Z|[+-]\d\d:?\d\d)")
_SYSTEMD = (  # sentences of systemd about a unit: src/core/{job,unit,service}.c
    ("active", lazy_pattern(r"(?:Started|Finished) (?P<unit>\S.{1,120}?)\.?$")),
    ("inactive", lazy_pattern(r"Stopp(?:ed|ing) (?P<unit>\S.{1,120}?)\.{0,3}$")),
    ("inactive", lazy_pattern(r"(?P<unit>[\w@.-]{1,64})\.service: (?:Deactivated successfully|Succeeded)")),
    ("failed", lazy_pattern(r"(?P<unit>[\w@.-]{1,64})\.service: Failed with result '(?P<result>[\w-]{1,24})'")),
    ("failed", lazy_pattern(
        r"(?P<unit>[\w@.-]{1,64})\.service: (?:Control|Main) process exited, code=(?P<result>\w{1,12}), "
        r"status=(?!0/)(?P<status>\d{1,3})/")),
    ("failed", lazy_pattern(r"Failed to start (?P<unit>\S.{1,120}?)\.?$")),
)  # fmt: skip
_STATES = {"active": "active", "reloading": "active", "failed": "failed", "inactive": "inactive"}


class ServiceLogs(NamedTuple):
    """What the texts state."""

    states: Mapping[str, str]  # by service: active | inactive | failed | not_installed
    events: tuple[LogEvent, ...]


class _Line(NamedTuple):
    program: str | None  # that wrote it; None: the line does not show it
    date: str | None
    text: str
    is_error: bool = False  # by the level that the service gave it
    service: str | None = None  # by the form of the line


def read_saved_logs(host: Host, reader: HostReader) -> ServiceLogs | None:
    """What saved logs state; None where there are none. One that cannot be read whole is a gap."""
    logs = HostReader(host)
    stated = _read_all(host, logs)
    for source in logs.sources:
        reader.answered(source)
    if logs.missing:
        reader.gap(str(logs.missing), "service-log-unread")
    return stated


def _read_all(host: Host, reader: HostReader) -> ServiceLogs | None:
    """What is newer, or nearer to the service, comes last."""
    mixed = [argv for argv in (*KERNEL_LOG, *KERNEL_LOG_SAVED) if host.has_output(*argv)]
    own = [(*argv, name) for argv in (SERVICE_LOG, *OF_SERVICE) for name in host.saved_arguments(*argv)]
    own += [argv for argv in SERVICE_SAVED if host.has_output(*argv)]
    names = reader.names(FOLDER) or []
    files = {f"{FOLDER}/{name}" for name in names if name in LOG_FILES}
    logs = list_log_files(host)
    if not mixed and not own and not files and not logs:
        return None
    texts = [(" ".join(argv), reader.output(*argv), True) for argv in mixed]
    for paths in logs.values():  # a boot goes on in the next file of a log
        parts = [read_log_file(host, reader, path, shorten_mixed) or "" for path in paths]
        texts.append((f"{paths[-1]}*" if len(paths) > 1 else paths[0], "\n".join(parts), True))
    texts += [(path, read_log_file(host, reader, path, shorten_own), False) for path in sorted(files)]
    texts = [(source, list_lines(text) if text and mixed else text, mixed) for source, text, mixed in texts]
    texts += [(argv[-1] if argv[0] == SERVICE_LOG[0] else " ".join(argv), reader.output(*argv), False) for argv in own]
    stated = read_logs((source, text, mixed) for source, text, mixed in texts if text)
    of_services = any(text and not mixed for _, text, mixed in texts)
    return stated if of_services or stated.states or stated.events else None


def shorten_mixed(content: bytes) -> bytes:
    """What is read of a long log of many programs: the kernel's lines, and those of services."""
    return keep_read_lines(content, NEEDLES)


def shorten_own(content: bytes) -> bytes:
    """What is read of the long log of one service."""
    return keep_lines(content, [needle.encode() for needle in OWN_NEEDLES])


def read_logs(texts: Iterable[tuple[str, str, bool]]) -> ServiceLogs:
    """States and faults. Each text with its source, and whether programs of all kinds wrote it.

    >>> text = "Aug 20 09:40:11 n7 nv-fabricmanager[4]: detected number of NVSwitches don't match with any supported \\
    ... system topology, aborting fabric manager"
    >>> [(event.subject, event.code) for event in read_logs([("journal", text, False)]).events]
    [('nvidia-fabricmanager', 'fm-topology')]
    """
    states: dict[str, str] = {}
    events: dict[tuple[object, ...], LogEvent] = {}
    for source, text, mixed in texts:
        reader = _Reader(source)
        for raw in (ESCAPES.sub("", text) if "\x1b" in text else text).splitlines():
            reader.read(raw[:LINE_CHARACTERS], mixed)
        states |= reader.states
        for key, event in reader.events.items():
            before = events.get(key)
            if before is None or event.boot is None or before.boot is not None:
                events[key] = event
    return ServiceLogs(states, tuple(events.values())[:EVENTS_LIMIT])


class _Reader:
    """One text, line by line."""

    def __init__(self, source: str) -> None:
        self.states: dict[str, str] = {}
        self.events: dict[tuple[object, ...], LogEvent] = {}
        self._source = source
        self._unit: str | None = None  # of `systemctl status`, whose state follows
        self._stated: dict[str, str] = {}  # what `systemctl status` states: no line of the log below it is newer

    def read(self, raw: str, mixed: bool) -> None:
        """The next line."""
        if any(begun in raw for begun in BEGUN):  # the host, or the service: what was before is over
            self.states.clear()
            self.events = {key: event._replace(boot="earlier") for key, event in self.events.items()}
            return
        line = _split(raw)
        if line is None or (mixed and line.program is None):
            return
        if line.program == "systemd":
            self._read_systemd(line)
        elif line.program is None or line.program in PROGRAMS:
            self._read_sentence(line)
            if line.program is None:
                self._read_status(line.text)

    def _read_systemd(self, line: _Line) -> None:
        for state, pattern in _SYSTEMD:
            if match := pattern.match(line.text):
                unit = _find_unit(match["unit"])
                if unit and (unit not in self._stated or state == "failed"):
                    groups = match.groupdict()
                    detail = {name: groups[name] for name in ("result", "status") if groups.get(name)}
                    self._set_state(unit, self._stated.get(unit, state), line, detail)
                return

    def _set_state(self, unit: str, state: str, line: _Line, detail: Mapping[str, str]) -> None:
        self.states[unit] = state
        failed = (SERVICE, unit, FAILED)
        if state == "failed":
            before = self.events.get(failed)
            self._add(failed, _make_event(line, unit, FAILED, {**(dict(before.detail) if before else {}), **detail}))
        elif state == "active":
            self.events.pop(failed, None)

    def _read_status(self, text: str) -> None:
        if head := _HEAD.match(text):
            self._unit = _find_unit(f"{head['unit']}.service")
        elif missing := _NOT_FOUND.match(text):
            if unit := _find_unit(f"{missing['unit']}.service"):
                self.states[unit] = "not_installed"
        elif refused := _NOT_STARTED.match(text):
            if unit := _find_unit(f"{refused['unit']}.service"):
                self._set_state(unit, FAILED, _Line(None, None, text.strip()), {})
        elif self._unit and (active := _ACTIVE.match(text)):
            result = active["result"] if active["result"] not in (None, "success") else None
            state = _STATES.get(active["state"]) or ("failed" if result else None)
            if state:
                self._stated[self._unit] = state
                self._set_state(
                    self._unit, state, _Line(None, None, text.strip()), {"result": result} if result else {}
                )
            self._unit = None

    def _read_sentence(self, line: _Line) -> None:
        for needle, codes in RECOVERED:
            if needle in line.text:
                self.events = {key: event for key, event in self.events.items() if event.code not in codes}
                return
        for row in SERVICE_SENTENCES:
            if row.needle in line.text and (match := row.pattern.search(line.text)):
                groups = {name: value for name, value in match.groupdict().items() if value}
                if bdf := groups.pop("bdf", None):
                    groups["pci"] = address(bdf)
                service = PROGRAMS.get(line.program or "", row.module)
                event = _make_event(line, service, row.code or "", groups)
                self._add((SERVICE, service, row.code, event.detail), event)
                return
        writer = PROGRAMS.get(line.program or "") or line.service
        if writer and (line.is_error or (line.program and reads_as_failure(line.text))):
            self._add_unexplained(writer, line)

    def _add_unexplained(self, service: str, line: _Line) -> None:
        """A line of an error that no row knows: those of one form are one, of several forms the first ones count."""
        form = VARIABLE.sub("#", line.text)
        key = (SERVICE, service, UNEXPLAINED, form)
        if key in self.events or sum(key[:3] == other[:3] for other in self.events) < _FORMS:
            self._add(key, _make_event(line, service, UNEXPLAINED, {}))

    def _add(self, key: tuple[object, ...], event: LogEvent) -> None:
        before = self.events.pop(key, None)
        count = before.count + 1 if before and before.boot is None else 1
        self.events[key] = event._replace(source=self._source, count=count)


def _split(raw: str) -> _Line | None:
    """Who wrote a line, when, and what; None for one of a program that is none of these."""
    if own := _OWN.match(raw):
        text = own["text"] or own["text2"] or own["text3"] or ""
        is_error = (own["level"] or own["level3"]) in _ERRORS or _OPENSM_ERROR.match(text) is not None
        service = MANAGER if own["date"] else SUBNET_MANAGER if own["date2"] else DCGM
        return _Line(None, own["date"] or own["date2"] or own["date3"], text, is_error, service)
    if tagged := _TAGGED.match(raw):
        program = tagged["program"].rpartition("/")[2]
        return _Line(program, tagged["date"], tagged["text"]) if program == "systemd" or program in PROGRAMS else None
    if (prefixed := _PREFIXED.match(raw)) and prefixed["program"] in PROGRAMS:
        return _Line(prefixed["program"], None, prefixed["text"])
    return _Line(None, None, raw.strip())


def _find_unit(text: str) -> str | None:
    """The service that systemd names by its unit, by its description, or by both ("a.service - what it is").

    >>> _find_unit("nvidia-fabricmanager.service - NVIDIA fabric manager service"), _find_unit("Session 4 of user n")
    ('nvidia-fabricmanager', None)
    """
    name, dot, _ = text.partition(".service")
    return UNITS.get(name if dot else text.strip())


def _make_event(line: _Line, service: str, code: str, detail: Mapping[str, str]) -> LogEvent:
    at = convert_to_utc(line.date) if line.date and _WITH_ZONE.fullmatch(line.date) else None
    logged = None if at else line.date
    text = line.text[:TEXT_CHARACTERS]
    return LogEvent(SERVICE, text, at, service, code, logged=logged, detail=tuple(sorted(detail.items())))


def list_lines(text: str) -> str:
    """Lines that a service or systemd wrote, of a log of many programs."""
    starts: set[int] = set()
    for needle in NEEDLES:
        found = text.find(needle)
        while found >= 0:
            starts.add(text.rfind("\n", 0, found) + 1)
            end = text.find("\n", found)
            found = text.find(needle, end) if end >= 0 else -1
    text += "\n"
    return "".join(text[at : text.index("\n", at) + 1] for at in sorted(starts))
