"""What identifies a finding over reboots, renames and moves."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from agent.rules.context import RuleContext
from agent.rules.rule import Fail


def fingerprint(rule: str, fault: Fail, context: RuleContext) -> str:
    """Stable over reboots, renames and slots: rule, the most lasting identity of the subject, cause."""
    text = "\n".join((rule, lasting_identity(fault.subject, context), fault.cause))
    return str(load_sha256()(text.encode()).hexdigest()[:16])


@cache
def load_sha256() -> Any:
    """SHA-256 as `random` loads its own hash: hashlib loads OpenSSL, which takes longer than all fingerprints."""
    for module in ("_sha2", "_sha256"):  # from Python 3.12 on; before
        with suppress(ImportError):
            return import_module(module).sha256
    return import_module("hashlib").sha256


def lasting_identity(subject: str, context: RuleContext) -> str:
    """What stays the same of a subject when it is renamed or moved: UUID, GUID, serial, MAC; else its id."""
    kind, _, rest = subject.partition(":")
    if kind == "pair":
        return "+".join(sorted(lasting_identity("pci:" + end, context) for end in rest.split("+")))
    device, slash, part = rest.partition("/")
    gpu = context.gpus.get(device) or context.gpu_by_pci.get(device)
    nic = context.nics.get(device) or context.nic_by_pci.get(device)
    netdev = next((n for n in context.topology.netdevs if n.id == device), None) if kind == "netdev" else None
    lasting = (
        (netdev and netdev.mac)
        or (gpu and (gpu.uuid or gpu.serial))
        or (nic and nic.node_guid)
        or _find_serial(context, device)
        or device
    )
    return f"{lasting}{slash}{part}"


def _find_serial(context: RuleContext, device: str) -> str | None:
    """Serial number and function number: all functions of a card have one serial, all ports of a switch too."""
    function = context.functions.get(device)
    if function is None or not function.serial or (function.class_code or "").startswith("0x0604"):
        return None
    return f"{function.serial}.{function.id.rpartition('.')[2]}"
