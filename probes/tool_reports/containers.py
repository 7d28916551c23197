"""What Kubernetes and container runtimes state of GPUs and NICs: `kubectl describe node`, events, failed `docker run`.

Sources: kubernetes pkg/kubectl describe (sections of a node), kubelet's device manager (an allocatable count without
the unhealthy devices), NVIDIA/libnvidia-container src/cli, NVIDIA/nvidia-container-toolkit, moby daemon,
containerd and CRI-O (runtime handlers), tags.cncf.io/container-device-interface.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from probes.text import ParseError, lazy_pattern, require, short_lines
from probes.tool_reports.facts import NODE_HEADING, ToolReport, state_fault
from probes.tool_reports.pods import list_nodes
from probes.tool_reports.sentences.parts import find_part
from probes.tool_reports.sentences.stated import list_stated

_LIMIT_LINE = 4000
_LIMIT_TEXT = 400
_NODE_TABLE = lazy_pattern(NODE_HEADING, re.MULTILINE)
_SECTION = lazy_pattern(r"(?P<name>[A-Z][A-Za-z ]{2,40}):[ \t]*(?P<value>\S.{0,200})?")
_DEVICES = lazy_pattern(
    r"(?:nvidia\.com/(?!gpu[\w.-]*\.shared)\S+|amd\.com/gpu\S*|habana\.ai/\S+|huawei\.com/Ascend\S*|"
    r"aws\.amazon\.com/neuron\S*|rdma/\S+|\S+/(?:sriov|rdma|hca|ib)\S*|vpc\.amazonaws\.com/efa|intel\.com/\S*(?:rdma|sriov)\S*)"
)
_COUNT = lazy_pattern(r"\d{1,9}")
_OF_NETWORK = lazy_pattern(r"rdma|sriov|/(?:hca|ib)|efa$")
_MACHINE_SECTION = lazy_pattern(  # of YAML and JSON, and of jq and jsonpath behind a prompt
    r"\"?(?P<name>allocatable|capacity)\"?: ?\{?"
    r"|(?=.{0,200}\.status\.).*\.status\.(?P<asked>allocatable|capacity)\b.{0,20}"
)
_COUNT_LABEL = lazy_pattern(r"(?:\S{0,40}[ \t]+)?nvidia\.com/gpu\.count=(?P<count>\d{1,4})")
_CONDITION = lazy_pattern(r"(?P<type>\S{2,80})[ \t]+(?P<status>True|False|Unknown)[ \t]+(?P<rest>.{0,600})")
_JSON_CONDITION = lazy_pattern(  # of `kubectl get node -o json`, by itself; keys between them may be of any order
    r"\"type\" ?: ?\"(?P<type>\w{2,80})\"[^{}]{0,200}?\"status\" ?: ?\"(?P<status>True|False|Unknown)\""
    r"(?P<rest>[^{}]{0,2000})"
)
_OF_DEVICES = lazy_pattern(
    r"gpu|nvlink|nvswitch|xid|infiniband|rdma|\bib[A-Z_]|npu|ascend|gaudi|neuron|\bnic", re.IGNORECASE
)
_OF_NODE = lazy_pattern(  # what the kubelet and the node problem detector state, of no device
    r"(?:Disk|Memory|PID)Pressure|NetworkUnavailable|KernelDeadlock|ReadonlyFilesystem|Frequent\w{2,30}Restart"
)
_COLUMN = lazy_pattern(  # of jsonpath and custom-columns; dots of a resource's name are escaped
    r"\.metadata\.name|\.status\.(?P<kind>capacity|allocatable)\.(?P<resource>(?:[\w/-]|\\{1,2}\.){2,80})"
)
_MESSAGE = lazy_pattern(r"\"message\" ?: ?\"(?P<message>[^\"]{4,400})")
_SHOWN = 160
_FEWEST_ALIKE = 3  # nodes with the usual count
_QUOTED = lazy_pattern(r"NVRM: Xid \(")
_XID = lazy_pattern(r"(?i)xid[ _#:-]{0,3}(?P<xid>\d{1,3})(?!\d)")
_DATED = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} "  # as kubectl prints the times of a condition
_CONDITION_ALONE = lazy_pattern(rf"^[ \t]*[A-Z]\w{{2,80}} +(?:True|False|Unknown) +{_DATED}", re.MULTILINE)
_GOOD = lazy_pattern(r".*(?:Ready|Healthy|Health|Available|OK|Ok|Up|Passed|Active)")


def list_node_faults(text: str) -> list[ToolReport]:
    r"""Faults of `kubectl describe node`, and of `kubectl get node -o yaml` or `-o json`: devices that are not
    allocatable, conditions, and events. Raises ParseError.

    >>> node = "Name: n7\nCapacity:\n  nvidia.com/gpu: 8\nAllocatable:\n  nvidia.com/gpu: 7\n"
    >>> [(report.code, report.detail) for report in list_node_faults(node)]
    [('kube-unhealthy', (('resource', 'nvidia.com/gpu'), ('capacity', '8'), ('allocatable', '7')))]
    """
    asked = text.partition("\n")[0]
    if asked.startswith("$ kubectl get") and _COLUMN.search(asked):
        return _list_table(asked, short_lines(text, _LIMIT_LINE)[1:])
    if _NODE_TABLE.search(text):
        return list_nodes(text)
    sections: dict[str, dict[str, str]] = {}
    reports: list[ToolReport] = []
    name, nodes, counted, is_machine = "Conditions" if _CONDITION_ALONE.search(text) else "", 0, None, False
    if "lastHeartbeatTime" in text and (conditions := list(_JSON_CONDITION.finditer(text))):
        name = "Conditions"
        reports += [report for match in conditions for report in _read_condition(match)]
    for line in short_lines(text, _LIMIT_LINE):
        label = _COUNT_LABEL.fullmatch(line.strip())
        counted = label["count"] if label else counted
        heading = _SECTION.fullmatch(line)
        bare = line.strip()
        if heading:
            name = heading["name"]
            nodes += name == "Name"
        elif section := _MACHINE_SECTION.fullmatch(bare):
            name = (section["name"] or section["asked"]).capitalize()
            require(name not in sections, "several nodes: save the output of each")
            is_machine = True
        elif name in ("Capacity", "Allocatable"):
            resource, _, count = (word.strip(' ",') for word in bare.partition(":"))
            if _DEVICES.fullmatch(resource) and _COUNT.fullmatch(count):
                sections.setdefault(name, {})[resource] = count
        elif name == "Conditions" and (condition := _CONDITION.fullmatch(line.strip())):
            reports += _read_condition(condition)
    if not nodes and not is_machine and len(sections) < 2 and name != "Conditions" and not reports:
        raise ParseError("no name of a node in the output of kubectl describe node")
    require(nodes <= 1, f"{nodes} nodes: save the output of each")
    return _compare(sections, counted) + reports + list_stated(text)


def _list_table(asked: str, lines: Sequence[str]) -> list[ToolReport]:
    """Nodes of a table whose columns the command states (`-o jsonpath=`, `-o custom-columns=`). Raises ParseError."""
    columns = [
        (match["kind"] or "name", (match["resource"] or "").replace("\\", "")) for match in _COLUMN.finditer(asked)
    ]
    pairs = [
        (number, columns.index(("allocatable", resource)), resource)
        for number, (kind, resource) in enumerate(columns)
        if kind == "capacity" and ("allocatable", resource) in columns
    ]
    counts_only = [at for at, (kind, _) in enumerate(columns) if kind != "name" and not pairs]
    require((pairs or counts_only) and ("name", "") in columns, "no capacity and allocatable count of a device")
    reports = []
    rows = [words for line in lines if len(words := line.split()) == len(columns)]
    for words in rows:
        for all_of, left, resource in pairs:
            counts = words[all_of], words[left]
            if all(map(_COUNT.fullmatch, counts)) and int(counts[1]) < int(counts[0]):
                reports.append(_report_unhealthy(words[columns.index(("name", ""))], resource, *counts))
    require(rows, "no row of the columns that the command asks for")
    reports += _list_fewer(columns, counts_only, rows)
    return reports


def _list_fewer(
    columns: Sequence[tuple[str, str]], places: Sequence[int], rows: Sequence[Sequence[str]]
) -> list[ToolReport]:
    """Nodes with fewer devices of a kind than most. One without any counts where it has as many of another kind: nodes
    without GPUs have none of them."""
    name = columns.index(("name", ""))
    rows = [words for words in rows if not words[name].isupper()]  # without the heading
    usual: dict[int, int] = {}
    for at in places:
        counts = Counter(_count(words[at]) for words in rows)
        count, times = counts.most_common(1)[0]
        if count and times >= _FEWEST_ALIKE and 4 * times >= 3 * len(rows):
            usual[at] = count
    reports = []
    for words in rows:
        has_usual = any(_count(words[at]) == count for at, count in usual.items())
        for at, most in usual.items():
            count = _count(words[at])
            if count < most and (count or has_usual):
                what = f"{columns[at][1]} {count}, most others {most}"
                reports.append(state_fault("below-count", words[name], what))
    return reports


def _count(word: str) -> int:
    return int(word) if _COUNT.fullmatch(word) else 0


def _compare(sections: dict[str, dict[str, str]], counted: str | None) -> list[ToolReport]:
    """Devices that the node has and that no pod can get: their plugin holds them to be unhealthy, or is gone."""
    capacity, allocatable = sections.get("Capacity", {}), sections.get("Allocatable", {})
    reports = []
    for resource, count in capacity.items():
        left = allocatable.get(resource)
        if left is not None and int(left) < int(count):
            reports.append(_report_unhealthy(None, resource, count, left))
    if any(int(count) for resource, count in capacity.items() if not _OF_NETWORK.search(resource)):
        for resource in (name for name, count in capacity.items() if not int(count) and _OF_NETWORK.search(name)):
            shown = f"{resource}: 0, on a node with accelerators"
            reports.append(state_fault("kube-none", None, resource, shown))
    gpus = [int(count) for resource, count in capacity.items() if resource.startswith("nvidia.com/")]
    if counted and int(counted) and gpus and not any(gpus):
        text = f"nvidia.com/gpu.count={counted}, nvidia.com/gpu: 0"
        reports.append(
            ToolReport("kube-no-devices", None, text, (("resource", "nvidia.com/gpu"), ("counted", counted)))
        )
    return reports


def _report_unhealthy(node: str | None, resource: str, capacity: str, left: str) -> ToolReport:
    text = f"{f'{node}: ' if node else ''}{resource}: {capacity} capacity, {left} allocatable"
    detail = (("resource", resource), ("capacity", capacity), ("allocatable", left))
    return ToolReport("kube-unhealthy", node, text, detail)


def _read_condition(condition: re.Match[str]) -> list[ToolReport]:
    """`Ready` that is not True; of conditions about devices those with the bad value."""
    kind, status = condition["type"], condition["status"]
    text = f"{kind} {status} {' '.join(condition['rest'].split()[-30:])}"[:_LIMIT_TEXT]
    detail: tuple[tuple[str, str], ...] = (("condition", kind), ("status", status))
    quoted = _MESSAGE.search(condition["rest"])
    message = quoted["message"] if quoted else condition["rest"].strip().rpartition("  ")[2]  # the last column
    if quoted or "  " in condition["rest"].strip():
        detail = (*detail, ("message", " ".join(message.split())[:_SHOWN]))
    if kind == "Ready":
        return [ToolReport("kube-not-ready", None, text, detail)] if status != "True" else []
    if _QUOTED.search(condition["rest"]):
        return []  # a line of the kernel's log, which is read as one
    if _OF_NODE.fullmatch(kind):
        return [ToolReport("kube-pressure", None, text, detail)] if status == "True" else []
    is_bad = status == ("False" if _GOOD.fullmatch(kind) else "True")
    if not is_bad or not _OF_DEVICES.search(f"{kind} {condition['rest']}"):
        return []
    if xid := _XID.search(condition["rest"]):
        return [ToolReport("alert-xid", find_part(condition["rest"]), text, (("xid", xid["xid"]),))]
    return [ToolReport("kube-condition", None, text, detail)]
