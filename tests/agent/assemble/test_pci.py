"""PCI functions and the tree of their links."""

from __future__ import annotations

import pytest

from agent.assemble.pcie_tree import BridgePort, PcieTree
from probes.pci.facts import Acs, PciFacts, PciFunction
from probes.system.numa import NumaFacts, NumaNodeFacts
from tests.agent.assemble.boards import GEN1, GEN5, Board, assemble_facts, hgx
from tests.texts import read_fields

# PCI rows: sysfs and lspci joined, NUMA declared or not, links and states.


GPU, NIC, DOWN = "0000:13:00.0", "0000:14:00.0", "0000:12:00.0"


def rows(**facts: object) -> dict[str, object]:
    """PCI rows by id."""
    return {row.id: row for row in assemble_facts(**facts).topology.pci}


def test_text_fills_what_sysfs_may_not_say_and_never_overrules_it() -> None:
    """sysfs without privilege, and an lspci that root has run."""
    live = hgx(1, privileged=False).facts()
    text = PciFacts(
        tuple(
            function._replace(
                max_payload_bytes=256,
                current_link_speed_gt_s=GEN1,
                acs=Acs(frozenset({"SV", "RR"}), frozenset({"RR"})),
                acs_known=True,
                port_type="endpoint",
                numa_node=None,
            )
            for function in hgx(1).functions
        )
    )
    row = rows(pci=live, lspci=text)[NIC]

    assert (256, "endpoint", 0) == (row.max_payload_bytes, row.port_type, row.numa_node)
    assert row.link.speed_gt_s == GEN5
    assert (["SV", "RR"], ["RR"]) == (row.acs.capability, row.acs.control)


def test_hierarchy_is_taken_whole_from_one_source() -> None:
    """A parent of one source and a root bus of another would be a tree that nobody saw."""
    live = PciFunction(NIC, None, None)
    text = PciFunction(NIC, DOWN, "0000:10")

    assert (DOWN, "0000:10") == (lambda r: (r.parent, r.root_bus))(
        rows(pci=PciFacts((live,)), lspci=PciFacts((text,)))[NIC]
    )


def test_functions_of_either_source_are_rows_in_numeric_order() -> None:
    """Five-digit domains last."""
    live = PciFacts((PciFunction("10000:00:00.0", None, None), PciFunction("0000:0a:00.0", None, None)))
    text = PciFacts((PciFunction("0000:09:00.0", None, None),))

    assert ["0000:09:00.0", "0000:0a:00.0", "10000:00:00.0"] == list(rows(pci=live, lspci=text))


def test_a_node_of_minus_one_is_undeclared_and_an_unread_one_is_unknown() -> None:
    """The kernel reports -1 where the firmware is silent."""
    board = hgx(1)
    board.change(GPU, numa_node=-1)
    board.change(NIC, numa_node=None)
    functions = rows(pci=board.facts())

    assert (None, False) == (functions[GPU].numa_node, functions[GPU].numa_declared)
    assert (None, None) == (functions[NIC].numa_node, functions[NIC].numa_declared)
    assert (0, True) == (functions[DOWN].numa_node, functions[DOWN].numa_declared)


def test_local_cpus_name_the_node_where_the_kernel_has_no_file_for_it() -> None:
    """Only where they are those of one node among several: one node's CPUs are all CPUs."""
    board = hgx(1)
    board.change(NIC, numa_node=None, local_cpus="8-15")
    board.change(GPU, numa_node=None, local_cpus="0-15")
    two = NumaFacts((NumaNodeFacts(0, "0-7"), NumaNodeFacts(1, "8-15"), NumaNodeFacts(2, "")))
    functions = rows(pci=board.facts(), numa=two)
    alone = rows(pci=board.facts(), numa=NumaFacts((NumaNodeFacts(0, "8-15"),)))

    assert (1, True) == (functions[NIC].numa_node, functions[NIC].numa_declared)
    assert functions[GPU].numa_node is None
    assert alone[NIC].numa_node is None


def test_impossible_widths_become_null_and_the_state_says_what_happened() -> None:
    """63 is all-ones; the device is gone, and its width is not 63."""
    board = hgx(3)
    board.change(GPU, gone=True, current_link_width=63, max_link_width=63)
    board.change("0000:23:00.0", asleep=True, runtime_status="suspended")
    board.change("0000:33:00.0", vanished=True, max_link_width=255)
    functions = rows(pci=board.facts())

    assert ("gone", None, None) == (functions[GPU].state, functions[GPU].link.width, functions[GPU].link.max_width)
    assert ("asleep", "suspended") == (functions["0000:23:00.0"].state, functions["0000:23:00.0"].power_state)
    assert "changed_during_scan" == functions["0000:33:00.0"].state
    assert functions["0000:33:00.0"].link.max_width is None
    assert "present" == functions[NIC].state


def test_the_row_tells_the_link_in_one_direction_after_coding() -> None:
    """And what the kernel reads, the report keeps."""
    link = rows(pci=hgx(1).facts())[NIC].link

    assert (GEN5, 16, 63.015, "conclusive") == read_fields(link, "speed_gt_s width bandwidth_gbyte_s quality.state")


@pytest.mark.parametrize(
    ("managed", "autonomous", "expected"),
    [
        (True, True, ["bandwidth_managed", "autonomous"]),
        (False, True, ["autonomous"]),
        (False, False, []),
        (None, None, None),
        (True, None, None),
    ],
)
def test_what_a_port_remembers_of_retraining(managed, autonomous, expected) -> None:
    """Unknown is not "never"."""
    port = PciFunction(
        DOWN, None, "0000:10", bandwidth_management_status=managed, autonomous_bandwidth_status=autonomous
    )

    assert expected == rows(pci=PciFacts((port,)))[DOWN].retrained


def test_settings_that_config_space_tells_are_fields() -> None:
    """Tags as they are and as they could be, and a link that was switched off."""
    function = PciFunction(
        NIC,
        DOWN,
        "0000:10",
        extended_tags_supported=True,
        ten_bit_tags=False,
        ten_bit_tags_supported=True,
        link_disabled=True,
        slot_occupied=True,
        slot_powered=True,
        link_active=False,
    )
    row = rows(pci=PciFacts((function,)))[NIC]

    assert (True, False, True, True) == read_fields(
        row, "extended_tags_supported ten_bit_tags ten_bit_tags_supported link_disabled"
    )
    assert (True, True, False) == (row.slot_occupied, row.slot_powered, row.link_active)


@pytest.mark.parametrize(("raw", "width"), [(0, 0), (16, 16), (255, None), (None, None)])
def test_no_lanes_is_a_number_and_no_reading_is_none(raw, width) -> None:
    """0 says that there is no link; 255 that the kernel could not tell."""
    function = PciFunction(
        NIC, DOWN, "0000:10", current_link_width=raw, max_link_width=16, current_link_speed_gt_s=GEN5
    )

    assert width == rows(pci=PciFacts((function,)))[NIC].link.width


# The PCI tree: what is above, and which bridge is which port.


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
