"""roce-gid-index-wrong: an index that is empty, or of RoCE v1."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_gid_index_wrong as rule
from agent.rules.roce.addresses import roce_nccl_gid_default_old
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_nic, changed_port, fails, nic_id, probe, server
from tests.agent.rules.nccl_case import said, unread

KEY = "NCCL_IB_GID_INDEX"
PORT = f"port:{nic_id(1)}/1"


def roce(index: str = "3", **where):
    return said(server(ethernet=True), **(where or {"system": {KEY: index}}))


def gids(n: int, keep):
    """Rail n with only some of its GIDs."""
    case = roce()
    return changed_port(case, n, gids=[gid for gid in case.topology.nics[n].ports[0].gids if keep(gid)])


@pytest.mark.parametrize(
    ("index", "cause"),
    [("0", "v1"), ("1", None), ("2", "v1"), ("3", None), ("4", "empty"), ("x", "v1"), ("255", "empty")],
)
def test_the_index_of_every_rail(index: str, cause: str | None) -> None:
    """Alike on all: one finding for the node."""
    assert ([("node", "error", cause)] if cause else []) == [
        (fault.subject, fault.severity, fault.cause) for fault in fails(rule, roce(index))
    ]


def test_one_rail_without_an_address() -> None:
    """Its index 3 is empty: the finding is of the port, and names what would do."""
    (fault,) = fails(rule, gids(1, lambda gid: gid.index < 2))

    assert (PORT, "error", "empty") == (fault.subject, fault.severity, fault.cause)
    assert "index 3 is empty here" in fault.summary
    assert "here 1" in fault.remedy
    assert nic_id(1) in fault.places


def test_in_a_job_it_is_a_warning() -> None:
    """Its table may be another one."""
    assert ["warning"] == [fault.severity for fault in fails(rule, roce(job={KEY: "2"}))]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (changed_port(roce("2"), 1, gids_known=False), Unknown),
        (changed_port(roce("2"), 1, gids=[]), Unknown),
        (changed_nic(roce("2"), 1, state="other_namespace"), Unknown),
        (changed_nic(roce("2"), 1, role="storage"), NotApplicable),
        (changed_nic(roce("2"), 1, driver="efa"), NotApplicable),
        (changed_port(roce("2"), 1, state="DOWN"), NotApplicable),
        (roce("3"), Pass),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """The firing case and this circumstance."""
    assert [kind] == [type(answer) for answer in answers(rule, case, PORT)]


def test_types_that_could_not_be_read() -> None:
    """Nobody knows which RoCE it is."""
    case = roce("2")
    rows = [msgspec.structs.replace(gid, type=None) for gid in case.topology.nics[1].ports[0].gids]

    assert [Unknown] == [type(answer) for answer in answers(rule, changed_port(case, 1, gids=rows), PORT)]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (said(server(ethernet=True)), NotApplicable),
        (roce("-1"), NotApplicable),
        (roce(""), NotApplicable),
        (unread(server(ethernet=True)), Unknown),
        (probe(said(server(ethernet=True)), "nccl", "failed", "x"), Unknown),
        (said(server(), {KEY: "2"}), NotApplicable),
    ],
)
def test_not_set_or_no_roce(case, kind) -> None:
    """One answer for the node."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_it_stands_for_the_old_default() -> None:
    """The map says so."""
    assert ("roce-nccl-gid-default-old",) == rule.absorbs
    assert roce_nccl_gid_default_old.name in rule.absorbs
    assert judge(roce("2"), [rule])[2].verdict == "error"


def test_of_several_values_one_that_is_wrong_is_enough() -> None:
    """A job took a good one; all others get that of the file."""
    (fault,) = fails(rule, roce(job={KEY: "3"}, system={KEY: "2"}))

    assert ("node", "error", "v1") == (fault.subject, fault.severity, fault.cause)
