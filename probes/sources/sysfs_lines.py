"""Files of /sys as people show them: `grep "" FILES`, `head FILES`, `cat FILE` below its command.

Taken are attributes of RDMA devices and of network interfaces: what of them is not shown stays not known.
"""

from __future__ import annotations

from contextlib import suppress

from probes.sources.memory import MemoryFiles
from probes.text import lazy_pattern

_MOST_FILES = 20_000
_LIMIT_CHARACTERS = 8 << 20
_PATH = r"/sys/class/(?:infiniband|net)/[\w.-]{1,64}(?:/[\w.-]{1,64}){1,5}"
_BESIDE = lazy_pattern(rf"[> \t]{{0,40}}(?P<path>{_PATH}):(?P<value>[^\n]{{0,400}})")
_ABOVE = lazy_pattern(rf"[> \t]{{0,40}}==> (?P<path>{_PATH}) <==[ \t]*")
_ERROR = lazy_pattern(r"[ \t]*(?:cat|grep|head|tail|sudo|bash|-bash): .{0,300}")


def read_shown_files(text: str) -> MemoryFiles:
    """The files that the text shows, with their contents.

    >>> files = read_shown_files("/sys/class/infiniband/mlx5_1/ports/1/state:1: DOWN\\n")
    >>> files.read("/sys/class/infiniband/mlx5_1/ports/1/state")
    b'1: DOWN\\n'
    """
    contents: dict[str, str] = {}
    current: str | None = None
    for line in text[:_LIMIT_CHARACTERS].splitlines():
        if above := _ABOVE.fullmatch(line):
            current = above["path"]
        elif beside := _BESIDE.fullmatch(line):
            contents[beside["path"]] = f"{contents.get(beside['path'], '')}{beside['value'].strip()}\n"
            current = None
        elif line.startswith("==> "):
            current = None
        elif current is not None and line.strip() and not _ERROR.fullmatch(line):
            contents[current] = f"{contents.get(current, '')}{line.strip()}\n"
        if len(contents) >= _MOST_FILES:
            break
    files = MemoryFiles()
    for path, content in contents.items():
        with suppress(ValueError):
            files.add(path, content.encode())
    return files
