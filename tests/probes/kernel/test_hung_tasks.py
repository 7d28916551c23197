"""Tasks that the kernel reports as blocked, by the driver in which they wait."""

from __future__ import annotations

import pytest

from probes.kernel.hung_tasks import CODE
from probes.kernel.log_events import events
from probes.kernel.log_lines import keep_read_lines, lines

BLOCKED = "INFO: task python:4711 blocked for more than 120 seconds."
WAIT = "schedule+0x69/0x110"
CALL = "uvm_va_space_destroy+0x1f2/0x6c0 [nvidia_uvm]"


def found(*texts: str) -> list[dict[str, str]]:
    log = "".join(f"[{100 + number:12.6f}] {text}\n" for number, text in enumerate(texts))
    return [dict(event.detail) for event in events(lines(log, None))[0] if event.code == CODE]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((BLOCKED, "Call Trace:", " <TASK>", f" {WAIT}", f" {CALL}"), [("python", "nvidia_uvm")]),
        ((BLOCKED, f" ? {CALL}"), [("python", "nvidia_uvm")]),
        ((BLOCKED, " mlx5_cmd_exec+0x1f/0x6c [mlx5_core]", f" {CALL}"), [("python", "mlx5_core")]),
        ((BLOCKED, " ext4_sync+0x1f/0x6c [ext4]"), []),
        ((f" {CALL}",), []),
        ((BLOCKED, *[f" {WAIT}"] * 90, f" {CALL}"), []),
        ((BLOCKED, BLOCKED.replace("python", "cp"), f" {CALL}"), [("cp", "nvidia_uvm")]),
        ((BLOCKED, f" {CALL}", f" {CALL}"), [("python", "nvidia_uvm")]),
    ],
    ids=["in the driver", "maybe", "the first call", "another module", "no task", "far below", "the last task", "once"],
)
def test_the_first_call_in_a_driver_names_it(texts: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert expected == [(detail["task"], detail["module"]) for detail in found(*texts)]


def test_a_very_long_log_keeps_the_calls() -> None:
    noise = "".join(f"[{number:12.6f}] usb 1-1: new device\n" for number in range(60))
    log = f"{noise}[  100.000000] {BLOCKED}\n[  100.000001]  {WAIT}\n[  100.000002]  {CALL}\n{noise}"

    assert CALL in keep_read_lines(log.encode()).decode()
