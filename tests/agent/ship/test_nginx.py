"""A real web server at the other end: nginx with WebDAV's PUT, over TLS."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.ship.conftest import Certificates
from tests.agent.ship.servers import report
from tests.conftest import ROOT

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)"),
    pytest.mark.usefixtures("real_commands"),
]
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


def test_a_report_is_put_and_lies_there_whole(nginx: str, tmp_path: Path, certificates: Certificates) -> None:
    """By its object_key key; the same report again is the same file."""
    for _ in range(2):
        done = shipped(tmp_path, certificates, f"{nginx}/drop/")
        assert (0, "") == (done.returncode, done.stderr)

    (file,) = [item for item in (tmp_path / "nginx" / "www").rglob("*") if item.is_file()]
    assert report(1, "error") == gzip.decompress(file.read_bytes())
    assert file.name.endswith(".json.gz")


def test_what_is_refused_waits(nginx: str, tmp_path: Path, certificates: Certificates) -> None:
    """405 of a place without PUT: nothing is lost, and the line says what was answered."""
    done = shipped(tmp_path, certificates, f"{nginx}/elsewhere/")

    assert 1 == done.returncode
    assert "405" in done.stderr
    assert 1 == len(list((tmp_path / "spool").rglob("waiting/*.json.gz")))
