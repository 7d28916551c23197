"""Interfaces of which one pauses far more than the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines import scan_text

BLOCK = """\
$ ethtool -S ens{number}np0 | grep -E 'prio|pause'
     rx_prio3_packets: {received}
     rx_prio3_pause: 7{number}
     tx_prio3_packets: {sent}
     tx_prio3_pause: {paused}
"""


def write_blocks(*paused: int, received: int = 8_123_456_789, sent: int = 7_123_456_789) -> str:
    """One output for each count; the last carries what `received` states."""
    counts = [8_000_000_000] * (len(paused) - 1) + [received]
    return "".join(
        BLOCK.format(number=number, received=count, sent=sent, paused=count_paused)
        for number, (count, count_paused) in enumerate(zip(counts, paused, strict=True))
    )


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (write_blocks(31, 9, 120, 45_000_000), [("warning", "low", "ens3np0")]),
        (write_blocks(31, 9, 120, 45_000_000, received=0), [("info", "low", "ens3np0")]),
        (write_blocks(31, 9, 120, 45_000_000, received=4_000_000_000_000_000), []),
        (write_blocks(31, 9, 450_001, 45_000_000), []),
        (write_blocks(31, 9, 120, 999_999), []),
        (write_blocks(31, 120, 45_000_000), []),
        (write_blocks(31, 9, 120, 45_000_000).replace("tx_prio3_pause", "tx_prio3_pause_duration"), []),
        (
            write_blocks(31, 9, 120, 45_000_000).replace("prio3_pause", "pause_frames").replace("prio3_", ""),
            [("warning", "low", "ens3np0")],
        ),
        (
            write_blocks(31, 9, 120, 45_000_000).replace("rx_", "@").replace("tx_", "rx_").replace("@", "tx_"),
            [("info", "low", "ens3np0")],
        ),
    ],
    ids=[
        "one of four", "no traffic is counted", "traffic explains it", "another has some, too", "few", "three", "times",
        "of another driver", "it is paused",
    ],
)  # fmt: skip
def test_pauses_far_above_those_of_the_others(tmp_path: Path, text: str, findings: list[tuple[str, str, str]]) -> None:
    found = [fault for fault in scan_text(tmp_path, text).findings if fault.rule == "tool-reports-fault"]

    assert findings == [(fault.severity, fault.confidence, fault.label) for fault in found]
