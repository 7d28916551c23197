"""Devices of the last run that are missing now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
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
    "vfio": Reason("guest", detail="bound to vfio-pci: it waits for a virtual machine"),
    "no_driver": Reason("not-in-use", detail="no driver is bound to its NIC"),
    "other_namespace": Reason("container", detail="its RDMA device is in another network namespace"),
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
    for known_device in known:
        answer = _judge_known(case, known_device, match, tallied)
        if answer is None:
            lost.append(_current_identity(case, known_device, match))
        else:
            yield answer
    for group in _group_lost(case, lost):
        yield _fail_lost(case, group)


def _judge_known(
    case: RuleContext, known_device: Known, match: MatchedDevices, tallied: Mapping[str, LinkCounts | Result]
) -> Result | None:
    kind = known_device.subject.partition(":")[0]
    if kind in DEVICES:
        return _judge_device(case, known_device, match)
    if owner_of(known_device.subject) not in match.at:
        return NotApplicable(
            known_device.subject,
            Reason("judged-elsewhere", detail="a part of a device that is not here: it is judged with that"),
        )
    if kind == "port":
        return _judge_port(case, known_device, match)
    return _judge_link(case, known_device, tallied.get(match.at[owner_of(known_device.subject)]))


def _judge_device(case: RuleContext, known_device: Known, match: MatchedDevices) -> Result | None:
    """A GPU, NVSwitch or NIC; None: it is lost."""
    now = case.functions.get(match.at.get(known_device.subject, "").partition(":")[2])
    if now and now.state in ("gone", "changed_during_scan"):
        return NotApplicable(known_device.subject, unreachable_reason(now) or Reason("not-in-use", detail=now.state))
    if known_device.subject in match.at or known_device.subject in match.replaced:
        return Pass(known_device.subject)
    if known_device.subject.partition(":")[2] in case.functions:
        return NotApplicable(
            known_device.subject,
            Reason("judged-elsewhere", detail="a function is listed at its address, and other rules judge it"),
        )
    if case.bus_unread:
        return Unknown(known_device.subject, case.bus_unread)
    if case.virtual_machine:
        return Unknown(
            known_device.subject,
            Reason("guest-hides", detail="missing, in a virtual machine: the hypervisor adds and removes devices"),
        )
    if known_device.subject in match.unsure:
        where = match.unsure[known_device.subject].partition(":")[2]
        return Unknown(
            known_device.subject,
            Reason("undecided", detail=f"not at its address; it may be the one that is new at {where}"),
        )
    return None


def _judge_port(case: RuleContext, known_device: Known, match: MatchedDevices) -> Result | None:
    """A port of a NIC that is here; None: it is lost."""
    if known_device.subject in match.at:
        return Pass(known_device.subject)
    nic = case.nics[match.at[owner_of(known_device.subject)].partition(":")[2]]
    if nic.state in _ON_PURPOSE:
        return NotApplicable(known_device.subject, _ON_PURPOSE[nic.state])
    unread = case.probe_failure("rdma") or _partial_reason(case, nic) or _unlocated_reason(case)
    if unread:
        return Unknown(known_device.subject, unread)
    if case.software.rdma_namespaces == "exclusive" and not nic.ports:
        return Unknown(
            known_device.subject,
            Reason("namespace-hides", detail="RDMA devices of other network namespaces are not seen here"),
        )
    if case.virtual_machine:
        return Unknown(
            known_device.subject,
            Reason("guest-hides", detail="missing, in a virtual machine: the hypervisor adds and removes devices"),
        )
    return None


def _partial_reason(case: RuleContext, nic: Nic) -> Reason | None:
    """Why ports of a NIC may be there that are not told."""
    function = case.functions.get(nic.pci or "")
    if function and function.state != "present":
        return Reason("undecided", detail=f"its NIC is {function.state}")
    return case.partial_reason("rdma")


def _unlocated_reason(case: RuleContext) -> Reason | None:
    """Tools tell RDMA devices by name alone where sysfs did not answer: any of them may be on this NIC."""
    homeless = [nic.label for nic in case.topology.nics if nic.pci is None and nic.ports and not nic.software]
    if not homeless:
        return None
    return Reason("not-shown", detail=f"which NIC these RDMA devices belong to is not known: {join_labels(homeless)}")


def _judge_link(case: RuleContext, known_device: Known, tally: LinkCounts | Result | None) -> Result | None:
    """An NVLink of a GPU that is here; None: it is lost."""
    if not isinstance(tally, LinkCounts):
        return (
            replace(tally, subject=known_device.subject)
            if tally
            else Unknown(known_device.subject, Reason("not-shown", detail="its GPU reports nothing about it"))
        )
    number = known_device.subject.rpartition("/")[2]
    if any(str(link.link) == number for link in tally.active):
        return Pass(known_device.subject)
    if any(str(link.link) == number for link in tally.unknown):
        return Unknown(known_device.subject, Reason("not-known", fact="the state of this link"))
    if case.virtual_machine:
        return Unknown(
            known_device.subject,
            Reason("guest-hides", detail="down, in a virtual machine: the hypervisor switches NVLinks by partition"),
        )
    return None


def _current_identity(case: RuleContext, known_device: Known, match: MatchedDevices) -> Known:
    """A part under what its device is called now; a device by its old name, which another may have now."""
    kind, _, rest = known_device.subject.partition(":")
    if kind in DEVICES:
        return replace(known_device, label=f"former {known_device.label}")
    now, part = match.at[owner_of(known_device.subject)].partition(":")[2], rest.rpartition("/")[2]
    label = f"{case.gpus[now].label} NVLink {part}" if kind == "link" else f"{case.nics[now].label}/{part}"
    return replace(known_device, subject=f"{kind}:{now}/{part}", label=label)


def _group_lost(case: RuleContext, lost: Sequence[Known]) -> list[list[Known]]:
    """What was lost as one: all below a port that is gone too, functions of a card, links of a GPU, ports of a NIC."""
    groups: dict[str, list[Known]] = {}
    for known_device in lost:
        gone = [port for port in known_device.above if _is_port_gone(case, port)]
        kind, _, rest = known_device.subject.partition(":")
        place = rest.rpartition("." if kind in DEVICES else "/")[0]
        groups.setdefault(gone[-1] if gone else f"{kind in DEVICES} {place}", []).append(known_device)
    return list(groups.values())


def _fail_lost(case: RuleContext, group: Sequence[Known]) -> Fail:
    first = min(group, key=lambda known_device: (-SEVERITIES.index(_severity(known_device)), known_device.subject))
    taken = (case.history.last_good if case.history else None) or "an earlier run"
    others = sorted(known_device.label for known_device in group if known_device is not first)
    kinds = {known_device.subject.partition(":")[0] for known_device in group}
    places = {
        known_device.subject.partition(":")[2]
        for known_device in group
        if known_device.subject.partition(":")[0] in DEVICES
    }
    places |= {owner_of(known_device.subject).partition(":")[2] for known_device in group if not places}
    places |= {port for known_device in group for port in known_device.above if _is_port_gone(case, port)}
    places |= {known_device.above[0] for known_device in group if known_device.above}
    places |= {
        near_rail_id(gpu)
        for known_device in group
        if known_device.subject.startswith("nic:")
        for gpu in _near_gpus(case, known_device)
    }
    return Fail(
        subject=first.subject,
        label=first.label,
        summary=f"{'was up' if kinds == {'link'} else 'was here'} in the inventory of {taken}, and is not now"
        + (f"; nor {join_labels(others)}" if others else ""),
        impact=_impact(case, group, kinds),
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
        places=frozenset(places),
        covers=frozenset(places).union(
            *(known_device.above for known_device in group)
        ),  # a GPU may be below a switch of its own
    )


def _is_port_gone(case: RuleContext, port: str) -> bool:
    """A port that is gone, whether it is still listed or not."""
    function = case.functions.get(port)
    return function is None or function.state == "gone"


def _near_gpus(case: RuleContext, nic: Known) -> list[str]:
    """GPUs that shared a PCIe switch with a NIC."""
    known = case.history.inventory if case.history else []
    gpus = [known_device for known_device in known if known_device.subject.startswith("gpu:")]
    return [known_device.subject.partition(":")[2] for known_device in gpus if set(known_device.above) & set(nic.above)]


def _impact(case: RuleContext, group: Sequence[Known], kinds: set[str]) -> str:
    known = case.history.inventory if case.history else []
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
