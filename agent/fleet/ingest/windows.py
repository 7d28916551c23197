"""Reports of a node that were alone when they were judged: the rules that need two samples, by the report before.

Most nodes have no counter of errors that moved. For these the answers of one of them, with equal checks and devices,
are those of all; only where a counter moved the whole report is read again and judged with the counters of both.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from agent.fleet.columns import schema
from agent.fleet.dataset import File
from agent.fleet.ingest.boots import BootTime, boot_time_of
from agent.fleet.ingest.history import EPOCH, Sighting, read_batches
from agent.fleet.ingest.spill import Entry, Epoch, Spilled
from agent.fleet.ingest.texts import read_text
from agent.fleet.reading import Naming, Text, Unfit, read
from agent.fleet.rows import NAMES
from agent.fleet.rows.counters import CounterDigests
from agent.fleet.rows.devices import Row
from agent.fleet.rows.report_fields import CheckFields
from agent.fleet.rows.unique_rows import ComparedColumns
from agent.fleet.rows.verdicts import check_row
from agent.fleet.store import Store
from agent.fleet.tables import CHECK, COUNTER

if TYPE_CHECKING:
    from agent.model.report import Report

Counts = list[tuple[str, str, int]]
_WINDOW_SECONDS, _SETTLE_SECONDS = 60.0, 900.0  # of agent.history.window and agent.rules.context, which tests compare
_CHECK_PLACE = NAMES.index(CHECK.name)


class EarlierSample(NamedTuple):
    """Counters of an earlier report. `entry`: None: the newest report that the dataset has."""

    time: BootTime
    counted: CounterDigests
    entry: Entry | None = None


class QuietChecks(NamedTuple):
    """Answers of all rules where no counter moved."""

    entry: Entry  # of which only the rows of table check count
    digest: int  # of these
    unknown_rules: int
    seconds: float  # of the window


class JudgedReports(NamedTuple):
    """What became of the reports of some nodes."""

    entries: dict[str, list[Entry]]
    quiet: dict[str, QuietChecks]  # of nodes whose newest report has nothing new
    late: dict[str, set[Sighting]]  # late reports that no earlier sample is at hand for


class _CheckTemplate(NamedTuple):
    rows: list[Row]
    digest: int
    unknown_rules: int


class _SamplePair(NamedTuple):
    entry: Entry
    base: EarlierSample


class WindowJudge:
    """Judges the entries of one bucket after the other."""

    def __init__(self, store: Store, spilled: Spilled, folder: str, naming: Naming, now: datetime) -> None:
        self._store, self._spilled, self._naming, self._now = store, spilled, naming, now
        self._folder, self._epochs = os.path.join(folder, f"{os.getpid()}-judged"), 0
        self._epoch, self._filled = Epoch(), False
        self._compared = ComparedColumns(CHECK)
        self._templates: dict[tuple[bytes, str], _CheckTemplate | None] = {}

    def judge(
        self, given: Mapping[str, Sequence[Entry]], known: Mapping[str, EarlierSample | None], counters: Iterable[File]
    ) -> JudgedReports:
        """The entries as judged. Raises OSError."""
        pairs = {node: _pair(entries, known.get(node)) for node, entries in given.items()}
        moved = [pair for mine in pairs.values() for pair in mine if not _is_quiet(pair)]
        counts = self._read_counts(moved, counters)
        judged: dict[int, Entry] = {}
        for pair in moved:
            entry = self._judge_moved(pair, counts)
            if entry is not None:
                judged[id(pair.entry)] = entry
        entries = {node: [judged.get(id(entry), entry) for entry in mine] for node, mine in given.items()}
        quiet: dict[str, QuietChecks] = {}
        for node, mine in pairs.items():
            newest = max(given[node], key=lambda entry: entry.sighting, default=None)
            last = next((pair for pair in mine if pair.entry is newest and _is_quiet(pair)), None)
            checks = self._answer_quiet(last) if last is not None else None
            if checks is not None:
                quiet[node] = checks
        self._flush()
        late = {node: _list_unpaired(given[node], mine, known.get(node)) for node, mine in pairs.items()}
        return JudgedReports(entries, quiet, {node: sightings for node, sightings in late.items() if sightings})

    def _judge_moved(self, pair: _SamplePair, counts: Mapping[str | int, Counts]) -> Entry | None:
        """The entry with what the rules find; None where its report cannot be judged."""
        from agent.history.context import complete_sample, judge_with_base  # lazy: it imports the rules

        entry, base = pair
        report = self._read_report(entry)
        if report is None:
            return None
        rows = counts.get(id(base.entry) if base.entry is not None else entry.node, [])
        sample = complete_sample(report, _format(base.time.moment), base.time.uptime_seconds, rows)
        try:
            data = msgspec.json.encode(judge_with_base(report, sample))
            place = entry.text
            assert place is not None
            made = read(Text(data, place.digest), self._epoch.reader, self._naming, self._now, place.modified)
        except Unfit:
            return None
        fresh = self._epoch.add(made)
        self._filled = True
        judged = replace(entry, digests=fresh.digests, rows=fresh.rows, epoch=self._epoch_folder)
        if self._epoch.full:
            self._flush()
        return judged

    def _answer_quiet(self, pair: _SamplePair) -> QuietChecks | None:
        entry = pair.entry
        key = (entry.pending, entry.hardware_class)
        if key not in self._templates:
            self._templates[key] = self._make_template(pair)
        template = self._templates[key]
        if template is None:
            return None
        self._epoch.reports += 1
        self._filled = True
        rows = [b""] * len(NAMES)
        rows[_CHECK_PLACE] = self._epoch.reader.number_checks(template.rows).tobytes()
        checks = replace(entry, rows=rows, epoch=self._epoch_folder)
        if self._epoch.full:
            self._flush()
        return QuietChecks(checks, template.digest, template.unknown_rules, _count_seconds(pair))

    def _make_template(self, pair: _SamplePair) -> _CheckTemplate | None:
        from agent.history.context import judge_with_window  # lazy: it imports the rules
        from agent.model.report import CountersWindow

        report = self._read_report(pair.entry)
        if report is None:
            return None
        window = CountersWindow(since=_format(pair.base.time.moment), seconds=_count_seconds(pair))
        judged = judge_with_window(report, window)
        rows = [check_row(msgspec.convert(msgspec.to_builtins(check), CheckFields)) for check in judged.checks]
        return _CheckTemplate(rows, self._compared.digest(rows), len(judged.summary.unknown_rules))

    def _read_report(self, entry: Entry) -> Report | None:
        """None: its file is another one by now, it is of another version, or its operator changed what is judged."""
        text = read_text(entry.text) if entry.text is not None else None
        try:
            report = _report_decoder().decode(text.text) if text is not None else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return report if report is not None and not report.config.changed else None

    def _read_counts(self, pairs: Sequence[_SamplePair], counters: Iterable[File]) -> dict[str | int, Counts]:
        """Counters by node, or by id of an entry of this ingest."""
        counts: defaultdict[str | int, Counts] = defaultdict(list)
        for pair in pairs:
            base = pair.base.entry
            if base is not None and id(base) not in counts:
                counts[id(base)] = []
                for rows in self._spilled.rows(COUNTER.name, [base]):
                    counts[id(base)] += _list_counts(rows)
        nodes = pa.array(sorted({pair.entry.node for pair in pairs if pair.base.entry is None}), pa.string())
        if len(nodes):
            for file in counters:
                for batch in read_batches(self._store, file, schema(COUNTER.name)):
                    own = batch.filter(pc.is_in(batch["node"].cast(pa.string()), value_set=nodes))
                    for node, count in zip(own["node"].to_pylist(), _list_counts(own), strict=True):
                        counts[node].append(count)
        return counts

    @property
    def _epoch_folder(self) -> str:
        return f"{self._folder}-{self._epochs}"

    def _flush(self) -> None:
        if self._filled:
            self._epoch.write(self._epoch_folder)
            self._epochs, self._filled = self._epochs + 1, False


@cache
def _report_decoder() -> msgspec.json.Decoder[Report]:
    from agent.model.report import Report

    return msgspec.json.Decoder(Report)


def _pair(entries: Sequence[Entry], known: EarlierSample | None) -> list[_SamplePair]:
    """Each report that needs an earlier sample with the newest that is old enough, of the same boot and devices.

    A late report is compared with earlier ones of the same ingest: the dataset has the counters of the newest alone.
    """
    pairs: list[_SamplePair] = []
    samples = [known] if known is not None else []
    for entry in sorted(entries, key=lambda entry: entry.sighting):
        time = boot_time_of(entry)
        if time is None or (known is not None and entry.observed == known.time.moment):
            continue
        counted = entry.counted
        base = _find_base(time, samples) if entry.pending else None
        if base is not None and base.counted.shape == counted.shape:
            pairs.append(_SamplePair(entry, base))
        samples.append(EarlierSample(time, counted, entry))
    return pairs


def _find_base(time: BootTime, samples: Sequence[EarlierSample]) -> EarlierSample | None:
    ready = [
        sample
        for sample in samples
        if sample.time.boot_id == time.boot_id
        and time.uptime_seconds - sample.time.uptime_seconds >= _WINDOW_SECONDS
        and sample.time.uptime_seconds >= _SETTLE_SECONDS
    ]
    return max(ready, key=lambda sample: sample.time.uptime_seconds, default=None)


def _list_unpaired(
    entries: Sequence[Entry], pairs: Sequence[_SamplePair], known: EarlierSample | None
) -> set[Sighting]:
    """Late reports that need an earlier sample and have none."""
    if known is None:
        return set()
    paired = {id(pair.entry) for pair in pairs}
    return {
        entry.sighting
        for entry in entries
        if entry.pending and entry.observed < known.time.moment and id(entry) not in paired
    }


def _count_seconds(pair: _SamplePair) -> float:
    return (pair.entry.uptime_seconds or 0.0) - pair.base.time.uptime_seconds


def _is_quiet(pair: _SamplePair) -> bool:
    now = pair.entry.counted
    return now.standing == pair.base.counted.standing and not now.needs_judging


def _list_counts(rows: Any) -> Counts:
    columns = (rows[name].to_pylist() for name in ("subject", "name", "value"))
    return list(zip(*columns, strict=True))


def _format(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%SZ")


def patch_host_rows(rows: Any, entries: Sequence[Entry], quiet: Mapping[str, QuietChecks]) -> Any:
    """Rows of table host, one an entry, with what the checks come to."""
    mine = [quiet.get(entry.node) for entry in entries]
    if not any(mine):
        return rows
    for name, values in (
        ("unknown_rules", [checks and checks.unknown_rules for checks in mine]),
        ("check_digest", [checks and checks.digest for checks in mine]),
        ("window_seconds", [checks and checks.seconds for checks in mine]),
    ):
        column = pc.coalesce(pa.array(values, rows.schema.field(name).type), rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows
