"""NVLinks of one GPU and of its equals: down, fewer, slower, in doubt; and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import NvSwitch, Remote
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
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
    virtual,
)
from tests.agent.rules.rows import H100_PCIE, bridge, nvlinks

GPU = gpu_id(2)


def devices(ids: frozenset[str]) -> frozenset[str]:
    """The devices among the places, without their links."""
    return frozenset(place for place in ids if "/" not in place)


def dead(count: int, state: str = "inactive", remote: str = "switch", total: int = 18):
    """The links of one GPU, the first of them not active."""
    return [
        msgspec.structs.replace(nvlink, state=state, remote=None) if nvlink.link < count else nvlink
        for nvlink in nvlinks(total, remote)
    ]


def one_lost(gpus: int = 4, remote: str = "switch"):
    context = changed_gpus(server(gpus), links=nvlinks(18, remote))
    return changed_gpu(context, 2, links=dead(2, remote=remote))


def all_lost(gpus: int, count: int = 2, remote: str = "switch"):
    return changed_gpus(server(gpus), links=dead(count, remote=remote))


def test_the_far_end_of_a_link_is_a_place_where_both_its_parts_are_known() -> None:
    """NVML names the device alone, and not which of its links."""
    far = [Remote(kind="gpu", id="far", link=4), Remote(kind="gpu", id="far"), Remote(kind="gpu", link=5)]
    links = [
        msgspec.structs.replace(link, state="inactive", remote=far[link.link]) if link.link < 3 else link
        for link in nvlinks(18, "gpu")
    ]
    (fault,) = fails(nvlink_inactive, changed_gpu(changed_gpus(server(), links=nvlinks(18, "gpu")), 2, links=links))

    assert {GPU, "far", f"{GPU}/nvlink", f"{GPU}/0", f"{GPU}/1", f"{GPU}/2", "far/4"} == fault.ids


@pytest.mark.parametrize(("count", "severity"), [(4, "error"), (18, "critical")])
@pytest.mark.parametrize("guest", [False, True])
def test_a_whole_board_that_lost_links_is_one_finding(count: int, severity: str, guest: bool) -> None:
    """Eight SXM GPUs, all with the same links down: a switch, or the fabric manager; guests of eight, too."""
    context = all_lost(8, count)
    (fault,) = fails(nvlink_inactive, virtual(context) if guest else context)

    assert ("node", "node", severity) == (fault.subject, fault.label, fault.severity)
    assert {gpu_id(n) for n in range(8)} <= fault.ids


def test_one_wire_between_two_gpus_is_one_finding() -> None:
    """Both report it; the pair is the subject."""
    context = changed_gpu(one_lost(remote="gpu"), 3, links=dead(2, remote="gpu"))
    (fault,) = fails(nvlink_inactive, context)

    assert f"pair:{gpu_id(2)}+{gpu_id(3)}" == fault.subject
    assert "GPU2 - GPU3" == fault.label


def test_a_single_card_with_a_part_of_its_links_has_no_peer_here() -> None:
    """The other end of the bridge is not on this node, or hidden from it."""
    context = models(changed_gpus(server(1), links=dead(4, remote="gpu", total=12)), H100_PCIE)

    assert {NotApplicable} == {type(answer) for answer in nvlink_inactive.check(context)}


def test_gpus_that_lost_different_links_do_not_share_one() -> None:
    """Two with different numbers, or three: more than one wire."""
    uneven = changed_gpu(one_lost(remote="gpu"), 3, links=dead(3, remote="gpu"))
    three = changed_gpu(
        changed_gpu(one_lost(8, remote="gpu"), 3, links=dead(2, remote="gpu")), 4, links=dead(2, remote="gpu")
    )

    assert 2 == len(fails(nvlink_inactive, uneven))
    assert 3 == len(fails(nvlink_inactive, three))
    assert {frozenset({gpu_id(n)}) for n in (2, 3, 4)} == {
        devices(fault.ids) for fault in fails(nvlink_inactive, three)
    }


def test_the_gravest_gpu_decides_for_the_board() -> None:
    """One of eight has no link left."""
    (fault,) = fails(nvlink_inactive, changed_gpu(all_lost(8), 5, links=dead(18)))

    assert ("node", "critical") == (fault.subject, fault.severity)


def test_a_lost_gpu_does_not_explain_links_to_a_switch() -> None:
    """On a switched board the links of others stay up when a GPU drops."""
    _, findings, _ = judge(changed_gpu(one_lost(), 0, driver_state="not_open"), every_rule())

    assert {"gpu-missing", "nvlink-inactive"} == {finding.rule for finding in findings}


def unplaced(name: str | None, gpus: int = 2, lost: int = 2):
    """GPUs of a saved `nvidia-smi nvlink -s`: no PCI function, a name at most; one has lost links."""
    context = topology(changed_gpus(server(gpus), links=nvlinks(), pci=None, name=name), pci=[])
    return changed_gpu(context, gpus - 1, links=dead(lost))


@pytest.mark.parametrize(
    "name", ["Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"]
)
def test_without_a_pci_id_the_name_says_what_is_wired(name) -> None:
    """An SXM module that lost links is an error, and without any it is critical: never "a card without a bridge"."""
    (some,), (every,) = fails(nvlink_inactive, unplaced(name)), fails(nvlink_inactive, unplaced(name, lost=18))

    assert ("error", "critical") == (some.severity, every.severity)


@pytest.mark.parametrize(("gpus", "whole"), [(2, False), (3, True), (4, True)])
def test_three_gpus_are_a_board(gpus: int, whole: bool) -> None:
    """What all of three lost is behind all of them."""
    subjects = [fault.subject for fault in fails(nvlink_inactive, all_lost(gpus, 18))]

    assert whole == (subjects == ["node"])


def test_a_board_without_any_link_is_about_its_nvlink() -> None:
    """The place that what follows from it shares."""
    (some,) = fails(nvlink_inactive, all_lost(8))
    (none,) = fails(nvlink_inactive, all_lost(8, 18))

    assert devices(some.ids) < devices(none.ids)
    assert 1 == len(devices(none.ids) - devices(some.ids))


def test_gpus_that_are_lost_explain_dead_links_to_gpus_alone() -> None:
    """Gone from the bus, or not offered by the driver; live links to a switch say that dead ones led there, too."""
    wired = changed_gpus(one_lost(remote="gpu"))
    for context in (function(wired, gpu_id(0), state="gone"), changed_gpu(wired, 0, driver_state="error")):
        (fault,) = [f for f in fails(nvlink_inactive, context) if f.subject == f"gpu:{GPU}"]
        assert gpu_id(0) in fault.ids
    for context in (one_lost(), wired):
        assert not any(gpu_id(0) in fault.ids for fault in fails(nvlink_inactive, context))


def test_a_switch_that_is_there_explains_nothing() -> None:
    """Only one that is gone; and not the loss of a wire between two GPUs."""
    switch = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), class_code="0x068000")
    for state, remote, result in (("gone", "switch", True), ("present", "switch", False), ("gone", "gpu", False)):
        context = one_lost(remote=remote)
        functions = [*context.topology.pci, msgspec.structs.replace(switch, state=state)]
        context = topology(context, pci=functions, nvswitches=[NvSwitch(id=switch.id, pci=switch.id)])
        (fault,) = fails(nvlink_inactive, context)
        assert result == (switch.id in fault.ids)


def test_what_one_gpu_has_beyond_the_links_of_a_lost_switch_is_named_by_itself() -> None:
    """One switch takes two links of each GPU: what more one has lost stands where the switch explains the rest."""
    (whole,) = fails(nvlink_inactive, changed_gpu(all_lost(8), 2, links=dead(3)))
    (more,) = whole.residue

    assert "count of NVSwitches" in whole.ids
    assert "count of NVSwitches" not in more.ids
    assert (f"gpu:{GPU}", "3 of 18 NVLinks down; its peers have 2 down") == (more.subject, more.summary)
    assert {GPU, f"{GPU}/2"} == more.ids
    other = [
        msgspec.structs.replace(link, state="inactive" if link.link in (4, 5, 6) else "active") for link in nvlinks(18)
    ]
    (unnamed,) = fails(nvlink_inactive, changed_gpu(all_lost(8), 2, links=other))[0].residue
    assert {GPU} == unnamed.ids
    assert () == fails(nvlink_inactive, all_lost(8))[0].residue


# nvlink-asymmetric: when it fires, when it must not, and every guard alone.


def test_without_a_majority_the_highest_number_is_due() -> None:
    """Two GPUs, 18 and 16."""
    (fault,) = fails(nvlink_asymmetric, changed_gpu(server(2), 1, links=nvlinks(16)))

    assert f"gpu:{gpu_id(1)}" == fault.subject


# nvlink-speed-low: when it fires, when it must not, and every guard alone.


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


# How NVLinks are counted, and what GPU they are of: seen through nvlink-inactive.


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi nvlink -s -i 2"), (None, "nvidia-smi nvlink -s")])
def test_the_command_names_the_gpu_tally(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(nvlink_inactive, changed_gpu(one_lost(), 2, index=index))

    assert command == fault.evidence[0].source


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
