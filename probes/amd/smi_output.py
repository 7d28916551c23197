"""Saved outputs of `amd-smi` and `rocm-smi`, text or JSON: what they state of each GPU and of each pair.

Source: ROCm/amdsmi, amdsmi_cli; rocm-smi prints the same tables without addresses. HOPS is not read: it is no count of
hops. An output that is cut or elided is refused: half a table reports nothing of the other half.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from probes.layout import Node, read_tree
from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern, require

MOST_GPUS = 256
_COLUMNS = {
    "ACCESS TABLE": "link_status",
    "LINK TYPE TABLE": "link_type",
    "WEIGHT TABLE": "weight",
    "NUMA BW TABLE": "bandwidth",
    "Link Type between two GPUs": "link_type",
    "Weight between two GPUs": "weight",
}
_OLD_KEYS = {"link_type": "link_type", "weight": "weight", "numa_bandwidth": "bandwidth"}
_TITLE = lazy_pattern(r"(?:=+ )?([A-Z][\w ]*?(?: TABLE:| between two GPUs =+))")
_NAME = lazy_pattern(r"GPU[0-9]{1,4}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_XGMI_ROW = lazy_pattern(r"(GPU[0-9]{1,4}) +([0-9a-fA-F]{4,8}:\S+) ")
_SECTION = lazy_pattern(r"^[ \t]{0,40}GPU: [0-9]{1,4}[ \t\r]*$", re.MULTILINE)
_ROCM_LINE = lazy_pattern(r"GPU ?\[?([0-9]{1,4})\]?\s*: ([^:]+): (\S.*)")
_ROCM_END = "End of ROCm SMI Log"
_BOX_FIRST = lazy_pattern(r"\| ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) ([^|\n]{1,200})\|")
_BOX_SECOND = lazy_pattern(r"\| +([0-9]{1,4}) +\S+ +([0-9]{1,4}|N/A) +([A-Z]{3})/(NPS[0-9]) *\|")
_BOX_DRIVER = lazy_pattern(r"\| *amdgpu Version: +(\S+) *\|")
_DRM_PAIR = lazy_pattern(r"\(Topology\) (Weight|Link type) between DRM devices ([0-9]{1,4}) and ([0-9]{1,4})")
_DRM_KEYS = {"Weight": "weight", "Link type": "link_type"}


class SmiOutput(NamedTuple):
    """GPUs are named as the tool numbers them: GPU0. A pair is directed, and may name addresses."""

    gpus: dict[str, dict[str, Any]]
    pairs: dict[tuple[str, str], dict[str, str]]
    cut: bool = False  # it has no end: what follows the tables is missing


def parse_smi(text: str) -> SmiOutput:
    """One output of either tool. Raises ParseError."""
    if text.startswith("$ "):
        text = text.partition("\n")[2]
    output = SmiOutput({}, {})
    if text.lstrip()[:1] in ("[", "{"):
        for document in _documents(text.strip()):
            _add_document(output, document)
    elif _BOX_FIRST.search(text):
        _add_box(output, text)
    elif first := _SECTION.search(text):  # what is above it is the end of a GPU whose number was cut off
        _add_sections(output, text[first.start() :])
    else:
        _add_tables(output, text)
    require(output.gpus or output.pairs, f"nothing of a GPU in {text[:60]!r}")
    return output._replace(cut="ROCm S" in text[:200] and _ROCM_END not in text and text.lstrip()[:1] != "{")


def _documents(text: str) -> Iterator[Any]:
    """Some subcommands print several, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    try:
        while at < len(text):
            document, at = decoder.raw_decode(text, at)
            yield document
            while at < len(text) and text[at].isspace():
                at += 1
    except (ValueError, RecursionError) as why:
        raise ParseError(f"no JSON, cut or elided: {str(why)[:80]}") from why


def _add_document(output: SmiOutput, document: Any) -> None:
    if isinstance(document, dict) and ("system" in document or any(key.startswith("card") for key in document)):
        _add_rocm(output, document)
        return
    if isinstance(document, dict):
        lists = (document.get(key) for key in ("gpu_data", "current_partition"))
        document = next((rows for rows in lists if isinstance(rows, list)), [document])
    for row in (document if isinstance(document, list) else [])[:MOST_GPUS]:
        if isinstance(row, dict):
            _add_record(output, row)


def _add_record(output: SmiOutput, row: Mapping[str, Any]) -> None:
    number = row.get("gpu", row.get("gpu_id"))
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 10_000:
        return
    name = f"GPU{number}"
    output.gpus.setdefault(name, {}).update({key.lower(): value for key, value in row.items()})
    links = row.get("links")
    for link in (links if isinstance(links, list) else [])[:MOST_GPUS]:
        if isinstance(link, dict) and isinstance(link.get("gpu"), int):
            fields = {key: str(link[key]) for key in ("link_type", "link_status", "weight", "bandwidth") if key in link}
            output.pairs.setdefault((name, f"GPU{link['gpu']}"), {}).update(fields)
    for old, key in _OLD_KEYS.items():  # one table for each column, by peer
        cells = row.get(old)
        for peer, value in list(cells.items() if isinstance(cells, dict) else ())[:MOST_GPUS]:
            if peer.startswith("gpu_") and peer[4:].isdecimal():
                output.pairs.setdefault((name, f"GPU{int(peer[4:8])}"), {})[key] = str(value)


def _add_rocm(output: SmiOutput, document: Mapping[str, Any]) -> None:
    system = document.get("system")
    for key, value in (system if isinstance(system, dict) else {}).items():
        if match := _DRM_PAIR.fullmatch(key):
            link = {_DRM_KEYS[match[1]]: str(value)}
            for pair in ((match[2], match[3]), (match[3], match[2])):
                output.pairs.setdefault((f"GPU{pair[0]}", f"GPU{pair[1]}"), {}).update(link)
                output.gpus.setdefault(f"GPU{pair[0]}", {})
    for card, rows in document.items():
        if card.startswith("card") and card[4:].isdecimal() and len(card) < 9 and isinstance(rows, dict):
            _add_rocm_facts(output, int(card[4:]), {str(key): str(value) for key, value in rows.items()})


def _add_rocm_facts(output: SmiOutput, number: int, values: Mapping[str, str]) -> None:
    own = output.gpus.setdefault(f"GPU{number}", {})
    if bus := values.get("PCI Bus"):
        own["bdf"] = bus
    if node := values.get("(Topology) Numa Node"):
        own["numa"] = {"node": node}


def _add_tables(output: SmiOutput, text: str) -> None:
    lines = iter(text.splitlines())
    for line in lines:
        if title := _TITLE.match(line.strip()):
            key = _COLUMNS.get(title[1].rstrip("=: "))
            _add_table(output, key, title[1].rstrip("=: "), lines)
        elif match := _XGMI_ROW.match(line):
            output.gpus.setdefault(match[1], {})["bdf"] = match[2]
        elif match := _ROCM_LINE.match(line):
            _add_rocm_facts(output, int(match[1]), {match[2].strip(): match[3].strip()})


def _add_table(output: SmiOutput, key: str | None, title: str, lines: Iterator[str]) -> None:
    """A square of values below a line of names."""
    columns = next(lines, "").split()
    if key is None or not columns or not all(map(_NAME.fullmatch, columns)) or len(columns) > MOST_GPUS:
        return
    for column in columns:
        if column.startswith("GPU"):
            output.gpus.setdefault(column, {})
    for expected in columns:
        name, *values = next(lines, "").split() or [""]
        if name != expected or len(values) != len(columns):
            raise ParseError(f"{title}: the row of {expected} has {len(values)} of {len(columns)} values")
        for column, value in zip(columns, values, strict=True):
            if column != name:
                output.pairs.setdefault((name, column), {})[key] = value


def _add_sections(output: SmiOutput, text: str) -> None:
    """`amd-smi list`, `static`, `metric`: lines `KEY: value`, sections by their indentation."""
    for gpu in read_tree(text)[:MOST_GPUS]:
        if gpu.label == "GPU" and gpu.text.isascii() and gpu.text.isdecimal():
            output.gpus.setdefault(f"GPU{int(gpu.text[:6])}", {}).update(_fields(gpu.nodes))


def _fields(nodes: list[Node]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for label, text, below in nodes:
        value = text or _fields(below)
        if type(fields.setdefault(label.lower(), value)) is not type(value):
            raise ParseError(f"{label}: is a value and a section")
    return fields


def _add_box(output: SmiOutput, text: str) -> None:
    """`amd-smi` alone: two lines for each GPU, the first with its address."""
    driver = _BOX_DRIVER.search(text)
    lines = text.splitlines()
    for line, after in pairwise(lines):
        first = _BOX_FIRST.match(line)
        if first is None or len(output.gpus) >= MOST_GPUS:
            continue
        second = require(_BOX_SECOND.match(after), f"no second line of {first[1]}")
        output.gpus[f"GPU{int(second[1])}"] = {
            "bdf": first[1],
            "asic": {"market_name": first[2].strip(), "oam_id": second[2]},
            "partition": {"compute_partition": second[3], "memory_partition": second[4]},
            "driver": {"version": driver[1]} if driver else {},
        }


def as_number(value: Any) -> int | None:
    """A count as either form prints it.

    >>> as_number({"value": 196592, "unit": "MB"}), as_number("196592 MB"), as_number("0x7"), as_number("N/A")
    (196592, 196592, 7, None)
    """
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        match = re.match(r"(0x[0-9a-fA-F]{1,16}|[0-9]{1,18})(?![0-9.])", value)
        value = int(match[1], 0 if match[1].startswith("0x") else 10) if match else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else None
