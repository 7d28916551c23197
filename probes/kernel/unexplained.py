"""Lines of drivers that read as a failure and fit no row of the table of sentences.

Whether one counts is a matter of rules; here a line is collected where the driver that wrote it is one of GPUs, NICs,
their switches or the IOMMU, and its words are those of a failure.
"""

from __future__ import annotations

import re
from collections import Counter

from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import BDF, NIC_DRIVERS, address
from probes.text import lazy_pattern

UNEXPLAINED = "unexplained"
_TEXT_CHARACTERS = 300
_PARTS, _FORMS = 64, 3  # parts of which lines are kept, and forms of lines of each

# What such a line holds, as drivers print it; the first are those for which very long logs are searched
FAILURE_NEEDLES = (
    b"ail", b"rror", b"ERR", b"imeout", b"imed out", b"nable to", b"ould", b"annot", b"atal", b"orrupt", b"bort",
    b"status 0x",
)  # fmt: skip
_NEEDLES = (
    *(needle.decode() for needle in FAILURE_NEEDLES), "ime", "an't ", "efuse", "eject", "err(", "ret", "tatus",
    "respon", "nrecover", "not supported", "nvalid", "hung", "stuck", "ismatch", "verflow", "navailable", "nsufficient",
    "ot enough", "bad state", "halted", "stall", "giving up", "gave up", "exhausted", "wedged", "violation", "exceeded",
)  # fmt: skip
DRIVERS = (
    r"NVRM|nvidia-nvswitch(?=\d)|nvidia[-_](?:uvm|modeset|fs|peermem|drm)|nvidia|nv_peer_mem|gdrdrv|nouveau|"
    rf"{NIC_DRIVERS}|mlx5_ib|infiniband|ib_core|bnxt_re|irdma|amdgpu|kfd|habanalabs|"
    r"(?:i915|xe)(?= (?!0000:00:02\.)[0-9a-f]{4,8}:)|accel(?= accel\d)|neuron|"
    r"\[ascend\]|pcieport(?! \S+ AER: )|DMAR|AMD-Vi|arm-smmu-v3|vfio-pci|"
    r"cxl_(?:pci|mem|port|acpi)|nvme(?= nvme\d)"
)
_OWNER = lazy_pattern(rf"(?P<driver>{DRIVERS})(?P<number>\d{{1,4}})?(?:\.[\w.]{{1,40}})?(?=[: ])")
DRIVER_LINE = lazy_pattern(rf"(?:^|[ \]])(?:{DRIVERS})[\d: .]".encode(), re.MULTILINE)
# Those of the network that put their name or function first in a form of their own
_OTHERS = lazy_pattern(
    r"(?:scsi host\d{1,5}: )?(?P<driver>ib_srp|iser|rpcrdma|svcrdma|libceph|ceph|LNetError|LustreError)(?=: )"
    r"|\[(?P<qed>qed[er]?)_\w{1,60}:\d{1,5}(?:\([\w-]{0,32}\))?\]"
)
_DRM = lazy_pattern(r"\[drm:[^\]\n]{1,80}\[(?P<driver>amdgpu|nvidia[\w-]{0,12})\]\] ")
FAILS = lazy_pattern(
    r"\bfail(?:s|ed|ure|ures|ing)?\b|\bERR(?:OR)?\b"
    r"|(?<!no )\berrors?\b(?! (?:reporting|detection|correction|handling|injection|counters?|recovery)\b)"
    r"|\btime(?:d[ -]?)?out\b(?! (?:is|set|value)\b)|\bcould(?: not|n't)\b|\bcan(?:not| ?not|'t)\b|\bunable to\b"
    r"|\brefuse[sd]?\b|\breject(?:s|ed|ing)?\b|\bfatal\b|\bcorrupt(?:ed|ion)?\b|\babort(?:s|ed|ing)?\b|\berr(?:or)?\(-?\d"
    r"|\bret(?:urn(?:ed)?|val)?[ =:]{1,3}-\d|\bstatus[ =:(]{1,3}0x0*[1-9a-f]|\bnot? respon(?:d|se|ding)\b"
    r"|\bunrecoverable\b|\bnot supported by\b|\binvalid\b|\bunresponsive\b|\bstuck\b|\bhung\b"
    r"|\bmismatch\b|\boverflow(?:ed)?\b|\bunavailable\b|\binsufficient\b|\bnot enough\b|\bbad state\b|\bhalted\b"
    r"|\bstall(?:s|ed)\b|\bg(?:iving|ave) up\b|\bexhausted\b|\bwedged\b|\bviolations?\b|\bexceeded\b",
    re.IGNORECASE,
)
_HARMLESS = lazy_pattern(
    r"\b(?:no|0|without(?: any)?) (?:\w+ )?(?:errors?|failures?)\b|\berrors?(?: count)?[:= ] ?0\b|\berr(?:or)?\(0\)"
    r"|\bfailover\b|\bstatus:? (?:0x0+\b|success|ok)\b|\b(?:enabl|disabl|support|register)\w{1,4}\b.{0,40}\berror\b"
    r"|\bsuccess(?:ful|fully)?\b|\brecovered\b|\brecovery (?:succeeded|successful)\b|\btimeout (?:of )?\d+ ?m?s\b"
    r"|\btrying to continue\b",
    re.IGNORECASE,
)
# Whole sentences that read as a failure and are none, or belong to a record that is read elsewhere
HARMLESS_SENTENCES = (
    (
        r"module verification failed: signature",
        "Linux kernel/module/main.c: loaded, and marks the kernel",
    ),
    (r"\berror status/mask=|\bPCIe Bus Error\b|Error of this Agent", "Linux pci/pcie/aer.c"),
    (r"rm_init_adapter failed", "open-gpu-kernel-modules 595 nvidia/nv.c: after RmInitAdapter failed"),
    (r"Rate limiting GSP RPC error prints", "open-gpu-kernel-modules 580 gsp/kernel_gsp.c: after Xid 119"),
    (r"Device requests max timeout of", "Linux bnxt/bnxt.c"),
    (r"ERROR detected invalid context, skipping", "nvidia-peermem.c: a program ended and its memory went first"),
    (r"\[Hardware Error\]|hardware errors detected in total", "Linux amdgpu/amdgpu_aca.c, amdgpu_ras.c: a record"),
    (r"Unable to read/write to IOMMU perf counter", "Linux iommu/amd/init.c"),
    (r"Failed to find handle for ACPI object", "Linux iommu/intel/dmar.c"),
    (r"can't derive routing for PCI INT", "Linux acpi/pci_irq.c"),
    (r"(?:failed to|can't) assign\b|\bno space for\b", "Linux pci/setup-res.c: read as regions of devices"),
    (r"missing or invalid SUBNQN|failed to set APST", "Linux nvme/host/core.c: of many good drives"),
    (r"DPC: error containment capabilities", "Linux pci/pcie/dpc.c"),
    (r"Failed to check link status", "Linux pci/hotplug/pciehp_hpc.c: an empty slot"),
)
_HARMLESS_SENTENCE = lazy_pattern("|".join(pattern for pattern, _ in HARMLESS_SENTENCES))
_ADDRESS = lazy_pattern(rf"(?<![\w:])(?:PCI:)?{BDF}(?![\w:])")
_NAME = lazy_pattern(r"(?:infiniband|habanalabs|accel) (?P<name>\w{2,15}):")
_UNIT = lazy_pattern(r"\b(?P<unit>GPU ?\d{1,3})\b(?!:)")
VARIABLE = lazy_pattern(r"0x[0-9a-fA-F]+|\d+")


class Unexplained:
    """Lines of each driver and part, those of one form as one."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, str | None], dict[str, LogEvent]] = {}
        self._more: Counter[tuple[str, str | None]] = Counter()
        self.left_out = 0

    def is_due(self, text: str) -> bool:
        """Whether a line that no row explains is one of these."""
        return _may_fail(text) and _find_driver(text) is not None and reads_as_failure(text)

    def add(self, text: str, at: str | None, logged: str | None) -> None:
        """One such line, and when it was written."""
        driver = _find_driver(text) or ""
        place = _ADDRESS.search(text)
        name = _NAME.match(text)
        subject = address(place["bdf"]) if place else name["name"] if name else None
        part = driver, subject
        if part not in self._forms and len(self._forms) >= _PARTS:
            self.left_out += 1
            return
        forms = self._forms.setdefault(part, {})
        form = VARIABLE.sub("#", text)
        before = forms.get(form)
        if before is None and len(forms) >= _FORMS:
            self._more[part] += 1
            return
        unit = _UNIT.search(text) if subject is None else None
        detail = (("unit", unit["unit"]),) if unit else ()
        event = LogEvent(UNEXPLAINED, text[:_TEXT_CHARACTERS], at, subject, driver, logged=logged, detail=detail)
        if before is not None:
            first = dict(before.detail).get("first") or before.logged
            detail = (*detail, ("first", first)) if first else detail
            event = event._replace(count=before.count + 1, first_at=before.first_at or before.at, detail=detail)
        forms[form] = event

    def close(self) -> list[LogEvent]:
        """The lines; the last of each part with the number of those of other forms."""
        rows = []
        for part, forms in self._forms.items():
            *others, last = forms.values()
            if more := self._more[part]:
                last = last._replace(detail=(*last.detail, ("more", str(more))))
            rows += [*others, last]
        return rows


def _may_fail(text: str) -> bool:
    """Whether a line has a part of a word of a failure: asked before any pattern is compiled."""
    return any(needle in text for needle in _NEEDLES)


def reads_as_failure(text: str) -> bool:
    """Whether a line has the words of a failure, and none that take them back.

    >>> reads_as_failure("mlx5_core 0000:3b:00.0: mlx5_x: failed to allocate a table, err(-12)")
    True
    >>> reads_as_failure("pcieport 0000:00:01.0: enabled with error reporting"), reads_as_failure("no errors found")
    (False, False)
    """
    return _may_fail(text) and bool(FAILS.search(text)) and not is_harmless(text)


def is_harmless(text: str) -> bool:
    """Whether other words of a line take those of a failure back, or its whole sentence is of a healthy host."""
    return bool(_HARMLESS.search(text) or _HARMLESS_SENTENCE.search(text))


def _find_driver(text: str) -> str | None:
    """The driver that wrote a line, where it is one that is listed."""
    match = _OWNER.match(text) or _DRM.match(text) or _OTHERS.match(text)
    return (match["driver"] or match["qed"]).strip("[]") if match else None
