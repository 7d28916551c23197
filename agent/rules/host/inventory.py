"""Devices of the last run that are missing now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
from agent.model.report import Known
from agent.rules import applicability
from agent.rules.context import RuleContext
from agent.rules.devices import near_rail_id, why_unreachable
from agent.rules.host.inventory_matching import DEVICES, MatchedDevices, build_inventory, match_devices, owner_of
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


@rule("inventory-lost")
def inventory_lost(context: RuleContext) -> Iterator[Result]:
    first = applicability.has_inventory(context)
    if first is not None:
        yield first
        return
    known = context.history.inventory if context.history else []
    match = match_devices(known, build_inventory(context.topology))
    tallied = {one.subject: one for one in link_counts(context)}
    lost: list[Known] = []
    for known_device in known:
        answer = _judge_known(context, known_device, match, tallied)
        if answer is None:
            lost.append(_current_identity(context, known_device, match))
        else:
            yield answer
    for group in _group_lost(context, lost):
        yield _fail_lost(context, group)


def _about(known_device: Known) -> NamedSubject:
    return NamedSubject(known_device.subject, known_device.label, frozenset())


def _judge_known(
    context: RuleContext, known_device: Known, match: MatchedDevices, tallied: Mapping[str, LinkCounts | Result]
) -> Result | None:
    kind = known_device.subject.partition(":")[0]
    if kind in DEVICES:
        return _judge_device(context, known_device, match)
    if owner_of(known_device.subject) not in match.at:
        return _about(known_device).not_applicable(
            "judged-elsewhere", detail="a part of a device that is not here: it is judged with that"
        )
    if kind == "port":
        return _judge_port(context, known_device, match)
    tally = tallied.get(match.at[owner_of(known_device.subject)])
    # An NVLink of a GPU that is here; None: it is lost.
    if not isinstance(tally, LinkCounts):
        return (
            replace(tally, subject=known_device.subject)
            if tally
            else _about(known_device).unknown("not-shown", detail="its GPU reports nothing about it")
        )
    number = known_device.subject.rpartition("/")[2]
    if any(str(link.link) == number for link in tally.active):
        return _about(known_device).passes()
    if any(str(link.link) == number for link in tally.unread):
        return _about(known_device).unknown("not-known", fact="the state of this link")
    if context.virtual_machine:
        return _about(known_device).unknown(
            "guest-hides", detail="down, in a virtual machine: the hypervisor switches NVLinks by partition"
        )
    return None


def _judge_device(context: RuleContext, known_device: Known, match: MatchedDevices) -> Result | None:
    """A GPU, NVSwitch or NIC; None: it is lost."""
    now = context.functions.get(match.at.get(known_device.subject, "").partition(":")[2])
    if now and now.state in ("gone", "changed_during_scan"):
        return _about(known_device).not_applicable(why_unreachable(now) or Reason("not-in-use", detail=now.state))
    if known_device.subject in match.at or known_device.subject in match.replaced:
        return _about(known_device).passes()
    if known_device.subject.partition(":")[2] in context.functions:
        return _about(known_device).not_applicable(
            "judged-elsewhere", detail="a function is listed at its address, and other rules judge it"
        )
    if context.why_bus_unread:
        return _about(known_device).unknown(context.why_bus_unread)
    if context.virtual_machine:
        return _about(known_device).unknown(
            "guest-hides", detail="missing, in a virtual machine: the hypervisor adds and removes devices"
        )
    if known_device.subject in match.unsure:
        where = match.unsure[known_device.subject].partition(":")[2]
        return _about(known_device).unknown(
            "undecided", detail=f"not at its address; it may be the one that is new at {where}"
        )
    return None


def _judge_port(context: RuleContext, known_device: Known, match: MatchedDevices) -> Result | None:
    """A port of a NIC that is here; None: it is lost."""
    if known_device.subject in match.at:
        return _about(known_device).passes()
    nic = context.nics[match.at[owner_of(known_device.subject)].partition(":")[2]]
    if nic.state in _ON_PURPOSE:
        return _about(known_device).not_applicable(_ON_PURPOSE[nic.state])
    unread = context.why_probe_failed("rdma") or _why_partial(context, nic) or _why_unlocated(context)
    if unread:
        return _about(known_device).unknown(unread)
    if context.software.rdma_namespaces == "exclusive" and not nic.ports:
        return _about(known_device).unknown(
            "namespace-hides", detail="RDMA devices of other network namespaces are not seen here"
        )
    if context.virtual_machine:
        return _about(known_device).unknown(
            "guest-hides", detail="missing, in a virtual machine: the hypervisor adds and removes devices"
        )
    return None


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


def _current_identity(context: RuleContext, known_device: Known, match: MatchedDevices) -> Known:
    """A part under what its device is called now; a device by its old name, which another may have now."""
    kind, _, rest = known_device.subject.partition(":")
    if kind in DEVICES:
        return replace(known_device, label=f"former {known_device.label}")
    now, part = match.at[owner_of(known_device.subject)].partition(":")[2], rest.rpartition("/")[2]
    label = f"{context.gpus[now].label} NVLink {part}" if kind == "link" else f"{context.nics[now].label}/{part}"
    return replace(known_device, subject=f"{kind}:{now}/{part}", label=label)


def _group_lost(context: RuleContext, lost: Sequence[Known]) -> list[list[Known]]:
    """What was lost as one: all below a port that is gone too, functions of a card, links of a GPU, ports of a NIC."""
    groups: dict[str, list[Known]] = {}
    for known_device in lost:
        gone = [port for port in known_device.above if _is_port_gone(context, port)]
        kind, _, rest = known_device.subject.partition(":")
        place = rest.rpartition("." if kind in DEVICES else "/")[0]
        groups.setdefault(gone[-1] if gone else f"{kind in DEVICES} {place}", []).append(known_device)
    return list(groups.values())


def _fail_lost(context: RuleContext, group: Sequence[Known]) -> Fail:
    first = min(group, key=lambda known_device: (-SEVERITIES.index(_severity(known_device)), known_device.subject))
    taken = (context.history.last_good if context.history else None) or "an earlier run"
    others = sorted(known_device.label for known_device in group if known_device is not first)
    kinds = {known_device.subject.partition(":")[0] for known_device in group}
    ids = {
        known_device.subject.partition(":")[2]
        for known_device in group
        if known_device.subject.partition(":")[0] in DEVICES
    }
    ids |= {owner_of(known_device.subject).partition(":")[2] for known_device in group if not ids}
    ids |= {port for known_device in group for port in known_device.above if _is_port_gone(context, port)}
    ids |= {known_device.above[0] for known_device in group if known_device.above}
    ids |= {
        near_rail_id(gpu)
        for known_device in group
        if known_device.subject.startswith("nic:")
        for gpu in _near_gpus(context, known_device)
    }
    return _about(first).fail(
        summary=f"{'was up' if kinds == {'link'} else 'was here'} in the inventory of {taken}, and is not now"
        + (f"; nor {join_labels(others)}" if others else ""),
        impact=_impact(context, group, kinds),
        evidence=tuple(
            Evidence(
                what=f"{known_device.label}, inventory of {taken}",
                value=", ".join(
                    filter(None, (known_device.subject.partition(":")[2], known_device.detail, known_device.identity))
                ),
                source="the state directory (--state-dir)",
            )
            for known_device in group[:8]
        ),
        severity=_severity(first),
        cause=first.identity or "",
        ids=frozenset(ids),
        explains_ids=frozenset(ids).union(
            *(known_device.above for known_device in group)
        ),  # a GPU may be below a switch of its own
    )


def _is_port_gone(context: RuleContext, port: str) -> bool:
    """A port that is gone, whether it is still listed or not."""
    function = context.functions.get(port)
    return function is None or function.state == "gone"


def _near_gpus(context: RuleContext, nic: Known) -> list[str]:
    """GPUs that shared a PCIe switch with a NIC."""
    known = context.history.inventory if context.history else []
    gpus = [known_device for known_device in known if known_device.subject.startswith("gpu:")]
    return [known_device.subject.partition(":")[2] for known_device in gpus if set(known_device.above) & set(nic.above)]


def _impact(context: RuleContext, group: Sequence[Known], kinds: set[str]) -> str:
    known = context.history.inventory if context.history else []
    words = {"gpu": "GPUs", "nvswitch": "NVSwitches", "nic": "NICs", "port": "ports", "link": "NVLinks"}
    parts = [
        f"{sum(known_device.subject.startswith(f'{kind}:') for known_device in group)} of "
        f"{sum(known_device.subject.startswith(f'{kind}:') for known_device in known)} {words[kind]}"
        for kind in words
        if kind in kinds
    ]
    return f"{' and '.join(parts)} lost; jobs that ask for the whole node do not start, or run slower."


def _severity(known_device: Known) -> str:
    kind = known_device.subject.partition(":")[0]
    return _SEVERITY.get(kind, "warning" if known_device.role in _WITHOUT_USE else "error")
