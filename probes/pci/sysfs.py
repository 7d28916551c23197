"""PCI functions of a host from sysfs: the tree, its links, and what the config space adds where it may be read.

Kernel: Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-pci-devices-aer_stats, sysfs-kernel-iommu_groups;
drivers/pci/pci-sysfs.c, probe.c. Every parser of an attribute returns None (or leaves out) what is not as the kernel
writes it, and raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from probes.host.folder import LiveFiles
from probes.host.interface import Absent, Host, ReadError, error_from_errno
from probes.host_reader import SLEEPING, FileFacts, list_saved, parse_files
from probes.pci.config_space import HEADER_BYTES, ConfigSpace, decode
from probes.pci.facts import (
    PciFacts,
    PciFunction,
    PciFunctionBuilder,
    build_functions,
    merge_config,
    reads_link_control_2,
)
from probes.pci.tree import Place, bus_of, place_in_path
from probes.probe import Gap, Reading
from probes.text import is_pci_address, lazy_pattern

_SPEED = r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*GT/s(?:\s+PCIe)?\s*"
_HEX = "0123456789abcdef"
_MOST_DIGITS = 12
_RANGE = lazy_pattern(r"\s*0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})\s*", re.IGNORECASE)
_NO_BAR = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
_DIFFERENT = 512  # functions of a host of which what was read is kept, for the others that have the same
_BARS = 6  # lines 0..5 of `resource`; then come the ROM, the VFs' BARs and bridge windows


@lru_cache(maxsize=64)
def link_speed(text: str) -> float | None:
    """GT/s of `current_link_speed`, `max_link_speed`, in the forms of all kernels; None for "Unknown" too.

    >>> link_speed("32.0 GT/s PCIe"), link_speed("8 GT/s"), link_speed("Unknown speed")
    (32.0, 8.0, None)
    """
    match = re.fullmatch(_SPEED, text)
    return float(match.group(1)) if match else None


@lru_cache(maxsize=512)
def decimal(text: str) -> int | None:
    """A number as `numa_node`, `current_link_width` or `sriov_numvfs` hold it.

    >>> decimal("-1"), decimal("16\\n"), decimal("")
    (-1, 16, None)
    """
    number = text.strip()
    digits = number.removeprefix("-")
    return int(number) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


@lru_cache(maxsize=512)
def identifier(text: str) -> str | None:
    """`class`, `vendor`, `device` and the like, in lower case.

    >>> identifier("0x030200"), identifier("0x10DE\\n"), identifier("10de")
    ('0x030200', '0x10de', None)
    """
    number = text.strip().lower()
    digits = number.removeprefix("0x")
    is_hexadecimal = 2 <= len(digits) <= 8 and not digits.strip(_HEX)  # a pattern takes as long to compile as 500 calls
    return number if is_hexadecimal and len(number) == len(digits) + 2 else None


def bars(text: str) -> dict[str, int] | None:
    """BAR number -> bytes, from `resource`; BARs that it does not have are left out, None where no line is read.

    >>> bars("0x0000000096000000 0x0000000096ffffff 0x0000000000140204\\n0x0 0x0 0x0")
    {'0': 16777216}
    """
    bars = {}
    read = False
    for number, line in enumerate(text.splitlines()[:_BARS]):
        if line == _NO_BAR:
            read = True
            continue
        match = _RANGE.fullmatch(line)
        if match is None:
            continue
        read = True
        start, end, flags = (int(part, 16) for part in match.groups())
        if flags and end > start:
            bars[str(number)] = end - start + 1
    return bars if read else None


def aer_counters(text: str) -> dict[str, int] | None:
    """Error name -> count since boot, from `aer_dev_correctable` and its kin; None where no line is read.

    >>> aer_counters("RxErr 3\\nReceiver Error 2\\nTOTAL_ERR_COR 3")
    {'RxErr': 3, 'Receiver Error': 2, 'TOTAL_ERR_COR': 3}
    """
    return dict(_parse_counts(text)) or None


@lru_cache(maxsize=256)
def _parse_counts(text: str) -> tuple[tuple[str, int], ...]:
    """Nearly all functions of a host state the same: nothing was counted."""
    counts = {}
    for line in text.splitlines():
        name, _, count = line.strip().rpartition(" ")
        number = decimal(count)
        if name and number is not None:
            counts[name.strip()] = number
    return tuple(counts.items())


DEVICES = "/sys/bus/pci/devices"
BUSES = "/sys/class/pci_bus"
SLOTS = "/sys/bus/pci/slots"
IOMMU_GROUPS = "/sys/kernel/iommu_groups"

_POWER = ("power/runtime_status", "power_state")
_IN_MEMORY: FileFacts = {  # kept by the kernel: safe on a device that sleeps
    "class": ("class_code", identifier),
    "vendor": ("vendor", identifier),
    "device": ("device", identifier),
    "subsystem_vendor": ("subsystem_vendor", identifier),
    "subsystem_device": ("subsystem_device", identifier),
    "revision": ("revision", identifier),
    "numa_node": ("numa_node", decimal),
    "local_cpulist": ("local_cpus", str),
    "resource": ("bars_bytes", bars),
    "sriov_totalvfs": ("virtual_functions_supported", decimal),
}
_AER = {f"aer_dev_{kind}": kind for kind in ("correctable", "nonfatal", "fatal")}  # kept by the kernel, too
# waits for a driver that is stuck in its probe: read from recordings only
_BEHIND_A_LOCK: FileFacts = {"sriov_numvfs": ("virtual_functions", decimal)}
_LINK: FileFacts = {  # these and "config" read registers, and wake the device
    "current_link_speed": ("current_link_speed_gt_s", link_speed),
    "current_link_width": ("current_link_width", decimal),
    "max_link_speed": ("max_link_speed_gt_s", link_speed),
    "max_link_width": ("max_link_width", decimal),
}
_OF_HEADER = ("vendor", "device", "subsystem_vendor", "subsystem_device", "revision")  # a quirk may set `class` alone
_IN_CONFIG = (*_OF_HEADER, *_LINK)
_NO_VENDOR = "0x0000"
_LINKS = {"driver": "driver", "physfn": "physical_function", "iommu_group": "iommu_group"}
_IN_KERNEL = (*_IN_MEMORY, *_AER)
Answer = bytes | ConfigSpace | ReadError
_decoded: dict[bytes, tuple[bytes, ConfigSpace, tuple[str, ...]]] = {}
_ALL_ONES_WIDTH = 63  # the width field of a link status that reads as all-ones
_MODEL = ("vendor", "device", "subsystem_vendor", "subsystem_device", "class_code")
_NAMED = ("0x03", "0x12", "0x02", "0x0680", "0x0604", "0x0108")  # GPUs, NICs, switches, NVMe: what people look for


def read_pci(host: Host) -> Reading:
    """Every function of /sys/bus/pci. Raises Absent where the source has no PCI bus."""
    drafts = [_draft(host, address, folders, place) for address, (folders, place) in _find_functions(host).items()]
    slots, types = _slots(host), _iommu_types(host, drafts)
    names: dict[tuple[Any, ...], dict[str, str | None]] = {}  # by what udev looks them up with: one question a model
    for draft in drafts:
        fields = draft.fields
        fields["slot"] = slots.get(draft.address.rsplit(".", 1)[0], slots.get(bus_of(draft.address)))
        fields["iommu_type"] = types.get(fields.get("iommu_group"))
        if str(fields.get("class_code")).startswith(_NAMED):
            model = tuple(fields.get(name) for name in _MODEL)
            if None in model or not names.get(model):
                names[model] = _names(host, draft.address)
            fields.update(names[model])
    facts = PciFacts(build_functions(drafts))
    sources = (f"{DEVICES}/*", f"{SLOTS}/*/address", f"{IOMMU_GROUPS}/*/type")
    if host.kind in ("dump", "text"):  # what a paste shows of some functions is no list of them
        return Reading(facts, sources, Gap("list-cut", "some attributes of some functions are shown"))
    return Reading(facts, sources, _missing(facts.functions))


def list_models(
    host: Host, most: int, vendors: Container[str | None]
) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Vendor, device and class of each function of some vendors, of a bus of more than `most` functions.

    Virtual functions are left out. Each is read when it is its turn.
    """
    folders = [f"{DEVICES}/{name}" for name in _names_in(host, DEVICES) if is_pci_address(name)]
    for folder in folders if len(folders) > most else ():
        with suppress(ReadError):
            (vendor,) = _identify(host, folder, "vendor")
            if vendor in vendors and _answer(host.readlink, f"{folder}/physfn") is None:
                device, kind = _identify(host, folder, "device", "class")
                yield vendor, device, kind


def _identify(host: Host, folder: str, *names: str) -> list[str | None]:
    texts = _texts(host.attributes(folder, names))
    return [identifier(texts.get(name, "")) for name in names]


def _find_functions(host: Host) -> dict[str, tuple[list[str], Place]]:
    """Address -> the folders that describe it, and its place in the tree.

    The kernel's entries are links that show the place. Trees made by other tools may hold plain folders, or keep
    some functions only below the bus they sit on.
    """
    folders = {name: [f"{DEVICES}/{name}"] for name in filter(is_pci_address, _names_in(host, DEVICES))}
    paths = {name: _answer(host.readlink, folder) for name, (folder,) in folders.items()}
    if not any(paths.values()):
        for bus in _names_in(host, BUSES):
            for name in filter(is_pci_address, _names_in(host, f"{BUSES}/{bus}/device")):
                folder = f"{BUSES}/{bus}/device/{name}"
                folders.setdefault(name, []).append(folder)
                paths[name] = _answer(host.resolve, folder)
    if not folders and host.listdir(DEVICES):  # an empty bus is a fact; the reason why there is none is raised
        raise Absent(f"{DEVICES}: holds no PCI address")
    return {name: (places, place_in_path(paths[name] or "", folders)) for name, places in folders.items()}


def _names_in(host: Host, path: str) -> list[str]:
    try:
        return host.listdir(path)
    except ReadError:
        return []


def _answer(ask: Callable[[str], str], path: str) -> str | None:
    try:
        return ask(path)
    except ReadError:
        return None


def _draft(host: Host, address: str, folders: list[str], place: Place) -> PciFunctionBuilder:
    draft = PciFunctionBuilder(address, place=place)
    try:
        _fill(host, draft, folders)
    except Absent:
        draft.fields["vanished"] = True  # it was listed a moment ago
    except ReadError:
        pass  # a folder that may not be entered shows nothing
    return draft


def _fill(host: Host, draft: PciFunctionBuilder, folders: list[str]) -> None:
    """Read one function: its files, its links, and config space for what the kernel does not show."""
    answers = _read_function(host, folders)
    config = answers.pop("config", None)
    files = tuple(answers.items())
    if isinstance(config, ConfigSpace):
        fields = dict(_merge(files, config, reads_link_control_2(config, draft.address)))
        draft.set_merged(fields, config)
    else:
        draft.fields = fields = dict(_parse_function(files))
        if not fields["asleep"]:
            fields["gone"] = fields.get("current_link_width") == _ALL_ONES_WIDTH
        fields["vanished"] |= isinstance(config, ReadError) and config.code == "ENODEV"
    _add_links(host, fields, folders)
    if "sriov_totalvfs" in answers and _are_counted(_parse_function(files)):
        links = {name for folder in folders for name in _names_in(host, folder) if name.startswith("virtfn")}
        fields["virtual_functions"] = len(links)


def _are_counted(fields: Mapping[str, Any]) -> bool:
    """Whether its virtual functions are counted by their links: no file states how many of those that it can have."""
    return fields.get("virtual_functions") is None and fields.get("virtual_functions_supported") is not None


def _read_function(host: Host, folders: list[str]) -> dict[str, Answer]:
    """What its files hold. How it is powered is asked first, and decides whether the device may be reached at all: a
    tree can be the /sys of a machine that runs, below another folder."""
    answers = _answers(host, folders, _POWER)
    in_memory = (*_IN_KERNEL, *(() if host.live else _BEHIND_A_LOCK))
    if _sleeps(answers):
        return answers | _answers(host, folders, in_memory)
    if isinstance(host, LiveFiles):  # every register of config space is a question to the device
        answers |= _answers(host, folders, (*in_memory, *_LINK))
        return answers | {"config": _read_config(host, folders[0])}
    answers |= _answers(host, folders, _names_beside_config(in_memory, host.kind))
    missing = _IN_CONFIG
    if isinstance(config := answers.get("config"), bytes):
        _, space, not_held = _decode_file(config)
        answers["config"] = space
        if answers.get("class") == f"{space.class_code}\n".encode():  # else one of both is not the device's
            missing = not_held
    missing = tuple(name for name in missing if name not in answers)
    return answers | _answers(host, folders, missing) if missing else answers


@cache
def _names_beside_config(in_memory: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The files that are read in any case. Of a capture those of the link are, too: it has the errors of each."""
    in_config = _IN_CONFIG if kind == "tree" else _OF_HEADER
    return (*(name for name in (*in_memory, *_LINK) if name not in in_config), "config")


def _list_not_held(space: ConfigSpace) -> tuple[str, ...]:
    """The files whose registers config space does not have: what it has needs no file of its own, which are half of
    all files."""
    if space.vendor in (None, _NO_VENDOR):
        return _IN_CONFIG
    link = space.pcie._asdict() if space.pcie else {}
    held = {name for name in _OF_HEADER if getattr(space, name) is not None}
    held |= {*_LINK} if None not in [link.get(field) for field, _ in _LINK.values()] else set()
    return tuple(name for name in _IN_CONFIG if name not in held)


def _sleeps(answers: Mapping[str, Answer]) -> bool:
    if answers.keys().isdisjoint(_POWER):
        return False
    texts = _texts({name: answers[name] for name in _POWER if name in answers})
    return texts.get("power/runtime_status") in SLEEPING or texts.get("power_state") == "D3cold"


@lru_cache(maxsize=_DIFFERENT)
def _parse_function(answers: tuple[tuple[str, Answer], ...]) -> Mapping[str, Any]:
    """What its files state, but for config space: those of most functions of a host hold what those of others do."""
    files = dict(answers)
    texts, asleep = _texts(files), _sleeps(files)
    fields: dict[str, Any] = {
        "runtime_status": texts.get("power/runtime_status"),
        "power_state": texts.get("power_state"),
        "asleep": asleep,
        "vanished": any(
            isinstance(answer, ReadError) and answer.code == "ENODEV" and name not in _POWER for name, answer in answers
        ),
    }
    fields |= parse_files(_IN_MEMORY, texts) | parse_files(_BEHIND_A_LOCK, texts)
    counters = {kind: aer_counters(texts.get(name, "")) for name, kind in _AER.items()}
    fields["aer"] = {kind: counts for kind, counts in counters.items() if counts is not None} or None
    if not asleep:
        fields |= parse_files(_LINK, texts)
        errors = [answer.code for name in _LINK if isinstance(answer := files.get(name), ReadError)]
        fields["link_error"] = next((code for code in errors if code and code != "ENODEV"), None)
    return fields


@lru_cache(maxsize=_DIFFERENT)
def _merge(files: tuple[tuple[str, Answer], ...], space: ConfigSpace, with_link_control_2: bool) -> Mapping[str, Any]:
    return merge_config(_parse_function(files), space, with_link_control_2)


def _answers(host: Host, folders: list[str], names: tuple[str, ...]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {**host.attributes(folders[0], names)}
    for folder in folders[1:]:
        answers |= host.attributes(folder, names)
    return answers


def _read_config(host: LiveFiles, folder: str) -> ConfigSpace | ReadError:
    """Config space, of which few registers are read. A recording reads all of it: see Host.attributes."""
    path = f"{folder}/config"
    try:
        registers = host.open_registers(path)
        try:
            return decode(registers)
        except OSError as error:
            return error_from_errno(error, path)
        finally:
            registers.close()
    except ReadError as why:
        return why


def _decode_file(config: bytes) -> tuple[bytes, ConfigSpace, tuple[str, ...]]:
    """Config space of a recording, decoded, and the files that it leaves to be read: most functions have what another
    one has, which its first bytes find."""
    head = config[:HEADER_BYTES]
    same = _decoded.get(head)
    if same is None or same[0] != config:
        if len(_decoded) >= _DIFFERENT:
            _decoded.clear()
        space = decode(config)
        same = _decoded[head] = config, space, _list_not_held(space)
    return same


def _texts(answers: Mapping[str, Answer]) -> dict[str, str]:
    """What the attributes hold."""
    return {
        name: answer.decode("utf-8", "replace").strip() for name, answer in answers.items() if isinstance(answer, bytes)
    }


def _add_links(host: Host, fields: dict[str, Any], folders: list[str]) -> None:
    """The names of what a function links to; of a recording, only links that its folder lists are asked for."""
    for folder in folders:
        there = _LINKS if host.live else list_saved(host, folder) or ()
        for name, field in _LINKS.items():
            if name in there:
                fields[field] = fields.get(field) or _link_name(host, f"{folder}/{name}")
    fields["iommu_group"] = decimal(fields.get("iommu_group") or "")


def _slots(host: Host) -> dict[str, str]:
    """What a slot holds ("0000:19:00", or a whole bus "0000:19") -> the slot's name."""
    slots: dict[str, str] = {}
    for name in _names_in(host, SLOTS):
        try:
            slots.setdefault(host.read(f"{SLOTS}/{name}/address").decode("ascii", "replace").strip(), name)
        except ReadError:
            continue
    return slots


def _iommu_types(host: Host, drafts: Iterable[PciFunctionBuilder]) -> dict[int | None, str]:
    """IOMMU group -> "DMA", "DMA-FQ", "identity"; kernels before 5.11 do not show it."""
    types: dict[int | None, str] = {}
    for group in sorted({group for draft in drafts if (group := draft.fields.get("iommu_group")) is not None}):
        try:
            types[group] = host.read(f"{IOMMU_GROUPS}/{group}/type").decode("ascii", "replace").strip()
        except ReadError:
            continue
    return types


def _names(host: Host, address: str) -> dict[str, str | None]:
    try:
        properties = host.udev(f"{DEVICES}/{address}")
    except ReadError:
        return {}
    return {
        "name": properties.get("ID_MODEL_FROM_DATABASE"),
        "vendor_name": properties.get("ID_VENDOR_FROM_DATABASE"),
    }


def _link_name(host: Host, path: str) -> str | None:
    text = _answer(host.readlink, path)
    return text and text.rstrip("/").rsplit("/", 1)[-1]


def _missing(functions: Iterable[PciFunction]) -> str | None:
    awake = [function for function in functions if not (function.asleep or function.gone or function.vanished)]
    unread = sum(not function.config_bytes for function in awake)
    short = sum(0 < (function.config_bytes or 0) <= HEADER_BYTES and not function.acs_known for function in awake)
    reasons = [
        f"config space past byte {HEADER_BYTES} needs CAP_SYS_ADMIN ({short} of {len(awake)} functions)"
        if short
        else "",
        f"no config space to read ({unread} of {len(awake)} functions)" if unread else "",
    ]
    text = "; ".join(filter(None, reasons))
    return Gap("needs-root", text) if short else text or None
