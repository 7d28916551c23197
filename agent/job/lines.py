"""One line of a log: without colours and launcher prefixes, split where two ranks share it, with its rank and time.

Prefixes: srun -l, mpirun --tag-output (Open MPI 4 and 5), MPICH, torchrun, kubectl and stern, the container runtime,
pdsh and clush, Ray, journald, docker compose. Line forms of NCCL: NVIDIA/nccl v2.4 to v2.30, `src/debug.cc`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from probes.text import MONTHS, lazy_pattern

LINE_LIMIT = 4000  # characters of a line that are looked at
_MOST_PREFIXES = 4
_SHARE = 0.3  # of the lines of a file that an ambiguous prefix must be on
_COLOUR = lazy_pattern(r"\x1b\[[\d;]{0,20}[A-Za-z]")
_HEADER = lazy_pattern(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,63}):(?P<pid>\d{1,8}):(?P<tid>\d{1,8}) \[(?P<device>\d{1,3})\] "
    r"(?:(?P<place>[^\s:]{1,100}:\d{1,6}) (?:\(\w{1,60}\) )?)?(?:NCCL )?(?P<level>INFO|WARN|TRACE|ABORT|VERSION)\b ?"
)
# Of UCX and Open MPI: "[1647516906.396315] [gpu07:82049:0]", "[gpu-b07:4711] ***"
_NAMED = lazy_pattern(
    r"(?:\[\d{9,11}\.\d{1,9}\] )?\[(?P<host>(?=[\d.-]{0,63}[A-Za-z])[A-Za-z0-9][\w.-]{0,63}):(?P<pid>\d{2,8})"
    r"(?: {0,4}:\w{1,8}){0,2}\] "
)
# Of PSM3: "[1748048660.727] node7:rank3.python: "
_RANKED = lazy_pattern(
    r"(?:\[\d{9,11}\.\d{1,9}\] )?(?P<host>[A-Za-z][\w.-]{0,63}):rank(?P<rank>\d{1,7})(?:\.[\w.-]{1,60})?: "
)
_BARE_HEADER = lazy_pattern(r"NCCL (?P<level>INFO|WARN) ")
_TORCH_HEADER = lazy_pattern(r"\[rank\d{1,7}\]:\[[EWFI]\d{3,4} ")
# "[rank3]: ", "ProcessGroupNCCL.cpp:916] [Rank 3] " of PyTorch before 2.2, "(PID:47, Device:3, RankID:3)" of Ascend
_RANK = lazy_pattern(r"(?:\[rank|\[RANK:|(?:NCCL|HCCL)\.cpp:\d{1,6}\] \[Rank |, RankID:)(?P<rank>\d{1,7})[\])]")
_NPU = lazy_pattern(r"Device:(\d{1,3}), RankID:")
_ASCEND_PID = lazy_pattern(r"[\[(]PID: ?(?P<pid>\d{1,9})[\],]")
_LIBFABRIC_PID = lazy_pattern(r"libfabric:(?P<pid>\d{2,8}):")
_KNOWN = lazy_pattern(
    r"(?:\[[\d :.T-]{19,30}\] )?[\w.-]{1,64}:\d{1,8}:\d{1,8} \[|\[rank\d|NCCL version|RCCL version|srun: |slurmstepd: |"
    r"\[[EWFI]\d{3,4} |#\s|Traceback |\s{0,20}\d{2,15}\s{1,12}\d{1,15}\s{1,12}(?:float|half|double|int)|"
    r"libfabric:|\[\d{1,9},\d{1,7}\]<std|\[\w{1,7}\] ?HCCL"
)
_DAY, _CLOCK = r"20\d\d-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
# A prefix by its form
_PREFIX_FORMS: tuple[tuple[str, str], ...] = (
    ("tag", r"\[\d{1,9},(?P<task>\d{1,7})\]<std\w{3}>: ?"),
    ("tag", r"\[[\w.@-]{1,60},(?P<task>\d{1,7})\]<std\w{3}>: ?"),
    ("date", r"\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}(?= ?\[)"),
    ("torchrun", r"\[(?:default|(?!rank\d)[A-Za-z][\w-]{0,40}?)(?P<local>\d{1,5})\]:(?! ?\[(?!rank\d))"),
    ("torchx", r"[\w.-]{1,60}/\d{1,5} (?=\[(?:default|rank)\d)"),
    ("boxed", r"\s{0,4}[│|](?!CCL_)\s{0,4}(?=\S)"),
    # of a reply, of `grep -n`, of a browser's view of logs; times of whatever wrote them
    ("quoted", r"(?:[>`*] {0,4}){1,8}(?=\S)"),
    ("grep", r"[\w./-]{1,100}\.(?:log|err|out|txt)(?:[:-]\d{1,7}[:-]|: ?)"),
    ("stamp", rf"(?:\[{_DAY} {_CLOCK}\]|{_DAY}[ T]{_CLOCK}) "),
    ("oneccl", r"20\d\d:\d\d:\d\d-\d\d:\d\d:\d\d:\((?P<pid>\d{1,9})\) "),
    ("clock", rf"(?:\[{_CLOCK}\]|{_CLOCK}) "),
    ("viewer", r"\w{3} \d{1,2}, 20\d\d @ \d\d:\d\d:\d\d(?:\.\d{1,9})? {1,8}"),
    ("stream", r"(?:[\w.-]{1,100} )?\[std(?:out|err)\] "),
    ("slashed", r"20\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? "),
    ("pod", r"\[pod/(?P<pod>[\w.-]{1,120})/[\w.-]{1,120}\] ?"),
    (
        "ray",
        r"\((?:(?:\w{1,40} rank=|Worker_TP)(?P<task>\d{1,5})|[\w\[\]=, ]{0,80}?) ?pid=(?P<pid>\d{1,9})"
        r"(?:, ip=(?P<address>[\d.]{7,15}))?\) ?",
    ),
    ("runtime", r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] "),
    ("iso", r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d)[ \t]"),
    ("yarn", r"/?container_(?:e\d{1,6}_)?\d{10,16}_\d{1,8}_\d{1,4}_\d{1,8}: ?"),
    ("journal", r"\w{3} [ \d]\d [\d:]{8} (?P<host>[\w.-]{1,64}) [^\s:]{1,60}: "),
    ("kernel", r"(?P<host>(?=[A-Za-z.-]{1,40}\d)[A-Za-z][\w.-]{0,62}) kernel: "),
    # of vLLM: "ERROR 09-18 00:55:15 [core.py:718] ", "INFO 04-01 10:49:42 selector.py:34] "; of SGLang: "[.. TP3] "
    (
        "vllm",
        r"(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d "
        r"(?:\[[^\]\s]{1,80}|[\w./]{1,80}:\d{1,6})\] ?",
    ),
    ("sglang", r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?: TP(?P<task>\d{1,5})|(?: (?:DP|PP|TP|EP)\d{1,5}){1,4})\] "),
    ("compose", r"(?P<service>[\w.-]{1,60}) {0,20}\| "),
    (
        "bracket",
        r"\[(?P<host>(?!rank\d|c10d|mlx\d)(?=[A-Za-z.-]{1,40}\d)[A-Za-z][\w.-]{0,62})(?::(?P<task>\d{1,5}))?\]:? ?",
    ),
    (
        "rank",
        r"\[(?:(?:rank|proc(?:ess)?|task)[ =:]|[Rr]ank(?=\d{1,7}\] ))(?P<task>\d{1,7})\]:? ?|"
        r"rank[ =:](?P<task__2>\d{1,7}) (?=[A-Z]{4,8}\b)",
    ),
    ("srun", r"\s{0,6}(?P<task>\d{1,7}): ?"),
    ("mpich", r"\[(?P<task>\d{1,7})\] "),
    ("pdsh", r"(?P<host>[A-Za-z][\w.-]{0,62}|\d{1,3}(?:\.\d{1,3}){3})(?:: | (?=\[rank\d))"),
)
_AMBIGUOUS = ("compose", "bracket", "rank", "srun", "mpich", "pdsh")  # may be something else
_NESTED = ("bracket", "rank")
_PREFIXES = tuple((name, re.compile(form), name not in _AMBIGUOUS) for name, form in _PREFIX_FORMS)
_NO_HOSTS = lazy_pattern(
    r"(?:.{0,60}(?:Error|Exception|Warning)|srun|slurmstepd|pyxis|enroot|spank|libfabric|mpirun|INFO|WARN\w{0,4}|ERROR|FATAL|DEBUG|error|"
    r"warning|hint|kernel|nccl\w{0,40}|[A-Z][a-z]{2,20}|E[A-Z]\d{4})$"
)
_OF_RANKS = ("tag", "torchrun", "ray", "vllm", "sglang")  # prefixes that only programs of several processes write
_SAMPLE = 400  # lines by which ambiguous prefixes are judged

_DATES: tuple[re.Pattern[str], ...] = (
    re.compile(
        r"(?P<year>20\d\d)[-/:](?P<month>\d\d)[-/:](?P<day>\d\d)[ T-](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
        r"(?:[.,](?P<fraction>\d{1,9}))?"
    ),
    re.compile(
        r"(?:\[|^|\) |: )[EWFI](?P<year>20\d\d)?(?P<month>\d{1,2})(?P<day>\d\d) "
        r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
        r"(?:\.(?P<fraction>\d{1,9}))?"
    ),
    re.compile(
        r"\b(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?(?P<day>\d) "
        r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?: (?P<year>20\d\d))?"
    ),
)
_DAYS = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)  # before each month, in a leap year
_DATED = 140  # characters in which the time of a line is


class Moment(NamedTuple):
    """A time without a zone. `seconds`: since the start of the year, as in a leap year."""

    seconds: float
    year: int | None

    def format(self, year: int | None = None) -> str:
        """As RFC 3339 writes it, without a zone, and without a year where none is known."""
        whole = int(self.seconds)
        day, clock = divmod(whole, 86400)
        month = max(number for number, days in enumerate(_DAYS) if days <= day)
        text = f"{month + 1:02}-{day - _DAYS[month] + 1:02}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        known = self.year or year
        return f"{known}-{text}" if known else text


class Part(NamedTuple):
    """Lines of a file, both ends included."""

    first: int
    last: int


WHOLE = Part(1, 1 << 60)


class LogLine(NamedTuple):
    """What one rank, or the launcher, wrote."""

    text: str  # the message
    whole: str  # the line as it is in the file
    number: int
    file: int
    level: str | None = None  # INFO | WARN, of NCCL
    place: str | None = None  # "transport/net.cc:1302"
    host: str | None = None
    address: str | None = None  # of its host, or its pod, where a launcher names that alone
    pid: int | None = None
    device: int | None = None
    rank: int | None = None  # of the whole job
    task: int | None = None  # of the launcher
    at: Moment | None = None


class Prefixes:
    """Removes the launcher prefixes of one file."""

    def __init__(self, sample: Iterable[str]) -> None:
        lines = [line for line in sample if line.strip()][:_SAMPLE]
        counts: Counter[str] = Counter()
        for line in lines:
            for name, form, sure in _PREFIXES:
                if name in _NESTED or (name not in _OF_RANKS and sure):
                    continue
                match = form.match(line)
                if match is not None and (sure or not _is_word(match)):
                    counts[name] += 1
            counts.update(_find_nested(line))
        self.are_of_ranks = any(counts[name] >= max(3, len(lines) // 2) for name in _OF_RANKS)
        self._usual = {name for name, count in counts.items() if count >= max(3, _SHARE * len(lines))}

    def strip(self, line: str) -> tuple[str, dict[str, str]]:
        """The line without them, and what they name: task, local, pod, pid, address, host."""
        names: dict[str, str] = {}
        unsure: set[str] = set()
        for _ in range(_MOST_PREFIXES):
            bare = line.lstrip(" \t")  # a paste may be indented
            for name, form, sure in _PREFIXES:
                match = form.match(bare if sure else line)
                if match is None or not match.end():
                    continue
                rest = match.string[match.end() :]
                if not sure and (_is_word(match) or not (name in self._usual or _KNOWN.match(rest))):
                    continue
                if not sure:
                    if name in unsure or ("host" in names and "host" in match.groupdict()):
                        continue  # a word of the message: "gpu-a01: NVRM: .."
                    unsure.add(name)
                names |= {key.partition("__")[0]: value for key, value in match.groupdict().items() if value}
                line = rest
                break
            else:
                break
        return line, names


def _find_nested(line: str) -> list[str]:
    """Prefixes in brackets, and of ranks, that are behind a time."""
    names = []
    for name, form, sure in _PREFIXES * 2:
        match = form.match(line) if sure or name in _NESTED else None
        if match is not None and match.end() and not _is_word(match):
            line = line[match.end() :]
            names += [name] if name in _NESTED and name not in names else []
    return names


def _is_word(match: re.Match[str]) -> bool:
    """Whether what looks like a host's name begins an ordinary message."""
    return "host" in match.re.groupindex and _NO_HOSTS.match(match["host"]) is not None


def split_line(raw: bytes, number: int, file: int, prefixes: Prefixes) -> Iterator[LogLine]:
    """The messages of one line of a file."""
    whole = raw[:LINE_LIMIT].decode("utf-8", "replace").rstrip("\n")
    for part in whole.split("\r") if "\r" in whole else (whole,):
        line = _COLOUR.sub("", part) if "\x1b" in part else part
        if not line.strip():
            continue
        at = find_time(line)
        line, names = prefixes.strip(line)
        headers = list(_HEADER.finditer(line))[:8]
        if headers:
            yield from _split_records(line, headers, LogLine("", whole, number, file, at=at), names)
            continue
        yield from _split_messages(line, LogLine("", whole, number, file, at=at), names)


def _split_messages(line: str, blank: LogLine, names: dict[str, str]) -> Iterator[LogLine]:
    """Messages of PyTorch and others; a paste may have several records of PyTorch in one line."""
    starts = [match.start() for match in _TORCH_HEADER.finditer(line)][:64]
    task = int(names["task"]) if "task" in names else None
    for start, end in zip((0, *starts[1:]), (*starts[1:], len(line)), strict=True):
        record = line[start:end]
        host, pid = names.get("host"), int(names["pid"]) if "pid" in names else None
        rank = _RANK.search(record[:400])
        named = _NAMED.match(record) if host is None and record.startswith("[") else None
        if named is not None:
            host, pid = named["host"].partition(".")[0], int(named["pid"])
        ranked = _RANKED.match(record) if named is None and ":rank" in record[:120] else None
        if ranked is not None:
            rank, host = ranked, ranked["host"].partition(".")[0]
        if pid is None and "PID:" in record[:120] and (own := _ASCEND_PID.search(record[:120])) is not None:
            pid = int(own["pid"])
        if pid is None and (own := _LIBFABRIC_PID.match(record)) is not None:
            pid = int(own["pid"])
        npu = _NPU.search(record[:200]) if rank is not None and "RankID:" in record[:200] else None
        bare = _BARE_HEADER.search(record)
        text, level = (record[bare.end() :], bare["level"]) if bare else (record, None)
        yield blank._replace(
            text=text,
            level=level,
            host=host,
            address=names.get("address") or names.get("pod") or names.get("service"),
            pid=pid,
            device=int(npu[1]) if npu else None,
            rank=int(rank["rank"]) if rank else None,
            task=task,
            at=find_time(record) if start else blank.at,
        )


def _split_records(line: str, headers: list[re.Match[str]], blank: LogLine, names: dict[str, str]) -> Iterator[LogLine]:
    """Records of NCCL, which several ranks may have written into one line."""
    first = headers[0]["host"].partition(".")[0]
    glued = [
        len(header["host"].partition(".")[0]) - len(_cut_host(header["host"].partition(".")[0], first))
        for header in headers
    ]
    ends = [header.start() + more for header, more in zip(headers[1:], glued[1:], strict=True)] + [len(line)]
    for header, end in zip(headers, ends, strict=True):
        yield blank._replace(
            text=line[header.end() : end].strip(),
            level=header["level"],
            place=header["place"],
            host=_cut_host(header["host"].partition(".")[0], first),
            pid=int(header["pid"]),
            device=int(header["device"]),
            task=int(names["task"]) if "task" in names else None,
        )


def _cut_host(host: str, first: str) -> str:
    """A host without the end of the message that it is glued to, where the line begins with that host."""
    return first if host.endswith(first) else host


def strip_header(text: str) -> str:
    """A message without what its library writes before it: the rank, the time, the process.

    >>> strip_header("[rank3]: OSError: gone"), strip_header("E0110 16:55:35.140093 281933 rdma_context.cpp:66] gone")
    ('OSError: gone', 'rdma_context.cpp:66] gone')
    >>> strip_header("[1784273406.684686] [gpu07:994396:0]      ib_md.c:452  UCX  ERROR   gone")
    'UCX ERROR gone'
    """
    return _LIBRARY.sub("UCX ERROR ", _HEADS.sub("", text, count=1), count=1).strip()


_HEADS = lazy_pattern(
    r"^\s{0,8}(?:\[rank\d{1,7}\]: ?)?(?:\[?[EFWI]\d{4} [\d:.]{8,18} {1,8}\d{1,9} )?"
    r"(?:\[?20\d\d[-/]\d\d[-/]\d\d[ T][\d:]{8}(?:[.,]\d{1,9})?Z?\]? ?(?:- )?)?"
    r"(?:\[?(?:ERROR|CRITICAL|FATAL)\]?:? |\|CCL_ERROR\| )?"
    r"(?:\[\d{9,11}\.\d{1,9}\] )?(?:[\w.-]{1,64}:rank\d{1,7}(?:\.[\w.-]{1,60})?: )?"
    r"(?:\[[\w.-]{1,64}:\d{1,8} {0,4}(?: ?:\w{1,8}){1,2}\])?"
)
_LIBRARY = lazy_pattern(r"^\s{0,12}[\w.]{2,40}:\d{1,5} {1,4}UCX {1,3}(?:ERROR|FATAL) {1,4}")


def find_time(line: str) -> Moment | None:
    """The time that a line begins with.

    >>> find_time("[rank1]:[E606 20:32:23.5 x.cpp:1] a").format()
    '06-06T20:32:23'
    >>> find_time("[2026-11-03 04:12:09] gpu-a04:1:2 [0] x").format()
    '2026-11-03T04:12:09'
    """
    head = line[:_DATED]
    for form in _DATES:
        match = form.search(head)
        if match is None:
            continue
        groups = match.groupdict()
        if groups.get("name"):
            month, day = MONTHS.index(groups["name"]) + 1, int(match[0][4:6])
        else:
            month, day = int(groups["month"]), int(groups["day"])
        if not (1 <= month <= 12 and 1 <= day <= 31 and int(groups["hour"]) < 24):
            continue
        seconds = (_DAYS[month - 1] + day - 1) * 86400 + int(groups["hour"]) * 3600
        seconds += int(groups["minute"]) * 60 + int(groups["second"])
        fraction = groups.get("fraction")
        year = groups.get("year")
        return Moment(seconds + (float(f"0.{fraction}") if fraction else 0.0), int(year) if year else None)
    return None
