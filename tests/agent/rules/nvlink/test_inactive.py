"""nvlink-inactive: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import NvSwitch, Remote
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nvlink.links import nvlink_inactive as rule
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


def test_a_gpu_with_fewer_active_links_than_others_is_an_error() -> None:
    """One finding a GPU, not one a link; the links are in the evidence."""
    (fault,) = fails(rule, one_lost())

    assert (f"gpu:{GPU}", "GPU2", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "2 of 18 NVLinks down (peers: 18 up)" == fault.summary
    assert "16 of 18 active; inactive: 0-1" == fault.evidence[0].value
    assert "nvidia-smi nvlink -s -i 2" == fault.evidence[0].source
    assert fault.impact.startswith("53 GB/s less")


def test_the_far_end_of_a_link_is_a_place_where_both_its_parts_are_known() -> None:
    """NVML names the device alone, and not which of its links."""
    far = [Remote(kind="gpu", id="far", link=4), Remote(kind="gpu", id="far"), Remote(kind="gpu", link=5)]
    links = [
        msgspec.structs.replace(link, state="inactive", remote=far[link.link]) if link.link < 3 else link
        for link in nvlinks(18, "gpu")
    ]
    (fault,) = fails(rule, changed_gpu(changed_gpus(server(), links=nvlinks(18, "gpu")), 2, links=links))

    assert {GPU, "far", f"{GPU}/nvlink", f"{GPU}/0", f"{GPU}/1", f"{GPU}/2", "far/4"} == fault.ids


@pytest.mark.parametrize(("count", "severity"), [(4, "error"), (18, "critical")])
@pytest.mark.parametrize("guest", [False, True])
def test_a_whole_board_that_lost_links_is_one_finding(count: int, severity: str, guest: bool) -> None:
    """Eight SXM GPUs, all with the same links down: a switch, or the fabric manager; guests of eight, too."""
    context = all_lost(8, count)
    (fault,) = fails(rule, virtual(context) if guest else context)

    assert ("node", "node", severity) == (fault.subject, fault.label, fault.severity)
    assert {gpu_id(n) for n in range(8)} <= fault.ids


def test_one_wire_between_two_gpus_is_one_finding() -> None:
    """Both report it; the pair is the subject."""
    context = changed_gpu(one_lost(remote="gpu"), 3, links=dead(2, remote="gpu"))
    (fault,) = fails(rule, context)

    assert f"pair:{gpu_id(2)}+{gpu_id(3)}" == fault.subject
    assert "GPU2 - GPU3" == fault.label


def test_a_bridge_that_connects_in_part_is_a_warning() -> None:
    """Two PCIe cards, four of twelve links: one of the bridges is not seated."""
    context = models(changed_gpus(server(2), links=dead(4, remote="gpu", total=12)), H100_PCIE)
    (fault,) = fails(rule, context)

    assert ("warning", f"pair:{gpu_id(0)}+{gpu_id(1)}") == (fault.severity, fault.subject)


def test_a_single_card_with_a_part_of_its_links_has_no_peer_here() -> None:
    """The other end of the bridge is not on this node, or hidden from it."""
    context = models(changed_gpus(server(1), links=dead(4, remote="gpu", total=12)), H100_PCIE)

    assert {NotApplicable} == {type(answer) for answer in rule.check(context)}


def test_gpus_that_lost_different_links_do_not_share_one() -> None:
    """Two with different numbers, or three: more than one wire."""
    uneven = changed_gpu(one_lost(remote="gpu"), 3, links=dead(3, remote="gpu"))
    three = changed_gpu(
        changed_gpu(one_lost(8, remote="gpu"), 3, links=dead(2, remote="gpu")), 4, links=dead(2, remote="gpu")
    )

    assert 2 == len(fails(rule, uneven))
    assert 3 == len(fails(rule, three))
    assert {frozenset({gpu_id(n)}) for n in (2, 3, 4)} == {devices(fault.ids) for fault in fails(rule, three)}


def test_the_gravest_gpu_decides_for_the_board() -> None:
    """One of eight has no link left."""
    (fault,) = fails(rule, changed_gpu(all_lost(8), 5, links=dead(18)))

    assert ("node", "critical") == (fault.subject, fault.severity)


def test_a_lost_gpu_does_not_explain_links_to_a_switch() -> None:
    """On a switched board the links of others stay up when a GPU drops."""
    _, findings, _ = judge(changed_gpu(one_lost(), 0, driver_state="not_open"), every_rule())

    assert {"gpu-missing", "nvlink-inactive"} == {finding.rule for finding in findings}


def test_a_gpu_of_another_vendor_is_never_unknown() -> None:
    """Its links are not NVIDIA's to tell."""
    amd = function(changed_gpu(server(), 2, links=[], links_known=False, driver_state="unknown"), GPU, vendor="0x1002")

    assert [NotApplicable(f"gpu:{GPU}", "not of NVIDIA: no NVLink")] == answers(rule, amd, f"gpu:{GPU}")


def unplaced(name: str | None, gpus: int = 2, lost: int = 2):
    """GPUs of a saved `nvidia-smi nvlink -s`: no PCI function, a name at most; one has lost links."""
    context = topology(changed_gpus(server(gpus), links=nvlinks(), pci=None, name=name), pci=[])
    return changed_gpu(context, gpus - 1, links=dead(lost))


@pytest.mark.parametrize(
    "name", ["Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"]
)
def test_without_a_pci_id_the_name_says_what_is_wired(name) -> None:
    """An SXM module that lost links is an error, and without any it is critical: never "a card without a bridge"."""
    (some,), (every,) = fails(rule, unplaced(name)), fails(rule, unplaced(name, lost=18))

    assert ("error", "critical") == (some.severity, every.severity)


def test_links_of_a_gpu_that_nothing_names_are_not_judged() -> None:
    """Neither id nor name: whether its links are wired is not known, and that is not clean."""
    assert {Pass, Unknown} == {type(answer) for answer in rule.check(unplaced(None))}


@pytest.mark.parametrize(("gpus", "whole"), [(2, False), (3, True), (4, True)])
def test_three_gpus_are_a_board(gpus: int, whole: bool) -> None:
    """What all of three lost is behind all of them."""
    subjects = [fault.subject for fault in fails(rule, all_lost(gpus, 18))]

    assert whole == (subjects == ["node"])


def test_a_board_without_any_link_is_about_its_nvlink() -> None:
    """The place that what follows from it shares."""
    (some,) = fails(rule, all_lost(8))
    (none,) = fails(rule, all_lost(8, 18))

    assert devices(some.ids) < devices(none.ids)
    assert 1 == len(devices(none.ids) - devices(some.ids))


def test_gpus_that_are_lost_explain_dead_links_to_gpus_alone() -> None:
    """Gone from the bus, or not offered by the driver; live links to a switch say that dead ones led there, too."""
    wired = changed_gpus(one_lost(remote="gpu"))
    for context in (function(wired, gpu_id(0), state="gone"), changed_gpu(wired, 0, driver_state="error")):
        (fault,) = [f for f in fails(rule, context) if f.subject == f"gpu:{GPU}"]
        assert gpu_id(0) in fault.ids
    for context in (one_lost(), wired):
        assert not any(gpu_id(0) in fault.ids for fault in fails(rule, context))


def test_a_switch_that_is_there_explains_nothing() -> None:
    """Only one that is gone; and not the loss of a wire between two GPUs."""
    switch = msgspec.structs.replace(bridge("0000:f1:00.0", None, "upstream"), class_code="0x068000")
    for state, remote, result in (("gone", "switch", True), ("present", "switch", False), ("gone", "gpu", False)):
        context = one_lost(remote=remote)
        functions = [*context.topology.pci, msgspec.structs.replace(switch, state=state)]
        context = topology(context, pci=functions, nvswitches=[NvSwitch(id=switch.id, pci=switch.id)])
        (fault,) = fails(rule, context)
        assert result == (switch.id in fault.ids)


def test_what_one_gpu_has_beyond_the_links_of_a_lost_switch_is_named_by_itself() -> None:
    """One switch takes two links of each GPU: what more one has lost stands where the switch explains the rest."""
    (whole,) = fails(rule, changed_gpu(all_lost(8), 2, links=dead(3)))
    (more,) = whole.residue

    assert "count of NVSwitches" in whole.ids
    assert "count of NVSwitches" not in more.ids
    assert (f"gpu:{GPU}", "3 of 18 NVLinks down; its peers have 2 down") == (more.subject, more.summary)
    assert {GPU, f"{GPU}/2"} == more.ids
    other = [
        msgspec.structs.replace(link, state="inactive" if link.link in (4, 5, 6) else "active") for link in nvlinks(18)
    ]
    (unnamed,) = fails(rule, changed_gpu(all_lost(8), 2, links=other))[0].residue
    assert {GPU} == unnamed.ids
    assert () == fails(rule, all_lost(8))[0].residue
