"""A file of a whole fabric as `--source`: no node's evidence alone, told of beside a node's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from fixtures.build import build_capture
from probes.fabric.topology import Fabric
from probes.host.interface import BadSource, Host
from probes.sources.open_source import open_source
from tests.machines import machine
from tests.probes.fabric.fabric_texts import COULD, EVERY, HCA1, NODES

IBSTAT = f"""CA 'mlx5_1'
	CA type: MT4129
	Number of ports: 1
	Firmware version: 28.43.2026
	Node GUID: 0x{HCA1}
	System image GUID: 0x{HCA1}
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 100
		Base lid: 22
		SM lid: 1
		Port GUID: 0x{HCA1}
		Link layer: InfiniBand
"""


def host_of(path: Path) -> Host:
    host = open_source(str(path))
    assert not isinstance(host, Fabric)
    return host  # type: ignore[return-value]


@pytest.mark.parametrize("text", [*EVERY.values(), NODES])
@pytest.mark.parametrize("name", ["ibnetdiscover.txt", "paste", "ibdiagnet2.db_csv", "iblinkinfo_-l.txt"])
def test_a_fabric_alone_is_no_node(name: str, text: str, tmp_path: Path) -> None:
    """Whatever it is called; the line says what reads it. One that marks a slow link is read for that."""
    (tmp_path / name).write_text(text.replace(COULD, "( )"))

    for path in (tmp_path / name, tmp_path):
        if path == tmp_path and text == NODES and name == "paste":
            continue  # a folder with a list that nobody asks for
        with pytest.raises(BadSource, match=r"not a single node; `fabricscope fleet topology` reads it$") as caught:
            open_source(str(path))
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"ibwarn: [7] mad_rpc: failed\n", bytes(range(256)) * 9])
def test_a_name_alone_makes_no_fabric(content: bytes, tmp_path: Path) -> None:
    """What it holds decides."""
    place = tmp_path / "ibnetdiscover.txt"
    place.write_bytes(content)

    with pytest.raises(BadSource, match=r"is not recognized|is empty"):
        open_source(str(place))


@pytest.mark.parametrize("name", EVERY)
def test_beside_ibstat_it_tells_the_far_end(name: str, tmp_path: Path) -> None:
    """In a folder of saved outputs, by its name or by what it holds."""
    (tmp_path / "ibstat.txt").write_text(IBSTAT)
    (tmp_path / "fabric.txt").write_text(EVERY[name])
    report, _ = diagnose(host_of(tmp_path), ScanPlan())
    (nic,) = report.topology.nics

    assert nic.ports[0].neighbor is not None
    assert ("MF0;leaf-2:MQM9700/U1", 1) == (nic.ports[0].neighbor.name, nic.ports[0].neighbor.port)
    assert "ok" == next(run.status for run in report.probes if run.name == "ib_fabric")


def test_in_a_sosreport_it_lies_where_sos_puts_it(tmp_path: Path) -> None:
    """By device and port, as its plugin asks."""
    folder = tmp_path / "sos_commands" / "infiniband"
    folder.mkdir(parents=True)
    (folder / "ibstat").write_text(IBSTAT)
    (folder / "iblinkinfo_-C_mlx5_1_-P_1").write_text(EVERY["iblinkinfo"])
    report, _ = diagnose(host_of(tmp_path), ScanPlan())

    neighbor = report.topology.nics[0].ports[0].neighbor
    assert neighbor is not None
    assert ("iblinkinfo -C mlx5_1 -P 1", "4X") == (neighbor.source, neighbor.could_width)


def test_the_finding_of_a_slow_rail_names_the_far_end(tmp_path: Path) -> None:
    """The files of a machine with a rail at 2X, and what iblinkinfo said of it there."""
    result = machine("", "ib-rate-2x")
    slow = next(
        nic for nic in diagnose(result, ScanPlan())[0].topology.nics if nic.ports and nic.ports[0].width == "2X"
    )
    guid = (slow.ports[0].port_guid or "").replace(":", "")
    hint = EVERY["iblinkinfo"].replace(HCA1, guid).replace("53.125", "106.25")
    build_capture(None, "ib-rate-2x").tree.write(tmp_path)
    (tmp_path / "iblinkinfo.txt").write_text(hint)
    report, _ = diagnose(host_of(tmp_path), ScanPlan())
    (finding,) = [finding for finding in report.findings if finding.rule == "ib-rate-degraded"]

    assert f"port:{slow.id}/1" == finding.subject
    assert "port 1 of MF0;leaf-2:MQM9700/U1; both ends could be 4X NDR" in [item.value for item in finding.evidence]
