"""How far the numbers of a PCIe link may be believed, decided before any rule looks at them.

The states, in the order in which they are decided:

asleep      the device is suspended, or in D3: a sleeping link says nothing
unreadable  the device does not answer, the kernel could not read the registers, the source does not say, no link
untrusted   the registers do not describe a wire between two parts that a person can reseat or that carries traffic:
            emulated ports of a virtual machine, links inside a card or chip, management links of NVSwitches,
            synthetic ports of a switch, a chipset's link that the board wires narrower than both ends could,
            a link that is faster than its own maximum
idle        a GPU slows its link when it has nothing to do, and nothing proves that it was busy
conclusive  everything else

A root or downstream port tells of the wire below it: what holds for the device there holds for the port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.assemble.identity import slot_of
from agent.assemble.pcie_tree import PcieTree, Port, is_bridge
from agent.model.link_rate import generation
from agent.model.pci import LinkQuality
from agent.platforms.devices import CARD_SWITCHES, is_accelerator
from probes.gpu.facts import Gpu
from probes.pci.sysfs import PciFunction

_NO_WIDTH = (0, 63, 255)  # link down, all-ones, LnkCap read as 0
_QEMU, _AMAZON, _BROADCOM, _MICROCHIP, _MELLANOX, _NVIDIA = "0x1b36", "0x1d0f", "0x1000", "0x11f8", "0x15b3", "0x10de"
_AMD = "0x1022"
_AM4_CHIPSET, _AM4_LANES = "0x57ad", 4  # X570 "Matisse Switch Upstream" (pci.ids); AM4 has x4 of PCIe 4.0 for it
_SYNTHETIC_SUBSYSTEMS = ("0x100b", "0x2004", "0x2005")  # PEX890xx virtual ports (pci.ids, vendor 1000)


class LinkJudge:
    """Decides every link of one host. `gpus`: what the driver says of a GPU, by PCI address."""

    def __init__(self, tree: PcieTree, gpus: Mapping[str, Gpu], virtual: bool) -> None:
        self.tree = tree
        self.gpus = gpus
        self.virtual = virtual
        self.management = _only_nvswitches_below(tree)

    def quality(self, function: PciFunction) -> LinkQuality | None:
        """The quality of a function's link; None where it has none of its own, as virtual functions."""
        own = self._of_function(function)
        if own is None or own.state != "conclusive":
            return own
        for other in self._same_wire(function):
            there = self._of_function(other)
            if there and there.state != "conclusive":
                return LinkQuality(state=there.state, reason=f"the wire of {other.address}: {there.reason}")
        return own

    def _same_wire(self, function: PciFunction) -> Iterator[PciFunction]:
        """Whose registers describe the same link: the device below a port, the first function of a card."""
        if self.tree.port(function.address) in (Port.ROOT, Port.DOWN):
            yield from self.tree.children.get(function.address, ())
        first = self.tree.functions.get(f"{slot_of(function.address)}.0")
        if first and first is not function and function.parent:
            yield first

    def _of_function(self, function: PciFunction) -> LinkQuality | None:
        if function.physical_function:
            return None
        if asleep(function):
            return LinkQuality(state="asleep", reason=f"power state {function.power_state or function.runtime_status}")
        nothing = _nothing_read(function)
        if nothing and not (function.link_error or gone(function)):
            below_a_port = function.parent is not None
            told = "the source does not say what its link is"
            return LinkQuality(state="unreadable", reason=told) if below_a_port else None
        for reason in self._distrust(function):
            return LinkQuality(state="untrusted", reason=reason)
        unreadable = _unreadable(function)
        if unreadable:
            return LinkQuality(state="unreadable", reason=unreadable)
        idle = self._idle(function)
        return LinkQuality(state="idle", reason=idle) if idle else LinkQuality(state="conclusive")

    def _distrust(self, function: PciFunction) -> Iterator[str]:
        above = self.tree.parent(function)
        if function.link_doubt:
            yield function.link_doubt
        if _overdriven(function):
            yield "faster or wider than the maximum that it states: its capability register means nothing"
        if not (self._is_gpu(function) and self._at_most(function, None)):  # a GPU passed through shows its own link
            if self.virtual:
                yield "virtual machine: ports are emulated, and what the slot can do is not visible"
            if any(f and f.vendor in (_QEMU, _AMAZON) and is_bridge(f) for f in (function, above)):
                yield "an emulated port"
        if function.address in self.management:
            yield "management link of an NVSwitch"
        if above and _inside_a_card(function, above):
            yield f"a link inside a card: the one that counts leads to the card, above {above.address}"
        if _on_root_bus(function) and function.port_type in ("endpoint", "legacy_endpoint", None):
            yield "no port above it on the root bus"
        if above and _nothing_read(above) and not above.link_error and _below_its_own_maximum(function):
            yield f"the port above it, {above.address}, has no link registers: a link inside a chip"
        if _chipset(function):
            yield "the chipset's link to the CPU: boards wire four lanes of it"
        if synthetic := self._synthetic(function, above):
            yield f"a synthetic port of a switch{synthetic}"

    def _synthetic(self, function: PciFunction, above: PciFunction | None) -> str | None:
        """By what a port is known that is no wire; None: it is one.

        Broadcom PEX and Microchip switches show ports that are no wire, at 2.5 or 5 GT/s and full width.
        """
        switch = function.vendor == _MICROCHIP or (
            function.vendor == _BROADCOM and (function.device or "").startswith("0xc0")
        )
        if not switch or not is_bridge(function):
            return None
        if self._far_slower(function, above):
            return ": far slower than what is above and below it"
        named = function.subsystem_vendor == _BROADCOM and function.subsystem_device in _SYNTHETIC_SUBSYSTEMS
        return ": its subsystem id is that of one" if named else None

    def _far_slower(self, function: PciFunction, above: PciFunction | None) -> bool:
        own = generation(function.max_link_speed_gt_s)
        upper = generation(above.max_link_speed_gt_s) if above else None
        below = [generation(f.max_link_speed_gt_s) or 0 for f in self._two_levels_below(function)]
        if own is None or upper is None or not below or function.max_link_width != 16:
            return False
        return own <= upper - 2 and own <= max(below) - 2

    def _two_levels_below(self, function: PciFunction) -> Iterator[PciFunction]:
        for child in self.tree.children.get(function.address, ()):
            yield child
            yield from self.tree.children.get(child.address, ())

    def _is_gpu(self, function: PciFunction) -> bool:
        return function.address in self.gpus or is_accelerator(function.vendor, function.device, function.class_code)

    def _idle(self, function: PciFunction) -> str | None:
        """Why a link of a GPU (or of the switch on its card) proves nothing; None where it does."""
        card_switch = (function.vendor, function.device) in CARD_SWITCHES
        if not (card_switch or self._is_gpu(function)) or self._at_most(function, self.tree.parent(function)):
            return None
        said = self.gpus.get(function.address)
        if said is None or (said.pstate is None and not said.utilization_percent):
            return "below its maximum, and no P-state is known: a GPU slows its link when idle"
        busy = bool(said.utilization_percent)
        if said.pstate is not None and not (said.pstate == 0 or (said.pstate <= 2 and busy)):
            return f"P{said.pstate}: a GPU slows its link when idle"
        here = generation(function.current_link_speed_gt_s)
        if said.link_generation is not None and said.link_generation != here:
            return f"it changed while it was read: generation {here}, then {said.link_generation}"
        return None

    def _at_most(self, function: PciFunction, above: PciFunction | None) -> bool:
        """The link runs at what both its ends can do, so idling did not slow it."""
        speed, width = expected(function, above)
        now_speed, now_width = function.current_link_speed_gt_s, function.current_link_width
        if speed is None or width is None or now_speed is None or now_width in (*_NO_WIDTH, None):
            return False
        return now_speed >= speed and (now_width or 0) >= width


def expected(function: PciFunction, above: PciFunction | None) -> tuple[float | None, int | None]:
    """Speed (GT/s) and width that a link can reach: the lesser of its two ends, as far as they are known."""
    speeds = [f.max_link_speed_gt_s for f in (function, above) if f and f.max_link_speed_gt_s is not None]
    widths = [width for f in (function, above) if f and (width := lanes(f.max_link_width)) is not None]
    return min(speeds, default=None), min(widths, default=None)


def lanes(raw: int | None) -> int | None:
    """A link width as a number of lanes; None for the kernel's ways to say that there is none.

    >>> lanes(16), lanes(0), lanes(255)
    (16, None, None)
    """
    return None if raw in _NO_WIDTH else raw


def asleep(function: PciFunction) -> bool:
    """The device is suspended, or in a power state in which its link may be down."""
    return function.asleep or (function.power_state or "").startswith("D3")


def gone(function: PciFunction) -> bool:
    """The device answers all-ones, and not because it sleeps."""
    return not asleep(function) and (function.gone or function.current_link_width == 63)


def _nothing_read(function: PciFunction) -> bool:
    return (
        function.current_link_speed_gt_s is None
        and function.max_link_speed_gt_s is None
        and lanes(function.current_link_width) is None
        and lanes(function.max_link_width) is None
        and function.link_gbyte_s is None
    )


def _unreadable(function: PciFunction) -> str | None:
    if gone(function):
        return "the device does not answer (all-ones)"
    if function.link_error:
        return f"the kernel could not read its link registers ({function.link_error})"
    if function.current_link_width == 0:
        return "no link (width 0)"
    if function.link_gbyte_s is not None:
        return "what it carries is known, and not at what speed and width"
    if function.current_link_speed_gt_s is None or lanes(function.current_link_width) is None:
        return "its current speed or width is not known"
    return None


def _below_its_own_maximum(function: PciFunction) -> bool:
    return any(now is not None and most is not None and now < most for now, most in _now_and_most(function))


def _overdriven(function: PciFunction) -> bool:
    return any(now is not None and most is not None and now > most for now, most in _now_and_most(function))


def _now_and_most(function: PciFunction) -> tuple[tuple[float | None, float | None], ...]:
    return (
        (function.current_link_speed_gt_s, function.max_link_speed_gt_s),
        (lanes(function.current_link_width), lanes(function.max_link_width)),
    )


def _inside_a_card(function: PciFunction, above: PciFunction) -> bool:
    """Behind the switch that a card brings: AMD GPUs have one, ConnectX and BlueField have one."""
    if (above.vendor, above.device) in CARD_SWITCHES:
        return True
    network = (function.class_code or "").startswith(("0x02", "0x08"))
    return function.vendor == above.vendor == _MELLANOX and is_bridge(above) and network


def _chipset(function: PciFunction) -> bool:
    """Both ends of an X570's link say x8, and AM4 wires x4; with fewer lanes still it is judged."""
    chipset = (function.vendor, function.device) == (_AMD, _AM4_CHIPSET)
    return chipset and lanes(function.current_link_width) == _AM4_LANES


def _on_root_bus(function: PciFunction) -> bool:
    return function.parent is None and bool(function.root_bus) and not is_bridge(function)


def _only_nvswitches_below(tree: PcieTree) -> frozenset[str]:
    """NVSwitches, and the bridges that lead to nothing else: a by-way for management, narrow by design."""
    counts: dict[str, int] = {}
    leaves: dict[str, int] = {}
    for function in tree.functions.values():
        if function.address in tree.children or is_bridge(function):
            continue
        switch = function.vendor == _NVIDIA and (function.class_code or "").startswith("0x0680")
        for place in (function.address, *tree.above(function.address)):
            leaves[place] = leaves.get(place, 0) + 1
            counts[place] = counts.get(place, 0) + switch
    return frozenset(place for place, found in counts.items() if found and found == leaves[place])
