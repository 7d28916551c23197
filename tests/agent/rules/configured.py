"""The machine of `build.server` with settings of its config space changed, for the rules that judge them."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.rules.context import RuleContext
from tests.agent.rules.build import server, topology
from tests.agent.rules.rows import SETTINGS

_OF_THE_HEADER = ("subsystem_vendor", "subsystem_device")


def configured(gpus: int = 4, **changes: Any) -> RuleContext:
    """`server`, with something changed on every function."""
    case = server(gpus)
    return topology(case, pci=[msgspec.structs.replace(f, **changes) for f in case.topology.pci])


def unprivileged(case: RuleContext) -> RuleContext:
    """The same machine, read by an ordinary user: 64 bytes of config space."""
    nothing = dict.fromkeys(name for name in SETTINGS if name not in _OF_THE_HEADER) | {"config_bytes": 64}
    return topology(case, pci=[msgspec.structs.replace(f, **nothing) for f in case.topology.pci])
