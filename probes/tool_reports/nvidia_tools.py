"""`nvidia-smi dmon` and `--query-gpu`: GPUs that are held back; `nvidia-smi -q`: GPUs at a limit of temperature, and
those that hardware slowed; `nvidia-smi c2c -s`: links to the CPU that are down; `nvidia-imex-ctl -N`: nodes of an
NVLink domain that are not ready.

Sources: nvidia-smi(1), section "device monitoring"; NVIDIA IMEX service guide, "nvidia-imex-ctl".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from probes.gpu.facts import normal_address
from probes.text import find_median, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.labels import split_table

_FEWEST_SAMPLES = 2  # with a violation: a single one passes
_BUSY_PERCENT, _FEWEST_GPUS, _SLOW = 90, 4, 0.7  # from where on clocks compare; a power limit alone costs less
_HEAD = lazy_pattern(r"#(?: ?Date +Time| ?Time)? *gpu(?: +[a-z][\w-]*){2,40} *|# ?Entity(?: +[A-Z]\w{1,12}){1,40} *")
_ROW = lazy_pattern(
    r"(?:\d{8} +)?(?:[\d:]{8} +)?(?:GPU )?(?P<values>\d{1,3}(?: +(?:-|N/A|\d{1,18}(?:\.\d{1,6})?)){1,40}) *"
)
_OF_DCGM = {"entity": "gpu", "tmptr": "gtemp", "gputl": "sm", "smclk": "pclk", "tviol": "held"}  # a sum of nanoseconds
_LONG_HELD = 1_000_000
_NODE = lazy_pattern(
    r"Node #\d{1,4} {1,8}[*-] {1,4}(?P<address>[\w.:-]{2,80})(?: {1,40}\*)? {1,40}- {1,4}(?P<state>[A-Z][A-Z_]{2,40})\b"
    r"(?: {1,40}- {1,4}Version: {0,4}(?P<version>\S{1,40}))?"
    r"(?:.{0,120}?Hostname: {0,4}(?P<name>[\w.-]{1,80}))?.{0,80}"
)
_DOMAIN = lazy_pattern(r"Domain State: {0,4}(?P<state>[A-Z][A-Z_]{1,40}) *")
_NO_SPARE = lazy_pattern(r"[ \t]{1,40}None[ \t]{1,40}: (?P<count>\d{1,5}) bank\(s\)[ \t]{0,8}")
_OF_AMD = {
    "GFX_CLK": "pclk",
    "GFX_CLOCK": "pclk",
    "GFX%": "sm",
    "GFX_UTIL": "sm",
    "GPU_T": "gtemp",
    "GPU_TEMP": "gtemp",
    "MEM_T": "mtemp",
    "MEM_TEMP": "mtemp",
}
_OF_HEAT = (("GPU temp", "gtemp"), ("memory temp", "mtemp"))
_HOT, _HOTTER = 80, 20  # °C; below it none is too hot, and the place in the air costs less
_VERY_HOT = 90  # where the use is not known
_Key = TypeVar("_Key", int, str)
_ROW_PLACE = lazy_pattern(r"\|[^|]{0,60}?(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0)\b")
_ROW_DEGREES = lazy_pattern(r"[ |](?P<degrees>\d{2,3}) ?°?C ")
_NPU_DEGREES = lazy_pattern(r"\| {1,4}[\d.]{1,6} {1,20}(?P<degrees>\d{2,3}) {1,30}\d{1,6} {0,6}/ {0,6}\d{1,6} {1,30}\|")
_DIGITS = 9  # of the number of a GPU, of MHz
_CELL = lazy_pattern(
    r"(?<!\S)(-?\d{1,12}(?:\.\d{1,6})?(?:/\d[\d.]{0,8})?|N/A)(?: ?(?:W|°?C|MHz|%|[KMGT]i?B(?:/s)?|Mb/s))?(?!\S)"
)
_GPU_NUMBER = lazy_pattern(r"GPU (\d{1,3}): ")
_C2C_LINK = lazy_pattern(r"C2C Link (?P<link>\d{1,2}): <?(?P<state>inactive|[\d.]{1,9} GB/s)>?")
_READY = "READY"
_PLACE = lazy_pattern(r"[ \t]{0,20}GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0)[ \t]{0,8}")
_DEGREES = lazy_pattern(
    r"[ \t]{1,40}(?P<name>(?:GPU|Memory) (?:Current|Slowdown|Max Operating|T\.Limit)(?: Temp)?)[ \t]{1,40}: "
    r"(?P<degrees>-?\d{1,3}) C[ \t]{0,8}"
)
_SLOWED = lazy_pattern(  # below "Clocks Event Reasons Counters", since the driver was loaded
    r"[ \t]{1,40}HW (?P<what>Thermal Slowdown|Power Brak(?:e Slowdown|ing))[ \t]{1,40}: (?P<time>\d{1,18}) us[ \t]{0,8}"
)
_LONG_SECONDS = 60  # less is the start of a job, or a test
_TIMES = 10  # so many times as long as most others
_LIMITS = (  # of the GPU and of its memory: what it is, and what it must not reach
    (
        "GPU",
        "GPU Current Temp",
        (("slowdown", "GPU Slowdown Temp"), ("highest in operation", "GPU Max Operating Temp")),
    ),
    ("memory", "Memory Current Temp", (("highest in operation", "Memory Max Operating Temp"),)),
)


def list_held_back(text: str) -> list[ToolReport]:
    """GPUs of which two samples or more have a thermal violation (column tviol), and those far slower than the others.
    Raises ParseError.

    >>> head = "# gpu    pwr  gtemp  pviol  tviol\\n# Idx      W      C      %   bool\\n"
    >>> [(r.subject, r.detail) for r in list_held_back(head + 2 * "    0    690     88      3      1\\n")]
    [('NVIDIA 0', (('what', '2 of 2 samples, 88 °C'),))]
    """
    columns: list[str] = []
    samples: dict[int, list[dict[str, str]]] = {}
    for line in short_lines(text):
        bare = line.strip()
        if _HEAD.fullmatch(bare):
            is_of_dcgm = "Entity" in bare
            names = bare.partition("#")[2].lower().split() if is_of_dcgm else bare[bare.index("gpu") :].split()
            columns = [_OF_DCGM.get(name, name) for name in names] if is_of_dcgm else names
        elif columns and (row := _ROW.fullmatch(bare)) and len(values := row["values"].split()) == len(columns):
            samples.setdefault(int(values[0]), []).append(dict(zip(columns, values, strict=True)))
    require(samples, "no sample of nvidia-smi dmon")
    reports = []
    for gpu, rows in sorted(samples.items()):
        held = [row for row in rows if row.get("tviol", "0") not in ("0", "-")] or _list_held(rows)
        if len(held) >= _FEWEST_SAMPLES:
            heat = max((int(row["gtemp"]) for row in held if row.get("gtemp", "-").isdecimal()), default=0)
            what = f"{len(held)} of {len(rows)} samples" + (f", {heat} °C" if heat else "")
            reports.append(state_fault("dmon-hot", f"NVIDIA {gpu}", what, f"tviol of GPU {gpu}: {what}"))
    return [*reports, *_list_slow(samples)]


def _list_held(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Samples of `dcgmi dmon` between which the time of a thermal violation grew."""
    times = [int(row["held"]) if row.get("held", "").isdecimal() else 0 for row in rows]
    grew = [at for at in range(1, len(rows)) if times[at - 1] and times[at] - times[at - 1] >= _LONG_HELD]
    return [rows[at] for at in sorted({*grew, *(at - 1 for at in grew)})]


def list_slow_clocks(text: str) -> list[ToolReport]:
    """The same of a table of --query-gpu with the clock and the use of each GPU. Raises ParseError.

    >>> rows = "".join(f"{gpu}, {345 if gpu == 2 else 1980} MHz, 99 %\\n" for gpu in range(4))
    >>> list_slow_clocks("index, clocks.current.sm [MHz], utilization.gpu [%]\\n" + rows)[0].subject
    'NVIDIA 2'
    """
    samples: dict[int, list[dict[str, str]]] = {}
    for row in split_table(text).values():
        clock = row.get("clocks.current.sm") or row.get("clocks.sm") or row.get("clocks.current.graphics") or "-"
        use, index = row.get("utilization.gpu", "-"), row.get("index", "")
        if index.isdecimal() and len(index) <= _DIGITS:
            heat = {
                name: row.get(f"temperature.{of}", "-")[:_DIGITS]
                for name, of in (("gtemp", "gpu"), ("mtemp", "memory"))
            }
            sample = {"sm": use.partition(" ")[0][:_DIGITS], "pclk": clock.partition(" ")[0][:_DIGITS], **heat}
            samples.setdefault(int(index), []).append(sample)
    require(samples, "no clock of a GPU")
    return list(_list_slow(samples))


def list_slow_amd(text: str) -> list[ToolReport]:
    """The same of `amd-smi monitor`, whose cells have units. Raises ParseError.

    >>> rows = "".join(f"  {gpu}  744 W   68 °C  {612 if gpu == 2 else 2100} MHz  100 %\\n" for gpu in range(4))
    >>> [report.subject for report in list_slow_amd("GPU  POWER  GPU_T  GFX_CLK  GFX%\\n" + rows)]
    ['AMD 2']
    """
    columns: list[str] = []
    samples: dict[int, list[dict[str, str]]] = {}
    for line in short_lines(text):
        cells = _CELL.findall(line)
        if line.split()[:1] == ["GPU"]:
            columns = [_OF_AMD.get(name, name) for name in line.split()]
        elif columns and len(cells) == len(columns) and cells[0].isdecimal():
            samples.setdefault(int(cells[0]), []).append(dict(zip(columns, cells, strict=True)))
    require(samples, "no sample of amd-smi monitor")
    return list(_list_slow(samples, "AMD"))


def _list_slow(samples: Mapping[int, Sequence[Mapping[str, str]]], maker: str = "NVIDIA") -> Iterator[ToolReport]:
    """GPUs whose clock is far below that of the others while all of them are busy, and those far hotter."""
    busy = _list_busy(samples, "pclk")
    usual = find_median(busy.values()) if len(busy) >= _FEWEST_GPUS else 0
    for gpu, clock in sorted(busy.items()):
        if clock < usual * _SLOW:
            what = f"{clock:.0f} MHz, the others {usual:.0f} MHz"
            code = "dmon-slow" if maker == "NVIDIA" else "amd-slow"
            yield state_fault(code, f"{maker} {gpu}", what, f"clock of GPU {gpu}: {what}")
    hot: dict[int, list[str]] = {}
    for name, column in _OF_HEAT:
        busy = _list_busy(samples, column)
        usual = find_median(busy.values()) if busy else 0
        for gpu in _find_hotter(busy, _HOT):
            hot.setdefault(gpu, []).append(f"{name} {busy[gpu]:.0f} °C, the others {usual:.0f} °C")
    for gpu, stated in sorted(hot.items()):
        yield state_fault("value-odd", f"{maker} {gpu}", f"GPU {gpu}: {'; '.join(stated)}", "; ".join(stated))


def _find_hotter(degrees: Mapping[_Key, float], least: float) -> list[_Key]:
    """The few that are so hot, and far hotter than most."""
    if len(degrees) < _FEWEST_GPUS:
        return []
    least = max(least, find_median(degrees.values()) + _HOTTER)
    far = sorted(gpu for gpu, value in degrees.items() if value >= least)
    return far if len(far) * _FEWEST_GPUS <= len(degrees) else []


def list_hot_rows(text: str) -> list[ToolReport]:
    """GPUs far hotter than most in the table of nvidia-smi, amd-smi, hl-smi or npu-smi, which has two lines for each:
    busy or idle, so that they must be hotter than in a list that shows the use.

    >>> row = "| 0000:{0}5:00.0  AMD Instinct MI300X | 0 %  {1} °C  0  150/750 W |\\n|  0  0  SPX | 0 %  N/A |\\n"
    >>> rows = [row.format(gpu, 97 if gpu == 2 else 44) for gpu in range(4)]
    >>> [report.subject for report in list_hot_rows("".join(rows))]
    ['0000:25:00.0']
    """
    degrees: dict[str, float] = {}
    above = address = ""
    for line in short_lines(text):
        place, stated = _ROW_PLACE.search(line), _ROW_DEGREES.search(line)
        of_npu = _NPU_DEGREES.search(line)
        if place:
            address = normal_address(place["address"])
        value = stated["degrees"] if stated else above if place else ""
        if address and value:
            degrees.setdefault(address, float(value))
            address = ""
        above = of_npu["degrees"] if of_npu else ""
    usual = find_median(degrees.values()) if degrees else 0
    stated_of = {gpu: f"{degrees[gpu]:.0f} °C, the others {usual:.0f} °C" for gpu in _find_hotter(degrees, _VERY_HOT)}
    return [state_fault("value-odd", gpu, f"temp {what}", f"temp {what}") for gpu, what in stated_of.items()]


def _list_busy(samples: Mapping[int, Sequence[Mapping[str, str]]], column: str) -> dict[int, float]:
    """Of each GPU that is busy the median of a column."""
    return {
        gpu: find_median(values)
        for gpu, rows in samples.items()
        if (values := [int(row[column]) for row in rows if _is_busy(row) and row.get(column, "-").isdecimal()])
    }


def _is_busy(row: Mapping[str, str]) -> bool:
    return row.get("sm", "-").isdecimal() and int(row["sm"]) >= _BUSY_PERCENT


def list_hot_gpus(text: str) -> list[ToolReport]:
    """GPUs whose temperature, or that of whose memory, is at a limit that `nvidia-smi -q` states. Raises ParseError.

    >>> rows = "GPU 00000000:2D:00.0\\n  Temperature\\n    GPU Current Temp : {} C\\n    GPU Slowdown Temp : 92 C\\n"
    >>> [(report.subject, report.detail) for report in list_hot_gpus(rows.format(93))]
    [('0000:2d:00.0', (('what', 'GPU 93 °C, slowdown 92 °C'),))]
    >>> list_hot_gpus(rows.format(91))
    []
    """
    gpus: dict[str, dict[str, int]] = {}
    for address, line in _list_lines_of_gpus(text):
        if degrees := _DEGREES.fullmatch(line):
            gpus.setdefault(address, {}).setdefault(degrees["name"], int(degrees["degrees"]))
    require(gpus, "no temperature of a GPU")
    return [
        state_fault("smi-hot", address, what, what)
        for address, degrees in gpus.items()
        for what in list(_list_reached(degrees))[:1]
    ]


def _list_lines_of_gpus(text: str) -> Iterator[tuple[str, str]]:
    """The lines of `nvidia-smi -q` below the address of a GPU, with that address. Raises ParseError."""
    address = ""
    for line in short_lines(text):
        if place := _PLACE.fullmatch(line):
            address = normal_address(place["address"])
        elif address:
            yield address, line


def _list_reached(degrees: Mapping[str, int]) -> Iterator[str]:
    for part, now, limits in _LIMITS:
        for name, limit in limits:
            if now in degrees and limit in degrees and degrees[now] >= degrees[limit] > 0:
                yield f"{part} {degrees[now]} °C, {name} {degrees[limit]} °C"
    if (margin := degrees.get("GPU T.Limit Temp", 1)) <= 0:
        yield f"GPU {-margin} °C over its limit" if margin else "GPU at its limit"


def list_slowed_gpus(text: str) -> list[ToolReport]:
    """GPUs that the hardware slowed for a minute and more since their driver was loaded, for heat or for power; and
    those far longer than the others. Raises ParseError.

    >>> rows = "GPU 00000000:2D:00.0\\n  Clocks Event Reasons Counters\\n    HW Thermal Slowdown : {} us\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_slowed_gpus(rows.format(903000000))]
    [('smi-slowed', '0000:2d:00.0', (('what', 'Thermal Slowdown for 903 s'),))]
    """
    seconds: dict[str, dict[str, int]] = {}
    for address, line in _list_lines_of_gpus(text):
        if slowed := _SLOWED.fullmatch(line):
            seconds.setdefault(slowed["what"], {}).setdefault(address, int(slowed["time"]) // 1_000_000)
    require(seconds, "no time in which a GPU was slowed")
    reports = []
    for what, times in seconds.items():
        for gpu, long in times.items():
            others = [time for other, time in times.items() if other != gpu]
            alone = len(others) >= _FEWEST_GPUS - 1 and long > _TIMES * find_median(others)
            if long >= _LONG_SECONDS:
                shown = f"{what} for {long} s" + (f", the others {find_median(others):.0f} s" if alone else "")
                code = "smi-slowed-alone" if alone else "smi-slowed"
                reports.append(state_fault(code, gpu, shown, shown))
    return reports


def list_spent_banks(text: str) -> list[ToolReport]:
    """GPUs with banks of memory that have no spare row left, of `nvidia-smi -q`. Raises ParseError.

    >>> rows = "GPU 00000000:2D:00.0\\n  Bank Remap Availability Histogram\\n    None : 1 bank(s)\\n"
    >>> [(report.subject, report.detail) for report in list_spent_banks(rows)]
    [('0000:2d:00.0', (('what', '1 bank'),))]
    """
    spent: dict[str, int] = {}
    for address, line in _list_lines_of_gpus(text):
        if banks := _NO_SPARE.fullmatch(line):
            spent.setdefault(address, int(banks["count"]))
    require(spent, "no histogram of banks")
    shown = {address: f"{count} bank{'s' if count > 1 else ''}" for address, count in spent.items() if count}
    return [state_fault("banks-spent", address, what, f"None: {what}") for address, what in shown.items()]


def list_c2c_links(text: str) -> list[ToolReport]:
    """GPUs of `nvidia-smi c2c -s` with links to their CPU that are inactive while others are not. Raises ParseError.

    >>> rows = "GPU 1: NVIDIA GB200 (UUID: GPU-8b)\\n\\t C2C Link 0: 44.712 GB/s\\n\\t C2C Link 1: <inactive>\\n"
    >>> [(report.subject, report.detail) for report in list_c2c_links(rows)]
    [('NVIDIA 1', (('what', '1 of 2 (1)'),))]
    """
    links: dict[str, dict[str, bool]] = {}
    gpu = ""
    for line in short_lines(text):
        if named := _GPU_NUMBER.match(line):
            gpu = named[1]
        elif gpu and (link := _C2C_LINK.fullmatch(line.strip())):
            links.setdefault(gpu, {})[link["link"]] = link["state"] != "inactive"
    require(links, "no state of a C2C link")
    if not any(up for states in links.values() for up in states.values()):
        return []  # a virtual machine, or a board without
    reports = []
    for number, states in links.items():
        down = [link for link, up in states.items() if not up]
        what = f"{len(down)} of {len(states)} ({', '.join(down)})"
        reports += [state_fault("c2c-down", f"NVIDIA {number}", what, f"C2C links: {what}")] if down else []
    return reports


def list_unready_nodes(text: str) -> list[ToolReport]:
    """Nodes whose IMEX daemon is not ready, and the domain where it is not up. Raises ParseError.

    >>> rows = "Node #0  * 10.9.0.1 *  - READY - Version: 580\\nNode #1  - 10.9.0.2  - UNAVAILABLE - Version: 580\\n"
    >>> [(report.subject, report.detail) for report in list_unready_nodes(rows + "Domain State: DEGRADED\\n")]
    [('10.9.0.2', (('what', 'UNAVAILABLE; domain DEGRADED'),))]
    """
    nodes, domain = [], ""
    for line in short_lines(text):
        bare = line.strip()
        if node := _NODE.fullmatch(bare):
            nodes.append(node)
        elif state := _DOMAIN.fullmatch(bare):
            domain = state["state"]
    require(nodes or domain, "no node and no state of a domain in the output of nvidia-imex-ctl")
    ending = f"; domain {domain}" if domain and domain != "UP" else ""
    reports = [
        state_fault("imex-node", node["name"] or node["address"], f"{node['state']}{ending}", node[0])
        for node in nodes
        if node["state"] != _READY
    ]
    versions = [node["version"] for node in nodes]
    usual = max(versions, key=versions.count, default="")
    if ending and not reports and 2 * versions.count(usual) > len(versions):
        reports = [
            state_fault(
                "imex-node",
                node["name"] or node["address"],
                f"version {node['version']}, the others {usual}{ending}",
                node[0],
            )
            for node in nodes
            if node["version"] != usual
        ]
    if ending and not reports:
        reports = [state_fault("imex-node", None, f"domain {domain}", f"Domain State: {domain}")]
    return reports
