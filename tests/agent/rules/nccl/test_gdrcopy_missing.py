"""gdr-gdrcopy-missing: jobs that use GDRCopy without its driver."""

from __future__ import annotations

import pytest

from agent.rules.nccl.prerequisites import gdr_gdrcopy_missing as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, server, software, topology
from tests.agent.rules.nccl_case import changed, jobs_hidden, said, using

NVSHMEM = "/usr/lib/nvshmem_transport_ibrc.so.3.2.5"


def bare(case):
    return software(case, device_nodes=["nvidia0"])


@pytest.mark.parametrize(
    "case",
    [
        using(server(), NVSHMEM),
        using(server(), "/usr/lib/libgdrapi.so.2.4"),
        said(server(), {"NCCL_GDRCOPY_ENABLE": "1"}),
    ],
)
def test_a_user_without_the_driver(case) -> None:
    """An info; with the driver none."""
    (fault,) = fails(rule, bare(case))

    assert ("node", "info") == (fault.subject, rule.severity)
    assert fault.evidence[-1].what == "gdrdrv"
    assert [Pass("node")] == list(rule.check(case))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (bare(server()), NotApplicable),
        (bare(using(server(), "/usr/lib/libnccl.so.2.21.5")), NotApplicable),
        (
            bare(using(server(), "/opt/torch/nvidia/nvshmem/lib/libnvshmem_host.so.3")),
            NotApplicable,
        ),  # linked, not used
        (bare(said(server(), {"NCCL_GDRCOPY_ENABLE": "0"})), NotApplicable),
        (bare(jobs_hidden(server())), Unknown),
        (software(using(server(), NVSHMEM), device_nodes=None), Unknown),
        (topology(bare(using(server(), NVSHMEM)), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """Nobody uses it, or it is not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_what_is_only_installed_is_not_used() -> None:
    """A library that no job has mapped."""
    case = using(server(), NVSHMEM)
    helpers = [type(row)(path=row.path) for row in case.software.nccl.helpers]

    assert [] == fails(rule, bare(changed(case, helpers=helpers)))
