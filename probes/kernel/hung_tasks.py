"""Tasks that the kernel reports as blocked, and the driver in which they wait: the calls are listed below the line."""

from __future__ import annotations

from collections.abc import Iterator

from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import DRIVER
from probes.text import lazy_pattern

BLOCKED = "blocked for more than"
CODE = "hung-in-driver"
_TASK = lazy_pattern(r"INFO: task (?P<task>\S{1,40}):\d{1,10} blocked for more than \d{1,7} seconds")
_CALL = lazy_pattern(
    r" ?(?:\? )?[\w.]{1,120}\+0x[0-9a-f]{1,6}/0x[0-9a-f]{1,6} \[(?P<module>nvidia|nvidia_uvm|nvidia_modeset|"
    r"nvidia_peermem|mlx5_core|mlx5_ib|ib_core|ib_uverbs|rdma_cm|rdma_ucm|ib_ipoib|bnxt_en|bnxt_re|irdma|ice|efa|amdgpu|habanalabs|"
    r"neuron)\]"
)
_LONGEST = 80  # lines from the task to the call


class HungTasks:
    """The last task that is blocked, until a call names its driver."""

    def __init__(self) -> None:
        self._task: tuple[str, LogEvent] | None = None
        self._left = 0

    def read(self, text: str, at: str | None, logged: str | None) -> Iterator[LogEvent]:
        """One line of the log; an event where it is the first call of a blocked task in a driver."""
        if BLOCKED in text and (match := _TASK.search(text)):
            event = LogEvent(DRIVER, text[:300], at, None, CODE, logged=logged)
            self._task, self._left = (match["task"], event), _LONGEST
            return
        self._left -= 1
        if self._task is None or self._left < 0:
            return
        if call := _CALL.match(text):
            task, event = self._task
            self._task = None
            yield event._replace(detail=(("module", call["module"]), ("task", task)))
