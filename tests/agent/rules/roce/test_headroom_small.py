"""roce-headroom-small: what must fit after a pause; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import TransceiverModule
from agent.rules.roce.traffic_classes import needed_bytes
from agent.rules.roce.traffic_classes import roce_headroom_small as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, facts, lost, roce, silent
from tests.agent.rules.rows import only

NEED = needed_bytes(7, 400, 4200)  # of the healthy port


def sized(size: int, **more):
    buffers = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "size_bytes": [20_000, size, 0, 0, 0, 0, 0, 0]}
    return dcb(roce(), **({"buffers": buffers} | more))


@pytest.mark.parametrize(
    ("metres", "gbit_s", "kilobytes"), [(7, 400, 160), (30, 400, 180), (100, 400, 241), (7, 800, 287)]
)
def test_the_sum_is_that_of_the_driver(metres, gbit_s, kilobytes) -> None:
    """As the reference figures at MTU 9000."""
    assert abs(needed_bytes(metres, gbit_s, 9000) / 1000 - kilobytes) < 1


def test_a_small_buffer_is_a_warning() -> None:
    """With what is needed, and for what."""
    (fault,) = fails(rule, sized(100_000))

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "buffer 1 has 100 kB; 147 kB are needed at 400 Gb/s, MTU 4200 and 7 m of cable" == fault.summary
    assert "--cable_len 7:" in fault.remedy
    assert "dcb buffer show dev eth1" == fault.evidence[0].source


def test_the_limit_is_exact() -> None:
    """Not a byte less."""
    assert 1 == len(fails(rule, sized(int(NEED) - 1)))
    assert [] == fails(rule, sized(int(NEED)))


def test_seven_rows_are_not_eight() -> None:
    """A table that ends early was not read."""
    table = {"prio_buffer": [1] * 7, "size_bytes": [0, 100_000]}

    silent(rule, dcb(sized(100_000), buffers=table), Unknown)


def test_the_first_buffer_is_one() -> None:
    """All priorities in buffer 0."""
    (fault,) = fails(rule, dcb(sized(100_000), buffers={"prio_buffer": [0] * 8, "size_bytes": [100_000]}))

    assert "buffer 0 has 100 kB" in fault.summary


def test_the_interface_s_speed_comes_first() -> None:
    """A breakout cable: the interface knows."""
    slow = changed_netdev(sized(100_000), 1, speed_gbit_s=100.0)

    assert [] == fails(rule, slow)


@pytest.mark.parametrize("counter", ["rx_discards_phy", "rx_prio3_discards"])
def test_discards_make_it_an_error(counter: str) -> None:
    """Lost in spite of PFC; NAKs alone prove no overflow here."""
    case = sized(100_000)
    case = changed_netdev(case, 1, counters={counter: 0})
    case = lost(case)
    assert case.window
    case.window.moved[f"netdev:{case.topology.netdevs[1].id}"] = {counter: 4}

    assert [("error", "high")] == [(fault.severity, fault.confidence) for fault in fails(rule, case)]
    assert ["warning"] == [fault.severity for fault in fails(rule, lost(sized(100_000)))]


@pytest.mark.parametrize(
    "longer",
    [
        lambda c: facts(c, cable_metres=100.0),
        lambda c: facts(c, cable_metres=100),
        lambda c: changed_netdev(c, 1, module=TransceiverModule(length_m=100.0)),
        lambda c: dcb(c, cable_metres=100),
    ],
)
def test_the_longest_cable_counts(longer) -> None:
    """Declared, reported by the cable, or what the driver reckons with."""
    (fault,) = fails(rule, longer(sized(200_000)))

    assert fault.summary.endswith("and 100 m of cable")
    assert "--cable_len 100:" in fault.remedy


def test_a_short_cable_is_believed() -> None:
    """Where the driver says nothing, the cable does; else 7 m."""
    short = changed_netdev(sized(int(NEED) - 1, cable_metres=None), 1, module=TransceiverModule(length_m=1.0))

    assert [] == fails(rule, short)
    assert 1 == len(fails(rule, sized(int(NEED) - 1, cable_metres=None)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_nic(c, 1, driver="bnxt_en"), NotApplicable, id="another driver"),
        pytest.param(lambda c: changed_nic(c, 1, model="BlueField-3"), NotApplicable, id="BlueField"),
        pytest.param(lambda c: dcb(c, pfc=only()), NotApplicable, id="PFC off"),
        pytest.param(lambda c: dcb(c, buffers={}), Unknown, id="buffers not read"),
        pytest.param(lambda c: dcb(c, buffers={"prio_buffer": [0] * 8}), Unknown, id="sizes not read"),
        pytest.param(lambda c: dcb(c, buffers={"size_bytes": [1] * 8}), Unknown, id="map not read"),
        pytest.param(
            lambda c: dcb(c, buffers={"prio_buffer": [9] * 8, "size_bytes": [1] * 8}), Unknown, id="no such buffer"
        ),
        pytest.param(
            lambda c: changed_port(changed_netdev(c, 1, speed_gbit_s=None), 1, rate_gbit_s=None), Unknown, id="speed"
        ),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, driver="mlx5"), None, id="mlx5 by its other name"),
        pytest.param(lambda c: changed_nic(c, 1, driver=None), None, id="the interface's driver"),
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=None), None, id="the port's rate"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance; None: it fires all the same."""
    case = circumstance(sized(100_000))
    if kind is None:
        assert 1 == len(fails(rule, case))
    else:
        silent(rule, case, kind)


def test_the_healthy_buffer_is_large_enough() -> None:
    """What mlx5 computes by itself."""
    silent(rule, roce(), Pass)
