"""ib-rate-degraded and ib-rate-mixed: when they fire, when they must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.infiniband.rate_degraded import ib_rate_degraded as degraded
from agent.rules.infiniband.rate_mixed import ib_rate_mixed as mixed
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
    assert fault.impact.startswith("25 instead of 50 GB/s in each direction (50 % less)")
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
    assert fault.impact.endswith("50 % less on the faster ones.")
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
