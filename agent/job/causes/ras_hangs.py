"""Which rank is behind, which process is gone, by snapshots of NCCL's RAS.

In one snapshot ranks differ while a job runs; equal counts in two are a hang. The ranks that RAS lists are the
minority, which may be ahead: those with the smaller count are behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.job.candidate import PossibleCause, name_numbers
from agent.job.dumps.ras import Listed, RasProcess, Snapshot
from agent.job.evidence import Evidence
from agent.model.labels import natural


def find_ras_hangs(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that are behind in two snapshots, and processes that are gone."""
    snapshots = sorted(evidence.snapshots, key=lambda snapshot: natural(snapshot.name))
    if not snapshots:
        return
    last = snapshots[-1]
    if last.dead:
        is_one = len(last.dead) == 1
        text = "is dead: RAS cannot reach it" if is_one else "are dead: RAS cannot reach them"
        yield _gone(evidence, last.dead, PossibleCause("process-dead", "dead", "rank", text))
    if last.unanswered:
        text = "did not report to RAS: dead, or stopped"
        yield _gone(evidence, last.unanswered, PossibleCause("process-silent", "missing", "rank", text, "medium"))
    for (communicator, function), counts in sorted(last.counts.items()):
        if len(counts) < 2:
            continue
        behind = last.listed.get((communicator, function, min(counts)), [])
        equal = [one for one in snapshots[:-1] if one.counts.get((communicator, function)) == counts]
        if behind:  # else those that are listed are ahead: normal, or it is not known which one is behind
            yield _behind(evidence, function, behind, counts, equal)


def _behind(
    evidence: Evidence, function: str, behind: list[Listed], counts: dict[int, int], equal: list[Snapshot]
) -> PossibleCause:
    least, most = min(counts), max(counts)
    ranks = sorted(row.rank for row in behind)
    nodes = list(dict.fromkeys(evidence.ranks.find_host(row.node) or row.node for row in behind))
    first = behind[0]
    place = (
        f"rank {first.rank} (GPU {first.gpu} on {nodes[0]}, process {first.pid})"
        if len(ranks) == 1
        else f"ranks {name_numbers(ranks)} on {', '.join(nodes[:3])}"
    )
    waiting = sum(number for count, number in counts.items() if count > least)
    text = (
        f"{place} stays at {function} {least} while {waiting} ranks wait at {most}, with equal counts in "
        f"{len(equal) + 1} snapshots: a hang"
        if equal
        else f"{place} is behind at {function} {least}, {waiting} ranks are at {most}; one snapshot does not separate "
        f"a hang from a step that runs"
    )
    candidate = PossibleCause("rank-behind", "missing", "rank", text, "high" if equal else "low")
    candidate.blame(ranks, nodes)
    candidate.evidence += [row.line for row in behind[:3]]
    for snapshot in equal[-1:]:
        candidate.evidence += [row.line for rows in snapshot.listed.values() for row in rows if row.rank in ranks][:2]
    candidate.next = [
        f"`py-spy dump --pid {first.pid}` on {nodes[0]}, and its kernel log",
        "a second snapshot more than 10 s later"
        if not equal
        else f"`fabricscope scan` on {nodes[0]}: the GPU of that rank",
    ]
    return candidate


def _gone(evidence: Evidence, processes: list[RasProcess], candidate: PossibleCause) -> PossibleCause:
    nodes = list(dict.fromkeys(evidence.ranks.find_host(row.node) or row.node for row in processes))
    who = (
        f"process {processes[0].pid} on {nodes[0]}"
        if len(processes) == 1
        else f"{len(processes)} processes on {', '.join(nodes[:3])}"
    )
    candidate.summary = f"{who} {candidate.summary}"
    candidate.blame(hosts=nodes)
    candidate.evidence += [row.line for row in processes[:3]]
    candidate.next = [f"the log of {who}, and the kernel log of {nodes[0]}"]
    return candidate
