"""Which ports NCCL takes, and for whom a rule of this family is.

`NCCL_IB_HCA` is a list of device names, each a prefix unless the list begins with "=", each with a port after ":";
"^" at the very start turns it round. NCCL looks at active ports of InfiniBand and Ethernet only. The same grammar
chooses interfaces for `NCCL_SOCKET_IFNAME`. Source: NCCL `src/misc/utils.cc` (parseStringList, matchIfList) and
`src/transport/net_ib/init.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Nic, Port
from agent.rules.case import Case
from agent.rules.devices import lowered
from agent.rules.nccl.settings import Effective
from agent.rules.rule import Answer, NotApplicable, Unknown

NODE = frozenset({"node"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_OWN_WAY = ("efa", "gve", "mana", "erdma", "siw")  # their providers bring a plugin; NCCL's own RDMA is not used


class Wanted(NamedTuple):
    """A list as NCCL reads it."""

    exclude: bool
    exact: bool
    names: tuple[tuple[str, int | None], ...]  # name or prefix, port; None: every port

    def takes(self, name: str, port: int | None = None) -> bool:
        """Whether a device or interface is taken. An empty list names everything."""
        found = not self.names or any(self._names(each, name, port) for each in self.names)
        return found != self.exclude

    def matching(self, entry: tuple[str, int | None], names: Iterable[str]) -> list[str]:
        """Which of these names one entry of the list stands for, whatever the port."""
        return [name for name in names if self._names((entry[0], None), name, None)]

    def _names(self, entry: tuple[str, int | None], name: str, port: int | None) -> bool:
        same = name == entry[0] if self.exact else name.startswith(entry[0])
        return same and (port is None or entry[1] is None or port == entry[1])


class Hca(NamedTuple):
    """One active port that NCCL could take."""

    nic: Nic
    port: Port

    @property
    def name(self) -> str:
        """The RDMA device's name."""
        return self.nic.rdma_device or self.nic.label

    @property
    def label(self) -> str:
        """For people: the port only where the device has several."""
        return self.name if len(self.nic.ports) == 1 else f"{self.name}:{self.port.port}"


def wanted(value: str) -> Wanted:
    """Read a list.

    >>> wanted("^=mlx5_1:2,mlx5_3")
    Wanted(exclude=True, exact=True, names=(('mlx5_1', 2), ('mlx5_3', None)))
    """
    exclude = value.startswith("^")
    value = value[exclude:]
    exact = value.startswith("=")
    entries = (entry.split(":") for entry in value[exact:].split(","))
    return Wanted(exclude, exact, tuple((words[0], _port(words[1:])) for words in entries if words[0]))


def active_ports(case: Case) -> list[Hca]:
    """Every port that NCCL would consider, by device name."""
    found = [
        Hca(nic, port)
        for nic in case.topology.nics
        if nic.state == "present" and nic.rdma_device
        for port in nic.ports
        if port.state == "ACTIVE" and port.link_layer in ("InfiniBand", "Ethernet")
    ]
    return sorted(found, key=lambda each: (len(each.name), each.name, each.port.port))


def rdma_rails(case: Case) -> list[Hca]:
    """Active ports of rails that NCCL's own RDMA is for: not those of clouds whose plugin stands in for it."""
    rails = [each for each in active_ports(case) if each.nic.role == "rail" and not each.nic.software]
    return [each for each in rails if not (each.nic.driver or "").startswith(_OWN_WAY)]


def no_gpus(case: Case) -> Iterator[Answer]:
    """The answer where no job of GPUs can run; none where one can."""
    if not case.topology.gpus:
        why = case.bus_unread
        yield Unknown("node", why) if why else NotApplicable("node", "no GPU")


def no_rails(case: Case) -> Iterator[Answer]:
    """The answer where RDMA of NCCL's own is not expected; none where it is."""
    silent = next(no_gpus(case), None)
    if silent:
        yield silent
        return
    why = case.probe_failure("rdma|rdma_tools")
    if not rdma_rails(case):
        unknown = why if case.topology.nics else None
        unknown = unknown or case.no_rail_known
        yield Unknown("node", unknown) if unknown else NotApplicable("node", "no active RDMA rail")


def severity_of(severity: str, where: Iterable[Effective]) -> str:
    """What a setting of all jobs is; one step less grave where only running jobs have it: they may try something."""
    return severity if any(each.persistent for each in where) else lowered(severity)


def evidence_of(key: str, where: Iterable[Effective]) -> tuple[Evidence, ...]:
    """Every place of a setting, up to eight."""
    return tuple(each.evidence(key) for each in list(where)[:8])


def _port(words: list[str]) -> int | None:
    """A port as atoi reads it; none is told: every one."""
    if not words or not words[0]:
        return None
    found = _INTEGER.match(words[0].strip())
    return int(found[0][:9]) if found else 0
