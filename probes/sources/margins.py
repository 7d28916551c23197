"""What chats, collectors, launchers and search tools write before each line of an output, taken off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, islice, product
from os.path import commonprefix

from probes.text import lazy_pattern

_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[APap]\.?[Mm]\.?)?"
_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_OF_LIST = r"[*\u2022\u00b7;!%-]{1,2} "
_MARGINS = (  # what programs write before a line that a person or another program gave them
    rf"\[(?:{_TIME}, {_DAY}|{_DAY},? {_TIME})\] [^:\n]{{1,40}}: ",  # chats: time and name
    rf"(?:\[?{_TIME}\]? )?<[@+~&%]?[\w\[\]^{{}}|`-]{{1,30}}> ",
    rf"[\[(]{_TIME}[\])] [\w .-]{{1,40}}: ",
    r"\d{4}-\d\d-\d\dT[\d:]{8}(?:[.,]\d{3,9})?(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?",  # of containers, of CI
    r"[A-Z][a-z]{2} [ \d]\d [\d:]{8} ",  # of ts
    r"[\w.-]{1,60} {0,40}\| ",  # of docker compose
    _OF_LIST,
    r"(?:(?:time|ts|level|source|name|pid)=(?:\"[^\"\n]{0,80}\"|[^\s\"]{1,80}) ){1,8}msg=\"",  # of programs in Go
    r"\{\"(?:log|msg|message|MESSAGE)\": ?\"",  # of docker, of log collectors
)
_OF_POD = r"\[(?![A-Z]{3,9}\])(?:pod/)?[\w.-]{1,253}(?:/[\w.-]{1,63})?\] "  # of kubectl logs --prefix, of a launcher
_MARGIN_PATTERNS = tuple(lazy_pattern(pattern) for pattern in (*_MARGINS, _OF_POD))
MARGIN_LINES, _MARGIN_TRIES = 1000, 20
_LEAST_MARKED = 0.9  # of the lines: what is before them is a margin
_NUMBER = lazy_pattern(  # that stands alone: no host's
    r"(?:(?<![A-Za-z_0-9])(?<![A-Za-z_]-)|(?<=[0-9]T)|(?<=^[IWEF])|(?<=\.(?:log|txt|out)-))[0-9]{1,20}"
)
_ANY = "\x01"  # in place of a number
_ADDRESS = ".".join(_ANY * 4)
_BLANKS = lazy_pattern(r" {2,40}")
_SIGN = lazy_pattern(r"[:\]|>\u2502.-](?= )|[\"'`|]|(?<=[A-Za-z][:-]\x01)[:-]")
_WORD_END = lazy_pattern(r"[^ ](?= )|:")  # where no sign serves
_ENDS = {  # of a line whose margin ends with this sign
    sign: lazy_pattern(rf"{end}(?=[\r\n]{{0,2}}$)")
    for sign, end in (("'", "',?"), ('"', '",?'), ("`", r"`[ ]{0,8}\|?"))
}
_OF_KERNEL = lazy_pattern(
    r"\[ {0,6}[0-9]{1,8}\.[0-9]{6}\] "
)  # a line of the kernel's log: what is before it is no part
_FOREIGN = lazy_pattern(rf" ?(?:[\w./-]{{1,120}}:{_ANY}:|\u2502)")  # of grep -n, of frames: no line of a tool begins so
_COLUMNS = (f"{_ANY} ", f"{_ANY}\t")
_FRAME = (" |", "-+", "=+", "-|", "=|")
_WIDEST_MARGIN, _SHORTEST, _FEWEST, _SIGNS = 200, 4, 3, 16


def cut_margin(text: str, holds_output: Callable[[list[str]], bool]) -> str:
    """The text without the times and names that chats and collectors write before lines; the same where no output is
    behind them, or where lines are an output as they are.

    >>> cut_margin("[14:05, 11/3/2025] Tom: CA 'mlx5_0'\\n\\tPort 1:\\n", lambda lines: lines[0][0] == "C")
    "CA 'mlx5_0'\\n\\tPort 1:\\n"
    """
    lines = text.splitlines(keepends=True)
    for pattern in _MARGIN_PATTERNS:
        margins = {n: match[0] for n, line in enumerate(lines[:MARGIN_LINES]) if (match := pattern.match(line))}
        if pattern is _MARGIN_PATTERNS[-1] and len(set(margins.values())) > 1:
            continue  # several pods: each is read alone
        marked = list(margins)
        bare = _cut([lines[number] for number in marked], pattern)
        if any(_is_new(lines[number], pattern, holds_output) for number in marked[:_MARGIN_TRIES]) or (
            len(marked) >= _LEAST_MARKED * len([line for line in lines[:MARGIN_LINES] if line.strip()])
            and holds_output(bare)
            and (pattern.pattern == _OF_LIST or is_margin([lines[number] for number in marked], holds_output))
        ):
            lines = _cut(lines, pattern)
            break
    return _cut_common(lines, holds_output) or "".join(lines)


def _cut_common(lines: Sequence[str], holds_output: Callable[[list[str]], bool]) -> str | None:
    """The text without what all lines have before them, of whatever program: the same but for numbers that stand alone,
    as times and numbers of lines do, up to a sign behind which a line may begin, or a blank. The
    shortest that shows an output.

    >>> _cut_common(["x.log:9:CA 'a'", "x.log:10:\\tPort 1:", "x.log:11:"], lambda lines: lines[0][0] == "C")
    "CA 'a'\\tPort 1:"
    >>> _cut_common(["n7: CA 'a'", "n8: CA 'b'", "n9: CA 'c'"], lambda lines: lines[0][0] == "C")
    """
    looked_at = [line[:_WIDEST_MARGIN].rstrip() for line in lines[:MARGIN_LINES] if line.strip()]
    if len(looked_at) < _FEWEST:
        return None
    is_output = holds_output([*lines[:MARGIN_LINES]])  # words in it make it one
    is_framed = 2 * sum(line.endswith(_FRAME) for line in looked_at) > len(looked_at)
    shapes = [_NUMBER.sub(_ANY, _BLANKS.sub(" ", line)) + " " for line in looked_at]
    tried: set[str] = set()
    for first, last in product((0, 1, 2), (0, 1)):  # a heading, and a word below
        own = shapes[first : len(shapes) - last]
        longer = [shape for shape in own if len(shape) > _SHORTEST] if len(own) >= _FEWEST else []
        common = commonprefix(longer)  # noqa: RUF071  # letters of lines, no paths
        if common.lstrip()[:2] in _COLUMNS:  # of numbers: taken off as such
            continue
        for sign in islice(chain(_SIGN.finditer(common), _WORD_END.finditer(common)), _SIGNS):
            margin = common[: sign.end()].rstrip()
            if not margin or _ADDRESS in margin:  # of hosts
                break
            if is_output and not _FOREIGN.fullmatch(margin):
                continue
            if margin in tried or (is_framed and margin.strip() == "|"):  # of the table itself
                continue
            tried.add(margin)
            words = re.compile(rf" *{re.escape(margin)} ?".replace(r"\ ", " +").replace(_ANY, "[0-9]+"))
            end = _ENDS.get(margin[-1])
            bare = _cut(lines[:MARGIN_LINES], words, end)
            marked = [line for line in lines[:MARGIN_LINES] if words.match(line)]
            if len(marked) < len(own) or not holds_output(bare):
                continue
            is_log = not margin.endswith("kernel:") and all(map(_OF_KERNEL.match, filter(str.strip, bare)))
            if is_log or is_margin(marked, holds_output):
                return "".join(_cut(lines, words, end))
    return None


def _cut(lines: Sequence[str], margin: re.Pattern[str], end: re.Pattern[str] | None = None) -> list[str]:
    bare = [margin.sub("", line, count=1) if margin.match(line) else line for line in lines]
    return [end.sub("", line) for line in bare] if end else bare


def is_margin(lines: Sequence[str], holds_output: Callable[[list[str]], bool]) -> bool:
    """Whether what all these lines have before them is no part of an output: they are none with it, or words in a few
    of them make them one, which are looked for anywhere in a line. Of a log most lines are an output by themselves.

    >>> is_margin(["n7: CA 'a'", "n7: up", "n7: 4X"], lambda lines: any("CA" in line for line in lines))
    True
    >>> is_margin(["n7: CA 'a'", "n7: CA 'b'"], lambda lines: any("CA" in line for line in lines))
    False
    """
    if not holds_output([*lines]):
        return True
    tried = [line for line in lines[:: max(1, len(lines) // _MARGIN_TRIES)] if len(line.split()) > 1]
    return 2 * sum(holds_output([line]) for line in tried) <= len(tried)


def _is_new(line: str, margin: re.Pattern[str], holds_output: Callable[[list[str]], bool]) -> bool:
    """Whether an output begins in a line behind its margin, and not in the line as it is."""
    return holds_output(_cut([line], margin)) and not holds_output([line])
