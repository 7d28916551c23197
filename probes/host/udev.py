"""udev's properties of a device: from pyudev on this host, from /run/udev/data on any other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from probes.host.interface import Absent, Failed

DATABASE = "/run/udev/data"


class Readable(Protocol):
    """A host, or its files."""

    def read(self, path: str, /) -> bytes:
        """See Host.read."""


def record_of(path: str) -> str:
    """The file of udev's database that belongs to a device path. Raises Absent for a path that names no device.

    >>> record_of("/sys/bus/pci/devices/0000:19:00.0")
    '/run/udev/data/+pci:0000:19:00.0'
    """
    parts = path.strip("/").split("/")
    if len(parts) == 5 and parts[:2] == ["sys", "bus"] and parts[3] == "devices":
        return f"{DATABASE}/+{parts[2]}:{parts[4]}"
    if len(parts) == 4 and parts[:2] == ["sys", "class"]:
        return f"{DATABASE}/+{parts[2]}:{parts[3]}"
    raise Absent(f"{path}: udev is asked by /sys/bus/BUS/devices/NAME or /sys/class/CLASS/NAME", "EINVAL")


def properties_in(files: Readable, path: str) -> dict[str, str]:
    """The properties that a source's udev database holds. Raises ReadError."""
    return properties(files.read(record_of(path)).decode("utf-8", "replace"))


def properties(text: str) -> dict[str, str]:
    r"""The E: lines of one record.

    >>> properties("I:42\nE:ID_VENDOR_FROM_DATABASE=NVIDIA Corporation\n")
    {'ID_VENDOR_FROM_DATABASE': 'NVIDIA Corporation'}
    """
    pairs = (line[2:].partition("=") for line in text.split("\n") if line.startswith("E:"))
    return {key: value for key, equals, value in pairs if equals}


def record(answer: Mapping[str, str]) -> bytes:
    """The record that `properties` reads back."""
    return "".join(f"E:{key}={answer[key]}\n" for key in sorted(answer)).encode("utf-8", "replace")


class Udev:
    """This host's udev. One context for all devices; nothing is imported where no udev runs."""

    def __init__(self) -> None:
        self._devices: object = None

    def properties(self, path: str) -> dict[str, str]:
        """See Host.udev."""
        record_of(path)
        if not os.path.isdir("/run/udev"):
            raise Absent("/run/udev: no udev runs here", "ENOENT")
        try:
            import pyudev
        except ImportError as error:
            raise Absent(f"pyudev cannot be used: {error}") from None
        try:
            self._devices = self._devices or pyudev.Context()
            device = pyudev.Devices.from_sys_path(self._devices, path)
            return {str(key): str(value).replace("\n", " ") for key, value in device.properties.items()}
        except pyudev.DeviceNotFoundError:
            raise Absent(f"{path}: udev has no such device", "ENOENT") from None
        except (OSError, ValueError) as error:
            raise Failed(f"{path}: udev: {error}") from None
