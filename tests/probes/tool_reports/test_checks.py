"""Results of checks of nodes: which texts have them, and what of a row is shown."""

from __future__ import annotations

import pytest

from probes.text import ParseError
from probes.tool_reports.checks import is_of_checks, list_failed_results

_TABLE = "| Test | Status |\n|---|---|\n| gpu_memory | {} |\n| rdma_loopback | PASS |\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPU health check of the cell\n" + _TABLE.format("FAIL"), True),
        ("GPU health check of the cell\n" + _TABLE.format("PASS"), True),
        ("Tests of our library\n" + _TABLE.format("FAIL"), False),
        ("GPU health check of the cell: which limits do you use?\n", False),
        ("| Device ID | 3 |\n| Integration PCIe | Result: Pass |\n", True),
    ],
)
def test_only_a_text_about_nodes_counts(text: str, expected: bool) -> None:
    assert expected is is_of_checks(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smoke test\n" + _TABLE.format("FAIL"), [(None, "gpu_memory")]),
        ("smoke test\n" + _TABLE.format("PASS"), []),
        ("health-report\nPS1  AC  OK\nPS2  AC  FAIL\n", [(None, "PS2 AC")]),
        ("smoke test\n| Test | Status |\n|---|---|\n| disk space | FAIL |\n", []),
        (
            "burn-in of node 7\nPCIe bandwidth GPU 3 ...... FAIL\nfan speed ...... PASS\n",
            [(None, "PCIe bandwidth GPU 3")],
        ),
        ("burn-in of node 7\n[FAILED] nccl all_reduce: 91 GB/s\n[PASSED] ecc\n", [(None, "nccl all_reduce: 91 GB/s")]),
        (
            "xpu-smi diag\n| Xe Link Throughput | Result: Fail |\n|   | Message: |\n"
            "|   | GPU 0 : Pass to check. |\n|   | GPU 1 : Fail to check. |\n",
            [(None, "Xe Link Throughput: GPU 1 : Fail to check.")],
        ),
        (
            "| Device ID | 3 |\n| Result | Fail |\n| Integration PCIe | Result: Fail |\n"
            "|   | Message: Fail to check PCIe bandwidth. It is 3.1 |\n|   |  GB/s. |\n",
            [("device 3", "Integration PCIe: Fail to check PCIe bandwidth. It is 3.1 GB/s.")],
        ),
        (
            "hl_qual report\n test name: f2\n device: hl5 (0000:b4:00.0)\n result: FAILED\n reason: HBM mismatch\n",
            [("0000:b4:00.0", "f2 hl5 (0000:b4:00.0): HBM mismatch")],
        ),
        (
            "hl_qual report\n host: n7\n test name: f2\n device: hl5\n result: FAILED\n reason: HBM mismatch\n"
            " test name: f2\n device: hl6\n result: PASSED\n",
            [("n7", "f2 hl5: HBM mismatch")],
        ),
        (
            "[RESULT] [ 61.104581] Action name :stress\n[RESULT] [ 62.5] [gpustress] gst 51499 pass: FALSE\n"
            "[RESULT] [ 63.5] [gpustress] gst 28851 pass: TRUE\n",
            [(None, "RVS [gpustress] gst 51499")],
        ),
        (
            "node health\n| Node name | GPU | Verdict |\n|---|---|---|\n"
            "| n4 | GPU2 ECC 12 | FAIL |\n| n5 | GPU2 | OK |\n",
            [("n4", "GPU2 ECC 12")],
        ),
    ],
)
def test_what_failed_is_shown_with_its_host(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert expected == [(report.subject, dict(report.detail)["what"]) for report in list_failed_results(text)]


def test_a_text_without_a_verdict_is_refused() -> None:
    with pytest.raises(ParseError):
        list_failed_results("node health check\n| Node | Status |\n|---|---|\n| n4 | running |\n")
