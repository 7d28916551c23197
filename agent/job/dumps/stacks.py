"""Stacks of processes, as `py-spy dump` and Python's faulthandler print them: what each main thread is doing."""

from __future__ import annotations

from typing import NamedTuple

from agent.job.lines import LogLine
from probes.text import lazy_pattern

_THREAD = lazy_pattern(
    r"Thread (?P<tid>\d{1,9}|0x[0-9a-fA-F]{1,16})\b.{0,60}\"MainThread\"\s*$|"
    r"Current thread 0x[0-9a-fA-F]{1,16}.{0,60}\(most recent call first\):\s*$"
)
_FRAME = lazy_pattern(
    r"\s{2,12}(?P<call>[\w<>.~:]{1,100}) \((?P<file>[^()\s:]{1,160})(?::\d{1,7})?\)\s*$|"
    r"\s{2,4}File \"(?P<file__2>[^\"]{1,200})\", line \d{1,7}(?: in (?P<call__2>[\w<>.]{1,100}))?\s*$"
)
_PROCESS = lazy_pattern(r"\s{0,4}Process (?P<pid>\d{1,9}): (?P<command>.{1,400})")
_RANK = lazy_pattern(r"(?:--local[-_]rank[= ]|_[TDP]P|\brank[-_= ]?)(?P<rank>\d{1,6})\b", flags=2)
_MOST_FRAMES, _MOST_STACKS = 60, 20_000
WORDS = (b'"MainThread"', b"(most recent call first)", b"Process ")


class Stack(NamedTuple):
    """The main thread of a process. `frames`: file and function, the innermost first."""

    line: LogLine
    pid: int | None
    rank: int | None
    frames: list[tuple[str, str]]


class StackReader:
    """The stacks of one file; lines below the head of a thread are its frames."""

    def __init__(self, stacks: list[Stack]) -> None:
        self.stacks = stacks
        self.is_open = False
        self._process: tuple[int, int | None] | None = None  # of the last head

    def read_head(self, line: LogLine) -> None:
        """A line that may begin a process, or its main thread."""
        if (process := _PROCESS.match(line.text)) is not None:
            named = _RANK.search(process["command"])
            self._process = int(process["pid"]), int(named["rank"]) if named else line.rank
        elif (thread := _THREAD.search(line.text)) is not None and len(self.stacks) < _MOST_STACKS:
            pid, rank = self._process or (None, line.rank)
            if pid is None and (thread["tid"] or "").isdecimal():
                pid = int(thread["tid"])  # of a main thread both are one number
            self._process = None
            self.stacks.append(Stack(line, pid, rank if rank is not None else line.rank, []))
            self.is_open = True

    def read_frame(self, text: str) -> None:
        """A line below the head of a thread."""
        frame = _FRAME.match(text)
        if frame is None or len(self.stacks[-1].frames) == _MOST_FRAMES:
            self.is_open = False
            return
        self.stacks[-1].frames.append((frame["file"] or frame["file__2"], frame["call"] or frame["call__2"] or ""))
