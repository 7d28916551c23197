"""Values that are shared, or differ on every node, without being a fault.

Placeholders, addresses that stay within a host, and words of the kernel's command line that are each node's own.
"""

from __future__ import annotations

import re

_PLACEHOLDERS = frozenset(
    (
        "0",
        "none",
        "n/a",
        "na",
        "null",
        "nil",
        "unknown",
        "empty",
        "default",
        "default string",
        "not specified",
        "not available",
        "not applicable",
        "not present",
        "to be filled by o.e.m.",
        "to be filled by o.e.m",
        "system serial number",
        "serial number",
        "chassis serial number",
        "oem",
        "o.e.m.",
        "invalid",
        "undefined",
        "123456789",
        "0123456789",
        "1234567890",
        "012345678",
        "uninitialized",  # what systemd writes into an image's machine-id
    )
)
_ONE_LETTER = frozenset("0123456789abcdefghijklmnopqrstuvwxyz. ")
NOWHERE_ELSE = ("127.", "169.254.", "fe8", "fe9", "fea", "feb", "0.", "::1/")  # how such addresses begin
_WITHIN_HOST = ("docker", "virbr", "lxcbr", "lxdbr", "cni", "flannel", "cali", "veth", "tunl", "kube-", "tmfifo_net")
_BRIDGES = frozenset(("172.17.0.1", "192.168.122.1", "10.0.3.1", "192.168.100.1", "192.168.100.2"))
_VIRTUAL_DRIVERS = frozenset(("bridge", "veth", "tun", "tap", "dummy", "bonding", "team", "8021q", "macvlan", "vxlan"))


def placeholder(value: str) -> bool:
    """Whether a serial number, id or GUID is what a maker writes instead of one.

    >>> placeholder("Default string"), placeholder("0000:0000:0000:0000"), placeholder("1460009")
    (True, True, False)
    """
    text = value.strip().lower()
    plain = text.replace(":", "").replace("-", "")
    if text in _PLACEHOLDERS or len(plain) < 4:
        return True
    return plain[0] in _ONE_LETTER and plain.count(plain[0]) == len(plain)


def within_host(address: str, label: str | None) -> bool:
    """Whether an address is no address of the node in its network.

    >>> within_host("172.17.0.1/16", "docker0"), within_host("fe80::1/64", "eth0"), within_host("10.1.2.3/24", "eth0")
    (True, True, False)
    """
    plain = address.partition("/")[0].partition("%")[0].lower()
    if plain.startswith(NOWHERE_ELSE) or plain in ("::1", "::"):
        return True
    return plain in _BRIDGES or (label or "") == "lo" or (label or "").startswith(_WITHIN_HOST)


def own_mac(mac: str, driver: str | None, label: str | None) -> bool:
    """Whether a MAC address is made up within the host, or no station's at all.

    >>> own_mac("02:42:ac:11:00:02", None, "docker0"), own_mac("b8:3f:d2:33:9c:bf", "mlx5_core", "ens1")
    (True, False)
    """
    text = mac.lower()
    if driver is None or driver in _VIRTUAL_DRIVERS or (label or "").startswith(_WITHIN_HOST):
        return True
    return text.startswith("02:42:") or text == "ee:ee:ee:ee:ee:ee" or placeholder(text)


# Reported better elsewhere: the kernel by its version; disks and addresses nowhere
_DISKS = ("root", "rootflags", "rootfstype", "resume", "rd.lvm.lv", "rd.luks.uuid", "rd.md.uuid", "ostree")
_NAMES = ("ip", "BOOTIF", "ifname", "nameserver", "hostname", "systemd.hostname", "systemd.machine_id")
OWN = frozenset(("BOOT_IMAGE", "initrd", *_DISKS, *_NAMES))
PATTERN = f"(^| )({'|'.join(re.escape(name) for name in sorted(OWN))})=[^ ]*"  # for engines, too: RE2, POSIX, Java
_OWN = re.compile(PATTERN)


def common(cmdline: str) -> str:
    """What is left, with a blank for each word that is taken out.

    >>> common("BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt")
    '   ro iommu=pt'
    """
    return _OWN.sub(" ", cmdline)
