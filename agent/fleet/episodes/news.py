"""What is new, back, graver, gone or flapping since a moment, or since the last run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query
from agent.fleet.episodes.history import Episode, episodes, is_at_least
from agent.fleet.episodes.silences import NONE, Silences
from agent.fleet.questions.options import Options, earlier, reference
from agent.fleet.questions.summary import stamp
from agent.model.finding import SEVERITIES

KINDS = ("new", "back", "worse", "flapping", "silent", "gone", "reporting")
ALARMING = KINDS[:5]  # what makes the command exit with 1
FLAPS = 3  # times that a finding began in the time that is looked at
FLAP_WINDOW = timedelta(days=1)  # where only the last run is compared with
ARRIVALS = query("episodes", "arrivals")


class NewsItem(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of news. Times are RFC 3339, UTC. `silent`, `reporting`: of a node, with no finding."""

    kind: str
    node: str
    rule: str | None = None
    severity: str | None = None
    subject: str | None = None
    label: str | None = None
    part: str | None = None
    serial: str | None = None
    began: str | None = None
    ended: str | None = None
    times: int | None = None  # that a flapping finding began
    before: str | None = None  # severity of one that is worse now


class KnownFinding(msgspec.Struct, frozen=True, array_like=True):
    """A finding that was there at the last run."""

    node: str
    rule: str
    subject: str
    fingerprint: str
    severity: str
    label: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is the same finding."""
        return self.node, self.rule, self.subject, self.fingerprint


class NewsState(msgspec.Struct, frozen=True, kw_only=True):
    """What a run leaves for the next one."""

    format: str
    written_at: str
    findings: list[KnownFinding] = []
    silent: list[str] = []
    nodes: list[str] = []


class News(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet news`."""

    format: str = "fabricscope.news/1"
    since: str
    newest: str | None  # when the newest report arrived
    items: list[NewsItem] = []
    silenced: int = 0  # items that an entry of the silence file is for
    open: int = 0  # findings that are there now, silenced ones included

    @property
    def alarming(self) -> list[NewsItem]:
        """Those that make the command exit with 1."""
        return [item for item in self.items if item.kind in ALARMING]


STATE_FORMAT = "fabricscope.news-state/1"


def news_since(
    tables: Tables, since: datetime, options: Options, least: str = "warning", silences: Silences = NONE
) -> News:
    """By the history: what began or ended after a moment."""
    found = episodes(tables, since, least)
    items, silenced = _sorted_out(_of_history(found, since), silences)
    before = earlier(since, timedelta(seconds=options.stale_after_seconds))
    items += [NewsItem(kind="silent", node=node) for node, received in _silent(tables, options) if received >= before]
    return _news(tables, items, silenced, found, stamp(since))


def news_since_last(
    tables: Tables, last: NewsState, options: Options, least: str = "warning", silences: Silences = NONE
) -> tuple[News, NewsState]:
    """By what the last run left: also what arrived late is news."""
    now = options.now or datetime.min  # noqa: DTZ901  # times of a dataset have no zone
    found = episodes(tables, earlier(now, FLAP_WINDOW), least)
    silent = [node for node, _ in _silent(tables, options)]
    window = earlier(now, FLAP_WINDOW), datetime.fromisoformat(last.written_at).replace(tzinfo=None)
    items, silenced = _sorted_out(_of_state(found, last, least, *window), silences)
    known = set(last.nodes)
    items += [NewsItem(kind="silent", node=node) for node in silent if node not in last.silent and node in known]
    items += [NewsItem(kind="reporting", node=node) for node in last.silent if node not in silent]
    return _news(tables, items, silenced, found, last.written_at), state_of(tables, options, least)


def state_of(tables: Tables, options: Options, least: str = "warning") -> NewsState:
    """What there is now."""
    now = options.now or datetime.min  # noqa: DTZ901  # times of a dataset have no zone
    there = [each for each in episodes(tables, now, least) if each.ended is None]
    return NewsState(
        format=STATE_FORMAT,
        written_at=stamp(now),
        findings=[
            KnownFinding(each.node, each.rule, each.subject, each.fingerprint, each.severity, each.label)
            for each in there
        ],
        silent=[node for node, _ in _silent(tables, options)],
        nodes=sorted(node for node, _ in tables.rows(ARRIVALS)),
    )


def _of_history(found: list[Episode], since: datetime) -> Iterator[tuple[Episode, NewsItem]]:
    begins = Counter(each.key for each in found if each.began > since and not each.is_continuation)
    told = set()
    for each in found:
        if begins[each.key] >= FLAPS:
            if each.key not in told:
                told.add(each.key)
                yield each, _item("flapping", each, times=begins[each.key])
        elif each.ended is None and each.began > since:
            if each.is_continuation:
                if _is_graver(each.severity, each.previous_severity):
                    yield each, _item("worse", each, before=each.previous_severity)
            else:
                yield each, _item("new" if each.previous_ended is None else "back", each)
        elif each.is_gone and each.began <= since:
            yield each, _item("gone", each)


def _of_state(
    found: list[Episode], last: NewsState, least: str, window: datetime, last_run: datetime
) -> Iterator[tuple[Episode, NewsItem]]:
    known = {each.key: each for each in last.findings if is_at_least(each.severity, least)}
    begun = [each for each in found if each.began > window and not each.is_continuation]
    begins, again = Counter(each.key for each in begun), {each.key for each in begun if each.began > last_run}
    flapping = {key for key in again if begins[key] >= FLAPS}
    newest = {each.key: each for each in found}
    for key in sorted(flapping):
        yield newest[key], _item("flapping", newest[key], times=begins[key])
    there = set(flapping)
    for each in found:
        if each.ended is not None or each.key in flapping:
            continue
        there.add(each.key)
        before = known.get(each.key)
        if before is None:
            yield each, _item("back" if each.previous_ended is not None else "new", each)
        elif _is_graver(each.severity, before.severity):
            yield each, _item("worse", each, before=before.severity)
    ended = {each.key: each for each in found if each.ended is not None}
    for key, before in known.items():
        if key not in there:
            end = ended.get(key)
            gone = Episode(*key[:2], before.severity, *key[2:], before.label, None, None, _NO_TIME, _NO_TIME)
            yield gone, _item("gone", end or gone)


_NO_TIME = datetime.min  # noqa: DTZ901  # not known


def _sorted_out(found: Iterable[tuple[Episode, NewsItem]], silences: Silences) -> tuple[list[NewsItem], int]:
    items, silenced = [], 0
    for episode, item in found:
        if silences.find(episode) is None:
            items.append(item)
        else:
            silenced += 1
    return items, silenced


def _item(kind: str, each: Episode, times: int | None = None, before: str | None = None) -> NewsItem:
    return NewsItem(
        kind=kind,
        node=each.node,
        rule=each.rule,
        severity=each.severity,
        subject=each.subject,
        label=each.label,
        part=each.part,
        serial=each.part_serial,
        began=stamp(each.began) if each.began != _NO_TIME else None,
        ended=stamp(each.ended) if each.ended is not None and each.ended != _NO_TIME else None,
        times=times,
        before=before,
    )


def _is_graver(severity: str, before: str | None) -> bool:
    return before is not None and before in SEVERITIES and SEVERITIES.index(severity) > SEVERITIES.index(before)


def _news(tables: Tables, items: list[NewsItem], silenced: int, found: list[Episode], since: str) -> News:
    newest = max((received for _, received in tables.rows(ARRIVALS) if received), default=None)
    order = {kind: place for place, kind in enumerate(KINDS)}
    return News(
        since=since,
        newest=stamp(newest) if newest else None,
        items=sorted(
            items, key=lambda item: (order[item.kind], -_rank(item), item.rule or "", item.node, item.subject or "")
        ),
        silenced=silenced,
        open=sum(each.ended is None for each in found),
    )


def _rank(item: NewsItem) -> int:
    return SEVERITIES.index(item.severity) if item.severity else -1


def _silent(tables: Tables, options: Options) -> list[tuple[str, datetime]]:
    """Nodes whose last report arrived too long ago, and when."""
    arrivals = [(node, received) for node, received in tables.rows(ARRIVALS) if received]
    if not arrivals:
        return []
    newest = max(received for _, received in arrivals)
    cut = earlier(reference(newest, options), timedelta(seconds=options.stale_after_seconds))
    return sorted((node, received) for node, received in arrivals if received < cut)
