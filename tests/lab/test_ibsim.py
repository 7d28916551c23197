"""A simulated InfiniBand fabric (ibsim) with a real opensm and real tools, on this host: what ibstat saves is read."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Told, above_info, scan_here
from tests.lab.setup import LAB

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("real_commands"),
    pytest.mark.skipif(not shutil.which("ibsim"), reason="ibsim is not installed: `make lab` does that"),
]
TOOLS = ("ibstat", "iblinkinfo", "ibnetdiscover")


class Fabric:
    """ibsim with its console open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        net = LAB / "fabric.net"
        self.process = subprocess.Popen(
            ["ibsim", "-s", str(net)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=folder, text=True
        )
        own = {"SIM_HOST": "node1-mlx5_0", "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
        self.environment = {**os.environ, **own}

    def tool(self, *command: str) -> str:
        """What a tool prints that runs on the first node."""
        done = subprocess.run(
            ["ibsim-run", *command], env=self.environment, capture_output=True, text=True, timeout=60, cwd=self.folder
        )
        return done.stdout

    def say(self, line: str) -> None:
        """A command of ibsim's console."""
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def port(self, wanted: str) -> str:
        """Wait until ibstat shows a state of the port; all that it printed."""
        until = time.monotonic() + 30
        while wanted not in (said := self.tool("ibstat")) and time.monotonic() < until:
            time.sleep(0.3)
        return said

    def report(self, name: str) -> dict[str, Any]:
        """What fabricscope says of the tools' outputs, saved as an operator saves them."""
        dump = self.folder / name
        dump.mkdir()
        for tool in TOOLS:
            (dump / f"{tool}.txt").write_text(self.tool(tool))
        return scan_here(dump)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """Two leaf switches, a spine, two nodes; without a subnet manager."""
    one = Fabric(tmp_path)
    yield one
    one.process.kill()
    one.process.communicate()


def test_a_saved_ibstat_of_a_fabric_is_read(fabric: Fabric, told: Told) -> None:
    """Without a subnet manager, with one, and with the cable of the first node pulled."""
    assert "State: Initializing" in fabric.port("State: Initializing")
    without = fabric.report("without")
    fabric.tool("opensm", "-o", "-f", str(fabric.folder / "opensm.log"))
    assert "State: Active" in fabric.port("State: Active")
    whole = fabric.report("whole")
    fabric.say('unlink "leaf1"[1]')
    pulled = fabric.port("State: Down")
    faulty = fabric.report("faulty")

    ports = [report["topology"]["nics"][0]["ports"][0] for report in (without, whole, faulty)]
    assert [("INIT", "LinkUp"), ("ACTIVE", "LinkUp"), ("DOWN", "Polling")] == [
        (port["state"], port["phys_state"]) for port in ports
    ]
    assert [] == above_info(whole)
    assert ["ib-no-sm"] == [rule for rule, _, _ in above_info(without)]
    assert {"rdma_tools": "ok"} == {run["name"]: run["status"] for run in faulty["probes"] if run["status"] != "absent"}
    kernel = "; ".join(line.strip() for line in pulled.splitlines() if "tate:" in line)
    told("ibsim: no subnet manager, opensm, a pulled cable", kernel, without["findings"][0]["summary"])
