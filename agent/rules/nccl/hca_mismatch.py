"""gdr-nccl-hca-mismatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import lowered
from agent.rules.nccl.hcas import NODE, Hca, Wanted, active_ports, no_rails, wanted
from agent.rules.nccl.settings import Effective, effective, files_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_HCA"


class _Chosen(NamedTuple):
    """What one value of the list comes to on this node."""

    where: Effective
    wanted: Wanted
    taken: list[Hca]
    missed: list[Hca]  # active rails that it leaves out
    foreign: list[Hca]  # taken, and no rail
    remedy: str


@rule("gdr-nccl-hca-mismatch", "error", needs=("nccl",), references=("gdr-nccl-hca-mismatch",))
def gdr_nccl_hca_mismatch(case: Case) -> Iterator[Answer]:
    """NCCL_IB_HCA does not select the rails of this node.

    ## What it checks
    Every value of `NCCL_IB_HCA` that is in force, against the active ports of this node's RDMA devices.

    ## Why it matters
    NCCL uses what the list takes and nothing else: six of eight rails are 25 % less; a storage NIC at 25 Gb/s among
    rails at 400 slows all of them; where nothing is taken, everything goes over TCP, at about 10 %.

    ## How it is decided
    The list is read as NCCL reads it: each name is a prefix, unless the list begins with "="; ":2" is port 2; "^" in
    front takes all others. Error: it takes no active port, or leaves out an active rail. Warning: it takes an
    active port that is no rail (storage, management, a software device), for example as `mlx5_1` also takes `mlx5_10`.
    Info: a name that no device here has, while all rails are taken. In a running job that leaves out rails: info,
    for jobs on part of a node do so; its other faults are one step less grave.

    ## What keeps it silent
    - The list is not set: NCCL takes every active port. Not applicable.
    - No active rail, or a cloud's own way (EFA): not applicable. Ports that are down are other rules' matter.
    - Which NICs are rails is not known, RDMA devices or NCCL's files could not be read: unknown.

    ## How to confirm
    `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET`: "NET/IB : Using" names what a job took; `ibdev2netdev`.

    ## How to fix
    Write whole names with "=": `NCCL_IB_HCA==mlx5_0,mlx5_3`. Name every rail, and nothing else.

    ## Source
    NCCL `src/misc/utils.cc` (parseStringList, matchIfList), `src/transport/net_ib/init.cc`; Oracle's HPC images.
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    values = effective(case, _KEY)
    if not values:
        why = files_unread(case)
        yield Unknown("node", why) if why else NotApplicable("node", f"{_KEY} is not set: NCCL takes every active port")
        return
    answers = [_judge(case, where) for where in values]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from {fault.cause: fault for fault in reversed(faults)}.values()  # of equal ones the first
    if not faults:
        yield Pass("node")


def _judge(case: Case, where: Effective) -> Answer:
    ports = active_ports(case)
    chosen = wanted(where.value)
    taken = [each for each in ports if chosen.takes(each.name, each.port.port)]
    missed = [each for each in ports if each.nic.role == "rail" and not each.nic.software and each not in taken]
    foreign = [each for each in taken if each.nic.role not in ("rail", "unknown") or each.nic.software]
    found = _Chosen(where, chosen, taken, missed, foreign, _remedy(case, where))
    step = (lambda severity: severity) if where.persistent else lowered
    if not taken:
        return _fault(
            found,
            "none",
            step("error"),
            "takes no active port",
            "everything goes over TCP: about 10 % of the bandwidth.",
        )
    rails = len(taken) - len(foreign) + len(missed)
    if missed:
        what = f"takes {rails - len(missed)} of {rails} rails, not {named([each.label for each in missed])}"
        share = f"{100 * len(missed) / rails:.0f} % of the bandwidth between nodes is not used."
        return _fault(found, "missed", "error" if where.persistent else "info", what, share)
    if foreign:
        what = f"takes {named([f'{each.label} ({each.nic.role})' for each in foreign])} beside the rails"
        return _fault(found, "foreign", step("warning"), what, "every rail waits for the slowest port that is taken.")
    strangers = _strangers(case, chosen)
    if strangers and not chosen.exclude:
        what = f"takes all rails, and names {named(strangers)}, which is no device here"
        return _fault(found, "stranger", "info", what, "0 % here; where a NIC was renamed, its rail.")
    return Pass("node")


def _strangers(case: Case, chosen: Wanted) -> list[str]:
    """Names of the list that no RDMA device of this node has."""
    names = [nic.rdma_device for nic in case.topology.nics if nic.rdma_device]
    return [entry[0] for entry in chosen.names if not chosen.matching(entry, names)]


def _remedy(case: Case, where: Effective) -> str:
    """The whole list, to be copied: rails that are down now are rails, too."""
    rails = {nic.rdma_device for nic in case.rails if nic.rdma_device and not nic.software}
    names = ",".join(sorted(rails, key=lambda name: (len(name), name)))
    return f"In {where.unit}, every rail and nothing else, by whole names: {_KEY}=={names}"


def _fault(found: _Chosen, cause: str, severity: str, what: str, impact: str) -> Fail:
    where = found.where
    devices = found.missed + found.foreign
    return Fail(
        subject="node",
        label="node",
        summary=f"{_KEY}={where.value[:80]} in {where.source} {what}{_ambiguity(found)}",
        impact=impact,
        remedy=found.remedy,
        evidence=(
            where.evidence(_KEY),
            Evidence(what="active ports taken", value=_labels(found.taken), source="/sys/class/infiniband"),
            *(
                Evidence(
                    what="rail left out" if each in found.missed else "taken, and no rail",
                    value=f"{each.label} {each.port.link_layer}",
                    source=f"/sys/class/infiniband/{each.name}/ports/{each.port.port}",
                )
                for each in devices[:8]
            ),
        ),
        severity=severity,
        cause=cause,
        places=NODE,
    )


def _ambiguity(found: _Chosen) -> str:
    """Which name takes more than the device that it names; a whole name takes no other."""
    names = [each.name for each in (found.foreign if not found.wanted.exclude else found.missed)]
    for entry in found.wanted.names:
        longer = [name for name in found.wanted.matching(entry, names) if name != entry[0] and entry[0][-1:].isdigit()]
        if longer:
            return f'; {entry[0]} without "=" also means {longer[0]}'
    return ""


def _labels(ports: Sequence[Hca]) -> str:
    return named([each.label for each in ports]) or "none"
