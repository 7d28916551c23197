"""A text about several devices as labels and values per device, whichever tool printed it.

A heading names a device; below it are labels and values, in sections that indentation marks. Tables have a row per
device. No label is known here: what a reader of facts does not look for is there, too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern
from probes.tool_reports.unread import FEWEST

Labels = dict[str, str]

_ADDRESS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_NAME = r"[A-Za-z][\w.-]{0,30}\d[\w.-]{0,30}"
_HEADING = lazy_pattern(  # a whole line
    rf"(?:GPU|NPU|\[\d{{1,3}}\] AIP \(\w{{2,12}}\)) (?P<bus>{_ADDRESS}):?"
    rf"|(?:pci|auxiliary)/(?P<devlink>{_ADDRESS}):?"
    rf"|hca_id:\s{{1,20}}(?P<rdma>{_NAME})|CA '(?P<ca>{_NAME})'"
    rf"|[A-Z][A-Za-z /-]{{2,40}} (?:for|of) (?:device |interface )?(?P<interface>{_NAME}):?"
    rf"|Device: (?P<nic>{_NAME})"
    r"|(?P<anonymous>Device #\d{1,3}:?)"
    r"|(?P<kind>GPU|NPU|Card|AIP|Device)(?: ID)? {0,40}[:#\[]? {0,40}(?P<number>\d{1,3})\]? ?:?"
)
_INLINE = lazy_pattern(r"GPU ?\[(?P<number>\d{1,3})\]\s{0,24}:\s{1,24}(?P<rest>[^:]{2,60}:\s.{1,300})")  # of rocm-smi
_SEPARATED = lazy_pattern(r"(?P<label>[^:=]{1,80}?)(?:\s*:\s+|\s*:$|\s+=\s+|\s{2,})(?P<value>\S.{0,300})?")
_SPACED = lazy_pattern(  # of devlink, which separates nothing
    r"(?P<label>cmode \w{4,20} value|[a-z][\w-]{0,30}(?:\.[\w-]{1,30})+|driver|serial_number) (?P<value>\S{1,80})"
)
_SYSCTL = lazy_pattern(
    r"(?m)^[ \t]*(net\.ipv[46]\.(?:conf|neigh))\.([\w./@:-]{2,32}?)\.(\w{2,40})[ \t]*=[ \t]*([^\n]{0,80})$"
)
_OWN_NAME = ("device", "pci device name", "bus id", "pci bus id", "interface", "ifname", "name", "gpu", "dev", "index")
_KEYS = ("pci.bus_id", "gpu_bus_id", "bus_id", "uuid", "gpu_uuid", "index")  # of a table
_LEVEL = lazy_pattern(r"[A-Z][\w-]* \w[\w -]{0,60}:")  # "Current hardware settings:", no label without a value
_LONGEST_LINE = 400
_LIMIT_DEPTH = 8
_LIMIT_NAME = 80
_LINES_KEPT = 4096
_LIMIT_DEVICES = 256
_LIMIT_LABELS = 2000  # of one device
_LIMIT_REGISTER = 40
_TAB = 8
_COMPARED = lazy_pattern(
    r"(?:3D|VGA compatible|Display|Ethernet|Infiniband|InfiniBand|Network) controller\b|Processing accelerators"
    r"|Co-processor|(?:Class )?(?:0[23]\d\d|1200|0b40):"
)
_FUNCTION = lazy_pattern(rf"({_ADDRESS}) (\S.{{3,300}})")
_FLAG = lazy_pattern(r"(?<![\w<])([A-Za-z0-9][\w/]{0,30})([+-])(?=[\s,;)]|$)")
_CAPABILITY = lazy_pattern(r"Capabilities: \[[0-9a-f]{2,4}(?: v\d)?\] (?P<name>[^:(,<]{2,60})(?P<rest>.*)")
_AT = lazy_pattern(r" at [0-9a-f]{4,16}\b|\bIRQ \d+|\bPort #\d+,? ?")
_WORD = lazy_pattern(r"([A-Za-z][\w.-]{0,30})[ :=]\s*(\S.{0,80})")


def split_devices(text: str) -> dict[str, Labels]:
    r"""The labels of each device that a heading names, by what it is called there.

    >>> split_devices("Features for ens1f0:\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n")
    {'ens1f0': {'tx-checksumming': 'on', 'tx-checksumming/tx-checksum-ipv4': 'off [fixed]'}}
    """
    devices: dict[str, Labels] = {}
    for name, lines in _split_blocks(text):
        labels = read_labels(lines)
        called = name or _find_own_name(labels)
        if called and len(devices) < _LIMIT_DEVICES:
            devices.setdefault(called, {}).update(labels)
    return devices


def _split_blocks(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """The name in each heading, None where it is below the heading, and the lines up to the next one. Headings have one
    margin: what is further in is a part of the device."""
    name: str | None = None
    lines: list[str] | None = None
    margin = 0
    for line in text.expandtabs(_TAB).splitlines():
        bare = line.strip()
        if not bare or len(bare) > _LONGEST_LINE:
            continue
        if inline := _INLINE.fullmatch(bare):
            yield f"GPU {inline['number']}", [inline["rest"]]
            continue
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.fullmatch(bare) if lines is None or indent <= margin else None
        if heading is not None:
            if lines is not None:
                yield name, lines
            kind = str(heading.lastgroup)
            name = None if kind == "anonymous" else heading[kind]
            if kind == "number":
                name = f"{heading['kind']} {name}"
            lines, margin = [], indent
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        yield name, lines


def _find_own_name(labels: Mapping[str, str]) -> str | None:
    own = {label.lower(): value for label, value in labels.items()}
    return next((own[name] for name in _OWN_NAME if name in own), None)


def read_labels(lines: Iterable[str]) -> Labels:
    """Labels by their path through the headings above them; one that comes again in its section has a number."""
    labels: Labels = {}
    headings: list[tuple[int, str]] = []
    level: tuple[int, str] | None = None  # a heading whose labels have its margin
    for line in lines:
        indent, name, value = _take_apart(line)
        while headings and headings[-1][0] >= indent:
            headings.pop()
        if not value:
            level = (indent, name) if _LEVEL.fullmatch(line.strip()) else None
        elif level and indent > level[0]:
            level = None
        elif level and indent == level[0]:
            headings.append(level)
        if value:
            _add(labels, "/".join([*(heading for _, heading in headings), name]), value)
        if len(headings) < _LIMIT_DEPTH:
            headings.append((indent, name))
    return labels


@lru_cache(_LINES_KEPT)
def _take_apart(line: str) -> tuple[int, str, str]:
    """Its margin, label and value; of a heading without a value. Most lines of a device are those of the next one."""
    bare = line.strip()
    match = _SEPARATED.fullmatch(bare) or _SPACED.fullmatch(bare)
    name = (match["label"].strip() if match else bare).rstrip(":")
    return len(line) - len(line.lstrip()), name[:_LIMIT_NAME], (match["value"] or "").strip() if match else ""


def split_functions(text: str) -> list[dict[str, Labels]]:
    """What lspci -v to -vvv prints of accelerators and network functions, those of one product together."""
    blocks: dict[str, dict[str, list[str]]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if head := _FUNCTION.match(line):
            lines = []
            if _COMPARED.match(head[2]):
                blocks.setdefault(head[2], {})[head[1]] = lines
        elif 0 < len(line) <= _LONGEST_LINE:
            lines.append(line)
    return [
        {address: _read_function(lines) for address, lines in islice(functions.items(), _LIMIT_DEVICES)}
        for functions in blocks.values()
        if len(functions) >= FEWEST
    ]


def _read_function(lines: Iterable[str]) -> Labels:
    """Each flag of each register, and each word with its value. Indentation marks the lines of a capability."""
    labels: Labels = {}
    capability, register = "", ""
    for line in lines:
        parts = _take_register_apart(line)
        if parts.capability is not None:
            capability, register = parts.capability, ""
        if parts.register is not None:
            register = parts.register
        path = "/".join(filter(None, (capability, register)))
        for name, value in parts.values:
            _add(labels, f"{path} {name}".strip(), value)
    return labels


class _RegisterLine(NamedTuple):
    capability: str | None  # that begins here; "": the line is of none
    register: str | None
    values: tuple[tuple[str, str], ...]


@lru_cache(_LINES_KEPT)
def _take_register_apart(line: str) -> _RegisterLine:
    bare = line.strip()
    label, separator, value = bare.partition(":")
    capability, register = None, None
    if match := _CAPABILITY.fullmatch(bare):
        capability, value = match["name"].strip(), match["rest"].lstrip(" :")
    elif separator and len(label) <= _LIMIT_REGISTER and not _FLAG.search(label):
        capability = "" if len(line.expandtabs(_TAB)) - len(bare) <= _TAB else None
        register = label.strip()
    else:
        value = bare
    value = _AT.sub("", value)
    values = [(flag, sign) for flag, sign in _FLAG.findall(value)]
    for piece in _FLAG.sub("", value).split(","):
        text = " ".join(piece.split())
        word = _WORD.fullmatch(text)
        values += [(word[1], word[2])] if word else [("", text)] if text else []
    return _RegisterLine(capability, register, tuple(values))


def _add(labels: Labels, label: str, value: str) -> None:
    if label in labels and len(labels) < _LIMIT_LABELS:
        label = f"{label} #{_find_free(labels, label)}"
    if len(labels) < _LIMIT_LABELS:
        labels[label] = value


def _find_free(labels: Labels, label: str) -> int:
    """The next number of a label that came before: numbers follow each other, so that halving finds it."""
    free = 2
    while f"{label} #{free}" in labels:
        free *= 2
    taken = free // 2
    while free - taken > 1:
        middle = (free + taken) // 2
        free, taken = (free, middle) if f"{label} #{middle}" in labels else (middle, taken)
    return free


def split_table(text: str) -> dict[str, Labels]:
    """The rows of comma-separated values by the column that names the device, else the first that tells them apart."""
    rows = [row for row in csv.reader(text.splitlines()[:_LIMIT_DEVICES], skipinitialspace=True) if len(row) > 1]
    names = [name.partition(" [")[0].strip() for name in rows[0]] if rows else []
    fitting = [dict(zip(names, map(str.strip, row), strict=True)) for row in rows[1:] if len(row) == len(names)]
    apart = [name for name in names if len({row[name] for row in fitting}) == len(fitting)]
    if not fitting or not apart:
        return {}
    key = next((name for name in _KEYS if name in apart), apart[0])
    return {f"GPU {row[key]}" if key == "index" else row[key]: row for row in fitting}


def split_xml(text: str) -> dict[str, Labels]:
    """The elements without elements in them, of each GPU of `nvidia-smi -q -x`."""
    from probes.gpu.nvidia_smi_query import parse_log  # lazy: few sources have one

    try:
        gpus = parse_log(text).findall("gpu")[:_LIMIT_DEVICES]
    except ParseError:
        return {}
    return {gpu.get("id") or str(number): dict(_walk(_as_tree(gpu), "")) for number, gpu in enumerate(gpus)}


def _as_tree(element: Any) -> Any:
    children = [(child.tag, _as_tree(child)) for child in element]
    return children or (element.text or "").strip()


def split_settings(text: str) -> dict[str, Labels]:
    """Settings of the network that name their interface (sysctl).

    >>> split_settings("net.ipv4.conf.ens1f0.arp_ignore = 1\\n")
    {'ens1f0': {'net.ipv4.conf/arp_ignore': '1'}}
    """
    devices: dict[str, Labels] = {}
    for where, name, label, value in _SYSCTL.findall(text):
        if name not in ("all", "default", "lo") and len(devices) < _LIMIT_DEVICES:
            devices.setdefault(name, {})[f"{where}/{label}"] = value.strip()
    return devices


def split_json(text: str) -> dict[str, Labels]:
    """Of a list of objects each by the first name that it has for itself."""
    import json  # lazy: few outputs are

    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    while isinstance(rows, dict) and len(rows) == 1:
        (rows,) = rows.values()
    devices: dict[str, Labels] = {}
    for row in rows[:_LIMIT_DEVICES] if isinstance(rows, list) else ():
        if isinstance(row, dict):
            labels = dict(_walk([*row.items()], ""))
            name = next(((key, labels[key]) for key in labels if key.lower() in _OWN_NAME), None)
            if name:
                devices[f"{name[0].upper()} {name[1]}" if name[1].isdecimal() else name[1]] = labels
    return devices


def _walk(tree: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The leaves of nested pairs, by their path; of a list that is no table its text."""
    if isinstance(tree, dict):
        tree = [*tree.items()]
    if isinstance(tree, list) and all(isinstance(entry, tuple) for entry in tree) and depth < _LIMIT_DEPTH:
        for label, inner in tree[:_LIMIT_LABELS]:
            yield from _walk(inner, f"{path}/{label}" if path else str(label), depth + 1)
    else:
        yield path, str(tree)
