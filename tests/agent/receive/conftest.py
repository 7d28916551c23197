"""`fabricscope receive` as a process, with certificates of our own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.agent.ship.conftest import Certificates, certificates
from tests.conftest import ROOT

__all__ = ["certificates"]
TOKEN, OTHER = "token-of-nodes-1-to-9", "token-of-node-n2-only"


class Receiver(NamedTuple):
    """One that runs."""

    port: int
    spool: Path
    log: list[str]
    process: subprocess.Popen[str]
    reader: threading.Thread  # of its log

    @property
    def files(self) -> list[Path]:
        """What was received."""
        return sorted(path for path in self.spool.iterdir() if not path.name.startswith("."))

    def stop(self) -> int:
        """End it as systemd does; its exit code."""
        self.process.terminate()
        code = self.process.wait(20)
        self.reader.join(20)
        return code


Start = Callable[..., Receiver]


@pytest.fixture
def start(real_commands: None, tmp_path: Path, certificates: Certificates) -> Iterator[Start]:
    """Starts one and waits until it listens."""
    (tmp_path / "clients.toml").write_text(
        f'[[client]]\nhosts = "n[1-9],worker.example"\ntoken = "{TOKEN}"\n[[client]]\nhosts = "n2"\ntoken = "{OTHER}"\n'
    )
    (tmp_path / "clients.toml").chmod(0o600)
    running: list[subprocess.Popen[str]] = []
    readers: list[threading.Thread] = []

    def begin(*options: str, plain: bool = False, tokens: bool = True) -> Receiver:
        spool = tmp_path / "spool"
        command = [sys.executable, "-m", "fabricscope", "receive", "--listen", "127.0.0.1:0", "--spool", str(spool)]
        if plain:
            command.append("--plain")
        else:
            command += ["--cert", certificates.file("server.pem"), "--key", certificates.file("server.key")]
        if tokens:
            command += ["--clients", str(tmp_path / "clients.toml")]
        process = subprocess.Popen(
            [*command, *options], stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        running.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        port = re.search(r"listening on https?://127\.0\.0\.1:(\d+)", line)
        assert port, line + process.stderr.read()
        log: list[str] = []
        reader = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
        reader.start()
        readers.append(reader)
        return Receiver(int(port[1]), spool, log, process, reader)

    yield begin
    for process in running:
        process.kill()
        process.wait(20)
    for reader in readers:
        reader.join(20)
    for process in running:
        if process.stderr:
            process.stderr.close()
