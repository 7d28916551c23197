"""ib-pkey-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nccl.hcas import Hca, no_rails, rdma_rails, severity_of
from agent.rules.nccl.settings import Effective, effective, files_unread, number
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_PKEY"


@rule("ib-pkey-mismatch", "error", needs=("nccl", "rdma|rdma_tools"), references=("ib-pkey-mismatch",))
def ib_pkey_mismatch(case: Case) -> Iterator[Answer]:
    """NCCL is told to use a partition key that a port does not have.

    ## What it checks
    The index in `NCCL_IB_PKEY`, against the partition keys of every active InfiniBand rail.

    ## Why it matters
    A connection with a key that is not there never comes about: the job ends after 7 retries of 4.3 s with a timeout,
    on 100 % of its connections over that rail.

    ## How it is decided
    The index is as large as the number of keys that the port has, or larger. (Subnet managers fill the table from its
    start.) Set in a file: error; in a running job only: warning. One finding for the node. Whether two nodes have a key
    in common, the fleet's comparison says.

    ## What keeps it silent
    - It is not set, or 0, the default: not applicable.
    - RoCE, whose ports have one key; NICs that are no rail.
    - A port whose keys could not be read, or NCCL's files: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/pkeys/* | grep -v 0x0000`

    ## How to fix
    Set `NCCL_IB_PKEY` to the index of the job's partition, or make the port a member (partitions.conf, UFM).

    ## Source
    NCCL user guide (NCCL_IB_PKEY); Linux ABI sysfs-class-infiniband (pkeys).
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    rails = [each for each in rdma_rails(case) if each.port.link_layer == "InfiniBand"]
    why = files_unread(case)
    asked = [each for each in effective(case, _KEY) if number(each.value)]
    if not rails:
        yield NotApplicable("node", "no active InfiniBand rail")
    elif not asked:
        yield Unknown("node", why) if why else NotApplicable("node", f"{_KEY} is not set")
    elif not all(each.port.pkeys for each in rails):
        yield Unknown("node", "partition keys could not be read")
    else:
        faults = [(where, short) for where in asked if (short := _short(where, rails))]
        yield _fault(*faults[0]) if faults else Pass("node")


def _short(where: Effective, rails: list[Hca]) -> list[Hca]:
    """Rails without a key at that index."""
    return [each for each in rails if (number(where.value) or 0) not in range(len(each.port.pkeys))]


def _fault(where: Effective, short: list[Hca]) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=f"{_KEY}={where.value} in {where.source}: no key at that index on {named([e.label for e in short])}",
        impact="100 % of the connections over these rails end with a timeout.",
        remedy="Set it to the index of the job's partition, or make the port a member.",
        evidence=(
            where.evidence(_KEY),
            *(
                Evidence(
                    what=f"partition keys of {each.label}",
                    value=", ".join(each.port.pkeys[:8]),
                    source=f"/sys/class/infiniband/{each.name}/ports/{each.port.port}/pkeys",
                )
                for each in short[:8]
            ),
        ),
        severity=severity_of("error", [where]),
        confidence="medium",
        places=frozenset().union(*({each.nic.id, f"{each.nic.id}/{each.port.port}"} for each in short)),
    )
