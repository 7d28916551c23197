"""ib-pkey-limited."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.nccl.settings import effective, files_unread, number
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_FULL = 0x8000  # the top bit of a key: full member
_KEY = "NCCL_IB_PKEY"


@rule(
    "ib-pkey-limited",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("ib-pkey-limited",),
    absorbs=("ib-pkey-mismatch",),
)
def ib_pkey_limited(case: Case) -> Iterator[Answer]:
    """An InfiniBand rail is only a limited member of the partition that jobs use.

    ## What it checks
    The partition key of every active InfiniBand rail at the index that NCCL uses: `NCCL_IB_PKEY`, else 0.

    ## Why it matters
    Limited members cannot talk to each other, only to full ones. All nodes see the subnet manager, and 100 % of the
    connections between them end with a timeout after 7 retries of 4.3 s.

    ## How it is decided
    The top bit of that key is 0 (0x7fff is the limited form of the default partition). Some rails: warning for each;
    all of them: one finding. Where another key of the port is a full one, it is named.

    ## What keeps it silent
    - 0x7fff at another index beside a full key at the one in use, as clouds have it.
    - Storage NICs, which may be limited by design; Ethernet; ports that are not active: not applicable.
    - The keys could not be read, or NCCL's files where key 0 is limited: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/pkeys/* | grep -v 0x0000`

    ## How to fix
    Make the port a full member (`Default=0x7fff, ipoib, ALL=full;` in partitions.conf, or UFM); or set `NCCL_IB_PKEY`
    to the index of a key with the top bit set.

    ## Source
    InfiniBand Architecture Specification, 10.9 (partitioning); OpenSM manual, partition configuration.
    """
    asked = [each for each in effective(case, _KEY) if number(each.value) is not None]
    index = (number(asked[0].value) or 0) if asked else 0
    why = files_unread(case)
    answers = (
        _judge(each, index, None if asked else why) if isinstance(each, IbPort) else each
        for each in ib_ports(case, ("rail",))
    )
    yield from folded(answers, "limited member of the partition on every InfiniBand rail")


def _judge(each: IbPort, index: int, why: str | None) -> Answer:
    keys = each.port.pkeys
    if each.port.state != "ACTIVE":
        return NotApplicable(each.subject, "not active")
    if not keys:
        return Unknown(each.subject, "its partition keys could not be read")
    if index not in range(len(keys)):
        return NotApplicable(each.subject, f"no key at index {index}: see ib-pkey-mismatch")
    values = [_value(key) for key in keys]
    if values[index] is None:
        return Unknown(each.subject, f"not a partition key: {keys[index]}")
    if (values[index] or 0) & _FULL:
        return Pass(each.subject)
    if why:
        return Unknown(each.subject, f"key 0 is a limited one, and whether {_KEY} names another is not known: {why}")
    full = [f"{key} at index {n}" for n, key in enumerate(keys) if (values[n] or 0) & _FULL]
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"partition key {keys[index]} (index {index}) is that of a limited member"
        + (f"; a full one is {full[0]}" if full else ""),
        impact="100 % of the connections to other limited members end with a timeout after 7 retries of 4.3 s.",
        remedy=f"Make the port a full member, or set {_KEY} to the index of a full key.",
        evidence=(each.evidence("partition keys", ", ".join(keys[:8]), "pkeys"),),
        severity="warning",
        places=each.places,
    )


def _value(key: str) -> int | None:
    """A partition key as sysfs prints it; None where it is none.

    >>> _value("0x7fff"), _value("what")
    (32767, None)
    """
    return int(key, 16) if re.fullmatch("0x[0-9a-fA-F]{1,4}", key) else None
