"""A test of dcgmi diag that fails is reported by what its message states."""

from __future__ import annotations

import pytest

from probes.tool_reports.dcgmi import parse_diag

ROWS = "| Diagnostic | Result |\n| {test} | Fail - GPU: 1 |\n| Warning | {message} |\n"


@pytest.mark.parametrize(
    ("test", "message", "code", "what"),
    [
        ("PCIe", "GPU 1's NvLink link 4 is currently down", "dcgm-link", "link 4 is currently down"),
        ("GPU Memory", "3 volatile double-bit ECC errors in GPU 1", "dcgm-memory", "3 volatile double-bit ECC error"),
        ("Pulse Test", "Some other sentence", "dcgm-diag-failure", None),
        ("Targeted Power", "Persistence mode for GPU 1 is disabled", "dcgm-diag-failure", None),  # not why it failed
    ],
)
def test_a_message_decides_the_steps(test: str, message: str, code: str, what: str | None) -> None:
    (report,) = parse_diag(ROWS.format(test=test, message=message))
    expected = test if what is None else f"{test} of dcgmi diag: {what}"
    assert (code, "NVIDIA 1", (("what", expected),)) == (report.code, report.subject, report.detail)
