"""gdr-memlock-low: what jobs may lock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.nccl.prerequisites import gdr_memlock_low as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_ports, fails, probe, server, software, topology

GIB = 1 << 30
JOB = "pid 4711 (python3)"


def service(name: str, value: str):
    return software(server(), limits={f"memlock {name}": value})


def job(value: str = "8388608", exempt: str | None = "no", rdma: str | None = "yes"):
    rows = {f"memlock {JOB}": value, f"exempt {JOB}": exempt, f"rdma {JOB}": rdma}
    return software(server(), limits={key: each for key, each in rows.items() if each})


@pytest.mark.parametrize(
    ("case", "severity"),
    [
        (service("slurmd.service", "8388608"), "error"),
        (service("pbs_mom.service", "65536"), "error"),
        (service("slurmd.service", str(4 * GIB - 1)), "error"),
        (service("slurmd.service", str(4 * GIB)), None),
        (service("slurmd.service", "unlimited"), None),
        (service("containerd.service", "8388608"), "info"),
        (service("containerd.service", "unlimited"), None),
        (job(), "error"),
        (job("unlimited"), None),
    ],
)
def test_a_limit(case, severity: str | None) -> None:
    """Of what starts jobs, and of jobs."""
    assert ([severity] if severity else []) == [fault.severity for fault in fails(rule, case)]
    assert severity is not None or [Pass("node")] == list(rule.check(case))


def test_what_is_told() -> None:
    """The first by name, the others as evidence; runtimes are a finding of their own."""
    case = software(
        server(),
        limits={
            "memlock lsfd.service": "65536",
            "memlock slurmd.service": "8388608",
            "memlock docker.service": "65536",
        },
    )
    jobs, runtimes = fails(rule, case)

    assert "lsfd.service and 1 more may lock 64 KiB of memory" == jobs.summary
    assert ("jobs", "runtime") == (jobs.cause, runtimes.cause)
    assert "8388608 bytes" == jobs.evidence[1].value
    assert "/proc/4711/limits" == fails(rule, job())[0].evidence[0].source


def test_the_limit_is_the_operators() -> None:
    """`gdr-memlock-low.gib`."""
    case = service("slurmd.service", "8388608")

    assert [] == fails(rule, replace(case, settings=Settings(thresholds={"gdr-memlock-low.gib": 0.001})))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (job(exempt="yes"), NotApplicable),
        (job(exempt=None), NotApplicable),
        (job(rdma=None), NotApplicable),
        (service("sshd.service", "65536"), NotApplicable),
        (service("kubelet.service", "65536"), NotApplicable),
        (service("/etc/security/limits.conf:1 * soft", "65536"), NotApplicable),
        (software(server(), limits={}), NotApplicable),
        (probe(software(server(), limits={}), "limits", "failed", "x"), Unknown),
        (changed_ports(service("slurmd.service", "65536"), state="DOWN"), NotApplicable),
        (topology(service("slurmd.service", "65536"), gpus=[]), NotApplicable),
    ],
)
def test_silent(case, kind) -> None:
    """What says nothing of a job's limit."""
    assert [kind] == [type(answer) for answer in rule.check(case)]


def test_only_locked_memory_is_a_limit_here() -> None:
    """Other rows of the same service or process are none of them."""
    case = software(server(), limits={"nofile slurmd.service": "1024", "memlock slurmd.service": "unlimited"})

    assert [Pass("node")] == list(rule.check(case))
    nameless = software(server(), limits={"slurmd.service": "65536"})
    assert [NotApplicable] == [type(answer) for answer in rule.check(nameless)]


def test_a_service_with_the_marks_of_a_job_is_none() -> None:
    """Only processes are jobs."""
    rows = {"memlock sshd.service": "65536", "exempt sshd.service": "no", "rdma sshd.service": "yes"}

    assert [NotApplicable] == [type(answer) for answer in rule.check(software(server(), limits=rows))]


def test_one_is_not_more() -> None:
    """The others are counted."""
    assert "slurmd.service may lock 64 KiB of memory" == fails(rule, service("slurmd.service", "65536"))[0].summary
