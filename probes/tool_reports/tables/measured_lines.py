"""Bandwidths and speeds that a benchmark prints in a line per host or device: one that is far below all others.

Lines of one form, which differ in numbers and names alone; each names its host or part. No tool has this form of its
own: RVS, loops over hosts and notes of people have it. Traffic of a running job is no measurement, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.text import find_median, lazy_pattern, short_lines
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import find_part
from probes.tool_reports.tables.entries import ADDRESS, FEWEST, list_far

_LIMIT_LINE, _MOST_LINES, _MOST_REPORTS = 300, 4000, 16
_PAIR = 2  # hosts, between which it was measured
_SPREAD = 0.25  # of the median; results of benchmarks differ by less
_VALUE = lazy_pattern(
    r"(?<![\w.])(?P<value>\d{1,6}(?:\.\d{1,4})?) ?"
    r"(?P<unit>[GTM]i?B/s(?:ec)?|[GM]Bps|[GM]b/s(?:ec)?|[GM]bps|[GM]bits?/s(?:ec)?|[TG](?:FLOPS|flops|FLOP/s))(?![\w/])"
)
_OF_BENCHMARK = lazy_pattern(
    r"(?i)(?<![a-z])(?:bandwidths?|\w{0,20}busbw|algbw|bw|benchmarks?|all[_ -]?(?:reduce|gather|to[_ -]?all)"
    r"|[nrh]ccl\w{0,20}|p2p|h2d|d2h|d2d|gemm|measured|stress|rvs|gst|pebb|pbqt|perftest|iperf3?|babel|hpl)(?![a-z])"
)
_OF_TRAFFIC = lazy_pattern(r"(?i)\b(?:[rt]x|util\w{0,12}|usage|load|traffic|current(?:ly)?|in use|read|write)\b")
_HOST = lazy_pattern(
    r"(?:^|[\s\[(|])(?:(?:host|node|server|worker)[ =:]{1,3})?"
    r"(?P<host>(?!(?:[bt]?fp?|u?int|sm|gen|v|x|k|step|iter|run|test|size|batch|level|layer|epoch|stage|dim|seq)\d)"
    r"[a-z][a-z-]{0,24}\d{1,5}(?:[.-]\w{1,30}){0,4})"
    r"(?=[\s:,|=\])]|$)"
)
_RANK = lazy_pattern(r"(?i)\b(?P<rank>(?:rank|device|card|slot|gpu|npu)[ #:=]{1,3}\d{1,4})\b")
_NUMBER = lazy_pattern(r"0x[0-9a-fA-F]{1,16}|\d{1,20}")


def list_slow_lines(text: str) -> list[ToolReport]:
    """Hosts or devices whose value is far below those of the others. Raises ParseError where the text is too long.

    >>> rows = "".join(f"host n{n}: {21 if n == 3 else 180} GB/s\\n" for n in range(1, 6))
    >>> [(report.subject, report.detail) for report in list_slow_lines("all_reduce bandwidth\\n" + rows)]
    [('n3', (('what', '21 GB/s, the others 180 GB/s'),))]
    """
    if not _OF_BENCHMARK.search(text):
        return []
    groups: dict[tuple[str, int, str], dict[str, list[float]]] = {}
    for line in short_lines(text, _LIMIT_LINE)[:_MOST_LINES]:
        for key, subject, value in _read_line(line):
            groups.setdefault(key, {}).setdefault(subject, []).append(value)
    return [report for (_, _, unit), values in groups.items() for report in _compare(values, unit)][:_MOST_REPORTS]


def _read_line(line: str) -> Iterator[tuple[tuple[str, int, str], str, float]]:
    """The values of a line: of which form it is, the host or device, the value."""
    matches = list(_VALUE.finditer(line))
    if not matches or _OF_TRAFFIC.search(line):
        return
    rest = _VALUE.sub(" ", line)
    subject = _name(rest)
    if subject is None:
        return
    form = " ".join(_NUMBER.sub("0", ADDRESS.sub("0", rest)).split())
    for at, match in enumerate(matches):
        yield (form, at, match["unit"]), subject, float(match["value"])


def _name(line: str) -> str | None:
    """The host and the part that a line names; None where it names none, or several parts."""
    hosts = list(dict.fromkeys(match["host"] for match in _HOST.finditer(line)))
    if len(hosts) > _PAIR:
        return None
    rank, part = _RANK.search(line), find_part(line)
    named = part or (rank["rank"] if rank else None)
    return " ".join(name for name in (" - ".join(hosts), named) if name) or None


def _compare(values: dict[str, list[float]], unit: str) -> Iterator[ToolReport]:
    own = [(subject, find_median(row)) for subject, row in values.items()]
    for at, usual in list_far([value for _, value in own], is_low=True, spread=_SPREAD) if len(own) >= FEWEST else ():
        subject, value = own[at]
        what = f"{value:g} {unit}, the others {usual:g} {unit}"
        yield state_fault("below-bandwidth", subject, what)
