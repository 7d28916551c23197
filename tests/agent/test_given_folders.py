"""Every folder that a command is given is the one that is meant: nothing that another user put into a folder like /tmp.

Whether the kernel protects links there (fs.protected_symlinks) does not matter.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import reports
from agent.cli.errors import CliError
from agent.cli.fleet.cluster import read_bounded
from agent.cli.fleet.news import _read_state
from agent.cli.main import run
from agent.fleet.dataset import BadDataset
from agent.fleet.ingest.locked_dataset import open_dataset
from agent.fleet.ingest.moving import Mover
from agent.fleet.ingest.sources import UnreadableSource, check_sources
from agent.history.store import apply_state_file
from agent.job.files import UnreadableError, list_files
from agent.receive.inbox import Inbox, Limits
from agent.reports import write_atomically
from agent.ship.spool import Spool
from agent.ship.target import FolderTarget
from probes import locks
from probes.capture.writer import write_capture
from probes.host.recording import Recording
from probes.planted import PathUse, follow_links, make_folder
from probes.switches.collection import UnreadableCollection, read_collection
from tests.agent.history.build import report

OTHER = 4711


def _state(path: str) -> None:
    said: list[str] = []
    apply_state_file(path, report(), said.append)
    raise OSError(*said)


def _spool(path: str) -> None:
    with Spool(path, 1 << 20, 10, print).lock(0.0):
        pass


def _dataset(path: str) -> None:
    with open_dataset(path, 0.0):
        pass


def _run_folder(path: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(locks.FOLDER_VARIABLE, path)
        if locks.run_folder() is None:
            raise OSError("another user")


def _pull(path: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        code = run(["fleet", "pull", "--nodes", "a", "--ssh", "false", "--to", path])
    if code == 2:
        raise OSError(printed.getvalue())


def _news(path: str) -> None:
    with pytest.raises(CliError) as error:
        _read_state(path)
    if "damaged" not in str(error.value):  # it was read
        raise error.value


USES: dict[str, Callable[[str], object]] = {
    "scan --state-dir": _state,
    "ship --spool": _spool,
    "ship --to": lambda path: FolderTarget(path, "none").write("a.json", b"x", 0o600),
    "receive --spool": lambda path: Inbox(path, Limits(1 << 20, 10, 10)).open(),
    "fleet ingest --dataset": _dataset,
    "fleet ingest --move": lambda path: Mover(path, []),
    "fleet pull --to": _pull,
    "FABRICSCOPE_RUN_DIR": _run_folder,
}
LINKED: dict[str, Callable[[str], object]] = {  # folders of others are read there, and links of others are not followed
    "fleet ingest SOURCE": lambda path: check_sources([path]),
    "capture": lambda path: write_capture(Recording(), f"{path}/x"),
    "fleet lossless --switches": lambda path: read_collection([path]),
    "job PATH": lambda path: list_files([path]),
}
FILES: dict[str, Callable[[str], object]] = {
    "fleet lossless --switches": lambda path: read_collection([path]),
    "job PATH": lambda path: list_files([path]),
    "fleet cables --plan": read_bounded,
    "fleet news --state": _news,
}


WRITTEN: dict[str, Callable[[str], object]] = {
    "--output": lambda path: write_atomically(path, b"x"),
    "capture --output": lambda path: write_capture(Recording(), f"{path}.tar.gz"),
    "capture --output, a folder": lambda path: write_capture(Recording(), path),
}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder like /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def _give_away(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let these be another user's."""
    real, opened, theirs = os.lstat, os.fstat, {str(path) for path in paths}
    inodes = {real(path).st_ino for path in paths}

    def lstat(path: str) -> os.stat_result:
        return _change_owner(real(path), str(path) in theirs)

    def fstat(descriptor: int) -> os.stat_result:
        status = opened(descriptor)
        return _change_owner(status, status.st_ino in inodes)

    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setattr(os, "fstat", fstat)


def _change_owner(status: os.stat_result, is_theirs: bool) -> os.stat_result:
    fields = list(status)
    fields[4] = OTHER if is_theirs else fields[4]
    return os.stat_result(fields)


def _plant(shared: Path, kind: str) -> tuple[Path, Path]:
    """A folder that is planted, and the path that is given to a command."""
    target, planted = shared.parent / "target", shared / "planted"
    target.mkdir(mode=0o700)
    planted.symlink_to(target) if kind == "link" else planted.mkdir(mode=0o700)
    return planted, planted / "below" if kind == "above" else planted


@pytest.mark.parametrize("kind", ["link", "folder", "above"])
@pytest.mark.parametrize("use", USES)
def test_a_planted_folder_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch, use: str, kind: str) -> None:
    """By one line, and nothing is written there; a folder of one's own is taken."""
    planted, path = _plant(shared, kind)
    _give_away(monkeypatch, planted)
    with pytest.raises((OSError, CliError, BadDataset, UnreadableSource), match="another user"):
        USES[use](str(path))
    assert [] == [*(shared.parent / "target").rglob("*"), *planted.rglob("*")]


@pytest.mark.parametrize("use", LINKED)
def test_a_planted_link_is_not_read_through(shared: Path, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    """A folder of another user's is."""
    planted, path = _plant(shared, "link")
    with monkeypatch.context() as patch:
        _give_away(patch, planted)
        with pytest.raises((OSError, UnreadableSource, UnreadableCollection, UnreadableError), match="another user"):
            LINKED[use](str(path))
    _give_away(monkeypatch, shared.parent / "target")
    LINKED[use](str(path))


@pytest.mark.parametrize("use", FILES)
def test_a_planted_link_to_a_file_is_not_read_through(shared: Path, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    """One's own link is."""
    planted = shared / "planted"
    (shared.parent / "target").write_text("a")
    planted.symlink_to(shared.parent / "target")
    FILES[use](str(planted))
    _give_away(monkeypatch, planted)
    with pytest.raises((CliError, UnreadableCollection, UnreadableError), match="planted: another user"):
        FILES[use](str(planted))


@pytest.mark.parametrize("kind", ["link", "file", "folder"])
@pytest.mark.parametrize("use", WRITTEN)
def test_what_another_user_planted_is_not_replaced(
    shared: Path, monkeypatch: pytest.MonkeyPatch, use: str, kind: str
) -> None:
    """At the path of an output itself: as if fs.protected_regular and protected_symlinks were on."""
    planted = shared / ("planted.tar.gz" if use == "capture --output" else "planted")
    target = shared.parent / "target"
    target.write_text("a")
    if kind == "link":
        planted.symlink_to(target)
    elif kind == "file":
        planted.write_text("a")
    else:
        planted.mkdir()
    _give_away(monkeypatch, planted)
    with pytest.raises(OSError, match="another user put it"):
        WRITTEN[use](str(shared / "planted"))
    assert ("a", [planted.name]) == (target.read_text(), os.listdir(shared))
    WRITTEN[use](str(shared / "own"))


@pytest.mark.parametrize("use", ["scan --state-dir", "ship --spool", "fleet ingest --dataset"])
def test_a_folder_that_all_may_write_to_holds_no_state(shared: Path, use: str) -> None:
    """Another user could be the first to create what is expected in it."""
    with pytest.raises((OSError, BadDataset), match="all may write to: choose one below it"):
        USES[use](str(shared))
    assert [] == list(shared.iterdir())
    make_folder(str(shared / "own"), PathUse.OWN_FOLDER)


def test_who_is_faster_is_noticed(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that appears between the check and its creation."""
    path, real = shared / "late", os.makedirs

    def late(name: str, *arguments: int, **options: bool) -> None:
        real(name, *arguments, **options)
        _give_away(monkeypatch, path)

    monkeypatch.setattr(os, "makedirs", late)
    with pytest.raises(OSError, match="another user"):
        make_folder(str(path), PathUse.FOLDER)


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_is_planted_behind_the_check_of_an_output_gets_nothing(
    shared: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The report would become another user's file, or be written into a pipe or, through a link, to a device."""
    path, pipe = shared / "report.json", shared.parent / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def follow(name: str, use: PathUse) -> str:
        target = follow_links(name, use)
        if kind == "file":
            path.write_text("")
        elif kind == "link":
            path.symlink_to(pipe)
        else:
            os.link(pipe, path)
        _give_away(monkeypatch, path)
        return target

    monkeypatch.setattr(reports, "follow_links", follow)
    with pytest.raises(OSError, match=r"another user put it|symbolic links"):
        write_atomically(str(path), b"secret")
    assert b"" == os.read(reader, 9)
    os.close(reader)
    assert [path.name] == os.listdir(shared)


def test_a_folder_of_the_system_is_taken(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's in a shared one, and any user's elsewhere (a service's, below /srv)."""
    (shared / "own").mkdir()
    (shared.parent / "service").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    if not os.stat(shared).st_uid:
        assert str(shared / "own") == follow_links(str(shared / "own"), PathUse.FOLDER)
    assert str(shared.parent / "service") == follow_links(str(shared.parent / "service"), PathUse.OWN_FOLDER)


@pytest.mark.parametrize("use", list(PathUse))
def test_no_name_is_not_the_current_folder(use: PathUse) -> None:
    with pytest.raises(FileNotFoundError):
        follow_links("", use)


def test_a_state_folder_without_a_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        _state("")
    assert [] == list(tmp_path.iterdir())
