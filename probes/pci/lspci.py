"""PCI functions from `lspci`, for sources without sysfs: -v, -vv, -vvv, with or without -D, -n, -nn, -x to -xxxx. Text
and hex of one function complete each other.

The grammar is that of pciutils 3.0 to 3.14 (ls-caps.c, ls-ecaps.c, ls-kernel.c, lspci.c).
"""

from __future__ import annotations

import re
from typing import Any

from probes.host.interface import FILTERED, Failed, Host
from probes.pci.config_space import VirtualFunctions, decode
from probes.pci.facts import Acs, PciFacts, PciFunctionBuilder, build_functions, has_link_control_2
from probes.pci.lspci_fields import LspciBlock, blocks, class_code, find_cut, vendor_of
from probes.probe import Gap, Reading
from probes.text import ParseError, lazy_pattern

_CLASS = lazy_pattern(r"(?:Class )?([^:\[]{0,80}?)\s?(?:\[([0-9a-f]{4})\])?: ")
_NUMBER_CLASS = lazy_pattern(r"[0-9a-f]{4}")
_REVISION = lazy_pattern(r"\(rev ([0-9a-f]{2})\)")
_INTERFACE = lazy_pattern(r"\(prog-if ([0-9a-f]{2})")
_IDS = lazy_pattern(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_BARE_IDS = lazy_pattern(r"(?:Device )?([0-9a-f]{4}):([0-9a-f]{4})\b")
_DEVICE = lazy_pattern(r"(?:.*\s)?(?:Unknown )?[Dd]evice ([0-9a-f]{4})")
_NAMELESS = lazy_pattern(r"(?:Unknown )?[Dd]evice(?: [0-9a-f]{4})?")
_TAIL = lazy_pattern(r"\s\((?:rev|prog-if) ")

_NUMBER = lazy_pattern(r"(\d{1,9})\b")
_SIZE = lazy_pattern(r"\[size=(\d{1,6})([KMGTPE]?)\]")
_SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_SECONDARY = lazy_pattern(r"secondary=([0-9a-f]{2})\b")
_POWER_STATE = lazy_pattern(r"(D[0-3])\b")
_EXPRESS = lazy_pattern(r"Express\s+(?:\(v\d\)\s+)?(.*)")
_SERIAL = lazy_pattern(r"Device Serial Number\s+((?:[0-9a-f]{2}-){7}[0-9a-f]{2})")
_SPEED = lazy_pattern(r"Speed:?\s+(?:(\d{1,3}(?:\.\d)?)\s?GT/s|unknown)")
_WIDTH = lazy_pattern(r"Width\s+x(\d{1,2})\b")
_DOWNGRADED = lazy_pattern(r"(Speed|Width) \S{1,12} \(downgraded\)")
_MAX_PAYLOAD = lazy_pattern(r"MaxPayload\s+(\d{1,4})\s+bytes")
_MAX_READ = lazy_pattern(r"MaxReadReq\s+(\d{1,4})\s+bytes")
_ASPM = lazy_pattern(r"ASPM\s+(?:(Disabled)|((?:L0s|L1)(?:\s+L1)?)\s+Enabled)")
_VIRTUAL = lazy_pattern(r"Total VFs:\s+(\d{1,5}),\s+Number of VFs:\s+(\d{1,5})")
_VIRTUAL_AT = lazy_pattern(r"(\d{1,5}),\s+stride:\s+(\d{1,5})")
_FLAG = lazy_pattern(r"\b([A-Za-z0-9]+)([+-])")

_PORT_TYPES = (  # the beginning of what lspci calls a port; the longer one first
    ("Endpoint", "endpoint"),
    ("Legacy Endpoint", "legacy_endpoint"),
    ("Root Port", "root_port"),
    ("Upstream Port", "upstream"),
    ("Downstream Port", "downstream"),
    ("PCI-Express to PCI", "bridge"),
    ("PCI/PCI-X", "bridge"),
    ("Root Complex Integrated Endpoint", "rciep"),
    ("Root Complex Event Collector", "rcec"),
)
_ACS_FLAGS = {
    "SrcValid": "SV",
    "TransBlk": "TB",
    "ReqRedir": "RR",
    "CmpltRedir": "CR",
    "UpstreamFwd": "UF",
    "EgressCtrl": "EC",
    "DirectTrans": "DT",
}
_EMPTY_TARGET_GT_S = 2.5
_GONE_HEADER = "Unknown header type 7f"


_PASSED_ON = "| ...`"  # a filter took lines out of each function


class LspciListing:
    """What one output states: the functions, how many hid their capabilities from who ran it, and why there may be
    more of them."""

    __slots__ = ("cut", "denied", "drafts")

    def __init__(self, drafts: list[PciFunctionBuilder], denied: int, cut: str | None = None) -> None:
        self.drafts = drafts
        self.denied = denied
        self.cut = cut


def parse_lspci(text: str) -> LspciListing:
    """Every function of an lspci output. Raises ParseError where no line opens one.

    >>> listing = parse_lspci("19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)")
    >>> listing.drafts[0].address, listing.drafts[0].fields["class_code"], listing.drafts[0].fields["device"]
    ('0000:19:00.0', '0x030200', '0x2330')
    """
    drafts: dict[str, PciFunctionBuilder] = {}
    denied = 0
    heads: list[str] = []
    before: LspciBlock | None = None
    last: LspciBlock | None = None
    torn: str | None = None
    for block in blocks(text):
        before, last = last, block
        torn = torn or (None if block.bytes_whole else f"bytes of {block.address} are missing from it")
        heads.append(block.head)
        denied += "<access denied>" in block.fields.get("Capabilities", ())
        draft = _draft(block)
        if drafts.setdefault(draft.address, draft) is not draft:
            drafts[draft.address].add(draft)  # two listings in one file
    if last is None:
        raise ParseError("no line that begins with a PCI address and a device, as lspci prints")
    cut = find_cut(text, heads, last, before) or torn
    drafts[last.address].cut = cut is not None
    return LspciListing(list(drafts.values()), denied, cut)


def _draft(block: LspciBlock) -> PciFunctionBuilder:
    fields = _head_fields(block)
    fields |= {
        "numa_node": _number(block.first("NUMA node")),
        "iommu_group": _number(block.first("IOMMU group")),
        "slot": block.first("Physical Slot") or None,
        "driver": block.first("Kernel driver in use") or None,
        "gone": True if _GONE_HEADER in block.first("!!!") or _reads_all_ones(block.head) else None,
        "bars_bytes": _bars(block),
    }
    draft = PciFunctionBuilder(block.address, fields)
    secondary = _SECONDARY.search(block.first("Bus"))
    draft.secondary_bus = int(secondary.group(1), 16) if secondary else None
    _add_capabilities(draft, block)
    if block.data:
        draft.add_config(decode(bytes(block.data)))
    draft.fields = {name: value for name, value in draft.fields.items() if value is not None}
    return draft


def _reads_all_ones(head: str) -> bool:
    """Whether revision and programming interface, which lspci reads from the device itself, are 0xff."""
    interface, revision = _INTERFACE.search(head), _REVISION.search(head)
    return bool(revision) and {found.group(1) for found in (interface, revision) if found} == {"ff"}


def _head_fields(block: LspciBlock) -> dict[str, Any]:
    kind = _CLASS.match(block.head)
    if kind is None:
        return {}
    words, subclass = kind.groups()
    if _NUMBER_CLASS.fullmatch(words):
        subclass = words
    interface, revision = _INTERFACE.search(block.head), _REVISION.search(block.head)
    vendor, device, vendor_name, name = _device(_TAIL.split(block.head[kind.end() :], maxsplit=1)[0])
    subsystem_vendor, subsystem_device, _, _ = _device(block.first("Subsystem") or _bridge_subsystem(block))
    return {
        "class_code": class_code(words, subclass, interface.group(1) if interface else None),
        "revision": f"0x{revision.group(1)}" if revision else None,
        "vendor": vendor,
        "device": device,
        "vendor_name": vendor_name,
        "name": name,
        "subsystem_vendor": subsystem_vendor,
        "subsystem_device": subsystem_device,
    }


def _device(text: str) -> tuple[str | None, str | None, str | None, str | None]:
    """Vendor id, device id, vendor name, device name of "NVIDIA Corporation GA100 [A100 SXM4 40GB] [10de:20b0]"."""
    bare = _BARE_IDS.match(text)
    if bare is not None:
        return f"0x{bare.group(1)}", f"0x{bare.group(2)}", None, None
    pairs = _IDS.findall(text)
    vendor, vendor_name, name = vendor_of(_IDS.sub("", text).strip())
    numbered = _DEVICE.fullmatch(name)
    device = f"0x{numbered.group(1)}" if numbered else None
    if pairs:
        vendor, device = (f"0x{number}" for number in pairs[-1])
    return vendor, device, vendor_name, name if name and not _NAMELESS.fullmatch(name) else None


def _bridge_subsystem(block: LspciBlock) -> str:
    """Bridges have their subsystem in a capability of its own."""
    return next((text for capability in block.capabilities() if (text := _after(capability, "Subsystem: "))), "")


def _bars(block: LspciBlock) -> dict[str, int] | None:
    bars = {}
    for number in "012345":
        size = _SIZE.search(block.first(f"Region {number}"))
        if size is not None:
            bars[number] = int(size.group(1)) << _SIZE_UNITS[size.group(2)]
    return bars or None


def _add_capabilities(draft: PciFunctionBuilder, block: LspciBlock) -> None:
    fields, capabilities = draft.fields, block.capabilities()
    express = next((kind.group(1) for text in capabilities if (kind := _EXPRESS.match(text))), None)
    port = next((kind for words, kind in _PORT_TYPES if express and express.startswith(words)), None)
    serials = [serial.group(1) for text in capabilities if (serial := _SERIAL.match(text))]
    states = [state.group(1) for text in block.fields.get("Status", ()) if (state := _POWER_STATE.match(text))]
    fields["port_type"] = port
    fields["serial"] = serials[0] if serials else None
    fields["power_state"] = states[0].replace("D3", "D3hot") if states else None
    fields["ats"] = _flags(block.first("ATSCtl")).get("Enable")
    fields["acs"] = _acs(block)
    fields["acs_known"] = True if fields["acs"] or _whole(block, express is not None) else None
    errors = _flags(block.first("UESta"))
    fields["aer_status"] = tuple(name for name, is_set in errors.items() if is_set) if errors else None
    fields |= _link(block, port)
    _add_virtual_functions(draft, block)


def _whole(block: LspciBlock, express: bool) -> bool:
    """Whether a capability that was not printed is not there: nothing was denied, cut off, or left to read."""
    names = block.fields.get("Capabilities", [])
    if not block.closed or "<access denied>" in names or "Access Control Services" in block.capabilities():
        return False
    extended = any(len(text.partition("]")[0].partition(" ")[0]) == 4 for text in names)  # "[100 v1] ..."
    return extended if express else bool(names) or "Control" in block.fields


def _link(block: LspciBlock, port: str | None) -> dict[str, Any]:
    capability, status, control = block.first("LnkCap"), block.first("LnkSta"), block.first("LnkCtl")
    device, control_flags, status_flags = block.first("DevCtl"), _flags(control), _flags(status)
    target = _target(block, _parse_speed(status)) if has_link_control_2(port, block.address) else None
    aspm = _ASPM.search(control)
    tags = _flags(f"{block.first('DevCtl2')} {block.first('AtomicOpsCtl')}")  # that line is wrapped after AtomicOpsCtl
    ten_bit = "10BitTagComp" if port in ("root_port", "upstream", "downstream") else "10BitTagReq"
    port_flags = status_flags if port in ("root_port", "downstream") else {}
    slot = port_flags and _flags(block.first("SltSta").partition("Changed:")[0])
    reports_active = _flags(capability).get("LLActRep")
    return {
        "current_link_speed_gt_s": _parse_speed(status),
        "current_link_width": _search_number(_WIDTH, status),
        "max_link_speed_gt_s": _parse_speed(capability),
        "max_link_width": _search_number(_WIDTH, capability),
        "link_downgraded": None if capability else _downgraded(status),
        "target_link_speed_gt_s": target,
        "link_disabled": control_flags.get("LnkDisable", control_flags.get("Disabled")),
        "slot_occupied": slot.get("PresDet"),
        "slot_powered": True if _flags(block.first("SltCap")).get("PwrCtrl") is False else None,  # "Control" is no name
        "link_active": port_flags.get("DLActive") if reports_active else None,
        "max_payload_bytes": _search_number(_MAX_PAYLOAD, device),
        "max_payload_supported_bytes": _search_number(_MAX_PAYLOAD, block.first("DevCap")),
        "max_read_request_bytes": _search_number(_MAX_READ, device),
        "relaxed_ordering": _flags(device).get("RlxdOrd"),
        "extended_tags": _flags(device).get("ExtTag"),
        "extended_tags_supported": _flags(block.first("DevCap")).get("ExtTag"),
        "ten_bit_tags": tags.get("10BitTagReq"),
        "ten_bit_tags_supported": _flags(block.first("DevCap2")).get(ten_bit),
        "aspm": ("off" if aspm.group(1) else " ".join(aspm.group(2).split())) if aspm else None,
        "bandwidth_management_status": port_flags.get("BWMgmt"),
        "autonomous_bandwidth_status": port_flags.get("ABWMgmt"),
    }


def _downgraded(status: str) -> tuple[str, ...] | None:
    """What lspci calls less than the device can do.

    >>> _downgraded("Speed 16GT/s (downgraded), Width x8 (downgraded)"), _downgraded("Speed 8GT/s (ok), Width x16 (ok)")
    (('speed', 'width'), None)
    """
    return tuple(name.lower() for name in _DOWNGRADED.findall(status)) or None


def _target(block: LspciBlock, current: float | None) -> float | None:
    """LnkCtl2. An empty register is printed as 2.5 GT/s: on a link that runs faster it reports nothing."""
    target = _parse_speed(block.first("LnkCtl2"))
    return None if target == _EMPTY_TARGET_GT_S and current and current > target else target


def _acs(block: LspciBlock) -> Acs | None:
    capability, control = _flags(block.first("ACSCap")), _flags(block.first("ACSCtl"))
    capability = capability or {
        name: is_on for name, is_on in control.items() if is_on
    }  # a filter left this line alone
    if not capability or not control:
        return None
    return Acs(
        *(frozenset(short for name, short in _ACS_FLAGS.items() if flags.get(name)) for flags in (capability, control))
    )


def _add_virtual_functions(draft: PciFunctionBuilder, block: LspciBlock) -> None:
    numbers, at = _VIRTUAL.search(block.first("Initial VFs")), _VIRTUAL_AT.match(block.first("VF offset"))
    enabled = _flags(block.first("IOVCtl")).get("Enable")
    if numbers is None or enabled is None:
        return
    total, number = int(numbers.group(1)), int(numbers.group(2)) if enabled else 0
    draft.fields |= {"virtual_functions": number, "virtual_functions_supported": total}
    if at is not None:
        draft.virtual_functions = VirtualFunctions(total, number, int(at.group(1)), int(at.group(2)))


def _flags(text: str) -> dict[str, bool]:
    """Name -> set, of a register's flags.

    >>> _flags("SrcValid+ TransBlk-, ReqRedir+")
    {'SrcValid': True, 'TransBlk': False, 'ReqRedir': True}
    """
    return {name: sign == "+" for name, sign in _FLAG.findall(text)}


def _parse_speed(text: str) -> float | None:
    match = _SPEED.search(text)
    return float(match.group(1)) if match and match.group(1) else None


def _search_number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(match.group(1)) if match else None


def _number(text: str) -> int | None:
    match = _NUMBER.match(text)
    return int(match.group(1)) if match else None


def _after(text: str, start: str) -> str | None:
    return text[len(start) :] if text.startswith(start) else None


TEXT = ("lspci", "-D", "-nn", "-vvv")
HEX = ("lspci", "-D", "-nn", "-xxxx")


def read(host: Host) -> Reading:
    """The functions of the outputs that the source holds; a live host is read once. Raises Absent, Failed."""
    commands = [argv for argv in (TEXT, HEX) if host.has_output(*argv)] or [TEXT]
    listings = [_listing(host, argv) for argv in commands]
    return Reading(
        PciFacts(build_functions(_merge(listings))),
        sources=tuple(" ".join(argv) for argv in commands),
        missing=_missing(listings),
    )


def _listing(host: Host, argv: tuple[str, ...]) -> LspciListing:
    done = host.run(*argv)
    try:
        listing = parse_lspci(done.stdout)
        if done.stderr.startswith(FILTERED):
            listing.cut = listing.cut or done.stderr.removeprefix(FILTERED)
            for draft in listing.drafts if listing.cut.endswith(_PASSED_ON) else listing.drafts[-1:]:
                draft.cut = True
        return listing
    except ParseError as why:
        first = done.stderr.strip().partition("\n")[0]
        raise Failed(f"{' '.join(argv)}: {first or why} (exit {done.returncode})") from None


def _merge(listings: list[LspciListing]) -> list[PciFunctionBuilder]:
    """One draft a function: the first output's, completed by the next."""
    by_address: dict[str, PciFunctionBuilder] = {}
    for draft in (draft for listing in listings for draft in listing.drafts):
        if by_address.setdefault(draft.address, draft) is not draft:
            by_address[draft.address].add(draft)
    return list(by_address.values())


def _missing(listings: list[LspciListing]) -> str | None:
    cut = [f"the list of lspci may be cut: {listing.cut}" for listing in listings if listing.cut]
    notes = cut[:1] if len(cut) == len(listings) else []
    is_cut = bool(notes)
    denied = min(listing.denied for listing in listings)
    if denied:
        notes.append(
            f"lspci hid capabilities: it needs CAP_SYS_ADMIN ({denied} of {len(listings[0].drafts)} functions)"
        )
    return Gap("list-cut" if is_cut else "needs-root", "; ".join(notes)) if notes else None
