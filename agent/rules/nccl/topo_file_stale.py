"""nccl-topo-file-stale."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nccl.hcas import NODE, no_gpus, severity_of
from agent.rules.nccl.settings import Effective, effective, files_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_TOPO_FILE"
_GPU_CLASSES = ("0x0302", "0x0300")


@rule("nccl-topo-file-stale", "warning", needs=("nccl",), references=("NCCL-001",))
def nccl_topo_file_stale(case: Case) -> Iterator[Answer]:
    """The topology file that NCCL is given is not there, or is of another machine.

    ## What it checks
    The file that `NCCL_TOPO_FILE` names: whether it is there, and whether its GPUs and NICs are those of this node.

    ## Why it matters
    NCCL believes the file before sysfs. With one of another size of machine it pairs GPUs with far NICs, and loses
    GPUDirect RDMA, about 50 % of the bandwidth; without the file a virtual machine shows it no structure at all.

    ## How it is decided
    The file was looked for and is not there; or it names a GPU or NIC at a PCI address where this node has nothing; or
    a GPU of this node is not in it. Only files below /etc, /opt, /usr and /var are opened, where root writes.

    ## What keeps it silent
    - It is not set: not applicable. A file that names no GPU (switches alone, as NCCL completes the rest): passes.
    - A job in a container names a file of its own, or the file may not be opened: unknown.
    - The PCI bus was not read whole: its devices are not compared.

    ## How to confirm
    `grep -s NCCL_TOPO_FILE /etc/nccl.conf`; `grep busid FILE`; `lspci -D | grep -E 'NVIDIA|Mellanox'`

    ## How to fix
    Install the file of this size of machine, or remove the setting on bare metal: NCCL finds the tree itself.

    ## Source
    NCCL `src/graph/xml.cc` (ncclTopoGetXmlFromFile); topology files of Azure's images.
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    values = effective(case, _KEY)
    if not values:
        why = files_unread(case)
        yield Unknown("node", why) if why else NotApplicable("node", f"{_KEY} is not set")
        return
    answers = [_judge(case, where) for where in values]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from {fault.cause: fault for fault in reversed(faults)}.values()
    if not faults:
        yield next((answer for answer in answers if isinstance(answer, Unknown)), Pass("node"))


def _judge(case: Case, where: Effective) -> Answer:
    nccl = case.software.nccl
    if where.value not in nccl.searched:
        return Unknown("node", f"{where.value}: not looked for (a container's, or no whole path)")
    if where.value not in nccl.files:
        return _fault(where, "missing", f"{where.value} is not there", ())
    if where.value not in nccl.topology_devices:
        return Unknown("node", f"{where.value}: not opened")
    if case.bus_unread:
        return Unknown("node", case.bus_unread)
    told = [row.split(" ", 1) for row in nccl.topology_devices[where.value] if " " in row]
    addresses = {address for _, address in told}
    absent = sorted(addresses - case.functions.keys())
    gpus = [gpu for gpu in case.topology.gpus if gpu.pci and gpu.driver_state == "open"]
    left_out = [gpu for gpu in gpus if gpu.pci not in addresses]
    if not any(kind in _GPU_CLASSES for kind, _ in told):
        left_out = []
    rows = tuple(Evidence(what="of no device here", value=each, source=where.value) for each in absent[:8])
    rows += tuple(
        Evidence(what=f"{gpu.label} is not in the file", value=gpu.pci or "", source=where.value)
        for gpu in left_out[:8]
    )
    if not rows:
        return Pass("node")
    both = [f"names {named(absent)}, where nothing is"] if absent else []
    both += [f"lacks {named([gpu.label for gpu in left_out])}"] if left_out else []
    return _fault(where, "other", f"{where.value} {' and '.join(both)}", rows)


def _fault(where: Effective, cause: str, what: str, rows: tuple[Evidence, ...]) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=f"{_KEY} in {where.source}: {what}",
        impact="NCCL pairs GPUs with far NICs and loses GPUDirect RDMA: about 50 % of the bandwidth between nodes.",
        remedy="Install the topology file of this size of machine, or remove the setting.",
        evidence=(where.evidence(_KEY), *rows),
        severity=severity_of("warning", [where]),
        cause=cause,
        places=NODE,
    )
