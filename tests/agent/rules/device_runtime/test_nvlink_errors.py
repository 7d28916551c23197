"""nvlink-errors: both generations of counters, one finding a GPU, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.engine import judge
from agent.rules.nvlink.counters import nvlink_errors as rule
from agent.rules.nvlink.links import nvlink_inactive
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, fails, function, node, topology
from tests.agent.rules.moves import GPU, HOUR, gpus, moved, one, reset, severities, without_window
from tests.agent.rules.rows import nvlinks

LINK, SUBJECT = f"link:{GPU}/3", f"gpu:{GPU}"
FIRING = moved(gpus(), LINK, {"replay": 60})


def test_replays_are_an_error_of_the_link() -> None:
    """Count, window, limit and the command."""
    (fault,) = fails(rule, FIRING)

    assert (LINK, "GPU1 NVLink 3", "error") == (fault.subject, fault.label, fault.severity)
    assert fault.summary == "60 replays and recoveries in 60 min, limit 10 in 10 min"
    assert fault.evidence[0].source == "nvidia-smi nvlink -e -i 1 -l 3"


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"replay": 59}, []),
        ({"replay": 30, "recovery": 30}, ["error"]),
        ({"crc": 59}, []),
        ({"crc": 60}, ["warning"]),
        ({"crc": 359_999}, ["warning"]),
        ({"crc": 360_000}, ["error"]),
        ({"malformed_packets": 1}, ["error"]),
        ({"transmit_discards": 1}, ["error"]),
        ({"local_link_integrity": 1}, ["error"]),
        ({"recoveries_failed": 1}, ["error"]),
        ({"recoveries_successful": 1}, ["warning"]),
        ({"recoveries": 1}, []),
        ({"symbol": 9}, []),
        ({"symbol": 5, "effective": 5}, ["warning"]),
    ],
)
def test_the_limits(counters: dict[str, int], expected: list[str]) -> None:
    """By counter."""
    assert expected == [severity for _, severity in severities(rule, moved(gpus(), LINK, counters))]


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        *((0x0FFF, "warning"), (0x00FF, "warning"), (0x010C, "warning"), (0x020C, "error"), (0xF000, "warning")),
        (0x0B0D, "error"),  # 1.1e-12
    ],
)
def test_a_bad_symbol_rate_makes_symbol_errors_an_error(packed: int, expected: str) -> None:
    """Mantissa in bits 8 to 11, exponent in 0 to 7: 15e-255 is the floor, 2e-12 is bad; nonsense is not read."""
    links = [msgspec.structs.replace(link, errors={"symbol": 50, "symbol_ber_packed": packed}) for link in nvlinks()]
    case = changed_gpu(gpus(), 1, links=links)

    assert [(LINK, expected)] == severities(rule, moved(case, LINK, {"symbol": 10}))
    assert [] == fails(rule, case)


def test_several_links_of_one_gpu_are_one_finding() -> None:
    """The worst decides; another GPU is another finding."""
    case = moved(FIRING, f"link:{GPU}/7", {"crc": 60})
    (fault,) = fails(rule, case)

    assert (SUBJECT, "error", "several") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("errors on NVLinks 3, 7; the worst: 60 replays")
    assert 2 == len(fails(rule, moved(case, "link:0000:14:00.0/0", {"replay": 60})))


def test_an_inactive_link_is_the_cause() -> None:
    """One finding, not two."""
    links = [
        msgspec.structs.replace(link, state="inactive") if link.link == 3 else link
        for link in FIRING.topology.gpus[1].links
    ]
    _, findings, _ = judge(changed_gpu(FIRING, 1, links=links), [nvlink_inactive, rule])

    assert ["nvlink-inactive"] == [finding.rule for finding in findings]
    assert [f"nvlink-errors {LINK}"] == findings[0].absorbs


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: changed_gpu(c, 1, links=[]), NotApplicable, id="no NVLink"),
        pytest.param(
            lambda c: changed_gpu(c, 1, links=[], links_known=False, driver_state="no_driver"),
            NotApplicable,
            id="no driver",
        ),
        pytest.param(lambda c: changed_gpu(c, 1, links=[], links_known=False), Unknown, id="links not read"),
        pytest.param(lambda c: changed_gpu(c, 1, links=nvlinks()), Unknown, id="counters not read"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(FIRING)

    assert [] == fails(rule, case)
    assert isinstance(one(rule, case, SUBJECT), kind)


def test_a_link_that_cannot_be_compared_is_unknown() -> None:
    """Reset, settled late, or not seen before; the others pass."""
    assert isinstance(one(rule, reset(FIRING, LINK), LINK), Unknown)
    assert isinstance(one(rule, node(FIRING, uptime_seconds=HOUR + 899), LINK), Unknown)
    assert [Pass(f"link:{GPU}/4")] == answers(rule, FIRING, f"link:{GPU}/4")
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)
    assert isinstance(one(rule, topology(FIRING, gpus=[]), "node"), NotApplicable)


@pytest.mark.parametrize(
    ("counters", "count"),
    [
        ({"replay": 10}, 0),
        ({"recoveries_successful": 1}, 1),
        ({"malformed_packets": 0}, 0),
    ],
)
def test_none_is_no_fault(counters: dict[str, int], count: int) -> None:
    """A counter that did not move."""
    assert count == len(fails(rule, moved(gpus(), LINK, counters)))


def test_a_rate_is_evidence_of_symbol_errors_alone() -> None:
    """Other counters do not tell of it; 0 and 4095 are rates, 4096 is none."""

    def told(packed: int, **more: int) -> bool:
        errors = {"symbol": 50, "replay": 50, "symbol_ber_packed": packed}
        links = [msgspec.structs.replace(link, errors=errors) for link in nvlinks()]
        (fault,) = fails(rule, moved(changed_gpu(gpus(), 1, links=links), LINK, more))
        return any("bit error rate" in row.what for row in fault.evidence)

    assert told(0, symbol=60)
    assert told(4095, symbol=60)
    assert not told(4096, symbol=60)
    assert not told(0x010C, replay=60)


def test_of_several_links_the_gravest_leads() -> None:
    """A warning first, an error second."""
    case = moved(moved(gpus(), f"link:{GPU}/2", {"crc": 60}), LINK, {"replay": 60})
    (fault,) = fails(rule, case)

    assert (SUBJECT, "error", "several") == (fault.subject, fault.severity, fault.cause)
    assert "the worst: 60 replays" in fault.summary


def test_one_counter_that_cannot_be_compared_is_unknown() -> None:
    """Not passed because the others are quiet."""
    assert isinstance(one(rule, reset(gpus(), LINK, "crc"), LINK), Unknown)


def test_links_without_counters_get_one_answer() -> None:
    """Of the GPU."""
    links = [msgspec.structs.replace(link, errors={}) for link in nvlinks()]
    told = [a for a in rule.check(changed_gpu(gpus(), 1, links=links)) if GPU in a.subject]

    assert [Unknown] == [type(answer) for answer in told]


def test_one_lost_packet_is_at_the_limit() -> None:
    """Which is told: one in the window."""
    (fault,) = fails(rule, moved(gpus(), LINK, {"malformed_packets": 1}))

    assert "1 packets lost or damaged in 60 min, limit 1" == fault.summary


@pytest.mark.parametrize(("hours", "expected"), [(1, ["warning"]), (2, [])])
def test_a_recovery_an_hour_is_too_often(hours: int, expected: list[str]) -> None:
    """One in two hours is not."""
    case = moved(gpus(), LINK, {"recoveries_successful": 1}, hours * HOUR)

    assert expected == [severity for _, severity in severities(rule, case)]


def test_a_gpu_without_a_number_is_asked_for_with_all_others() -> None:
    """No -i in the command."""
    (fault,) = fails(rule, changed_gpu(FIRING, 1, index=None))

    assert "nvidia-smi nvlink -e -l 3" == fault.evidence[0].source
