"""gdr-memlock-low."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, no_rails
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_ENOUGH_GIB = Threshold("gdr-memlock-low.gib", 4, "locked memory that a job needs at least, GiB")
_SCHEDULERS = ("slurmd.service", "pbs_mom.service", "lsfd.service")  # jobs of users inherit theirs
_RUNTIMES = ("containerd.service", "docker.service", "crio.service", "k3s.service", "rke2-agent.service")


@rule("gdr-memlock-low", "error", needs=("limits",), references=("gdr-memlock-low",), thresholds=(_ENOUGH_GIB,))
def gdr_memlock_low(case: Case) -> Iterator[Answer]:
    """Jobs may not lock the memory that RDMA needs.

    ## What it checks
    "Max locked memory" of running jobs that have an RDMA device open, and of the services that start jobs.

    ## Why it matters
    Memory that a NIC reads or writes must be locked. With the kernel's default of 8 MiB (64 KiB before 5.16)
    registering fails with ENOMEM, and the job ends or falls back to TCP, at about 10 % of the bandwidth.

    ## How it is decided
    Less than 4 GiB (threshold `gdr-memlock-low.gib`). A job that has it, without CAP_IPC_LOCK: error. A batch
    scheduler's daemon (slurmd, pbs_mom, lsfd), whose jobs inherit it: error. A container runtime: info, for its
    containers may be given CAP_IPC_LOCK or a limit of their own.

    ## What keeps it silent
    - Processes with CAP_IPC_LOCK: the limit does not bind them. The services themselves have it, and their jobs not.
    - sshd, kubelet and lines of limits.conf: PAM and the runtime decide anew what a job gets.
    - No active rail: not applicable. No service that starts jobs and no job with an RDMA device: not applicable.
    - Neither could be read: unknown.

    ## How to confirm
    `grep locked /proc/$(pidof -s slurmd)/limits`; in a job `ulimit -l`.

    ## How to fix
    `LimitMEMLOCK=infinity` in a drop-in of the service; `* - memlock unlimited` in `/etc/security/limits.d/`; for
    containers `--ulimit memlock=-1`.

    ## Source
    rdma-core, `Documentation/libibverbs.md` (locked memory); Slurm FAQ (memlock); systemd.exec(5).
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    enough = case.threshold(_ENOUGH_GIB) * (1 << 30)
    judged = {who: _severity(case, who) for who in _who(case)}
    low = [who for who, severity in judged.items() if severity and _bytes(case, who) < enough]
    for severity in ("error", "info"):
        of_kind = [who for who in low if judged[who] == severity]
        if of_kind:
            yield _fault(case, of_kind, severity)
    if low:
        return
    why = case.probe_failure("limits")
    if any(judged.values()):
        yield Pass("node")
    elif why:
        yield Unknown("node", why)
    else:
        yield NotApplicable("node", "no service that starts jobs, and no job with an RDMA device, is running")


def _who(case: Case) -> list[str]:
    return [key.removeprefix("memlock ") for key in case.software.limits if key.startswith("memlock ")]


def _severity(case: Case, who: str) -> str | None:
    """How grave a small limit is of a service or process; None where it says nothing of a job."""
    limits = case.software.limits
    if who in _SCHEDULERS:
        return "error"
    if who in _RUNTIMES:
        return "info"
    of_job = who.startswith("pid ") and limits.get(f"rdma {who}") == "yes"
    return "error" if of_job and limits.get(f"exempt {who}") == "no" else None


def _bytes(case: Case, who: str) -> float:
    value = case.software.limits[f"memlock {who}"]
    return float(value) if value.isdecimal() else float("inf")


def _fault(case: Case, who: list[str], severity: str) -> Fail:
    first = who[0]
    more = f" and {len(who) - 1} more" if len(who) > 1 else ""
    runtime = severity == "info"
    return Fail(
        subject="node",
        label="node",
        summary=f"{first}{more} may lock {_bytes(case, first) / 1024:.0f} KiB of memory",
        impact="containers that are given no CAP_IPC_LOCK cannot register memory: RDMA fails, 100 % of it."
        if runtime
        else "registering memory fails with ENOMEM: jobs end, or go over TCP at about 10 %.",
        remedy="Set LimitMEMLOCK=infinity in a drop-in of the service, and start it anew; for users, memlock unlimited "
        "in /etc/security/limits.d/.",
        evidence=tuple(
            Evidence(
                what=f"max locked memory of {each}",
                value=f"{case.software.limits[f'memlock {each}']} bytes",
                source=f"/proc/{each.split()[1]}/limits"
                if each.startswith("pid ")
                else f"systemctl show -p LimitMEMLOCK {each}",
            )
            for each in who[:8]
        ),
        severity=severity,
        cause="runtime" if runtime else "jobs",
        places=NODE,
    )
