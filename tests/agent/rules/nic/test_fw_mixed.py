"""nic-fw-mixed: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.engine import judge
from agent.rules.nic.adapters import nic_fw_mixed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_nics,
    fails,
    function,
    kinds,
    nic_id,
    probe,
    server,
    topology,
    virtual,
)

NIC = nic_id(1)
SUBJECT = f"pci:{NIC}"


def odd():
    return changed_nic(server(), 1, firmware="28.39.1002")


def test_the_odd_one_is_named_with_what_most_run() -> None:
    """A warning on that NIC."""
    (fault,) = fails(rule, odd())

    assert (SUBJECT, "mlx5_1", "warning", "MT_0000000838") == (
        fault.subject, fault.label, fault.severity or rule.severity, fault.cause,
    )  # fmt: skip
    assert "most run 28.43.2026, mlx5_1 28.39.1002" in fault.summary
    assert fault.impact.startswith("1 of 4 rails")
    assert "/sys/class/infiniband/mlx5_1/fw_ver" == fault.evidence[1].source
    assert [Pass(f"pci:{nic_id(n)}") for n in (0, 2, 3)] == [a for a in rule.check(odd()) if isinstance(a, Pass)]


def test_several_odd_ones_and_no_majority_are_about_the_node() -> None:
    """One finding for the board type."""
    several = changed_nic(changed_nic(server(8), 1, firmware="28.39.1002"), 2, firmware="28.38.1900")
    (two,) = fails(rule, several)
    (half,) = fails(rule, changed_nic(odd(), 0, firmware="28.39.1002"))

    assert ("node", "node") == (two.subject, half.subject)
    assert "no version has a majority" in half.summary


def test_each_board_type_is_a_finding_of_its_own() -> None:
    """The cause tells them apart."""
    case = odd()
    for n in (2, 3):
        case = changed_nic(case, n, board_id="MT_OTHER")
    case = changed_nic(case, 3, firmware="1.0")

    assert {"MT_0000000838", "MT_OTHER"} == {fault.cause for fault in fails(rule, case)}


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_nic(c, 1, board_id="MT_OTHER"), NotApplicable, id="another board"),
        pytest.param(lambda c: changed_nic(c, 1, board_id=None), Unknown, id="board not read"),
        pytest.param(lambda c: changed_nic(c, 1, firmware=None), Unknown, id="firmware not read"),
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), NotApplicable, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(odd())
    (answer,) = answers(rule, case, SUBJECT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


@pytest.mark.parametrize("role", ["storage", "management", "unused", "unknown"])
def test_only_rails_are_compared(role: str) -> None:
    """Others have no collective to slow."""
    case = changed_nic(odd(), 1, role=role)

    assert [] == answers(rule, case, SUBJECT)
    assert [] == fails(rule, case)


def test_no_rail_is_not_applicable() -> None:
    """And unknown where nobody looked."""
    bare = probe(changed_nics(server(1), role="unused"), "rdma", "absent", "no class")

    assert {NotApplicable} == kinds(rule, bare)
    seen = probe(changed_nics(server(1), role="unused"), "pci", "failed", "broken")
    assert {NotApplicable} == kinds(rule, seen)  # RDMA devices were all seen
    assert "unknown" == judge(probe(topology(bare, nics=[]), "pci", "failed", "broken"), [rule])[0][0].state


@pytest.mark.parametrize("healthy", [server, odd])
def test_rails_that_are_not_known_are_unknown(healthy) -> None:
    """NICs that may be rails, and nothing shows which: unknown with the reason, not "no rail"."""
    (answer,) = rule.check(changed_nics(healthy(), role="unknown", role_evidence=["two models are as near"]))

    assert Unknown("node", "which NICs are rails is not known: two models are as near") == answer


def test_where_some_rails_are_known_others_do_not_matter() -> None:
    """The known ones are compared."""
    case = changed_nic(server(), 3, role="unknown", role_evidence=["two models are as near"])

    assert {Pass} == kinds(rule, case)
    assert [SUBJECT] == [fault.subject for fault in fails(rule, changed_nic(case, 1, firmware="28.39.1002"))]


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(virtual, id="virtual machine"),
        pytest.param(lambda c: changed_nics(c, virtual_function=True), id="virtual functions"),
        pytest.param(lambda c: changed_nics(c, state="vfio"), id="handed to guests"),
        pytest.param(lambda c: topology(c, gpus=[]), id="no GPU"),
    ],
)
def test_where_no_rail_is_judged_nobody_asks_which_they_are(circumstance) -> None:
    """The provider's firmware; or NICs that no GPU could use: not applicable."""
    assert {NotApplicable} == kinds(rule, circumstance(changed_nics(odd(), role="unknown")))
