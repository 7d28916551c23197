"""How long the steps of a job took, by its own lines: the times or rates that trainers and servers print.

A form is one way to print it, such as "elapsed time per iteration (ms): 812.3", "1.20s/it" or "3.1 samples/s". Values
of one file that are printed in one form, by lines that begin alike, are a series.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from agent.job.lines import Moment, find_time
from probes.text import find_median, lazy_pattern

_MOST_SERIES, _MOST_POINTS = 200, 200_000
_MOST_TIMES = 4000  # of a series that are kept
_ALIKE_BYTES = 12  # of the beginning of a line without its digits
_LINE_BYTES, _HEAD_BYTES = 2000, 120
_UNITS = {b"ms": 1e-3, b"us": 1e-6, b"min": 60.0, b"minutes": 60.0}
_WORK = rb"(?:step|iter(?:ation)?|batch|it)"
_THING = rb"(?:it|iter|step|sample|seq|sequence|token|tok|image|img|batch)(?:e?s)?"
_BY_DEMAND = lazy_pattern(  # servers are as fast as they are asked
    rb"(?:prompt|generation|gen) throughput|(?:Decode|Prefill) batch|#running-req|"
    rb"(?:Load|Download|Generat|Captur|Map)ing?\b"
)
_SIZE = lazy_pattern(rb"(?:batch[ _]?size|seq(?:uence)?[ _]?len(?:gth)?|n(?:um)?_?tokens)['\"]?[ :=]{1,4}(\d{1,12})\b")
_EVALUATES = lazy_pattern(rb"(?i)\b(?:eval(?:uation)?|validation)\b(?!_)")
_STEP_NUMBER = lazy_pattern(rb"\b(?:[Ss]tep|[Ii]ter(?:ation)?)s?[ :=]{1,3}(\d{1,9})\b")
_GAPS = -1  # the form of lines that print no pace
_MOST_GAPS = 20_000
_LEAST_GAP = 3.0  # seconds: times have whole seconds
_VALUE = rb"(?P<value>\d[\d.,]{0,15})"


class _Form(NamedTuple):
    """One way to print the pace. `is_rate`: more of it is faster."""

    pattern: re.Pattern[bytes]
    is_rate: bool
    is_part: bool = False  # of a step, beside the time of its data


# Printed beside the time of a step: what of it was spent in waiting for data, and how often was compiled
_OF_DATA = re.compile(
    rb"(?i:\b(?:input|(?:data(?:loader)?|batch)(?:[_ -]?(?:load(?:er|ing)?|wait|fetch(?:ing)?|generator))?)(?<!batch)"
    rb"(?:[_ ](?:time|wait|timing))?(?: ?[\[(]s[\])]| in s)?['\"]?[ :=]{1,8})" + _VALUE + rb" ?(?P<unit>us|ms|s\b)?"
)
_COMPILED = re.compile(
    rb"(?i:compil(?:es?|ed|ations?)(?:[_ ](?:count|total))?['\"]?[ :=]{1,4}(?P<value>\d{1,7})\b(?!\.))"
)

SIDE = 0  # the form of what is done beside the steps
_FORMS = (
    _Form(
        re.compile(
            rb"(?i:\b(?:(?:check ?point|ckpt)\w{0,3}|sav(?:ed|ing)|eval(?:uation)?|validation)\b(?!_)[^\n]{0,120}?"
            rb"\b(?:took|in|time|duration)[ :=(]{1,4})" + _VALUE + rb" ?(?P<unit>ms|s|secs?|seconds?|min|minutes)\b"
        ),
        False,
    ),
    _Form(re.compile(rb"elapsed time per iteration \((?P<unit>ms|s)\): {0,8}" + _VALUE), False),
    _Form(re.compile(_VALUE + rb" ?(?P<unit>us|ms|s|secs?|seconds?)(?: ?/ ?| per )" + _WORK + rb"\b(?! ?[:=])"), False),
    _Form(
        re.compile(
            rb"\b(?:(?:train_)?" + _WORK + rb"[ _](?:time|timing|duration)|(?:time|sec(?:onds)?)[ _/](?:per[ _])?"
            + _WORK + rb"|dt)(?: in s)?(?: ?[\[(](?P<unit>us|ms|s|sec|seconds)[\])])?['\"]?"
            rb"(?: ?[:=] {0,8}| {1,4}(?=[\d.]{1,16} ?[mu]?s\b))"
            + _VALUE + rb" ?(?P<after>us|ms|s\b|sec)?"
        ),
        False,
    ),
    _Form(re.compile(_VALUE + rb"(?P<unit>k)? ?" + _THING + rb"/s(?:ec(?:ond)?)?\b", re.IGNORECASE), True),
    _Form(
        re.compile(
            rb"\b(?:CurrSamplesPerSec|(?:samples|tokens)[_ /](?:per[_ ])?sec(?:ond)?(?:[_ /](?:per[_ ])?gpu)?|"
            rb"throughput|T?FLOP/?s(?:/s)?(?:[/ ](?:per )?GPU)?)(?: \([^)\n]{1,30}\))?['\"]? ?[:=] {0,8}" + _VALUE,
            re.IGNORECASE,
        ),
        True,
    ),
    # of a line that also has the time of its data: "Time  3.21 ( 4.40)  Data  2.98 ( 4.10)"
    _Form(
        re.compile(
            rb"\b(?<!data[_ ])(?:total[_ ])?[Tt]ime['\"]?[ :=]{1,8}" + _VALUE
            + rb" ?(?P<after>us|ms|s\b)?(?=[^\n]{0,80}\b[Dd]ata)"
        ),
        False,
    ),
    _Form(re.compile(rb"\b(?:iter(?:ation)?|step)[ :=]{1,6}(?P<value>\d{1,6}\.\d{1,6}) ?(?P<after>ms|s)\b"), False),
    _Form(
        re.compile(
            rb"(?i:\b(?:fwd|forward|compute|train|gpu|model)[\w-]{0,12}['\"]?[ =:]{1,3})" + _VALUE
            + rb" ?(?P<after>us|ms|s)\b"
        ),
        False,
        is_part=True,
    ),
    _Form(re.compile(rb"\b(?:took|done in|finished in)[ :=]{1,3}" + _VALUE + rb" ?(?P<after>us|ms|s\b|sec)"), False),
)  # fmt: skip

_WORDS = (
    b"/",
    b"ime",
    b"iming",
    b"uration",
    b"PerSec",
    b"per_sec",
    b"hroughput",
    b" per ",
    b"FLOP",
    b"dt",
    b"took",
    b" in ",
    b"fwd",
    b"forward",
    b"compute",
)  # one is in each


class PaceForm(NamedTuple):
    """The form of a kind of line, and how its lines begin."""

    number: int
    begin: bytes


class PaceSeries:
    """The values of one form in one file, in order, with their lines."""

    def __init__(self, is_rate: bool, is_of_times: bool = False) -> None:
        self.is_rate, self.is_of_times = is_rate, is_of_times
        self.values, self.lines = array("d"), array("Q")
        self.data, self.compiled = array("d"), array("Q")  # beside them, see _OF_DATA
        self.first_step: int | None = None  # numbers of steps, as the lines count them
        self.last_step = 0
        self.what = ""  # of work beside the steps
        self.sizes: dict[int, int] = {}  # of a batch or sequence, from a value on
        self.times: list[tuple[int, Moment]] = []  # number of a value, and when it was printed

    def add(self, value: float, line: int, size: int | None, moment: Moment | None) -> None:
        """The next value."""
        number = len(self.values)
        if value <= 0 or number >= _MOST_POINTS:
            return
        self.values.append(value)
        self.lines.append(line)
        if size is not None and size != next(reversed(self.sizes.values()), None) and len(self.sizes) < _MOST_TIMES:
            self.sizes[number] = size
        if moment is not None and len(self.times) < _MOST_TIMES:
            self.times.append((number, moment))

    def has_other_sizes(self, first: int, last: int) -> bool:
        """Whether batches or sequences of these values have another size than before."""
        return any(first - 2 <= number <= last for number in self.sizes if number)

    def find_time(self, number: int) -> Moment | None:
        """When a value was printed; None where no line near it has a time."""
        return next((moment for at, moment in self.times if at >= number), None)


class Pace:
    """All series of a job, by file, form and how the lines begin."""

    def __init__(self) -> None:
        self.series: dict[tuple[int, PaceForm], PaceSeries] = {}
        self._last: dict[tuple[int, PaceForm], Moment] = {}

    def add(self, file: int, line: int, raw: bytes, form: PaceForm) -> None:
        """A line of a kind that has this form."""
        series = self.series.get((file, form))
        if series is None:
            if len(self.series) >= _MOST_SERIES:
                return
            is_gap = form.number == _GAPS
            series = self.series[file, form] = PaceSeries(not is_gap and _FORMS[form.number].is_rate, is_gap)
        size = int(found[1]) if (found := _SIZE.search(raw[:_LINE_BYTES])) else None
        if form.number == SIDE and not series.what:
            series.what = "evaluations" if _EVALUATES.search(raw) else "checkpoints"
        if (counted := _STEP_NUMBER.search(raw[:_LINE_BYTES])) is not None:
            series.last_step = int(counted[1])
            series.first_step = series.last_step if series.first_step is None else series.first_step
        is_timed = len(series.times) < _MOST_TIMES or (form.number == _GAPS and len(series.values) < _MOST_GAPS)
        moment = find_time(raw[:_HEAD_BYTES].decode("utf-8", "replace")) if is_timed else None
        if form.number == _GAPS:
            before = self._last.get((file, form))
            if moment is not None:
                self._last[file, form] = moment
                if before is not None:
                    series.add(moment.seconds - before.seconds, line, size, moment)
            return
        is_part = _FORMS[form.number].is_part
        for match in _FORMS[form.number].pattern.finditer(raw if b"\r" in raw else raw[:_LINE_BYTES]):
            value = _read_value(match)
            if is_part:
                beside = _OF_DATA.search(raw[:_LINE_BYTES])
                value += _read_value(beside) if beside is not None and beside["unit"] else 0.0
            series.add(value, line, size, moment)
            if b"\r" not in raw:  # as a progress bar writes them
                if (found := _OF_DATA.search(raw[:_LINE_BYTES])) is not None and not series.is_rate and value > 0:
                    unit = match.groupdict().get("unit") if not found["unit"] else None  # of both, where one has it
                    series.data.append(_read_value(found) * _UNITS.get(unit or b"", 1.0) / value)
                if (found := _COMPILED.search(raw[:_LINE_BYTES])) is not None:
                    series.compiled.append(int(found["value"]))
                return


def find_form(raw: bytes, key: bytes, is_step: bool) -> PaceForm | None:
    """The form of a kind of line. `key`: the line without digits. `is_step`: it is of a step, whatever else it prints.

    >>> find_form(b"step 7 | 812 ms/step", b"step  |  ms/step", True).number, find_form(b"step 7", b"step ", False)
    (2, None)
    """
    text = raw[:_LINE_BYTES]
    if _BY_DEMAND.search(text):
        return None
    number = next(
        (number for number, form in enumerate(_FORMS) if form.pattern.search(text)), _GAPS if is_step else None
    )
    return None if number is None else PaceForm(number, b" ".join(key.split())[:_ALIKE_BYTES])


def _read_value(match: re.Match[bytes]) -> float:
    groups = match.groupdict()
    unit = groups.get("after") or groups.get("unit") or b""
    try:
        return float(groups["value"].replace(b",", b"")) * _UNITS.get(unit, 1e3 if unit.lower() == b"k" else 1.0)
    except ValueError:
        return 0.0


_LEAST_POINTS = 24
_FEW_DATA = 6  # of lines that state both
_FEW, _BESIDE = 9, 4  # values of a short log, and of them before and after a change that is as plain as this:
_MOST_OF_IT, _AGAIN = 0.5, 0.8  # of a step; of the later steps
_RAMP = 2  # values between both
_PLAIN = 1.5  # times as long as the longest before it takes the shortest after it
_STALL, _STALLS = 5.0, 3  # times as long; steps
_BLOCKS = 160  # that a long series is made of
_LEAST_SIDE = 5  # blocks
SLOWER = 1.25  # times the steps before


_LEAST_SIDE_VALUES, _LEAST_SIDE_SECONDS, _SIDE_SHARE, _LONGER = 3, 30.0, 0.4, 3.0
_TOGETHER = 2  # lines


class SideWork(NamedTuple):
    """What a job does beside its steps, and takes long for."""

    times: int
    seconds: float  # each time, in the middle
    before: float | None  # of the first ones, where it became longer
    share: float | None  # of the time of the whole log


def find_side_work(series: PaceSeries, others: Sequence[PaceSeries], wall: float) -> SideWork | None:
    """Checkpoints or evaluations that take most of the time, or several times as long as the first of them did.

    `others`: series of steps in the same file. `wall`: seconds from its first line to its last one, 0: not known.
    """
    values = _join_ranks(series)
    if not others or len(values) < _LEAST_SIDE_VALUES or find_median(values) < _LEAST_SIDE_SECONDS:
        return None
    steps = max(
        (
            find_median(other.values) * (other.last_step - other.first_step)
            for other in others
            if other.first_step is not None and not other.is_rate and not other.is_of_times and other.values
        ),
        default=0.0,
    )
    whole = wall or (steps + sum(values) if steps else 0.0)
    share = sum(values) / whole if whole and sum(values) <= whole else None
    for first in range(2, len(values) - 2):  # what is slow once, or at first, is no change
        before, after = values[:first], values[first:]
        if min(after) > _LONGER * max(before):
            return SideWork(len(values), find_median(after), find_median(before), share)
    return (
        SideWork(len(values), find_median(values), None, share) if share is not None and share >= _SIDE_SHARE else None
    )


def _join_ranks(series: PaceSeries) -> list[float]:
    """One value of lines that stand together: each rank may print its own."""
    values: list[float] = []
    for place, value in enumerate(series.values):
        if place and series.lines[place] - series.lines[place - 1] <= _TOGETHER:
            values[-1] = max(values[-1], value)
        else:
            values.append(value)
    return values


class PaceChange(NamedTuple):
    """Steps that became slower. Places are numbers of values in the series."""

    before: float  # of a value in the middle
    after: float
    times: float  # how many times as long a step takes
    first: int  # the slower ones
    last: int
    recovered: bool


def measure(series: PaceSeries) -> float | None:
    """The value in the middle of a series that is long enough; None: too few, or too near to what times resolve."""
    middle = find_median(series.values) if len(series.values) >= _LEAST_POINTS else 0.0
    return middle if middle > 0 and (not series.is_of_times or middle >= _LEAST_GAP) else None


def find_data_share(series: PaceSeries) -> float | None:
    """What of a step is spent in waiting for data, where that is most of it."""
    share = find_median(series.data[1:]) if len(series.data) >= _FEW_DATA else 0.0
    return share if _MOST_OF_IT <= share <= 1 else None


def find_data_stalls(series: PaceSeries) -> list[int]:
    """Steps that take several times as long as others, of which nearly all is waiting for data; few are chance."""
    if len(series.data) != len(series.values) or len(series.values) < _FEW or find_median(series.data) > _MOST_OF_IT:
        return []
    usual = find_median(series.values)
    rows = enumerate(zip(series.values, series.data, strict=True))
    stalls = [place for place, (value, share) in rows if place and value > _STALL * usual and share > _AGAIN]
    return stalls if len(stalls) >= _STALLS else []


def find_compilations(series: PaceSeries) -> int | None:
    """How often was compiled, where most of the later steps compile again."""
    later = series.compiled[len(series.compiled) // 3 :]
    grown = sum(after > before for before, after in pairwise(later))
    return series.compiled[-1] if len(later) >= _FEW and grown >= _AGAIN * (len(later) - 1) else None


def find_change(series: PaceSeries) -> PaceChange | None:
    """Where steps became slower, and stayed so for a while; None: nowhere.

    What is slow at the start is warm-up, single slow steps are checkpoints and the like, and neither counts.

    >>> series = PaceSeries(is_rate=False)
    >>> series.values.extend([0.8] * 40 + [2.4] * 20)
    >>> change = find_change(series)
    >>> change.first, round(change.times, 1), change.recovered
    (40, 3.0, False)
    """
    count = len(series.values)
    if _FEW <= count < _LEAST_POINTS:
        return _find_step(series)
    if measure(series) is None:
        return None
    size = -(-count // _BLOCKS)
    durations = [1 / value for value in series.values] if series.is_rate else list(series.values)
    blocks = [find_median(durations[start : start + size]) for start in range(0, count, size)]
    width = max(_LEAST_SIDE, len(blocks) // 12)
    usual = min(find_median(blocks[start : start + width]) for start in range(len(blocks) - width + 1))
    best: PaceChange | None = None
    for start, end in _find_runs([block > SLOWER * usual for block in blocks]):
        before = [block for block in blocks[:start] if block <= SLOWER * usual]
        slow = sorted(blocks[start:end])
        if len(before) < _LEAST_SIDE or slow[len(slow) // 4] < SLOWER**0.5 * sorted(before)[3 * len(before) // 4]:
            continue  # it was so from the start, or the quartiles nearly meet
        first, last = start * size, min(end * size, count) - 1
        pace, earlier = find_median(slow), find_median(before)
        longer = best is None or last - first > best.last - best.first
        if longer and pace >= SLOWER * earlier and not series.has_other_sizes(first, last):
            values = (1 / earlier, 1 / pace) if series.is_rate else (earlier, pace)
            best = PaceChange(*values, pace / earlier, first, last, end < len(blocks))
    return best


def _find_step(series: PaceSeries) -> PaceChange | None:
    """Of few values: where all that follow are much slower than all before; the first is left out, as warm-up."""
    durations = [1 / value for value in series.values] if series.is_rate else list(series.values)
    places = [(start, gap) for gap in range(_RAMP + 1) for start in range(1 + _BESIDE, len(durations) - _BESIDE + 1)]
    for start, gap in places:
        before, after = durations[1:start], durations[start + gap :]
        between = durations[start : start + gap]
        if len(after) < _BESIDE or between != sorted(between):
            continue
        if (
            series.is_of_times
            or min(after) < _PLAIN * max(before)
            or series.has_other_sizes(start + gap, len(durations))
        ):
            continue
        earlier, pace = find_median(before), find_median(after)
        values = (1 / earlier, 1 / pace) if series.is_rate else (earlier, pace)
        return PaceChange(*values, pace / earlier, start + gap, len(durations) - 1, False)
    return None


def _find_runs(slow: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where blocks are slow one after the other, with at most one between them that is not."""
    start = None
    for place, is_slow in enumerate([*slow, False, False]):
        if is_slow and start is None:
            start = place
        elif start is not None and not is_slow and not any(slow[place + 1 : place + 2]):
            if place - start >= _LEAST_SIDE:
                yield start, place
            start = None
