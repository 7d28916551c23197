"""Which connections are served: a limit for each source, and of the source that has most the oldest go first.

    new -> anonymous (a token is still to come, and ten seconds at most) -> busy <-> idle (kept open by a known client)

A source is an IPv4 address, or the /64 of an IPv6 address: a host has all of its addresses. Each source has its own
rate of new connections, and what is beyond it comes out of a rate that all share: a handshake costs a millisecond or
two, and a client that opens thousands gets no more of them than is left by the others.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Callable

CONNECTIONS, CONNECTIONS_OF_SOURCE = 512, 32
ANONYMOUS_SECONDS = 10.0  # from the first packet to the head of a request with a token
SOURCE_RATE, SOURCE_BURST = 5.0, 32.0  # new connections per second, and at once
SHARED_RATE, SHARED_BURST = 100.0, 200.0
_MOST_SOURCES = 4096  # that are remembered
Group = tuple[object, str]  # of connections that count together: the client, or None, and the source


class Connection:
    """One that is served. `close` ends it."""

    __slots__ = ("close", "group", "is_idle", "source")

    def __init__(self, source: str, close: Callable[[], object]) -> None:
        self.source = source
        self.close = close
        self.group: Group = (None, source)
        self.is_idle = True  # nothing of a request is done for it

    @property
    def is_anonymous(self) -> bool:
        """Whether no request of a known client has come over it."""
        return self.group[0] is None


class _Bucket:
    """So many at once, and so many a second."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst, self._left, self._at = rate, burst, burst, now

    def take(self, now: float) -> bool:
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Admission:
    """All connections that are served. `per_source`: false behind a proxy, which is every client's source."""

    def __init__(self, per_source: bool, now: float) -> None:
        self._per_source = per_source
        self._open: set[Connection] = set()
        self._idle: defaultdict[Group, dict[Connection, None]] = defaultdict(dict)  # the oldest first
        self._buckets: dict[str, _Bucket] = {}
        self._shared = _Bucket(SHARED_RATE, SHARED_BURST, now)

    def __len__(self) -> int:
        return len(self._open)

    def has_room(self) -> bool:
        """Whether another one could be served: there is room, or one that can go."""
        return len(self._open) < CONNECTIONS or bool(self._idle)

    def may_open(self, source: str, now: float) -> bool:
        """Whether a source gets another connection now, by its rate and that of all."""
        if not self._per_source:
            return True
        bucket = self._buckets.get(source)
        if bucket is None:
            if len(self._buckets) >= _MOST_SOURCES:
                del self._buckets[next(iter(self._buckets))]
            bucket = self._buckets[source] = _Bucket(SOURCE_RATE, SOURCE_BURST, now)
        return bucket.take(now) or self._shared.take(now)

    def add(self, connection: Connection) -> None:
        """Serve one more; for it the oldest of its source goes, or of the source that has most."""
        if self._per_source:
            self._drop_oldest(connection.group, CONNECTIONS_OF_SOURCE - 1)
        if len(self._open) >= CONNECTIONS and self._idle:
            largest = max(self._idle, key=lambda group: (len(self._idle[group]), group[0] is None))
            self._drop_oldest(largest, len(self._idle[largest]) - 1)
        self._open.add(connection)
        self._idle[connection.group][connection] = None

    def set_busy(self, connection: Connection, client: object) -> None:
        """A request of a known client is under way: it is not dropped for another."""
        if connection in self._open:
            self._forget_idle(connection)
            connection.group, connection.is_idle = (client, connection.source), False

    def set_idle(self, connection: Connection) -> None:
        """It is answered, and the connection may stay for another request."""
        if connection in self._open and not connection.is_idle:
            connection.is_idle = True
            self._idle[connection.group][connection] = None
            if self._per_source:
                self._drop_oldest(connection.group, CONNECTIONS_OF_SOURCE)

    def remove(self, connection: Connection) -> None:
        """It has ended."""
        self._open.discard(connection)
        self._forget_idle(connection)

    def _drop_oldest(self, group: Group, left: int) -> None:
        connections = list(self._idle.get(group, ()))
        for connection in connections[: max(len(connections) - left, 0)]:
            self.remove(connection)
            connection.close()

    def _forget_idle(self, connection: Connection) -> None:
        group = self._idle.get(connection.group)
        if group is not None:
            group.pop(connection, None)
            if not group:
                del self._idle[connection.group]


def find_source(address: str) -> str:
    """What counts as one source.

    >>> find_source("10.0.0.1"), find_source("2001:db8:1:2:aa::1") == find_source("2001:db8:1:2:bb::9%eth0")
    ('10.0.0.1', True)
    """
    if ":" not in address:
        return address
    try:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except OSError:
        return address
    if packed[:12] == bytes(10) + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return f"{socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))}/64"
