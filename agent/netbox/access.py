"""Where NetBox is and who we are: an address without secrets, a token from a file or the environment."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from agent.netbox.trouble import BadAccess

TOKEN, URL = "NETBOX_TOKEN", "NETBOX_URL"  # variables
_TOKEN_LIMIT_BYTES = 1 << 12


class Access(NamedTuple):
    """What the client needs. `token` stands in no message, and repr does not show it."""

    url: str
    token: str
    ca: str | None = None
    timeout_seconds: float = 60.0

    def __repr__(self) -> str:
        return f"Access({self.url!r})"


def access(
    url: str | None, token_file: str | None, ca: str | None, timeout_seconds: float, environment: Mapping[str, str]
) -> Access:
    """Checked before anything is sent. Raises BadAccess."""
    place = _checked(url or environment.get(URL) or "")
    if ca is not None:
        if place.startswith("http:"):
            raise BadAccess("--ca is for https")
        _check_readable(ca)
    token = _from_file(token_file) if token_file else _word(environment.get(TOKEN, "").encode(), TOKEN)
    return Access(place, token, ca, timeout_seconds)


def _checked(text: str) -> str:
    """The address without what pynetbox adds. It is repeated in messages, so it may hold no secret."""
    if not text:
        raise BadAccess(f"--url (or {URL}) says where NetBox is: https://HOST")
    if re.search(r"[\x00-\x20\x7f]", text) or not re.match(r"https?://[^/?#]", text):
        raise BadAccess("--url: the address is https://HOST, with a path where NetBox has one")
    try:
        url = urlsplit(text)
        if url.port == 0 or not url.hostname:
            raise ValueError
    except ValueError as error:
        raise BadAccess("--url: no address is written so") from error
    if "@" in url.netloc:
        raise BadAccess(
            f"--url: no name or password in the address, where everybody sees them: --token-file or {TOKEN}"
        )
    if url.query or url.fragment:
        raise BadAccess("--url: '?' and '#' have no meaning in the address")
    if url.scheme == "http" and not _own(url.hostname or ""):
        raise BadAccess("--url: a token is not sent without TLS; the address has to begin with https://")
    path = url.path.rstrip("/").removesuffix("/api")
    return f"{url.scheme}://{url.netloc}{path}"


def _own(host: str) -> bool:
    return host in ("localhost", "::1") or bool(re.fullmatch(r"127\.\d+\.\d+\.\d+", host))


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError as error:
        raise BadAccess(f"--ca: {path}: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise BadAccess(f"--ca: {path}: no PEM certificate in it")


def _from_file(path: str) -> str:
    """One line of a file. Raises BadAccess, which does not repeat it."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_TOKEN_LIMIT_BYTES + 1)
    except OSError as error:
        raise BadAccess(f"{path}: {error.strerror}") from error
    if stat.S_ISREG(mode) and mode & 0o007:
        raise BadAccess(f"{path}: everybody on this host can read this token: chmod o= {path}")
    return _word(data, path)


def _word(data: bytes, where: str) -> str:
    said = data.strip()
    if not said:
        raise BadAccess(
            f"{where} is empty: --token-file or {TOKEN} holds the token of NetBox"
            if where == TOKEN
            else f"{where}: no token in it"
        )
    if len(said) > _TOKEN_LIMIT_BYTES or not re.fullmatch(rb"[\x21-\x7e]+", said):
        raise BadAccess(f"{where}: a token is one word")
    return said.decode("ascii")
