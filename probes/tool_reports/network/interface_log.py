"""What managers of interfaces log of a link: a carrier that was lost, often or for good, a network that they could not
set up.

Sources: systemd src/network/networkd-link.c, networkd-queue.c; NetworkManager src/core/devices/nm-device.c; dhcpcd
src/dhcpcd.c.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.named_tuple import NamedTuple
from probes.text import ParseError, check_length, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_LINE, _MOST_REPORTS = 600, 64
_MOST_LINES = 400  # of a log that is an excerpt: a whole one has each restart of the host
_OFTEN = 3  # losses in one excerpt
_NAME = (
    r"(?P<name>(?!(?:lo|docker|br-|virbr|veth|cali|cilium|flannel|cni|vnet|tun|tap|wg|wl|ww|dummy)\S*)[\w.@-]{2,15})"
)
_CHANGES = tuple(
    map(
        lazy_pattern,
        (
            rf"systemd-networkd(?:\[\d{{1,10}}\])?: {_NAME}: (?:(?P<lost>Lost)|Gained) carrier\b",
            rf"\bdevice \({_NAME}\): carrier: link (?:(?P<lost>lost)|connected)\b",
            rf"\bdevice \({_NAME}\): state change: \w{{4,20}} -> (?P<lost>unavailable) \(reason 'carrier-changed'",
            rf"dhcpcd(?:\[\d{{1,10}}\])?: {_NAME}: carrier (?:(?P<lost>lost)|acquired)\b",
        ),
    )
)
_REFUSED = lazy_pattern(
    rf"systemd-networkd(?:\[\d{{1,10}}\])?: {_NAME}: "
    r"(?P<what>(?:Could not|Failed to) (?:set|bring|add|configure|enslave|join|create|assign)[^\n]{3,160}"
    r"|Failed)[ \t]*$"
)


class _Carrier(NamedTuple):
    """What a log has of one interface."""

    losses: int
    is_lost: bool
    line: str


def list_carrier_faults(text: str) -> list[ToolReport]:
    """Interfaces that lost their carrier three times or at the end of the text, and those that could not be set up.
    Raises ParseError where no line is about one, or the log is too long for an excerpt.

    >>> line = "Feb  2 03:04:05 n7 systemd-networkd[811]: ens3f1np1: {} carrier\\n"
    >>> reports = list_carrier_faults((line.format("Lost") + line.format("Gained")) * 3)
    >>> [(report.code, report.subject, report.detail) for report in reports]
    [('carrier-flaps', 'ens3f1np1', (('what', '3 times'),))]
    >>> [report.code for report in list_carrier_faults(line.format("Lost"))]
    ['carrier-lost']
    """
    lines = check_length(text).splitlines()
    carriers: dict[str, _Carrier] = {}
    refused: dict[str, tuple[str, str]] = {}
    for line in lines if len(lines) <= _MOST_LINES else ():
        for name, is_lost in _read_change(line[:_LIMIT_LINE]):
            before = carriers.get(name) or _Carrier(0, False, line)
            is_new = is_lost and not before.is_lost  # the manager logs the state of the device, too
            carriers[name] = _Carrier(before.losses + is_new, is_lost, line if is_lost else before.line)
        match = _REFUSED.search(line[:_LIMIT_LINE])
        if match and (match["name"] not in refused or match["what"] != "Failed"):  # which states no reason
            refused[match["name"]] = match["what"], line
    if not carriers and not refused:
        raise ParseError("no line about the carrier of an interface")
    not_set = (state_fault("network-not-set", name, what, line) for name, (what, line) in refused.items())
    return [*_list_lost(carriers), *not_set][:_MOST_REPORTS]


def _read_change(line: str) -> Iterator[tuple[str, bool]]:
    for pattern in _CHANGES:
        if match := pattern.search(line):
            yield match["name"], match["lost"] is not None
            return


def _list_lost(carriers: dict[str, _Carrier]) -> Iterator[ToolReport]:
    for name, carrier in carriers.items():
        if carrier.losses >= _OFTEN:
            yield state_fault("carrier-flaps", name, f"{carrier.losses} times", carrier.line)
        elif carrier.is_lost:
            yield state_fault("carrier-lost", name, "", carrier.line)
