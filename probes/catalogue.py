"""Every probe, in discovery order, a line a probe. What is not here does not run; a test finds it."""

from __future__ import annotations

from collections.abc import Callable

from probes.host.commands import NVIDIA_SMI, NVIDIA_SMI_SAVED, PCI, RDMA, RDMA_SAVED, SYSTEM
from probes.host.door import Absent, Host
from probes.probe import Probe, Reading


def probes() -> tuple[Probe, ...]:
    """The catalogue. A function, because commands that probe nothing must not import what reads machines."""
    from probes import (
        cpu,
        dcb,
        dmi,
        ethtool,
        kernel,
        kernel_log,
        limits,
        lldp,
        modules,
        nccl,
        netdev,
        numa,
        nvml,
        optics,
        pci,
        rdma_netlink,
        rdma_sysfs,
        services,
    )

    return (
        kernel.PROBE,
        dmi.PROBE,
        cpu.PROBE,
        numa.PROBE,
        pci.PROBE,
        nvml.PROBE,
        rdma_sysfs.PROBE,
        rdma_netlink.PROBE,
        netdev.PROBE,
        ethtool.PROBE,
        optics.PROBE,
        dcb.PROBE,
        lldp.PROBE,
        modules.PROBE,
        services.PROBE,
        limits.PROBE,
        nccl.PROBE,
        kernel_log.PROBE,
        Probe("lspci", _lspci, fallback_for="pci", evidence=_saved(*PCI)),
        Probe("nvidia_smi", _nvidia_smi, 30.0, fallback_for="nvml", evidence=_saved(*NVIDIA_SMI, *NVIDIA_SMI_SAVED)),
        Probe("rdma_tools", _rdma_tools, fallback_for="rdma", evidence=_saved(*RDMA, *RDMA_SAVED)),
        Probe("lsmod", modules.read_lsmod, fallback_for="modules", evidence=_saved(*SYSTEM)),
    )


def probe(name: str) -> Probe:
    """The probe of that name."""
    return next(each for each in probes() if each.name == name)


def _saved(*commands: tuple[str, ...]) -> Callable[[Host], bool]:
    """Whether a recorded source holds the output of any of these commands."""
    return lambda host: any(host.has_output(*argv) for argv in commands)


# Parsers of tools' outputs are a third of all probes' code, and few runs need one: each is imported when asked.


def _lspci(host: Host) -> Reading:
    _require_saved(host, PCI)
    from probes.lspci import read

    return read(host)


def _nvidia_smi(host: Host) -> Reading:
    _require_saved(host, NVIDIA_SMI + NVIDIA_SMI_SAVED)
    from probes.nvidia_smi import read

    return read(host)


def _rdma_tools(host: Host) -> Reading:
    _require_saved(host, RDMA + RDMA_SAVED)
    from probes.rdma_tools import read

    return read(host)


def _require_saved(host: Host, commands: tuple[tuple[str, ...], ...]) -> None:
    """Raises Absent for a source of saved outputs without any of these; a live host or its capture is asked."""
    if not host.live and host.kind != "capture" and not any(host.has_output(*argv) for argv in commands):
        raise Absent(f"no saved output of {', '.join(sorted({argv[0] for argv in commands}))}")
