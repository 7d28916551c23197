"""gdr-efa-stack: EFA that NCCL does not use."""

from __future__ import annotations

import pytest

from agent.rules.nccl.prerequisites import gdr_efa_stack as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nics, fails, probe, server, topology
from tests.agent.rules.nccl_case import JOB, changed, jobs_hidden, lines, said, unread, using

NCCL, PLUGIN, FABRIC = "/x/libnccl.so.2.21.5", "/x/libnccl-net-ofi.so", "/x/libfabric.so.1"


def efa(case=None):
    return changed_nics(case or server(), driver="efa")


@pytest.mark.parametrize("value", ["tcp", "sockets", "UDP", "tcp;ofi_rxm"])
def test_a_provider_that_is_not_efa(value: str) -> None:
    """Error in a file, warning in a job."""
    (fault,) = fails(rule, said(efa(), {"FI_PROVIDER": value}))
    assert ("node", "error", "provider") == (fault.subject, fault.severity, fault.cause)
    assert ["warning"] == [f.severity for f in fails(rule, said(efa(), job={"FI_PROVIDER": value}))]


def test_jobs_without_a_plugin() -> None:
    """NCCL is mapped, and nothing that knows EFA."""
    (fault,) = fails(rule, using(efa(), NCCL))

    assert ("plugin", "medium", None) == (fault.cause, fault.confidence, fault.severity)
    assert NCCL == fault.evidence[0].value


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (using(efa(), NCCL, PLUGIN), Pass),
        (using(efa(), NCCL, FABRIC), Pass),
        (said(efa(), {"FI_PROVIDER": "efa"}), Pass),
        (efa(said(server())), Pass),
        (jobs_hidden(efa()), Unknown),
        (unread(efa()), Unknown),
        (said(server(), {"FI_PROVIDER": "tcp"}), NotApplicable),
        (using(server(), NCCL), NotApplicable),
        (probe(topology(server(), nics=[]), "pci", "failed", "x"), Unknown),
        (probe(server(), "pci", "failed", "x"), NotApplicable),
        (topology(said(efa(), {"FI_PROVIDER": "tcp"}), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """No EFA, a plugin, no job, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_a_file_unread_beside_a_fault_that_was_seen() -> None:
    """The fault stands."""
    case = changed(unread(efa()), settings=lines(JOB, "job", {"FI_PROVIDER": "tcp"}))

    assert ["provider"] == [fault.cause for fault in fails(rule, case)]
