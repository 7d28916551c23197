"""What is remembered, and when an earlier run says nothing of this one."""

from __future__ import annotations

import msgspec
import pytest

from agent.history.state import FIRST_RUN, OLDER_EVIDENCE, HostState, accept_inventory, add_history, update_state
from agent.history.window import make_window
from agent.model.report import CountersWindow, Report
from tests.agent.history.build import DAY, counting, report
from tests.agent.rules.build import changed_gpus, changed_nics, gpu_id, server, topology


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
