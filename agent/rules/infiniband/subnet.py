"""The subnet manager, partitions and services of the InfiniBand subnet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.reasons import NO_EARLIER_RUN
from agent.rules.cabling import why_still_booting
from agent.rules.context import RuleContext
from agent.rules.devices import severity_by_role
from agent.rules.infiniband.ports import (
    NO_LID,
    PLUGGED,
    WAITS_FOR_SM,
    IbPort,
    has_no_infiniband,
    ib_ports,
    is_held_down,
)
from agent.rules.nccl.hcas import Hca, rdma_rails, report_no_rails, settings_evidence, severity_by_scope
from agent.rules.nccl.prerequisites import mapped_libraries
from agent.rules.nccl.settings import (
    EffectiveSetting,
    effective_settings,
    parse_number,
    why_files_unread,
    why_jobs_unread,
)
from agent.rules.node_wide import count_faults, merge_failures, on_all
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import join_labels

_NO_LID = (0, NO_LID)
_WITH_LINK = ("INIT", "ARMED")  # states that no port without a physical link has


def _merge_without_sm(context: RuleContext, answers: Sequence[Result]) -> list[Fail]:
    """No subnet manager on any port: one finding, more severe where rails are among them."""
    del context
    found, judged = count_faults(answers)
    faults = [replace(fault, ids=fault.ids | {WAITS_FOR_SM}) for fault in found]
    if len(faults) < max(judged, 2):
        return faults
    one = merge_failures(faults, f"no subnet manager on any of {len(faults)} InfiniBand ports")
    return [
        replace(
            one,
            impact="The node reaches no other node over InfiniBand: it can take part in no job of several nodes.",
            evidence=tuple(fault.evidence[0] for fault in faults),
            severity="critical" if any(fault.severity == "error" for fault in faults) else one.severity,
        )
    ]


@rule("ib-no-sm", each=lambda context: ib_ports(context, PLUGGED), merge=_merge_without_sm)
def ib_no_sm(context: RuleContext, ib_port: IbPort) -> Result:
    port = ib_port.port
    if port.state == "ACTIVE":
        lids = {port.lid, port.sm_lid} if not (context.virtual_machine or ib_port.nic.virtual_function) else set()
        return _fail_no_sm(ib_port) if lids.intersection(_NO_LID) else ib_port.passes()
    if port.phys_state is None and port.state not in _WITH_LINK:
        return ib_port.unknown("not-read", fact="its physical state")
    if port.phys_state not in ("LinkUp", None):
        return ib_port.not_applicable("judged-elsewhere", detail="not physically up: see ib-port-down")
    is_virtual = ib_port.nic.virtual_function and (port.state == "DOWN" or port.sm_lid not in (None, *_NO_LID))
    if is_virtual or is_held_down(port):
        return ib_port.not_applicable("judged-elsewhere", detail="a virtual function: see ib-port-down")
    waiting = why_still_booting(context)
    return ib_port.unknown(waiting.prefixed(f"{port.state}; ")) if waiting else _fail_no_sm(ib_port)


def _fail_no_sm(ib_port: IbPort) -> Fail:
    port = ib_port.port
    lids = [("LID", port.lid, "lid"), ("LID of the subnet manager", port.sm_lid, "sm_lid")]
    return ib_port.fail(
        summary=f"link is up, but the port is stuck in {port.state}: no subnet manager",
        impact="The port carries nothing until a subnet manager gives it an address.",
        evidence=(
            ib_port.evidence("state", f"{port.state}, {port.phys_state or 'physical state not known'}", "state"),
            *(ib_port.evidence(what, f"{value:#x}", file) for what, value, file in lids if value is not None),
        ),
        severity=severity_by_role("error", ib_port.nic),
    )


_WHAT = {"sm_lid": "the subnet manager's LID", "lid": "its own LID"}


@rule("ib-sm-changed", each=ib_ports, merge=on_all("another subnet manager or LID on every InfiniBand port"))
def ib_sm_changed(context: RuleContext, ib_port: IbPort) -> Result:
    if ib_port.port.state != "ACTIVE":
        return ib_port.not_applicable("not-in-use", detail="not active")
    if context.history is None or not context.history.runs:
        return ib_port.unknown("no-baseline", why=NO_EARLIER_RUN)
    was = {name: text for name, text in context.history.settings.get(ib_port.subject, {}).items() if name in _WHAT}
    now = {"sm_lid": ib_port.port.sm_lid, "lid": ib_port.port.lid}
    changed = {name: text for name, text in was.items() if now[name] is not None}
    if not changed:
        return ib_port.passes()
    return ib_port.fail(
        summary="; ".join(f"{_WHAT[name]} is {now[name]}, was {text}" for name, text in sorted(changed.items())),
        impact="Where the port's own LID changed, the open connections of jobs on this port break.",
        evidence=tuple(
            ib_port.evidence(name, f"{now[name]}, was {text}", name) for name, text in sorted(changed.items())
        ),
        severity="info",
    )


_DEFAULT = "fe80:0000:0000:0000"
_Groups = dict[str, list[IbPort]]


@rule("ib-subnet-mixed")
def ib_subnet_mixed(context: RuleContext) -> Iterator[Result]:
    rails: list[IbPort] = []
    for port in _list_rails(context):
        if not isinstance(port, IbPort):
            if isinstance(port, Unknown):
                yield port
        elif port.port.state == "ACTIVE":
            if _subnet_prefix(port):
                rails.append(port)
            else:
                yield port.unknown("not-read", fact="its GID table")
    if len(rails) < 2:
        if context.why_probe_failed("rdma") is None or has_no_infiniband(context):
            yield NODE.not_applicable(
                "nothing-to-compare", detail="fewer than two active InfiniBand rails whose subnet is known"
            )
        return
    prefixes = _group_by(rails, _subnet_prefix)
    managers = _group_by(rails, lambda ib_port: str(ib_port.port.sm_lid or ""))
    sizes = {len(group) for group in prefixes.values()}
    if len(sizes) > 1:
        few = [ib_port for group in prefixes.values() if len(group) < max(sizes) for ib_port in group]
        yield _fail_subnet_mixed(
            rails, few, f"other subnets than most rails: {join_labels([ib_port.label for ib_port in few])}", "prefixes"
        )
    elif set(prefixes) == {_DEFAULT} and len(managers.keys() - {""}) > 1:
        managers_text = "; ".join(f"{lid}: {join_labels([e.label for e in group])}" for lid, group in managers.items())
        most = max(managers.values(), key=len)
        few = [ib_port for ib_port in rails if ib_port not in most]
        yield _fail_subnet_mixed(
            rails,
            few if _is_minority(rails, few) else rails,
            f"one default prefix, and several subnet managers (LID {managers_text})",
            "default",
        )
    else:
        yield NODE.passes()


def _subnet_prefix(ib_port: IbPort) -> str:
    """The first four groups of GID 0; "" where it is not known."""
    gid = next((gid.gid for gid in ib_port.port.gids if gid.index == 0), "")
    return ":".join(gid.lower().split(":")[:4]) if gid.count(":") == 7 else ""


def _group_by(rails: list[IbPort], key: Callable[[IbPort], str]) -> _Groups:
    groups: _Groups = {}
    for rail in rails:
        groups.setdefault(key(rail), []).append(rail)
    return groups


def _fail_subnet_mixed(rails: list[IbPort], few: list[IbPort], summary: str, cause: str) -> Fail:
    return NODE.fail(
        summary=summary,
        impact="Rails in different subnets cannot reach each other; connections by address fail.",
        evidence=tuple(
            rail.evidence("subnet", f"{_subnet_prefix(rail)}, subnet manager's LID {rail.port.sm_lid}", "gids/0")
            for rail in rails[:16]
        ),
        severity="warning" if _is_minority(rails, few) else "info",
        confidence="medium",
        cause=cause,
        ids=frozenset().union(*(ib_port.ids for ib_port in few)),
    )


def _is_minority(rails: list[IbPort], few: list[IbPort]) -> bool:
    """Whether few of several rails are elsewhere: a cable in the wrong switch, rather than a plane of its own."""
    return len(rails) >= _SEVERAL and 2 * len(few) < len(rails)


_SEVERAL = 4
_PKEY = "NCCL_IB_PKEY"


@rule("ib-pkey-mismatch", gate=report_no_rails)
def ib_pkey_mismatch(context: RuleContext) -> Result:
    rails = [rail for rail in rdma_rails(context) if rail.port.link_layer == "InfiniBand"]
    why = why_files_unread(context)
    settings = [setting for setting in effective_settings(context, _PKEY) if parse_number(setting.value)]
    if not rails:
        return NODE.not_applicable("not-in-use", detail="no active InfiniBand rail")
    if not settings:
        return NODE.unknown(why) if why else NODE.not_applicable("not-configured", detail=f"{_PKEY} is not set")
    if not all(rail.port.pkeys for rail in rails):
        return NODE.unknown("not-read", fact="partition keys")
    faults = [(where, short) for where in settings if (short := _rails_without_key(where, rails))]
    return _fail_pkey_mismatch(*faults[0]) if faults else NODE.passes()


def _rails_without_key(where: EffectiveSetting, rails: list[Hca]) -> list[Hca]:
    """Rails without a key at that index."""
    return [rail for rail in rails if (parse_number(where.value) or 0) not in range(len(rail.port.pkeys))]


def _fail_pkey_mismatch(where: EffectiveSetting, short: list[Hca]) -> Fail:
    return NODE.fail(
        summary=f"{_PKEY}={where.value} in {where.source}: "
        f"no key at that index on {join_labels([port.label for port in short])}",
        impact="Connections over these rails end with a timeout: jobs of several nodes fail.",
        evidence=(
            where.evidence(_PKEY),
            *(
                Evidence(
                    f"partition keys of {hca.label}",
                    ", ".join(hca.port.pkeys[:8]),
                    f"/sys/class/infiniband/{hca.name}/ports/{hca.port.port}/pkeys",
                )
                for hca in short[:8]
            ),
        ),
        severity=severity_by_scope("error", [where]),
        confidence="medium",
        ids=frozenset().union(*({hca.nic.id, f"{hca.nic.id}/{hca.port.port}"} for hca in short)),
    )


_FULL = 0x8000  # the top bit of a key: full member


def _list_rails(context: RuleContext) -> Iterator[IbPort | Result]:
    return ib_ports(context, ("rail",))


@rule("ib-pkey-limited", each=_list_rails, merge=on_all("limited member of the partition on every InfiniBand rail"))
def ib_pkey_limited(context: RuleContext, ib_port: IbPort) -> Result:
    settings = [setting for setting in effective_settings(context, _PKEY) if parse_number(setting.value) is not None]
    index = (parse_number(settings[0].value) or 0) if settings else 0
    why = None if settings or context.lists_whole else why_files_unread(context)
    keys = ib_port.port.pkeys
    if ib_port.port.state != "ACTIVE":
        return ib_port.not_applicable("not-in-use", detail="not active")
    if not keys:
        return ib_port.unknown("not-read", fact="its partition keys")
    if index not in range(len(keys)):
        return ib_port.not_applicable("judged-elsewhere", detail=f"no key at index {index}: see ib-pkey-mismatch")
    values = [_parse_key(key) for key in keys]
    if values[index] is None:
        return ib_port.unknown("undecided", detail=f"not a partition key: {keys[index]}")
    if (values[index] or 0) & _FULL:
        return ib_port.passes()
    if why:
        return ib_port.unknown(
            "not-shown", detail=f"key 0 is a limited one, and whether {_PKEY} names another is not known: {why}"
        )
    full = [f"{key} at index {n}" for n, key in enumerate(keys) if (values[n] or 0) & _FULL]
    return ib_port.fail(
        summary=f"partition key {keys[index]} (index {index}) is that of a limited member"
        + (f"; a full one is {full[0]}" if full else ""),
        impact="Connections to other limited members end with a timeout, after NCCL's 7 retries of 4.3 s.",
        remedy=(f"set {_PKEY} to the index of the full key, if jobs are in that partition; else " if full else "")
        + "make the port a full member.",
        evidence=(ib_port.evidence("partition keys", ", ".join(keys[:8]), "pkeys"),),
        severity="warning",
    )


def _parse_key(key: str) -> int | None:
    """A partition key as sysfs prints it; None where it is none.

    >>> _parse_key("0x7fff"), _parse_key("what")
    (32767, None)
    """
    return int(key, 16) if re.fullmatch("0x[0-9a-fA-F]{1,4}", key) else None


_AR_DISABLED_KEY = "NCCL_IB_ADAPTIVE_ROUTING"


@rule("ib-ar-disabled", gate=report_no_rails)
def ib_ar_disabled(context: RuleContext) -> Result:
    off = [setting for setting in effective_settings(context, _AR_DISABLED_KEY) if parse_number(setting.value) == 0]
    if not any(rail.port.link_layer == "InfiniBand" for rail in rdma_rails(context)):
        return NODE.not_applicable("not-in-use", detail="no active InfiniBand rail")
    if off:
        return NODE.fail(
            summary=f"{_AR_DISABLED_KEY}={off[0].value} in {off[0].source}",
            impact="Flows that meet on one link share it while other links are idle.",
            evidence=settings_evidence(_AR_DISABLED_KEY, off),
        )
    why = why_files_unread(context)
    return NODE.unknown(why) if why else NODE.passes()


_SHARP_NOT_READY_KEY, _OFF = "NCCL_COLLNET_ENABLE", "NCCL_IBEXT_DISABLE"


@rule("ib-sharp-not-ready", gate=report_no_rails)
def ib_sharp_not_ready(context: RuleContext) -> Result:
    why = why_files_unread(context)
    settings = [setting for setting in effective_settings(context, _SHARP_NOT_READY_KEY) if parse_number(setting.value)]
    if not any(rail.port.link_layer == "InfiniBand" for rail in rdma_rails(context)):
        return NODE.not_applicable("not-in-use", detail="no active InfiniBand rail")
    if not settings:
        if why:
            return NODE.unknown(why)
        return NODE.not_applicable("not-configured", detail=f"{_SHARP_NOT_READY_KEY} is not set: no job asks for SHARP")
    return _judge_sharp_not_ready(context, settings)


def _judge_sharp_not_ready(context: RuleContext, settings: list[EffectiveSetting]) -> Result:
    off = [setting for setting in effective_settings(context, _OFF) if parse_number(setting.value)]
    users = mapped_libraries(context, "libnccl.so")
    why = why_jobs_unread(context)
    if not off and (not users or mapped_libraries(context, "libnccl-net")):
        return NODE.unknown(why) if why else NODE.passes()
    missing = f"{_OFF}={off[0].value} switches its plugin off" if off else "jobs have no network plugin mapped"
    return NODE.fail(
        summary=f"{_SHARP_NOT_READY_KEY}={settings[0].value} asks for SHARP, and {missing}",
        impact="NCCL all-reduce runs over rings and trees instead of inside the switches, and is slower.",
        remedy=f"Remove {_OFF}." if off else "Put HPC-X's nccl_rdma_sharp_plugin on the library path of the jobs.",
        evidence=(
            *settings_evidence(_SHARP_NOT_READY_KEY, settings),
            *settings_evidence(_OFF, off),
            *(Evidence("libnccl", row.path, "/proc/*/maps") for row in users[:2]),
        ),
        cause="switched off" if off else "no plugin",
    )
