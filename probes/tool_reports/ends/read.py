"""Facts in any text, each with the side that states it: a switch or a host, a file or what is in force.

A text is cut at prompts and headings. Which side a line is of, its part shows (`swp17`, `ens5f0np0`), or the heading.
A line without a name is about the part that was named last; one that names a port and an interface joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from probes.named_tuple import NamedTuple
from probes.text import INTERFACE, lazy_pattern
from probes.tool_reports.ends.forms import (
    BELOW_COMMANDS,
    DSCP_MAP,
    HOST,
    LINES,
    SWITCH,
    FactForm,
    expand_numbers,
    read_group,
    read_setting,
)

HEADING = "# "  # before the words of one
_LONGEST, _MOST_LINES = 600, 3000
_MAPS, _MOST_IN_LINE = lazy_pattern(r"\b(\w{2,8}_to_(?:tc|queue|priority_group|pfc_priority))"), 64
_PROMPT = lazy_pattern(
    r"[ \t>]{0,8}(?:\[?[\w.-]{1,40}@(?P<user_at>[\w.-]{1,64})[^\n#$%>]{0,80}[#$%>]"
    r"|(?P<suse>[\w.-]{2,60})(?::[~/]| ~)[^\n#$]{0,60}[#$]"
    r"|[<\[]?~?(?P<machine>[A-Za-z][\w.-]{2,40})(?:\([\w/-]{1,30}\))?(?:[#>\]]|\$(?= ))"
    r"|(?:(?:rank|node|job|gpu) ?\d{1,5} ?)?[$#%])"
    r"[ \t]{0,4}(?P<command>[a-zA-Z./_][^\n]{1,500})"
)
_REMOTE = lazy_pattern(r"\bssh (?:-\S+ ){0,4}(?:[\w-]{1,40}@)?(?P<host>[\w.-]{1,64}) ")
_ROLE = lazy_pattern(
    r"(?i)(?<![\w/])(?:switch|leaf|spine|tor|hosts?|servers?|nodes?|clients?|plan|table|container|hgx|dgx|gpu)(?:\b|[\d-])"
    r"|\.(?:conf|ya?ml|json|cfg|network)\b|/etc/"
)
_SWITCH = lazy_pattern(
    r"(?i)(?<![a-z])(?:switch|leaf|spine|tor|sw|n9k|n\dk|nexus|sonic|cumulus|arista|eos|qfx|agg)(?![a-z])"
    r"|show run|switchport"
)
_HOST = lazy_pattern(r"(?i)(?<![a-z])(?:hosts?|servers?|nodes?|hgx|dgx|gpu|netplan|sysconfig|/etc)(?![a-z])")
_PORT = (
    r"(?:(?:[Ee]thernet-?|[Ee]th?|HundredGigE|FourHundredGigE|\d{2,3}GE) ?\d{1,3}(?:[/:]\d{1,3}){0,3}"
    r"|swp\d\w{0,6}|(?:xe|et)-\d{1,2}/\d{1,2}/\d{1,3})"
)
_NAMED = lazy_pattern(rf"(?:(?<![\w.])|(?<=lldp\.))(?:(?P<port>{_PORT})|(?P<interface>{INTERFACE}|en[ops]\d))(?!\w)")
_LINKED = lazy_pattern(r"(?i)\b(?:desc(?:r(?:iption)?)?|PortID|PortDescr|neighbor|port name|alias)\b")
_OF_LOOP = lazy_pattern(  # the heading of a part
    r"[ \t=#>-]{0,12}(?:NPU|npu|dev(?:ice)?|chip)?[ _-]?(?P<value>\d{1,2})[ \t=:-]{0,12}"
)
_BARE = lazy_pattern(r"[\"']?[\w.,:+-]{1,80}[\"']?")
CABLE, PLAN, FOUND = "cable", "plan", "LLDP"
_PLANNED = lazy_pattern(
    r"(?i)\b(?:plan(?:ned)?|cabl(?:es?|ing)|wiring|netbox|expected|design(?:ed)?|documented|as-built)\b"
)
_SEEN = lazy_pattern(r"(?i)\blldp|\bneighbou?rs\b")
_FEW_LINES = 4  # below a command that prints a value
GPUS, GPUS_OF_NODE, _NPU, EVERY = "number of GPUs", "GPUs of a node", "address of NPU", "all"
CLASS_OF_DSCP = "class of a DSCP"
_IN_CONTAINER = (
    r"\b(?:docker|podman|nerdctl|apptainer|singularity)\b.{0,200}?(?:--gpus[ =]\"?all|--nv\b|VISIBLE_DEVICES=all)"
)
_IN_PART = r"(?: -i|head|docker|podman|kubectl|exec|srun|singularity|apptainer)\b"
_COUNTED = (  # by the command
    ("container", lazy_pattern(_IN_CONTAINER)),
    ("bus", lazy_pattern(r"\blspci\b.{0,100}?(?:3D|0302|accelerat)")),
    ("files", lazy_pattern(r"/dev/nvidia\[0-9")),
    ("driver", lazy_pattern(rf"^(?!.*{_IN_PART}).*\b(?:nvidia|amd|rocm|npu|hl)-smi\b")),
)


class SideFact(NamedTuple):
    """What a side states. `part`: the interface, port, node, setting or number that it is about, "" where none is
    named; `machine`: by the prompt, or after HEADING the words of a heading."""

    name: str
    side: str
    part: str
    values: frozenset[str]
    line: str
    machine: str


class _Position(NamedTuple):
    """Where a line stands: the prompt or heading above it, and the part that was named last."""

    machine: str = ""
    head: str = ""
    side: str | None = None
    part: str = ""
    number: int = 0  # lines below the command


def read_facts(text: str) -> tuple[list[SideFact], frozenset[tuple[str, str, str]]]:
    r"""The facts, those of one part and side together, and which switch port and interface are joined.

    >>> facts, joined = read_facts("leaf1# show run\ninterface Eth1/4\n description ens2 of n1\n mtu 1500\n")
    >>> [(fact.name, fact.side, fact.part, set(fact.values)) for fact in facts], set(joined)
    ([('MTU', 'switch', 'Ethernet1/4', {'1500'})], {('Ethernet1/4', 'ens2', 'description ens2 of n1')})
    """
    place, above, source, heading = _Position(), "", "", ""
    cables = list[SideFact]()
    found: dict[tuple[str, str, str, str], SideFact] = {}
    joined: set[tuple[str, str, str]] = set()
    lines = text.splitlines()[:_MOST_LINES]
    for at, line in enumerate(lines):
        if len(line) > _LONGEST or not line.strip():
            continue
        is_alone = not "".join(lines[max(at - 1, 0) : at] + lines[at + 1 : at + 2]).strip()
        if new := _open_place(line, place, is_alone):
            place, above = new, ""
        ports, interfaces = _list_named(line)
        named = ports + interfaces
        is_joining = (len(ports) == len(interfaces) == 1) or bool(_LINKED.search(line))
        is_planned, is_seen = _PLANNED.search(line) is not None, _SEEN.search(line) is not None
        if is_planned != is_seen:
            source, heading = PLAN if is_planned else FOUND, without_names(line)
        for port, interface in _join(ports, interfaces, place.part) if is_joining else ():
            joined.add((port, interface, line.strip()))
            if source:
                machine = f"{place.machine} {heading}"  # all words that may name the host
                cables.append(SideFact(CABLE, source, interface, frozenset({port}), line.strip(), machine))
        if named and (new or (len(named) == 1 and not (is_joining and place.part))):
            place = place._replace(part=named[0])
        elif "$" in place.head and (loop := _OF_LOOP.fullmatch(line)):
            place = place._replace(part=loop["value"])
        place = place._replace(number=place.number + 1)
        for fact in _read_line(line, place, above):
            if fact.name == "PSID" and (firmware := found.pop(("firmware", "card", "", fact.machine), None)):
                fact = firmware._replace(part=next(iter(fact.values)))
            key = (fact.name, fact.side, fact.part, fact.machine)
            old = found.get(key)
            found[key] = fact if old is None else old._replace(values=old.values | fact.values)
        above = (above + "\n" + line)[-_LONGEST:]
    is_tagged = any(fact.name == "VLAN" for fact in found.values())  # by which PCP is sent
    facts = [*(fact for fact in found.values() if not (is_tagged and fact.name == "marking")), *cables]
    pfc = [fact for fact in facts if (fact.name, fact.side) == ("PFC", SWITCH)]
    lossless = {value for fact in pfc for value in fact.values}
    dscps = frozenset(fact.part for fact in facts if fact.name == CLASS_OF_DSCP and fact.values & lossless)
    if dscps:
        facts.append(pfc[0]._replace(name="DSCPs of lossless classes", part="", values=dscps))
    return facts, frozenset(joined)


def without_names(line: str) -> str:
    """A line without the ports and interfaces that it names."""
    return _NAMED.sub(" ", line)


def list_places(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each line with its machine, and the command or heading that it is itself."""
    place = _Position()
    for line in lines:
        new = _open_place(line, place, is_alone=False) if line.strip() else None
        place = new or place
        yield line, place.machine, new.head if new else ""


def _open_place(line: str, before: _Position, is_alone: bool) -> _Position | None:
    """The place that a prompt or a heading opens; None for any other line. A prompt without a name is of the machine
    before it."""
    if prompt := _PROMPT.fullmatch(line):
        command = prompt["command"]
        remote = _REMOTE.search(command)
        machine = remote["host"] if remote else prompt["user_at"] or prompt["suse"] or prompt["machine"]
        npu = re.search(r"\bhccn_tool -i (\d{1,2})\b", command)
        side = _find_side(f"{machine or ''} {command}") or (HOST if prompt["user_at"] else None)
        if machine is None and (line.lstrip()[0] != "#" or side is None):
            return before._replace(head=command, side=side or before.side, part=npu[1] if npu else "", number=0)
        return _Position(machine or f"{HEADING}{command}", command, side, npu[1] if npu else "")
    bare = line.strip("#!*=/|- \t:;")
    is_marked = line.lstrip()[:1] in "#!=*/-;" or (line.rstrip().endswith(":") and line[:1].isalpha())
    if not (is_marked or (is_alone and line[:1].isalpha())) or "=" in bare or not _ROLE.search(bare):
        return None
    return _Position(f"{HEADING}{bare}", bare, _find_side(bare))


def _find_side(words: str) -> str | None:
    return SWITCH if _SWITCH.search(words) else HOST if _HOST.search(words) else None


def _list_named(line: str) -> tuple[list[str], list[str]]:
    """The ports of switches and the interfaces of hosts that a line names.

    >>> _list_named("Eth1/4 to eth0"), _list_named("et-0/0/1, swp3")
    ((['Ethernet1/4'], ['eth0']), (['et-0/0/1', 'swp3'], []))
    """
    ports: dict[str, None] = {}
    interfaces: dict[str, None] = {}
    for match in _NAMED.finditer(line):
        name = match["port"] or match["interface"]
        number = re.search(r"\d.*", name)
        if match["interface"] or (name[:1] == "e" and "/" not in name):  # eth0
            interfaces.setdefault(name)
        else:
            is_ethernet = name[:2].lower() == "et" and name[:3] != "et-" and number
            ports.setdefault(f"Ethernet{number[0]}" if is_ethernet and number else name)
    return list(ports), list(interfaces)


def _join(ports: Sequence[str], interfaces: Sequence[str], part: str) -> set[tuple[str, str]]:
    if ports and interfaces:
        return {(ports[0], interfaces[0])}
    is_port = bool(_list_named(part)[0])
    pairs = [(part, one) for one in interfaces if is_port] + [(one, part) for one in ports if part and not is_port]
    return set(pairs[:1])


def _read_line(line: str, place: _Position, above: str) -> Iterator[SideFact]:
    around = f"{place.head}\n{above}\n{line}".lower()
    found: list[tuple[FactForm, re.Match[str]]] = [
        (form, match)
        for form in LINES
        if form.below in around
        for match in islice(form.pattern.finditer(line), _MOST_IN_LINE if form.below == DSCP_MAP else 1)
        if form.below != DSCP_MAP or _name_map(f"{around[: -len(line)]}{line[: match.start()]}") == DSCP_MAP
    ]
    if 1 < place.number < _FEW_LINES and _BARE.fullmatch(line.strip()):
        behind = f"{place.head} => {line.strip()}"
        found += [(form, match) for form in BELOW_COMMANDS if (match := form.pattern.search(behind))]
    for form, match in found:
        groups = {name: value for name, value in match.groupdict().items() if value}
        part = groups.pop("part", place.part)
        for dscp in groups.pop("dscp_of", "").split():
            yield SideFact(CLASS_OF_DSCP, SWITCH, dscp, frozenset({groups["class_of"]}), line.strip(), place.machine)
        groups.pop("class_of", None)
        for group, value in groups.items():
            for name, own, values in _read_group(group, value, part, place):
                side = form.side or _find_side_of(name, own, place, line)
                if side and (values or name == "PFC"):
                    yield SideFact(name, side, own, frozenset(values), line.strip(), place.machine)


def _name_map(text: str) -> str:
    """The last map that a text names: in JSON several stand one after the other.

    >>> _name_map('"DSCP_TO_TC_MAP": {"A": {"26": "3"}}, "TC_TO_QUEUE_MAP": {')
    'tc_to_queue'
    """
    return next(iter(_MAPS.findall(text.lower())[-1:]), "")


def _read_group(group: str, value: str, part: str, place: _Position) -> Iterator[tuple[str, str, set[str]]]:
    """The facts of a group: the name, the part, the values."""
    if group == "options":
        for key, setting in re.findall(r"\b(\w{1,60})=(\S{1,100})", value):
            own = key.removeprefix("NVreg_") if part == "nvidia" else f"{part}/parameters/{key}"
            yield "setting", own, read_setting(setting)
    elif group.startswith("node"):
        for key, setting in re.findall(r"\b(CPUs|RealMemory|Gres|File|Count)=(\S+)", value):
            number = re.search(r"(\d{1,12})(?:\([^()]*\))?$", setting)
            if key in ("CPUs", "RealMemory"):
                yield key, part, {number[1]} if number else set()
            elif key == "File" and "Name=gpu" in value:
                yield GPUS_OF_NODE, part, expand_numbers(re.sub(r"^\D*", "", setting.rpartition("/")[2]))
            elif key == "Gres" and (gpus := re.search(r"\bgpu(?::[\w.-]{1,40})?:(\d{1,3})\b", setting)):
                yield GPUS_OF_NODE, part, set(map(str, range(int(gpus[1]))))
            elif key == "Count" and number and "Name=gpu" in value:
                yield GPUS_OF_NODE, part, set(map(str, range(int(number[1][:3]))))
    else:
        name, values = read_group(group, value)
        yield name, part.replace("/", ".") if name == "setting" and "/parameters/" not in part else part, values
        if name == "address":
            yield "IP address", part, {one.partition("/")[0] for one in values}
        if name == "MTU":
            yield "MTU of interface", part, values
        if name == _NPU and (not part or part != place.part):
            yield name, EVERY, values


def _find_side_of(name: str, part: str, place: _Position, line: str) -> str | None:
    """The side of a fact, by its part, its line or the heading."""
    is_file = "/etc/" in place.head or ".conf" in place.head or ".yaml" in place.head
    if name in ("MTU", "FEC", "speed"):
        is_of_host = place.side != SWITCH or part.startswith(("en", "ib"))  # switches have eth0 and bonds
        return SWITCH if _list_named(part)[0] else HOST if part and is_of_host else place.side
    if name == "MTU of interface":
        return None if not _list_named(part)[1] or place.side == SWITCH else "set" if is_file else "in force"
    if name == "setting":
        is_set = is_file or line.lstrip().startswith("options ")
        return "set" if is_set else "in force" if place.head else None
    if name == "IP address":
        is_shown = re.search(r"\binet\b|\bUP\b", line) or re.search(r"\bip (?:-\S{1,12} ){0,4}a|\bifconfig", place.head)
        return "in force" if is_shown else "plan" if len(_list_named(line)[1]) == 1 or is_file else None
    if name in (GPUS_OF_NODE, "CPUs", "RealMemory"):
        is_detected = "SocketsPerBoard=" in line and "State=" not in line and "[" not in part
        is_of_gres = " Name=gpu" in f" {line}"
        return "gres.conf" if is_of_gres else "slurmd" if is_detected or "slurmd" in place.head else "slurm.conf"
    if name == GPUS:
        return next((side for side, command in _COUNTED if command.search(place.head)), None)
    return name
