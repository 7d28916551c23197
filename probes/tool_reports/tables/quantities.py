"""What numbers of a column are of, and which of them are bad: those below the others, above them, or both.

Only quantities that are alike on parts that do the same have a row here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.sentences.values import normalize

LOW, HIGH, ANY = "low", "high", "any"
_FEW = 128  # parts of one kind
_MOST_NUMBERED = 512  # of parts; names that are larger numbers are sizes


class Quantity(NamedTuple):
    """`bad`: which numbers; `least`: below it none is; `is_of_load`: it follows the use; `is_count`: others have none;
    `is_share`: in powers of ten; `is_light`: in decibels."""

    bad: str
    least: float = 0
    is_of_load: bool = False
    is_count: bool = False
    is_share: bool = False
    is_light: bool = False


_OF_NAME = (  # the first whose words a heading has
    (r"\b(?:remap\w{0,4}|retire\w{0,4}) (?:pend\w{0,3}|fail\w{0,4})", Quantity(HIGH, 1, is_count=True)),
    (r"\b(?:total mem\w{0,3}|mem\w{0,3} total|mtu|power (?:limit|cap))\b", Quantity(LOW)),
    (r"\b(?:dbm?|snr)\b", Quantity(LOW, is_light=True)),
    (r"\bb(?:it )?er(?:ror rate)?\b", Quantity(HIGH, is_count=True, is_share=True)),
    (r"\bloss\b(?! scale)|\blost\b|\boffset\b", Quantity(HIGH, 0.1, is_count=True)),
    (
        r"\b(?:err(?:or)?s?|symbol|crc|c?ce|sbe|dbe|ecc|aer|mces?|ck(?:sum)|checksums?|retired"
        r"|replays?|pauses?|pfc|xmit ?wait"
        r"|(?:re)?trans(?!fer)\w{0,10}|retry|retries|drops?|dropped|discards?|realloc\w{0,10}"
        r"|pending|flaps?|downed|rnr\w{0,8}|out of \w{1,8}|nak|nacks?"
        r"|(?:carrier|link|state) (?:changes|transitions?|downs)|timeouts?"
        r"|throttl\w{0,8}|\w?viol(?:ations?)?|restarts|re(?:link|train|set|connect|init)\w{0,4})\b",
        Quantity(HIGH, 50, is_count=True),
    ),
    (
        r"\b(?:xids?|uncorr\w{0,10}|mismatch\w{0,3}|fatal|los)\b|\b(?:down|missing|absent|inactive|failed|bad)$",
        Quantity(HIGH, 1, is_count=True),
    ),
)
_COMPARED = (
    (
        r"\b(?:tok(?:en)?s?|reqs?|requests|its?|samples"
        r"|images|imgs?|steps|seq)(?: ?/ ?| per )s(?:ec(?:ond)?)?\b|\bmfu\b",
        Quantity(LOW),
    ),
    (
        r"\b(?:[kmgt]i?b(?:it)?(?:p?s| ?/ ?s(?:ec)?)?|\w{0,12}bw|bandwidth|throughput|\w?flops?|tf|\w{0,3}bps|score"
        r"|[mg]t/s)\b",
        Quantity(LOW),
    ),
    (r"\b(?:rpm|flow|lpm|l/min|m ?w)\b", Quantity(LOW)),
    (r"\b(?:inlet|intake|ambient)\b", Quantity(HIGH, 32)),
    (r"\btemp|°c|\bc$|\bdeg c\b|celsius|\b(?:junction|hbm|core|die|hotspot)\b", Quantity(HIGH, 80)),
    (r"\b(?:clocks?|clk|[mg]hz)\b", Quantity(LOW, is_of_load=True)),
    (r"\b(?:power|pwr|watts?|w|leistung)\b", Quantity(LOW, is_of_load=True)),
    (
        r"(?<![/\w])(?:s|ms|us|ns|sec(?:onds)?|lat|latency|rtt|elapsed|jitter"
        r"|(?:step ?|iter\w{0,6} ?|wall ?|ping )time)\b",
        Quantity(HIGH),
    ),
    (r"\b(?:volts?|v|[vi](?:in|out)|amps?|ma|a|pressure|bar|spannung|strom)\b", Quantity(ANY)),
    (r"\b(?:gpus|npus|nics|hcas|nvlinks|links|fans|psus|drives|lanes|width)\b", Quantity(LOW)),
)
_NAMED = tuple((lazy_pattern(pattern), quantity) for pattern, quantity in _OF_NAME)
_MEASURED = tuple((lazy_pattern(pattern), quantity) for pattern, quantity in _COMPARED)
_BY_USE = lazy_pattern(  # what differs with the jobs that run
    r"\b(?:used?|usage|util\w{0,8}|load|jobs?|users?|mem(?:ory)?|procs?|process\w{0,3})\b|^%$|^v?\w{2,3}%"
)
_NOT_COMPARED = lazy_pattern(  # nor what a limit is, or how old
    r"\b(?:[rt]x(?! ?\(?(?:power|pwr|dbm|m ?w\b))|traffic|mem(?:ory)?|used?|usage|util\w{0,8}|load|size|free|capacity"
    r"|alloc(?!atable)\w{0,6}|avail\w{0,5}|idle|jobs?|users?|uptime|age|kwh?|energy|limit|max(?! temp)|min|threshold"
    r"|expected|price|cost|loss|lr|quota\w{0,5}|budget|hours|numa(?! nodes)|affinity)\b"
)
_OF_PARTS = lazy_pattern(
    r"\b(?:[gnhx]pus?|nics?|hcas?|ib|nvlinks?|links?|fans?|psus?|drives?|disks?|dimms?|lanes|devices?|rails?"
    r"|found|seen|visible|detected|neighbou?rs|peers|sessions)\b"
)
_OF_ALL_MEMORY = lazy_pattern(r"\b(?:total mem\w{0,3}|mem\w{0,3} total)\b")
_OF_COUNT = lazy_pattern(
    r"\b(?:counts?|census|number of|wc|routes)\b"
    r"|\b(?:lspci|lsblk|fi info|ib(?:stat\w{0,2}|v dev\w{0,6}|dev2netdev)"
    r"|(?:nvidia|npu|rocm|amd|hl) smi|rdma|show gids)\b"
    r".{0,120}\bgrep c\b"
)
_OF_RESOURCE = lazy_pattern(r"\b(?:queues?|spare|cores?|channels?|banks?|[mg]b|dimm|speed|huge ?pages)\b")
_OF_USE = lazy_pattern(  # of a line above a table
    r"\b(?:used?|usage|util\w{0,8}|load|free|before|idle|process\w{0,3}|procs|p(?:s|grep|idof)|hours?|days?|years?|jobs?|users?|rank"
    r"|order)\b"
)
_OF_LIMIT = lazy_pattern(r"\b(?:plan\w{0,4}|thresholds?|limits?|quotas?|budgets?|prices?|locked)\b")
_OF_SWEEP = lazy_pattern(
    r"(?i)\b(?:size|bytes|count|batch|bs|qd|seq|msg\w{0,6}|threads|numjobs|iodepth|percentile|step|epoch|iter\w{0,6}"
    r"|day|date|time|hours?|week|month|pid|mode|test|benchmark|job|bucket|queue|run|trial|attempt|case|tag)\b"
)
_OF_PLACE = lazy_pattern(r"\b(?:numa|affinity|cpus?|cores|socket)\b")
_OF_SERIAL = lazy_pattern(r"(?i)\b(?:sn|serial|guid|uuid)\b")
_SWEPT = lazy_pattern(
    r"(?i)p(?:5|10|25|50|75|90|95|98|99)(?:\.\d{1,3})?|\d{1,2}:\d\d.{0,20}|\d{1,9} ?[kmg]i?b?|\d{4}-\d\d-\d\d.{0,20}"
    r"|(?:epoch|step|iter|day|week|stage|layer|shard|run|svc|prio(?:rity)?|tc|vl|queue)\W?\d{1,9}"
)
_OF_STEP = lazy_pattern(r"\bjobs? (?:step\b|\d{1,12}\b)|\b(?:per|by|of|each) rank\b")  # of one job
_LETTER = lazy_pattern(r"(?<![(\[/])\b[a-z]\b(?![)\]/])")  # that is no unit


def find_quantity(words: str, unit: str, title: str) -> Quantity | None:
    """What a column is of, by its heading and unit, or by the line above where that is about it.

    >>> find_quantity("busbw", "", "").bad, find_quantity("", "", "alltoall per rail (GB/s)").bad
    ('low', 'low')
    >>> find_quantity("id", "", "speed"), find_quantity("mem used", "GB", ""), find_quantity("", "", "temps, GB/s")
    (None, None, None)
    """
    own, above = f"{words} {unit.lower()}".strip(), _LETTER.sub("", normalize(title.replace("dBm", "dbm")))
    if not words and _OF_LIMIT.search(above):
        return None
    if found := _find(own, _NAMED):
        return found
    if _NOT_COMPARED.search(words):
        return None
    if found := _find(own, _MEASURED):
        return found
    if not above or _OF_USE.search(_OF_STEP.sub("", above)) or _OF_LIMIT.search(above):
        return None
    measured = {quantity for pattern, quantity in _MEASURED if pattern.search(above) and not quantity.is_of_load}
    return _find(above, _NAMED) or (measured.pop() if len(measured) == 1 else None)


def _find(words: str, rows: Sequence[tuple[re.Pattern[str], Quantity]]) -> Quantity | None:
    return next((quantity for pattern, quantity in rows if pattern.search(words)), None)


def is_by_use(words: str) -> bool:
    """Whether a column is of the use that parts have."""
    return _BY_USE.search(words) is not None


def is_less(words: str, title: str, value: float, usual: float) -> bool:
    """Whether a number is less than the one that all others have alike, in a column of parts or of what they need. A
    column without words is of its title.

    >>> is_less("gpus", "", 7, 8), is_less("queues", "", 60, 63), is_less("queues", "", 8, 63)
    (True, False, True)
    >>> is_less("mem used", "", 8, 63), is_less("", "gpu count", 6, 8), is_less("", "power on hours", 1, 8)
    (False, True, False)
    """
    if not words:
        is_of_parts = _OF_PARTS.search(title) or _OF_COUNT.search(title)
        return bool(is_of_parts) and not _OF_USE.search(title) and value < (usual if usual <= _FEW else usual / 2)
    if _OF_ALL_MEMORY.search(words):
        return value < usual
    if _NOT_COMPARED.search(words) or words.endswith("%"):
        return False
    if _OF_PARTS.search(words):
        return value < usual
    return value <= usual / 2 and _OF_RESOURCE.search(words) is not None


def is_place(words: str) -> bool:
    """Whether a column is of the place of a part: cores and memory near it.

    >>> is_place("numa"), is_place("cpus allowed list"), is_place("gpus")
    (True, True, False)
    """
    return _OF_PLACE.search(words) is not None


def is_sweep(heading: str, names: Sequence[str]) -> bool:
    """Whether rows are of sizes, times or percentiles, which are not alike.

    >>> is_sweep("size", ["8M", "16M"]), is_sweep("", ["p50", "p99"]), is_sweep("node", ["1", "2"])
    (True, True, False)
    """
    if _OF_SWEEP.search(heading) or 2 * sum(_SWEPT.fullmatch(name) is not None for name in names) >= len(names):
        return True
    is_serial = _OF_SERIAL.search(heading) is not None
    return not is_serial and any(name.isdecimal() and int(name) > _MOST_NUMBERED for name in names)
