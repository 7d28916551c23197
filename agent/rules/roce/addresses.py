"""IP addresses and GIDs of RoCE ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import one_level_lower
from agent.rules.nccl.prerequisites import mapped_libraries
from agent.rules.nccl.settings import (
    EffectiveSetting,
    effective_settings,
    parse_number,
    why_files_unread,
    why_jobs_unread,
)
from agent.rules.node_wide import count_faults, merge_if_on_all, on_all
from agent.rules.roce.ports import ELSEWHERE, RocePort, roce_ports, visible_interface
from agent.rules.rule import NODE, Fail, Result, Unknown, rule

_GID_V1_ONLY_V2 = "RoCE v2"
_LINK_LOCAL = "fe80:"


@rule("roce-gid-v1-only", each=roce_ports, merge=on_all("RoCE v1 addresses only on every RoCE port"))
def roce_gid_v1_only(roce_port: RocePort) -> Result:
    gids = roce_port.port.gids
    if any(gid.type == _GID_V1_ONLY_V2 for gid in gids):
        return roce_port.passes()
    if roce_port.nic.state == "other_namespace":
        return roce_port.unknown(ELSEWHERE)
    if not roce_port.port.gids_known:
        return roce_port.unknown("not-read", fact="its GID table")
    if not gids:
        return roce_port.unknown(
            "namespace-hides", detail="its GID table is empty: no interface of it is in this network namespace"
        )
    if any(gid.type is None for gid in gids):
        return roce_port.unknown("not-read", fact="the types of its GIDs")
    flat = all(gid.gid.lower().startswith(_LINK_LOCAL) for gid in gids)
    return roce_port.fail(
        summary=f"{len(gids)} GIDs, all of RoCE v1" + (" and link-local" if flat else ""),
        impact="This traffic passes no router, and no switch puts it into the lossless class.",
        evidence=tuple(
            Evidence(
                f"GID {gid.index} of {roce_port.label}",
                f"{gid.gid} {gid.type}",
                f"{roce_port.folder}/gid_attrs/types/{gid.index}",
            )
            for gid in gids[:4]
        ),
        severity="info" if flat else roce_port.severity("error"),
        cause="flat" if flat else "",
    )


def _merge_no_ip(context: RuleContext, answers: Sequence[Result]) -> Iterable[Fail]:
    """Where no port has an address, that is likely so by design."""
    del context
    faults, judged = count_faults(answers)
    if len(faults) < judged:
        return faults
    design = [replace(fault, severity="info", confidence="low", cause="all") for fault in faults]
    return merge_if_on_all(design, judged, "link-local addresses only on every RoCE port")


@rule("roce-no-ip", each=roce_ports, merge=_merge_no_ip)
def roce_no_ip(roce_port: RocePort) -> Result:
    gids = roce_port.port.gids
    if any(not gid.gid.lower().startswith(_LINK_LOCAL) for gid in gids):
        return roce_port.passes()
    netdev = visible_interface(roce_port)
    if not isinstance(netdev, Netdev):
        return netdev
    if not roce_port.port.gids_known or not gids:
        return roce_port.unknown("not-shown", detail="its GID table could not be read, or is empty")
    source = f"ip addr show {netdev.label}"
    return roce_port.fail(
        summary=f"{len(gids)} GIDs, all link-local: {netdev.label} has no IPv4 and no global IPv6 address",
        impact="This rail reaches nothing outside its subnet; connections to rails with addresses fail.",
        evidence=(
            Evidence(f"addresses of {netdev.label}", ", ".join(netdev.addresses) or "none", source),
            *(
                Evidence(f"GID {gid.index} of {roce_port.label}", gid.gid, f"{roce_port.folder}/gids/{gid.index}")
                for gid in gids[:4]
            ),
        ),
        severity=roce_port.severity("warning"),
        ids=roce_port.ids | {netdev.id},
    )


_KEY = "NCCL_IB_GID_INDEX"
_GID_INDEX_WRONG_V1, _GID_INDEX_WRONG_V2 = "IB/RoCE v1", "RoCE v2"


@rule("roce-gid-index-wrong")
def roce_gid_index_wrong(context: RuleContext) -> Iterator[Result]:
    values = [
        setting
        for setting in effective_settings(context, _KEY)
        if (parse_number(setting.value) or 0) >= 0 and setting.value.strip()
    ]
    if not values:
        why = why_files_unread(context)
        yield (
            NODE.unknown(why)
            if why
            else NODE.not_applicable("by-design", detail=f"{_KEY} is not set: NCCL chooses a GID itself")
        )
        return
    ports: list[RocePort] = []
    for port in roce_ports(context):
        if not isinstance(port, RocePort):
            yield port
        elif port.nic.role != "rail":
            yield port.not_applicable("other-kind", detail=f"role {port.nic.role}: NCCL's settings are for rails")
        else:
            ports.append(port)
    answers = [_judge_port_index(port, values) for port in ports]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from merge_if_on_all(
        faults, len(answers), f"{_KEY}={values[0].value} in {values[0].source} is wrong on every RoCE rail"
    )


def _judge_port_index(roce_port: RocePort, values: list[EffectiveSetting]) -> Result:
    answers = [_judge_gid_index_wrong(roce_port, where) for where in values]
    for kind in (Fail, Unknown):
        chosen = next((answer for answer in answers if isinstance(answer, kind)), None)
        if chosen:
            return chosen
    return roce_port.passes()


def _judge_gid_index_wrong(roce_port: RocePort, where: EffectiveSetting) -> Result:
    index = parse_number(where.value) or 0
    if roce_port.nic.state == "other_namespace":
        return roce_port.unknown(ELSEWHERE)
    gid = next((gid for gid in roce_port.port.gids if gid.index == index), None)
    if gid is None and not (roce_port.port.gids_known and roce_port.port.gids):
        return roce_port.unknown("not-shown", detail="its GID table could not be read, or is empty")
    if gid is not None and gid.type is None:
        return roce_port.unknown("not-read", fact="the types of its GIDs")
    if gid is not None and gid.type != _GID_INDEX_WRONG_V1:
        return roce_port.passes()
    good = [str(other.index) for other in roce_port.port.gids if other.type == _GID_INDEX_WRONG_V2]
    gid_text = f"{gid.gid} {gid.type}" if gid else "no GID"
    return roce_port.fail(
        summary=f"{_KEY}={where.value.strip()} in {where.source}: index {index} is {gid_text if gid else 'empty'} here",
        impact="This traffic passes no router and is in no lossless class."
        if gid
        else "No connection over this rail succeeds: jobs end with error 12 after 7 retries of 4.3 s (NCCL's default).",
        remedy=f"Remove {_KEY} (NCCL 2.21 or later chooses RoCE v2 itself)"
        + (f", or use an index of RoCE v2: here {', '.join(good[:4])}." if good else "."),
        evidence=(
            where.evidence(_KEY),
            Evidence(f"GID {index} of {roce_port.label}", gid_text, f"{roce_port.folder}/gid_attrs/types/{index}"),
        ),
        severity="error" if where.persistent else one_level_lower("error"),
        cause="v1" if gid else "empty",
    )


_CHOOSES = (2, 21)


@rule("roce-nccl-gid-default-old")
def roce_nccl_gid_default_old(context: RuleContext) -> Iterator[Result]:
    rails = [port for port in roce_ports(context) if isinstance(port, RocePort) and port.nic.role == "rail"]
    if not rails:
        why = context.why_probe_failed("rdma")
        yield (
            NODE.unknown(why)
            if why and context.topology.nics
            else NODE.not_applicable("not-in-use", detail="no active RoCE rail")
        )
        return
    used = mapped_libraries(context, "libnccl.so")
    old = [row for row in used if row.version and _parse_version(row.version) < _CHOOSES]
    nameless = [row for row in used if not row.version]
    unread = why_files_unread(context) or why_jobs_unread(context)
    if effective_settings(context, _KEY):
        yield NODE.passes()
    elif unread:
        yield NODE.unknown(unread)
    elif not old:
        why = Reason("not-known", fact=f"the version of {nameless[0].path}") if nameless else None
        silent = NODE.passes() if used else NODE.not_applicable("not-in-use", detail="no running job uses NCCL")
        yield NODE.unknown(why) if why else silent
    else:
        yield from _judge_gid_default(rails, [(row.path, row.version or "") for row in old])


def _judge_gid_default(rails: list[RocePort], old: list[tuple[str, str]]) -> Iterator[Result]:
    firsts = [(rail, next((gid for gid in rail.port.gids if gid.index == 0), None)) for rail in rails]
    wrong = [(roce_port, gid) for roce_port, gid in firsts if gid and gid.type == "IB/RoCE v1"]
    if not wrong:
        known = all(roce_port.port.gids_known and gid and gid.type for roce_port, gid in firsts)
        yield NODE.passes() if known else NODE.unknown("not-read", fact="GID 0 of a RoCE rail")
        return
    path, version = old[0]
    yield NODE.fail(
        summary=f"jobs use NCCL {version} without {_KEY}: it takes GID 0, of RoCE v1",
        impact="This traffic passes no router and is in no lossless class.",
        evidence=(
            Evidence("libnccl", f"{path} ({version})", "/proc/*/maps"),
            *(
                Evidence(
                    f"GID 0 of {roce_port.label}", f"{gid.gid} {gid.type}", f"{roce_port.folder}/gid_attrs/types/0"
                )
                for roce_port, gid in wrong[:4]
                if gid
            ),
        ),
        ids=frozenset().union(*(roce_port.ids for roce_port, _ in wrong)),
    )


def _parse_version(text: str) -> tuple[int, ...]:
    """Numbers of a version.

    >>> _parse_version("2.20.5") < (2, 21) <= _parse_version("2.21.5")
    True
    """
    return tuple(int(part) for part in re.findall(r"[0-9]{1,6}", text))
