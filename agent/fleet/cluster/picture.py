"""The fabric as SVG: rows of switches, hosts below them, cables as bundles, what breaks it in red.

Many switches are drawn as one box where they hang on the same ones below: a picture of 666 switches has some forty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from xml.etree.ElementTree import Element, tostring

from agent.fleet.cluster.cabling_faults import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.cluster.picture_content import GAP, HIGH, HOSTS, FabricPicture, LinkStates, PictureBox, build_pictures
from agent.model.labels import group_by_key
from agent.outputs.export.svg import apply_palette
from agent.outputs.html.elements import el

TITLE, ROW, EDGE, LEGEND = 46.0, 128.0, 20.0, 44.0  # pixels: above a fabric, between rows, at the sides, of a legend
LETTER, SMALL = 7.4, 6.2  # of a name in a box, and of the words below
NARROWEST, WIDEST, LEAST = 60.0, 190.0, 640.0
STYLE = """
.cluster { font: 13px/1.3 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.cluster text { fill: var(--ink); } .cluster .small { font-size: 11px; fill: var(--dim); }
.cluster .head { font-weight: 600; font-size: 15px; } .cluster .middle { text-anchor: middle; }
.cluster .switch rect { fill: var(--switch); stroke: var(--switch-line); }
.cluster .leaf rect { fill: var(--nic); stroke: var(--nic-line); }
.cluster .hosts rect { fill: var(--gpu); stroke: var(--gpu-line); }
.cluster .broken rect { stroke: var(--error); stroke-width: 2.4; }
.cluster .wire { stroke: var(--flow); fill: none; opacity: .55; }
.cluster .wire.broken { stroke: var(--error); opacity: 1; }
.cluster .wire.good { stroke: var(--ok); } .cluster .wire.doubtful { stroke: var(--warning); stroke-dasharray: 7 4; }
.cluster .wire.bad { stroke: var(--error); opacity: 1; }
.cluster .mark { fill: var(--error); } .cluster .count { fill: var(--paper); font-size: 11px; font-weight: 700; }
.cluster .paper { fill: var(--paper); }
"""


def draw_picture(
    cluster: FabricGraph, views: list[View], faults: list[CablingFault], states: LinkStates | None = None
) -> str:
    """One SVG file with all fabrics, one below the other. `states`: what colours the cables."""
    root = draw_element(cluster, views, faults, states)
    style = el("style")
    style.text = f"{apply_palette(STYLE, 1)}@media (prefers-color-scheme: dark) {{{apply_palette(STYLE, 2)}}}\n"
    root.insert(0, style)
    root.insert(1, el("rect", width="100%", height="100%", class_="paper"))
    root.set("xmlns", "http://www.w3.org/2000/svg")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def draw_element(
    cluster: FabricGraph, views: list[View], faults: list[CablingFault], states: LinkStates | None = None
) -> Element:
    """The picture for a page that has STYLE."""
    root = el("svg", class_="cluster", role="img")
    high, wide = EDGE, LEAST
    drawn = []
    if states is not None:
        drawn.append(_draw_legend(states))
        high, wide = high + LEGEND, max(wide, 2 * EDGE + len(states.title) * LETTER)
    for number, scene in enumerate(build_pictures(cluster, views, faults, states), 1):
        group, size = _draw_fabric(scene, number if len(views) > 1 else 0, states)
        group.set("transform", f"translate(0 {high:g})")
        drawn.append(group)
        high, wide = high + size[1] + EDGE, max(wide, size[0])
    if not views:
        drawn.append(el("text", "no switch and no link is known", x=EDGE, y=high + 10, class_="small"))
        high += 30.0
    what = f"{len(cluster.switches)} switches, {len({link.host for link in cluster.host_links})} hosts"
    for name, value in (("viewBox", f"0 0 {wide:g} {high:g}"), ("width", f"{wide:g}"), ("height", f"{high:g}")):
        root.set(name, value)
    root.set("aria-label", states.title if states else f"The cluster: {what}, {len(faults)} things break it")
    root.extend(drawn)
    return root


def _draw_legend(states: LinkStates) -> Element:
    """The title, and what each colour is."""
    group = el("g", el("text", states.title, x=EDGE, y=EDGE + 2, class_="head"))
    x = EDGE
    for kind in dict.fromkeys(states.classes.values()):
        words = ", ".join(state for state in states.order if states.classes[state] == kind)
        y = EDGE + 20
        group.append(el("path", d=f"M{x:g} {y:g}H{x + 26:g}", class_=f"wire {kind}", stroke_width=4))
        group.append(el("text", words, x=x + 34, y=y + 4, class_="small"))
        x += 34 + len(words) * SMALL + 24
    return group


def _draw_fabric(scene: FabricPicture, number: int, states: LinkStates | None) -> tuple[Element, tuple[float, float]]:
    """One fabric and how large it is."""
    widths = {row: _compute_width(boxes) for row, boxes in scene.rows.items()}
    text_width = 2 * EDGE + len(scene.words) * SMALL
    wide = max([LEAST, text_width, *(len(boxes) * (widths[row] + GAP) + 2 * EDGE for row, boxes in scene.rows.items())])
    rows = sorted(scene.rows, reverse=True)
    at: dict[str, tuple[float, float]] = {}
    for line, row in enumerate(rows):
        boxes = scene.rows[row]
        step = (wide - 2 * EDGE) / len(boxes)
        even = [EDGE + step * (place + 0.5) for place in range(len(boxes))]
        for box, x in zip(
            boxes, _place_hosts(scene, boxes, at, widths[row], wide) if row == HOSTS else even, strict=True
        ):
            at[box.key] = x, TITLE + line * ROW
    group = el("g", el("text", (f"{number}: " if number else "") + scene.title, x=EDGE, y=16, class_="head"))
    if scene.words:
        group.append(el("text", scene.words, x=EDGE, y=33, class_="small"))
    group.extend(_draw_wires(scene, at, states))
    for row in rows:
        cut = _count_shared_letters(scene.rows[row], widths[row])
        group.extend(_draw_box(box, at[box.key], widths[row], cut) for box in scene.rows[row])
    return group, (wide, TITLE + (len(rows) - 1) * ROW + HIGH + EDGE)


def _place_hosts(
    scene: FabricPicture, boxes: list[PictureBox], at: Mapping[str, tuple[float, float]], own: float, wide: float
) -> list[float]:
    """Hosts below their leaves, as far as there is room."""
    over = group_by_key((lower, at[upper][0]) for upper, lower in scene.wires if upper in at)
    positions: list[float] = []
    for box in boxes:
        wanted = sum(over[box.key]) / len(over[box.key]) if box.key in over else 0.0
        positions.append(max(wanted, positions[-1] + own + GAP if positions else EDGE + own / 2))
    limit = wide - EDGE - own / 2
    for place in reversed(range(len(positions))):
        positions[place] = min(positions[place], limit)
        limit = positions[place] - own - GAP
    return positions


def _compute_width(boxes: list[PictureBox]) -> float:
    longest = max(max(len(box.name), len(box.words)) for box in boxes)
    room = 1500.0 / len(boxes) - GAP
    return max(NARROWEST, min(WIDEST, longest * LETTER + 14, max(room, NARROWEST)))


def _draw_wires(scene: FabricPicture, at: dict[str, tuple[float, float]], states: LinkStates | None) -> list[Element]:
    """The bad ones above the others."""
    most = max(scene.wires.values(), default=1)
    calm: list[Element] = []
    loud: list[Element] = []
    for (upper, lower), count in sorted(scene.wires.items()):
        (x, y), (far_x, far_y) = at[upper], at[lower]
        broken = scene.broken.get((upper, lower), [])
        known = scene.states.get((upper, lower), {})
        kinds = "".join(f", {number:,} {state}" for state, number in known.items())
        tooltip = f"{count:,} cable{'s'[: count != 1]}{kinds}" + "".join(f"; {fault}" for fault in broken[:20])
        middle = (y + HIGH + far_y) / 2
        path = f"M{x:g} {y + HIGH:g}C{x:g} {middle:g} {far_x:g} {middle:g} {far_x:g} {far_y:g}"
        thick = 1.0 + 5.0 * (count / most) ** 0.5
        kind = "broken" if broken else states.classes[list(known)[-1]] if states and known else ""
        element = el("path", el("title", tooltip), d=path, class_=f"wire {kind}".rstrip(), stroke_width=thick)
        (loud if broken else calm).append(element)
    return calm + loud


def _count_shared_letters(boxes: list[PictureBox], wide: float) -> int:
    """Letters that all names of a row begin with, up to a break, where a name is too long: they distinguish nothing."""
    if len(boxes) < 2 or max(len(box.name) for box in boxes) <= _compute_room(wide, LETTER):
        return 0
    common = os.path.commonprefix([box.name for box in boxes])  # noqa: RUF071  # names, no paths
    return max((common.rfind(mark) + 1 for mark in "-_. "), default=0)


def _draw_box(box: PictureBox, at: tuple[float, float], wide: float, cut: int = 0) -> Element:
    x, y = at
    narrow = box.kind == "hosts" and wide <= NARROWEST
    name, words = box.words.split(" ") if narrow else (f"…{box.name[cut:]}" if cut else box.name, box.words)
    tooltip = "\n".join([f"{box.name}: {box.words}", *box.members[:40], *box.breaks[:40]])
    group = el("g", el("title", tooltip), class_=f"{box.kind}{' broken' if box.breaks else ''}")
    group.append(el("rect", x=x - wide / 2, y=y, width=wide, height=HIGH, rx=6))
    group.append(el("text", _cut(name, wide), x=x, y=y + 18, class_="middle"))
    group.append(el("text", _cut(words, wide, SMALL), x=x, y=y + 34, class_="small middle"))
    if box.breaks:
        group.append(el("circle", cx=x + wide / 2 - 3, cy=y + 2, r=9, class_="mark"))
        group.append(el("text", str(min(len(box.breaks), 99)), x=x + wide / 2 - 3, y=y + 6, class_="count middle"))
    return group


def _compute_room(wide: float, letter: float) -> int:
    return max(int((wide - 6) / letter), 3)


def _cut(text: str, wide: float, letter: float = LETTER) -> str:
    most = _compute_room(wide, letter)
    return text if len(text) <= most else f"{text[: most - 1]}…"
