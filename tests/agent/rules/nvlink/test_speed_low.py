"""nvlink-speed-low: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.links import nvlink_speed_low as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_gpu, fails, function, gpu_id, server, topology
from tests.agent.rules.rows import nvlinks

GPU = gpu_id(0)


def slow(rate: float | None = 13.281, count: int = 2, version: str | None = "4.0", usual: float = 26.562, **more):
    """GPU 0 with its first links at another rate."""
    links = [
        msgspec.structs.replace(
            each,
            version=version,
            signal_gbyte_s=rate if each.link < count else usual,
            **(more if each.link < count else {}),
        )
        for each in nvlinks()
    ]
    return changed_gpu(server(), 0, links=links)


def test_slow_links_are_one_error_on_their_gpu() -> None:
    """The links are named, with what is due."""
    (fault,) = fails(rule, slow())

    assert (f"gpu:{GPU}", "GPU0", "error", "") == (
        fault.subject,
        fault.label,
        fault.severity or rule.severity,
        fault.cause,
    )
    assert "NVLink 0-1: 13.3 GB/s, expected 26.6" == fault.summary
    assert fault.impact.startswith("50%")
    assert ["link 0", "link 1"] == [row.what for row in fault.evidence]


@pytest.mark.parametrize(
    ("version", "capability", "rate", "healthy"),
    [
        ("2.0", "7.0", 25.781, True),
        ("2.0", "7.0", 25.0, True),
        ("2.0", "7.0", 20.0, False),
        ("3.0", "8.0", 25.0, True),
        ("3.0", "8.0", 25.781, True),
        ("3.0", "8.0", 14.062, False),
        ("3.1", "8.6", 14.062, True),
        ("3.1", "8.6", 12.0, False),
        ("3.0", None, 14.062, True),
        ("4.0", "9.0", 26.562, True),
        ("4.0", "9.0", 25.781, True),
        ("4.0", "9.0", 25.0, False),
        ("5.0", "10.0", 53.125, True),
        ("5.0", "10.0", 50.0, False),
        (None, "9.0", 13.0, False),
    ],
)
def test_every_generation_has_its_rate(version: str | None, capability: str | None, rate: float, healthy: bool) -> None:
    """Within three percent of what nvidia-smi prints for it; the architecture tells where the version does not."""
    case = changed_gpu(slow(rate, 18, version), 0, compute_capability=capability)

    assert healthy == (not fails(rule, case))


def test_an_unknown_generation_compares_the_links_of_one_gpu() -> None:
    """Nobody knows what is due; siblings do."""
    alike = changed_gpu(slow(80.0, 18, "7.0"), 0, architecture="Later")
    odd = changed_gpu(slow(80.0, 2, "7.0", usual=100.0), 0, architecture="Later")

    assert [] == fails(rule, alike)
    assert ["NVLink 0-1: 80 GB/s, expected 100"] == [fault.summary for fault in fails(rule, odd)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_gpu(c, 0, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: topology(c, bandwidth_mode="half"), NotApplicable, id="bandwidth mode"),
        pytest.param(lambda c: changed_gpu(c, 0, links_known=False), Unknown, id="links not known"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda _: slow(state="sleep"), Pass, id="sleeping link"),
        pytest.param(lambda _: slow(state="inactive"), Pass, id="inactive link"),
        pytest.param(lambda _: slow(count=18, state="sleep"), NotApplicable, id="all asleep"),
        pytest.param(lambda _: slow(None), Unknown, id="rate not told"),
        pytest.param(lambda _: slow(30.0), Pass, id="faster than its generation"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(slow()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("version", "faults"), [("99.0", 0), ("100.0", 1), ("9" * 5000, 1), ("4", 1), ("4.x", 1), ("x", 1), (None, 1)]
)
def test_a_version_is_a_number_of_two_digits_at_most(version: str | None, faults: int) -> None:
    """Else the architecture tells what is due; of a generation that nobody knows links that are alike pass."""
    assert faults == len(fails(rule, slow(count=18, version=version)))


@pytest.mark.parametrize(("rate", "faults"), [(97.0, 0), (96.9, 1)])
def test_three_percent_are_allowed(rate: float, faults: int) -> None:
    """More is a fault."""
    odd = changed_gpu(slow(rate, 2, "7.0", usual=100.0), 0, architecture="Later")

    assert faults == len(fails(rule, odd))


@pytest.mark.parametrize(("index", "command"), [(0, "nvidia-smi nvlink -s -i 0"), (None, "nvidia-smi nvlink -s")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(rule, changed_gpu(slow(), 0, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    (fault,) = fails(rule, changed_gpu(slow(), 0, pci="0000:99:00.0"))

    assert {GPU, "0000:99:00.0"} == fault.places
