"""Archives into memory: compressed in any way, never on disk, and bounded where they are hostile."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from pathlib import Path

import pytest
import zstandard

from probes.host.files import Files
from probes.host.folder import FolderFiles
from probes.host.interface import Absent, BadSource, Failed, ReadError
from probes.sources import archive
from probes.sources import decompress as inflate
from probes.sources.archive import load
from probes.sources.memory import MemoryFiles

COMPRESSORS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def packed(*rows: tuple[str, str, str | bytes]) -> bytes:
    """(name, kind, link target or content)"""
    kinds = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
    kinds |= {"device": tarfile.BLKTYPE, "fifo": tarfile.FIFOTYPE}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, what in rows:
            info = tarfile.TarInfo(name)
            info.type = kinds[kind]
            if isinstance(what, str):
                info.linkname = what
                tar.addfile(info)
            else:
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
    return buffer.getvalue()


def opened(data: bytes, folder: Path) -> MemoryFiles:
    path = folder / "evidence"
    path.write_bytes(data)
    files = load(str(path))
    assert files is not None, "is a tar"
    return files


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_compression_is_known_by_content(compression: str, tmp_path: Path) -> None:
    """The file's name says nothing; each compression gives the same files."""
    data = COMPRESSORS[compression](packed(("./sys/a", "file", b"1\n"), ("sys/b", "link", "a")))

    assert b"1\n" == opened(data, tmp_path).read("/sys/b")


@pytest.mark.parametrize("compression", [name for name in COMPRESSORS if name != "plain"])
def test_a_truncated_archive_is_an_error(compression: str, tmp_path: Path) -> None:
    """Wherever the compressed bytes end too early, nothing of the archive is presented."""
    data = COMPRESSORS[compression](packed(*((f"sys/{i}", "file", bytes([i]) * 3000) for i in range(40))))

    for part in (1, 3, 5, 7):
        with pytest.raises(BadSource, match=r"evidence: is (damaged|cut short)"):
            opened(data[: len(data) * part // 8], tmp_path)


def test_a_flipped_bit_in_a_gzip_is_an_error(tmp_path: Path) -> None:
    """The check sum stands behind the last member: it is looked at."""
    data = bytearray(gzip.compress(packed(("sys/a", "file", bytes(range(256)) * 40)), 0))
    data[len(data) // 2] ^= 1

    with pytest.raises(BadSource, match="damaged"):
        opened(bytes(data), tmp_path)


def test_two_gzip_members_and_padding_are_one_file(tmp_path: Path) -> None:
    """What `cat a.gz b.gz` and parallel compressors write."""
    data = packed(("sys/a", "file", b"1"))
    many = gzip.compress(data[:700]) + gzip.compress(data[700:])
    blocks = lzma.compress(data[:700]) + lzma.compress(data[700:])

    assert b"1" == opened(many, tmp_path).read("/sys/a")
    assert b"1" == opened(blocks, tmp_path).read("/sys/a")


def test_no_member_leaves_the_archive(tmp_path: Path) -> None:
    """Absolute names begin at the archive's root; links are followed inside it, wherever they point."""
    files = opened(
        packed(
            ("/etc/shadow", "file", b"the archive's"),
            ("sys/up", "link", "../../../../../../etc/shadow"),
            ("sys/absolute", "link", "/etc/shadow"),
            ("sys/outside", "link", "/root/.ssh"),
            ("sys/loop", "link", "loop"),
        ),
        tmp_path,
    )

    assert b"the archive's" == files.read("/etc/shadow") == files.read("/sys/up") == files.read("/sys/absolute")
    for path in ("/sys/outside", "/sys/loop", "/etc/hostname"):
        with pytest.raises(Absent):
            files.read(path)


def test_a_member_that_climbs_is_refused(tmp_path: Path) -> None:
    """'..' in a name is no accident."""
    with pytest.raises(BadSource, match=r"its member 'sys/\.\./\.\./etc/cron' climbs out"):
        opened(packed(("sys/../../etc/cron", "file", b"x")), tmp_path)


def test_a_member_below_a_link_is_refused(tmp_path: Path) -> None:
    """The oldest trick: a link to somewhere, then a file through it."""
    with pytest.raises(BadSource, match="lies below something that is no directory"):
        opened(packed(("sys", "link", "/tmp"), ("sys/x", "file", b"x")), tmp_path)


def test_devices_and_fifos_are_there_and_not_read(tmp_path: Path) -> None:
    """They have an answer, which is not that they are absent."""
    files = opened(packed(("dev/sda", "device", ""), ("dev/pipe", "fifo", "")), tmp_path)

    assert ["pipe", "sda"] == files.listdir("/dev")
    with pytest.raises(Failed, match="/dev/sda: is a block device, which is not read"):
        files.read("/dev/sda")
    with pytest.raises(Failed, match="a FIFO"):
        files.read("/dev/pipe")


def test_hard_links_share_the_content_that_came_before(tmp_path: Path) -> None:
    """One that points nowhere fails when it is read, and says why."""
    files = opened(packed(("a", "file", b"1"), ("b", "hard", "./a"), ("c", "hard", "later")), tmp_path)

    assert b"1" == files.read("/b")
    with pytest.raises(Failed, match="hard link"):
        files.read("/c")


def test_a_later_member_replaces_an_earlier_one(tmp_path: Path) -> None:
    """As tar itself unpacks them (`tar -r`)."""
    files = opened(packed(("a", "file", b"old"), ("a", "file", b"new")), tmp_path)

    assert b"new" == files.read("/a")


def test_the_number_of_entries_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that are written over count too, and so do directories that only names imply."""
    monkeypatch.setattr(archive, "ENTRIES_LIMIT", 50)
    same = [("a", "file", b"")] * 60
    deep = [("/".join(str(i) for i in range(60)), "file", b"")]

    for rows in (same, deep):
        with pytest.raises(BadSource, match="holds more than 50 files"):
            opened(packed(*rows), tmp_path)


def test_a_million_entries_are_refused(tmp_path: Path) -> None:
    """A few kilobytes of gzip that would be a million files: one line, and soon."""
    one = packed(("a", "file", b""))[:512]
    data = gzip.compress(one * 1_000_000 + bytes(1024), 1)

    with pytest.raises(BadSource, match="holds more than 200,000 files"):
        opened(data, tmp_path)


def test_the_bytes_kept_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred large files are refused, not cut."""
    monkeypatch.setattr(archive, "KEPT_LIMIT_BYTES", 10 << 20)

    with pytest.raises(BadSource, match="holds more than 10 MiB"):
        opened(gzip.compress(packed(*((str(i), "file", bytes(1 << 20)) for i in range(12))), 1), tmp_path)


@pytest.mark.parametrize("compression", [name for name in COMPRESSORS if name != "plain"])
def test_a_bomb_ends_at_the_bound(compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of a declared gigabyte behind a few kilobytes."""
    monkeypatch.setattr(inflate, "INFLATED_LIMIT_BYTES", 24 << 20)
    head = bytearray(packed(("sys/bomb", "file", b""))[:512])
    head[124:136] = f"{1 << 30:011o}\0".encode()
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()

    with pytest.raises(BadSource, match="decompresses to more than 24 MiB"):
        opened(COMPRESSORS[compression](bytes(head) + bytes(32 << 20)), tmp_path)


def test_a_decompressor_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    """A dictionary of a gigabyte is asked for before a byte is decompressed."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    data = bytearray(lzma.compress(packed(("a", "file", b"1")), filters=filters))

    with pytest.raises(BadSource, match=r"[Mm]emory"):
        opened(bytes(data), tmp_path)


def test_what_is_no_tar_is_left_to_others(tmp_path: Path) -> None:
    """None: it may be a saved output."""
    path = tmp_path / "ibstat.txt"
    path.write_text("CA 'mlx5_0'\n")

    assert load(str(path)) is None


def test_a_fifo_is_no_source(tmp_path: Path) -> None:
    """Opening one would wait for a writer."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(BadSource, match="neither a folder nor a regular file"):
        load(str(tmp_path / "pipe"))


def test_every_tree_of_the_corpus_is_the_same_packed_and_unpacked(corpus: Path, tmp_path: Path) -> None:
    """Two readers that share nothing agree on a real machine: our tar in memory, tarfile's on disk."""
    packed_tree = corpus / "trees" / "gcm-learn_good.tar.xz"
    with tarfile.open(packed_tree) as tar:
        tar.extractall(tmp_path, **({"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}))
    memory = load(str(packed_tree))
    assert memory is not None, "is a tar"

    seen = everything(FolderFiles(str(tmp_path)), "/")

    assert seen == everything(memory, "/")
    assert len(seen) > 1000


def everything(files: Files, directory: str) -> dict[str, object]:
    """Every path with its link, content or reason."""
    result: dict[str, object] = {}
    for name in files.listdir(directory):
        path = f"{directory.rstrip('/')}/{name}"
        for ask in (files.readlink, files.read, files.listdir):
            try:
                result[f"{ask.__name__} {path}"] = ask(path)
            except ReadError as why:
                result[f"{ask.__name__} {path}"] = (why.status, why.reason, why.code)
        if isinstance(result[f"listdir {path}"], list) and not isinstance(result[f"readlink {path}"], str):
            result |= everything(files, path)
    return result
