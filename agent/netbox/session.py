"""How NetBox is reached: time limits, retries, the token, the authorities."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import requests
import urllib3
from requests.adapters import HTTPAdapter

from agent.netbox.api import NetBoxAccess
from probes.time_limit import TimeIsUp, TimeLimit

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
