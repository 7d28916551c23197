"""Names of temporary files: what we make we recognize, and nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import own_files
from probes.own_files import (
    create_temporary,
    empty_own_file,
    hold_lock,
    is_temporary,
    list_foreign,
    open_lock,
    remove_left_behind,
    temporary_path,
)
from tests.conftest import ROOT

NOBODY = 65534
TARGET = re.compile(r"[a-z]+\.json")


@given(st.from_regex(TARGET, fullmatch=True), st.booleans())
def test_what_is_made_is_recognized(name: str, sole: bool) -> None:
    """For the names that the caller writes, and for no other."""
    temporary = os.path.basename(temporary_path(f"/x/{name}", sole))

    assert is_temporary(temporary, TARGET)
    assert not is_temporary(temporary, re.compile(r"[A-Z]+\.json"))


@pytest.mark.parametrize(
    "name",
    [
        ".bashrc", ".env", ".gitignore", "a.json", ".a.json", ".a.json.tmp.swp", "a.json.tmp", ".a.json.0123456.tmp",
        ".a.json.012345678.tmp", ".a.json.0123456G.tmp", ".A.json.01234567.tmp", ".a.json.01234567.tmp~", "a.json.new~",
        "..a.json.01234567.tmp", "a.json.01234567.tmp\n",
    ],
)  # fmt: skip
def test_other_names_are_not_recognized(name: str) -> None:
    """However like ours they look."""
    assert not is_temporary(name, TARGET)


def test_a_sole_temporary_file_is_replaced_and_a_foreign_one_is_left(tmp_path: Path) -> None:
    """A killed run leaves one file at most; what another put there costs another name."""
    path = str(tmp_path / "a.json")
    names = []
    for _ in range(2):
        descriptor, name = create_temporary(path, 0o600, sole=True)
        os.close(descriptor)
        names.append(name)
    assert names[0] == names[1] == temporary_path(path, sole=True)
    assert 1 == len(list(tmp_path.iterdir()))

    os.unlink(names[0])
    os.symlink("/dev/null", names[0])
    descriptor, name = create_temporary(path, 0o600, sole=True)
    os.close(descriptor)
    assert name != names[0]
    assert os.path.islink(names[0])


def test_only_files_of_this_user_are_removed_or_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the owner, whatever the name is."""
    left = Path(temporary_path(str(tmp_path / "a.json")))
    left.write_text("x")
    monkeypatch.setattr(own_files.os, "geteuid", lambda: 12345)
    remove_left_behind(str(tmp_path), TARGET)
    empty_own_file(str(left))
    assert "x" == left.read_text()

    monkeypatch.undo()
    empty_own_file(str(left))
    assert "" == left.read_text()
    remove_left_behind(str(tmp_path), TARGET, seconds=60)
    assert left.exists()
    remove_left_behind(str(tmp_path), TARGET)
    assert not left.exists()


def test_a_second_name_of_a_file_is_not_emptied(tmp_path: Path) -> None:
    """The other name may be somebody's."""
    (tmp_path / "victim").write_text("mine")
    os.link(tmp_path / "victim", tmp_path / "link")
    empty_own_file(str(tmp_path / "link"))

    assert "mine" == (tmp_path / "victim").read_text()


def test_foreign_paths_are_listed_by_what_is_in_a_folder(tmp_path: Path) -> None:
    """Links are not followed; the file system's own names are nobody's."""
    ours = re.compile(r"in/|in/[a-z]+\.json")
    for name in ("in/a.json", "in/.b.json.01234567.tmp", "in/notes", "out/a.json", "lost+found/x", ".nfs0000abc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    os.symlink(tmp_path / "in", tmp_path / "link")

    assert ["in/notes", "link", "out"] == list_foreign(str(tmp_path), ours, TARGET)


def test_a_lock_is_for_nobody_else(tmp_path: Path) -> None:
    """Whatever the umask was, and whatever an older version made."""
    (tmp_path / "old").touch(0o644)
    for name in ("new", "old"):
        os.close(open_lock(str(tmp_path / name)))
        assert 0o600 == (tmp_path / name).stat().st_mode & 0o777


def test_a_new_lock_is_for_nobody_else_from_its_first_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only once its mode was mended: it could have been opened by then."""
    monkeypatch.setattr(os, "fchmod", pytest.fail)
    os.close(open_lock(str(tmp_path / "lock")))

    assert 0o600 == (tmp_path / "lock").stat().st_mode & 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_cannot_hold_a_lock(tmp_path: Path) -> None:
    """Not by reading it, and not by having been there first; root's lock in a user's folder becomes that user's."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    descriptor = open_lock(str(folder / "lock"))
    (folder / "planted").touch()
    os.chown(folder / "planted", NOBODY, NOBODY)
    with pytest.raises(OSError, match="another user's"):
        open_lock(str(folder / "planted"))
    (folder / "link").symlink_to(folder / "lock")
    with pytest.raises(OSError, match="symbolic links"):
        open_lock(str(folder / "link"))

    child = os.fork()
    if child == 0:
        os.setuid(NOBODY)
        try:
            os.open(folder / "lock", os.O_RDONLY)
        except PermissionError:
            os._exit(0)
        os._exit(1)
    assert 0 == os.waitpid(child, 0)[1]
    assert hold_lock(descriptor)
    os.close(descriptor)

    os.chown(folder, NOBODY, NOBODY)
    os.close(open_lock(str(folder / "lock")))
    assert NOBODY == (folder / "lock").stat().st_uid


def test_a_second_name_of_a_file_is_no_lock(tmp_path: Path) -> None:
    """Who owns the folder could have put it there (fs.protected_hardlinks off), to be given a file of root's."""
    (tmp_path / "shadow").write_text("root:")
    (tmp_path / "shadow").chmod(0o644)
    (tmp_path / "lock").hardlink_to(tmp_path / "shadow")

    with pytest.raises(OSError, match="a second name of a file"):
        open_lock(str(tmp_path / "lock"))
    assert 0o644 == (tmp_path / "shadow").stat().st_mode & 0o777


def test_every_lock_is_opened_and_held_in_one_place() -> None:
    """`flock` is called there only, but for who asks whether a lock is held."""
    places = [
        path.relative_to(ROOT).as_posix()
        for folder in ("agent", "probes")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"\b(flock|lockf)\(", path.read_text())
    ]

    asking = ["agent/fleet/engines/clickhouse.py", "probes/locks.py"]  # the former of a lock of chDB's own
    assert [*asking, "probes/own_files.py"] == sorted(places)
    assert 1 == len(re.findall(r"\bflock\(", (ROOT / "probes" / "locks.py").read_text().partition('"""\n\n')[2]))
