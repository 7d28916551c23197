"""Where everything of a scene stands. The machine lies on its side: CPUs on the left, devices in rows on the right.

A switch is as high as the rows of what is below it, so that every link is a straight bar. Pixels, y downwards.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.outputs.html.scene import LOOSE, Box, Scene

ROW, DEVICE_HIGH = 46, 36  # of a device: its row, its box
MARGIN, HEAD, BETWEEN = 12, 30, 22  # around the picture; of a NUMA node's title; between NUMA nodes
RAIL = 12  # the CPU's side, from which links start
GAP, INNER, DEVICE, PLUG, BAND = 134, 118, 240, 176, 84  # widths: link, switch, device, port, NVSwitch
THICK = 14.0  # the link of this picture that can carry most
THIN = 1.5


class Rect(NamedTuple):
    """A place."""

    x: float
    y: float
    wide: float
    high: float

    @property
    def right(self) -> float:
        """The x of its right side."""
        return self.x + self.wide

    @property
    def middle(self) -> float:
        """The y of its middle."""
        return self.y + self.high / 2


class Placed(NamedTuple):
    """A box with its place, and from where its link comes."""

    box: Box
    at: Rect
    start: float | None  # x where its link begins; None: it has none
    parent: str  # key of the box that it hangs from


class Layout(NamedTuple):
    """The whole picture."""

    wide: float
    high: float
    placed: list[Placed]
    rails: list[Rect]  # of every NUMA node, the side from which its links start
    band: Rect | None  # the NVSwitches, where GPUs' NVLinks end
    scale: float  # thickness of a bar for one GB/s

    def of(self, key: str) -> Placed | None:
        """The box of a key."""
        return next((each for each in self.placed if each.box.key == key), None)


def layout(scene: Scene) -> Layout:
    """Places for all boxes."""
    hung = [box for node in scene.boxes if node.key != LOOSE for box in node.children]
    columns = max((_depth(box) for box in hung), default=0) - 1  # of switches; -1: nothing hangs anywhere
    maker = _Maker(columns)
    top = float(MARGIN)
    for node in scene.boxes:
        top = maker.node(node, top) + BETWEEN
    most = max((w for box in _all(scene) if box.wire for w in (box.wire.now, box.wire.could) if w), default=1.0)
    to_switch = [each for each in maker.placed if any("switch" in plug.far for plug in each.box.plugs)]
    band = None
    if to_switch:
        first, last = to_switch[0].at.y, to_switch[-1].at.y + DEVICE_HIGH
        band = Rect(maker.right + BETWEEN, first, BAND, last - first)
    wide = (band.right if band else maker.right) + MARGIN
    return Layout(wide, max(top - BETWEEN, 0.0) + MARGIN, maker.placed, maker.rails, band, THICK / most)


class _Maker:
    def __init__(self, columns: int) -> None:
        self.placed: list[Placed] = []
        self.rails: list[Rect] = []
        self.left = MARGIN + 10 + RAIL
        self.devices = self.left + (columns * (GAP + INNER) + GAP if columns >= 0 else -RAIL)
        self.right = self.devices + DEVICE + PLUG

    def node(self, node: Box, top: float) -> float:
        """A NUMA node as a frame around its rows; returns where it ends."""
        place = len(self.placed)
        bottom = top + HEAD
        for child in node.children:
            if node.key == LOOSE:  # nothing is known of where it hangs: no line, no CPU
                self.placed.append(Placed(child, Rect(self.devices, bottom, DEVICE, DEVICE_HIGH), None, node.key))
                bottom += ROW
            else:
                bottom = self._row(child, 0, bottom, self.left, node.key)
        frame = Rect(MARGIN, top, self.right - MARGIN, bottom - top + 6)
        self.placed.insert(place, Placed(node, frame, None, ""))
        if node.key == LOOSE:
            return frame.y + frame.high
        self.rails.append(Rect(MARGIN + 10, top + HEAD, RAIL, max(bottom - top - HEAD - (ROW - DEVICE_HIGH), 0)))
        return frame.y + frame.high

    def _row(self, box: Box, depth: int, top: float, start: float, parent: str) -> float:
        if not box.children and box.kind not in ("switch", "bus"):
            self.placed.append(Placed(box, Rect(self.devices, top, DEVICE, DEVICE_HIGH), start, parent))
            return top + ROW
        x = self.left + depth * (GAP + INNER) + GAP
        place, bottom = len(self.placed), top
        for child in box.children:
            bottom = self._row(child, depth + 1, bottom, x + INNER, box.key)
        bottom = max(bottom, top + ROW)
        self.placed.insert(place, Placed(box, Rect(x, top, INNER, bottom - top - (ROW - DEVICE_HIGH)), start, parent))
        return bottom


def _depth(box: Box) -> int:
    return 1 + max((_depth(child) for child in box.children), default=0)


def _all(scene: Scene) -> list[Box]:
    return [box for node in scene.boxes for box in node.walk()]
