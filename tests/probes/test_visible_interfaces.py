"""Saved outputs about interfaces: found by the names that a source shows, and not called absent where it shows none."""

import pytest

from probes.catalogue import probe
from probes.host.interface import Absent
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost

DEVICES = "mlx5_0 port 1 ==> mce0 (Up)\n"
GIDS = "mlx5_0\t1\t0\tfe80:0000:0000:0000:9440:c9ff:ffd6:9c9d\tv1\tmce0\nn_gids_found=1\n"
IP = "2: mce0: <BROADCAST,UP> mtu 9000\n    link/ether 94:40:c9:8c:a0:9c brd ff:ff:ff:ff:ff:ff\n"
QOS = "Priority trust state: dscp\n"


def saved(**files: str) -> TreeHost:
    """A dump of these outputs, by the names of their files."""
    named = {name.replace("__", "_-"): text.encode() for name, text in files.items()}
    return TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles(named)))


@pytest.mark.parametrize(
    ("name", "files", "words"),
    [
        ("dcb", {"ibdev2netdev": DEVICES, "mlnx_qos__i_mce0": QOS}, "mlnx_qos -i mce0 is here, and nothing tells"),
        ("dcb", {"show_gids": GIDS, "mlnx_qos__i_mce0": QOS}, "mlnx_qos -i mce0 is here"),
        ("dcb", {"show_gids": GIDS, "dcb_pfc_show_dev_mce0": "x"}, "dcb pfc show dev mce0 is here"),
        ("dcb", {"ibdev2netdev": "no line of it", "show_gids": GIDS, "mlnx_qos__i_mce0": QOS}, "mce0 is here"),
        ("dcb", {"ibdev2netdev": DEVICES}, "no Ethernet interface of a PCI device is seen here"),
        ("dcb", {"mlnx_qos__i_mce0": QOS}, "no Ethernet interface of a PCI device is seen here"),
        ("ethtool", {"ibdev2netdev": DEVICES, "ethtool_mce0": "Speed: 1000Mb/s\n"}, "ethtool mce0 is here"),
        ("ethtool", {"ethtool_mce0": "Speed: 1000Mb/s\n"}, "about an interface that is shown"),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_joined_is_said_to_be_there(name: str, files: dict[str, str], words: str) -> None:
    """Names of RDMA tools lead to it; what device it is of they do not tell."""
    with pytest.raises(Absent, match=words):
        probe(name).read(saved(**files))


def test_an_interface_that_is_shown_is_not_named_alone() -> None:
    """ip shows it, without a device."""
    with pytest.raises(Absent, match="no Ethernet interface"):
        probe("dcb").read(saved(ibdev2netdev=DEVICES, mlnx_qos__i_mce0=QOS, ip__d_link=IP))
