"""Lines of long outputs that a filter left without the device that they are about: what they state is read all the
same (`lspci -vvv | grep ACSCtl`, `nvidia-smi -q | grep -A4 "Remapped Rows"`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from probes.gpu.facts import find_address
from probes.text import check_length, lazy_pattern, lazy_rows, require
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_TEXT = 200
_SMI_LABELS = (  # of `nvidia-smi -q`, which no other tool has
    r"Product (?:Brand|Architecture)|Persistence Mode|VBIOS Version|Minor Number|MultiGPU Board|Board Part Number|"
    r"GPU (?:UUID|PDI|Part Number|Fabric GUID|Virtualization Mode|Recovery Action|Link Info)|"
    r"GPU (?:Current|Target|Shutdown|Slowdown|Max Operating|T\.Limit)[\w .]{2,30}|Inforom Version|Image Version|"
    r"ECC (?:Object|Errors|Mode)|GSP Firmware Version|PCIe Generation|Replay(?:s Since Reset| Number Rollovers)|"
    r"[TR]x Throughput|Performance State|Clocks (?:Event|Throttle) Reasons(?: Counters)?|"
    r"Applications Clocks Setting|SW (?:Power Cap|Thermal Slowdown)|HW (?:Thermal |Power Brake )?Slowdown|"
    r"(?:FB|BAR1) Memory Usage|Compute Mode|[SD]RAM (?:Un)?[Cc]orrectable[\w -]{0,12}|SRAM Threshold Exceeded|"
    r"(?:Single|Double) Bit ECC|Pending Page Blacklist|(?:Unc|C)orrectable Error|"
    r"Remap(?:ped Rows|ping Failure Occurred)|Memory (?:Current|Max Operating)[\w .]{2,30}|"
    r"(?:Current|Requested|Default|Enforced|Min|Max) Power Limit|(?:Average |Instantaneous )?Power Draw|"
    r"CliqueId|ClusterUUID|Route (?:Unhealthy|Recovery in progress)|Access Timeout Recovery|"
    r"(?:Channel|TPC) Repair Pending"
)
_NVLINK_LINE = r"Link \d{1,3}: (?:[\d.]{1,9} GB/s|<inactive>|[A-Z][\w ]{2,40}: \d{1,16})[ \t\r]*$"
_FABRIC_LINE = r"State[ \t]+: (?:Completed|In Progress|Not Started)\b"
OF_GPU = rf"(?:(?:{_SMI_LABELS})[ \t]*(?:: |$)|{_FABRIC_LINE}|Summary[ \t]+: (?:Unh|H)ealthy|{_NVLINK_LINE})"  # a line
OF_FUNCTION = r"(?:Lnk(?:Cap|Sta|Ctl)2?|Dev(?:Cap|Sta|Ctl)2?|[UC]E(?:Sta|Msk)|UESvrt|ACS(?:Cap|Ctl)):[ \t]+\S"  # a line
_GPU_LINE, _FUNCTION_LINE = (lazy_pattern(rf"^[> \t]*{line}", re.MULTILINE) for line in (OF_GPU, OF_FUNCTION))
_ACS = lazy_pattern(r"^[ \t]*ACSCtl:[^\n]{0,120}\bReqRedir([+-])", re.MULTILINE)
_LINK = lazy_pattern(r"^[ \t]*LnkSta:([^\n]{0,200})$", re.MULTILINE)
_IDLE_LINK = lazy_pattern(r"\s*Speed 2\.5GT/s \(downgraded\), Width x\d{1,2}(?! \(down)")  # with all its lanes
_FATAL = lazy_pattern(  # but what a driver that asks for too much causes
    r"^[ \t]*UESta:[^\n]{0,200}?\b(?P<what>DLP|SDES|TLP|FCP|CmpltTO|UnxCmplt|RxOF|MalfTLP|ECRC)\+", re.MULTILINE
)
_NARROW = (
    r"[ \t]*Link Width[ \t]*\n[ \t]*Max[ \t]*: (?P<max>\d{1,2})x[ \t]*\n"
    r"[ \t]*Current[ \t]*: (?!(?P=max)x)(?P<what>\d{1,2}x)"
)
_SMI = lazy_rows(
    (
        ("unnamed-remap-failed", r"^[ \t]*Remapping Failure Occurred[ \t]*: Yes\b"),
        (
            "unnamed-remap-pending",
            r"^[ \t]*Remapped Rows[ \t]*$(?:\n[^\n]{0,120}){0,4}?\n[ \t]*Pending[ \t]*: Yes\b",
        ),
        ("unnamed-sram", r"^[ \t]*SRAM Threshold Exceeded[ \t]*: Yes\b"),
        (
            "unnamed-ecc",
            r"^[ \t]*Volatile[ \t]*$(?:\n(?![ \t]*Aggregate)[^\n]{0,120}){0,6}?"
            r"\n[ \t]*[SD]RAM Uncorrectable[\w -]{0,12}: [1-9]\d{0,11}\b",
        ),
        ("unnamed-slowdown", r"^[ \t]*HW (?P<what>Thermal Slowdown|Power Brake Slowdown)[ \t]*: Active\b"),
        (
            "unnamed-slowdown",
            r"<clocks_(?:event|throttle)_reason_(?P<what>hw_(?:thermal_slowdown|power_brake_slowdown|slowdown))>Active<",
        ),
        ("unnamed-remap-failed", r"<remapped_row_failure>Yes<"),
        ("unnamed-remap-pending", r"<remapped_row_pending>Yes<"),
        ("unnamed-slowdown", r"^[ \t]*(?P<what>HW Slowdown)[ \t]*: Active\b"),
        ("unnamed-action", r"^[ \t]*GPU Recovery Action[ \t]*: (?P<what>(?!None|N/A|Unknown)[A-Z][\w -]{2,40})"),
        (
            "unnamed-width-busy",  # at its full speed, so that it was not idle
            r"(?:^[ \t]*Bus Id[ \t]*: (?P<bdf>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0)[ \t]*\n"
            r"(?:[^\n]{0,80}\n){1,4}?)?"
            r"^[ \t]*PCIe Generation[ \t]*\n[ \t]*Max[ \t]*: (?P<gen>[1-7])[ \t]*\n"
            r"[ \t]*Current[ \t]*: (?P=gen)[ \t]*\n(?:[ \t]*(?:Device|Host) [^\n]{0,80}\n){0,3}" + _NARROW,
        ),
        ("unnamed-width", rf"^{_NARROW}"),
        (
            "unnamed-fabric-failed",
            r"^[ \t]*Fabric[ \t]*\n[ \t]*State[ \t]*: Completed[ \t]*\n"
            r"[ \t]*Status[ \t]*: (?P<what>(?!Success|N/A)[A-Z][\w ]{2,40})",
        ),
        (
            "unnamed-fabric",
            r"^[> \t]*(?:GPU (?P<bdf>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0)[ \t]*\n(?:[ \t]*Fabric[ \t]*\n)?"
            r"|Fabric[ \t]*\n)[ \t]*State[ \t]*: In Progress\b",
        ),
        (
            "unnamed-fabric-unhealthy",
            r"^[ \t]*(?P<what>Summary[ \t]*: Unhealthy|Bandwidth[ \t]*: Degraded|"
            r"(?:Route Unhealthy|Route Recovery in progress|Access Timeout Recovery)[ \t]*: True|"
            r"Incorrect Configuration[ \t]*: (?!None|N/A)\w+)",
        ),
        ("unnamed-nvlink", r"^[ \t]*Link (?P<what>\d{1,3}): <inactive>"),
        (
            "unnamed-nvlink-errors",
            r"^[ \t]*(?P<what>Link \d{1,3}: (?:(?:Replay|Recovery|CRC(?: FLIT| Data)?|ECC) Errors?"
            r"|Link recovery failed events): [1-9]\d{0,15})\b",
        ),
    ),
    re.MULTILINE,
)
# Whose GPU reports a few lanes of a link that carries nothing: by name, or as only these count their PCI domains
_SUPERCHIP = lazy_pattern(r"\b(?:G[BH][23]\d\d|B300)\b|^[ \t]*Bus Id[ \t]*: (?!00000000:)", re.MULTILINE)
_GUID = lazy_pattern(  # a row of ibv_devices; in other outputs the device, and below it its GUID
    r"^[ \t]*(?:(?:CA '|hca_id:[ \t]{1,8})(?P<device>[\w.-]{2,40})|"
    r"(?:Node GUID: 0x|node_guid:[ \t]{1,40})(?P<guid>[0-9a-f:]{16,19})\b|"
    r"(?P<row>[a-z][\w.-]{1,40})[ \t]{1,40}(?P<row_guid>[0-9a-f]{16})[ \t\r]*$)",
    re.MULTILINE,
)
_WITH_GUID = ("mlx", "ib")  # EFA had none for years
_SHOWN = 8
_CMDLINE = lazy_pattern(  # of the running kernel, or of the next boot
    r"(?:/proc/cmdline(?: <==[ \t]*\n|:)|\bGRUB_CMDLINE_LINUX(?:_DEFAULT)?=|^[> \t]*BOOT_IMAGE=)([^\n]{1,4096})",
    re.MULTILINE,
)
_IOMMU_ON = lazy_pattern(
    r"\b(?:intel_iommu=(?:[\w,]{1,40},)?on\b|amd_iommu=(?:on|force_enable)\b|iommu=(?:force|on)\b)"
)
_PASSTHROUGH = lazy_pattern(r"\b(?:iommu=(?:[\w,]{1,40},)?(?:pt|off)\b|iommu\.passthrough=1\b)")
_DRIVER_SETTINGS = lazy_rows(  # of the module nvidia: of the loaded one, of the next one, of the kernel's command line
    (
        ("driver-nvlink-off", r"^[^\n#]{0,2000}?\b(?P<what>(?:NVreg_NvLinkDisable=|NvLinkDisable: ?)[1-9])"),
        ("driver-excluded", r"^[^\n#]{0,2000}?\b(?P<what>(?:NVreg_)?ExcludedGpus(?:=|: ?)\"?\w[^\n\"]{2,200})"),
    ),
    re.MULTILINE,
)
_CLASS_LINK = lazy_pattern(  # by the name of what the device is for, in place of its address
    r"/sys/class/(?P<kind>[\w-]{2,20})/(?P<name>[\w.-]{2,40})/device/(?P<which>current|max)_link_(?P<what>width|speed)"
    r"[`'\"]?(?::|(?: <==)?[ \t]*\n)[ \t]{0,8}(?P<value>\d{1,3}(?:\.\d)?)"
)
_NUMA_NODE = lazy_pattern(
    r"/sys/bus/pci/devices/(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])/numa_node(?: <==[ \t]*\n|:)"
    r"[ \t]{0,8}(?P<node>-?\d{1,4})\b"
)
_VALUES = lazy_pattern(  # whose path has a pattern in the place of the port's device
    r"^==> (?P<path>/sys/class/(?:infiniband/[\w.*-]{1,64}/ports/\d/|net/[a-z][\w.-]{0,40}\*[\w.-]{0,40}/)"
    r"(?P<file>rate|state|phys_state|link_layer|speed|mtu)) <==\n(?P<values>(?:(?!==>)[^\n]{1,80}\n){2,512})",
    re.MULTILINE,
)
_MOST_VALUES, _ENOUGH = 512, 4
_LIMIT_REPEATED = 1 << 16  # characters
_REPEATED = lazy_pattern(  # states and rates, which are alike on devices that are used alike
    r"[> \t]*(?:(?P<label>(?i:(?:port_)?(?:phys(?:ical)?[ _])?state|(?:active_)?(?:rate|speed|width|mtu)|link_layer|"
    r"link detected|(?:max|current)(?: link (?:speed|width))?|link (?:speed|width)))[ \t]*[:=][ \t]*"
    r"(?P<value>\S[^\n]{0,60}?)"
    r"|(?P<alone>\d: [A-Z]\w{2,30}|\d{1,4}(?:\.\d)? (?:Gb/sec|GT/s|GB/s)[^\n]{0,24}|(?:1|2|4|8|16|32)x?"
    r"|PORT_[A-Z]{4,8} \(\d\)|(?i:up|down|active|inactive|linkup|polling|yes|no|enabled|disabled)))[ \t\r]*"
)
_SETTING = lazy_pattern(  # of each GPU
    r"^[> \t]*((?:Current|Requested|Enforced) Power Limit|Persistence Mode|Compute Mode)[ \t]*: (\S[^\n]{0,40}?)"
    r"[ \t\r]*$",
    re.MULTILINE,
)
_NAMED_GPU = lazy_pattern(r"^[> \t]*GPU [0-9A-Fa-f]{8}:", re.MULTILINE)  # these are compared by name
_XML_CALM = lazy_pattern(r"<(?:clocks_(?:event|throttle)_reason_hw_\w{4,30}>Not Active|remapped_row_\w{4,12}>No)<")


def list_pci_lines(text: str) -> list[ToolReport]:
    """Functions whose ACS redirects requests, and links below what their device supports. Raises ParseError.

    >>> line = "ACSCtl: SrcValid+ TransBlk- ReqRedir{} CmpltRedir-\\n"
    >>> [(report.code, report.detail) for report in list_pci_lines(line.format("+") + line.format("-"))]
    [('unnamed-acs', (('what', '1 of 2 functions'),))]
    """
    signs = _ACS.findall(check_length(text))
    links = _LINK.findall(text)
    slow = [link for link in links if "(downgraded)" in link and not _IDLE_LINK.match(link)]
    reports = []
    if "+" in signs:
        reports.append(_report("unnamed-acs", f"{signs.count('+')} of {len(signs)} functions", "ACSCtl: ReqRedir+"))
    if slow:
        reports.append(_report("unnamed-link", f"{len(slow)} of {len(links)} links", f"LnkSta:{slow[0]}"))
    if match := _FATAL.search(text):
        reports.append(_report("unnamed-fatal", match["what"], match[0].strip()))
    require(signs or links or _FUNCTION_LINE.search(text), "no line of lspci about a function")
    return reports


def list_module_lines(text: str) -> list[ToolReport]:
    """Whether `lsmod`, or a part of it, shows nouveau in use and no module of NVIDIA. Raises ParseError.

    >>> [report.code for report in list_module_lines("nouveau  2596864  4\\nmlx5_core  2134016  1 mlx5_ib\\n")]
    ['modules-nouveau']
    """
    rows = [
        words for line in check_length(text).splitlines() if len(words := line.split()) >= 3 and words[2].isdecimal()
    ]
    require(rows, "no module is named")
    uses = {words[0]: int(words[2][:9]) for words in rows}
    if not uses.get("nouveau") or "nvidia" in uses:
        return []
    line = next(" ".join(words) for words in rows if words[0] == "nouveau")
    return [ToolReport("modules-nouveau", None, line[:_LIMIT_TEXT])]


def list_zero_guids(text: str) -> list[ToolReport]:
    """RDMA devices whose GUID is zero. Raises ParseError where there is none.

    >>> [report.detail for report in list_zero_guids("mlx5_0 506b4b03002811a0\\nmlx5_2 0000000000000000\\n")]
    [(('what', 'mlx5_2'),)]
    """
    guids: dict[str, bool] = {}
    device = ""
    for match in _GUID.finditer(check_length(text)):
        device = match["device"] or match["row"] or device
        guid = match["guid"] or match["row_guid"]
        if guid and device:
            guids.setdefault(device, not guid.strip("0:"))
    zero = [device for device, is_zero in guids.items() if is_zero and device.startswith(_WITH_GUID)]
    require(zero, "no GUID of an RDMA device that is zero")
    what = ", ".join(zero[:_SHOWN])
    return [state_fault("guid-zero", None, what, f"no node GUID, {', '.join(zero)}"[:_LIMIT_TEXT])]


def list_shown_files(text: str) -> list[ToolReport]:
    """What files of the kernel state that a paste shows without a list of PCI devices. Raises ParseError where it shows
    none of these files, and where they state nothing.

    >>> [report.code for report in list_shown_files("==> /proc/cmdline <==\\nro intel_iommu=on quiet\\n")]
    ['cmdline-iommu']
    >>> link = "/sys/class/net/ens1/device/{}_link_width:{}\\n"
    >>> [report.detail for report in list_shown_files(link.format("current", 4) + link.format("max", 16))]
    [(('what', 'x4 of x16'),)]
    >>> [report.code for report in list_shown_files("options nvidia NVreg_NvLinkDisable=1\\n")]
    ['driver-nvlink-off']
    >>> [report.code for report in list_shown_files('GRUB_CMDLINE_LINUX="crashkernel=auto amd_iommu=on"\\n')]
    ['cmdline-iommu']
    """
    reports = []
    if (line := _CMDLINE.search(check_length(text))) and _IOMMU_ON.search(line[1]) and not _PASSTHROUGH.search(line[1]):
        reports.append(ToolReport("cmdline-iommu", None, line[1].strip()[:_LIMIT_TEXT]))
    for code, pattern in _DRIVER_SETTINGS:
        if setting := pattern.search(text):
            reports.append(state_fault(code, None, setting["what"][:_LIMIT_TEXT], setting["what"]))
    reports += _list_class_links(text)
    nodes = {match["address"]: match["node"] for match in _NUMA_NODE.finditer(text)}
    if len(nodes) > 1 and set(nodes.values()) == {"-1"}:
        addresses = ", ".join(nodes)[:_LIMIT_TEXT]
        reports.append(state_fault("numa-none", None, f"{len(nodes)} functions", f"numa_node -1: {addresses}"))
    reports += [_report("file-odd", what, line) for what, line in _list_odd_values(text)]
    require(reports, "no file of the kernel that states a fault")
    return reports


def _list_class_links(text: str) -> Iterator[ToolReport]:
    """Devices whose link has fewer lanes than they support, and NICs whose link is slower: a GPU slows its own."""
    links: dict[tuple[str, str, str], dict[str, float]] = {}
    for match in _CLASS_LINK.finditer(text):
        links.setdefault((match["kind"], match["name"], match["what"]), {})[match["which"]] = float(match["value"])
    for (kind, name, what), values in links.items():
        now, most = values.get("current", 0), values.get("max", 0)
        if 0 < now < most and (what == "width" or kind != "drm"):
            shown = f"x{now:.0f} of x{most:.0f}" if what == "width" else f"{now:g} of {most:g} GT/s"
            yield state_fault("file-link", name, shown, f"{what} of {name}: {shown}")


def _list_odd_values(text: str) -> Iterator[tuple[str, str]]:
    """Values of several files, printed without their names, of which few differ from all others."""
    for match in _VALUES.finditer(text):
        if what := _describe_odd(match["values"].splitlines()[:_MOST_VALUES]):
            yield f"{match['file']}: {what}", f"cat {match['path']}"


def find_repeated(text: str) -> dict[str, list[str]]:
    """Values by label, of a text in which each line has the same few labels again and again, as a filter leaves the
    states of several devices. A value alone has the label "". Empty where the text is none.

    >>> find_repeated("State: Active\\nState: Down\\nState: Active\\nState: Active\\n")
    {'State': ['Active', 'Down', 'Active', 'Active']}
    """
    values: dict[str, list[str]] = {}
    for line in filter(str.strip, text[:_LIMIT_REPEATED].splitlines()):
        match = _REPEATED.fullmatch(line)
        if match is None:
            return {}
        values.setdefault(match["label"] or "", []).append(" ".join((match["value"] or match["alone"]).split()))
    counts = {len(group) for group in values.values()}
    return values if len(counts) == 1 and max(counts) >= _ENOUGH else {}


def list_repeated_lines(text: str) -> list[ToolReport]:
    """Values that few of several devices have otherwise. Raises ParseError.

    >>> list_repeated_lines("State: Active\\nState: Down\\nState: Active\\nState: Active\\n")[0].detail
    (('what', 'State: Down (number 2); 3 of 4 are Active'),)
    """
    groups = require(find_repeated(check_length(text)), "no label of several devices")
    odd = [(label or "values", what) for label, values in groups.items() if (what := _describe_odd(values))]
    return [_report("line-odd", f"{label}: {what}", f"{label}: {what}") for label, what in odd]


def _describe_odd(values: Sequence[str]) -> str | None:
    """Values of which few differ from all others, which are equal."""
    usual, count = Counter(values).most_common(1)[0]
    odd = [f"{value} (number {number})" for number, value in enumerate(values, 1) if value != usual]
    if len(values) < _ENOUGH or not 0 < len(odd) <= len(values) / _ENOUGH:
        return None
    return f"{', '.join(odd)}; {count} of {len(values)} are {usual}"


def list_gpu_lines(text: str) -> list[ToolReport]:
    """What lines of `nvidia-smi -q` state of the memory and the fabric of some GPU. Raises ParseError.

    >>> rows = "Remapped Rows\\n  Uncorrectable Error : 4\\n  Pending : Yes\\n"
    >>> [report.code for report in list_gpu_lines(rows)]
    ['unnamed-remap-pending']
    >>> rows = "".join(f"Current Power Limit : {300 if n == 3 else 700}.00 W\\n" for n in range(8))
    >>> [report.detail[0][1] for report in list_gpu_lines(rows)]
    ['Current Power Limit: 300.00 W (number 4); 7 of 8 are 700.00 W']
    """
    matches: dict[str, re.Match[str]] = {}
    for code, pattern in _SMI:
        if match := pattern.search(check_length(text)):
            matches.setdefault(code, match)
    require(matches or _GPU_LINE.search(text) or _XML_CALM.search(text), "no line of nvidia-smi about a GPU")
    if "unnamed-width-busy" in matches:
        matches.pop("unnamed-width-busy" if _SUPERCHIP.search(text) else "unnamed-width", None)
    settings: dict[str, list[str]] = {}
    for label, value in _SETTING.findall(text) if not _NAMED_GPU.search(text) else ():
        settings.setdefault(label, []).append(value)
    odd = [(label, what) for label, values in settings.items() if (what := _describe_odd(values))]
    return [
        *(_report_line(code, match) for code, match in matches.items()),
        *(_report("line-odd", f"{label}: {what}", f"{label}: {what}") for label, what in odd),
    ]


def _report_line(code: str, match: re.Match[str]) -> ToolReport:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    address = find_address(groups.pop("bdf", ""))
    return ToolReport(code, address, " ".join(match[0].split())[:_LIMIT_TEXT], (*groups.items(),))


def _report(code: str, what: str, text: str) -> ToolReport:
    return state_fault(code, None, what, " ".join(text.split())[:_LIMIT_TEXT])
