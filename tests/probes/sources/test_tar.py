"""The tar reader: every writer's format gives the same members, and damage is never taken for the end."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.host.interface import BadSource
from probes.sources.archive import Member, is_tar, members
from probes.sources.decompress import DecompressedStream

LONG = "sys/" + "d" * 90 + "/" + "e" * 90 + "/vendor"


def read(data: bytes, folder: Path) -> list[Member]:
    path = folder / "a.tar"
    path.write_bytes(data)
    with DecompressedStream(str(path)) as stream:
        return list(members(stream))


def packed(form: int, *rows: tuple[str, bytes, str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for name, kind, link, content in rows:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_format_gives_the_same_members(form: int, tmp_path: Path) -> None:
    """Long names, links, directories and contents are what was packed, in ustar, GNU and pax."""
    data = packed(
        form,
        ("sys", tarfile.DIRTYPE, "", b""),
        (LONG, tarfile.REGTYPE, "", b"0x10de\n"),
        ("sys/link", tarfile.SYMTYPE, "../devices/é", b""),
        ("sys/hard", tarfile.LNKTYPE, "sys/link", b""),
        ("dev/null", tarfile.CHRTYPE, "", b""),
    )

    assert read(data, tmp_path) == [
        Member("sys/", "directory"),
        Member(LONG, "file", content=b"0x10de\n"),
        Member("sys/link", "symbolic link", "../devices/é"),
        Member("sys/hard", "hard link", "sys/link"),
        Member("dev/null", "character device"),
    ]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_of_four_kilobytes_and_of_no_encoding(form: int, tmp_path: Path) -> None:
    """The longest path of Linux is read whole; bytes that are no UTF-8 come back as the same bytes."""
    long = "/".join(["x" * 250] * 16)
    outlier = b"proc/\xff\xfe".decode("utf-8", "surrogateescape")
    data = packed(form, (long, tarfile.REGTYPE, "", b"1"), (outlier, tarfile.REGTYPE, "", b"2"))

    assert [long, outlier] == [member.name for member in read(data, tmp_path)]


def test_a_name_longer_than_any_path_is_refused(tmp_path: Path) -> None:
    """More than PATH_MAX is no file of a machine."""
    data = packed(tarfile.GNU_FORMAT, ("x" * 5000, tarfile.REGTYPE, "", b""))

    with pytest.raises(BadSource, match="a name of more than 4096 bytes"):
        read(data, tmp_path)


@pytest.mark.parametrize("options", [["--format=gnu"], ["--format=posix"], ["--format=posix", "--sparse-version=0.1"]])
def test_sparse_files_are_read_as_their_readers_saw_them(
    options: list[str], tmp_path: Path, real_commands: None
) -> None:
    """GNU tar's three ways to store holes give the same bytes as the file."""
    tool = shutil.which("tar")
    if tool is None:
        pytest.skip("no tar here")
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        for offset in (0, 1 << 20, 3 << 20):
            file.seek(offset)
            file.write(f"at {offset}".encode())
        file.truncate(4 << 20)
    data = subprocess.run(
        [tool, "-cS", *options, "-f", "-", "-C", str(tmp_path), "sparse"], capture_output=True, check=True
    )
    assert len(data.stdout) < 1 << 20, "the sample is no sparse archive"

    (member,) = read(data.stdout, tmp_path)

    assert sparse.read_bytes() == member.content


def test_an_archive_cut_at_any_block_is_an_error(tmp_path: Path) -> None:
    """No part is presented as the whole: not even one that ends at a member's end."""
    whole = packed(tarfile.PAX_FORMAT, (LONG, tarfile.REGTYPE, "", b"x" * 700), ("b", tarfile.REGTYPE, "", b"y" * 20))
    end = whole.rstrip(b"\0")
    last = -(-len(end) // 512) * 512
    assert last > 5 * 512

    for cut in range(0, last + 1, 128):
        with pytest.raises(BadSource, match=r"a\.tar: is (cut short|damaged)"):
            read(whole[:cut], tmp_path)
    assert 2 == len(read(whole[: last + 512], tmp_path))


def test_a_damaged_header_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    """tarfile would stop here and call the first member the whole archive."""
    whole = bytearray(packed(tarfile.USTAR_FORMAT, ("a", tarfile.REGTYPE, "", b"1"), ("b", tarfile.REGTYPE, "", b"2")))
    whole[1024 + 3] ^= 0x40

    with pytest.raises(BadSource, match="check sum"):
        read(bytes(whole), tmp_path)


def header(size: bytes = b"00000000000\0", kind: bytes = b"0", name: bytes = b"x") -> bytes:
    block = bytearray(512)
    block[: len(name)] = name
    block[124:136] = size.ljust(12, b"\0")
    block[156:157] = kind
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (header(b"\xff" * 12), "negative size"),
        (header(b"\x80" + b"\xff" * 11), "sizes that no file has|cut short"),
        (header(b"\x80" + bytes(5) + b"\x01" + bytes(5)), "cut short"),
        (header(b"77777777777\0", kind=b"x"), "a header of"),
        (header(b"00000002000\0", kind=b"x") + b"9" * 1024, "extended header|not decimal"),
        (header(b"00000002000\0", kind=b"x") + b"4 a\n" * 256, "extended header"),
        (header(kind=b"x") * 9, "more than 8 headers"),
        (header(kind=b"L") + header(kind=b"L"), "cut short"),
        (header(b"88888888888\0"), "not octal"),
    ],
)
def test_hostile_headers(data: bytes, why: str, tmp_path: Path) -> None:
    """Sizes beyond reason, negative ones, headers without a member: one clear line each, no memory, no traceback."""
    with pytest.raises(BadSource, match=why):
        read(data, tmp_path)


@given(st.binary(max_size=2048), st.integers(0, 3000))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    """Any damage to a real archive gives members or BadSource."""
    whole = packed(tarfile.PAX_FORMAT, (LONG, tarfile.REGTYPE, "", b"x" * 700), ("l", tarfile.SYMTYPE, "sys", b""))
    damaged = whole[:at] + noise + whole[at + len(noise) :]

    try:
        result = read(damaged, tmp_path_factory.mktemp("tar"))
    except BadSource:
        return

    assert all(isinstance(member, Member) for member in result)


def test_text_is_no_tar() -> None:
    """A saved output is told from an archive by its first block."""
    assert not is_tar(b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" * 20)
    assert not is_tar(b"")
    assert is_tar(header())
