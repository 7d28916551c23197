"""The `__main__` of fabricscope.pyz: unpacks itself once to where no one else can write, and runs from there.

A library of machine code cannot be loaded from within a zip. Everything is unpacked, so that the program runs as it
does elsewhere: `PAYLOAD` (a zip) into `<cache>/<name>`; `INDEX` holds the name, its target, and a line per file
with its size: a copy that a crash left half-written is made again. Written so that an older Python can read it
as far as the line that refuses.
"""

import os
import sys

_ARCHIVE = os.path.dirname(os.path.abspath(__file__))
_INDEX_BYTES: bytes = __loader__.get_data(os.path.join(_ARCHIVE, "INDEX"))  # type: ignore[name-defined]
_INDEX = _INDEX_BYTES.decode().splitlines()
NAME, PYTHON, MACHINE = _INDEX[0].split()
CACHE = os.environ.get("FABRICSCOPE_CACHE")
SYSTEM = "/var/cache/fabricscope"  # root's, for everybody to run from
_CHECK = sys.argv[1:2] == ["check"]


def refuse(why: str) -> None:
    """One line, and the exit code of a command that could not do its work."""
    sys.stderr.write(f"fabricscope: {why}\n")
    sys.exit(3 if _CHECK else 2)


_HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
if (_HERE, os.uname().machine) != (PYTHON, MACHINE):
    refuse(f"made for Python {PYTHON} on {MACHINE}; {sys.executable} is {_HERE} on {os.uname().machine}")


def is_trusted(path: str) -> bool:
    """Whether no one but root and we can change what is there: the folder and all above it, links followed."""
    path = os.path.realpath(path)
    leaf = path
    while True:
        status = os.lstat(path)
        sticky = path != leaf and status.st_mode & 0o1000
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & 0o022 and not sticky):
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def is_complete(folder: str) -> bool:
    """Whether every file is there at its size."""
    try:
        rows = (line.partition(" ") for line in _INDEX[1:])
        return all(os.stat(folder + "/" + name).st_size == int(size) for size, _, name in rows)
    except OSError:
        return False


def is_usable(folder: str) -> bool:
    """Whether it is a copy to run."""
    return os.path.isdir(folder) and is_trusted(folder) and is_complete(folder)


def cache_folders() -> list[str]:
    """Where a copy may be kept, the best first."""
    if CACHE:
        return [os.path.abspath(CACHE)]
    service = os.environ.get("CACHE_DIRECTORY", "").partition(":")[0]
    if os.geteuid() == 0:  # not below $HOME, which sudo may leave as another user's
        return [folder for folder in (service, SYSTEM) if folder]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    own = home + "/fabricscope" if os.path.isdir(os.path.dirname(home)) else ""
    return [folder for folder in (service, own) if folder.startswith("/")]


def unpack(folder: str, mode: int) -> str:
    """A new copy in a folder, put in place whole. Raises OSError, ValueError (the reason) where that cannot be."""
    import io
    import shutil
    import tempfile
    import zipfile

    os.makedirs(folder, mode=mode, exist_ok=True)
    folder = os.path.realpath(folder)  # what is checked is what is used: a link may be moved
    if not is_trusted(folder):
        raise ValueError("other users may write there")
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise ValueError("mounted noexec")
    final = folder + "/" + NAME
    temporary = tempfile.mkdtemp(prefix=".new-", dir=folder)
    try:
        payload = __loader__.get_data(os.path.join(_ARCHIVE, "PAYLOAD"))  # type: ignore[name-defined]
        with zipfile.ZipFile(io.BytesIO(payload)) as packed:
            packed.extractall(temporary)
        if not is_complete(temporary):
            raise ValueError("what was unpacked is not whole")
        for directory, _, names in os.walk(temporary):
            os.chmod(directory, mode)
            for name in names:
                os.chmod(directory + "/" + name, 0o644 & mode)
        if os.path.lexists(final) and not is_usable(final):
            os.rename(final, temporary + "/broken")
        try:
            os.rename(temporary, final)
        except OSError:
            if not is_usable(final):  # else another run was faster
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(final + "/broken", ignore_errors=True)
    return final


def find_copy() -> tuple:  # type: ignore[type-arg]
    """The folder to run from, and whether it is for this run alone."""
    reasons = []
    for folder in cache_folders() if CACHE else [SYSTEM, *cache_folders()]:
        final = os.path.realpath(os.path.join(folder, NAME))
        if is_usable(final):
            return final, False
    for folder in cache_folders():
        try:
            return unpack(folder, 0o755 if os.geteuid() == 0 else 0o700), False
        except (OSError, ValueError) as why:
            reasons.append(f"{folder} ({getattr(why, 'strerror', None) or why})")
    if CACHE:
        refuse(f"no place to unpack to: FABRICSCOPE_CACHE={reasons[0]}")
    import tempfile

    folder = tempfile.mkdtemp(prefix="fabricscope-")
    try:
        return unpack(folder, 0o700), True
    except (OSError, ValueError) as why:
        os.rmdir(folder)
        reasons.append(f"{folder} ({getattr(why, 'strerror', None) or why})")
    refuse(f"no place to unpack to: {', '.join(reasons)}; FABRICSCOPE_CACHE names one")
    raise AssertionError


def main() -> None:
    """Find or make the copy, and hand over to it."""
    folder, once = find_copy()
    sys.path[0] = folder
    import fabricscope

    if not once:
        fabricscope.console()
    import shutil

    try:
        code = fabricscope.main()
        sys.stdout.flush()
    finally:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    os._exit(code)


if __name__ == "__main__":
    main()
