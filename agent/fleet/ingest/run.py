"""One ingest on one page.

sources -> batches -> workers read: rows into epochs on disk, what is no report into quarantine
        -> how many buckets -> workers merge: every touched bucket again, what changed into history
        -> history that late reports made void is taken out -> commit: one manifest for the other
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import chain, islice

import msgspec

from agent.fleet.collection import without_collection
from agent.fleet.dataset import HOSTNAME, SLOTS, BadDataset, File, Manifest, NodeKey
from agent.fleet.ingest.files import Staging, correct_history, fill_missing, gather_small
from agent.fleet.ingest.known import KnownFiles, KnownReports
from agent.fleet.ingest.locked_dataset import OpenDataset, open_dataset
from agent.fleet.ingest.merging import Merged, MergeJob
from agent.fleet.ingest.moving import Keep, Mover
from agent.fleet.ingest.quarantine import REASONS, Quarantine, update_reasons
from agent.fleet.ingest.sources import Item, check_sources, list_items
from agent.fleet.ingest.spill import SpilledBlock
from agent.fleet.ingest.worker import BatchDone, Closed, End, ReportBatch, Rest, Setup, SwitchBatch, Task
from agent.fleet.ingest.worker_pool import InProcessWorker, Workers
from agent.fleet.reading import Naming
from agent.fleet.rows import SwitchRecord
from agent.fleet.store import hide_secrets
from agent.fleet.tables import FORMAT, HISTORY, HOST, TABLES
from agent.version import VERSION

NODES_A_BUCKET = 2048
_SMALL_BUCKETS = (
    16  # so many: then each grows to four times that, as every file costs a question a fifth of a millisecond
)
_FEW = 64  # reports that are not worth another process
_MANY = 8_000  # reports after which workers hold 200 MiB that merging does not need
_BATCH_ITEMS, _BATCH_BYTES = 32, 8 << 20
Tell = Callable[[str, int], None]  # stage ("read", "write"), how much of it is done now


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest is to do."""

    sources: list[str]
    dataset: str
    cluster: str | None = None
    node_key: NodeKey | None = None  # None: the dataset's own
    jobs: int = 1
    wait_seconds: float = 60.0
    move: str | None = None  # a folder for the files whose reports are in the dataset
    keep: Keep = Keep()  # of what is in that folder
    switches: list[SwitchRecord] = []  # to be stored beside the reports


class Ingested(msgspec.Struct, kw_only=True):
    """What an ingest came to."""

    read: int = 0  # things that should have been reports
    fresh: int = 0  # reports that count
    late: int = 0  # of these, older than what was known of their node
    unjudged: int = 0  # of those, reports whose counters have no earlier sample
    repeated: int = 0  # known already, or judged again since
    quarantined: int = 0
    refused: str | None = None  # the first that is no report, and why
    vanished: list[str] = msgspec.field(default_factory=list)
    unread: list[str] = msgspec.field(default_factory=list)
    nodes: int = 0  # of the dataset
    new_nodes: int = 0
    moved: int = 0
    unmoved: list[str] = msgspec.field(default_factory=list)


def ingest(options: IngestOptions, tell: Tell) -> Ingested:
    """Take reports into a dataset. Raises UnreadableSource, BadDataset, WorkerLost, OSError; then it is as it was."""
    sources = check_sources(options.sources)
    with open_dataset(options.dataset, options.wait_seconds) as dataset, without_collection():
        naming = Naming(options.cluster, _choose_node_key(dataset, options.node_key))
        now = datetime.now(timezone.utc)
        spill = os.path.join(os.path.dirname(dataset.staging), "epochs")
        os.makedirs(spill)
        staging = Staging(dataset.staging, dataset.manifest.generation + 1)
        setup = Setup(dataset.store.url, staging, spill, naming, now, dataset.manifest)
        mover = Mover(options.move, sources) if options.move is not None else None
        known = KnownFiles(dataset.store, KnownReports(dataset.store, dataset.manifest, options.cluster))
        new_items = known.unknown(mover.noting(list_items(sources)) if mover else list_items(sources))
        first = list(islice(new_items, _FEW))
        remote = any("://" in place for place in (*options.sources, options.dataset))
        many = options.jobs > 1 and len(first) == _FEW
        work = Workers(setup, options.jobs, remote) if many else InProcessWorker(setup)
        try:
            ingested = _Run(dataset, setup, work, tell, known).run(chain(first, new_items), mover, options.switches)
            if not mover and (dataset.committed or (not dataset.new and dataset.is_in_place)):
                known.save()
            if mover:
                ingested.moved, ingested.unmoved = mover.move()
                with suppress(OSError):  # the next run tries again
                    mover.remove_old(options.keep, now.timestamp())
            return ingested
        finally:
            work.close()


def _choose_node_key(dataset: OpenDataset, chosen: NodeKey | None) -> NodeKey:
    """Fixed by the first ingest: with another one, every node would be there twice. Raises BadDataset."""
    if dataset.new:
        return chosen or HOSTNAME
    known = dataset.manifest.node_key
    if chosen and chosen != known:
        raise BadDataset(
            f"{hide_secrets(dataset.store.url)}: its nodes are known by {known}; "
            "another --node-key needs another dataset"
        )
    return known


class _Run:
    def __init__(
        self, dataset: OpenDataset, setup: Setup, work: Workers | InProcessWorker, tell: Tell, known: KnownFiles
    ) -> None:
        self._known, self._choose_node_key = known, setup.naming.key
        self._held, self._staging, self._work, self._now, self._tell = dataset, setup.staging, work, setup.now, tell
        self._told = Ingested(nodes=dataset.manifest.nodes)
        self._quarantine = Quarantine(dataset.store, setup.staging, setup.now.isoformat())

    def run(self, items: Iterator[Item], mover: Mover | None = None, switches: Sequence[SwitchRecord] = ()) -> Ingested:
        blocks, nodes = self._read(items, mover, switches)
        closed: list[Closed] = []
        if self._told.read - self._told.repeated >= _MANY:
            closed += self._close_workers()
            self._work.renew()
        merged = self._merge(blocks, nodes) if blocks else []
        closed += self._close_workers()
        if merged or not self._held.new:  # a dataset begins with its first report
            reasons = update_reasons(self._held.store, self._quarantine.write())
            if merged or reasons:
                lines, count = reasons or (b"", self._held.manifest.quarantined)
                manifest = self._make_manifest(merged, closed, count)
                self._held.commit(manifest, {REASONS: lines} if lines else {})
        return self._told

    def _close_workers(self) -> list[Closed]:
        return [closed for closed in self._work.all(End()) if isinstance(closed, Closed)]

    def _read(
        self, items: Iterator[Item], mover: Mover | None, switches: Sequence[SwitchRecord]
    ) -> tuple[dict[int, list[SpilledBlock]], int]:
        """Blocks by slot, and about how many nodes they are of."""
        blocks: defaultdict[int, list[SpilledBlock]] = defaultdict(list)
        nodes: set[int] = set()
        report_progress = self._told
        batches: Iterator[Task] = chain(_make_batches(items), _make_switch_batches(switches))
        for stage in (self._work.each(batches), self._work.all(Rest())):
            for done in stage:
                assert isinstance(done, BatchDone)
                report_progress.read += done.reports
                report_progress.repeated += done.known
                self._known.add(done.files)
                report_progress.quarantined += len(done.refused)
                report_progress.vanished += done.vanished
                report_progress.unread += done.unread
                if mover:
                    mover.leave(done.unread_files)
                self._quarantine.add(done.refused)
                if done.refused and report_progress.refused is None:
                    report_progress.refused = f"{done.refused[0].source}: {done.refused[0].reason}"
                nodes |= done.nodes
                for block in done.blocks:
                    blocks[block.slot].append(block)
                self._tell("read", report_progress.read)
        report_progress.read += self._known.skipped
        report_progress.repeated += self._known.skipped
        return blocks, len(nodes)

    def _merge(self, blocks: dict[int, list[SpilledBlock]], nodes: int) -> list[Merged]:
        """Every bucket that a report is for; all of them, where there are to be more."""
        before = self._held.manifest
        self._count_buckets = _count_buckets(before, nodes)
        grown = self._count_buckets != before.buckets
        by_bucket: defaultdict[int, list[SpilledBlock]] = defaultdict(list)
        for slot, mine in blocks.items():
            by_bucket[slot % self._count_buckets] += mine
        wanted = range(self._count_buckets) if grown and not self._held.new else sorted(by_bucket)
        merged_buckets: list[Merged] = []
        for done in self._work.each(self._make_job(bucket, by_bucket[bucket]) for bucket in wanted):
            assert isinstance(done, Merged)
            merged_buckets.append(done)
            self._tell("write", len(merged_buckets) * 100 // len(wanted))
            report_progress = self._told
            report_progress.fresh += done.fresh
            report_progress.late += done.late
            report_progress.unjudged += done.unjudged
            report_progress.repeated += done.repeated
        return [merged for merged in merged_buckets if merged.state]

    def _make_job(self, bucket: int, blocks: list[SpilledBlock]) -> MergeJob:
        before = self._held.manifest
        old = f"/bucket={bucket % before.buckets:02d}/"
        sources = [file for file in before.state if old in file.path]
        return MergeJob(bucket, self._count_buckets, blocks, before, sources, self._staging)

    def _make_manifest(self, merged: list[Merged], closed: list[Closed], quarantined: int) -> Manifest:
        before = self._held.manifest
        buckets = self._count_buckets if merged else before.buckets
        renewed = {bucket.bucket for bucket in merged}
        if buckets != before.buckets:
            renewed |= set(range(before.buckets))
        latest = {name: _list_others(before.latest.get(name, []), renewed) for name in TABLES}
        state = _list_others(before.state, renewed)
        for done in sorted(merged, key=lambda bucket: bucket.bucket):
            for name, file in done.latest.items():
                latest[name].append(file)
            state += [done.state] if done.state else []
        history = {name: list(before.history.get(name, [])) for name in HISTORY}
        removed = [file for done in merged for file in done.removed]
        if removed:
            history = correct_history(self._held.store, self._staging, history, removed)
        history = gather_small(self._held.store, self._staging, history)
        for done_ in closed:
            for name, file in done_.history:
                history[name].append(file)
        fill_missing(self._held.store, self._staging, latest, history)
        nodes = sum(file.rows for file in latest[HOST.name])  # a switch is none
        self._told.nodes, self._told.new_nodes = nodes, nodes - before.nodes
        return Manifest(
            format=FORMAT,
            generation=before.generation + 1,
            written_at=self._now.isoformat(),
            generator=VERSION,
            buckets=buckets,
            node_key=self._choose_node_key,
            nodes=nodes,
            quarantined=quarantined,
            latest=latest,
            history=history,
            state=state,
        )


def _make_batches(items: Iterator[Item]) -> Iterator[ReportBatch]:
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.data)
        if len(batch) >= _BATCH_ITEMS or size >= _BATCH_BYTES:
            yield ReportBatch(batch)
            batch, size = [], 0
    if batch:
        yield ReportBatch(batch)


def _make_switch_batches(records: Sequence[SwitchRecord]) -> Iterator[SwitchBatch]:
    for start in range(0, len(records), _BATCH_ITEMS):
        yield SwitchBatch([*records[start : start + _BATCH_ITEMS]])


def _count_buckets(before: Manifest, nodes: int) -> int:
    """A power of two; it grows with the nodes, and each time everything is written again: hence not often."""
    wanted, size = 1, NODES_A_BUCKET
    while wanted < SLOTS and wanted * size < max(nodes, before.nodes):
        wanted *= 2
        size = NODES_A_BUCKET if wanted < _SMALL_BUCKETS else 4 * NODES_A_BUCKET
    return wanted if not before.nodes or wanted > 2 * before.buckets else before.buckets


def _list_others(files: list[File], renewed: set[int]) -> list[File]:
    """Those of buckets that stay as they are."""
    return [file for file in files if int(file.path.split("/bucket=")[1].split("/")[0]) not in renewed]
