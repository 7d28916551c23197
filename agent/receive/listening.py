"""The sockets to listen on, and TLS: certificates of the server, and what it asks of clients."""

from __future__ import annotations

import os
import socket
import ssl
from asyncio import sslproto
from typing import NamedTuple

from agent.loopback import is_loopback
from agent.receive.clients import Clients, load_clients

BACKLOG = 1024
_TLS_BUFFER_BYTES = 32 << 10  # asyncio's own is 256 KiB for each connection: 128 MiB of those that have sent nothing


class BadServer(Exception):
    """Nothing can be listened on with these options; the message is one line."""


class TlsFiles(NamedTuple):
    """PEM files: the server's certificate and key, and the authorities of clients."""

    cert: str | None
    key: str | None
    client_ca: str | None


class Access(NamedTuple):
    """Who gets in: TLS (None: plain HTTP, behind a proxy on this host), and the clients."""

    tls: ssl.SSLContext | None
    clients: Clients


class AccessFiles:
    """The files of certificates and clients, which are replaced while the server runs: certificates expire, a node
    comes or goes."""

    def __init__(self, tls: TlsFiles, clients: str | None, plain: bool) -> None:
        self._tls, self._clients, self._plain = tls, clients, plain
        self._state: object = None

    def load(self) -> Access:
        """What they hold now. Raises BadServer, BadClients."""
        self._state = self._look()
        clients = load_clients(self._clients)
        return Access(open_tls(self._tls, clients, self._plain), clients)

    def load_changed(self) -> Access | None:
        """The same if one of them was replaced or written since; None otherwise. Raises BadServer, BadClients, once:
        of two files that belong together one is always replaced first."""
        state = self._look()
        if state == self._state:
            return None
        self._state = state
        for path in self._list_paths():
            if os.path.exists(path) and not os.path.isfile(path):  # a pipe: the server would wait for it
                raise BadServer(f"{path}: not a regular file")
        return self.load()

    def _list_paths(self) -> list[str]:
        return [path for path in (*self._tls, self._clients) if path]

    def _look(self) -> object:
        return [_look_at(path) for path in self._list_paths()]


def _look_at(path: str) -> object:
    try:
        status = os.stat(path)  # behind links: a Secret of Kubernetes is replaced by another link
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode


def open_tls(files: TlsFiles, clients: Clients, plain: bool) -> ssl.SSLContext | None:
    """TLS with what it asks of clients. Raises BadServer for what would let every client in, or none."""
    cert, key, client_ca = files
    if plain:
        if cert or key or client_ca or clients.by_certificate:
            raise BadServer("--plain has no certificates: the proxy has them, and clients have tokens")
        if not clients.by_token:
            raise BadServer("--clients is missing: a file with the tokens of clients")
        return None
    if not cert:
        raise BadServer("--cert is missing: the server's certificate (--plain is for a proxy on this host)")
    if clients.by_certificate and not client_ca:
        raise BadServer("--clients has certificates: --client-ca is missing")
    if not clients.by_token and not client_ca:
        raise BadServer("no client could send: expected --clients with tokens, or --client-ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    setattr(sslproto.SSLProtocol, "max_size", _TLS_BUFFER_BYTES)  # noqa: B010  # typeshed has no such attribute
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL  # without one a request gets 401, which a node can report
    file = cert
    try:
        context.load_cert_chain(cert, key, password=_refuse_password)
        if client_ca:
            file = client_ca
            context.load_verify_locations(client_ca)
    except OSError as error:
        why = (
            (error.reason or "no PEM").replace("_", " ").lower() if isinstance(error, ssl.SSLError) else error.strerror
        )
        raise BadServer(f"{file}: {why}") from error
    return context


def _refuse_password() -> str:
    raise OSError(0, "the key is encrypted, and there is no terminal to type its password")


def open_sockets(listen: str, plain: bool) -> list[socket.socket]:
    """One per address of --listen. Raises BadServer."""
    host, separator, number = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not (number.isascii() and number.isdigit()) or int(number) > 65535:
        raise BadServer(f"--listen {listen!r:.80}: expected ADDRESS:PORT, such as :8443 or 127.0.0.1:8443")
    if plain and not is_loopback(host):
        raise BadServer("--plain: expected a loopback address in --listen: 127.0.0.1:8443")
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host or None, int(number), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                listening = socket.socket(family, kind, protocol)
            except OSError:  # this kernel has no IPv6
                continue
            sockets.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
            listening.setblocking(False)
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise BadServer(f"--listen {listen}: {error.strerror}") from error
    if not sockets:
        raise BadServer(f"--listen {listen}: no such address family here")
    return sockets
