"""An object store as the target: S3, and stores with its interface.

The signature is AWS Signature Version 4 for one request with its whole body ("Signature Calculations for the
Authorization Header: Transferring Payload in a Single Chunk" of the S3 API reference; its examples are the tests).
Why no client library: docs/decisions/0016.
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import http.client
import os
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, quote

from agent.ship.http_target import (
    HttpClient,
    HttpReply,
    TlsFiles,
    port_of,
    result_of_error,
    result_of_reply,
    tls_context,
)
from agent.ship.payload import CONTENT_TYPES, Payload, compress
from agent.ship.target import Attempt, BadTarget, SendResult, SendStatus, Target

_ERROR_CODE = re.compile(rb"<Code>([A-Z][A-Za-z]{2,40})</Code>")
_TEMPORARY = {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling", "OperationAborted"}
_CREDENTIALS_LIMIT_BYTES = 1 << 16


class Credentials(NamedTuple):
    """Of an account; never printed."""

    access_key: str
    secret_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"


class Bucket(NamedTuple):
    """Where a bucket is."""

    name: str
    prefix: str  # "" or "some/where/"
    region: str
    endpoint: SplitResult | None  # None: AWS's own


class S3Target(Target):
    """A PUT of each report under its object key: the same report gets the same key, however often it is sent."""

    def __init__(self, bucket: Bucket, compression: str, credentials: Credentials, tls: TlsFiles) -> None:
        name, endpoint = bucket.name, bucket.endpoint
        super().__init__(f"s3://{name}/{bucket.prefix}".rstrip("/"))
        secure, port, self._base = True, 443, f"/{name}/"
        if endpoint is not None:
            secure, port, host = endpoint.scheme == "https", port_of(endpoint), endpoint.hostname or ""
        elif "." in name:  # no certificate of theirs has a dot before its domain
            host = f"s3.{bucket.region}.amazonaws.com"
        else:
            host, self._base = f"{name}.s3.{bucket.region}.amazonaws.com", "/"
        self.client = HttpClient(host, port, tls_context(tls) if secure else None)
        host = f"[{host}]" if ":" in host else host
        self._host_header = host if port == (443 if secure else 80) else f"{host}:{port}"
        self._bucket, self._credentials, self.compression = bucket, credentials, compression

    def send(self, payload: Payload, attempt: Attempt) -> SendResult:
        """One PUT, signed for now."""
        path = encode_path(f"{self._base}{self._bucket.prefix}{payload.object_key(self.compression)}")
        body = compress(payload.data, self.compression)
        headers = {"Host": self._host_header, "Content-Type": CONTENT_TYPES[self.compression]}
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = sign("PUT", path, headers, body, self._credentials, self._bucket.region, timestamp)
        try:
            reply = self.client.request("PUT", path, headers, body, attempt)
        except (OSError, http.client.HTTPException) as error:
            return result_of_error(error)
        return _result_of_reply(reply, self.client.host)


def _result_of_reply(reply: HttpReply, host: str) -> SendResult:
    """Statuses as for HTTP, but S3 has more in its code: 400 may be a timeout or an expired token."""
    result = result_of_reply(reply, host)
    if result.status is SendStatus.ACCEPTED:
        return result
    match = _ERROR_CODE.search(reply.body)
    code = match[1].decode() if match else ""
    status = result.status
    if code in _TEMPORARY:
        status = SendStatus.RETRY
    elif status is SendStatus.REJECTED and code != "EntityTooLarge":
        status = SendStatus.BLOCKED  # a report is bytes to a store: what is wrong is never in it
    region = reply.headers.get("x-amz-bucket-region") or ""
    where = f", the bucket is in {region}" if re.fullmatch(r"[a-z0-9-]{3,40}", region) and code else ""
    return SendResult(status, f"{result.reason}{f' ({code}{where})' if code else ''}", result.retry_after)


def sign(
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: Credentials,
    region: str,
    timestamp: str,
) -> dict[str, str]:
    """All headers to send: those given (with host), and x-amz-date, x-amz-content-sha256 and authorization.

    `target`: path and query as they are sent, encoded, the query sorted. `timestamp`: UTC as "20130524T000000Z".
    """
    path, _, query = target.partition("?")
    payload_hash = hashlib.sha256(body).hexdigest()
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed |= {"x-amz-date": timestamp, "x-amz-content-sha256": payload_hash}
    if credentials.session_token:
        signed["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    canonical = "\n".join((method, path, query, lines, names, payload_hash))
    scope = f"{timestamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", timestamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(signing_key(credentials.secret_key, timestamp[:8], region), text.encode(), "sha256")
    signed["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope},SignedHeaders={names},"
        f"Signature={signature.hexdigest()}"
    )
    return signed


def signing_key(secret: str, day: str, region: str, service: str = "s3") -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key


def encode_path(path: str) -> str:
    """A path as it is signed and sent: S3 encodes once, and everything but unreserved characters and slashes."""
    return quote(path, safe="/-._~")


def load_credentials(environment: Mapping[str, str], path: str | None) -> Credentials:
    """A file that is named; else the environment; else AWS's shared file. Raises BadTarget, which holds no secret."""
    if path is None:
        key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
        if key and secret:
            return _check_credentials("the environment", key, secret, environment.get("AWS_SESSION_TOKEN"))
        shared = environment.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials")
        if not os.path.exists(shared):
            raise BadTarget("no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor --credentials")
        path = shared
    profile = environment.get("AWS_PROFILE") or "default"
    parser = configparser.RawConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_string(file.read(_CREDENTIALS_LIMIT_BYTES))
    except OSError as error:
        raise BadTarget(f"{path}: {error.strerror}") from error
    except (configparser.Error, UnicodeDecodeError):
        raise BadTarget(f"{path}: no credentials file") from None  # the error's text has the line
    if not parser.has_section(profile):
        raise BadTarget(f"{path}: no profile [{profile}]")
    values = dict(parser[profile])
    key, secret = values.get("aws_access_key_id"), values.get("aws_secret_access_key")
    if not key or not secret:
        raise BadTarget(f"{path}: [{profile}] has no aws_access_key_id or aws_secret_access_key")
    return _check_credentials(path, key, secret, values.get("aws_session_token"))


def _check_credentials(where: str, key: str, secret: str, token: str | None) -> Credentials:
    for value in (key, secret, token or "x"):
        if not re.fullmatch(r"[\x21-\x7e]+", value):
            raise BadTarget(f"{where}: a credential has a character that none can have")
    return Credentials(key, secret, token or None)
