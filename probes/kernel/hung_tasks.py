"""Tasks that the kernel reports as blocked, CPUs that do not get on and errors of the kernel: the driver in which they
wait or fail. The calls are listed below the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import DRIVER, TOOLS
from probes.text import lazy_pattern

BLOCKED = "blocked for more than"
IN_DRIVER, ALONE = "hung-in-driver", "task-blocked"  # of a task that is blocked: with a call in a driver, and without
_HELD = ("cpu-lockup", "kernel-oops")
_TASK = lazy_pattern(r"INFO: task (?P<task>\S{1,40}):\d{1,10} blocked for more than \d{1,7} seconds")
_TOOL = lazy_pattern(rf"(?:{TOOLS})\Z")
_CALL = lazy_pattern(
    r" ?(?:\? |RIP: [\da-f]{4}:)?[\w.]{1,120}\+0x[0-9a-f]{1,6}/0x[0-9a-f]{1,6} \[(?P<module>nvidia|nvidia_uvm|"
    r"nvidia_modeset|nvidia_peermem|nvidia_fs|mlx5_core|mlx5_ib|ib_core|ib_uverbs|rdma_cm|rdma_ucm|ib_ipoib|bnxt_en|"
    r"bnxt_re|irdma|ice|efa|amdgpu|habanalabs|neuron|nvme|nfs|nfsv4|sunrpc|lustre|ptlrpc|ko2iblnd|mmfs26|wekafsio|beegfs|ceph|"
    r"fuse|xfs|ext4)\]"
)
_LONGEST = 80  # lines from the task to the call


class Stalls:
    """The last event of these, until a call names its driver."""

    def __init__(self) -> None:
        self._event: LogEvent | None = None
        self._left = 0

    def read(self, text: str, at: str | None, logged: str | None) -> Iterator[LogEvent]:
        """One line of the log; the events that it completes."""
        if BLOCKED in text and (match := _TASK.search(text)):
            task = LogEvent(DRIVER, text[:300], at, None, ALONE, logged=logged, detail=(("task", match["task"]),))
            yield from self._begin(task)
        if self._event is None:
            return
        self._left -= 1
        if self._left < 0:
            yield from self.close()
        elif call := _CALL.match(text):
            event, self._event = self._event, None
            code = IN_DRIVER if event.code == ALONE else event.code
            yield event._replace(code=code, detail=tuple(sorted((*event.detail, ("module", call["module"])))))

    def hold(self, event: LogEvent) -> Iterator[LogEvent]:
        """An event of a line: kept where calls may follow."""
        if event.code in _HELD:
            yield from self._begin(event)
        else:
            yield event

    def _begin(self, event: LogEvent) -> Iterator[LogEvent]:
        yield from self.close()
        self._event, self._left = event, _LONGEST

    def close(self) -> Iterator[LogEvent]:
        """The event that no call followed; a tool that hangs is an event of its own."""
        event, self._event = self._event, None
        if event and not (event.code == ALONE and _TOOL.match(dict(event.detail)["task"])):
            yield event
