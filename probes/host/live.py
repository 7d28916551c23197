"""This host: its own files, tools, NVML, netlink and udev. Nothing that is asked here changes it.

`--root DIR`: this host's filesystem seen elsewhere, as a container sees it under /host.

The report's source is `live` with the folder as its path: its files are a running kernel's. NVML, netlink and
commands belong to the kernel that runs here; they are mixed in only where the folder's boot id is that kernel's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from probes.host import kmsg
from probes.host.commands import AMD_LIBRARY, BOUND_SECONDS, CLASSES, COMMANDS
from probes.host.folder import FolderFiles, LiveFiles
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, ReadError
from probes.host.netlink_socket import request_netlink, require_interface
from probes.host.process import run_tool
from probes.host.udev import Udev, properties_in

COMMAND_SECONDS = 30.0  # nvidia-smi initializes a GPU without persistence in up to 3 s, one after the other


class LiveHost(LiveFiles):
    """The machine that this process runs on. It must be asked from a child that can be left behind: `probes.run`."""

    kind = "live"
    path: str | None = None
    live = True

    def __init__(self) -> None:
        super().__init__()
        self.observed_at: str | None = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._udev = Udev()

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read. The kernel's log is no file: a plain read would give one record, and wait for the next."""
        return kmsg.tail() if path == kmsg.PLACE else super().read(path, limit)

    def run(self, *argv: str) -> Completed:
        """See Host.run. Raises ValueError for what is not in the committed list: that is a bug, not an answer."""
        if argv not in COMMANDS:
            raise ValueError(f"{' '.join(argv)!r} is not in probes/host/commands.py")
        if argv in AMD_LIBRARY:
            from probes.host.amdsmi import ask_library  # lazy: on few hosts

            return ask_library(argv)
        needed = CLASSES.get(argv[0])
        if needed is not None and not os.path.isdir(needed):
            raise Absent(f"{argv[0]}: not run: there is no {needed}, and the tool would load the module for it")
        return run_tool(argv, BOUND_SECONDS.get(argv, COMMAND_SECONDS))

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return False

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        return []

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        from probes.host import nvml as nvml_calls

        return nvml_calls.call(function, *arguments)

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        return request_netlink(protocol, request)

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool. Raises ValueError for a command that is not in the committed list."""
        from probes.host import ethtool_ioctl as ethtool

        return ethtool.request_ioctl(interface, request, require_interface)

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return self._udev.properties(path)


BOOT_ID = "/proc/sys/kernel/random/boot_id"


class RootedHost(FolderFiles):
    """This machine through a folder. Links are confined to the folder: they are another root's."""

    kind = "live"
    live = True

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.path: str | None = root
        self._here = LiveHost()
        self.observed_at = self._here.observed_at
        self._why_not = _other_kernel(self, root)

    @property
    def other_kernel(self) -> str | None:
        """Why the running kernel is not asked; None where the folder belongs to it."""
        return self._why_not

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read: the kernel's log is the running kernel's, whatever the folder shows below /dev."""
        return self._kernel().read(path, limit) if path == kmsg.PLACE else super().read(path, limit)

    def run(self, *argv: str) -> Completed:
        """See Host.run: this container's tools, where the kernel is the same."""
        return self._kernel().run(*argv)

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return False

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        return []

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        return self._kernel().nvml(function, *arguments)

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        return self._kernel().netlink(protocol, request)

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        return self._kernel().ethtool(interface, request)

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev: the folder's own database."""
        return properties_in(self, path)

    def _kernel(self) -> LiveHost:
        if self._why_not is not None:
            raise Absent(self._why_not)
        return self._here


def _other_kernel(folder: FolderFiles, root: str) -> str | None:
    """Why the running kernel is not the one that the folder shows; None where it is."""
    try:
        there = folder.read(BOOT_ID).strip()
    except ReadError as why:
        return f"not asked: {root} does not show which kernel it belongs to ({why.reason})"
    if there != LiveFiles().read(BOOT_ID).strip():
        return f"not asked: {root} belongs to another boot than the kernel that runs here"
    return None
