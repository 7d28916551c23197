"""The running system: names and ids, kernel and command line, virtualization, container, boot, memory.

Kernel pages: Documentation/admin-guide/sysctl/kernel.rst, Documentation/filesystems/proc.rst; os-release(5),
machine-id(5).

Whether a system is a virtual machine, from what it states of itself in files: named as systemd-detect-virt does.

Sources: the `hypervisor` flag of /proc/cpuinfo (x86 only: CPUID leaf 1, ECX bit 31), DMI strings, the clock
sources that only a guest has, /sys/hypervisor (Xen), the device tree and the platform line on POWER.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.kernel.containers import find_container, find_job_limit
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.system.cpu import CPUINFO, CPUINFO_LIMIT_BYTES
from probes.system.numa import parse_memory_mib
from probes.text import lazy_pattern, require

# Firmware that only a virtual machine has: the beginning of a DMI string, and the name.
GUEST_FIRMWARE = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("CloudStack KVM", "kvm"),
    ("oVirt", "kvm"),
    ("RHEV", "kvm"),
    ("AHV", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("HVM domU", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
)
# Clouds that rent whole machines under the same name: the name alone is no evidence.
CLOUDS = (("Amazon EC2", "amazon"), ("Google", "google"))
DMI_FIELDS = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version")
GUEST_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"))
DEVICE_TREE_NAMES = (("linux,kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware"))


class VirtualizationSigns(NamedTuple):
    """What a system states that separates a virtual machine from a real one. None: not there, or not readable."""

    cpuinfo: str | None = None
    dmi: Mapping[str, str] = MappingProxyType({})  # DMI_FIELDS
    clocks: str | None = None  # available_clocksource
    hypervisor: str | None = None  # /sys/hypervisor/type
    xen_capabilities: str | None = None  # /proc/xen/capabilities: "control_d" in the privileged domain
    device_tree: str | None = None  # /proc/device-tree/hypervisor/compatible


def detect_virtualization(signs: VirtualizationSigns) -> tuple[str | None, bool]:
    r"""The hypervisor's name or None, and whether that is known.

    >>> amazon = {"sys_vendor": "Amazon EC2", "product_name": "p5.metal"}
    >>> detect_virtualization(VirtualizationSigns("flags\t\t: fpu vme\n", amazon))
    (None, True)
    >>> detect_virtualization(VirtualizationSigns("flags\t\t: fpu hypervisor\n", {"sys_vendor": "Amazon EC2"}))
    ('amazon', True)
    >>> detect_virtualization(VirtualizationSigns())
    (None, False)
    """
    if signs.hypervisor == "xen":
        return (None, True) if "control_d" in (signs.xen_capabilities or "") else ("xen", True)
    guest, cloud = _firmware(signs.dmi, GUEST_FIRMWARE), _firmware(signs.dmi, CLOUDS)
    if signs.dmi.get("sys_vendor") == "Microsoft Corporation" and signs.dmi.get("product_name") == "Virtual Machine":
        guest = "microsoft"
    flag = _x86_flag(signs.cpuinfo or "")
    if flag:
        clock = next((name for word, name in GUEST_CLOCKS if word in (signs.clocks or "")), None)
        if guest == "qemu":  # QEMU's firmware, KVM's speed
            return clock or guest, True
        return guest or cloud or clock or "vm-other", True
    if guest:
        return guest, True
    if flag is not None:  # x86 without the flag: bare metal, in a cloud too
        return None, True
    return _without_flag(signs, cloud)


def _without_flag(signs: VirtualizationSigns, cloud: str | None) -> tuple[str | None, bool]:
    """Arm and POWER, where no processor flag shows it."""
    for word, name in DEVICE_TREE_NAMES:
        if word in (signs.device_tree or ""):
            return name, True
    platform = _value(signs.cpuinfo or "", "platform")
    if platform == "PowerNV":
        return None, True
    if platform == "pSeries":
        return ("qemu" if "emulated by qemu" in (_value(signs.cpuinfo or "", "machine") or "") else "powervm"), True
    if cloud == "amazon":
        return (None if ".metal" in signs.dmi.get("product_name", "") else "amazon"), True
    vendor = signs.dmi.get("sys_vendor", "")
    if cloud or "cloud" in vendor.casefold():  # rents machines of both kinds
        return None, False
    return None, bool(vendor) and _value(signs.cpuinfo or "", "CPU implementer") is not None


def _firmware(dmi: Mapping[str, str], table: tuple[tuple[str, str], ...]) -> str | None:
    values = [dmi[name] for name in DMI_FIELDS if name in dmi]
    return next((name for start, name in table for text in values if text.startswith(start)), None)


def _x86_flag(cpuinfo: str) -> bool | None:
    """Whether x86 shows the hypervisor flag; None: no x86 processor."""
    flags = _value(cpuinfo, "flags")
    return None if flags is None else "hypervisor" in flags.split()


def _value(cpuinfo: str, key: str) -> str | None:
    match = re.search(rf"^{key}[ \t]*:[ \t]*(.*)$", cpuinfo, re.MULTILINE) if key in cpuinfo else None
    return match[1].strip() if match else None


DMI_FOLDERS = ("/sys/class/dmi/id", "/sys/devices/virtual/dmi/id")
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
GATHERED = "/proc/hwloc-nofile-info"  # hwloc-gather-topology writes down here what no file states
CMDLINE_LIMIT_BYTES = 16 << 10
_VERSION = lazy_pattern(r"Linux version (\S{1,128})")
_PRETTY_NAME = lazy_pattern(r"^PRETTY_NAME=(.*)$", re.MULTILINE)
_X86_64 = lazy_pattern(r"^flags[ \t]*:.* lm(?: |$)", re.MULTILINE)
_ARM_64 = lazy_pattern(r"^CPU architecture[ \t]*: *8$", re.MULTILINE)
MACHINE_SUFFIXES = ("x86_64", "aarch64", "ppc64le")  # how Red Hat ends a kernel's release


class KernelFacts(NamedTuple):
    """One running system. None: the source does not show it."""

    hostname: str | None = None  # /proc/sys/kernel/hostname, /etc/hostname
    machine_id: str | None = None  # /etc/machine-id
    boot_id: str | None = None  # /proc/sys/kernel/random/boot_id
    kernel: str | None = None  # /proc/sys/kernel/osrelease, /proc/version
    os: str | None = None  # PRETTY_NAME of /etc/os-release
    arch: str | None = None  # "x86_64", "aarch64"
    cmdline: str | None = None  # /proc/cmdline
    virtualization: str | None = None  # kvm, vmware, xen, amazon, ...; None: bare metal, or not known
    virtualization_known: bool = False
    container: str | None = None  # docker, podman, lxc, systemd-nspawn, kubernetes, ...
    job_limit: str | None = (
        None  # what keeps devices of the host from this process: "Slurm job 4711"; None: nothing known
    )
    uptime_seconds: float | None = None  # /proc/uptime
    memory_mib: int | None = None  # MemTotal of /proc/meminfo


def read(host: Host) -> Reading:
    """Everything of the running system that the source states. Raises Absent where it reports nothing."""
    reader = HostReader(host)
    gathered = parse_gathered(reader.text(GATHERED) or "") if not host.live else {}
    cpuinfo = reader.text(CPUINFO, CPUINFO_LIMIT_BYTES)
    version = reader.text("/proc/sys/kernel/osrelease") or parse_version(reader.text("/proc/version") or "")
    if not host.live and host.has_output("uname", "-a"):
        gathered |= parse_uname(reader.output("uname", "-a") or "")
    kernel = version or gathered.get("OSRelease")
    kind, known = detect_virtualization(_signs(reader, cpuinfo))
    meminfo = reader.text("/proc/meminfo")
    facts = KernelFacts(
        hostname=_hostname(reader) or gathered.get("HostName"),
        machine_id=reader.text("/etc/machine-id") or None,
        boot_id=reader.text("/proc/sys/kernel/random/boot_id") or None,
        kernel=kernel,
        os=parse_os_release(reader.first("/etc/os-release", "/usr/lib/os-release") or ""),
        arch=reader.text("/proc/sys/kernel/arch") or gathered.get("Architecture") or arch_of(cpuinfo or "", kernel),
        cmdline=reader.text("/proc/cmdline", CMDLINE_LIMIT_BYTES),
        virtualization=kind,
        virtualization_known=known,
        container=find_container(reader),
        job_limit=find_job_limit(reader),
        uptime_seconds=reader.parsed(reader.text("/proc/uptime") or None, parse_uptime_seconds),
        memory_mib=reader.parsed(meminfo or None, parse_memory_mib, "/proc/meminfo: "),
    )
    if not reader.sources:
        raise Absent(reader.missing or "no file of /proc or /etc that names the running system")
    unsaid = [name for name in ("hostname", "machine_id", "boot_id", "kernel", "arch") if getattr(facts, name) is None]
    if unsaid:
        reader.gap(f"not in this source: {', '.join(unsaid)}")
    return Reading(facts, reader.sources, reader.missing)


def parse_version(text: str) -> str | None:
    """The release in /proc/version.

    >>> parse_version("Linux version 6.8.0-49-generic (buildd@lcy02) (gcc 13.2.0) #49-Ubuntu SMP")
    '6.8.0-49-generic'
    """
    match = _VERSION.match(text) if text else None
    return match[1] if match else None


def parse_os_release(text: str) -> str | None:
    r"""PRETTY_NAME.

    >>> parse_os_release('NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n')
    'Ubuntu 22.04.5 LTS'
    """
    match = _PRETTY_NAME.search(text) if text else None
    if not match:
        return None
    value = match[1].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return re.sub(r"\\(.)", r"\1", value) or None


def parse_gathered(text: str) -> dict[str, str]:
    r"""What hwloc-gather-topology noted beside the files.

    >>> parse_gathered("OSRelease: 5.3.0-rc7\nHostName: leonide\nArchitecture: x86_64\n")["HostName"]
    'leonide'
    """
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if value.strip()}


def parse_uname(text: str) -> dict[str, str]:
    """`uname -a`, in the words of `parse_gathered`.

    >>> parse_uname("Linux dgx-07 5.15.0-1040-nvidia #40-Ubuntu SMP Fri Oct 6 2023 x86_64 x86_64 x86_64 GNU/Linux")
    {'HostName': 'dgx-07', 'OSRelease': '5.15.0-1040-nvidia', 'Architecture': 'x86_64'}
    """
    words = text[:1024].split()
    if words[:1] != ["Linux"] or len(words) < 4:
        return {}
    values = {"HostName": words[1], "OSRelease": words[2]}
    arch = next((word for word in reversed(words) if word in MACHINE_SUFFIXES), None)
    return values | {"Architecture": arch} if arch else values


def parse_uptime_seconds(text: str) -> float:
    """The first number of /proc/uptime. Raises ParseError.

    >>> parse_uptime_seconds("350735.47 234388.90")
    350735.47
    """
    match = require(re.match(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", text), f"/proc/uptime: {text[:80]!r}")
    return float(match[0])


def arch_of(cpuinfo: str, kernel: str | None) -> str | None:
    r"""The machine's architecture where no file names it: by the kernel's release, else by the processors' own lines.

    >>> arch_of("flags\t\t: fpu lm constant_tsc\n", None), arch_of("CPU architecture: 8\n", None)
    ('x86_64', 'aarch64')
    """
    named = next((arch for arch in MACHINE_SUFFIXES if (kernel or "").endswith(f".{arch}")), None)
    if named or not cpuinfo:
        return named
    if _X86_64.search(cpuinfo):
        return "x86_64"
    return "aarch64" if _ARM_64.search(cpuinfo) else None


def _hostname(reader: HostReader) -> str | None:
    """The kernel's answer is of our own UTS namespace: with --root, the host's file is nearer to the truth."""
    paths = ("/proc/sys/kernel/hostname", "/etc/hostname")
    rooted = reader.host.live and reader.host.path is not None
    return reader.first(*(reversed(paths) if rooted else paths))


def _signs(reader: HostReader, cpuinfo: str | None) -> VirtualizationSigns:
    dmi = next((values for folder in DMI_FOLDERS if (values := reader.attributes(folder, DMI_FIELDS))), {})
    hypervisor = reader.text("/sys/hypervisor/type")
    return VirtualizationSigns(
        cpuinfo=cpuinfo,
        dmi=dmi,
        clocks=reader.text(CLOCKS),
        hypervisor=hypervisor,
        xen_capabilities=reader.text("/proc/xen/capabilities") if hypervisor == "xen" else None,
        device_tree=reader.text("/proc/device-tree/hypervisor/compatible"),
    )
