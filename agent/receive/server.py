"""The server: HTTP/1.1 over TLS, each connection, request and byte bounded; a slow client costs memory, not a thread.

Nothing of a body is read before the client is known. Nothing of a request reaches the log unless it is printable.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from agent.model.report import REPORT_LIMIT_BYTES
from agent.receive.admission import ANONYMOUS_SECONDS, Admission, Connection, Group, find_source
from agent.receive.clients import BadClients, Client
from agent.receive.inbox import Answer, Inbox
from agent.receive.listening import Access, AccessFiles, BadServer

HEAD_BYTES = 16384
BODIES, THREADS, ACCEPTED_AT_ONCE = 64, 2, 128
IDLE_SECONDS, CLOSE_SECONDS, PAUSE_SECONDS = 15.0, 2.0, 0.05
RELOAD_SECONDS = 30.0  # between looks at the files of certificates and clients
LOG_LINES_PER_MINUTE = 120
HEALTH_PATH = "/health"
_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) ([\x21-\x7e]{1,4096}) HTTP/1\.[01]")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):([\x20-\x7e\t]*)")
_ONCE = ("content-length", "authorization", "transfer-encoding", "idempotency-key", "host", "expect")
_SENT = ("POST", "PUT")


class ServerOptions(NamedTuple):
    """What the command line sets."""

    seconds: float  # for one request
    verbose: bool


class _Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]  # names in lower case

    @property
    def length(self) -> int:
        return int(self.headers.get("content-length", "0"))


class _Refused(Exception):
    """The request is answered with this; what follows on the connection is not read."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason)
        self.answer = answer


class _Log:
    """One line per request, at most so many a minute."""

    def __init__(self, write: Callable[[str], None], verbose: bool) -> None:
        self._write, self._verbose = write, verbose
        self._minute, self._lines, self._left_out = 0, 0, 0

    def add(self, address: str, answer: Answer) -> None:
        if answer.status < HTTPStatus.BAD_REQUEST and not self._verbose:
            return
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            if self._left_out:
                self._write(f"{self._left_out} more requests of the last minutes not listed")
            self._minute, self._lines, self._left_out = minute, 0, 0
        self._lines += 1
        if self._lines > LOG_LINES_PER_MINUTE:
            self._left_out += 1
            return
        host = f" {answer.host!r:.80}" if answer.host else ""
        self._write(f"{address}{host}: {int(answer.status)} {answer.status.phrase}: {answer.reason[:300]}")


class _Bodies:
    """Bodies that are received at the same time: a client at one source has at most as many as are left for others."""

    def __init__(self) -> None:
        self._held: Counter[Group] = Counter()
        self._changed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def hold(self, group: Group, seconds: float) -> AsyncIterator[None]:
        """Wait for a place, so long at most. Raises asyncio.TimeoutError."""
        await asyncio.wait_for(self._wait(group), seconds)
        try:
            yield
        finally:
            self._held[group] -= 1
            if not self._held[group]:
                del self._held[group]
            async with self._changed:
                self._changed.notify_all()

    async def _wait(self, group: Group) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._held[group] < BODIES - self._held.total())
            self._held[group] += 1


class Server:
    """Accepts connections until it is stopped."""

    def __init__(
        self, sockets: list[socket.socket], inbox: Inbox, files: AccessFiles, options: ServerOptions,
        write_line: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Raises BadServer, BadClients."""
        self._sockets, self._inbox, self._files, self._options = sockets, inbox, files, options
        self._access = files.load()
        self._write_line = write_line
        self._log = _Log(write_line, options.verbose)
        self._admission = Admission(self._access.tls is not None, time.monotonic())
        self._bodies = _Bodies()
        self._threads = ThreadPoolExecutor(THREADS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then finish the requests under way, for a moment. SIGHUP: look at the files of
        certificates and clients at once."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)  # handshakes that fail are no news
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        for listening in self._sockets:  # reported only now: until here SIGHUP would end the process
            address, port = listening.getsockname()[:2]
            where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            self._write_line(f"listening on {'https' if self._access.tls else 'http'}://{where}")
        reloading = loop.create_task(self._reload_regularly())
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        await stop.wait()
        reloading.cancel()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
        self._threads.shutdown()

    async def _reload_regularly(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self._reload()

    def _reload(self) -> None:
        """New connections get what the files hold now; where that cannot be used, what they held before."""
        try:
            access = self._files.load_changed()
        except (BadServer, BadClients) as error:
            self._write_line(f"certificates and clients stay as they were: {error}")
            return
        if access is not None:
            self._access = access
            self._write_line("certificates and clients are read again")

    def _accept(self, listening: socket.socket) -> None:
        """Take what waits, some at a time: those that are refused cost no handshake."""
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_AT_ONCE):
            if not self._admission.has_room():
                self._pause(listening)
                return
            try:
                sock, peer = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no descriptor left; or gone already
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause(listening)
                    return
                continue
            address = str(peer[0])
            source = find_source(address)
            if not self._admission.may_open(source, time.monotonic()):
                sock.close()
                continue
            sock.setblocking(False)
            connection = Connection(source, lambda: None)
            task = loop.create_task(self._serve(sock, address, connection))
            connection.close = task.cancel
            self._admission.add(connection)
            self._tasks.add(task)
            task.add_done_callback(partial(self._end, sock, connection))

    def _end(self, sock: socket.socket, connection: Connection, task: asyncio.Task[None]) -> None:
        """Also of one that was dropped before it began."""
        self._tasks.discard(task)
        self._admission.remove(connection)
        sock.close()

    def _pause(self, listening: socket.socket) -> None:
        """Leave new connections in the kernel's queue for a moment."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def resume() -> None:
            if listening.fileno() >= 0:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(PAUSE_SECONDS, resume)

    async def _serve(self, sock: socket.socket, address: str, connection: Connection) -> None:
        """One connection, to its end."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        access = self._access
        tls = access.tls
        timeout = ANONYMOUS_SECONDS if tls else None
        expiry = loop.call_later(ANONYMOUS_SECONDS, self._expire, connection)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=tls, ssl_handshake_timeout=timeout
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                await self._answer_requests(reader, writer, address, connection, access)
            finally:
                transport.abort()
        except (OSError, asyncio.TimeoutError, EOFError):  # the client, or its time, is gone
            pass
        finally:
            expiry.cancel()

    def _expire(self, connection: Connection) -> None:
        if connection.is_anonymous:
            connection.close()

    async def _answer_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, connection: Connection,
        access: Access,
    ) -> None:  # fmt: skip
        while True:
            started, request = False, None
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE_SECONDS)
                if access is not self._access:  # its certificate is of an authority that may be out by now
                    return
                started = True
                request = _parse_head(head)
                answer = await self._answer(request, reader, writer, connection)
                stays = request.headers.get("connection", "").lower() != "close" and not connection.is_anonymous
            except asyncio.LimitOverrunError:
                answer, stays = Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"over {HEAD_BYTES} bytes"), False
            except _Refused as refused:
                answer, stays = refused.answer, False
            except asyncio.TimeoutError:
                if not started:
                    return
                answer, stays = Answer(HTTPStatus.REQUEST_TIMEOUT, "the request took too long"), False
            except asyncio.IncompleteReadError:
                return
            if request is None or request.path != HEALTH_PATH:
                self._log.add(address, answer)
            writer.write(_encode_answer(answer, stays, request is not None and request.method == "HEAD"))
            await asyncio.wait_for(writer.drain(), CLOSE_SECONDS)
            self._admission.set_idle(connection)
            if not stays:
                await self._close(reader, writer)
                return

    async def _answer(
        self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection
    ) -> Answer:
        if request.method in ("GET", "HEAD") and request.path == HEALTH_PATH and not _has_body(request):
            health: Answer = await self._in_thread(self._inbox.check_health)
            return health
        client = self._find_client(request, writer)
        self._admission.set_busy(connection, client)
        if request.method not in _SENT:
            raise _Refused(Answer(HTTPStatus.METHOD_NOT_ALLOWED, "reports are sent by POST or PUT"))
        if "transfer-encoding" in request.headers or "content-length" not in request.headers:
            raise _Refused(Answer(HTTPStatus.LENGTH_REQUIRED, "expected Content-Length"))
        if request.length > REPORT_LIMIT_BYTES:
            raise _Refused(
                Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a report has at most {REPORT_LIMIT_BYTES} bytes")
            )
        seconds = self._options.seconds
        async with self._bodies.hold(connection.group, 2 * seconds):  # those before it have as long
            return await asyncio.wait_for(self._receive(request, client, reader, writer), seconds)

    def _find_client(self, request: _Request, writer: asyncio.StreamWriter) -> Client:
        client = self._access.clients.find(request.headers.get("authorization"), writer.get_extra_info("peercert"))
        if client is None:
            raise _Refused(Answer(HTTPStatus.UNAUTHORIZED, "no valid token or client certificate"))
        return client

    async def _receive(
        self, request: _Request, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer:
        if request.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(request.length)
        key = request.headers.get("idempotency-key")
        answer: Answer = await self._in_thread(lambda: self._inbox.take(body, key, client))
        return answer

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _close(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read a little of what the client still sends: a connection that is reset loses the answer."""
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(_discard(reader), CLOSE_SECONDS)
        writer.close()


async def _discard(reader: asyncio.StreamReader) -> None:
    left = 2 * REPORT_LIMIT_BYTES
    while left > 0 and (data := await reader.read(65536)):
        left -= len(data)


def _has_body(request: _Request) -> bool:
    return bool(request.length) or "transfer-encoding" in request.headers


def _parse_head(head: bytes) -> _Request:
    """A request's line and fields. Raises _Refused."""
    lines = head[:-4].decode("latin-1").split("\r\n")
    match = _REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        raise _Refused(Answer(HTTPStatus.BAD_REQUEST, "not an HTTP/1.1 request"))
    headers: dict[str, str] = {}
    for line in lines[1:]:
        field = _FIELD.fullmatch(line)
        name = field[1].lower() if field else ""
        if field is None or (name in _ONCE and name in headers):
            raise _Refused(Answer(HTTPStatus.BAD_REQUEST, "a header field is malformed or there twice"))
        headers[name] = field[2].strip(" \t")
    if not re.fullmatch(r"[0-9]{1,15}", headers.get("content-length", "0")):
        raise _Refused(Answer(HTTPStatus.BAD_REQUEST, "Content-Length is not a number"))
    return _Request(match[1], match[2], headers)


def _encode_answer(answer: Answer, stays: bool, head_only: bool) -> bytes:
    """Status line, fields and one line of text."""
    body = "".join(c if c.isascii() and c.isprintable() else "?" for c in answer.reason[:300]).encode() + b"\n"
    fields = [
        f"HTTP/1.1 {int(answer.status)} {answer.status.phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if stays else 'close'}",
    ]
    if answer.status == HTTPStatus.UNAUTHORIZED:
        fields.append('WWW-Authenticate: Bearer realm="fabricscope"')
    elif answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
        fields.append("Allow: POST, PUT")
    elif answer.status in (HTTPStatus.INSUFFICIENT_STORAGE, HTTPStatus.TOO_MANY_REQUESTS):
        fields.append("Retry-After: 300")
    return "\r\n".join([*fields, "", ""]).encode() + (b"" if head_only else body)
