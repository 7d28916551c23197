"""ofed-inbox-mix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_STACK = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_cm", "rdma_cm", "rdma_ucm", "ib_umad", "ib_ipoib")
_OFED = re.compile(r"\d{1,3}\.\d{1,3}-\d{1,3}(?:\.\d{1,5}){2,}")  # year.month-build: "24.10-1.1.4"


@rule("ofed-inbox-mix", "warning", needs=("modules",), references=("ofed-inbox-mix",))
def ofed_inbox_mix(case: Case) -> Iterator[Answer]:
    """The loaded modules of the RDMA stack are of different releases of OFED.

    ## What it checks
    The versions of the loaded modules of the RDMA stack (`mlx5_core`, `mlx5_ib`, `ib_core`, `ib_uverbs` and those
    beside them).

    ## Why it matters
    Modules of one release are made for each other. Mixed ones refuse to load together or lack functions: a module such
    as nvidia-peermem that is built for another `ib_core` is refused, and GPUDirect loses about 50 % of its bandwidth.

    ## How it is decided
    Two of these modules have versions of OFED (year.month-build) that differ: warning, one finding for the node.

    ## What keeps it silent
    - Modules of the kernel itself have no such version, everywhere or beside those of OFED: not compared.
    - Fewer than two modules have one: not applicable.
    - The modules could not be read: unknown. What programs have in their containers, no host can see.

    ## How to confirm
    `grep . /sys/module/{mlx5_core,mlx5_ib,ib_core,ib_uverbs,rdma_cm}/version`; `ofed_info -s`

    ## How to fix
    Install one release of DOCA-OFED for the running kernel, run `dracut -f` or `update-initramfs -u` (an old module in
    the initramfs is the usual reason), and start the host anew. Then rebuild the NVIDIA driver.

    ## Source
    NVIDIA/gpu-operator issue 2868; Mellanox/nv_peer_memory issue 84.
    """
    why = case.probe_failure("modules|lsmod")
    if why and case.topology.nics:
        yield Unknown("node", why)
        return
    loaded = {module.name: module.version for module in case.software.modules if module.name in _STACK}
    ofed = {name: version for name, version in loaded.items() if version and _OFED.fullmatch(version)}
    if len(ofed) < 2:
        yield NotApplicable("node", "no two modules of the RDMA stack have a version of OFED")
    elif len(set(ofed.values())) == 1:
        yield Pass("node")
    else:
        told = "; ".join(
            f"{version}: {', '.join(name for name in ofed if ofed[name] == version)}"
            for version in sorted(set(ofed.values()))
        )
        yield Fail(
            subject="node",
            label="node",
            summary=f"modules of {len(set(ofed.values()))} releases of OFED are loaded: {told}",
            impact="modules built for one are refused by the other: without nvidia-peermem, 50 % of the bandwidth.",
            remedy="Install one release for the running kernel, renew the initramfs, and start the host anew.",
            evidence=tuple(
                Evidence(what=f"version of {name}", value=version, source=f"/sys/module/{name}/version")
                for name, version in sorted(ofed.items())
            ),
            places=frozenset({"node"}),
        )
