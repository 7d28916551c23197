"""A folder or tar of a machine's files (`tree`), of saved command outputs (`dump`), or of both.

How a saved command ended is not known: each is answered as if it ended well. NVML and netlink leave no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from probes.host.files import Files
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, Unanswered
from probes.host.udev import properties_in
from probes.sources.dump import Outputs


class TreeHost:
    """A machine as far as its files, or its commands' outputs, were saved."""

    live = False
    observed_at: str | None = None

    def __init__(self, kind: str, path: str, files: Files, outputs: Outputs) -> None:
        self.kind = kind
        self.path: str | None = path
        self._files = files
        self._outputs = outputs

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        return self._files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | Unanswered]:
        """See Host.attributes."""
        return self._files.attributes(directory, names)

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        return self._files.listdir(path)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        return self._files.readlink(path)

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        return self._files.resolve(path)

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        return self._outputs.completed(argv)

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return self._outputs.holds(argv)

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        raise Absent(f"{function}: a {self.kind} holds no NVML answers")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        raise Absent(f"a {self.kind} holds no netlink answers")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        raise Absent(f"a {self.kind} holds no ethtool answers")

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return properties_in(self._files, path)
