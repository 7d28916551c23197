"""ib-sharp-not-ready: SHARP asked for, and not to be had."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.subnet import ib_sharp_not_ready as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_ports, fails, server, topology
from tests.agent.rules.nccl_case import changed, jobs_hidden, lines, said, unread, using

NCCL, PLUGIN = "/x/libnccl.so.2.21.5", "/x/libnccl-net.so"
ASKED = lines("/etc/nccl.conf", "system", {"NCCL_COLLNET_ENABLE": "1"})


def asked(case=None):
    return changed(case or said(server()), settings=ASKED)


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        (said(server(), {"NCCL_COLLNET_ENABLE": "1", "NCCL_IBEXT_DISABLE": "1"}), "switched off"),
        (asked(using(server(), NCCL)), "no plugin"),
    ],
)
def test_something_is_missing(case, cause: str) -> None:
    """An info."""
    assert [("node", cause)] == [(fault.subject, fault.cause) for fault in fails(rule, case)]
    assert "info" == rule.severity


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (asked(), Pass),
        (asked(using(server(), NCCL, PLUGIN)), Pass),
        (asked(jobs_hidden(server())), Unknown),
        (said(server()), NotApplicable),
        (said(server(), {"NCCL_COLLNET_ENABLE": "0", "NCCL_IBEXT_DISABLE": "1"}), NotApplicable),
        (said(server(), {"NCCL_COLLNET_ENABLE": "1", "NCCL_IBEXT_DISABLE": "0"}), Pass),
        (unread(server()), Unknown),
        (asked(using(server(ethernet=True), NCCL)), NotApplicable),
        (changed_ports(asked(using(server(), NCCL)), state="DOWN"), NotApplicable),
        (topology(asked(using(server(), NCCL)), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """Ready, not asked for, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
