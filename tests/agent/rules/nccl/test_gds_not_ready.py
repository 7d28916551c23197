"""gdr-gds-not-ready: cuFile without nvidia_fs."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import Module
from agent.rules.nccl.prerequisites import gdr_gds_not_ready as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, node, probe, server, software, topology
from tests.agent.rules.nccl_case import jobs_hidden, using

CUFILE = "/usr/local/cuda/lib64/libcufile.so.1.11.1"


def driver(case, is_open):
    return software(case, driver=msgspec.structs.replace(case.software.driver, open=is_open))


TORCH = "/opt/torch/lib/libtorch_cuda.so"
FIRING = driver(using(server(), CUFILE), False)


@pytest.mark.parametrize("case", [FIRING, node(using(server(), CUFILE), kernel="6.1.0"), node(FIRING, kernel=None)])
def test_cufile_in_compatibility_mode(case) -> None:
    """An info."""
    (fault,) = fails(rule, case)

    assert ("node", "info") == (fault.subject, rule.severity)
    assert CUFILE == fault.evidence[0].value


def test_cufile_of_one_process_more_than_pytorch_s() -> None:
    """Somebody else uses it."""
    assert 1 == len(fails(rule, driver(using(server(), CUFILE, CUFILE, TORCH), False)))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (software(FIRING, modules=[Module(name="nvidia_fs")]), Pass),
        (driver(FIRING, True), Unknown),
        (driver(FIRING, None), Unknown),
        (node(driver(FIRING, True), kernel="6.2.0"), Unknown),
        (node(driver(FIRING, True), kernel=None), Unknown),
        (probe(FIRING, "modules", "failed", "x"), Unknown),
        (driver(server(), False), NotApplicable),
        (jobs_hidden(driver(server(), False)), Unknown),
        (topology(FIRING, gpus=[]), NotApplicable),
        (driver(using(server(), CUFILE, TORCH), False), Unknown),
    ],
)
def test_silent(case, kind) -> None:
    """Loaded, perhaps replaced, not used, not known."""
    assert [kind] == [type(answer) for answer in rule.check(case)]
