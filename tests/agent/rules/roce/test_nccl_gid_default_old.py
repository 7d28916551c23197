"""roce-nccl-gid-default-old: a running NCCL that takes GID 0."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.roce.addresses import roce_nccl_gid_default_old as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nics, changed_port, fails, probe, server, topology
from tests.agent.rules.nccl_case import changed, jobs_hidden, lines, unread, using

LIBRARY = "/usr/lib/libnccl.so.2.18.3"


def old(version: str | None = "2.18.3", ethernet: bool = True):
    return using(server(ethernet=ethernet), LIBRARY, version=version)


def with_gid_0(case, **changes):
    """The same with the first GID of every rail changed."""
    for n, nic in enumerate(case.topology.nics):
        first, *others = nic.ports[0].gids
        case = changed_port(case, n, gids=[msgspec.structs.replace(first, **changes), *others])
    return case


@pytest.mark.parametrize(
    ("version", "fires"), [("2.18.3", True), ("2.20.5", True), ("2.21.5", False), ("2.21", False), ("2.9.9", True)]
)
def test_the_version_decides(version: str, fires: bool) -> None:
    """Below 2.21; versions as numbers."""
    faults = fails(rule, old(version))

    assert ["node"] * fires == [fault.subject for fault in faults]
    assert fires or [Pass("node")] == list(rule.check(old(version)))


def test_what_is_told() -> None:
    """A warning with the library and GID 0."""
    (fault,) = fails(rule, old())

    assert "warning" == rule.severity
    assert f"{LIBRARY} (2.18.3)" == fault.evidence[0].value
    assert "GID 0 of mlx5_0/1 (eth0)" == fault.evidence[1].what


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (changed(old(), settings=lines("/etc/nccl.conf", "system", {"NCCL_IB_GID_INDEX": "3"})), Pass),
        (with_gid_0(old(), type="RoCE v2"), Pass),
        (with_gid_0(old(), type=None), Unknown),
        (with_gid_0(old(), index=9), Unknown),
        (old(None), Unknown),
        (unread(old()), Unknown),
        (jobs_hidden(old()), Unknown),
        (changed(old(), jobs_unread=1), Unknown),
        (
            changed(old(), libraries=[type(r)(path=r.path, version=r.version) for r in old().software.nccl.libraries]),
            NotApplicable,
        ),
        (old(ethernet=False), NotApplicable),
        (changed_nics(old(), role="storage"), NotApplicable),
        (probe(changed_nics(old(), ports=[]), "rdma", "failed", "x"), Unknown),
        (probe(topology(old(), nics=[]), "rdma", "failed", "x"), NotApplicable),
        (changed_port(with_gid_0(old(), type="RoCE v2"), 1, gids_known=False), Unknown),
    ],
)
def test_silent(case, kind) -> None:
    """Set, new, installed only, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
