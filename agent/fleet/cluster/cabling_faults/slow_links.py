"""Links that run slower than their peers, or than both of their ends could."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import Break
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import Pace
from agent.fleet.cluster.peers import most

FEW = 0.25  # of a kind of links: if more could be faster, that is how it is set, no single cable


class _Link(NamedTuple):
    group: str  # the links that it is compared with
    words: str
    hosts: tuple[str, ...]
    ports: tuple[str, ...]
    pace: Pace


def uneven_paces(view: View) -> list[Break]:
    """Both kinds; a link is named once."""
    groups: defaultdict[str, list[_Link]] = defaultdict(list)
    for link in _links(view):
        groups[link.group].append(link)
    found = []
    for group, links in groups.items():
        usual = most(Counter((link.pace.words, link.pace.gbit_s or 0.0) for link in links))
        could = [link for link in links if link.pace.could]
        told = set()
        if usual and usual[0][1]:
            (words, gbit_s), clear = usual
            for number, link in enumerate(links):
                if link.pace.gbit_s is not None and link.pace.gbit_s < gbit_s:
                    told.add(number)
                    if link.pace.best:
                        continue  # its ends can do no more: it is not slow
                    found.append(_slow(link, words, f"{clear.words} links of {group} run at {words}"))
        if len(could) <= FEW * len(links) or len(could) == 1:
            for number, link in enumerate(links):
                if link.pace.could and number not in told:
                    found.append(_could(link))
        else:
            found.append(_all_could(group, could, len(links)))
    return found


def _links(view: View) -> Iterator[_Link]:
    place = view.cluster.place
    for unit in view.units.units:
        for host in unit.hosts:
            for link in view.units.links[host]:
                rail = f"{unit.name}'s {link.rail}" if len(unit.leaves) > 1 and link.rail else f"hosts on {unit.name}"
                words = f"{host} {link.called} on {place(link.at)}"
                yield _Link(rail, words, (host,), (place(link.at),), link.pace)
    for trunk in view.part.switch_links:
        rows = sorted((view.tiers.get(trunk.a.switch, 0), view.tiers.get(trunk.b.switch, 0)))
        ends = tuple(sorted((place(trunk.a), place(trunk.b))))
        yield _Link(f"rows {rows[0]} and {rows[1]}", f"{ends[0]} to {ends[1]}", (), ends, trunk.pace)


def _slow(link: _Link, usual: str, compared: str) -> Break:
    more = f" (both ends could {link.pace.could})" if link.pace.could else ""
    return Break(
        kind="uneven-pace",
        text=f"{link.words} runs at {link.pace.words}, its peers at {usual}{more}",
        hosts=link.hosts,
        ports=link.ports,
        compared=compared,
        fix="reseat the cable, clean or replace it; compare the settings of both ports",
    )


def _could(link: _Link) -> Break:
    return Break(
        kind="slower-than-both-ends",
        text=f"{link.words} runs at {link.pace.words}, both ends could {link.pace.could}",
        hosts=link.hosts,
        ports=link.ports,
        compared="its own two ends, as the tool read them",
        fix="reseat the cable, clean or replace it; compare the settings of both ports",
    )


def _all_could(group: str, could: list[_Link], of: int) -> Break:
    paces = Counter((link.pace.words, link.pace.could) for link in could)
    (now, more), count = paces.most_common(1)[0]
    return Break(
        kind="slower-than-both-ends",
        text=f"{len(could):,} of {of:,} links of {group} could be faster: {count:,} run at {now} and could {more}",
        hosts=tuple(dict.fromkeys(host for link in could for host in link.hosts)),
        ports=tuple(port for link in could for port in link.ports),
        compared="their own two ends, as the tool read them",
        fix="so many together are a setting, or cables that carry no more",
    )
