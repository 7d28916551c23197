"""docs/fleet-setup.md, command by command: a collector and two nodes in folders of their own, with the installed units.

What needs root or a network is replaced: `systemctl` starts what ExecStart of the installed unit names, with the
credentials and the state directory that the unit declares; scans are of a described machine; the rest is real.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.reports import encode_report
from tests.agent.ship.servers import Server, serving
from tests.conftest import ROOT
from tests.machines import scan_machine

pytest.importorskip("duckdb")
pytestmark = [
    pytest.mark.skipif(
        not all(map(shutil.which, ("openssl", "curl", "bash"))), reason="openssl, curl or bash is missing"
    ),
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("real_commands"),
]
PAGE = (ROOT / "docs" / "fleet-setup.md").read_text()
BLOCKS = {
    title: re.findall(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for title, text in re.findall(r"^## (\d)[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
PLACES = (
    "/opt/fabricscope",
    "/etc/fabricscope",
    "/etc/systemd/system",
    "/var/lib/fabricscope-fleet",
    "/var/lib/prometheus",
)
PYTHON_STUB = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exit 9
mkdir -p "$3/bin" && cp {bin}/fabricscope "$3/bin/" && cp {bin}/true-stub "$3/bin/pip"
"""
PROGRAM = """#!/bin/bash
case "$1" in
  install-units) exec {python} -m fabricscope "$@" --unit-dir {root}/etc/systemd/system --exec {root}/bin/fabricscope;;
  scan) while [ $# -gt 1 ]; do [ "$1" = --output ] && cp {root}/machine.json "$2"; shift; done; exit 0;;
  ship) exec {python} -m fabricscope "$@" {root}/var/lib/fabricscope/report.json;;
  receive) exec {python} -m fabricscope "$@" --listen 127.0.0.1:{port};;
  *) exec {python} -m fabricscope "$@";;
esac
"""


class Host:
    """The collector or a node: a folder with its files, and a PATH with what stands in for the system's programs."""

    def __init__(self, root: Path, port: int, webhook: str) -> None:
        self.root, self.port, self.webhook = root, port, webhook
        self.running: list[subprocess.Popen[bytes]] = []
        self.started: list[str] = []
        binaries = root / "bin"
        for place in (binaries, root / "opt/fabricscope/bin", root / "etc/systemd/system", root / "etc/fabricscope",
                      root / "var/lib/prometheus/node-exporter"):  # fmt: skip
            place.mkdir(parents=True)
        program = PROGRAM.format(python=sys.executable, root=root, port=port)
        stubs = {
            "fabricscope": program, "true-stub": "#!/bin/bash\n", "useradd": "#!/bin/bash\n",
            "python3": PYTHON_STUB.format(bin=binaries),
            "systemctl": f'#!/bin/bash\necho "$*" >> {root}/systemctl\n',
        }  # fmt: skip
        for name, text in stubs.items():
            (binaries / name).write_text(text)
            (binaries / name).chmod(0o755)

    def local(self, text: str) -> str:
        """Paths and addresses of the page as they are here."""
        for place in PLACES:
            text = text.replace(place, f"{self.root}{place}").replace(f"{self.root}{self.root}", str(self.root))
        text = text.replace("https://hooks.example", self.webhook)
        return text.replace("inventory.example:8443", f"localhost:{self.port}").replace(
            "inventory.example", "localhost"
        )

    def run(self, block: str) -> str:
        """One block of the page, command by command; what it prints. systemctl's commands are carried out after it."""
        out = ""
        for part in re.split(r"(?m)^(?=systemctl |curl )", self.local(block)):
            done = subprocess.run(
                ["bash", "-e", "-c", part],
                cwd=ROOT,
                env=self.environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert 0 == done.returncode, f"{part}\n{done.stdout}{done.stderr}"
            out += done.stdout
            self._obey()
        return out

    def environment(self) -> dict[str, str]:
        """With the stand-ins first."""
        return os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def _obey(self) -> None:
        record = self.root / "systemctl"
        for line in record.read_text().splitlines() if record.exists() else ():
            verb, *names = [word for word in line.split() if not word.startswith("--")]
            assert verb in ("daemon-reload", "enable", "start")
            for name in names:
                assert (self.root / "etc/systemd/system" / name).is_file(), f"{name} is not installed"
                if name.endswith(".service"):
                    self.start(name)
        record.unlink(missing_ok=True)

    def start(self, name: str) -> None:
        """What systemd would start, with what the unit and its drop-ins declare."""
        folder = self.root / "etc/systemd/system"
        text = (folder / name).read_text()
        text += "".join(path.read_text() for path in sorted((folder / f"{name}.d").glob("*.conf")))
        values = re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)
        settings = dict(values)
        state = self.root / "var/lib" / settings["StateDirectory"]
        state.mkdir(exist_ok=True)
        credentials = self.root / "run" / name
        shutil.rmtree(credentials, ignore_errors=True)
        credentials.mkdir(parents=True)
        environment = self.environment() | {"STATE_DIRECTORY": str(state), "CREDENTIALS_DIRECTORY": str(credentials)}
        for key, value in values:
            if key == "LoadCredential":
                target, _, source = value.partition(":")
                shutil.copy(self.local(source), credentials / target)
            elif key == "Environment":
                environment |= dict([value.split("=", 1)])
        file = Path(self.local(settings.get("EnvironmentFile", "-/none").lstrip("-")))
        if file.is_file():
            environment |= dict(line.split("=", 1) for line in file.read_text().splitlines())
        for key, value in values:
            if not key.startswith("Exec"):
                continue
            line = re.sub(r"\$\{(\w+)\}", lambda match: environment[match[1]], value.lstrip("-"))
            if settings["Type"] == "exec":
                self.running.append(subprocess.Popen(line.split(), env=environment, stderr=subprocess.DEVNULL))
                _wait_for(self.port)
                continue
            done = subprocess.run(line.split(), env=environment, capture_output=True, text=True, check=False)
            wanted = {0, int(settings.get("SuccessExitStatus", "0"))}
            assert done.returncode in wanted or value.startswith("-"), f"{line}\n{done.stdout}{done.stderr}"
        self.started.append(name)


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("it does not listen")


@pytest.fixture
def hooks(real_commands: None) -> Iterator[Server]:
    """The chat's end."""
    with serving() as server:
        yield server


def _scan(node: Host, name: str, fault: str, minute: int) -> None:
    """A scan's timer, and the path unit that sees the report."""
    document = json.loads(encode_report(scan_machine("", fault)))
    document["node"]["hostname"] = name
    document["node"]["machine_id"] = name.encode().hex().ljust(32, "0")
    now = time.strftime("%Y-%m-%dT%H:%M:", time.gmtime(time.time() - 600)) + f"{minute:02}Z"
    document["observed_at"] = document["generated_at"] = now
    (node.root / "machine.json").write_text(json.dumps(document))
    node.start("fabricscope-scan.service")
    node.start("fabricscope-ship.service")


@pytest.mark.release
def test_every_command_of_the_page_works(tmp_path: Path, hooks: Server) -> None:
    """From an empty machine to a message in the chat about a new fault."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    collector = Host(tmp_path / "collector", port, hooks.url)
    nodes = {name: Host(tmp_path / name, port, hooks.url) for name in ("gpu001", "gpu002")}
    try:
        printed = "".join(collector.run(block) for block in BLOCKS["1"])
        assert printed.endswith("ok\n")
        secrets = collector.root / "etc/fabricscope"
        assert 0 == (secrets / "clients.toml").stat().st_mode & 0o077
        for name, node in nodes.items():
            (node.root / "machine.json").write_bytes(encode_report(scan_machine("", "gpu-width-x8")))
            shutil.copy(secrets / "receive.crt", node.root / "etc/fabricscope/receive.crt")
            shutil.copy(secrets / "tokens" / name, node.root / "etc/fabricscope/token")
            for block in BLOCKS["2"]:
                node.run(block)
            assert ["fabricscope-scan.service"] == node.started
            _scan(node, name, "gpu-width-x8", 1)
        assert 2 == len(list((collector.root / "var/lib/fabricscope-fleet/reports").iterdir()))
        (answers,) = (collector.run(block) for block in BLOCKS["4"])
        assert "2 nodes" in answers
        assert "pcie-width-downgraded" in answers
        assert "gpu003" in answers  # expected, and never reported
        collector.run(BLOCKS["5"][0])
        assert [] == hooks.requests  # nothing has changed since the page was first written
        _scan(nodes["gpu002"], "gpu002", "nvlink-one-inactive", 2)
        collector.start("fabricscope-ingest.service")
        collector.start("fabricscope-page.service")
        (request,) = hooks.requests
        assert "gpu002" in json.loads(request.body)["text"]
        collector.run(BLOCKS["5"][1] if shutil.which("promtool") else BLOCKS["5"][1].partition("promtool")[0])
        metrics = collector.root / "var/lib/prometheus/node-exporter/fabricscope-fleet.prom"
        assert "fabricscope_fleet_nodes{" in metrics.read_text()
        assert (collector.root / "var/lib/fabricscope-fleet/page/index.html").stat().st_size > 10_000
        _scan(nodes["gpu001"], "gpu002", "gpu-width-x8", 3)  # a node that reports for another: 403
        assert [] == list((collector.root / "var/lib/fabricscope-fleet/reports").iterdir())
        state = json.loads((nodes["gpu001"].root / "var/lib/fabricscope-ship/spool/state.json").read_text())
        assert (1, True) == (state["waiting"], "403" in str(state["last_failure"]))
    finally:
        for process in collector.running:
            process.terminate()
            process.wait(20)


def test_no_command_of_the_page_is_left_out() -> None:
    """Each block is in a step that the test runs."""
    assert PAGE.count("\n```\n") == 2 * sum(len(BLOCKS[step]) for step in ("1", "2", "4", "5"))
