"""gdr-ibgda-regkey: the driver is not set up for GPUs that drive the NIC."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.nccl.prerequisites import gdr_ibgda_regkey as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, server, software, topology
from tests.agent.rules.nccl_case import JOB, changed, jobs_hidden, lines, using

NVSHMEM = "/usr/lib/libnvshmem_host.so.3.2.5"


def asking(version="550.90.07", words="", **environ: str):
    environ = {"NVSHMEM_IB_ENABLE_IBGDA": "1", **environ}
    case = changed(using(server(), NVSHMEM), settings=lines(JOB, "job", environ))
    parameters = {"RegistryDwords": words} if words is not None else {}
    return software(case, driver=msgspec.structs.replace(case.software.driver, version=version, parameters=parameters))


@pytest.mark.parametrize(
    "case",
    [
        asking(),
        asking("569.99"),
        asking(words="RmX=1;"),
        asking(NVSHMEM_IB_ENABLE_IBGDA="true"),
        asking(NVSHMEM_IBGDA_NIC_HANDLER="gpu"),
    ],
)
def test_it_lacks_the_key(case) -> None:
    """An info with the driver's words."""
    (fault,) = fails(rule, case)

    assert ("node", "info") == (fault.subject, rule.severity)
    assert "RegistryDwords" == fault.evidence[-1].what


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (asking(words="PeerMappingOverride=1;"), Pass),
        (asking(NVSHMEM_IBGDA_NIC_HANDLER="cpu"), Pass),
        (asking("570.124.06"), NotApplicable),
        (asking(NVSHMEM_IB_ENABLE_IBGDA="0"), NotApplicable),
        (changed(asking(), helpers=[]), NotApplicable),
        (asking(words=None), Unknown),
        (asking(None, words=None), Unknown),
        (jobs_hidden(server()), Unknown),
        (topology(asking(), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """Set up, not needed, not asked for, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
