"""Members of link aggregations (LACP), and whether each carries traffic, as switches print them.

Forms: flags in brackets behind each port, explained by a legend above (EOS, NX-OS, OS10, SONiC); a status by row
(Huawei, Comware); the state of the multiplexer (Junos).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.named_tuple import NamedTuple
from probes.switch_ports.names import PORT
from probes.text import lazy_pattern

_GROUP = lazy_pattern(
    r"(?:(?:Aggregated?[ -][Ii]nterface: |Aggregation Interface: |\d{1,4} +)?[ \t]*)?(?P<group>(?:Po|"
    r"[Pp]ort-[Cc]hannel|PortChannel|ae|bond|Eth-Trunk|Bridge-Aggregation|Route-Aggregation|Mpo|A[Gg]|"
    r"AggregatePort) ?\d{1,4})\b"
)
_LEGEND = lazy_pattern(
    r"(?<![\w*+-])(?P<flag>[A-Za-z]|[*+-]) ?- (?P<words>[A-Za-z][\w /()'-]*?)(?=[ \t]{2,}|,|[ \t]*$)"
)
_FLAGGED = lazy_pattern(rf"(?P<port>{PORT}|\d{{1,3}}(?:/\d{{1,3}}){{1,3}}(?::\d)?)\((?P<flags>[A-Za-z*+-]{{1,6}})\)")
_OUT = lazy_pattern(
    r"\b(?:down|suspended|individual|out-of-sync|out of sync|deselected|not synced|inactive|incompatible"
    r"|module-removed)\b",
    re.IGNORECASE,
)
_MUX = lazy_pattern(
    rf"[ \t]+(?P<port>{PORT})[ \t]+(?:Current|Expired|Defaulted|Initialize|Port disabled|Not ?Received|LACP disabled)"
    r".*?(?P<state>Collecting distributing|Detached|Waiting|Attached|Collecting)[ \t]*"
)
_SELECTED = lazy_pattern(
    rf"[ \t]*(?P<port>{PORT})(?:\([A-Z]\))?[ \t]+(?P<state>Selected|Unselect(?:ed)?|[SUI])[ \t]+\S.*"
)
_SUMMED = lazy_pattern(  # of Comware
    r"(?P<group>[BR]AGG\d{1,4}) +[SD] +\S+ +\S+ +(?P<selected>\d{1,3}) +(?P<unselected>\d{1,3}) +\d{1,3} +\S+[ \t]*"
)
_LISTED = lazy_pattern(
    rf"[ \t]+(?P<port>{PORT})[ \t]{{2,}}\S.*?[ \t]{{2,}}(?P<state>\S.*?)[ \t]*"
)  # of EOS, by its heading
_HEADING = lazy_pattern(r"[ \t]*(?:(?P<carries>Active Ports)|(?P<out>Configured, but inactive ports)):?[ \t]*")
_CARRIES = frozenset({"Collecting distributing", "Selected", "S"})


class LinkMember(NamedTuple):
    """A port of an aggregation. `state`: as it is printed, with the words of the legend."""

    group: str
    port: str
    state: str
    carries: bool
    line: str


def list_members(text: str) -> list[LinkMember]:
    """Every member, in order.

    >>> rows = "Flags: S - selected, D - deselected\\n 01  PortChannel01  LACP(A)(Up)  Ethernet0(S) Ethernet4(D)\\n"
    >>> [member[:4] for member in list_members(rows)]
    [('PortChannel01', 'Ethernet0', 'S: selected', True), ('PortChannel01', 'Ethernet4', 'D: deselected', False)]
    >>> [member[:4] for member in list_members("Eth-Trunk4's state\\n100GE1/0/3   Unselect 100GE  32768\\n")]
    [('Eth-Trunk4', '100GE1/0/3', 'Unselect', False)]
    """
    members: list[LinkMember] = []
    legend: dict[str, str] = {}
    group, heading = "", None  # type: str, re.Match[str] | None
    for line in text.expandtabs().splitlines():
        if match := _GROUP.search(line[:80]):
            group, heading = match["group"], None
        flagged = list(_FLAGGED.finditer(line)) if group else []
        if not flagged:
            legend.update((match["flag"], match["words"].strip()) for match in _LEGEND.finditer(line))
        members += _read_flagged(group, flagged, legend, line)
        heading = _HEADING.fullmatch(line) or heading
        if group and heading and (row := _LISTED.fullmatch(line)):
            state, carries = row["state"] if heading["out"] else "active", heading["out"] is None
            members.append(LinkMember(group, row["port"], state, carries, " ".join(line.split())))
        elif row := _SUMMED.fullmatch(line):
            members += _read_summed(row, line)
        elif group and (row := _MUX.fullmatch(line) or _SELECTED.fullmatch(line)):
            members.append(
                LinkMember(group, row["port"], row["state"], row["state"] in _CARRIES, " ".join(line.split()))
            )
    return members


def _read_summed(row: re.Match[str], line: str) -> Iterator[LinkMember]:
    """An aggregation with the numbers of its members."""
    for name, carries in (("selected", True), ("unselected", False)):
        if int(row[name]):
            yield LinkMember(row["group"], row["group"], f"{row[name]} {name}", carries, " ".join(line.split()))


def _read_flagged(group: str, flagged: list[re.Match[str]], legend: dict[str, str], line: str) -> Iterator[LinkMember]:
    """Members with flags that a legend explains; others state nothing."""
    for match in flagged:
        known = [(flag, legend[flag]) for flag in match["flags"] if flag in legend]
        if known:
            out = [row for row in known if _OUT.search(row[1])]
            state = ", ".join(": ".join(row) for row in out or known[:1])
            yield LinkMember(group, match["port"], state, not out, " ".join(line.split()))
