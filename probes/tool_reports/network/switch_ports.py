"""Faults of a switch's ports as its command line states them, whichever vendor's, and of the pair that it belongs to.

Counters are cumulative since someone cleared them: a few damaged frames or changes of the link are of no interest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from probes.switch_ports import vocabulary as words
from probes.switch_ports.alarms import list_module_alarms
from probes.switch_ports.columns import simplify
from probes.switch_ports.members import LinkMember, list_members
from probes.switch_ports.names import LONGEST_LINE, PORT
from probes.switch_ports.reading import PortFact, list_port_facts
from probes.text import ParseError, check_length, find_median, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.network.switch_log import has_log_line, list_log_faults
from probes.tool_reports.network.switch_pairs import is_of_pair, list_pair_faults

_MANY, _ONE_IN = 1000, 10_000_000  # damaged frames, and received ones
_MANY_CHANGES, _VERY_MANY_CHANGES, _TIMES_USUAL = 20, 100, 20  # of a link's state
_MANY_CARRIER_CHANGES = 100  # two for each, since the system started
_MANY_STORMS = 10
_MANY_FAULTS = 3  # of a link: one or two come with the start of the other end
_ERRORS_MATTER = 1e-12  # errors per bit behind the FEC: IEEE 802.3 and InfiniBand allow no more
_PEERS, _LESS_DB, _DIM_DBM, _DARK_DBM, _FEW = 3, 6.0, -10.0, -30.0, 4
_TIMES_OTHERS = 1000
_MANY_PAUSES = 1_000_000
_NO_COUNT = 1e24
_BUSY = 1_000_000  # frames of a port whose drops are judged
_DROPS = ((words.LOST_SENDING, words.SENT, 1000), (words.LOST_RECEIVING, words.RECEIVED, 100))  # one in how many
_HINT = lazy_pattern(
    r"[A-Za-z-] ?\d{1,4}/\d|Ethernet ?\d|sw\w?\d|\bEt\d{1,3}\b|[eE]rr-?[dD]is|[Pp]eer|AGG\d|/\d{1,3}\("
    r"|(?:alarm|fault|LOS|flag)[^\n]{0,40}: True|\bethernet\d|line protocol is|Interface [a-z]{2,8}\d|\bPort +Admin"
    r"|\nInterface +: |ERR_DISABLE|<\w{4}:vlan\.msgs"
)
_GROUPED = lazy_pattern(r"-?\d{1,3}(?:,\d{3})*(?![\d,])")  # a comma elsewhere begins the decimals
_NUMBER = lazy_pattern(r"-?\d[\d,]{0,26}(?:\.\d{1,6})?(?:[eE]-?\d{1,3})?")
_CLOSED = lazy_pattern(
    rf"[ \t]*(?P<port>{PORT})[ :].{{0,160}}?\b(?P<closed>err-?[dD]is\w{{2,12}}|link(?:Flap|-)?Err\w*"
    r"|[eE]rr(?:or)?[- ](?:[dD]own|DOWN)|ERROR DOWN|Link-Flap down)(?P<rest>.*)"
)
_STOPPED = lazy_pattern(rf"[ \t]*(?P<port>{PORT}:\d)[ \t]+stormed\b.{{0,120}}")  # a queue, without its heading
_NO_REASON = lazy_pattern(  # cells of other columns
    r"(?i)a?-?(?:full|half|auto|unconf\w*|trunk|routed|access|unknown|fiber|copper|not|present|none|error|disabled)|[\d.]+\S*"
    r"|\S*(?:BASE|SFP)\S*|--|[A-Z]"
)
_REASON = lazy_pattern(r"(?i)(?<![^\s(-])(?P<reason>[a-z]{3,20}(?:-[a-z]{3,20})+)(?![^\s)])")
_UP = ("up", "connected", "linkup", "active", "u")
_WAITING = ("initialize", "initializing", "initialized", "init", "armed")  # of InfiniBand, for the subnet manager
_DOWN = ("down", "polling", "notconnect", "notconnec", "notconnected", "kerneldown", "protodown")
_ADMIN_OFF = lazy_pattern(r"\*down|(?i:\( ?admin|\bdisabled\b|\badm\b|\badmin\w* down\b|\badmin-down\b|\bstby\b)")
_NO_MODULE = lazy_pattern(
    r"(?i)\bnot[ -]?present\b|\babsent\b|\bxcvrabsen\w*|\bsfpabsent\b|\bnot inserted\b|\bno (?:transceiver|xcvr)\b"
    r"|\bunplugged\b"
)
_MODULE = lazy_pattern(r"\d{2,3}G|BASE|SFP|(?i:cable|\bDAC\b|\bAOC\b)")
_SPEED = lazy_pattern(r"(?:a-)?(?P<gigabits>\d{1,4})G(?:b/s|bps)?(?:\(D\))?")
_PFC_HEAD = "Global PFC : Enabled"
_PFC_ROW = lazy_pattern(r"(?P<port>(?:Et|Ma|Po)\d[\d/]{0,10}) +(?P<status>[EDAW-](?: [EDAW-]){2}) .*")


_Rows = Mapping[str, Sequence[PortFact]]  # of a port, by fact
_Ports = Mapping[str, _Rows]


def list_switch_ports(text: str) -> list[ToolReport]:
    """Ports that a switch closed, or of which it states errors, alarms or a lost link; members that LACP left out; a
    lost peer. Raises ParseError where the text is of no port of a switch.

    >>> rows = "    IFACE  STATE   RX_OK  RX_ERR\\nEthernet0   U  912,381   0\\nEthernet8   U  912,381  91,231\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_switch_ports(rows)]
    [('switch-errors', 'Ethernet8', (('what', '91231 RX_ERR'),))]
    >>> [report[:2] for report in list_switch_ports("Et12/1  gpu-22  errdisabled  link-flap\\n")]
    [('switch-disabled', 'Et12/1')]
    """
    text = "".join(line if len(line) <= LONGEST_LINE else "\n" for line in check_length(text).splitlines(keepends=True))
    facts = [fact for fact in list_port_facts(text) if fact.fact != words.DESCRIBED or _is_given(fact)]
    states = list_module_alarms(text)
    members = list_members(text)
    lines = text.splitlines()
    logged = list_log_faults(lines)
    closed = list(_list_closed(lines, facts, logged))
    of_pair = list_pair_faults(lines)
    stopped = [match for line in lines if (match := _STOPPED.fullmatch(line))]
    is_stated = closed or logged or stopped or states.ports or members or is_of_pair(lines) or _PFC_HEAD in text
    if not (is_stated or any(map(_is_stated, facts)) or has_log_line(lines)):
        raise ParseError("no port of a switch")
    ports: dict[str, dict[str, list[PortFact]]] = {}
    for fact in facts:
        ports.setdefault(fact.port, {}).setdefault(fact.fact, []).append(fact)
    return [
        *closed,
        *(report for report in logged if report.code != "switch-disabled"),
        *(report for port, rows in ports.items() for report in _list_errors(ports, port, rows)),
        *(_report("switch-storm", row["port"], "", row[0]) for row in stopped if row["port"] not in ports),
        *_list_alarms(states.ports, states.alarms),
        *_list_left_out(members),
        *_list_changing(ports),
        *_list_dim(ports),
        *_list_ports_down(ports, {report.subject for report in closed}),
        *_list_unseen_modules(ports),
        *_list_slow(ports),
        *_list_pausing(ports),
        *_list_waiting(ports),
        *_list_ports_without_pfc(lines if _PFC_HEAD in text else (), ports),
        *of_pair,
    ]


def is_of_switch(text: str) -> bool:
    """Whether a text has what a switch's command line prints of its ports.

    >>> is_of_switch("Et12/1  gpu-22  errdisabled  link-flap"), is_of_switch("eth0  up  10.1.1.4/24")
    (True, False)
    >>> is_of_switch("Et23    errdisabled       link-flap")
    True
    """
    if not _HINT.search(text):
        return False
    try:
        list_switch_ports(text)
    except ParseError:
        return False
    return True


def _is_stated(fact: PortFact) -> bool:
    """Whether it is of the kind that is compared, and has such a value."""
    if fact.fact == words.STATE:
        return _split_state(fact.value)[0] in (*_UP, *_DOWN) or _ADMIN_OFF.search(fact.value) is not None
    if fact.fact in (words.PFC, words.CLOSED, words.LOGICAL, words.PRESENCE):
        return True
    is_counted = fact.fact not in (words.MODULE, words.DESCRIBED, words.SPEED, words.SENT, words.RECEIVED, words.ADMIN)
    return is_counted and _number(fact.value) is not None


def _is_given(fact: PortFact) -> bool:
    """Whether a person gave a port its description: some makers put its own name there."""
    return len(fact.value) > 1 and fact.port.lower() not in fact.line.partition(":")[2].lower()


def _split_state(value: str) -> tuple[str, str]:
    """A state, and its reason: in brackets, or behind a dash."""
    separator = " - " if " - " in value else "("
    state, _, reason = value.partition(separator)
    return simplify(state), reason.strip(" )")


def _number(value: str) -> float | None:
    match = _NUMBER.match(value.strip())
    if match is None:
        return None
    decimal = "," if "." in match[0] else "."  # beside a point a comma parts thousands
    text = match[0] if _GROUPED.match(match[0]) else match[0].replace(",", decimal, 1)
    number = float(text.replace(",", ""))
    return number if number < _NO_COUNT else None


def _level(value: str) -> float | None:
    """Light in dBm, which has no thousands: a comma begins the decimals."""
    return _number(value.replace(",", "."))


def _most(rows: _Rows, fact: str) -> dict[str, int]:
    """The greatest count of each label; none where it is no number."""
    counts: dict[str, int] = {}
    for row in rows.get(fact, ()):
        if (count := _number(row.value)) is not None and count >= counts.get(row.label, 0):
            counts[row.label] = int(count)
    return counts


def _line(rows: _Rows, *facts: str) -> str:
    """The lines of a port's facts of these kinds that are not zero."""
    lines = [row.line for fact in facts for row in rows.get(fact, ()) if _number(row.value) != 0]
    return "; ".join(dict.fromkeys(lines))


def _report(code: str, port: str | None, what: str, line: str) -> ToolReport:
    return state_fault(code, port or None, what, line)


def _list_closed(lines: Sequence[str], facts: Sequence[PortFact], logged: Sequence[ToolReport]) -> Iterator[ToolReport]:
    """Ports that the switch closed because of an error, with its reason where a word is one."""
    seen: set[str] = set()
    for fact in facts:
        if fact.fact == words.CLOSED and fact.port not in seen and fact.value not in ("-", "--"):
            seen.add(fact.port)
            yield _report("switch-disabled", fact.port, fact.value, fact.line)
    for report in logged:
        if report.code == "switch-disabled" and report.subject not in seen:
            seen.add(report.subject or "")
            yield report
    for match in map(_CLOSED.match, lines):
        if match and match["port"] not in seen and not _PFC_ROW.match(match[0]):  # what the watchdog would do
            seen.add(match["port"])
            named = _REASON.search(match["rest"])
            rest = [word for word in match["rest"].strip(" ()-").split() if not _NO_REASON.fullmatch(word)]
            reason = named["reason"] if named else " ".join(rest)
            yield _report("switch-disabled", match["port"], reason.strip("()"), match[0])


def _list_errors(ports: _Ports, port: str, rows: _Rows) -> Iterator[ToolReport]:
    """What the counters of one port state: damaged frames, code words and bits, storms of pauses, drops."""
    frames = max(_most(rows, words.RECEIVED).values(), default=0)
    counts = _most(rows, words.DAMAGED)
    counts = counts if any(count >= _MANY for count in counts.values()) else _most(rows, words.DAMAGED_TOTAL)
    many = {label: count for label, count in counts.items() if count >= _MANY}
    if many:
        code = "switch-errors" if max(many.values()) * _ONE_IN >= frames else "switch-errors-few"
        what = ", ".join(f"{count} {label}" for label, count in many.items())
        yield _report(code, port, what, _line(rows, words.DAMAGED, words.DAMAGED_TOTAL))
    for label, lost in _most(rows, words.UNCORRECTED).items():
        if lost:
            code = "switch-uncorrected" if lost >= _MANY or label.lower().endswith("rate") else "switch-uncorrected-few"
            grows = ", it grows now" if label.lower().endswith("rate") else ""
            yield _report(code, port, f"{lost} {label}{grows}", _line(rows, words.UNCORRECTED))
    sent = _most(rows, words.DAMAGED_SENT)
    if sent and max(sent.values()) >= max(_MANY, max(_most(rows, words.SENT).values(), default=0) / _ONE_IN):
        what = ", ".join(f"{count} {label}" for label, count in sent.items())
        yield _report("switch-errors-sent", port, what, _line(rows, words.DAMAGED_SENT))
    rates = [row for row in rows.get(words.ERRORS_PER_BIT, ()) if (_number(row.value) or 0) > _ERRORS_MATTER]
    if rates and not _is_down(rows):
        yield _report("link-errors", port, f"{rates[0].label} {rates[0].value}", rates[0].line)
    faults = {label: count for label, count in _most(rows, words.FAULTS).items() if count >= _MANY_FAULTS}
    if faults:
        what = ", ".join(f"{count} {label}" for label, count in faults.items())
        yield _report("switch-faults", port, what, _line(rows, words.FAULTS))
    yield from _list_storms(port, rows)
    for dropped, passed, one_in in _DROPS:
        others = max(_most(rows, passed).values(), default=0)
        for label, count in _most(rows, dropped).items():
            if not others and count >= _BUSY and _is_odd(ports, port, dropped, count):
                yield _report("switch-drops", port, f"{count} {label}", _line(rows, dropped))
            is_many = count + others >= _BUSY and count * one_in >= count + others
            is_most = count >= _BUSY and count * _BUSY >= others and _is_odd(ports, port, dropped, count)
            if others and (is_many or (is_most and len(ports) >= _PEERS)) and " MC" not in port:
                what = f"{count} {label}, {others} {rows[passed][0].label}"
                yield _report("switch-drops" if is_many else "switch-drops-most", port, what, _line(rows, dropped))


def _is_odd(ports: _Ports, port: str, fact: str, count: int) -> bool:
    """Whether it is far more than each other port counts."""
    others = [max(_most(rows, fact).values(), default=0) for name, rows in ports.items() if name != port]
    return bool(others) and count >= _TIMES_OTHERS * max(others)


def _list_storms(port: str, rows: _Rows) -> Iterator[ToolReport]:
    """Queues that the PFC watchdog stopped: now, or often; a note where it did so at times."""
    stopped = max(_most(rows, words.STORMS).values(), default=0)
    if stopped:
        is_stopped = any(row.value.lower() in ("stormed", "deadlock", "storm") for row in rows.get(words.STATE, ()))
        code = "switch-storm" if is_stopped or stopped >= _MANY_STORMS else "switch-stormed"
        yield _report(code, port, f"{stopped} storm{'s' * (stopped > 1)}", _line(rows, words.STORMS))


def _is_down(rows: _Rows) -> bool:
    states = rows.get(words.STATE, ())
    operational = [row for row in states if simplify(row.label).startswith("oper")]
    values = [_split_state(row.value)[0] for row in operational or states]
    return any(value in _DOWN for value in values) and not any(value in _UP for value in values)


def _list_alarms(ports: Sequence[str], alarms: Sequence[tuple[str, str, str]]) -> Iterator[ToolReport]:
    """Alarms of modules, one report for each port; a note where many ports have them."""
    by_port: dict[str, dict[str, list[str]]] = {}
    for port, name, lane in alarms:
        by_port.setdefault(port, {}).setdefault(name, []).append(lane)
    code = "module-flags" if len(by_port) == 1 or _FEW * len(by_port) <= len(ports) else "modules-flags"
    for port, names in by_port.items():
        parts = [f"{name} (lanes {', '.join(lanes)})" if all(lanes) else name for name, lanes in names.items()]
        yield _report(code, port, "; ".join(parts[:3]), "; ".join(parts))


def _list_left_out(members: Iterable[LinkMember]) -> Iterator[ToolReport]:
    """Members of an aggregation that carry nothing; a note where no member of it carries anything."""
    groups: dict[str, list[ToolReport]] = {}
    carrying: set[str] = set()
    for group, port, state, carries, line in members:
        if carries:
            carrying.add(group)
        else:
            groups.setdefault(group, []).append(_report("", port, f"{group}, {state}", line))
    for group, reports in groups.items():
        code = "switch-member-out" if group in carrying else "switch-group-down"
        yield from (report._replace(code=code) for report in reports)


def _list_changing(ports: _Ports) -> Iterator[ToolReport]:
    """Ports whose link came and went often; a fault where the others did not."""
    counts = {port: max(_most(rows, words.FLAPS).values()) for port, rows in ports.items() if _most(rows, words.FLAPS)}
    for port, count in counts.items():
        others = [other for name, other in counts.items() if name != port]
        is_odd = len(others) > 1 and count >= max(_VERY_MANY_CHANGES, _TIMES_USUAL * find_median(others))
        labels = [row.label.lower() for row in ports[port][words.FLAPS]]
        is_carrier = any(label.startswith("carrier") or "transition" in label for label in labels)  # each way counts
        if count >= (_MANY_CARRIER_CHANGES if is_carrier else _MANY_CHANGES):
            code = "switch-flaps-most" if is_odd else "switch-flaps"
            yield _report(code, port, f"{count} time{'s' * (count > 1)}", _line(ports[port], words.FLAPS))


def _list_dim(ports: _Ports) -> Iterator[ToolReport]:
    """Ports that receive far less light than the others."""
    levels = {
        port: level
        for port, rows in ports.items()
        for row in sorted(_list_light(rows), key=lambda row: _level(row.value) or 0)[:1]  # of the darkest lane
        if (level := _level(row.value)) is not None
    }
    if len(levels) < _PEERS:
        return
    usual = sorted(levels.values())[len(levels) // 2]
    for port, level in levels.items():
        if level <= min(usual - _LESS_DB, _DIM_DBM):
            row = next(row for row in _list_light(ports[port]) if _level(row.value) == level)
            yield _report("switch-dim", port, f"{row.value.split()[0]} dBm, others {usual:g}", row.line)


def _list_ports_down(ports: _Ports, closed: set[str | None]) -> Iterator[ToolReport]:
    """Ports that are on, have a module or the name of what is at their other end, and no link, where most have one, or
    where one port was asked about."""
    used = []
    for port, rows in ports.items():
        stated = [row for fact in (words.STATE, words.ADMIN, words.REASON) for row in rows.get(fact, ())]
        line = " ".join(row.line for row in stated)
        is_off = any(simplify(row.value).removeprefix("admin") == "down" for row in rows.get(words.ADMIN, ()))
        is_off = is_off or _ADMIN_OFF.search(line) is not None
        is_off = is_off or (len(ports) > 1 and _NO_MODULE.search(line) is not None)
        is_named = (
            words.REASON in rows
            or words.DESCRIBED in rows
            or any(_MODULE.search(row.value) for row in rows.get(words.MODULE, ()))
            or len(ports) == 1  # that someone asked about
            or any(_most(rows, words.RECEIVED).values())  # it had a link
        )
        if words.STATE in rows and not is_off and port not in closed and (is_named or not _is_down(rows)):
            used.append(port)
    down = [port for port in used if _is_down(ports[port])]
    if len(ports) == 1 or 2 * len(down) <= len(used):
        for port in down:
            reason = next((row.value for row in ports[port].get(words.REASON, ())), "") or _describe_dark(ports[port])
            reason = reason or next((_split_state(row.value)[1] for row in ports[port][words.STATE]), "")
            yield _report("switch-port-down", port, reason, _line(ports[port], words.STATE))


def _list_unseen_modules(ports: _Ports) -> Iterator[ToolReport]:
    """Ports with a link of which the switch states that no module is in them."""
    for port, rows in ports.items():
        states = [_split_state(row.value)[0] for row in rows.get(words.STATE, ())]
        for row in rows.get(words.PRESENCE, ())[:1]:
            if _NO_MODULE.search(row.value) and any(state in _UP for state in states):
                yield _report("switch-module-unseen", port, row.value, row.line)


def _list_light(rows: _Rows) -> list[PortFact]:
    """What a port receives; where two are alike, the first is of what is sent."""
    levels = rows.get(words.LIGHT, ())
    return [row for row in levels if row.label.lower().startswith("rx")] or list(levels[-1:])


def _describe_dark(rows: _Rows) -> str:
    """What a port receives on all its lanes where that is no light."""
    levels = [level for row in _list_light(rows) if (level := _level(row.value)) is not None]
    return f"it receives no light ({max(levels):g} dBm)" if levels and max(levels) <= _DARK_DBM else ""


def _list_slow(ports: _Ports) -> Iterator[ToolReport]:
    """Ports with a link that is slower than that of most others."""
    speeds = {
        port: speed
        for port, rows in ports.items()
        for row in rows.get(words.SPEED, ())[:1]
        if not _is_down(rows) and words.STATE in rows and (speed := _read_speed(row.value)) is not None
    }
    usual, count = Counter(speeds.values()).most_common(1)[0] if speeds else (0, 0)
    for port, speed in speeds.items() if 2 * count > len(speeds) >= _PEERS else ():
        if speed < usual:
            row = ports[port][words.SPEED][0]
            yield _report("switch-slow", port, f"{row.value}, most others {usual}G", row.line)


def _list_pausing(ports: _Ports) -> Iterator[ToolReport]:
    """Ports with far more pauses than all others; a note where these have none, or where the switch sends them."""
    counts: dict[str, dict[str, int]] = {}  # of each label, by port
    for port, rows in ports.items():
        for label, count in _most(rows, words.PAUSES).items():
            counts.setdefault(label, {})[port] = count
    for label, of_ports in counts.items():
        port = max(of_ports, key=lambda name: of_ports[name])
        others = [count for name, count in of_ports.items() if name != port]
        if len(others) >= _PEERS and of_ports[port] >= max(_MANY_PAUSES, _TIMES_OTHERS * max(others)):
            is_used = sum(map(bool, others)) >= _PEERS
            code = (
                "switch-pauses-sent" if "tx" in label.lower() else "switch-paused" if is_used else "switch-paused-alone"
            )
            what = f"{of_ports[port]} ({label}), others at most {max(others)}"
            row = next(
                row for row in ports[port][words.PAUSES] if (row.label, _number(row.value)) == (label, of_ports[port])
            )
            yield _report(code, port, what, row.line)


def _list_waiting(ports: _Ports) -> Iterator[ToolReport]:
    """Ports of InfiniBand that have a link and that no subnet manager set up."""
    for port, rows in ports.items():
        for row in rows.get(words.LOGICAL, ())[:1]:
            if simplify(row.value) in _WAITING and not _is_down(rows):
                yield _report("switch-waiting", port, row.value, row.line)


def _read_speed(value: str) -> int | None:
    """In Gbit/s, of a table: 400G, a-100G, 400G(D)."""
    match = _SPEED.fullmatch(value)
    return int(match["gigabits"]) if match else None


def _list_ports_without_pfc(lines: Iterable[str], ports: _Ports) -> Iterator[ToolReport]:
    """Ports where PFC is off: each that EOS lists, while it is on for the switch; one where it is on on most others.
    `lines`: where it is on for the switch, those of the text."""
    listed = [match for line in lines if (match := _PFC_ROW.match(line))]
    if listed and all(match["status"][0] == "D" for match in listed):
        names = ", ".join(match["port"] for match in listed)
        yield _report("switch-pfc-nowhere", None, names[:80], f"{_PFC_HEAD}; D: {names}")
    states = {port: facts[words.PFC][0] for port, facts in ports.items() if words.PFC in facts}
    off = [row for row in states.values() if row.value.lower().startswith("off")]
    for row in off if _FEW * len(off) <= len(states) else ():
        yield _report("switch-pfc-port", row.port, f"{row.label} {row.value}", row.line)
