"""The thin client: lists, bulk requests, and every failure as one of trouble.py's. The only user of pynetbox.

NetBox's REST API: docs/integrations/rest-api.md of NetBox 4.6. Bulk requests are all or nothing there.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pynetbox
import requests
import urllib3
from requests.adapters import HTTPAdapter

from agent.netbox.api import NetBoxAccess, NetBoxError, OutcomeUnknown, RequestForbidden, RequestRejected, Row
from agent.outputs.formatting import clean_line
from probes.time_limit import TimeIsUp, TimeLimit

READ_SECONDS = 3600.0  # of all that is read: a million rows at four pages a second come in 20 minutes
MOST_ROWS = 1_000_000  # of one kind
PAGE_ROWS = 250  # rows of one answer; NetBox may give fewer (MAX_PAGE_SIZE)
MINIMUM_VERSION = (4, 3)  # modules instead of inventory items; MAC addresses as objects
_DEEPEST = 20  # of the errors in an answer
_ENDPOINTS = {
    "device": "dcim.devices",
    "module bay": "dcim.module_bays",
    "module": "dcim.modules",
    "module type": "dcim.module_types",
    "manufacturer": "dcim.manufacturers",
    "interface": "dcim.interfaces",
    "MAC address": "dcim.mac_addresses",
    "cable": "dcim.cables",
    "site": "dcim.sites",
    "role": "dcim.device_roles",
    "device type": "dcim.device_types",
    "tag": "extras.tags",
    "custom field": "extras.custom_fields",
    "journal entry": "extras.journal_entries",
}


class NetBox:
    """A NetBox behind its REST API."""

    def __init__(self, access: NetBoxAccess, backoff_seconds: float = 0.5) -> None:
        self.url = access.url
        self._read_until = time.monotonic() + READ_SECONDS
        self._api = pynetbox.api(access.url)  # without the token: the session's own header serves every version of it
        self._api.http_session = make_session(access, backoff_seconds)

    def connect(self) -> str:
        """The version of its API. Raises BadAccess."""
        with self._translate_errors("GET"):
            version = str(self._api.version)
        match = re.match(r"(\d+)\.(\d+)", version)
        if match is None:
            raise NetBoxError(f"{self.url} is not a NetBox: no version in its response")
        if (int(match[1]), int(match[2])) < MINIMUM_VERSION:
            minimum = ".".join(map(str, MINIMUM_VERSION))
            raise NetBoxError(f"{self.url} is NetBox {clean_line(version, 20)}; {minimum} or later is needed")
        return clean_line(version, 20)

    def read(self, kind: str, **filters: Any) -> list[Row]:
        """All rows of a kind, page by page, in the order of their ids. Raises BadAccess."""
        rows: list[Row] = []
        with self._translate_errors("GET", kind):
            while True:
                page = self._endpoint(kind).filter(ordering="id", limit=PAGE_ROWS, offset=len(rows), **filters)
                new_rows = [dict(row) for row in page]
                ids = [int(row["id"]) for row in (*rows[-1:], *new_rows)]
                if ids != sorted(set(ids)) or len(rows) > MOST_ROWS:
                    raise ValueError(ids)  # the same page again and again has no end
                if time.monotonic() > self._read_until:
                    raise NetBoxError(f"{self.url}: too slow: not all was read in {READ_SECONDS:g} s")
                rows += new_rows
                if not new_rows or len(rows) >= (page.request.count or 0):
                    return rows

    def create(self, kind: str, bodies: Sequence[Row]) -> list[int]:
        """One POST."""
        with self._translate_errors("POST", kind, len(bodies)):
            created = self._endpoint(kind).create(list(bodies))
            ids = [int(row.id) for row in created]
        if len(ids) != len(bodies):
            raise NetBoxError(f"{self.url}: {len(bodies)} of {kind} were sent, and {len(ids)} came back")
        return ids

    def update(self, kind: str, bodies: Sequence[Row]) -> None:
        """One PATCH."""
        with self._translate_errors("PATCH", kind, len(bodies)):
            updated = self._endpoint(kind).update([dict(body) for body in bodies])
        if len(updated) != len(bodies):  # ids that are not there are passed over
            raise RequestRejected(f"{len(bodies) - len(updated)} of {len(bodies)} are no longer there")

    def delete(self, kind: str, ids: Sequence[int]) -> None:
        """One DELETE."""
        with self._translate_errors("DELETE", kind):
            self._endpoint(kind).delete(list(ids))

    def _endpoint(self, kind: str) -> Any:
        app, _, name = _ENDPOINTS[kind].partition(".")
        return getattr(getattr(self._api, app), name)

    @contextlib.contextmanager
    def _translate_errors(self, method: str, kind: str = "", sent: int = 0) -> Iterator[None]:
        """Every way in which a request fails, as an exception of ours."""
        try:
            yield
        except (pynetbox.RequestError, pynetbox.AllocationError) as error:
            raise self._error_of_reply(error.req, method, kind, sent) from error
        except (pynetbox.ContentError, requests.exceptions.InvalidJSONError) as error:
            reply = error.req if isinstance(error, pynetbox.ContentError) else error.response
            raise NetBoxError(f"{self.url} is not a NetBox: no JSON in its response{_describe_start(reply)}") from error
        except requests.TooManyRedirects as error:
            raise NetBoxError(
                f"{self.url} redirects to another address: use that address (redirects are not followed)"
            ) from error
        except requests.exceptions.SSLError as error:
            raise NetBoxError(
                f"{self.url}: its certificate is not trusted ({_innermost_reason(error)}): --ca"
            ) from error
        except requests.RequestException as error:
            if (
                method == "POST"
                and not isinstance(error, requests.exceptions.ConnectTimeout)
                and _may_have_arrived(error)
            ):
                raise OutcomeUnknown(f"{self.url}: {_innermost_reason(error)}") from error
            raise NetBoxError(f"{self.url}: {_innermost_reason(error)}") from error
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise NetBoxError(f"{self.url}: an unexpected response") from error

    def _error_of_reply(self, reply: requests.Response, method: str, kind: str, sent: int) -> Exception:
        """What a refusal means."""
        text = _describe_reply(reply)
        what = f"{method} {_ENDPOINTS[kind].partition('.')[2].replace('_', '-')}" if kind else method
        if method == "GET":
            if reply.status_code in (401, 403):
                return NetBoxError(f"{self.url} does not let this token read{f' {kind}s' if kind else ''}: {text}")
            if not kind:
                return NetBoxError(f"{self.url} is not a NetBox: {text}")
            return NetBoxError(f"{self.url}: {what}: {text}")
        if reply.status_code in (401, 403):
            return RequestForbidden(text)
        if (reply.status_code >= 500 and not _rolled_back(reply)) or reply.status_code == 429:
            if method == "POST" and reply.status_code not in NOT_DONE_STATUSES:
                return OutcomeUnknown(f"{self.url}: {what}: {text}")
            return NetBoxError(f"{self.url}: {what}: {text}")
        return RequestRejected(text, _errors_by_object(reply, sent))


def _may_have_arrived(error: requests.RequestException) -> bool:
    """Whether the request may have reached the server: not where the connection was never made."""
    cause = getattr(error.args[0] if error.args else None, "reason", None)
    return not isinstance(cause, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)


def _innermost_reason(error: Exception) -> str:
    """The innermost reason, without addresses of objects."""
    inner: Any = error
    for _ in range(6):
        parts = (getattr(inner, "reason", None), *getattr(inner, "args", ()))
        deeper = next((part for part in parts if isinstance(part, Exception)), None)
        if deeper is None:
            break
        inner = deeper
    if isinstance(inner, urllib3.exceptions.NewConnectionError) and isinstance(inner.__cause__, OSError):
        inner = inner.__cause__  # some versions count these among the timeouts
    elif isinstance(inner, TimeoutError | urllib3.exceptions.TimeoutError | requests.Timeout):
        return "no answer in time"
    text = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or str(inner)
    return clean_line(re.sub(r"<[^<>]{0,200}object at 0x[0-9a-f]+>:? ?", "", str(text)), 160) or type(inner).__name__


def _read_json(reply: requests.Response) -> Any:
    """What an answer holds; None where it is no JSON, or nested too deeply."""
    try:
        return reply.json()
    except (ValueError, RecursionError):
        return None


def _describe_reply(reply: requests.Response) -> str:
    text = _flatten_errors(_read_json(reply))
    return f"{reply.status_code} {clean_line(reply.reason or '', 40)}" + (f": {clean_line(text, 300)}" if text else "")


def _describe_start(reply: requests.Response | None) -> str:
    """What came in place of JSON: a proxy's page is known by its first words."""
    if reply is None:
        return ""
    start = clean_line(reply.content[:80].decode(errors="replace"), 60)
    return f", but {len(reply.content)} bytes" + (f" that begin {start!r}" if start else "")


def _rolled_back(reply: requests.Response) -> bool:
    """NetBox's own word of an exception: each request is one transaction, so nothing of it was done."""
    body = _read_json(reply)
    return isinstance(body, dict) and "exception" in body


def _errors_by_object(reply: requests.Response, sent: int) -> list[str]:
    """Errors by object, as a bulk POST has them; nothing where the answer is another."""
    body = _read_json(reply)
    if not isinstance(body, list) or len(body) != sent or not all(isinstance(row, dict) for row in body):
        return []
    return [clean_line(_flatten_errors(row), 300) for row in body]


def _flatten_errors(value: Any, depth: int = 0) -> str:
    """Errors of Django REST framework in one line: {"slug": ["taken"]} -> "slug: taken"."""
    if value is None or depth > _DEEPEST:
        return ""
    depth += 1
    if isinstance(value, dict):
        if "exception" in value:
            return str(value.get("error", "")).partition("\n")[0]
        plain = ("detail", "non_field_errors", "__all__")
        parts = [
            _flatten_errors(item, depth) if name in plain else f"{name}: {_flatten_errors(item, depth)}"
            for name, item in value.items()
        ]
        return "; ".join(part for part in parts if part)
    if isinstance(value, list):
        return " ".join(part for part in (_flatten_errors(item, depth) for item in value) if part)
    return str(value)


CONNECT_SECONDS = 10.0
_RETRY_STATUSES = (429, 502, 503, 504)
_MOST_WAIT_SECONDS = 60
NOT_DONE_STATUSES = (429, 503)  # what a server states before it did anything
MOST_BYTES = 64 << 20  # of one answer


class _RetryPolicy(urllib3.Retry):
    """Again after 429 and 5xx, and after a connection that broke; a POST only where surely nothing was done.

    500 is an exception in NetBox itself: worth another look when reading, and the same again when writing.
    """

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether an answer is worth another try."""
        again = {"GET": (*_RETRY_STATUSES, 500), "POST": NOT_DONE_STATUSES}.get(method.upper(), _RETRY_STATUSES)
        return bool(self.total) and status_code in again

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds to wait, as the server states, within bounds."""
        try:
            return min(super().parse_retry_after(retry_after), _MOST_WAIT_SECONDS)
        except urllib3.exceptions.InvalidHeader:
            return 1.0


class _BoundConnection:
    """A connection whose steps have a time limit as a whole: the one of a socket begins again with every byte."""

    seconds: ClassVar[float]

    def connect(self) -> None:
        """With TLS and its handshake."""
        with _bound_time(min(self.seconds, CONNECT_SECONDS)):
            super().connect()  # type: ignore[misc]

    def getresponse(self) -> Any:
        """The status and the headers."""
        with _bound_time(self.seconds):
            return super().getresponse()  # type: ignore[misc]


@contextlib.contextmanager
def _bound_time(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in what takes longer, however many bytes come."""
    try:
        with TimeLimit(time.monotonic() + seconds):
            yield
    except TimeIsUp:
        raise TimeoutError("no answer in time") from None


def _bind_pools(manager: Any, seconds: float) -> Any:
    """A pool manager of urllib3 whose connections are bound in time."""
    pools = {}
    for scheme, pool in manager.pool_classes_by_scheme.items():
        connection = type("Connection", (_BoundConnection, pool.ConnectionCls), {"seconds": seconds})
        pools[scheme] = type("Pool", (pool,), {"ConnectionCls": connection})
    manager.pool_classes_by_scheme = pools
    return manager


class _Adapter(HTTPAdapter):
    """Every request with the time limit and the authorities of this run, whatever the environment states."""

    def __init__(self, access: NetBoxAccess, retries: urllib3.Retry) -> None:
        self._verify = access.ca or True
        self._timeout = (min(access.timeout_seconds, CONNECT_SECONDS), access.timeout_seconds)
        self._own_authorities = access.ca is not None
        super().__init__(max_retries=retries)
        _bind_pools(self.poolmanager, access.timeout_seconds)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """The pools of a proxy."""
        if proxy in self.proxy_manager:
            return self.proxy_manager[proxy]
        return _bind_pools(super().proxy_manager_for(proxy, **options), self._timeout[1])

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """One request."""
        options["timeout"] = self._timeout
        if self._own_authorities:
            options["verify"] = self._verify  # REQUESTS_CA_BUNDLE would come first
        reply = super().send(request, *args, **options)
        body = bytearray()
        try:
            with _bound_time(self._timeout[1]):
                for chunk in reply.iter_content(1 << 16):
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise requests.exceptions.ContentDecodingError(f"an answer of more than {MOST_BYTES >> 20} MiB")
        except TimeoutError as error:
            reply.close()
            raise requests.ReadTimeout(str(error), request=request) from error
        except requests.exceptions.ContentDecodingError:
            reply.close()
            raise
        reply._content = bytes(body)  # what `content` gives once it was read
        return reply


def make_session(access: NetBoxAccess, backoff_seconds: float) -> requests.Session:
    """A session that sends the token to the address of NetBox alone."""
    retries = _RetryPolicy(
        total=5,
        connect=2,
        read=1,  # of a server that reports nothing for a minute, the second minute shows enough
        backoff_factor=backoff_seconds,
        backoff_max=_MOST_WAIT_SECONDS,
        allowed_methods=("GET", "PATCH", "DELETE"),  # of answers that never came; `is_retry` is about those that did
        raise_on_status=False,
    )
    session = requests.Session()
    session.auth = _make_auth(access.token)  # as `auth`: .netrc would take the place of a header
    session.max_redirects = 0  # a redirected POST becomes a GET, and would seem to have been done
    session.adapters.clear()
    session.mount(access.url, _Adapter(access, retries))  # the token goes nowhere else, whatever an answer states
    return session


def _make_auth(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Tokens since NetBox 4.5 ("nbt_<key>.<secret>") go by another word than those before."""
    word = "Bearer" if token.startswith("nbt_") and "." in token else "Token"

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"{word} {token}"
        return request

    return sign
