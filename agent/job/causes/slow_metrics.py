"""A late GPU, or a slow communicator, by the metrics of NCCL's Inspector; a slow pair, by its point-to-point records.

Metrics are means of some seconds: what they show is a suspicion.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, name_hosts
from agent.job.causes.slow import LEAST_JITTER, SYNCHRONIZING, find_longer
from agent.job.dumps.inspector import Inspector, Pair
from agent.job.dumps.inspector_metrics import InspectorMetrics
from agent.job.evidence import Evidence
from probes.text import find_median

_LEAST_RECORDS, _LEAST_PAIRS = 20, 4


def find_slow_metrics(evidence: Evidence) -> Iterator[PossibleCause]:
    """GPUs whose times are short where all others' are long, in every communicator that has a name."""
    metrics = evidence.metrics
    if metrics is None:
        return
    late: dict[tuple[str, str], list[str]] = defaultdict(list)
    even: set[tuple[str, str]] = set()
    for key, communicators in sorted(metrics.times.items()):
        for name, times in sorted(communicators.items()):
            if key.function not in SYNCHRONIZING or len(times) < 3 or name == "unknown" or len(times) > key.ranks:
                continue
            for place, time in times.items():
                others = find_median(value for other, value in times.items() if other != place)
                if time < 0.5 * others and others - time >= LEAST_JITTER:
                    late[place].append(
                        f"{key.function} {key.size} in {name}: {time:.0f} us, the others {others:.0f} us"
                    )
                else:
                    even.add(place)
    for (host, gpu), texts in sorted(late.items()):
        if (host, gpu) in even:
            continue
        candidate = PossibleCause(
            "rank-late", "slow", "rank", f"{gpu} of {host} is late in every collective: the others wait for it", "low"
        )
        candidate.hosts.setdefault(host)
        candidate.gpu = gpu
        for text in texts[:3]:
            candidate.show_text(text, metrics.files[host, gpu])
        candidate.next = [
            f"clocks, throttling, PCIe width and Xids of {gpu} on {host}: `fabricscope scan`; its CPU binding and data "
            f"loader",
            "JSON files of the Inspector (without NCCL_INSPECTOR_PROM_DUMP): single collectives in place of means",
        ]
        yield candidate
    if not any(place not in even for place in late):
        yield from _find_slow_communicators(metrics)


def _find_slow_communicators(metrics: InspectorMetrics) -> Iterator[PossibleCause]:
    """Communicators whose GPUs all take longer than those of their siblings."""
    for key, communicators in sorted(metrics.times.items()):
        usual_of = {name: find_median(times.values()) for name, times in communicators.items() if name != "unknown"}
        if len(usual_of) < 3:
            continue
        usual, longer = find_longer(list(usual_of.items()))
        slow = sorted(name for name, _ in longer)
        if not slow or len(slow) * 2 >= len(usual_of):
            continue
        places = [set(communicators[name]) for name in slow]
        hosts = sorted({host for place in places for host, _ in place})
        gpus = {gpu for place in places for _, gpu in place}
        common = f"; common to all of them: {next(iter(gpus))} of every host, and its rail" if len(gpus) == 1 else ""
        candidate = PossibleCause(
            "communicator-slow",
            "slow",
            "fabric" if key.nodes > 1 else "rank",
            f"communicator{'s' if len(slow) > 1 else ''} {', '.join(slow[:4])}: {key.function} of {key.size} takes "
            f"{usual_of[slow[0]] / usual:.2g} times as long as in its siblings ({name_hosts(hosts)}){common}",
            "low",
        )
        candidate.blame(hosts=hosts)
        number = re.fullmatch(r"GPU(\d{1,4})", gpus.pop()) if len(gpus) == 1 else None
        candidate.local = int(number[1]) if number is not None else None
        first = next(iter(places[0]))
        text = f"{slow[0]}: {usual_of[slow[0]]:.0f} us, its siblings {usual:.0f} us"
        candidate.show_text(text, metrics.files[first])
        candidate.next = ["ports, cables and switch of what they have in common: link errors, rates, drops"]
        yield candidate
        return


def find_slow_pairs(evidence: Evidence) -> Iterator[PossibleCause]:
    """Pairs whose fastest sends take longer than those of all other pairs of the same size and reach."""
    inspector = evidence.inspector
    if inspector is None:
        return
    groups: dict[tuple[str, int, bool], list[tuple[Pair, float]]] = defaultdict(list)
    for pair, times in inspector.pairs.items():
        members = inspector.members[pair.communicator]
        if times.count >= _LEAST_RECORDS and pair.rank in members and pair.peer in members:
            inside = members[pair.rank][0] == members[pair.peer][0]
            groups[pair.function, pair.size, inside].append((pair, times.fast))
    for (function, _, inside), rows in sorted(groups.items()):
        usual, slow = find_longer(rows)
        if len(rows) < _LEAST_PAIRS or not slow or len(slow) * 2 > len(rows):
            continue
        yield _describe_pairs(inspector, function, inside, usual, slow)
        return


def _describe_pairs(
    inspector: Inspector, function: str, inside: bool, usual: float, slow: list[tuple[Pair, float]]
) -> PossibleCause:
    ends = [{inspector.members[pair.communicator][rank] for rank in (pair.rank, pair.peer)} for pair, _ in slow]
    counts = Counter(end for pair in ends for end in pair)
    shared = [end for end, count in counts.items() if count == len(slow)]
    hosts = sorted({host for pair in ends for host, _ in pair})
    if len(slow) > 1 and len(shared) == 1:
        hosts = [shared[0][0]]
        common = f"common to all of them: process {shared[0][1]} on {hosts[0]}"
    else:
        common = "between " + name_hosts(hosts)
    function = function.partition(" ")[0]
    pairs = f"{len(slow)} pairs are" if len(slow) > 1 else "1 pair is"
    worst = max(time for _, time in slow)
    candidate = PossibleCause(
        "pair-slow",
        "slow",
        "rank" if inside else "fabric",
        f"{pairs} slow: the fastest {function} takes {worst / usual:.2g} times as long as of the other pairs of its "
        f"size; {common}",
        "medium" if len(slow) > 1 else "low",
    )
    candidate.blame(hosts=hosts)
    for pair, time in slow[:3]:
        members = inspector.members[pair.communicator]
        names = " to ".join(f"rank {rank} ({members[rank][0]})" for rank in (pair.rank, pair.peer))
        text = f"{inspector.names[pair.communicator]}: {function} of {names}: {time:.0f} us, others {usual:.0f} us"
        candidate.show_text(text, inspector.files.get(members[pair.rank], ""))
    candidate.next = [
        "NVLink, PCIe width and P2P of these GPUs: `fabricscope scan`"
        if inside
        else "ports, cables and rails of these ranks: link errors, rates, drops: `fabricscope scan`"
    ]
    return candidate
