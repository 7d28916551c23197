"""An object store as the target: S3, and what speaks like it."""

from __future__ import annotations

import configparser
import http.client
import os
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult

from agent.ship.answer import Answer, BadTarget, Kind
from agent.ship.endpoint import Tls, answered, context, failed, port_of
from agent.ship.parcel import Parcel, packed
from agent.ship.sigv4 import Credentials, Request, encoded_path, signed
from agent.ship.wire import Reply, Wire

_CODE = re.compile(rb"<Code>([A-Z][A-Za-z]{2,40})</Code>")
_PASSING = {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling", "OperationAborted"}
_LIMIT_BYTES = 1 << 16
_TYPES = {"gzip": "application/gzip", "zstd": "application/zstd", "none": "application/json"}


class Store(NamedTuple):
    """Where a bucket is."""

    bucket: str
    prefix: str  # "" or "some/where/"
    region: str
    endpoint: SplitResult | None  # None: AWS's own


class Bucket:
    """A PUT of each report under its landing key: the same report lands on the same key, however often it is sent."""

    def __init__(self, store: Store, compress: str, credentials: Credentials, tls: Tls) -> None:
        name, own = store.bucket, store.endpoint
        self.shown = f"s3://{name}/{store.prefix}".rstrip("/")
        if own is not None:
            secure, port, self._host, self._base = own.scheme == "https", port_of(own), own.hostname or "", f"/{name}/"
        elif "." in name:  # no certificate of theirs has a dot before its domain
            secure, port, self._host, self._base = True, 443, f"s3.{store.region}.amazonaws.com", f"/{name}/"
        else:
            secure, port, self._host, self._base = True, 443, f"{name}.s3.{store.region}.amazonaws.com", "/"
        self.wire = Wire(self._host, port, context(tls) if secure else None)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._header = host if port == (443 if secure else 80) else f"{host}:{port}"
        self._store, self._credentials, self.compress = store, credentials, compress

    def hand_over(self, parcel: Parcel, until: float) -> Answer:
        """One PUT, signed for now."""
        path = f"{self._base}{self._store.prefix}{parcel.landing(self.compress)}"
        body = packed(parcel.data, self.compress)
        request = Request("PUT", path, {}, {"Host": self._header, "Content-Type": _TYPES[self.compress]}, body)
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = signed(request, self._credentials, self._store.region, now)
        try:
            return _read(self.wire.ask("PUT", encoded_path(path), headers, body, until), self._host)
        except (OSError, http.client.HTTPException) as error:
            return failed(error)


def _read(reply: Reply, host: str) -> Answer:
    """Statuses as everywhere, but that S3 says more in its code: 400 may be a time-out or an expired token."""
    answer = answered(reply, host)
    if answer.kind is Kind.TAKEN:
        return answer
    found = _CODE.search(reply.body)
    code = found[1].decode() if found else ""
    kind = answer.kind
    if code in _PASSING:
        kind = Kind.AGAIN
    elif kind is Kind.REFUSED and code != "EntityTooLarge":
        kind = Kind.BLOCKED  # a report is bytes to a store: what is wrong is never in it
    region = reply.headers.get("x-amz-bucket-region") or ""
    where = f", the bucket is in {region}" if re.fullmatch(r"[a-z0-9-]{3,40}", region) and code else ""
    return Answer(kind, f"{answer.why}{f' ({code}{where})' if code else ''}", answer.wait)


def found_credentials(environment: Mapping[str, str], path: str | None) -> Credentials:
    """A file that is named; else the environment; else AWS's shared file. Raises BadTarget, which holds no secret."""
    if path is None:
        key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
        if key and secret:
            return _checked("the environment", key, secret, environment.get("AWS_SESSION_TOKEN"))
        shared = environment.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials")
        if not os.path.exists(shared):
            raise BadTarget("no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor --credentials")
        path = shared
    profile = environment.get("AWS_PROFILE") or "default"
    parser = configparser.RawConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_string(file.read(_LIMIT_BYTES))
    except OSError as error:
        raise BadTarget(f"{path}: {error.strerror}") from error
    except (configparser.Error, UnicodeDecodeError):
        raise BadTarget(f"{path}: no credentials file") from None  # the error's text has the line
    if not parser.has_section(profile):
        raise BadTarget(f"{path}: no profile [{profile}]")
    values = dict(parser[profile])
    key, secret = values.get("aws_access_key_id"), values.get("aws_secret_access_key")
    if not key or not secret:
        raise BadTarget(f"{path}: [{profile}] lacks aws_access_key_id or aws_secret_access_key")
    return _checked(path, key, secret, values.get("aws_session_token"))


def _checked(where: str, key: str, secret: str, token: str | None) -> Credentials:
    for each in (key, secret, token or "x"):
        if not re.fullmatch(r"[\x21-\x7e]+", each):
            raise BadTarget(f"{where}: a credential has a character that none can have")
    return Credentials(key, secret, token or None)
