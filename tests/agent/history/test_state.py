"""What is remembered, and when an earlier run states nothing about this one: links that went down, settings that
changed.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.history.state import (
    FIRST_RUN,
    LINK_DOWN_LIMIT,
    LINK_DOWN_SECONDS,
    OLDER_EVIDENCE,
    HostState,
    accept_inventory,
    add_history,
    update_state,
)
from agent.history.window import make_window
from agent.model.nic import Qos
from agent.model.node import Driver, NumaNode
from agent.model.report import CountersWindow, History, Report
from agent.rules.context import RuleContext
from tests.agent.history.build import DAY, counting, moved_rail, report
from tests.agent.rules.build import (
    changed_gpu,
    changed_gpus,
    changed_netdev,
    changed_nic,
    changed_nics,
    changed_port,
    gpu_id,
    nic_id,
    node,
    server,
    software,
    topology,
)

RAIL = nic_id(0)
PORT, NETDEV = f"port:{RAIL}/1", f"netdev:{RAIL}"


def told(state: HostState | None, now: Report) -> CountersWindow:
    result = add_history(state, now).counters_window
    assert result is not None
    return result


def test_the_first_run_says_that_it_is_the_first() -> None:
    """Window and history have the reason."""
    result = add_history(None, report())

    assert (FIRST_RUN, FIRST_RUN) == (
        result.counters_window and result.counters_window.reset_reason, result.history and result.history.reason,
    )  # fmt: skip


def test_a_later_run_is_compared() -> None:
    """With the sample, the run before and the inventory."""
    result = add_history(update_state(None, report(counting(1))), report(counting(4), DAY + 3600))

    assert result.counters_window is not None
    assert result.history is not None
    assert 3600.0 == result.counters_window.seconds
    assert {"out_of_sequence": 3} == result.counters_window.moved["port:0000:15:00.0/1"]
    assert (1, report().generated_at, None) == (result.history.runs, result.history.last_run, result.history.reason)
    assert 8 <= len(result.history.inventory)


def test_two_readings_of_this_run_are_not_replaced() -> None:
    """--interval and --state-dir together: the window that was asked for stands, earlier runs give the rest."""
    own = CountersWindow(seconds=5.0)
    now = msgspec.structs.replace(report(counting(4), DAY + 3600), counters_window=own)

    assert own is add_history(update_state(None, report()), now).counters_window
    assert own is add_history(None, now).counters_window


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        pytest.param(report(uptime=60.0, boot_id="boot-2"), "restarted", id="another boot"),
        pytest.param(report(uptime=DAY + 60, boot_id=None), "the boot that its counters are of", id="no boot id"),
        pytest.param(report(uptime=None), "uptime", id="no uptime"),
        pytest.param(report(uptime=DAY + 5), "5 s ago", id="too soon"),
        pytest.param(report(uptime=DAY - 60), "went back", id="the clock went back"),
    ],
)
def test_counters_are_not_compared_and_why(now: Report, reason: str) -> None:
    """The inventory is, all the same."""
    result = add_history(update_state(None, report()), now)

    assert result.counters_window is not None
    assert result.history is not None
    assert reason in (result.counters_window.reset_reason or "")
    assert result.counters_window.seconds is None
    assert result.history.inventory


def test_nothing_is_compared_over_a_boot_without_an_id() -> None:
    """Two unknown boots are not one."""
    assert "the boot that its counters are of" in (
        told(update_state(None, report(boot_id=None)), report(uptime=DAY + 60, boot_id=None)).reset_reason or ""
    )


def test_samples_of_another_boot_are_dropped() -> None:
    """And the new boot's own first sample is kept."""
    state = update_state(update_state(None, report()), report(uptime=100.0, boot_id="boot-2"))

    assert [100.0] == [sample.uptime_seconds for sample in state.samples]
    assert make_window(state.samples, report(uptime=200.0)).seconds == 100.0


@pytest.mark.parametrize("kind", ["capture", "tree"])
def test_older_evidence_teaches_nothing(kind: str) -> None:
    """Captures are looked at in any order; a live host is always the newest."""
    state = update_state(None, report(uptime=5 * DAY))
    same_boot = report(uptime=DAY, kind=kind)
    before = msgspec.structs.replace(report(boot_id="boot-0", kind=kind), observed_at="2025-01-01T00:00:00Z")

    for older in (same_boot, before):
        assert OLDER_EVIDENCE == told(state, older).reset_reason
        assert state is update_state(state, older)
    undated = report(boot_id="boot-0", kind=kind)
    assert OLDER_EVIDENCE != told(state, undated).reset_reason
    assert 2 == update_state(state, report(uptime=DAY)).runs
    live_before = msgspec.structs.replace(report(boot_id="boot-0"), observed_at="2025-01-01T00:00:00Z")
    assert OLDER_EVIDENCE != told(state, live_before).reset_reason


def test_a_clone_with_the_same_machine_id_is_another_host() -> None:
    """By its serial; else where name and every device are others."""
    state = update_state(None, report(serial="A"))
    others = changed_nics(changed_gpus(counting(), uuid=None), node_guid=None)
    clone = topology(
        others,
        gpus=[msgspec.structs.replace(g, uuid=f"GPU-x{n}") for n, g in enumerate(others.topology.gpus)],
        nics=[msgspec.structs.replace(nic, node_guid=f"1:{n}") for n, nic in enumerate(others.topology.nics)],
    )

    assert "another host" in (told(state, report(uptime=DAY + 60, serial="B")).reset_reason or "")
    assert "another host" in (told(state, report(clone, DAY + 60, hostname="gpu-2")).reset_reason or "")
    assert 1 == update_state(state, report(clone, DAY + 60, hostname="gpu-2")).runs
    for same in (
        report(uptime=DAY + 60, hostname="renamed"),
        report(clone, DAY + 60),
        report(uptime=DAY + 60, serial="A"),
    ):
        assert 60.0 == told(state, same).seconds


def test_an_inventory_keeps_what_is_missing_until_it_is_accepted() -> None:
    """And the time at which it was whole."""
    first, later = report(), report(topology(counting(), gpus=counting().topology.gpus[1:]), DAY + 60)
    state = update_state(update_state(None, first), later)
    agreed = accept_inventory(state, later)

    assert f"gpu:{gpu_id(0)}" in {item.subject for item in state.inventory}
    assert first.generated_at == state.last_good
    assert agreed is not None
    assert f"gpu:{gpu_id(0)}" not in {item.subject for item in agreed.inventory}
    assert f"gpu:{gpu_id(1)}" in {item.subject for item in agreed.inventory}
    assert later.generated_at == agreed.last_good
    assert accept_inventory(None, later) is None


def test_an_inventory_grows() -> None:
    """What came is part of it."""
    state = update_state(update_state(None, report(server(3))), report(server(4), DAY + 60))

    assert {f"gpu:{gpu_id(n)}" for n in range(4)} <= {item.subject for item in state.inventory}


def dark(now: Report) -> Report:
    """All ports dark, as those of NICs that nobody cabled."""
    nics = [
        msgspec.structs.replace(
            nic, role="unused",
            ports=[msgspec.structs.replace(p, state="DOWN", phys_state="Polling", rate_gbit_s=None) for p in nic.ports],
        )
        for nic in now.topology.nics
    ]  # fmt: skip
    return msgspec.structs.replace(now, topology=msgspec.structs.replace(now.topology, nics=nics))


def test_a_dark_nic_has_the_role_in_which_it_was_active() -> None:
    """For as long as the inventory stands, and with the evidence."""
    state = update_state(None, report())
    first = add_history(state, dark(report(uptime=DAY + 3600)))
    state = update_state(state, first)
    second = add_history(state, dark(report(uptime=DAY + 7200)))
    accepted = accept_inventory(state, dark(report(uptime=DAY + 7200)))
    third = add_history(accepted, dark(report(uptime=DAY + 9000)))

    assert {"rail"} == {nic.role for nic in first.topology.nics} == {nic.role for nic in second.topology.nics}
    assert "active in the inventory of" in second.topology.nics[0].role_evidence[-1]
    assert {400.0} == {known.rate_gbit_s for known in state.inventory if known.subject.startswith("port:")}
    assert {"unused"} == {nic.role for nic in third.topology.nics}


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
