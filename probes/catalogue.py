"""Every probe, in discovery order, one line per probe. What is not here does not run; a test finds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from probes.host import commands
from probes.host.interface import Absent, Host
from probes.probe import ModuleReader, Probe, Reading, Skipped

_AMD = (("0x1002", "0x03"), ("0x1002", "0x12"))
_NEURON = (("0x1d0f", "0x12"), ("0x1d0f", "0x0880"))
_NPUS = (("0x19e5", "0x1200"),)
_NO_FILE = "No such file or directory"
_NO_ETHTOOL = "no saved output of ethtool about an interface that is shown"
_NO_MODULES = "no saved output of ethtool -m"
_RDMA, _FUNCTIONS = "/sys/class/infiniband", "/sys/bus/pci/devices/*"
_INTERFACES = ("/sys/class/net", f"{_FUNCTIONS}/net")
FABRIC_NEVER_ASKED = "a live fabric is never queried: the tools send packets to every switch; saved outputs are read"


@cache
def probes() -> tuple[Probe, ...]:
    """The catalogue: nothing that reads a machine is imported for it."""
    return (
        Probe(
            "kernel",
            ModuleReader("probes.kernel.system"),
            evidence=_has_saved(("uname", "-a")),
            nothing_saved="no file of /proc or /etc that names the running system",
        ),
        Probe(
            "dmi",
            ModuleReader("probes.system.dmi"),
            evidence=_has_saved(("dmidecode",)),
            nothing_saved="neither /sys/class/dmi/id nor /proc/device-tree/model is here",
        ),
        Probe(
            "cpu",
            ModuleReader("probes.system.cpu"),
            nothing_saved="neither /proc/cpuinfo nor /sys/devices/system/cpu/online is here: not in this source",
        ),
        Probe(
            "numa",
            ModuleReader("probes.system.numa"),
            nothing_saved=f"/sys/devices/system/node: {_NO_FILE}",
        ),
        Probe(
            "pci",
            ModuleReader("probes.pci.sysfs", "read_pci"),
            gives=("pci", "pci_sysfs"),
            nothing_saved=f"/sys/bus/pci/devices: {_NO_FILE}",
        ),
        Probe("nvml", ModuleReader("probes.gpu.nvml", require=_require_nvml), 25.0, gives=("gpu",), loads_library=True),
        Probe(
            "kfd",
            ModuleReader("probes.amd.probe"),
            gives=("gpu",),
            devices=_AMD,
            nothing_saved=f"/sys/class/kfd/kfd/topology/nodes: {_NO_FILE}",
        ),
        Probe(
            "amd_smi",
            ModuleReader("probes.amd.smi", require=_requires(commands.AMD_SAVED)),
            25.0,
            evidence=_has_saved(*commands.AMD_SAVED),
            gives=("gpu",),
            devices=_AMD,
            loads_library=True,
        ),
        Probe(
            "gaudi",
            ModuleReader("probes.gaudi.probe"),
            evidence=_has_saved(*commands.HL_SMI_SAVED),
            gives=("gpu",),
            devices=(("0x1da3", "0x12"),),
            nothing_saved="no card in /sys/class/accel",
        ),
        Probe(
            "neuron",
            ModuleReader("probes.neuron.probe"),
            evidence=_has_saved(*commands.NEURON_SAVED),
            gives=("gpu",),
            devices=_NEURON,
            nothing_saved="no saved output of neuron-ls",
        ),
        Probe(
            "neuron_errors",
            ModuleReader("probes.neuron.errors"),
            devices=_NEURON,
            nothing_saved=f"/sys/devices/virtual/neuron_device: {_NO_FILE}",
        ),
        Probe(
            "npu",
            ModuleReader("probes.ascend.npu"),
            evidence=_has_saved(*commands.NPU_SAVED, about=(commands.NPU_HCCS, commands.NPU_SIO)),
            gives=("gpu",),
            devices=_NPUS,
            nothing_saved="no device node of an NPU, and no saved output of npu-smi",
        ),
        Probe(
            "hccn",
            ModuleReader("probes.ascend.hccn"),
            evidence=_has_saved(*commands.HCCN_SAVED, about=commands.HCCN_OF_NPU),
            devices=_NPUS,
            nothing_saved="neither /etc/hccn.conf nor device nodes nor saved outputs of hccn_tool",
        ),
        Probe(
            "cxl",
            ModuleReader("probes.cxl.probe"),
            evidence=_has_saved(*commands.CXL_SAVED),
            devices=(("", "0x0502"),),
            nothing_saved=f"/sys/bus/cxl/devices: {_NO_FILE}",
        ),
        Probe(
            "rdma",
            ModuleReader("probes.rdma.sysfs"),
            nothing_saved="the source holds no /sys/class/infiniband",
            in_sysfs=(_RDMA, f"{_FUNCTIONS}/infiniband"),
        ),
        Probe("rdma_netlink", ModuleReader("probes.rdma.netlink", require=_require_rdma_netlink)),
        Probe(
            "netdev",
            ModuleReader("probes.netdev.probe"),
            evidence=_shows_interfaces,
            nothing_saved="no network interface: a {kind} holds no netlink answers; nothing in /sys/class/net",
            in_sysfs=_INTERFACES,
        ),
        Probe(
            "ethtool",
            _of_interfaces("ethtool", _NO_ETHTOOL, *commands.ETHTOOL_SAVED[:-1]),
            evidence=_shows_interfaces,
            nothing_saved=_NO_ETHTOOL,
            in_sysfs=_INTERFACES,
        ),
        Probe(
            "optics",
            _of_interfaces("optics", _NO_MODULES, ("ethtool", "-m")),
            15.0,
            evidence=_shows_interfaces,
            nothing_saved=_NO_MODULES,
            in_sysfs=_INTERFACES,
        ),
        Probe(
            "dcb",
            ModuleReader("probes.dcb.probe", require=_require_interface),
            evidence=_shows_interfaces,
            nothing_saved="no Ethernet interface of a PCI device is seen here",
            in_sysfs=(*_INTERFACES, _RDMA, "/sys/kernel/config/rdma_cm"),
        ),
        Probe("lldp", ModuleReader("probes.netdev.lldp", require=_require_lldp)),
        Probe(
            "ib_fabric",
            _ib_fabric,
            # ibstat names rails, of which each may have its own
            evidence=_has_saved(("ibstat",), *commands.IB_FABRIC_SAVED),
            nothing_saved="no saved output of ibnetdiscover, iblinkinfo or ibdiagnet",
            in_sysfs=(_RDMA,),
        ),
        Probe("tool_reports", ModuleReader("probes.tool_reports.probe", require=_require_outputs)),
        Probe(
            "modules",
            ModuleReader("probes.kernel.modules"),
            gives=("modules", "modules_sysfs"),
            nothing_saved="none of /sys/module, /proc/modules and /proc/driver/nvidia is here",
            in_sysfs=("/sys/module",),
        ),
        Probe(
            "services",
            ModuleReader("probes.services.probe"),
            evidence=_has_saved(*_LOGS, *commands.SERVICE_SAVED, about=(commands.SERVICE_LOG, *commands.OF_SERVICE)),
            nothing_saved="no /run/systemd/system: systemd is not the init here, or the source does not hold it",
            in_sysfs=(),
        ),
        Probe(
            "limits",
            ModuleReader("probes.system.limits"),
            evidence=_has_saved(*commands.LIMITS_SAVED),
            nothing_saved="neither limits of services, nor PAM's limits, nor /dev are in this source",
            in_sysfs=("/sys/fs/cgroup",),
        ),
        Probe(
            "nccl",
            ModuleReader("probes.nccl.probe"),
            evidence=_has_saved(commands.NCCL_SETTINGS),
            nothing_saved="neither /etc/nccl.conf nor processes nor libraries of NCCL are in this source",
            in_sysfs=(),
        ),
        Probe(
            "kernel_log",
            ModuleReader("probes.kernel.log"),
            15.0,
            evidence=_has_saved(*_LOGS, *commands.KERNEL_LOG_EARLIER, about=(commands.ROTATED_LOG,)),
            nothing_saved=f"/dev/kmsg: {_NO_FILE}",
            in_sysfs=(),
        ),
        Probe(
            "lspci",
            ModuleReader("probes.pci.lspci", require=_requires(commands.PCI)),
            fallback_for="pci",
            evidence=_has_saved(*commands.PCI),
            gives=("pci",),
        ),
        Probe(
            "nvidia_smi",
            ModuleReader("probes.gpu.nvidia_smi", require=_require_nvidia_smi),
            30.0,
            fallback_for="nvml",
            evidence=_has_saved(*commands.NVIDIA_SMI, *commands.NVIDIA_SMI_SAVED, *commands.NVIDIA_SMI_TABLE),
            gives=("gpu",),
        ),
        Probe(
            "rdma_tools",
            ModuleReader("probes.rdma.tools", require=_requires(commands.RDMA + commands.RDMA_SAVED)),
            fallback_for="rdma",
            evidence=_has_saved(*commands.RDMA, *commands.RDMA_SAVED),
            gives=("rdma",),
        ),
        Probe(
            "lsmod",
            ModuleReader("probes.kernel.modules", "read_lsmod"),
            fallback_for="modules",
            evidence=_has_saved(*commands.SYSTEM),
            gives=("modules",),
            nothing_saved="lsmod: no saved output",
            in_sysfs=(),
        ),
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


def _has_saved(*wanted: tuple[str, ...], about: tuple[tuple[str, ...], ...] = ()) -> Callable[[Host], bool]:
    """Whether a recorded source holds any of these outputs; `about`: of any thing that is named last."""
    return lambda host: (
        any(host.has_output(*argv) for argv in wanted) or any(host.saved_arguments(*argv) for argv in about)
    )


_LOGS = (*commands.KERNEL_LOG, *commands.KERNEL_LOG_SAVED)
_shows_interfaces = _has_saved(  # see probes/netdev/shown_links.py
    *commands.IP_LINK_SAVED,
    ("ifconfig",),
    ("node_exporter",),
    ("rdma", "link"),
    ("rdma", "link", "show"),
    ("ibdev2netdev",),
    ("ibdev2netdev", "-v"),
    ("show_gids",),
    *commands.LLDP,
    *commands.LLDP_SAVED,
    about=commands.OF_INTERFACE,
)


# What answers a live host only, and parsers of tools' outputs, are most of all probes' code, and few sources need them:
# each is imported where these find something to read; on a live host by the child that reads.


def _require_nvml(host: Host) -> None:
    if not _answers(host):
        raise Absent(f"a {host.kind} holds no NVML answers")
    _require_driver(host)


def _require_nvidia_smi(host: Host) -> None:
    _require_saved(host, commands.NVIDIA_SMI + commands.NVIDIA_SMI_SAVED + commands.NVIDIA_SMI_TABLE)
    _require_driver(host)


def _require_rdma_netlink(host: Host) -> None:
    if not _answers(host) and not _has_saved(*commands.RDMA_SYSTEM_SAVED)(host):
        raise Absent(f"a {host.kind} holds no netlink answers")


def _require_interface(host: Host) -> None:
    if not _answers(host):
        from probes.visible_interfaces import is_networked

        if not is_networked(host):
            raise Absent("no Ethernet interface of a PCI device is seen here")


def _require_lldp(host: Host) -> None:
    if not _answers(host) and not _has_saved(*commands.LLDP, *commands.LLDP_SAVED)(host):
        raise Absent("no saved output of lldpctl")


def _require_outputs(host: Host) -> None:
    of_interfaces = (*commands.OF_INTERFACE, *commands.LABELLED_OF_INTERFACES)
    if host.live or not _has_saved(*commands.KNOWN, about=of_interfaces)(host):
        raise Absent("no saved output of a tool that states faults")


def _of_interfaces(subject: str, missing: str, *outputs: tuple[str, ...]) -> Callable[[Host], Reading]:
    """Asks the interfaces, or reads these outputs of a source that holds no answers; `missing`: where it has none."""

    def read(host: Host) -> Reading:
        if _answers(host):
            return ModuleReader(f"probes.{subject}.probe")(host)
        from probes.visible_interfaces import holds_output

        if not holds_output(host, *outputs):
            raise Absent(missing)
        return ModuleReader(f"probes.{subject}.saved", "read_saved")(host)

    return read


def _ib_fabric(host: Host) -> Reading:
    if host.live:
        raise Skipped(FABRIC_NEVER_ASKED)
    from probes.fabric.probe import outputs, read

    if host.kind == "capture" and not any(outputs(host)):
        raise Skipped(FABRIC_NEVER_ASKED)
    return read(host)


def _answers(host: Host) -> bool:
    """Whether it states what a kernel, its drivers and tools answered; another source holds files and outputs."""
    return host.live or host.kind == "capture"


def _require_driver(host: Host) -> None:
    """On a live host, before what reads the driver's answers is imported. Raises Skipped or Absent."""
    if host.live:
        from probes.gpu.query_guard import require_driver

        require_driver(host)


def _require_saved(host: Host, wanted: tuple[tuple[str, ...], ...]) -> None:
    """Raises Absent for a source of saved outputs without any of these; a live host or its capture is asked."""
    if not _answers(host) and not any(host.has_output(*argv) for argv in wanted):
        raise Absent(f"no saved output of {', '.join(sorted({argv[0] for argv in wanted}))}")


def _requires(wanted: tuple[tuple[str, ...], ...]) -> Callable[[Host], None]:
    return partial(_require_saved, wanted=wanted)
