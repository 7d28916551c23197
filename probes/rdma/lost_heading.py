"""An excerpt that begins within a device: its name was in a line above. Its port is read all the same, as that of a
device without a name.
"""

from __future__ import annotations

import re

from probes.named_tuple import NamedTuple

UNNAMED_DEVICE = "mlx5_X"  # stands for the device that the text does not name


class _Heading(NamedTuple):
    """How a tool begins a device, what each of its ports has once, and the lines that are missing above it."""

    heading: str
    state: str
    lines: tuple[tuple[str, str], ...]  # each with what the text may have of it


HEADINGS = {
    "ibstat": _Heading(
        r"^[ \t]*CA '",
        r"^[ \t]*State: (?:Down|Active|Armed|Init\w{0,8})[ \t\r]*\n[ \t]*Physical state: \w",
        (("CA '{}'\n", r"^[ \t]*CA '"), ("\tPort 1:\n", r"^[ \t]*Port \d{1,3}:")),
    ),
    "ibstatus": _Heading(
        r"^[ \t]*[Ii]nfini[Bb]and device '",
        r"^[ \t]*state:[ \t]+\d: [A-Z]{3,10}[ \t\r]*\n[ \t]*phys state:[ \t]+\d: ",
        (("Infiniband device '{}' port 1 status:\n", r"^[ \t]*[Ii]nfini[Bb]and device '"),),
    ),
    "ibv_devinfo": _Heading(
        r"^[ \t]*hca_id:",
        r"^[ \t]*state:[ \t]+PORT_[A-Z]{4,8} \(\d\)",
        (("hca_id:\t{}\n", r"^[ \t]*hca_id:"), ("\t\tport:\t1\n", r"^[ \t]*port:[ \t]+\d")),
    ),
}


_COMMANDS = {"ibstat": ("ibstat",), "ibstatus": ("ibstatus",), "ibv_devinfo": ("ibv_devinfo", "-v")}


def find_lost_heading(text: str) -> tuple[str, ...] | None:
    """The command of which a text without any name of a device has the state of one port.

    >>> find_lost_heading("\\t\\tState: Down\\n\\t\\tPhysical state: Polling\\n")
    ('ibstat',)
    """
    if "tate:" not in text:
        return None
    return next((argv for tool, argv in _COMMANDS.items() if _find_missing(tool, text)), None)


def restore_heading(tool: str, text: str) -> str:
    """The same text below the heading of a device, where it begins with the state of one port and without a name.

    >>> restore_heading("ibstat", "\\t\\tState: Down\\n\\t\\tPhysical state: Polling\\n").splitlines()[:2]
    ["CA 'mlx5_X'", '\\tPort 1:']
    """
    if tool not in HEADINGS:
        return text
    first = re.search(HEADINGS[tool].heading, text, re.MULTILINE)
    missing = _find_missing(tool, text[: first.start()] if first else text)
    return "".join(missing).format(UNNAMED_DEVICE) + text


def _find_missing(tool: str, text: str) -> list[str]:
    """The lines above the first port of a text; none where it has several, which cannot be told apart."""
    form = HEADINGS[tool]
    if len(re.findall(form.state, text, re.MULTILINE)) != 1:
        return []
    return [line for line, own in form.lines if re.search(own, text, re.MULTILINE) is None]
