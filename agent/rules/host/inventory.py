"""Devices of the last run that are missing now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
from agent.model.report import Known
from agent.rules import applicability
from agent.rules.context import RuleContext
from agent.rules.devices import near_rail_id, why_unreachable
from agent.rules.host.inventory_matching import (
    DEVICES,
    MatchedDevices,
    build_inventory,
    id_of,
    kind_of,
    match_devices,
    owner_of,
)
from agent.rules.nvlink.link_counts import LinkCounts, link_counts
from agent.rules.rule import Fail, NamedSubject, Result, rule
from agent.rules.wording import join_labels

_SEVERITY = {"gpu": "critical", "nvswitch": "critical"}
_WITHOUT_USE = ("unused", "auxiliary")
_ON_PURPOSE = {
    "vfio": Reason("guest", detail="bound to vfio-pci: it waits for a virtual machine"),
    "no_driver": Reason("not-in-use", detail="no driver is bound to its NIC"),
    "other_namespace": Reason("container", detail="its RDMA device is in another network namespace"),
}
_TAKEN = Reason("guest-hides", detail="missing, in a virtual machine: the hypervisor adds and removes devices")
_SWITCHED = Reason("guest-hides", detail="down, in a virtual machine: the hypervisor switches NVLinks by partition")


@rule("inventory-lost", gate=applicability.has_inventory)
def inventory_lost(context: RuleContext) -> Iterator[Result]:
    known = context.history.inventory if context.history else []
    match = match_devices(known, build_inventory(context.topology))
    tallied = {one.subject: one for one in link_counts(context)}
    lost: list[Known] = []
    for device in known:
        answer = _judge_known(context, device, match, tallied)
        if answer is None:
            lost.append(_current_identity(context, device, match))
        else:
            yield answer
    for group in _group_lost(context, lost):
        yield _fail_lost(context, group)


def _judge_known(
    context: RuleContext, device: Known, match: MatchedDevices, tallied: Mapping[str, LinkCounts | Result]
) -> Result | None:
    """None: it is lost."""
    about, owner = _about(device), match.at.get(owner_of(device.subject))
    if kind_of(device) in DEVICES:
        return _judge_device(context, device, match)
    if owner is None:
        return about.not_applicable(
            "judged-elsewhere", detail="a part of a device that is not here: it is judged with that"
        )
    if kind_of(device) == "port":
        return _judge_port(context, device, match, context.nics[id_of(owner)])
    tally = tallied.get(owner)
    if not isinstance(tally, LinkCounts):
        unshown = about.unknown("not-shown", detail="its GPU reports nothing about it")
        return replace(tally, subject=device.subject) if tally else unshown
    number = device.subject.rpartition("/")[2]
    if any(str(link.link) == number for link in tally.active):
        return about.passes()
    if any(str(link.link) == number for link in tally.unread):
        return about.unknown("not-known", fact="the state of this link")
    if context.virtual_machine:
        return about.unknown(_SWITCHED)
    return None


def _judge_device(context: RuleContext, device: Known, match: MatchedDevices) -> Result | None:
    about, subject = _about(device), device.subject
    now = context.functions.get(id_of(match.at.get(subject, "")))
    if now and now.state in ("gone", "changed_during_scan"):
        return about.not_applicable(why_unreachable(now) or Reason("not-in-use", detail=now.state))
    if subject in match.at or subject in match.replaced:
        return about.passes()
    if id_of(subject) in context.functions:
        return about.not_applicable(
            "judged-elsewhere", detail="a function is listed at its address, and other rules judge it"
        )
    if context.why_bus_unread:
        return about.unknown(context.why_bus_unread)
    if context.virtual_machine:
        return about.unknown(_TAKEN)
    if subject in match.unsure:
        where = id_of(match.unsure[subject])
        return about.unknown("undecided", detail=f"not at its address; it may be the one that is new at {where}")
    return None


def _judge_port(context: RuleContext, device: Known, match: MatchedDevices, nic: Nic) -> Result | None:
    """A port of a NIC that is here."""
    about = _about(device)
    if device.subject in match.at:
        return about.passes()
    if nic.state in _ON_PURPOSE:
        return about.not_applicable(_ON_PURPOSE[nic.state])
    unread = context.why_probe_failed("rdma") or _why_partial(context, nic) or _why_unlocated(context)
    if unread:
        return about.unknown(unread)
    if context.software.rdma_namespaces == "exclusive" and not nic.ports:
        return about.unknown("namespace-hides", detail="RDMA devices of other network namespaces are not seen here")
    return about.unknown(_TAKEN) if context.virtual_machine else None


def _about(device: Known) -> NamedSubject:
    return NamedSubject(device.subject, device.label, frozenset())


def _why_partial(context: RuleContext, nic: Nic) -> Reason | None:
    """Why ports of a NIC may be there that are not reported."""
    function = context.functions.get(nic.pci or "")
    if function and function.state != "present":
        return Reason("undecided", detail=f"its NIC is {function.state}")
    return context.why_partial("rdma")


def _why_unlocated(context: RuleContext) -> Reason | None:
    """Tools show RDMA devices by name alone where sysfs did not answer: any of them may be on this NIC."""
    homeless = [nic.label for nic in context.topology.nics if nic.pci is None and nic.ports and not nic.software]
    if not homeless:
        return None
    return Reason("not-shown", detail=f"which NIC these RDMA devices belong to is not known: {join_labels(homeless)}")


def _current_identity(context: RuleContext, device: Known, match: MatchedDevices) -> Known:
    """A part under what its device is called now; a device by its old name, which another may have now."""
    kind, _, rest = device.subject.partition(":")
    if kind in DEVICES:
        return replace(device, label=f"former {device.label}")
    now, part = id_of(match.at[owner_of(device.subject)]), rest.rpartition("/")[2]
    label = f"{context.gpus[now].label} NVLink {part}" if kind == "link" else f"{context.nics[now].label}/{part}"
    return replace(device, subject=f"{kind}:{now}/{part}", label=label)


def _group_lost(context: RuleContext, lost: Sequence[Known]) -> list[list[Known]]:
    """What was lost as one: all below a port that is gone too, functions of a card, links of a GPU, ports of a NIC."""
    groups: dict[str, list[Known]] = {}
    for device in lost:
        gone = [port for port in device.above if _is_port_gone(context, port)]
        kind, _, rest = device.subject.partition(":")
        place = rest.rpartition("." if kind in DEVICES else "/")[0]
        groups.setdefault(gone[-1] if gone else f"{kind in DEVICES} {place}", []).append(device)
    return list(groups.values())


def _fail_lost(context: RuleContext, group: Sequence[Known]) -> Fail:
    first = min(group, key=lambda device: (-SEVERITIES.index(_severity(device)), device.subject))
    taken = (context.history.last_good if context.history else None) or "an earlier run"
    others = sorted(device.label for device in group if device is not first)
    kinds = {kind_of(device) for device in group}
    ids = {id_of(device.subject) for device in group if kind_of(device) in DEVICES}
    ids |= {id_of(owner_of(device.subject)) for device in group if not ids}
    ids |= {port for device in group for port in device.above if _is_port_gone(context, port)}
    ids |= {device.above[0] for device in group if device.above}
    ids |= {near_rail_id(gpu) for device in group if kind_of(device) == "nic" for gpu in _near_gpus(context, device)}
    return _about(first).fail(
        summary=f"{'was up' if kinds == {'link'} else 'was here'} in the inventory of {taken}, and is not now"
        + (f"; nor {join_labels(others)}" if others else ""),
        impact=_impact(context, group),
        evidence=tuple(
            Evidence(
                f"{device.label}, inventory of {taken}",
                ", ".join(filter(None, (id_of(device.subject), device.detail, device.identity))),
                "the state directory (--state-dir)",
            )
            for device in group[:8]
        ),
        severity=_severity(first),
        cause=first.identity or "",
        ids=frozenset(ids),
        # a GPU may be below a switch of its own
        explains_ids=frozenset(ids).union(*(device.above for device in group)),
    )


def _is_port_gone(context: RuleContext, port: str) -> bool:
    """A port that is gone, whether it is still listed or not."""
    function = context.functions.get(port)
    return function is None or function.state == "gone"


def _near_gpus(context: RuleContext, nic: Known) -> list[str]:
    """GPUs that shared a PCIe switch with a NIC."""
    known = context.history.inventory if context.history else []
    gpus = [device for device in known if kind_of(device) == "gpu"]
    return [id_of(device.subject) for device in gpus if set(device.above) & set(nic.above)]


def _impact(context: RuleContext, group: Sequence[Known]) -> str:
    words = {"gpu": "GPUs", "nvswitch": "NVSwitches", "nic": "NICs", "port": "ports", "link": "NVLinks"}
    lost = Counter(map(kind_of, group))
    known = Counter(map(kind_of, context.history.inventory if context.history else ()))
    parts = [f"{lost[kind]} of {known[kind]} {words[kind]}" for kind in words if kind in lost]
    return f"{' and '.join(parts)} lost; jobs that ask for the whole node do not start, or run slower."


def _severity(device: Known) -> str:
    kind = kind_of(device)
    return _SEVERITY.get(kind, "warning" if device.role in _WITHOUT_USE else "error")
