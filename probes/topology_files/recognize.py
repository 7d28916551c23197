"""Which reader a file is for, by what it holds: the first element of XML, the first entry of JSON."""

from __future__ import annotations

from collections.abc import Callable

from probes.host.interface import BadSource
from probes.text import ParseError
from probes.topology_files.preparsed import FactsSource, PreparsedFacts

_LOOK_BYTES = 64 << 10
_BOM = b"\xef\xbb\xbf"
_STARTS = ("system", "topology", "[")
_RUNS = "graphs"  # NCCL_GRAPH_DUMP_FILE


def facts_source(path: str, content: bytes) -> FactsSource | None:
    """The file as facts; None where no reader recognizes it. Raises BadSource for one that is damaged or hostile."""
    start = start_of(content)
    if start == _RUNS:
        raise BadSource(f"{path}: is a NCCL graph, which lists rings and trees; the topology is another file")
    if start not in _STARTS:
        return None
    kind, title, parse = _select_reader(start)
    try:
        return FactsSource(kind, path, title, parse(content))
    except ParseError as why:
        raise BadSource(f"{path}: is refused as {title}: {why}") from None


def _select_reader(start: str) -> tuple[str, str, Callable[[bytes], PreparsedFacts]]:
    """Kind, title and parser of the format that begins so."""
    from probes.topology_files import hwloc_xml, nccl_topo, rdma_topo  # lazy: few sources are one of them

    if start == "system":
        return nccl_topo.NAME, nccl_topo.SAID, nccl_topo.parse
    if start == "topology":
        return hwloc_xml.NAME, hwloc_xml.SAID, hwloc_xml.parse
    return rdma_topo.NAME, rdma_topo.SAID, rdma_topo.parse


def start_of(content: bytes) -> str | None:
    """The first element's name, "[" for JSON that lists PCI functions, or None.

    >>> start_of(b'<?xml version="1.0"?><!-- of p5 --><system version="1">'), start_of(b"[1]"), start_of(b"GPU0")
    ('system', None, None)
    """
    text = content[:_LOOK_BYTES].removeprefix(_BOM).lstrip()
    if text.startswith(b"["):
        return "[" if b'"realpath"' in text and b'"modalias"' in text else None
    while text.startswith((b"<?", b"<!")):
        text = text[_end(text) :].lstrip()
    name = text[1:64].replace(b"/", b" ").replace(b">", b" ").split(None, 1) if text.startswith(b"<") else []
    return name[0].decode("ascii", "replace") if name else None


def _end(text: bytes) -> int:
    """Where a declaration, comment or DOCTYPE ends; past the end where it does not."""
    mark = b"-->" if text.startswith(b"<!--") else b"?>" if text.startswith(b"<?") else b">"
    begin = text.find(mark)
    if mark == b">" and 0 <= text.find(b"[") < begin:
        mark = b"]>"
        begin = text.find(mark)
    return len(text) if begin < 0 else begin + len(mark)
