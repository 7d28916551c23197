"""Two guests and one wire: lldpd's neighbour is in the report of each, and real loss on the wire is named by both."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from tests.lab.conftest import RecordRow, above_info, started
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

Result = TypeVar("Result")
STATE = ("--state-dir", "/run/state-wire")
PORT = "$(basename /sys/class/net/en*)"
JOINED = """
hostname node{me}; port={port}; modprobe -a rdma_rxe rdma_ucm sch_netem
ip address add 10.9.0.{me}/24 dev $port; ip link set $port mtu 4200 up; rdma link add rxe0 type rxe netdev $port
systemctl start lldpd; lldpcli configure lldp tx-interval 2 > /run/lldpcli
for each in {{1..120}}; do lldpctl -f json | grep -q node{other} && break; sleep 0.5; done
lldpctl -f keyvalue | grep -E 'chassis.name|port.descr'
"""
SERVER = """
timeout 100 rping -s -a 10.9.0.1 -C 50 > /run/rping
timeout 100 ib_send_bw -d rxe0 -x 1 -F -n 1000 -s 4096 > /run/send
"""
CLIENT = """
sleep 2; timeout 100 rping -c -a 10.9.0.1 -C 50 > /run/rping
sleep 3; timeout 100 ib_send_bw -d rxe0 -x 1 -F -n 1000 -s 4096 10.9.0.1 > /run/send
"""
LOSS = f"tc qdisc add dev {PORT} root netem loss 3%"
MOVED = "cd /sys/class/infiniband; grep -H . rxe0/ports/1/hw_counters/{out_of_seq_request,completer_retry_err}"
DROPPED = f"tc -s qdisc show dev {PORT} | grep dropped"


class Pair:
    """Both guests, asked at the same time."""

    def __init__(self, wire: tuple[socket.socket, socket.socket]) -> None:
        self._pool = ThreadPoolExecutor(2)
        self.guests: list[Guest] = []
        try:
            for number, end in enumerate(wire, 1):
                self.guests.append(started(f"-node{number}", end.fileno()))
            self.each(self._plug)  # only now: what is on the wire before its other end listens is half a frame there
        except BaseException:
            self.close()
            raise

    def _plug(self, number: int) -> None:
        card = {"driver": "virtio-net-pci", "netdev": "wire", "mac": f"52:54:00:00:01:0{number}"}
        self.guests[number - 1].plug(**card, speed=100_000, duplex="full", host_mtu=4200)

    def each(self, do: Callable[[int], Result]) -> list[Result]:
        """What is done for number 1 and for number 2."""
        return list(self._pool.map(do, (1, 2)))

    def scans(self, uptime: int = UPTIME_SECONDS) -> list[dict[str, Any]]:
        """A report of each."""
        return self.each(lambda number: self.guests[number - 1].scan(*STATE, uptime=uptime))

    def traffic(self) -> None:
        """From the second to the first: rping over the connection manager, then a thousand messages."""
        self.each(lambda number: self.guests[number - 1].shell(SERVER if number == 1 else CLIENT, seconds=250))

    def close(self) -> None:
        """End both."""
        for guest in self.guests:
            guest.close()
        self._pool.shutdown()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Joined by a pair of sockets: each QEMU has one end as the wire of its network card."""
    wire = socket.socketpair()
    try:
        both = Pair(wire)
    finally:
        for end in wire:
            end.close()
    yield both
    both.close()


def neighbors(report: dict[str, Any]) -> list[str | None]:
    """Systems at the other ends of interfaces."""
    return [netdev["neighbor"]["system"] for netdev in report["topology"]["netdevs"] if netdev["neighbor"]]


def evaluate(report: dict[str, Any]) -> tuple[str, int]:
    """What the rule of soft-RoCE answered, and for how many ports it passed."""
    check = next(check for check in report["checks"] if check["rule"] == "roce-rt-soft-loss")
    return check["state"], check["passed"]


def test_neighbours_and_a_lossy_wire(pair: Pair, record_row: RecordRow) -> None:
    """Three scans of each: joined, after clean traffic, after the same traffic with loss."""
    one, two = pair.guests
    known = pair.each(lambda me: pair.guests[me - 1].shell(JOINED.format(me=me, other=3 - me, port=PORT)))
    first = pair.scans()
    assert [["node2"], ["node1"]] == [neighbors(report) for report in first]
    assert [[], []] == [above_info(report) for report in first]
    said = "; ".join(f"node{3 - int(name[-1])}: {name}" for report in first for name in neighbors(report) if name)
    record_row("Two guests, one wire, lldpd in both", "; ".join(known), f"neighbours: {said}")

    pair.traffic()
    clean = pair.scans(UPTIME_SECONDS + 600)
    two.shell(LOSS)
    pair.traffic()
    lossy = pair.scans(UPTIME_SECONDS + 1200)
    kernel = one.shell(MOVED) + two.shell(f"{MOVED}; {DROPPED}")

    assert [[], []] == [above_info(report) for report in clean]
    assert [("pass", 1), ("pass", 1)] == [evaluate(report) for report in clean]
    result = [("roce-rt-soft-loss", "warning", "port:rxe0/1")]
    assert [result, result] == [above_info(report) for report in lossy], [report["findings"] for report in lossy]
    said = "; ".join(
        f"node{number}: {finding['label']}: {finding['summary']}"
        for number, report in enumerate(lossy, 1)
        for finding in report["findings"]
        if finding["severity"] != "info"
    )
    record_row("The wire loses 3% of what the second sends by soft-RoCE; no finding for clean traffic", kernel, said)
