"""Excerpts that begin within a device: the name was in a line above, and the state of the port is below."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.sources.identify import identify_command
from probes.sources.open_source import BadSource, open_source

POLLING = "\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
INIT = (
    "\tbase lid:\t 0xffff\n\tsm lid:\t\t 0x0\n\tstate:\t\t 2: INIT\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n"
)
SMALL = (
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n"
    "\t\t\tlink_layer:\t\tEthernet\n\n"
)
NAMED = "hca_id:\tmlx5_4\n\tphys_port_cnt:\t1\n\t\tport:\t1\n" + SMALL.replace("1024 (3)", "4096 (5)")


def scan_text(tmp_path: Path, text: str) -> Report:
    (tmp_path / "issue.txt").write_text(text)
    return diagnose(open_source(str(tmp_path / "issue.txt")), ScanPlan())[0]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        pytest.param(POLLING, "ib-port-down mlx5_X/1", id="ibstat"),
        pytest.param("Port 1:\n" + POLLING, "ib-port-down mlx5_X/1", id="ibstat, with the line of the port"),
        pytest.param("Hi,\n\n```\nPort 1:\n" + POLLING + "```\n", "ib-port-down mlx5_X/1", id="within a text"),
        pytest.param(INIT, "ib-no-sm mlx5_X/1", id="ibstatus"),
        pytest.param(SMALL, "roce-mtu-small mlx5_X/1", id="ibv_devinfo"),
        pytest.param(SMALL + NAMED, "roce-mtu-small mlx5_X/1", id="ibv_devinfo, a named device follows"),
    ],
)
def test_the_port_of_a_device_without_a_name_is_judged(tmp_path: Path, text: str, finding: str) -> None:
    """Its fault is stated whole; only its name is missing."""
    report = scan_text(tmp_path, text)

    assert [finding] == [f"{found.rule} {found.label}" for found in report.findings]
    assert ("mlx5_4" in text) == any(nic.rdma_device == "mlx5_4" for nic in report.topology.nics)


def test_ports_that_cannot_be_told_apart_are_not_read(tmp_path: Path) -> None:
    """Of `ibstat | grep -i state` it is not known whose line is whose."""
    text = "State: Active\nPhysical state: LinkUp\nState: Down\nPhysical state: Polling\n"

    assert () == identify_command(text)
    with pytest.raises(BadSource):
        scan_text(tmp_path, text)
