"""Fixture machines with other words on their interfaces, and hosts that answer ethtool in their own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fixtures.build import capture_machine, host_in_memory
from fixtures.loader import merge_tables, read_table
from fixtures.machine import parse_machine
from probes.sources.capture import CaptureHost
from tests.probes.overlay import OverlayHost

ROCE, NIC, INTERFACE = "8xl40s-pcie-2s-2xcx7-roce", "0000:1b:00.0", "enp27s0np0"
HIDDEN = "8xb200-sxm-2s-8xcx7-ib-hidden-nvsw"


def told(words: dict[str, Any], shape: str = ROCE, nic: str = NIC, **more: Any) -> CaptureHost:
    """A machine one of whose interfaces has these words over its own."""
    table = merge_tables(merge_tables(read_table("hosts", shape), {"device": {nic: {"net": words}}}), more)
    return host_in_memory(capture_machine(parse_machine(table, shape)), shape)


class Answering(OverlayHost):
    """A host in front of which somebody else answers, or notes, ethtool's questions."""

    def __init__(
        self,
        base: CaptureHost,
        netlink: Callable[[bytes], bytes | None] = lambda _: None,
        ethtool: Callable[[str, bytes], bytes | None] = lambda _, __: None,
    ) -> None:
        super().__init__(base)
        self._answers = netlink, ethtool
        self.asked: list[tuple[str, int]] = []  # interface, command of each ioctl
        self.memory = 0  # questions about a module's memory

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """Somebody else's answer first."""
        result = self._answers[0](request) if protocol == 16 else None
        self.memory += protocol == 16 and request[16] == 31
        return super().netlink(protocol, request) if result is None else result

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """The same."""
        self.asked.append((interface, request[0]))
        result = self._answers[1](interface, request)
        return super().ethtool(interface, request) if result is None else result
