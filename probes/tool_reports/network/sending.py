"""What hosts drop before it is sent, and what a cloud keeps back: `tc -s qdisc`, allowances of `ethtool -S`.

Sources: iproute2 tc/tc_qdisc.c, tc/tc_util.c; amzn-drivers kernel/linux/ena (ena_ethtool.c). Counters are cumulative.
"""

from __future__ import annotations

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.lines import short_lines

_LIMIT_LINE, _MOST_REPORTS = 400, 64
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
    for line in short_lines(text, _LIMIT_LINE):
        if head := _QUEUE.fullmatch(line):
            kind, name = (head["kind"], head["name"] or "") if head["place"] == "root" else ("", "")
        elif row := _SENT.fullmatch(line):
            is_known = True
            dropped, sent = int(row["dropped"]), int(row["sent"])
            if kind in _FULL and dropped >= _LEAST and dropped * _ONE_IN >= sent + dropped:
                what = f"{dropped} of {sent + dropped} packets ({kind})"
                reports.append(state_fault("queue-drops", name or None, what, line))
            kind = ""
    if not is_known:
        raise ParseError("no counts of a queue")
    return reports[:_MOST_REPORTS]


def list_allowances(text: str) -> list[ToolReport]:
    """What an instance of AWS exceeded, of an ENA interface. Raises ParseError where it exceeded nothing.

    >>> list_allowances("NIC statistics:\\n     bw_in_allowance_exceeded: 31\\n")[0].detail
    (('what', 'bw_in_allowance_exceeded 31'),)
    """
    rows = map(_ALLOWANCE.fullmatch, short_lines(text, _LIMIT_LINE))
    counts = [f"{row['name']} {row['count']}" for row in rows if row]
    if not counts:
        raise ParseError("no allowance was exceeded")
    return [state_fault("instance-limit", None, ", ".join(counts))]
