"""Whether a dark port was meant to be lit: what ib-port-down and roce-link-down have in common."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.model.node import NcclSetting
from agent.model.report import History, Known
from agent.rules.cabling import (
    CageState,
    are_all_rails_down,
    board_model,
    find_confidence,
    find_known_rate,
    is_meant_to_be_up,
    position_on_card,
    read_cage,
    unused_port_result,
    why_still_booting,
)
from agent.rules.context import RuleContext
from agent.rules.devices import NicPort
from agent.rules.infiniband.links import ib_port_down
from agent.rules.roce.links import roce_link_down
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, function, nic_id, node, server
from tests.agent.rules.rows import nic


def socket(number: int, active: bool, **changes) -> CageState:
    """Port 1 of rail `number`."""
    result = CageState(f"port:{number}", nic(nic_id(number), number), active, False, "MT_1", (1, "0"))
    return replace(result, **changes)


def storage(number: int, active: bool, **changes) -> CageState:
    """The same of a storage NIC."""
    result = socket(number, active, **changes)
    return replace(result, nic=replace(result.nic, role="storage"))


def test_a_socket_knows_its_card() -> None:
    """All functions of one slot."""
    assert "0000:25:00" == socket(1, True).card
    bare = replace(nic("mlx5_1", 1), pci=None)
    assert "mlx5_1" == socket(1, True, nic=bare).card
    shared = replace(nic("mlx5_1", 1), pci=nic_id(1))
    assert "0000:25:00" == socket(1, True, nic=shared).card


def test_boards_by_id_then_by_product() -> None:
    """PSID, PCI device, model, nothing."""
    context = server()
    bare = changed_nic(context, 1, board_id=None)
    blank = function(bare, nic_id(1), device=None)

    assert "MT_0000000838" == board_model(context, context.topology.nics[1])
    assert "0x1021" == board_model(bare, bare.topology.nics[1])
    assert "ConnectX-7" == board_model(blank, blank.topology.nics[1])
    assert "" == board_model(changed_nic(blank, 1, model=None), changed_nic(blank, 1, model=None).topology.nics[1])
    assert (2, "0") == position_on_card(context.topology.nics[1], 2)


@pytest.mark.parametrize(("seconds", "waits"), [(239.9, True), (240.0, False), (None, False)])
def test_ports_have_four_minutes(seconds: float | None, waits: bool) -> None:
    """Where nobody says how long the host runs, it runs long enough."""
    assert waits == bool(why_still_booting(node(server(), uptime_seconds=seconds)))


def test_all_dark_is_several_rails_without_a_light() -> None:
    """One rail proves nothing."""
    assert are_all_rails_down([socket(0, False), socket(1, False)])
    assert not are_all_rails_down([socket(0, False)])
    assert not are_all_rails_down([socket(0, True), socket(1, False)])
    assert not are_all_rails_down([storage(0, False), storage(1, False)])


def test_what_was_meant() -> None:
    """A sibling in the same position, a cable that shows, or all dark."""
    dark, lit = socket(1, False), socket(0, True)

    assert unused_port_result(dark, [lit, dark], "DOWN") is None
    assert unused_port_result(replace(dark, plugged=True), [dark], "DOWN") is None
    assert unused_port_result(dark, [dark, socket(2, False)], "DOWN") is None
    assert isinstance(unused_port_result(dark, [dark], "DOWN"), Unknown)
    assert isinstance(unused_port_result(dark, [replace(lit, position=(2, "0")), dark], "DOWN"), NotApplicable)
    twin = socket(1, True, position=(1, "1"))
    assert isinstance(unused_port_result(dark, [lit, dark, twin], "DOWN"), NotApplicable)
    assert unused_port_result(dark, [lit, socket(0, True, position=(1, "1")), dark, twin], "DOWN") is None


@pytest.mark.parametrize(
    ("unused", "used", "kind"), [(1, 1, type(None)), (2, 1, NotApplicable), (2, 2, NotApplicable), (2, 3, type(None))]
)
def test_ports_that_are_switched_off_are_meant_to_be_where_half_are(unused: int, used: int, kind: type) -> None:
    """One alone is a fault, and so are a few of many."""
    off = [socket(n, False, unused=True, disabled=True) for n in range(unused)]
    all_ports = [*off, *(socket(n, True) for n in range(unused, unused + used))]

    assert kind is type(unused_port_result(off[0], all_ports, "DOWN"))
    half = unused > 1 and unused >= used
    assert ("low" if half else "high") == find_confidence(replace(off[0], unused=False), all_ports)


@pytest.mark.parametrize(
    ("make", "board", "kind"),
    [
        pytest.param(socket, "MT_1", type(None), id="a rail among rails"),
        pytest.param(socket, "MT_2", type(None), id="what one rail has all have"),
        pytest.param(storage, "MT_1", type(None), id="storage beside its like"),
        pytest.param(storage, "MT_2", NotApplicable, id="an optional second storage card"),
    ],
)
def test_siblings_of_a_dark_port(make, board: str, kind: type) -> None:
    """Rails of every board are alike; storage cards are only where they are of one board."""
    dark = make(1, False)

    assert kind is type(unused_port_result(dark, [make(0, True, board=board), dark], "DOWN"))


def test_a_card_has_the_ports_that_most_of_its_board_have() -> None:
    """Two of three have one cable: the third's second cable obliges nobody, nor do cards of another board."""
    second = (1, "1")
    lit = [socket(n, True) for n in range(3)]
    dark = socket(0, False, position=second)
    other = [socket(n, True, position=place, board="MT_2") for n in (5, 6, 7, 8) for place in (second, (1, "0"))]

    assert isinstance(unused_port_result(dark, [*lit, dark, socket(2, True, position=second)], "DOWN"), NotApplicable)
    assert isinstance(unused_port_result(dark, [*lit, dark, *other], "DOWN"), NotApplicable)
    assert unused_port_result(dark, [*lit, dark, *(socket(n, True, position=second) for n in (1, 2))], "DOWN") is None


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"module": None}, False),
        ({"module": None, "addresses": ["fe80::1/64", "169.254.0.1/16"]}, False),
        ({"module": None, "addresses": ["fe80::1/64", "10.0.0.1/24"]}, True),
        ({}, True),  # a module in its cage
        ({"addresses": ["10.0.0.1/24"], "admin_up": None}, True),
        ({"addresses": ["10.0.0.1/24"], "admin_up": False}, False),
        ({"label": "eth9"}, False),
    ],
)
def test_an_interface_that_is_set_up_is_meant_to_be_up(changes: dict[str, Any], meant: bool) -> None:
    """By an address or a module, where nobody switched it off."""
    context = changed_netdev(server(ethernet=True), 0, **changes)
    port = context.nics[nic_id(0)].ports[0]

    assert meant == is_meant_to_be_up(context, f"port:{nic_id(0)}/1", port)


def test_the_rate_of_an_earlier_run_is_the_rate_of_the_same_port() -> None:
    """Of a NIC that is no longer here nothing is known."""
    context = server()
    here, gone = f"port:{nic_id(0)}/1", "port:0000:ff:00.0/1"
    known = [
        Known(subject=f"nic:{nic_id(0)}", label="mlx5_0", role="rail"),
        Known(subject=here, label="mlx5_0/1", rate_gbit_s=400.0),
        Known(subject=f"port:{nic_id(1)}/1", label="mlx5_1/1"),
        Known(subject=gone, label="mlx5_9/1", rate_gbit_s=200.0),
    ]
    context = replace(context, history=History(inventory=known))

    assert [400.0, None, None] == [find_known_rate(context, s) for s in (here, f"port:{nic_id(1)}/1", gone)]
    assert is_meant_to_be_up(context, here, context.nics[nic_id(0)].ports[0])


def dark(context: RuleContext, count: int, **netdev: Any) -> RuleContext:
    """The last ports of four are down, and nothing is in their cages."""
    for n in range(4 - count, 4):
        context = changed_port(context, n, state="DOWN", phys_state="Disabled")
        if context.topology.netdevs:
            context = changed_netdev(context, n, **({"admin_up": False, "addresses": [], "module": None} | netdev))
    return context


def lists(context: RuleContext, value: str) -> RuleContext:
    """NCCL_IB_HCA of the host."""
    setting = NcclSetting(key="NCCL_IB_HCA", value=value, source="/etc/nccl.conf:1")
    nccl = replace(context.software.nccl, settings=[setting])
    return replace(context, software=replace(context.software, nccl=nccl))


EMPTY = {"module_reason_code": "no-module"}


@pytest.mark.parametrize(
    ("context", "found"),
    [
        (dark(server(ethernet=True), 2, **EMPTY), []),
        (dark(server(ethernet=True), 1, **EMPTY), ["low"]),
        (dark(server(ethernet=True), 2), ["low", "low"]),
        (dark(server(ethernet=True), 1), ["high"]),
        (dark(server(ethernet=True), 2, **EMPTY, addresses=["10.0.0.1/24"]), ["high", "high"]),
        (dark(server(ethernet=True), 2, **EMPTY, admin_up=True), ["high", "high"]),
        (lists(dark(server(ethernet=True), 2), "=mlx5_0,mlx5_1"), []),
        (lists(dark(server(ethernet=True), 1), "=mlx5_0,mlx5_1,mlx5_2"), ["low"]),
        (lists(dark(server(ethernet=True), 2), "^mlx5_2,mlx5_3"), []),
        (lists(dark(server(ethernet=True), 2, **EMPTY), "mlx5_2,mlx5_3"), ["high", "high"]),
        (lists(dark(server(ethernet=True), 2, **EMPTY), "mlx5"), []),
        (lists(dark(server(), 2), "=mlx5_0,mlx5_1"), []),
        (lists(dark(server(), 1), "bnxt_re"), ["high"]),  # no device of this host: of another machine
        (dark(server(), 2), ["low", "low"]),
        (dark(server(), 1), ["high"]),
    ],
)
def test_half_of_the_ports_are_not_switched_off_by_a_fault(context: RuleContext, found: list[str]) -> None:
    """Set down with an empty cage, or left out of NCCL_IB_HCA: not meant to be up; of one port it is not sure."""
    assert found == [fault.confidence for rule in (ib_port_down, roce_link_down) for fault in fails(rule, context)]


def test_storage_ports_are_not_in_the_list_of_rails() -> None:
    """NCCL_IB_HCA leaves them out, and they are meant to be up all the same."""
    context = lists(dark(server(), 2), "=mlx5_0,mlx5_1")
    context = changed_nic(changed_nic(context, 2, role="storage"), 3, role="storage")
    cage = read_cage(context, NicPort(context.topology.nics[3], context.topology.nics[3].ports[0]))

    assert (False, True) == (cage.unused, cage.disabled)
