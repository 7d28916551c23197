"""The table of the rules, with remedies by the family of the switch's command line; faults of hops, and the findings
into which those of one cause are folded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from agent.fleet.lossless.hop import CableEnd, Hop
from agent.fleet.lossless.traffic import TrafficClass, classify
from agent.model.finding import Evidence, FarEnd, Finding, Location, Step, worst_first
from agent.model.labels import group_by_key, name_first, natural
from agent.toml_file import read_toml
from probes.switches.facts import PortFacts

HOST, OTHER, ALSO = "host", "other", "also"
_FILE = os.path.join(os.path.dirname(__file__), "rules.toml")
NO_VALUES: Mapping[str, str] = MappingProxyType({})
_WORD = re.compile(r"\{([a-z]+)\}")
LISTS = "nvue"  # whose commands take a list of ports
_NAMED = 8  # ports of one finding in its text


class SwitchRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. `remedy`: steps by family (sonic, nvue), of a host (`host`), of all others (`other`); `also` follows
    any of them."""

    id: str
    severity: str
    title: str
    impact: str
    remedy: dict[str, list[str]]


class _RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: list[SwitchRule]


@cache
def switch_rules() -> Mapping[str, SwitchRule]:
    """All rules by their names, in the order of the table."""
    return {rule.id: rule for rule in read_toml(_FILE, _RuleTable).rule}


def choose_remedy(rule: SwitchRule, family: str | None) -> list[str]:
    """The steps for a family; a family without its own gets the ones without commands, never another's."""
    return [*rule.remedy.get(family or OTHER, rule.remedy.get(OTHER, [])), *rule.remedy.get(ALSO, [])]


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

    @property
    def far(self) -> CableEnd:
        """The other end of its hop."""
        return self.hop.b if self.end is self.hop.a else self.hop.a


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

    def sides(self) -> tuple[HopSide, HopSide]:
        """Of end a, of end b."""
        (a, b), (at_a, at_b) = self.hop.ends, self.traffic
        return HopSide(self, a, at_a, b, at_b), HopSide(self, b, at_b, a, at_a)

    def switch_sides(self) -> list[HopSide]:
        """Those that are a port of a switch whose outputs were read."""
        return [side for side in self.sides() if side.end.facts is not None]


class HopSide(NamedTuple):
    """What rules judge: one end of a hop with its traffic, and the far end."""

    context: HopContext
    end: CableEnd
    traffic: TrafficClass
    far: CableEnd
    at_far: TrafficClass

    @property
    def port(self) -> PortFacts:
        """Of a side of `switch_sides`."""
        assert self.end.facts is not None
        return self.end.facts

    def fault(self, rule: str, summary: str, *evidence: tuple[str, ...], **more: Any) -> HopFault:
        """A fault of this end. `evidence`: what, value, source; without a source its configuration has it.

        `more`: other fields of a HopFault.
        """
        rows = tuple(
            (what, value, source[0] if source else config_source(self.end)) for what, value, *source in evidence
        )
        return HopFault(rule, self.end, self.context.hop, summary, rows, **more)


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


def severity_of(fault: HopFault) -> str:
    """Its own, else the rule's."""
    return fault.severity or switch_rules()[fault.rule].severity


def fold_faults(faults: Sequence[HopFault], dscp: int) -> list[Finding]:
    """Findings, worst first."""
    places = [fault.end.node if fault.cause else fault.end.subject for fault in faults]
    groups = group_by_key(
        ((fault.rule, severity_of(fault), place, fault.cause), fault)
        for fault, place in zip(faults, places, strict=True)
    )
    return sorted((_make_finding(group, dscp) for group in groups.values()), key=worst_first)


def _make_finding(group: Sequence[HopFault], dscp: int) -> Finding:
    first = group[0]
    rule = switch_rules()[first.rule]
    subjects = list(dict.fromkeys(fault.end.subject for fault in group))
    ports = sorted({fault.end.port for fault in group}, key=natural)
    one = len(subjects) == 1
    kind = "host" if first.end.switch is None else "switch"
    subject = subjects[0] if one else f"{kind}:{first.end.node}"
    named = name_first(ports, _NAMED)
    label = first.end.label if one else f"{first.end.node}, {len(ports)} ports"
    far = None
    if one and first.hop.b.node and first.end.node:
        far = FarEnd(system=first.far.node or None, port=first.far.port or None)
    steps = _make_steps(group, dscp, ports)
    summary = f"{first.summary}{first.detail}" if one else f"{first.summary} (ports {named})"
    return Finding(
        rule=first.rule,
        severity=severity_of(first),
        subject=subject,
        label=label,
        summary=summary,
        evidence=[Evidence(what=what, value=value, source=source) for what, value, source in _list_evidence(group)],
        impact=rule.impact,
        remedy=" ".join(step.do for step in steps),
        steps=steps,
        location=Location(part=f"port {ports[0]} of {first.end.node}", far_end=far) if one and ports else None,
        confidence="high",
        absorbs=_list_absorbed(group),
        devices=[] if one else subjects,
        fingerprint=sha256("\n".join((first.rule, subject, first.cause)).encode()).hexdigest()[:16],
    )


def _list_evidence(group: Sequence[HopFault]) -> list[tuple[str, str, str]]:
    """Of the first port, and what others show beside the common cause."""
    others = [row for fault in group[1:] if fault.absorbs for row in fault.evidence[-1:]]
    return [*group[0].evidence, *others[:_NAMED]]


def _make_steps(group: Sequence[HopFault], dscp: int, ports: Sequence[str]) -> list[Step]:
    """Commands name one port, or a list where the family takes one; a step without commands names the switch too."""
    first = group[0]
    rule = switch_rules()[first.rule]
    family = first.end.switch.cli if first.end.switch is not None else HOST
    own = family is not None and family in rule.remedy
    named = name_first(ports, _NAMED)
    port = ",".join(ports) if own and family == LISTS else ports[0]
    place = port if own else first.end.label if len(ports) == 1 else f"{first.end.node} {named}"
    values = {"dscp": str(dscp), "port": place, "far": first.far.label or "the far end", **first.values}
    steps = []
    for text in choose_remedy(rule, family):
        do = _WORD.sub(lambda match: values.get(match[1], match[0]), text)
        if own and family != HOST and text in rule.remedy[str(family)]:
            do = f"On {first.end.node}: {do}"
            if len(ports) > 1 and "{port}" in text and family != LISTS:
                do = f"{do} The same for each of {named}."
        steps.append(Step(do=do))
    if "also" in first.values:
        steps.append(Step(do=f"The same at {first.values['also']}."))
    return steps


def _list_absorbed(group: Sequence[HopFault]) -> list[str]:
    """Findings of hosts' own reports that this one explains."""
    own = {name for fault in group for name in fault.absorbs}
    return sorted(
        own
        | {
            f"{rule} host:{fault.end.node}/{fault.end.port}"
            for fault in group
            if fault.end.host is not None
            for rule in fault.end.host.findings
        }
    )
