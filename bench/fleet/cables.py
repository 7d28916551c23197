"""Oddities of cables: what no node can know alone."""

from __future__ import annotations

from collections.abc import Callable

from bench.fleet.fabric import Fabric, Port
from bench.fleet.groups import Group
from bench.fleet.planting import Planter

LEAST_UNITS = 4  # more than so many show what is usual
LEAST_SPINES = 4
LEAST_LEAVES = 8
SLOWER = {"NDR": "HDR", "HDR": "EDR"}
Plant = Callable[[Planter, str], bool]


def swapped_rails(planter: Planter, kind: str) -> bool:
    """Two rails of a node, each in the other's leaf."""
    result = planter.one(lambda group: _cabled(group) and len(group.templates.shape.rails) >= 4)
    if result is None:
        return False
    group, node = result
    fabric, local = _fabric(group), node - group.first
    free = [rail for rail in range(1, len(group.templates.shape.rails)) if (local, rail) not in fabric.moved]
    if len(free) < 2:
        return False
    a, b = free[:2]
    one, other = fabric.meant(local, a), fabric.meant(local, b)
    fabric.moved |= {(local, a): other, (local, b): one}
    rails = group.templates.shape.rails
    switches = [fabric.switch_name(port.switch) for port in (one, other)]
    detail = {"rails": [a, b], "devices": [rails[a], rails[b]], "switches": switches}
    return planter.odd(kind, [node], f"port:{rails[a]}/1", detail)


def swapped_ports(planter: Planter, kind: str) -> bool:
    """Two nodes of a unit, each in the other's port of one leaf."""
    # of two rails none is the one that is right, and where ports follow no pattern none is wrong
    group = planter.group(
        lambda each: _cabled(each) and _fabric(each).rails > 2 and not _fabric(each).scattered, nodes=2
    )
    if group is None:
        return False
    unit = planter.random.randrange(max(group.nodes // group.platform.unit, 1))
    node, peer = planter.node(group, unit), planter.node(group, unit)
    if node is None or peer is None:
        return False
    fabric, rail = _fabric(group), len(group.templates.shape.rails) - 1
    here, there = node - group.first, peer - group.first
    ports = fabric.meant(here, rail), fabric.meant(there, rail)
    fabric.moved |= {(here, rail): ports[1], (there, rail): ports[0]}
    switch = fabric.switch_name(ports[0].switch)
    detail = {"rail": rail, "switch": switch, "ports": [port.number for port in ports]}
    return planter.odd(kind, [node, peer], f"port:{group.templates.shape.rails[rail]}/1", detail)


def wrong_leaf(planter: Planter, kind: str) -> bool:
    """A rail in a free port of another unit's leaf."""
    rail = 0
    group = planter.group(lambda each: _cabled(each) and _fabric(each).units > 1 and _free(_fabric(each), rail) > 0)
    if group is None:
        return False
    fabric = _fabric(group)
    node = planter.node(group, planter.random.randrange(fabric.units - 1))
    if node is None:
        return False
    intended = fabric.meant(node - group.first, rail)
    there = Port((fabric.units - 1) * fabric.rails + rail, _free(fabric, rail))
    fabric.moved[node - group.first, rail] = there
    detail = {"rail": rail, "switch": fabric.switch_name(there.switch), "port": there.number}
    detail |= {"meant": fabric.switch_name(intended.switch)}
    return planter.odd(kind, [node], f"port:{group.templates.shape.rails[rail]}/1", detail)


def uplink(what: Callable[[str], str | None]) -> Plant:
    """A cable between a leaf and a spine that is missing, or less than the others."""

    def plant(planter: Planter, kind: str) -> bool:
        fit = [group for group in planter.groups if group.subnet and group.nodes >= group.platform.unit]
        if not fit:
            return False
        fabric = _fabric(planter.random.choice(fit))
        assert fabric.wiring is not None
        port = _uplink(planter, fabric)
        if port is None:
            return False
        fabric.uplinks[port] = what(fabric.wiring.speed)
        detail = {"fabric": fabric.name, "link": fabric.uplinks[port], "usual": f"4x{fabric.wiring.speed}"}
        return planter.odd(kind, [], f"switch:{fabric.switch_name(port.switch)}/{port.number}", detail)

    return plant


def swapped_uplinks(planter: Planter, kind: str) -> bool:
    """Two cables of two leaves, each at the spine of the other."""
    fit = [group for group in planter.groups if group.subnet and _fabric(group).spines > 1]
    fit = [group for group in fit if _fabric(group).tiers == 2 or _fabric(group).layout == "fat-tree"]
    fit = [group for group in fit if _fabric(group).leaves >= LEAST_LEAVES]  # two of six are no exception
    fit = [group for group in fit if not _fabric(group).exchanged]  # of several it is open which cable is whose
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    leaves = [leaf for leaf in range(fabric.leaves) if not _is_odd(fabric, leaf)]
    pods = fabric.groups if fabric.tiers == 3 else fabric.leaves
    pairs = [(one, other) for one in leaves for other in leaves if one % pods != other % pods]  # it must not join pods
    if not pairs:
        return False
    one, other = planter.random.choice(pairs)
    ports = Port(one, fabric.down + 1), Port(other, fabric.down + fabric.up)
    fabric.exchanged |= {ports[0]: ports[1], ports[1]: ports[0]}
    names = [f"{fabric.switch_name(port.switch)}/{port.number}" for port in ports]
    return planter.odd(kind, [], f"switch:{'+'.join(sorted(names))}", {"fabric": fabric.name})


def older_ports(planter: Planter, kind: str) -> bool:
    """A cable upwards that is slower, and its ends can do no more: iblinkinfo tells that, ibnetdiscover does not."""
    fit = [group for group in planter.groups if group.subnet and _fabric(group).tiers == 2]
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    assert fabric.wiring is not None
    port = _uplink(planter, fabric)
    if port is None:
        return False
    fabric.uplinks[port] = f"4x{SLOWER[fabric.wiring.speed]}"
    fabric.best.add(port)
    where = f"{fabric.switch_name(port.switch)}/{port.number}"
    return planter.noise(kind, where, {"fabric": fabric.name, "link": fabric.uplinks[port]})


def dark_spine(planter: Planter, kind: str) -> bool:
    """A spine between others is off: no leaf has a cable to it, and no file knows it."""
    fit = [group for group in planter.groups if group.subnet and _fabric(group).tiers == 2]
    fit = [group for group in fit if _fabric(group).spines > LEAST_SPINES and not _fabric(group).dark]
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    wrong = (*fabric.uplinks, *fabric.exchanged)
    ends = {fabric.above(port.switch, port.number - fabric.down - 1).switch for port in wrong}
    free = [spine for spine in range(fabric.leaves + 1, fabric.leaves + fabric.spines - 1) if spine not in ends]
    if not free:
        return False
    fabric.dark.add(planter.random.choice(free))
    (name,) = map(fabric.switch_name, fabric.dark)
    return planter.odd(kind, [], f"switch:{name}", {"fabric": fabric.name})


def shared_port(planter: Planter, kind: str) -> bool:
    """By LLDP a node is at another's port: its cable was moved, and the other's report is older."""
    group = planter.group(lambda each: _cabled(each) and each.subnet is None, nodes=2)
    if group is None:
        return False
    unit = planter.random.randrange(max(group.nodes // group.platform.unit, 1))
    node, peer = planter.node(group, unit), planter.node(group, unit)
    if node is None or peer is None:
        return False
    fabric = _fabric(group)
    port = fabric.meant(peer - group.first, 0)
    fabric.moved[node - group.first, 0] = port
    detail = {"switch": fabric.switch_name(port.switch), "port": port.number}
    return planter.odd(kind, [node, peer], f"port:{group.templates.shape.rails[0]}/1", detail)


def half_unit(planter: Planter, kind: str) -> bool:
    """The leaves of a unit have half of their cables up: those to every second port."""
    fit = [group for group in planter.groups if group.subnet and _cabled(group) and _fabric(group).units > LEAST_UNITS]
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    if fabric.thin_units:
        return False
    units = set(range(fabric.units - 1))  # the last one may have fewer nodes
    units -= {port.switch // fabric.rails for port in (*fabric.uplinks, *fabric.exchanged)}
    if not units:
        return False
    unit = planter.random.choice(sorted(units))
    fabric.thin_units.add(unit)
    leaves = [fabric.switch_name(unit * fabric.rails + rail) for rail in range(fabric.rails)]
    return planter.odd(kind, [], f"switch:{leaves[0]}", {"fabric": fabric.name, "leaves": leaves})


def exchanged_side(planter: Planter, kind: str) -> bool:
    """Half of the cables up of a leaf are exchanged with those of another leaf, the first with the last."""
    fit = [group for group in planter.groups if group.subnet and _fabric(group).tiers == 2]
    fit = [group for group in fit if _fabric(group).leaves >= LEAST_LEAVES and _is_whole(_fabric(group))]
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    one, other = planter.random.sample(range(fabric.leaves), 2)
    for place in range(fabric.up // 2):
        ports = Port(one, fabric.down + 1 + place), Port(other, fabric.down + fabric.up - place)
        fabric.exchanged |= {ports[0]: ports[1], ports[1]: ports[0]}
    names = "+".join(sorted(map(fabric.switch_name, (one, other))))
    return planter.odd(kind, [], f"switch:{names}", {"fabric": fabric.name, "cables": fabric.up // 2})


def ragged_unit(planter: Planter, kind: str) -> bool:
    """The leaves of a unit have about half of their cables up, each another half."""
    fit = [group for group in planter.groups if group.subnet and _cabled(group) and _fabric(group).units > LEAST_UNITS]
    fit = [group for group in fit if _is_whole(_fabric(group))]
    if not fit:
        return False
    fabric = _fabric(planter.random.choice(fit))
    unit = planter.random.randrange(fabric.units - 1)
    leaves = range(unit * fabric.rails, (unit + 1) * fabric.rails)
    for leaf in leaves:
        lost = fabric.up // 2 + leaf % 3 - 1
        fabric.uplinks |= {
            Port(leaf, fabric.down + 1 + place): None for place in planter.random.sample(range(fabric.up), lost)
        }
    names = list(map(fabric.switch_name, leaves))
    return planter.odd(kind, [], f"switch:{names[0]}", {"fabric": fabric.name, "leaves": names})


def exchanged_rails(planter: Planter, kind: str) -> bool:
    """Two rails of all nodes of a unit are each on the leaf of the other; of the first half of them by HALF."""
    fit = [each for each in planter.groups if _cabled(each) and _fabric(each).units > LEAST_UNITS]
    fit = [group for group in fit if not _fabric(group).moved]
    if not fit:
        return False
    group = planter.random.choice(fit)
    fabric = _fabric(group)
    unit = planter.random.randrange(fabric.units - 1)
    nodes = _nodes(fabric, unit)
    if kind == HALF:
        nodes = nodes[: len(nodes) // 2]
    return _exchange(planter, kind, group, [(node, 0, node, 1) for node in nodes])


def exchanged_leaves(planter: Planter, kind: str) -> bool:
    """All nodes of two units are on each other's leaf of a rail."""
    fit = [each for each in planter.groups if _cabled(each) and _fabric(each).units > LEAST_UNITS]
    fit = [group for group in fit if not _fabric(group).moved]
    fit = [group for group in fit if _fabric(group).rails > LEAST_SPINES]
    if not fit:
        return False
    group = planter.random.choice(fit)
    fabric = _fabric(group)
    one, other = planter.random.sample(range(fabric.units - 1), 2)
    pairs = zip(_nodes(fabric, one), _nodes(fabric, other), strict=True)
    return _exchange(planter, kind, group, [(node, 1, peer, 1) for node, peer in pairs])


def _exchange(planter: Planter, kind: str, group: Group, pairs: list[tuple[int, int, int, int]]) -> bool:
    """`pairs`: a node and its rail, the other node and its rail."""
    fabric = _fabric(group)
    switches: set[int] = set()
    for node, rail, peer, other in pairs:
        ports = fabric.meant(node, rail), fabric.meant(peer, other)
        fabric.moved |= {(node, rail): ports[1], (peer, other): ports[0]}
        switches |= {port.switch for port in ports}
    nodes = sorted({group.first + node for pair in pairs for node in pair[::2]})
    detail = {"switches": sorted(map(fabric.switch_name, switches))}
    return planter.odd(kind, nodes, f"switch:{'+'.join(detail['switches'])}", detail)


def _nodes(fabric: Fabric, unit: int) -> range:
    return range(unit * fabric.unit, (unit + 1) * fabric.unit)


def _uplink(planter: Planter, fabric: Fabric) -> Port | None:
    """A port upwards of a leaf of which nothing was planted yet."""
    leaves = [leaf for leaf in range(fabric.leaves) if not _is_odd(fabric, leaf)]
    leaf = planter.random.choice(leaves or [0])
    places = [n for n in range(fabric.up) if fabric.above(leaf, n).switch not in fabric.dark]
    return Port(leaf, fabric.down + 1 + planter.random.choice(places)) if leaves and places else None


def _is_odd(fabric: Fabric, leaf: int) -> bool:
    """Whether something of its cables upwards was planted already."""
    return any(port.switch == leaf for port in (*fabric.uplinks, *fabric.exchanged)) or _is_thin(fabric, leaf)


def _is_whole(fabric: Fabric) -> bool:
    """Whether nothing of its cables upwards was planted."""
    return not (fabric.uplinks or fabric.exchanged or fabric.thin_units)


def _is_thin(fabric: Fabric, leaf: int) -> bool:
    return fabric.layout == "rail" and leaf // fabric.rails in fabric.thin_units


def _cabled(group: Group) -> bool:
    """Whether its cables are told: by LLDP, or by a fabric file; rail by rail."""
    return group.fabric is not None and group.fabric.layout == "rail"


def _fabric(group: Group) -> Fabric:
    assert group.fabric is not None
    return group.fabric


def _free(fabric: Fabric, rail: int) -> int:
    """A port of the last unit's leaf that nobody is meant to have; 0: there is none."""
    last = fabric.units - 1
    there = sum(port.switch == last * fabric.rails + rail for port in fabric.moved.values())
    places = fabric.nodes - last * fabric.unit
    if places + there < fabric.unit:
        return places + there + 1
    beyond = fabric.down + fabric.up + there + 1
    return beyond if places == fabric.unit and beyond <= fabric.radix else 0


HALF = "rails-exchanged-half"
OF_MANY: dict[str, Plant] = {  # one cause of many cables that are wrong; on request
    "uplink-side-exchanged": exchanged_side,
    "uplink-ragged-unit": ragged_unit,
    "rails-exchanged": exchanged_rails,
    HALF: exchanged_rails,
    "leaves-exchanged": exchanged_leaves,
}
CABLES: dict[str, Plant] = {
    "cable-swapped-rails": swapped_rails,
    "cable-swapped-ports": swapped_ports,
    "rail-wrong-leaf": wrong_leaf,
    "uplink-missing": uplink(lambda _: None),
    "uplink-slow": uplink(lambda speed: f"4x{SLOWER[speed]}"),
    "uplink-swapped": swapped_uplinks,
    "uplink-half-unit": half_unit,
    "spine-dark": dark_spine,
    "port-shared": shared_port,
    "uplink-narrow": uplink(lambda speed: f"2x{speed}"),
}
