"""NICs whose firmware stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.context import RuleContext, read_since_boot
from agent.rules.devices import about_function, find_unlisted, none_logged, one_level_lower, quote_log, severity_by_role
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Result, rule

_SIGNS: Mapping[str, str] = {
    "health": "the driver finds its firmware unhealthy",
    "reset-failed": "its firmware did not come back from a reset",
    "command": "its firmware does not answer commands",
    "firmware-init": "its firmware does not finish its start",
    "tx-timeout": "packets are not sent (TX timeout)",
    "reset": "its firmware was reset after a fatal error",
}
_ENDED = frozenset({"recovered", "started"})  # what ends them: a recovery, or the driver's new start
_OVER = frozenset({"reset"})  # what the driver has done away with when it writes the line
_DRIVERS = ("mlx5", "bnxt_en", "ice", "ena", "efa", "ionic")
_KINDS = ("mlx5", "nic_firmware")
_RECENT = read_limit("nic-firmware-dead.recent_hours")
_OF_CLOUDS = ("ena ", "efa ")  # drivers of NICs that a provider alone can repair
_SHOWN = 6  # lines of evidence


@rule("nic-firmware-dead")
def nic_firmware_dead(context: RuleContext) -> Iterator[Result]:
    own_last = sorted(context.topology.nics, key=lambda nic: nic.id == nic.pci)  # a function, not its sub-functions
    logged = {event.subject for event in context.events if event.kind in _KINDS and event.code in _SIGNS}
    nics = {
        nic.pci: nic
        for nic in own_last
        if nic.pci and ((nic.driver or "").startswith(_DRIVERS) or (nic.driver is None and nic.pci in logged))
    }
    unlisted = find_unlisted(context, _KINDS, _SIGNS)
    if not nics and not unlisted:
        yield NODE.not_applicable("no-such-device", detail="no NIC whose driver reports the state of its firmware")
    for pci in (*nics, *unlisted):
        nic = nics.get(pci)
        events = [event for event in context.events if event.kind in _KINDS and event.subject == pci]
        signs = [event for event in events if event.code in _SIGNS]
        if signs:
            yield _fail_firmware(context, nic, pci, signs, [event for event in events if event.code in _ENDED])
        else:
            yield none_logged(context, about_function(context, pci))


def _fail_firmware(
    context: RuleContext, nic: Nic | None, pci: str, signs: Sequence[Event], ends: Sequence[Event]
) -> Fail:
    worst = min(signs, key=lambda event: list(_SIGNS).index(event.code or ""))
    over = all(sign.code in _OVER or any(_is_after(end, sign) for end in ends) for sign in signs)
    old = all(_is_old(context, sign) for sign in signs)
    stopped = [
        event for event in context.events if (event.kind, event.code, event.subject) == ("driver", "rdma-port", pci)
    ]
    is_dpu = worst.code == "firmware-init" and "BlueField" in str(nic.model if nic else "")
    severity = (severity_by_role("error", nic) or "info") if nic else "error" if stopped else "warning"
    if over or (old and worst.code == "tx-timeout"):
        severity = "info"
    elif old:
        severity = one_level_lower(severity)
    return about_function(context, pci).fail(
        label=nic.label if nic else f"NIC {pci}",
        summary=_SIGNS[worst.code or ""]
        + "".join(f"; RDMA ({event.detail.get('name', 'its device')}) did not start" for event in stopped[:1])
        + ("; the driver recovered it" if over else ", long ago" if old else ""),
        impact="None now; a repeat is a fault of its hardware."
        if over
        else "Its driver waited in vain: no port of it can be used."
        if worst.code == "firmware-init"
        else "The port can stay ACTIVE while nothing passes: jobs that use this NIC hang until they time out.",
        evidence=tuple(quote_log(event) for event in [*signs, *ends, *stopped][:_SHOWN]),
        severity=severity,
        confidence="high" if nic or stopped else "medium",
        cause=worst.code or "",
        situation="virtual" if worst.text.startswith(_OF_CLOUDS) else "dpu-start" if is_dpu else "",
        ids=frozenset({pci, *(one.id for one in context.topology.nics if one.pci == pci)}),
    )


def _is_old(context: RuleContext, sign: Event) -> bool:
    age = context.seconds_since(sign.at)
    return age is not None and age > 3600 * context.threshold(_RECENT)


def _is_after(end: Event, sign: Event) -> bool:
    """Whether a failure is over: its last line is not after the end. A start at its very second may have failed."""
    if end.at and sign.at:
        return end.at > sign.at or (end.at == sign.at and end.code == "recovered")
    ended, began = read_since_boot(end.logged), read_since_boot(sign.logged)
    return ended is not None and began is not None and ended > began
