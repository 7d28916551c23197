"""Sentences that state a fault wherever they stand: in a line of a log, in quotes, in the JSON of a log collector.
Hypervisors that give GPUs to guests, modules that DKMS cannot build, stress tests, codes of DCGM.

Sources: QEMU hw/vfio/pci.c, hw/vfio/container.c, hw/pci/pci.c; libvirt src/util/virpci.c, src/qemu/qemu_hostdev.c;
Proxmox qemu-server PVE/QemuServer/PCI.pm; VMware KB 2142307 and Dell KB 000199172; wilicc/gpu-burn gpu_burn-drv.cpp;
NVIDIA/DCGM dcgmlib/dcgm_errors.h, leptonai/gpud; NVIDIA/k8s-driver-manager, NVIDIA/k8s-device-plugin; dkms, kmod
tools/modprobe.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.gpu.facts import find_address
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

MOST_REPORTS = 64
_LIMIT_LINE = 4000
_BEFORE, _LIMIT_TEXT = 120, 400  # of a line that is shown
_HOT = 90  # degrees Celsius; most GPUs slow down between 83 and 92
_BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"


class _Sentence(NamedTuple):
    """Its code, what every line of it has, and its form. Groups: `bdf` and `gpu` name the part, others are details."""

    code: str
    needle: str
    form: str
    pattern: re.Pattern[str]


def _row(code: str, needle: str, form: str) -> _Sentence:
    return _Sentence(code, needle, form, lazy_pattern(form))


_SENTENCES = (  # the first that fits a line
    _row("guest-asleep", "stuck in D3", rf"vfio(?: {_BDF})?: [Uu]nable to power on device, stuck in D3"),
    _row("guest-asleep", "pci_irq_handler: Assertion", r"pci_irq_handler: Assertion \W?0 <= irq_num"),
    _row("guest-group", " not viable", rf"(?:{_BDF}: |\berror, )?(?P<what>group \d{{1,5}}) is not viable"),
    _row("guest-no-iommu", "no iommu_group found", rf"{_BDF}: (?:error )?no iommu_group found"),
    _row("guest-no-iommu", "passthrough of host PCI", r"host doesn't support (?:\S{1,12} )?passthrough of host PCI"),
    _row("guest-no-iommu", "IOMMU not present", r"cannot prepare PCI pass-?through, IOMMU not present"),
    _row(
        "guest-memory", "Cannot allocate memory",
        r"(?:VFIO_MAP_DMA|vfio\w{0,20}_dma_map)\b[^\n]{0,160}Cannot allocate",
    ),
    _row("guest-reset", "available reset mechanism", rf"[Cc]annot reset device {_BDF}, no available reset mechanism"),
    _row("guest-reset", "able to reset PCI device ", rf"able to reset PCI device {_BDF}: (?P<what>[^\n\"]{{4,80}})"),
    _row("guest-reset", "reset PCI device '", rf"can't reset PCI device '{_BDF}'"),
    _row("guest-taken", "in use by VMID", rf"PCI device '?{_BDF}'? already in use by (?P<what>VMID '?\d{{1,9}})"),
    _row(
        "guest-taken", " is in use by driver ",
        rf"PCI device {_BDF} is in use by driver \w{{1,20}}, (?P<what>domain \S{{1,40}})",
    ),
    _row("guest-taken", " to vfio", rf"(?:Cannot bind|Failed to bind PCI device) '?{_BDF}'? to vfio"),
    _row(
        "guest-window", "pages needed (",
        r"PCIPassthru: total number of (?P<what>pages needed \(\d{1,12}\) exceeds limit \(\d{1,12}\))",
    ),
    _row("guest-power-on", "is not a passthrough device", r"(?P<what>Device [\d:.]{5,16} is not a passthrough device)"),
    _row("guest-power-on", "DevicePowerOn", r"Module '?DevicePowerOn'? power on failed"),
    _row(
        "module-not-built", "return status for module build",
        r"Bad return status for module build on kernel: (?P<what>\S{3,80})",
    ),
    _row(
        "module-absent", "not found in directory",
        r"FATAL: Module (?P<what>(?:nvidia|amdgpu|habanalabs|neuron|gdrdrv)\w{0,30} "
        r"not found in directory \S{3,120})",
    ),
    _row("burn-faulty", ": FAULTY", r"^[ \t]*GPU (?P<gpu>\d{1,3}): FAULTY[ \t]*$"),
    _row("burn-died", "(DIED!)", r"errors: [^\n]{0,400}?\(DIED!\)"),
    _row("metric-xid", "Detected XID ", r"Detected XID (?P<xid>\d{1,3}) for GPU (?P<gpu>\d{1,3})\b"),
    _row(
        "metric-xid", " detected on GPU PCI:",
        r"\bXID (?P<xid>\d{1,3})\b[^\n]{0,160} detected on GPU PCI:"
        r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\b",
    ),
    _row(
        "driver-in-use", "unload NVIDIA driver kernel modules",
        r"Could not unload NVIDIA driver kernel modules, driver is in use",
    ),
    _row("plugin-too-old", "error getting device memory", r"error getting device memory: Not Supported"),
    _row("guest-window", "allocating new MMIO range", r"failed allocating new MMIO range: (?P<what>\S{3,60})"),
    _row(
        "dcgm-code", "DCGM_FR_",
        r"\bDCGM_FR_(?P<what>[A-Z][A-Z0-9_]{2,60})\b(?:[^\n]{0,80}?\bGPU[: ]{1,2}(?P<gpu>\d{1,3})\b)?",
    ),
)  # fmt: skip
_BURN = lazy_pattern(r"proc'd: [^\n]{0,1600}?\btemps: (?P<temperatures>\d{1,3} C(?: - (?:\d{1,3}|--) C){0,63})")
_FORMS = (*(re.sub(r"\(\?P<\w+>", "(?:", row.form) for row in _SENTENCES), r"^[\d.]{1,5}%  proc'd: ")
IS_STATED = lazy_pattern("|".join(_FORMS), re.MULTILINE)  # what is read here, and a line of progress of gpu-burn
_EXPLAINED = {"guest-power-on": "guest-window"}  # a consequence, and what explains it


def list_stated(text: str) -> list[ToolReport]:
    """Every fault that a line states, each once.

    >>> line = '{"msg":"vfio 0000:41:00.0: group 27 is not viable"}'
    >>> [(report.code, report.subject, report.detail) for report in list_stated(line)]
    [('guest-group', '0000:41:00.0', (('what', 'group 27'),))]
    """
    reports: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], ToolReport] = {}
    burning = ""
    rows = [row for row in _SENTENCES if row.needle in text]  # of a healthy text none
    for line in short_lines(text, _LIMIT_LINE):
        burning = line if "proc'd: " in line else burning
        for row in rows:
            if row.needle in line and (match := row.pattern.search(line)):
                report = _build_report(row.code, match, line)
                reports.setdefault((report.code, report.subject, report.detail), report)
                break
    codes = {code for code, _, _ in reports}
    told = [report for report in reports.values() if _EXPLAINED.get(report.code) not in codes]
    return [*told, *_list_hot(burning)][:MOST_REPORTS]


def _build_report(code: str, match: re.Match[str], line: str) -> ToolReport:
    groups = {name: value.strip() for name, value in match.groupdict().items() if value}
    bdf, gpu = groups.pop("bdf", None), groups.pop("gpu", None)
    if code == "dcgm-code":
        groups["what"] = groups["what"].replace("_", " ").lower()
    subject = find_address(bdf if "." in bdf else f"{bdf}.0") if bdf else f"NVIDIA {int(gpu)}" if gpu else None
    start = max(match.start() - _BEFORE, 0)
    return ToolReport(code, subject, " ".join(line[start : start + _LIMIT_TEXT].split()), tuple(groups.items()))


def _list_hot(line: str) -> Iterator[ToolReport]:
    """GPUs that are hot in the last line of progress of gpu-burn, which has one value for each."""
    match = _BURN.match(line, max(line.find("proc'd: "), 0))
    for gpu, value in enumerate(match["temperatures"].split(" - ") if match else ()):
        degrees = value.partition(" ")[0]
        if degrees.isdecimal() and int(degrees) >= _HOT:
            yield ToolReport("burn-hot", f"NVIDIA {gpu}", f"temps of GPU {gpu}: {value}", (("what", f"{degrees} °C"),))
