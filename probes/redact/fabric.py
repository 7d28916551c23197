"""`--redact` for outputs of a whole fabric: names of every host and switch, and GUIDs without their leading zeros.

Names of other hosts are looked for here only: a list of thousands would have to be looked for in every other text.
Only lines whose every part is of a known form are kept, with their descriptions written again: no one can state what in
another line is a name.
"""

from __future__ import annotations

from probes.fabric.files import fabric_format
from probes.fabric.formatting import describe_node, guid16
from probes.fabric.topology import FabricNode
from probes.redact.text import TextRedactor
from probes.text import lazy_pattern

TOOLS = ("ibnetdiscover", "iblinkinfo")
FILES = ("ibdiagnet2.db_csv", "ibdiagnet2.net_dump")  # serials of cables and modules, and more: left out

_DIGITS = lazy_pattern(r"(?<![0-9a-f])([0-9a-f]{10,16})(?![0-9a-f])")
_SHORT = lazy_pattern(r"(?<==0x)([0-9a-f]{10,15})\b|(?<=\()([0-9a-f]{10,15})(?=\))")
_HEX = "[0-9a-f]{1,16}"
# descriptions that show nothing of whom they belong to, and what may stay of others beside the name
_VENDORS = lazy_pattern(
    r"(?:MT[0-9]{3,6} +)?(?:(?:InfiniHost|ConnectX|SwitchX|Switch-IB|Quantum|BlueField)[A-Z0-9-]{0,4} +)?(?:- +)?"
    r"Mellanox Technologies(?: Aggregation Node)?"
)
_MODEL = lazy_pattern(r"[A-Z0-9_-]{1,24}")
_PART = lazy_pattern(r"[A-Z0-9/]{1,16}")
# ibnetdiscover: what is before "#", and around the description behind it
_HEAD = lazy_pattern(
    rf"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x{_HEX}(?:\({_HEX}\))?"
    r"|Chassis [0-9]{1,4}|Non-Chassis Nodes"
)
_NODE = lazy_pattern(rf'(?:Switch|Ca|Rt)\s+[0-9]{{1,3}}\s+"[SHR]-{_HEX}"')
_PORT = lazy_pattern(
    rf"\[[0-9]{{1,3}}\](?:\[ext [0-9]{{1,4}}\])?(?:\({_HEX}\))?\s+"
    rf'"[SHR]-{_HEX}"\[[0-9]{{1,3}}\](?:\[ext [0-9]{{1,4}}\])?(?:\s*\({_HEX}\))?'
)
_REMARK = lazy_pattern(
    r" Topology file: generated on [A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9:]{16}| Max of [0-9]{1,3} hops discovered"
    r"| (?:Reported max hops discovered|Total MADs used): [0-9]{1,9}"
    rf"| Initiated from node {_HEX} port {_HEX}| (?:Spine|Line) Nodes| Chassis (?:Switches|CAs)"
)
_BEFORE = lazy_pattern(r"\s?(?:lid [0-9]{1,5} lmc [0-9] )?")
_BEHIND = lazy_pattern(
    r"(?: (?:base|enhanced) port 0)? ?(?:lid [0-9]{1,5} ?(?:lmc [0-9]|[0-9?]{1,2}x?[A-Z0-9?]{0,5})?)?"
    r"(?: s=[0-9]{1,2} w=[0-9]{1,2} v=[0-9]{1,2})?(?: slot [0-9]{1,3})?(?: \(scp\))?"
)
# iblinkinfo and the ports report
_OWN = lazy_pattern(rf"\s*(?:0x{_HEX}\s+)?")
_PLACE = lazy_pattern(rf"\s*(?:0x{_HEX}\s+)?[0-9]{{1,5}}\s+[0-9]{{1,3}}\[[ 0-9]{{0,4}}\]\s*")
_NOTHING = lazy_pattern(r'\s*(?:\[ {0,4}\] "" \( \)|"Port not available")\s*')
_HEADER = lazy_pattern(rf"((?:Switch|CA|Router):? +(?:0x{_HEX} +)?)(.*?)(:? *)")
_WORD = lazy_pattern(r"[A-Za-z]+|[^\s(),./:?0-9]")
_WORDS = frozenset({
    "X", "Gbps", "Active", "Armed", "Initialize", "Down", "LinkUp", "Polling", "Disabled", "Sleep", "PhyTest", "FDR",
    "QDR", "PortConfigurationTraining", "LinkErrorRecovery", "undefined", "HOQ", "VL", "_", "Stall", "Could", "be",
    "Found", "link", "at", "but", "expected", "speed", "is", "Extended",
})  # fmt: skip
_END = rf"(?:CA|SW|RT) {{1,5}}[0-9]{{1,5}} {{1,2}}[0-9]{{1,3}} 0x{_HEX} "
_PORTS = lazy_pattern(rf"{_END}[0-9?]{{1,2}}x? [A-Z0-9?]{{3,5}}(?: - {_END}\(|) +'")


def learn(texts: TextRedactor, output: str) -> None:
    """Every GUID of an output."""
    for digits in _DIGITS.findall(output):
        texts.learn_guid(bytes.fromhex(guid16(digits)))


def rewrite_fabric_output(texts: TextRedactor, output: str) -> str | None:
    """The output with pseudonyms for names, and for GUIDs that were cut short; None where its form is not known."""
    lines = {"ibnetdiscover": _topology, "iblinkinfo": _links, "ibnetdiscover -p": _ports}.get(
        fabric_format(output) or ""
    )
    if lines is None:
        return None
    rewritten = (lines(texts, line.rstrip()) if line.strip() else "" for line in output.split("\n"))
    return "\n".join(_SHORT.sub(lambda match: _guid(texts, match[0]), line) for line in rewritten if line is not None)


def _guid(texts: TextRedactor, digits: str) -> str:
    raw = bytes.fromhex(guid16(digits))
    return f"{int.from_bytes(texts.names.guid(raw), 'big'):x}" if raw in texts.guids else digits


def _name(texts: TextRedactor, description: str) -> str:
    bare = description.strip()
    if not bare or _VENDORS.fullmatch(bare):
        return description
    node = describe_node(FabricNode("", "unknown", bare))
    if node.role == "host" and node.name and node.device:
        return description.replace(bare, f"{texts.names.host_of_fabric(node.name)} {node.device}")
    if node.model and node.name and _MODEL.fullmatch(node.model) and _PART.fullmatch(node.part or "U1"):
        suffix = f":{node.model}/{node.part}" if node.part else f":{node.model}"
        return description.replace(bare, f"MF0;{texts.names.host_of_fabric(node.name)}{suffix}")
    return description.replace(bare, texts.names.host_of_fabric(bare))


def _topology(texts: TextRedactor, line: str) -> str | None:
    head, mark, comment = line.partition("#")
    bare = head.strip()
    if not bare:
        return line if _REMARK.fullmatch(comment) or not comment.strip() else None
    if _HEAD.fullmatch(bare):
        return head
    if not _NODE.fullmatch(bare) and not _PORT.fullmatch(bare):
        return None
    begin, end = comment.find('"'), comment.rfind('"')
    if begin >= end or not _BEFORE.fullmatch(comment[:begin]) or not _BEHIND.fullmatch(comment[end + 1 :]):
        return head if not mark else None
    return head + mark + comment[: begin + 1] + _name(texts, comment[begin + 1 : end]) + comment[end:]


def _links(texts: TextRedactor, line: str) -> str | None:
    near, mark, rest = line.partition("==(")
    if not mark:
        header = _HEADER.fullmatch(line)
        return header[1] + _name(texts, header[2]) + header[3] if header else None
    middle, arrow, far = rest.partition("==>")
    own, there = _near(texts, near), _far(texts, far)
    return own + mark + middle + arrow + there if own and there and arrow and _is_known(middle) else None


def _near(texts: TextRedactor, near: str) -> str | None:
    begin, end = near.find('"'), near.rfind('"')
    if begin < 0:
        return near if _PLACE.fullmatch(near) else None
    if begin == end or not _OWN.fullmatch(near[:begin]) or not _PLACE.fullmatch(near[end + 1 :]):
        return None
    return near[: begin + 1] + _name(texts, near[begin + 1 : end]) + near[end:]


def _far(texts: TextRedactor, far: str) -> str | None:
    begin, end = far.find('"'), far.rfind('" (')
    if _NOTHING.fullmatch(far):
        return far
    if begin < 0 or begin >= end or not _PLACE.fullmatch(far[:begin]) or not _is_known(far[end + 2 :]):
        return None
    return far[: begin + 1] + _name(texts, far[begin + 1 : end]) + far[end:]


def _is_known(words: str) -> bool:
    """Whether these are the tool's own words and numbers."""
    return set(_WORD.findall(words)) <= _WORDS


def _ports(texts: TextRedactor, line: str) -> str | None:
    head = _PORTS.match(line)
    end = line.rfind("'")
    if head is None or end < head.end() or line[end + 1 :].strip(" )"):
        return None
    near, between, far = line[head.end() : end].partition("' - '")
    names = _name(texts, near) + (between + _name(texts, far) if between else "")
    return head[0] + names + line[end:]
