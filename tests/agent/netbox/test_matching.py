"""Which device a node is. Every doubt is a line, and nothing is done."""

from __future__ import annotations

import pytest

from agent.netbox.matching import NodeMatch, ReportedNode, match_nodes
from agent.netbox.state import NestedRow, NetBoxDevice
from agent.outputs.inventory.objects import DesiredNode


def node(name: str | None, serial: str | None, machine: str | None = None, at: str | None = None) -> DesiredNode:
    """A node of which nothing else matters."""
    return DesiredNode(
        name=name,
        serial=serial,
        machine_id=machine,
        observed_at=at,
        verdict="ok",
        modules_known=True,
        interfaces_known=True,
    )


def device(number: int, name: str | None, serial: str = "", site: str = "one") -> NetBoxDevice:
    """A device of NetBox."""
    return NetBoxDevice(id=number, name=name, serial=serial, site=NestedRow(id=1, name=site))


def match(devices: list[NetBoxDevice], *nodes: DesiredNode, create: bool = False) -> list[NodeMatch]:
    """The matches of nodes from a.json, b.json, .."""
    return match_nodes(
        [ReportedNode(each, f"{letter}.json") for each, letter in zip(nodes, "abc", strict=False)], devices, create
    )


def test_the_serial_number_comes_first() -> None:
    """Whatever the device is called, and in capitals or small letters."""
    found = match([device(1, "gpu01"), device(2, "other", "abc1")], node("gpu01", "ABC1"))[0]

    assert found.device is not None
    assert (2, "serial", "other") == (found.device.id, found.by, found.label)


@pytest.mark.parametrize("name", ["gpu01", "GPU01", "gpu01.example.com"])
def test_the_name_will_do_where_no_serial_number_speaks_against_it(name: str) -> None:
    """In NetBox none, or in the report none."""
    for serial, theirs in ((None, "ABC1"), ("ABC1", "")):
        found = match([device(1, "gpu01", theirs)], node(name, serial))[0]
        assert found.device is not None
        assert (1, "name") == (found.device.id, found.by)


@pytest.mark.parametrize(
    ("devices", "one", "said"),
    [
        ([], node("gpu01", "A"), "no device in NetBox has the serial number A or gpu01: --create makes it"),
        ([], node(None, "A"), "no device in NetBox has the serial number A: the report has no host name to make it by"),
        ([], node(None, None), "the report has neither a serial number nor a host name"),
        ([device(1, "gpu01", "B")], node("gpu01", "A"), "gpu01 has the serial number B in NetBox, and A in the report"),
        (
            [device(1, "x", "A", "one"), device(2, None, "a", "two")],
            node("gpu01", "A"),
            "2 devices in NetBox have the serial number A: x (one), no name (two)",
        ),
        (
            [device(1, "gpu01", "", "one"), device(2, "GPU01", "", "two")],
            node("gpu01", None),
            "2 devices in NetBox are called gpu01: gpu01 (one), GPU01 (two); --site",
        ),
    ],
)
def test_a_doubt_is_a_line(devices: list[NetBoxDevice], one: DesiredNode, said: str) -> None:
    """And no device."""
    found = match(devices, one)[0]

    assert None is found.device
    assert said in (found.problem or "")


def test_a_device_is_made_where_that_was_asked_for() -> None:
    """It needs a name; a doubt stays one."""
    assert match([], node("gpu01", "A"), create=True)[0].new
    assert not match([], node(None, "A"), create=True)[0].new
    assert not match([device(1, "gpu01", "B")], node("gpu01", "A"), create=True)[0].new


@pytest.mark.parametrize("create", [False, True])
def test_two_hosts_with_one_serial_number_are_neither(create: bool) -> None:
    """A cloned serial number: whoever is right, a guess would write one node's parts into the other's device."""
    devices = [] if create else [device(1, "gpu01", "A")]

    first, second = match(devices, node("gpu01", "A", "m1"), node("gpu02", "A", "m2"), create=create)

    assert "the same device as b.json, of another host (serial A): neither is taken" == first.problem
    assert "the same device as a.json, of another host (serial A): neither is taken" == second.problem


def test_two_hosts_with_one_name_are_neither() -> None:
    """Neither has a serial number."""
    found = match([device(1, "gpu01")], node("gpu01", None, "m1"), node("gpu01.b.example", None, "m2"))

    assert [True, True] == [each.problem is not None for each in found]


def test_of_two_reports_of_one_host_the_later_counts() -> None:
    """Which is no problem."""
    old, new = node("gpu01", "A", "m1", "2026-01-01T00:00:00Z"), node("gpu01", "A", "m1", "2026-01-02T00:00:00Z")

    first, second = match([device(1, "gpu01", "A")], new, old)

    assert (1, None, "a.json") == (first.device.id if first.device else 0, second.problem, second.older)
