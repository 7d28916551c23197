"""Both file stores: links never leave the root, what is no file is never opened, a reason for everything."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.host.files import NEVER_READ
from probes.host.folder import FIRST_CHUNK_BYTES, FolderFiles, LiveFiles
from probes.host.interface import Absent, Denied, Failed, ReadError, TimedOut, error_from_errno
from probes.sources.memory import MemoryFiles, Node, SymlinkNode

NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "é", "\udcff", "x" * 300])
PATHS = st.lists(NAMES, max_size=8).map("/".join)
SECRET = b"outside"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a device as sysfs has it; beside the root lies what no link may reach."""
    (tmp_path / "secret").write_bytes(SECRET)
    root = tmp_path / "root"
    device = root / "sys/devices/pci0000:15/0000:19:00.0"
    (device / "power").mkdir(parents=True)
    (device / "vendor").write_bytes(b"0x10de\n")
    (device / "power/runtime_status").write_bytes(b"active\n")
    (device / "config").write_bytes(bytes(4096))
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    (root / "sys/bus/pci/devices/0000:19:00.0").symlink_to("../../../devices/pci0000:15/0000:19:00.0")
    (root / "climbs").symlink_to("../secret")
    (root / "climbs_far").symlink_to("../" * 30 + "secret")
    (root / "absolute").symlink_to("/sys/bus/pci")
    (root / "outside").symlink_to(str(tmp_path / "secret"))
    (root / "outside_folder").symlink_to(str(tmp_path))
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    return root


def test_a_link_is_followed_inside_the_root(tree: Path) -> None:
    """Absolute links begin at the root of the host that is looked at."""
    files = FolderFiles(str(tree))

    assert b"0x10de\n" == files.read("/sys/bus/pci/devices/0000:19:00.0/vendor")
    assert b"0x10de\n" == files.read("/absolute/devices/0000:19:00.0/vendor")
    assert "/sys/devices/pci0000:15/0000:19:00.0" == files.resolve("/absolute/devices/0000:19:00.0")
    assert "../../../devices/pci0000:15/0000:19:00.0" == files.readlink("/absolute/devices/0000:19:00.0/")


@pytest.mark.parametrize("name", NEVER_READ)
def test_what_acts_on_a_device_is_never_read(tree: Path, name: str) -> None:
    """Neither alone nor with others; the reason names the file, and the others of its folder are read."""
    folder = "/sys/devices/pci0000:15/0000:19:00.0"
    (tree / folder[1:] / name).write_bytes(b"0x0\n")
    for files in (FolderFiles(str(tree)), LiveFiles()):
        root = "" if isinstance(files, FolderFiles) and not isinstance(files, LiveFiles) else str(tree)
        with pytest.raises(Denied, match=f"{name}: never read: "):
            files.read(f"{root}{folder}/{name}")
        for names in ((name, "vendor"), (name, "vendor", "a", "b", "c", "d")):
            answers = files.attributes(f"{root}{folder}", names)

            assert b"0x10de\n" == answers["vendor"]
            assert isinstance(answers[name], Denied)


def test_a_directory_that_was_looked_into_changes_no_link(tree: Path) -> None:
    """What is not there has the same reason, and what is there its text."""
    device = "/sys/bus/pci/devices/0000:19:00.0"
    (tree / "sys/devices/pci0000:15/0000:19:00.0/driver").symlink_to("../../../bus/pci/drivers/nvidia")
    fresh, looked = FolderFiles(str(tree)), FolderFiles(str(tree))
    looked.attributes(device, ("vendor", "config", "class", "a", "b"))

    assert "../../../bus/pci/drivers/nvidia" == looked.readlink(f"{device}/driver")
    for name in ("physfn", "vendor", "..", "."):
        with pytest.raises(Absent) as expected:
            fresh.readlink(f"{device}/{name}")
        with pytest.raises(Absent) as result:
            looked.readlink(f"{device}/{name}")
        assert (expected.value.reason, expected.value.code) == (result.value.reason, result.value.code)


@pytest.mark.parametrize("known", ["/", "/absolute", "/absolute/devices", "/sys/bus/pci/devices/0000:19:00.0"])
@pytest.mark.parametrize(
    "path",
    [
        "/absolute/devices/0000:19:00.0/power/runtime_status",
        "/sys/bus/pci/devices/0000:19:00.0/../0000:19:00.0/vendor",
        "/absolute/../../sys/bus/pci/devices/0000:19:00.0/vendor",
        "//absolute//devices/0000:19:00.0//vendor",
        "/sys/bus/pci/devices/0000:19:00.0/escapes/secret",
        "/climbs",
    ],
)
def test_a_known_directory_changes_no_answer(tree: Path, known: str, path: str) -> None:
    """The way to it is walked once; what lies below it is what it would be without that."""
    (tree / "sys/devices/pci0000:15/0000:19:00.0/escapes").symlink_to("../" * 9 + "..")

    def answer(files: FolderFiles) -> bytes | str:
        try:
            return files.read(path)
        except ReadError as why:
            return why.reason

    warm = FolderFiles(str(tree))
    warm.listdir(known)

    assert answer(FolderFiles(str(tree))) == answer(warm) != SECRET


@pytest.mark.parametrize(
    "path", ["/climbs", "/climbs_far", "/outside", "/outside_folder/secret", "/../secret", "/loop"]
)
def test_no_link_leaves_the_root(tree: Path, path: str) -> None:
    """Whatever a hostile folder's links say."""
    files = FolderFiles(str(tree))

    with pytest.raises(Absent):
        files.read(path)
    assert SECRET not in [*files.attributes("/", [path[1:]]).values()]
    with pytest.raises(Absent):
        files.resolve(path)


def test_attributes_are_what_read_says(tree: Path) -> None:
    """What is not there is left out; a link and a deeper file are read; anything else has its reason."""
    files = FolderFiles(str(tree))
    names = ["vendor", "nothing", "power/runtime_status", "power/nothing", "power", "vendor/x"]

    answers = files.attributes("/sys/bus/pci/devices/0000:19:00.0", names)

    assert ["vendor", "power/runtime_status", "power", "vendor/x"] == list(answers)
    assert (b"0x10de\n", b"active\n") == (answers["vendor"], answers["power/runtime_status"])
    assert isinstance(answers["power"], Failed)
    assert isinstance(answers["vendor/x"], Absent)
    with pytest.raises(Absent):
        files.attributes("/sys/bus/pci/devices/0000:1a:00.0", names)
    with pytest.raises(Absent):
        files.attributes("/sys/bus/pci/devices/0000:19:00.0/vendor", names)


def test_a_fifo_is_not_opened(tree: Path) -> None:
    """Opening one waits for a writer, or wakes one."""
    files = FolderFiles(str(tree))
    began = time.monotonic()

    with pytest.raises(Failed, match="/pipe: is a FIFO, which is not read"):
        files.read("/pipe")
    assert isinstance(files.attributes("/", ["pipe"])["pipe"], Failed)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("kind", ["fifo", "link to a device", "link to a folder"])
@pytest.mark.parametrize("store", [FolderFiles, LiveFiles])
def test_what_is_put_in_a_files_place_meanwhile_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: type[FolderFiles], kind: str
) -> None:
    """The file is replaced between the look at it and its opening: the file itself is read, or nothing."""
    place = tmp_path / "file"
    place.write_bytes(b"text")
    files = FolderFiles(str(tmp_path)) if store is FolderFiles else LiveFiles()
    opened, replacements = list[int](), list[str]()
    really = {"open": os.open, "stat": os.stat, "fstat": os.fstat}

    def replaced(look: str) -> Callable[..., os.stat_result]:
        def looked(*arguments: Any, **options: Any) -> os.stat_result:
            answer: os.stat_result = really[look](*arguments, **options)
            if not replacements:
                replacements.append(kind)
                place.rename(tmp_path / "aside")
                os.mkfifo(place) if kind == "fifo" else place.symlink_to("/dev/null" if "device" in kind else "/")
            return answer

        return looked

    def noted(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        descriptor: int = really["open"](path, flags, *arguments, **options)
        if not flags & os.O_PATH:
            opened.append(stat.S_IFMT(really["fstat"](descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", noted)
    for look in ("stat", "fstat"):
        monkeypatch.setattr(os, look, replaced(look))

    content = files.read("/file" if store is FolderFiles else str(place))

    assert b"text" == content
    assert [stat.S_IFREG] == opened
    assert [kind] == replacements


def test_reads_are_limited(tree: Path) -> None:
    """A prefix where less is asked for, and the whole over many reads."""
    (tree / "long").write_bytes(bytes(range(256)) * 4000)
    files = FolderFiles(str(tree))

    assert bytes(64) == files.read("/sys/bus/pci/devices/0000:19:00.0/config", 64)
    assert bytes(range(256)) * 4000 == files.read("/long")
    assert (bytes(range(256)) * 4000)[:100_001] == files.read("/long", 100_001)
    assert b"" == files.read("/long", 0)


def test_a_file_without_permission_is_denied() -> None:
    """And not absent."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "closed").write_bytes(b"x")
        (Path(folder) / "closed").chmod(0)

        with an_ordinary_user(), pytest.raises(Denied, match="/closed: Permission denied"):
            FolderFiles(folder).read("/closed")


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Root may read everything: for a moment it is nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_live_files_are_read_by_the_kernels_own_links() -> None:
    """Links that have no text to follow (/proc/self/cwd) are the kernel's to follow."""
    files = LiveFiles()

    assert f"{os.getpid()}".encode() == files.read("/proc/self/stat").split()[0]
    assert f"{os.getpid()}" == files.readlink("/proc/self")
    assert files.listdir("/proc/self/cwd") == sorted(os.listdir("."))
    assert os.path.realpath("/proc/self") == files.resolve("/proc/self")
    with pytest.raises(Absent):
        files.resolve("/proc/self/nothing")


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800", "relative", "", "/" + "x" * 5000, "/" + "x/" * 3000])
def test_impossible_paths_have_an_answer(tree: Path, path: str) -> None:
    """No name of a file raises anything but ReadError."""
    for files in (FolderFiles(str(tree)), LiveFiles(), MemoryFiles()):
        for ask in (
            files.read,
            files.readlink,
            files.resolve,
            files.listdir,
            lambda p, f=files: f.attributes(p, ["a"]),
        ):
            try:
                ask(path)
            except ReadError:
                continue
        files.locate(path)


@given(
    st.dictionaries(PATHS, st.one_of(st.binary(max_size=9), PATHS.map(SymlinkNode)), max_size=12),
    st.lists(PATHS, max_size=6),
)
def test_no_links_of_an_archive_raise_anything_but_a_reason(entries: dict[str, Node], asked: list[str]) -> None:
    """Random links over random names: every question ends, inside the archive, with an answer or a reason."""
    files = MemoryFiles()
    remaining = set()
    for path, node in entries.items():
        try:
            files.add(path, node)
        except ValueError:
            continue
        remaining.add(node if isinstance(node, bytes) else b"")

    for path in [*asked, *entries]:
        for ask in (files.read, files.readlink, files.resolve, files.listdir):
            try:
                answer = ask(f"/{path}")
            except ReadError:
                continue
            if ask == files.read:
                assert answer in remaining
            if ask == files.resolve:
                assert ".." not in str(answer).split("/")
        try:
            files.attributes(f"/{path}", ["a", "b", "a/../../b", "é"])
        except ReadError:
            continue


def test_many_attributes_are_cheap(tmp_path: Path) -> None:
    """517 functions x 30 names, the largest machine we know: a second would be far too much."""
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    names = [f"attribute_{i}" for i in range(30)]
    for i in range(517):
        device = tmp_path / f"sys/devices/pci0000:00/{i:04x}"
        device.mkdir(parents=True)
        for name in names[::3]:
            (device / name).write_bytes(b"1\n")
        (tmp_path / f"sys/bus/pci/devices/{i:04x}").symlink_to(f"../../../devices/pci0000:00/{i:04x}")
    files = FolderFiles(str(tmp_path))
    began = time.process_time()

    result = sum(len(files.attributes(f"/sys/bus/pci/devices/{i:04x}", names)) for i in range(517))

    assert 5170 == result
    assert time.process_time() - began < 1


def test_timed_out_is_a_reason_of_its_own() -> None:
    """EAGAIN and ETIMEDOUT of a driver are no absence."""
    assert isinstance(error_from_errno(OSError(11, ""), "/x"), TimedOut)


def test_a_file_that_gives_a_page_at_a_time_is_read_in_small_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc/PID/maps does: a buffer of 256 KiB for each page costs more than the page."""
    content = bytes(range(256)) * 128
    (tmp_path / "maps").write_bytes(content)
    read, asked = os.read, list[int]()

    def read_page(descriptor: int, size: int) -> bytes:
        asked.append(size)
        return read(descriptor, min(size, 4096))

    monkeypatch.setattr(os, "read", read_page)
    assert FolderFiles(str(tmp_path)).read("/maps") == content
    assert {FIRST_CHUNK_BYTES} == set(asked)
