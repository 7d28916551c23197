"""A tar archive into memory, within stated limits: more than they allow is refused with one line, never cut.

The members of a tar stream: v7, ustar, GNU and pax headers, long names, sparse files; strict and bounded.

Why not `tarfile`: it takes a damaged header for the end of the archive, so that a part passes for the whole; it
keeps every member; and before its fixes of 2024 a hostile pax header costs it quadratic time.
Format: POSIX.1-2017 pax, "ustar Interchange Format"; the GNU tar manual, "Basic Tar Format", "Storing Sparse Files".
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.host.interface import OUTPUT_LIMIT_BYTES
from probes.named_tuple import NamedTuple
from probes.sources.decompress import DecompressedStream
from probes.sources.memory import MemoryFiles, Node, SpecialNode, SymlinkNode
from probes.sources.sosreport import is_of_sos, is_read, is_read_log, shorten_log

BLOCK_BYTES = 512
NAME_LIMIT_BYTES = 4096  # PATH_MAX
EXTENSION_LIMIT_BYTES = 1 << 20  # one pax or long-name header
EXTENSIONS_LIMIT = 8  # such headers before one member; writers use at most three
SEGMENTS_LIMIT = 10_000  # of one sparse file
CONTENT_LIMIT_BYTES = OUTPUT_LIMIT_BYTES  # no call of the host interface can read more of one file
END = bytes(BLOCK_BYTES)

FILE, HARD_LINK, SYMBOLIC_LINK, DIRECTORY = "file", "hard link", "symbolic link", "directory"
_KINDS = {
    b"\0": FILE,
    b"0": FILE,
    b"7": FILE,
    b"S": FILE,
    b"1": HARD_LINK,
    b"2": SYMBOLIC_LINK,
    b"3": "character device",
    b"4": "block device",
    b"5": DIRECTORY,
    b"6": "FIFO",
}


class Member(NamedTuple):
    """One member. `link` is a link's target; `content` the first CONTENT_LIMIT_BYTES of a file."""

    name: str
    kind: str
    link: str = ""
    content: bytes = b""


class _Header(NamedTuple):
    name: bytes
    type: bytes
    size: int
    link: bytes
    block: bytes


class _Malformed(ValueError):
    """A header that no tar writer makes; the message states what is wrong with it."""


def is_tar(block: bytes) -> bool:
    """Whether a file that starts so is a tar.

    >>> is_tar(b"GPU 0: NVIDIA H100 80GB HBM3".ljust(512))
    False
    """
    if len(block) != BLOCK_BYTES:
        return False
    try:
        _header(block)
    except _Malformed:
        return block == END
    return True


def members(stream: DecompressedStream) -> Iterator[Member]:
    """Every member to the end mark. Raises BadSource for an archive that is damaged, cut short or hostile."""
    shared: dict[str, str] = {}
    while (block := stream.read(BLOCK_BYTES)) != END:
        if len(block) != BLOCK_BYTES:
            raise stream.bad("is cut short: the archive has no end mark")
        try:
            member = _next_member(stream, _header(block), shared)
        except _Malformed as error:
            raise stream.bad(f"is damaged: {error}") from None
        if member is not None:
            yield member
    stream.drain()


def _next_member(stream: DecompressedStream, header: _Header, shared: dict[str, str]) -> Member | None:
    """The member of this header, and of the extension headers before it; None for what is no file (a volume label)."""
    extended = dict(shared)
    for _ in range(EXTENSIONS_LIMIT):
        if header.type == b"L":
            extended["path"] = _text(_extension(stream, header).split(b"\0", 1)[0])
        elif header.type == b"K":
            extended["linkpath"] = _text(_extension(stream, header).split(b"\0", 1)[0])
        elif header.type in b"xX":
            extended.update(_pax(_extension(stream, header)))
        elif header.type == b"g":
            shared.update(_pax(_extension(stream, header)))
            return None
        else:
            return _member(stream, header, extended)
        block = stream.read(BLOCK_BYTES)
        if len(block) != BLOCK_BYTES:
            raise stream.bad("is cut short: a header has no member")
        header = _header(block)
    raise _Malformed(f"more than {EXTENSIONS_LIMIT} headers for one member")


def _member(stream: DecompressedStream, header: _Header, extended: dict[str, str]) -> Member | None:
    name = extended.get("GNU.sparse.name") or extended.get("path") or _text(header.name)
    link = extended.get("linkpath") or _text(header.link)
    if max(len(name), len(link)) > NAME_LIMIT_BYTES:
        raise _Malformed(f"a name of more than {NAME_LIMIT_BYTES} bytes ({name[:40]!a}...)")
    size = _decimal(extended["size"]) if "size" in extended else header.size
    kind = _KINDS.get(header.type, "member of an unknown kind")
    if kind == FILE and name.endswith("/") and header.type != b"S":
        kind = DIRECTORY
    if kind == FILE:
        return Member(name, kind, link, _read_content(stream, header, extended, size))
    if header.type not in b"123456":
        stream.skip(_pad(size))
    return None if header.type == b"V" else Member(name, kind, link)


def _read_content(stream: DecompressedStream, header: _Header, extended: dict[str, str], size: int) -> bytes:
    """A file's content, at most CONTENT_LIMIT_BYTES of it; the stream is left at the next header."""
    if header.type == b"S":
        segments, whole = _gnu_segments(stream, header.block)
    elif "GNU.sparse.map" in extended:
        numbers = [_decimal(n) for n in extended["GNU.sparse.map"].split(",")]
        segments, whole = _pairs(numbers), _decimal(extended.get("GNU.sparse.size", ""))
    elif extended.get("GNU.sparse.major") == "1":
        segments, used = _written_segments(stream)
        size, whole = size - used, _decimal(extended.get("GNU.sparse.realsize", ""))
    else:
        return _read_exactly(stream, size)
    return _fill_segments(_read_exactly(stream, size), segments, whole)


def _read_exactly(stream: DecompressedStream, size: int) -> bytes:
    if size < 0:
        raise _Malformed("a negative size")
    content = stream.read(min(size, CONTENT_LIMIT_BYTES))
    if len(content) != min(size, CONTENT_LIMIT_BYTES):
        raise stream.bad("is cut short in the middle of a file")
    stream.skip(_pad(size) - len(content))
    return content


def _fill_segments(data: bytes, segments: list[tuple[int, int]], whole: int) -> bytes:
    """A sparse file as a reader sees it: its segments where they belong, zeros between them."""
    content = bytearray(min(whole, CONTENT_LIMIT_BYTES))
    at = 0
    for offset, size in segments:
        room = max(0, min(size, len(content) - offset, len(data) - at))
        content[offset : offset + room] = data[at : at + room]
        at += size
    return bytes(content)


def _gnu_segments(stream: DecompressedStream, block: bytes) -> tuple[list[tuple[int, int]], int]:
    fields, more = block[386:482], block[482]
    numbers: list[int] = []
    while True:
        numbers += [_number(fields[i : i + 12]) for i in range(0, len(fields), 12) if fields[i : i + 12].strip(b"\0 ")]
        if len(numbers) > 2 * SEGMENTS_LIMIT:
            raise _Malformed("a sparse file of too many segments")
        if not more:
            return _pairs(numbers), _number(block[483:495])
        block_ = stream.read(BLOCK_BYTES)
        if len(block_) != BLOCK_BYTES:
            raise stream.bad("is cut short in the middle of a sparse file's map")
        fields, more = block_[:504], block_[504]


def _written_segments(stream: DecompressedStream) -> tuple[list[tuple[int, int]], int]:
    """pax sparse 1.0: the map is before the data, one decimal number a line; and how many bytes it takes."""
    parts: list[bytes] = []
    lines = 0
    wanted = 2 * SEGMENTS_LIMIT + 1
    while lines < wanted and len(parts) * BLOCK_BYTES < 40 * SEGMENTS_LIMIT:
        block = stream.read(BLOCK_BYTES)
        if not block:
            break
        parts.append(block)
        if not lines and b"\n" in block:
            wanted = 2 * _decimal(_text(b"".join(parts).split(b"\n", 1)[0])) + 1
        lines += block.count(b"\n")
    text = b"".join(parts)
    if lines < wanted:
        raise _Malformed("a sparse file without a readable map")
    return _pairs([_decimal(_text(line)) for line in text.split(b"\n", wanted)[1:wanted]]), len(text)


def _pairs(numbers: list[int]) -> list[tuple[int, int]]:
    if len(numbers) % 2 or len(numbers) > 2 * SEGMENTS_LIMIT or min(numbers, default=0) < 0:
        raise _Malformed("a sparse file without a readable map")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _extension(stream: DecompressedStream, header: _Header) -> bytes:
    if not 0 <= header.size <= EXTENSION_LIMIT_BYTES:
        raise _Malformed(f"a header of {header.size} bytes")
    return _read_exactly(stream, header.size)


def _pax(data: bytes) -> dict[str, str]:
    r"""Records of an extended header. Only what places or sizes a member is kept.

    >>> _pax(b"20 path=sys/class/x\n" + b"23 mtime=1700000000.12\n")
    {'path': 'sys/class/x'}
    """
    records: dict[str, str] = {}
    at = 0
    old_map: list[str] = []
    while at < len(data) and data[at : at + 1] != b"\0":
        space = data.find(b" ", at, at + 12)
        length = _decimal(_text(data[at:space])) if space > at else 0
        record = data[space + 1 : at + length]
        key, equals, value = record[:-1].partition(b"=")
        if length < 5 or not equals or record[-1:] != b"\n":
            raise _Malformed("an extended header that is not valid")
        at += length
        if key in (b"path", b"linkpath", b"size") or key.startswith(b"GNU.sparse."):
            records[_text(key)] = _text(value)
        if key in (b"GNU.sparse.offset", b"GNU.sparse.numbytes"):  # sparse 0.0 repeats them
            old_map.append(_text(value))
    if old_map:
        records["GNU.sparse.map"] = ",".join(old_map)
    return records


def _header(block: bytes) -> _Header:
    if _number(block[148:156]) != sum(block[:148]) + 256 + sum(block[156:]):
        raise _Malformed("a header whose check sum is wrong")
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0" and block[345]:
        name = block[345:500].split(b"\0", 1)[0] + b"/" + name
    size = _number(block[124:136])
    if size < 0:
        raise _Malformed("a negative size")
    return _Header(name, block[156:157], size, block[157:257].split(b"\0", 1)[0], block)


def _number(field: bytes) -> int:
    r"""A numeric header field: octal text, or base 256 where its first bit is set.

    >>> _number(b"0000644\0"), _number(b"\x80" + bytes(8) + b"\x01\x00\x00"), _number(b" \0")
    (420, 65536, 0)
    """
    if field[0] & 0x80:
        value = int.from_bytes(field, "big")
        return value - (0x80 << 8 * (len(field) - 1)) if not field[0] & 0x40 else value - (1 << 8 * len(field))
    text = field.split(b"\0", 1)[0].strip()
    if text.strip(b"01234567"):
        raise _Malformed("a number that is not octal")
    return int(text or b"0", 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise _Malformed("a number that is not decimal")
    return int(text)


def _pad(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


ENTRIES_LIMIT = 200_000  # members, and the directories that their names imply
KEPT_LIMIT_BYTES = 128 << 20  # contents and names
_TOO_LONG = f"file longer than {OUTPUT_LIMIT_BYTES >> 20} MiB"


def load(path: str) -> MemoryFiles | None:
    """The files of a tar, or None where the file is none. Raises BadSource."""
    with DecompressedStream(path) as stream:
        start = stream.peek(BLOCK_BYTES)
        if stream.compressed and len(start) < BLOCK_BYTES:
            raise stream.bad("is cut short, or is not an archive")
        if not is_tar(start):
            return None
        files = MemoryFiles()
        entries = size = 0
        of_sos = False
        for member in members(stream):
            of_sos = of_sos or is_of_sos(member.name)
            if of_sos and member.kind == FILE and not is_read(member.name):
                member = Member(member.name, "log or output that no probe asks for")
            if of_sos and member.kind == FILE and is_read_log(member.name):
                short = shorten_log(member.name, member.content)
                member = member._replace(content=short) if short is not None else Member(member.name, _TOO_LONG)
            if of_sos and len(member.content) > OUTPUT_LIMIT_BYTES:
                member = Member(member.name, _TOO_LONG)
            node = _node(files, member)
            try:
                new = files.add(member.name, node)
            except ValueError as error:
                raise stream.bad(f"is refused: its member {member.name[:120]!a} {error}") from None
            entries += max(1, new)
            size += len(member.content) + len(member.name) + len(member.link)
            if entries > ENTRIES_LIMIT:
                raise stream.bad(f"is refused: it holds more than {ENTRIES_LIMIT:,} files")
            if size > KEPT_LIMIT_BYTES:
                raise stream.bad(f"is refused: it holds more than {KEPT_LIMIT_BYTES >> 20} MiB")
        return files if entries or stream.compressed else None  # zeros alone: of a log that a crash cut short


def _node(files: MemoryFiles, member: Member) -> Node:
    if member.kind == FILE:
        return member.content
    if member.kind == DIRECTORY:
        return {}
    if member.kind == SYMBOLIC_LINK:
        return SymlinkNode(member.link)
    if member.kind == HARD_LINK:
        twin = files.find(member.link)
        return (
            twin
            if isinstance(twin, bytes)
            else SpecialNode("a hard link to a file that the archive does not hold before it")
        )
    return SpecialNode(f"a {member.kind}")
