"""Damage: bytes flipped, cut, doubled, spliced with another seed, and tokens put in that parsers trip on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

LONGEST_BYTES, BLOCK_BYTES = 64 << 10, 512
TOKENS = (
    b"", b"\n", b"\r\n", b"\t", b"\0", b" ", b":", b"=", b",", b"-", b".", b"/", b"../", b'"', b"'", b"\\", b"{", b"[",
    b"<", b"&x;", b"<!ENTITY x 'y'>", b"0", b"-1", b"9" * 40, b"1e999", b"0x", b"nan", b"\xff", b"\xff" * 8, b"\x80",
    "²".encode(), "٣".encode(), "\u2028".encode(), b"\x1b[31m", b"GPU0", b"0000:00:00.0", b"[N/A]", b"\x1f\x8b",
    b"(" * 50, b"a" * 300, b"null", b"true", b"0-4294967295", b" : ", b"GPU 1", b"Link 7: ",
)  # fmt: skip


def mutated(random: Random, seeds: Sequence[bytes]) -> bytes:
    """One damaged input of at most 64 KiB."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        random.choice(_DAMAGES)(random, data, seeds)
    return bytes(data[:LONGEST_BYTES])


def with_checksums(data: bytes) -> bytes:
    """A tar whose headers' checksums are true again, wherever damage left a header in its place."""
    mended = bytearray(data)
    for index in range(0, len(mended) - BLOCK_BYTES + 1, BLOCK_BYTES):
        header = mended[index : index + BLOCK_BYTES]
        if header[257:262] == b"ustar":
            header[148:156] = b" " * 8
            mended[index + 148 : index + 156] = b"%06o\0 " % sum(header)
    return bytes(mended)


def _flip(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    for _each in range(random.choice((1, 1, 4, 16)) if data else 0):
        data[random.randrange(len(data))] = random.randrange(256)


def _cut(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[random.randrange(len(data) + 1) :]


def _drop(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    offset = random.randrange(len(data) + 1)
    del data[offset : offset + random.choice((1, 8, 80, 800))]


def _double(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    offset = random.randrange(len(data) + 1)
    piece = data[offset : offset + random.choice((1, 8, 80, 800))]
    data[offset:offset] = piece * min(random.choice((1, 2, 50, 2000)), LONGEST_BYTES // max(len(piece), 1))


def _insert(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    offset = random.randrange(len(data) + 1)
    data[offset : offset + random.choice((0, 0, 1, 4))] = random.choice(TOKENS)


def _pump(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """One token over and over: what a pattern that tries every way to split it never ends on."""
    offset, token = random.randrange(len(data) + 1), random.choice(TOKENS) or b"a: b\n"
    data[offset:offset] = token * (random.choice((1000, LONGEST_BYTES)) // len(token))


def _number(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Another number in the place of one, where a text has any."""
    digits = [index for index in range(min(len(data), 4096)) if 48 <= data[index] <= 57]
    if digits:
        at = random.choice(digits)
        data[at : at + 1] = random.choice((b"0", b"65536", b"4294967295", b"18446744073709551616", b"-5", b"1.5"))


def _splice(random: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    data[random.randrange(len(data) + 1) :] = other[random.randrange(len(other) + 1) :]


def _scatter(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Any characters in the place of all of it, half of them of other scripts."""
    codes = (random.randrange(random.choice((128, 0x3000))) for _each in range(random.randrange(200)))
    data[:] = "".join(map(chr, codes)).encode()


_DAMAGES = (_flip, _cut, _drop, _double, _insert, _insert, _number, _pump, _scatter, _splice)


def replace_value(random: Random, document: Any, values: Sequence[Any]) -> None:
    """Put another value somewhere into a document."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        key = random.choice(keys)
        inner = document[key]
        if not isinstance(inner, (dict, list)) or not inner or random.random() < 0.05:
            document[key] = copy.deepcopy(random.choice(values))
            return
        document = inner
