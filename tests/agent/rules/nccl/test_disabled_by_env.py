"""gdr-disabled-by-env: each switch where it bites, and where it does not."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import Module
from agent.rules.nccl.transports import gdr_disabled_by_env as rule
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
        ("NCCL_NET_GDR_READ", "0", lambda c: changed_gpus(c, compute_capability="N/A")),
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


def some_gpu(case, n: int, **changes):
    gpus = [msgspec.structs.replace(each, **changes) if k == n else each for k, each in enumerate(case.topology.gpus)]
    return topology(case, gpus=gpus)


@pytest.mark.parametrize(("capability", "bites"), [("7.5", False), ("8.0", True), ("8.6", True), ("9.0", True)])
def test_which_gpus_send_straight_out_of_memory(capability: str, bites: bool) -> None:
    """Ampere and later; all of them."""
    case = said(server(), {"NCCL_NET_GDR_READ": "0"})

    assert bites == bool(fails(rule, changed_gpus(case, compute_capability=capability)))
    assert [] == fails(rule, some_gpu(case, 0, compute_capability="7.5"))


def test_two_gpus_are_enough_to_talk() -> None:
    """By NVLink, or by shared memory."""
    case = said(server(2), {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"})

    assert ["NCCL_P2P_DISABLE"] == [fault.cause for fault in fails(rule, case)]
    assert ["NCCL_SHM_DISABLE"] == [fault.cause for fault in fails(rule, without_nvlinks(case))]


def test_links_that_are_down_are_no_way() -> None:
    """The switch may be there because of them."""
    down = [msgspec.structs.replace(link, state="inactive") for link in server().topology.gpus[0].links]

    assert [] == fails(rule, changed_gpus(said(server(), {"NCCL_P2P_DISABLE": "1"}), links=down))


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("NCCL_DMABUF_ENABLE", without_peermem),
        ("NCCL_NET_GDR_C2C", lambda c: models(c, GB200)),
        ("NCCL_NET_GDR_READ", lambda c: c),
    ],
)
def test_a_node_without_rails_loses_nothing(key: str, where) -> None:
    """There is no NIC that would read GPU memory."""
    assert [Pass("node")] == list(rule.check(changed_nics(where(said(server(), {key: "0"})), role="storage")))
