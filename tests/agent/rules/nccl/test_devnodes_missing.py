"""gdr-devnodes-missing: rails without a device node."""

from __future__ import annotations

import pytest

from agent.rules.nccl.prerequisites import gdr_devnodes_missing as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nics, changed_ports, fails, node, server, software, topology


def nodes(*names: str):
    return software(server(), device_nodes=list(names))


@pytest.mark.parametrize(("count", "cause"), [(0, "none"), (3, "some"), (4, None), (5, None)])
def test_nodes_for_rails(count: int, cause: str | None) -> None:
    """Four rails."""
    case = nodes("nvidia0", "infiniband/rdma_cm", *(f"infiniband/uverbs{n}" for n in range(count)))

    assert ([("node", "error", cause)] if cause else []) == [
        (f.subject, f.severity, f.cause) for f in fails(rule, case)
    ]
    assert cause or [Pass("node")] == list(rule.check(case))


def test_in_a_container_it_is_a_warning() -> None:
    """It may need no rail."""
    (fault,) = fails(rule, node(nodes("nvidia0"), container="docker"))

    assert "warning" == fault.severity
    assert "0 device nodes (/dev/infiniband/uverbs*) for 4 RDMA rails" == fault.summary


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (software(server(), device_nodes=None), Unknown),
        (changed_ports(nodes(), state="DOWN"), NotApplicable),
        (changed_nics(nodes(), role="storage"), NotApplicable),
        (topology(nodes(), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """No rail, or nobody looked."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
