"""Nodes that Slurm holds back, and why: `scontrol show node`, `sinfo`, `sinfo -R`, the logs of slurmctld and slurmd.

Sources: SchedMD/slurm src/common/node_conf.c (states), src/interfaces/gres.c, src/slurmctld/ping_nodes.c and
node_mgr.c (the controller's own reasons), src/sinfo/opts.c (columns). Every other reason is text of a site's checks.
"""

from __future__ import annotations

from probes.text import check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.stated import list_stated

_LIMIT_TEXT = 200
_GRAVEST_FIRST = ("slurm-gpus", "slurm-hardware", "slurm-device", "slurm-silent", "slurm-held")
_NODE = lazy_pattern(r"(?m)^[ \t]*NodeName=(?P<name>\S{1,200})(?= )")
_STATE = lazy_pattern(r"(?m)(?:^|\s)State=(?P<state>[A-Z_+*~#!%$@^-]{2,120})")
_REASON = lazy_pattern(r"(?m)(?:^|[ \t])Reason=(?P<reason>[^\s][^\n]{0,400})")
_HELD = lazy_pattern(r"DRAIN|DOWN(?!_)|FAIL|INVAL|NOT_RESPONDING")  # not POWERED_DOWN, POWERING_DOWN
_OFF = lazy_pattern(r"POWER")
_ROW = lazy_pattern(
    r"(?P<reason>\S.{0,200}?) {1,80}(?P<by>[\w.-]{1,40}(?:\(\d{1,10}\))?) {1,40}(?P<at>\d{4}-[\dT:-]{6,20}|Unknown)"
    r" {1,20}(?:[a-z]{2,12}[*~#!%$@^-]? {1,20})?(?P<nodes>[\w.,\[\]-]{1,200})"
)
_CONTROLLER = lazy_pattern(
    r"update_node: node (?P<held>\S{1,80}) reason set to: (?P<reason>\S.{0,300})"
    r"|error: Setting node (?P<invalid>\S{1,80}) state to INVAL with reason: ?(?P<why>\S.{0,300})"
    r"|(?:can't stat|Waiting for) gres\.conf file (?P<missing>/dev/[\w/]{2,40})"
    r"|node-mark-offline (?P<marked>\S{1,80}) (?P<mark>\S.{0,300})"
    r"|\bnhc(?:\[\d{1,10}\])?: +Health check failed: +(?P<check>\S.{0,300})"
    r"|error: Nodes (?P<silent>\S{1,200}) not responding, setting DOWN"
    r"|(?:node_did_resp: node (?P<back>\S{1,80}) returned to service"
    r"|update_node: node (?P<resumed>\S{1,80}) state set to (?:IDLE|MIXED|ALLOCATED))"
)
_HEADING = lazy_pattern(r"(?m)^REASON +USER +TIMESTAMP +(?:STATE +)?NODELIST[ \t\r]*$")
_LIST = lazy_pattern(  # sinfo, sinfo -N, sinfo --list-reasons with columns of one's choice
    r"(?m)^(?=[^\n]*\bNODELIST\b)(?=[^\n]*\b(?:STATE|REASON)\b)[A-Z_:() ]{14,200}$"
)
_OUT_OF_USE = lazy_pattern(r"(?:drain(?:ed|ing)?|drng|down|fail(?:ing|g)?|inval)[*$@^-]?")
_FEWER = lazy_pattern(r"gres/gpu\S{0,40} count reported lower than configured \((\d{1,5}) < (\d{1,5})\)")
_LOW = lazy_pattern(r"(?i)^low (?:real ?memory|cpus|cores|sockets?\b|tmp ?disk)")  # slurmctld/node_mgr.c
_SILENT = lazy_pattern(r"(?i)^(?:not responding|node unexpectedly rebooted|kill task failed)")
_OF_DEVICES = lazy_pattern(
    r"(?i)(?:^|[^a-z])(?:gpus?|nv(?:link|switch|ml|sm)|s?xid|ecc|infiniband|ib|hcas?|mlx[45]|rdma|roce|"
    r"nics?|pcie?|aer|dcgm|cuda|rocm|amdgpu|npu|gaudi|neuron|efa|nhc|check_\w+|health ?check|hw|hardware)(?![a-z])"
)


_PLANNED = lazy_pattern(
    r"(?i)\b(?:maint|upgrad|updat|install|planned|scheduled|testing|reserv|burn.?in|benchmark|decommission|reimag|"
    r"exchang|replac|swap|moving|moved)"
)
_FAULTY = lazy_pattern(r"(?i)fail|error|fault|bad|lost|missing|down|xid|ecc|not |fell|fallen|hang|hung|stuck|unhealthy")


def list_node_states(text: str) -> list[ToolReport]:
    """Nodes of `scontrol show node` that get no jobs, and the reason. Raises ParseError.

    >>> text = "NodeName=n7 Arch=x86_64\\n   State=IDLE+DRAIN\\n   Reason=GPU 3 ECC [root@2025-03-02T08:00:00]\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_node_states(text)]
    [('slurm-device', 'n7', (('what', 'GPU 3 ECC'),))]
    """
    reports = []
    starts = [*_NODE.finditer(check_length(text))]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=False):
        block = text[start.start() : end]
        state, reason = _STATE.search(block), _REASON.search(block)
        if state and reason and _HELD.search(state["state"]) and not _OFF.search(state["state"]):
            line = f"NodeName={start['name']} State={state['state']} {reason[0].strip()}"
            why, _, by = reason["reason"].strip().rpartition(" [")  # who set it, and when
            reports.append(_report(start["name"], why if by.endswith("]") else reason["reason"], line))
    require(starts, "no node in the output of scontrol show node")
    return _sort_gravest_first(reports)


def list_held_nodes(text: str) -> list[ToolReport]:
    """Nodes of `sinfo -R`, and the reason. Raises ParseError.

    >>> text = "REASON   USER  TIMESTAMP            NODELIST\\nXid 79   root  2025-03-02T08:00:00  n[3,7]\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_held_nodes(text)]
    [('slurm-device', 'n[3,7]', (('what', 'Xid 79'),))]
    """
    if not _HEADING.search(check_length(text)):
        return _list_states(text)
    rows = (_ROW.fullmatch(line.strip()) for line in short_lines(text))
    reasons = [_report(row["nodes"], row["reason"], row[0]) for row in rows if row]
    named = {report.subject for report in reasons}
    states = _list_states(text) if _LIST.search(text) else []  # of `sinfo` beside it
    return _sort_gravest_first([*reasons, *(report for report in states if report.subject not in named)])


def _list_states(text: str) -> list[ToolReport]:
    """Nodes of `sinfo` that get no jobs, without the reason, which that table does not have; of `flux resource drain`
    with it. Raises ParseError.

    >>> text = "PARTITION AVAIL NODES STATE NODELIST\\nall* up 2 idle n[1-2]\\nall* up 1 drain n3\\n"
    >>> [(report.subject, report.detail) for report in _list_states(text)]
    [('n3', (('what', 'drain; `sinfo -R` has the reason'),))]
    >>> text = "STATE    RANK  REASON       NODELIST\\ndrained  7     GPU 3 lost   n7\\n"
    >>> [(report.code, report.subject, report.detail) for report in _list_states(text)]
    [('slurm-device', 'n7', (('what', 'GPU 3 lost'),))]
    >>> text = "NODELIST  REASON             STATE\\nn7  gres/gpu count reported lower (7 < 8) drained\\n"
    >>> [report.subject for report in _list_states(text)]
    ['n7']
    >>> text = "REASON            NODELIST\\nLow RealMemory    n[1-3]\\n"
    >>> [(report.code, report.subject, report.detail) for report in _list_states(text)]
    [('slurm-hardware', 'n[1-3]', (('what', 'Low RealMemory'),))]
    """
    headings = [*_LIST.finditer(text)]
    require(headings, "no heading of sinfo")
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    held: dict[str, ToolReport] = {}  # a node may be in several partitions, and in a table with its reason
    for heading, end in zip(headings, ends, strict=True):
        names = heading[0].split()
        state_at, nodes_at = names.index("STATE") if "STATE" in names else None, names.index("NODELIST")
        for line in short_lines(text[heading.end() : end]):
            words = line.split()
            if "REASON" in names:  # which has blanks, and may be wider than its column
                at = names.index("REASON")
                behind = len(names) - at - 1
                words = [*words[:at], " ".join(words[at : len(words) - behind]), *words[len(words) - behind :]]
            if len(words) != len(names) or (state_at is not None and not _OUT_OF_USE.fullmatch(words[state_at])):
                continue
            if "REASON" in names and words[at]:
                held[words[nodes_at]] = _report(words[nodes_at], words[at], line)
            elif "REASON" not in names:
                detail = (("what", f"{words[state_at or 0]}; `sinfo -R` has the reason"),)
                held.setdefault(words[nodes_at], ToolReport("slurm-held", words[nodes_at], " ".join(words), detail))
    return list(held.values())


def list_controller_lines(text: str) -> list[ToolReport]:
    """Nodes that the log of slurmctld took out of use, and did not give back. Raises ParseError.

    >>> text = "update_node: node n7 reason set to: Xid 79\\nerror: Nodes n8 not responding, setting DOWN\\n"
    >>> [(report.code, report.subject) for report in list_controller_lines(text)]
    [('slurm-device', 'n7'), ('slurm-silent', 'n8')]
    """
    held: dict[str, ToolReport] = {}
    known = False
    for line in short_lines(text):
        match = _CONTROLLER.search(line)
        if match is None:
            continue
        known = True
        node = match["held"] or match["silent"] or match["invalid"] or match["marked"]
        if node:
            held[node] = _report(node, match["reason"] or match["why"] or match["mark"] or "Not responding", line)
        elif check := match["check"]:
            what = " ".join(check.split())[:_LIMIT_TEXT]
            held.setdefault(what, state_fault("nhc-failed", None, what, line))
        elif device := match["missing"]:
            held[device] = state_fault("slurm-no-file", device, device, line)
        elif back := match["back"] or match["resumed"]:
            held.pop(back, None)
    require(known, "no line of slurmctld about the state of a node")
    stated = [report for report in list_stated(text) if not report.code.startswith("slurm-")]
    named = {value for report in held.values() if report.subject for _, value in report.detail}
    shown = [report for report in held.values() if report.subject or report.detail[0][1] not in named]
    return [*shown, *stated]


def _sort_gravest_first(reports: list[ToolReport]) -> list[ToolReport]:
    """The bounded list: many nodes that are held for maintenance hide none that is held for a fault."""
    return sorted(reports, key=lambda report: _GRAVEST_FIRST.index(report.code))


def _report(node: str, reason: str, line: str) -> ToolReport:
    code = "slurm-held"
    if _FEWER.search(reason):
        code = "slurm-gpus"
    elif _LOW.search(reason):
        code = "slurm-hardware"
    elif _SILENT.search(reason):
        code = "slurm-silent"
    elif _OF_DEVICES.search(reason) and (_FAULTY.search(reason) or not _PLANNED.search(reason)):
        code = "slurm-device"
    what = " ".join(reason.split())[:_LIMIT_TEXT]
    return state_fault(code, node, what, line)
