"""What terminals, mails, forums and editors put around the lines of an output, taken off.

Colours, quotation marks, line numbers, and the breaks of a terminal that is narrower than a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from probes.sources.margins import MARGIN_LINES, cut_margin, is_margin
from probes.text import lazy_pattern

_ESCAPE = lazy_pattern(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78cDEHM])"
)
_QUOTED = lazy_pattern(r"[ \t]{0,3}(?:> ?){1,8}")
_HOSTED = lazy_pattern(
    r"([A-Za-z][\w.-]{0,62}[\w]|\d{1,3}(?:\.\d{1,3}){3}): (?=[\[\w|{ \t'\"/=+#*$-])"
)  # as pdsh, ansible and `journalctl -o cat` print
_NUMBERED = lazy_pattern(r"[ \t]{0,8}([1-9](?!0000:)[0-9]{0,6})(\t|:| ?[|│](?: |$)| |$)")
_MARKED = lazy_pattern(r"[ \t]{0,8}[0-9]{1,7}(?:\t| ?[|│])|[1-9][0-9]{0,3}:(?=[#$\[\w(][^\n:]{0,120}[#$] ?\w|[$#] \w)")
_IN_MARGIN = lazy_pattern(r"[ ]{1,6}[0-9]{1,6}(?= |$)")
_EMPHASIZED = lazy_pattern(
    r"^([ \t>]{0,40})(\*\*|__|[_*`])(\[[ \d]{1,8}\.\d{6}\] [^\n]{1,600}?)\2[ \t\r]*$", re.MULTILINE
)
_ESCAPED_OBJECT = '{\\"'
_ESCAPED_QUOTE = lazy_pattern(r"\\{1,7}\"")
_TICKED = lazy_pattern(r"[ \t>]{0,40}`([^`]{0,4000})`[ \t]*")  # a line as code
_HUNK = lazy_pattern(r"^@@ -\d{1,7}(?:,\d{1,7})? \+\d{1,7}(?:,\d{1,7})? @@", re.MULTILINE)
_CODE_MARGIN = 4
_INDENTED = lazy_pattern(r"(?:\A|\n[ \t\r]{0,8}\n) {4}\S")  # the first line of a block of code
_LOOKED_AT = 60
_MOST_MISSES = 300  # numbers that are no line's, each tried for an output behind it: those of the text are its own
_LEAST_HOSTED = 2  # lines with the same name before them
_HEAD_CHARACTERS = 8 << 10
_NARROWEST, _WIDEST = 60, 250  # terminals
_TRIMMED = 8  # blanks that a copy leaves out at the end of a line, and the wrap was in them
_NAMES = lazy_pattern(r"(?:(?:GPU|NIC|NPU|Phy-ID|mlx5_(?:bond_)?)[0-9]{1,3})+([A-Za-z]{0,40})")
_LAST_NAMES = "CPUAffinityNUMAAffinityGPUNUMAID"
_FEWEST_CELLS = 3
_WIDTHS = (80, 100, 120, 132, 160, 200)
_FORMS = 5
# A line of its own, whatever is before it: a name, dots and a value; the link layer of an interface (`ip link`); a
# file; a GPU and a sentence about it (`nvidia-smi nvlink`)
_ROW = lazy_pattern(r"\w{1,40}:\.{3}| {4}(?:link/[a-z]|inet6? )|/(?:sys|proc|etc)/|NVML: |GPU \d{1,3}: ")
_FRAMES = ("|", "+", "==", "--")  # what a line of a box or a heading ends with
_BOX = ("|", "+")  # what a line of a table in a frame begins with
_FRAME, _FRAME_REST = lazy_pattern(r"\+[-=+]{58,250}"), lazy_pattern(r"[-=][-=+]{0,200}\+")
_TOO_WIDE = lazy_pattern(rf"[^\n]{{{_WIDEST + 1}}}")
_CAPITALS = lazy_pattern(r"[A-Z][A-Z ()/%_-]{8,300}")
_COLUMN_STARTS = lazy_pattern(r"(?<=  )\S")
_VARYING = lazy_pattern(r"[0-9a-f]{0,16}[0-9][0-9a-f]{0,16}")


def unwrap(text: str, holds_output: Callable[[list[str]], bool]) -> str:
    """The text without colours, quotation marks and line numbers; as many lines as before. `holds_output`: whether
    one is in these lines, for numbers that may be its own.

    >>> unwrap("> \\x1b[1mCA 'mlx5_0'\\x1b[0m\\n> \\tCA type: MT4129\\n", bool)
    "CA 'mlx5_0'\\n\\tCA type: MT4129\\n"
    >>> unwrap("  1 | CA 'mlx5_0'\\n  2 | \\tCA type: MT4129\\n  3 |\\n", bool)
    "CA 'mlx5_0'\\n\\tCA type: MT4129\\n\\n"
    >>> unwrap('{"event":"[{\\\\"code\\\\":\\\\"x\\\\"}]"}\\n', bool)
    '{"event":"[{"code":"x"}]"}\\n'
    >>> unwrap("From dmesg:\\n_[   12.345678] NVRM: x_\\n", bool)
    'From dmesg:\\n[   12.345678] NVRM: x\\n'
    >>> unwrap("Hi,\\n\\n    $ lsmod\\n    Module\\n\\n      ib_core\\nBye\\n", lambda lines: lines[0][0] != " ")
    'Hi,\\n\\n$ lsmod\\nModule\\n\\n  ib_core\\nBye\\n'
    >>> unwrap("Hi,\\n\\n    $ lsmod\\n    Module\\n\\nBye\\n", lambda lines: lines[0][0] != " ")
    'Hi,\\n```\\n$ lsmod\\nModule\\n```\\nBye\\n'
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _EMPHASIZED.sub(r"\1\3", text)
    if _ESCAPED_OBJECT in text:
        text = "".join(map(_read_record, text.splitlines(keepends=True)))
    if "`" in text and all(_TICKED.fullmatch(line) for line in text.splitlines() if line.strip()):
        text = "\n".join(_TICKED.sub(r"\1", line) for line in text.splitlines()) + "\n"
    text = cut_margin(_read_diff(text, holds_output), holds_output)
    is_indented = _INDENTED.search(text) is not None
    text = _cut_host(text, holds_output)
    marked = ">" in text or _NUMBERED.match(text.lstrip("\r\n")) or re.search(r"\n[ \t]{0,8}[0-9]", text)
    if not marked and not is_indented:
        return text
    lines = text.splitlines(keepends=True)
    for first, after in _runs(lines, _is_in_code) if is_indented else ():
        bare = [line.removeprefix(" " * _CODE_MARGIN) for line in lines[first:after]]
        if (first == 0 or not lines[first - 1].strip()) and holds_output(bare):
            if first > 0 and not bare[-1].strip():  # blank lines around it become its fences
                lines[first - 1] = bare[-1] = "```\n"
            lines[first:after] = bare
    for first, after in _runs(lines, lambda line, _: _QUOTED.match(line) is not None):
        if after - first > 1 or len(lines) == 1:
            lines[first:after] = [_QUOTED.sub("", line, count=1) for line in lines[first:after]]
    misses = 0
    for first, after in _runs(lines, _goes_on_counting):
        bare = _cut_numbers(lines[first:after])
        if holds_output(bare) and (_are_numbers_of_lines(lines[first:after]) or not holds_output(lines[first:after])):
            lines[first:after] = [line if line.endswith(("\n", "\r")) else f"{line}\n" for line in bare]
        else:
            misses += 1
            if misses >= _MOST_MISSES:
                break
    return "".join(lines)


def _read_record(line: str) -> str:
    """A line of a log, with the fields of an object that is a string of its record as they are."""
    is_record = _ESCAPED_OBJECT in line and '{"' in line and line.rstrip().endswith("}")
    return _ESCAPED_QUOTE.sub('"', line) if is_record else line


def squeeze(text: str) -> str:
    r"""The text without the empty lines where one is behind every line, as copies from pages and serial consoles have.

    >>> squeeze("GPU 0\n\n  ECC: 1\n\n\n\n"), squeeze("GPU 0\n\nGPU 1\n")
    ('GPU 0\n  ECC: 1\n\n', 'GPU 0\n\nGPU 1\n')
    """
    lines = text.splitlines(keepends=True)
    return "".join(lines[::2]) if len(lines) > 3 and not any(map(str.strip, lines[1::2])) else text


def _read_diff(text: str, holds_output: Callable[[list[str]], bool]) -> str:
    """The new side of a comparison; the same where the text is none, or is an output as it is.

    >>> _read_diff("@@ -1,2 +1,2 @@\\n CA 'a'\\n-\\tPort 1:\\n+\\tPort 2:\\n", lambda lines: lines[1][0] == "C")
    "@@ -1,2 +1,2 @@\\nCA 'a'\\n\\n\\tPort 2:\\n"
    """
    lines = text.splitlines(keepends=True)
    starts = [line[0] for line in lines[:MARGIN_LINES] if line.strip() and not line.startswith(("+-", "+="))]
    in_it, added = sum(start in "+- @" for start in starts), starts.count("+")
    if not added or 2 * in_it < len(starts) or (added < _LEAST_HOSTED and not _HUNK.search(text)):
        return text
    bare = [line[1:] if line[0] in "+ " else "\n" if line[0] == "-" else line for line in lines]
    return "".join(bare) if holds_output(bare) and not holds_output(lines) else text


def _cut_host(text: str, holds_output: Callable[[list[str]], bool]) -> str:
    """The text without the host that a parallel shell prints before each line; the same where there are several, or
    where the lines are an output as they are.

    >>> _cut_host("n7: CA 'mlx5_0'\\nn7: \\tCA type: MT4129\\n", lambda lines: lines[0][0] == "C")
    "CA 'mlx5_0'\\n\\tCA type: MT4129\\n"
    """
    first = next((line for line in text[:_HEAD_CHARACTERS].splitlines() if _HOSTED.match(line)), None)
    match = _HOSTED.match(first) if first else None
    if match is None:
        return text
    lines = text.splitlines(keepends=True)
    name = match[0]
    own = [number for number, line in enumerate(lines) if line.startswith(name)]
    others = {other[0] for line in lines[:_LOOKED_AT] if (other := _HOSTED.match(line))} - {name}
    bare = [lines[number].removeprefix(name) for number in own]
    if len(own) < _LEAST_HOSTED or others or not holds_output(bare):
        return text
    if not is_margin([lines[number] for number in own], holds_output):
        return text
    for number, line in zip(own, bare, strict=True):
        lines[number] = line
    return "".join(lines)


def _runs(lines: Sequence[str], belongs: Callable[[str, str | None], bool]) -> Iterator[tuple[int, int]]:
    """Lines that belong together, as first and after the last. `belongs`: a line, to the one before (None: to none)."""
    first = 0
    while first < len(lines):
        if not belongs(lines[first], None):
            first += 1
            continue
        after = first + 1
        while after < len(lines) and belongs(lines[after], lines[after - 1]):
            after += 1
        yield first, after
        first = after


def _is_in_code(line: str, before: str | None) -> bool:
    """Whether a line is in a block of code as Markdown indents it; blank lines go on."""
    return line.startswith(" " * _CODE_MARGIN) or (before is not None and not line.strip())


def _goes_on_counting(line: str, before: str | None) -> bool:
    """Numbers one after the other, with the same mark behind each; behind the number of an empty line it may lack."""
    own = _NUMBERED.match(line)
    if own is None or before is None:
        return own is not None
    other = _NUMBERED.match(before)
    marks = {match[2].strip(" ") for match in (own, other) if match and match[2].strip("\r\n")}
    alike = len(marks) < 2 or marks == {"", "|"}  # blanks, and a frame behind some of them
    return other is not None and int(own[1]) == int(other[1]) + 1 and alike


def _cut_numbers(lines: Sequence[str]) -> list[str]:
    """What is behind each number and its mark; a bar is the output's own where some lines have none."""
    matches = [match for line in lines if (match := _NUMBERED.match(line))]
    framed = any(match[2] == " " and line[match.end() :].strip() for line, match in zip(lines, matches, strict=True))
    return [
        line[match.end(1) + 1 :] if framed and match.end(1) + 1 < len(line) else line[match.end() :]
        for line, match in zip(lines, matches, strict=True)
    ]


def _are_numbers_of_lines(lines: list[str]) -> bool:
    """Whether they cannot be the output's own: a mark behind them that no output has, a command among the lines, or a
    column of them on the right of a margin."""
    column = {match.end() for line in lines[:_LOOKED_AT] if (match := _IN_MARGIN.match(line))}
    return bool(_MARKED.match(lines[0])) or (len(lines) > 2 and len(column) == 1)


_OF_FIRMWARE = lazy_pattern(r"^[ \t]*Configurations: .*\bNext Boot\b", re.MULTILINE)  # some rows begin with a star
_RULE = lazy_pattern(r"[ \t]{0,40}-{3,200}(?: {1,8}-{2,200}){0,40}")


def join_wrapped(text: str) -> str:
    r"""The text with the lines that a terminal broke at its width put together; the same where it broke none.

    Broken is a line of the full width whose next one begins as no other line does: another margin, another word.

    >>> row = "GPU0 " + "NV18 " * 12
    >>> join_wrapped(f"{row}\nSYS 0\n{row.replace('GPU0', 'GPU1')}\nSYS 1\n").splitlines()[1].split()[::13]
    ['GPU1', 'SYS']
    """
    if _TOO_WIDE.search(text) or _OF_FIRMWARE.search(text):
        return text
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    if longest < _NARROWEST or _are_columns([line for line in lines if line.strip() and not line.startswith("$ ")]):
        return text
    if boxed := _join_box(lines):
        return "\n".join(boxed) + "\n"
    width = next((width for width in (longest, *_WIDTHS) if _is_broken_at(lines, width, longest)), None)
    if width is None:
        return text
    begun = _find_shapes(lines, width)
    joined = [lines[0]]
    for before, line in pairwise(lines):
        if len(before) > width - _TRIMMED and (not line.strip() or _goes_on(before, line, begun)):
            joined[-1] += " " * (width - len(before)) + line
        else:
            joined.append(line)
    return "\n".join(joined) + "\n"


def _are_columns(lines: Sequence[str]) -> bool:
    """Whether all rows have as many cells, or their words below those of a heading in capitals, as kubectl and Slurm
    print them."""
    if len(lines) > 1 and lines[0].count("|") >= _FEWEST_CELLS and len({line.count("|") for line in lines}) == 1:
        return True
    if len(lines) < 2 or not _CAPITALS.fullmatch(lines[0]):
        return False
    starts = [match.start() for match in _COLUMN_STARTS.finditer(lines[0])]
    return len(starts) > 2 and all(
        line[:1].strip() and all(line[start : start + 1].strip() and not line[start - 1].strip() for start in starts)
        for line in lines[1:]
    )


def _join_box(lines: list[str]) -> list[str]:
    """The lines of a table in a frame whose lines are broken; none where no line of the frame is."""
    heads = (len(line) for line, after in pairwise(lines) if _FRAME.fullmatch(line) and _FRAME_REST.fullmatch(after))
    width = next(heads, None)
    if width is None:
        return []
    joined = [lines[0]]
    for before, line in pairwise(lines):
        if before.startswith(_BOX) and not line.startswith(_BOX) and joined[-1] is before and line.strip():
            joined[-1] = before.ljust(width) + line
        else:
            joined.append(line)
    return joined


def _has_whole_rule(lines: list[str], longest: int) -> bool:
    """Whether the rule of dashes below a heading is as wide as the text, and does not go on: nor do the rows."""
    return any(
        len(line) == longest and _RULE.fullmatch(line) and not _RULE.fullmatch(after) for line, after in pairwise(lines)
    )


def _is_broken_at(lines: list[str], width: int, longest: int) -> bool:
    """Whether lines of this width go on in the next one, most of them. A width that no line has (a copy leaves blanks
    at an end out) is one of a terminal, and the lines are rows of few forms."""
    if not longest <= width < longest + _TRIMMED:
        return False
    rows = [line for line in lines if line.strip()]
    rows = rows[1:] if rows[0].startswith("$ ") else rows  # the command
    if all(len(line) == longest for line in rows) or _has_whole_rule(lines, longest):
        return False  # a table: what goes on in the next line seldom fills it
    begun = _find_shapes(lines, width)
    shortest = width if width == longest else width - _TRIMMED + 1
    full = [(line, after) for line, after in pairwise(lines) if len(line) >= shortest and after.strip()]
    broken = sum(_goes_on(line, after, begun) + _is_heading(line, after) for line, after in full)
    is_list = len(begun) <= _FORMS
    enough = 1 if width == longest and width in _WIDTHS and is_list else 2
    return broken >= enough and 2 * broken >= len(full) and (width == longest or is_list)


def _find_shapes(lines: list[str], width: int) -> set[str]:
    """How lines begin that follow no broken one."""
    return {_shape(lines[0])} | {_shape(line) for before, line in pairwise(lines) if len(before) <= width - _TRIMMED}


def _goes_on(line: str, after: str, begun: set[str]) -> bool:
    if _ROW.match(after) or after.startswith("\t"):  # no line is broken at a tabulator: this one is indented
        return False
    if after.split()[1:] and line.split() == [str(number) for number in range(len(after.split()) - 1)]:
        return False  # the heading of a matrix, and a row with a cell for each of its numbers
    if line.endswith(_FRAMES):
        return bool(after.strip()) and not after.strip("= ")  # the rest of a heading
    return _shape(after) not in begun | {_shape(line)} or _is_heading(line, after)


def _is_heading(line: str, after: str) -> bool:
    """Whether both are one row of names: rows below it begin with such names, too."""
    match = _NAMES.fullmatch("".join(f"{line} {after}".split()))
    words = line.split()
    return bool(match and len(words) > 1 and after.strip() and _LAST_NAMES.startswith(match[1]))


def _shape(line: str) -> str:
    """How a line begins: its margin, or its first word without what counts."""
    bare = line.lstrip()
    return f" {len(line) - len(bare)}" if bare != line else _VARYING.sub("0", bare.partition(" ")[0][:40].rstrip(":"))
