"""Lines of a kernel log in all the forms in which it is printed: /dev/kmsg records, dmesg, journalctl, syslog.

Kernel page: Documentation/ABI/testing/dev-kmsg; dmesg(1) (-T, -x, --time-format), journalctl(1) (-o short..).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from math import floor

from probes.kernel.passing_faults import NEEDLES as PASSING_NEEDLES
from probes.kernel.sentence import KERNEL_DRIVERS
from probes.kernel.sentences import SENTENCES
from probes.kernel.unexplained import DRIVER_LINE, DRIVERS, FAILURE_NEEDLES
from probes.named_tuple import NamedTuple
from probes.prose import is_denied
from probes.text import ESCAPES, lazy_pattern

LINE_CHARACTERS = 1000  # of one line; the kernel's own limit is 1024 bytes
_KERNEL_FACILITY = 0

_RECORD = lazy_pattern(
    r"(?P<priority>\d{1,4}),(?P<sequence>\d{1,19}),(?P<microseconds>\d{1,18}),[^;\n]{0,40};(?P<text>.*)"
)
_MONTH = r"(?:[^\W\d]{3,12}\.?|\d{1,2}[^\W\d])"  # "Feb", "août", "11月"
_CTIME = rf"\[(?P<ctime>[^\W\d]{{1,9}}\.? {{1,2}}{_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d \d{{4}})\]"
_HUMAN = r"\[(?P<human>[^\W\d]{3,12}\.?[ \d]\d \d\d:\d\d)\]"  # dmesg -H: the first line of a minute, then differences
_DELTA = r"\[ {0,12}\+(?P<delta>\d{1,9}\.\d{1,9})\]"
_SECONDS = r"\[ {0,8}(?P<seconds>\d{1,9}\.\d{1,9})(?: *[<@][^\]]{0,20})?\](?: ?\[ *[TC]\d{1,9}\])?"
_ISO = r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))"
_TAG = r"(?:\S{1,255} kernel(?:\[\d+\])?: )?"
_PRINTED = lazy_pattern(
    r"(?:\d{1,7} ?)?(?:<\d+>)?\s*(?:[\w.-]{2,64}: )?(?:\w+ *: {0,8}\w+ *: )?"  # numbered, a node's, with its level
    rf"(?:{_SECONDS}|{_CTIME}|{_HUMAN}|{_DELTA}|\[?{_ISO}\]?):? ?{_TAG}(?:\[ *\d+\.\d{{6}}\] )?(?P<text>.*)"
)
_DATE = (
    rf"[ \t]{{0,16}}(?P<logged>{_MONTH} {{1,2}}\d{{1,2}}(?: \d{{4}})? \d\d:\d\d:\d\d"
    r"|(?:[^\W\d]{2,5}\.? )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})? "
)
_DATED = lazy_pattern(  # as collectors and people of any country write it
    rf"(?:<\d{{1,3}}>)?(?:{_DATE}|[ \t]{{0,16}}[\[(]?"
    r"(?P<other>\d{1,4}[./-](?:\d{1,2}|[^\W\d]{3,5})[./-]\d{2,4},? \d\d:\d\d:\d\d)(?:[.,]\d{1,9})?[\])]?:? )"
)
_SYSLOG = lazy_pattern(  # without the host: journalctl --no-hostname
    rf"{_DATE}(?:[A-Z]{{2,5}} )?(?:(?!kernel: )\S{{1,255}} )?"
    rf"(?P<tag>[^:\[ ]{{1,64}})(?:\[\d+\])?: (?:{_SECONDS} )?(?P<text>.*)"
)
_OF_RFC_5424 = lazy_pattern(  # a program, its process, the kind of the message and data about it behind the host
    r"(?:<\d{1,3}>1 )?(?P<before>\d{4}-\d\d-\d\dT\S{8,24} \S{1,255} kernel) \S{1,12} \S{1,32} "
    r"(?:-|\[[^\]\n]{0,200}\]) \ufeff?"
)
_OTHER_TAG = lazy_pattern(r"\S{1,255} [\w@./-]{1,64}\[\d+\]: ")
_BARE = lazy_pattern(  # a time of a day is none that can be compared
    r"(?:\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? )?(?:[\w.-]{1,64} )?kernel: (?P<text>.*)"
)
_WITHIN = lazy_pattern(  # what only a driver writes, wherever in a line a log collector puts it
    r"\bS?Xid \(PCI:[0-9a-fA-F]|\bNVRM: (?:GPU|The NVIDIA|BAR\d) |\bNVRM:? (?:GPU\d{1,4} )?_?[a-z]\w{2,80}: "
    r"|\bpcieport [0-9a-f]{4,8}:[0-9a-f:.]{5,7}: (?:AER|DPC|PCIe)"
)
_BEHIND = lazy_pattern(
    r"(?:\\n)?\"(?:[,}\]]| \w{1,20}=).*|\\n\"$|(?<![ \t|`])[ \t|`]+$"
)  # the rest of a record of JSON or of a table's row
_UNDATED_WORDS = (  # what a log without times (dmesg -t) has of its own
    r"^Xid \(PCI:|\bSXid \(PCI:"
    r"|\bLinux version \d|\b(?:BIOS-e820|ACPI|NVRM): |^\[drm(?:\]|:)|^NETDEV WATCHDOG: |^infiniband \w+: "
    rf"|\b(?:pci|{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:"
)
_UNDATED = lazy_pattern(_UNDATED_WORDS)
_KERNEL_SENTENCES = (  # which no program writes
    r"INFO: task \S{1,40}:\d{1,10} blocked for more than|EDAC MC\d|Kernel panic - not syncing: |(?:watchdog: )?BUG: (?:"
    r"soft lockup|kernel NULL pointer|unable to handle)|(?:rcu: )?INFO: rcu_\w{1,40} (?:self-)?detected|mce: \[Hardware"
    r"|\{\d{1,10}\}\[Hardware Error\]|Memory failure: 0x|(?:Memory cgroup o|O)ut of memory: Kill"
)
_KERNEL_WORDS = (  # the same, and how a line begins that none begins with
    rf"{_KERNEL_SENTENCES}|nfs: server \S{{1,255}} not responding|libceph: |L(?:ustre|Net)(?:Error)?: "
    r"|nvme nvme\d{1,5}: |\S{1,15}: \(slave \S{1,32}\): |neighbour: |nf_conntrack: "
    r"|(?:scsi host\d{1,5}: )?(?:ib_srp|iser|rpcrdma|svcrdma): |\[qed[er]?_\w{1,60}:\d{1,5}(?:\([\w-]{0,32}\))?\]"
)
_DRIVER_WITHIN = lazy_pattern(  # what the kernel wrote, behind whatever a log collector or a bullet puts before it
    rf"(?<![\w./-])(?:{DRIVERS}) (?:[0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]|hl\d{{1,3}})(?: \S{{1,40}})?: "
    rf"|\[drm:\w{{3,60}} \[amdgpu\]\] |(?<![\w./-])(?:{_KERNEL_SENTENCES})"
)
_OF_KERNEL = lazy_pattern(_KERNEL_WORDS)
_NAMED_WITHIN = lazy_pattern(
    rf"\bS?Xid \(PCI:|\b(?:{DRIVERS}) ?[0-9a-f:]|{_KERNEL_WORDS}"
)  # in whatever a person writes
_BEGINS = lazy_pattern(  # the message of a driver, or of the kernel
    rf"(?:{_UNDATED_WORDS}|{_KERNEL_WORDS}|(?:{DRIVERS})[\d.]{{0,8}}(?:: | [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:))"
)
_OF_DRIVER = lazy_pattern(rf"(?:{_UNDATED_WORDS}|{_KERNEL_WORDS}|(?<![^ \]])(?:{DRIVERS})[\d.]{{0,8}}[: ])")


class Line(NamedTuple):
    """One line of the log."""

    text: str
    at: str | None = None  # RFC 3339, UTC, microseconds left out
    logged: str | None = (
        None  # what the log states of the time, where that gives no moment: "+68183.6 s", "Dec  1 02:16"
    )
    sequence: int | None = None
    seconds: float | None = None  # since boot
    delta: float | None = None  # since the line before
    continued: bool = False  # belongs to the line before


def lines(text: str, boot_time: int | None) -> Iterator[Line]:
    """Every line that the kernel wrote. `boot_time`: Unix seconds (btime of /proc/stat), None where not known."""
    minute, elapsed = "", 0.0  # of dmesg -H, whose lines have the time since the line before
    for raw in (ESCAPES.sub("", text) if "\x1b" in text else text).splitlines():
        line = _line(raw[:LINE_CHARACTERS], boot_time)
        if line is None or not line.text:
            continue
        if line.delta is not None:
            elapsed += line.delta
            line = line._replace(logged=f"{minute} +{elapsed:.3f} s".strip())
        elif line.logged:
            minute, elapsed = line.logged, 0.0
        yield line


_BOOT_RULE = lazy_pattern(r"-- (?:Reboot|Boot [0-9a-f]{32}) --")
_RESTARTED_SECONDS = 1.0  # by so much the time since boot goes back where the next boot begins


def split_boots(text: str) -> list[str]:
    r"""A log of several boots, boot by boot: a kernel starts where it names its version, where its time goes back, or
    where journalctl states it.

    >>> split_boots("[   90.000000] a\n[    1.000000] b\n-- Reboot --\n[    0.500000] c\n")
    ['[   90.000000] a', '[    1.000000] b', '-- Reboot --\n[    0.500000] c']
    """
    boots: list[list[str]] = [[]]
    last = 0.0
    for raw in text.splitlines():
        line = _line(raw[:LINE_CHARACTERS], None)
        if line is not None:
            restarted = line.seconds is not None and line.seconds < last - _RESTARTED_SECONDS
            if restarted or line.text.startswith("Linux version ") or _BOOT_RULE.fullmatch(line.text):
                boots.append([])
                last = 0.0
            last = line.seconds if line.seconds is not None else last
        boots[-1].append(raw)
    return ["\n".join(boot) for boot in boots if any(row.strip() and not _BOOT_RULE.fullmatch(row) for row in boot)]


_RULES = (b"Linux version ", b"-- Boot ", b"-- Reboot --")  # where a boot begins
_GO_ON = {  # how many of the next lines can belong to it
    b"PCIe Bus Error": 12,
    b"NVRM: The NVIDIA ": 12,
    b"Hardware Error]": 12,
    **dict.fromkeys((b"blocked for more than", b"soft lockup", b"hard LOCKUP", b"BUG: unable to handle"), 32),
    b"BUG: kernel NULL pointer": 32,
}
_OF_STATES = (b"NVRM: loading NVIDIA", b"Port module event", b"iommu: Default domain type")
_FIRST_LINES = 20
_PIECE_BYTES = 1 << 20
_FAILURES_LIMIT = 50_000  # lines that read as a failure and have no meaning: of a flood these are enough


def keep_read_lines(content: bytes, others: Iterable[str] = ()) -> bytes:
    """Of a very long log the lines that can be events, its first ones and those at which a boot begins. `others`:
    what further lines have that are read of it."""
    needles = (
        *dict.fromkeys(needle.encode() for needle in (*(row.needle for row in SENTENCES), *PASSING_NEEDLES)),
        *_GO_ON,
        *_RULES,
        b" bnxt_re",
        b": assigned",
        *_OF_STATES,
    )
    return keep_lines(content, (*needles, *(needle.encode() for needle in others)), FAILURE_NEEDLES)


def keep_lines(content: bytes, needles: Sequence[bytes], failures: Sequence[bytes] = ()) -> bytes:
    """Of a very long log its first lines and those that hold one of the literals; of a flood of one line its first and
    last ones. `failures`: what lines of drivers have that read as a failure."""
    # What another literal is a part of costs a search and finds nothing more
    needles = [n for n in needles if n in _GO_ON or not any(other != n and other in n for other in needles)]
    kept: list[bytes] = []
    start = more = size = 0
    most = _FLOOD_BYTES
    while start < len(content):
        end = content.find(b"\n", start + _PIECE_BYTES)
        end = len(content) if end < 0 else end + 1
        piece = content[start:end]
        lines_at = _find_lines(piece, needles)
        if more < _FAILURES_LIMIT:
            of_failures = _find_lines(piece, failures, DRIVER_LINE, lines_at)
            lines_at |= of_failures
            more += len(of_failures)
        if start == 0:
            lines_at |= _find_next_lines(piece, 0, _FIRST_LINES)
        lines = [piece[at : piece.find(b"\n", at) + 1 or len(piece)] for at in sorted(lines_at)]
        kept += lines
        size += sum(map(len, lines))
        if size > most:
            kept = _thin_flood(kept)
            size = sum(map(len, kept))
            most = max(_FLOOD_BYTES, 2 * size)
        start = end
    return b"".join(kept)


_FLOOD_BYTES = 12 << 20  # of kept lines
_FORM_BYTES, _TIME_BYTES = 300, 120  # of a line, that show its form; that its time takes
_ENDS = 2000  # lines of one form that are kept of a flood, first and last ones each
_VARYING = r"0x[0-9a-f]+|\d{4,}(?![\d:])|(?:\d\d:){2}\d\d\S{0,16}"
_VARIES = lazy_pattern(_VARYING.encode())
_VARIES_IN_TEXT = lazy_pattern(_VARYING)


def _thin_flood(kept: list[bytes]) -> list[bytes]:
    """Without the middle of what repeats thousands of times but for its time and its long numbers: codes, addresses and
    ports are short ones, so that another device or error is another form."""
    forms: dict[bytes, list[int]] = {}
    numbers: list[int] | None
    same: dict[bytes, list[int]] = {}  # most lines of a flood are equal behind their time
    for number, line in enumerate(kept):
        text = line[line.find(b"] ", 0, _TIME_BYTES) + 1 : _FORM_BYTES].rstrip()
        numbers = same.get(text)
        if numbers is None:
            numbers = same[text] = forms.setdefault(_VARIES.sub(b"", text), [])
        numbers.append(number)
    left_out = {number for numbers in forms.values() for number in _find_middle(numbers)}
    return [line for number, line in enumerate(kept) if number not in left_out]


def _find_middle(numbers: list[int]) -> list[int]:
    return numbers[_ENDS:-_ENDS] if len(numbers) > 2 * _ENDS else []


def find_form(text: str) -> str:
    """What is equal in the lines of a flood: no addresses, long numbers and times."""
    return _VARIES_IN_TEXT.sub("", text[:_FORM_BYTES])


def thin_lines(log: Sequence[Line]) -> tuple[Sequence[Line], dict[str, int]]:
    """The lines without the middle of a flood, and how many of each form that leaves out: a driver that prints a line
    a hundred thousand times takes no time from what else is in the log."""
    if len(log) <= 2 * _ENDS:
        return log, {}
    form_of = lru_cache(maxsize=4096)(find_form)
    forms: dict[str, list[int]] = {}
    for number, line in enumerate(log):
        forms.setdefault(form_of(line.text), []).append(number)
    middles = {form: middle for form, numbers in forms.items() if (middle := _find_middle(numbers))}
    left_out = {number for middle in middles.values() for number in middle}
    kept = [line for number, line in enumerate(log) if number not in left_out] if left_out else log
    return kept, {form: len(middle) for form, middle in middles.items()}


def _find_lines(
    piece: bytes, needles: Sequence[bytes], of: re.Pattern[bytes] | None = None, known: Collection[int] = ()
) -> set[int]:
    """Where the lines begin that hold one of the literals, and those that belong to them. `of`: what else they hold.
    `known`: those that are not looked for."""
    lines_at: set[int] = set()
    for needle in needles:
        found = piece.find(needle)
        while found >= 0:
            at = piece.rfind(b"\n", 0, found) + 1
            if at not in known and (of is None or of.search(piece, at, found)):
                lines_at.add(at)
            if needle in _GO_ON:
                lines_at |= _find_next_lines(piece, at, _GO_ON[needle])
            end = piece.find(b"\n", found)
            found = piece.find(needle, end) if end >= 0 else -1
    return lines_at


def _find_next_lines(piece: bytes, at: int, count: int) -> set[int]:
    lines_at = {at}
    for _ in range(count):
        at = piece.find(b"\n", at) + 1
        if at in (0, len(piece)):
            break
        lines_at.add(at)
    return lines_at


def is_kernel_log(log: Sequence[Line]) -> bool:
    """Whether any line is a kernel log's: a refused dmesg leaves a sentence where its log should be.

    >>> is_kernel_log(list(lines("dmesg: read kernel buffer failed: Operation not permitted", None)))
    False
    >>> is_kernel_log(list(lines("[    0.000000] x", None))), is_kernel_log(list(lines("NVRM: loading", None)))
    (True, True)
    """
    return any(not line.continued or _UNDATED.search(line.text) or _OF_KERNEL.match(line.text) for line in log)


def has_kernel_line(text: str) -> bool:
    r"""Whether a line of a text has the form of a kernel log and is by its words the kernel's or a driver's.

    >>> has_kernel_line("Hi,\n[ 12.5] mlx5_core 0000:3b:00.0: x\n"), has_kernel_line("[ 12.5] epoch 3: loss 0.1\n")
    (True, False)
    """
    rows = [row[:LINE_CHARACTERS] for row in text.splitlines()]
    parsed = (_line(row, None) for row in rows if _OF_DRIVER.search(row))
    return any(line and (_OF_KERNEL if line.continued else _OF_DRIVER).match(line.text) for line in parsed) or any(
        _WITHIN.search(row) or _DRIVER_WITHIN.search(row) for row in rows
    )


def format_time(boot_time: int | None, seconds: float) -> str | None:
    """The time of a message.

    >>> format_time(1_700_000_000, 12.5), format_time(None, 12.5)
    ('2023-11-14T22:13:32Z', None)
    """
    if boot_time is None:
        return None
    try:
        return _format_second(boot_time + floor(seconds))
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=64)
def _format_second(at: int) -> str:
    """Of a Unix time: many lines share a second."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(raw: str, boot_time: int | None) -> Line | None:
    if record := _RECORD.fullmatch(raw):
        if int(record["priority"]) >> 3 != _KERNEL_FACILITY:
            return None  # written by a program
        seconds = int(record["microseconds"]) / 1e6
        at = format_time(boot_time, seconds)
        return Line(record["text"], at, _since_boot(at, seconds), int(record["sequence"]), seconds)
    if raw.startswith(" ") and "=" in raw and re.fullmatch(r" [A-Z]+=\S*", raw):
        return None  # a property of the record before
    raw = _OF_RFC_5424.sub(r"\g<before>: ", raw, count=1) if " kernel " in raw else raw
    if printed := _PRINTED.match(raw):
        return (
            None if _OTHER_TAG.match(printed["text"]) and not printed["seconds"] else _parse_printed(printed, boot_time)
        )
    if (syslog := _SYSLOG.match(raw)) and syslog["tag"] == "kernel":
        seconds_text = syslog["seconds"]
        return Line(syslog["text"], None, syslog["logged"], None, float(seconds_text) if seconds_text else None)
    if (dated := _DATED.match(raw)) and (text := _find_message(raw[dated.end() :])):
        return Line(text, None, dated["logged"] or dated["other"])
    if syslog:
        return None
    if bare := _BARE.match(raw):
        return Line(bare["text"])
    if (named := _NAMED_WITHIN.search(raw)) and is_denied(raw, named.start()):
        return None
    if within := _DRIVER_WITHIN.search(raw):
        return Line(_BEHIND.sub("", raw[within.start() :], count=1), continued=True)
    return Line(raw.strip(), continued=True)


def _find_message(text: str) -> str | None:
    """What the kernel wrote, of a line behind its date where nothing else names the kernel: maybe behind the zone and
    the host."""
    for _ in range(3):
        if _BEGINS.match(text):
            return text
        word, _, text = text.partition(" ")
        if word == "kernel:":
            return text
        if ":" in word or "[" in word:  # a program
            return None
    return None


def _parse_printed(match: re.Match[str], boot_time: int | None) -> Line:
    if match["seconds"]:
        seconds = float(match["seconds"])
        at = format_time(boot_time, seconds)
        return Line(match["text"], at, _since_boot(at, seconds), None, seconds)
    if match["iso"]:
        return Line(match["text"], convert_to_utc(match["iso"]), None)
    if match["delta"]:
        return Line(match["text"], delta=float(match["delta"]))
    return Line(match["text"], None, match["ctime"] or match["human"])


def convert_to_utc(text: str) -> str | None:
    """A date of ISO 8601 with its zone as RFC 3339 in UTC.

    >>> convert_to_utc("2026-01-15T08:00:00,25+0100"), convert_to_utc("2026-13-15T08:00:00Z")
    ('2026-01-15T07:00:00Z', None)
    """
    text = re.sub(
        r"([.,]\d+)|([+-]\d\d):?(\d\d)$", lambda m: "" if m[1] else f"{m[2]}:{m[3]}", text.replace("Z", "+00:00")
    )
    try:
        return datetime.fromisoformat(text).astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def _since_boot(at: str | None, seconds: float) -> str | None:
    return None if at else f"+{seconds:.3f} s"
