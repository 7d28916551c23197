"""What two outputs of one host state of the same part, and not alike."""

from __future__ import annotations

import pytest

from tests.agent.contradictions.test_mixed import DOWN, HEALTHY, scan_outputs

RATE = "$ cat /sys/class/infiniband/mlx5_0/ports/1/rate\n{}\n"
RDMA = "$ rdma link show mlx5_0/1\nlink mlx5_0/1 lid 7 sm_lid 1 lmc 0 state {} physical_state {}\n"
IP = "$ ip link show ens2f0np0\n6: ens2f0np0: <BROADCAST,MULTICAST,UP{}> mtu {} qdisc mq state {} mode DEFAULT\n"
ETHTOOL = "$ ethtool ens2f0np0\nSettings for ens2f0np0:\n\tSpeed: 400000Mb/s\n\tLink detected: {}\n"
SYSFS_MTU = "$ cat /sys/class/net/ens2f0np0/mtu\n{}\n"


@pytest.mark.parametrize(
    ("outputs", "what"),
    [
        (("$ ibstat\n" + HEALTHY, RATE.format("200 Gb/sec (4X HDR)")),
         "mlx5_0/1: rate 400 Gb/s (ibstat), 200 Gb/s (sysfs files)"),
        (("$ ibstat\n" + DOWN, RDMA.format("ACTIVE", "LINK_UP")),
         "mlx5_0/1: state DOWN (ibstat), ACTIVE (rdma link); physical state Polling (ibstat), LinkUp (rdma link)"),
        ((IP.format(",LOWER_UP", 9000, "UP"), ETHTOOL.format("no")),
         "ens2f0np0: state up (ip link), down (ethtool ens2f0np0)"),
        ((IP.format(",LOWER_UP", 9000, "UP"), SYSFS_MTU.format(1500)),
         "ens2f0np0: MTU 9000 bytes (ip link), 1500 bytes (sysfs files)"),
        # what agrees, whatever the words of the tool
        (("$ ibstat\n" + HEALTHY, RATE.format("400 Gb/sec (4X NDR)")), None),
        (("$ ibstat\n" + HEALTHY, RDMA.format("ACTIVE", "LINK_UP")), None),
        ((IP.format(",LOWER_UP", 9000, "UP"), ETHTOOL.format("yes"), SYSFS_MTU.format(9000)), None),
        # the same command again is a later moment, and no contradiction
        ((IP.format(",LOWER_UP", 9000, "UP"), IP.format(",LOWER_UP", 1500, "UP")), None),
    ],
)  # fmt: skip
def test_outputs_that_contradict(outputs: tuple[str, ...], what: str | None) -> None:
    """One note that quotes both, in a ticket's text and in files of their own."""
    for files in ({"ticket.txt": "".join(outputs)}, {f"{at}.txt": text for at, text in enumerate(outputs)}):
        found = [finding for finding in scan_outputs(files).findings if "contradict" in finding.summary]
        stated = [(finding.summary, finding.severity) for finding in found]
        assert stated == ([(f"two outputs contradict each other: {what}", "info")] if what else []), files
