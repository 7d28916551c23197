"""A hop: one cable with what is known of both of its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from agent.model.labels import natural
from probes.switches.facts import PortFacts, SwitchFacts

LOSSY_BY_DESIGN = ("lossy", "lossy-multi-tc", "semi-lossless")


class HostPort(msgspec.Struct):
    """A RoCE interface of a host, as its report states it."""

    host: str
    name: str
    rail: int | None = None
    mac: str | None = None
    up: bool | None = None
    speed_gbit_s: float | None = None
    mtu: int | None = None
    fec: str | None = None
    trust: str | None = None
    tagged: bool | None = None  # whether its RDMA packets carry a VLAN tag
    dscp_prio: Mapping[int, int] | None = None
    pfc: frozenset[int] | None = None
    dscp: int | None = None  # that its RDMA packets carry
    cnp_dscp: int | None = None
    module_metres: float | None = None
    global_pause: bool | None = None
    neighbor_name: str | None = None
    neighbor_port: str | None = None
    neighbor_chassis: str | None = None
    counters: Mapping[str, int] = {}
    findings: tuple[str, ...] = ()  # rules that its own report has on it


@dataclass(slots=True)
class CableEnd:
    """One end of a cable. Neither `switch` nor `host`: only its name is known."""

    node: str
    port: str
    switch: SwitchFacts | None = None
    facts: PortFacts | None = None
    host: HostPort | None = None
    before: PortFacts | None = None  # the same port in the earlier collection

    @property
    def label(self) -> str:
        """ "leaf1 Ethernet0", "gpu01 eth0 (rail 0)"."""
        rail = f" (rail {self.host.rail})" if self.host is not None and self.host.rail is not None else ""
        return f"{self.node} {self.port}{rail}".rstrip()

    @property
    def subject(self) -> str:
        """What a finding on it is about."""
        if self.switch is not None:
            return f"swport:{self.node}/{self.port}" if self.port else f"switch:{self.node}"
        return f"host:{self.node}/{self.port}"

    @property
    def mtu(self) -> int | None:
        """Of IP packets."""
        return self.facts.mtu if self.facts is not None else self.host.mtu if self.host is not None else None

    @property
    def fec(self) -> str | None:
        """The mode that is in use, else the one that is set to a fixed mode."""
        if self.host is not None:
            return _fec(self.host.fec)
        if self.facts is None or self.facts.oper == "down":
            return None
        return _fec(self.facts.fec_active) or _fec(self.facts.fec_set)

    @property
    def speed(self) -> float | None:
        """Gbit/s."""
        if self.host is not None:
            return self.host.speed_gbit_s
        return self.facts.speed_gbit_s if self.facts is not None else None

    def delta(self, name: str) -> int | None:
        """By how much a counter grew between the two collections; None: not known, or it was reset."""
        if self.facts is None or self.before is None:
            return None
        now, then = self.facts.counters.get(name), self.before.counters.get(name)
        return now - then if now is not None and then is not None and now >= then else None


@dataclass(slots=True)
class Hop:
    """A cable. `told_by`: whose LLDP names it: a, b, both, plan; "" where no far end is known."""

    a: CableEnd
    b: CableEnd
    told_by: str = ""
    metres_plan: float | None = None
    disagreement: str = ""  # what the two sides' LLDP state, where they differ

    @property
    def ends(self) -> tuple[CableEnd, CableEnd]:
        """Both."""
        return self.a, self.b

    @property
    def label(self) -> str:
        """ "leaf1 Ethernet256 - spine1 Ethernet0"."""
        return f"{self.a.label} - {self.b.label}" if self.b.node else self.a.label

    @property
    def is_trunk(self) -> bool:
        """Between two switches."""
        return self.a.switch is not None and self.b.switch is not None

    @property
    def metres_module(self) -> float | None:
        """The length that a host's module states."""
        return next((end.host.module_metres for end in self.ends if end.host and end.host.module_metres), None)

    def key(self) -> tuple[str, str, str, str]:
        """By which hops are ordered."""
        return natural(self.a.node), natural(self.a.port), natural(self.b.node), natural(self.b.port)


def _fec(mode: str | None) -> str | None:
    """A mode under one name; "auto" and "N/A" are no mode.

    >>> [_fec(mode) for mode in ("RS-FEC", "rs", "fc", "baser", "off", "none", "auto", None)]
    ['rs', 'rs', 'baser', 'baser', 'none', 'none', None, None]
    """
    word = (mode or "").lower()
    if word.startswith("rs") or word == "llrs":
        return "rs"
    if word in ("fc", "baser", "base-r", "fc-fec"):
        return "baser"
    return "none" if word in ("none", "off", "disabled", "no-fec") else None
