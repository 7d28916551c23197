"""ib-subnet-mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.infiniband.ports import IbPort, ib_ports, no_infiniband
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_DEFAULT = "fe80:0000:0000:0000"
_Groups = dict[str, list[IbPort]]


@rule("ib-subnet-mixed", "info", needs=("rdma|rdma_tools",), references=("ib-subnet-mixed",))
def ib_subnet_mixed(case: Case) -> Iterator[Answer]:
    """InfiniBand rails of one node are in different subnets, or in different ones that have one name.

    ## What it checks
    The subnet prefix (of GID 0) and the subnet manager's LID of every active InfiniBand rail.

    ## Why it matters
    A rail that is plugged into another fabric than its siblings reaches 0 % of their peers. Two fabrics with the same
    prefix look like one to everything that finds a path by address (rdma-cm, UCX), and connections fail.

    ## How it is decided
    Prefixes differ, and one has fewer rails than another: the few are named. Or all have the default prefix (fe80::),
    and different subnet managers' LIDs: there are several fabrics that cannot be told apart. Info; one for the node.

    ## What keeps it silent
    - Each prefix has as many rails as any other: planes or rails of their own by design.
    - Storage NICs, ports that are not active, Ethernet.
    - Fewer than two active rails: not applicable. A GID table that could not be read: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/*/ports/1/{gids/0,sm_lid}`

    ## How to fix
    Plug the rail where it belongs; give each fabric a prefix of its own (`subnet_prefix` of its subnet manager).

    ## Source
    InfiniBand Architecture Specification, 4.1 (GID); OpenSM manual, subnet_prefix.
    """
    rails: list[IbPort] = []
    for each in ib_ports(case, ("rail",)):
        if not isinstance(each, IbPort):
            if isinstance(each, Unknown):
                yield each
        elif each.port.state == "ACTIVE":
            if _prefix(each):
                rails.append(each)
            else:
                yield Unknown(each.subject, "its GID table could not be read")
    if len(rails) < 2:
        if case.probe_failure("rdma|rdma_tools") is None or no_infiniband(case):
            yield NotApplicable("node", "fewer than two active InfiniBand rails whose subnet is known")
        return
    prefixes, managers = _by(rails, _prefix), _by(rails, lambda each: str(each.port.sm_lid or ""))
    sizes = {len(group) for group in prefixes.values()}
    if len(sizes) > 1:
        few = [each for group in prefixes.values() if len(group) < max(sizes) for each in group]
        yield _fault(rails, few, f"other subnets than most rails: {named([each.label for each in few])}", "prefixes")
    elif set(prefixes) == {_DEFAULT} and len(managers.keys() - {""}) > 1:
        told = "; ".join(f"{lid}: {named([e.label for e in group])}" for lid, group in managers.items())
        yield _fault(rails, rails, f"one default prefix, and several subnet managers (LID {told})", "default")
    else:
        yield Pass("node")


def _prefix(each: IbPort) -> str:
    """The first four groups of GID 0; "" where it is not known."""
    gid = next((gid.gid for gid in each.port.gids if gid.index == 0), "")
    return ":".join(gid.lower().split(":")[:4]) if gid.count(":") == 7 else ""


def _by(rails: list[IbPort], key: Callable[[IbPort], str]) -> _Groups:
    found: _Groups = {}
    for each in rails:
        found.setdefault(key(each), []).append(each)
    return found


def _fault(rails: list[IbPort], few: list[IbPort], summary: str, cause: str) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=summary,
        impact="0 % of one subnet is reached from another; connections that are made by address fail.",
        remedy="Plug the rail where it belongs; give each fabric a prefix of its own (subnet_prefix).",
        evidence=tuple(
            each.evidence("subnet", f"{_prefix(each)}, subnet manager's LID {each.port.sm_lid}", "gids/0")
            for each in rails[:16]
        ),
        severity="info",
        confidence="medium",
        cause=cause,
        places=frozenset().union(*(each.places for each in few)),
    )
