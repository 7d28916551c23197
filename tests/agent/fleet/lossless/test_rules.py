"""Rules that one fabric with few changes shows: what fires each, and what is like it and must not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.fleet.lossless.answer import Inputs, LosslessAnswer, judge
from agent.fleet.lossless.fault import SwitchRule, choose_remedy, switch_rules
from agent.fleet.lossless.headroom import spectrum_headroom
from agent.fleet.lossless.hop import HostPort
from agent.model.finding import SEVERITIES
from bench.switches.fabric import MadeFabric, MadePort
from probes.switches.facts import EcnProfile, Headroom, PortFacts, SwitchFacts, SwitchNeighbor
from tests.agent.fleet.lossless.made import judge_made, make, named
from tests.conftest import ROOT

Change = Callable[[MadeFabric, MadePort], None]


def far(fabric: MadeFabric, port: MadePort) -> MadePort:
    return fabric.port(port.far, port.far_port)


def grow(port: MadePort, name: str, by: int) -> None:
    port.now[name] = port.before[name] + by


def both_ends(name: str, value: object) -> Change:
    def change(fabric: MadeFabric, port: MadePort) -> None:
        for end in (port, far(fabric, port)):
            setattr(end, name, value)

    return change


def two_classes(fabric: MadeFabric, port: MadePort) -> None:
    port.pfc = far(fabric, port).pfc = [3, 4]


def busy_strict_queue(fabric: MadeFabric, port: MadePort) -> None:
    """As busy as that of a starved one; the weight of the data is large."""
    port.weight = 50
    for other in fabric.switches[port.switch].ports:
        other.weight = 50
    grow(port, "first", 5 * 10**11)


def small_weight_alone(fabric: MadeFabric, port: MadePort) -> None:
    port.weight = 10


def idle_window(fabric: MadeFabric, port: MadePort) -> None:
    port.weight = 10
    grow(port, "bytes", 10**6)
    grow(port, "first", 10**8)


def short_profiles(fabric: MadeFabric, port: MadePort) -> None:
    """Of link retry, for the cable that is there or a longer one."""
    port.retry = far(fabric, port).retry = 40


@pytest.mark.parametrize(
    ("system", "change"),
    [
        ("sonic", two_classes),
        ("sonic", both_ends("asymmetric", True)),
        ("other", both_ends("asymmetric", True)),
        ("other", both_ends("pfc_mode", "on")),
        ("other", both_ends("pfc_mode", "auto")),
        ("other", both_ends("in_use", [3])),
        ("other", both_ends("chip_ecn", (1_000_200, 3_000_000))),
        ("cumulus", busy_strict_queue),
        ("sonic", small_weight_alone),
        ("cumulus", idle_window),
        ("sonic", short_profiles),
    ],
)
def test_what_is_like_a_fault_and_none(tmp_path: Path, system: str, change: Change) -> None:
    fabric = make(system)
    change(fabric, next(fabric.ports(False)))

    answer = judge_made(fabric, tmp_path)

    assert named(answer) == set()
    assert {row.rule for row in answer.findings} <= {"sw-pfc-extra"}
    assert answer.counts["lossy"] == 0


def test_thresholds_of_the_chip_are_a_note(tmp_path: Path) -> None:
    fabric = make("other")
    next(fabric.ports(True)).chip_ecn = (1_000_257, 3_000_000)

    [finding] = judge_made(fabric, tmp_path).findings

    assert (finding.rule, finding.severity) == ("sw-rounding", "info")
    assert "mark from 1,000,000 bytes; the chip has 1,000,257" in finding.summary


def test_a_link_retry_profile_for_a_shorter_cable(tmp_path: Path) -> None:
    fabric = make("sonic")
    port = next(fabric.ports(False))
    port.retry, far(fabric, port).retry = 20, 40

    assert named(judge_made(fabric, tmp_path)) == {("sw-llr-one-end", port.subject)}


@pytest.mark.parametrize(("dropped", "rules"), [(0, set()), (31, {"sw-trim-drops"})])
def test_trimmed_packets(tmp_path: Path, dropped: int, rules: set[str]) -> None:
    """A fabric that trims has no PFC by design: no rule of PFC holds there."""
    fabric = make("sonic")
    for switch in fabric.switches.values():
        switch.trimming = True
    for port in fabric.ports():
        port.pfc = []
    grow(next(fabric.ports(True)), "trim_drops", dropped)

    answer = judge_made(fabric, tmp_path)

    assert {finding.rule for finding in answer.findings} == rules
    assert answer.counts["trimmed"] == len(answer.hops)


@pytest.mark.parametrize(("peak", "rules"), [(899_999, set()), (900_000, {"sw-headroom-pool-oversubscribed"})])
def test_a_headroom_pool(tmp_path: Path, peak: int, rules: set[str]) -> None:
    """One finding for the switch, whatever the number of its ports."""
    fabric = make("sonic")
    fabric.switches["leaf1"].pool = (1_000_000, peak)

    answer = judge_made(fabric, tmp_path)

    assert [finding.rule for finding in answer.findings] == list(rules)
    assert {finding.subject for finding in answer.findings} <= {"switch:leaf1"}


def test_drops_of_a_queue_without_traffic_are_no_evidence(tmp_path: Path) -> None:
    fabric = make("sonic")
    port = next(fabric.ports(True))
    port.priorities = {**port.priorities, 26: 0}
    grow(port, "drops", 917)
    port.pfc = [3]

    [finding] = [row for row in judge_made(fabric, tmp_path).findings if row.severity != "info"]

    assert finding.rule == "sw-dscp-lossy"
    assert finding.absorbs == []


def pair(**changes: object) -> dict[str, SwitchFacts]:
    """Two switches and the trunk between them, each end lossless; `a` is changed."""
    switches = {}
    for name, other in (("a", "b"), ("b", "a")):
        facts = PortFacts(
            "Ethernet0", oper="up", speed_gbit_s=400, mtu=9194, neighbors=[SwitchNeighbor(other, "Ethernet0")],
            trust="dscp", dscp_prio={26: 3}, dscp_queue={26: 3}, pfc=frozenset((3,)), cable_metres=300,
        )  # fmt: skip
        if name == "a":
            for key, value in changes.items():
                setattr(facts, key, value)
        switches[name] = SwitchFacts(name, "sonic", "sonic", model="ACS-SN5600", ports={"Ethernet0": facts})
        switches[name].sources = [f"{name}/config_db.json"]
    return switches


def judge_pair(
    switches: dict[str, SwitchFacts], before: dict[str, SwitchFacts] | None = None, marked: bool = True
) -> LosslessAnswer:
    hosts = [HostPort("gpu1", "eth0", 0, dscp=26)] if marked else []
    return judge(Inputs(switches, before or {}, hosts, [], [], None))


def test_drops_beside_a_wrong_map() -> None:
    """RDMA leaves by queue 0 of a port, which has no PFC and drops: the map is the finding, the drops its evidence."""
    counters = {"drop_queue_0": 917, "queue_bytes_0": 10**9}

    [finding] = judge_pair(pair(dscp_prio={26: 0}, dscp_queue={26: 0}, counters=counters)).findings

    assert finding.rule == "sw-dscp-lossy"
    assert finding.absorbs == ["sw-lossy-drops swport:a/Ethernet0"]
    assert ("packets dropped in queue 0 of a Ethernet0", "917") in {(row.what, row.value) for row in finding.evidence}
    assert "dropped there: 917 since the counters were reset" in finding.summary


@pytest.mark.parametrize(
    ("then", "marked", "expected"),
    [
        (900, True, [("sw-lossy-drops", "error")]),
        (None, True, [("sw-lossy-drops", "warning")]),
        (917, True, []),
        (900, False, []),
    ],
)
def test_drops_where_pfc_is_not_known(then: int | None, marked: bool, expected: list[tuple[str, str]]) -> None:
    """An error by two collections, a warning by one; nothing where no host is known to use the class."""
    counters = {"drop_queue_3": 917, "queue_bytes_3": 10**9}
    before = None if then is None else pair(counters={**counters, "drop_queue_3": then})

    answer = judge_pair(pair(pfc=None, counters=counters), before, marked)

    assert [(row.rule, row.severity) for row in answer.findings] == expected
    assert answer.counts["lossy"] == (("sw-lossy-drops", "error") in expected)


@pytest.mark.parametrize(
    ("changes", "fires"),
    [
        ({"pfc_active": frozenset()}, True),
        ({"pfc_active": frozenset((4,))}, True),
        ({"pfc_active": frozenset((3, 4))}, False),
        ({"pfc_active": None}, False),
    ],
)
def test_pfc_in_use(changes: dict[str, object], fires: bool) -> None:
    assert [row.rule for row in judge_pair(pair(**changes)).findings] == ["sw-pfc-not-operational"] * fires


def test_pfc_not_in_use_because_the_far_end_has_none_is_one_finding() -> None:
    """The end without PFC is the cause."""
    switches = pair(pfc_active=frozenset())
    switches["b"].ports["Ethernet0"].pfc = frozenset()

    assert [row.rule for row in judge_pair(switches).findings] == ["sw-pfc-one-end"]


@pytest.mark.parametrize(
    ("xoff", "shared", "model", "fires"),
    [
        (677_887, False, "ACS-SN5600", True),
        (677_888, False, "ACS-SN5600", False),
        (677_887, True, "ACS-SN5600", False),
        (677_887, None, "ACS-SN5600", False),
        (677_887, False, "Other-64x400G", False),
        (100_000, False, "Other-64x400G", True),
        (100_000, False, None, True),
    ],
)
def test_headroom_by_the_chip_and_by_the_cable(xoff: int, shared: bool | None, model: str | None, fires: bool) -> None:
    """At 300 m and 400 Gbit/s: SONiC's own table has 677,888 bytes for Spectrum-4."""
    switches = pair(headroom={3: Headroom(xoff, xoff, shared)})
    for switch in switches.values():
        switch.model = model
    ports = [PortFacts("Ethernet8", mtu=9194)]
    hosts = [
        HostPort(
            "gpu1", "eth0", 0, up=True, speed_gbit_s=400, trust="dscp", tagged=False, dscp_prio={26: 3},
            pfc=frozenset((3,)), dscp=26, module_metres=300, neighbor_name="a", neighbor_port="Ethernet0",
        )
    ]  # fmt: skip
    switches["a"].ports["Ethernet0"].neighbors = []
    switches["b"].ports = {port.name: port for port in ports}

    answer = judge(Inputs(switches, {}, hosts, [], [], None, only_known_hosts=True))

    assert [row.rule for row in answer.findings] == ["sw-headroom-short"] * fires


def test_the_formula_has_the_values_of_the_vendors_table() -> None:
    """Spectrum-4, 5, 40 and 300 m."""
    rows = {
        100: [113_664, 126_976, 225_280],
        400: [231_424, 283_648, 677_888],
        800: [257_024, 362_496, 1_150_976],
    }
    for speed, values in rows.items():
        assert [spectrum_headroom(metres, speed, 9216, 1024) for metres in (5, 40, 300)] == values


@pytest.mark.parametrize(
    ("ratio", "pool", "admin", "fires"),
    [(2, 190, "up", True), (2, 191, "up", False), (None, 190, "up", False), (2, 190, "down", False)],
)
def test_a_pool_that_is_oversubscribed_by_more_than_it_is_set_up_for(
    ratio: int | None, pool: int, admin: str, fires: bool
) -> None:
    """Of ports that are off nothing counts."""
    switches = pair(headroom={3: Headroom(10, 200, True)})
    spare = PortFacts("Ethernet8", admin=admin, oper="down", headroom={3: Headroom(10, 200, True)})
    switches["a"].ports["Ethernet8"] = spare
    switches["a"].headroom_pool_bytes, switches["a"].headroom_ratio = pool, ratio

    answer = judge_pair(switches)

    assert [row.rule for row in answer.findings] == ["sw-headroom-pool-oversubscribed"] * fires


def test_a_starved_queue_needs_traffic_of_both(tmp_path: Path) -> None:
    """Bytes of the strict queue count against those of all queues, of which only the sum is kept."""
    scheduler = {0: ("dwrr", 80), 3: ("dwrr", 20), 6: ("strict", None)}
    before = pair(counters={"queue_bytes_3": 0, "queue_bytes_6": 0, "queue_bytes": 0})
    results = []
    for data, first, total in ((10**9, 10**9, 4 * 10**9), (10**9, 10**9, 6 * 10**9), (0, 10**9, 10**9)):
        counters = {"queue_bytes_3": data, "queue_bytes_6": first, "queue_bytes": total}
        answer = judge_pair(pair(scheduler=scheduler, counters=counters), before)
        results.append([row.rule for row in answer.findings])

    assert results == [["sw-data-starved"], [], []]


def test_no_thresholds_of_the_chip_no_note() -> None:
    profile = EcnProfile(True, 150_000, 1_500_000, 100)

    assert judge_pair(pair(ecn={3: profile})).findings == []
    assert [
        row.rule for row in judge_pair(pair(ecn={3: profile}, ecn_active={3: EcnProfile(True, 159_744)})).findings
    ] == ["sw-rounding"]


@pytest.mark.parametrize(("small", "fires"), [(9000, False), (9100, False), (8999, True), (1500, True)])
def test_mtus_of_two_systems_defaults(small: int, fires: bool) -> None:
    """Without a host's MTU the ends are compared; each default of a system is enough for any host."""
    answer = judge_pair(pair(mtu=small), marked=False)

    assert [row.rule for row in answer.findings] == ["sw-mtu-small"] * fires


@pytest.mark.parametrize(
    ("pauses", "marks", "marks_of_the_other", "ecn", "fires"),
    [
        (10_000, 0, 7, True, True),
        (9_999, 0, 7, True, False),
        (10_000, 1, 7, True, False),
        (10_000, None, 7, True, False),  # not counted
        (10_000, 0, 0, True, False),  # no switch of the model counts marks: its counter may stand still
        (10_000, 0, 7, False, False),  # it does not mark
    ],
)
def test_pauses_before_marks(pauses: int, marks: int | None, marks_of_the_other: int, ecn: bool, fires: bool) -> None:
    """A switch that pauses and marks nothing; other marks of its model show that they are counted."""

    def counted(of_a: dict[str, int], of_b: dict[str, int]) -> dict[str, SwitchFacts]:
        switches = pair()
        for switch, counters in zip(switches.values(), (of_a, of_b), strict=True):
            facts = switch.ports["Ethernet0"]
            facts.ecn = {3: EcnProfile(ecn or switch.name == "b", 8_000_000, 9_000_000, 5)}
            facts.counters = counters
        return switches

    mine = {"pfc_tx_3": 5 + pauses} | ({"ecn_marked_3": marks} if marks is not None else {})
    now = counted(mine, {"ecn_marked_3": marks_of_the_other, "pfc_rx_3": 5 + pauses})
    before = counted({"pfc_tx_3": 5, "ecn_marked_3": 0}, {"ecn_marked_3": 0, "pfc_rx_3": 5})

    found = [row for row in judge_pair(now, before).findings if row.rule == "sw-ecn-order"]

    assert [(row.subject, row.severity) for row in found] == ([("swport:a/Ethernet0", "warning")] if fires else [])
    if fires:
        assert found[0].summary.startswith("a sent 10,000 pauses between the two collections and marked no packet")
        assert ("ECN of queue 3, from", "8,000,000 bytes") in [(row.what, row.value) for row in found[0].evidence]


RULES = list(switch_rules().values())


def test_rules_of_the_code_and_of_the_table_are_the_same() -> None:
    folder = ROOT / "agent" / "fleet" / "lossless"
    used = {name for path in folder.glob("*.py") for name in re.findall(r'"(sw-[a-z-]+)"', path.read_text())}

    assert used == set(switch_rules())


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_every_rule_is_documented_and_has_a_fix_for_any_switch(rule: SwitchRule) -> None:
    """The page has it with its severity and title; a family that is not known gets no command of another."""
    page = (ROOT / "docs" / "fleet-lossless.md").read_text()

    assert f"| `{rule.id}` | {rule.severity} | {rule.title} |" in page
    assert rule.severity in SEVERITIES
    for family in ("sonic-enterprise", "eos", None):
        steps = choose_remedy(rule, family)
        assert steps
        assert not any("sudo " in step or "nv set" in step for step in steps)
    assert not any("nv set" in step for step in choose_remedy(rule, "sonic"))
    assert not any("sudo " in step for step in choose_remedy(rule, "nvue"))


def test_explain(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sw-pfcwd-off"]) == 0
    page = capfd.readouterr().out
    assert run(["explain", "sw-ecn"]) == 0
    rows = capfd.readouterr().out

    assert page.startswith("sw-pfcwd-off (warning, of fabricscope fleet lossless)")
    assert [row.split()[0] for row in rows.splitlines()] == [
        "sw-ecn-missing", "sw-ecn-drops", "sw-ecn-order", "sw-ecn-uneven"
    ]  # fmt: skip
