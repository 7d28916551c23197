"""What should be on which switch port by the pattern that most cables follow."""

from __future__ import annotations

from collections import Counter

from agent.fleet.cluster.breaks.uplinks import far_switches, uplinks
from agent.fleet.cluster.cables import Cable, Cables, Should, held_places, not_right
from agent.fleet.cluster.clear import most
from agent.fleet.cluster.graph import Cluster, Place, natural
from agent.fleet.cluster.units import Unit
from agent.fleet.cluster.view import View

FIRM = 0.9  # of a port's peers, where the counts of cables are right all the same
REGULAR = 0.8  # of a unit's cables on the port that its pattern says: below that there is no pattern


def by_pattern(cluster: Cluster, views: list[View]) -> Cables:
    """Of every unit whose nodes keep one port number on all leaves, and of cables to the switches above."""
    every: list[Should] = []
    patterns: list[str] = []
    wrong: list[Cable] = []
    for view in views:
        for unit in view.units.units:
            rows, told = _unit(view, unit)
            every += rows
            patterns += told
        wrong += _uplinks(view)
    strayed = sum(each.state == "elsewhere" for each in wrong)
    missing = len(wrong) - strayed
    trunks = sum(len(view.part.switch_links) for view in views)
    held = held_places(views)
    off = [row for row in every if row.found != row.should]
    wrong = [*not_right(cluster, off, held), *wrong]
    return Cables(
        by="pattern",
        right=len(every) - len(off) + trunks - strayed,
        judged=len(every) + trunks + missing,
        of=max(len(cluster.host_links) + trunks, len(every) + trunks + missing),
        wrong=wrong,
        patterns=patterns,
    )


def _unit(view: View, unit: Unit) -> tuple[list[Should], list[str]]:
    """What should be where by the ports that the nodes of a unit have on its leaves."""
    if len(unit.rails) < 2:
        return [], []
    ports: dict[str, str] = {}
    for host in unit.hosts:
        seen = Counter(link.at.port for link in view.units.links[host] if link.rail in unit.rails)
        clear = most(seen) if len(seen) > 1 or seen.total() > 2 else _both(seen)
        if clear:
            ports[host] = clear[0]
    twice = {port for port, count in Counter(ports.values()).items() if count > 1}
    rows, fits = [], 0
    for host in unit.hosts:
        if host not in ports or ports[host] in twice:
            continue
        have = {link.rail: link for link in view.units.links[host] if link.rail}
        for rail, at in unit.rails.items():
            link = have.get(rail)
            if link is None and (view.cluster.cut or at.most.of < len(unit.hosts) * REGULAR):
                continue  # an adapter that only some nodes have, or nobody knows
            should = Place(at.leaf, ports[host])
            fits += link is not None and link.at == should
            own = f"this node the port {ports[host]}"
            why = f"{at.most.words} nodes of {unit.name} have {rail} on {view.name(at.leaf)}, {own}"
            rows.append(Should(f"{host} {link.called if link else rail}", should, link.at if link else None, why))
    if not rows or fits < REGULAR * len(rows):
        return [], []
    return rows, [f"{unit.name}: a node has the same port on all leaves ({fits:,} of {len(rows):,} cables)"]


def _both(seen: Counter[str]) -> tuple[str, object] | None:
    """Two cables on the same port are as clear as two can be."""
    ((port, count),) = seen.most_common(1) or [("", 0)]
    return (port, None) if count == 2 == seen.total() else None


def _uplinks(view: View) -> list[Cable]:
    """Cables between switches that are missing, or lead elsewhere than those on the same port of their peers."""
    found: dict[str, Cable] = {}
    far_of = {
        view.cluster.place(at): view.cluster.place(far) for block in view.blocks for at, far in block.ends.items()
    }
    for each in uplinks(view):
        state = "missing" if each.kind == "missing-uplink" else "elsewhere"
        for end, should in each.should.items():
            found[end] = Cable(end=end, state=state, should=should, found=far_of.get(end), why=each.compared)
    for block in view.blocks:
        usual = far_switches(block, block.peers)
        for lower in block.peers:
            for port in sorted(usual, key=natural):
                upper, agree, of = usual[port]
                at = Place(lower, port)
                far = block.ends.get(at)
                if far is not None and far.switch != upper and agree >= FIRM * of:
                    end, why = view.cluster.place(at), f"{agree:,} of {of:,} peers have {view.name(upper)} on that port"
                    made = Cable(end=end, state="elsewhere", should=view.name(upper), found=far_of[end], why=why)
                    found.setdefault(end, made)
    return list(found.values())
