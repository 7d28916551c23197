"""ib-sm-changed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.gates import NO_EARLIER_RUN
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_WHAT = {"sm_lid": "the subnet manager's LID", "lid": "its own LID"}


@rule("ib-sm-changed", "info", needs=("rdma|rdma_tools",), references=("ib-sm-changed",))
def ib_sm_changed(case: Case) -> Iterator[Answer]:
    """The subnet manager of an InfiniBand port, or the port's own address, changed since the last run.

    ## What it checks
    LID and subnet manager LID of every active InfiniBand port of a rail or storage NIC against the last run.

    ## Why it matters
    Another LID of the subnet manager is a failover; another LID of the port breaks every open connection to it: 100 %
    of the jobs that run over it.

    ## How it is decided
    Either differs from what the last run of this node noted: info; one finding where all ports changed.

    ## What keeps it silent
    - Ports that are not active, or have no role: not applicable.
    - No earlier run is remembered (`--state-dir`): unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/{lid,sm_lid}`, `sminfo`

    ## How to fix
    Nothing where it was planned. Else read the logs of the subnet managers: why did the first one give up?

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`.
    """
    answers = (_judge(case, each) if isinstance(each, IbPort) else each for each in ib_ports(case))
    yield from folded(answers, "another subnet manager or LID on every InfiniBand port")


def _judge(case: Case, each: IbPort) -> Answer:
    if each.port.state != "ACTIVE":
        return NotApplicable(each.subject, "not active")
    if case.history is None or not case.history.runs:
        return Unknown(each.subject, NO_EARLIER_RUN)
    was = {name: text for name, text in case.history.settings.get(each.subject, {}).items() if name in _WHAT}
    now = {"sm_lid": each.port.sm_lid, "lid": each.port.lid}
    changed = {name: text for name, text in was.items() if now[name] is not None}
    if not changed:
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary="; ".join(f"{_WHAT[name]} is {now[name]}, was {text}" for name, text in sorted(changed.items())),
        impact="Open connections by LID break (100 % of the jobs on this port) where the port's own LID changed.",
        remedy="Nothing where it was planned; else read the logs of the subnet managers.",
        evidence=tuple(each.evidence(name, f"{now[name]}, was {text}", name) for name, text in sorted(changed.items())),
        severity="info",
        places=each.places,
    )
