"""One fault of a hop, before it is folded with others of one cause into a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from agent.fleet.lossless.hop import CableEnd, Hop
from agent.fleet.lossless.traffic import TrafficClass, classify

NO_VALUES: Mapping[str, str] = MappingProxyType({})


class HopFault(NamedTuple):
    """`end`: the end that is at fault. `cause`: faults of one switch with one cause are one finding.

    `detail`: of the summary where the finding is of one port. `lossy`: packets are, or will be, dropped. `values`: of
    words in braces of the remedy.
    """

    rule: str
    end: CableEnd
    hop: Hop
    summary: str
    evidence: tuple[tuple[str, str, str], ...] = ()  # what, value, source
    severity: str | None = None
    cause: str = ""
    lossy: bool = False
    values: Mapping[str, str] = NO_VALUES
    detail: str = ""
    absorbs: tuple[str, ...] = ()  # "RULE SUBJECT" of faults that this one explains


@dataclass
class HopContext:
    """A hop with what becomes of the packets at both of its ends."""

    hop: Hop
    dscp: int
    by_hosts: bool = False  # the DSCP is what hosts mark
    host_mtu: int | None = None  # of most hosts
    cnp_dscp: int | None = None
    usual: int | None = None  # the priority of the DSCP at most lossless ends of the fabric

    @property
    def tagged(self) -> bool | None:
        """Whether packets carry a VLAN tag, by the host of the hop."""
        return next((end.host.tagged for end in self.hop.ends if end.host is not None), None)

    @cached_property
    def traffic(self) -> tuple[TrafficClass, TrafficClass]:
        """Of end a, of end b."""
        return classify(self.hop.a, self.dscp, self.tagged), classify(self.hop.b, self.dscp, self.tagged)

    @property
    def by_design(self) -> str:
        """lossy or trimmed where a switch of the hop is set up without PFC."""
        designs = [traffic.by_design for traffic in self.traffic]
        return "trimmed" if "trimmed" in designs else "lossy" if "lossy" in designs else ""

    def sides(self) -> tuple[tuple[CableEnd, TrafficClass, CableEnd, TrafficClass], ...]:
        """Each end with its traffic, and the other."""
        (a, b), (at_a, at_b) = self.hop.ends, self.traffic
        return (a, at_a, b, at_b), (b, at_b, a, at_a)


def config_source(end: CableEnd) -> str:
    """Where the configuration of a switch's end is."""
    if end.switch is None:
        return f"report of {end.node}"
    wanted = {"sonic": "config_db", "cumulus": "config"}.get(end.switch.nos or "", "")
    return next((name for name in end.switch.sources if wanted and wanted in name), end.switch.sources[0])


def counter_source(end: CableEnd, command: str) -> str:
    """The output that a counter is in."""
    if end.switch is None:
        return f"report of {end.node}"
    return f"{end.node}: {command}" if end.switch.nos == "sonic" else f"{end.node}: {end.switch.sources[0]}"
