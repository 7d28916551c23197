"""gdr-disabled-by-env: each switch where it bites, and where it does not."""

from __future__ import annotations

import pytest

from agent.model.node import Module
from agent.rules.nccl.disabled_by_env import gdr_disabled_by_env as rule
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    changed_gpus,
    changed_nics,
    changed_ports,
    fails,
    models,
    probe,
    server,
    software,
    topology,
)
from tests.agent.rules.nccl_case import JOB, said, unread
from tests.agent.rules.rows import GB200


def without_nvlinks(case):
    return changed_gpus(case, links=[])


def without_peermem(case):
    return software(case, modules=[Module(name="mlx5_core")])


@pytest.mark.parametrize(
    ("key", "value", "severity", "where"),
    [
        ("NCCL_IB_DISABLE", "1", "error", lambda c: c),
        ("NCCL_NET", "SOCKET", "error", lambda c: c),
        ("NCCL_NET_GDR_LEVEL", "loc", "error", lambda c: c),
        ("NCCL_NET_GDR_LEVEL", "0", "error", lambda c: c),
        ("NCCL_DMABUF_ENABLE", "0", "error", without_peermem),
        ("NCCL_NET_GDR_C2C", "0", "error", lambda c: models(c, GB200)),
        ("NCCL_NET_GDR_READ", "0", "warning", lambda c: c),
        ("NCCL_P2P_DISABLE", "1", "error", lambda c: c),
        ("NCCL_P2P_LEVEL", "LOC", "error", lambda c: c),
        ("NCCL_SHM_DISABLE", "1", "error", without_nvlinks),
    ],
)
def test_a_switch_that_bites(key, value, severity, where) -> None:
    """One finding that names the line; in a job one step less."""
    (fault,) = fails(rule, where(said(server(), {key: value})))

    assert ("node", severity, key) == (fault.subject, fault.severity, fault.cause)
    assert (key, value, "/etc/nccl.conf:1") == (
        fault.evidence[0].what,
        fault.evidence[0].value,
        fault.evidence[0].source,
    )
    (fault,) = fails(rule, where(said(server(), job={key: value})))
    assert {"error": "warning", "warning": "info"}[severity] == fault.severity
    assert JOB in fault.summary


@pytest.mark.parametrize(
    ("key", "value", "where"),
    [
        ("NCCL_IB_DISABLE", "0", lambda c: c),
        ("NCCL_IB_DISABLE", "", lambda c: c),
        ("NCCL_IB_DISABLE", "1", lambda c: changed_nics(c, role="storage")),
        ("NCCL_IB_DISABLE", "1", lambda c: changed_nics(c, driver="efa")),
        ("NCCL_IB_DISABLE", "1", lambda c: changed_ports(c, state="DOWN")),
        ("NCCL_NET", "IB", lambda c: c),
        ("NCCL_NET", "Socket", lambda c: changed_nics(c, role="storage")),
        ("NCCL_NET_GDR_LEVEL", "SYS", lambda c: c),
        ("NCCL_NET_GDR_LEVEL", "LOC", lambda c: changed_nics(c, role="storage")),
        ("NCCL_DMABUF_ENABLE", "0", lambda c: c),
        ("NCCL_DMABUF_ENABLE", "0", lambda c: software(without_peermem(c), peer_memory_clients=["nv_mem"])),
        ("NCCL_DMABUF_ENABLE", "0", lambda c: probe(without_peermem(c), "modules", "failed", "x")),
        ("NCCL_DMABUF_ENABLE", "1", without_peermem),
        ("NCCL_NET_GDR_C2C", "0", lambda c: c),
        ("NCCL_NET_GDR_READ", "0", lambda c: changed_gpus(c, compute_capability="7.0")),
        ("NCCL_NET_GDR_READ", "0", lambda c: changed_gpus(c, compute_capability=None)),
        ("NCCL_P2P_DISABLE", "1", without_nvlinks),
        ("NCCL_P2P_DISABLE", "0", lambda c: c),
        ("NCCL_P2P_LEVEL", "NVL", lambda c: c),
        ("NCCL_SHM_DISABLE", "1", lambda c: c),
    ],
)
def test_a_switch_that_does_not_bite(key, value, where) -> None:
    """Nothing of this node is switched off."""
    assert [Pass("node")] == list(rule.check(where(said(server(), {key: value}))))


def test_one_gpu_needs_no_peer_and_no_shared_memory() -> None:
    """There is nobody to talk to."""
    case = said(server(1), {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"})

    assert [] == fails(rule, case)


def test_what_is_not_known() -> None:
    """Files that were not read are no pass; a fault that was seen stands all the same."""
    assert [Unknown] == [type(answer) for answer in rule.check(unread(server()))]
    assert [NotApplicable] == [type(answer) for answer in rule.check(topology(server(), gpus=[]))]
    assert [Fail] == [type(answer) for answer in rule.check(said(server(), user={"NCCL_IB_DISABLE": "1"}))]
