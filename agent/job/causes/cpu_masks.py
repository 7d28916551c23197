"""Ranks that share fewer CPUs than they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, name_hosts
from agent.job.dumps.cpu_masks import CpuMask
from agent.job.evidence import Evidence

_LEAST = 2  # ranks on the same CPUs


def find_shared_cores(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks of one host that are bound to the same CPUs: fewer than they are, or where others have their own."""
    masks: dict[tuple[str, str], dict[int, CpuMask]] = defaultdict(dict)
    for mask in evidence.cpu_masks:
        masks[mask.host, mask.text][mask.rank] = mask
    ranks, sets = Counter(mask.host for mask in evidence.cpu_masks), Counter(host for host, _ in masks)
    own = [host for host, count in sets.items() if _LEAST <= count == ranks[host]]  # each rank has another set
    crowded = {
        key: rows
        for key, rows in masks.items()
        if len(rows) >= _LEAST and (next(iter(rows.values())).cpus < len(rows) or (own and sets[key[0]] == 1))
    }
    if not crowded:
        return
    hosts = list(dict.fromkeys(host for host, _ in crowded))
    others = [host for host in dict.fromkeys(mask.host for mask in evidence.cpu_masks) if host not in hosts]
    (_, text), rows = next(iter(crowded.items()))
    count = next(iter(rows.values())).cpus
    what = f"{len(rows)} ranks of {name_hosts(hosts)} share {count} CPU{'s' if count > 1 else ''} ({text[:40]})"
    beside = f"; {name_hosts(others)} {'gives' if len(others) == 1 else 'give'} each rank its own" if others else ""
    candidate = PossibleCause("ranks-share-cores", "slow", "setting", f"{what}: they take turns{beside}", "medium")
    candidate.blame(sorted(rank for part in crowded.values() for rank in part), hosts)
    for mask in list(rows.values())[:3]:
        candidate.show(evidence, mask.line)
    candidate.next = [
        f"what the job was given on {name_hosts(hosts)}: `scontrol show job -d JOB` (CPU_IDs), `taskset -cp PID`, the "
        "cgroup's cpuset.cpus.effective",
        "--cpus-per-task (and SRUN_CPUS_PER_TASK), --exclusive, --cpu-bind or --map-by and --bind-to of the launcher: "
        "CPUs of its own for each rank",
    ]
    yield candidate
