"""`receive`: accept reports from `ship` over HTTPS into a folder."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, printable
from agent.cli.stdin import notice_pipe

_SPOOL_BYTES = 4 << 30


def receive(
    spool: Annotated[str | None, opt.option("DIR", "Folder for the reports; `fleet ingest --move` empties it.")] = None,
    listen: Annotated[str, opt.shown_option("ADDRESS:PORT", "Address to listen on.")] = ":8443",
    clients: Annotated[str | None, opt.option("FILE", "TOML: tokens and certificates, and the hosts of each.")] = None,
    cert: Annotated[str | None, opt.option("FILE", "Server certificate (PEM).")] = None,
    key: Annotated[str | None, opt.option("FILE", "Server key, if it is not in the same file.")] = None,
    client_ca: Annotated[str | None, opt.option("FILE", "CA bundle of the client certificates.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="HTTP without TLS, on a loopback address, behind a proxy.")
    ] = False,
    spool_limit: Annotated[
        int, opt.shown_option("BYTES", "Largest size of all reports in the folder.", min=0)
    ] = _SPOOL_BYTES,
    spool_count: Annotated[int, opt.shown_option("NUMBER", "Most reports in the folder.", min=0)] = 200_000,
    host_count: Annotated[int, opt.shown_option("NUMBER", "Most reports of one host in the folder.", min=1)] = 2000,
    timeout: Annotated[float, opt.shown_option("SECONDS", "Time limit of one report.", min=0.1)] = 30.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log accepted reports, too.")] = False,
) -> None:
    """Accept reports from `ship` over HTTPS.

    They are written to a folder, until it is stopped. A client may send reports of its own hosts only: those of its
    token, or the host that its certificate names.
    """
    import asyncio

    from agent.receive.clients import BadClients
    from agent.receive.inbox import ForeignFiles, Inbox, Limits
    from agent.receive.listening import AccessFiles, BadServer, TlsFiles, open_sockets
    from agent.receive.server import Server, ServerOptions

    if not spool:
        raise CliError("--spool is missing: the folder for the reports")
    inbox = Inbox(os.path.abspath(spool), Limits(spool_limit, spool_count, host_count))
    files = AccessFiles(TlsFiles(cert, key, client_ca), clients, plain)
    with ErrorTranslation(BadClients, BadServer), notice_pipe(cert, key, client_ca, clients):
        files.load()
        sockets = open_sockets(listen, plain)
        server = Server(sockets, inbox, files, ServerOptions(timeout, verbose), _write_line)
    with ErrorTranslation(OSError, about=spool):
        try:
            inbox.open()
        except ForeignFiles as error:
            raise CliError(
                f"{spool}: not a folder of receive: it holds other files ({error})",
                "choose an empty folder, or one that only receive and fleet ingest use",
            ) from error
    asyncio.run(server.run())


def _write_line(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
