"""What could have been the cause: one candidate for each kind of failure that the evidence shows.

A module here turns what readers collected into candidates. Which candidate explains which is decided in `fold`, and no
file is read here.
"""

from __future__ import annotations

from collections import defaultdict

from agent.job.candidate import PossibleCause
from agent.job.catalogue import load_general
from agent.job.causes.ascend import (
    find_hccl_codes,
    find_link_timeouts,
    find_links,
    find_npu_calls,
    find_waiting_npus,
)
from agent.job.causes.coded import find_coded, find_efa
from agent.job.causes.completions import find_completions
from agent.job.causes.cpu_masks import find_shared_cores
from agent.job.causes.devices import find_amd_faults, find_cuda, find_not_finite, find_skipped_steps, find_xids
from agent.job.causes.dump_hangs import find_dump_delays, find_dump_hangs
from agent.job.causes.generic import find_boxed, find_generic
from agent.job.causes.network import (
    find_async,
    find_connect,
    find_memlock,
    find_queue_pairs,
    find_store_connect,
    find_unnamed_connect,
)
from agent.job.causes.pace import find_pace
from agent.job.causes.pairs import find_slow_host, find_wrong_host
from agent.job.causes.processes import (
    find_alone,
    find_dead,
    find_exits,
    find_late,
    find_missing,
    find_missing_gpus,
    find_oom,
    find_store_barrier,
    find_store_waits,
    find_unplaced,
)
from agent.job.causes.rank_values import find_slow_ranks
from agent.job.causes.ras_hangs import find_ras_hangs
from agent.job.causes.slow import find_slow
from agent.job.causes.slow_metrics import find_slow_metrics, find_slow_pairs
from agent.job.causes.stacks import find_elsewhere
from agent.job.causes.storage import find_lost_storage
from agent.job.causes.transport import (
    find_device_counts,
    find_efa_plugin,
    find_host_copies,
    find_no_efa,
    find_transport,
    find_unusable,
)
from agent.job.causes.unexplained import find_unexplained
from agent.job.causes.watchdog import find_blocked_watchdogs, find_watchdog_hangs
from agent.job.evidence import Evidence, LineEvent


def find_candidates(evidence: Evidence) -> list[PossibleCause]:
    """All of them, in no order."""
    events: dict[str, list[LineEvent]] = defaultdict(list)
    for event in evidence.events.values():
        events[event.row.form_of or event.row.id].append(event)
    candidates: list[PossibleCause] = []
    for name, rows in events.items():
        if name not in _READ_TOGETHER:
            candidates += _SPECIAL.get(name, find_generic)(evidence, rows)
    candidates += find_alone(evidence, events.get("alone", []))
    for find in _OF_ALL:
        candidates += find(evidence)
    for find_among in (find_exits, find_store_waits, find_transport):
        candidates += find_among(evidence, events)
    candidates += find_unexplained(evidence, candidates)
    for candidate in candidates:
        candidate.is_general |= candidate.id in _GENERAL or candidate.id in load_general()
    return candidates


# How a process ended, by its launcher
_GENERAL = frozenset(("aborted", "exit-code", "signal", "killed", "bus-error", "worker-died", "crash"))
_OF_ALL = (
    find_watchdog_hangs, find_dump_hangs, find_dump_delays, find_ras_hangs, find_slow, find_slow_pairs,
    find_slow_metrics, find_slow_ranks, find_pace, find_links, find_host_copies, find_elsewhere, find_shared_cores,
    find_slow_host,
)  # fmt: skip
# By `find_watchdog_hangs` and `find_exits`
_READ_TOGETHER = frozenset(
    (
        "watchdog-timeout", "watchdog-status", "watchdog-dump", "exit-code", "trainer-exit", "spawn-exit",
        "process-exit", "ray-worker-died", "task-exit", "mpi-exit", "alone",
    )
)  # fmt: skip
_SPECIAL = {
    "completion-error": find_completions,
    "ucx-completion": find_completions,
    "hccl-link-timeout": find_link_timeouts,
    "qp-address-unresolved": find_queue_pairs,
    "qp-invalid": find_queue_pairs,
    "qp-no-route": find_queue_pairs,
    "qp-failed": find_queue_pairs,
    "memlock-low": find_memlock,
    "verbs-create-failed": find_memlock,
    "ucx-memlock": find_memlock,
    "device-counts-differ": find_device_counts,
    "verbs-device-unusable": find_unusable,
    "horovod-stalled": find_missing,
    "heartbeat-stuck": find_blocked_watchdogs,
    "async-event": find_async,
    "connect-failed": find_connect,
    "connect-failed-unnamed": find_unnamed_connect,
    "store-unreachable": find_store_connect,
    "xid": find_xids,
    "cuda-error": find_cuda,
    "cuda-init-failed": find_cuda,
    "efa-completion-error": find_efa,
    "cxi-error": find_coded("cxi"),
    "nixl-error": find_coded("nixl"),
    "hccl-fault-code": find_hccl_codes,
    "oom-kill": find_oom,
    "monitored-barrier": find_missing,
    "hccl-root-timeout": find_missing,
    "ras-dead-peer": find_dead,
    "pod-not-placed": find_unplaced,
    "rendezvous-timeout": find_late,
    "storage-lost": find_lost_storage,
    "storage-evicted": find_lost_storage,
    "gpus-missing": find_missing_gpus,
    "gpu-memory-fault": find_amd_faults,
    "gpu-hang": find_amd_faults,
    "nan-on-rank": find_not_finite,
    "store-barrier": find_store_barrier,
    "hccl-heartbeat": find_dead,
    "jax-barrier": find_missing,
    "jax-task-dead": find_missing,
    "jax-restarted": find_missing,
    "unique-id-missing": find_missing,
    "mpi-no-active-port": find_boxed,
    "mpi-library-call": find_boxed,
    "mpi-program-missing": find_boxed,
    "efa-not-found": find_no_efa,
    "efa-plugin-failed": find_efa_plugin,
    "hccl-notify-timeout": find_waiting_npus,
    "npu-call-failed": find_npu_calls,
    "steps-skipped": find_skipped_steps,
    "wrong-values": find_wrong_host,
}
