"""Every probe, in discovery order, a line a probe. What is not here does not run; a test finds it."""

from __future__ import annotations

from probes.probe import Probe


def probes() -> tuple[Probe, ...]:
    """The catalogue. A function, because commands that probe nothing must not import what reads machines."""
    from probes import cpu, dmi, kernel, lspci, modules, netdev, numa, nvidia_smi, nvml, pci, rdma, rdma_tools, services

    return (
        kernel.PROBE,
        dmi.PROBE,
        cpu.PROBE,
        numa.PROBE,
        pci.PROBE,
        nvml.PROBE,
        rdma.PROBE,
        netdev.PROBE,
        modules.PROBE,
        services.PROBE,
        lspci.PROBE,
        nvidia_smi.PROBE,
        rdma_tools.PROBE,
        modules.LSMOD,
    )
