"""The folder into which reports are received: checked, bounded, each written atomically; `fleet ingest` empties it."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from agent.fleet.hostlist import is_plain
from agent.fleet.reading import GZIP, Naming, Text, Unfit, decompress_report, read
from agent.fleet.rows import Reader
from agent.model.report import REPORT_LIMIT_BYTES
from agent.receive.clients import EVERY_HOST, Client
from agent.reports import REPORT_FILE, replace_file, sync_folder
from agent.ship.payload import BadPayload, Payload, compress, fit_file_name, parse_payload
from probes.own_files import is_own_file, list_foreign, remove_left_behind
from probes.planted import PathUse, make_folder

_FRESH_SECONDS = 30.0  # after which files are counted again: ingest takes them away
_FULL_SECONDS = 1.0  # the same where there is no room
_LEFT_SECONDS = 3600.0  # after which a temporary file is one that a killed run left
_CLIENT_SHARE = 8  # of what is left, for all hosts of a client
_READER_ROWS, _READER_BYTES = 20_000, 4 << 20  # that a reader may hold: equal parts of reports are read once
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class Answer(NamedTuple):
    """What became of a report."""

    status: HTTPStatus
    reason: str  # one line, for the client and for the log
    host: str = ""


class Limits(NamedTuple):
    """Of the folder. What is left of it bounds each share: a host may have as much, a client eight times as much.

    However much one host sends, half of the folder is left, and a ninth however much one client sends.
    """

    size_bytes: int
    reports: int
    per_host: int


class _Checks(threading.local):
    """What `fleet ingest` would state of a report: its own reader, one for each thread."""

    def __init__(self) -> None:
        self._reader = Reader()

    def find_node(self, data: bytes) -> str:
        """The name by which the fleet keeps a report's node. Raises Unfit for what ingest would not take."""
        if self._reader.size > _READER_ROWS or self._reader.cost > _READER_BYTES:
            self._reader.clear()
        return read(Text(data, ""), self._reader, Naming(), datetime.now(timezone.utc)).label.node


@lru_cache(256)
def _list_file_names(hosts: frozenset[str]) -> frozenset[str]:
    """Of hosts, as they are in names of files."""
    return frozenset(fit_file_name(host) for host in hosts)


class ForeignFiles(Exception):
    """The folder holds what `receive` did not write: it is someone's, and nothing in it is touched."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"{names[0]!r:.80}{f' and {len(names) - 1} more' if names[1:] else ''}")


class Inbox:
    """The folder. `take` is called by several threads."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self._lock = threading.Lock()
        self._hosts: Counter[str] = Counter()  # reports, by the name in the name of a file
        self._sizes: Counter[str] = Counter()  # their bytes
        self._counted_at: float | None = None
        self._failed_at: float | None = None  # when a report could not be written, and none was since
        self._checks = _Checks()

    def open(self) -> None:
        """Create it where it is missing, and count what is in it. Raises ForeignFiles, OSError."""
        make_folder(self.path, PathUse.FOLDER, 0o750)
        foreign = list_foreign(self.path, REPORT_FILE, REPORT_FILE)
        if foreign:
            raise ForeignFiles(foreign)
        with self._lock:
            self._count()

    def take(self, body: bytes, key: str | None, client: Client) -> Answer:
        """Check a report and keep it. `key`: the request's Idempotency-Key."""
        try:
            payload = parse_payload(unpack(body))
        except TooLarge:
            return Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a report has at most {REPORT_LIMIT_BYTES} bytes")
        except BadPayload as error:
            return Answer(HTTPStatus.BAD_REQUEST, str(error))
        if key is not None and len(key) == len(payload.digest) and key.lower() != payload.digest:
            return Answer(HTTPStatus.BAD_REQUEST, "the report does not have the digest that Idempotency-Key names")
        try:
            host = self._checks.find_node(payload.data)
        except Unfit as error:
            return Answer(HTTPStatus.BAD_REQUEST, str(error))
        if not client.may_send(host):
            return Answer(HTTPStatus.FORBIDDEN, f"{client.label} may not send reports of {host!r:.80}", host)
        if not is_plain(host):
            reason = "invalid node name: expected letters, digits and .:+-_, not - at its start"
            return Answer(HTTPStatus.BAD_REQUEST, reason, host)
        try:
            with self._lock:
                answer = self._keep(payload._replace(host=fit_file_name(host)), body, host, client)
                self._failed_at = None
                return answer
        except OSError as error:
            self._failed_at = time.monotonic()
            if error.errno in _FULL_DISK:
                return Answer(HTTPStatus.INSUFFICIENT_STORAGE, f"{self.path}: {error.strerror}", host)
            where = error.filename2 or self.path  # the name of the report, where something else has it
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{where}: {error.strerror}", host)

    def check_health(self) -> Answer:
        """Whether a report would be taken now."""
        try:
            with self._lock:
                self._count_if_older(_FRESH_SECONDS)
                if self._sizes.total() >= self.limits.size_bytes or self._hosts.total() >= self.limits.reports:
                    return Answer(HTTPStatus.INSUFFICIENT_STORAGE, "full")
                failed = self._failed_at is not None and time.monotonic() - self._failed_at < _FRESH_SECONDS
            room = os.statvfs(self.path)
        except OSError as error:
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error.strerror}")
        if room.f_bavail * room.f_frsize < REPORT_LIMIT_BYTES or (room.f_files and not room.f_favail):
            return Answer(HTTPStatus.INSUFFICIENT_STORAGE, "the disk is full")
        if failed or room.f_flag & os.ST_RDONLY:
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "reports cannot be written")
        return Answer(HTTPStatus.OK, "ok")

    def _keep(self, payload: Payload, body: bytes, host: str, client: Client) -> Answer:
        path = os.path.join(self.path, payload.file_name("gzip"))
        if os.path.lexists(path) and is_own_file(path, sole_name=True):  # a second name of another file is replaced
            return Answer(HTTPStatus.OK, "already here", host)
        # what came as gzip is kept as it came: to compress a report costs as much as all the rest
        data = body if body[:2] == GZIP and len(body) <= len(payload.data) else compress(payload.data, "gzip")
        self._count_if_older(_FRESH_SECONDS)
        problem = self._find_problem(payload.host, client, len(data))
        if problem is not None:  # perhaps ingest has made room meanwhile
            self._count_if_older(_FULL_SECONDS)
            problem = self._find_problem(payload.host, client, len(data))
        if problem is not None:
            return problem._replace(host=host)
        replace_file(path, data)
        sync_folder(self.path)
        self._sizes[payload.host] += len(data)
        self._hosts[payload.host] += 1
        return Answer(HTTPStatus.CREATED, "received", host)

    def _find_problem(self, host: str, client: Client, size: int) -> Answer | None:
        """Why there is no room for a report."""
        total, count = self._sizes.total(), self._hosts.total()
        left, left_count = self.limits.size_bytes - total, self.limits.reports - count
        if self._hosts[host] >= self.limits.per_host:
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, f"{self._hosts[host]} reports of this host wait already")
        if size > left or not left_count > 0:
            waiting = f"{count} reports, {total} bytes"
            return Answer(HTTPStatus.INSUFFICIENT_STORAGE, f"{self.path} is full ({waiting}): is ingest running?")
        if self._sizes[host] + size > left:
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, f"{self._sizes[host]} bytes of this host wait already")
        if EVERY_HOST not in client.hosts:
            own = _list_file_names(client.hosts)
            total = sum(self._sizes[name] for name in own if name in self._sizes)
            count = sum(self._hosts[name] for name in own if name in self._hosts)
        if total + size > _CLIENT_SHARE * left or count >= _CLIENT_SHARE * left_count:
            waiting = f"{count} reports, {total} bytes"
            return Answer(HTTPStatus.TOO_MANY_REQUESTS, f"too much of this client waits already ({waiting})")
        return None

    def _count_if_older(self, seconds: float) -> None:
        if self._counted_at is None or time.monotonic() - self._counted_at > seconds:
            self._count()

    def _count(self) -> None:
        self._hosts, self._sizes = Counter(), Counter()
        remove_left_behind(self.path, REPORT_FILE, _LEFT_SECONDS)
        with os.scandir(self.path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # ingest has just moved it
                    if entry.name.startswith("."):
                        continue
                    host = entry.name.rsplit("_", 2)[0]
                    self._sizes[host] += entry.stat(follow_symlinks=False).st_size
                    self._hosts[host] += 1
        self._counted_at = time.monotonic()


class TooLarge(Exception):
    """More bytes than a report can have."""


def unpack(body: bytes) -> bytes:
    """The bytes of a report without gzip or zstd, never more than one can have. Raises TooLarge, BadPayload."""
    try:
        data = decompress_report(body)
    except Unfit as error:
        raise BadPayload(str(error)) from error
    if len(data) > REPORT_LIMIT_BYTES:
        raise TooLarge
    return data
