"""gdr-nic-gpu-ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.gpudirect.ways import pairs, platform_kind
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-nic-gpu-ratio", "info", needs=("pci|lspci", "rdma|rdma_tools"), references=("gdr-nic-gpu-ratio",))
def gdr_nic_gpu_ratio(case: Case) -> Iterator[Answer]:
    """Some GPUs share a rail, while others have one of their own.

    ## What it checks
    Which rail is nearest to each GPU, on bare metal where GPUs and rails share PCIe switches.

    ## Why it matters
    Two GPUs on one rail have 50 % of it each, and a collective waits for them.

    ## How it is decided
    One active rail is the only one near several GPUs, while another GPU of the node has an active rail of its own.
    Info: boards with a rail for every two GPUs are built so, and they are even.

    ## What keeps it silent
    - All GPUs have as many rails as each other: pass.
    - Virtual machines, clouds, superchips, a node where no GPU is behind a switch with a rail: not applicable.
    - A port of which the state is not known: unknown.

    ## How to confirm
    `nvidia-smi topo -m`

    ## How to fix
    Bring the missing rail up, or move a NIC to the switch of the GPUs that share one.

    ## Source
    NCCL `src/graph/paths.cc`; platform tables of gpud (as many rails as GPUs on 8-GPU boards).
    """
    if platform_kind(case) not in ("x86", "inline"):
        yield NotApplicable("node", "rails are not near GPUs by design, or the tree is a hypervisor's")
        return
    near = [pair for pair in pairs(case) if pair.near]
    states = {pair.nic.id: {port.state for port in pair.nic.ports} for pair in near}
    if not near:
        yield NotApplicable("node", "no GPU has a rail behind its switch")
        return
    unread = [nic for nic, found in states.items() if not found or None in found]
    if unread:
        yield Unknown("node", f"whether the ports of {named(unread)} are active is not known")
        return
    rails = {pair.nic.id: pair.nic.label for pair in near if "ACTIVE" in states[pair.nic.id]}
    shares: dict[str, float] = {}
    labels = {pair.gpu.id: pair.gpu.label for pair in near}
    for rail in rails:
        users = [pair.gpu.id for pair in near if pair.nic.id == rail]
        for gpu in users:
            shares[gpu] = shares.get(gpu, 0.0) + 1 / len(users)
    least, most = min(shares.values(), default=0.0), max(shares.values(), default=0.0)
    if most < 1.0 or least >= most:
        yield Pass("node")
        return
    yield _fault(shares, labels)


def _fault(shares: Mapping[str, float], labels: Mapping[str, str]) -> Fail:
    least, most = min(shares.values()), max(shares.values())
    poor = sorted(labels[gpu] for gpu, share in shares.items() if share < most)
    return Fail(
        subject="node",
        label="node",
        summary=f"{named(poor)} share their rails; other GPUs have {most:g} each",
        impact=f"{100 * (1 - least / most):.0f} % less bandwidth between nodes for these GPUs.",
        remedy="Bring the missing rail up, or spread the NICs over the switches as the GPUs are.",
        evidence=tuple(
            Evidence(what=f"rails of {labels[gpu]}", value=f"{share:g}", source="nvidia-smi topo -m")
            for gpu, share in sorted(shares.items())
        ),
        places=frozenset(shares),
    )
