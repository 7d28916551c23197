"""ib-pkey-limited: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.infiniband.subnet import ib_pkey_limited as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    kinds,
    nccl,
    nic_id,
    probe,
    server,
    software,
)

NIC = nic_id(1)
PORT = f"port:{NIC}/1"


def keys(*said: str):
    return changed_port(server(), 1, pkeys=list(said))


def unread(case):
    files = msgspec.structs.replace(case.software.nccl, unread=["/etc/nccl.conf: EACCES"])
    return probe(software(case, nccl=files), "nccl", "denied", "EACCES")


def test_a_limited_member_is_a_warning() -> None:
    """The keys are the evidence; a full one is named where there is one."""
    (fault,) = fails(rule, keys("0x7fff"))
    (other,) = fails(rule, keys("0x0012", "0x7fff", "0x8034"))

    assert (PORT, "warning") == (fault.subject, fault.severity)
    assert "partition key 0x7fff (index 0) is that of a limited member" == fault.summary
    assert other.summary.endswith("; a full one is 0x8034 at index 2")
    assert ["0x0012, 0x7fff, 0x8034"] == [row.value for row in other.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.places


def test_the_same_on_every_rail_is_one_finding() -> None:
    """The subnet manager's partition."""
    assert ["node"] == [fault.subject for fault in fails(rule, changed_ports(server(), pkeys=["0x7fff"]))]


def test_the_key_that_nccl_uses_counts() -> None:
    """By its index; beyond the table is another rule's."""
    case = changed_ports(server(), pkeys=["0x7fff", "0x8034"])

    assert [] == fails(rule, software(case, nccl=nccl(NCCL_IB_PKEY="1")))
    assert ["node"] == [fault.subject for fault in fails(rule, software(case, nccl=nccl(NCCL_IB_PKEY="0")))]
    assert ["node"] == [fault.subject for fault in fails(rule, software(case, nccl=nccl(NCCL_IB_PKEY="x")))]
    for beyond in ("2", "-1"):
        assert {NotApplicable} == kinds(rule, software(case, nccl=nccl(NCCL_IB_PKEY=beyond)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        (lambda c: changed_port(c, 1, pkeys=["0x8012", "0x7fff"]), Pass),
        (lambda c: changed_port(c, 1, pkeys=[]), Unknown),
        (lambda c: changed_port(c, 1, pkeys=["what"]), Unknown),
        (lambda c: changed_port(c, 1, state="INIT"), NotApplicable),
        (lambda c: changed_nic(c, 1, role="storage"), NotApplicable),
        (lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable),
        (unread, Unknown),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(keys("0x7fff"))
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_a_setting_that_is_known_needs_no_other_file() -> None:
    """It names the key; one that NCCL ignores names none, and a file that was not read may."""
    case = changed_ports(server(), pkeys=["0x7fff", "0x7fff"])

    assert ["node"] == [fault.subject for fault in fails(rule, unread(software(case, nccl=nccl(NCCL_IB_PKEY="1"))))]
    assert {Unknown} == kinds(rule, unread(software(case, nccl=nccl(NCCL_IB_PKEY=""))))


def test_a_full_member_passes_whatever_was_not_read() -> None:
    """Key 0 is a full one: no other is looked for."""
    assert Pass(PORT) in list(rule.check(unread(server())))
