"""What the installed wheel said of machines that the guest showed, each scanned once for all the tests that ask."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.lab.batches import BATCHES, Batch, machine
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest
from tests.matrix.cases import filled

LATER_SECONDS = 3600
CAPTURE = "/run/lab.tar.zst"
SEPARATOR = "===="


class Healthy(NamedTuple):
    """A machine without a fault: the report, and the capture of the same run."""

    report: dict[str, Any]
    capture: bytes


class Judged(NamedTuple):
    """A batch: the report, and what the kernel showed of each scenario."""

    report: dict[str, Any]
    shown: dict[str, str]


class Lab:
    """The guest and what was said of it so far."""

    def __init__(self, start: Callable[[str], Guest]) -> None:
        """`start`: makes the guest, when it is asked for a machine first, which it is to show."""
        self._start = start
        self._guest: Guest | None = None
        self._healthy: dict[str, Healthy] = {}
        self._judged: dict[str, Judged] = {}

    def guest(self, shape: str) -> Guest:
        """The one guest, which shows that machine."""
        if self._guest is None:
            self._guest = self._start(shape)
        self._guest.turn_into(machine(shape))
        return self._guest

    def close(self) -> None:
        """End it. What was said is still known."""
        if self._guest is not None:
            self._guest.close()
            self._guest = None

    def healthy(self, shape: str) -> Healthy:
        """The machine as it is described. Its run is the earlier one of batches that need one."""
        if shape not in self._healthy:
            guest = self.guest(shape)
            report = guest.scan("--state-dir", f"/run/state-{shape}", "--capture", CAPTURE)
            self._healthy[shape] = Healthy(report, base64.b64decode(guest.must("base64", CAPTURE)))
        return self._healthy[shape]

    def batch(self, name: str) -> Judged:
        """What is said while its causes stand."""
        if name not in self._judged:
            batch = BATCHES[name]
            self.healthy(batch.shape)
            guest = self.guest(batch.shape)
            guest.turn_into(machine(batch.shape, batch.overlay))
            report = self._scanned(guest, batch)
            self._judged[name] = Judged(report, self._shown(guest, batch, report))
        return self._judged[name]

    def _scanned(self, guest: Guest, batch: Batch) -> dict[str, Any]:
        options: list[str] = []
        if batch.config:
            pairs = [(section, *pair) for section, keys in batch.config.items() for pair in keys.items()]
            lines = [f"{section}.{key} = {json.dumps(value)}\n" for section, key, value in pairs]
            guest.write("/run/config.toml", "".join(lines))
            options += ["--config", "/run/config.toml"]
        if not batch.later:
            return guest.scan(*options)
        guest.shell(f"rm -rf /run/state; cp -a /run/state-{batch.shape} /run/state")
        return guest.scan(*options, "--state-dir", "/run/state", uptime=UPTIME_SECONDS + LATER_SECONDS)

    def _shown(self, guest: Guest, batch: Batch, report: dict[str, Any]) -> dict[str, str]:
        netdevs = {netdev["pci"]: netdev["label"] for netdev in report["topology"]["netdevs"]}
        lines = []
        for scenario in batch.scenarios:
            index = next(iter(filled(scenario.cause.overlay, batch.shape).get("device", {"": {}})))
            lines.append(f"({scenario.witness.format(at=index, netdev=netdevs.get(index, ''))}) 2>&1; echo {SEPARATOR}")
        output = guest.run("bash", "-c", "\n".join(lines)).out.split(f"{SEPARATOR}\n")
        return {scenario.name: text for scenario, text in zip(batch.scenarios, output, strict=False)}
