"""The PCI tree: what is above, and which bridge is which port."""

from __future__ import annotations

from agent.assemble.pcie_tree import BridgePort, PcieTree
from probes.pci.sysfs import PciFunction
from tests.agent.assemble.boards import Board, hgx


def test_structure_tells_ports_where_config_space_is_closed() -> None:
    """Without privilege no port type can be read; the tree's shape gives the same answer."""
    known, shaped = PcieTree(hgx(2).functions), PcieTree(hgx(2, privileged=False).functions)

    assert [known.port(a) for a in known.functions] == [shaped.port(a) for a in shaped.functions]
    assert {BridgePort.ROOT, BridgePort.UP, BridgePort.DOWN, None} == {shaped.port(a) for a in shaped.functions}


def test_bridges_of_a_tree_without_classes_are_those_that_have_children() -> None:
    """Some recorded trees hold no class files."""
    board = hgx(1, privileged=False)
    for function in list(board.functions):
        board.change(function.address, class_code=None)
    tree = PcieTree(board.functions)

    assert [BridgePort.ROOT, BridgePort.UP, BridgePort.DOWN, None] == [
        tree.port(a) for a in ("0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0")
    ]


def test_a_bridge_to_conventional_pci_counts_as_an_upstream_port() -> None:
    """Its link is the one above it."""
    board = Board()
    root = board.root_port("0000:00:1c.0")
    board.bridge("0000:01:00.0", root)

    assert BridgePort.UP is PcieTree(board.functions).port("0000:01:00.0")


def test_parents_in_a_circle_end_the_climb() -> None:
    """A hostile source cannot make it climb for ever."""
    a = PciFunction("0000:00:00.0", "0000:00:01.0", None, class_code="0x060400")
    b = PciFunction("0000:00:01.0", "0000:00:00.0", None, class_code="0x060400")
    own, led = PciFunction("0000:00:02.0", "0000:00:02.0", None), PciFunction("0000:00:03.0", "0000:00:00.0", None)
    tree = PcieTree([a, b, own, led])

    assert ("0000:00:00.0", "0000:00:01.0") == tree.above("0000:00:03.0")
    assert len(tree.above("0000:00:00.0")) <= 2
    assert () == tree.above("0000:00:02.0")
    assert tree.port("0000:00:00.0") in BridgePort


def test_a_parent_that_the_source_does_not_hold_is_no_parent() -> None:
    """A listing of one device names a bridge above that it does not show."""
    tree = PcieTree([PciFunction("0000:19:00.0", "0000:17:01.0", "0000:15")])

    assert () == tree.above("0000:19:00.0")
    assert tree.parent(tree.functions["0000:19:00.0"]) is None
