"""Alarms that optical modules state of themselves, as switches print them.

Forms: a flag with a value (`Rx power low alarm flag on lane 2: True`, `Laser receiver power low alarm : On`, `Rx Power
Alarm : Low`), a mark behind what was measured (`-18.91 dBm --`), a list below its heading (`Alarm information:`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.switch_ports.columns import find_columns, is_rule, read_cells
from probes.switch_ports.names import find_command, find_head, find_port_of_command, find_row
from probes.text import lazy_pattern

_FLAG = lazy_pattern(
    r"[ \t]*(?:Q?SFP(?:28|56|-DD)?(?P<port>\d{1,2}(?:/\d{1,3}){2}) )?"
    r"(?P<name>[A-Z][\w. /-]{2,60}?(?:alarm|warning|fault|loss of signal|loss of lock|LOS|LOL)(?: flag)?)"
    r"(?: ?\(?(?:on|in|for)?(?: media| host)? ?(?:lane|channel) ?(?P<lane>\d{1,2})\)?)? {0,40}[:=] "
    r"{0,4}(?P<value>True|False|On|Off|Yes|No|None|Low|High|N/A)[ \t]*",
    re.IGNORECASE,
)
_SET = ("true", "on", "yes", "low", "high")
_LANE = lazy_pattern(r"[ \t]*(?:Lane|Lane Number|Channel|Ch)[ :]{1,3}(?P<lane>\d{1,2})\b.{0,40}", re.IGNORECASE)
_MARKED = lazy_pattern(
    r"[ \t]*(?P<name>Temperature|Voltage|Current|(?:Tx|Rx|Transmit|Receive) Power)[ \t]{1,40}"
    r"-?\d{1,4}\.\d{1,4} {1,4}(?:C|V|mA|dBm) {0,4}(?P<mark>--|\+\+)?(?:[ \t].*)?",
    re.IGNORECASE,
)
_MARKED_ROW = lazy_pattern(r"[ \t]*-?\d{1,4}\.\d{1,4} {1,4}(?P<mark>--|\+\+)(?:[ \t].*)?")
_MEASURED = lazy_pattern(r"[ \t]+(?P<name>Temperature|Voltage|Current|[TR]x Power)[ \t]+Threshold.*", re.IGNORECASE)
_HEADING = lazy_pattern(r"(?i)(?:.{0,60} )?alarm information:?[ \t]*")
_LISTED = lazy_pattern(
    r"[ \t]+(?P<name>None|(?:[RT]X|Temp|Voltage|Bias|Module|Laser)[\w /-]{2,60}?)[ \t]*", re.IGNORECASE
)
_RATED = lazy_pattern(r"-?\d{1,4}\.\d{1,4}\((?:OK|normal|alarm|warning)[^)]{0,12}\)", re.IGNORECASE)
_MEASURES = frozenset(("tempcelsius", "temperaturecelsius", "voltagev", "biasma", "rxpowerdbm", "txpowerdbm"))
_MARKS = {"--": "low alarm", "++": "high alarm"}


class ModuleAlarm(NamedTuple):
    """An alarm of the module in a port; of a lane, where that is stated."""

    port: str
    name: str
    lane: str


class ModuleStates(NamedTuple):
    """The ports whose modules state whether they have an alarm, and the alarms."""

    ports: tuple[str, ...]
    alarms: tuple[ModuleAlarm, ...]


def list_module_alarms(text: str) -> ModuleStates:
    """Every alarm that is set, and the ports that state of one whether it is.

    >>> states = list_module_alarms("Ethernet8:\\n    Rx power low alarm flag on lane 2: True\\n    Tx fault: False\\n")
    >>> states.ports, states.alarms[0]
    (('Ethernet8',), ModuleAlarm(port='Ethernet8', name='Rx power low alarm', lane='2'))
    >>> rows = "TFGigabitEthernet 0/3\\nVoltage(V)  RX power(dBm)\\n3.28(OK)    -24.11(alarm)[AP]\\n"
    >>> [alarm[:2] for alarm in list_module_alarms(rows).alarms]
    [('TFGigabitEthernet 0/3', 'RX power(dBm)')]
    >>> rows = "Ethernet1/30\\n    Temperature   41.20 C   75.00 C\\n    Rx Power     -18.91 dBm --    5.39 dBm\\n"
    >>> [alarm[:2] for alarm in list_module_alarms(rows).alarms]
    [('Ethernet1/30', 'Rx Power low alarm')]
    """
    ports: dict[str, None] = {}
    alarms: dict[ModuleAlarm, None] = {}
    for port, name, lane in _list_states(text.expandtabs().splitlines()):
        ports.setdefault(port)
        if name:
            alarms.setdefault(ModuleAlarm(port, name, lane))
    return ModuleStates(tuple(ports), tuple(alarms))


def _list_states(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Port, alarm and lane; no alarm: a state without one."""
    port = lane = measured = ""
    is_list = False
    for above, line in zip(["", *lines], lines, strict=False):
        if command := find_command(line):
            port, lane, measured, is_list = find_port_of_command(command) or "", "", "", False
        elif head := find_head(line):
            port, lane, is_list = head[0], "", bool(_HEADING.fullmatch(head[1]))
        elif match := _LANE.fullmatch(line):
            lane = match["lane"]
        elif match := _MEASURED.fullmatch(line):
            measured = match["name"]
        elif measured and (row := find_row(line)):
            mark = _MARKED_ROW.fullmatch(line[row[1] :])
            yield row[0], f"{measured} {_MARKS[mark['mark']]}" if mark else "", ""
        elif match := _FLAG.fullmatch(line):
            name = match["name"].removesuffix(" flag").removesuffix(" Flag")
            value = match["value"].lower()
            port = match["port"] or port
            words = f"{name} {value}" if value in ("low", "high") else name
            if port or value in ("true", "false"):  # so are flags of switches alone
                yield port, words if value in _SET else "", match["lane"] or lane
        elif port and _RATED.search(line):
            columns = find_columns([above], _MEASURES.__contains__)
            for _, printed, cell in read_cells(columns, line) if columns else ():
                yield port, printed if "(alarm" in cell.lower() else "", lane
        elif port and (match := _MARKED.fullmatch(line)):
            yield port, f"{match['name']} {_MARKS[match['mark']]}" if match["mark"] else "", lane
        elif _HEADING.fullmatch(line):
            is_list = True
        elif is_rule(line) or (is_list and ":" in line):
            is_list = False
        elif is_list and port and (match := _LISTED.fullmatch(line)):
            yield port, match["name"].replace("None", ""), ""
