"""Resources of a BMC as Redfish returns them: parts that it calls unhealthy, links of PCIe and ports, PCIe errors.

Source: DMTF Redfish schemas (Resource.Status, Port, PCIeDevice.PCIeInterface, PCIeErrors of metrics).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probes.cut_json import load_first
from probes.text import check_length, lazy_pattern, require
from probes.tool_reports.facts import ToolReport

_MOST_VALUES = 100_000
_LIMIT_TEXT = 200
_GENERATION = lazy_pattern(r"Gen(\d)")
_BAD = ("Warning", "Critical")
_NAMELESS = 3  # characters of an Id that is a number


def list_resource_faults(text: str) -> list[ToolReport]:
    """Faults that resources state. Raises ParseError where the text is none.

    >>> part = '{"@odata.id": "/redfish/v1/Systems/1/Processors/GPU_4", "Id": "GPU_4", "SystemInterface": {"PCIe": {}}}'
    >>> link = '{"LanesInUse": 8, "MaxLanes": 16, "PCIeType": "Gen5", "MaxPCIeType": "Gen5"}'
    >>> [(report.code, report.subject, report.detail) for report in list_resource_faults(part.replace("{}", link))]
    [('redfish-lanes', 'GPU_4', (('what', 'x8 of x16'),))]
    """
    starts = [at for at, character in enumerate(check_length(text)) if character in "{["][:1]
    document = load_first(text[starts[0] :] if starts else "")
    reports: dict[tuple[str, str | None], ToolReport] = {}
    known = False
    for part, row in _list_objects(document):
        known = True
        for report in _list_faults(part, row):
            reports.setdefault((report.code, report.subject), report)
    require(known, "no resource of Redfish")
    return list(reports.values())


def _list_objects(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object with the name of the resource that it is in."""
    stack: list[tuple[str, Any]] = [("", document)]
    looked_at = 0
    while stack and looked_at < _MOST_VALUES:
        part, value = stack.pop()
        looked_at += 1
        if isinstance(value, dict):
            part = _name(value) or part
            if part:
                yield part, value
            stack += [(part, inner) for inner in reversed(value.values()) if isinstance(inner, dict | list)]
        elif isinstance(value, list):
            stack += [(part, inner) for inner in reversed(value)]


def _name(row: dict[str, Any]) -> str:
    """The Id of a resource; of one that is a number with what it is a part of."""
    address, name = row.get("@odata.id"), row.get("Id")
    if isinstance(name, str) and (len(name) > _NAMELESS or not isinstance(address, str)):
        return name
    if isinstance(address, str) and ("@odata.type" in row or "Status" in row or isinstance(name, str)):
        return "/".join(address.strip("/").split("/")[-_NAMELESS:])
    return ""


def _list_faults(part: str, row: dict[str, Any]) -> Iterator[ToolReport]:
    status = row.get("Status")
    if isinstance(status, dict) and status.get("Health") in _BAD and status.get("State", "Enabled") != "Absent":
        conditions = status.get("Conditions")
        words = [str(one["Message"]) for one in conditions or () if isinstance(one, dict) and one.get("Message")]
        what = f"{status['Health']}{': ' if words else ''}{'; '.join(words[:2])}"
        code = "redfish-critical" if status["Health"] == "Critical" else "redfish-warning"
        yield _report(code, part, what, f"Health {what}")
    used, most = row.get("LanesInUse"), row.get("MaxLanes")
    if isinstance(used, int) and isinstance(most, int) and 0 < used < most:
        yield _report("redfish-lanes", part, f"x{used} of x{most}", f"LanesInUse {used}, MaxLanes {most}")
    now, could = (_GENERATION.search(str(row.get(name))) for name in ("PCIeType", "MaxPCIeType"))
    if now and could and now[1] < could[1]:
        yield _report(
            "redfish-speed", part, f"Gen{now[1]} of Gen{could[1]}", f"PCIeType {now[0]}, MaxPCIeType {could[0]}"
        )
    fatal = row.get("FatalErrorCount")
    if isinstance(fatal, int) and fatal > 0:
        yield _report("redfish-pcie-errors", part, f"{fatal} fatal", f"FatalErrorCount {fatal}")
    if row.get("LinkStatus") in ("LinkDown", "Down") and row.get("LinkState", "Enabled") == "Enabled":
        yield _report("redfish-link-down", part, "", f"LinkStatus {row['LinkStatus']}")


def _report(code: str, part: str, what: str, line: str) -> ToolReport:
    return ToolReport(code, part[:60], line[:_LIMIT_TEXT], (("what", what[:_LIMIT_TEXT]),) if what else ())
