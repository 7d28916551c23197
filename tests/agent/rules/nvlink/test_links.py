"""Links of one GPU and of its equals: fewer, slower, in doubt; and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import GpuLink, Mig, NvSwitch
from agent.rules.nvlink.links import nvlink_asymmetric, nvlink_inactive, nvlink_speed_low
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    models,
    server,
    topology,
)
from tests.agent.rules.nvlink.test_inactive import dead, one_lost, unplaced
from tests.agent.rules.rows import B200, H100_PCIE, bridge, nvlinks

# nvlink-asymmetric: when it fires, when it must not, and every guard alone.


GPU = gpu_id(2)


def fewer():
    """GPU 2 has 16 links where the others have 18; the driver calls none inactive."""
    return changed_gpu(server(), 2, links=nvlinks(16))


def test_a_gpu_with_fewer_links_than_most_is_an_error() -> None:
    """However the driver names the missing ones."""
    (fault,) = fails(nvlink_asymmetric, fewer())

    assert (f"gpu:{GPU}", "GPU2", "error", "") == (
        fault.subject,
        fault.label,
        fault.severity or nvlink_asymmetric.severity,
        fault.cause,
    )
    assert "16 active NVLinks; the other GPUs of its model have 18" == fault.summary
    assert fault.impact.startswith("11%")


def test_without_a_majority_the_highest_number_is_due() -> None:
    """Two GPUs, 18 and 16."""
    (fault,) = fails(nvlink_asymmetric, changed_gpu(server(2), 1, links=nvlinks(16)))

    assert f"gpu:{gpu_id(1)}" == fault.subject


def test_one_gpu_with_more_than_most_shows_what_the_others_lost() -> None:
    """A majority excuses nothing."""
    context = changed_gpu(changed_gpus(server(), links=nvlinks(16)), 2, links=nvlinks(18))

    assert 3 == len(fails(nvlink_asymmetric, context))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: models(c, H100_PCIE), NotApplicable, id="cards with bridges"),
        pytest.param(lambda c: function(c, GPU, device=B200), NotApplicable, id="the only one of its model"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: topology(c, bandwidth_mode="half"), NotApplicable, id="bandwidth mode"),
        pytest.param(lambda c: changed_gpu(c, 2, links=dead(2, "unknown")), Unknown, id="state not known"),
        pytest.param(lambda c: changed_gpu(c, 2, links=dead(2, "sleep")), Pass, id="asleep is active"),
        pytest.param(lambda c: changed_gpu(c, 2, links_known=False), Unknown, id="links not known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(nvlink_asymmetric, circumstance(fewer()), f"gpu:{GPU}")

    assert isinstance(answer, kind), answer


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    context = fewer()
    renamed = msgspec.structs.replace(context.topology.gpus[2], id="GPU-2")
    (fault,) = fails(
        nvlink_asymmetric, topology(context, gpus=[*context.topology.gpus[:2], renamed, context.topology.gpus[3]])
    )

    assert {"GPU-2", GPU} == fault.ids


# nvlink-speed-low: when it fires, when it must not, and every guard alone.


GPU_SPEED_LOW = gpu_id(0)


def slow(rate: float | None = 13.281, count: int = 2, version: str | None = "4.0", usual: float = 26.562, **more):
    """GPU 0 with its first links at another rate."""
    links = [
        msgspec.structs.replace(
            nvlink,
            version=version,
            signal_gbyte_s=rate if nvlink.link < count else usual,
            **(more if nvlink.link < count else {}),
        )
        for nvlink in nvlinks()
    ]
    return changed_gpu(server(), 0, links=links)


def test_slow_links_are_one_error_on_their_gpu() -> None:
    """The links are named, with what is due."""
    (fault,) = fails(nvlink_speed_low, slow())

    assert (f"gpu:{GPU_SPEED_LOW}", "GPU0", "error", "") == (
        fault.subject,
        fault.label,
        fault.severity or nvlink_speed_low.severity,
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
    context = changed_gpu(slow(rate, 18, version), 0, compute_capability=capability)

    assert healthy == (not fails(nvlink_speed_low, context))


def test_an_unknown_generation_compares_the_links_of_one_gpu() -> None:
    """Nobody knows what is due; siblings do."""
    alike = changed_gpu(slow(80.0, 18, "7.0"), 0, architecture="Later")
    outlier = changed_gpu(slow(80.0, 2, "7.0", usual=100.0), 0, architecture="Later")

    assert [] == fails(nvlink_speed_low, alike)
    assert ["NVLink 0-1: 80 GB/s, expected 100"] == [fault.summary for fault in fails(nvlink_speed_low, outlier)]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_gpu(c, 0, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: topology(c, bandwidth_mode="half"), NotApplicable, id="bandwidth mode"),
        pytest.param(lambda c: changed_gpu(c, 0, links_known=False), Unknown, id="links not known"),
        pytest.param(lambda c: function(c, GPU_SPEED_LOW, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda _: slow(state="sleep"), Pass, id="sleeping link"),
        pytest.param(lambda _: slow(state="inactive"), Pass, id="inactive link"),
        pytest.param(lambda _: slow(count=18, state="sleep"), NotApplicable, id="all asleep"),
        pytest.param(lambda _: slow(None), Unknown, id="rate not told"),
        pytest.param(lambda _: slow(30.0), Pass, id="faster than its generation"),
    ],
)
def test_a_guard_keeps_it_silent_speed_low(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(nvlink_speed_low, circumstance(slow()), f"gpu:{GPU_SPEED_LOW}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("version", "faults"), [("99.0", 0), ("100.0", 1), ("9" * 5000, 1), ("4", 1), ("4.x", 1), ("x", 1), (None, 1)]
)
def test_a_version_is_a_number_of_two_digits_at_most(version: str | None, faults: int) -> None:
    """Else the architecture tells what is due; of a generation that nobody knows links that are alike pass."""
    assert faults == len(fails(nvlink_speed_low, slow(count=18, version=version)))


@pytest.mark.parametrize(("rate", "faults"), [(97.0, 0), (96.9, 1)])
def test_three_percent_are_allowed(rate: float, faults: int) -> None:
    """More is a fault."""
    outlier = changed_gpu(slow(rate, 2, "7.0", usual=100.0), 0, architecture="Later")

    assert faults == len(fails(nvlink_speed_low, outlier))


@pytest.mark.parametrize(("index", "command"), [(0, "nvidia-smi nvlink -s -i 0"), (None, "nvidia-smi nvlink -s")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(nvlink_speed_low, changed_gpu(slow(), 0, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function_speed_low() -> None:
    """Both are places, where they have different ids."""
    (fault,) = fails(nvlink_speed_low, changed_gpu(slow(), 0, pci="0000:99:00.0"))

    assert {GPU_SPEED_LOW, "0000:99:00.0"} == fault.ids


# How NVLinks are counted, and what GPU they are of: seen through nvlink-inactive.


XGMI = [GpuLink(protocol="xgmi", link=n, state="inactive") for n in (30, 31)]


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi nvlink -s -i 2"), (None, "nvidia-smi nvlink -s")])
def test_the_command_names_the_gpu_tally(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(nvlink_inactive, changed_gpu(one_lost(), 2, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function_tally() -> None:
    """Both are places, where they have different ids."""
    context = one_lost()
    renamed = msgspec.structs.replace(context.topology.gpus[2], id="GPU-2")
    (fault,) = fails(
        nvlink_inactive, topology(context, gpus=[*context.topology.gpus[:2], renamed, context.topology.gpus[3]])
    )

    assert {"GPU-2", GPU} == {place for place in fault.ids if "/" not in place}
    assert "GPU-2/nvlink" in fault.ids


@pytest.mark.parametrize(("links", "kind"), [(XGMI, NotApplicable), ([*nvlinks(), *XGMI], Pass)])
def test_links_of_other_protocols_are_none(links: list[GpuLink], kind: type) -> None:
    """They are not counted; a GPU with such links alone has no NVLink."""
    (answer,) = answers(nvlink_inactive, changed_gpu(server(), 2, links=links), f"gpu:{GPU}")

    assert isinstance(answer, kind)


@pytest.mark.parametrize(
    ("name", "lost", "kind"),
    [
        ("NVIDIA A800-SXM4-80GB", 10, Pass),
        ("NVIDIA H800", 10, Pass),
        ("NVIDIA H100 NVL", 6, Pass),
        ("NVIDIA RTX A6000", 18, NotApplicable),
        (None, 18, Unknown),
    ],
)
def test_without_a_pci_id_the_name_says_how_many_are_enough(name: str | None, lost: int, kind: type) -> None:
    """A800 and H800 have 8, bridges of H100 have 12; another name is a card's, which needs none; no name says none."""
    (answer,) = answers(nvlink_inactive, unplaced(name, lost=lost), f"gpu:{gpu_id(1)}")

    assert isinstance(answer, kind)


def test_a_gpu_without_live_links_may_have_lost_them_to_anything() -> None:
    """Nothing says where they led: a GPU that is not offered and a switch that is gone both explain them."""
    switch = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), class_code="0x068000", state="gone")
    context = changed_gpu(changed_gpu(server(), 2, links=dead(18)), 0, driver_state="not_open")
    context = topology(context, pci=[*context.topology.pci, switch], nvswitches=[NvSwitch(id=switch.id, pci=switch.id)])
    (fault,) = fails(nvlink_inactive, context)

    assert {GPU, gpu_id(0), switch.id} == {place for place in fault.ids if "/" not in place}


def test_two_gpus_without_any_link_do_not_share_one() -> None:
    """Each lost all of its own: nothing says that they led to each other."""
    context = changed_gpus(server(), links=nvlinks(18, "gpu"))
    for n in (2, 3):
        context = changed_gpu(context, n, links=dead(18))

    assert [f"gpu:{gpu_id(n)}" for n in (2, 3)] == [fault.subject for fault in fails(nvlink_inactive, context)]
