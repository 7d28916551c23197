"""Processors: /proc/cpuinfo and /sys/devices/system/cpu; masks and lists of them as sysfs, NCCL and hwloc write them.

Kernel pages: Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-system-cpu; Arm
implementer and part numbers: arch/arm64/include/asm/cputype.h.
"""

from collections.abc import Iterable, Mapping

from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, require

_GROUPS_LIMIT = 2048  # 65,536 processors; the kernel's own limit is 8192
_GROUP = lazy_pattern(r"(?:0x)?([0-9a-fA-F]{0,8})")


def members(mask: str) -> tuple[int, ...]:
    """The bits that are set, ascending. hwloc leaves groups of zeros empty. Raises ParseError.

    >>> members("00000000,0000000f"), members("0x00000001,,0x0"), members("0x0")
    ((0, 1, 2, 3), (64,), ())
    """
    groups = mask.strip().split(",")
    require(len(groups) <= _GROUPS_LIMIT, f"a mask of more than {32 * _GROUPS_LIMIT} bits")
    value = 0
    for group in groups:
        match = require(_GROUP.fullmatch(group.strip()), f"not a mask: {mask[:80]!r}")
        value = value << 32 | int(match[1] or "0", 16)
    return tuple(place for place, bit in enumerate(reversed(f"{value:b}")) if bit == "1")


def cpulist(numbers: Iterable[int]) -> str:
    """Numbers, ascending, as the kernel's list of ranges.

    >>> cpulist([0, 1, 2, 8, 10, 11]), cpulist([])
    ('0-2,8,10-11', '')
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


CPUINFO = "/proc/cpuinfo"
CPUINFO_LIMIT_BYTES = 16 << 20  # 1.5 KB a processor on x86
FOLDER = "/sys/devices/system/cpu"
MOST_CPUS = 1 << 16  # the kernel's own limit is 8192: a longer list is no list of processors

ARM_IMPLEMENTERS = {
    0x41: "ARM",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0x70: "Phytium",
    0xC0: "Ampere",
}
ARM_PARTS = {
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x48, 0xD01): "TaiShan-v110",
    (0x4E, 0x010): "Olympus",
}


class CpuPackage(NamedTuple):
    """The processors, as /proc/cpuinfo names them."""

    vendor: str | None = None  # "GenuineIntel", "AuthenticAMD", "ARM"
    family: int | None = None  # x86 only
    model: int | None = None  # x86 model; Arm part number of the first processor
    name: str | None = None
    sockets: int | None = None
    online: str | None = None  # cpulist
    threads_per_core: int | None = None  # null: not reported, or not all cores are alike


def read(host: Host) -> Reading:
    """The processors of a host. Raises Absent where it names none."""
    reader = HostReader(host)
    text = reader.text(CPUINFO, CPUINFO_LIMIT_BYTES)
    online = reader.text(f"{FOLDER}/online")
    if text is None and online is None:
        raise Absent(f"neither {CPUINFO} nor {FOLDER}/online is here: {reader.missing or 'not in this source'}")
    cpu = reader.parsed(text, parse_cpuinfo) or CpuPackage()
    if text is None:
        reader.gap(f"vendor, model and name: no {CPUINFO}")
    if cpu.sockets is None and online:
        cpu = cpu._replace(sockets=_packages(reader, online))
    if cpu.threads_per_core is None and online and "siblings" not in (text or ""):
        cpu = cpu._replace(threads_per_core=_threads(reader, online))
    if cpu.sockets is None:
        reader.gap("sockets: neither physical ids nor packages are named")
    return Reading(cpu._replace(online=online), reader.sources, reader.missing)


def parse_cpuinfo(text: str) -> CpuPackage:
    r"""The first processor of /proc/cpuinfo, and the number of distinct sockets. Raises ParseError.

    >>> parse_cpuinfo("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
    ...               "model name\t: AMD EPYC 9374F 32-Core Processor\nphysical id\t: 0\n")[:5]
    ('AuthenticAMD', 25, 17, 'AMD EPYC 9374F 32-Core Processor', 1)
    >>> parse_cpuinfo("vendor_id : GenuineIntel\nsiblings : 112\ncpu cores : 56\n").threads_per_core
    2
    >>> parse_cpuinfo("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n").name
    'Neoverse-V2'
    """
    values = require(cpuinfo_values(text), f"{CPUINFO}: no line of the form 'key : value'")
    first = {key: next(iter(seen)) for key, seen in values.items()}
    sockets = len(values["physical id"]) if "physical id" in values else None
    if "CPU implementer" in values:
        return _arm(values)._replace(sockets=sockets)
    if "vendor_id" in values:
        return CpuPackage(
            vendor=first["vendor_id"] or None,
            family=_number(first.get("cpu family")),
            model=_number(first.get("model")),
            name=first.get("model name") or None,
            sockets=sockets,
            threads_per_core=_siblings(values),
        )
    if "cpu" in values:  # POWER: "POWER9, altivec supported"
        name = first["cpu"].split(",")[0].strip() or None
        return CpuPackage(vendor="IBM" if name and name.startswith("POWER") else None, name=name, sockets=sockets)
    return CpuPackage(name=first.get("model name") or None, sockets=sockets)


def cpuinfo_values(text: str) -> dict[str, dict[str, None]]:
    r"""Every key with its distinct values, in the order in which they appear.

    >>> list(cpuinfo_values("processor : 0\nphysical id : 0\n\nprocessor : 1\nphysical id : 0\n")["physical id"])
    ['0']
    """
    values: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and (key := key.strip()):
            values.setdefault(key, {})[value.strip()] = None
    return values


def parse_cpulist(text: str) -> tuple[int, ...]:
    """The processors of a cpulist, ascending. Raises ParseError.

    >>> parse_cpulist("0-2,8"), parse_cpulist("")
    ((0, 1, 2, 8), ())
    """
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        low, high = _number(first), _number(last if dash else first)
        if low is None or high is None or not low <= high < MOST_CPUS:
            raise ParseError(f"not a cpulist: {text[:80]!r}")
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def _siblings(values: Mapping[str, Mapping[str, None]]) -> int | None:
    """Threads of a core: of each package, x86 states how many threads and how many cores are online."""
    threads, cores = ([_number(text) for text in values.get(key, ())] for key in ("siblings", "cpu cores"))
    if len(threads) != 1 or len(cores) != 1 or not threads[0] or not cores[0] or threads[0] % cores[0]:
        return None
    return threads[0] // cores[0]


def _threads(reader: HostReader, online: str) -> int | None:
    """Threads of the first online processor's core."""
    try:
        first = parse_cpulist(online)[0]
        files = reader.attributes(
            f"{FOLDER}/cpu{first}/topology",
            ("core_cpus_list", "thread_siblings_list"),
            source=f"{FOLDER}/cpu*/topology",
        )
        return len(parse_cpulist(files.get("core_cpus_list") or files.get("thread_siblings_list", ""))) or None
    except (ParseError, IndexError):
        return None  # sockets state it, too


def _arm(values: Mapping[str, Mapping[str, None]]) -> CpuPackage:
    implementer = _number(next(iter(values["CPU implementer"])))
    parts = [number for part in values.get("CPU part", ()) if (number := _number(part)) is not None]
    names = [ARM_PARTS[implementer, part] for part in parts if implementer and (implementer, part) in ARM_PARTS]
    return CpuPackage(
        vendor=ARM_IMPLEMENTERS.get(implementer, f"{implementer:#04x}") if implementer is not None else None,
        model=parts[0] if parts else None,
        name=" + ".join(names) or next(iter(values.get("model name", ())), None),
    )


def _packages(reader: HostReader, online: str) -> int | None:
    """Distinct packages, asking one processor of each package: there may be hundreds of processors."""
    try:
        left = set(parse_cpulist(online))
        packages: set[int] = set()
        while left:
            cpu = min(left)
            files = reader.attributes(
                f"{FOLDER}/cpu{cpu}/topology",
                ("physical_package_id", "package_cpus_list", "core_siblings_list"),
                source=f"{FOLDER}/cpu*/topology",
            )
            package = _number(files.get("physical_package_id"))
            if package is None:  # "-1": the firmware does not show it
                return None
            packages.add(package)
            left -= {cpu, *parse_cpulist(files.get("package_cpus_list") or files.get("core_siblings_list", ""))}
    except ParseError as why:
        reader.gap(str(why))
        return None
    return len(packages) or None


def _number(text: str | None) -> int | None:
    """Decimal or 0x…; None where it is no such number."""
    if text is None or len(text) > 20 or not text.isascii():
        return None
    digits = text.strip()
    if digits.isdecimal():
        return int(digits)
    try:
        return int(digits, 16) if digits.startswith("0x") else None
    except ValueError:
        return None
