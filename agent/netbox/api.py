"""Address and token of NetBox: an address without secrets, a token from a file or the environment."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from agent.loopback import is_loopback

TOKEN, URL = "NETBOX_TOKEN", "NETBOX_URL"  # variables
_TOKEN_LIMIT_BYTES = 1 << 12


class NetBoxAccess(NamedTuple):
    """What the client needs. `token` is in no message, and repr does not show it."""

    url: str
    token: str
    ca: str | None = None
    timeout_seconds: float = 60.0

    def __repr__(self) -> str:
        return f"Access({self.url!r})"


def resolve_access(
    url: str | None, token_file: str | None, ca: str | None, timeout_seconds: float, environment: Mapping[str, str]
) -> NetBoxAccess:
    """Checked before anything is sent. Raises BadAccess."""
    place = _check_url(url or environment.get(URL) or "")
    if ca is not None:
        if place.startswith("http:"):
            raise NetBoxError("--ca is for https")
        _check_readable(ca)
    token = _read_token(token_file) if token_file else _parse_token(environment.get(TOKEN, "").encode(), TOKEN)
    return NetBoxAccess(place, token, ca, timeout_seconds)


def _check_url(text: str) -> str:
    """The address without what pynetbox adds. It is repeated in messages, so it may hold no secret."""
    if not text:
        raise NetBoxError(f"--url (or {URL}) is missing: the address of NetBox, https://HOST")
    if re.search(r"[\x00-\x20\x7f]", text) or not re.match(r"https?://[^/?#]", text):
        raise NetBoxError("--url: the address is https://HOST, with a path where NetBox has one")
    try:
        url = urlsplit(text)
        if url.port == 0 or not url.hostname:
            raise ValueError
    except ValueError as error:
        raise NetBoxError("--url: not a valid address") from error
    if "@" in url.netloc:
        raise NetBoxError(
            f"--url: a user name or password in the address is visible to others: use --token-file or {TOKEN}"
        )
    if url.query or url.fragment:
        raise NetBoxError("--url: '?' and '#' are not allowed in the address")
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        raise NetBoxError("--url: a token is not sent without TLS; the address has to begin with https://")
    path = url.path.rstrip("/").removesuffix("/api")
    return f"{url.scheme}://{url.netloc}{path}"


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError as error:
        raise NetBoxError(f"--ca: {path}: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise NetBoxError(f"--ca: {path}: no PEM certificate in it")


def _read_token(path: str) -> str:
    """One line of a file. Raises BadAccess, which does not repeat it."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_TOKEN_LIMIT_BYTES + 1)
    except OSError as error:
        raise NetBoxError(f"{path}: {error.strerror}") from error
    if stat.S_ISREG(mode) and mode & 0o007:
        raise NetBoxError(f"{path}: all users of this host can read this token: chmod o= {path}")
    return _parse_token(data, path)


def _parse_token(data: bytes, where: str) -> str:
    token = data.strip()
    if not token:
        raise NetBoxError(
            f"{where} is empty: --token-file or {TOKEN} holds the token of NetBox"
            if where == TOKEN
            else f"{where}: no token in it"
        )
    if len(token) > _TOKEN_LIMIT_BYTES or not re.fullmatch(rb"[\x21-\x7e]+", token):
        raise NetBoxError(f"{where}: a token is one word")
    return token.decode("ascii")


Row = dict[str, Any]

VALUES_PER_REQUEST = 40  # values of one filter: an address of some 2,000 characters, which every server takes


class Client(Protocol):
    """What the rest of this package uses of NetBox."""

    def read(self, kind: str, **filters: Any) -> list[Row]:
        """All rows of a kind that the filters let through. Raises BadAccess."""

    def create(self, kind: str, bodies: Sequence[Row]) -> list[int]:
        """Make all or none; their ids, in the same order. Raises Rejected, Unsure, BadAccess."""

    def update(self, kind: str, bodies: Sequence[Row]) -> None:
        """Change all or none; each body has its id. Raises Rejected, BadAccess."""

    def delete(self, kind: str, ids: Sequence[int]) -> None:
        """Delete all or none. Raises Rejected, BadAccess."""


class NetBoxError(Exception):
    """NetBox cannot be asked: a wrong address or token, no server there, no right to read, no NetBox at all."""


class RequestRejected(Exception):
    """NetBox refused a request as a whole; `by_object`: what is wrong with every object of it, "" for nothing."""

    def __init__(self, why: str, by_object: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.by_object = tuple(by_object)


class RequestForbidden(RequestRejected):
    """The token may not do this to objects of this kind."""


class OutcomeUnknown(Exception):
    """A request that makes something went out and no answer came: it may have been done."""
