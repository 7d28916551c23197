"""NICs that differ in firmware or link layer, and mixed driver stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import about_nic, find_device_id, find_function, why_unreachable
from agent.rules.nccl.hcas import Hca, rdma_rails, read_hca_filter, report_no_rails
from agent.rules.nccl.settings import effective_settings, why_files_unread
from agent.rules.peers.parts import PeerPart
from agent.rules.peers.voting import vote
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_LEAST_ALIKE = 3
_UNREAD = Reason("not-read", fact="board id or firmware version of another rail")


@rule("nic-fw-mixed")
def nic_fw_mixed(context: RuleContext) -> Iterator[Result]:
    boards: dict[str, list[Nic]] = {}
    unread = False
    for nic in sorted(context.rails, key=lambda rail: rail.id):
        silent = _not_judged_reason(context, nic)
        if silent:
            unread |= isinstance(silent, Unknown)
            yield silent
        else:
            boards.setdefault(nic.board_id or "", []).append(nic)
    unplaced = [nic for nic in context.topology.nics if nic.role == "unknown" and not nic.virtual_function]
    if context.why_no_rail_known and not context.virtual_machine:
        yield NODE.unknown(context.why_no_rail_known)
    elif not context.rails and unplaced and context.why_bus_unread is not None:
        yield NODE.unknown("role-not-known", why=str(context.why_bus_unread))
    elif not context.rails and (context.why_bus_unread is None or context.why_probe_failed("rdma") is None):
        yield NODE.not_applicable("no-such-device", detail="no rail")
    other_board = _find_other_board(context, boards)
    for board, nics in sorted(boards.items()):
        yield from [_fail_other_board(nics[0], boards)] if other_board in nics else _judge_fw_mixed(board, nics, unread)


def _find_other_board(context: RuleContext, boards: Mapping[str, list[Nic]]) -> Nic | None:
    """The one rail of another board, where all others, three and more of the same chip, are of one."""
    if len(boards) != 2:
        return None
    fewest, most = sorted(boards.values(), key=len)
    if len(fewest) != 1 or len(most) < _LEAST_ALIKE:
        return None
    chips = {find_device_id(context, nic) for nic in (*fewest, *most)}
    return fewest[0] if len(chips) == 1 and "" not in chips else None


def _fail_other_board(nic: Nic, boards: Mapping[str, list[Nic]]) -> Fail:
    (usual_board,) = boards.keys() - {nic.board_id}
    return about_nic(nic).fail(
        summary=f"board {nic.board_id} (PSID); the other {len(boards[usual_board])} rails are {usual_board}",
        impact="Its firmware has different defaults and separate updates: settings of the others may not fit.",
        evidence=tuple(
            Evidence(
                f"board of {nic.label}",
                nic.board_id or "",
                f"/sys/class/infiniband/{nic.rdma_device or nic.label}/board_id",
            )
            for nic in (nic, *boards[usual_board][:7])
        ),
        severity="info",
        situation="board",
        cause="board",
    )


def _not_judged_reason(context: RuleContext, nic: Nic) -> Result | None:
    about = about_nic(nic)
    absent = why_unreachable(find_function(context, nic))
    if context.virtual_machine or nic.virtual_function:
        return about.not_applicable("guest", detail="a virtual function or machine: the provider's firmware")
    if nic.software or nic.limited:
        return about.not_applicable("other-kind", detail=f"not a NIC for jobs: {nic.limited or 'a software device'}")
    if absent:
        return about.not_applicable(absent)
    if nic.board_id is None or nic.firmware is None:
        return about.unknown("not-read", fact="its board id or firmware version")
    return None


def _judge_fw_mixed(board: str, nics: list[Nic], unread: bool) -> Iterator[Result]:
    if len(nics) < 2:
        about = about_nic(nics[0])
        yield (
            about.unknown(_UNREAD)
            if unread
            else about.not_applicable("nothing-to-compare", detail="the only NIC of its board type")
        )
        return
    usual_firmware = find_majority(nic.firmware for nic in nics)
    others = [nic for nic in nics if nic.firmware != usual_firmware]
    yield from (about_nic(nic).passes() for nic in nics if nic not in others)
    if others:
        yield _fail_fw_mixed(board, nics, others, usual_firmware)


def _describe_differing(count: int, rails: int, usual_firmware: str | None) -> str:
    if usual_firmware is None:
        return "The rails can behave differently"
    return f"{count} of {rails} rails can behave unlike the others"


def _fail_fw_mixed(board: str, nics: list[Nic], differing: list[Nic], usual_firmware: str | None) -> Fail:
    alone = differing[0] if len(differing) == 1 else None
    if alone:
        summary = f"firmware {alone.firmware}; most rails of board {board} run {usual_firmware}"
    else:
        others = ", ".join(f"{nic.label} {nic.firmware}" for nic in differing[:8])
        most = f"most run {usual_firmware}," if usual_firmware else "no version has a majority:"
        summary = f"rails of board {board} run different firmware: {most} {others}"
    return (about_nic(alone) if alone else NODE).fail(
        summary=summary,
        impact=f"{_describe_differing(len(differing), len(nics), usual_firmware)}; collectives wait for the slowest.",
        remedy=f"bring {join_labels([nic.label for nic in differing])} to {usual_firmware or 'one version'} "
        "(mlxfwmanager), and reset.",
        evidence=tuple(
            Evidence(
                f"firmware of {nic.label}",
                nic.firmware or "",
                f"/sys/class/infiniband/{nic.rdma_device or nic.label}/fw_ver",
            )
            for nic in nics
        ),
        severity="info" if _is_rollout(nics) else None,
        cause=board,
        ids=frozenset(nic.id for nic in differing),
    )


def _is_rollout(nics: list[Nic]) -> bool:
    """Whether the versions follow socket or order on the bus, as while they are brought to a new one by turns.

    Of two or three NICs no order is seen.
    """
    from agent.rules.cabling import place_on_bus, position_on_card  # lazy: of most nodes all NICs have one version

    parts = [
        PeerPart(
            "nic", nic.id, nic.label, nic, frozenset(), nic.id, socket=nic.numa_node, order=place_on_bus(nic),
            position=position_on_card(nic, 1),
        )
        for nic in nics
    ]  # fmt: skip
    verdict = vote([nic.firmware for nic in nics], parts)
    return verdict is not None and bool(verdict.pattern)


_NEAR = ("PIX", "PXB")
_KEY = "NCCL_IB_HCA"


@rule("ib-mixed-linklayer", gate=report_no_rails)
def ib_mixed_linklayer(context: RuleContext) -> Result:
    rails = rdma_rails(context)
    if len(rails) < 2:
        return NODE.not_applicable("nothing-to-compare", detail="one active RDMA rail")
    if not _is_mixed(rails):
        return NODE.passes()
    why = why_files_unread(context)
    lists = [setting for setting in effective_settings(context, _KEY) if setting.scope == "system"]
    if why:
        return NODE.unknown(why.prefixed(f"rails of both kinds, and what {_KEY} takes is not known: "))
    if lists and not _is_mixed([e for e in rails if read_hca_filter(lists[0].value).takes(e.name, e.port.port)]):
        return NODE.passes()
    return _fail_mixed_linklayer(context, rails)


def _is_mixed(rails: list[Hca]) -> bool:
    return len({rail.port.link_layer for rail in rails}) > 1


def _fail_mixed_linklayer(context: RuleContext, rails: list[Hca]) -> Fail:
    kinds = {kind: [rail for rail in rails if rail.port.link_layer == kind] for kind in ("InfiniBand", "Ethernet")}
    fewer = min(kinds.values(), key=len)
    near = all(any(_is_near(context, hca) for hca in of_kind) for of_kind in kinds.values())
    kinds_text = "; ".join(f"{kind}: {join_labels([hca.label for hca in of_kind])}" for kind, of_kind in kinds.items())
    return NODE.fail(
        summary=f"rails of two kinds, and {_KEY} takes both: {kinds_text}",
        impact="NCCL does not connect InfiniBand with Ethernet: jobs end at their start, or do not use these rails.",
        evidence=tuple(
            Evidence(
                f"link layer of {rail.label}",
                rail.port.link_layer or "",
                f"/sys/class/infiniband/{rail.name}/ports/{rail.port.port}/link_layer",
            )
            for rail in rails[:16]
        ),
        severity="error" if near else "warning",
        values=_wanted_type(kinds),
        ids=frozenset().union(*({hca.nic.id, f"{hca.nic.id}/{hca.port.port}"} for hca in fewer)),
    )


_LINK_TYPES = {"InfiniBand": "1", "Ethernet": "2"}  # as mlxconfig has them


def _wanted_type(kinds: Mapping[str, list[Hca]]) -> tuple[tuple[str, str], ...]:
    """The link type of the greater part; nothing where both kinds are as many."""
    counts = {kind: len(hcas) for kind, hcas in kinds.items()}
    most = max(counts, key=counts.__getitem__)
    return () if len(set(counts.values())) == 1 else (("LINK_TYPE", _LINK_TYPES[most]),)


def _is_near(context: RuleContext, hca: Hca) -> bool:
    """Whether a GPU lies behind the same PCIe switches."""
    return any(
        path.kind in _NEAR for path in context.paths_of.get(hca.nic.id, ()) if {path.a, path.b} & context.gpus.keys()
    )


_STACK = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_cm", "rdma_cm", "rdma_ucm", "ib_umad", "ib_ipoib")
_OFED = r"\d{1,3}\.\d{1,3}-\d{1,3}(?:\.\d{1,5}){2,}"  # year.month-build: "24.10-1.1.4"


@rule("ofed-inbox-mix")
def ofed_inbox_mix(context: RuleContext) -> Result:
    why = context.why_probe_failed("modules")
    if why and context.topology.nics:
        return NODE.unknown(why)
    loaded = {module.name: module.version for module in context.software.modules if module.name in _STACK}
    ofed = {name: version for name, version in loaded.items() if version and re.fullmatch(_OFED, version)}
    if len(ofed) < 2:
        return NODE.not_applicable(
            "nothing-to-compare", detail="no two modules of the RDMA stack have a version of OFED"
        )
    if len(set(ofed.values())) == 1:
        return NODE.passes()
    versions_text = "; ".join(
        f"{version}: {', '.join(name for name in ofed if ofed[name] == version)}"
        for version in sorted(set(ofed.values()))
    )
    return NODE.fail(
        summary=f"modules of {len(set(ofed.values()))} releases of OFED are loaded: {versions_text}",
        impact="Modules built for one stack are refused by the other: nvidia-peermem does not load, "
        "and traffic is copied through host memory.",
        evidence=tuple(
            Evidence(f"version of {name}", version, f"/sys/module/{name}/version")
            for name, version in sorted(ofed.items())
        ),
    )
