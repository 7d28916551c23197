"""gdr-topology-hidden."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import function_of
from agent.rules.gpudirect.ways import NEAR, pairs
from agent.rules.nccl.settings import effective, files_unread, jobs_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-topology-hidden", "warning", needs=("pci|lspci",), references=("gdr-topology-hidden",))
def gdr_topology_hidden(case: Case) -> Iterator[Answer]:
    """A virtual machine does not show which rail is near which GPU, and no topology file says it.

    ## What it checks
    In a virtual machine with several GPUs and rails: whether the PCI tree or NUMA nodes tell any two of them apart, and
    else whether `NCCL_TOPO_FILE` is set.

    ## Why it matters
    NCCL then takes any rail for any GPU: of 8 GPUs and 8 rails 7 of 8 choices cross a switch or socket, and it may give
    up GPUDirect.

    ## How it is decided
    Every GPU reaches every rail in the same way, none behind a common switch; no setting of NCCL names a topology file.

    ## What keeps it silent
    - Bare metal; one GPU or one rail; paths that differ: not applicable.
    - A service that brings the file (`nvidia-topologyd`): pass.
    - NCCL's files, or the environments of running jobs, could not be read: unknown.

    ## How to confirm
    `nvidia-smi topo -m`; `grep TOPO /etc/nccl.conf`; `env | grep NCCL_TOPO_FILE` in a job

    ## How to fix
    Set `NCCL_TOPO_FILE` to the provider's file (Azure: `/opt/microsoft/*/topo.xml`), or give the guest virtual NUMA
    nodes and switches that are like the host's.

    ## Source
    Azure azhpc-images topology files; aws-ofi-nccl `topology/`; NCCL user guide (NCCL_TOPO_FILE).
    """
    found = list(pairs(case))
    gpus, rails = {pair.gpu.id for pair in found}, {pair.nic.id for pair in found}
    if not case.virtual_machine or len(gpus) < 2 or len(rails) < 2:
        yield NotApplicable("node", "the tree is not a hypervisor's, or there is nothing to choose from")
        return
    nodes = {f.numa_node for pair in found for f in (function_of(case, pair.gpu), function_of(case, pair.nic)) if f}
    told_apart = len(found) < len(gpus) * len(rails) or any(p.path.pcie_kind in NEAR for p in found)
    if told_apart or len(nodes - {None}) > 1:
        yield Pass("node")
        return
    files = effective(case, "NCCL_TOPO_FILE")
    served = any(service.name == "nvidia-topologyd" and service.state == "active" for service in case.software.services)
    unread = files_unread(case) or jobs_unread(case)
    if files or served:
        yield Pass("node")
    elif unread:
        yield Unknown("node", f"whether NCCL_TOPO_FILE is set is not known: {unread}")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary=f"{len(gpus)} GPUs and {len(rails)} rails look equally far, and no topology file is set",
            impact=f"NCCL pairs them by chance: {len(rails) - 1} of {len(rails)} choices are not the near rail.",
            remedy="Set NCCL_TOPO_FILE to the provider's topology file.",
            evidence=(
                Evidence(
                    what="way of every pair", value=found[0].path.pcie_kind or "not known", source="nvidia-smi topo -m"
                ),
                Evidence(what="NCCL_TOPO_FILE", value="not set", source=", ".join(case.software.nccl.searched[:4])),
            ),
            places=frozenset({"node"}),
        )
