"""gdr-efa-stack."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, no_gpus, severity_of
from agent.rules.nccl.settings import effective, files_unread, jobs_unread
from agent.rules.nccl.users import evidence, mapped
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "FI_PROVIDER"
_SLOW = ("tcp", "sockets", "udp", "ofi_rxm;tcp", "tcp;ofi_rxm")


@rule("gdr-efa-stack", "error", needs=("nccl",), references=("gdr-efa-stack",))
def gdr_efa_stack(case: Case) -> Iterator[Answer]:
    """On a node with EFA, NCCL does not use it.

    ## What it checks
    Nodes whose NICs are EFA: the libfabric provider that is set, and the network plugin of running jobs.

    ## Why it matters
    NCCL has no code for EFA of its own. Without AWS's plugin, or with libfabric's tcp provider, it goes over TCP
    sockets: about 3 % of the 3200 Gb/s that a p5 has.

    ## How it is decided
    `FI_PROVIDER` is set to tcp, sockets or udp; or running jobs have NCCL mapped, and none of them a network plugin
    (`libnccl-net*.so`) or libfabric.

    ## What keeps it silent
    - No EFA on the node: not applicable.
    - What is installed on the host says nothing: containers bring a plugin of their own.
    - No job runs: passes where `FI_PROVIDER` is not set. Jobs that could not be seen, while nothing else is wrong:
      unknown.

    ## How to confirm
    `fi_info -p efa`; `NCCL_DEBUG=INFO` prints "NET/OFI Selected provider is efa".

    ## How to fix
    Install the EFA installer's libfabric and aws-ofi-nccl where the job runs, and remove `FI_PROVIDER`.

    ## Source
    aws-ofi-nccl README; AWS, EFA and NCCL; libfabric fi_efa(7).
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    if not any((nic.driver or "") == "efa" for nic in case.topology.nics):
        why = case.bus_unread
        yield Unknown("node", why) if why and not case.topology.nics else NotApplicable("node", "no EFA")
        return
    slow = [each for each in effective(case, _KEY) if each.value.strip().lower() in _SLOW]
    users = mapped(case, "libnccl.so")
    unread = files_unread(case) or jobs_unread(case)
    if slow:
        yield _fault(
            summary=f"{_KEY}={slow[0].value} in {slow[0].source}: libfabric does not use EFA",
            remedy=f"Remove {_KEY}, or set it to efa.",
            rows=tuple(each.evidence(_KEY) for each in slow[:8]),
            cause="provider",
        )._replace(severity=severity_of("error", slow))
    elif users and not mapped(case, "libnccl-net", "libfabric"):
        yield _fault(
            summary="jobs use NCCL without a plugin for EFA",
            remedy="Install aws-ofi-nccl and libfabric where the jobs run, on their library path.",
            rows=(*evidence(users), Evidence(what="libnccl-net*.so", value="not mapped", source="/proc/*/maps")),
            cause="plugin",
        )._replace(confidence="medium")
    else:
        yield Unknown("node", unread) if unread else Pass("node")


def _fault(summary: str, remedy: str, rows: tuple[Evidence, ...], cause: str) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=summary,
        impact="NCCL goes over TCP sockets: about 3 % of what EFA carries.",
        remedy=remedy,
        evidence=rows,
        cause=cause,
        places=NODE,
    )
