"""An ACPI table that puts every PCI bus behind QEMU's IOMMU, those of fabsim too; the kernel takes it from its initrd.

QEMU's own table names its own devices. Linux Documentation/admin-guide/acpi/initrd_table_override.rst; Intel
Virtualization Technology for Directed I/O, section 8.
"""

from __future__ import annotations

import struct

EVERY_DEVICE = 1  # INCLUDE_PCI_ALL
REGISTERS = 0xFED9_0000  # of QEMU's intel-iommu
ADDRESS_BITS = 39
NEWER = 2  # than QEMU's revision, or the kernel keeps that


def table() -> bytes:
    """The table, with its check sum."""
    unit = struct.pack("<HHBBHQ", 0, 16, EVERY_DEVICE, 0, 0, REGISTERS)
    body = struct.pack("<BB10x", ADDRESS_BITS - 1, 0) + unit
    header = struct.pack("<4sIBB6s8sI4sI", b"DMAR", 36 + len(body), 1, 0, b"BOCHS ", b"BXPC    ", NEWER, b"BXPC", 1)
    result = bytearray(header + body)
    result[9] = -sum(result) & 0xFF
    return bytes(result)


def archive() -> bytes:
    """What stands before an initrd: a cpio that is not compressed."""
    folders = ("kernel", "kernel/firmware", "kernel/firmware/acpi")
    entries = [_entry(name, b"", 0o40755, number) for number, name in enumerate(folders, 1)]
    entries += [_entry("kernel/firmware/acpi/DMAR.aml", table(), 0o100644, 9), _entry("TRAILER!!!", b"", 0, 0)]
    return _padded(b"".join(entries), 512)


def _entry(name: str, data: bytes, mode: int, inode: int) -> bytes:
    path = name.encode() + b"\0"
    numbers = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + path
    return _padded(head, 4) + _padded(data, 4)


def _padded(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)
