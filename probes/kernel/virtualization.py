"""Whether a system is a virtual machine, from what it says of itself in files: named as systemd-detect-virt does.

Sources: the `hypervisor` flag of /proc/cpuinfo (x86 only: CPUID leaf 1, ECX bit 31), DMI strings, the clock
sources that only a guest has, /sys/hypervisor (Xen), the device tree and the platform line on POWER.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
# Clouds that rent whole machines under the same name: the name alone proves nothing.
CLOUDS = (("Amazon EC2", "amazon"), ("Google", "google"))
DMI_FIELDS = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version")
GUEST_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"))
DEVICE_TREE_NAMES = (("linux,kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware"))


@dataclass(frozen=True, slots=True)
class Signs:
    """What a system says that tells a virtual machine from a real one. None: not there, or not readable."""

    cpuinfo: str | None = None
    dmi: Mapping[str, str] = field(default_factory=dict)  # DMI_FIELDS
    clocks: str | None = None  # available_clocksource
    hypervisor: str | None = None  # /sys/hypervisor/type
    xen_capabilities: str | None = None  # /proc/xen/capabilities: "control_d" in the privileged domain
    device_tree: str | None = None  # /proc/device-tree/hypervisor/compatible


def virtualization(signs: Signs) -> tuple[str | None, bool]:
    r"""The hypervisor's name or None, and whether that is known.

    >>> virtualization(Signs("flags\t\t: fpu vme\n", {"sys_vendor": "Amazon EC2", "product_name": "p5.metal"}))
    (None, True)
    >>> virtualization(Signs("flags\t\t: fpu hypervisor\n", {"sys_vendor": "Amazon EC2"}))
    ('amazon', True)
    >>> virtualization(Signs())
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


def _without_flag(signs: Signs, cloud: str | None) -> tuple[str | None, bool]:
    """Arm and POWER, where no processor flag tells."""
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
    said = [dmi[name] for name in DMI_FIELDS if name in dmi]
    return next((name for start, name in table for text in said if text.startswith(start)), None)


def _x86_flag(cpuinfo: str) -> bool | None:
    """Whether x86 shows the hypervisor flag; None: no x86 processor."""
    flags = _value(cpuinfo, "flags")
    return None if flags is None else "hypervisor" in flags.split()


def _value(cpuinfo: str, key: str) -> str | None:
    found = re.search(rf"^{key}[ \t]*:[ \t]*(.*)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else None
