"""What several hosts printed for one command, as a table with a row for each host: so the values can be compared.

A parallel shell is often used to compare hosts, and each of them alone has no fault: one MTU, one rate, one count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

from probes.sources.file_commands import LOOP, list_loop_values, split_by_names
from probes.sources.host_lines import HostLines, is_name_of_host, split_hosts
from probes.text import lazy_pattern
from probes.tool_reports.tables.repeats import split_repeats

_MOST_CHARACTERS, _LONGEST = 1 << 18, 300
_MOST_ROWS, _MOST_LABELS = 512, 38  # a table has 40 columns at most
_FEWEST = 4  # hosts: three of them alike
_PARALLEL = lazy_pattern(  # a tool for several hosts, or the form of what one prints
    r"\b(?:pdsh|clush|ansible|pssh|parallel-ssh|xdsh|psh|salt|mpssh|srun|dshbak)\b|\bssh [^\n]{0,20}\$"
    r"|^-{8,40}\r?\n\S{2,200}(?: \(\d{1,5}\))?\r?\n-{8,40}$|^\S{2,64} \| (?:CHANGED|SUCCESS) \|",
    re.MULTILINE,
)
# Words of which a text with two sides has one of each group
_SIGNS = (
    "mtu|fec|error-correction|speed|pfc|802.1q|vlan|tos|tclass|_tc=|/2|/3 & swp|ethernet|eth1/|leaf|sw|spine|tor|nexus"
    "|sonic|n9k|policy-map|xe-|et-|ge1/",
    "router bgp|local as|autonomous-system & remote-as|remote as| 4 |as-number",
    "nodename= & slurmd|name=gpu|socketsperboard",
    "nvidia & modinfo|dkms|abric manager version|fabricmanager|.so. & kernel module|driver version|driver_version"
    "|/sys/module",
    "grub_cmdline & boot_image",
    "/etc/|.conf|options  & sysctl|/proc/sys|/parameters/|/params",
    "psid & fw version",
    "device_ip & ipaddr",
    "gpu 0|-smi & docker|podman|apptainer|singularity|nerdctl|wc -l|grep -c",
    "inet | up  & plan|/etc/|rail",
    "lldp|neighbors & plan|cabl|wiring|netbox|expected|design|documented",
    "/etc/hosts|getent|has address|nslookup|dig |ping  & inet| up |getent|has address|nslookup|dig |/etc/hosts",
    "=0x & pkey|0x8|0x7fff",
    "nccl_ib_gid_index & v2",
    "ofed & mlx5_core.ko",
    "nodebind & numa_node",
    "trust state & tclass|_tc=",
)
_ROW_OF_NUMBERS = lazy_pattern(
    r"(?m)^[^\n]{0,100}?(?:(?:\d{1,3}\.){3}\d{1,3}(?:[ \t|,;/\"]|$)"
    r"|\w{0,12}(?i:rank)(?:_id)?[\"' :=]{1,3}\"?\d)"
)
_SHELL = lazy_pattern(r"[ \t>]{0,40}(?:[$#%] |\[?[\w-]{1,40}@)")
_FILE = lazy_pattern(r"/(?:sys|proc|dev)/[^\s;:'\"|]{3,200}")
_NO_DEVICE = ("ports", "device")  # in a path
_PORT_WIDTH = lazy_pattern(r"\d{1,2}[xX]")  # as tools for InfiniBand print it
_STATE = lazy_pattern(r"(?i)\b(?<!trust )(?:phys\w*[ _])?(?:state|status)\b|\blink[ _](?:detected|layer)\b|^link\b")
_ENDS = lazy_pattern(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?")
_RANGE = lazy_pattern(r"(?P<before>[\w.-]{1,64})\[(?P<ranges>[\d,-]{1,160})\](?P<after>[\w.-]{0,64})")
_NUMBERED = lazy_pattern(r"\d{1,2}: (?=[A-Za-z])")  # before the word of a state in sysfs: "4: ACTIVE"
_KEY = lazy_pattern(r"(?<![\w.])([A-Za-z]\w{0,20})=(\d[\w./]{0,20})(?![\w=-])")
_COUNTED = lazy_pattern(r"\bwc -l\b|\bgrep (?:-\w+ ){0,4}-\w*c\b")
_COUNT = lazy_pattern(r"\d{1,5}")
_COUNTED_BY = (
    ("GPU count", lazy_pattern(r"\b(?:nvidia-smi|rocm-smi|amd-smi)\b")),
    ("NPU count", lazy_pattern(r"\b(?:npu-smi|hl-smi)\b")),
    ("HCA count", lazy_pattern(r"\b(?:ibstat|ibstatus|ibdev2netdev|ibv_devinfo|ibv_devices|rdma|fi_info|show_gids)\b")),
    ("device count", lazy_pattern(r"\b(?:lspci|/dev/\w+|ls)\b")),
)
_BARE_STATE = lazy_pattern(r"(?i)(?:\d{1,2}: )?(?:active|down|init|armed|linkup|polling|disabled|up)")
_BARE = (  # what a value alone is of
    ("rate", lazy_pattern(r"\d{1,4}(?:\.\d)? ?(?:Gb/s|Gb/sec|Gbps|Gb|Mb/s)(?: \([\w ]{1,12}\))?")),
    ("PCIe speed", lazy_pattern(r"\d{1,2}(?:\.\d)? GT/s(?: PCIe)?")),
    ("width", lazy_pattern(r"x\d{1,2}")),
    ("state", _BARE_STATE),
)


def may_have_sides(text: str) -> bool:
    """Whether a text has words of two sides, or rows with numbers: most have none."""
    low = text.lower()
    signs = (sign.split(" & ") for sign in _SIGNS)
    is_of_two = any(all(any(word in low for word in group.split("|")) for group in sign) for sign in signs)
    return is_of_two or _ROW_OF_NUMBERS.search(text) is not None


def tabulate_hosts(text: str, with_states: bool = True) -> str | None:
    """A table with a row for each host, as comma-separated values; None where a text is not of several hosts.
    `with_states`: also the states of links, which the readers of known outputs judge by themselves.

    >>> command = "# pdsh -w n[1-4] cat /sys/class/net/ens2/mtu\\n"
    >>> print(tabulate_hosts(command + "".join(f"n{n}: {1500 if n == 3 else 9000}\\n" for n in range(1, 5))), end="")
    host,mtu ens2
    n1,9000
    n2,9000
    n3,1500
    n4,9000
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    parts = _split_hosts(text)
    if not _are_hosts(parts, text):
        return None
    command = _find_command(text)
    rows = [(host, dict(_list_values(part, command))) for part in parts for host in expand_hosts(part.host)]
    named = dict.fromkeys(label for _, values in rows for label in values)
    labels = [label for label in named if with_states or not _STATE.search(label)][:_MOST_LABELS]
    if not _FEWEST <= len(rows) <= _MOST_ROWS or not labels:
        return None
    lines = [["host", *labels], *([host, *(values.get(label, "") for label in labels)] for host, values in rows)]
    return "".join(",".join(cell.replace(",", " ").replace('"', "") for cell in line) + "\n" for line in lines)


def expand_hosts(name: str) -> list[str]:
    """The hosts of a name with ranges, as clush and Slurm fold them.

    >>> expand_hosts("gn[008-010,12]"), expand_hosts("gn7")
    (['gn008', 'gn009', 'gn010', 'gn12'], ['gn7'])
    """
    match = _RANGE.fullmatch(name)
    if match is None:
        return [name]
    numbers: list[str] = []
    for part in match["ranges"].split(","):
        ends = _ENDS.fullmatch(part)
        if ends is None or int(ends["last"] or 0) - int(ends["first"]) > _MOST_ROWS:
            return [name]
        first, last = int(ends["first"]), int(ends["last"] or ends["first"])
        numbers += [f"{number:0{len(ends['first'])}}" for number in range(first, last + 1)]
    return [f"{match['before']}{number}{match['after']}" for number in numbers]


def _find_command(text: str) -> str:
    """The line above the output that names a tool that runs a command on several hosts."""
    return next((line for line in text.splitlines()[:20] if _PARALLEL.search(line)), "")


def _list_values(part: HostLines, command: str) -> Iterator[tuple[str, str]]:
    """The values of one host, each with its label; of a label that it has several times each with its number."""
    lines = [line for line in part.text.splitlines() if line.strip() and not _SHELL.match(line)]
    times: dict[str, int] = {}
    for at, line in enumerate(lines):
        found = _read_line(line, command, at, len(lines)) if len(line) < _LONGEST else None
        for label, value in _split_keys(*found) if found else ():
            times[label] = times.get(label, 0) + 1
            number = f" {times[label]}" if times[label] > 1 else ""
            yield f"{label}{number}", _NUMBERED.sub("", value)


def _split_keys(label: str, value: str) -> list[tuple[str, str]]:
    """A value, or each of its keys where it is a list of them.

    >>> _split_keys("READ", "bw=1.9GiB/s (2GB/s), run=8msec")
    [('READ bw', '1.9GiB/s'), ('READ run', '8msec')]
    """
    keys = _KEY.findall(value)
    return [(f"{label} {key}", number) for key, number in keys] if _KEY.match(value) else [(label, value)]


def _read_line(line: str, command: str, at: int, number: int) -> tuple[str, str] | None:
    """The label and the value of a line, by itself or by the command. `at`: its place among this number of lines."""
    value = line.strip()
    if bare := next((name for name, pattern in _BARE if pattern.fullmatch(value)), None):
        return _name_by_path(command) or bare, value
    label, mark, after = value.partition(":" if ":" in value else "=")
    if mark and after and (label[:1].isalpha() or label.startswith("/")):
        label, after = _name_by_path(label) or label.rstrip(" ."), after.strip()
        return f"port {label}" if _PORT_WIDTH.fullmatch(after) else label, after
    if number > 1:
        names = [_name_by_path(path) for path in _FILE.findall(command)]  # a value for each file, in their order
        name = names[at] if len(names) == number else None
        return (name, value) if name else None
    if _COUNTED.search(command) and _COUNT.fullmatch(value):
        name = next((name for name, pattern in _COUNTED_BY if pattern.search(command)), None)
        return (name, value) if name else None
    name = _name_by_path(command)
    return (name, value) if name else None


def _name_by_path(words: str) -> str | None:
    """The file of a path and its device: "rate mlx5_0"."""
    match = _FILE.search(words)
    if match is None:
        return None
    *folders, name = match[0].strip("/").split("/")
    device = next((one for one in reversed(folders) if not (one in _NO_DEVICE or one.isdecimal())), "")
    return f"{name} {device.replace('*', '')}".strip()


_END = lazy_pattern(r"[ \t>]{0,40}(?:[$#%❯] |\[?[\w-]{1,40}@[^\n$#%]{1,80}[$#%][ \t]?)\S|[ \t>]{0,40}(?:`{3,}|~{3,})")
_KINDS = (  # of what a tool numbers
    ("GPU", lazy_pattern(r"\b(?:nvidia-smi|rocm-smi|amd-smi)\b")),
    ("NPU", lazy_pattern(r"\b(?:npu-smi|hccn_tool)\b")),
    ("accel", lazy_pattern(r"\bhl-smi\b")),
)
_WHILE = lazy_pattern(
    r"\bwhile (?:IFS=\S{0,4} )?read (?:-r )?(?P<variable>\w{1,20})[^;\n]{0,80}[;\n][ \t]{0,8}do\b(?P<body>[^\n]{1,500})"
)
_OF_CORES = lazy_pattern(r"\b(?:Cpus_allowed|taskset|affinity)")
_MOST_OUTPUT, _MOST_PARTS = 400, 64  # lines


def tabulate_loop(
    text: str,
    with_states: bool = True,
    list_read: Callable[[], Collection[str]] = frozenset,
    of_any_form: bool = False,
) -> str | None:
    r"""What a loop printed of each of its values, or a command on each of several hosts: a line for each with the name
    and the lines, separated by tabs. None where the text has none, or the lines cannot be told apart. `with_states`:
    as of `tabulate_hosts`. `list_read`: the lines that are left out, as a reader has them.

    >>> loop = "$ for b in 1a 3c 4d; do echo -n \"$b \"; lspci -s $b -vv | grep -o MaxReadReq.*; done\n"
    >>> tabulate_loop(loop + "1a MaxReadReq 4096\n3c MaxReadReq 512\n4d MaxReadReq 4096\n")
    '1a\tMaxReadReq 4096\n3c\tMaxReadReq 512\n4d\tMaxReadReq 4096\n'
    >>> ssh = "$ for n in 1 2; do ssh n$n 'cat /sys/class/net/ib0/mtu; uname -r'; done\n"
    >>> tabulate_loop(ssh + "2044\n6.8.0\n4092\n6.8.0\n")
    'n1\t2044\t6.8.0\nn2\t4092\t6.8.0\n'
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    parts = _list_parts(text)
    if not parts and of_any_form:
        parts = split_repeats([line for line in text.splitlines() if not _SHELL.match(line)])
    read = list_read() if parts else ()
    parts = [(name, [line for line in own if line not in read and _counts(line, with_states)]) for name, own in parts]
    usual, times = Counter(len(own) for _, own in parts).most_common(1)[0] if parts else (0, 0)
    if 2 * times <= len(parts):
        usual = max((len(own) for _, own in parts), default=0)
    whole = [(name, own) for name, own in parts if len(own) == usual]
    if usual and _FEWEST - 1 <= len(whole) == len(parts) - 1:
        whole = parts  # one that has less than all others, or more
    if not usual or len(whole) < 2:
        return None
    rows = ((name, *(line.replace("\t", " ") for line in own or [""])) for name, own in whole)
    return "".join("\t".join(row) + "\n" for row in rows)


def _counts(line: str, with_states: bool) -> bool:
    return with_states or not (_STATE.search(line) or _BARE_STATE.fullmatch(line))


@lru_cache(maxsize=2)  # of one text for its values, and then for its lines
def _split_hosts(text: str) -> list[HostLines]:
    return split_hosts(text, None)


def _are_hosts(hosts: Sequence[HostLines], text: str) -> bool:
    """Whether a tool for several hosts, or the names, show that these are hosts."""
    return bool(hosts) and (_PARALLEL.search(text) is not None or all(is_name_of_host(one.host) for one in hosts))


def _list_parts(text: str) -> list[tuple[str, Sequence[str]]]:
    """Each value of a loop with its lines; where there is no loop, each host with its own."""
    over_values = LOOP.search(text)
    loop = over_values or _WHILE.search(text)
    values = list_loop_values(over_values["values"]) if over_values else []
    if loop and len(values) != 1 and len(values) <= _MOST_PARTS:
        below = text[text.find("\n", loop.end("body")) + 1 :].splitlines()[:_MOST_OUTPUT]
        end = next((at for at, line in enumerate(below) if _END.match(line)), len(below))
        lines = [
            line.strip() for line in below[:end] if line.strip() and len(line) < _LONGEST and line.strip() != "done"
        ]
        if not values and (rows := split_repeats(lines)):
            label = "cores " if _OF_CORES.search(loop["body"]) else ""
            return [(name, [f"{label}{line}" for line in own]) for name, own in rows]
        named = _name_values(loop["variable"], loop["body"], values) if values else []
        if named and (parts := _split_named(lines, values) or _cut_evenly(lines, values)):
            return [(name, own) for name, (_, own) in zip(named, parts, strict=True)]
    hosts = _split_hosts(text)
    return [
        (host, [line.strip() for line in part.text.splitlines() if line.strip() and not _SHELL.match(line)])
        for part in (hosts if loop or _are_hosts(hosts, text) else ())
        for host in expand_hosts(part.host)
    ]


def _split_named(lines: Sequence[str], values: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """Lines below or behind the name of each value; none where not each has its own, in their order."""
    parts = list(split_by_names(lines, values, 1))
    return parts if [name for name, _ in parts] == list(values) else []


def _name_values(variable: str, body: str, values: Sequence[str]) -> list[str]:
    """The values with what the command puts before or behind them, where they are no names by themselves.

    >>> _name_values("i", " ethtool rail$i | grep Speed", ["0"]), _name_values("b", " lspci -s ${b}:00.0 -vv", ["5e"])
    (['rail0'], ['5e:00.0'])
    """
    word = rf"\$(?:\{{{variable}\}}|{variable}(?!\w))"
    match = re.search(
        rf"(?<![\w$])(?P<before>[A-Za-z][\w.-]{{0,40}}){word}|{word}(?P<after>:[0-9a-f]{{2}}\.[0-7])", body
    )
    before, after = (match["before"] or "", match["after"] or "") if match and max(map(len, values)) < 5 else ("", "")
    if not before and all(map(str.isdecimal, values)):
        before = next((f"{kind} " for kind, tool in _KINDS if tool.search(body)), "number ")
    return [f"{before}{value}{after}" for value in values]


def _cut_evenly(lines: Sequence[str], values: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """As many lines for each value, where they come again in the same order."""
    each, rest = divmod(len(lines), len(values))
    if rest or not each:
        return []
    parts = [(value, lines[at * each : (at + 1) * each]) for at, value in enumerate(values)]
    heads = [[re.sub(r"[\W\d_]+", "", re.split(r"[:=]", line)[0]) for line in own] for _, own in parts]
    return parts if each == 1 or all(own == heads[0] for own in heads) else []
