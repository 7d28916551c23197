"""Labels whose values are not the same on all devices of an output, and that no reader has a fact for.

Nothing is judged: what is equal is left out, and what varies by its nature: identifiers, places, measurements, counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from probes.host.commands import DEVICE_LABELS, HL_SMI_QUERY, LABELLED, LABELLED_OF_INTERFACES, NVIDIA_SMI_SAVED
from probes.host.interface import Host, ReadError
from probes.text import MOST_CHARACTERS, lazy_pattern
from probes.tool_reports.facts import LabelValues
from probes.tool_reports.labels import (
    Labels,
    split_devices,
    split_functions,
    split_json,
    split_settings,
    split_table,
    split_xml,
)
from probes.tool_reports.unread import FEWEST

_LIMIT_LABELS = 64  # of one output
_LIMIT_VALUE = 120
_SHARE = 4  # a value is usual where at most one in so many devices has another
_IDENTITY = lazy_pattern(  # or a place, a state or a count; in a label or a heading above it
    r"\b(?:serial|uuid|guid|[sd]?gid|s?m?_?lid|mac|pdi|bus|bus-info|domain|minor|irq|interrupt|pid|index|slot|tray"
    r"|process(?:es)? ?(?:name|id)?(?=/|$)|module id|host id|board id|time(?:stamp)?|uptime|numa|affinity|hostname"
    r"|address|offset|performance state|pstate|errors?|counts?|counters?|cntr|replays?|replay number|rollovers?|retired"
    r"|remap(?:ped|ping)?|correctable|uncorrectable|packets?|bytes|dropp?(?:ed)?|discards?|sessions?|reasons"
    r"|violations?|histogram|health|display|mig device|state|active)\b",
)
_MEASURED = lazy_pattern(
    r"\b(?:temp(?:erature)?|draw|usage|util(?:ization)?|used|free|throughput|reserved|fan|voltage|fps|latency|energy)\b"
    r"|(?<!pcie )clock level|^clocks?(?:/|\.(?:current|sm|mem|gr|video)|$)"
)
_SETTING = lazy_pattern(  # a limit of what varies
    r"\b(?:max(?:imum)?|min(?:imum)?|default|limit|requested|supported|threshold|target|shutdown|slowdown temp|size"
    r"|mode)\b"
)
_ZERO = lazy_pattern(r"0(?:\.0{1,6})?(?: ?[A-Za-z%/]{1,12})?")
_NUMBER = lazy_pattern(r"-?\d{1,20}(?:\.\d{1,6})?(?: ?[A-Za-z%/]{1,12})?")
_READ_OF_FUNCTIONS = lazy_pattern(  # or states and places of PCI functions
    r"(?:LnkCap (?:Speed|Width)|LnkCtl (?:ASPM|Disabled|LnkDisable)|LnkCtl2 Target|ACS(?:Cap|Ctl) .*"
    r"|DevCtl (?:MaxPayload|MaxReadReq|RlxdOrd|ExtTag)|DevCap (?:MaxPayload|ExtTag)|ATSCtl Enable"
    r"|(?:DevCtl2|AtomicOpsCtl|DevCap2) 10BitTag(?:Req|Comp)|(?:Initial VFs|IOVCtl)\b.*|Express MSI|Express IntMsgNum"
    r"|(?:Region|Expansion ROM|BAR|Kernel|Subsystem|IOMMU group|Physical Slot|\w*Sta(?:tus|t)?2?|MSI|HeaderLog)\b.*"
    r"|Control DisINTx\b.*|AERCap First|[^/]{0,80}\bMSI-X .*)"
    r"|(?:MSI|MSI-X|Vital Product Data|Single Root I/O Virtualization)\b.*"
)
_DERIVED = (  # facts of GPUs that are compared with no peer
    "link_max_generation",
    "power_limit_requested_watts",
    "architecture",
)


def list_unequal(host: Host) -> list[LabelValues]:
    """Of all outputs that the source holds. A capture has those of a live host, of which they are not asked."""
    found: list[LabelValues] = []
    for argv, devices in _list_outputs(host) if host.kind != "capture" else ():
        if len(devices) >= FEWEST:
            source = " ".join(argv) + (" INTERFACE" if argv in LABELLED_OF_INTERFACES else "")
            found += compare_labels(source, devices, _known_of(argv))
    return found


def _list_outputs(host: Host) -> Iterator[tuple[tuple[str, ...], Mapping[str, Labels]]]:
    for argv in LABELLED:
        if host.has_output(*argv) and (text := _read(host, argv)):
            groups = split_functions(text) if argv[0] == "lspci" else [_choose_split(argv)(text)]
            groups += [split_settings(text)] if argv == DEVICE_LABELS else []
            yield from ((argv, devices) for devices in groups)
    for argv in LABELLED_OF_INTERFACES:
        names = host.saved_arguments(*argv)
        texts = {name: _read(host, (*argv, name)) for name in names} if len(names) >= FEWEST else {}
        devices = {name: _only(split_devices(f"Settings for {name}:\n{text}")) for name, text in texts.items() if text}
        yield argv, devices


def _choose_split(argv: tuple[str, ...]) -> Callable[[str], Mapping[str, Labels]]:
    if argv in (*NVIDIA_SMI_SAVED, HL_SMI_QUERY):
        return split_table
    return split_xml if "-x" in argv else split_json if "--json" in argv else split_devices


def _only(devices: Mapping[str, Labels]) -> Labels:
    return {label: value for labels in devices.values() for label, value in labels.items()}


def _read(host: Host, argv: tuple[str, ...]) -> str:
    try:
        text = host.run(*argv).stdout
    except ReadError:
        return ""
    return text if len(text) <= MOST_CHARACTERS else ""


def compare_labels(
    source: str, devices: Mapping[str, Labels], is_read: Callable[[str], bool] = lambda label: False
) -> Iterator[LabelValues]:
    """The labels that most devices have alike, and some have not. `is_read`: whether a fact has it.

    >>> ports = {f"ens{n}": {"rx": "on" if n else "off", "tx": "on"} for n in range(4)}
    >>> list(compare_labels("ethtool -a", ports))
    [LabelValues(source='ethtool -a', label='rx', values=(('on', ('ens1', 'ens2', 'ens3')), ('off', ('ens0',))))]
    """
    if len(devices) < FEWEST:
        return
    shown = 0
    every = dict.fromkeys(label for labels in devices.values() for label in labels)
    has_measured = any(_MEASURED.search(_normalize(label)) for label in every)
    for label in every:
        values: dict[str, list[str]] = defaultdict(list)
        for device, labels in devices.items():
            if (value := labels.get(label)) is not None:
                values[value[:_LIMIT_VALUE]].append(device)
        if len(values) > 1 and not is_read(label) and not varies(label) and _has_usual(label, values, has_measured):
            rows = sorted(values.items(), key=lambda row: -len(row[1]))
            yield LabelValues(source, label, tuple((value, tuple(names)) for value, names in rows))
            shown += 1
            if shown == _LIMIT_LABELS:
                return


def _has_usual(label: str, values: Mapping[str, list[str]], has_measured: bool) -> bool:
    """Whether some of the devices differ from most. Beside measured values a number where most have 0 is a count."""
    usual = max(values, key=lambda value: len(values[value]))
    total = sum(map(len, values.values()))
    if total < FEWEST or (total - len(values[usual])) * _SHARE > total:
        return False
    is_count = has_measured and _ZERO.fullmatch(usual) and all(map(_NUMBER.fullmatch, values))
    return not is_count or bool(_SETTING.search(label.lower()))


def varies(label: str) -> bool:
    """Whether it names an identifier, a place, a measurement or a count.

    >>> [varies(label) for label in ("PCI/Bus Id", "Max Clocks/SM", "Clocks/SM", "Compute Mode", "tx-usecs")]
    [True, False, True, False, False]
    """
    words = _normalize(label)
    return bool(_IDENTITY.search(words) or (_MEASURED.search(words) and not _SETTING.search(words)))


def _normalize(label: str) -> str:
    return label.lower().replace("_", " ").replace("t.limit ", "").removeprefix("advanced error reporting/")


def _is_read_of_function(label: str) -> bool:
    """Whether a label, or what stands below its headings, is a fact of a PCI function."""
    words = label.split("/")
    return any(_READ_OF_FUNCTIONS.fullmatch("/".join(words[start:])) for start in range(len(words)))


def _known_of(argv: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a reader of this command's output has a fact for a label."""
    if argv[0] == "lspci":
        return _is_read_of_function
    labels = _list_known(argv)
    return lambda label: label in labels or label.rpartition("/")[2] in labels


@cache
def _list_known(argv: tuple[str, ...]) -> frozenset[str]:
    """The labels of the tables of its reader, whose module the probe of its subject has imported."""
    if argv[0] == "nvidia-smi":
        from probes.gpu.nvidia_smi_query import CSV_FIELDS, TEXT_FIELDS, XML_FIELDS

        fields = TEXT_FIELDS if argv == ("nvidia-smi", "-q") else XML_FIELDS if "-x" in argv else CSV_FIELDS
        return frozenset(path for name, paths in fields.items() if name not in _DERIVED for path in paths)
    if argv[0] == "ibv_devinfo":
        from probes.rdma.ibv_devinfo import LABELS
    elif argv[0] == "ibstat":
        from probes.rdma.ibstat import LABELS
    elif argv[:2] in (("ethtool", "-a"), ("ethtool", "-i")):
        from probes.ethtool.saved import LABELS
    else:
        return frozenset()
    return LABELS
