"""`plan` reads NetBox and states what is to be done; `apply` does it, and reads again where that is not certain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from agent.netbox import diff_devices, state
from agent.netbox.api import Client, NetBoxError, OutcomeUnknown, RequestForbidden, RequestRejected
from agent.netbox.changes import STAGES, NetBoxChange, ObjectRef, PlanNote, resolve_refs
from agent.netbox.diff_modules import DeviceDiff, bays_by_name
from agent.netbox.matching import NodeMatch, ReportedNode, match_nodes
from agent.netbox.state import TAG, NetBoxState

ROUNDS = 4  # of reading and sending, where requests end without an answer
WAIT_SECONDS = 5.0  # before the second, twice that before the third: what was sent may still be at work


class DevicePlacement(NamedTuple):
    """Where devices are made that NetBox does not have: slugs."""

    site: str
    role: str
    device_type: str  # "slug", or "manufacturer/slug"


class ApplyOptions(NamedTuple):
    """What a run may do."""

    create: DevicePlacement | None = None
    prune: bool = False
    site: str | None = None  # look for devices there only
    limit: int | None = None  # of changes


class SyncPlan(NamedTuple):
    """What was found, and what is to be done about it."""

    matches: list[NodeMatch]
    changes: list[NetBoxChange]
    notes: list[PlanNote]
    ids: dict[ObjectRef, int]

    @property
    def in_step(self) -> bool:
        """Whether NetBox has all of it, and nothing speaks against that."""
        unsettled = any(note.conflict for note in self.notes) or any(match.problem for match in self.matches)
        return not self.changes and not unsettled


class ApplyResult(NamedTuple):
    """What came of it; `plan` is the last one, where NetBox was read again.

    `stopped`: why nothing was sent; `broken`: why it ended early.
    """

    plan: SyncPlan
    done: list[NetBoxChange]
    failed: list[FailedChange]
    stopped: str | None = None
    broken: str | None = None

    @property
    def in_step(self) -> bool:
        """Whether NetBox has all of it now."""
        return not self.failed and not self.stopped and not self.broken and self.plan._replace(changes=[]).in_step


def plan(client: Client, reported: Sequence[ReportedNode], options: ApplyOptions) -> SyncPlan:
    """Read, compare. Raises BadAccess."""
    place = _find_placement(client, options.create) if options.create else {}
    site = options.site or (options.create.site if options.create else None)
    if options.site and not options.create:
        _find_one(client, "site", options.site)
    matches = match_nodes(
        reported, state.find_devices(client, [item.node for item in reported], site), options.create is not None
    )
    taken = [match for match in matches if not match.problem and not match.older]
    states = state.read_states(client, [match.device for match in taken if match.device])
    nodes = [match.reported.node for match in taken]
    shared = state.read_shared(client, nodes, states.values())
    diffs = [
        DeviceDiff(
            match.key,
            match.reported.node,
            states[match.device.id] if match.device else NetBoxState(),
            shared.module_types,
            options.prune,
        )
        for match in taken
    ]
    if shared.tags:
        state.add_journals(client, [diff.current for diff in diffs if diff_devices.has_new_findings(diff)])
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    for match, diff in zip(taken, diffs, strict=True):
        if match.new:
            changes.append(diff_devices.create_device(diff, match.label, place))
        result = diff_devices.diff_device(diff, shared)
        changes += result.changes
        notes += result.notes
    if changes:
        changes = diff_devices.diff_shared(nodes, shared, changes) + changes
    ids = {ObjectRef("module bay", diff.key, bay.name): bay.id for diff in diffs for bay in bays_by_name(diff).values()}
    return SyncPlan(matches, changes, notes, ids)


def apply(
    client: Client, reported: Sequence[ReportedNode], options: ApplyOptions, wait: Callable[[float], None] | None = None
) -> ApplyResult:
    """Bring NetBox in step. Raises BadAccess while nothing was sent yet."""
    now: SyncPlan | None = None
    done: list[NetBoxChange] = []
    failed: dict[tuple[str, str, ObjectRef], FailedChange] = {}
    sent = SentChanges([], [])
    for round_number in range(ROUNDS):
        try:
            now = plan(client, reported, options)
        except NetBoxError as error:
            if now is None:
                raise
            return ApplyResult(now, done, list(failed.values()), broken=str(error))
        if round_number == 0 and options.limit is not None and len(now.changes) > options.limit:
            return ApplyResult(
                now, [], [], stopped=f"{len(now.changes)} changes, and --limit-changes is {options.limit}"
            )
        new = {match.key for match in now.matches if match.new}
        sent = send(
            client,
            [change for change in now.changes if change.device_key not in new and _change_key(change) not in failed],
            now.ids,
        )
        done += sent.done
        failed |= {_change_key(change.change): change for change in sent.failed}
        created_devices = {change.name for change in sent.done if change.kind == "device" and change.action == "create"}
        if sent.broken or not (
            sent.unsure or created_devices
        ):  # devices that were just made have what their type brings along
            break
        if sent.unsure and round_number + 1 < ROUNDS:
            (wait or time.sleep)(WAIT_SECONDS * 2**round_number)
    assert now is not None
    return ApplyResult(now, done, list(failed.values()), broken=sent.broken or sent.unsure)


def _change_key(change: NetBoxChange) -> tuple[str, str, ObjectRef]:
    return change.stage, change.action, change.ref


def _find_placement(client: Client, place: DevicePlacement) -> Mapping[str, int]:
    """Ids of a site, a role and a device type. Raises BadAccess where there is none, or more than one."""
    maker, _, kind = place.device_type.rpartition("/")
    filters = {"manufacturer": [maker]} if maker else {}
    if maker:
        _find_one(client, "manufacturer", maker)
    return {
        "site": _find_one(client, "site", place.site),
        "role": _find_one(client, "role", place.role),
        "device_type": _find_one(client, "device type", kind, **filters),
    }


def _find_one(client: Client, kind: str, slug: str, **filters: Sequence[str]) -> int:
    rows = client.read(kind, slug=[slug], **filters)
    if len(rows) > 1:
        raise NetBoxError(f"{len(rows)} objects in NetBox are the {kind} {slug}: name it as MANUFACTURER/{slug}")
    if not rows:
        raise NetBoxError(f"no {kind} in NetBox has the slug {slug}")
    return int(rows[0]["id"])


OBJECTS_PER_REQUEST = 50  # objects of one request: a few seconds of work for a NetBox, far below any time limit


_TAG = ObjectRef("tag", "", TAG)


class FailedChange(NamedTuple):
    """A change that NetBox did not take."""

    change: NetBoxChange
    why: str


class SentChanges(NamedTuple):
    """What came of it. `unsure`: why it is not known whether the last request was carried out."""

    done: list[NetBoxChange]
    failed: list[FailedChange]
    unsure: str | None = None
    broken: str | None = None


def send(client: Client, changes: Sequence[NetBoxChange], ids: dict[ObjectRef, int]) -> SentChanges:
    """Do them. `ids`: of what is there already; what is made is added. Ends at the first request without an answer."""
    sent = SentChanges([], [])
    failed: set[ObjectRef] = set()
    for batch in _make_batches(changes):
        ready = []
        for change in batch:
            needs = (*change.needs, _TAG) if "tags" in change.body else change.needs
            lacking = next((ref for ref in needs if ref in failed), None)
            try:
                body = resolve_refs(change.body, ids)
            except KeyError as error:
                lacking = error.args[0]
            if lacking is not None:
                sent.failed.append(FailedChange(change, f"needs {lacking.kind} {lacking.name}, which is not there"))
                failed.add(change.ref)
            else:
                ready.append((change, body))
        try:
            for change, why in _send_batch(client, ready, ids):
                if why is None:
                    sent.done.append(change)
                else:
                    sent.failed.append(FailedChange(change, why))
                    failed.add(change.ref)
        except OutcomeUnknown as error:
            return sent._replace(unsure=str(error))
        except NetBoxError as error:
            return sent._replace(broken=str(error))
    return sent


def _make_batches(changes: Sequence[NetBoxChange]) -> Iterator[list[NetBoxChange]]:
    """Changes of one request: of one stage, one step and one verb."""
    positions = {stage: start for start, stage in enumerate(STAGES)}
    order = sorted(changes, key=lambda change: (positions[change.stage], change.step, change.action))
    for _, group in groupby(order, key=lambda change: (change.stage, change.step, change.action)):
        rows = list(group)
        for start in range(0, len(rows), OBJECTS_PER_REQUEST):
            yield rows[start : start + OBJECTS_PER_REQUEST]


ReadyChanges = list[tuple[NetBoxChange, dict[str, Any]]]


def _send_batch(
    client: Client, rows: ReadyChanges, ids: dict[ObjectRef, int]
) -> Iterator[tuple[NetBoxChange, str | None]]:
    """One request for all; what NetBox names as wrong is left out, else they are sent one by one."""
    while rows:
        try:
            _send_request(client, rows, ids)
        except RequestForbidden as error:
            yield from ((change, str(error)) for change, _ in rows)
        except RequestRejected as error:
            wrong = [why for why in error.by_object if why]
            if wrong and len(error.by_object) == len(rows):
                reasons = list(zip(rows, error.by_object, strict=True))
                yield from ((change, why) for (change, _), why in reasons if why)
                rows = [row for row, why in reasons if not why]
                continue
            if len(rows) > 1:
                for row in rows:
                    yield from _send_batch(client, [row], ids)
            else:
                yield rows[0][0], str(error)
        else:
            yield from ((change, None) for change, _ in rows)
        return


def _send_request(client: Client, rows: ReadyChanges, ids: dict[ObjectRef, int]) -> None:
    change = rows[0][0]
    if change.action == "create":
        for (item, _), object_id in zip(rows, client.create(change.kind, [body for _, body in rows]), strict=True):
            ids[item.ref] = object_id
    elif change.action == "update":
        client.update(change.kind, [{"id": item.id, **body} if item.id else body for item, body in rows])
    else:
        client.delete(change.kind, [item.id for item, _ in rows if item.id])
