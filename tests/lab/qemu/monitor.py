"""QEMU's monitor (QMP): what is asked of QEMU itself while a guest runs."""

from __future__ import annotations

import json
import socket
from typing import Any

SECONDS = 60.0


class MonitorRefused(AssertionError):
    """QEMU did not do it; the message has its words."""


class Monitor:
    """One side of a pair of sockets; QEMU has the other."""

    def __init__(self, line: socket.socket) -> None:
        line.settimeout(SECONDS)
        self._line = line
        self._stream = line.makefile("rw", encoding="utf-8")
        self._greeted = False

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """One command, and what came back. Raises MonitorRefused; OSError where QEMU is gone."""
        if not self._greeted:
            self._answer()
            self._greeted = True
            self.ask("qmp_capabilities")
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        answer = self._answer()
        if "error" in answer:
            raise MonitorRefused(f"{command}: {answer['error'].get('desc')}")
        returned: dict[str, Any] = answer["return"]
        return returned

    def _answer(self) -> dict[str, Any]:
        while line := self._stream.readline():
            answer: dict[str, Any] = json.loads(line)
            if "event" not in answer:
                return answer
        raise ConnectionResetError("QEMU has closed its monitor")

    def close(self) -> None:
        """Nothing is asked after that."""
        self._stream.close()
        self._line.close()
