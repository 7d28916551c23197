"""The machine as SVG: boxes that can be opened, links as bars whose width is their bandwidth.

Behind each bar a pale one shows the link's capability, so that a reduced link is visible. A severity's colour appears
only where a finding is; a mark with a letter repeats it. Idle, virtual, internal and unused links are grey.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from xml.etree.ElementTree import Element

from agent.model.labels import name_first
from agent.model.report import Report
from agent.outputs.formatting import clean_line
from agent.outputs.html.drawn_links import DevicePort, LinkBar, format_rate
from agent.outputs.html.elements import el
from agent.outputs.html.layout import (
    BAND,
    DEVICE,
    GAP,
    INNER,
    THIN,
    PictureLayout,
    PlacedBox,
    Rect,
    bulge,
    compute_layout,
)
from agent.outputs.html.scene import Box, Scene
from agent.outputs.names import DisplayNames
from agent.outputs.text.matrix import find_nearest_rails, paths_by_pair

MARKS = {"critical": "C", "error": "E", "warning": "W", "info": "i"}
SMALL, BOLD = 6.0, 7.7  # pixels of one character, at the size of small text and of titles
NVLINK_THICK = 12.0


def draw_picture(report: Report, seen: Scene, *, anchors: bool) -> Element | None:
    """Draw the picture; with anchors its boxes link to `#d-KEY` of the page. None: there is nothing to draw."""
    if not seen.boxes:
        return None
    placed = compute_layout(seen)
    what = f"How {report.node.hostname or 'this node'} is wired: {_count_boxes(seen)}"
    root = el(
        "svg", viewBox=f"0 0 {placed.wide:g} {placed.high:g}", class_="machine", role="group" if anchors else "img",
        aria_label=what, width=placed.wide, height=placed.high,
    )  # fmt: skip
    root.append(el("title", what))
    draw = _Drawing(placed, seen, DisplayNames(report), _nearest_paths(report) if anchors else None)
    for part in (draw.sockets(), draw.frames(), draw.wires(), draw.ports(), draw.arcs(), draw.boxes()):
        root.extend(part)
    return root


class _Drawing:
    def __init__(self, placed: PictureLayout, seen: Scene, names: DisplayNames, ways: Mapping[str, str] | None) -> None:
        self.layout, self.seen, self.names = placed, seen, names
        self.paths = ways  # None: boxes are no links

    def sockets(self) -> Iterator[Element]:
        """Processors, and the connection between them: its bandwidth is unknown, so it has no width."""
        for upper, lower in pairwise(self.layout.sockets):
            x = upper.at.x + upper.at.wide / 2
            yield el("path", d=f"M{x:g} {upper.at.y + upper.at.high:g}V{lower.at.y:g}", class_="between")
        for number, at in self.layout.sockets:
            title = "CPU" if number is None else f"CPU {number}"
            model = _cut_text(short_cpu(self.seen.cpu), at.high - 16)
            x, y = at.x + at.wide / 2, at.middle
            yield el(
                "g",
                el("title", " ".join(part for part in (title, self.seen.cpu) if part)),
                _rect(at, "cpu", 8),
                el("text", title, x=x, y=y, class_="title turned", transform=f"rotate(-90 {x:g} {y:g})", dy=-3),
                el("text", model, x=x, y=y, class_="small turned", transform=f"rotate(-90 {x:g} {y:g})", dy=13),
            )

    def frames(self) -> Iterator[Element]:
        """Frames and titles of NUMA nodes, and the CPU sides."""
        for item in self.layout.placed:
            if item.box.kind == "node":
                words = "  ·  ".join((item.box.title, *item.box.words))
                yield _rect(item.at, "node", 10)
                yield el("text", words, x=item.at.x + 12, y=item.at.y + 20, class_="head")
        for rail in self.layout.rails:
            yield _rect(rail, "rail", 4)
        if self.layout.band:
            band = self.layout.band
            switches = sum(box.kind == "nvswitch" for node in self.seen.boxes for box in node.walk())
            yield _rect(band, "nvswitch", 8)
            x, y = band.x + BAND / 2, band.middle
            yield el("text", "NVSwitch", x=x, y=y, class_="head turned", transform=f"rotate(90 {x:g} {y:g})")
            if not switches:
                yield el(
                    "text", "not on this host's PCIe", x=x - 18, y=y, class_="small turned",
                    transform=f"rotate(90 {x - 18:g} {y:g})",
                )  # fmt: skip

    def wires(self) -> Iterator[Element]:
        """Bars from each box to its parent."""
        for item in self.layout.placed:
            if item.start is None:
                continue
            if item.box.wire is None:
                yield _bar(item.start, item.at.x, item.at.middle, THIN, "could")
            else:
                yield self._wire(item, item.start, item.box.wire)

    def ports(self) -> Iterator[Element]:
        """Network ports, and NVLinks to the NVSwitches."""
        for item in self.layout.placed:
            rows = [port for port in item.box.ports if port.kind == "port"]
            for k, port in enumerate(rows[:3]):
                y = item.at.middle + (k - (len(rows[:3]) - 1) / 2) * 13
                y += 13 if item.box.ports[0].kind == "nvlink" else 0  # of an NPU, below its links
                yield self._port(item, port, y)
            for port in item.box.ports:
                if port.kind == "nvlink":
                    yield self._nvlink(
                        item, port, port.text + (" · C2C" if any(port.kind == "c2c" for port in item.box.ports) else "")
                    )
                elif port.kind == "c2c" and len(item.box.ports) == 1:
                    yield el("text", port.text, x=item.at.right + 10, y=item.at.middle + 4, class_="small")

    def arcs(self) -> Iterator[Element]:
        """Direct links from GPU to GPU."""
        most = max(self.seen.direct.values(), default=1)
        for number, ((a, b), count) in enumerate(self.seen.direct.items()):
            one, other = self.layout.find(a), self.layout.find(b)
            if one is None or other is None:
                continue
            x, upper, lower = one.at.right, one.at.middle, other.at.middle
            far = x + bulge(number, upper, lower)
            links = f"{count} direct link{'s' if count > 1 else ''}"
            labels = f"{self.names.labels.get(a, a)} and {self.names.labels.get(b, b)}: {links}"
            yield el(
                "path",
                el("title", labels),
                d=f"M{x:g} {upper + 6:g}C{far:g} {upper + 6:g} {far:g} {lower - 6:g} {x:g} {lower - 6:g}",
                class_="arc",
                stroke_width=max(THIN, 6 * count / most),
            )

    def boxes(self) -> Iterator[Element]:
        """Switches and devices, each a link to its details."""
        for item in self.layout.placed:
            if item.box.kind == "node":
                continue
            inner = list(self._box(item))
            label = _describe_box(item.box)
            if self.paths is not None:
                yield el(
                    "a", *inner, href=f"#d-{item.box.key}", class_=f"box {item.box.kind} sev-{item.box.severity}",
                    data_key=item.box.key, data_way=self.paths.get(item.box.key), aria_label=label,
                )  # fmt: skip
            else:
                yield el("g", *inner, class_=f"box {item.box.kind} sev-{item.box.severity}")

    def _wire(self, item: PlacedBox, start: float, wire: LinkBar) -> Element:
        y = item.at.middle
        css_class = f"wire {wire.state} {wire.tone}{' limits' if wire.limits else ''}"
        group = el("g", class_=css_class, data_place=wire.place, data_of=item.box.key)
        group.append(el("title", _describe_link(item.box, wire)))
        if wire.could:
            group.append(_bar(start, item.at.x, y, max(THIN, wire.could * self.layout.scale), "could"))
        thick = max(THIN, (wire.now or 0.0) * self.layout.scale)
        group.append(_bar(start, item.at.x, y, thick, "now"))
        x = item.at.x - GAP / 2
        over = max(thick, (wire.could or 0.0) * self.layout.scale) / 2 + 4
        rate = format_rate(wire.now) if wire.now and wire.state in ("ok", "reduced") else ""
        above, below = wire.text, rate
        if (wire.state == "ok" and not wire.limits) or wire.text == rate:
            above, below = " · ".join(dict.fromkeys(part for part in (wire.text, rate) if part)), ""
        elif wire.state == "idle":
            below = "idle"
        if wire.limits:
            below = f"▲ {below} limits"
        if wire.state != "unknown" or wire.asleep:
            group.append(el("text", _cut_text(above, GAP - 4, 5.6), x=x, y=y - over, class_="small middle"))
        if below:
            group.append(el("text", below, x=x, y=y + over + 8, class_="small middle"))
        return group

    def _port(self, item: PlacedBox, port: DevicePort, y: float) -> Element:
        x = item.at.right
        return el(
            "g",
            el("title", f"{item.box.title} port: {port.text}"),
            _bar(x, x + 14, y, 3, "now"),
            el("circle", cx=x + 17, cy=y, r=3.5, class_="end"),
            el("text", _cut_text(port.text, self.layout.room), x=x + self.layout.stub, y=y + 4, class_="small"),
            class_=f"port {port.state} {port.tone}",
        )

    def _nvlink(self, item: PlacedBox, port: DevicePort, text: str) -> Element:
        x, y = item.at.right, item.at.middle
        group = el("g", class_=f"port nvlink {port.state} {port.tone}")
        name = text.partition(" ")[0]
        links = "NVLinks" if name == "NVLink" else f"{name} links"
        group.append(el("title", f"{item.box.title}: {port.up} of {port.all} {links} up"))
        band = self.layout.band
        if band is None or "switch" not in port.far:
            if not self.seen.direct:
                group.append(_bar(x, x + 14, y, 3, "now"))
            group.append(el("text", text, x=x + self.layout.stub, y=y + 4, class_="small"))
            return group
        group.append(_bar(x, band.x, y, NVLINK_THICK, "could"))
        group.append(_bar(x, band.x, y, max(THIN, NVLINK_THICK * port.up / max(port.all, 1)), "now"))
        group.append(el("text", text, x=x + 26, y=y - NVLINK_THICK / 2 - 3, class_="small"))
        return group

    def _box(self, item: PlacedBox) -> Iterator[Element]:
        box, rect = item.box, item.at
        yield el("title", _describe_box(box))
        yield _rect(rect, "shape", 6)
        wide = DEVICE if rect.wide == DEVICE else INNER
        lines = [box.title, *(box.words if wide == INNER else ["  ·  ".join(box.words)] if box.words else [])]
        room = max(int((rect.high - 6) // 13), 1)
        if room == 1 and wide == INNER:
            lines = ["  ".join(lines)]
        first = rect.middle - (min(len(lines), room) - 1) * 6.5 + 4
        for k, text in enumerate(lines[:room]):
            space = wide - (26 if box.severity in MARKS and not k else 12)
            label = _cut_text(text, space, SMALL if k else BOLD)
            line = el("text", label, x=rect.x + 8, y=first + k * 13, class_="small" if k else "title")
            left = space - len(label) * BOLD - 10
            if box.alias and not k and left > 4 * SMALL:
                line.append(el("tspan", _cut_text(box.alias, left), class_="small", dx=8))
            yield line
        if box.severity in MARKS:
            yield el("circle", cx=rect.right - 13, cy=rect.y + 13, r=8.5, class_="mark")
            yield el("text", MARKS[box.severity], x=rect.right - 13, y=rect.y + 17, class_="letter")


def _nearest_paths(report: Report) -> dict[str, str]:
    """GPU or rail -> the functions on its paths to the nearest of the others."""
    gpus = {gpu.id: "" for gpu in report.topology.gpus}
    rails = [nic.id for nic in report.topology.host_nics if nic.role == "rail"]
    pairs = paths_by_pair(report, gpus, dict.fromkeys(rails, ""))
    hops_by_end: dict[str, list[str]] = {}
    for gpu, nic in sorted(find_nearest_rails(pairs, gpus, rails)):
        for end in (gpu, nic):
            hops_by_end.setdefault(end, []).extend((gpu, nic, *pairs[gpu, nic].hops))
    return {end: " ".join(dict.fromkeys(hops)) for end, hops in hops_by_end.items()}


def _describe_box(box: Box) -> str:
    """Describe a box in one sentence, for screen readers."""
    parts = [box.title, *box.words, *([box.alias] if box.alias else [])]
    if box.wire:
        parts.append(f"PCIe {box.wire.text}")
    parts += [port.text for port in box.ports]
    if box.severity:
        parts.append(f"worst finding: {box.severity}")
    return ", ".join(parts)


def _describe_link(box: Box, wire: LinkBar) -> str:
    lines = [f"Link of {box.title} ({wire.place}): {wire.text}"]
    if wire.now is not None:
        lines.append(f"carries {wire.now:.1f} GB/s in one direction")
    if wire.could is not None and wire.state != "ok":
        lines.append(f"could carry {wire.could:.1f} GB/s")
    lines += [wire.note] if wire.note else []
    if wire.limits:
        lines.append(f"the slowest hop of {name_first(wire.limits, 6)}")
    return "; ".join(lines)


def _count_boxes(seen: Scene) -> str:
    kinds = [box.kind for node in seen.boxes for box in node.walk()]
    words = [("gpu", "GPUs"), ("nic", "NICs"), ("switch", "PCIe switches")]
    return ", ".join(f"{kinds.count(kind)} {word}" for kind, word in words)


def short_cpu(name: str) -> str:
    """The processor's model without marks and its maker's filler words.

    >>> short_cpu("Intel(R) Xeon(R) Platinum 8480+"), short_cpu("AMD EPYC 7742 64-Core Processor")
    ('Xeon Platinum 8480+', 'EPYC 7742 64-Core')
    """
    for filler in ("(R)", "(TM)", "(r)", "(tm)", " Processor", " CPU", "Intel ", "INTEL ", "AMD "):
        name = name.replace(filler, "")
    return name.partition(" @")[0].strip()


def _rect(rect: Rect, kind: str, radius: float) -> Element:
    return el("rect", x=rect.x, y=rect.y, width=rect.wide, height=rect.high, rx=radius, class_=kind)


def _bar(x: float, end: float, y: float, thick: float, kind: str) -> Element:
    return el("rect", x=x, y=y - thick / 2, width=end - x, height=thick, class_=kind)


def _cut_text(text: str, wide: float, character: float = SMALL) -> str:
    return clean_line(text, max(int(wide / character), 1))
