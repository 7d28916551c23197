"""Faults that a later line of the same log ends: a server that answers again, a port of a bond whose link is back.

Sources: Linux 6.12 net/sunrpc/clnt.c, drivers/nvme/host/{rdma,tcp}.c, drivers/infiniband/ulp/srp/ib_srp.c,
net/ceph/{mon_client,messenger,osdmap}.c, fs/ceph/mds_client.c, drivers/net/bonding/bond_main.c. Those of Lustre are
from public logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import DRIVER
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_LIMIT = 200
_TEXT_CHARACTERS = 300


class PassingFault(NamedTuple):
    """What begins a fault and what ends it; both name the part."""

    code: str
    needles: tuple[str, ...]  # one of which every such line contains
    begins: re.Pattern[str]
    ends: re.Pattern[str]


def _fault(code: str, needles: tuple[str, ...], begins: str, ends: str) -> PassingFault:
    return PassingFault(code, needles, lazy_pattern(begins), lazy_pattern(ends))


_LUSTRE = r"Lustre(?:Error)?: (?:[\w-]{1,12}: )?(?P<name>[\w.-]{3,120}): Connection "
_CEPH = r"(?:lib)?ceph: (?:\[[^\]]{1,80}\]: )?(?P<name>(?:mon|osd|mds)\d{1,6})\b.{0,120}"
_NVME = r"nvme (?P<name>nvme\d{1,5}): "
_SLAVE = r"\S{1,15}: \(slave (?P<name>[^\s)]{1,32})\): link status "
_OLD_SLAVE = r"\S{1,15}: link status definitely (?:down|up) for interface (?P<name>[^\s,]{1,32})"
PASSING_FAULTS = (
    _fault(
        "storage-silent", ("nfs: server ", "NFS: server "),
        r"(?:nfs|NFS): server (?P<name>\S{1,255}) not responding, (?P<what>still trying|timed out)",
        r"(?:nfs|NFS): server (?P<name>\S{1,255}) OK",
    ),
    _fault(
        "storage-silent", ("Connection to ", "Connection restored to "),
        _LUSTRE + r"to \S{1,120} \(at (?P<server>\S{1,80})\) was lost", _LUSTRE + r"restored to ",
    ),
    _fault(
        "storage-silent", ("error recovery", "econnect", "onnect rejected", "onnection establishment", " failed ("),
        _NVME + r"(?P<what>starting error recovery|Reconnecting in|Failed reconnect attempt|failed to connect (?:queue|"
        r"socket)|Connect rejected|rdma_\w{1,40} failed|(?:rdma )?connection establishment failed)",
        _NVME + r"Successfully reconnected",
    ),
    _fault(
        "storage-silent", ("ib_srp: ",),
        r"scsi (?P<name>host\d{1,5}): ib_srp: (?P<what>reconnect attempt \d{1,9} failed|Got failed path rec status|"
        r"Path record query failed|Connection \d{1,5}/\d{1,5} to \S{1,80} failed|failed \w{1,40} status)",
        r"scsi (?P<name>host\d{1,5}): ib_srp: reconnect succeeded",
    ),
    _fault(
        "storage-silent", ("ceph: ",),
        _CEPH + r"(?P<what>session lost|connect error|\bdown$|\bhung$|socket error on write)",
        _CEPH + r"(?:session established| up$|came back|recovery completed|reconnect success)",
    ),
    _fault("bond-member-down", ("): link status ",), _SLAVE + "definitely down", _SLAVE + "(?:definitely up|up again)"),
    _fault(
        "bond-member-down", ("link status definitely ",),
        _OLD_SLAVE.replace("(?:down|up)", "down"), _OLD_SLAVE.replace("(?:down|up)", "up"),
    ),
    _fault(
        "bond-without-port", (" active interface",),
        r"(?P<name>\S{1,15}): now running without any active interface",
        r"(?P<name>\S{1,15}): active interface up!",
    ),
)  # fmt: skip
NEEDLES = tuple(dict.fromkeys(needle for fault in PASSING_FAULTS for needle in fault.needles))


class PassingFaults:
    """Those that no line of the log has ended."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], LogEvent] = {}

    def read(self, text: str, at: str | None, logged: str | None) -> bool:
        """Whether a line, and when it was written, begins or ends a fault."""
        for fault in PASSING_FAULTS:
            if not any(needle in text for needle in fault.needles):
                continue
            if match := fault.begins.match(text):
                groups = {name: value for name, value in match.groupdict().items() if value}
                place = fault.code, groups.pop("name")
                before = self._open.get(place)
                if before is None and len(self._open) >= _LIMIT:
                    return True
                event = LogEvent(DRIVER, text[:_TEXT_CHARACTERS], at, place[1], fault.code, logged=logged)
                event = event._replace(detail=tuple(sorted(groups.items())))
                if before:
                    event = event._replace(count=before.count + 1, first_at=before.first_at or before.at)
                self._open[place] = event
                return True
            if match := fault.ends.match(text):
                self._open.pop((fault.code, match["name"]), None)
                return True
        return False

    def close(self) -> Iterator[LogEvent]:
        """The faults that are left at the end."""
        yield from self._open.values()
