"""Links that went down and settings that changed since the last run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.history.state import LINK_DOWN_LIMIT, LINK_DOWN_SECONDS, HostState, add_history, update_state
from agent.model.nic import Qos
from agent.model.node import Driver, NumaNode
from agent.model.report import History, Report
from agent.rules.context import RuleContext
from tests.agent.history.build import DAY, counting, moved_rail, report
from tests.agent.rules.build import (
    changed_gpu,
    changed_netdev,
    changed_nic,
    changed_port,
    gpu_id,
    nic_id,
    node,
    server,
    software,
)

RAIL = nic_id(0)
PORT, NETDEV = f"port:{RAIL}/1", f"netdev:{RAIL}"


def history(state: HostState | None, now: Report) -> History:
    result = add_history(state, now).history
    assert result is not None
    return result


def after(*reports: Report) -> HostState:
    state = None
    for one_report in reports:
        state = update_state(state, one_report)
    assert state is not None
    return state


def up(case: RuleContext) -> RuleContext:
    return changed_netdev(case, 0, operstate="up", admin_up=True)


def test_a_link_that_went_down_is_remembered_with_its_time() -> None:
    """By its own counters; as often as the one that says most."""
    now = report(counting(downs=2), DAY + 60)

    assert {PORT: [now.generated_at] * 2, NETDEV: [now.generated_at] * 2} == history(after(report()), now).link_downs


def test_it_is_told_for_a_day_and_counted_once() -> None:
    """A later run knows it, too; a day later nobody does."""
    state = after(report(uptime=1000.0), report(counting(downs=1), 3600.0))
    soon, late = report(counting(downs=1), 7200.0), report(counting(downs=1), 3601.0 + LINK_DOWN_SECONDS)

    assert 1 == len(history(state, soon).link_downs[NETDEV])
    assert 1 == len(history(update_state(state, soon), report(counting(downs=1), 7300.0)).link_downs[NETDEV])
    assert {} == history(state, late).link_downs


def test_it_follows_the_device() -> None:
    """An interface that was moved has flapped, wherever it is now."""
    state = after(report(), report(counting(downs=1), DAY + 60))
    now = report(moved_rail(counting(downs=1), "0000:99:00.0"), DAY + 120)

    assert {"port:0000:99:00.0/1", "netdev:0000:99:00.0"} == history(state, now).link_downs.keys()


def test_a_state_that_is_down_now_counts_where_no_counter_does() -> None:
    """InfiniBand by its physical state, an interface by operstate."""
    ib = report(server())
    polling = report(changed_port(server(), 0, phys_state="Polling"), DAY + 60)
    down = report(changed_netdev(counting(), 0, operstate="down", admin_up=True), DAY + 60)

    assert {PORT} == history(after(ib), polling).link_downs.keys()
    assert {NETDEV} == history(after(report(up(counting()))), down).link_downs.keys()
    assert {} == history(after(polling), report(changed_port(server(), 0, phys_state="Polling"), DAY + 99)).link_downs


@pytest.mark.parametrize(
    ("was", "now"),
    [
        pytest.param(report(), report(counting(downs=2), 60.0, boot_id="boot-2"), id="another boot"),
        pytest.param(report(counting(downs=3)), report(counting(downs=1), DAY + 60), id="restarted"),
        pytest.param(
            report(changed_netdev(counting(), 0, operstate="dormant")),
            report(changed_netdev(counting(), 0, operstate="down"), DAY + 60),
            id="never seen up",
        ),
        pytest.param(
            report(server()), report(changed_port(server(), 0, phys_state="Disabled"), DAY + 60), id="switched off"
        ),
        pytest.param(
            report(up(counting())),
            report(changed_netdev(counting(), 0, operstate="down", admin_up=False), DAY + 60),
            id="taken down on purpose",
        ),
        pytest.param(report(), report(counting(downs=2), None), id="no uptime"),
        pytest.param(report(uptime=899.0), report(counting(downs=2), DAY), id="while the host started"),
        pytest.param(report(), report(counting(downs=2)), id="the same moment"),
    ],
)
def test_what_is_no_flap(was: Report, now: Report) -> None:
    """Nothing is told of it."""
    assert {} == history(after(was), now).link_downs


def test_an_interface_that_is_down_on_purpose_tells_nothing_by_its_counter() -> None:
    """Whoever takes it down counts there, too; the port counts for itself."""
    now = report(changed_netdev(counting(downs=2), 0, admin_up=False), DAY + 60)

    assert {PORT} == history(after(report()), now).link_downs.keys()


def test_what_is_remembered_is_bounded() -> None:
    """A link that flaps all day."""
    state = after(report(), *(report(counting(downs=n * 50), DAY + n * 60) for n in range(1, 5)))

    assert LINK_DOWN_LIMIT == len(state.downs[NETDEV])


@pytest.mark.parametrize(
    ("was", "now", "subject", "row"),
    [
        pytest.param(
            server(), changed_port(server(), 0, sm_lid=7, lid=11), PORT, {"lid": "10", "sm_lid": "1"}, id="addresses"
        ),
        pytest.param(
            server(), changed_nic(server(), 0, firmware="28.44"), f"nic:{RAIL}", {"firmware": "28.43.2026"}, id="fw"
        ),
        pytest.param(
            changed_netdev(counting(), 0, qos=Qos(dcbx="host", pfc=[False] * 3 + [True], trust="dscp")),
            changed_netdev(counting(), 0, qos=Qos(dcbx="firmware", pfc=[False] * 4, trust="dscp"), mtu=1500),
            NETDEV,
            {"dcbx": "host", "mtu": "4200", "pfc": "3"},
            id="dcb",
        ),
        pytest.param(
            changed_gpu(server(), 0, vbios="1"),
            changed_gpu(server(), 0, vbios="2"),
            f"gpu:{gpu_id(0)}",
            {"vbios": "1"},
            id="gpu",
        ),
        pytest.param(
            changed_gpu(server(), 0, numa_node=0),
            changed_gpu(server(), 0, numa_node=1),
            f"gpu:{gpu_id(0)}",
            {"numa_node": "0"},
            id="NUMA node of a GPU",
        ),
        pytest.param(
            changed_nic(server(), 0, numa_node=1),
            changed_nic(server(), 0, numa_node=0),
            f"nic:{RAIL}",
            {"numa_node": "1"},
            id="NUMA node of a NIC",
        ),
        pytest.param(
            server(), node(server(), numa_nodes=[NumaNode(id=0, cpus="0-111")]), "node", {"numa_nodes": "2"}, id="NPS"
        ),
        pytest.param(
            server(), software(server(), driver=Driver(version="580")), "node", {"driver": "570.124.06"}, id="node"
        ),
    ],
)
def test_a_changed_setting_is_told_with_what_it_was(
    was: RuleContext, now: RuleContext, subject: str, row: dict[str, str]
) -> None:
    """Over a reboot, too."""
    assert {subject: row} == history(after(report(was)), report(now, 60.0, boot_id="boot-2")).settings


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([NumaNode(id=0, cpus="0-55"), NumaNode(id=1)], id="one whose CPUs are not known"),
        pytest.param([], id="not read"),
        pytest.param(
            [NumaNode(id=0, cpus="0-55"), NumaNode(id=1, cpus="56-111"), NumaNode(id=2, cpus="")], id="memory of a GPU"
        ),
    ],
)
def test_numa_nodes_are_counted_by_their_cpus(nodes: list[NumaNode]) -> None:
    """Memory comes and goes with its device, and a gap is no change."""
    assert {} == history(after(report(server())), report(node(server(), numa_nodes=nodes), 60.0)).settings


@pytest.mark.parametrize(
    "changes",
    [{"sm_lid": 0}, {"sm_lid": None}, {"link_layer": "Ethernet", "sm_lid": 9}],
)
def test_no_address_is_no_change(changes: dict[str, Any]) -> None:
    """0 is none yet, and Ethernet has none."""
    assert {} == history(after(report(server())), report(changed_port(server(), 0, **changes), DAY + 60)).settings


def test_a_setting_that_was_not_read_once_is_not_forgotten() -> None:
    """The last known value is compared."""
    silent = report(changed_nic(server(), 0, firmware=None), DAY + 60)
    now = report(changed_nic(server(), 0, firmware="28.44"), DAY + 120)

    assert {f"nic:{RAIL}": {"firmware": "28.43.2026"}} == history(after(report(server()), silent), now).settings
    assert {} == history(after(report(server()), now), now).settings


def test_settings_of_a_device_that_is_away_wait_for_it() -> None:
    """It comes back with other firmware."""
    away = msgspec.structs.replace(report(server(), DAY + 60), topology=server(0).topology)
    now = report(changed_nic(server(), 0, firmware="28.44"), DAY + 120)

    assert {f"nic:{RAIL}": {"firmware": "28.43.2026"}} == history(after(report(server()), away), now).settings
