"""Which client may send the reports of which hosts: by a bearer token, or by the names of its certificate."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from agent.fleet.hostlist import BadHostlist, unfold
from agent.model.node import shorten_host
from agent.toml_file import TomlError, read_toml

TOKEN_CHARACTERS = 16  # at least: a shorter one can be guessed
EVERY_HOST = "*"
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class BadClients(Exception):
    """The file of clients cannot be used; the message is one line without a token."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hosts: str
    token: str | None = None
    certificate: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    client: list[_Entry] = []


class Client(NamedTuple):
    """One client, and the hosts whose reports it may send."""

    label: str  # for the log
    hosts: frozenset[str]

    def may_send(self, host: str) -> bool:
        """Whether a report of this node is accepted from it. Names are compared as the fleet keeps them."""
        return host in self.hosts or EVERY_HOST in self.hosts


class Clients(NamedTuple):
    """All clients."""

    by_token: Mapping[str, Client]  # by the SHA-256 of the token: a lookup takes as long for any guess
    by_certificate: Mapping[str, Client]

    def find(self, authorization: str | None, certificate: Mapping[str, Any] | None) -> Client | None:
        """The client of a request; a token that is sent decides, whatever the certificate is."""
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            known = self.by_token.get(_digest(token.strip()))
            return known if scheme.lower() == "bearer" else None
        names = list_names(certificate or {})
        listed = [client for name in names if (client := self.by_certificate.get(name))]
        if listed:
            return Client(names[0], frozenset().union(*(client.hosts for client in listed)))
        hosts = {host for name in names for host in (name, shorten_host(name)) if "*" not in name}
        return Client(names[0], frozenset(hosts)) if hosts else None


def load_clients(path: str | None) -> Clients:
    """Read the file of clients; without one only certificates count. Raises BadClients."""
    if path is None:
        return Clients({}, {})
    try:
        mode = os.stat(path).st_mode
        entries = read_toml(path, _File).client
    except OSError as error:
        raise BadClients(f"{path}: {error.strerror}") from error
    except TomlError as error:
        raise BadClients(str(error)) from error
    if stat.S_ISREG(mode) and mode & 0o007 and any(entry.token for entry in entries):
        raise BadClients(f"{path}: every user of this host can read the tokens: chmod o= {path}")
    by_token: dict[str, Client] = {}
    by_certificate: dict[str, Client] = {}
    for number, entry in enumerate(entries, 1):
        place = f"{path}: client {number}"
        if (entry.token is None) == (entry.certificate is None):
            raise BadClients(f"{place}: expected either token or certificate")
        client = Client(entry.certificate or f"token {number}", _read_hosts(entry.hosts, place))
        if entry.token is None:
            known, key = by_certificate, entry.certificate or ""
        else:
            if not _TOKEN.fullmatch(entry.token) or len(entry.token) < TOKEN_CHARACTERS:
                raise BadClients(f"{place}: a token is one word of at least {TOKEN_CHARACTERS} characters")
            known, key = by_token, _digest(entry.token)
        if key in known:
            raise BadClients(f"{place}: an earlier client has the same token or certificate")
        known[key] = client
    if not entries:
        raise BadClients(f"{path}: no [[client]] in it")
    return Clients(by_token, by_certificate)


def list_names(certificate: Mapping[str, Any]) -> list[str]:
    """DNS names of a verified certificate, as `ssl` has it; its common name where it has none.

    >>> list_names({"subject": ((("commonName", "n1"),),), "subjectAltName": (("DNS", "n1.example"),)})
    ['n1.example']
    """
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return [name for name in names or common if name]


def _read_hosts(text: str, place: str) -> frozenset[str]:
    if text.strip() == EVERY_HOST:
        return frozenset((EVERY_HOST,))
    try:
        hosts = unfold(text)
    except BadHostlist as error:
        raise BadClients(f"{place}: hosts: {error}") from error
    if not hosts:
        raise BadClients(f"{place}: hosts is empty")
    return frozenset(hosts)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()
