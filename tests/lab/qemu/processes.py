"""What scans leave in the guest: processes while no scan should run, and the report of the service."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.qemu.guest import Guest

NAMES = ("bin/fabricscope", "nvidia-smi", "ibstat", "ibv_devinfo")
LISTED = """
import pathlib, sys
for place in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = place.joinpath("cmdline").read_bytes().replace(b"\\0", b" ").decode().strip()
        if any(name in words for name in sys.argv[1:]) and not words.startswith("python3 -c"):
            state = place.joinpath("stat").read_text().rpartition(") ")[2][0]
            print(state, place.joinpath("wchan").read_text(), words)
    except OSError:
        continue  # it has ended
"""


def scanning(guest: Guest) -> list[str]:
    """State, where in the kernel it waits, command line. The guest has no pgrep, and a fork takes it tens of ms."""
    return guest.must("python3", "-c", LISTED, *NAMES).splitlines()


SERVICE = "fabricscope-scan.service"
FILE = "/var/lib/fabricscope/report.json"


def report(guest: Guest) -> dict[str, Any]:
    """What the service wrote."""
    result: dict[str, Any] = json.loads(guest.must("cat", FILE))
    return result
