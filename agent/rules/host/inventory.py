"""Devices of the last run that are missing now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Nic
from agent.model.report import Known
from agent.rules import gates
from agent.rules.context import RuleContext
from agent.rules.devices import near_rail_id, unreachable_reason
from agent.rules.host.inventory_matching import DEVICES, MatchedDevices, build_inventory, match_devices, owner_of
from agent.rules.nvlink.link_counts import LinkCounts, link_counts
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

_SEVERITY = {"gpu": "critical", "nvswitch": "critical"}
_WITHOUT_USE = ("unused", "auxiliary")
_ON_PURPOSE = {
    "vfio": "bound to vfio-pci: it waits for a virtual machine",
    "no_driver": "no driver is bound to its NIC",
    "other_namespace": "its RDMA device is in another network namespace",
}


@rule("inventory-lost")
def inventory_lost(case: RuleContext) -> Iterator[Result]:
    first = gates.has_inventory(case)
    if first is not None:
        yield first
        return
    known = case.history.inventory if case.history else []
    match = match_devices(known, build_inventory(case.topology))
    tallied = {one.subject: one for one in link_counts(case)}
    lost: list[Known] = []
    for each in known:
        answer = _judge_known(case, each, match, tallied)
        if answer is None:
            lost.append(_current_identity(case, each, match))
        else:
            yield answer
    for group in _group_lost(case, lost):
        yield _fail_lost(case, group)


def _judge_known(
    case: RuleContext, each: Known, match: MatchedDevices, tallied: Mapping[str, LinkCounts | Result]
) -> Result | None:
    kind = each.subject.partition(":")[0]
    if kind in DEVICES:
        return _judge_device(case, each, match)
    if owner_of(each.subject) not in match.at:
        return NotApplicable(each.subject, "a part of a device that is not here: it is judged with that")
    if kind == "port":
        return _judge_port(case, each, match)
    return _judge_link(case, each, tallied.get(match.at[owner_of(each.subject)]))


def _judge_device(case: RuleContext, each: Known, match: MatchedDevices) -> Result | None:
    """A GPU, NVSwitch or NIC; None: it is lost."""
    now = case.functions.get(match.at.get(each.subject, "").partition(":")[2])
    if now and now.state in ("gone", "changed_during_scan"):
        return NotApplicable(each.subject, unreachable_reason(now) or now.state)
    if each.subject in match.at or each.subject in match.replaced:
        return Pass(each.subject)
    if each.subject.partition(":")[2] in case.functions:
        return NotApplicable(each.subject, "a function is listed at its address, and other rules judge it")
    if case.bus_unread:
        return Unknown(each.subject, case.bus_unread)
    if case.virtual_machine:
        return Unknown(each.subject, "not here, in a virtual machine: the hypervisor gives and takes devices")
    if each.subject in match.unsure:
        where = match.unsure[each.subject].partition(":")[2]
        return Unknown(each.subject, f"not at its address; it may be the one that is new at {where}")
    return None


def _judge_port(case: RuleContext, each: Known, match: MatchedDevices) -> Result | None:
    """A port of a NIC that is here; None: it is lost."""
    if each.subject in match.at:
        return Pass(each.subject)
    nic = case.nics[match.at[owner_of(each.subject)].partition(":")[2]]
    if nic.state in _ON_PURPOSE:
        return NotApplicable(each.subject, _ON_PURPOSE[nic.state])
    unread = case.probe_failure("rdma") or _partial_reason(case, nic) or _unlocated_reason(case)
    if unread:
        return Unknown(each.subject, unread)
    if case.software.rdma_namespaces == "exclusive" and not nic.ports:
        return Unknown(each.subject, "RDMA devices of other network namespaces are not seen here")
    if case.virtual_machine:
        return Unknown(each.subject, "not here, in a virtual machine: the hypervisor gives and takes devices")
    return None


def _partial_reason(case: RuleContext, nic: Nic) -> str | None:
    """Why ports of a NIC may be there that are not told."""
    function = case.functions.get(nic.pci or "")
    if function and function.state != "present":
        return f"its NIC is {function.state}"
    runs = [case.probes[name] for name in case.providers["rdma"] if name in case.probes]
    if any(run.status == "ok" for run in runs):
        return None
    return next((f"{run.name}: {run.reason or run.status}" for run in runs if run.status == "partial"), None)


def _unlocated_reason(case: RuleContext) -> str | None:
    """Tools tell RDMA devices by name alone where sysfs did not answer: any of them may be on this NIC."""
    homeless = [nic.label for nic in case.topology.nics if nic.pci is None and nic.ports and not nic.software]
    return f"which NIC these RDMA devices belong to is not known: {join_labels(homeless)}" if homeless else None


def _judge_link(case: RuleContext, each: Known, tally: LinkCounts | Result | None) -> Result | None:
    """An NVLink of a GPU that is here; None: it is lost."""
    if not isinstance(tally, LinkCounts):
        return (
            tally._replace(subject=each.subject) if tally else Unknown(each.subject, "its GPU reports nothing about it")
        )
    number = each.subject.rpartition("/")[2]
    if any(str(link.link) == number for link in tally.active):
        return Pass(each.subject)
    if any(str(link.link) == number for link in tally.unknown):
        return Unknown(each.subject, "the state of this link is not known")
    if case.virtual_machine:
        return Unknown(each.subject, "down, in a virtual machine: the hypervisor switches NVLinks by partition")
    return None


def _current_identity(case: RuleContext, each: Known, match: MatchedDevices) -> Known:
    """A part under what its device is called now; a device by its old name, which another may have now."""
    kind, _, rest = each.subject.partition(":")
    if kind in DEVICES:
        return msgspec.structs.replace(each, label=f"former {each.label}")
    now, part = match.at[owner_of(each.subject)].partition(":")[2], rest.rpartition("/")[2]
    label = f"{case.gpus[now].label} NVLink {part}" if kind == "link" else f"{case.nics[now].label}/{part}"
    return msgspec.structs.replace(each, subject=f"{kind}:{now}/{part}", label=label)


def _group_lost(case: RuleContext, lost: Sequence[Known]) -> list[list[Known]]:
    """What was lost as one: all below a port that is gone too, functions of a card, links of a GPU, ports of a NIC."""
    groups: dict[str, list[Known]] = {}
    for each in lost:
        gone = [port for port in each.above if _is_port_gone(case, port)]
        kind, _, rest = each.subject.partition(":")
        place = rest.rpartition("." if kind in DEVICES else "/")[0]
        groups.setdefault(gone[-1] if gone else f"{kind in DEVICES} {place}", []).append(each)
    return list(groups.values())


def _fail_lost(case: RuleContext, group: Sequence[Known]) -> Fail:
    first = min(group, key=lambda each: (-SEVERITIES.index(_severity(each)), each.subject))
    taken = (case.history.last_good if case.history else None) or "an earlier run"
    others = sorted(each.label for each in group if each is not first)
    kinds = {each.subject.partition(":")[0] for each in group}
    places = {each.subject.partition(":")[2] for each in group if each.subject.partition(":")[0] in DEVICES}
    places |= {owner_of(each.subject).partition(":")[2] for each in group if not places}
    places |= {port for each in group for port in each.above if _is_port_gone(case, port)}
    places |= {each.above[0] for each in group if each.above}
    places |= {near_rail_id(gpu) for each in group if each.subject.startswith("nic:") for gpu in _near_gpus(case, each)}
    return Fail(
        subject=first.subject,
        label=first.label,
        summary=f"{'was up' if kinds == {'link'} else 'was here'} in the inventory of {taken}, and is not now"
        + (f"; nor {join_labels(others)}" if others else ""),
        impact=_impact(case, group, kinds),
        remedy="Power cycle the node; if it stays away, reseat or replace it. Taken out on purpose: run once with "
        "--accept-inventory.",
        evidence=tuple(
            Evidence(
                what=f"{each.label}, inventory of {taken}",
                value=", ".join(filter(None, (each.subject.partition(":")[2], each.detail, each.identity))),
                source="the state directory (--state-dir)",
            )
            for each in group[:8]
        ),
        severity=_severity(first),
        cause=first.identity or "",
        places=frozenset(places),
        covers=frozenset(places).union(*(each.above for each in group)),  # a GPU may be below a switch of its own
    )


def _is_port_gone(case: RuleContext, port: str) -> bool:
    """A port that is gone, whether it is still listed or not."""
    function = case.functions.get(port)
    return function is None or function.state == "gone"


def _near_gpus(case: RuleContext, nic: Known) -> list[str]:
    """GPUs that shared a PCIe switch with a NIC."""
    known = case.history.inventory if case.history else []
    gpus = [each for each in known if each.subject.startswith("gpu:")]
    return [each.subject.partition(":")[2] for each in gpus if set(each.above) & set(nic.above)]


def _impact(case: RuleContext, group: Sequence[Known], kinds: set[str]) -> str:
    known = case.history.inventory if case.history else []
    words = {"gpu": "GPUs", "nvswitch": "NVSwitches", "nic": "NICs", "port": "ports", "link": "NVLinks"}
    parts = [
        f"{sum(each.subject.startswith(f'{kind}:') for each in group)} of "
        f"{sum(each.subject.startswith(f'{kind}:') for each in known)} {words[kind]}"
        for kind in words
        if kind in kinds
    ]
    return f"{' and '.join(parts)} lost; jobs that ask for the whole node do not start, or run slower."


def _severity(each: Known) -> str:
    kind = each.subject.partition(":")[0]
    return _SEVERITY.get(kind, "warning" if each.role in _WITHOUT_USE else "error")
