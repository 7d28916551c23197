"""NICs whose firmware stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import severity_by_role
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_SIGNS: Mapping[str, str] = {
    "health": "the driver finds its firmware unhealthy",
    "command": "its firmware does not answer commands",
    "tx-timeout": "packets are not sent (TX timeout)",
}
_RECOVERED = "recovered"
_SHOWN = 6  # lines of evidence


@rule("nic-firmware-dead")
def nic_firmware_dead(case: RuleContext) -> Iterator[Result]:
    nics = [nic for nic in case.topology.nics if nic.pci and (nic.driver or "").startswith("mlx5")]
    if not nics:
        yield NotApplicable("node", "no NIC of the mlx5 driver")
        return
    unread = case.probe_failure("kernel_log")
    for nic in nics:
        events = [event for event in case.events if event.kind == "mlx5" and event.subject == nic.pci]
        signs = [event for event in events if event.code in _SIGNS]
        if signs:
            yield _fail_firmware(case, nic, signs, [event for event in events if event.code == _RECOVERED])
        else:
            subject = f"pci:{nic.pci}"
            yield Unknown(subject, f"the kernel log was not read: {unread}") if unread else Pass(subject)


def _fail_firmware(case: RuleContext, nic: Nic, signs: Sequence[Event], recovered: Sequence[Event]) -> Fail:
    worst = min(signs, key=lambda event: list(_SIGNS).index(event.code or ""))
    last = max((event.at or "" for event in signs), default="")
    over = any(event.at and last and event.at >= last for event in recovered)
    return Fail(
        subject=f"pci:{nic.pci}",
        label=nic.label,
        summary=f"{_SIGNS[worst.code or '']}" + ("; the driver recovered it" if over else ""),
        impact="None now; a repeat is a fault of its hardware."
        if over
        else "The port can stay ACTIVE while nothing passes: jobs that use this NIC hang until they time out.",
        evidence=tuple(
            Evidence(what=f"kernel log, {event.at or event.logged or 'no date'}", value=event.text, source=event.source)
            for event in [*signs, *recovered][:_SHOWN]
        ),
        severity="info" if over else severity_by_role("error", nic) or "info",
        cause=worst.code or "",
        places=frozenset({nic.id, nic.pci or nic.id}),
    )
