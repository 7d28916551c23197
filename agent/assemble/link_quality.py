"""How reliable the numbers of a PCIe link are; decided before any rule reads them.

The states, in the order in which they are decided:

asleep      the device is suspended or in D3: its link state means nothing
unreadable  the device does not respond, the kernel could not read the registers, no link data, or no link
untrusted   the registers do not describe a physical link that can be reseated or that carries traffic:
            emulated ports of a virtual machine, links inside a card or chip, management links of NVSwitches,
            virtual ports of a switch, a chipset link that boards wire narrower than both ends support,
            a link that is faster than its own maximum
idle        a GPU reduces its link speed when idle, and nothing proves that it was busy; not where a part of another
            maker than NVIDIA is narrower than all others of its model, at full speed
conclusive  everything else

A root or downstream port describes the link below it: the state of the device below applies to the port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.assemble.facts import card_address
from agent.assemble.pcie_tree import BridgePort, PcieTree, is_bridge
from agent.model.pci import CARD_SWITCHES, LinkQuality, generation
from agent.platforms.devices import is_accelerator
from probes.gpu.facts import Gpu
from probes.pci.facts import PciFunction

_NO_WIDTH = (0, 63, 255)  # link down, all-ones, LnkCap read as 0
_QEMU, _AMAZON, _BROADCOM, _MICROCHIP, _MELLANOX, _NVIDIA = "0x1b36", "0x1d0f", "0x1000", "0x11f8", "0x15b3", "0x10de"
_NICS_WITH_SWITCH = (_MELLANOX, "0x1dd8")
_AMD = "0x1022"
_AM4_CHIPSET, _AM4_LANES = "0x57ad", 4  # X570 "Matisse Switch Upstream" (pci.ids); AM4 has x4 of PCIe 4.0 for it
_SYNTHETIC_SUBSYSTEMS = ("0x100b", "0x2004", "0x2005")  # PEX890xx virtual ports (pci.ids, vendor 1000)


class LinkClassifier:
    """Classifies every link of one host. `gpus`: the driver's view of a GPU, by PCI address."""

    def __init__(self, tree: PcieTree, gpus: Mapping[str, Gpu], virtual: bool) -> None:
        self.tree = tree
        self.gpus = gpus
        self.virtual = virtual
        self.management = _nvswitch_management_links(tree)

    def quality(self, function: PciFunction) -> LinkQuality | None:
        """The quality of a function's link; None where it has no link of its own, as virtual functions."""
        own = self._of_function(function)
        if own is None or own.state != "conclusive":
            return own
        for other in self._same_wire(function):
            there = self._of_function(other)
            if there and there.state != "conclusive":
                return LinkQuality(state=there.state, reason=f"the wire of {other.address}: {there.reason}")
        return own

    def _same_wire(self, function: PciFunction) -> Iterator[PciFunction]:
        """Functions whose registers describe the same link: the device below a port, the first function of a card."""
        if self.tree.port(function.address) in (BridgePort.ROOT, BridgePort.DOWN):
            yield from self.tree.children.get(function.address, ())
        first = self.tree.functions.get(f"{card_address(function.address)}.0")
        if first and first is not function and function.parent:
            yield first

    def _of_function(self, function: PciFunction) -> LinkQuality | None:
        if function.physical_function:
            return None
        if is_asleep(function):
            return LinkQuality(state="asleep", reason=f"power state {function.power_state or function.runtime_status}")
        nothing = _has_no_registers(function)
        if nothing and not (function.link_error or is_gone(function)):
            below_a_port = function.parent is not None
            unstated = "the source does not contain its link"
            return LinkQuality(state="unreadable", reason=unstated) if below_a_port else None
        for untrusted in self._distrust(function):
            return untrusted
        unreadable = _why_unreadable(function)
        if unreadable:
            return LinkQuality(state="unreadable", reason=unreadable)
        idle = self._idle(function)
        return LinkQuality(state="idle", reason=idle) if idle else LinkQuality(state="conclusive")

    def _distrust(self, function: PciFunction) -> Iterator[LinkQuality]:
        above = self.tree.parent(function)
        if function.link_doubt:
            yield _untrusted(function.link_doubt)
        if _exceeds_own_maximum(function):
            yield _untrusted("reports more than its own maximum: its capability register is unreliable")
        if not (self._is_gpu(function) and self._at_most(function, None)):  # a GPU passed through shows its own link
            if self.virtual:
                yield _untrusted("virtual machine: emulated ports hide the slot's link")
            if any(f and f.vendor in (_QEMU, _AMAZON) and is_bridge(f) for f in (function, above)):
                yield _untrusted("emulated port")
        if function.address in self.management:
            yield _untrusted("management link of an NVSwitch")
        if above and _is_inside_card(function, above):
            text = f"card-internal link, see the card's upstream link above {above.address}"
            yield _untrusted(text, "inside-card")
        if _is_on_root_bus(function) and function.port_type in ("endpoint", "legacy_endpoint", None):
            yield _untrusted("no port above it on the root bus")
        if above and _has_no_registers(above) and not above.link_error and _is_below_own_maximum(function):
            yield _untrusted(f"chip-internal link: the port above it, {above.address}, has no link registers")
        if _is_chipset_link(function):
            yield _untrusted("the chipset's link to the CPU: boards wire four lanes of it")
        if synthetic := self._synthetic(function, above):
            yield _untrusted(f"virtual switch port, reported speed ignored{synthetic}")

    def _synthetic(self, function: PciFunction, above: PciFunction | None) -> str | None:
        """How a port is known to be virtual; None: it is a physical one.

        Broadcom PEX and Microchip switches have virtual ports that report 2.5 or 5 GT/s and full width.
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
        """Why a GPU's link (or that of its card's switch) is not conclusive; None where it is."""
        card_switch = (function.vendor, function.device) in CARD_SWITCHES
        if not (card_switch or self._is_gpu(function)) or self._at_most(function, self.tree.parent(function)):
            return None
        if function.vendor != _NVIDIA and self._is_narrow_alone(function):
            return None
        gpu = self.gpus.get(function.address)
        if gpu is None or (gpu.pstate is None and not gpu.utilization_percent):
            return "below its maximum, and the P-state is unknown: an idle GPU reduces its link speed"
        busy = bool(gpu.utilization_percent)
        if gpu.pstate is not None and not (gpu.pstate == 0 or (gpu.pstate <= 2 and busy)):
            return f"GPU idle (P{gpu.pstate}): link speed is reduced by power saving"
        here = generation(function.current_link_speed_gt_s)
        if gpu.link_generation is not None and gpu.link_generation != here:
            return f"it changed while it was read: generation {here}, then {gpu.link_generation}"
        return None

    def _is_narrow_alone(self, function: PciFunction) -> bool:
        """Whether only its width is below its maximum, and all others of its model (two or more) have theirs.

        What saves power lowers the speed. Of NVIDIA the P-state decides: its cards may narrow an idle link.
        """
        speed, _ = link_capability(function, self.tree.parent(function))
        if speed is None or (function.current_link_speed_gt_s or 0) < speed:
            return False
        model = (function.vendor, function.device)
        peers = [f for f in self.tree.functions.values() if (f.vendor, f.device) == model and f is not function]
        ends = [f for f in peers if self.tree.port(f.address) is self.tree.port(function.address)]
        return len(ends) > 1 and all(self._at_most(end, self.tree.parent(end)) for end in ends)

    def _at_most(self, function: PciFunction, above: PciFunction | None) -> bool:
        """Whether the link runs at what both its ends support, so that idling did not slow it."""
        speed, width = link_capability(function, above)
        now_speed, now_width = function.current_link_speed_gt_s, function.current_link_width
        if speed is None or width is None or now_speed is None or now_width in (*_NO_WIDTH, None):
            return False
        return now_speed >= speed and (now_width or 0) >= width


def _untrusted(reason: str, code: str | None = None) -> LinkQuality:
    return LinkQuality(state="untrusted", reason=reason, reason_code=code)


def link_capability(function: PciFunction, above: PciFunction | None) -> tuple[float | None, int | None]:
    """Speed (GT/s) and width a link can reach: the lesser of its two ends, as far as known."""
    speeds = [f.max_link_speed_gt_s for f in (function, above) if f and f.max_link_speed_gt_s is not None]
    widths = [width for f in (function, above) if f and (width := valid_width(f.max_link_width)) is not None]
    return min(speeds, default=None), min(widths, default=None)


def valid_width(raw: int | None) -> int | None:
    """A link width as a number of lanes; None for the values by which the kernel reports that there is none.

    >>> valid_width(16), valid_width(0), valid_width(255)
    (16, None, None)
    """
    return None if raw in _NO_WIDTH else raw


def is_asleep(function: PciFunction) -> bool:
    """Whether the device is suspended, or in a power state in which its link may be down."""
    return function.asleep or (function.power_state or "").startswith("D3")


def is_gone(function: PciFunction) -> bool:
    """Whether the device reads as all-ones without being asleep."""
    return not is_asleep(function) and (function.gone or function.current_link_width == 63)


def _has_no_registers(function: PciFunction) -> bool:
    return (
        function.current_link_speed_gt_s is None
        and function.max_link_speed_gt_s is None
        and valid_width(function.current_link_width) is None
        and valid_width(function.max_link_width) is None
        and function.link_gbyte_s is None
    )


def _why_unreadable(function: PciFunction) -> str | None:
    if is_gone(function):
        return "the device does not answer (all-ones)"
    if function.link_error:
        return f"the kernel could not read its link registers ({function.link_error})"
    if function.current_link_width == 0:
        return "no link (width 0)"
    if function.link_gbyte_s is not None:
        return "what it carries is known, and not at what speed and width"
    if function.current_link_speed_gt_s is None or valid_width(function.current_link_width) is None:
        return "its current speed or width is not known"
    return None


def _is_below_own_maximum(function: PciFunction) -> bool:
    return any(now is not None and most is not None and now < most for now, most in _current_and_maximum(function))


def _exceeds_own_maximum(function: PciFunction) -> bool:
    return any(now is not None and most is not None and now > most for now, most in _current_and_maximum(function))


def _current_and_maximum(function: PciFunction) -> tuple[tuple[float | None, float | None], ...]:
    return (
        (function.current_link_speed_gt_s, function.max_link_speed_gt_s),
        (valid_width(function.current_link_width), valid_width(function.max_link_width)),
    )


def _is_inside_card(function: PciFunction, above: PciFunction) -> bool:
    """Whether the link is behind the switch of a card: AMD GPUs, ConnectX, BlueField and Pensando NICs have one."""
    if (above.vendor, above.device) in CARD_SWITCHES:
        return True
    network = (function.class_code or "").startswith(("0x02", "0x08"))
    return function.vendor == above.vendor and above.vendor in _NICS_WITH_SWITCH and is_bridge(above) and network


def _is_chipset_link(function: PciFunction) -> bool:
    """Both ends of an X570's link report x8, and AM4 wires x4; a link with fewer lanes is still evaluated."""
    chipset = (function.vendor, function.device) == (_AMD, _AM4_CHIPSET)
    return chipset and valid_width(function.current_link_width) == _AM4_LANES


def _is_on_root_bus(function: PciFunction) -> bool:
    return function.parent is None and bool(function.root_bus) and not is_bridge(function)


def _nvswitch_management_links(tree: PcieTree) -> frozenset[str]:
    """NVSwitches, and the bridges that lead only to them: a management path, narrow by design."""
    counts: dict[str, int] = {}
    leaves: dict[str, int] = {}
    for function in tree.functions.values():
        if function.address in tree.children or is_bridge(function):
            continue
        switch = function.vendor == _NVIDIA and (function.class_code or "").startswith("0x0680")
        for place in (function.address, *tree.above(function.address)):
            leaves[place] = leaves.get(place, 0) + 1
            counts[place] = counts.get(place, 0) + switch
    return frozenset(place for place, count in counts.items() if count and count == leaves[place])
