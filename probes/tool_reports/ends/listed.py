"""Lists beside what is there: a plan of cables and LLDP, files of names and what names resolve to, the members of a
partition and the keys of ports. Which of the two is wrong, no text states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from ipaddress import ip_address, ip_network

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.ends.read import CABLE, FOUND, PLAN, SideFact, list_places, without_names
from probes.tool_reports.facts import ToolReport, state_fault

_IP, _QUOTED, _LONGEST, _DIRECT, _NEAR = r"(?:\d{1,3}\.){3}\d{1,3}", 120, 600, 0x7FFF, 24
_WORD = lazy_pattern(r"[A-Za-z][\w-]{1,60}")
_ASKED = lazy_pattern(
    r"\b(?:dig|host|nslookup|getent a?hosts\w{0,4})(?: [+@-]\S{1,40}){0,4} (?P<name>[A-Za-z][\w.-]{1,80})"
)
_ANSWER = lazy_pattern(
    rf"\s*(?P<name>[A-Za-z][\w.-]{{1,80}}?)\.?(?: has address |\s+\d{{1,8}}\s+IN\s+A\s+)(?P<ip>{_IP})"
    rf"|PING (?P<pinged>[A-Za-z][\w.-]{{1,80}}) \((?P<at>{_IP})\)"
)
_NAME, _ADDRESS = lazy_pattern(r"Name:\s+(?P<name>\S{2,80})"), lazy_pattern(rf"(?:Address(?:es)?:\s+)?(?P<ip>{_IP})")
_ENTRY = lazy_pattern(
    rf"\s{{0,8}}(?P<ip>{_IP})\s{{1,40}}(?P<names>[A-Za-z][\w. \t-]{{1,200}}?)\s{{0,8}}(?:#.{{0,200}})?"
)
_OF_NAMES = ("/etc/hosts", "getent")
_PARTITION = lazy_pattern(r"\s{0,8}[\w-]{1,60}\s{0,4}=\s{0,4}0x(?P<key>[0-9a-fA-F]{1,4})\b(?P<members>.{0,600})")
_GUID = lazy_pattern(
    r"(?<![\w:])(?:0x)?(?P<guid>[0-9a-fA-F]{16})(?!\w)|\bfe80:(?::|(?:0{1,4}:){3})(?P<groups>(?:[0-9a-fA-F]{1,4}:){3}"
    r"[0-9a-fA-F]{1,4})\b"
)
_KEY = lazy_pattern(r"(?<![\w=])0x(?P<key>[0-9a-fA-F]{4})\b")
_WANTED = lazy_pattern(
    r"(?i)\bpkey[ =]{1,3}0x(?P<key>[0-9a-f]{1,4})\b|_PKEY=0x(?P<set>[0-9a-f]{1,4})\b"
    r"|\bib\w{1,12}\.8(?P<of>[0-9a-f]{3})\b"
)
_OTHER_GUID = lazy_pattern(r"(?i)\b(?:node|system image|sys\w*) ?guid")


class _Resolved(NamedTuple):
    """The addresses that one source has for a name."""

    name: str
    addresses: Set[str]
    line: str
    machine: str


def list_unlisted(lines: Sequence[str], facts: Sequence[SideFact]) -> Iterator[ToolReport]:
    """What one of two lists has otherwise than the other.

    >>> lines = "A=0x8: 0x{0}1, 0x{0}2;|a 0x{0}1 0x8008|b 0x{0}2 0x8008|c 0x{0}3 0x7fff".format("0" * 15).split("|")
    >>> [report.detail for report in list_unlisted(lines, ())]
    [(('what', 'GUID 0x0000000000000003 is no member of 0x0008, and its port has 0x7fff: `A=0x8: \
0x0000000000000001, 0x0000000000000002;`'),)]
    """
    lines = [line for line in lines if len(line) <= _LONGEST]
    yield from _compare_cables(facts)
    yield from _compare_names(lines, facts)
    yield from _compare_members(lines)


def _compare_cables(facts: Sequence[SideFact]) -> Iterator[ToolReport]:
    """Interfaces that have another port than planned; of several hosts the plan's line with most of the same words."""
    planned, found = ([fact for fact in facts if (fact.name, fact.side) == (CABLE, side)] for side in (PLAN, FOUND))
    for one in found:
        words = _list_words(f"{one.line} {one.machine}")
        own = {plan: _list_words(plan.line) for plan in planned if plan.part == one.part}
        alike = {plan: len(words & of_plan) for plan, of_plan in own.items() if not _are_of_others(words, of_plan)}
        best = [plan for plan, number in alike.items() if number == max(alike.values())]
        if len({plan.values for plan in best}) == 1 and _are_other_ports(*best[0].values, *one.values):
            plan = best[0]
            what = (
                f"planned {' '.join(plan.values)} (`{plan.line[:_QUOTED]}`), found {' '.join(one.values)} "
                f"(`{one.line[:_QUOTED]}`)"
            )
            yield state_fault("cable-differs", one.part, what, one.line)


def _list_words(line: str) -> set[str]:
    return set(_WORD.findall(without_names(line)))


def _are_of_others(words: Set[str], of_plan: Set[str]) -> bool:
    """Whether they name another host of the plan's form than it does.

    >>> _are_of_others({"lldp", "node2"}, {"node1", "leaf4"}), _are_of_others({"node1", "leaf4"}, {"node1"})
    (True, False)
    """
    shapes = {re.sub(r"\d+", "0", word) for word in of_plan if any(map(str.isdigit, word))}
    return any(re.sub(r"\d+", "0", word) in shapes for word in words - of_plan)


def _are_other_ports(one: str, other: str) -> bool:
    """
    >>> _are_other_ports("swp5", "swp6"), _are_other_ports("swp5", "Ethernet6")
    (True, False)
    >>> _are_other_ports("Ethernet1/5", "Ethernet1/5/1")
    False
    """
    is_of_port = f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
    kinds = {re.sub(r"\d.*", "", name) for name in (one, other)}
    return not is_of_port and len(kinds) == 1 and one.count("/") == other.count("/")


def _compare_names(lines: Sequence[str], facts: Sequence[SideFact]) -> Iterator[ToolReport]:
    """Names with another address of the same network in another source, or on the host itself."""
    resolved = list(_list_resolved(lines))
    names = {one.name for one in resolved}
    for fact in facts:
        machine = fact.machine.partition(".")[0]
        if (fact.name, fact.side) == ("IP address", "in force") and machine in names:
            resolved.append(_Resolved(machine, fact.values, fact.line, machine))
    reported = set[str]()
    for at, one in enumerate(resolved):
        for other in resolved[at + 1 :]:
            if one.name == other.name not in reported and _are_other_addresses(one.addresses, other.addresses):
                reported.add(one.name)
                what = " and ".join(map(_show, (one, other)))
                yield state_fault("name-differs", one.name, what, one.line)


def _show(one: _Resolved) -> str:
    where = f"on {one.machine}: " if one.machine else ""
    return f"{' '.join(sorted(one.addresses))} ({where}`{one.line[:_QUOTED]}`)"


def _are_other_addresses(first: Set[str], second: Set[str]) -> bool:
    """Whether they have none in common, and are of one network: in another one a host has a further name."""
    with suppress(ValueError):
        networks = [{ip_network(f"{ip}/{_NEAR}", strict=False) for ip in each} for each in (first, second)]
        is_own = any(ip_address(ip).is_loopback for ip in first | second)
        return not first & second and bool(networks[0] & networks[1]) and not is_own
    return False


def _list_resolved(lines: Sequence[str]) -> Iterator[_Resolved]:
    found: dict[tuple[str, str, str], _Resolved] = {}
    asked, name, is_of_names, source = "", "", False, ""
    for line, machine, command in list_places(lines):
        if command:
            source = command
            match = _ASKED.search(command)
            asked, name = match["name"] if match else "", ""
            is_of_names = any(word in command for word in _OF_NAMES)
        elif any(word in line for word in _OF_NAMES):
            is_of_names = True
        elif answer := _ANSWER.match(line):
            named = answer["name"] or answer["pinged"]
            _add(found, named, answer["ip"] or answer["at"], line, machine, source)
        elif answer := _NAME.match(line):
            name = answer["name"]
        elif (answer := _ADDRESS.fullmatch(line.strip())) and (name or (asked and line.strip()[0].isdigit())):
            shown = f"{asked or name}: {answer['ip']}"
            _add(found, name or asked, answer["ip"], shown, machine, source)
        elif is_of_names and (entry := _ENTRY.fullmatch(line)):
            for alias in entry["names"].split():
                _add(found, alias, entry["ip"], line, machine, source)
    yield from found.values()


def _add(
    found: dict[tuple[str, str, str], _Resolved], name: str, address: str, line: str, machine: str, source: str
) -> None:
    key = (name.partition(".")[0], machine, source)
    old = found.get(key, _Resolved(key[0], frozenset(), " ".join(line.split()), machine.lstrip("# ")))
    found[key] = old._replace(addresses=old.addresses | {address})


def _compare_members(lines: Sequence[str]) -> Iterator[ToolReport]:
    """Ports that are no member of a partition that others like them have or that their job asks for, and members whose
    port does not have the key: the subnet manager has not read the list again."""
    partitions, rest = _read_partitions(lines)
    wanted = {
        int(match["key"] or match["set"] or match["of"], 16) & _DIRECT for match in map(_WANTED.search, rest) if match
    }
    rows = [(guids, keys) for line in rest if (guids := _list_guids(line)) and (keys := _list_keys(line))]
    if not rows and partitions:
        guids = {guid for line in rest for guid in _list_guids(line)}
        keys = [key for line in rest if not _WANTED.search(line) for key in _list_keys(line)]
        rows = [(guids, keys)] if len(guids) == 1 and len(keys) > 1 else []
    for key, (members, line) in partitions.items():
        having = sum(key in keys for _, keys in rows)
        without = [(min(guids), keys) for guids, keys in rows if key not in keys]
        for guid, keys in without if key in wanted or (len(without) == 1 and having > 1) else ():
            is_member = "a member" if guid in members else "no member"
            has = " ".join(f"0x{one:04x}" for one in keys if one)
            what = f"GUID 0x{guid:016x} is {is_member} of 0x{key:04x}, and its port has {has}: `{line[:_QUOTED]}`"
            yield state_fault("partition-differs", None, what)


def _read_partitions(lines: Sequence[str]) -> tuple[dict[int, tuple[set[int], str]], list[str]]:
    """The members of each partition that lists its own, with its line; the lines that are of none."""
    partitions: dict[int, tuple[set[int], str]] = {}
    rest, key = list[str](), None
    for line in lines:
        match = _PARTITION.fullmatch(line)
        if match and ":" in match["members"]:
            key = int(match["key"], 16) & _DIRECT
            partitions[key] = (set(), line.strip())
        if key is None:
            rest.append(line)
            continue
        partitions[key][0].update(_list_guids(line))
        key = None if ";" in line else key
    return {key: found for key, found in partitions.items() if found[0] and key != _DIRECT}, rest


def _list_guids(line: str) -> set[int]:
    if _OTHER_GUID.search(line):
        return set()
    return {
        int(match["guid"] or "".join(group.zfill(4) for group in match["groups"].split(":")), 16)
        for match in _GUID.finditer(line)
    }


def _list_keys(line: str) -> list[int]:
    return [int(match["key"], 16) & _DIRECT for match in _KEY.finditer(line)]
