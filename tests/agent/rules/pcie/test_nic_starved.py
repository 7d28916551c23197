"""pcie-nic-starved: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.rules.context import RuleContext, Settings
from agent.rules.pcie.bandwidth import pcie_nic_starved as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_port,
    fails,
    function,
    nic_id,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import link

NIC, UP = nic_id(0), "0000:11:00.0"


def gen4():
    return relinked(server(), NIC, link(16.0))


def dual(rate: float = 200.0, case: RuleContext | None = None):
    """A second function of the card, with a port of its own; both at `rate`."""
    case = changed_port(case or gen4(), 0, rate_gbit_s=rate)
    other = NIC[:-1] + "1"
    twin = msgspec.structs.replace(case.nics[NIC], id=other, pci=other, label="mlx5_9")
    like = msgspec.structs.replace(case.functions[NIC], id=other)
    return topology(case, pci=[*case.topology.pci, like], nics=[*case.topology.nics, twin])


def severities(case: RuleContext) -> list[tuple[str, str | None]]:
    return [(fault.subject, fault.severity) for fault in fails(rule, case)]


def test_400_gbit_on_gen_4() -> None:
    """27.4 of 50 GB/s: an error on that rail, with link and rate as evidence."""
    (fault,) = fails(rule, gen4())

    assert (f"pci:{NIC}", "mlx5_0", "error", "own-link") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "its port runs at 400 Gb/s (50 GB/s); the PCIe link can use 27.4 GB/s" == fault.summary
    assert ["x16 at 16 GT/s: 31.5 GB/s", "400 Gb/s"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("speed", "width", "rate", "starves"),
    [
        (32.0, 16, 400.0, False),
        (32.0, 8, 200.0, False),
        (32.0, 8, 220.0, True),
        (16.0, 16, 200.0, False),
        (8.0, 16, 200.0, True),
        (8.0, 16, 100.0, False),
        (8.0, 8, 100.0, True),
    ],
)
def test_rates_and_links(speed: float, width: int, rate: float, starves: bool) -> None:
    """87% of the bandwidth after line coding."""
    case = changed_port(relinked(server(), NIC, link(speed, width)), 0, rate_gbit_s=rate)

    assert starves == bool(fails(rule, case))


def test_the_line_coding_of_old_infiniband_is_taken_off() -> None:
    """QDR quotes 40 Gb/s and carries 32."""
    case = changed_port(relinked(server(), NIC, link(2.5, 16)), 0, rate_gbit_s=40.0, speed="QDR")

    assert "its port runs at 32 Gb/s (4 GB/s); the PCIe link can use 3.5 GB/s" == fails(rule, case)[0].summary


@pytest.mark.parametrize(
    ("role", "severity"), [("storage", "warning"), ("unknown", "warning"), ("management", "warning")]
)
def test_other_nics_are_less_grave(role: str, severity: str) -> None:
    """One step less than a rail."""
    assert [(f"pci:{NIC}", severity)] == severities(changed_nic(gen4(), 0, role=role))


def test_two_ports_together() -> None:
    """Either fits, both do not: a warning where the card could do more, info where no card of its kind could."""
    built_so = dual(rate=300.0, case=relinked(server(1), NIC, link()))

    assert [(f"pci:{NIC}", "warning")] == severities(dual())
    assert [(f"pci:{NIC}", "info")] == severities(built_so)
    assert frozenset() == fails(rule, built_so)[0].places


def test_a_bond_has_the_rate_of_both() -> None:
    """One device for two ports: that is their rate together."""
    case = changed_nic(gen4(), 0, bond="bond0")

    assert [(f"pci:{NIC}", "warning")] == severities(case)


def test_no_slot_would_help() -> None:
    """The card itself, and all of its kind, can do no more."""
    case = server(1)
    case = relinked(case, NIC, link(16.0, max_speed_gt_s=16.0))

    assert [(f"pci:{NIC}", "info")] == severities(case)


def test_what_the_card_could_do_is_not_known() -> None:
    """Nothing says that a better slot would help, but another card of its kind that has one."""
    unknown = {"max_speed_gt_s": None, "max_width": None}
    case = relinked(server(1), NIC, link(16.0, **unknown))
    pair = relinked(relinked(server(2), NIC, link(16.0, **unknown)), nic_id(1), link(32.0, **unknown))

    assert [(f"pci:{NIC}", "info")] == severities(case)
    assert [(f"pci:{NIC}", "error")] == severities(pair)


def test_without_ids_a_nic_at_the_same_rate_is_of_its_kind() -> None:
    """A tree that was saved without `vendor` files: what carries the same rate shows that it can be carried."""
    unknown = {"max_speed_gt_s": None, "max_width": None}
    pair = relinked(relinked(server(2), NIC, link(16.0, **unknown)), nic_id(1), link(32.0, **unknown))
    nameless = function(function(pair, NIC, vendor=None), nic_id(1), vendor=None)

    assert [(f"pci:{NIC}", "error")] == severities(nameless)
    assert [(f"pci:{NIC}", "info")] == severities(changed_port(nameless, 1, rate_gbit_s=200.0))
    assert [(f"pci:{NIC}", "info")] == severities(changed_port(nameless, 1, state="DOWN"))


def test_an_uplink_is_less_grave() -> None:
    """Traffic with GPUs below the switch does not cross it."""
    (fault,) = fails(rule, relinked(server(), UP, link(width=8)))

    assert ("warning", "uplink") == (fault.severity, fault.cause)
    assert UP in fault.summary
    assert UP in fault.places


def test_socket_direct_has_two_links() -> None:
    """The other half of the board is a device elsewhere, with the same system image."""
    case = changed_nic(gen4(), 0, system_image_guid="b83f:d203:0000:0001")
    second = changed_nic(relinked(case, nic_id(1), link(16.0)), 1, system_image_guid="b83f:d203:0000:0001")

    assert [f"pci:{NIC}"] == [fault.subject for fault in fails(rule, case)]
    assert [] == fails(rule, second)


def test_the_share_can_be_set() -> None:
    """An operator who measured more."""
    case = changed_port(gen4(), 0, rate_gbit_s=240.0)

    assert fails(rule, case)
    assert [] == fails(rule, replace(case, settings=Settings(thresholds={"pcie-nic-starved.usable_share": 0.97})))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 0, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_nic(c, 0, limited="fabric manager"), NotApplicable, id="limited"),
        pytest.param(lambda c: changed_port(c, 0, state="DOWN"), NotApplicable, id="port down"),
        pytest.param(lambda c: changed_port(c, 0, rate_gbit_s=None), NotApplicable, id="no rate"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: relinked(c, NIC, link(width=0)), NotApplicable, id="no link"),
        pytest.param(lambda c: relinked(c, NIC, link(16.0, quality="unreadable")), Unknown, id="unreadable"),
        pytest.param(lambda c: relinked(c, NIC, None), Unknown, id="no link known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(rule, circumstance(gen4()), f"pci:{NIC}")

    assert isinstance(answer, kind), answer


def test_a_link_inside_the_card_is_left_out() -> None:
    """The NIC of a ConnectX with a switch of its own: its uplink is what counts."""
    case = server()
    inside = link(8.0, 4)
    inside = msgspec.structs.replace(
        inside,
        quality=msgspec.structs.replace(inside.quality, state="untrusted", reason="a link inside a card: no wire"),
    )

    assert [Pass(f"pci:{NIC}")] == answers(rule, relinked(case, NIC, inside), f"pci:{NIC}")


def test_a_virtual_function_has_no_link() -> None:
    """Nothing is said of it."""
    case = function(changed_nic(gen4(), 0, virtual_function=True), NIC, physical_function="0000:15:00.1")

    assert [] == answers(rule, case, f"pci:{NIC}")


def test_a_sub_function_is_not_asked_for_its_card() -> None:
    """The card is asked, once."""
    case = gen4()
    part = msgspec.structs.replace(case.nics[NIC], id=f"{NIC}/sf1", label="mlx5_8", ports=case.nics[nic_id(1)].ports)

    assert [(f"pci:{NIC}", "error")] == severities(topology(case, nics=[*case.topology.nics, part]))
    assert [] == answers(rule, topology(case, nics=[part]), f"pci:{NIC}")


def test_a_nic_whose_function_is_not_known_is_not_asked() -> None:
    """It left the bus while the scan ran."""
    left = "0000:ff:00.0"

    assert [] == answers(rule, changed_nic(gen4(), 0, id=left, pci=left), f"pci:{left}")
    assert [] == answers(rule, changed_nic(gen4(), 0, pci=left), f"pci:{left}")


@pytest.mark.parametrize(
    ("by_id", "by_kernel"), [(True, NIC), (True, None), (False, NIC)], ids=["both", "by its id", "by the kernel"]
)
def test_virtual_functions_add_no_port(by_id: bool, by_kernel: str | None) -> None:
    """What they carry goes through the port of the physical one; either source may know what they are."""
    case = changed_port(gen4(), 0, rate_gbit_s=200.0)
    other = f"{NIC[:-1]}1"
    twin = msgspec.structs.replace(case.nics[NIC], id=other, pci=other, virtual_function=by_id)
    like = msgspec.structs.replace(case.functions[NIC], id=other, physical_function=by_kernel)

    assert [] == severities(topology(case, pci=[*case.topology.pci, like], nics=[*case.topology.nics, twin]))


def test_a_fault_is_not_about_virtual_functions() -> None:
    """It is of the card's link; they may be a guest's."""
    like = msgspec.structs.replace(gen4().functions[NIC], id=f"{NIC[:-1]}1", physical_function=NIC)
    (fault,) = fails(rule, topology(gen4(), pci=[*gen4().topology.pci, like]))

    assert {NIC} == fault.places


def test_the_two_ports_together_are_told_where_either_fits() -> None:
    """Their rate is that of both; alone it is the port's."""
    (both,), (one,) = fails(rule, dual()), fails(rule, gen4())

    assert "400 Gb/s" in both.summary
    assert one.summary.startswith("its port runs at")
    assert not both.summary.startswith("its port runs at")


def test_no_hop_that_could_be_read_is_unknown() -> None:
    """A link inside a card, and no other on the way."""
    inside = link(8.0, 4)
    inside = msgspec.structs.replace(
        inside,
        quality=msgspec.structs.replace(inside.quality, state="untrusted", reason="a link inside a card: no wire"),
    )
    case = relinked(server(), NIC, inside)
    for place in (UP, "0000:12:01.0", "0000:10:01.0"):
        case = relinked(case, place, None)

    assert [Unknown(f"pci:{NIC}", "no link on its way to the CPU could be read")] == answers(rule, case, f"pci:{NIC}")


def test_a_second_link_counts_where_it_is_another_slot_only() -> None:
    """The second function of the same card shares the link; a sub-function and a device without a place have none."""
    guid = "b83f:d203:0000:0001"
    case = changed_nic(gen4(), 0, system_image_guid=guid)
    elsewhere = case.topology.nics[1]
    for twin in (
        msgspec.structs.replace(elsewhere, id=f"{nic_id(1)}/sf1", system_image_guid=guid),
        msgspec.structs.replace(elsewhere, id="somewhere", pci=None, system_image_guid=guid),
    ):
        nics = [case.topology.nics[0], twin, *case.topology.nics[2:]]
        assert [(f"pci:{NIC}", "error")] == severities(topology(case, nics=nics))
