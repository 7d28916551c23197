"""Lines of the kernel's log in the messages of other tools: events and conditions of Kubernetes."""

from __future__ import annotations

from probes.kernel.sentence import KERNEL_DRIVERS
from probes.text import lazy_pattern

_LONGEST = 4000
_KERNEL = lazy_pattern(
    r"(?:NVRM: (?:Xid \(|GPU [0-9a-f]{4})|nvidia-nvswitch\d{1,2}: SXid "
    rf"|\b(?:{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7][^\n:]{{0,40}}: )[^\n]{{1,600}}"
)
_OF_NODE = lazy_pattern(r"\bnode/(?P<node>[\w.-]{1,200})[ \t]")
_NAME = lazy_pattern(r"Name: +(?P<node>[\w.-]{1,200})[ \t]*$")


def list_quoted_lines(text: str) -> dict[str | None, tuple[int, str]]:
    """Lines of the kernel's log that messages quote, and the number of the first line with one, from 0: by the node
    that they are of; None: the text does not state it.

    >>> list_quoted_lines("2m   Warning   XIDError   node/n7   NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off\\n")
    {'n7': (0, 'kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off\\n')}
    """
    quoted: dict[str | None, tuple[int, str]] = {}
    node: str | None = None
    for number, line in enumerate(text.splitlines()):
        if len(line) >= _LONGEST:
            continue
        if name := _NAME.match(line):
            node = name["node"]
        if match := _KERNEL.search(line):
            of_node = _OF_NODE.search(line)
            own = of_node["node"] if of_node else node
            first, before = quoted.get(own, (number, ""))
            quoted[own] = first, f"{before}kernel: {match[0].rstrip()}\n"
    return quoted
