"""A tar archive into memory, within stated limits: more than they allow is refused with one line, never cut."""

from __future__ import annotations

from probes.host.interface import OUTPUT_LIMIT_BYTES
from probes.sources.decompress import Inflated
from probes.sources.memory import Link, MemoryFiles, Node, Odd
from probes.sources.sosreport import is_of_sos, is_read
from probes.sources.tar import BLOCK_BYTES, DIRECTORY, FILE, HARD_LINK, SYMBOLIC_LINK, Member, is_tar, members

ENTRIES_LIMIT = 200_000  # members, and the directories that their names imply
KEPT_LIMIT_BYTES = 128 << 20  # contents and names


def load(path: str) -> MemoryFiles | None:
    """The files of a tar, or None where the file is none. Raises BadSource."""
    with Inflated(path) as stream:
        start = stream.peek(BLOCK_BYTES)
        if stream.compressed and len(start) < BLOCK_BYTES:
            raise stream.bad("is cut short, or is no archive")
        if not is_tar(start):
            return None
        files = MemoryFiles()
        entries = kept = 0
        of_sos = False
        for member in members(stream):
            of_sos = of_sos or is_of_sos(member.name)
            if of_sos and member.kind == FILE and not is_read(member.name):
                member = Member(member.name, "log or output that no probe asks for")
            if of_sos and len(member.content) > OUTPUT_LIMIT_BYTES:
                member = Member(member.name, f"file longer than {OUTPUT_LIMIT_BYTES >> 20} MiB")
            node = _node(files, member)
            try:
                new = files.add(member.name, node)
            except ValueError as error:
                raise stream.bad(f"is refused: its member {member.name[:120]!a} {error}") from None
            entries += max(1, new)
            kept += len(member.content) + len(member.name) + len(member.link)
            if entries > ENTRIES_LIMIT:
                raise stream.bad(f"is refused: it holds more than {ENTRIES_LIMIT:,} files")
            if kept > KEPT_LIMIT_BYTES:
                raise stream.bad(f"is refused: it holds more than {KEPT_LIMIT_BYTES >> 20} MiB")
        return files


def _node(files: MemoryFiles, member: Member) -> Node:
    if member.kind == FILE:
        return member.content
    if member.kind == DIRECTORY:
        return {}
    if member.kind == SYMBOLIC_LINK:
        return Link(member.link)
    if member.kind == HARD_LINK:
        twin = files.find(member.link)
        return (
            twin if isinstance(twin, bytes) else Odd("a hard link to a file that the archive does not hold before it")
        )
    return Odd(f"a {member.kind}")
