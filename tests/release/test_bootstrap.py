"""What unpacks fabricscope.pyz: once, whole, and only where nobody else can write."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from release.wheelhouse import MACHINE, PYTHON
from release.zipapp import write_archive

PROGRAM = """
import os, sys, helper
def main():
    print(os.path.dirname(os.path.abspath(__file__)), *sys.argv[1:])
    return 7 if "seven" in sys.argv else 0
def console():
    code = main(); sys.stdout.flush(); os._exit(code)
"""
pytestmark = pytest.mark.usefixtures("real_commands")


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """One file that holds a program of two modules, which says from where it runs."""
    place = tmp_path / "lib"
    (place / "helper").mkdir(parents=True)
    (place / "fabricscope.py").write_text(PROGRAM)
    (place / "helper" / "__init__.py").write_text("")
    write_archive(tmp_path / "fabricscope.pyz", place)
    return tmp_path / "fabricscope.pyz"


def run(packed: Path, *arguments: str, python: str = sys.executable, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a run in an environment of nothing but this."""
    done = subprocess.run(
        [python, str(packed), *arguments], env={"PATH": os.defpath, **environment}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_it_is_unpacked_once_and_runs_from_there(packed: Path, tmp_path: Path) -> None:
    """With the arguments, the exit code, and files that nobody else can write."""
    cache = tmp_path / "cache"
    code, first, _ = run(packed, "scan", FABRICSCOPE_CACHE=str(cache))
    folder = Path(first.split()[0])
    result = folder.stat().st_mtime_ns

    assert (0, [folder.name], "scan") == (code, os.listdir(cache), first.split()[1])
    assert not any(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) for path in (cache, folder, *folder.rglob("*")))
    assert (7, f"{folder} seven", "") == run(packed, "seven", FABRICSCOPE_CACHE=str(cache))
    assert result == folder.stat().st_mtime_ns


def test_a_damaged_copy_is_made_anew(packed: Path, tmp_path: Path) -> None:
    """As a crash leaves it: a file that is empty, or gone."""
    cache = tmp_path / "cache"
    folder = Path(run(packed, FABRICSCOPE_CACHE=str(cache))[1])
    (folder / "helper" / "__init__.py").unlink()
    (folder / "fabricscope.py").write_text("")

    assert (0, str(folder), "") == run(packed, FABRICSCOPE_CACHE=str(cache))
    assert [folder.name] == os.listdir(cache)


def test_many_may_begin_at_once(packed: Path, tmp_path: Path) -> None:
    """One of them puts the copy in place, and all run."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: run(packed, FABRICSCOPE_CACHE=str(tmp_path / "cache")), range(4)))

    assert {(0, "")} == {(code, errors) for code, _, errors in done}
    assert 1 == len({out for _, out, _ in done}) == len(os.listdir(tmp_path / "cache"))


@pytest.mark.parametrize(("mode", "owner"), [(0o777, None), (0o775, None), (0o1777, None), (0o755, 65534)])
def test_a_folder_that_others_can_change_is_refused(packed: Path, tmp_path: Path, mode: int, owner: int | None) -> None:
    """Writable for others, or another's: what is unpacked there is run by us later."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    if owner is not None:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(cache, owner, owner)

    code, out, result = run(packed, "scan", FABRICSCOPE_CACHE=str(cache))
    assert (2, "") == (code, out)
    assert result == f"fabricscope: no place to unpack to: FABRICSCOPE_CACHE={cache} (other users may write there)"
    assert 3 == run(packed, "check", FABRICSCOPE_CACHE=str(cache))[0]


def test_a_copy_that_another_made_is_not_run(packed: Path, tmp_path: Path) -> None:
    """Below a folder of ours that was open for a while."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    cache = tmp_path / "cache"
    folder = Path(run(packed, FABRICSCOPE_CACHE=str(cache))[1])
    os.chown(folder, 65534, 65534)
    (folder / "fabricscope.py").write_text(PROGRAM.replace("print(", "print(1,"))
    os.truncate(folder / "fabricscope.py", len(PROGRAM))

    assert (0, str(folder), "") == run(packed, FABRICSCOPE_CACHE=str(cache))
    assert (0, PROGRAM) == (folder.stat().st_uid, (folder / "fabricscope.py").read_text())


def test_without_a_home_it_runs_from_a_folder_of_this_run_alone(packed: Path, tmp_path: Path) -> None:
    """And leaves nothing behind; exit codes are the program's."""
    if os.geteuid() == 0:
        pytest.skip("root has a place of its own")
    code, out, _ = run(packed, "seven", HOME="/nonexistent", TMPDIR=str(tmp_path))

    assert 7 == code
    assert out.startswith(str(tmp_path / "fabricscope-"))
    assert [] == list(tmp_path.glob("fabricscope-*"))


def test_another_users_run_leaves_nothing_behind(packed: Path) -> None:
    """The same as a user without a home, where the tests are root's."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    script = (
        "import os, runpy, sys; os.setgid(65534); os.setuid(65534); runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    public = Path("/tmp") / f"fabricscope-test-{os.getpid()}"  # pytest's own folder is root's alone
    public.mkdir(mode=0o755)
    try:
        (public / "f.pyz").write_bytes(packed.read_bytes())
        scratch = public / "scratch"
        scratch.mkdir()
        scratch.chmod(0o1777)
        python = "/usr/bin/python3"
        if (
            not os.path.exists(python)
            or f"{PYTHON}."
            not in subprocess.run([python, "--version"], capture_output=True, text=True, check=False).stdout
        ):
            pytest.skip(f"/usr/bin/python3 is no Python {PYTHON}")
        done = subprocess.run(
            [python, "-c", script, str(public / "f.pyz")], capture_output=True, text=True, check=False, timeout=60,
            env={"HOME": "/nonexistent", "TMPDIR": str(scratch), "PATH": os.defpath}, cwd="/",
        )  # fmt: skip
        assert ("", 0) == (done.stderr, done.returncode)
        assert done.stdout.startswith(str(scratch))
        assert [] == os.listdir(scratch)
    finally:
        subprocess.run(["rm", "-rf", str(public)], check=True)


@pytest.mark.parametrize(
    ("python", "machine"), [("3.9", MACHINE), (PYTHON, "sparc64")], ids=["another Python", "another machine"]
)
def test_what_it_is_not_made_for_is_told_in_one_line(tmp_path: Path, python: str, machine: str) -> None:
    """A library of machine code would fail in an import, later."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "fabricscope.py").write_text(PROGRAM)
    write_archive(tmp_path / "f.pyz", tmp_path / "lib", python, machine)

    code, out, result = run(tmp_path / "f.pyz", "scan")
    assert (2, "") == (code, out)
    assert result.startswith(f"fabricscope: made for Python {python} on {machine}; ")
    assert 1 == len(result.splitlines())


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """A host can be asked by a checksum which build it has."""
    collected = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "fabricscope.py").write_text(PROGRAM)
        write_archive(tmp_path / f"{name}.pyz", tmp_path / name)
        collected.append((tmp_path / f"{name}.pyz").read_bytes())

    assert collected[0] == collected[1]
