"""`--redact` for outputs of a whole fabric: names of every host and switch, and GUIDs without their leading zeros.

Names of other hosts are looked for here only: a list of thousands would have to be looked for in every other text.
A line of no known form is left out: nobody can say what in it is a name.
"""

from __future__ import annotations

import re

from probes.host.redact_text import Texts
from probes.readers.fabric import FabricNode, fabric_format
from probes.readers.fabric_words import described, guid16

TOOLS = ("ibnetdiscover", "iblinkinfo")
FILES = ("ibdiagnet2.db_csv", "ibdiagnet2.net_dump")  # serials of cables and modules, and more: left out

_DIGITS = re.compile(r"(?<![0-9a-f])([0-9a-f]{10,16})(?![0-9a-f])")
_SHORT = re.compile(r"(?<==0x)([0-9a-f]{10,15})\b|(?<=\()([0-9a-f]{10,15})(?=\))")
_KEPT = re.compile(
    r"#|\[|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=|(?:Switch|Ca|Rt)\s|Chassis |Non-Chassis"
)
_HEADER = re.compile(r"((?:Switch|CA|Router):? +(?:0x[0-9a-f]{1,16} +)?)(.*?)(:? *)")
_PORT = re.compile(r"(?:CA|SW|RT) {1,5}[0-9]{1,5} ")


def learn(texts: Texts, said: str) -> None:
    """Every GUID of an output."""
    for digits in _DIGITS.findall(said):
        texts.learn_guid(bytes.fromhex(guid16(digits)))


def written(texts: Texts, said: str) -> str | None:
    """The output with pseudonyms for names, and for GUIDs that were cut short; None where its form is not known."""
    lines = {"ibnetdiscover": _topology, "iblinkinfo": _links, "ibnetdiscover -p": _ports}.get(
        fabric_format(said) or ""
    )
    if lines is None:
        return None
    kept = (lines(texts, line) for line in said.split("\n"))
    return "\n".join(_SHORT.sub(lambda found: _guid(texts, found[0]), line) for line in kept if line is not None)


def _guid(texts: Texts, digits: str) -> str:
    raw = bytes.fromhex(guid16(digits))
    return f"{int.from_bytes(texts.names.guid(raw), 'big'):x}" if raw in texts.guids else digits


def _name(texts: Texts, description: str) -> str:
    said = described(FabricNode("", "unknown", description))
    if said.name is None:
        return description
    new = texts.names.host_of_fabric(said.name)
    at = description.find(said.name, description.find(";") + 1 if said.model else 0)
    return description[:at] + new + description[at + len(said.name) :] if at >= 0 else new


def _topology(texts: Texts, line: str) -> str | None:
    head, mark, comment = line.partition("#")
    if head.strip() and not _KEPT.match(head.lstrip()):
        return None
    return head + mark + _between(texts, comment, comment.find('"'), comment.rfind('"'))


def _links(texts: Texts, line: str) -> str | None:
    near, mark, rest = line.partition("==(")
    if mark:
        middle, arrow, far = rest.partition("==>")
        near = _between(texts, near, near.find('"'), near.rfind('"'))
        return near + mark + middle + arrow + _between(texts, far, far.find('"'), far.rfind('" ('))
    header = _HEADER.fullmatch(line)
    if header:
        return header[1] + _name(texts, header[2]) + header[3]
    return line if not line.strip() else None


def _ports(texts: Texts, line: str) -> str | None:
    if not _PORT.match(line):
        return line if not line.strip() else None
    head, mark, names = line.partition("'")
    near, between, far = names.rstrip().partition("' - '")
    if between:
        end = far.rfind("'")
        return head + mark + _name(texts, near) + between + _name(texts, far[:end]) + far[end:]
    return head + mark + _name(texts, near.removesuffix("'")) + mark


def _between(texts: Texts, text: str, begin: int, end: int) -> str:
    """The text with the description between two quotes written anew."""
    return text[: begin + 1] + _name(texts, text[begin + 1 : end]) + text[end:] if 0 <= begin < end else text
