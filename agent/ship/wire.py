"""HTTP over one connection, where every wait ends at one moment: a server that drips a byte a second wins nothing."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from typing import Any, NamedTuple

import msgspec

from agent.ship.apart import apart
from agent.version import VERSION

REPLY_LIMIT_BYTES = 1 << 16  # of a body; the rest of a larger one is not read
_PIECE_BYTES = 1 << 16
_Addresses = list[tuple[int, Any]]  # family and what connect takes


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes  # its beginning


class Wire:
    """A connection to one server, kept for the next report."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self._open: http.client.HTTPConnection | None = None
        self._line: _Until | None = None  # its socket, which http.client lets go of before we do
        self._addresses: _Addresses = []

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes, until: float) -> Reply:
        """One request and its answer, not past `until`. Raises OSError (TimeoutError, SSLError), HTTPException.

        A kept connection that the server has closed meanwhile is opened anew, once.
        """
        kept = self._open is not None
        try:
            return self._ask(method, path, headers, body, until)
        except (ConnectionError, http.client.RemoteDisconnected, ssl.SSLEOFError):
            if not kept:
                raise
        return self._ask(method, path, headers, body, until)

    def close(self) -> None:
        """Let go of the connection."""
        if self._line is not None:
            with contextlib.suppress(OSError):
                self._line.sock.close()
        self._open, self._line = None, None

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes, until: float) -> Reply:
        try:
            connection = self._connected(until)
            try:
                connection.request(method, path, body, {"User-Agent": f"fabricscope/{VERSION}", **headers})
            except (BrokenPipeError, ConnectionResetError) as error:
                return self._early(connection, error)
            return self._reply(connection)
        except BaseException:  # also an interrupt leaves no connection open
            self.close()
            raise

    def _early(self, connection: http.client.HTTPConnection, error: OSError) -> Reply:
        """The answer of a server that would not read the whole report (413, 401); the error where there is none."""
        response = http.client.HTTPResponse(connection.sock, method="POST")
        try:
            response.begin()
            reply = Reply(response.status, response.headers, b"")
        except ssl.SSLError:  # an alert says more: "certificate required"
            raise
        except (OSError, http.client.HTTPException):
            raise error from None
        self.close()
        if 200 <= reply.status < 300:  # half a report cannot have been taken
            raise error
        return reply

    def _reply(self, connection: http.client.HTTPConnection) -> Reply:
        response = connection.getresponse()
        if self._line is not None and self._line.ended:  # http.client takes the end for that of the headers
            raise http.client.IncompleteRead(b"")
        body = b""
        while len(body) < REPLY_LIMIT_BYTES:
            more = response.read(REPLY_LIMIT_BYTES - len(body))
            if not more:
                if response.length:  # it promised more than it sent
                    raise http.client.IncompleteRead(body, response.length)
                break
            body += more
        if response.will_close or not response.isclosed():
            self.close()
        return Reply(response.status, response.headers, body)

    def _connected(self, until: float) -> http.client.HTTPConnection:
        if self._open is None or self._line is None:
            self._line = _Until(self._socket(until), until)
            self._open = http.client.HTTPConnection(self.host, self.port)
            self._open.default_port = 443 if self.tls else 80  # which stands in no Host header
            socket_like: Any = self._line
            self._open.sock = socket_like
        self._line.until = until
        return self._open

    def _socket(self, until: float) -> socket.socket:
        error: OSError = OSError(0, "the name has no address")
        if not self._addresses:
            self._addresses = _resolved(self.host, self.port, until)
        for count, (family, address) in enumerate(self._addresses):
            share = left(until) / (len(self._addresses) - count)  # the first must not use the time of the others
            try:
                return self._connection(family, address, share, until)
            except ssl.SSLError:
                raise
            except OSError as failed:
                error = failed
        self._addresses = []
        raise error

    def _connection(self, family: int, address: Any, seconds: float, until: float) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(seconds)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(left(until))
            return self.tls.wrap_socket(sock, server_hostname=self.host) if self.tls else sock
        except BaseException:  # also an interrupt leaves no socket open
            sock.close()
            raise


class _Until:
    """A socket as http.client uses it; before every wait the time that is left is set anew."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self.sock = sock
        self.until = until
        self.ended = False  # the other side has nothing more to say

    def makefile(self, *_: Any) -> io.BufferedReader:
        """What responses are read from."""
        return io.BufferedReader(_Reader(self))

    def sendall(self, data: bytes) -> None:
        """In pieces, so that no piece has the whole time."""
        view = memoryview(data)
        for start in range(0, len(view), _PIECE_BYTES):
            self.sock.settimeout(left(self.until))
            self.sock.sendall(view[start : start + _PIECE_BYTES])

    def close(self) -> None:
        """Nothing: http.client closes before it has read the answer of a server that will close. The wire closes."""


class _Reader(io.RawIOBase):
    def __init__(self, sock: _Until) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.sock.settimeout(left(self._sock.until))
        count = self._sock.sock.recv_into(buffer)
        self._sock.ended = self._sock.ended or count == 0
        return count


def left(until: float) -> float:
    """Seconds until then. Raises TimeoutError where there are none."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def _resolved(host: str, port: int, until: float) -> _Addresses:
    """The addresses of a name, in the resolver's order. Raises OSError.

    An address needs no resolver. A name is asked for in a child: no timeout of ours reaches into the C library.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    else:
        return [(int(family), address) for family, _, _, _, address in found]

    def ask() -> bytes:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return msgspec.json.encode([(int(family), address) for family, _, _, _, address in found])

    try:
        answer = apart(ask, until)
    except TimeoutError as error:
        raise TimeoutError(f"no answer about the name {host}") from error
    except OSError as error:
        raise OSError(error.errno, f"the name {host} is not resolved: {error.strerror}") from error
    return [(family, tuple(address)) for family, address in msgspec.json.decode(answer, type=_Addresses)]
