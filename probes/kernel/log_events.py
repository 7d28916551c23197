"""What a kernel log states of GPUs, NICs and links: each line of interest as an event with its device and its code.

Message forms: NVIDIA's driver (Xid, SXid), amdgpu (amdgpu_ras.c, amdgpu_device.c, amdgpu_xgmi.c), Linux
drivers/pci/pcie/{aer,dpc}.c, drivers/pci/hotplug, pci.c (__pcie_print_link_status), mlx5 (events.c, health.c, cmd.c),
bnxt, ice, kernel/module (symbol versions).
"""

import re
from collections.abc import Callable, Iterable, Iterator

from probes.kernel.failed_starts import FailedStarts
from probes.kernel.firmware_records import FirmwareRecords
from probes.kernel.hung_tasks import Stalls
from probes.kernel.log_facts import AFTER_RESET, LogEvent
from probes.kernel.log_lines import Line, find_form, thin_lines
from probes.kernel.passing_faults import NEEDLES as PASSING_NEEDLES
from probes.kernel.passing_faults import PassingFaults
from probes.kernel.sentence import BDF, DRIVER, STARTED, address
from probes.kernel.sentences import SENTENCES
from probes.kernel.unexplained import Unexplained
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

TEXT_CHARACTERS = 300
_OF_LINKS, _TIMES = ("link_down", "link_up"), 32  # whose times are kept, and how many
_OF_GPUS = frozenset({"xid", "gpu_lost", "gpu_init"})  # of which it matters whether they came after a reset, too
_LOADED = "driver_loaded"  # kind of a line that is no event by itself
EVENTS_LIMIT = 500  # distinct ones; a log of one fault repeated is one row
CODES_LIMIT = 1000  # above the limit only codes that a device has not had: details of many links hide no fault

LINES_LIMIT = 40_000  # lines of interest that are read, half of them the first and half the last ones, 0.1 ms each

_TOKENS = (  # cheap sieve
    "NVRM", "Xid (PCI",
    "nvidia", "nv_peer", "pcie", "PCIe", "mlx5_", "NIC Link", "AER", "DPC", "bnxt_", "ice 0", "ena 0", "efa 0",
    "ionic ", "amdgpu", "kfd kfd", "VRAM is lost", "[ascend]", "NEURON_HW_ERR", "Hardware Error]", "infiniband ",
    "DMAR:", "AMD-Vi", "ower state", "failed with error", " symbol ", "version magic", "module", "habanalabs", "accel ",
    "HugeTLB: ", "NETDEV WATCHDOG", "assign", "can't reserve", "nouveau ", "i40e 0", "idpf 0", "; giving up",
    "blocked for more", "multicast join", "PCI rejects", "vfio-pci ", "arm-smmu-v3 ", "RLIMIT_MEMLOCK",
    "DMAR-IR: ", "header type 7f", "error updating", "retraining", "Max Payload", "cxl_",
    "KFD is disabled", "Queue preemption", "DMA completion", "ultraserver", "gdrdrv", "mlx4_core ", "ib_core", "irdma",
    "hns3 ", "neuron", "segfault at", "EDAC MC", "emperature", "not syncing", "lockup", "LOCKUP", "stall",
    "kthread starved", "BUG", "Oops: ", "traps: ", "emory failure", "emory error", "oft offlin", "BERT: ", "NMI: ",
    "I/O error", "critical ", "EXT4-fs", "XFS (", "ut of memory", "killable", "pids controller", "file-max",
    "Disk failure", "allocation failure", " cared", "unstable", "nvme nvme", "Scrub failed", "ring timeout",
    "i915 0", "xe 0", "cxi_", "sfc 0", "enic 0", "pds_core ", "octeontx2", "hfi1 ", "erdma ", "hns_roce",
    "ixgbe ", "igb 0", "igc 0", "cxgb4 ", "mana ", "gve 0", "hinic ", "802.3ad", "illegal loopback", "own address",
    "duplicate address", "table overflow", "nf_conntrack", "hw csum", "cm_destroy_id", "LNet", "LustreError",
    "iser: ", "rpcrdma: ", "svcrdma: ", "[qed", "transmit timeout", " event (status=", *PASSING_NEEDLES,
)  # fmt: skip

_AER = lazy_pattern(
    rf"{BDF}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>[^,]{{1,40}}), (?:type=)?(?P<layer>[^,]{{1,40}})"
)
_AER_BIT = lazy_pattern(rf"{BDF}:? +(?:AER: +)?\[ ?\d+\] (?P<name>[A-Za-z][\w ]{{0,40}}?)\s*(?P<first>\(First\))?\s*$")
_CABLE = lazy_pattern(
    rf"mlx5_core {BDF}: .{{0,60}}?Port module event: module (?P<module>\d{{1,3}}), Cable (?P<un>un)?plugged"
)
_LINK_UP = lazy_pattern(rf"mlx5_core {BDF}:? \S{{1,40}}?:? (?:Port: \d{{1,3}} )?Link up\b")
_GPU_NAMED = lazy_pattern(rf"NVRM: The NVIDIA v?GPU {BDF}(?: \(PCI ID: [0-9a-f:]{{4,16}}\))?(?:\s*$|\\x0a)")
_NAMED = lazy_pattern(  # a device that a driver names beside its address: of RDMA, of a Gaudi card
    rf"(?:bnxt_en|mlx5_core|ice|irdma|ionic|efa) {BDF} (?P<name>[a-z]\w{{1,15}}_\w{{0,15}}\d):"
    rf"|habanalabs {BDF.replace('bdf', 'card')}: Failed to initialize (?P<of_card>(?:accel|hl)\d{{1,3}})\."
)
# Sentences of the NVIDIA driver without an address: the next GPU that cannot be initialized is theirs
_OF_NEXT_GPU = frozenset({
    "gsp-firmware-missing", "gsp-not-started", "needs-reset", "gfw-boot", "bar-missing", "registers-taken",
    "no-interrupt",
})  # fmt: skip
_NVLINK5 = lazy_pattern(r"\b(?P<unit>[A-Z][A-Z0-9_]{2,24}) (?P<severity>Fatal|Nonfatal)\b.*?\bLink (?P<link>-?\d+)")
_PREVIOUS = lazy_pattern(r"caused by previous Xid (?P<previous>\d+)")
_RECOVERY = lazy_pattern(r"GPU recovery action changed from (?P<before>\S+.*?) to (?P<after>\S.*?)\s*$")
_SXID_LINK = lazy_pattern(r"\bLink (?P<link>\d+)\b")


_ASSIGNED = lazy_pattern(
    rf"\b[\w-]{{1,32}} {BDF}: (?P<name>(?:VF )?BAR \d{{1,2}})(?: \[[^\]]{{0,60}}\])?: (?P<failed>failed to )?assign"
)


def events(log: Iterable[Line]) -> tuple[list[LogEvent], int]:
    """Events in the order of their first line, equal ones as one; and how many were left out for their number."""
    by_key: dict[tuple[object, ...], LogEvent] = {}
    failed: set[str | None] = set()  # NICs of whose driver a start is of interest: every boot has one
    codes: set[tuple[object, ...]] = set()
    left_out = 0
    names: dict[str, str] = {}  # of devices, with their addresses
    resets, unexplained = _Resets(), Unexplained()
    lines, more = thin_lines(list(log))
    for event in _events(_learn_names(lines, names), unexplained):
        if event.code == STARTED and event.subject not in failed:
            continue
        if event.kind == "mlx5":
            failed.add(event.subject)
        if event.kind == _LOADED:
            resets.loads += 1
            continue
        key = (event.kind, event.subject, event.code, event.detail)
        resets.note(key, event)
        before = by_key.get(key)
        if event.kind in _OF_LINKS and (date := event.at or event.logged):
            event = event._replace(times=(*(before.times if before else ()), date)[-_TIMES:])
        if before is not None:
            first = before.first_at or before.at
            by_key[key] = event._replace(count=before.count + 1, first_at=first)
        elif len(by_key) < (EVENTS_LIMIT if key[:3] in codes else CODES_LIMIT):
            by_key[key] = event
            codes.add(key[:3])
        else:
            left_out += 1
    graded = {(event.subject, event.code) for event in by_key.values() if event.kind == "sxid" and _has_severity(event)}
    marked = [resets.mark(key, event) for key, event in by_key.items()]
    whole = [
        event._replace(count=event.count + more.pop(find_form(event.text), 0)) if more else event
        for event in (*marked, *unexplained.close())
    ]
    return [
        _name_address(event, names)
        for event in whole
        if event.kind != "sxid" or _has_severity(event) or (event.subject, event.code) not in graded
    ], left_out + unexplained.left_out


class _Resets:
    """Which errors of GPUs came again after the driver was loaded again, or stated that the GPU has recovered."""

    def __init__(self) -> None:
        self.loads = 0
        self._recovered: dict[str | None, int] = {}
        self._first: dict[tuple[object, ...], tuple[int, int]] = {}
        self._again: set[tuple[object, ...]] = set()

    def note(self, key: tuple[object, ...], event: LogEvent) -> None:
        """One line of the log."""
        if event.kind not in _OF_GPUS:
            return
        if dict(event.detail).get("after", "").endswith("(None)"):
            self._recovered[event.subject] = self._recovered.get(event.subject, 0) + 1
            return
        now = (self.loads, self._recovered.get(event.subject, 0))
        if self._first.setdefault(key, now) != now:
            self._again.add(key)

    def mark(self, key: tuple[object, ...], event: LogEvent) -> LogEvent:
        """The event, with that in its detail."""
        return event._replace(detail=(*event.detail, AFTER_RESET)) if key in self._again else event


def _has_severity(event: LogEvent) -> bool:
    return any(name == "severity" for name, _ in event.detail)


def _learn_names(log: Iterable[Line], names: dict[str, str]) -> Iterator[Line]:
    """The same lines; names of devices that drivers print beside an address are added."""
    for line in log:
        if match := _NAMED.match(line.text):
            names[match["name"] or match["of_card"]] = address(match["bdf"] or match["card"])
        yield line


def _name_address(event: LogEvent, names: dict[str, str]) -> LogEvent:
    """An event that names a device alone, with the address that another line gives for it."""
    at = names.get(event.subject or "")
    if at is None:
        return event
    return event._replace(subject=at, detail=_detail({**dict(event.detail), "name": event.subject or ""}))


class _BusError(NamedTuple):
    """One record of AER: its first line, and the status bits that follow."""

    line: Line
    match: re.Match[str]
    bits: tuple[str, ...] = ()
    first: str | None = None  # the bit that the hardware marked as first

    def with_bit(self, bit: re.Match[str]) -> "_BusError":
        """The record with one more status bit."""
        return self._replace(bits=(*self.bits, bit["name"]), first=bit["name"] if bit["first"] else self.first)


def _events(log: Iterable[Line], unexplained: Unexplained) -> Iterator[LogEvent]:
    bus_error: _BusError | None = None
    gpus, bars, cables, starts, stalls = _GpuSentences(), _Bars(), _Cables(), FailedStarts(), Stalls()
    passing, records = PassingFaults(), FirmwareRecords()
    lines = list(log)
    text = "\n".join(line.text for line in lines)
    tokens = [token for token in _TOKENS if token in text]  # of a healthy machine a few
    of_interest = [number for number, line in enumerate(lines) if any(token in line.text for token in tokens)]
    middle = len(of_interest) - LINES_LIMIT
    left_out = frozenset(of_interest[LINES_LIMIT // 2 :][: max(middle, 0)])
    unexplained.left_out += len(left_out)
    read = frozenset(of_interest) - left_out
    for number, line in enumerate(lines):
        yield from stalls.read(line.text, line.at, line.logged)
        if bus_error and (bit := _AER_BIT.search(line.text)) and bit["bdf"] == bus_error.match["bdf"]:
            bus_error = bus_error.with_bit(bit)
            continue
        if number not in read:
            continue
        if (completed := records.read(line)) is not None:
            yield from completed
            continue
        if again := _AER.search(line.text):
            if bus_error:
                yield _aer(bus_error)
            bus_error = _BusError(line, again)
            continue
        if "assign" in line.text and (bar := _ASSIGNED.search(line.text)):
            bars.read(bar, line)
            continue
        if line.text.startswith("mlx5_core "):
            cables.read(line)
        if passing.read(line.text, line.at, line.logged):
            continue
        if line.text.startswith("NVRM: loading NVIDIA UNIX"):
            yield LogEvent(_LOADED, line.text)
            continue
        is_explained = False
        for event in starts.read(line.text, gpus.read(line)):
            is_explained = True
            yield from stalls.hold(event)
        if not is_explained and unexplained.is_due(line.text) and not any(_plain(line)):
            from probes.kernel.network_families import read_family  # lazy: few logs have such a line

            if family := read_family(line.text[:TEXT_CHARACTERS]):
                yield family._replace(at=line.at, logged=line.logged)
            else:
                unexplained.add(line.text, line.at, line.logged)
    if bus_error:
        yield _aer(bus_error)
    yield from records.close()
    yield from bars.close()
    yield from cables.close()
    yield from passing.close()
    yield from gpus.close()
    yield from stalls.close()


class _Bars:
    """Memory regions of devices for which the kernel found no window. It tries several times: the last try counts."""

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], Line] = {}

    def read(self, bar: re.Match[str], line: Line) -> None:
        """One try for one region."""
        place = bar["bdf"], bar["name"]
        if not bar["failed"]:
            self._failed.pop(place, None)
        elif len(self._failed) < CODES_LIMIT:
            self._failed[place] = line

    def close(self) -> Iterator[LogEvent]:
        """The regions that stay without a window."""
        for line in self._failed.values():
            yield from _plain(line)


class _Cables:
    """Cages of mlx5 without a cable at the end of the log: maintenance plugs it in again."""

    def __init__(self) -> None:
        self._unplugged: dict[tuple[str, str], LogEvent] = {}
        self._used: set[str] = set()  # functions whose cable or link was there before

    def read(self, line: Line) -> None:
        """One line, where it is about a cable or a link that came up."""
        if cable := _CABLE.match(line.text):
            place = address(cable["bdf"]), cable["module"]
            self._unplugged.pop(place, None)
            if not cable["un"]:
                self._used.add(place[0])
            elif len(self._unplugged) < CODES_LIMIT:
                detail = {"module": place[1], "before": "used" if place[0] in self._used else "not known"}
                event = LogEvent("unplugged", line.text[:TEXT_CHARACTERS], line.at, place[0], logged=line.logged)
                self._unplugged[place] = event._replace(detail=_detail(detail))
        elif up := _LINK_UP.match(line.text):
            self._used.add(address(up["bdf"]))

    def close(self) -> Iterator[LogEvent]:
        """The cages that stay without one."""
        yield from self._unplugged.values()


class _GpuSentences:
    """Sentences of the NVIDIA driver that go over several lines: which GPU they are about."""

    def __init__(self) -> None:
        self._named: tuple[str, Line] | None = None  # a GPU whose sentence goes on in the next lines
        self._waiting: LogEvent | None = None

    def read(self, line: Line) -> Iterator[LogEvent]:
        """The events of a line."""
        begun = _GPU_NAMED.search(line.text) if "NVRM: The NVIDIA" in line.text else None
        if begun:
            self._named = (address(begun["bdf"]), line)
            if "\\x0a" not in line.text:
                return
        if self._named and "fallen off the bus" in line.text:
            gpu, first = self._named
            line, self._named = line._replace(text=f"NVRM: GPU {gpu} has fallen off the bus"), None
            line = line if line.at or line.logged else line._replace(at=first.at, logged=first.logged)
        for event in _plain(line):
            yield from self._place(event, line)

    def _place(self, event: LogEvent, line: Line) -> Iterator[LogEvent]:
        if event.kind == DRIVER and event.subject is None and self._named and "NVRM: " in line.text:
            gpu, first = self._named
            dated = event if event.at or event.logged else event._replace(at=first.at, logged=first.logged)
            yield dated._replace(subject=gpu)
            self._named = None
        elif event.kind == DRIVER and event.subject is None and event.code in _OF_NEXT_GPU:
            yield from self.close()
            self._waiting = event
        else:
            if event.kind == "gpu_init" and self._waiting:
                yield self._waiting._replace(subject=event.subject)
                self._waiting = None
            yield event

    def close(self) -> Iterator[LogEvent]:
        """A sentence that no GPU followed."""
        if self._waiting:
            yield self._waiting
        self._waiting = None


def _plain(line: Line) -> Iterator[LogEvent]:
    for form in SENTENCES:
        if form.needle not in line.text or (match := form.pattern.search(line.text)) is None:
            continue
        groups = {key: value for key, value in match.groupdict().items() if value}
        bdf, name, short = groups.pop("bdf", None), groups.pop("name", None), groups.pop("short", None)
        bdf = bdf or (f"0000:{short}" if short else None)
        code = groups.pop("code", None) or form.code
        subject = address(bdf) if bdf else name
        if name and bdf:
            groups["name"] = name
        if more := _MORE.get(form.kind):
            groups |= more(line.text)
        yield LogEvent(
            form.kind, line.text[:TEXT_CHARACTERS], line.at, subject, code, logged=line.logged, detail=_detail(groups)
        )
        return


def _xid(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for pattern in (_NVLINK5, _PREVIOUS, _RECOVERY):
        if match := pattern.search(text):
            fields |= {key: value for key, value in match.groupdict().items() if value}
    return fields


def _sxid(text: str) -> dict[str, str]:
    match = _SXID_LINK.search(text)
    return {"link": match["link"]} if match else {}


_MORE: dict[str, Callable[[str], dict[str, str]]] = {"xid": _xid, "sxid": _sxid}


def _aer(record: _BusError) -> LogEvent:
    """One event per record, however many status bits it has."""
    line, match = record.line, record.match
    severity = match["severity"].strip().lower()
    kind = (
        "fatal" if "(fatal" in severity else "nonfatal" if "uncorrect" in severity or "non" in severity else "corrected"
    )
    detail = {"severity": kind, "layer": match["layer"].strip()}
    if len(record.bits) > 1:
        detail["bits"] = ", ".join(record.bits)
    return LogEvent(
        "aer",
        line.text[:TEXT_CHARACTERS],
        line.at,
        address(match["bdf"]),
        record.first or (record.bits[0] if record.bits else None),
        logged=line.logged,
        detail=_detail(detail),
    )


def _detail(groups: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(groups.items()))
