"""A machine whose config space was read whole: every setting as it should be, for the rules that judge settings."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.rules.case import Case
from tests.agent.rules.build import node, server, topology


def configured(gpus: int = 4, **more: Any) -> Case:
    """`server` with 256-byte packets, 4096-byte reads, tags on and ASPM off; `more`: on every function."""
    case = node(server(gpus), cmdline="ro quiet")
    settings = {
        "config_bytes": 4096,
        "max_payload_bytes": 256,
        "max_payload_supported_bytes": 512,
        "max_read_request_bytes": 4096,
        "relaxed_ordering": True,
        "extended_tags": True,
        "extended_tags_supported": True,
        "ten_bit_tags": False,
        "ten_bit_tags_supported": False,
        "aspm": "off",
        "link_disabled": False,
    } | more
    return topology(case, pci=[msgspec.structs.replace(f, **settings) for f in case.topology.pci])


def unprivileged(case: Case) -> Case:
    """The same machine, read by an ordinary user: 64 bytes of config space."""
    nothing = dict.fromkeys(
        ("max_payload_bytes", "max_payload_supported_bytes", "max_read_request_bytes", "relaxed_ordering", "aspm",
         "extended_tags", "extended_tags_supported", "ten_bit_tags", "ten_bit_tags_supported", "link_disabled")
    )  # fmt: skip
    return topology(case, pci=[msgspec.structs.replace(f, config_bytes=64, **nothing) for f in case.topology.pci])
