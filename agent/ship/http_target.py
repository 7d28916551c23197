"""An HTTP endpoint as the target: POST of a report, or PUT of a file below the address.

urllib3 speaks HTTP and TLS. It has no time limit of its own but for a connect to one of several addresses: the worker
that it runs in has one (target.py).
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import urllib3.connection
import urllib3.exceptions

from agent.ship.payload import CONTENT_TYPES, Payload, compress
from agent.ship.target import Attempt, SendResult, SendStatus, Target, describe_status, result_of_status
from agent.version import VERSION

BODY_LIMIT_BYTES = 1 << 16  # of an answer; the rest of a larger one is not read


class TlsFiles(NamedTuple):
    """Files for TLS, PEM: our own certificate, and the authorities to trust instead of the system's."""

    cert: str | None = None
    key: str | None = None
    ca: str | None = None


class HttpReply(NamedTuple):
    """What a server answered."""

    status: int
    headers: urllib3.HTTPHeaderDict
    body: bytes  # its beginning


class HttpClient:
    """One server. Redirects are not followed, proxies of the environment not used, certificates always verified."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        if tls:
            self._pool: urllib3.HTTPConnectionPool = urllib3.HTTPSConnectionPool(host, port, ssl_context=tls)
        else:
            self._pool = urllib3.HTTPConnectionPool(host, port)
        self._pool.ConnectionCls = _HttpsConnection if tls else _HttpConnection
        self._address_count = 0

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes, attempt: Attempt) -> HttpReply:
        """One request and its answer. Raises OSError (SSLError too), HTTPException.

        A kept connection that the server has closed meanwhile is opened again, once.
        """
        if not self._address_count:
            attempt.set_timeout_result(SendResult(SendStatus.RETRY, f"no answer about the name {self.host}"))
            self._address_count = _count_addresses(self.host, self.port)
            attempt.set_timeout_result(SendResult(SendStatus.RETRY, "no answer in time"))
        connections = self._pool.num_connections
        try:
            return self._request(method, path, headers, body, attempt)
        except (ConnectionError, ssl.SSLEOFError):
            if not connections or self._pool.num_connections > connections:
                raise
        return self._request(method, path, headers, body, attempt)

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes, attempt: Attempt) -> HttpReply:
        seconds = max(attempt.until - time.monotonic(), 0.001) / self._address_count
        data = b""
        try:
            response = self._pool.urlopen(
                method,
                path,
                body,
                {"User-Agent": f"fabricscope/{VERSION}", **headers},
                retries=False,
                timeout=urllib3.Timeout(connect=seconds, read=None),  # the first address leaves time for the others
                preload_content=False,
                decode_content=False,
            )
            while len(data) < BODY_LIMIT_BYTES and (more := response.read(BODY_LIMIT_BYTES - len(data))):
                data += more
        except urllib3.exceptions.HTTPError as error:
            raise _find_cause(error) from error
        if len(data) >= BODY_LIMIT_BYTES:
            response.close()
        return HttpReply(response.status, response.headers, data)


class _CheckedConnection(urllib3.connection.HTTPConnection):
    """Takes no answer for more than it is."""

    send_failure: OSError | None = None

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        self.sock.settimeout(None)  # what it has is for the connect
        self.send_failure = None
        try:
            super().send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self.send_failure = error  # urllib3 reads the answer of a server that would not read all (413, 401)
            raise

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]  # as urllib3 does
        try:
            response = super().getresponse()
        except ssl.SSLError:  # an alert states more: "certificate required"
            raise
        except (OSError, http.client.HTTPException) as error:
            raise self.send_failure or error from None
        if self.send_failure and 200 <= response.status < 300:  # half a report cannot have been accepted
            raise self.send_failure
        return response


class _WholeHeaders(http.client.HTTPResponse):
    """http.client takes the end of a connection for the end of the headers."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = _Lines(self.fp.detach())  # nothing is read yet

    def begin(self) -> None:
        lines = self.fp
        super().begin()
        if lines.ended:  # type: ignore[attr-defined]  # _Lines
            raise http.client.IncompleteRead(b"")


class _Lines(io.BufferedReader):
    ended = False

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.ended = self.ended or not line
        return line


class _HttpConnection(_CheckedConnection):
    response_class = _WholeHeaders


class _HttpsConnection(_CheckedConnection, urllib3.connection.HTTPSConnection):
    response_class = _WholeHeaders


class HttpTarget(Target):
    """POST: the body is the report, encoded. PUT: a file under its object key, stored as sent."""

    def __init__(self, url: SplitResult, method: str, compression: str, token: str | None, tls: TlsFiles) -> None:
        super().__init__(_public_url(url))
        self.client = HttpClient(url.hostname or "", port_of(url), tls_context(tls) if url.scheme == "https" else None)
        self.method = method
        self.compression = compression
        self._path, self._query = quote(url.path, safe="/%:@!$&'()*+,;=~"), f"?{url.query}" if url.query else ""
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, payload: Payload, attempt: Attempt) -> SendResult:
        """One request."""
        headers = {"Idempotency-Key": payload.digest, **self._authorization}
        path = self._path or "/"
        if self.method == "PUT":
            path = f"{path.rstrip('/')}/{quote(payload.object_key(self.compression), safe='/=')}"
            headers["Content-Type"] = CONTENT_TYPES[self.compression]
        else:
            headers["Content-Type"] = "application/json"
            if self.compression != "none":
                headers["Content-Encoding"] = self.compression
        body = compress(payload.data, self.compression)
        try:
            reply = self.client.request(self.method, path + self._query, headers, body, attempt)
        except (OSError, http.client.HTTPException) as error:
            return result_of_error(error)
        return result_of_reply(reply, self.client.host)


def result_of_reply(reply: HttpReply, host: str) -> SendResult:
    """What a reply means. Redirects are not followed: not to another host with the token, and not at all."""
    if reply.status in (301, 302, 303, 307, 308):
        place = _describe_location(reply.headers.get("Location"), host)
        return SendResult(SendStatus.BLOCKED, f"{describe_status(reply.status)}{place}: redirects are not followed")
    return result_of_status(reply.status, reply.headers.get("Retry-After"))


def result_of_error(error: Exception) -> SendResult:
    """What a failure on the way means."""
    status = SendStatus.RETRY
    if isinstance(error, ssl.SSLCertVerificationError):
        status, reason = SendStatus.BLOCKED, f"its certificate is not trusted: {error.verify_message or 'not valid'}"
    elif isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        reason = "the connection was cut"
    elif isinstance(error, ssl.SSLError):
        status, reason = SendStatus.BLOCKED, f"TLS: {(error.reason or 'failed').replace('_', ' ').lower()}"
    elif isinstance(error, TimeoutError):
        reason = "no answer in time"
    elif isinstance(error, http.client.RemoteDisconnected):
        reason = "closed without an answer"
    elif isinstance(error, http.client.IncompleteRead):
        reason = "the answer was cut short"
    elif isinstance(error, http.client.HTTPException):
        reason = "the response is not HTTP"
    else:
        reason = getattr(error, "strerror", None) or type(error).__name__
    return SendResult(status, reason)


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Certificates and host names are verified, always. Raises OSError (SSLError too) with the file's name."""
    try:
        context = ssl.create_default_context(cafile=files.ca)
    except OSError as error:
        raise _name_file(files.ca or "the system's authorities", error) from error
    if context.minimum_version < ssl.TLSVersion.TLSv1_2:  # a distribution may allow older ones
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    if files.cert:
        try:
            context.load_cert_chain(files.cert, files.key, password=_refuse_password)
        except OSError as error:
            raise _name_file(f"{files.cert}, {files.key}" if files.key else files.cert, error) from error
    return context


def port_of(url: SplitResult) -> int:
    """The port of an address, or its scheme's."""
    return url.port or (443 if url.scheme == "https" else 80)


def _find_cause(error: urllib3.exceptions.HTTPError) -> Exception:
    """The error of a socket, of TLS or of HTTP that urllib3 has wrapped."""
    cause: BaseException = error
    while isinstance(cause, urllib3.exceptions.HTTPError) and not isinstance(cause, http.client.HTTPException):
        inner = next(
            (argument for argument in reversed(cause.args) if isinstance(argument, Exception)), cause.__cause__
        )
        if inner is None:
            return http.client.HTTPException(str(error))
        cause = inner
    return cause if isinstance(cause, Exception) else error


def _count_addresses(host: str, port: int) -> int:
    """How many addresses a name has. Raises OSError where it is not resolved."""
    try:
        return len(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except socket.gaierror as error:
        raise OSError(error.errno, f"the name {host} is not resolved: {error.strerror}") from error


def _refuse_password() -> str:
    raise OSError(0, "the key is encrypted, and there is no terminal to type its password")


def _name_file(path: str, error: OSError) -> OSError:
    reason = (error.reason or "no PEM").replace("_", " ").lower() if isinstance(error, ssl.SSLError) else error.strerror
    return OSError(0, f"{path}: {reason}")


def _public_url(url: SplitResult) -> str:
    """An address as people may see it: a query may hold a secret."""
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _describe_location(location: str | None, host: str) -> str:
    """Where a redirect leads. Another host is not named: it may hold a secret."""
    try:
        url = urlsplit(location or "")
        if url.hostname in (host, None):
            return f" to {url.scheme}://{host}" if url.scheme in ("http", "https") else ""
    except ValueError:
        return ""
    return " to another host"
