"""Saved outputs about interfaces: found by the names that a source shows, and not called absent where it shows none."""

from pathlib import Path

import pytest

from agent.config import Configuration, DeclaredFacts
from agent.diagnose import ScanPlan, diagnose
from probes.capture.writer import write_capture
from probes.catalogue import probe
from probes.host.interface import Absent
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost

DEVICES = "mlx5_0 port 1 ==> mce0 (Up)\n"
GIDS = "mlx5_0\t1\t0\tfe80:0000:0000:0000:9440:c9ff:ffd6:9c9d\tv1\tmce0\nn_gids_found=1\n"
IP = "2: mce0: <BROADCAST,UP> mtu 9000\n    link/ether 94:40:c9:8c:a0:9c brd ff:ff:ff:ff:ff:ff\n"
QOS = "Priority trust state: dscp\n"


def saved(**files: str) -> TreeHost:
    """A dump of these outputs, by the names of their files."""
    named = {name.replace("__", "_-"): text.encode() for name, text in files.items()}
    return TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles(named)))


PFC = (
    "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   {}   0   0   0   0   \n"
)
GIDS_V2 = "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t10.0.0.1\tv2\tmce0\nn_gids_found=1\n"
STATISTICS = "NIC statistics:\n     rx_discards_phy: 0\n     rx_prio0_bytes: 7\n     rx_prio7_bytes: 0\n"
DRIVER = "driver: {}\nversion: 5.15\nfirmware-version: 28.39\nbus-info: 0000:1a:00.0\n"


@pytest.mark.parametrize(
    "files",
    [
        {"ibdev2netdev": DEVICES, "mlnx_qos__i_mce0": QOS},
        {"show_gids": GIDS, "mlnx_qos__i_mce0": QOS},
        {"mlnx_qos__i_mce0": QOS},
        {"ibdev2netdev": DEVICES, "mlnx_qos__i_mce0": QOS, "ip__d_link": IP},
    ],
)
def test_settings_of_an_interface_need_no_device(files: dict[str, str]) -> None:
    """Its name in the name of the output is enough."""
    (row,) = probe("dcb").read(saved(**files)).facts.interfaces

    assert ("mce0", None, "dscp") == (row.name, row.pci, row.said[0].trust)


def test_outputs_of_one_interface_alone_are_a_source() -> None:
    """The interface is one of the report, with what each of them says."""
    host = saved(
        ethtool_mce0="Speed: 1000Mb/s\n", ethtool__S_mce0=STATISTICS, ethtool__i_mce0=DRIVER.format("mlx5_core")
    )
    (netdev,) = probe("netdev").read(host).facts.netdevs
    (ethernet,) = probe("ethtool").read(host).facts.interfaces

    assert ("mce0", "0000:1a:00.0", None, False) == (netdev.name, netdev.address, netdev.admin_up, netdev.virtual)
    assert (1000, "mlx5_core") == (ethernet.modes.speed_mbit_s, ethernet.driver)
    assert (False, False) == ethernet.pause[:2], "mlx5 has no rx_global_pause where pause is off"


@pytest.mark.parametrize(
    ("driver", "address", "virtual"),
    [("mlx5_core", "0000:1a:00.0", False), ("mlx5e_rep", None, False), ("bonding", None, True), ("veth", None, True)],
)
def test_the_driver_states_what_is_below_an_interface(driver: str, address: str | None, virtual: bool) -> None:
    """A representor states the device of another port."""
    for output in ({"ip__d_link": IP}, {}):
        (netdev,) = probe("netdev").read(saved(ethtool__i_mce0=DRIVER.format(driver), **output)).facts.netdevs
        assert (address, virtual) == (netdev.address, netdev.virtual)


def test_ibdev2netdev_states_the_device_too() -> None:
    """With -v."""
    line = "0000:04:00.0 mlx5_0 (MT4119 - ABC) CX-5 fw 16.35 port 1 (ACTIVE) ==> mce0 (Up)\n"
    (netdev,) = probe("netdev").read(saved(ibdev2netdev__v=line, ip__d_link=IP)).facts.netdevs

    assert "0000:04:00.0" == netdev.address


def test_a_list_of_interfaces_is_whole() -> None:
    """An output about an interface that `ip link` does not show is of another namespace, or of another time."""
    netdevs = probe("netdev").read(saved(ip__d_link=IP, mlnx_qos__i_mce9=QOS)).facts.netdevs

    assert ["mce0"] == [netdev.name for netdev in netdevs]
    with pytest.raises(Absent, match="about an interface that is shown"):
        probe("ethtool").read(saved(ip__d_link=IP, ethtool_mce9="Speed: 1000Mb/s\n"))


def test_an_output_that_says_nothing_makes_no_settings() -> None:
    """Of no interface, of one that is none, and of a text of another kind."""
    for files in ({"ibdev2netdev": DEVICES}, {"ethtool__S_lo": STATISTICS}, {"dcb_pfc_show_dev_mce0": "x"}):
        with pytest.raises(Absent, match="no Ethernet interface of a PCI device"):
            probe("dcb").read(saved(**files))


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize(
    ("pfc", "statistics", "lossy", "off"),
    [
        (1, STATISTICS, "pass", "pass"),
        (0, STATISTICS, "fail", "fail"),
        (0, STATISTICS + "     rx_global_pause: 0\n", "unknown", "unknown"),
        (0, "NIC statistics:\n     rx_packets: 7\n", "unknown", "unknown"),
        (None, STATISTICS + "     rx_prio3_pause: 0\n", "pass", "pass"),
        (None, STATISTICS, "fail", "fail"),
    ],
)
def test_whether_roce_is_lossy_needs_three_outputs(
    tmp_path: Path, pfc: int | None, statistics: str, lossy: str, off: str, replayed: bool
) -> None:
    """mlnx_qos, ethtool -S and show_gids of one interface, nothing else; a capture of them answers the same."""
    (tmp_path / "dump").mkdir()
    trust = "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:31,30,29,28,27,26,25,24,\n"
    files = {
        "mlnx_qos_-i_mce0.txt": trust if pfc is None else trust + PFC.format(pfc),
        "ethtool_-S_mce0.txt": statistics,
        "show_gids.txt": GIDS_V2,
    }
    for name, text in files.items():
        (tmp_path / "dump" / name).write_text(text)
    declared = Configuration(facts=DeclaredFacts(roce_traffic_class=106))
    source = str(tmp_path / "dump")
    report, recording = diagnose(open_source(source), ScanPlan(configuration=declared, record=True))
    if replayed:
        assert recording is not None
        write_capture(recording, str(tmp_path / "capture"))
        report, _ = diagnose(open_source(str(tmp_path / "capture")), ScanPlan(configuration=declared))

    states = {check.rule: check.state for check in report.checks}
    assert (lossy, off) == (states["roce-lossy"], states["roce-pfc-off"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("rdma_link", "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev mce0\n"),
        ("ibdev2netdev", DEVICES),
        ("show_gids", GIDS),
        ("lldpctl", "Interface:    mce0, via: LLDP, RID: 1\n  Port:\n    PortID:       ifname swp1\n"),
        ("lldpctl__f_keyvalue", "lldp.mce0.via=LLDP\nlldp.mce0.port.ifname=swp1\n"),
    ],
)
def test_an_interface_that_an_output_names_exists(file: str, text: str) -> None:
    """As far as the text goes: nothing else of it is known. Where there is a list of interfaces, that counts."""
    (netdev,) = probe("netdev").read(saved(**{file: text})).facts.netdevs

    assert ("mce0", None, None, None) == (netdev.name, netdev.operstate, netdev.mtu, netdev.address)
    listed = saved(**{file: text, "ip__d_link": IP.replace("mce0", "mce1")})
    assert ["mce1"] == [netdev.name for netdev in probe("netdev").read(listed).facts.netdevs]


@pytest.mark.parametrize(("driver", "expected"), [("mlx5_core", "mlx5_core"), ("bonding", None)])
def test_the_driver_of_a_device_is_that_of_its_interface(tmp_path: Path, driver: str, expected: str | None) -> None:
    """One output of `ethtool -i` is enough; what has no device has no driver of one."""
    (tmp_path / "ethtool_-i_mce0.txt").write_text(DRIVER.format(driver))
    report, _ = diagnose(open_source(str(tmp_path)), ScanPlan())

    assert [("mce0", expected)] == [(row.label, row.driver) for row in report.topology.netdevs]
