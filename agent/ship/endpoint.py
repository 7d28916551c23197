"""An HTTP endpoint as the target: POST of a report, or PUT of a file below the address."""

from __future__ import annotations

import http.client
import ssl
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from agent.ship.answer import Answer, Kind, by_status, named
from agent.ship.parcel import Parcel, packed
from agent.ship.wire import Reply, Wire


class Tls(NamedTuple):
    """Files for TLS, PEM: who we are, and whom to believe instead of the system's authorities."""

    cert: str | None = None
    key: str | None = None
    ca: str | None = None


class Endpoint:
    """POST: the body is the report, encoded. PUT: a file under its landing key, stored as sent."""

    def __init__(self, url: SplitResult, method: str, compress: str, token: str | None, tls: Tls) -> None:
        self.shown = shown(url)
        self.wire = Wire(url.hostname or "", port_of(url), context(tls) if url.scheme == "https" else None)
        self.method = method
        self.compress = compress
        self._path, self._query = quote(url.path, safe="/%:@!$&'()*+,;=~"), f"?{url.query}" if url.query else ""
        self._own = {"Authorization": f"Bearer {token}"} if token else {}

    def hand_over(self, parcel: Parcel, until: float) -> Answer:
        """One request."""
        headers = {"Idempotency-Key": parcel.digest, **self._own}
        path = self._path or "/"
        if self.method == "PUT":
            path = f"{path.rstrip('/')}/{quote(parcel.landing(self.compress), safe='/=')}"
            types = {"gzip": "application/gzip", "zstd": "application/zstd", "none": "application/json"}
            headers["Content-Type"] = types[self.compress]
        else:
            headers["Content-Type"] = "application/json"
            if self.compress != "none":
                headers["Content-Encoding"] = self.compress
        body = packed(parcel.data, self.compress)
        try:
            reply = self.wire.ask(self.method, path + self._query, headers, body, until)
        except (OSError, http.client.HTTPException) as error:
            return failed(error)
        return answered(reply, self.wire.host)


def answered(reply: Reply, host: str) -> Answer:
    """What a reply means. Redirects are not followed: not to another host with the token, and not at all."""
    if reply.status in (301, 302, 303, 307, 308):
        place = _place(reply.headers.get("Location"), host)
        return Answer(Kind.BLOCKED, f"{named(reply.status)}{place}: redirects are not followed")
    return by_status(reply.status, reply.headers.get("Retry-After"))


def failed(error: Exception) -> Answer:
    """What a failure on the way means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Answer(Kind.BLOCKED, f"its certificate is not believed: {error.verify_message or 'not valid'}")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Answer(Kind.AGAIN, "the connection was cut")
    if isinstance(error, ssl.SSLError):
        return Answer(Kind.BLOCKED, f"TLS: {(error.reason or 'failed').replace('_', ' ').lower()}")
    if isinstance(error, TimeoutError):
        return Answer(Kind.AGAIN, str(error) if "name" in str(error) else "no answer in time")
    if isinstance(error, http.client.RemoteDisconnected):
        return Answer(Kind.AGAIN, "closed without an answer")
    if isinstance(error, http.client.IncompleteRead):
        return Answer(Kind.AGAIN, "the answer was cut short")
    if isinstance(error, http.client.HTTPException):
        return Answer(Kind.AGAIN, "the answer is no HTTP")
    return Answer(Kind.AGAIN, getattr(error, "strerror", None) or type(error).__name__)


def context(tls: Tls) -> ssl.SSLContext:
    """Certificates and host names are verified, always. Raises OSError (SSLError too) with the file's name."""
    try:
        made = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise _about(tls.ca or "the system's authorities", error) from error
    if made.minimum_version < ssl.TLSVersion.TLSv1_2:  # a distribution may allow older ones
        made.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.cert:
        try:
            made.load_cert_chain(tls.cert, tls.key, password=_no_password)
        except OSError as error:
            raise _about(f"{tls.cert}, {tls.key}" if tls.key else tls.cert, error) from error
    return made


def _no_password() -> str:
    raise OSError(0, "the key is encrypted, and nobody is there to type its password")


def _about(path: str, error: OSError) -> OSError:
    why = error.reason or "no PEM" if isinstance(error, ssl.SSLError) else error.strerror
    return OSError(0, f"{path}: {str(why).replace('_', ' ').lower() if isinstance(error, ssl.SSLError) else why}")


def port_of(url: SplitResult) -> int:
    """The port of an address, or its scheme's."""
    return url.port or (443 if url.scheme == "https" else 80)


def shown(url: SplitResult) -> str:
    """An address as people may see it: a query may hold a secret."""
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _place(location: str | None, host: str) -> str:
    """Where a redirect leads. Another host is not named: whoever writes it there may have written a secret."""
    try:
        url = urlsplit(location or "")
        if url.hostname in (host, None):
            return f" to {url.scheme}://{host}" if url.scheme in ("http", "https") else ""
    except ValueError:
        return ""
    return " to another host"
