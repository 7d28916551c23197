"""Whom we believe, and who we say we are; there is no switch that makes this weaker."""

from __future__ import annotations

import inspect
import socket
import ssl
import threading

import pytest

from agent.cli.ship import ship as command
from agent.ship.http_target import TlsFiles, tls_context
from agent.ship.options import TargetOptions, open_target
from agent.ship.target import BadTarget
from tests.agent.ship.conftest import Certificates
from tests.agent.ship.servers import Run, report, serving

pytestmark = pytest.mark.usefixtures("real_commands")


def test_a_server_of_our_authority(certificates: Certificates, run: Run) -> None:
    """`--ca`."""
    with serving(tls=certificates.server()) as server:
        result = run.ship(
            open_target(TargetOptions(server.url, ca=certificates.file("ca.pem")), {}), report(0), report(1)
        )

    assert result.all_handed_over
    assert 1 == server.connections


@pytest.mark.parametrize(
    ("name", "ca", "part"),
    [("server", None, "not trusted"), ("other", "ca.pem", "not valid for"), ("locked", "ca.pem", "not trusted")],
    ids=["an unknown authority", "another name", "signed by itself"],
)
def test_a_server_that_is_not_believed_gets_nothing(
    name: str, ca: str | None, part: str, certificates: Certificates, run: Run
) -> None:
    """No report, no second try, and the report is kept."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificates.file(f"{name}.pem"), certificates.file(f"{name}.key"), "word")
    with serving(tls=server_side) as server:
        address = TargetOptions(server.url, ca=certificates.file(ca) if ca else None)
        result = run.ship(open_target(address, {}), report())

    assert [] == server.requests
    assert 1 == server.connections
    assert part in (result.reason or "")
    assert 1 == result.waiting


def test_a_server_that_asks_who_we_are(certificates: Certificates, run: Run) -> None:
    """`--cert` and `--key`; without them nothing is taken, and the report is kept."""
    ca = certificates.file("ca.pem")
    with serving(tls=certificates.server(ask=True)) as server:
        without = run.ship(open_target(TargetOptions(server.url, ca=ca), {}), report())
        assert ([], 1) == (server.requests, without.waiting)
        ours = TargetOptions(
            server.url, ca=ca, cert=certificates.file("client.pem"), key=certificates.file("client.key")
        )
        assert run.ship(open_target(ours, {})).all_handed_over


def test_a_key_that_wants_a_password_is_refused(certificates: Certificates) -> None:
    """Nobody is there to type it, and nothing waits for it."""
    locked = TargetOptions("https://h/", cert=certificates.file("locked.pem"), key=certificates.file("locked.key"))

    with pytest.raises(BadTarget, match="encrypted"):
        open_target(locked, {})


def test_a_key_of_another_certificate_is_refused(certificates: Certificates) -> None:
    """With both names."""
    mixed = TargetOptions("https://h/", cert=certificates.file("client.pem"), key=certificates.file("server.key"))

    with pytest.raises(BadTarget, match=r"client\.pem, .*server\.key: "):
        open_target(mixed, {})


def test_plain_http_behind_https(run: Run) -> None:
    """What a plain server says to a client that begins TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            sock, _ = listening.accept()
            sock.recv(5)
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            sock.close()

        threading.Thread(target=answer, daemon=True).start()
        result = run.ship(open_target(TargetOptions(f"https://127.0.0.1:{listening.getsockname()[1]}"), {}), report())

    assert "wrong version number" in (result.reason or "")
    assert 1 == result.waiting


def test_tls_behind_http(certificates: Certificates, run: Run) -> None:
    """It does not pass, and nothing hangs."""
    with serving(tls=certificates.server()) as server:
        result = run.ship(open_target(TargetOptions(server.url.replace("https", "http")), {}), report())

    assert [] == server.requests
    assert 1 == result.waiting


def test_nothing_turns_verification_off() -> None:
    """No option, and no argument."""
    result = tls_context(TlsFiles())

    assert (ssl.CERT_REQUIRED, True) == (result.verify_mode, result.check_hostname)
    assert result.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert not [name for name in inspect.signature(command).parameters if "verify" in name or "insecure" in name]
