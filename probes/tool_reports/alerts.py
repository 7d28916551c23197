"""Alerts of monitoring, and metrics of exporters, that state a fault of a GPU, a NIC or a link.

Sources: Prometheus (the metric ALERTS), Alertmanager and Grafana (webhooks and API v2, which `probes.sources.documents`
writes as that metric; `[FIRING:1]` in notifications), ROCm/device-metrics-exporter, ROCm/omnistat,
utkuozdemir/nvidia_gpu_exporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_MOST_COUNT = 1e15
_LIMIT_LINE = 4000
_LIMIT_TEXT = 300
_ALERT = lazy_pattern(r"[ \t]{0,20}ALERTS\{(?P<labels>[^}]{0,3000})\}(?: =>)? (?P<value>[01](?:\.0)?)\b.*")
_NOTICE = lazy_pattern(r"[ \t*]{0,8}\[FIRING:\d{1,4}\] (?P<words>\S[^\n]{1,400})")
_LABEL = lazy_pattern(r"(?P<name>[A-Za-z_]\w{0,60})=\"(?P<value>[^\"]{0,1000})\"")
_OF_FABRIC = lazy_pattern(
    r"(?i)infiniband|(?<![a-z])ib(?![a-z])|(?-i:\bIB(?=[A-Z]))|rdma|roce|nv-?link|nv-?switch|\bxid|"
    r"xiderror|(?<![a-z])ecc(?![a-z])|gpu|pcie|"
    r"link.?(?:down|flap)|interface.?down|optic|transceiver|(?<![a-z])pfc(?![a-z])|dcgm|(?<![a-z])nics?(?![a-z])|"
    r"row.?remap|mlx5|xgmi|(?<![a-z])hca(?![a-z])|fabric.?manager|switch.?port"
)
_XID = lazy_pattern(r"(?i)\bxid(?:[ _]?(?:error|code|errors))?[ :=#]{0,3}(?P<xid>\d{1,3})\b")
_PARTS = ("device", "port", "interface", "ifname", "gpu", "gpu_id", "pci_bus_id")
_HOSTS = ("Hostname", "hostname", "nodename", "node", "instance", "host")
_METRIC = lazy_pattern(  # of exporters of any maker; sums over the life of a card are no fault of now
    r"(?P<name>(?!\w{0,80}(?:aggregate|lifetime))[a-z]\w{0,60}(?:ecc|ras)\w{0,60}?uncorr\w{0,60}|(?:amd_)?gpu_health)"
    r"\{(?P<labels>[^}]{0,2000})\}(?: =>)? (?P<value>\d[\d.e+]{0,24})\b.*"
)
_WIDTH = lazy_pattern(  # of a PCIe link: now, and the most that the driver states for GPU and slot together
    r"(?P<name>\w{0,40}(?i:pcie_(?:max_)?link_width)\w{0,20})\{(?P<labels>[^{}]{0,2000})\}(?: =>)? "
    r"(?P<value>\d{1,3})(?:\.0)?"
)
_FLAG = lazy_pattern(  # 1: as it should be; of interfaces of the host some are not used
    r"(?P<name>[a-z]\w{0,60}(?:nvlink|gpu|xgmi|infiniband)\w{0,40}_(?:enabled|up|active|healthy))"
    r"\{(?P<labels>[^}]{0,2000})\}(?: =>)? (?P<value>[01])(?:\.0)?"
)
_NUMBERS = ("gpu_id", "gpu", "card", "gpu_index", "index", "minor_number")
_OF_NVIDIA = lazy_pattern(r"nvidia|nvml|dcgm")


def list_alerts(text: str) -> list[ToolReport]:
    """Alerts that fire and are about a GPU, a NIC or a link. Raises ParseError where the text has no alert.

    >>> row = 'ALERTS{{alertname="IBLinkDown",alertstate="{}",device="mlx5_4",instance="n12:9100"}} 1\\n'
    >>> [report[:2] for report in list_alerts(row.format("firing"))], list_alerts(row.format("resolved"))
    ([('alert-firing', 'mlx5_4')], [])
    """
    reports: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], ToolReport] = {}
    known = False
    for line in short_lines(text, _LIMIT_LINE):
        if match := _ALERT.fullmatch(line):
            labels = _read_labels(match["labels"])
            known = True
            if labels.get("alertstate", "firing") != "firing" or not float(match["value"]):
                continue
        elif match := _NOTICE.fullmatch(line):
            labels, known = {"alertname": match["words"]}, True
        else:
            continue
        report = _report_alert(labels)
        if report is not None:
            reports.setdefault((report.code, report.subject, report.detail), report)
    require(known, "no alert")
    return list(reports.values())


def _read_labels(text: str) -> dict[str, str]:
    return {row["name"]: row["value"] for row in _LABEL.finditer(text)}


def _report_alert(labels: dict[str, str]) -> ToolReport | None:
    name, words = labels.get("alertname", "alert"), labels.get("description", "")
    if not _OF_FABRIC.search(f"{name} {words}"):
        return None
    host = next((labels[key].partition(":")[0] for key in _HOSTS if labels.get(key)), "")
    line = f"{name}: {words}" if words else f"{name} {labels}" if len(labels) > 1 else name
    gpu = labels.get("gpu") or labels.get("gpu_id") or ""
    xid = _XID.search(words) or _XID.search(name)
    number = labels.get("xid") or (labels.get("err_code") if "xid" in name.lower() else None) or (xid and xid["xid"])
    subject = f"NVIDIA {int(gpu)}" if gpu.isdecimal() else None
    if number and str(number).isdecimal():
        detail = (("xid", str(number)), ("device", host)) if host else (("xid", str(number)),)
        return ToolReport("alert-xid", subject, line[:_LIMIT_TEXT], detail)
    part = subject or next((labels[key] for key in _PARTS if labels.get(key)), None)
    what = ": ".join(filter(None, (f"{name} on {host}" if host and host not in words else name, words)))
    return state_fault("alert-firing", part, what[:_LIMIT_TEXT], line[:_LIMIT_TEXT])


def list_gpu_metrics(text: str) -> list[ToolReport]:
    """GPUs of which an exporter counts uncorrectable errors, that it calls unhealthy, or of which something is off that
    is on for the others. Raises ParseError.

    >>> rows = 'gpu_ecc_uncorrect_total{gpu_id="2"} 0\\nrocm_ras_umc_uncorrectable_count{card="3"} 7.0\\n'
    >>> [report[:2] for report in list_gpu_metrics(rows)]
    [('amd-uncorrectable', 'AMD 3')]
    """
    reports: dict[tuple[str, str | None], ToolReport] = {}
    flags: dict[str, dict[str, int]] = {}
    known = False
    for line in short_lines(text, _LIMIT_LINE):
        flag = _FLAG.fullmatch(line.strip())
        match = flag or _METRIC.fullmatch(line.strip())
        labels = _read_labels(match["labels"]) if match else {}
        number = next((labels[name] for name in _NUMBERS if labels.get(name, "").isdecimal()), None)
        subject = labels.get("uuid") or labels.get("UUID")
        if match is None or not (number or subject):
            continue
        known = True
        name, count = match["name"], int(min(float(match["value"]), _MOST_COUNT))
        if number:
            subject = f"{'NVIDIA' if _OF_NVIDIA.search(name) else 'AMD'} {int(number)}"
        shown = f"{name} of {f'GPU {number}' if number else subject}: {count}"
        if flag:
            flags.setdefault(name, {})[str(subject)] = count
        elif name.endswith("gpu_health"):
            if not count:
                reports["amd-unhealthy", subject] = ToolReport("amd-unhealthy", subject, shown)
        elif count and (("amd-uncorrectable", subject) not in reports or "total" in name):
            detail = (("errors", str(count)),)
            reports["amd-uncorrectable", subject] = ToolReport("amd-uncorrectable", subject, shown, detail)
    narrow = list_narrow_links(text)
    require(known or _WIDTH.search(text), "no metric of the errors of a GPU")
    return [*reports.values(), *_list_off(flags), *narrow]


def list_narrow_links(text: str) -> list[ToolReport]:
    """GPUs of which an exporter reports fewer lanes than the most of the same GPU, where another GPU has all of its
    own: superchips report a few lanes of a link that carries nothing.

    >>> row = 'nvidia_smi_pcie_link_width_{}{{uuid="{}"}} {}\\n'
    >>> whole = row.format("current", "a2", 16) + row.format("max", "a2", 16)
    >>> list_narrow_links(whole + row.format("current", "a1", 8) + row.format("max", "a1", 16))[0].detail
    (('what', 'x8 of x16'),)
    """
    widths: dict[tuple[str, str], dict[bool, int]] = {}
    for match in _WIDTH.finditer(text):
        labels = _read_labels(match["labels"])
        number = next((labels[name] for name in _NUMBERS if labels.get(name, "").isdecimal()), None)
        host = next((labels[name] for name in _HOSTS if labels.get(name)), "")
        if gpu := f"NVIDIA {int(number)}" if number else labels.get("uuid") or labels.get("UUID"):
            is_most = "max" in match["name"].lower()
            widths.setdefault((host, gpu), {}).setdefault(is_most, int(match["value"]))
    if not any(both.get(False) == both.get(True) for both in widths.values()):
        return []
    return [
        state_fault("metric-width", gpu, f"x{now} of x{most}", f"PCIe link of {gpu}: x{now} of x{most}")
        for (_, gpu), both in widths.items()
        if 0 < (now := both.get(False, 0)) < (most := both.get(True, 0))
    ]


def _list_off(flags: Mapping[str, Mapping[str, int]]) -> Iterator[ToolReport]:
    """What one GPU does not have and most others have."""
    for name, states in flags.items():
        off = [subject for subject, state in states.items() if not state]
        for subject in off if 2 * len(off) <= len(states) else ():
            yield state_fault("metric-off", subject, name, f"{name} of {subject}: 0")
