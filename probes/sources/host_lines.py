"""Lines of several hosts in one text, as parallel shells, configuration tools and monitoring print them.

Before each line (pdsh, clush), below a heading (ansible, `clush -b`, dshbak, a loop over ssh), or in a label of a
metric (Prometheus). Of one host the lines stay as they are: `unwrap` cuts its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from probes.kernel.sentence import KERNEL_DRIVERS
from probes.named_tuple import NamedTuple
from probes.sources.margins import is_margin
from probes.text import lazy_pattern

_NAME = r"[A-Za-z][\w.-]{0,62}\w|\d{1,3}(?:\.\d{1,3}){3}"
_BEFORE = lazy_pattern(rf"(?P<host>{_NAME}):(?:$| (?P<rest>[^\n]*))")
_OF_ANSIBLE = lazy_pattern(r"(?P<host>[A-Za-z][\w.-]{0,63}) \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b[^\n]{0,40}")
_ONE_LINE = lazy_pattern(  # ansible -o
    r"(?P<host>[A-Za-z][\w.-]{0,63}) \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d{1,3} \| \(std(?:out|err)\) (?P<rest>[^\n]*)"
)
_ENDED = "non-zero return code"  # which ansible puts behind it without a blank
_RULE = lazy_pattern(r"[-=]{4,80}[ \t]*")
_NAME_ALONE = lazy_pattern(r"(?P<host>[A-Za-z][\w.,\[\]-]{0,200})(?: \(\d{1,6}\))?[ \t]*")
_BETWEEN = lazy_pattern(
    r"(?:[=#*]{2,40}|-{2,40}|[=-]{1,40}>|>{2,8}) ?(?P<host>[A-Za-z][\w.-]{1,62}) ?[=#*<>-]{0,40}:?[ \t]*"
)
_DEVICE = lazy_pattern(  # what else than hosts a loop names above what it prints
    r"(?:mlx[45]_|GPU|NPU|[gn]pu(?=\d$)|eth|en[ops]|ib|accel|hl|rank|card|bond|nvme|mc|csrow|nvswitch|switch|port|device|nd|test|"
    r"step|iter|sample|run)[\w.]{0,12}"
)
_IS_HOST = lazy_pattern(  # whatever is behind the name: sentences of tools are read behind one, too
    r"(?:[a-z]{1,12}-)?(?:(?:gpu|npu|compute|worker)-?(?:node|host|worker)?|node|host|dgx|hgx|cn)[a-z]{0,2}-?"
    r"(?:[\w]{1,8}-){0,3}\d{1,5}(?:\.[\w.-]{1,80})?"
)
_SUFFIX = lazy_pattern(r"\.(?:txt|log|out)$")
_LABEL = lazy_pattern(
    r"\w{3,100}\{[^}\n]{0,1600}?\b(?:[Hh]ostname|instance|nodename)=\"(?P<host>[\w.-]{1,64})(?::\d{1,5})?\""
)
_POD = lazy_pattern(r"\[pod/(?P<pod>[\w.-]{1,253})/[\w.-]{1,63}\] (?P<rest>[^\n]*)")  # kubectl logs --prefix
_TOLD = lazy_pattern(  # the command that each host ran, as it is given to the tool
    r"[^\n]{0,200}?\b(?:pdsh|clush|ansible|pssh|parallel-ssh|xdsh|psh|salt|mpssh|srun|rsh|ssh)\b[^\n]{0,200}?"
    r"(?P<quote>['\"])(?P<command>[a-z][^\n]{1,400}?)(?P=quote)(?:[^\n'\"]{0,80})"
)
_PROMPT = lazy_pattern(r"[ \t>]{0,40}(?:[$#] |\[?[\w-]{1,40}@)")
_HEAD_CHARACTERS = 8 << 10
_MOST_HOSTS = 64
_LEAST_SHARE = 0.5  # of the lines, with a name before them
_LONGEST = 4000


class HostLines(NamedTuple):
    """What one host printed."""

    host: str
    text: str
    numbers: Sequence[int]  # of its lines in the whole text, from 1


def split_hosts(text: str, holds_output: Callable[[list[str]], bool] | None) -> list[HostLines]:
    """The lines of each host, the command that all ran above them where the text states it; none where the text is
    of one host, or of none that it names. `holds_output`: whether a known output is in these lines; None: any text will
    do.

    >>> both = split_hosts("n7: CA 'mlx5_0'\\nn8: CA 'mlx5_0'\\nn7: \\tPort 1:\\n", lambda lines: lines[0][0] == "C")
    >>> [(part.host, part.text, part.numbers) for part in both]
    [('n7', "CA 'mlx5_0'\\n\\tPort 1:\\n", [1, 3]), ('n8', "CA 'mlx5_0'\\n", [2])]
    >>> below = split_hosts("n7 | CHANGED | rc=0 >>\\nup\\nn8 | CHANGED | rc=0 >>\\ndown\\n", bool)
    >>> [(part.host, part.text, part.numbers) for part in below]
    [('n7', 'up\\n', [2]), ('n8', 'down\\n', [4])]
    >>> [part.host for part in split_hosts("[pod/x-7d/c] up\\n[pod/x-9k/c] down\\n", bool)]
    ['x-7d', 'x-9k']
    """
    marks = [mark for mark, hint in _HINTS if hint.search(text)]
    lines = text.splitlines(keepends=True) if marks else []
    if _mark_before in marks and not list(_mark_before(text[:_HEAD_CHARACTERS].splitlines(keepends=True))):
        marks.remove(_mark_before)
    for mark in marks:
        marked = list(mark(lines))
        rows: dict[str, list[tuple[int, str]]] = {}
        for number, host, line in marked:
            rows.setdefault(host, []).append((number, line))
        if not 2 <= len(rows) <= _MOST_HOSTS or not (mark is _mark_pods or _are_alike(list(rows))):
            continue
        if all(map(_DEVICE.fullmatch, rows)):
            continue
        parts = [_gather(host, own) for host, own in rows.items()]
        is_new = (
            mark is not _mark_before
            or holds_output is None
            or all(map(_IS_HOST.fullmatch, rows))
            or is_margin([lines[number] for number, *_ in marked], holds_output)
        )
        command = _find_command(lines[: marked[0][0]])
        parts = [_with_command(part, command) for part in parts] if command else parts
        if is_new and (
            holds_output is None or any(holds_output(part.text.splitlines(keepends=True)) for part in parts)
        ):
            return parts
    return []


def find_hosts(text: str) -> list[str]:
    """The hosts of a text in which every line is of one of several; none where it is of one, or has other lines.

    >>> find_hosts("n7: 400 Gb/sec (4X NDR)\\nn8: 100 Gb/sec (4X EDR)\\n"), find_hosts("n7 | CHANGED | rc=0 >>\\nup\\n")
    (['n7', 'n8'], [])
    """
    lines = text[:_HEAD_CHARACTERS].splitlines(keepends=True)
    below = sorted({host for _, host, _ in _mark_headings(lines)})
    before = list(_mark_before(lines))
    filled = sum(bool(line.strip()) and not _PROMPT.match(line) for line in lines)
    hosts = below or (sorted({host for _, host, _ in before}) if len(before) == filled else [])
    return hosts if len(hosts) > 1 and _are_alike(hosts) and not any(map(_DEVICE.fullmatch, hosts)) else []


def is_name_of_host(name: str) -> bool:
    """Whether it reads as the name of a host, without a tool for several hosts beside it.

    >>> is_name_of_host("gpu-node-07"), is_name_of_host("mlx5_0")
    (True, False)
    """
    return _IS_HOST.fullmatch(name) is not None and _DEVICE.fullmatch(name) is None


def _are_alike(hosts: Sequence[str]) -> bool:
    """Whether the names differ in their numbers alone, as those of hosts of one cluster do.

    >>> _are_alike(["gpu-07", "gpu-112"]), _are_alike(["error", "warning"])
    (True, False)
    """
    return len(set(map(_count_out, hosts))) == 1


def _count_out(host: str) -> str:
    """The name with 0 for each number, or range of numbers, in it."""
    return re.sub(r"\[[\d,-]{1,120}\]|\d+", "0", host)


def _gather(host: str, rows: Sequence[tuple[int, str]]) -> HostLines:
    return HostLines(host, "".join(line for _, line in rows), [number + 1 for number, _ in rows])


def _find_command(lines: Sequence[str]) -> str | None:
    """The last command before the lines that a tool gave to all hosts."""
    matches = (_TOLD.match(line) for line in reversed(lines) if len(line) < _LONGEST)
    return next((match["command"] for match in matches if match), None)


def _with_command(part: HostLines, command: str) -> HostLines:
    return HostLines(part.host, f"$ {command}\n{part.text}", [part.numbers[0], *part.numbers])


_Marked = Iterator[tuple[int, str, str]]  # the number of a line from 0, its host, and the line


def _mark_before(lines: Sequence[str]) -> _Marked:
    """Lines with the name of a host before them, where most have one."""
    matches = [_BEFORE.match(line.rstrip("\r\n")) if len(line) < _LONGEST else None for line in lines]
    filled = sum(bool(line.strip()) for line in lines)
    if sum(match is not None for match in matches) >= _LEAST_SHARE * filled:
        kinds = Counter(_count_out(match["host"]) for match in matches if match)
        kind = kinds.most_common(1)[0][0] if kinds else ""
        for number, match in enumerate(matches):
            if match and _count_out(match["host"]) == kind:
                yield number, match["host"], f"{match['rest'] or ''}\n"


def _mark_headings(lines: Sequence[str]) -> _Marked:
    """Lines below a heading that names their host. Prose behind an output is among them: it is no output."""
    host: str | None = None
    for number, line in enumerate(lines):
        found = _find_heading(lines, number)
        if found is not None:
            host = found
        elif host is not None and not (_RULE.fullmatch(line.rstrip("\r\n")) and _is_ruled(lines, number)):
            yield number, host, line


def _is_ruled(lines: Sequence[str], number: int) -> bool:
    """Whether this line is one of two rules around the name of a host."""
    return any(0 < at < len(lines) - 1 and _find_heading(lines, at) for at in (number - 1, number + 1))


def _find_heading(lines: Sequence[str], number: int) -> str | None:
    """The host that this line names for those below it."""
    line = lines[number].rstrip("\r\n")
    if len(line) > _LONGEST:
        return None
    if match := _OF_ANSIBLE.match(line):
        return match["host"]
    if (match := _BETWEEN.fullmatch(line)) and re.search(r"\d", match["host"]) and not _DEVICE.fullmatch(match["host"]):
        return _SUFFIX.sub("", match["host"])
    is_framed = 0 < number < len(lines) - 1 and all(
        _RULE.fullmatch(lines[at].rstrip("\r\n")) for at in (number - 1, number + 1)
    )
    match = _NAME_ALONE.fullmatch(line) if is_framed else None
    return match["host"] if match and not _DEVICE.fullmatch(match["host"]) else None


def _mark_labels(lines: Sequence[str]) -> _Marked:
    """Metrics, of each the host in its labels."""
    for number, line in enumerate(lines):
        if len(line) < _LONGEST and (match := _LABEL.match(line)):
            yield number, match["host"], line


def _mark_pods(lines: Sequence[str]) -> _Marked:
    """Lines of logs with their pod before them; those of one kind have names of their own."""
    for number, line in enumerate(lines):
        if len(line) < _LONGEST and (match := _POD.match(line)):
            yield number, match["pod"], f"{match['rest']}\n"


def _mark_one_line(lines: Sequence[str]) -> _Marked:
    """What each host printed on the line behind its name, with the ends of lines as two letters."""
    for number, line in enumerate(lines):
        if len(line) < _LONGEST and (match := _ONE_LINE.match(line)):
            yield from (
                (number, match["host"], f"{part}\n") for part in match["rest"].removesuffix(_ENDED).split("\\n")
            )


_HINTS = (  # a way, and what is in a text for which it is tried
    (_mark_one_line, lazy_pattern(r"^[\w.-]{1,64} \| \w{6,7} \| rc=\d{1,3} \| \(std", re.MULTILINE)),
    (
        _mark_headings,
        lazy_pattern(
            r"^[\w.-]{1,64} \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE)\b"
            r"|^(?:[=#*-]{2,40}|[=-]{1,40}>|>{2,8}) ?[A-Za-z][\w.-]{1,62} ?[=#*<>-]{0,40}:?[ \t]*$"
            r"|^[-=]{4,80}[ \t]*\r?\n[A-Za-z][^\n]{0,220}\n[-=]{4,80}[ \t]*$",
            re.MULTILINE,
        ),
    ),
    (_mark_pods, lazy_pattern(r"^\[pod/", re.MULTILINE)),
    (_mark_before, lazy_pattern(rf"^(?:{_NAME}):(?: |$)", re.MULTILINE)),
    (_mark_labels, lazy_pattern(r"^\w{3,100}\{[^}\n]{0,1600}?\b(?:[Hh]ostname|instance|nodename)=\"", re.MULTILINE)),
)

_OF_KERNEL = lazy_pattern(
    r"(?:NVRM: (?:Xid \(|GPU [0-9a-f]{4})|nvidia-nvswitch\d{1,2}: SXid "
    rf"|\b(?:{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7][^\n:]{{0,40}}: )[^\n]{{1,600}}"
)
_OF_NODE = lazy_pattern(r"\bnode/(?P<node>[\w.-]{1,200})[ \t]")
_NODE_NAME = lazy_pattern(r"Name: +(?P<node>[\w.-]{1,200})[ \t]*$")


def list_quoted_lines(text: str) -> dict[str | None, tuple[int, str]]:
    """Lines of the kernel's log that messages quote, and the number of the first line with one, from 0: by the node
    that they are of; None: the text does not state it.

    >>> list_quoted_lines("2m   Warning   XIDError   node/n7   NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off\\n")
    {'n7': (0, 'kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off\\n')}
    """
    quoted: dict[str | None, tuple[int, str]] = {}
    node: str | None = None
    for number, line in enumerate(text.splitlines()):
        if len(line) >= _LONGEST:
            continue
        if name := _NODE_NAME.match(line):
            node = name["node"]
        if match := _OF_KERNEL.search(line):
            of_node = _OF_NODE.search(line)
            own = of_node["node"] if of_node else node
            first, before = quoted.get(own, (number, ""))
            quoted[own] = first, f"{before}kernel: {match[0].rstrip()}\n"
    return quoted
