"""ib-rate-degraded and ib-rate-mixed: when they fire, when they must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import FabricNeighbor
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.infiniband.links import ib_rate_degraded as degraded
from agent.rules.infiniband.links import ib_rate_mixed as mixed
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_nics,
    changed_port,
    changed_ports,
    fails,
    function,
    kinds,
    nic_id,
    probe,
    server,
    topology,
)

NIC = nic_id(1)
PORT = f"port:{NIC}/1"
HDR = {"rate_gbit_s": 200.0, "speed": "HDR"}
SDR = {"rate_gbit_s": 10.0, "speed": "SDR"}


def slow():
    return changed_port(server(), 1, **HDR)


def test_a_rail_below_most_of_its_board_is_an_error() -> None:
    """What it runs at, what the others do, and the loss."""
    (fault,) = fails(degraded, slow())

    assert (PORT, "mlx5_1/1", "error", "", "high") == (
        fault.subject, fault.label, fault.severity, fault.cause, fault.confidence,
    )  # fmt: skip
    assert "runs at 200 Gb/s (4X HDR); most ports of this board run at 400" == fault.summary
    assert fault.impact.startswith("25 instead of 50 GB/s in each direction (50% less)")
    assert "/sys/class/infiniband/mlx5_1/ports/1/rate" == fault.evidence[0].source


def test_two_ports_compare_with_the_faster() -> None:
    """No majority of two: the board shows what it can, with less certainty."""
    (fault,) = fails(degraded, changed_port(server(2), 1, **HDR))

    assert (PORT, "medium") == (fault.subject, fault.confidence)


def test_storage_is_a_warning_and_compared_with_storage() -> None:
    """Rails at another rate say nothing of it."""
    alone = changed_nic(changed_port(server(), 1, **HDR, width="2X"), 1, role="storage")
    pair = changed_nic(alone, 0, role="storage")

    assert [] == fails(degraded, alone)
    assert ["warning"] == [fault.severity for fault in fails(degraded, pair)]


def test_it_stands_for_the_mixture_that_it_causes() -> None:
    """One slow port is one finding."""
    _, findings, _ = judge(slow(), every_rule())

    assert [("ib-rate-degraded", ["ib-rate-mixed node"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(
    ("width", "speed", "rate", "severity"),
    [
        ("1X", "NDR", 100.0, "error"),
        ("4X", "HDR", 200.0, "info"),
        ("2X", "NDR", 200.0, None),
        ("4X", "NDR", 400.0, None),
    ],
)
def test_a_port_alone_is_measured_by_its_generation(width: str, speed: str, rate: float, severity: str | None) -> None:
    """One lane is a fault; a slower fabric is a hint; a splitter is a design."""
    found = fails(degraded, changed_ports(server(1), width=width, speed=speed, rate_gbit_s=rate))

    assert [severity] if severity else not found
    assert ([severity] if severity else []) == [fault.severity for fault in found]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_ports(c, **HDR), Pass, id="slower fabric for all"),
        pytest.param(lambda c: changed_ports(c, width="2X", rate_gbit_s=200.0), Pass, id="splitters for all"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: changed_port(c, 1, **SDR), Unknown, id="a name that the kernel lacks"),
        pytest.param(lambda c: changed_port(c, 1, rate_gbit_s=None), Unknown, id="rate not read"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function"),
    ],
)
def test_a_guard_keeps_the_degraded_rate_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(degraded, circumstance(slow()), PORT)

    assert isinstance(answer, kind), answer


def test_sdr_of_an_old_card_is_what_it_says() -> None:
    """ConnectX-4 has no rate that a kernel of today cannot name; the model tells where the bus does not."""
    case = changed_port(server(), 1, **SDR)
    on_bus = function(case, NIC, device="0x1013")
    by_model = changed_nic(case, 1, pci=None, model="MT4115")
    newer = changed_nic(case, 1, pci=None, model="MT4129")

    assert [PORT] == [fault.subject for fault in fails(degraded, on_bus)]
    assert [PORT] == [fault.subject for fault in fails(degraded, by_model)]
    assert [Unknown] == [type(answer) for answer in answers(degraded, newer, PORT)]


def different():
    """Two kinds of rails: nobody is slower than its own board."""
    case = server()
    for n in (0, 1):
        case = changed_nic(changed_port(case, n, **HDR), n, board_id="MT_HDR")
    return case


def test_rails_of_different_rates_are_one_warning() -> None:
    """Named with the slower ones, which are its places."""
    (fault,) = fails(mixed, different())

    assert ("node", "warning", "") == (fault.subject, fault.severity or mixed.severity, fault.cause)
    assert "InfiniBand rails run at 200 and 400 Gb/s; slower: mlx5_0/1, mlx5_1/1" == fault.summary
    assert fault.impact.endswith("50% less on the faster ones.")
    assert f"{nic_id(0)}/1" in fault.places
    assert f"{nic_id(2)}/1" not in fault.places


def test_it_remains_where_no_board_is_degraded() -> None:
    """Nothing stands for it."""
    _, findings, _ = judge(different(), every_rule())

    assert ["ib-rate-mixed"] == [finding.rule for finding in findings]


@pytest.mark.parametrize(
    ("circumstance", "kinds_left"),
    [
        pytest.param(lambda c: changed_ports(c, **HDR), {Pass}, id="alike"),
        pytest.param(
            lambda c: changed_nic(changed_nic(c, 0, role="storage"), 1, role="storage"), {Pass}, id="storage is apart"
        ),
        pytest.param(
            lambda c: changed_port(changed_port(c, 0, state="DOWN"), 1, state="DOWN"), {Pass}, id="not active"
        ),
        pytest.param(
            lambda c: changed_port(changed_port(c, 0, **SDR), 1, **SDR), {Pass, Unknown}, id="rates without a name"
        ),
        pytest.param(
            lambda c: changed_nics(c, role="storage"), {NotApplicable}, id="no rail"
        ),
    ],
)  # fmt: skip
def test_a_guard_keeps_the_mixture_silent(circumstance, kinds_left) -> None:
    """The firing case and this circumstance."""
    assert kinds_left == kinds(mixed, circumstance(different()))


def test_no_rdma_class_is_unknown_where_infiniband_is_on_the_bus() -> None:
    """And not applicable where it is not."""
    case = probe(changed_nics(server(), ports=[]), "rdma", "absent", "no /sys/class/infiniband")

    assert {Unknown} == kinds(mixed, case)
    assert {NotApplicable} == kinds(mixed, topology(case, nics=[]))


def test_ports_that_run_as_most_do_are_not_measured_by_the_fastest() -> None:
    """Three at 200 and one at 400: the one is the exception."""
    case = changed_port(changed_ports(server(), **HDR), 1, rate_gbit_s=400.0, speed="NDR")

    assert [] == fails(degraded, case)
    assert ["node"] == [fault.subject for fault in fails(mixed, case)]


def test_sdr_of_another_vendor_is_what_it_says() -> None:
    """Its device ids are others' numbers."""
    case = function(changed_port(server(), 1, **SDR), NIC, vendor="0x8086", device="0x24f0")

    assert [PORT] == [fault.subject for fault in fails(degraded, case)]


def test_nobody_looked_is_unknown() -> None:
    """Neither the bus nor the RDMA class was read."""
    case = probe(topology(server(1), nics=[]), "rdma", "failed", "broken")

    assert "not_applicable" == judge(case, [mixed])[0][0].state
    assert "unknown" == judge(probe(case, "pci", "failed", "broken"), [mixed])[0][0].state


def test_two_fabrics_may_differ_in_rate() -> None:
    """Rails that answer to another subnet manager are on another fabric; on the same one it is a mixture."""
    case = different()
    apart = changed_port(changed_port(case, 0, sm_lid=344), 1, sm_lid=344)

    assert [] == fails(mixed, apart)
    assert 1 == len(fails(mixed, changed_port(apart, 3, rate_gbit_s=100.0)))


def test_second_ports_are_not_measured_by_the_first() -> None:
    """All second ports of dual-port cards on a slower fabric: the same board, and no fault."""
    case = server()
    twins = [
        msgspec.structs.replace(
            nic,
            id=f"{nic.id[:-1]}1",
            pci=f"{nic.pci[:-1]}1",
            ports=[msgspec.structs.replace(p, **HDR) for p in nic.ports],
        )
        for nic in case.topology.nics[:3]
    ]

    assert [] == fails(degraded, topology(case, nics=[*case.topology.nics, *twins]))


def test_two_rails_are_mixed_and_one_is_not() -> None:
    """Two are enough to compare; a rail whose rate was not read is not one of them."""
    two = changed_port(server(2), 1, **HDR)

    assert ["node"] == [fault.subject for fault in fails(mixed, two)]
    assert {NotApplicable} == kinds(mixed, server(1))
    assert [] == fails(mixed, changed_port(two, 0, rate_gbit_s=None))
    assert Unknown in kinds(mixed, changed_port(two, 0, rate_gbit_s=None))


def test_a_port_that_is_not_judged_says_nothing_of_the_mixture() -> None:
    """Storage is no answer here."""
    assert {"node"} == {answer.subject for answer in mixed.check(changed_nic(server(), 1, role="unused"))}


def test_a_rate_without_width_or_speed_is_told_alone() -> None:
    """ "200 Gb/s", without what makes it up."""
    for left in ({"width": None}, {"speed": None}):
        (fault,) = fails(degraded, changed_port(slow(), 1, **left))
        assert "None" not in fault.summary
        assert fault.summary.startswith("runs at 200 Gb/s;")


def hinted(case=None, **words):
    """Every rail at 2X, as behind splitters; of rail 1 iblinkinfo says that both ends support 4X."""
    far = {
        "name": "MF0;leaf-1:MQM9700/U1", "port": 17, "width": "2X", "speed": "NDR", "rate_gbit_s": 200.0,
        "could_width": "4X", "source": "iblinkinfo",
    }  # fmt: skip
    case = changed_ports(case or server(), width="2X", rate_gbit_s=200.0)
    return changed_port(case, 1, neighbor=FabricNeighbor(**far | words))


def test_lanes_that_both_ends_support_and_do_not_run_are_a_fault() -> None:
    """Whatever the siblings do; the far end is named, with who told of it."""
    (fault,) = fails(degraded, hinted())

    assert (PORT, "error", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "runs at 200 Gb/s (2X NDR); port 17 of MF0;leaf-1:MQM9700/U1 and this port support 400" == fault.summary
    assert ("far end of mlx5_1/1", "port 17 of MF0;leaf-1:MQM9700/U1; both ends could be 4X", "iblinkinfo") == (
        fault.evidence[1].what, fault.evidence[1].value, fault.evidence[1].source,
    )  # fmt: skip


def test_a_port_whose_lanes_the_kernel_does_not_tell_is_compared_by_its_rate() -> None:
    """ibstat prints the rate only. A switch without a name is called by its GUID, or by nothing."""
    (by_guid,) = fails(degraded, changed_port(hinted(name=None, node_guid="2c5e:ab03:00b8:7b40"), 1, width=None))
    (nameless,) = fails(degraded, hinted(name=None))

    assert "runs at 200 Gb/s; port 17 of 2c5e:ab03:00b8:7b40 and this port support 400" == by_guid.summary
    assert "port 17 of the switch and" in nameless.summary


def test_the_far_end_is_evidence_of_any_slow_port() -> None:
    """Of one that its siblings give away too, with what both could do, or without."""
    said = {"rate_gbit_s": 200.0, "width": "4X", "speed": "HDR", "port": 3, "name": "leaf", "source": "iblinkinfo"}
    faster = changed_port(slow(), 1, neighbor=FabricNeighbor(**said, could_speed="NDR"))
    (fault,) = fails(degraded, faster)
    (plain,) = fails(degraded, changed_port(slow(), 1, neighbor=FabricNeighbor(**said)))

    assert "port 3 of leaf; both ends could be NDR" == fault.evidence[1].value
    assert "port 3 of leaf" == plain.evidence[1].value
    assert "high" == fault.confidence


@pytest.mark.parametrize(
    "words",
    [
        pytest.param({"could_width": None, "could_speed": "XDR"}, id="only speed"),
        pytest.param({"could_width": "2X"}, id="as many lanes"),
        pytest.param({"could_width": "1X"}, id="fewer lanes"),
        pytest.param({"could_width": "?"}, id="no lanes"),
        pytest.param({"width": None}, id="what ran is not told"),
        pytest.param({"width": "?"}, id="what ran is not understood"),
        pytest.param({"width": "1X", "rate_gbit_s": 200.0}, id="other lanes ran"),
        pytest.param({"rate_gbit_s": 400.0}, id="another rate ran"),
        pytest.param({"rate_gbit_s": None}, id="the rate that ran is not told"),
    ],
)
def test_a_guard_keeps_the_hint_silent(words) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(degraded, hinted(**words), PORT)

    assert isinstance(answer, Pass), answer


def test_more_lanes_than_a_cable_has_are_no_hint() -> None:
    """A simulator, and ports inside of chassis, support 12X."""
    whole = {"width": "4X", "rate_gbit_s": 400.0, "could_width": "12X"}
    case = changed_ports(hinted(**whole), width="4X", rate_gbit_s=400.0)
    (fault,) = fails(degraded, hinted(could_width="12X"))

    assert [Pass] == [type(answer) for answer in answers(degraded, case, PORT)]
    assert fault.impact.startswith("25 instead of 50 GB/s")


def test_words_that_are_no_lanes_are_no_hint() -> None:
    """A report may come from anybody."""
    (answer,) = answers(degraded, changed_port(hinted(width="?"), 1, width=None), PORT)

    assert isinstance(answer, Pass), answer


def test_one_lane_of_four() -> None:
    """A quarter of it is left."""
    one = {"width": "1X", "rate_gbit_s": 100.0}
    case = changed_port(changed_ports(hinted(**one), **one), 1, width="1X")
    faults = fails(degraded, case)

    assert ["error"] * 4 == [fault.severity for fault in faults]
    assert any(fault.summary.endswith("and this port support 400") for fault in faults)
