"""roce-pfc-nic-asymmetry."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import majority, named, ranges
from agent.rules.devices import device_id
from agent.rules.roce.lossless import Chain, chains, unreadable
from agent.rules.roce.told import fault, places
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_GRAVE = ("PFC", "trust", "DSCP table", "traffic class queues")  # these lose packets; the others are a risk


@rule(
    "roce-pfc-nic-asymmetry",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-pfc-nic-asymmetry",),
    absorbs=(
        "roce-pfc-switch-mismatch",
        "roce-pfc-multi",
        "roce-pfc-on-cnp-or-default",
        "roce-global-pause",
        "roce-pause-and-pfc",
    ),
)
def roce_pfc_nic_asymmetry(case: Case) -> Iterator[Answer]:
    """A rail's lossless classes are set otherwise than those of the other rails.

    ## What it checks
    PFC, trust, DSCP table, traffic class queues, which receive buffer a priority has, global pause and the owner of
    DCBX of every active RoCE rail, against the rails of the same device id.

    ## Why it matters
    Collectives run at the speed of the slowest rail: 1 rail of 8 that drops packets slows all 8. It is what a replaced
    NIC, or a driver that was loaded again, leaves behind.

    ## How it is decided
    A rail differs from what more than half of its kind have. PFC, trust, DSCP table and queues: error; buffers, pause
    and DCBX owner: warning. Where no value has a majority, one finding for all of them. A rail that roce-lossy tells of
    is told there. The MTU is judged by roce-mtu-small, the size of buffers by roce-headroom-small.

    ## What keeps it silent
    - Storage and other NICs, and other device ids: not compared. Ports that are not active: not applicable.
    - A single rail: not applicable. A value that could not be read is not compared; DCB not readable: unknown.

    ## How to confirm
    `for i in INTERFACES; do dcb pfc show dev $i; dcb app show dev $i; dcb buffer show dev $i; done`

    ## How to fix
    Run the provisioning (the systemd unit, the operator) on the named rail again.

    ## Source
    Linux `mlx5/core/en_dcbnl.c`: none of this is kept over a reload of the driver.
    """
    kinds: dict[str, list[Chain]] = {}
    for each in chains(case):
        if not isinstance(each, Chain):
            yield each
            continue
        subject, why = each.each.subject, unreadable(each.each)
        if each.each.nic.role != "rail":
            yield NotApplicable(subject, "no rail")
        elif why:
            yield Unknown(subject, why)
        else:
            kinds.setdefault(device_id(case, each.each.nic), []).append(each)
    for alike in kinds.values():
        yield from _compare(alike)


def _compare(alike: list[Chain]) -> Iterator[Answer]:
    if len(alike) < 2:
        yield NotApplicable(alike[0].each.subject, "no other rail of its kind to compare with")
        return
    values = {each.each.subject: _settings(each) for each in alike}
    usual, split = {}, []
    for what in next(iter(values.values())):
        known = [row[what] for row in values.values() if row[what] is not None]
        usual[what] = majority(known)
        if usual[what] is None and len(set(known)) > 1:
            split.append(what)
    if split:
        yield _split(alike, values, split)
        return
    for each in alike:
        row = values[each.each.subject]
        odd = [what for what in row if row[what] is not None and usual[what] is not None and row[what] != usual[what]]
        yield _outlier(each, alike, row, usual, odd) if odd else Pass(each.each.subject)


def _settings(each: Chain) -> dict[str, str | None]:
    """What is compared, as people read it; None: not read."""
    qos, netdev = each.qos, each.each.netdev
    pause = netdev.pause if netdev else None
    return {
        "PFC": ranges(each.protected),
        "trust": qos.trust,
        "DSCP table": _table(qos.dscp_prio),
        "traffic class queues": ",".join(map(str, qos.prio_tc)) or None,
        "receive buffers": ",".join(map(str, qos.buffers.get("prio_buffer", []))) or None,
        "global pause": f"rx {pause.rx}, tx {pause.tx}" if pause and None not in (pause.rx, pause.tx) else None,
        "DCBX owner": qos.dcbx,
    }


def _table(dscp_prio: dict[str, int]) -> str | None:
    """DSCPs by priority; those of priority 0 go there without an entry, too."""
    by_priority: dict[int, list[int]] = {}
    for dscp, priority in dscp_prio.items():
        if dscp.isdecimal() and priority:
            by_priority.setdefault(priority, []).append(int(dscp))
    rows = [f"{priority}: {ranges(found)}" for priority, found in sorted(by_priority.items())]
    return "; ".join(rows) or ("all 0" if dscp_prio else None)


def _outlier(
    each: Chain, alike: list[Chain], row: dict[str, str | None], usual: dict[str, str | None], odd: list[str]
) -> Fail:
    others = [one for one in alike if one is not each]
    all_lossy = each.verdict == "lossless" and all(one.verdict == "lossy" for one in others)
    about = frozenset().union(*(places(one) for one in (alike if all_lossy else [each])))
    return fault(
        each,
        "; ".join(f"{what} is {row[what]}, on the other rails {usual[what]}" for what in odd),
        "Run the provisioning on this rail again.",
        impact="Collectives run at the speed of the slowest rail, and this one's packets are queued otherwise.",
        severity="error" if set(odd) & set(_GRAVE) else "warning",
        evidence=tuple(_row(each, what, str(row[what])) for what in odd),
        cause=",".join(odd),
        places=about,
    )


def _split(alike: list[Chain], values: dict[str, dict[str, str | None]], split: list[str]) -> Fail:
    told = [(each, what, values[each.each.subject][what]) for what in split for each in alike]
    rows = tuple(_row(each, what, value) for each, what, value in told if value is not None)
    return Fail(
        subject="node",
        label="node",
        summary=f"rails differ in {named(split)}, and no value is that of most: "
        + named([each.each.label for each in alike]),
        impact="Collectives run at the speed of the slowest rail, and packets of some are queued otherwise.",
        remedy="Run the provisioning on all rails again.",
        evidence=rows,
        severity="error" if set(split) & set(_GRAVE) else "warning",
        cause=",".join(split),
        places=frozenset().union(*(places(each) for each in alike)),
    )


def _row(each: Chain, what: str, value: str) -> Evidence:
    name = each.each.netdev.label if each.each.netdev else each.each.label
    command = {
        "PFC": "dcb pfc show dev",
        "traffic class queues": "dcb ets show dev",
        "receive buffers": "dcb buffer show dev",
        "global pause": "ethtool -a",
        "DCBX owner": "dcb dcbx show dev",
    }
    return Evidence(what=f"{what} of {name}", value=value, source=f"{command.get(what, 'dcb app show dev')} {name}")
