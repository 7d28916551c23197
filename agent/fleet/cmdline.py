"""Words of the kernel's command line that are each node's own: no two nodes have them alike, and that says nothing."""

from __future__ import annotations

import re

# Told better elsewhere: the kernel by its version; disks and addresses by nobody
_DISKS = ("root", "rootflags", "rootfstype", "resume", "rd.lvm.lv", "rd.luks.uuid", "rd.md.uuid", "ostree")
_NAMES = ("ip", "BOOTIF", "ifname", "nameserver", "hostname", "systemd.hostname", "systemd.machine_id")
OWN = frozenset(("BOOT_IMAGE", "initrd", *_DISKS, *_NAMES))
PATTERN = f"(^| )({'|'.join(re.escape(each) for each in sorted(OWN))})=[^ ]*"  # for engines, too: RE2, POSIX, Java
_OWN = re.compile(PATTERN)


def common(cmdline: str) -> str:
    """What is left, with a blank for each word that is taken out.

    >>> common("BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt")
    '   ro iommu=pt'
    """
    return _OWN.sub(" ", cmdline)
