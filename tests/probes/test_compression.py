"""Bytes without their compression, in memory and as a stream."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from io import BytesIO

import pytest
import zstandard

from probes.compression import STEP_BYTES, DamagedData, DecompressedReader, decompress, find_compression

Pack = Callable[[bytes], bytes]
PACK: dict[str, Pack] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
TEXT = b"".join(b"line %d\n" % number for number in range(30_000))


@pytest.mark.parametrize("kind", PACK)
def test_every_form_is_read(kind: str) -> None:
    """Whole, to a limit, several one after the other, and with padding behind them."""
    packed = PACK[kind](TEXT)

    assert find_compression(packed) == kind
    assert decompress(packed, 1 << 20) == TEXT
    assert decompress(packed, 10) == TEXT[:10]
    assert decompress(packed + PACK[kind](b"") + packed, 1 << 20) == TEXT + TEXT
    assert decompress(packed + bytes(1000), 1 << 20) == TEXT


@pytest.mark.parametrize("kind", PACK)
def test_what_is_damaged_is_no_text(kind: str) -> None:
    packed = PACK[kind](TEXT)
    for damaged, why in (
        (packed[:-9], "truncated"),
        (packed[:6] + b"x" * 100, f"damaged {kind}"),
        (packed + b"x" * 100, f"in part 2, or no {kind} behind the one before"),
    ):
        with pytest.raises(DamagedData, match=why):
            decompress(damaged, 1 << 20)


def test_plain_bytes_stay() -> None:
    assert decompress(b"plain", 2) == b"plain"
    assert decompress(b"", 2) == b""


@pytest.mark.parametrize("kind", PACK)
def test_a_bomb_is_read_piece_by_piece(kind: str) -> None:
    """Of a gigabyte of zeros no more is read than is asked for."""
    packed = BytesIO(PACK[kind](bytes(64 << 20)))
    reader = DecompressedReader(packed.read, kind)

    assert 0 < len(reader.read(1 << 30)) <= (STEP_BYTES if kind != "zstd" else 64 << 20)


def test_empty_parts_have_an_end() -> None:
    with pytest.raises(DamagedData, match="more than 10000 parts"):
        decompress(gzip.compress(b"") * 20_000, 1 << 20)
