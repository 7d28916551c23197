"""A node's history depends on its reports, never on the order in which they came."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.ingest.history import Edit, NodeHistory, Sighting, TableVersion, is_late, merged

TABLES = ("gpu", "nic")


class Fake(NamedTuple):
    """A report: when it is of, and a digest a table."""

    sighting: Sighting
    digests: tuple[str, ...]

    def change(self, table: str) -> TableVersion:
        digest = self.digests[TABLES.index(table)]
        return TableVersion(digest, len(digest))


_SIGHTING = st.builds(Sighting, st.integers(1, 6), st.integers(1, 2), st.sampled_from("xyz"))
FAKES = st.lists(st.builds(Fake, _SIGHTING, st.tuples(*[st.sampled_from(["", "a", "b"])] * 2)), min_size=1, max_size=9)


class Past:
    """A history that edits are applied to, with what the rows of each change are (their digest)."""

    def __init__(self) -> None:
        self.sightings: dict[int, Sighting] = {}
        self.changes: dict[str, dict[int, TableVersion]] = {table: {} for table in TABLES}
        self.rows: dict[tuple[str, int], str] = {}
        self.latest: Fake | None = None

    def short(self) -> NodeHistory:
        """What ingest knows without looking into the past: the newest sighting, and digests that are not empty."""
        if self.latest is None:
            return NodeHistory({}, {})
        moment = self.latest.sighting.observed
        now = {table: self.latest.change(table) for table in TABLES}
        return NodeHistory(
            {moment: self.latest.sighting},
            {table: {moment: TableVersion(each.digest, 0)} for table, each in now.items() if each.digest},
        )

    def put(self, reports: list[Fake]) -> Edit:
        short = self.short()
        known = NodeHistory(self.sightings, self.changes) if is_late(short, reports) else short
        edit = merged(known, reports, TABLES)
        copied = {(a.table, a.moment): self.rows.get((a.table, a.copied), "") for a in edit.added if a.given is None}
        for table, moment in edit.removed:
            del self.changes[table][moment], self.rows[table, moment]
        for each in edit.added:
            assert each.moment not in self.changes[each.table], "a moment has one change"
            self.changes[each.table][each.moment] = each.change
            given = each.given
            self.rows[each.table, each.moment] = (
                given.change(each.table).digest if given else copied[each.table, each.moment]
            )
        for moment in edit.unseen:
            del self.sightings[moment]
        for sighting in edit.seen:
            assert sighting.observed not in self.sightings
            self.sightings[sighting.observed] = sighting
        if edit.newest is not None:
            assert isinstance(edit.newest, Fake)
            self.latest = edit.newest
        return edit


def expected(reports: list[Fake]) -> tuple[dict[str, list[tuple[int, str]]], Fake]:
    """The same, from all reports at once, in the plainest way."""
    best: dict[int, Fake] = {}
    for each in sorted(reports, key=lambda r: r.sighting):
        best[each.sighting.observed] = each
    changes: dict[str, list[tuple[int, str]]] = {table: [] for table in TABLES}
    for table in TABLES:
        state = ""
        for moment in sorted(best):
            digest = best[moment].change(table).digest
            if digest != state:
                changes[table].append((moment, digest))
                state = digest
    return changes, best[max(best)]


def unique(reports: list[Fake]) -> list[Fake]:
    """Two reports of one SHA-256 are one report."""
    return list({each.sighting: each for each in reports}.values())


@given(FAKES, st.data())
def test_any_order_in_any_pieces_and_repeated(reports: list[Fake], data: st.DataObject) -> None:
    reports = unique(reports)
    wanted, newest = expected(reports)
    queue = data.draw(st.permutations(reports + reports[: data.draw(st.integers(0, len(reports)))]))
    past = Past()
    while queue:
        count = data.draw(st.integers(1, len(queue)))
        past.put(queue[:count])
        queue = queue[count:]

    assert {t: sorted((m, c.digest) for m, c in past.changes[t].items()) for t in TABLES} == wanted
    assert past.latest == newest
    for (table, moment), digest in past.rows.items():
        assert digest == past.changes[table][moment].digest, "the rows of a change are its own"


@given(FAKES)
def test_the_same_reports_again_change_nothing(reports: list[Fake]) -> None:
    reports = unique(reports)
    past = Past()
    past.put(reports)
    again = past.put(reports)

    assert again == Edit(None, [], [], [], [], 0, len(reports))


def test_counts_say_what_came_late_and_what_was_known() -> None:
    past = Past()
    first: Any = Fake(Sighting(5, 5, "x"), ("a", "a"))
    past.put([first])
    edit = past.put([first, Fake(Sighting(3, 3, "y"), ("b", "a")), Fake(Sighting(7, 7, "z"), ("a", "a"))])

    assert (len(edit.seen), edit.late, edit.repeated) == (2, 1, 1)
