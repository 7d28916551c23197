"""Bytes of files as lines: compressed files, lines of any length, wrapped by a log collector or cut by a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise

import msgspec

from probes.compression import DamagedData, DecompressedReader
from probes.text import lazy_pattern, to_plain_characters

_LINE_BYTES = 1 << 16
LARGEST = 64 << 30  # bytes of one file


def inflate(chunks: Iterator[bytes], kind: str) -> Iterator[bytes]:
    """Compressed bytes as a stream: a bomb is read piece by piece, and ends at the limit."""
    reader = DecompressedReader(lambda _: next(chunks, b""), kind)
    size = 0
    with suppress(DamagedData):
        while size < LARGEST and (out := reader.read(1 << 20)):
            size += len(out)
            yield out


def split_lines(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of at most 64 KiB, each with its end."""
    pending = head
    for chunk in rest:
        lines = pending.split(b"\n")
        pending = lines.pop()
        for line in lines:
            yield line + b"\n"
        pending += chunk
        while len(pending) > _LINE_BYTES and b"\n" not in pending[:_LINE_BYTES]:
            yield pending[:_LINE_BYTES]
            end = pending.find(b"\n", _LINE_BYTES)
            pending = pending[end:] if end >= 0 else b""  # the rest of so long a line is left out
            if end < 0:
                break
    lines = pending.split(b"\n")
    last = lines.pop()
    for line in lines:
        yield line + b"\n"
    if last:
        yield last


_HOLE = lazy_pattern(rb"\0{8,}")
_CONTROL = bytes((*range(1, 9), 11, *range(14, 27), *range(28, 32), 127))
_MOST_CONTROL = 100  # one of so many bytes


def close_holes(chunk: bytes) -> bytes:
    """Without runs of zeros, which a crash of the host leaves in a log, or one that is emptied while in use."""
    return _HOLE.sub(b"", chunk).strip(b"\0")


def is_text(head: bytes) -> bool:
    """Whether bytes that had holes are a text, and no archive, program or file of weights.

    >>> is_text(close_holes(b"step 1" + bytes(64) + b"step 2")), is_text(close_holes(b"\\x98\\0\\0" + b'{"a": 1}'))
    (True, False)
    """
    control = len(head) - len(head.translate(None, _CONTROL))
    return bool(head) and b"\0" not in head[:4096] and control <= len(head) // _MOST_CONTROL


class _WrappedLine(msgspec.Struct, frozen=True):
    """A line of a log collector: of Docker's json-file driver, Fluent Bit, journalctl -o json, and the like."""

    log: str | None = None
    message: str | None = None
    msg: str | None = None
    journal: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    time: str | float | None = None
    timestamp: str | float | None = None

    def write(self) -> str | None:
        """As a plain line, with its time in front."""
        journal = self.journal if isinstance(self.journal, str) else None
        text = next((text for text in (self.log, self.message, self.msg, journal) if text is not None), None)
        time = next((time for time in (self.time, self.timestamp) if isinstance(time, str)), None)
        return f"{time} {text}" if time and text and _ISO.fullmatch(time) else text


_ISO = lazy_pattern(r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d)")


def is_wrapped(head: bytes) -> bool:
    """Whether each line is a JSON object that has a line of a log."""
    try:
        return msgspec.json.decode(head.partition(b"\n")[0], type=_WrappedLine).write() is not None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def unwrap(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines themselves; one that is no object stays as it is."""
    decode = msgspec.json.Decoder(_WrappedLine).decode
    for line in lines:
        try:
            text = decode(line).write()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = None
        yield line if text is None else text.rstrip("\n").replace("\n", " ").encode("utf-8", "replace") + b"\n"


def gather(head: bytes, rest: Iterator[bytes], limit: int) -> bytes | None:
    """The whole file; None: it is larger than the limit."""
    parts, size = [head], len(head)
    for chunk in rest:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            return None
    return b"".join(parts)


_WIDTHS = range(72, 401)  # of terminals
_LEAST = 2  # lines that are cut, with different texts
_DIGITS = b"0123456789"
# What begins a line of its own: brackets of prefixes and times, quotes, tables, rules, a date, a traceback
_BEGINS = lazy_pattern(
    rb"[\s\[(<>|`#*=+\-\"'~]|\d{4}[-/]|\d{1,7}: |[A-Z]\d{4,8} \d\d:|"
    rb"Traceback |\w[\w.-]{0,63}:\d{1,8}:\d{1,8} \[|\w{3} [ \d]\d |"
    rb"[\w.]{1,80}(?:Error|Exception|Warning)\b|(?:INFO|WARN|ERROR|DEBUG|NCCL|RCCL|srun|slurmstepd)\b"
)
_WORD = lazy_pattern(rb"[A-Za-z_]{2,40}")


def read_sample(lines: Iterator[bytes], count: int) -> tuple[list[bytes], Iterator[bytes]]:
    """The first lines of a file and the rest, joined where a terminal cut them."""
    lines = map(to_plain_line, lines)
    sample = list(islice(lines, count))
    width = find_width(sample)
    whole = chain(sample, lines)
    joined = join_records(whole if width is None else join_wrapped(whole, width))
    return list(islice(joined, count)), joined


def to_plain_line(line: bytes) -> bytes:
    """The line without what a page, a chat or a crash of its host put into it; see to_plain_characters.

    >>> to_plain_line("NCCL\\u00a0WARN\\u200b \\u201cibv\\u201d\\n".encode())
    b'NCCL WARN "ibv"\\n'
    """
    if line.isascii() and 0 not in line:
        return line
    plain = to_plain_characters(line.decode("utf-8", "surrogateescape")).removesuffix("\n").replace("\n", " ")
    return plain.encode("utf-8", "surrogateescape") + (b"\n" if line.endswith(b"\n") else b"")


def join_records(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines, with a record in one of them that is in several: a time-out of PyTorch that a paste has cut, until its
    bracket ends, and the words of a completion that mlx5 prints below its heading.

    An empty line stands in place of each that is joined to the line above it.
    """
    for line in lines:
        is_dump = _is_dump(line)
        if not is_dump and (b"operation timeout:" not in line or not _is_open(line)):
            yield line
            continue
        record, empty, after = line.rstrip(), 0, None
        for following in islice(lines, _MOST_PARTS):
            if not following.strip() or (
                _WORDS.search(following) is None if is_dump else _RECORD.match(following) is not None
            ):
                after = following
                break
            if is_dump:
                record, empty = record + b" " + _WORDS.findall(following)[0], empty + 1
                continue
            between = b" " if record[-1:] in b":," else b""
            record, empty = record + between + following.strip(), empty + 1
            if not _is_open(record):
                break
        yield record + b"\n"
        yield from [b"\n"] * empty
        if after is not None:
            yield after


_MOST_PARTS = 4  # of one record
_RECORD = lazy_pattern(rb"[\[(<]|\d{4}-\d\d-|Traceback |\w[\w.-]{0,63}:\d{1,8}:\d{1,8} \[")


_DUMP = b"got completion with error:"
_WORDS = lazy_pattern(rb"(?:[0-9a-f]{8} ){3}[0-9a-f]{8}(?=\s*$)")  # a row of them


def _is_dump(line: bytes) -> bool:
    """Whether mlx5 prints the words of a completion below this line, four rows of them."""
    return _DUMP in line and line.rstrip().endswith(_DUMP)


def _is_open(record: bytes) -> bool:
    """Whether a record ends before its bracket does."""
    what = record[record.rindex(b"operation timeout:") :]
    return what.count(b"(") > what.count(b")") or what.rstrip().endswith(b"timeout:")


def find_width(sample: Sequence[bytes]) -> int | None:
    """The width at which long lines of a file are cut, where they are."""
    lines = [line.rstrip(b"\r\n") for line in sample]
    width = max((len(line) for line in lines), default=0)
    if width not in _WIDTHS:
        return None
    cut = {
        line.translate(None, _DIGITS)
        for line, following in pairwise(lines)
        if len(line) == width and not line[-1:].isspace() and _goes_on(line, following)
    }
    return width if len(cut) >= _LEAST else None


def join_wrapped(lines: Iterator[bytes], width: int) -> Iterator[bytes]:
    """The lines as they were; in place of what is joined to the line above it there is an empty one."""
    above, empty = next(lines, None), 0
    for line in lines:
        if above is None:
            break
        end = above.rstrip(b"\r\n")
        if end and len(end) % width == 0 and len(end) < 40 * width and _goes_on(end, line.removeprefix(b" ")):
            above, empty = end + line, empty + 1
            continue
        yield above
        yield from [b"\n"] * empty
        above, empty = line, 0
    if above is not None:
        yield above
        yield from [b"\n"] * empty


def _goes_on(line: bytes, following: bytes) -> bool:
    """Whether a line that ends at the width goes on in the next one; rows of a table begin alike."""
    if not following.strip() or _BEGINS.match(following) is not None:
        return False
    first, second = _WORD.match(line), _WORD.match(following)
    return first is None or second is None or first[0] != second[0]
