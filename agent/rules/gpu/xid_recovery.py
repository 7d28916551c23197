"""What an Xid or SXid needs: the driver's own recovery action, else the action of NVIDIA's catalogue; and what after.

The situations are those of the page gpu-xid, which has the steps.
"""

from __future__ import annotations

from agent.model.node import Event
from agent.rules.context import RuleContext, parse_time
from agent.rules.gpu.xid_catalogue import NVLINK5, Xid, decode_link_error, effective_code

_CRITERIA = (
    "Look at the repair of its memory: `nvidia-smi -q -d ROW_REMAPPER,ECC -i GPU_INDEX`; a failed remapping or an "
    "exceeded SRAM threshold is NVIDIA's criterion for an exchange, and a separate finding."
)
_APPLICATION = "Look at the application first: its own fault ends this way, or one that another Xid explains."
_SUPPORT = (
    "If it comes back after that, run the vendor's field diagnostics, and open a service case with the GPU's serial "
    "number and the saved logs; a repeat is by itself no reason to exchange the GPU. "
    "(costs a service case or a part)"
)
_LINK = (
    "If it comes back, compare the error counters of both ends of the link (`nvidia-smi nvlink -e`); connectors, "
    "cables and cartridges of the link are suspected before the GPU."
)
_AFTER = {  # by the catalogue's investigatory action
    "CONTACT_SUPPORT": _SUPPORT,
    "INVESTIGATE_SW": "If it comes back, compare driver and firmware with those of a good node, and update the driver; "
    "then ask support, with the saved logs. It is no reason to exchange the GPU.",
    "INVESTIGATE_SW_USER": "Find out what software or an administrator did to the link: driver, fabric manager, a "
    "reset of the other end. By this code no part is at fault.",
    "INVESTIGATE_LINK_SI": _LINK,
    "INVESTIGATE_PEER_DEVICE": "The other end of the link failed first: look at the Xids, SXids and counters of the "
    "device there. This GPU is not the suspect.",
    "INVESTIGATE_HOST": "Find out what the host did at that time: a reset, a driver that was unloaded. By this code no "
    "part is at fault.",
    "SYMPATHETIC": "It follows another error: look for Xids of the same time on other GPUs, and do what those need.",
    "IGNORE": "If it comes back, look for another Xid of the same time: this one needs no action by itself.",
}
_TEXTS = {  # of numbers whose action is a sentence of its own
    "45": "Look at the application first: it was ended, or it ended by itself.",
    "54": "Read the BMC's log for the power of this GPU; then drain the node, and have the power connection of the GPU "
    "or its board, and the power supplies, checked on site. (costs a visit on site)",
    "63": "Reset the GPU when it is free, which makes the remapped row take effect.",
    "92": f"No immediate action. {_CRITERIA}",
    "94": "Restart the job that ended; the GPU goes on. Poison that arrives over NVLink ends jobs, too: look for Xids "
    f"of the same time on other GPUs. {_CRITERIA}",
    "121": "No immediate action. Where its number grows, do what the findings about C2C name.",
    "137": _APPLICATION,
    "151": "Restart the virtual machine.",
    "154": "Do what `nvidia-smi -q` names as recovery action.",
    "157": f"No immediate action. {_CRITERIA}",
    "159": "Restart the job. It follows another error: look for another Xid of the same time.",
    "161": "Nothing by itself.",
    "166": "Look at the confidential computing set-up of both ends.",
    "168": "Drain the node and reboot it; where it stays, switch ECC on. (costs a reboot)",
    "170": "Look at the confidential computing set-up of both ends.",
}
_RESTART_MANAGER = (
    " Where no application was ended at that time, drain the node and restart the fabric manager: `systemctl restart "
    "nvidia-fabricmanager` (costs a drain)"
)
_RECOVERED = "No action: the link recovered. Watch its counters (`nvidia-smi nvlink -e`)."
_UNLISTED = "Look it up in NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors)."
_GUEST_RESET = "Drain the guest, then stop and start it, which resets the GPU. (costs a restart of the instance)"
_DRIVER = {  # recovery actions of the driver (field 230), and what they are in the catalogue's words
    "reset": "RESET_GPU", "bus_reset": "RESET_GPU", "drain_and_reset": "RESET_GPU", "drain_p2p": "RESET_GPU",
    "reboot": "RESTART_BM", "system_reboot": "RESTART_BM",
}  # fmt: skip
_MEMORY_CODES = frozenset({"48", "64", "95", "140", "156", "171", "172"})
_CONTAINED, _OFTEN, _DAY_SECONDS = "94", 3, 86_400.0  # errors that end one job each: rows may wait to be remapped
_AFTER_RESET = "after_reset"
_RESETS = ("RESET_GPU", "WORKFLOW_NVLINK_ERR")


def plan_recovery(context: RuleContext, event: Event, meaning: Xid, alone: bool, over: bool) -> tuple[str, str]:
    """The situation, and the sentence of its own that the page prints there.

    `alone`: no other error of this GPU; `over`: long ago, and the driver works with the GPU.
    """
    if event.kind == "sxid":
        return _plan_switch(context, meaning)
    situation, after = _choose_situation(context, event, meaning)
    if over and situation in ("reset", "reboot", "memory", "init", "power-cycle"):
        return "over", _CRITERIA if situation == "memory" else _AFTER.get(after, _SUPPORT)
    if context.virtual_machine and situation in ("reset", "memory", "init", "power-cycle", "reboot"):
        return situation, _GUEST_RESET
    if situation in ("reset", "reboot") and _came_again(context, event):
        after_that = _AFTER.get(after, _SUPPORT).removeprefix("If it comes back").removeprefix(" after that")
        return "again", after_that.removeprefix(", ")[:1].upper() + after_that.removeprefix(", ")[1:]
    if situation in ("reset", "reboot"):
        return situation, _AFTER.get(after, _SUPPORT)
    if situation in ("memory", "init", "power-cycle"):
        return situation, ""
    return situation, _describe_light(context, event, meaning, after, alone)


def _came_again(context: RuleContext, event: Event) -> bool:
    """Whether the same error of the same GPU was there before a reset, or in an earlier boot: that did not end it."""
    if _AFTER_RESET in event.detail:
        return True
    same = (event.kind, effective_code(event), event.subject)
    return any((one.kind, effective_code(one), one.subject) == same for one in context.earlier_events)


def _is_often(event: Event) -> bool:
    """Whether it came several times within a day."""
    first, last = parse_time(event.first_at), parse_time(event.at)
    return event.count >= _OFTEN and bool(first and last and (last - first).total_seconds() <= _DAY_SECONDS)


def _plan_switch(context: RuleContext, meaning: Xid) -> tuple[str, str]:
    if meaning.severity == "info":
        return "harmless", "No action by itself; a growing number points at the link that it names."
    if meaning.severity == "warning":
        return "other", "Read the line of this SXid before it, which states Fatal or Non-fatal: `dmesg -T | grep SXid`"
    return "nvswitch", _GUEST_RESET if context.virtual_machine else ""


def _choose_situation(context: RuleContext, event: Event, meaning: Xid) -> tuple[str, str]:
    code, (at_once, after) = effective_code(event), _find_actions(context, event, meaning)
    if meaning.severity == "critical":
        return ("power-cycle" if at_once in ("RESTART_BM", "") else "init"), after
    if meaning.severity == "info":
        return "harmless", after
    if at_once == "RESTART_BM":
        return "reboot", after
    if code in _MEMORY_CODES or (code == _CONTAINED and _is_often(event)):
        return "memory", after
    if at_once in _RESETS or (not at_once and code not in _TEXTS):
        return "reset", after
    return "", after


def _find_actions(context: RuleContext, event: Event, meaning: Xid) -> tuple[str, str]:
    """At once and after: the driver's own recovery action comes before the line's code, and that before the number."""
    decoded = decode_link_error(event)
    at_once, after = decoded or (meaning.at_once, meaning.after)
    if effective_code(event) in NVLINK5 and decoded is None:
        at_once = "IGNORE" if event.detail.get("severity") == "Nonfatal" else "RESET_GPU"
        after = "INVESTIGATE_LINK_SI"
    elif at_once == "WORKFLOW_NVLINK_ERR":
        after = "INVESTIGATE_LINK_SI"
    asked = find_driver_action(context, event.subject or "")
    if asked in _DRIVER and meaning.severity not in ("critical", "info"):
        return _DRIVER[asked], after
    return ("IGNORE" if asked == "none" else "RESET_GPU") if at_once == "XID_154_EVAL" else at_once, after


def find_driver_action(context: RuleContext, pci: str) -> str | None:
    """The recovery action that the driver names now, else the one that it logged last (Xid 154)."""
    gpu = context.gpu_by_pci.get(pci)
    if gpu is not None and gpu.recovery_action:
        return gpu.recovery_action
    logged = [event for event in context.events if event.kind == "xid" and event.code == "154" and event.subject == pci]
    words = logged[-1].detail.get("after", "").lower() if logged else ""
    return next((action for word, action in _LOGGED.items() if word in words), None)


_LOGGED = {"reboot": "reboot", "reset": "reset", "drain": "drain_p2p", "none": "none"}  # words of a line of Xid 154


def _describe_light(context: RuleContext, event: Event, meaning: Xid, after: str, alone: bool) -> str:
    """What needs no reset."""
    code = effective_code(event)
    if code in NVLINK5:
        return (
            f"{_RECOVERED} {_AFTER[after]}" if after in ("INVESTIGATE_LINK_SI", "INVESTIGATE_SW_USER") else _RECOVERED
        )
    if code == "45" and alone and _has_manager(context):
        return _TEXTS[code] + _RESTART_MANAGER
    return _TEXTS.get(code) or (_APPLICATION if meaning.at_once else _UNLISTED)


def _has_manager(context: RuleContext) -> bool:
    services = context.software.services
    return any(service.name == "nvidia-fabricmanager" and service.state == "active" for service in services)
