"""The service of the units, in the guest."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.qemu.guest import Guest

SERVICE = "fabricscope-scan.service"
FILE = "/var/lib/fabricscope/report.json"


def report(guest: Guest) -> dict[str, Any]:
    """What the service wrote."""
    result: dict[str, Any] = json.loads(guest.must("cat", FILE))
    return result
