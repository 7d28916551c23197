"""Changes as bulk requests, in their order; where one object of a request is refused, the others go on without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from agent.netbox.asking import Client
from agent.netbox.changes import STAGES, Change, Ref, resolved
from agent.netbox.current import TAG
from agent.netbox.trouble import BadAccess, Forbidden, Rejected, Unsure

BULK = 50  # objects of one request: a few seconds of work for a NetBox, far below anybody's time limit


_TAG = Ref("tag", "", TAG)


class Failed(NamedTuple):
    """A change that NetBox did not take."""

    change: Change
    why: str


class Sent(NamedTuple):
    """What came of it. `unsure`: why it is not known whether the last request was carried out."""

    done: list[Change]
    failed: list[Failed]
    unsure: str | None = None
    broken: str | None = None


def send(client: Client, changes: Sequence[Change], ids: dict[Ref, int]) -> Sent:
    """Do them. `ids`: of what is there already; what is made is added. Ends at the first request without an answer."""
    sent = Sent([], [])
    failed: set[Ref] = set()
    for batch in _batches(changes):
        ready = []
        for change in batch:
            needs = (*change.needs, _TAG) if "tags" in change.body else change.needs
            lacking = next((ref for ref in needs if ref in failed), None)
            try:
                body = resolved(change.body, ids)
            except KeyError as error:
                lacking = error.args[0]
            if lacking is not None:
                sent.failed.append(Failed(change, f"needs {lacking.kind} {lacking.name}, which is not there"))
                failed.add(change.ref)
            else:
                ready.append((change, body))
        try:
            for change, why in _request(client, ready, ids):
                if why is None:
                    sent.done.append(change)
                else:
                    sent.failed.append(Failed(change, why))
                    failed.add(change.ref)
        except Unsure as error:
            return sent._replace(unsure=str(error))
        except BadAccess as error:
            return sent._replace(broken=str(error))
    return sent


def _batches(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Changes of one request: of one stage, one step, one kind and one verb."""
    place = {stage: at for at, stage in enumerate(STAGES)}
    order = sorted(changes, key=lambda change: (place[change.stage], change.step, change.kind, change.action))
    for _, group in groupby(order, key=lambda change: (change.stage, change.step, change.kind, change.action)):
        rows = list(group)
        for at in range(0, len(rows), BULK):
            yield rows[at : at + BULK]


Ready = list[tuple[Change, dict[str, Any]]]


def _request(client: Client, rows: Ready, ids: dict[Ref, int]) -> Iterator[tuple[Change, str | None]]:
    """One request for all; what NetBox names as wrong is left out, else they are sent one by one."""
    while rows:
        try:
            _one(client, rows, ids)
        except Forbidden as error:
            yield from ((change, str(error)) for change, _ in rows)
        except Rejected as error:
            wrong = [why for why in error.each if why]
            if wrong and len(error.each) == len(rows):
                told = list(zip(rows, error.each, strict=True))
                yield from ((change, why) for (change, _), why in told if why)
                rows = [row for row, why in told if not why]
                continue
            if len(rows) > 1:
                for row in rows:
                    yield from _request(client, [row], ids)
            else:
                yield rows[0][0], str(error)
        else:
            yield from ((change, None) for change, _ in rows)
        return


def _one(client: Client, rows: Ready, ids: dict[Ref, int]) -> None:
    change = rows[0][0]
    if change.action == "create":
        for (each, _), made in zip(rows, client.create(change.kind, [body for _, body in rows]), strict=True):
            ids[each.ref] = made
    elif change.action == "update":
        client.update(change.kind, [{"id": each.id, **body} if each.id else body for each, body in rows])
    else:
        client.delete(change.kind, [each.id for each, _ in rows if each.id])
