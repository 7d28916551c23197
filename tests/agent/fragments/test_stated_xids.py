"""Xids that people and programs name by their number: of which GPU each is, and what names none that came."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.model.finding import Finding
from probes.host.interface import BadSource
from tests.agent.rules.test_fragments import scan_text

TEXTS = {
    "in a sentence, each with its GPU": (
        "Node g7 had Xid 119 on 0000:4e:00.0 at 02:13 and again at 02:19, then Xid 79 on 0000:bb:00.0.\n",
        [("device 0000:4e:00.0", "119"), ("device 0000:bb:00.0", "79")],
    ),
    "behind the name of each GPU": (
        "GPU 3: Xid 79, GPU 5: XID 48/63\n",
        [("GPU3", "79"), ("GPU5", "48")],
    ),
    "a list below a GPU": (
        "So far on GPU 6 (b7:00.0):\n - XID 63 (1x)\n - XID 48 (3x)\nOthers: none.\n",
        [("device 0000:b7:00.0", "48")],
    ),
    "a table of a site": (
        "| node | gpu | xids |\n|---|---|---|\n| n31 | GPU 1 | Xid 94, Xid 63 |\n| n44 | GPU 7 | Xid 119 |\n",
        [("GPU1", "94"), ("GPU7", "119")],
    ),
    "no GPU, and that it came": ("dmesg shows Xid 79 again since the move\n", [("node", "79")]),
    "of an application": ("We see Xid 13 on GPU 2 with the new kernel\n", [("GPU2", "13")]),
    "none came": ("GPU 0-7 of n12: no Xid 79, no Xid 119 in 30 days. There is no Xid 48 on GPU 3.\n", []),
    "a list of alerts": ("Our alert list has Xid 48, 63, 64, 74, 79. We got none on GPU 1.\n", []),
    "a question": ("Does Xid 31 on GPU 2 need a reset?\n", []),
    "a manual": ("Xid 79: GPU has fallen off the bus.\nXid 48: Double-bit ECC error.\n", []),
    "what is over": ("We had Xid 13 last week, an index out of bounds. Fixed in 3f2a.\n", []),
    "an example": ("Alerts such as Xid 79 on GPU 1 page the site\n", []),
}


def _list_xids(folder: Path, text: str) -> list[Finding]:
    try:
        return [finding for finding in scan_text(folder, text, "chat.txt").findings if ": Xid " in finding.summary]
    except BadSource:
        return []


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_xids_by_their_number(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    findings = _list_xids(tmp_path, text)
    assert expected == [(row.label, row.summary.partition(": Xid ")[2].partition(" ")[0]) for row in findings]
    assert all(row.severity in ("info", "warning") and row.confidence == "low" for row in findings)


def test_the_gravest_of_a_gpu_is_named_first(tmp_path: Path) -> None:
    """What one needs is not hidden by one that needs nothing."""
    (finding,) = _list_xids(tmp_path, "GPU 2: Xid 45, Xid 31, Xid 79\n")
    assert "warning" == finding.severity
    assert finding.summary.endswith("Xid 79 (the GPU fell off the bus); also Xid 45, Xid 31")
