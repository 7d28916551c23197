"""`kubectl get pods`: pods of the software of GPUs and NICs that do not run; `kubectl get nodes`: nodes that are not
ready. A part of the table is enough.

Source: kubernetes pkg/printers/internalversion (printPod, printNode): READY, STATUS and RESTARTS of a row.
"""

from __future__ import annotations

import re

from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_OF_DEVICES = (
    r"[\w.-]{0,80}(?:nvidia|gpu|dcgm|mig-manager|cuda|amdgpu|habana|neuron|npu|ascend|rdma|mofed|ofed|sriov|nic-|"
    r"network-operator|device-plugin)[\w.-]{0,80}"
)
_STATE = r"(?:Init:)?[A-Z]\w{1,40}(?::\d{1,3}(?:/\d{1,3})?)?"
# The columns of one row: name of the pod, READY, STATUS, RESTARTS
POD_ROW = lazy_pattern(
    rf"^[> \t]*(?:[\w.-]{{1,63}} +)?(?P<pod>{_OF_DEVICES}) +\d{{1,3}}/\d{{1,3}} +"
    rf"(?P<status>{_STATE}|Init:\d{{1,3}}/\d{{1,3}}) +\d{{1,6}}\b",
    re.MULTILINE,
)
_NODE_ROW = lazy_pattern(
    r"[> \t]*(?P<node>[a-z0-9][\w.-]{0,252}) +(?P<status>(?:Not)?Ready|Unknown)(?:,SchedulingDisabled)? +\S+ +"
    r"\d{1,5}[smhdy]\w{0,12} +v\d[^\n]{0,400}"
)
_NAME = lazy_pattern(rf"Name: +(?P<pod>{_OF_DEVICES})[ \t]*$")
_FAILED = lazy_pattern(
    r"(?:Init:)?(?:Error|CrashLoopBackOff|\w{0,20}ImagePull\w{0,10}|Create\w{1,30}Error|RunContainerError|OOMKilled|"
    r"StartError|ContainerCannotRun|ExitCode:\d{1,3}|Signal:\d{1,3})|UnexpectedAdmissionError|Evicted|Failed|Unknown"
)


def list_failed_containers(text: str) -> list[ToolReport]:
    """Why containers of such a pod wait or ended, by `kubectl describe pod`.

    >>> text = "Name: nvidia-dcgm-a1\\nContainers:\\n  x:\\n    State: Waiting\\n      Reason: CrashLoopBackOff\\n"
    >>> [report.detail for report in list_failed_containers(text)]
    [(('what', 'nvidia-dcgm-a1 CrashLoopBackOff'),)]
    """
    lines = short_lines(text)
    pod = next((match["pod"] for line in lines if (match := _NAME.match(line))), None)
    state = ""
    for line in map(str.strip, lines if pod else ()):
        label, _, value = line.partition(":")
        state = value.strip() if label == "State" else state
        if label == "Reason" and state in ("Waiting", "Terminated") and _FAILED.fullmatch(value.strip()):
            return [state_fault("kube-pod", None, f"{pod} {value.strip()}", line)]
        state = "" if label == "Last State" else state
    return []


def list_pods(text: str) -> list[ToolReport]:
    """Pods whose state is a failure. Raises ParseError.

    >>> rows = "nvidia-driver-daemonset-x2 0/1 Init:CrashLoopBackOff 7 (2m ago) 9m\\nnvidia-dcgm-a1 1/1 Running 0 9m\\n"
    >>> [(report.code, report.detail) for report in list_pods(rows)]
    [('kube-pod', (('what', 'nvidia-driver-daemonset-x2 Init:CrashLoopBackOff'),))]
    """
    rows = [match for line in short_lines(text) if (match := POD_ROW.match(line))]
    require(rows, "no row of a pod of GPUs or NICs")
    failed = [match for match in rows if _FAILED.fullmatch(match["status"])]
    return [state_fault("kube-pod", None, f"{match['pod']} {match['status']}", match[0]) for match in failed]


def list_nodes(text: str) -> list[ToolReport]:
    """Nodes that are not ready; whether an operator keeps pods off them is no fault. Raises ParseError.

    >>> rows = "NAME STATUS ROLES AGE VERSION\\nn1 Ready worker 9d v1.30.4\\nn2 NotReady worker 9d v1.30.4\\n"
    >>> [(report.code, report.subject) for report in list_nodes(rows)]
    [('kube-not-ready', 'n2')]
    """
    rows = [match for line in short_lines(text) if (match := _NODE_ROW.fullmatch(line))]
    require(rows, "no row of a node")
    return [
        ToolReport("kube-not-ready", match["node"], " ".join(match[0].split()[:2]), (("status", match["status"]),))
        for match in rows
        if match["status"] != "Ready"
    ]
