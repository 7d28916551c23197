"""What an rdma_topo dump says: the PCI tree with config spaces, and the names of devices."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.text import ParseError
from probes.topology_files.rdma_topo import parse
from tests.probes.topology_files.samples import RDMA, dump, function, refusal

PATH = "/sys/devices/pci0000:15/0000:15:01.0"


def test_functions_devices_and_interfaces() -> None:
    """Placed by their paths, named by their modalias."""
    result = parse(RDMA).facts
    port, nic = result["pci"].functions

    assert ("0000:15:01.0", None, "0000:15", "0x060400", "0x8086") == (*port[:4], port.vendor)
    assert ("0000:15:01.0", "0x020700", "0x1021", "0x0041") == (
        nic.parent,
        nic.class_code,
        nic.device,
        nic.subsystem_device,
    )
    assert (0, 42, 4096) == (nic.numa_node, nic.iommu_group, nic.config_bytes)
    assert [("mlx5_0", "0000:16:00.0", ())] == [(d.name, d.address, d.ports) for d in result["rdma"].devices]
    assert [("ib0", "0000:16:00.0")] == [(n.name, n.address) for n in result["netdev"].netdevs]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a list"),
        (b"{}", "not a list"),
        (b"[1]", "not a list"),
        (b"\xff\xfe", "not JSON"),
        (dump(function("/sys/devices/nothing", b"")), "without a PCI address"),
        (dump(function(PATH, b""), function(PATH, b"")), "twice"),
        (dump(function(PATH, bytes(4097))), "longer than 4096"),
        (dump(function(PATH, bytes(10_000_000))), "longer than 4096|no config"),
        (dump({**function(PATH, b""), "config": "eJz"}), "damaged"),
        (dump({**function(PATH, b""), "config": "eJy7"}), "cut short"),
        (dump({"realpath": PATH}), "no config"),
    ],
    ids=range(12),
)
def test_what_is_damaged_or_hostile_is_refused(text: bytes, fault: str) -> None:
    """Each with what is wrong; a bomb is not unpacked."""
    with pytest.raises(ParseError, match=fault):
        parse(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(["realpath", "config", "modalias", "numa_node", "iommu_group", "subsystems", "vpd"]), VALUES)
def test_any_value_gives_facts_or_the_one_error(key: str, value: object) -> None:
    """In the place of any of a function's."""
    items = json.loads(RDMA)
    items[1][key] = value
    assert len(refusal(parse, dump(*items))) <= 1
