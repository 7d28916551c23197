"""Differences that are faults, here and at the far end; what differs with each fault is in its golden file."""

from __future__ import annotations

import msgspec
import pytest

from agent.diff import diff
from agent.diff.page import page
from agent.model.nic import FabricNeighbor, Nic
from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from fixtures.machine import base_of
from tests.agent.diff.changed import HGX, rows
from tests.machines import FAULTS, scan_machine


@pytest.mark.parametrize("fault", FAULTS)
def test_the_page_of_a_fault_fits_a_terminal(fault: str) -> None:
    """Folded at 80 columns, and about a screen."""
    lines = to_plain_text(page(diff(scan_machine(base_of(fault)), scan_machine("", fault)), 80)).splitlines()

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 44


# A cable that was moved to another port of the switch is a difference; what ran on it is the port's own matter.


FAR = FabricNeighbor(name="leaf-1", port=17, width="4X", source="iblinkinfo")


def cabled(neighbor: FabricNeighbor | None) -> Report:
    """A machine whose first InfiniBand rail leads there."""
    first = next(
        nic.id for nic in scan_machine(HGX).topology.nics if nic.ports and nic.ports[0].link_layer == "InfiniBand"
    )

    def led(nic: Nic) -> Nic:
        if nic.id != first:
            return nic
        return msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], neighbor=neighbor)])

    return rows(scan_machine(HGX), "nics", led)


def test_a_moved_cable_is_a_difference() -> None:
    """From one far end to the other."""
    (change,) = diff(cabled(FAR), cabled(msgspec.structs.replace(FAR, port=18))).changes

    assert ("links", "changed", "neighbor", "leaf-1 port 17", "leaf-1 port 18") == (
        change.group, change.kind, change.what, change.old, change.new,
    )  # fmt: skip


def test_ports_inside_an_accelerator_are_compared_and_neither_gone_nor_new() -> None:
    """The accelerator is what can be gone; a report made without root does not have its ports."""
    whole = scan_machine("8x910b-4s-atlas-a2")
    unread = msgspec.structs.replace(
        whole, topology=msgspec.structs.replace(whole.topology, nics=whole.topology.host_nics)
    )

    def run(nic: Nic, state: str) -> Nic:
        return msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], state=state)])

    up, down = (rows(whole, "nics", lambda nic, state=state: run(nic, state)) for state in ("ACTIVE", "DOWN"))

    assert [] == [*diff(whole, unread).changes, *diff(unread, whole).changes]
    assert [("state", "ACTIVE", "DOWN")] == [(change.what, change.old, change.new) for change in diff(up, down).changes]


def test_other_words_of_the_same_far_end_are_none() -> None:
    """Another output, and what ran while it was made."""
    other = msgspec.structs.replace(FAR, source="ibnetdiscover", lid=9, width="2X", could_width="4X")

    assert [] == diff(cabled(FAR), cabled(other)).changes


def test_a_far_end_that_one_side_does_not_know_is_evidence_lost_or_gained() -> None:
    """No cable was touched. A switch without a name goes by its GUID; without either nothing is known."""
    by_guid = FabricNeighbor(node_guid="0c42:a103:00bb:0200", port=17, source="ibnetdiscover")
    nobody = FabricNeighbor(port=17, source="iblinkinfo")

    assert [("evidence", "lost")] == [(c.group, c.kind) for c in diff(cabled(FAR), cabled(None)).changes]
    assert [("evidence", "gained")] == [(c.group, c.kind) for c in diff(cabled(nobody), cabled(by_guid)).changes]
