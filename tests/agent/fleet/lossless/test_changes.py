"""Settings that became others between two collections of the same switches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.fleet.lossless.changes import list_changes
from agent.fleet.lossless.text import page
from bench.switches.fabric import MadeFabric
from bench.switches.render import write
from probes.switches.facts import EcnProfile, PortFacts, SwitchFacts, SwitchNeighbor
from tests.agent.fleet.lossless.made import judge_made, make

PORT = PortFacts(
    "Ethernet0", trust="dscp", dscp_prio={26: 3}, dscp_queue={26: 3}, pfc=frozenset((3,)), mtu=9100, speed_gbit_s=400,
    ecn={3: EcnProfile(True, 1000, 2000)}, watchdog_configured=True, watchdog_action="drop", fec_set="rs",
    pfc_asymmetric=False, global_pause=False, cable_metres=40, neighbors=[SwitchNeighbor("spine1", "etp1")],
)  # fmt: skip


def compare(**changed: object) -> list[tuple[str, str, str]]:
    now, then = (
        {"leaf1": SwitchFacts("leaf1", ports={port.name: port})}
        for port in (replace(PORT, **changed), PORT)  # type: ignore[arg-type]
    )
    return [(change.what, change.before, change.after) for change in list_changes(now, then, 26)]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("pfc", frozenset(), ("PFC", "priority 3", "no priority")),
        ("dscp_prio", {26: 0}, ("priority of DSCP 26", "3", "0")),
        ("trust", "none", ("trust", "dscp", "none")),
        ("watchdog_configured", False, ("PFC watchdog", "on", "off")),
        ("watchdog_action", "alert", ("action of the PFC watchdog", "drop", "alert")),
        ("ecn", {}, ("ECN of DSCP 26", "1,000 to 2,000 bytes", "none")),
        ("ecn", {3: EcnProfile(False, 5)},
         ("ECN of DSCP 26", "1,000 to 2,000 bytes", "5 to ? bytes, without marking")),
        ("pfc_asymmetric", True, ("asymmetric PFC", "off", "on")),
        ("global_pause", True, ("802.3x pause", "off", "on")),
        ("mtu", 1500, ("MTU", "9100", "1500")),
        ("speed_gbit_s", 200, ("speed in Gbit/s", "400", "200")),
        ("fec_active", "none", ("FEC", "rs", "none")),
        ("cable_metres", 5, ("cable length in metres", "40", "5")),
        ("neighbors", [SwitchNeighbor("spine2", "etp1")], ("neighbor", "spine1 etp1", "spine2 etp1")),
    ],
)  # fmt: skip
def test_each_setting(field: str, value: object, expected: tuple[str, str, str]) -> None:
    assert compare(**{field: value}) == [expected]


@pytest.mark.parametrize(
    "field", ["pfc", "dscp_prio", "trust", "watchdog_configured", "watchdog_action", "ecn", "mtu", "dscp_queue"]
)
def test_what_one_collection_does_not_state_is_no_change(field: str) -> None:
    assert compare(**{field: None}) == []
    assert compare(neighbors=[]) == []
    assert compare(neighbors=[SwitchNeighbor("spine1", "etp1"), SwitchNeighbor("x", "y")]) == []


def test_ports_and_switches_of_one_collection_are_no_change() -> None:
    there, other = ({name: SwitchFacts(name, ports={"p": PORT})} for name in ("leaf1", "leaf2"))

    assert list_changes(there, other, 26) == []
    assert list_changes(there, {"leaf1": SwitchFacts("leaf1")}, 26) == []


def test_one_change_of_many_ports(tmp_path: Path) -> None:
    """In one line of the page, with the first ports by name."""
    earlier: MadeFabric = make("sonic")
    for port in earlier.switches["leaf1"].ports:
        port.watchdog = False
    write(earlier, tmp_path / "earlier")
    fabric = make("sonic")
    (tmp_path / "all").mkdir()
    write(fabric, tmp_path / "all")
    (tmp_path / "all" / "before").rename(tmp_path / "unused")
    (tmp_path / "earlier" / "before").rename(tmp_path / "all" / "before")

    answer = judge_made(fabric, tmp_path / "all", rewrite=False)

    [change] = answer.changes
    assert (change.switch, change.what, change.before, change.after) == ("leaf1", "PFC watchdog", "off", "on")
    assert change.ports == [f"Ethernet{number * 8}" for number in range(6)]
    text = " ".join("".join(part[0] for part in line) for line in page(answer, 200))
    assert "leaf1 Ethernet0, Ethernet8," in text
    assert "PFC watchdog off -> on" in text
