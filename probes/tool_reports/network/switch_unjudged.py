"""What a text of a switch states that reads like a fault and that no check judges: counts, ports without a link.

A text with such lines is not called free of faults.
"""

from __future__ import annotations

from probes.switch_ports import vocabulary as words
from probes.switch_ports.columns import simplify
from probes.switch_ports.labels import list_pairs
from probes.switch_ports.names import LONGEST_LINE, find_head
from probes.switch_ports.reading import list_port_facts
from probes.text import check_length, lazy_pattern
from probes.tool_reports.sentences.unexplained import list_unexplained

_MOST, _SHOWN = 3, 4
_MANY = 4  # digits of a count
_TROUBLE = lazy_pattern(
    r"(?i)err|crc|fcs|drop|discard|fault|fail|lost|loss|over-?runs?\b|under-?runs?\b|stomp|runt|giant|jabber|ignored"
    r"|no buffer|abort|collision"
)
_CLOSED = lazy_pattern(r"(?i)\badmin\w*[ -]down\b|\bdisabled\b")  # by a person


def list_unjudged(text: str) -> list[str]:
    """Each as a person reads it; counts of the same kind and port once.

    >>> list_unjudged("Ethernet1/3 is up, line protocol is up\\n    0 runts  123188 giants  5 stomped\\n")
    ['Ethernet1/3: 123188 giants']
    >>> list_unjudged("Port  Admin  Oper\\n1/1/1  Up  Up\\n1/1/2  Up  Down\\n")
    ['1 of 2 ports without a link: 1/1/2']
    >>> list_unjudged("swp12 is up, but uncorrectable codewords keep growing\\n")
    ['swp12 is up, but uncorrectable codewords keep growing']
    """
    text = "\n".join(line for line in check_length(text).splitlines() if len(line) <= LONGEST_LINE)
    counts: dict[str, None] = {}
    port = ""
    for line in text.splitlines():
        if head := find_head(line):
            port = head[0]
        for label, value in list_pairs(line) if port else ():
            digits = value.replace(",", "")
            if digits.isdecimal() and len(digits) >= _MANY and _TROUBLE.search(label):
                counts.setdefault(f"{port}: {value} {label}")
    states: dict[str, set[str]] = {}
    for fact in list_port_facts(text):
        if fact.fact in (words.STATE, words.ADMIN):
            state = simplify(fact.value) if not _CLOSED.search(fact.line) else "closed"
            states.setdefault(fact.port, set()).add(f"admin {state}" if fact.fact == words.ADMIN else state)
    down = [name for name, stated in states.items() if "down" in stated and "admin down" not in stated]
    shown = ", ".join(down[:_SHOWN]) + (" and others" if len(down) > _SHOWN else "")
    found = [*list(counts)[:_MOST], *([f"{len(down)} of {len(states)} ports without a link: {shown}"] if down else [])]
    return found or [report.text for report in list_unexplained(text)[:_MOST]]
