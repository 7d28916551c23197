"""A simulated InfiniBand fabric (ibsim) with a real opensm and real tools, on this host: what they save is read."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.fabric.files import read_fabric
from probes.fabric.formatting import describe_node
from probes.fabric.topology import Fabric as Wired
from tests.lab.conftest import RecordRow, above_info, scan_here
from tests.lab.place import LAB

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("real_commands"),
    pytest.mark.skipif(not shutil.which("ibsim"), reason="ibsim is not installed: `make lab` does that"),
]
TOOLS = ("ibstat", "iblinkinfo", "ibnetdiscover")


class Fabric:
    """ibsim with its console open."""

    def __init__(self, folder: Path, net: Path = LAB / "fabric.net") -> None:
        self.folder = folder
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

    def port(self, expected: str) -> str:
        """Wait until ibstat shows a state of the port; all that it printed."""
        until = time.monotonic() + 30
        while expected not in (output := self.tool("ibstat")) and time.monotonic() < until:
            time.sleep(0.3)
        return output

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


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Fabric]:
    """The same with one lane to the first HCA of node 1, and without the cable of node 2's second one."""
    text = (LAB / "fabric.net").read_text()
    for end in ('[1]\t"node1-mlx5_0"[1]', '[1]\t"leaf1"[1]'):
        assert text.count(end) == 1
        text = text.replace(end, f"{end} w=1")
    cable = ('[2]\t"node2-mlx5_1"[1]\n', '[1]\t"leaf2"[2]\n')
    for end in cable:
        assert text.count(end) == 1
        text = text.replace(end, "")
    net = tmp_path / "faulty.net"
    net.write_text(text)
    one = Fabric(tmp_path, net)
    yield one
    one.process.kill()
    one.process.communicate()


def test_a_saved_ibstat_of_a_fabric_is_read(fabric: Fabric, record_row: RecordRow) -> None:
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
    ran = {run["name"]: run["status"] for run in faulty["probes"] if run["status"] != "absent"}
    assert {"rdma_tools": "ok", "ib_fabric": "ok", "tool_reports": "ok"} == ran
    assert ["leaf1", "leaf1", None] == [port["neighbor"] and port["neighbor"]["name"] for port in ports]
    kernel = "; ".join(line.strip() for line in pulled.splitlines() if "tate:" in line)
    record_row("ibsim: no subnet manager, opensm, a pulled cable", kernel, without["findings"][0]["summary"])


def test_a_whole_fabric_is_read_as_every_tool_tells_it(faulty: Fabric, record_row: RecordRow) -> None:
    """The cable with one lane is that in all of them, and of the node's own port it is the far end."""
    faulty.port("State: Initializing")
    before = read_fabric(faulty.tool("iblinkinfo"), "iblinkinfo")  # without LIDs: by names
    faulty.tool("opensm", "-o", "-f", str(faulty.folder / "opensm.log"))
    assert "State: Active" in faulty.port("State: Active")
    commands = ("ibnetdiscover", "ibnetdiscover -p", "ibnetdiscover -g", "iblinkinfo", "iblinkinfo -l", "iblinkinfo -p")
    read = {command: read_fabric(faulty.tool(*command.split()), command) for command in commands}
    report = faulty.report("saved")

    expected = cables(read["ibnetdiscover"])
    assert {("leaf1", 1, "node1-mlx5_0", 1): (1, "SDR"), ("leaf1", 2, "node2-mlx5_0", 1): (4, "SDR")}.items() <= (
        expected.items()
    )
    assert 6 == len(expected)
    for command, fabric in (*read.items(), ("before", before)):
        assert () == fabric.problems, command
        assert expected == cables(fabric), command
        assert 3 == sum(node.kind == "switch" for node in fabric.nodes.values()), command
    assert {"Initialize"} == {link.state for link in before.links if link.b}
    free = [link for link in read["iblinkinfo"].links if link.b is None]
    assert {("Down", "Polling")} == {(link.state, link.phys_state) for link in free}
    hosts = read_fabric(faulty.tool("ibhosts"), "ibhosts").nodes
    assert {"node1-mlx5_0", "node1-mlx5_1", "node2-mlx5_0"} == {describe_node(node).name for node in hosts.values()}

    (port,) = report["topology"]["nics"][0]["ports"]
    neighbor = port["neighbor"]
    assert ("leaf1", 1, "1X", "SDR", 2.5) == tuple(
        neighbor[name] for name in ("name", "port", "width", "speed", "rate_gbit_s")
    )
    assert ("ibnetdiscover, iblinkinfo", port["rate_gbit_s"]) == (neighbor["source"], neighbor["rate_gbit_s"])
    assert neighbor["node_guid"] is not None
    line = next(line for line in faulty.tool("iblinkinfo").splitlines() if "==( 1X" in line)
    record_row(
        "ibsim: one lane to the switch, read by six tools", line.strip(), f"far end {neighbor['name']} port 1 at 1X SDR"
    )


def cables(fabric: Wired) -> dict[tuple[str, int, str, int], tuple[int | None, str | None]]:
    """What runs on each link, by the names and ports of its ends."""
    result = {}
    for link in fabric.links:
        if link.b is not None:
            one, other = sorted((fabric.nodes[end.guid].name, end.port) for end in (link.a, link.b))
            result[(*one, *other)] = link.width, link.speed
    return result
