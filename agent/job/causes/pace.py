"""Steps that became slower, by the times or rates that the job itself printed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.job.candidate import PossibleCause
from agent.job.evidence import Evidence
from agent.job.pace import (
    SIDE,
    PaceChange,
    PaceSeries,
    find_change,
    find_compilations,
    find_data_share,
    find_data_stalls,
    find_side_work,
    measure,
)
from probes.text import find_median

_SURE = 1.5  # times as long: no noise of a shared host or network
_SHOWN = 3  # series


def find_pace(evidence: Evidence) -> Iterator[PossibleCause]:
    """The largest change of all files, which the others follow in a job that synchronizes; a steady pace is a note."""
    changes = [
        (change, file, series)
        for (file, form), series in evidence.pace.series.items()
        if form.number != SIDE and (change := find_change(series)) is not None
    ]
    for (file, form), series in evidence.pace.series.items():
        if form.number != SIDE:
            yield from _find_reasons(evidence, file, series)
        elif (side := _find_side(evidence, file, series)) is not None:
            yield side
    if changes:
        yield _describe(evidence, sorted(changes, key=lambda row: (-row[0].times, row[1])))
        return
    paces = [
        (pace, series, file)
        for (file, form), series in evidence.pace.series.items()
        if form.number != SIDE and (pace := measure(series))
    ]
    if paces:
        pace, series, file = max(paces, key=lambda row: len(row[1].values))
        text = f"its pace is steady: {_format(pace, series)} in the middle of {len(series.values)} values"
        note = PossibleCause("pace-steady", "note", "unknown", text, "medium")
        note.show_text(text, evidence.names[file], series.lines[0])
        yield note


def _find_side(evidence: Evidence, file: int, series: PaceSeries) -> PossibleCause | None:
    """Checkpoints or evaluations that take the time of a job."""
    others = [other for (number, form), other in evidence.pace.series.items() if number == file and form.number != SIDE]
    first, last = evidence.file_times.get(file, (0.0, 0.0))
    side = find_side_work(series, others, last - first)
    if side is None:
        return None
    text = f"{side.times} {series.what} took {_format(side.seconds, series)} each"
    text += f", and {_format(side.before, series)} at first" if side.before is not None else ""
    text += f": {side.share:.0%} of the time of the log" if side.share is not None else ""
    slow = PossibleCause("side-work-slow", "slow", "unknown", text, "medium")
    slow.show_text(text, evidence.names[file], series.lines[-1])
    slow.next = [
        "for evaluations how much of the data they take; for checkpoints the storage of their folder: its rate for one "
        "large file (`fio`, `dd`), other jobs that use it then, `lfs getstripe FOLDER`, `nfsiostat 5`; the kernel log "
        "of the host (nfs, lustre, gpfs)",
        "fewer of them, or checkpoints that are written while steps go on (asynchronous), on a local NVMe first",
    ]
    return slow


def _find_reasons(evidence: Evidence, file: int, series: PaceSeries) -> Iterator[PossibleCause]:
    """What lines of steps print beside their times."""
    if (share := find_data_share(series)) is not None:
        text = f"{share:.0%} of each step is waiting for data: {_format(find_median(series.values), series)} a step"
        slow = PossibleCause("waits-for-data", "slow", "software", text, "medium")
        slow.next = [
            "what the loader reads, and from where: `nfsiostat 5`, `iostat -x 5` on the host; many small files on "
            "network storage are slow for any number of workers: shards (tar, webdataset), or a copy on a local NVMe",
            "more workers of the loader, and CPU cores for them: `taskset -cp PID`; work that each sample costs there",
        ]
        slow.show_text(text, evidence.names[file], series.lines[0])
        yield slow
    if stalls := find_data_stalls(series):
        longest = _format(max(series.values[place] for place in stalls), series)
        text = (
            f"{len(stalls)} of {len(series.values)} steps waited for data, up to {longest}: the others take "
            f"{_format(find_median(series.values), series)}"
        )
        slow = PossibleCause("data-stalls", "slow", "unknown", text, "medium")
        slow.next = [
            "the storage that the loader reads, at those times: `nfsiostat 5`, `iostat -x 5`, the host's kernel log "
            "(nfs, lustre, gpfs); whether other jobs use it then",
            "a copy of the data on a local NVMe, or more that is read ahead (prefetch_factor, workers)",
        ]
        slow.show_text(text, evidence.names[file], series.lines[stalls[0]])
        yield slow
    if (count := find_compilations(series)) is not None:
        pace = _format(find_median(series.values), series)
        text = f"steps compile their graph again, {count} times so far: {pace} a step"
        slow = PossibleCause("compiles-again", "slow", "software", text, "medium")
        slow.next = ["shapes that change from step to step: pad or bucket lengths and the last batch to a few sizes"]
        slow.show_text(text, evidence.names[file], series.lines[0])
        yield slow


def _describe(evidence: Evidence, changes: list[tuple[PaceChange, int, PaceSeries]]) -> PossibleCause:
    change, _, series = changes[0]
    since = series.find_time(change.first)
    when = f"since {since.format(evidence.year)}" if since else f"from line {series.lines[change.first]} on"
    text = (
        f"steps became {change.times:.2g} times as long {when}: {_format(change.after, series)}, and "
        f"{_format(change.before, series)} before"
    )
    if change.recovered:
        text += f"; back again after {change.last - change.first + 1} of them"
    is_sure = change.times >= _SURE and measure(series) is not None  # of many values
    candidate = PossibleCause("pace-dropped", "slow", "unknown", text, "medium" if is_sure else "low")
    candidate.at = since
    for one, number, of in changes[:_SHOWN]:
        first, last = of.lines[one.first], of.lines[one.last]
        shown = f"lines {first} to {last}: {_format(one.after, of)}; before: {_format(one.before, of)}"
        candidate.show_text(shown, evidence.names[number], first)
    at = f"about {since.format(evidence.year)}" if since else "at that time"
    candidate.next = [
        f"whether the program did something else {at}: longer sequences, evaluation, a checkpoint to slow storage",
        f"what the hosts of the job logged {at}: Xid, AER, links that went down, clocks that were reduced; "
        "`fabricscope scan` on each, or `fabricscope job LOG --dataset DIR`",
    ]
    return candidate


def _format(value: float, series: PaceSeries) -> str:
    if series.is_rate:
        return f"{value:.4g}/s"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"
