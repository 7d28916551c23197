"""Which facts of two sides must agree, and the one comparison of all of them. A pair of facts is one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from ipaddress import ip_address, ip_interface

from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length
from probes.tool_reports.ends.forms import HOST, SWITCH
from probes.tool_reports.ends.listed import list_unlisted
from probes.tool_reports.ends.read import EVERY, GPUS, GPUS_OF_NODE, HEADING, SideFact, read_facts
from probes.tool_reports.ends.twice import list_numbers_twice
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.values import is_among

_MOST_CHARACTERS, _MOST_REPORTS, _SHOWN, _QUOTED = 1 << 17, 16, 12, 120
_WRONG, _MAYBE = "ends-differ", "ends-may-differ"  # of a link: it cannot work, or may be meant so
_STALE, _MAYBE_STALE = "sources-differ", "sources-may-differ"  # of one thing
_OF_TWO_HOSTS, _OF_ONE_HOST = 31, 32  # bits of a network
_Values = Set[str]
_AGREE: dict[str, Callable[[_Values, _Values], bool]] = {  # of the values of the first side, and of the second
    "share": lambda one, other: bool(one & other),
    "equal": lambda one, other: one == other,
    "holds": lambda one, other: one >= other,
    "at most": lambda one, other: max(map(int, one)) <= max(map(int, other)),
    "as large": lambda one, other: max(map(int, one)) >= max(map(int, other)),
    "as many": lambda one, other: len(one) == len(other),
    "equal if whole": lambda one, other: one == other or len(one) != len(other),
}


def _are_of_one_host(one: SideFact, other: SideFact) -> bool:
    names = {fact.machine for fact in (one, other)}
    return len(names) == 1 or any(not name or name.startswith(HEADING) for name in names)


_OF_ONE: dict[str, Callable[[SideFact, SideFact], bool]] = {  # whether two facts are about one thing
    "host": _are_of_one_host,
    "part": lambda one, other: one.part == other.part and _are_of_one_host(one, other),
    "only": lambda one, other: True,
    "two hosts": lambda one, other: one.part == other.part and not _are_of_one_host(one, other),
    "node": lambda one, other: not other.part or one.part == other.part or is_among(other.part, one.part),
}


class Agreement(NamedTuple):
    """Two facts that must agree, each with its side."""

    fact: str
    side: str
    other_side: str
    agree: str
    of_one: str  # "link": both ends of it
    code: str = _STALE
    other_fact: str = ""  # where it has another name


AGREEMENTS = (
    Agreement("MTU", SWITCH, HOST, "as large", "link", _WRONG),
    Agreement("PFC", SWITCH, HOST, "equal", "link", _WRONG),
    Agreement("FEC", SWITCH, HOST, "share", "link", _WRONG),
    Agreement("speed", SWITCH, HOST, "share", "link", _WRONG),
    Agreement("VLANs", SWITCH, HOST, "holds", "link", _WRONG, "VLAN"),
    Agreement("DSCPs of lossless classes", SWITCH, HOST, "holds", "link", _MAYBE, "DSCP"),
    Agreement("driver version", "installed", "loaded", "share", "host"),
    Agreement("driver version", "library", "loaded", "share", "host"),
    Agreement("driver version", "fabric manager", "loaded", "share", "host"),
    Agreement("driver version", "loaded", "loaded", "share", "two hosts", _MAYBE_STALE),
    Agreement("firmware", "card", "card", "share", "two hosts", _MAYBE_STALE),
    Agreement("boot options", "in force", "set", "holds", "host", _MAYBE_STALE),
    Agreement("setting", "set", "in force", "share", "part", _MAYBE_STALE),
    Agreement("MTU of interface", "set", "in force", "share", "part", _MAYBE_STALE),
    Agreement("IP address", "plan", "in force", "share", "part"),
    Agreement("address of NPU", "table", "NPU", "equal if whole", "part"),
    Agreement("RealMemory", "slurm.conf", "slurmd", "at most", "node"),
    Agreement("CPUs", "slurm.conf", "slurmd", "at most", "node"),
    Agreement(GPUS_OF_NODE, "slurm.conf", "slurmd", "as many", "node"),
    Agreement(GPUS_OF_NODE, "slurm.conf", "gres.conf", "as many", "node"),
    Agreement(GPUS, "driver", "container", "as many", "host"),
    Agreement(GPUS, "bus", "driver", "as many", "host"),
    Agreement(GPUS, "files", "driver", "as many", "host"),
    Agreement("maker of mlx5 core", "installed", "loaded", "share", "host"),
    Agreement("GID index", "RoCE v2", "job", "holds", "host"),
    Agreement("NUMA nodes", "bound", "GPU", "share", "only", _MAYBE_STALE),
    Agreement("marking", "trusted", "sent", "share", "only", _MAYBE_STALE),
)


def list_disagreements(text: str) -> list[ToolReport]:
    r"""Facts of which two sides state different values, and numbers that two rows have. Raises ParseError where there
    is none.

    >>> text = "leaf1# show run\ninterface Eth1/4\n mtu 1500\n\nn1:~ # ip link\n2: ens2: <UP> mtu 9000\n"
    >>> [(report.code, report.subject, report.detail) for report in list_disagreements(text)]
    [('ends-differ', 'ens2', (('what', 'MTU: 1500 (Ethernet1/4: `mtu 1500`), 9000 (ens2: `2: ens2: <UP> mtu 9000`)'),))]
    """
    facts, joined = read_facts(check_length(text, _MOST_CHARACTERS))
    found: dict[tuple[str, str], ToolReport] = {}
    for code, one, other in (*_compare(facts, joined), *_compare_networks(facts), *_compare_peers(facts)):
        part = other.part or one.part
        what = f"{one.name}: {_describe(one, other)}, {_describe(other, one)}"
        found.setdefault((one.name, part), state_fault(code, part if part not in ("", EVERY) else None, what))
    lines = text.splitlines()
    reports = [*found.values(), *list_unlisted(lines, facts), *list_numbers_twice(lines)]
    if not reports:
        raise ParseError("no two sides that differ")
    return reports[:_MOST_REPORTS]


def _describe(fact: SideFact, other: SideFact) -> str:
    """Values with the line that states them; of many those that the other side does not have."""
    values = fact.values if len(fact.values) <= _SHOWN else fact.values - other.values
    shown = " ".join(sorted(values, key=lambda value: (len(value), value))[:_SHOWN]) or "none"
    shown = str(len(fact.values)) if fact.name in (GPUS, GPUS_OF_NODE) else shown
    is_end = fact.side in (SWITCH, HOST, fact.name)
    machine = f"on {fact.machine.removeprefix(HEADING)}" if fact.machine and not (is_end and fact.part) else ""
    where = " ".join(word for word in ("" if is_end and fact.part else fact.side, fact.part, machine) if word)
    return f"{shown} ({where}: `{fact.line[:_QUOTED]}`)"


def _compare(facts: Sequence[SideFact], joined: Set[tuple[str, str, str]]) -> Iterator[tuple[str, SideFact, SideFact]]:
    for row in AGREEMENTS:
        first = [fact for fact in facts if (fact.name, fact.side) == (row.fact, row.side)]
        second = [fact for fact in facts if (fact.name, fact.side) == (row.other_fact or row.fact, row.other_side)]
        of_one = _OF_ONE.get(row.of_one)
        if row.of_one == "only" and (len(first) != 1 or len(second) != 1):
            continue
        pairs = [
            (one, other) for one in first for other in second if of_one and one is not other and of_one(one, other)
        ]
        for one, other in pairs if of_one else _list_ends(first, second, joined):
            if not _AGREE[row.agree](one.values, other.values):
                yield row.code, one, other


def _list_ends(
    first: Sequence[SideFact], second: Sequence[SideFact], joined: Set[tuple[str, str, str]]
) -> Iterator[tuple[SideFact, SideFact]]:
    """The ends of each link: those that the text joins; where it does not, and each side has one value, any of them."""
    for other in second:
        lines = [(port, line) for port, interface, line in joined if interface == other.part]
        if len({port for port, _ in lines}) > 1:  # the interfaces of several hosts have one name
            lines = [(port, line) for port, line in lines if other.machine and other.machine in line]
        yield from ((one, other) for one in first if one.part in {port for port, _ in lines})
    known = {part for port, interface, _ in joined for part in (port, interface)}
    first = [fact for fact in first if fact.part not in known or not any(one.part for one in second)]
    second = [fact for fact in second if fact.part not in known or not any(one.part for one in first)]
    if len({fact.values for fact in first}) == 1 and len({fact.values for fact in second}) == 1:
        yield first[0], second[0]


def _compare_networks(facts: Sequence[SideFact]) -> Iterator[tuple[str, SideFact, SideFact]]:
    """Addresses of two machines in one network, of which each has another mask."""
    own = []
    for fact in facts:
        for value in sorted(fact.values) if fact.name == "address" else ():
            with suppress(ValueError):
                address = ip_interface(value)
                bits = address.network.prefixlen
                if bits == _OF_TWO_HOSTS or (address.ip != address.network.network_address and bits < _OF_ONE_HOST):
                    own.append((fact._replace(values=frozenset({value})), address))
    for at, (one, first) in enumerate(own):
        for other, second in own[at + 1 :]:
            is_in = [first.ip in second.network, second.ip in first.network]
            are_two = one.machine != other.machine and first.ip != second.ip
            if are_two and first.network != second.network and any(is_in):
                yield (_MAYBE if all(is_in) else _WRONG), one, other


def _compare_peers(facts: Sequence[SideFact]) -> Iterator[tuple[str, SideFact, SideFact]]:
    """The AS of a machine, and another one that its neighbor expects, which has that address or the other one of
    the link, or names the only one that it has."""
    own = {fact.machine: fact for fact in facts if fact.name == "AS"}
    held = {(fact.machine, ip) for fact in facts if fact.name == "IP address" for ip in fact.values}
    peers = [fact for fact in facts if fact.name == "AS of neighbor" and fact.machine in own]
    number = Counter(peer.machine for peer in peers)
    for one in peers:
        for machine, its in own.items():
            back = [peer for peer in peers if peer.machine == machine]
            is_link = (machine, one.part) in held or any(_is_other_end(one.part, peer.part) for peer in back)
            is_only = number[one.machine] == 1 and any(peer.values & own[one.machine].values for peer in back)
            if machine != one.machine and (is_link or is_only) and not one.values & its.values:
                yield _WRONG, its, one


def _is_other_end(one: str, other: str) -> bool:
    """
    >>> _is_other_end("10.0.0.0", "10.0.0.1"), _is_other_end("10.0.0.1", "10.0.0.2")
    (True, False)
    """
    with suppress(ValueError):
        return int(ip_address(one)) ^ int(ip_address(other)) == 1
    return False
