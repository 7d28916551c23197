"""Every probe, in discovery order, a line a probe. What is not here does not run; a test finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from probes.host.commands import (
    AMD_SAVED,
    CXL_SAVED,
    HCCN_OF_NPU,
    HCCN_SAVED,
    HL_SMI_SAVED,
    IB_LINKS,
    LLDP,
    LLDP_SAVED,
    NEURON_SAVED,
    NPU_HCCS,
    NPU_INFO,
    NPU_SAVED,
    NPU_SIO,
    NVIDIA_SMI,
    NVIDIA_SMI_SAVED,
    NVIDIA_SMI_TABLE,
    PCI,
    RDMA,
    RDMA_SAVED,
    RDMA_SYSTEM_SAVED,
    SYSTEM,
    TOOL_REPORTS_SAVED,
)
from probes.host.interface import Absent, Host
from probes.probe import Probe, Reading, Skipped

_AMD = (("0x1002", "0x03"), ("0x1002", "0x12"))
_NEURON = (("0x1d0f", "0x12"), ("0x1d0f", "0x0880"))
_NPUS = (("0x19e5", "0x1200"),)
FABRIC_NEVER_ASKED = "a live fabric is never queried: the tools send packets to every switch; saved outputs are read"


def probes() -> tuple[Probe, ...]:
    """The catalogue. A function, because commands that probe nothing must not import what reads machines."""
    from probes.kernel import log, modules
    from probes.kernel import system as kernel
    from probes.nccl import probe as nccl
    from probes.netdev import probe as netdev
    from probes.pci import sysfs as pci
    from probes.rdma import sysfs as rdma_sysfs
    from probes.services import probe as services
    from probes.system import cpu, dmi, limits, numa

    return (
        kernel.PROBE,
        dmi.PROBE,
        cpu.PROBE,
        numa.PROBE,
        pci.PROBE,
        Probe("nvml", _nvml, 25.0, gives=("gpu",)),
        Probe("kfd", _kfd, gives=("gpu",), devices=_AMD),
        Probe("amd_smi", _amd_smi, 25.0, evidence=_has_saved(*AMD_SAVED), gives=("gpu",), devices=_AMD),
        Probe("gaudi", _gaudi, evidence=_has_saved(*HL_SMI_SAVED), gives=("gpu",), devices=(("0x1da3", "0x12"),)),
        Probe("neuron", _neuron, evidence=_has_saved(*NEURON_SAVED), gives=("gpu",), devices=_NEURON),
        Probe("neuron_errors", _neuron_errors, devices=_NEURON),
        Probe("npu", _npu, evidence=_saved_npu, gives=("gpu",), devices=_NPUS),
        Probe("hccn", _hccn, evidence=_saved_hccn, devices=_NPUS),
        Probe("cxl", _cxl, evidence=_has_saved(*CXL_SAVED), devices=(("", "0x0502"),)),
        rdma_sysfs.PROBE,
        Probe("rdma_netlink", _rdma_netlink),
        netdev.PROBE,
        Probe("ethtool", _ethtool),
        Probe("optics", _optics, 15.0),
        Probe("dcb", _dcb),
        Probe("lldp", _lldp),
        Probe("ib_fabric", _ib_fabric),
        Probe("tool_reports", _tool_reports),
        modules.PROBE,
        services.PROBE,
        limits.PROBE,
        nccl.PROBE,
        log.PROBE,
        Probe("lspci", _lspci, fallback_for="pci", evidence=_has_saved(*PCI), gives=("pci",)),
        Probe(
            "nvidia_smi",
            _nvidia_smi,
            30.0,
            fallback_for="nvml",
            evidence=_has_saved(*NVIDIA_SMI, *NVIDIA_SMI_SAVED, *NVIDIA_SMI_TABLE),
            gives=("gpu",),
        ),
        Probe("rdma_tools", _rdma_tools, fallback_for="rdma", evidence=_has_saved(*RDMA, *RDMA_SAVED), gives=("rdma",)),
        Probe("lsmod", modules.read_lsmod, fallback_for="modules", evidence=_has_saved(*SYSTEM), gives=("modules",)),
    )


@cache
def providers() -> Mapping[str, tuple[str, ...]]:
    """The probes whose facts are about a subject, in catalogue order, by subject; a probe's own name is one."""
    by_subject: dict[str, tuple[str, ...]] = {}
    for probe in probes():
        for subject in probe.gives or (probe.name,):
            by_subject[subject] = (*by_subject.get(subject, ()), probe.name)
    return by_subject


def probe(name: str) -> Probe:
    """The probe of that name."""
    return next(probe for probe in probes() if probe.name == name)


def _has_saved(*commands: tuple[str, ...]) -> Callable[[Host], bool]:
    """Whether a recorded source holds the output of any of these commands."""
    return lambda host: any(host.has_output(*argv) for argv in commands)


# What answers a live host only, and parsers of tools' outputs, are most of all probes' code, and few sources need them:
# each is imported where there is something to read; on a live host by the child that reads.


def _nvml(host: Host) -> Reading:
    if not _answers(host):
        raise Absent(f"a {host.kind} holds no NVML answers")
    from probes.gpu.nvml import read

    return read(host)


def _kfd(host: Host) -> Reading:
    from probes.amd.probe import read

    return read(host)


def _amd_smi(host: Host) -> Reading:
    if not _answers(host):
        _require_saved(host, AMD_SAVED)
    from probes.amd.smi import read

    return read(host)


def _gaudi(host: Host) -> Reading:
    from probes.gaudi.probe import read

    return read(host)


def _npu(host: Host) -> Reading:
    from probes.ascend.npu import read

    return read(host)


def _neuron(host: Host) -> Reading:
    from probes.neuron.probe import read

    return read(host)


def _neuron_errors(host: Host) -> Reading:
    from probes.neuron.errors import read

    return read(host)


def _hccn(host: Host) -> Reading:
    from probes.ascend.hccn import read

    return read(host)


def _saved_npu(host: Host) -> bool:
    return _has_saved(*NPU_SAVED)(host) or any(host.saved_arguments(*argv) for argv in (NPU_HCCS, NPU_SIO))


def _saved_hccn(host: Host) -> bool:
    return _has_saved(*HCCN_SAVED)(host) or any(host.saved_arguments(*argv) for argv in HCCN_OF_NPU)


def _cxl(host: Host) -> Reading:
    from probes.cxl.probe import read

    return read(host)


def _rdma_netlink(host: Host) -> Reading:
    if not _answers(host) and not _has_saved(*RDMA_SYSTEM_SAVED)(host):
        raise Absent(f"a {host.kind} holds no netlink answers")
    from probes.rdma.netlink import read

    return read(host)


def _ethtool(host: Host) -> Reading:
    if not _answers(host):
        from probes.visible_interfaces import holds_output

        saved = [("ethtool", *option) for option in ((), ("-i",), ("-a",), ("--show-fec",), ("-S",))]
        if not holds_output(host, *saved):
            raise Absent("no saved output of ethtool about an interface that is shown")
        from probes.ethtool.saved import read_saved

        return read_saved(host)
    from probes.ethtool.probe import read

    return read(host)


def _optics(host: Host) -> Reading:
    if not _answers(host):
        from probes.visible_interfaces import holds_output

        if not holds_output(host, ("ethtool", "-m")):
            raise Absent("no saved output of ethtool -m")
        from probes.optics.saved import read_saved

        return read_saved(host)
    from probes.optics.probe import read

    return read(host)


def _dcb(host: Host) -> Reading:
    if not _answers(host):
        from probes.visible_interfaces import is_networked

        if not is_networked(host):
            raise Absent("no Ethernet interface of a PCI device is seen here")
    from probes.dcb.probe import read

    return read(host)


def _lldp(host: Host) -> Reading:
    if not _answers(host) and not _has_saved(*LLDP, *LLDP_SAVED)(host):
        raise Absent("no saved output of lldpctl")
    from probes.netdev.lldp import read

    return read(host)


def _lspci(host: Host) -> Reading:
    _require_saved(host, PCI)
    from probes.pci.lspci import read

    return read(host)


def _nvidia_smi(host: Host) -> Reading:
    _require_saved(host, NVIDIA_SMI + NVIDIA_SMI_SAVED + NVIDIA_SMI_TABLE)
    from probes.gpu.nvidia_smi import read

    return read(host)


def _rdma_tools(host: Host) -> Reading:
    _require_saved(host, RDMA + RDMA_SAVED)
    from probes.rdma.tools import read

    return read(host)


def _ib_fabric(host: Host) -> Reading:
    if host.live:
        raise Skipped(FABRIC_NEVER_ASKED)
    from probes.fabric.probe import outputs, read

    if host.kind == "capture" and not any(outputs(host)):
        raise Skipped(FABRIC_NEVER_ASKED)
    return read(host)


def _tool_reports(host: Host) -> Reading:
    tables = (*NVIDIA_SMI_TABLE, NPU_INFO, *HL_SMI_SAVED, *AMD_SAVED, *IB_LINKS, *TOOL_REPORTS_SAVED)
    if host.live or not any(host.has_output(*argv) for argv in tables):
        raise Absent("no saved output of a tool that states faults")
    from probes.tool_reports.probe import read

    return read(host)


def _answers(host: Host) -> bool:
    """Whether it says what a kernel, its drivers and tools answered; another source holds files and outputs."""
    return host.live or host.kind == "capture"


def _require_saved(host: Host, commands: tuple[tuple[str, ...], ...]) -> None:
    """Raises Absent for a source of saved outputs without any of these; a live host or its capture is asked."""
    if not _answers(host) and not any(host.has_output(*argv) for argv in commands):
        raise Absent(f"no saved output of {', '.join(sorted({argv[0] for argv in commands}))}")
