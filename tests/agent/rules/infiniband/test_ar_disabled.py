"""ib-ar-disabled: adaptive routing switched off for NCCL."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.subnet import ib_ar_disabled as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_ports, fails, server, topology
from tests.agent.rules.nccl_case import said, unread

OFF = {"NCCL_IB_ADAPTIVE_ROUTING": "0"}


@pytest.mark.parametrize("where", ["system", "user", "job"])
def test_switched_off_is_an_info(where: str) -> None:
    """Wherever it is set."""
    (fault,) = fails(rule, said(server(), **{where: OFF}))

    assert ("node", "info") == (fault.subject, rule.severity)
    assert "0" == fault.evidence[0].value


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (said(server()), Pass),
        (said(server(), {"NCCL_IB_ADAPTIVE_ROUTING": "1"}), Pass),
        (said(server(), {"NCCL_IB_ADAPTIVE_ROUTING": ""}), Pass),
        (unread(server()), Unknown),
        (said(server(ethernet=True), OFF), NotApplicable),
        (changed_ports(said(server(), OFF), state="DOWN"), NotApplicable),
        (topology(said(server(), OFF), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """On, no InfiniBand, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
