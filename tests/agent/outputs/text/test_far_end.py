"""The far end of an InfiniBand port on the page for people."""

from __future__ import annotations

import pytest

from agent.model.nic import FabricNeighbor, Nic, Port
from agent.model.topology import Topology
from agent.outputs.html.page import render_html
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.tree import render_tree
from tests.agent.outputs.text.reports import report


def draw(neighbor: FabricNeighbor | None) -> str:
    """The line of a NIC."""
    port = Port(port=1, link_layer="InfiniBand", state="ACTIVE", rate_gbit_s=400.0, speed="NDR", neighbor=neighbor)
    nic = Nic(id="mlx5_0", label="mlx5_0", role="rail", ports=[port])
    return to_plain_text(render_tree(report(Topology(nics=[nic])), 100))


@pytest.mark.parametrize(
    ("name", "guid", "output"),
    [
        ("MF0;leaf-1:MQM9700/U1", None, "to leaf-1 port 17"),
        ("leaf1", None, "to leaf1 port 17"),
        (None, "0c42:a103:00bb:0200", "to 0c42:a103:00bb:0200 port 17"),
        (None, None, "to a switch port 17"),
    ],
)
def test_a_nic_says_where_its_cable_leads(name: str | None, guid: str | None, output: str) -> None:
    """As people call the switch."""
    assert f"rail  {output}" in draw(FabricNeighbor(name=name, node_guid=guid, port=17, source="iblinkinfo"))


def test_without_a_known_far_end_nothing_is_said() -> None:
    """No empty words."""
    assert " to " not in draw(None)


def test_what_a_switch_is_called_moves_no_cursor() -> None:
    """A node description is typed by anybody."""
    output = draw(FabricNeighbor(name="a\x1b[2J\x07b\x85c\nd", port=1, source="iblinkinfo"))

    assert not {character for character in output if not character.isprintable()} - {"\n"}
    assert 1 == sum("mlx5_0" in line for line in output.splitlines())
    assert " to a" in output


def test_the_page_for_browsers_has_it_as_a_part_of_its_own() -> None:
    """Below its port."""
    far = FabricNeighbor(name="leaf1", port=17, could_width="4X", source="iblinkinfo")
    output = render_html(report(Topology(nics=[Nic(id="mlx5_0", label="mlx5_0", ports=[Port(port=1, neighbor=far)])])))

    assert "neighbour of port 1" in output
    assert "<dt>could width</dt><dd>4X</dd>" in output
