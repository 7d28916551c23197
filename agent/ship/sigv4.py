"""AWS Signature Version 4 for one request of S3 with its whole body: the public algorithm, from the standard library.

"Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk" of the S3 API reference;
its examples are the tests. Pure: the time is an argument.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple
from urllib.parse import quote


class Credentials(NamedTuple):
    """Of an account; never printed."""

    access_key: str
    secret_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"


class Request(NamedTuple):
    """What is signed."""

    method: str
    path: str  # as the bucket's keys read, not encoded: "/bucket/raw/schema=1/x.json.gz"
    query: dict[str, str]
    headers: dict[str, str]  # with host; all of them are signed
    body: bytes


def signed(request: Request, credentials: Credentials, region: str, when: str) -> dict[str, str]:
    """All headers to send: those of the request, and x-amz-date, x-amz-content-sha256 and authorization.

    `when`: UTC as "20130524T000000Z".
    """
    payload = hashlib.sha256(request.body).hexdigest()
    headers = {name.lower(): " ".join(value.split()) for name, value in request.headers.items()}
    headers |= {"x-amz-date": when, "x-amz-content-sha256": payload}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        (
            request.method,
            encoded_path(request.path),
            "&".join(f"{_quoted(key)}={_quoted(value)}" for key, value in sorted(request.query.items())),
            "".join(f"{name}:{headers[name]}\n" for name in sorted(headers)),
            names,
            payload,
        )
    )
    scope = f"{when[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", when, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(signing_key(credentials.secret_key, when[:8], region), text.encode(), "sha256").hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope},SignedHeaders={names},Signature={signature}"
    )
    return headers


def signing_key(secret: str, day: str, region: str, service: str = "s3") -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key


def encoded_path(path: str) -> str:
    """A path as it is signed and sent: S3 encodes once, and everything but unreserved characters and slashes."""
    return quote(path, safe="/-._~")


def _quoted(text: str) -> str:
    return quote(text, safe="-._~")
