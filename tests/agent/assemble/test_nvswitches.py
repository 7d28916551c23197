"""NVSwitches: class and id together; nothing else of NVIDIA is one."""

from __future__ import annotations

from tests.agent.assemble.hosts import Board, assemble_facts


def test_only_switches_are_switches() -> None:
    """Not the bridges of the third generation, not the root port of Grace, not a memory controller."""
    board = Board()
    root = board.root_port("0008:00:00.0", vendor="0x10de", device="0x22b1")
    for number, (kind, device) in enumerate(
        [
            ("0x068000", "0x22a3"),
            ("0x068000", "0x1af1"),
            ("0x068000", "0x1ac2"),
            ("0x060400", "0x22a8"),
            ("0x068000", "0x22b8"),
        ]
    ):
        board.device(f"0008:01:{number:02x}.0", root, kind, "0x10de", device)
    switches = assemble_facts(pci=board.facts()).topology.nvswitches

    assert ["0008:01:00.0", "0008:01:01.0", "0008:01:02.0"] == [switch.id for switch in switches]
    assert [switch.pci for switch in switches] == [switch.id for switch in switches]
