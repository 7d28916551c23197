"""A spool to run in, and certificates that openssl makes once."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.agent.ship.servers import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """An empty place."""
    return Run(tmp_path, [])


class Certificates(NamedTuple):
    """Of an authority of our own, for 127.0.0.1, for another name, and for a client."""

    folder: Path

    def file(self, name: str) -> str:
        """The path of one."""
        return str(self.folder / name)

    def server(self, name: str = "server", ask: bool = False) -> ssl.SSLContext:
        """A server's side; `ask`: it wants a client's certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file(f"{name}.pem"), self.file(f"{name}.key"))
        if ask:
            context.load_verify_locations(self.file("ca.pem"))
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Keys are generated, never kept."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make certificates")
    folder = tmp_path_factory.mktemp("certificates")
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "30"]

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)

    usage = ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"]  # Python 3.13 asks an authority for it
    openssl(*new, *usage, "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ours")
    for name, subject in (("server", "IP:127.0.0.1"), ("other", "DNS:other.example"), ("client", "DNS:node")):
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", f"subjectAltName={subject}"]
        openssl(
            *new, *usage, "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", *signed
        )
    openssl(*new, "-passout", "pass:word", "-keyout", "locked.key", "-out", "locked.pem", "-subj", "/CN=locked")
    return Certificates(folder)
