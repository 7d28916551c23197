"""What Linux and its tools state of the host's own interfaces: what is dropped before it is sent (`tc -s qdisc`), and
what a cloud keeps back (allowances of `ethtool -S`); members of a bond; a carrier that was lost, often or for good, and
networks that could not be set up, as managers of interfaces log them. Counters are cumulative.

Sources: iproute2 tc/tc_qdisc.c, tc/tc_util.c; amzn-drivers kernel/linux/ena (ena_ethtool.c); Linux
drivers/net/bonding/bond_procfs.c; systemd src/network/networkd-link.c, networkd-queue.c; NetworkManager
src/core/devices/nm-device.c; dhcpcd src/dhcpcd.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_LEAST, _ONE_IN = 1000, 1000  # dropped packets, and in how many
_QUEUE = lazy_pattern(
    r"[ \t]*qdisc (?P<kind>[\w-]{2,20}) [0-9a-f]{0,8}: (?:dev (?P<name>\S{1,40}) )?(?P<place>root|parent \S{1,20})\b.*"
)
_SENT = lazy_pattern(r"[ \t]*Sent \d{1,20} bytes (?P<sent>\d{1,20}) pkt \(dropped (?P<dropped>\d{1,20}), .*")
_FULL = ("mq", "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "mqprio", "multiq", "codel")  # others limit a rate
_ALLOWANCE = lazy_pattern(r"[ \t]*(?P<name>\w{3,20}_allowance_exceeded): (?P<count>[1-9]\d{0,19})[ \t\r]*")


def list_queue_drops(text: str) -> list[ToolReport]:
    """Interfaces whose root queue dropped more than one in a thousand packets, where it does not limit a rate. Raises
    ParseError where no queue has counts.

    >>> rows = "qdisc mq 0: dev ens6 root\\n Sent 81 bytes 900000 pkt (dropped 5600, overlimits 0 requeues 9)\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_queue_drops(rows)]
    [('queue-drops', 'ens6', (('what', '5600 of 905600 packets (mq)'),))]
    """
    reports: list[ToolReport] = []
    is_known, kind, name = False, "", ""
    for line in short_lines(text):
        if head := _QUEUE.fullmatch(line):
            kind, name = (head["kind"], head["name"] or "") if head["place"] == "root" else ("", "")
        elif row := _SENT.fullmatch(line):
            is_known = True
            dropped, sent = int(row["dropped"]), int(row["sent"])
            if kind in _FULL and dropped >= _LEAST and dropped * _ONE_IN >= sent + dropped:
                what = f"{dropped} of {sent + dropped} packets ({kind})"
                reports.append(state_fault("queue-drops", name or None, what, line))
            kind = ""
    require(is_known, "no counts of a queue")
    return reports


def list_allowances(text: str) -> list[ToolReport]:
    """What an instance of AWS exceeded, of an ENA interface. Raises ParseError where it exceeded nothing.

    >>> list_allowances("NIC statistics:\\n     bw_in_allowance_exceeded: 31\\n")[0].detail
    (('what', 'bw_in_allowance_exceeded 31'),)
    """
    rows = map(_ALLOWANCE.fullmatch, short_lines(text))
    counts = require([f"{row['name']} {row['count']}" for row in rows if row], "no allowance was exceeded")
    return [state_fault("instance-limit", None, ", ".join(counts))]


_BOND_LINE = lazy_pattern(
    r"(?P<name>Slave Interface|MII Status|Link Failure Count|Aggregator ID|Bonding Mode|Partner Churn State): "
    r"(?P<value>\S.{0,80})"
)
_MANY_FAILURES = 20  # of a member's link, since the bond was made
_LACP = "802.3ad"
_NO_AGGREGATOR = "has no active aggregator"


def list_bond_faults(text: str) -> list[ToolReport]:
    """Members of a bond without a link, that lost it often, or that LACP did not join. Raises ParseError.

    >>> rows = "Slave Interface: {}\\nMII Status: {}\\nLink Failure Count: {}\\n"
    >>> reports = list_bond_faults(rows.format("eth2", "up", 0) + rows.format("eth3", "down", 41))
    >>> [(report.code, report.subject, report.detail) for report in reports]
    [('bond-member-down', 'eth3', (('what', 'link failures: 41'),))]
    """
    members: list[dict[str, str]] = []
    mode, active = "", None
    for line in short_lines(text):
        row = _BOND_LINE.fullmatch(line.strip())
        if row is None:
            continue
        if row["name"] == "Slave Interface":
            members.append({row["name"]: row["value"]})
        elif members:
            members[-1].setdefault(row["name"], row["value"].strip())
        elif row["name"] == "Bonding Mode":
            mode = row["value"]
        elif row["name"] == "Aggregator ID":
            active = row["value"].strip()
    require(members, "no member of a bond")
    used = [member.get("Aggregator ID") for member in members if _LACP in mode and member.get("MII Status") == "up"]
    if used and active is None and _NO_AGGREGATOR in text:
        line = f"{_NO_AGGREGATOR}; members: {', '.join(member['Slave Interface'] for member in members)}"
        return [state_fault("bond-no-partner", None, "no member joined it", line)]
    usual = active if active in used else max(used, key=used.count, default=None)
    return [report for member in members if (report := _report_member(member, usual)) is not None]


def _report_member(member: Mapping[str, str], aggregator: str | None) -> ToolReport | None:
    name, state = member["Slave Interface"], member.get("MII Status", "")
    failures = member.get("Link Failure Count", "0")
    line = ", ".join(f"{key}: {value}" for key, value in member.items())
    if state == "down":
        return state_fault("bond-member-down", name, f"link failures: {failures}", line)
    if failures.isdecimal() and int(failures) >= _MANY_FAILURES:
        return state_fault("bond-flaps", name, f"{failures} times", line)
    if member.get("Partner Churn State") == "churned" and state == "up":
        return state_fault("bond-no-partner", name, "Partner Churn State: churned", line)
    if aggregator is not None and member.get("Aggregator ID", aggregator) != aggregator:
        what = f"aggregator {member['Aggregator ID']}, that of the bond is {aggregator}"
        return state_fault("bond-not-joined", name, what, line)
    return None


_LIMIT_LINE = 600
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
    require(carriers or refused, "no line about the carrier of an interface")
    not_set = (state_fault("network-not-set", name, what, line) for name, (what, line) in refused.items())
    return [*_list_lost(carriers), *not_set]


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
