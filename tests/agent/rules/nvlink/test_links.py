"""Links of one GPU and of its equals: fewer, slower, in doubt; and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import NvSwitch
from agent.rules.nvlink.links import nvlink_asymmetric, nvlink_inactive, nvlink_speed_low
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    fails,
    gpu_id,
    server,
    topology,
)
from tests.agent.rules.nvlink.test_inactive import dead, one_lost, unplaced
from tests.agent.rules.rows import bridge, nvlinks

# nvlink-asymmetric: when it fires, when it must not, and every guard alone.


GPU = gpu_id(2)


def fewer():
    """GPU 2 has 16 links where the others have 18; the driver calls none inactive."""
    return changed_gpu(server(), 2, links=nvlinks(16))


def test_without_a_majority_the_highest_number_is_due() -> None:
    """Two GPUs, 18 and 16."""
    (fault,) = fails(nvlink_asymmetric, changed_gpu(server(2), 1, links=nvlinks(16)))

    assert f"gpu:{gpu_id(1)}" == fault.subject


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
