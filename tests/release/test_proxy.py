"""The files for nginx and Caddy: they are valid, and reports pass them to `receive`, bound to their node."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.receive.conftest import Start, start
from tests.agent.receive.test_receive import ship_to
from tests.agent.ship.conftest import Certificates, certificates
from tests.agent.ship.servers import report
from tests.conftest import ROOT

__all__ = ["certificates", "start"]
FOLDER = ROOT / "packaging" / "proxy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CADDY = shutil.which("caddy")
pytestmark = pytest.mark.usefixtures("real_commands")


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


class Nginx:
    """nginx with one of the files; its ports, paths and addresses are replaced by those of the test."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.folder, self.certificates, self.port = folder, certificates, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def write(self, name: str, receiver_port: int = 1) -> list[str]:
        """The configuration; nginx's command line for it."""
        text = (FOLDER / name).read_text()
        pem = self.folder / "receive.pem"
        pem.write_bytes(
            b"".join(Path(self.certificates.file(f"server.{kind}")).read_bytes() for kind in ("pem", "key"))
        )
        shutil.copy(self.certificates.file("ca.pem"), self.folder / "clients-ca.pem")
        (self.folder / "page.htpasswd").write_text("fleet:{PLAIN}word\n")
        text = re.sub(r"^ +listen \[::\].*\n", "", text, flags=re.MULTILINE)
        text = text.replace("listen 8443", f"listen 127.0.0.1:{self.port}").replace(
            "listen 443", f"listen 127.0.0.1:{free_port()}"
        )
        text = text.replace("127.0.0.1:8470", f"127.0.0.1:{receiver_port}")
        text = text.replace("/etc/fabricscope", str(self.folder)).replace(
            "/var/lib/fabricscope-fleet", str(self.folder)
        )
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = " ".join(
            f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self.folder / "nginx.conf").write_text(
            f"daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log; {user}\n"
            f"events {{ }}\nhttp {{ access_log off; {temporary}\n{text}\n}}\n"
        )
        return [
            str(NGINX),
            "-p",
            str(self.folder),
            "-e",
            str(self.folder / "error.log"),
            "-c",
            f"{self.folder}/nginx.conf",
        ]

    def begin(self, name: str, receiver_port: int = 1) -> None:
        """Run it until it listens."""
        self.process = subprocess.Popen(self.write(name, receiver_port), stdin=subprocess.DEVNULL)
        for _ in range(300):
            assert self.process.poll() is None, (self.folder / "error.log").read_text()
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)


@pytest.fixture
def nginx(real_commands: None, tmp_path: Path, certificates: Certificates) -> Iterator[Nginx]:
    """One that ends with the test."""
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian: nginx-light)")
    folder = tmp_path / "nginx"
    folder.mkdir()
    server = Nginx(folder, certificates)
    yield server
    if server.process:
        server.process.terminate()
        server.process.wait(30)


def test_reports_pass_nginx_to_the_receiver(
    nginx: Nginx, start: Start, tmp_path: Path, certificates: Certificates
) -> None:
    """With the token that binds the host; the receiver's refusal comes back."""
    receiver = start(plain=True)
    nginx.begin("nginx-receive.conf", receiver.port)
    address = f"https://127.0.0.1:{nginx.port}/reports"

    assert (0, "") == ship_to(address, tmp_path, certificates, report(1, host="n1"))
    assert 1 == len(receiver.files)
    code, error = ship_to(address, tmp_path, certificates, report(2, host="n10"))
    assert (1, True) == (code, "403" in error)
    code, error = ship_to(address, tmp_path, certificates, report(3, host="n1"), token=None)
    assert (1, True) == (code, "401" in error)
    code, error = ship_to(f"{address}/x", tmp_path, certificates, report(3, host="n1"))
    assert (1, True) == (code, "404" in error)
    assert 1 == len(receiver.files)
    large = report(3, host="n1", pad=2_090_000)  # as large as a report can be, nearly
    assert (0, "") == ship_to(address, tmp_path, certificates, large, "--compress", "none")


def test_nginx_alone_binds_a_folder_to_a_certificate(nginx: Nginx, tmp_path: Path, certificates: Certificates) -> None:
    """A node writes below its own name, and nowhere else."""
    nginx.begin("nginx-drop.conf")
    mine = ("--method", "PUT", "--cert", certificates.file("client.pem"), "--key", certificates.file("client.key"))
    address = f"https://127.0.0.1:{nginx.port}/reports"

    assert (0, "") == ship_to(f"{address}/client", tmp_path, certificates, report(1), *mine, token=None)
    (file,) = [path for path in (nginx.folder / "reports").rglob("*") if path.is_file()]
    assert file.relative_to(nginx.folder / "reports").parts[0] == "client"
    for path, status in (("other", "403"), ("client/../other", "4"), (".", "40")):
        code, error = ship_to(f"{address}/{path}", tmp_path, certificates, report(2), *mine, token=None)
        assert code == 1, error
        assert f": {status}" in error
    code, error = ship_to(f"{address}/client", tmp_path, certificates, report(2), "--method", "PUT", token=None)
    assert (1, True) == (code, "400" in error)
    assert 1 == len([path for path in (nginx.folder / "reports").rglob("*") if path.is_file()])


@pytest.mark.skipif(CADDY is None, reason="caddy is not installed")
def test_caddy_reads_its_file() -> None:
    """As its own checker has it."""
    subprocess.run(
        [str(CADDY), "validate", "--config", str(FOLDER / "Caddyfile"), "--adapter", "caddyfile"], check=True
    )


def test_the_limits_of_the_files_are_those_of_the_receiver() -> None:
    """One number too low refuses reports that the receiver would take."""
    for name in ("nginx-receive.conf", "nginx-drop.conf"):
        assert "client_max_body_size 4m;" in (FOLDER / name).read_text()
    caddy = (FOLDER / "Caddyfile").read_text()
    assert "max_size 4MiB" in caddy
    assert caddy.count("{") == caddy.count("}")
