"""What is new, back, more severe, gone or flapping since a moment, or since the last run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query
from agent.fleet.episodes import Episode, episodes, is_at_least
from agent.fleet.episodes.silences import NONE, Silences
from agent.fleet.questions.options import Options, find_stale_cut, format_stamp, subtract_time
from agent.model.finding import SEVERITIES

KINDS = ("new", "back", "worse", "flapping", "silent", "gone", "reporting")
ALARMING = KINDS[:5]  # what makes the command exit with 1
FLAPS = 3  # times that a finding began in the time that is looked at
FLAP_WINDOW = timedelta(days=1)  # where only the last run is compared with
ARRIVALS, SWITCH_NODES = query("episodes", "arrivals"), query("episodes", "switch_nodes")


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
    fleet_window: str | None = None  # made by the fleet from two reports of these times; null: by the node


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
    episode_list = episodes(tables, since, least)
    items, silenced = _sorted_out(_of_history(episode_list, since), silences)
    before = subtract_time(since, timedelta(seconds=options.stale_after_seconds))
    items += [
        NewsItem(kind="silent", node=node) for node, received in _list_silent(tables, options) if received >= before
    ]
    return _news(tables, items, silenced, episode_list, format_stamp(since))


def news_since_last(
    tables: Tables, last: NewsState, options: Options, least: str = "warning", silences: Silences = NONE
) -> tuple[News, NewsState]:
    """By what the last run left: also what arrived late is news."""
    now = options.now or datetime.min  # noqa: DTZ901  # times of a dataset have no zone
    episode_list = episodes(tables, subtract_time(now, FLAP_WINDOW), least)
    silent = [node for node, _ in _list_silent(tables, options)]
    window = subtract_time(now, FLAP_WINDOW), datetime.fromisoformat(last.written_at).replace(tzinfo=None)
    items, silenced = _sorted_out(_of_state(episode_list, last, least, *window), silences)
    known = set(last.nodes)
    items += [NewsItem(kind="silent", node=node) for node in silent if node not in last.silent and node in known]
    items += [NewsItem(kind="reporting", node=node) for node in last.silent if node not in silent]
    return _news(tables, items, silenced, episode_list, last.written_at), state_of(tables, options, least)


def state_of(tables: Tables, options: Options, least: str = "warning") -> NewsState:
    """What there is now."""
    now = options.now or datetime.min  # noqa: DTZ901  # times of a dataset have no zone
    there = [episode for episode in episodes(tables, now, least) if episode.ended is None]
    return NewsState(
        format=STATE_FORMAT,
        written_at=format_stamp(now),
        findings=[
            KnownFinding(
                episode.node, episode.rule, episode.subject, episode.fingerprint, episode.severity, episode.label
            )
            for episode in there
        ],
        silent=[node for node, _ in _list_silent(tables, options)],
        nodes=sorted(node for node, _ in tables.rows(ARRIVALS)),
    )


def _of_history(episode_list: list[Episode], since: datetime) -> Iterator[tuple[Episode, NewsItem]]:
    begins = Counter(episode.key for episode in episode_list if episode.began > since and not episode.is_continuation)
    seen = set()
    for episode in episode_list:
        if begins[episode.key] >= FLAPS:
            if episode.key not in seen:
                seen.add(episode.key)
                yield episode, _item("flapping", episode, times=begins[episode.key])
        elif episode.ended is None and episode.began > since:
            if episode.is_continuation:
                if _is_graver(episode.severity, episode.previous_severity):
                    yield episode, _item("worse", episode, before=episode.previous_severity)
            else:
                yield episode, _item("new" if episode.previous_ended is None else "back", episode)
        elif episode.is_gone and episode.began <= since:
            yield episode, _item("gone", episode)


def _of_state(
    episode_list: list[Episode], last: NewsState, least: str, window: datetime, last_run: datetime
) -> Iterator[tuple[Episode, NewsItem]]:
    known = {finding.key: finding for finding in last.findings if is_at_least(finding.severity, least)}
    begun = [episode for episode in episode_list if episode.began > window and not episode.is_continuation]
    begins, again = (
        Counter(episode.key for episode in begun),
        {episode.key for episode in begun if episode.began > last_run},
    )
    flapping = {key for key in again if begins[key] >= FLAPS}
    newest = {episode.key: episode for episode in episode_list}
    for key in sorted(flapping):
        yield newest[key], _item("flapping", newest[key], times=begins[key])
    there = set(flapping)
    for episode in episode_list:
        if episode.ended is not None or episode.key in flapping:
            continue
        there.add(episode.key)
        before = known.get(episode.key)
        if before is None:
            yield episode, _item("back" if episode.previous_ended is not None else "new", episode)
        elif _is_graver(episode.severity, before.severity):
            yield episode, _item("worse", episode, before=before.severity)
    ended = {episode.key: episode for episode in episode_list if episode.ended is not None}
    for key, before in known.items():
        if key not in there:
            end = ended.get(key)
            gone = Episode(*key[:2], before.severity, *key[2:], before.label, None, None, _NO_TIME, _NO_TIME)
            yield gone, _item("gone", end or gone)


_NO_TIME = datetime.min  # noqa: DTZ901  # not known


def _sorted_out(pairs: Iterable[tuple[Episode, NewsItem]], silences: Silences) -> tuple[list[NewsItem], int]:
    items, silenced = [], 0
    for episode, item in pairs:
        if silences.find(episode) is None:
            items.append(item)
        else:
            silenced += 1
    return items, silenced


def _item(kind: str, episode: Episode, times: int | None = None, before: str | None = None) -> NewsItem:
    return NewsItem(
        kind=kind,
        node=episode.node,
        rule=episode.rule,
        severity=episode.severity,
        subject=episode.subject,
        label=episode.label,
        part=episode.part,
        serial=episode.part_serial,
        began=format_stamp(episode.began) if episode.began != _NO_TIME else None,
        ended=format_stamp(episode.ended) if episode.ended is not None and episode.ended != _NO_TIME else None,
        times=times,
        before=before,
        fleet_window=episode.fleet_window,
    )


def _is_graver(severity: str, before: str | None) -> bool:
    return before is not None and before in SEVERITIES and SEVERITIES.index(severity) > SEVERITIES.index(before)


def _news(tables: Tables, items: list[NewsItem], silenced: int, episode_list: list[Episode], since: str) -> News:
    """Of nodes that are in the dataset: what a forgotten one had is neither repaired nor back."""
    arrivals: dict[str, datetime | None] = dict(tables.rows(ARRIVALS))
    present = arrivals.keys() | {node for (node,) in tables.rows(SWITCH_NODES)}
    items = [item for item in items if item.node in present]
    newest = max((received for received in arrivals.values() if received), default=None)
    order = {kind: place for place, kind in enumerate(KINDS)}
    return News(
        since=since,
        newest=format_stamp(newest) if newest else None,
        items=sorted(
            items, key=lambda item: (order[item.kind], -_rank(item), item.rule or "", item.node, item.subject or "")
        ),
        silenced=silenced,
        open=sum(episode.ended is None for episode in episode_list),
    )


def _rank(item: NewsItem) -> int:
    return SEVERITIES.index(item.severity) if item.severity else -1


def _list_silent(tables: Tables, options: Options) -> list[tuple[str, datetime]]:
    """Nodes whose last report arrived too long ago, and when."""
    arrivals = [(node, received) for node, received in tables.rows(ARRIVALS) if received]
    if not arrivals:
        return []
    newest = max(received for _, received in arrivals)
    cut = find_stale_cut(newest, options)
    return sorted((node, received) for node, received in arrivals if received < cut)
