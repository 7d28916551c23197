"""This host: its own files, tools, NVML, netlink and udev. Nothing that is asked here changes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from probes.host import kmsg as kernel_log
from probes.host.command_runner import run_tool
from probes.host.commands import COMMANDS
from probes.host.folder import LiveFiles
from probes.host.interface import READ_LIMIT_BYTES, Completed
from probes.host.netlink_socket import ask
from probes.host.udev import Udev

COMMAND_SECONDS = 30.0  # nvidia-smi initializes a GPU without persistence in up to 3 s, one after the other


class LiveHost(LiveFiles):
    """The machine that this process runs on. It must be asked from a child that can be left behind: `probes.run`."""

    kind = "live"
    path: str | None = None
    live = True

    def __init__(self) -> None:
        super().__init__()
        self.observed_at: str | None = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._udev = Udev()

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read. The kernel's log is no file: a plain read would give one record, and wait for the next."""
        return kernel_log.tail() if path == kernel_log.PLACE else super().read(path, limit)

    def run(self, *argv: str) -> Completed:
        """See Host.run. Raises ValueError for what is not in the committed list: that is a bug, not an answer."""
        if argv not in COMMANDS:
            raise ValueError(f"{' '.join(argv)!r} is not in probes/host/commands.py")
        return run_tool(argv, COMMAND_SECONDS)

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return False

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        from probes.host import nvml as nvml_calls

        return nvml_calls.call(function, *arguments)

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        return ask(protocol, request)

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool. Raises ValueError for a command that is not in the committed list."""
        from probes.host import ethtool_ioctl as ethtool

        return ethtool.ask(interface, request)

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return self._udev.properties(path)
