"""How switches name their ports, and the commands that print something of them.

Sources: manuals of Arista EOS, Cisco NX-OS, Juniper Junos, Huawei VRP, H3C Comware, Ruijie, Dell OS10, SONiC, NVIDIA
Cumulus and Onyx.
"""

from __future__ import annotations

import re

from probes.text import lazy_pattern

LONGEST_LINE = 600  # of a text of a switch
_SLOTS = r"\d{1,4}(?:/ ?\d{1,3}){1,3}(?::\d{1,2})?"
PORT = (
    rf"(?:(?:Ethernet|Eth|Et) ?(?:{_SLOTS}|\d{{1,4}}(?::\d{{1,2}})?)|IB ?{_SLOTS}|(?:et|xe|ge)-{_SLOTS}"
    r"|swp\d{1,3}(?:s\d)?|(?<![\w./-])[xc]e\d{1,3}(?:/\d{1,2})?(?![\w./-])|sw\d{1,3}p\d{1,3}(?:s\d)?"
    rf"|(?:\d{{1,3}}GE|(?:[A-Z][A-Za-z-]{{0,24}})?(?:GigE|GigabitEthernet)|[A-Z]{{0,2}}GE) ?{_SLOTS}"
    r"|(?<![\w/.-])[A-Za-z][A-Za-z-]{0,30}\d{1,3}(?:/\d{1,3}){1,4}(?::\d{1,2})?)"  # of any maker: letters, then slots
)
_PORT = lazy_pattern(PORT)
_HEAD = lazy_pattern(  # a line about one port, above lines of it
    rf"[ \t]{{0,2}}(?:(?:Physical interface|Interface|Port):? {{0,4}})?(?P<port>{PORT}|(?<=Port ){_SLOTS})"
    r"(?P<rest>[ \t]*$|:[ \t]*$|: SFP EEPROM .*|, .*|(?: is | (?:current )?state| transceiver| +Interface PFC).*)"
)
_STATES = r"(?:administratively )?(?:up|down|disabled|enabled|error-disabled)\b"
_ANY_HEAD = lazy_pattern(  # by what it states, whatever the name is: one of a group, a VLAN or a loopback, too
    r"(?i)[ \t]{0,2}(?:(?:Interface(?:[ \t]{0,20}:)?|Transceiver in)[ \t]{1,4}"
    r"(?P<named>[a-z][\w./:-]{0,40}?[ ]?\d[\w./:-]{0,20}|\d{1,3}(?:/[a-z]?\d{1,3}){1,3})"
    rf"(?P<stated>[ \t]*$|[ \t]{{4,}}\w[\w ]{{2,30}}:.*| is {_STATES}.*)"  # or a second label beside the name
    rf"|(?P<port>[a-z][a-z-]{{0,40}} ?\d[\w./:-]{{0,20}})(?P<rest> is {_STATES}"
    r"(?:,? (?:line )?protocol is .*|,? ifindex.*|[ \t]*\((?:not ?)?connected\).*)))"
)
_NO_PORT = lazy_pattern(  # nothing is plugged into it
    r"(?i)(?:vlan|vlanif|loopback|lo|null|tunnel|nve|bvi|irb|bundle-ether|port-?channel|po|agg|bridge-aggregation"
    r"|eth-trunk|route-aggregation|lag|bond|ae|irf-port|stack-port|mgmt|management|mgmteth|meth|m-gigabitethernet"
    r"|inloopback|dialer|virtual\S*) ?\d.*"
)
_ROW = lazy_pattern(  # by slots alone, too: a row is read below the names of its columns
    rf"[ \t]{{0,12}}(?P<port>{PORT}|\d{{1,2}}/(?:[a-z]?\d{{1,3}})(?:/[a-z]?\d{{1,3}}){{0,2}})(?:\([A-Z0-9]{{1,4}}\))?:?"
    r"(?=[ \t])"
)
_COMMAND = lazy_pattern(
    r"(?:^|[>#$\]%])[ \t]{0,8}(?:sudo )?(?P<command>(?:show|sho?|display|dis|disp|nv show|pfcwd|portstat|intfutil"
    r"|l1-show)[ \t][^\n]{1,200})"
)
_OF_PORT = lazy_pattern(rf"\b(?P<kind>ethernet|eth|ib|interfaces?|int) {{1,4}}(?P<slots>{_SLOTS})", re.IGNORECASE)
_NAMED = lazy_pattern(rf"(?<![\w-]){PORT}(?!\w)")


def is_port(name: str) -> bool:
    """Whether it is the name of a port of a switch, and nothing else.

    >>> is_port("Ethernet7/1"), is_port("swp3"), is_port("mlx5_0")
    (True, True, False)
    """
    return _PORT.fullmatch(name) is not None


def find_head(line: str) -> tuple[str, str] | None:
    """The port that a line is about, and what else the line states. No name where it is of no port: of a VLAN, a group.

    >>> find_head("Physical interface: et-0/0/4, Enabled, Physical link is Up")
    ('et-0/0/4', ', Enabled, Physical link is Up')
    >>> find_head("Port 1/9 transceiver diagnostic data:")
    ('1/9', ' transceiver diagnostic data:')
    >>> find_head("Et1/1  gpu-01  connected  120  full  400G")
    >>> find_head("Interface 1/1/7 is down"), find_head("Vlan20 is up, line protocol is up")
    (('1/1/7', ' is down'), ('', ' is up, line protocol is up'))
    """
    if match := _HEAD.fullmatch(line):
        return match["port"], match["rest"]
    match = _ANY_HEAD.fullmatch(line)
    if match is None:
        return None
    name, rest = match["named"] or match["port"], match["stated"] if match["named"] else match["rest"]
    return "" if _NO_PORT.fullmatch(name) else name, rest


def find_row(line: str) -> tuple[str, int] | None:
    """The port at the begin of a row, and where the rest of the row begins.

    >>> find_row("  GigabitEthernet15/1/0(10G) up    up"), find_row("eth0  up  up")
    (('GigabitEthernet15/1/0', 28), None)
    """
    match = _ROW.match(line)
    return (match["port"], match.end()) if match else None


def find_command(line: str) -> str | None:
    """The command of a switch in a line, behind its prompt.

    >>> find_command("n9k-7# show interface brief"), find_command("<leaf-2>display error-down recovery")
    ('show interface brief', 'display error-down recovery')
    """
    match = _COMMAND.search(line[:300])
    return match["command"].strip() if match else None


def find_port_of_command(command: str) -> str | None:
    """The one port that a command asks about.

    >>> find_port_of_command("nv show interface swp3 counters")
    'swp3'
    >>> find_port_of_command("show interfaces ethernet 1/17 counters")
    'Eth1/17'
    """
    if match := _OF_PORT.search(command):
        kind = match["kind"].lower()
        return f"{'IB' if kind == 'ib' else 'Eth' if kind.startswith('eth') else ''}{match['slots']}"
    named = _NAMED.findall(command)
    return named[0] if len(named) == 1 else None
