"""PCI machines for tests: config space put together register by register, and a host that notes what it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from probes.host.interface import Completed, ReadError
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine

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


class PciHost(Machine):
    """A machine with PCI functions. A directory that is entered for its attributes is noted with a slash at its end."""

    def function(self, chain: str, texts: Mapping[str, str | bytes] | None = None, **links: str) -> PciHost:
        """Add a function by its path below /sys/devices ("pci0000:00/0000:00:01.0"), with attributes and links."""
        address = chain.rsplit("/", 1)[-1]
        self.put({f"/sys/bus/pci/devices/{address}": SymlinkNode(f"../../../devices/{chain}")})
        self.put({f"/sys/devices/{chain}/{name}": text for name, text in (texts or {}).items()})
        self.put({f"/sys/devices/{chain}/{name}": SymlinkNode(target) for name, target in links.items()})
        return self

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        self._ask(f"{directory}/")
        return super().attributes(directory, names)

    def run(self, *argv: str) -> Completed:
        self.asked.append(" ".join(argv))
        return super().run(*argv)

    def udev(self, path: str) -> Mapping[str, str]:
        lines = self.read(f"/run/udev/data/+pci:{path.rsplit('/', 1)[-1]}").decode().splitlines()
        return dict(line[2:].split("=", 1) for line in lines if line.startswith("E:"))
