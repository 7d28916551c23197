"""What a driver stated before it gave up a device: the line above "probe failed" has the reason, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator

from probes.kernel.log_facts import LogEvent

_DRIVERS = ("mlx5_core", "mlx4_core", "amdgpu", "bnxt_en", "ice ", "ionic", "habanalabs")
_TROUBLE = ("fail", "error", "ERROR", "Error", "stuck", "timeout", "timed out", "abort")
_STARTS = (("mlx5", "load"), ("amd_init", "Fatal error during GPU init"), ("driver", "probe-error"))
_LIMIT_TEXT = 300
_RUN = 20  # lines of the log between two of one run of trouble


class FailedStarts:
    """Where the trouble of each driver began, for the event of a start that failed."""

    def __init__(self) -> None:
        self._began: dict[str, tuple[int, str]] = {}  # by driver: the last line of the run, and its first text
        self._line = 0

    def read(self, text: str, events: Iterator[LogEvent]) -> Iterator[LogEvent]:
        """The events of a line; of a start that failed, with the first line of trouble before it."""
        self._line += 1
        driver = next((name for name in _DRIVERS if name in text), "")
        last, before = self._began.get(driver, (-_RUN, ""))
        before = before if self._line - last <= _RUN else ""
        is_start = False
        for event in events:
            start = (event.kind, event.code) in _STARTS
            yield event._replace(detail=(*event.detail, ("before", before))) if before and start else event
            is_start = is_start or start
        if driver and any(word in text for word in _TROUBLE):
            self._began[driver] = self._line, before or text[:_LIMIT_TEXT]
        if is_start:
            self._began.pop(driver, None)  # of this device: the next one has its own
