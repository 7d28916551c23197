"""The machine as SVG: boxes that can be opened, links as bars, as wide as what they carry.

Below each bar lies, pale, what the link could carry: what is missing is seen before it is read. Colour never stands
alone: a mark with a letter says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from xml.etree.ElementTree import Element

from agent.model.report import Report
from agent.outputs.html.elements import el
from agent.outputs.html.layout import BAND, DEVICE, GAP, INNER, PLUG, THIN, Layout, Placed, Rect, layout
from agent.outputs.html.scene import Box, Plug, Scene, Wire
from agent.outputs.names import Names
from agent.outputs.text.matrix import nearest, pairs_of

SMALLEST = 0.72  # of its size, to which a page may shrink the picture before it scrolls
MARKS = {"critical": "C", "error": "E", "warning": "W", "info": "i"}
SMALL, BOLD = 6.0, 7.7  # pixels of one character, at the size of small text and of titles
NVLINK_THICK = 12.0


def picture(report: Report, seen: Scene, *, anchors: bool) -> Element | None:
    """The drawing; with anchors its boxes lead to `#d-KEY` of the page around it. None: there is nothing to draw."""
    if not seen.boxes:
        return None
    made = layout(seen)
    what = f"How {report.node.hostname or 'this node'} is wired: {_counted(seen)}"
    root = el(
        "svg", viewBox=f"0 0 {made.wide:g} {made.high:g}", class_="machine", role="group" if anchors else "img",
        aria_label=what, width=made.wide, height=made.high,
        style=f"min-width:{made.wide * SMALLEST:g}px" if anchors else None,
    )  # fmt: skip
    root.append(el("title", what))
    draw = _Drawing(made, seen, Names(report), _ways(report) if anchors else None)
    for part in (draw.between(), draw.frames(), draw.wires(), draw.plugs(), draw.arcs(), draw.boxes()):
        root.extend(part)
    return root


class _Drawing:
    def __init__(self, made: Layout, seen: Scene, names: Names, ways: Mapping[str, str] | None) -> None:
        self.made, self.seen, self.names = made, seen, names
        self.ways = ways  # None: boxes lead nowhere

    def between(self) -> Iterator[Element]:
        """What joins NUMA nodes: nothing is known of it, so it has no width."""
        for upper, lower in pairwise(self.made.rails):
            x = upper.x + upper.wide / 2
            yield el("path", d=f"M{x:g} {upper.y + upper.high:g}V{lower.y:g}", class_="between")

    def frames(self) -> Iterator[Element]:
        """NUMA nodes with their titles, and the side of the CPU."""
        for each in self.made.placed:
            if each.box.kind == "node":
                words = "  ·  ".join((each.box.title, *each.box.words))
                yield _rect(each.at, "node", 10)
                yield el("text", words, x=each.at.x + 12, y=each.at.y + 20, class_="head")
        for rail in self.made.rails:
            yield _rect(rail, "rail", 4)
        if self.made.band:
            band = self.made.band
            switches = sum(box.kind == "nvswitch" for node in self.seen.boxes for box in node.walk())
            yield _rect(band, "nvswitch", 8)
            x, y = band.x + BAND / 2, band.middle
            yield el("text", "NVSwitch", x=x, y=y, class_="head turned", transform=f"rotate(90 {x:g} {y:g})")
            if not switches:
                yield el(
                    "text", "not on this bus", x=x - 18, y=y, class_="small turned",
                    transform=f"rotate(90 {x - 18:g} {y:g})",
                )  # fmt: skip

    def wires(self) -> Iterator[Element]:
        """Bars from each box to the one that it hangs from."""
        for each in self.made.placed:
            if each.start is None:
                continue
            if each.box.wire is None:
                yield _bar(each.start, each.at.x, each.at.middle, THIN, "could")
            else:
                yield self._wire(each, each.start, each.box.wire)

    def plugs(self) -> Iterator[Element]:
        """Ports, and NVLinks on their way to the NVSwitches."""
        for each in self.made.placed:
            rows = [plug for plug in each.box.plugs if plug.kind == "port"]
            for k, plug in enumerate(rows[:3]):
                y = each.at.middle + (k - (len(rows[:3]) - 1) / 2) * 13
                yield self._port(each, plug, y)
            for plug in each.box.plugs:
                if plug.kind == "nvlink":
                    yield self._nvlink(each, plug, plug.text + (" · C2C" if len(each.box.plugs) > 1 else ""))
                elif plug.kind == "c2c" and len(each.box.plugs) == 1:
                    yield el("text", plug.text, x=each.at.right + 10, y=each.at.middle + 4, class_="small")

    def arcs(self) -> Iterator[Element]:
        """NVLinks from GPU to GPU."""
        most = max(self.seen.direct.values(), default=1)
        for number, ((a, b), count) in enumerate(self.seen.direct.items()):
            one, other = self.made.of(a), self.made.of(b)
            if one is None or other is None:
                continue
            x, upper, lower = one.at.right, one.at.middle, other.at.middle
            bulge = min(PLUG - 30, 30 + abs(lower - upper) * 0.16 + (number % 3) * 5)
            labels = f"{self.names.labels.get(a, a)} and {self.names.labels.get(b, b)}: {count} NVLinks"
            yield el(
                "path",
                el("title", labels),
                d=f"M{x:g} {upper + 6:g}C{x + bulge:g} {upper + 6:g} {x + bulge:g} {lower - 6:g} {x:g} {lower - 6:g}",
                class_="arc",
                stroke_width=max(THIN, 6 * count / most),
            )

    def boxes(self) -> Iterator[Element]:
        """Switches and devices, each a link to what is known of it."""
        for each in self.made.placed:
            if each.box.kind == "node":
                continue
            inner = list(self._box(each))
            says = _says(each.box)
            if self.ways is not None:
                yield el(
                    "a", *inner, href=f"#d-{each.box.key}", class_=f"box {each.box.kind} sev-{each.box.severity}",
                    data_key=each.box.key, data_way=self.ways.get(each.box.key), aria_label=says,
                )  # fmt: skip
            else:
                yield el("g", *inner, class_=f"box {each.box.kind} sev-{each.box.severity}")

    def _wire(self, each: Placed, start: float, wire: Wire) -> Element:
        y = each.at.middle
        group = el(
            "g",
            class_=f"wire {wire.state}{' limits' if wire.limits else ''}",
            data_place=wire.place,
            data_of=each.box.key,
        )
        group.append(el("title", _wire_says(each.box, wire)))
        if wire.could:
            group.append(_bar(start, each.at.x, y, max(THIN, wire.could * self.made.scale), "could"))
        thick = max(THIN, (wire.now or 0.0) * self.made.scale)
        group.append(_bar(start, each.at.x, y, thick, "now"))
        x = each.at.x - GAP / 2
        over = max(thick, (wire.could or 0.0) * self.made.scale) / 2 + 4
        above, said = wire.text, {"idle": "idle", "untrusted": "not believed"}.get(wire.state, "")
        if wire.now and not said:
            said = _rate(wire.now)
        if wire.state == "ok" and not wire.limits:
            above, said = f"{above} · {said}", ""
        group.append(el("text", _cut(above, GAP - 4), x=x, y=y - over, class_="small middle"))
        if wire.limits:
            said = f"▲ {said} limits"
        if said:
            group.append(
                el("text", said, x=x, y=y + over + 8, class_="small middle" + (" loud" if wire.limits else ""))
            )
        return group

    def _port(self, each: Placed, plug: Plug, y: float) -> Element:
        x = each.at.right
        return el(
            "g",
            el("title", f"{each.box.title} port: {plug.text}"),
            _bar(x, x + 16, y, 3, "now"),
            el("circle", cx=x + 19, cy=y, r=3.5, class_="end"),
            el("text", _cut(plug.text, PLUG - 32), x=x + 28, y=y + 4, class_="small"),
            class_=f"plug {plug.state}",
        )

    def _nvlink(self, each: Placed, plug: Plug, text: str) -> Element:
        x, y = each.at.right, each.at.middle
        group = el("g", class_=f"plug nvlink {plug.state}")
        group.append(el("title", f"{each.box.title}: {plug.up} of {plug.all} NVLinks up"))
        band = self.made.band
        if band is None or "switch" not in plug.far:
            if not self.seen.direct:
                group.append(_bar(x, x + 16, y, 3, "now"))
            aside = (
                {"x": x + PLUG - 8, "class_": "small ends"} if self.seen.direct else {"x": x + 28, "class_": "small"}
            )
            group.append(el("text", text, y=y + 4, **aside))
            return group
        group.append(_bar(x, band.x, y, NVLINK_THICK, "could"))
        group.append(_bar(x, band.x, y, max(THIN, NVLINK_THICK * plug.up / max(plug.all, 1)), "now"))
        group.append(el("text", text, x=x + 28, y=y - NVLINK_THICK / 2 - 3, class_="small"))
        return group

    def _box(self, each: Placed) -> Iterator[Element]:
        box, at = each.box, each.at
        yield el("title", _says(box))
        yield _rect(at, "shape", 6)
        wide = DEVICE if at.wide == DEVICE else INNER
        lines = [box.title, *(box.words if wide == INNER else ["  ·  ".join(box.words)] if box.words else [])]
        room = max(int((at.high - 6) // 13), 1)
        if room == 1 and wide == INNER:
            lines = ["  ".join(lines)]
        first = at.middle - (min(len(lines), room) - 1) * 6.5 + 4
        for k, text in enumerate(lines[:room]):
            yield el(
                "text", _cut(text, wide - (26 if box.severity in MARKS and not k else 12), SMALL if k else BOLD),
                x=at.x + 8, y=first + k * 13,
                class_="title" if not k else "small",
            )  # fmt: skip
        if box.severity in MARKS:
            yield el("circle", cx=at.right - 13, cy=at.y + 13, r=8.5, class_="mark")
            yield el("text", MARKS[box.severity], x=at.right - 13, y=at.y + 17, class_="letter")


def _ways(report: Report) -> dict[str, str]:
    """GPU or rail -> the functions on its way to the nearest of the others."""
    gpus = {gpu.id: "" for gpu in report.topology.gpus}
    rails = [nic.id for nic in report.topology.nics if nic.role == "rail"]
    pairs = pairs_of(report, gpus, dict.fromkeys(rails, ""))
    found: dict[str, list[str]] = {}
    for gpu, nic in sorted(nearest(pairs, gpus, rails)):
        for end in (gpu, nic):
            found.setdefault(end, []).extend((gpu, nic, *pairs[gpu, nic].hops))
    return {end: " ".join(dict.fromkeys(hops)) for end, hops in found.items()}


def _says(box: Box) -> str:
    """A box in one sentence, for who does not see it."""
    parts = [box.title, *box.words]
    if box.wire:
        parts.append(f"PCIe {box.wire.text}")
    parts += [plug.text for plug in box.plugs]
    if box.severity:
        parts.append(f"worst finding: {box.severity}")
    return ", ".join(parts)


def _wire_says(box: Box, wire: Wire) -> str:
    lines = [f"Link of {box.title} ({wire.place}): {wire.text}"]
    if wire.now is not None:
        lines.append(f"carries {wire.now:.1f} GB/s in one direction")
    if wire.could is not None and wire.state != "ok":
        lines.append(f"could carry {wire.could:.1f} GB/s")
    lines += [wire.note] if wire.note else []
    if wire.limits:
        more = f" and {len(wire.limits) - 6} more" if len(wire.limits) > 6 else ""
        lines.append(f"the slowest hop of {', '.join(wire.limits[:6])}{more}")
    return "; ".join(lines)


def _counted(seen: Scene) -> str:
    kinds = [box.kind for node in seen.boxes for box in node.walk()]
    words = [("gpu", "GPUs"), ("nic", "NICs"), ("switch", "PCIe switches")]
    return ", ".join(f"{kinds.count(kind)} {word}" for kind, word in words)


def _rate(gbyte_s: float) -> str:
    return f"{gbyte_s:.0f} GB/s" if gbyte_s == round(gbyte_s) or gbyte_s > 60 else f"{gbyte_s:.1f} GB/s"


def _rect(at: Rect, kind: str, radius: float) -> Element:
    return el("rect", x=at.x, y=at.y, width=at.wide, height=at.high, rx=radius, class_=kind)


def _bar(x: float, end: float, y: float, thick: float, kind: str) -> Element:
    return el("rect", x=x, y=y - thick / 2, width=end - x, height=thick, class_=kind)


def _cut(text: str, wide: float, character: float = SMALL) -> str:
    room = max(int(wide / character), 1)
    return text if len(text) <= room else text[: room - 1] + "…"
