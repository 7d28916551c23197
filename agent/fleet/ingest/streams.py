"""Many reports in one stream: a tar, lines of JSON, or whole files one after the other; each perhaps gzip or zstd."""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import msgspec

from agent.fleet.ingest.file_names import HEAD_BYTES, is_ours, kind_of, may_be_ours
from agent.model.report import REPORT_LIMIT_BYTES
from probes.compression import MAGIC_BYTES, DamagedData, DecompressedReader, find_compression

_BLOCK = 1 << 20
_TAR_MAGIC = slice(257, 262)
_SHORT = 256  # a line of so many bytes may be an empty one
_KEPT = 1 << 16  # of a line that is too long
_TOO_LONG = f"larger than a report can be ({REPORT_LIMIT_BYTES} bytes)"
_MOST_SKIPPED = 16 * REPORT_LIMIT_BYTES  # of one line: a sparse file of a terabyte would be read for minutes
_ENDLESS = f"a line of more than {_MOST_SKIPPED >> 20} MiB: nothing is read from it on"


class BadStream(Exception):
    """The stream ends before its end; `data` is what is left of it."""

    def __init__(self, why: str, data: bytes = b"") -> None:
        super().__init__(why)
        self.data = data


class Piece(NamedTuple):
    """One report of a stream."""

    place: str  # "12" (line), "folder/name.json" (member); "" where the stream is one report
    data: bytes
    trouble: str = ""
    modified: float = 0.0  # of an archive's member


class ByteSpan(NamedTuple):
    """Where one report of a file is."""

    place: str  # "12" (line)
    offset: int
    size: int
    trouble: str = ""


def find_spans(file: BinaryIO) -> Iterator[ByteSpan] | None:
    """Lines of a regular file that are reports, for others to read; None: it is no file of lines. Raises OSError."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return None
    head = file.read(LABEL_HEAD_BYTES)
    file.seek(0)
    first = head.partition(b"\n")[0].strip()
    is_stream = find_compression(head) or head[_TAR_MAGIC] == b"ustar" or first in (b"{", b"") or is_labelled(head)
    return None if is_stream else _find_spans(file)


def _find_spans(file: BinaryIO) -> Iterator[ByteSpan]:
    """As _lines states it."""
    number = start = offset = 0
    while block := file.read(_BLOCK):
        at = 0
        while end := block.find(b"\n", at) + 1:
            number += 1
            yield from _find_span(file, number, start, offset + end, 1)
            at, start = end, offset + end
        offset += len(block)
        if offset - start > _MOST_SKIPPED:
            yield ByteSpan(str(number + 1), start, _KEPT, _ENDLESS)
            return
    yield from _find_span(file, number + 1, start, offset, 0)


def _find_span(file: BinaryIO, number: int, start: int, end: int, newline: int) -> Iterator[ByteSpan]:
    size = end - start
    if size - newline > REPORT_LIMIT_BYTES:
        yield ByteSpan(str(number), start, _KEPT, _TOO_LONG)
    elif size > _SHORT or os.pread(file.fileno(), size, start).strip():
        yield ByteSpan(str(number), start, size)


def read_pieces(file: BinaryIO, within: str = "") -> Iterator[Piece]:
    """The reports of a stream, as bytes. `within`: the archive's member that it is. Raises BadStream, OSError."""
    stream = _open_plain(io.BufferedReader(_Reading(file), _BLOCK))
    head = stream.peek(512)
    if head[_TAR_MAGIC] == b"ustar":
        if within:
            raise BadStream("an archive within an archive is not opened: unpack it first")
        yield from _read_members(stream)
        return
    labelled = is_labelled(stream.peek(LABEL_HEAD_BYTES)[:LABEL_HEAD_BYTES])
    first = stream.readline(REPORT_LIMIT_BYTES + 1)
    if labelled:
        yield from _split_labelled(first, stream)
    elif first.strip() in (b"{", b""):
        yield from _read_documents(first, stream)
    else:
        yield from _read_lines(first, stream)


class _Reading(io.RawIOBase):
    """Anything with `read(n)` as a raw stream. Raises BadStream."""

    def __init__(self, file: Any) -> None:
        self._read = file.read
        self._into = getattr(file, "readinto1", None)  # once less copied

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._into is not None:
            count: int = self._into(buffer)
            return count
        try:
            data = self._read(len(buffer))
        except DamagedData as error:
            raise BadStream(str(error)) from error
        buffer[: len(data)] = data
        return len(data)


def _open_plain(file: io.BufferedReader) -> io.BufferedReader:
    kind = find_compression(file.peek(MAGIC_BYTES))
    if kind is None:
        return file
    return io.BufferedReader(_Reading(DecompressedReader(file.read, kind)), _BLOCK)


def _read_members(stream: BinaryIO) -> Iterator[Piece]:
    """Regular files of a tar, taken by their names as those of a folder; nothing is unpacked to a disk."""
    place = ""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                place = member.name
                what = kind_of(place) if member.isreg() else None
                if what == "report" and member.size > REPORT_LIMIT_BYTES:
                    yield Piece(place, b"", _TOO_LONG)
                elif what is not None:
                    opened: Any = tar.extractfile(member)
                    yield from _read_member(place, what, opened, float(member.mtime))
                tar.members = []  # type: ignore[attr-defined]  # it would remember every one
    except (tarfile.TarError, EOFError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise BadStream(f"a damaged archive: {error}{f', after {place!r:.80}' if place else ''}") from error


def _read_member(place: str, what: str, file: Any, modified: float) -> Iterator[Piece]:
    if may_be_ours(place) and is_ours(file.peek(HEAD_BYTES)):
        return
    if what == "report":
        yield Piece(place, file.read(), modified=modified)
        return
    try:
        for piece in read_pieces(file, within=place):
            yield piece._replace(place=f"{place}:{piece.place}" if piece.place else place)
    except BadStream as error:  # of the member: what follows it in the archive is whole
        yield Piece(place, error.data, str(error))


def _read_lines(line: bytes, stream: BinaryIO) -> Iterator[Piece]:
    """A report a line; one that is too long is passed over to its end."""
    number = 1
    while line:
        if len(line) > REPORT_LIMIT_BYTES and not line.endswith(b"\n"):
            excerpt, skipped = line[:_KEPT], len(line)
            while line and not line.endswith(b"\n") and skipped <= _MOST_SKIPPED:
                line = stream.readline(_BLOCK)
                skipped += len(line)
            yield Piece(str(number), excerpt, _ENDLESS if skipped > _MOST_SKIPPED else _TOO_LONG)
            if skipped > _MOST_SKIPPED:
                return
        elif line.strip():
            yield Piece(str(number), line)
        number += 1
        line = stream.readline(REPORT_LIMIT_BYTES + 1)


def _split_labelled(line: bytes, stream: BinaryIO) -> Iterator[Piece]:
    """A report of each task, however its lines are cut."""
    rest = iter(lambda: stream.readline(REPORT_LIMIT_BYTES + 1), b"")
    for place, data in join_labelled(enumerate(chain((line,), rest), 1)):
        too_long = len(data) > REPORT_LIMIT_BYTES
        yield Piece(place, data[:_KEPT] if too_long else data, _TOO_LONG if too_long else "")


def _read_documents(line: bytes, stream: BinaryIO) -> Iterator[Piece]:
    """Whole files one after the other, as `cat *.json` gives: each ends with a line that is "}"."""
    number = start = 1
    lines: list[bytes] = []
    size = 0
    while line:
        if size <= REPORT_LIMIT_BYTES:
            lines.append(line)
        size += len(line)
        if line.rstrip(b"\r\n") == b"}":
            yield _join_document(start, lines, size)
            lines, size, start = [], 0, number + 1
        number += 1
        line = stream.readline(_BLOCK)
    if b"".join(lines).strip():
        yield _join_document(start, lines, size)


def _join_document(start: int, lines: list[bytes], size: int) -> Piece:
    data = b"".join(lines)
    if size > REPORT_LIMIT_BYTES:
        return Piece(str(start), data[:_KEPT], _TOO_LONG)
    return Piece(str(start), data)


LABEL_HEAD_BYTES = 1 << 16  # of a stream, in which the first report begins
HELD_BYTES = 256 << 20  # of reports that are not whole yet
_LABEL_BYTES = 1 << 10  # about what a label costs
_START = b'{"schema":'
_END = b"\n"  # as the report ends that a scan writes: it has the same digest
_LABEL = rb"[ \t]*(\[[^\]\s]{1,300}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252}:) "
_FIRST = re.compile(rb"^" + _LABEL + re.escape(_START), re.MULTILINE)
_LINE = re.compile(_LABEL)


def is_labelled(head: bytes) -> bool:
    r"""Whether reports of this stream have labels.

    >>> is_labelled(b'srun: job 7 queued\n 3: {"schema":"fabricscope'), is_labelled(b'{"schema": "a: {"}\n')
    (True, False)
    """
    return _FIRST.search(head) is not None


def join_labelled(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Whole reports with the number of the line on which each begins; what is no part of one as it is."""
    parts: dict[bytes, tuple[int, bytearray]] = {}
    size = 0
    for number, line in lines:
        match = _LINE.match(line)
        label = match[1] if match else b""
        text = line[match.end() if match else 0 :].rstrip(b"\r\n")
        begins = text.startswith(_START)
        if label not in parts and not begins:
            if text.strip():
                yield str(number), text
            continue
        if begins and label in parts:
            first, part = parts.pop(label)
            size -= len(part) + _LABEL_BYTES
            yield str(first), bytes(part) + _END
        if label not in parts:
            parts[label] = number, bytearray()
            size += _LABEL_BYTES
        first, part = parts[label]
        part += text
        size += len(text)
        if size > HELD_BYTES or not match or (text.endswith(b"}") and _is_json(part)):
            del parts[label]
            size -= len(part) + _LABEL_BYTES
            yield str(first), bytes(part) + _END
    for first, part in parts.values():
        yield str(first), bytes(part) + _END


def _is_json(data: bytearray) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
