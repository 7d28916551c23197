"""Reads the picture that `lspci -tv` draws, for tests: which function hangs below which bridge."""

from __future__ import annotations

import re

from probes.pci.sysfs import PciFunction

_TOKEN = re.compile(
    r"(?<![0-9a-f:.])(?:\[(?:(?P<domain>[0-9a-f]{4}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|"
    r"(?P<slot>[0-9a-f]{2})\.(?P<fn>[0-7])(?=-|  |$))"
)
_CLASSES = (  # what a line names -> vendor, class
    ("NVIDIA Corporation AD102 High Definition", "0x10de", "0x040300"),
    ("NVIDIA Corporation", "0x10de", "0x030000"),
    ("Mellanox Technologies", "0x15b3", "0x020000"),
)


def parse_tree(text: str, nodes: dict[str, int]) -> list[PciFunction]:
    """Functions with parent and root bus. `nodes`: NUMA node by the first two digits of a root bus's number."""
    functions: dict[str, PciFunction] = {}
    level: dict[int, tuple[str, str, str | None]] = {}  # column -> domain:bus, root bus, parent
    for line in text.splitlines():
        here: tuple[str, str, str | None] | None = None
        last: str | None = None
        for token in _TOKEN.finditer(line):
            if token["bus"]:
                domain = token["domain"] or "0000"
                bus = f"{domain}:{token['bus']}"
                here = (bus, functions[last].root_bus or bus, last) if last else (bus, bus, None)
                continue
            here = level[token.start()] = here or level[token.start()]
            last = f"{here[0]}:{token['slot']}.{token['fn']}"
            vendor, kind = _named(line[token.end() :])
            functions[last] = PciFunction(
                last, here[2], here[1], class_code=kind, vendor=vendor, device="0x0000", numa_node=nodes[here[1][5:7]]
            )
            here = None
    return list(functions.values())


def _named(rest: str) -> tuple[str | None, str]:
    if rest.startswith("-["):
        return None, "0x060400"
    for name, vendor, kind in _CLASSES:
        if rest.strip().startswith(name):
            return vendor, kind
    return None, "0x088000"
