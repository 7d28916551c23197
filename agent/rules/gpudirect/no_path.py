"""gdr-no-path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import away, function_of, is_consumer, is_nvidia, on_c2c
from agent.rules.gpudirect.ways import NEAR, peer_memory
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_DMABUF_DRIVERS = ("mlx5", "irdma", "ice", "bnxt")  # whose kernel modules can register a DMA-BUF
_OWN_WAY = ("efa", "gve", "mana", "erdma")  # their providers bring a GPUDirect of their own, or none
_NO_RAIL = "no rail"
_TURING = 7.5
_KERNEL = re.compile(r"(\d{1,3})\.(\d{1,3})")
_CUDA = re.compile(r"(\d{1,3})\.(\d{1,3})")
_NEW_ENOUGH = ("Turing", "Ampere", "Ada", "Hopper", "Blackwell", "Rubin")
_TOO_OLD = ("Kepler", "Maxwell", "Pascal", "Volta")


@rule("gdr-no-path", "error", needs=("modules|lsmod",), references=("gdr-no-path", "PCIE-031"))
def gdr_no_path(case: Case) -> Iterator[Answer]:
    """No NIC can reach GPU memory: neither a peer-memory client nor DMA-BUF is there.

    ## What it checks
    On a node with NVIDIA data-centre GPUs and an active rail: the two ways in which the kernel lets a NIC read and
    write GPU memory.

    ## Why it matters
    Without either, NCCL copies everything through host memory: about 50 % of the bandwidth between nodes, and
    neither SHARP nor GPUDirect Storage over RDMA works.

    ## How it is decided
    Neither (a) a peer-memory client: `nvidia_peermem` or `nv_peer_mem` is loaded or registered; nor (b) all that
    DMA-BUF needs: kernel 5.12, open kernel modules of the driver, CUDA 11.7, Turing or newer, a NIC driver that
    registers DMA-BUFs (mlx5, irdma, bnxt). One finding for the node; it names what DMA-BUF lacks. Where no GPU has a
    rail behind a switch, NCCL would not use it either: info.

    ## What keeps it silent
    - GeForce and TITAN cards, which cannot do it; GPUs of other vendors; nodes without a rail, or without an active
      one: not applicable.
    - EFA, gVNIC, MANA and eRDMA, which have ways of their own; virtual machines: not applicable.
    - No GPU that the driver offers: not applicable.
    - Which NICs are rails is not known, modules could not be listed, or something that decides between the two could
      not be read: unknown.

    ## How to confirm
    `lsmod | grep -E 'nvidia_peermem|nv_peer_mem'`; `cat /proc/driver/nvidia/version` says "Open Kernel Module".

    ## How to fix
    Best: install the open kernel modules (DMA-BUF). Else `modprobe nvidia-peermem`, and name it in
    `/etc/modules-load.d/`.

    ## Source
    NCCL `src/transport/net_ib/gdr.cc` and `init.cc`; NVIDIA GPU Operator, GPUDirect RDMA; CUDA GPUDirect RDMA guide.
    """
    gpus = gpus_that_could(case)
    silent = why_not_applicable(case, gpus)
    if silent == _NO_RAIL and case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
        return
    if silent:
        yield NotApplicable("node", silent)
        return
    loaded = peer_memory(case)
    why = case.probe_failure("modules|lsmod")
    if loaded:
        yield Pass("node")
    elif why:
        yield Unknown("node", why)
    else:
        yield _dmabuf(case, gpus)


def gpus_that_could(case: Case) -> list[Gpu]:
    """NVIDIA GPUs of data centres that the driver offers, or may."""
    return [gpu for gpu in case.topology.gpus if _could(case, gpu)]


def _could(case: Case, gpu: Gpu) -> bool:
    """An NVIDIA GPU that the driver offers, or may: those of the GeForce line cannot do GPUDirect RDMA."""
    offered = gpu.driver_state in ("open", "unknown") and away(function_of(case, gpu)) is None
    return is_nvidia(case, gpu) and offered and not is_consumer(case, gpu)


def has_name(case: Case, gpu: Gpu) -> bool:
    """Whether anybody says what kind of card it is."""
    function = function_of(case, gpu)
    return bool(gpu.name or (function and function.name))


def why_not_applicable(case: Case, gpus: list[Gpu]) -> str | None:
    """Why the kernel's ways to GPU memory do not matter here; None where they do."""
    if not gpus:
        return "no NVIDIA data-centre GPU in use"
    if case.virtual_machine:
        return "virtual machine: the provider's stack decides"
    rails = [nic for nic in case.rails if not (nic.software or nic.limited)]
    if not rails:
        return _NO_RAIL
    if all((nic.driver or "").startswith(_OWN_WAY) for nic in rails):
        return "rails of a cloud with a GPUDirect of its own"
    if not any(port.state == "ACTIVE" for nic in rails for port in nic.ports):
        return "no active rail"
    return None


def dmabuf_ready(case: Case) -> bool | None:
    """Whether DMA-BUF has all that it needs; None where that is not known."""
    return _all(list(dmabuf_needs(case, gpus_that_could(case)).values()))


def dmabuf_needs(case: Case, gpus: list[Gpu]) -> dict[str, bool | None]:
    """What DMA-BUF needs, and whether it is so; None: not known."""
    return {
        "kernel 5.12 or later": _at_least(_KERNEL, case.node.kernel, (5, 12)),
        "open kernel modules of the NVIDIA driver": case.software.driver.open,
        "CUDA 11.7 or later in the driver": _at_least(_CUDA, case.software.driver.cuda, (11, 7)),
        "Turing or newer": _all([_new_enough(gpu) for gpu in gpus]),
        "a NIC driver that registers DMA-BUFs": _all([_registers(nic.driver) for nic in case.rails]),
    }


def _dmabuf(case: Case, gpus: list[Gpu]) -> Answer:
    needs = dmabuf_needs(case, gpus)
    lacking = [need for need, met in needs.items() if met is False]
    unread = [need for need, met in needs.items() if met is None]
    if lacking and not any(has_name(case, gpu) for gpu in gpus):
        return Unknown("node", "whether these GPUs are data-centre GPUs is not known: they have no name")
    if not lacking:
        return (
            Unknown("node", f"no peer-memory client; for DMA-BUF not known: {', '.join(unread)}")
            if unread
            else Pass("node")
        )
    used = _near_enough(case)
    return Fail(
        subject="node",
        label="node",
        summary=f"no peer-memory client is loaded, and DMA-BUF lacks: {', '.join(lacking)}",
        impact="traffic between nodes goes through host memory: about 50 % of the bandwidth of every rail."
        if used
        else "0 % for NCCL, which would not use it at this distance; libraries that do lose about 50 %.",
        remedy="Install the open kernel modules of the driver (DMA-BUF), or modprobe nvidia-peermem.",
        evidence=(
            Evidence(what="peer-memory clients", value="none of " + ", ".join(_PEER_MODULES), source="/proc/modules"),
            Evidence(what="kernel", value=case.node.kernel or "not known", source="uname -r"),
            Evidence(
                what="NVIDIA driver",
                value=f"{case.software.driver.version or 'version not known'}, "
                f"{_flavour(case.software.driver.open)}, CUDA {case.software.driver.cuda or 'not known'}",
                source="/proc/driver/nvidia/version",
            ),
        ),
        severity=None if used else "info",
        places=frozenset({"node"}),
    )


def _near_enough(case: Case) -> bool:
    """Whether NCCL would use GPUDirect RDMA at all: up to PXB, or over C2C; True where the ways are not known."""
    rails = {nic.id for nic in case.rails}
    ways = [p for gpu in case.topology.gpus for p in case.paths_of.get(gpu.id, ()) if rails & {p.a, p.b}]
    coherent = any(on_c2c(case, gpu) for gpu in case.topology.gpus)
    return coherent or not ways or any(p.pcie_kind in (*NEAR, None) or p.kind == "C2C" for p in ways)


def _at_least(pattern: re.Pattern[str], text: str | None, least: tuple[int, int]) -> bool | None:
    found = pattern.match(text or "")
    return (int(found[1]), int(found[2])) >= least if found else None


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _new_enough(gpu: Gpu) -> bool | None:
    try:
        return float(gpu.compute_capability or "") >= _TURING
    except ValueError:
        named = gpu.architecture or ""  # "Ada Lovelace": the first word decides, and a new word is no old GPU
        return True if named.startswith(_NEW_ENOUGH) else False if named.startswith(_TOO_OLD) else None


def _registers(driver: str | None) -> bool | None:
    return True if (driver or "").startswith(_DMABUF_DRIVERS) else None  # of others nobody told us that they cannot


def _flavour(is_open: bool | None) -> str:
    return "kernel modules not known" if is_open is None else "open" if is_open else "proprietary kernel modules"
