"""pcie-nic-starved: limits of its numbers, cards of several functions, and what counts as another of its kind."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.rules.context import RuleContext, Settings
from agent.rules.pcie.bandwidth import pcie_nic_starved as rule
from agent.rules.pcie.cards import USABLE, is_sufficient
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_port,
    fails,
    function,
    gpu_id,
    nic_id,
    relinked,
    server,
    topology,
)
from tests.agent.rules.rows import link

NIC, SECOND, UP, TO_NIC, ROOT = nic_id(0), f"{nic_id(0)[:-1]}1", "0000:11:00.0", "0000:12:01.0", "0000:10:01.0"
GEN_4 = link(16.0, max_speed_gt_s=16.0)
DRIVE = "0x010802"


def severities(case: RuleContext) -> list[tuple[str, str | None]]:
    return [(fault.subject, fault.severity) for fault in fails(rule, case)]


def without(**fields: None):
    """A Gen 4 link of which the source does not give these."""
    return msgspec.structs.replace(link(16.0), **fields)


def two_ports(case: RuleContext, rate: float) -> RuleContext:
    """A second function of NIC 0, with a port of its own; both at `rate`."""
    case = changed_port(case, 0, rate_gbit_s=rate)
    twin = msgspec.structs.replace(case.nics[NIC], id=SECOND, pci=SECOND, label="mlx5_9")
    like = msgspec.structs.replace(case.functions[NIC], id=SECOND)
    return topology(case, pci=[*case.topology.pci, like], nics=[*case.topology.nics, twin])


def second_of(case: RuleContext, class_code: str) -> RuleContext:
    """NIC 0 is the second function of its card; the first is something else."""
    first = msgspec.structs.replace(case.functions[NIC], class_code=class_code, driver=None)
    case = changed_nic(function(case, NIC, id=SECOND), 0, id=SECOND, pci=SECOND)
    return topology(case, pci=[*case.topology.pci[:5], first, *case.topology.pci[5:]])


def test_just_enough_is_enough() -> None:
    """A link carries a rate that is all that can be used of it."""
    assert is_sufficient(1.0, 8 * USABLE)
    assert not is_sufficient(1.0, 8.1 * USABLE)


@pytest.mark.parametrize(("rate", "starves"), [(32.0, False), (33.0, True)])
def test_one_port_that_just_fits(rate: float, starves: bool) -> None:
    """4 GB/s, all of which can be used here, are 32 Gb/s."""
    case = changed_port(relinked(server(), NIC, link(2.5)), 0, rate_gbit_s=rate)
    whole = replace(case, settings=Settings(thresholds={"pcie-nic-starved.usable_share": 1.0}))

    assert starves == bool(fails(rule, whole))


@pytest.mark.parametrize(("rate", "severity", "told"), [(32.0, "warning", "64 Gb/s"), (33.0, "error", "33 Gb/s")])
def test_of_two_ports_one_that_just_fits(rate: float, severity: str, told: str) -> None:
    """It is too little for both; for one alone it is enough."""
    case = two_ports(relinked(server(), NIC, link(2.5)), rate)
    (fault,) = fails(rule, replace(case, settings=Settings(thresholds={"pcie-nic-starved.usable_share": 1.0})))

    assert (severity, told) == (fault.severity, fault.evidence[1].value)


def test_a_better_slot_that_is_enough_for_one_port_of_two_helps() -> None:
    """Each port starves; a Gen 5 slot carries one of them, though never both."""
    (fault,) = fails(rule, two_ports(relinked(server(1), NIC, link(16.0)), 400.0))

    assert "error" == fault.severity
    assert fault.summary.startswith("its port runs at 400 Gb/s")


@pytest.mark.parametrize("field", ["speed_gt_s", "width"])
def test_an_own_link_that_is_half_read_is_unknown(field: str) -> None:
    """The uplink is enough: that does not make the NIC's own link enough."""
    case = relinked(server(), NIC, without(**{field: None}))

    assert [Unknown(f"pci:{NIC}", "what its link carries is not known")] == answers(rule, case, f"pci:{NIC}")


def test_a_link_inside_the_card_need_not_be_read() -> None:
    """The uplink of the card's switch is what counts."""
    case = function(relinked(server(), NIC, without(speed_gt_s=None)), TO_NIC, vendor="0x1002", device="0x1479")

    assert [Pass(f"pci:{NIC}")] == answers(rule, case, f"pci:{NIC}")
    assert [(f"pci:{NIC}", "warning")] == severities(relinked(case, UP, link(width=8)))


@pytest.mark.parametrize(
    "hop",
    [
        pytest.param(without(speed_gt_s=None), id="no speed"),
        pytest.param(without(width=None), id="no lanes"),
        pytest.param(link(width=5), id="a lane count that no link has"),
        pytest.param(link(width=4, quality="untrusted"), id="a synthetic port"),
    ],
)
def test_an_uplink_that_says_nothing_is_left_out(hop) -> None:
    """The NIC's own link decides."""
    assert [Pass(f"pci:{NIC}")] == answers(rule, relinked(server(), UP, hop), f"pci:{NIC}")


@pytest.mark.parametrize("port", [TO_NIC, ROOT])
def test_ports_that_face_down_are_no_hops(port: str) -> None:
    """What they say is of the wire below them, which is the NIC's or the switch's own."""
    assert [Pass(f"pci:{NIC}")] == answers(rule, relinked(server(), port, link(width=4)), f"pci:{NIC}")


def test_a_card_whose_first_function_is_no_nic() -> None:
    """A management function stands first: the card is judged by its NIC."""
    case = second_of(relinked(server(), NIC, link(16.0)), "0x088000")

    assert [(f"pci:{SECOND}", "error")] == severities(case)


def bluefield(made) -> RuleContext:
    """A card whose first function is an emulated drive, beside a GPU and a rail at 400 Gb/s on Gen 5."""
    return second_of(relinked(server(2), NIC, made), DRIVE)


def test_a_card_that_shows_a_drive_first_could_do_more() -> None:
    """It says so itself."""
    assert [(f"pci:{NIC}", "error")] == severities(bluefield(link(16.0)))


def test_a_card_that_shows_a_drive_first_is_like_no_other() -> None:
    """It can do no more; neither the GPU, of which no rate is known, nor a rail at its rate shows that it could."""
    alone = bluefield(GEN_4)
    for place in (NIC, SECOND, nic_id(1), gpu_id(0)):
        alone = function(alone, place, vendor=None)

    assert [(f"pci:{NIC}", "info")] == severities(bluefield(GEN_4))
    assert [(f"pci:{NIC}", "info")] == severities(alone)


def test_another_model_at_the_same_rate_is_no_sibling() -> None:
    """That a Gen 5 card carries 400 Gb/s says nothing of one that cannot do Gen 5."""
    case = relinked(server(2), NIC, GEN_4)

    assert [(f"pci:{NIC}", "info")] == severities(function(case, NIC, device="0x1017"))
    assert [(f"pci:{NIC}", "error")] == severities(case)


def test_a_sub_function_has_no_second_link() -> None:
    """It says the same system image as a card elsewhere, whose link is not its own."""
    guid = "b83f:d203:0000:0001"
    case = changed_nic(relinked(server(), NIC, link(16.0)), 0, system_image_guid=guid)
    part = msgspec.structs.replace(case.topology.nics[1], id=f"{nic_id(1)}/sf1", system_image_guid=guid)

    assert [(f"pci:{NIC}", "error")] == severities(topology(case, nics=[*case.topology.nics, part]))
