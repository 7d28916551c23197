"""Nodes and links while they are gathered: each once, and what two ends say otherwise."""

from __future__ import annotations

import pytest

from probes.fabric.topology import (
    Fabric,
    FabricBuilder,
    FabricEnd,
    FabricLink,
    FabricNode,
)


def wired(*links: FabricLink) -> Fabric:
    wiring = FabricBuilder("f", "f")
    for number, link in enumerate(links, 1):
        wiring.link(link, number)
    return wiring.fabric()


A, B, C = FabricEnd("a", 1, lid=7), FabricEnd("b", 2, "bb"), FabricEnd("c", 3)


def test_both_ends_of_a_link_are_one_link_with_what_each_says() -> None:
    """The end that came first stays first."""
    fabric = wired(FabricLink(A, B._replace(port_guid=None), 4), FabricLink(B, A._replace(lid=None), None, "NDR"))

    assert (FabricLink(A, B, 4, "NDR"),) == fabric.links
    assert () == fabric.problems


def test_where_the_ends_differ_nothing_is_known() -> None:
    """The link trained while the file was made."""
    fabric = wired(FabricLink(A, B, 4, "NDR", "Active"), FabricLink(B, A, 1, "NDR", "Initialize"))

    assert (FabricLink(A, B, None, "NDR", None),) == fabric.links
    assert [
        "f, line 2: the ends of port 1 of a differ in width: 4 and 1",
        "f, line 2: the ends of port 1 of a differ in state: Active and Initialize",
    ] == list(fabric.problems)


@pytest.mark.parametrize("links", [(FabricLink(A, B), FabricLink(A, C)), (FabricLink(A, B), FabricLink(C, B))])
def test_a_port_has_one_far_end(links: tuple[FabricLink, ...]) -> None:
    """A file that names two is not believed in the second."""
    fabric = wired(*links)

    assert (FabricLink(A, B),) == fabric.links
    assert "has two far ends" in fabric.problems[0]


@pytest.mark.parametrize(
    "links", [(FabricLink(A, B, 4), FabricLink(A, None)), (FabricLink(B, None), FabricLink(A, B, 4))]
)
def test_a_port_that_is_connected_and_free(links: tuple[FabricLink, ...]) -> None:
    """The cable stands, and it is said."""
    fabric = wired(*links)

    assert [(A, B)] == [(link.a, link.b) for link in fabric.links]
    assert "once as connected and once as free" in fabric.problems[0]


def test_a_loopback_plug_is_a_link() -> None:
    """A port whose far end is itself."""
    assert (FabricLink(A, A, 4),) == wired(FabricLink(A, A, 4), FabricLink(A, A, 4)).links


def test_a_link_takes_the_place_of_two_free_ports() -> None:
    """Both of its ends were told as free before."""
    fabric = wired(FabricLink(A, None), FabricLink(B, None), FabricLink(C, None), FabricLink(A, B, 4))

    assert [(C, None), (A, B)] == [(link.a, link.b) for link in fabric.links]
    assert ["f, line 4: port 1 of a, or its far end, is reported once as connected and once as free"] == list(
        fabric.problems
    )


def test_a_free_port_is_free_once() -> None:
    """Told twice."""
    assert (FabricLink(A, None),) == wired(FabricLink(A, None), FabricLink(A, None)).links


def test_what_is_learnt_of_a_node_later_fills_its_gaps() -> None:
    """What is known stays."""
    wiring = FabricBuilder("f", "f")
    wiring.node(FabricNode("a", "unknown", lid=3))
    wiring.node(FabricNode("a", "switch", "leaf", lid=4, ports=65))

    assert FabricNode("a", "switch", "leaf", 65, 3) == wiring.fabric().nodes["a"]
