"""probe-hung."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, Pass, rule

_GPU_DRIVER = frozenset({"nvml", "nvidia_smi"})


@rule("probe-hung", "error", needs=(), references=("CONTRACT-5",))
def probe_hung(case: Case) -> Iterator[Answer]:
    """A driver does not answer, and the process that asked it cannot be killed.

    ## What it checks
    Every probe that ran: whether its process had to be left behind, in this run or by an earlier one that it still
    blocks.

    ## Why it matters
    A process in state D waits in the kernel and takes no signal. What hangs the probe hangs every job that uses the
    same driver, and usually only a reboot, 1 for the whole node, ends it.

    ## How it is decided
    Each probe of a live host runs in a child. One that is over its bound gets TERM, then KILL; if it is still there,
    it hangs. It keeps a lock, by which the next run knows it and says since when. The GPU driver: critical. Any other:
    error.

    ## What keeps it silent
    - A probe that was slow and could be ended is timed_out, and no finding: rules that needed it are unknown.
    - Recorded sources are read without children: only what the capture says of its own run counts.

    ## How to confirm
    `ps -o pid,stat,wchan:32,lstart,cmd -C fabricscope` and `dmesg | grep -A 20 'blocked for more than'`

    ## How to fix
    Drain the node. Look in the kernel log for Xid lines and hung tasks of that driver, then reboot or power cycle it.

    ## Source
    proc(5), process states; measured with a frozen file system, docs/decisions/0002.
    """
    for run in case.probes.values():
        if not run.hung:
            yield Pass(f"probe:{run.name}")
            continue
        yield Fail(
            subject="node",
            label=f"probe {run.name}",
            summary=f"the {run.name} probe hangs in the kernel and cannot be killed",
            impact="Jobs that use the same driver hang as well; 1 reboot of the node is the usual end of it.",
            remedy="Drain the node, look for Xid lines and hung tasks in the kernel log, then reboot it.",
            evidence=(Evidence(what="its process", value=run.reason or "no answer", source="ps -o stat,wchan,lstart"),),
            severity="critical" if run.name in _GPU_DRIVER else "error",
            cause=run.name,
        )
