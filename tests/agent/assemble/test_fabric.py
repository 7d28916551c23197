"""The far end of a port: found by GUIDs, agreed by all outputs, or not told."""

from __future__ import annotations

import pytest

from agent.model.nic import FabricNeighbor
from probes.fabric.files import read_fabric
from probes.fabric.probe import IbFabricFacts, SavedFabric
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from tests.agent.assemble.boards import assemble_facts
from tests.probes.fabric.fabric_texts import EVERY, HCA0, HCA1


def grouped(guid: str) -> str:
    return ":".join(guid[index : index + 4] for index in range(0, 16, 4))


def far(*names: str, device: RdmaDevice | None = None, **texts: str) -> FabricNeighbor | None:
    """The neighbour of the second HCA's port as the report has it, by outputs of EVERY, or by other texts."""
    saved = [SavedFabric(name, read_fabric(texts.get(name.replace(" ", "_"), EVERY[name]), name)) for name in names]
    result = assemble_facts(rdma=RdmaFacts((device or hca(),)), ib_fabric=IbFabricFacts(tuple(saved)))
    return result.topology.nics[0].ports[0].neighbor


def hca(guid: str | None = HCA1, node: str | None = HCA1, layer: str = "InfiniBand", **words: bool) -> RdmaDevice:
    port = RdmaPort(1, link_layer=layer, port_guid=grouped(guid) if guid else None)
    return RdmaDevice("mlx5_1", node_guid=grouped(node) if node else None, ports=(port,), **words)


LEAF = {"name": "MF0;leaf-2:MQM9700/U1", "port": 1, "lid": 12, "width": "2X", "speed": "HDR", "rate_gbit_s": 100.0}
GUID = {"node_guid": "0c42:a103:00bb:0200"}
COULD = {"could_width": "4X", "could_speed": "NDR", "could_rate_gbit_s": 400.0}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ibnetdiscover", GUID),
        ("iblinkinfo", COULD),
        ("iblinkinfo -l", COULD),
        ("ibnetdiscover -p", {}),
        ("ibdiagnet net_dump", GUID),
        ("ibdiagnet db_csv", GUID | COULD),
    ],
)
def test_one_output_tells_the_far_end(name: str, more: dict) -> None:
    """As much as it knows; a GUID of a port is not given out as a node's."""
    assert FabricNeighbor(**LEAF, **more, source=name) == far(name)


def test_outputs_complete_each_other() -> None:
    """One knows the GUID of the switch, the other what both ends could do."""
    assert FabricNeighbor(**LEAF, **GUID, **COULD, source="ibnetdiscover, iblinkinfo") == far(
        "ibnetdiscover", "iblinkinfo"
    )


def test_what_they_tell_differently_is_not_known() -> None:
    """The link trained in between: which of the two it runs at now, nobody says."""
    trained = EVERY["ibnetdiscover"].replace("2xHDR", "4xHDR")
    output = far("ibnetdiscover", "iblinkinfo", ibnetdiscover=trained)

    assert output is not None
    assert (None, "HDR", None) == (output.width, output.speed, output.rate_gbit_s)


@pytest.mark.parametrize(("one", "other"), [('"S-0c42a10300bb0200"[1]\t', '"S-0c42a10300bb0200"[2]\t')])
def test_two_far_ends_are_none(one: str, other: str) -> None:
    """A cable was moved between the outputs."""
    text = EVERY["ibnetdiscover"].replace(one, other)
    moved = "\n".join(line for line in text.split("\n") if "2xHDR" not in line or "lid 22 lmc" in line)

    assert far("ibnetdiscover", ibnetdiscover=moved) is not None
    assert far("ibnetdiscover", "iblinkinfo", ibnetdiscover=moved) is None


@pytest.mark.parametrize(
    ("device", "result"),
    [
        (hca(), True),
        (hca(node=None), True),
        (hca(guid=None), True),
        (hca(guid=None, node="2" * 16), False),
        (hca(guid="1" * 16, node=None), False),
        (hca(guid=None, node=None), False),
        (hca(layer="Ethernet"), False),
        (hca(software=True), False),
    ],
)
def test_a_port_is_found_by_its_guid_or_by_its_nodes(device: RdmaDevice, result: bool) -> None:
    """On InfiniBand only."""
    assert result is (far("ibnetdiscover", device=device) is not None)


def test_a_guid_of_a_port_is_no_guid_of_a_node() -> None:
    """With iblinkinfo a node is called by its first port: port 1 of the node with that GUID is another."""
    assert far("iblinkinfo", device=hca(guid=None, node=HCA1)) is None
    assert far("iblinkinfo", device=hca(guid=HCA1, node=HCA0)) is not None


def test_without_outputs_nothing_is_told() -> None:
    """And the port is there."""
    result = assemble_facts(rdma=RdmaFacts((hca(),)), ib_fabric=None)

    assert [None] == [port.neighbor for port in result.topology.nics[0].ports]
