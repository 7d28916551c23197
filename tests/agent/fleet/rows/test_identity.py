"""Numbers of what is a node's own: equal values have equal ones, and what many nodes have innocently has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.rows.device_fields import GpuFields, NetdevFields, NicFields, PortFields
from agent.fleet.rows.identity import numbers
from agent.fleet.rows.report_fields import NodeFields


def of(
    serial=None, machine_id=None, gpus=(), guids=(), ports=(), macs=(), addresses=(), driver="mlx5_core", label="eth0"
):
    return numbers(
        NodeFields(serial=serial, machine_id=machine_id),
        [GpuFields(id=f"g{n}", uuid=uuid, serial=serial) for n, (uuid, serial) in enumerate(gpus)],
        [
            NicFields(id="n", node_guid=guid, ports=[PortFields(port=1, port_guid=port) for port in ports])
            for guid in guids or [None]
        ],
        [
            NetdevFields(id="d", label=label, mac=mac, addresses=list(addresses), driver=driver)
            for mac in macs or [None]
        ],
    )


def test_each_value_has_its_own():
    result = of(
        "4711a",
        "beef01",
        [("GPU-1", "1650001"), ("GPU-2", None)],
        ["0c42:a103:0000:0001"],
        ["1c42:a103:0000:0002"],
        ["2c:42:a1:00:00:03"],
        ["10.0.0.1/24", "2001:db8::1/64"],
    )
    assert len(result) == 10
    assert all(-(2**63) <= item < 2**63 for item in result)


def test_what_is_made_of_a_mac_address_is_the_same():
    for guid in ("0c42:a103:0000:0001", "0c42:a1ff:fe00:0001", "0c42:a1ff:ff00:0001"):
        assert of(macs=["0c:42:a1:00:00:01"]) == of(guids=[guid]) == of(ports=[guid]) == {0x0C42A1000001}
        digits = guid.replace(":", "")
        pairs = ":".join(digits[at : at + 2] for at in range(0, 16, 2))
        whole = f"00:00:10:49:fe:80:00:00:00:00:00:01:{pairs}"
        assert of(macs=[whole], driver="ib_ipoib") == {0x0C42A1000001}
    assert of(guids=["0c42:a1a7:7800:0001"]) == {0x0C42A1A778000001}


@pytest.mark.parametrize(
    "same",
    [
        {"serial": "To be filled by O.E.M."},
        {"machine_id": "00000000"},
        {"gpus": [("N/A", "0")]},
        {"guids": ["0000:0000:0000:0000"]},
        {"ports": ["ffff:ffff:ffff:ffff"]},
        {"macs": ["00:00:00:00:00:00"]},
        {"macs": ["0c:42:a1:00:00:01"], "driver": None},
        {"macs": ["0c:42:a1:00:00:01"], "driver": "bridge"},
        {"macs": ["02:42:ac:11:00:01"]},
        {"addresses": ["127.0.0.1/8", "fe80::1/64", "172.17.0.1/16"]},
        {"addresses": ["10.0.0.1/24"], "label": "docker0"},
    ],
)
def test_what_is_innocently_on_many_nodes_has_none(same):
    assert of(**same) == set()


@pytest.mark.parametrize(
    "odd", ["nothing", "0x42:a103:0000:0001", "+c42:a103:0000:0001", "-c42:a103:0000:0001", "\ud800"]
)
def test_what_is_no_guid_has_one_too(odd):
    (number,) = of(guids=[odd])
    assert -(2**63) <= number < 2**63


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_two_guids_have_two(one, other):
    first, second = (":".join(f"{item:016x}"[at : at + 4] for at in range(0, 16, 4)) for item in (one, other))
    ends = {(item >> 40, item & 0xFFFFFF) for item in (one, other)}
    if len(ends) == 2:
        assert of(guids=[first]) != of(guids=[second]) or of(guids=[first]) == set()
