"""nccl-topo-file-stale: a file that is missing, or of another machine."""

from __future__ import annotations

import pytest

from agent.rules.nccl.config_files import nccl_topo_file_stale as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_gpu, fails, gpu_id, nic_id, probe, server, topology
from tests.agent.rules.nccl_case import JOB, SYSTEM, changed, lines, said, unread

PATH = "/opt/site/topo.xml"
OWN = [f"0x0302 {gpu_id(n)}" for n in range(4)] + [f"0x0207 {nic_id(n)}" for n in range(4)]


def with_file(devices=OWN, there=True, opened=True, scope="system"):
    case = said(server(), **{scope: {"NCCL_TOPO_FILE": PATH}})
    return changed(
        case,
        searched=["/etc/nccl.conf", PATH],
        files=[PATH] * there,
        topology_devices={PATH: list(devices)} if opened and there else {},
    )


@pytest.mark.parametrize(
    ("case", "cause", "words"),
    [
        (with_file(there=False), "missing", f"{PATH} is not there"),
        (with_file([*OWN, "0x0302 0001:00:00.0"]), "other", "names 0001:00:00.0, where nothing is"),
        (with_file([*OWN, "0x0207 0001:00:00.0"]), "other", "names 0001:00:00.0, where nothing is"),
        (with_file(OWN[1:]), "other", "leaves out GPU0"),
    ],
)
def test_a_wrong_file(case, cause: str, words: str) -> None:
    """A warning, with the line that names it."""
    (fault,) = fails(rule, case)

    assert ("node", "warning", cause) == (fault.subject, fault.severity, fault.cause)
    assert words in fault.summary
    assert PATH == fault.evidence[0].value


def test_in_a_job_it_is_an_info() -> None:
    """It may try something."""
    assert ["info"] == [fault.severity for fault in fails(rule, with_file(there=False, scope="job"))]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (with_file(), Pass),
        (with_file(OWN[4:]), Pass),
        (with_file([]), Pass),
        (changed_gpu(with_file(OWN[1:]), 0, driver_state="vfio"), Pass),
        (with_file(opened=False), Unknown),
        (changed(with_file(there=False), searched=["/etc/nccl.conf"]), Unknown),
        (probe(with_file(OWN[1:]), "pci", "failed", "x"), Unknown),
        (said(server()), NotApplicable),
        (unread(server()), Unknown),
        (topology(with_file(there=False), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """Right, not opened, not set."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_what_is_unknown_is_told_where_nothing_is_wrong() -> None:
    """Two places of the setting: a file that was not opened, and one that is right; one that is missing counts more."""
    case = with_file()
    both = said(server(), {"NCCL_TOPO_FILE": PATH}, job={"NCCL_TOPO_FILE": "/in/container.xml"})
    both = changed(both, **{k: getattr(case.software.nccl, k) for k in ("searched", "files", "topology_devices")})
    gone = changed(both, files=[])
    rows = [*lines(JOB, "job", {"NCCL_TOPO_FILE": PATH}), *lines(SYSTEM, "system", {"NCCL_TOPO_FILE": "/in/x.xml"})]

    assert [Unknown] == [type(answer) for answer in rule.check(both)]
    assert [Unknown] == [type(answer) for answer in rule.check(changed(both, settings=rows))]
    assert ["missing"] == [fault.cause for fault in fails(rule, gone)]


def test_only_what_is_wrong_is_told() -> None:
    """A foreign device, or a GPU that is missing."""
    (foreign,) = fails(rule, with_file([*OWN, "0x0302 0001:00:00.0"]))
    (lacks,) = fails(rule, with_file(OWN[1:]))

    assert "lacks" not in foreign.summary
    assert "names" not in lacks.summary


def test_a_row_without_an_address_and_a_gpu_without_a_place() -> None:
    """They say nothing."""
    assert [Pass("node")] == list(rule.check(with_file([*OWN, "0x0302"])))
    assert [Pass("node")] == list(rule.check(changed_gpu(with_file(OWN), 0, pci=None)))
