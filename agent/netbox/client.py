"""The thin client: lists, bulk requests, retries, and every failure as one of trouble.py's. All that knows pynetbox.

NetBox's REST API: docs/integrations/rest-api.md of NetBox 4.6. Bulk requests are all or nothing there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pynetbox
import requests
import urllib3
from requests.adapters import HTTPAdapter

from agent.netbox.access import Access
from agent.netbox.asking import Row
from agent.netbox.trouble import BadAccess, Forbidden, Rejected, Unsure
from agent.outputs.formatting import clean_line

CONNECT_SECONDS = 10.0
PAGE = 250  # rows of one answer; NetBox may give fewer (MAX_PAGE_SIZE)
OLDEST = (4, 3)  # modules instead of inventory items; MAC addresses as objects
_AGAIN = (429, 502, 503, 504)
_NOT_DONE = (429, 503)  # what a server says before it did anything
_MOST_WAIT_SECONDS = 60
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

    def __init__(self, access: Access, backoff_seconds: float = 0.5) -> None:
        self.url = access.url
        self._api = pynetbox.api(access.url)  # without the token: the session's own header serves every version of it
        self._api.http_session = _session(access, backoff_seconds)

    def connect(self) -> str:
        """The version of its API. Raises BadAccess."""
        with self._failing("GET"):
            version = str(self._api.version)
        said = re.match(r"(\d+)\.(\d+)", version)
        if said is None:
            raise BadAccess(f"{self.url} answers, and is no NetBox: no version in its answer")
        if (int(said[1]), int(said[2])) < OLDEST:
            raise BadAccess(
                f"{self.url} is NetBox {clean_line(version, 20)}; {OLDEST[0]}.{OLDEST[1]} or later is needed"
            )
        return clean_line(version, 20)

    def read(self, kind: str, **filters: Any) -> list[Row]:
        """All rows of a kind, page by page, in the order of their ids. Raises BadAccess."""
        rows: list[Row] = []
        with self._failing("GET", kind):
            while True:
                page = self._endpoint(kind).filter(ordering="id", limit=PAGE, offset=len(rows), **filters)
                got = [dict(row) for row in page]
                rows += got
                if not got or len(rows) >= (page.request.count or 0):
                    return rows

    def create(self, kind: str, bodies: Sequence[Row]) -> list[int]:
        """One POST."""
        with self._failing("POST", kind, len(bodies)):
            made = self._endpoint(kind).create(list(bodies))
            ids = [int(row.id) for row in made]
        if len(ids) != len(bodies):
            raise BadAccess(f"{self.url}: {len(bodies)} of {kind} were sent, and {len(ids)} came back")
        return ids

    def update(self, kind: str, bodies: Sequence[Row]) -> None:
        """One PATCH."""
        with self._failing("PATCH", kind, len(bodies)):
            made = self._endpoint(kind).update([dict(body) for body in bodies])
        if len(made) != len(bodies):  # ids that are not there are passed over
            raise Rejected(f"{len(bodies) - len(made)} of {len(bodies)} are no longer there")

    def delete(self, kind: str, ids: Sequence[int]) -> None:
        """One DELETE."""
        with self._failing("DELETE", kind):
            self._endpoint(kind).delete(list(ids))

    def _endpoint(self, kind: str) -> Any:
        app, _, name = _ENDPOINTS[kind].partition(".")
        return getattr(getattr(self._api, app), name)

    @contextlib.contextmanager
    def _failing(self, method: str, kind: str = "", sent: int = 0) -> Iterator[None]:
        """Every way in which a request fails, as an exception of ours."""
        try:
            yield
        except (pynetbox.RequestError, pynetbox.AllocationError) as error:
            raise self._answered(error.req, method, kind, sent) from error
        except (pynetbox.ContentError, requests.exceptions.InvalidJSONError) as error:
            raise BadAccess(f"{self.url} answers, and is no NetBox: the answer is no JSON") from error
        except requests.TooManyRedirects as error:
            raise BadAccess(
                f"{self.url} sends us elsewhere: give the address itself (redirects are not followed)"
            ) from error
        except requests.exceptions.SSLError as error:
            raise BadAccess(f"{self.url}: its certificate is not believed ({_reason(error)}): --ca") from error
        except requests.RequestException as error:
            if method == "POST" and not isinstance(error, requests.exceptions.ConnectTimeout) and _left(error):
                raise Unsure(f"{self.url}: {_reason(error)}") from error
            raise BadAccess(f"{self.url}: {_reason(error)}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadAccess(f"{self.url}: an answer that is not as NetBox documents it") from error

    def _answered(self, reply: requests.Response, method: str, kind: str, sent: int) -> Exception:
        """What a refusal means."""
        said = _said(reply)
        what = f"{method} {_ENDPOINTS[kind].partition('.')[2].replace('_', '-')}" if kind else method
        if method == "GET":
            if reply.status_code in (401, 403):
                return BadAccess(f"{self.url} does not let this token read{f' {kind}s' if kind else ''}: {said}")
            if not kind:
                return BadAccess(f"{self.url} answers, and is no NetBox: {said}")
            return BadAccess(f"{self.url}: {what}: {said}")
        if reply.status_code in (401, 403):
            return Forbidden(said)
        if (reply.status_code >= 500 and not _rolled_back(reply)) or reply.status_code == 429:
            if method == "POST" and reply.status_code not in _NOT_DONE:
                return Unsure(f"{self.url}: {what}: {said}")
            return BadAccess(f"{self.url}: {what}: {said}")
        return Rejected(said, _each(reply, sent))


class _Patience(urllib3.Retry):
    """Again after 429 and 5xx, and after a connection that broke; a POST only where surely nothing was done.

    500 is an exception in NetBox itself: worth another look when reading, and the same again when writing.
    """

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether an answer is worth another try."""
        again = {"GET": (*_AGAIN, 500), "POST": _NOT_DONE}.get(method.upper(), _AGAIN)
        return bool(self.total) and status_code in again

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds to wait, as the server says, within bounds."""
        try:
            return min(super().parse_retry_after(retry_after), _MOST_WAIT_SECONDS)
        except urllib3.exceptions.InvalidHeader:
            return 1.0


class _Adapter(HTTPAdapter):
    """Every request with the time limit and the authorities of this run, whatever the environment says."""

    def __init__(self, access: Access, retries: urllib3.Retry) -> None:
        self._verify = access.ca or True
        self._timeout = (min(access.timeout_seconds, CONNECT_SECONDS), access.timeout_seconds)
        self._own_authorities = access.ca is not None
        super().__init__(max_retries=retries)

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """One request."""
        options["timeout"] = self._timeout
        if self._own_authorities:
            options["verify"] = self._verify  # REQUESTS_CA_BUNDLE would come first
        return super().send(request, *args, **options)


def _session(access: Access, backoff_seconds: float) -> requests.Session:
    retries = _Patience(
        total=5,
        connect=2,
        read=1,  # of a server that says nothing for a minute, the second minute tells enough
        backoff_factor=backoff_seconds,
        backoff_max=_MOST_WAIT_SECONDS,
        allowed_methods=("GET", "PATCH", "DELETE"),  # of answers that never came; `is_retry` is about those that did
        raise_on_status=False,
    )
    session = requests.Session()
    session.auth = _authorized(access.token)  # as `auth`: .netrc would take the place of a header
    session.max_redirects = 0  # a redirected POST becomes a GET, and would seem to have been done
    session.adapters.clear()
    session.mount(access.url, _Adapter(access, retries))  # the token goes nowhere else, whatever an answer says
    return session


def _authorized(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    """Tokens since NetBox 4.5 ("nbt_<key>.<secret>") go by another word than those before."""
    word = "Bearer" if token.startswith("nbt_") and "." in token else "Token"

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"{word} {token}"
        return request

    return sign


def _left(error: requests.RequestException) -> bool:
    """Whether the request may have reached the server: not where the connection was never made."""
    cause = getattr(error.args[0] if error.args else None, "reason", None)
    return not isinstance(cause, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)


def _reason(error: Exception) -> str:
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
    said = getattr(inner, "verify_message", None) or getattr(inner, "strerror", None) or str(inner)
    return clean_line(re.sub(r"<[^<>]{0,200}object at 0x[0-9a-f]+>:? ?", "", str(said)), 160) or type(inner).__name__


def _said(reply: requests.Response) -> str:
    try:
        told = _flat(reply.json())
    except ValueError:
        told = ""
    return f"{reply.status_code} {clean_line(reply.reason or '', 40)}" + (f": {clean_line(told, 300)}" if told else "")


def _rolled_back(reply: requests.Response) -> bool:
    """NetBox's own word of an exception: each request is one transaction, so nothing of it was done."""
    try:
        told = reply.json()
    except ValueError:
        return False
    return isinstance(told, dict) and "exception" in told


def _each(reply: requests.Response, sent: int) -> list[str]:
    """Errors by object, as a bulk POST has them; nothing where the answer is another."""
    try:
        told = reply.json()
    except ValueError:
        return []
    if not isinstance(told, list) or len(told) != sent or not all(isinstance(row, dict) for row in told):
        return []
    return [clean_line(_flat(row), 300) for row in told]


def _flat(value: Any) -> str:
    """Errors of Django REST framework in one line: {"slug": ["taken"]} -> "slug: taken"."""
    if isinstance(value, dict):
        if "exception" in value:
            return str(value.get("error", "")).partition("\n")[0]
        plain = ("detail", "non_field_errors", "__all__")
        parts = [_flat(each) if name in plain else f"{name}: {_flat(each)}" for name, each in value.items()]
        return "; ".join(part for part in parts if part)
    if isinstance(value, list):
        return " ".join(part for part in (_flat(each) for each in value) if part)
    return str(value)
