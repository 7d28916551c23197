"""gdr-legacy-nv-peer-mem."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_FIRST_WITH_OWN = 470  # the driver that brings nvidia-peermem


@rule("gdr-legacy-nv-peer-mem", "info", needs=("modules|lsmod",), references=("gdr-legacy-nv-peer-mem",))
def gdr_legacy_nv_peer_mem(case: Case) -> Iterator[Answer]:
    """The old peer-memory module `nv_peer_mem` is loaded, which the driver's own nvidia-peermem replaced.

    ## What it checks
    The loaded kernel modules.

    ## Why it matters
    It has had no new version since CUDA 11.5; with two clients the kernel takes 1 of them, and which is not said.

    ## How it is decided
    `nv_peer_mem` is loaded beside a driver of branch 470 or later, or beside `nvidia_peermem`.

    ## What keeps it silent
    - Drivers before branch 470, which have no other: not applicable.
    - The driver's version is not known: unknown. It is not loaded: pass.

    ## How to confirm
    `lsmod | grep -E 'nv_peer_mem|nvidia_peermem'`

    ## How to fix
    Remove the package `nvidia-peer-memory` and its entry in `/etc/modules-load.d/`; load `nvidia-peermem`, or use
    DMA-BUF.

    ## Source
    GPUDirect RDMA manual 1.8 (deprecation of nv_peer_mem).
    """
    modules = {module.name for module in case.software.modules}
    version = (case.software.driver.version or "").partition(".")[0]
    if case.probe_failure("modules|lsmod"):
        return
    if "nv_peer_mem" not in modules:
        yield Pass("node") if case.topology.gpus else NotApplicable("node", "no GPU")
    elif "nvidia_peermem" not in modules and not version.isdecimal():
        yield Unknown("node", "the driver's version is not known")
    elif "nvidia_peermem" not in modules and int(version) < _FIRST_WITH_OWN:
        yield NotApplicable("node", f"driver {version} has no peer-memory module of its own")
    else:
        both = "nvidia_peermem" in modules
        yield Fail(
            subject="node",
            label="node",
            summary="nv_peer_mem is loaded" + (" beside nvidia_peermem" if both else ", which nvidia-peermem replaced"),
            impact="1 of 2 clients is used, and nobody says which." if both else "0 % today; it gets no new versions.",
            remedy="Remove nv_peer_mem; load nvidia-peermem, or use DMA-BUF.",
            evidence=(Evidence(what="loaded module", value="nv_peer_mem", source="/proc/modules"),),
            places=frozenset({"node"}),
        )
