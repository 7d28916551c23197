"""Soft-RoCE with real traffic over a veth pair: loss by netem is named, and the same traffic without loss is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.conftest import RecordRow, above_info
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

# rxe of 6.1 has its socket in the first network namespace: both ends are in one kernel, and policy routing sends what
# is bound to one end over the wire instead of through lo
PAIR = """
modprobe -a rdma_rxe rdma_ucm veth sch_netem
ip link add va mtu 4200 type veth peer name vb mtu 4200
for each in all default va vb lo; do
  place=/proc/sys/net/ipv4/conf/$each
  echo 1 > $place/accept_local; echo 0 > $place/rp_filter; echo 1 > $place/arp_ignore; echo 2 > $place/arp_announce
done
ip address add 10.9.0.1/24 dev va; ip address add 10.9.0.2/24 dev vb; ip link set va up; ip link set vb up
ip rule add pref 10 oif va lookup 101; ip rule add pref 11 oif vb lookup 102
ip route add 10.9.0.0/24 dev va src 10.9.0.1 table 101; ip route add 10.9.0.0/24 dev vb src 10.9.0.2 table 102
ip rule add pref 100 lookup local; ip rule del pref 0
ip neighbour replace 10.9.0.2 lladdr $(</sys/class/net/vb/address) dev va
ip neighbour replace 10.9.0.1 lladdr $(</sys/class/net/va/address) dev vb
rdma link add rxea type rxe netdev va; rdma link add rxeb type rxe netdev vb
"""
TRAFFIC = """
timeout 100 ib_send_bw -d rxea -x 1 -F -n 1000 -s 4096 > /run/server 2>&1 & sleep 3
timeout 100 ib_send_bw -d rxeb -x 1 -F -n 1000 -s 4096 127.0.0.1 > /run/client 2>&1 || { tail -3 /run/client; exit 1; }
wait
"""
MOVED = "cd /sys/class/infiniband; grep -H . rxe?/ports/1/hw_counters/{out_of_seq_request,completer_retry_err}"
UNDONE = """
rdma link delete rxea; rdma link delete rxeb; ip link delete va
ip rule add pref 0 lookup local; ip rule del pref 100; ip rule del pref 10; ip rule del pref 11
"""


def evaluate(report: dict[str, Any]) -> dict[str, Any]:
    """What the rule of soft-RoCE answered."""
    check: dict[str, Any] = next(check for check in report["checks"] if check["rule"] == "roce-rt-soft-loss")
    return check


def test_loss_is_named_and_clean_traffic_is_not(guest: Guest, record_row: RecordRow) -> None:
    """Three scans: before, after clean traffic, after the same traffic with loss."""
    options = ("--state-dir", "/run/state-rxe")
    guest.clear()
    guest.shell(PAIR)
    try:
        guest.scan(*options)
        guest.shell(TRAFFIC, seconds=240)
        clean = guest.scan(*options, uptime=UPTIME_SECONDS + 600)
        guest.shell("tc qdisc add dev vb root netem loss 3%")
        guest.shell(TRAFFIC, seconds=240)
        lossy = guest.scan(*options, uptime=UPTIME_SECONDS + 1200)
        kernel = guest.shell(MOVED + "; tc -s qdisc show dev vb | grep dropped")
    finally:
        guest.run("bash", "-c", UNDONE)

    assert [] == above_info(clean)
    assert ("pass", 2) == (evaluate(clean)["state"], evaluate(clean)["passed"])
    result = above_info(lossy)
    assert {("roce-rt-soft-loss", "warning")} == {item[:2] for item in result}
    assert {item[2] for item in result} <= {"port:rxea/1", "port:rxeb/1"}
    said = "; ".join(
        f"{finding['label']}: {finding['summary']}" for finding in lossy["findings"] if finding["severity"] != "info"
    )
    record_row("Soft-RoCE with 3% of its packets lost by netem, 1000 messages", kernel, said)
