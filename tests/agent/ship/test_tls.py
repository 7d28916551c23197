"""Whom we believe, and who we say we are; there is no switch that makes this weaker."""

from __future__ import annotations

import gzip
import inspect
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.ship import ship as command
from agent.ship.http_target import TlsFiles, tls_context
from agent.ship.options import TargetOptions, open_target
from agent.ship.target import BadTarget
from tests.agent.ship.conftest import Certificates
from tests.agent.ship.servers import Run, report, serving
from tests.conftest import ROOT

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


NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)")
CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; {user}
events {{ worker_connections 32; }}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {pem}; ssl_certificate_key {key}; root {folder}/www;
    client_max_body_size 1m;
    location /drop/ {{ dav_methods PUT; create_full_put_path on; }}
  }}
}}
"""


@pytest.fixture
def nginx(real_commands: None, tmp_path: Path, certificates: Certificates) -> Iterator[str]:
    """Its address, once it answers."""
    folder = tmp_path / "nginx"
    (folder / "www" / "drop").mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pem, key = certificates.file("server.pem"), certificates.file("server.key")
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, port=port, pem=pem, key=key, user=user))
    command = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        for _ in range(300):
            assert server.poll() is None, (folder / "error.log").read_text()
            with socket.socket() as request:
                if request.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"https://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def shipped(tmp_path: Path, certificates: Certificates, address: str) -> subprocess.CompletedProcess[str]:
    """One run of the command."""
    (tmp_path / "report.json").write_bytes(report(1, "error"))
    command = [sys.executable, "-m", "fabricscope", "ship", str(tmp_path / "report.json"), "--to", address]
    command += ["--method", "PUT", "--ca", certificates.file("ca.pem"), "--spool", str(tmp_path / "spool")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)


@needs_nginx
def test_a_report_is_put_and_lies_there_whole(nginx: str, tmp_path: Path, certificates: Certificates) -> None:
    """By its object_key key; the same report again is the same file."""
    for _ in range(2):
        done = shipped(tmp_path, certificates, f"{nginx}/drop/")
        assert (0, "") == (done.returncode, done.stderr)

    (file,) = [item for item in (tmp_path / "nginx" / "www").rglob("*") if item.is_file()]
    assert report(1, "error") == gzip.decompress(file.read_bytes())
    assert file.name.endswith(".json.gz")


@needs_nginx
def test_what_is_refused_waits(nginx: str, tmp_path: Path, certificates: Certificates) -> None:
    """405 of a place without PUT: nothing is lost, and the line says what was answered."""
    done = shipped(tmp_path, certificates, f"{nginx}/elsewhere/")

    assert 1 == done.returncode
    assert "405" in done.stderr
    assert 1 == len(list((tmp_path / "spool").rglob("waiting/*.json.gz")))
