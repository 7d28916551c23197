"""pcie-path-bottleneck: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.topology import Path
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.pcie.bandwidth import pcie_path_bottleneck as rule
from agent.rules.pcie.links import bandwidth
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_nic,
    changed_nics,
    fails,
    function,
    gpu_id,
    kinds,
    models,
    nic_id,
    probe,
    relinked,
    server,
    topology,
    virtual,
)
from tests.agent.rules.rows import GB200, bridge, link

GPU, NIC, RISER_UP, RISER_DOWN = gpu_id(0), nic_id(0), "0000:13:00.0", "0000:13:01.0"


def riser(width: int = 8, max_width: int = 8):
    """GPU 0 sits on a riser with a switch of its own, whose uplink has 8 lanes and can have no more."""
    case = server()
    up = msgspec.structs.replace(
        bridge(RISER_UP, "0000:12:00.0", "upstream"), link=link(width=width, max_width=max_width)
    )
    down = bridge(RISER_DOWN, RISER_UP, "downstream")
    case = function(topology(case, pci=[*case.topology.pci, up, down]), GPU, parent=RISER_DOWN)
    paths = [_longer(path) if path.a == GPU else path for path in case.topology.paths]
    return topology(case, paths=paths)


def _longer(path: Path) -> Path:
    kind = "PXB" if path.pcie_kind == "PIX" else path.pcie_kind
    return msgspec.structs.replace(path, hops=[RISER_DOWN, RISER_UP, *path.hops], pcie_kind=kind)


def test_the_limiting_hop_is_named_once() -> None:
    """The hop is the subject; the pairs that it slows are in the text, with the loss."""
    (fault,) = fails(rule, riser())

    assert (f"pci:{RISER_UP}", "warning", "", frozenset({RISER_UP})) == (
        fault.subject, fault.severity, fault.cause, fault.places,
    )  # fmt: skip
    assert "GPU0 and mlx5_0" in fault.summary
    assert "31.5 GB/s" in fault.summary
    assert fault.impact.startswith("50%")


def test_less_than_half_is_an_error() -> None:
    """A hop with 4 of 16 lanes."""
    (fault,) = fails(rule, riser(width=4, max_width=4))

    assert "error" == fault.severity


def test_several_pairs_over_one_hop_are_one_finding() -> None:
    """Two rails as near as each other: the hop is still one."""
    case = riser()
    nic = msgspec.structs.replace(case.topology.nics[1], role="storage")
    second = msgspec.structs.replace(case.topology.paths[0], b=nic_id(1))
    paths = [second if (p.a, p.b) == (GPU, nic_id(1)) else p for p in case.topology.paths]

    assert 1 == len(fails(rule, topology(case, paths=paths)))
    assert 1 == len(
        fails(rule, topology(case, nics=[case.topology.nics[0], nic, *case.topology.nics[2:]], paths=paths))
    )


def test_lost_lanes_of_the_hop_stand_for_it() -> None:
    """The hop is below what its own ends can do: that finding absorbs this one."""
    _, findings, _ = judge(riser(width=8, max_width=16), every_rule())

    assert ["pcie-width-downgraded"] == [finding.rule for finding in findings if finding.severity != "info"]
    assert f"pcie-path-bottleneck pci:{RISER_UP}" in findings[0].absorbs


def test_lost_speed_of_the_hop_stands_for_it() -> None:
    """The same with the speed."""
    case = relinked(riser(), RISER_UP, link(speed=8.0))
    _, findings, _ = judge(case, every_rule())

    assert ["pcie-speed-downgraded"] == [finding.rule for finding in findings if finding.severity != "info"]
    assert f"pcie-path-bottleneck pci:{RISER_UP}" in findings[0].absorbs


def test_an_idle_gpu_counts_with_what_it_can() -> None:
    """Its own slow link does not hide a slow hop, and is none."""
    idle = relinked(riser(), GPU, link(speed=2.5, quality="idle"))
    whole = relinked(server(), GPU, link(speed=2.5, quality="idle"))

    assert [f"pci:{RISER_UP}"] == [fault.subject for fault in fails(rule, idle)]
    assert [Pass(f"gpu:{GPU}")] == answers(rule, whole, f"gpu:{GPU}")


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(
            lambda c: function(c, gpu_id(1), parent=RISER_DOWN), Pass, id="two GPUs share a hop that is at its most"
        ),
        pytest.param(
            lambda c: relinked(c, RISER_UP, link(width=8, max_width=8, quality="untrusted")), Pass, id="untrusted hop"
        ),
        pytest.param(
            lambda c: relinked(c, RISER_UP, link(width=8, max_width=8, quality="unreadable")), Unknown, id="unread hop"
        ),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: models(c, GB200), NotApplicable, id="superchip"),
        pytest.param(lambda c: topology(c, paths=[]), Unknown, id="no way known"),
        pytest.param(lambda c: changed_gpu(c, 0, pci=None), Unknown, id="GPU without a place"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(riser())
    (answer,) = answers(rule, case, f"gpu:{GPU}")

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_a_farther_rail_is_not_the_way() -> None:
    """Only the nearest rails count: a slow hop on the way to a far one slows nobody."""
    case = relinked(server(), "0000:21:00.0", link(width=4, max_width=4))
    alone = topology(case, gpus=[case.topology.gpus[0]])

    assert [] == fails(rule, alone)


def test_no_rail_is_not_applicable() -> None:
    """Nothing to reach."""
    assert [NotApplicable("node", "no rail")] == list(rule.check(topology(riser(), nics=[])))


def test_no_pci_is_unknown() -> None:
    """The probe did not answer: nothing of it is clean."""
    (check,), _, _ = judge(probe(topology(server(), pci=[], gpus=[], paths=[]), "pci", "failed", "no sysfs"), [rule])

    assert "unknown" == check.state


def test_rails_that_are_not_known_are_not_absent() -> None:
    """NICs that could be rails, and nothing that says which: unknown; in a guest nothing is judged."""
    case = changed_nics(server(), role="unknown")

    assert {Unknown} == kinds(rule, case)
    assert {NotApplicable} == kinds(rule, virtual(case))


@pytest.mark.parametrize(("speed", "width", "fires"), [(32.0, 16, False), (16.0, 16, True), (32.0, 8, True)])
def test_a_hop_is_as_good_as_the_ends(speed: float, width: int, fires: bool) -> None:
    """Speed counts as lanes do."""
    case = relinked(riser(), RISER_UP, link(speed, width, max_width=width, max_speed_gt_s=speed))

    assert fires == bool(fails(rule, case))


@pytest.mark.parametrize(
    ("part", "share", "severity"),
    [
        (1, 0.99, None),  # two roundings of one bandwidth
        (1, 0.98, None),
        (1, 0.97, "warning"),
        (1, 0.936, "warning"),  # Gen 6 x8 between Gen 5 x16
        (2, 1.0, "warning"),
        (2, 0.98, "warning"),
        (2, 0.97, "error"),
    ],
)
def test_how_much_less_is_told(part: int, share: float, severity: str | None) -> None:
    """More than two ways to round explain; an error where less than half is left."""
    carried = (bandwidth(32.0, 16) or 0.0) / part * share
    slow = msgspec.structs.replace(link(width=8, max_width=8), bandwidth_gbyte_s=carried)

    assert ([severity] if severity else []) == [f.severity for f in fails(rule, relinked(riser(), RISER_UP, slow))]


def test_ports_that_face_down_are_no_hops() -> None:
    """What they say is of the wire below, where a GPU may idle; that of the next hop is looked at there."""
    case = server()
    for port in ("0000:12:00.0", "0000:12:01.0"):
        case = relinked(case, port, link(2.5))

    assert [] == fails(rule, case)
    assert [Pass(f"gpu:{GPU}")] == answers(rule, case, f"gpu:{GPU}")


@pytest.mark.parametrize("kind", [None, "NV18", "CXL"])
def test_a_way_of_another_kind_is_no_way_over_pcie(kind: str | None) -> None:
    """The rails that are reached over PCIe are as near as they are; where there is none, nothing is known."""
    case = riser()
    nearest = [
        msgspec.structs.replace(p, pcie_kind=kind) if (p.a, p.b) == (GPU, NIC) else p for p in case.topology.paths
    ]
    none = [msgspec.structs.replace(p, pcie_kind=kind) for p in case.topology.paths]

    assert [f"pci:{RISER_UP}"] == [fault.subject for fault in fails(rule, topology(case, paths=nearest))]
    assert [Unknown(f"gpu:{GPU}", "no PCIe way to a rail is known")] == answers(
        rule, topology(case, paths=none), f"gpu:{GPU}"
    )


def test_a_shared_hop_below_its_most_is_told() -> None:
    """It is not how the board was built."""
    for slow in (link(width=8, max_width=16), link(speed=8.0, width=16)):
        case = relinked(function(riser(), gpu_id(1), parent=RISER_DOWN), RISER_UP, slow)

        assert [f"pci:{RISER_UP}"] == [fault.subject for fault in fails(rule, case)]


def test_the_gpu_that_is_limited_has_no_second_answer() -> None:
    """Its hop has the finding; the other GPUs pass."""
    assert [NotApplicable(f"gpu:{GPU}", "limited by a hop that has a finding")] == answers(rule, riser(), f"gpu:{GPU}")
    assert [Pass(f"gpu:{gpu_id(1)}")] == answers(rule, riser(), f"gpu:{gpu_id(1)}")


def test_a_limit_that_was_seen_counts_where_another_hop_was_not() -> None:
    """Half of the way unread does not hide it."""
    case = relinked(riser(), "0000:11:00.0", link(quality="unreadable"))

    assert [f"pci:{RISER_UP}"] == [fault.subject for fault in fails(rule, case)]
    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"gpu:{GPU}")]


def test_a_nic_that_is_no_rail_is_not_the_nearest() -> None:
    """The way to a storage NIC beside the GPU, which has a slow riser of its own, is not judged."""
    case = server()
    up = msgspec.structs.replace(bridge(RISER_UP, "0000:12:01.0", "upstream"), link=link(width=4, max_width=4))
    down = bridge(RISER_DOWN, RISER_UP, "downstream")
    case = function(topology(case, pci=[*case.topology.pci, up, down]), NIC, parent=RISER_DOWN)
    paths = [
        msgspec.structs.replace(p, hops=[*p.hops, RISER_UP, RISER_DOWN]) if p.b == NIC else p
        for p in case.topology.paths
    ]
    case = topology(case, paths=paths)

    assert [f"pci:{RISER_UP}"] == [fault.subject for fault in fails(rule, case)]
    assert [] == fails(rule, changed_nic(case, 0, role="storage"))
