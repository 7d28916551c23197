"""Which connections are served, whoever opens how many: no socket and no clock."""

from __future__ import annotations

import pytest

from agent.receive import admission
from agent.receive.admission import CONNECTIONS, CONNECTIONS_OF_SOURCE, Admission, Connection, find_source


class Peers:
    """Connections by source, in the order in which they were opened, and those that were ended."""

    def __init__(self, per_source: bool = True) -> None:
        self.admission = Admission(per_source, 0.0)
        self.ended: list[Connection] = []

    def open(self, source: str, count: int = 1, client: str | None = None) -> list[Connection]:
        """Served, and idle; of a client: it has sent one report."""
        opened = []
        for _ in range(count):
            connection = Connection(source, lambda: None)
            connection.close = lambda connection=connection: self.ended.append(connection)
            self.admission.add(connection)
            if client is not None:
                self.admission.set_busy(connection, client)
                self.admission.set_idle(connection)
            opened.append(connection)
        return opened


def test_the_oldest_of_a_source_goes_for_its_next() -> None:
    """A source that fills its limit harms itself."""
    peers = Peers()
    first = peers.open("a", CONNECTIONS_OF_SOURCE)
    other = peers.open("b")
    peers.open("a", 2)

    assert first[:2] == peers.ended
    assert other[0] not in peers.ended
    assert CONNECTIONS_OF_SOURCE + 1 == len(peers.admission)


@pytest.mark.parametrize("client", [None, "evil"])
def test_a_full_server_makes_room_for_a_source_with_fewer(client: str | None) -> None:
    """Sixteen addresses with all that they may have: every honest node is served, each for as long as it needs."""
    peers = Peers()
    for number in range(CONNECTIONS // CONNECTIONS_OF_SOURCE):
        peers.open(f"evil{number}", CONNECTIONS_OF_SOURCE, client)
    assert CONNECTIONS == len(peers.admission)
    honest = [connection for number in range(100) for connection in peers.open(f"n{number}")]
    for number in range(CONNECTIONS // CONNECTIONS_OF_SOURCE):
        peers.open(f"evil{number}", 100, client)

    assert CONNECTIONS == len(peers.admission)
    assert not set(honest) & set(peers.ended)


def test_a_request_under_way_is_not_dropped() -> None:
    """Not for its own source, not for another."""
    peers = Peers()
    busy = peers.open("a")
    peers.admission.set_busy(busy[0], "client")
    peers.open("a", CONNECTIONS)
    for number in range(CONNECTIONS):
        peers.open(f"n{number}")

    assert busy[0] not in peers.ended
    peers.admission.set_idle(busy[0])
    assert busy[0].is_idle


def test_where_all_are_busy_new_ones_wait() -> None:
    """In the kernel's queue."""
    peers = Peers(per_source=False)
    connections = peers.open("proxy", CONNECTIONS)
    for connection in connections:
        peers.admission.set_busy(connection, "client")
    assert not peers.admission.has_room()
    assert [] == peers.ended
    peers.admission.remove(connections[0])
    assert peers.admission.has_room()


def test_a_proxy_has_no_limit_of_a_source() -> None:
    """All clients come from it."""
    peers = Peers(per_source=False)
    peers.open("127.0.0.1", CONNECTIONS)
    assert [] == peers.ended
    assert all(peers.admission.may_open("127.0.0.1", 0.0) for _ in range(10_000))


def test_each_source_has_its_own_rate() -> None:
    """A flood is refused before it costs a handshake; a node that comes then is not."""
    gate = Admission(True, 0.0)
    taken = sum(gate.may_open(f"evil{tick % 17}", tick / 3300) for tick in range(3300 * 20))
    bound = 17 * (admission.SOURCE_BURST + 20 * admission.SOURCE_RATE) + admission.SHARED_BURST
    assert taken <= bound + 20 * admission.SHARED_RATE + 1
    assert all(gate.may_open(f"n{number}", 20.0) for number in range(1000))


def test_what_is_remembered_of_sources_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number."""
    monkeypatch.setattr(admission, "_MOST_SOURCES", 10)
    gate = Admission(True, 0.0)
    for number in range(1000):
        gate.may_open(f"s{number}", 0.0)

    assert 10 == len(gate._buckets)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("::1", "::/64"),
    ],
)
def test_a_host_is_one_source_with_all_its_addresses(address: str, source: str) -> None:
    """Of IPv6 it has a whole /64."""
    assert source == find_source(address)
