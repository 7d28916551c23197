"""One guest's kernel, as it answered: the replies of tests/probes/kernel_replies, and what tools said beside it.

docs/real-kernel.md says how both were taken.
"""

from __future__ import annotations

import base64
import errno
import functools
import json
from pathlib import Path
from typing import Any

from probes.catalogue import probe
from probes.host.interface import Absent, error_from_errno
from probes.netlink import same_question
from probes.probe import Status, outcome_of
from probes.sources.memory import MemoryFiles, SymlinkNode
from tests.probes.machine import Machine

REPLIES = Path(__file__).parent
FULL, MIXED, CEE, LEGACY, EMPTY, COPPER, OLD_SFP = (f"ens{number}np0" for number in range(1, 8))
E1000E, VIRTIO = "eth0", "eth1"
PORTS = (FULL, MIXED, CEE, LEGACY, EMPTY, COPPER, OLD_SFP, E1000E, VIRTIO)


class Guest(Machine):
    """What the kernel answered. `privileged`: as root; else a module's memory is refused, as it was to nobody."""

    def __init__(self, privileged: bool = True) -> None:
        super().__init__(MemoryFiles(), live=True)
        kernel = table("linux-6.1")
        self.put({path: SymlinkNode(text) for path, text in kernel["links"].items()})
        self.put(kernel["files"])
        self.privileged = privileged
        self.exchanges = {(row["protocol"], base64.b64decode(row["request"])): row for row in kernel["netlink"]}
        self.ioctls = {(row["interface"], base64.b64decode(row["request"])): row for row in kernel["ethtool"]}

    def netlink(self, protocol: int, request: bytes) -> bytes:
        if protocol == 16 and request[16] == 31 and not self.privileged:
            raise error_from_errno(OSError(errno.EPERM, ""), "netlink protocol 16, message 21")
        return answer(self.exchanges.get((protocol, same_question(request))), f"netlink protocol {protocol}")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        return answer(self.ioctls.get((interface, request)), f"ethtool of {interface}")


@functools.cache
def table(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((REPLIES / f"{name}.json").read_text())
    return read


def answer(row: dict[str, str] | None, subject: str) -> bytes:
    """The reply, or the errno that there was instead."""
    if row is None:
        raise Absent(f"{subject}: was not asked")
    if "error" in row:
        raise error_from_errno(OSError(getattr(errno, row["error"]), ""), subject)
    return base64.b64decode(row["reply"])


def tool(command: str) -> str | None:
    """What a tool printed; None where it failed."""
    result = table("linux-6.1-tools")["said"][command]
    return result if isinstance(result, str) else None


def why_not(command: str) -> str:
    return str(table("linux-6.1-tools")["said"][command]["stderr"])


@functools.cache
def facts(name: str, privileged: bool = True) -> Any:
    outcome = outcome_of(probe(name), Guest(privileged))
    assert outcome.status is Status.OK or not privileged, outcome.reason
    return outcome.facts


def of_port(probe_name: str, rows: str, port: str) -> Any:
    return next(row for row in getattr(facts(probe_name), rows) if row.name == port)
