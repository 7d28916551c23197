"""PCI machines for tests: config space put together register by register, and a host that notes what it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from probes.host.interface import Absent, Completed, ReadError
from probes.sources.memory import MemoryFiles, SymlinkNode

EXPRESS_AT, POWER_AT = 0x60, 0x40


def put(data: bytearray, at: int, value: int, size: int = 2) -> None:
    data[at : at + size] = value.to_bytes(size, "little")


def conventional(*, bridge: tuple[int, int, int] | None = None) -> bytearray:
    """256 bytes of a function without any capability; `bridge`: primary, secondary, subordinate bus."""
    data = bytearray(256)
    put(data, 0x00, 0x10DE)
    put(data, 0x02, 0x2330)
    data[0x08:0x0C] = bytes([0xA1, 0x00, 0x02, 0x03])
    put(data, 0x2C, 0x10DE)
    put(data, 0x2E, 0x16C1)
    if bridge is not None:
        data[0x0E] = 1
        data[0x09:0x0C] = bytes([0x00, 0x04, 0x06])
        data[0x18:0x1B] = bytes(bridge)
        data[0x2C:0x30] = bytes(4)
    return data


def express(
    *,
    kind: int = 0,
    bridge: tuple[int, int, int] | None = None,
    device: tuple[int, int] = (0, 0),
    link: tuple[int, int, int] = (0, 0, 0),
    target: int = 0,
    extended: Mapping[int, bytes] | None = None,
) -> bytes:
    """4096 bytes of a PCI Express function in D0.

    `device`: DevCap, DevCtl. `link`: LnkCap, LnkCtl, LnkSta. `target`: LnkCtl2.
    `extended`: capability id -> what follows its header; they are chained in the order given, 0x40 bytes apart.
    """
    data = conventional(bridge=bridge) + bytearray(4096 - 256)
    put(data, 0x06, 0x10)
    data[0x34] = POWER_AT
    data[POWER_AT : POWER_AT + 2] = bytes([0x01, EXPRESS_AT])
    data[EXPRESS_AT : EXPRESS_AT + 2] = bytes([0x10, 0x00])
    put(data, EXPRESS_AT + 0x02, 2 | kind << 4)
    for register, value, size in (
        (0x04, device[0], 4),
        (0x08, device[1], 2),
        (0x0C, link[0], 4),
        (0x10, link[1], 2),
        (0x12, link[2], 2),
        (0x30, target, 2),
    ):
        put(data, EXPRESS_AT + register, value, size)
    chain = list((extended or {}).items())
    for number, (identity, body) in enumerate(chain):
        at = 0x100 + 0x40 * number
        following = at + 0x40 if number + 1 < len(chain) else 0
        put(data, at, identity | 1 << 16 | following << 20, 4)
        data[at + 4 : at + 4 + len(body)] = body
    return bytes(data)


class PciHost:
    """Files in memory. `asked` is every question in order, attributes one by one; `refused`: path -> reason.

    A directory that is entered for its attributes is asked for with a slash at its end.
    """

    kind = "tree"
    path: str | None = None
    observed_at: str | None = None

    def __init__(self, *, live: bool = False) -> None:
        self.live = live
        self.files = MemoryFiles()
        self.refused: dict[str, ReadError] = {}
        self.outputs: dict[tuple[str, ...], Completed] = {}
        self.asked: list[str] = []

    def function(self, chain: str, texts: Mapping[str, str | bytes] | None = None, **links: str) -> PciHost:
        """Add a function by its path below /sys/devices ("pci0000:00/0000:00:01.0"), with attributes and links."""
        address = chain.rsplit("/", 1)[-1]
        self.put(f"/sys/bus/pci/devices/{address}", SymlinkNode(f"../../../devices/{chain}"))
        for name, text in (texts or {}).items():
            self.put(f"/sys/devices/{chain}/{name}", text)
        for name, target in links.items():
            self.put(f"/sys/devices/{chain}/{name}", SymlinkNode(target))
        return self

    def put(self, path: str, node: str | bytes | SymlinkNode) -> PciHost:
        self.files.add(path, node.encode() if isinstance(node, str) else node)
        return self

    def output(self, argv: tuple[str, ...], stdout: str, stderr: str = "", returncode: int = 0) -> PciHost:
        self.outputs[argv] = Completed(argv, returncode, stdout, stderr, 0.0)
        return self

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        self._ask(path)
        return self.files.read(path, limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        self._ask(f"{directory}/")
        wanted = list(names)
        self.asked += [f"{directory}/{name}" for name in wanted]
        answers: dict[str, bytes | ReadError] = dict(self.files.attributes(directory, wanted))
        refused = {
            name: self.refused[f"{directory}/{name}"] for name in wanted if f"{directory}/{name}" in self.refused
        }
        return answers | refused

    def listdir(self, path: str) -> list[str]:
        self._ask(path)
        return self.files.listdir(path)

    def readlink(self, path: str) -> str:
        self._ask(path)
        return self.files.readlink(path)

    def resolve(self, path: str) -> str:
        self._ask(path)
        return self.files.resolve(path)

    def run(self, *argv: str) -> Completed:
        self.asked.append(" ".join(argv))
        if argv not in self.outputs:
            raise Absent(f"no {argv[0]}")
        return self.outputs[argv]

    def has_output(self, *argv: str) -> bool:
        return not self.live and argv in self.outputs

    def udev(self, path: str) -> Mapping[str, str]:
        lines = self.read(f"/run/udev/data/+pci:{path.rsplit('/', 1)[-1]}").decode().splitlines()
        return dict(line[2:].split("=", 1) for line in lines if line.startswith("E:"))

    def nvml(self, function: str, *arguments: Any) -> Any:
        raise Absent("no NVML here")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        raise Absent("no netlink here")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        raise Absent(f"{interface}: no ethtool here")

    def _ask(self, path: str) -> None:
        self.asked.append(path)
        if path in self.refused:
            raise self.refused[path]
