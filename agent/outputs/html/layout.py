"""The positions of a scene's boxes: sockets on the left, devices in rows on the right.

A switch is as high as the rows below it, so that every link is a straight bar. Pixels, y downwards.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.outputs.html.scene import UNPLACED, Box, Scene

ROW, DEVICE_HIGH = 46, 36  # of a device: its row, its box
MARGIN, HEAD, BETWEEN = 12, 30, 22  # around the picture; of a NUMA node's title; between NUMA nodes
CPU, RAIL = 48, 12  # widths: a socket; the side of a NUMA node from which links start
GAP, INNER, DEVICE, PORT, BAND = 124, 118, 252, 150, 84  # widths: link, switch, device, port, NVSwitch
STUB, LANE = 26, 102  # from a device to the text of its port; the same where links between GPUs are drawn before it
THICK = 14.0  # the link of this picture that can carry most
THIN = 1.5
BESIDE = 12  # from a curve to the text beside it
_REACH = 0.75  # of its bulge: as far as such a curve goes


class Rect(NamedTuple):
    """A rectangle."""

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


class PlacedBox(NamedTuple):
    """A box with its position and the start of its link."""

    box: Box
    at: Rect
    start: float | None  # x where its link begins; None: it has none
    parent: str  # key of the box that it hangs from


class PlacedSocket(NamedTuple):
    """A processor, as high as its NUMA nodes."""

    number: int | None  # None: which socket these NUMA nodes belong to is not known
    at: Rect


class PictureLayout(NamedTuple):
    """The whole picture."""

    wide: float
    high: float
    placed: list[PlacedBox]
    sockets: list[PlacedSocket]
    rails: list[Rect]  # of every NUMA node, the side from which its links start
    band: Rect | None  # the NVSwitches, where GPUs' NVLinks end
    scale: float  # thickness of a bar for one GB/s
    stub: float  # from a device to the text of its port
    room: float  # for that text

    def find(self, key: str) -> PlacedBox | None:
        """The box with a key."""
        return next((box for box in self.placed if box.box.key == key), None)


def compute_layout(scene: Scene) -> PictureLayout:
    """Compute the positions of all boxes."""
    hung = [box for node in scene.boxes if node.key != UNPLACED for box in node.children]
    columns = max((_depth(box) for box in hung), default=0) - 1  # of switches; -1: nothing hangs anywhere
    lane = LANE if scene.direct else STUB
    maker = _LayoutBuilder(columns, lane)
    top = float(MARGIN)
    for node in scene.boxes:
        top = maker.node(node, top) + BETWEEN
    most = max(
        (w for node in scene.boxes for box in node.walk() if box.wire for w in (box.wire.now, box.wire.could) if w),
        default=1.0,
    )
    to_switch = [box for box in maker.placed if any("switch" in port.far for port in box.box.ports)]
    band = None
    if to_switch:
        first, last = to_switch[0].at.y, to_switch[-1].at.y + DEVICE_HIGH
        band = Rect(maker.right + BETWEEN, first, BAND, last - first)
    wide = (band.right if band else maker.right) + MARGIN
    high = max(top - BETWEEN, 0.0) + MARGIN
    middles = {item.box.key: item.at.middle for item in maker.placed}
    ends = [pair for pair in scene.direct if middles.keys() >= set(pair)]
    reach = max((_REACH * bulge(k, middles[a], middles[b]) for k, (a, b) in enumerate(ends)), default=0.0)
    stub = min(lane, max(STUB, reach + BESIDE))
    room = PORT + lane - STUB - stub - MARGIN / 2
    return PictureLayout(wide, high, maker.placed, maker.sockets, maker.rails, band, THICK / most, stub, room)


def bulge(number: int, upper: float, lower: float) -> float:
    """How far the control points of the curve between two heights are to the right, so that curves stand apart."""
    return min(PORT - 30, 30 + abs(lower - upper) * 0.16 + (number % 3) * 5)


class _LayoutBuilder:
    def __init__(self, columns: int, lane: int) -> None:
        self.placed: list[PlacedBox] = []
        self.sockets: list[PlacedSocket] = []
        self.rails: list[Rect] = []
        self.left = MARGIN + CPU + 10 + RAIL
        self.devices = self.left + (columns * (GAP + INNER) + GAP if columns >= 0 else -RAIL)
        self.right = self.devices + DEVICE + PORT + lane - STUB

    def node(self, node: Box, top: float) -> float:
        """Place a NUMA node as a frame around its rows; returns its lower edge."""
        place = len(self.placed)
        bottom = top + HEAD
        for child in node.children:
            if node.key == UNPLACED:  # nothing is known of where it hangs: no line, no CPU
                self.placed.append(PlacedBox(child, Rect(self.devices, bottom, DEVICE, DEVICE_HIGH), None, node.key))
                bottom += ROW
            else:
                bottom = self._row(child, 0, bottom, self.left, node.key)
        frame = Rect(MARGIN + CPU, top, self.right - MARGIN - CPU, bottom - top + 6)
        self.placed.insert(place, PlacedBox(node, frame, None, ""))
        if node.key == UNPLACED:
            return frame.y + frame.high
        self._extend_socket(node.socket, frame)
        high = max(bottom - top - HEAD - (ROW - DEVICE_HIGH), 0)
        self.rails.append(Rect(MARGIN + CPU + 10, top + HEAD, RAIL, high))
        return frame.y + frame.high

    def _extend_socket(self, number: int | None, frame: Rect) -> None:
        """The socket of this NUMA node, drawn beside all its frames."""
        last = self.sockets[-1] if self.sockets else None
        if last and number is not None and last.number == number:
            whole = last.at._replace(high=frame.y + frame.high - last.at.y)
            self.sockets[-1] = last._replace(at=whole)
        else:
            self.sockets.append(PlacedSocket(number, Rect(MARGIN, frame.y, CPU - 6, frame.high)))

    def _row(self, box: Box, depth: int, top: float, start: float, parent: str) -> float:
        if not box.children and box.kind not in ("switch", "bus"):
            self.placed.append(PlacedBox(box, Rect(self.devices, top, DEVICE, DEVICE_HIGH), start, parent))
            return top + ROW
        x = self.left + depth * (GAP + INNER) + GAP
        place, bottom = len(self.placed), top
        for child in box.children:
            bottom = self._row(child, depth + 1, bottom, x + INNER, box.key)
        bottom = max(bottom, top + ROW)
        self.placed.insert(
            place, PlacedBox(box, Rect(x, top, INNER, bottom - top - (ROW - DEVICE_HIGH)), start, parent)
        )
        return bottom


def _depth(box: Box) -> int:
    return 1 + max((_depth(child) for child in box.children), default=0)
