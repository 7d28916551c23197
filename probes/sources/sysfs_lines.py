"""Files of /sys, /proc and /etc as people show them: `grep "" FILES`, `head FILES`, files below their paths, a loop
over the counters of a port, and the same counters as `rdma statistic` prints them; the NUMA nodes of `numactl -H`
and `lscpu`.

What is not shown of a folder stays not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from probes.sources.memory import MemoryFiles
from probes.text import lazy_pattern

_MOST_FILES = 20_000
_LIMIT_CHARACTERS = 8 << 20
_LIMIT_LINE = 1000  # of a sentence
_PATH = (
    r"/(?:sys|proc|etc)(?:/(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]|pci[0-9a-f]{4,8}:[0-9a-f]{2}"
    r"|[\w.@+-]{1,64})){1,12}(?!:[0-9a-f]{2}:[0-9a-f]{2}\.)"  # which is the rest of an address
)
_BESIDE = lazy_pattern(rf"[> \t]{{0,40}}(?P<path>{_PATH}):(?P<value>[^\n]{{0,400}})")
_ABOVE = lazy_pattern(rf"[> \t]{{0,40}}==> (?P<path>{_PATH}) <==[ \t]*")
_FOLDER = lazy_pattern(  # of a command whose output names each file: a loop with `echo`, `grep . *` below `cd`
    r"(?P<folder>/sys/class/infiniband/[\w.-]{1,64}/ports/\d{1,3}/(?:hw_)?counters)(?:/?(?:[\$*\"']|$|;| )|/\{)"
)
_NAMED = lazy_pattern(r"[> \t]{0,40}(?P<name>[a-zA-Z]\w{2,50})(?: {1,40}| ?: ?|\t+| ?= ?)(?P<value>\d{1,20})[ \t]*")
_BELOW_CLASS = lazy_pattern(  # of `grep . */ports/*/counters/*` in /sys/class/infiniband
    r"[> \t]{0,40}(?P<path>[a-z][\w.-]{1,40}/ports/\d{1,3}/(?:hw_)?counters/\w{3,60}): ?(?P<value>\d{1,20})[ \t]*"
)
_STATISTIC = lazy_pattern(
    r"[> \t]{0,40}(?:link|\d{1,4}/\d{1,3}:) ?(?P<device>[\w.-]{1,64})/(?P<port>\d{1,3}):?(?:[ \t]{1,12}|$)"
    r"(?P<rest>(?:[a-z]\w{2,60}(?:[ \t]{1,12}|$)|\d{1,20}(?!\d)[ \t]{0,12}){0,800})"
    r"(?:[A-Z][a-z]{2} [\w :]{12,40})?"  # the date, of a loop that joined the lines
)
_OF_LINK = lazy_pattern(  # the command, whose filter left out the line of the port
    r"\brdma (?:-\w{1,8} )*statistic (?:show )?link (?P<device>[a-z][\w.-]{1,63})/(?P<port>\d{1,3})\b"
)
_PAIRS = lazy_pattern(  # its next line, which can begin with the number of the last name
    r"[> \t]{0,40}(?P<rest>(?:\d{1,20}(?!\d) ?)?(?:[a-z]\w{2,60} \d{1,20}(?!\d) ?){1,60}(?:[a-z]\w{2,60})?)[ \t]*"
)
_BOOTED = "BOOT_IMAGE="  # begins the command line of a kernel
_WORD = lazy_pattern(r"[a-z]\w*|\d+")  # two lines that were joined have no blank between them
_JSON_STATISTIC = lazy_pattern(
    r'\{"ifindex": ?\d{1,6}, ?"ifname": ?"(?P<device>[\w.-]{1,64})", ?"port": ?(?P<port>\d{1,3}), ?'
    r'(?P<rest>"[^{}\[\]]{2,20000})\}'
)
_JSON_PAIR = lazy_pattern(r'"(?P<name>[a-zA-Z]\w{2,60})": ?(?P<value>\d{1,20})\b')
_EXPORTED = lazy_pattern(  # by node_exporter
    r'node_infiniband_(?P<name>\w{3,60}?)(?:_total)?\{device="(?P<device>[\w.-]{1,64})",[^}]{0,200}?'
    r'port="(?P<port>\d{1,3})"[^}]{0,200}\}(?: =>)? (?P<value>\d[\d.e+]{0,24})'
)
_EXPORTED_STATES = {  # files of the port itself: linux include/rdma/ib_verbs.h, drivers/infiniband/core/sysfs.c
    "state_id": ("state", ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")),
    "physical_state_id": (
        "phys_state",
        ("", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"),
    ),
}
_EXPORTED_RATE, _GBIT = "rate_bytes_per_second", 8e-9
_EXPORTED_NAMES = {
    "port_errors_received": "port_rcv_errors",
    "port_receive_remote_physical_errors": "port_rcv_remote_physical_errors",
    "port_discards_transmitted": "port_xmit_discards",
    "port_packets_received": "port_rcv_packets",
    "port_packets_transmitted": "port_xmit_packets",
}
_NODE_LINE = lazy_pattern(  # of numactl -H; a terminal breaks the list of CPUs
    r"^[> \t]*node (?P<node>\d{1,4}) (?:cpus:(?P<cpus>[ \d,\r\n-]{0,8000}?)(?=\r?\n[> \t]*node |\Z)"
    r"|size: (?P<size>\d{1,9}) MB)[ \t\r]{0,80}$"
    r"|^[> \t]*NUMA node(?P<of>\d{1,4}) CPU\(s\):[ \t]{1,80}(?P<list>[\d,-]{0,4000})[ \t\r]{0,80}$"  # of lscpu
    r"|^[> \t]*(?P<row>\d{1,4}): {1,8}(?P<distances>\d{1,4}(?: {1,8}\d{1,4}){0,255})[ \t\r]{0,80}$",
    re.MULTILINE,
)
_NODES = "/sys/devices/system/node"
# Within a sentence: `cat PATH` -> 8, and behind it a file of the same folder
_WITHIN = lazy_pattern(
    rf"(?P<path>{_PATH}|(?<=`)[a-z][a-z_]{{3,40}}(?=`))[`'\"]{{0,2}} ?"
    r"(?:->|=>|→|=|is|reads|shows|returns|gives|sa(?:ys|id)) ?"
    r"[`'\"]{0,2}(?P<value>-?\d(?:[\w.]{0,20}\w)?(?: GT/s\b(?: PCIe)?)?)"
)
_ERROR = lazy_pattern(r"[ \t]*(?:cat|grep|head|tail|sudo|bash|-bash): .{0,300}")


def read_shown_files(text: str) -> MemoryFiles:
    """The files that the text shows, with their contents.

    >>> files = read_shown_files("/sys/class/infiniband/mlx5_1/ports/1/state:1: DOWN\\n")
    >>> files.read("/sys/class/infiniband/mlx5_1/ports/1/state")
    b'1: DOWN\\n'
    """
    contents = (
        dict(_list_numa_files(text[:_LIMIT_CHARACTERS])) if "node 0 cpus:" in text or "NUMA node0" in text else {}
    )
    current: str | None = None
    folder: str | None = None
    cut = ""  # a name at the end of a line, whose number begins the next one
    for match in _JSON_STATISTIC.finditer(text[:_LIMIT_CHARACTERS]) if '"ifname"' in text else ():
        of_port = f"/sys/class/infiniband/{match['device']}/ports/{match['port']}/hw_counters"
        contents |= {f"{of_port}/{name}": f"{value}\n" for name, value in _JSON_PAIR.findall(match["rest"])}
    for line in text[:_LIMIT_CHARACTERS].splitlines():
        if exported := _EXPORTED.match(line):
            with suppress(ValueError, OverflowError):
                name, content = _read_exported(exported["name"], float(exported["value"]))
                contents[f"/sys/class/infiniband/{exported['device']}/ports/{exported['port']}/{name}"] = f"{content}\n"
        elif statistic := _STATISTIC.fullmatch(line):
            current = None
            folder = f"/sys/class/infiniband/{statistic['device']}/ports/{statistic['port']}/hw_counters"
            cut = _read_pairs(contents, folder, _WORD.findall(statistic["rest"]))
        elif folder is not None and (pairs := _PAIRS.fullmatch(line)):
            cut = _read_pairs(contents, folder, _WORD.findall(f"{cut} {pairs['rest']}"))
        elif folder is not None and (named := _NAMED.fullmatch(line)):
            contents[f"{folder}/{named['name']}"] = f"{named['value']}\n"
        elif below := _BELOW_CLASS.fullmatch(line):
            contents[f"/sys/class/infiniband/{below['path']}"] = f"{below['value']}\n"
        elif line.startswith(_BOOTED):
            contents["/proc/cmdline"] = f"{line.strip()}\n"
        elif above := _ABOVE.fullmatch(line):
            current, folder = above["path"], None
        elif beside := _BESIDE.fullmatch(line):
            contents[beside["path"]] = f"{contents.get(beside['path'], '')}{beside['value'].strip()}\n"
            current = None
        elif looped := _FOLDER.search(line):
            current, folder = None, looped["folder"]
        elif asked := _OF_LINK.search(line):
            current, folder = None, f"/sys/class/infiniband/{asked['device']}/ports/{asked['port']}/hw_counters"
        elif line.startswith("==> "):
            current = folder = None
        elif "/sys/" in line and (within := dict(_list_within(line))):
            contents |= within
            current = None
        elif current is not None and line.strip() and not _ERROR.fullmatch(line):
            shown = line.strip().removeprefix(f"{current.rpartition('/')[2]} ")  # a loop names the file, too
            contents[current] = f"{contents.get(current, '')}{shown}\n"
        if len(contents) >= _MOST_FILES:
            break
    files = MemoryFiles()
    for path, content in contents.items():
        with suppress(ValueError):
            files.add(path, content.encode())
    return files


def _list_within(line: str) -> Iterator[tuple[str, str]]:
    """Files and their values that a sentence states.

    >>> dict(_list_within("`cat /sys/class/net/ens1/mtu` is 1500 and `speed` -> 100000"))
    {'/sys/class/net/ens1/mtu': '1500\\n', '/sys/class/net/ens1/speed': '100000\\n'}
    """
    folder = ""
    for match in _WITHIN.finditer(line[:_LIMIT_LINE]):
        path = match["path"] if match["path"].startswith("/") else f"{folder}/{match['path']}"
        if path.startswith("/sys/"):
            folder = path.rpartition("/")[0]
            yield path, f"{match['value']}\n"


def _list_numa_files(text: str) -> Iterator[tuple[str, str]]:
    """What `numactl -H` and `lscpu` print, as files of the kernel; sizes are rounded down to MiB.

    >>> list(_list_numa_files("node 0 cpus: 0 1\\nnode 0 size: 4 MB\\n"))[1]
    ('/sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal: 4096 kB\\n')
    """
    for match in _NODE_LINE.finditer(text):
        folder = f"{_NODES}/node{int(match['node'] or match['of'] or match['row'])}"
        if match["of"]:
            yield f"{folder}/cpulist", f"{match['list']}\n"
        elif match["distances"]:
            yield f"{folder}/distance", f"{match['distances']}\n"
        elif match["size"]:
            yield f"{folder}/meminfo", f"Node {int(match['node'])} MemTotal: {int(match['size']) * 1024} kB\n"
        else:
            words = match["cpus"].replace("\r", "").replace("\n", "").replace(",", " ").split()
            firsts = [
                int(first) for word in words if len(first := word.partition("-")[0]) < 5
            ]  # longer: two, at a break
            if len(firsts) == len(words) and firsts == sorted(firsts):
                yield f"{folder}/cpulist", f"{','.join(words)}\n"


def _read_exported(name: str, value: float) -> tuple[str, str]:
    """The file of a port that a metric of node_exporter is read from, and its content.

    >>> _read_exported("physical_state_id", 5.0), _read_exported("rate_bytes_per_second", 5e10)
    (('phys_state', '5: LinkUp'), ('rate', '400 Gb/sec'))
    """
    if name in _EXPORTED_STATES:
        file, states = _EXPORTED_STATES[name]
        return file, f"{int(value)}: {states[int(value)] if 0 <= value < len(states) else ''}"
    if name == _EXPORTED_RATE:
        return "rate", f"{value * _GBIT:g} Gb/sec"
    return f"counters/{_EXPORTED_NAMES.get(name, name)}", str(int(value))


def _read_pairs(contents: dict[str, str], folder: str, words: list[str]) -> str:
    """Adds each name with the number behind it; the name at the end that has none."""
    name = ""
    for word in words:
        if not word.isdecimal():
            name = word
        elif name:
            contents[f"{folder}/{name}"] = f"{word}\n"
            name = ""
    return name
