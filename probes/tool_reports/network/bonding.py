"""Members of a bond in /proc/net/bonding. Source: Linux drivers/net/bonding/bond_procfs.c."""

from __future__ import annotations

from collections.abc import Mapping

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 400
_MOST_REPORTS = 128
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
    for line in short_lines(text, _LIMIT_LINE):
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
    if not members:
        raise ParseError("no member of a bond")
    used = [member.get("Aggregator ID") for member in members if _LACP in mode and member.get("MII Status") == "up"]
    if used and active is None and _NO_AGGREGATOR in text:
        line = f"{_NO_AGGREGATOR}; members: {', '.join(member['Slave Interface'] for member in members)}"
        return [state_fault("bond-no-partner", None, "no member joined it", line)]
    usual = active if active in used else max(used, key=used.count, default=None)
    return [report for member in members if (report := _report_member(member, usual)) is not None][:_MOST_REPORTS]


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
