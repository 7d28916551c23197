"""`plan` reads NetBox and says what is to be done; `apply` does it, and reads again where it cannot know what was."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agent.netbox import of_devices, reading
from agent.netbox.asking import Client
from agent.netbox.changes import Change, Note, Ref
from agent.netbox.current import Holding
from agent.netbox.matching import Given, Match, matched
from agent.netbox.of_modules import Of, by_name
from agent.netbox.sending import Failed, Sent, send
from agent.netbox.trouble import BadAccess

ROUNDS = 4  # of reading and sending, where requests end without an answer
WAIT_SECONDS = 5.0  # before the second, twice that before the third: what was sent may still be at work


class Place(NamedTuple):
    """Where devices are made that NetBox does not have: slugs."""

    site: str
    role: str
    device_type: str  # "slug", or "manufacturer/slug"


class Wish(NamedTuple):
    """What a run may do."""

    create: Place | None = None
    prune: bool = False
    site: str | None = None  # look for devices there only
    limit: int | None = None  # of changes


class Plan(NamedTuple):
    """What was found, and what is to be done about it."""

    matches: list[Match]
    changes: list[Change]
    notes: list[Note]
    ids: dict[Ref, int]

    @property
    def in_step(self) -> bool:
        """Whether NetBox has all of it, and nothing speaks against that."""
        unsettled = any(note.conflict for note in self.notes) or any(match.problem for match in self.matches)
        return not self.changes and not unsettled


class Applied(NamedTuple):
    """What came of it; `plan` is the last one, where NetBox was read again.

    `stopped`: why nothing was sent; `broken`: why it ended early.
    """

    plan: Plan
    done: list[Change]
    failed: list[Failed]
    stopped: str | None = None
    broken: str | None = None

    @property
    def in_step(self) -> bool:
        """Whether NetBox has all of it now."""
        return not self.failed and not self.stopped and not self.broken and self.plan._replace(changes=[]).in_step


def plan(client: Client, given: Sequence[Given], wish: Wish) -> Plan:
    """Read, compare. Raises BadAccess."""
    place = _place(client, wish.create) if wish.create else {}
    site = wish.site or (wish.create.site if wish.create else None)
    if wish.site and not wish.create:
        _one(client, "site", wish.site)
    matches = matched(given, reading.devices_like(client, [each.node for each in given], site), wish.create is not None)
    taken = [match for match in matches if not match.problem and not match.older]
    found = reading.holdings(client, [match.device for match in taken if match.device])
    nodes = [match.given.node for match in taken]
    shared = reading.shared(client, nodes, found.values())
    each_of = [
        Of(
            match.key,
            match.given.node,
            found[match.device.id] if match.device else Holding(),
            shared.module_types,
            wish.prune,
        )
        for match in taken
    ]
    if shared.tags:
        reading.with_journals(client, [of.has for of in each_of if of_devices.unsettled(of)])
    changes: list[Change] = []
    notes: list[Note] = []
    for match, of in zip(taken, each_of, strict=True):
        if match.new:
            changes.append(of_devices.new_device(of, match.label, place))
        own = of_devices.differences(of, shared)
        changes += own.changes
        notes += own.notes
    if changes:
        changes = of_devices.of_shared(nodes, shared, changes).changes + changes
    ids = {Ref("module bay", of.key, bay.name): bay.id for of in each_of for bay in by_name(of).values()}
    return Plan(matches, changes, notes, ids)


def apply(client: Client, given: Sequence[Given], wish: Wish, wait: Callable[[float], None] | None = None) -> Applied:
    """Bring NetBox in step. Raises BadAccess while nothing was sent yet."""
    now: Plan | None = None
    done: list[Change] = []
    failed: dict[tuple[str, str, Ref], Failed] = {}
    sent = Sent([], [])
    for at in range(ROUNDS):
        try:
            now = plan(client, given, wish)
        except BadAccess as error:
            if now is None:
                raise
            return Applied(now, done, list(failed.values()), broken=str(error))
        if at == 0 and wish.limit is not None and len(now.changes) > wish.limit:
            return Applied(now, [], [], stopped=f"{len(now.changes)} changes, and --limit-changes is {wish.limit}")
        new = {match.key for match in now.matches if match.new}
        sent = send(
            client, [each for each in now.changes if each.of not in new and _identity(each) not in failed], now.ids
        )
        done += sent.done
        failed |= {_identity(each.change): each for each in sent.failed}
        made = {each.name for each in sent.done if each.kind == "device" and each.action == "create"}
        if sent.broken or not (sent.unsure or made):  # devices that were just made have what their type brings along
            break
        if sent.unsure and at + 1 < ROUNDS:
            (wait or time.sleep)(WAIT_SECONDS * 2**at)
    assert now is not None
    return Applied(now, done, list(failed.values()), broken=sent.broken or sent.unsure)


def _identity(change: Change) -> tuple[str, str, Ref]:
    return change.stage, change.action, change.ref


def _place(client: Client, place: Place) -> Mapping[str, int]:
    """Ids of a site, a role and a device type. Raises BadAccess where there is none, or more than one."""
    maker, _, kind = place.device_type.rpartition("/")
    filters = {"manufacturer": [maker]} if maker else {}
    if maker:
        _one(client, "manufacturer", maker)
    return {
        "site": _one(client, "site", place.site),
        "role": _one(client, "role", place.role),
        "device_type": _one(client, "device type", kind, **filters),
    }


def _one(client: Client, kind: str, slug: str, **filters: Sequence[str]) -> int:
    rows = client.read(kind, slug=[slug], **filters)
    if len(rows) > 1:
        raise BadAccess(f"{len(rows)} objects in NetBox are the {kind} {slug}: say MANUFACTURER/{slug}")
    if not rows:
        raise BadAccess(f"no {kind} in NetBox has the slug {slug}")
    return int(rows[0]["id"])
