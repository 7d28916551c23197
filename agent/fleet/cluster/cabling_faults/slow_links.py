"""Links that run slower than their peers, or than both of their ends could."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink, LinkRate, SwitchLink
from agent.fleet.cluster.peers import find_most

FEW = 0.25  # of a kind of links: if more could be faster, that is how it is set, no single cable


class _Link(NamedTuple):
    """Of a host or between switches; words are made of those alone that are reported."""

    view: View
    link: HostLink | SwitchLink

    @property
    def pace(self) -> LinkRate:
        return self.link.pace

    @property
    def hosts(self) -> tuple[str, ...]:
        return (self.link.host,) if isinstance(self.link, HostLink) else ()

    @property
    def ports(self) -> tuple[str, ...]:
        place = self.view.cluster.place
        if isinstance(self.link, HostLink):
            return (place(self.link.at),)
        return tuple(sorted((place(self.link.a), place(self.link.b))))

    @property
    def words(self) -> str:
        if isinstance(self.link, HostLink):
            return f"{self.link.host} {self.link.called} on {self.ports[0]}"
        return " to ".join(self.ports)


def find_uneven_rates(view: View) -> list[CablingFault]:
    """Both kinds; a link is named once."""
    faults = []
    for group, same in _group_links(view).items():
        paces = Counter(link.pace for link in same)
        if len(paces) == 1 and not next(iter(paces)).could:
            continue  # as nearly all groups are: of hundreds of thousands of links few are looked at one by one
        links = [_Link(view, link) for link in same]
        kinds: Counter[tuple[str, float]] = Counter()
        for pace, count in paces.items():
            kinds[pace.words, pace.gbit_s or 0.0] += count
        expected = find_most(kinds)
        could = [link for link in links if link.pace.could]
        explained = set()
        if expected and expected[0][1]:
            (words, gbit_s), clear = expected
            for number, link in enumerate(links):
                if link.pace.gbit_s is not None and link.pace.gbit_s < gbit_s:
                    explained.add(number)
                    if link.pace.best:
                        continue  # its ends can do no more: it is not slow
                    faults.append(_make_slow_fault(link, words, f"{clear.words} links of {group} run at {words}"))
        if len(could) <= FEW * len(links) or len(could) == 1:
            for number, link in enumerate(links):
                if link.pace.could and number not in explained:
                    faults.append(_could(link))
        else:
            faults.append(_make_all_slow_fault(group, could, len(links)))
    return faults


def _group_links(view: View) -> dict[str, list[HostLink | SwitchLink]]:
    """Links that are compared with each other, by the name of their group."""
    groups: defaultdict[str, list[HostLink | SwitchLink]] = defaultdict(list)
    for unit in view.units.units:
        links = [link for host in unit.hosts for link in view.units.links[host]]
        several = len(unit.leaves) > 1
        rails = {link.rail for link in links}
        names = {rail: f"{unit.name}'s {rail}" if several and rail else f"hosts on {unit.name}" for rail in rails}
        for link in links:
            groups[names[link.rail]].append(link)
    for trunk in view.part.switch_links:
        rows = sorted((view.tiers.get(trunk.a.switch, 0), view.tiers.get(trunk.b.switch, 0)))
        groups[f"rows {rows[0]} and {rows[1]}"].append(trunk)
    return groups


def _make_slow_fault(link: _Link, expected: str, compared: str) -> CablingFault:
    more = f" (both ends could {link.pace.could})" if link.pace.could else ""
    return CablingFault(
        kind="uneven-pace",
        text=f"{link.words} runs at {link.pace.words}, its peers at {expected}{more}",
        hosts=link.hosts,
        ports=link.ports,
        compared=compared,
        fix="reseat the cable, clean or replace it; compare the settings of both ports",
    )


def _could(link: _Link) -> CablingFault:
    return CablingFault(
        kind="slower-than-both-ends",
        text=f"{link.words} runs at {link.pace.words}, both ends could {link.pace.could}",
        hosts=link.hosts,
        ports=link.ports,
        compared="its own two ends, as the tool read them",
        fix="reseat the cable, clean or replace it; compare the settings of both ports",
    )


def _make_all_slow_fault(group: str, could: list[_Link], of: int) -> CablingFault:
    paces = Counter((link.pace.words, link.pace.could) for link in could)
    (now, more), count = paces.most_common(1)[0]
    return CablingFault(
        kind="slower-than-both-ends",
        text=f"{len(could):,} of {of:,} links of {group} could be faster: {count:,} run at {now} and could {more}",
        hosts=tuple(dict.fromkeys(host for link in could for host in link.hosts)),
        ports=tuple(port for link in could for port in link.ports),
        compared="their own two ends, as the tool read them",
        fix="so many together are a setting, or cables that carry no more",
    )
