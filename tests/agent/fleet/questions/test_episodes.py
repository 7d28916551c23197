"""What is new, back, worse, gone or flapping, and what fails again and again."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.fleet.engines import connect
from agent.fleet.episodes.finding_changes import FLAPS, News, NewsItem, news_since, news_since_last, state_of
from agent.fleet.episodes.repeat import Repeats, repeats
from agent.fleet.episodes.silences import NONE, FleetSilence, Silences
from agent.fleet.ingest.forgetting import ForgetRequest, forget
from agent.fleet.questions.options import Options
from agent.fleet.text.news import page, repeat_page, slack, webhook
from agent.outputs.text.lines import to_plain_text
from tests.agent.fleet.small import START, finding, interface, node, port, take

START_NAIVE = START.replace(tzinfo=None)


def hours(count: float) -> datetime.datetime:
    """After the start, UTC without a zone."""
    return START_NAIVE + datetime.timedelta(hours=count)


@contextmanager
def fleet(place: Path, **nodes: list[list[dict[str, Any]]]) -> Iterator[Any]:
    """The tables of nodes by their findings, a report an hour."""
    take(
        place / "dataset",
        *(node(host, hour, findings=state) for host, states in nodes.items() for hour, state in enumerate(states)),
    )
    engine = connect(None, str(place / "dataset"))
    try:
        yield engine
    finally:
        engine.close()


def told(found: News) -> list[tuple[str, str, str | None]]:
    """Kind, node, rule."""
    return [(item.kind, item.node, item.rule) for item in found.items]


A, B = finding("a"), finding("b", "GPU1", "error")


def test_new_back_gone_and_worse(tmp_path: Path) -> None:
    with fleet(
        tmp_path,
        fresh=[[], [], [A]],
        back=[[A], [], [A]],
        gone=[[A], [A], []],
        worse=[[A], [A], [{**A, "severity": "critical"}]],
        milder=[[{**A, "severity": "critical"}], [A], [A]],
        same=[[A, B], [A, B], [A, B]],
        brief=[[], [], []],
    ) as tables:
        result = news_since(tables, hours(1.5), Options(now=hours(2)))

    assert [("new", "fresh", "a"), ("back", "back", "a"), ("worse", "worse", "a"), ("gone", "gone", "a")] == told(
        result
    )
    assert ["new", "back", "worse"] == [item.kind for item in result.alarming]
    assert ("warning", 6) == (result.items[2].before, result.open)
    assert ("2026-01-15T08:00:00Z", "2026-01-15T10:00:00Z") == (result.items[3].began, result.items[3].ended)


def test_flapping_is_one_item(tmp_path: Path) -> None:
    with fleet(tmp_path, flaps=[[A], [], [A], [], [A], [], [A]], steady=[[A]]) as tables:
        result = news_since(tables, hours(0.5), Options(now=hours(6)))

    assert [("flapping", "flaps", "a")] == told(result)
    assert FLAPS == result.items[0].times


def test_info_counts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    with fleet(tmp_path, n=[[], [finding("i", severity="info")]]) as tables:
        assert [] == told(news_since(tables, hours(0), Options(now=hours(1))))
        assert [("new", "n", "i")] == told(news_since(tables, hours(0), Options(now=hours(1)), "info"))


def test_a_node_that_became_stale_is_news_once(tmp_path: Path) -> None:
    quiet = [[] for _ in range(10)]
    with fleet(tmp_path, silent=[[]], long=[[]], n=quiet) as tables:
        options = Options(stale_after_seconds=3 * 3600, now=hours(9))

        assert [("silent", "long", None), ("silent", "silent", None)] == told(news_since(tables, hours(2), options))
        assert [] == told(news_since(tables, hours(4), options))


def last(place: Path, *reports: bytes, hour: float, before: Any = None, silences: Silences = NONE) -> Any:
    """Take reports, and tell the news since the state before; the state after."""
    if reports:
        take(place / "dataset", *reports)
    engine = connect(None, str(place / "dataset"))
    try:
        options = Options(stale_after_seconds=3 * 3600, now=hours(hour))
        if before is None:
            return None, state_of(engine, options)
        return news_since_last(engine, before, options, silences=silences)
    finally:
        engine.close()


def test_since_the_last_run(tmp_path: Path) -> None:
    _, state = last(tmp_path, node("n1", 0, findings=[A]), node("n2", 0, findings=[B]), hour=0.1)
    result, state = last(tmp_path, node("n1", 1, findings=[A, B]), node("n2", 1, findings=[]), hour=1.1, before=state)
    assert [("new", "n1", "b"), ("gone", "n2", "b")] == told(result)
    assert ("error", "GPU1") == (result.items[1].severity, result.items[1].label)

    again, state = last(tmp_path, hour=1.2, before=state)
    assert ([], 2) == (told(again), again.open)

    late, state = last(tmp_path, node("n3", 0.5, findings=[A]), hour=1.3, before=state)
    assert [("new", "n3", "a")] == told(late)

    silent, state = last(tmp_path, node("n1", 5, findings=[A, B]), hour=5.1, before=state)
    assert [("silent", "n2", None), ("silent", "n3", None)] == told(silent)
    back, state = last(tmp_path, node("n2", 6, findings=[B]), hour=6.1, before=state)
    assert [("back", "n2", "b"), ("reporting", "n2", None)] == told(back)


def test_a_forgotten_node_is_no_news(tmp_path: Path) -> None:
    """Its findings were not repaired, and it does not report again; by the history and by the last run."""
    now = START + datetime.timedelta(hours=6)
    _, state = last(tmp_path, node("n1", 0, findings=[A]), node("n2", 5, findings=[B]), hour=5.5)
    assert ["n1"] == state.silent
    forget(ForgetRequest(dataset=str(tmp_path / "dataset"), nodes=["n1"]), now)

    result, state = last(tmp_path, node("n2", 6.1, findings=[B]), hour=6.2, before=state)
    assert [] == told(result)
    engine = connect(None, str(tmp_path / "dataset"))
    assert [] == told(news_since(engine, hours(5.2), Options(now=hours(6.2))))
    engine.close()


def test_a_finding_that_flaps_between_runs(tmp_path: Path) -> None:
    _, state = last(tmp_path, node("n1", 0, findings=[A]), hour=0.1)
    flaps = [node("n1", hour, findings=[A] if hour % 2 == 0 else []) for hour in range(1, 7)]

    result, state = last(tmp_path, *flaps, hour=6.1, before=state)

    assert [("flapping", "n1", "a")] == told(result)
    assert [] == told(last(tmp_path, hour=6.2, before=state)[0])


def silenced(*entries: FleetSilence, day: int = 15) -> Silences:
    """Entries on a day of January."""
    return Silences(entries, datetime.date(2026, 1, day))


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        (FleetSilence(rule="a", reason="r"), 2),
        (FleetSilence(rule="a", reason="r", node="n[1,7]"), 1),
        (FleetSilence(rule="a", reason="r", device="GPU0"), 2),
        (FleetSilence(rule="a", reason="r", device="gpu:GPU0", node="n2"), 1),
        (FleetSilence(rule="a", reason="r", device="a-GPU0"), 2),
        (FleetSilence(rule="a", reason="r", device="GPU1"), 0),
        (FleetSilence(rule="b", reason="r"), 0),
        (FleetSilence(rule="a", reason="r", until=datetime.date(2026, 1, 15)), 2),
        (FleetSilence(rule="a", reason="r", until=datetime.date(2026, 1, 14)), 0),
    ],
)
def test_what_the_operator_acknowledged_is_counted_and_not_told(
    entry: FleetSilence, count: int, tmp_path: Path
) -> None:
    silences = silenced(entry)
    with fleet(tmp_path, n1=[[], [A]], n2=[[], [A]]) as tables:
        result = news_since(tables, hours(0), Options(now=hours(1)), silences=silences)

    assert (2 - count, count) == (len(result.items), result.silenced)
    assert (entry.until is not None and entry.until.day < 15) == bool(silences.ended)


def many(tmp_path: Path, **more: Any) -> Repeats:
    """A GPU that moved and fails on both nodes, a port that flaps, one that failed once."""
    gpu = {**A, "location": {"part": "SXM module 4", "serial": "S123"}}
    port = {**finding("link-flap", "mlx5_0/1", "error"), "subject": "port:0000:10:00.0/1", "fingerprint": "p"}
    with fleet(
        tmp_path,
        n1=[[gpu], [], [gpu], []],
        n2=[[], [], [], [gpu]],
        n3=[[port], [], [port], [{**port, "severity": "critical"}]],
        once=[[A], [A], [A], []],
    ) as tables:
        return repeats(tables, more.pop("since", hours(-1)), hours(4), **more)


def test_repeat_offenders_by_serial_number_and_by_device(tmp_path: Path) -> None:
    result = many(tmp_path)

    gpu, port = result.offenders
    assert ("S123", "SXM module 4", "n[1-2]", 3, True, 3.0) == (
        gpu.serial, gpu.part, gpu.hosts, gpu.episodes, gpu.open, gpu.hours,
    )  # fmt: skip
    assert ("mlx5_0/1", "n3", 2, "critical", 3.0) == (port.label, port.hosts, port.episodes, port.severity, port.hours)
    assert [("link-flap", 2)] == port.rules
    assert "n[1-2] GPU0, SXM module 4, serial S123" in to_plain_text(repeat_page(result)).splitlines()


def test_repeats_of_a_shorter_time_or_more_often(tmp_path: Path) -> None:
    assert ["S123"] == [offender.serial for offender in many(tmp_path, times=3).offenders]


def test_findings_that_began_at_once_are_one_episode(tmp_path: Path) -> None:
    """A GPU that fails once, seen by two rules, is no repeat offender; each rule's own count stays."""
    other = {**A, "rule": "c", "fingerprint": "c"}
    with fleet(tmp_path, once=[[], [A, other], []], again=[[A, other], [], [A, other]]) as tables:
        result = repeats(tables, hours(-1), hours(4))

    assert [("again", 2, [("a", 2), ("c", 2)])] == [(o.hosts, o.episodes, o.rules) for o in result.offenders]


def test_repeats_that_are_silenced(tmp_path: Path) -> None:
    result = many(tmp_path, silences=silenced(FleetSilence(rule="a", reason="RMA sent", node="n[1-2]")))

    assert ([None], 3) == ([offender.serial for offender in result.offenders], result.silenced)


ITEMS = [
    NewsItem(kind="new", node="n1", rule="a", severity="error", label="GPU<0>", began="2026-01-15T08:00:00Z"),
    NewsItem(kind="new", node="n2", rule="a", severity="error", label="GPU1", began="2026-01-15T09:00:00Z"),
    NewsItem(kind="worse", node="n2", rule="b", severity="critical", label="node", before="warning"),
    NewsItem(kind="silent", node="n3"),
    NewsItem(kind="gone", node="n4", rule="c", severity="warning", label="GPU1", ended="2026-01-15T09:00:00Z"),
]
NEWS = News(since="2026-01-15T00:00:00Z", newest="2026-01-15T00:00:00Z", items=ITEMS, silenced=1, open=7)


def test_in_words() -> None:
    text = to_plain_text(page(NEWS, 200))

    assert "since 2026-01-15T00:00:00Z: 4 new, 1 gone or back to normal, 7 findings open, 1 silenced" in text
    assert "ERROR a: n[1-2] on GPU1, GPU<0> [2026-01-15T08:00:00Z to 2026-01-15T09:00:00Z]" in text
    assert "CRITICAL b: n2; was warning" in text
    assert "Stopped reporting\n  n3" in text
    assert "nothing new" in to_plain_text(page(News(since="x", newest="x")))


@pytest.mark.parametrize(
    ("newest", "words"), [(None, "there is none"), ("2026-01-14T23:00:00Z", "the newest is of 2026-01-14T23:00:00Z")]
)
def test_nothing_is_new_only_where_reports_arrived(newest: str | None, words: str) -> None:
    """A collection that stopped is not called quiet."""
    text = to_plain_text(page(News(since="2026-01-15T00:00:00Z", newest=newest), 200))

    assert f", no report arrived in this time ({words})" in text
    assert "nothing new" not in text


def test_bodies_of_requests() -> None:
    text = slack(NEWS)["text"]
    assert "*New*\n• ERROR a: n[1-2] on GPU1, GPU&lt;0&gt;" in text
    body = webhook(NEWS)
    assert ("critical", 5) == (body["severity"], len(body["news"]["items"]))
    assert "Stopped reporting: n3" in body["text"]
    flood = News(
        since="x",
        newest=None,
        items=[NewsItem(kind="new", node=f"n{n}", rule=f"r{n}", severity="error") for n in range(99)],
    )
    assert slack(flood)["text"].endswith("and 61 lines more")


def test_the_far_end_of_a_port_that_flaps(tmp_path: Path) -> None:
    """By the host's own fabric file, and by LLDP of its interface."""
    rail = {**port(7, "0000:0000:0000:0001")}
    rail["ports"][0]["neighbor"] = {"guid": "b83f:d203:0000:0001", "name": "leaf03", "port": 12}
    flap = {**finding("link-flap", "mlx5_0/1"), "subject": "port:0000:10:00.0/1", "fingerprint": "p"}
    ether = {**interface("ens1", "b8:3f:d2:00:00:01"), "neighbor": {"system": "tor1", "port": "swp7"}}
    flap_of_ether = {**finding("eth-flap", "ens1"), "subject": "netdev:ens1", "fingerprint": "q"}
    states = [[flap, flap_of_ether], [], [flap, flap_of_ether]]
    take(
        tmp_path / "dataset",
        *(node("n1", hour, findings=state, nics=[rail], netdevs=[ether]) for hour, state in enumerate(states)),
    )
    engine = connect(None, str(tmp_path / "dataset"))
    result = repeats(engine, hours(-1), hours(4))
    engine.close()

    assert {"link-flap": "leaf03/12", "eth-flap": "tor1/swp7"} == {
        offender.rules[0][0]: offender.far_end for offender in result.offenders
    }


def test_no_name_calls_a_channel_or_begins_a_line() -> None:
    """In what a chat shows; a name of 10 kB does not push the others out."""
    names = {"node": "<!channel>", "rule": "r", "severity": "error", "label": "\n*New*\x1b[31m\u202e<http://x|y>"}
    answer = News(
        since="", newest=None, items=[NewsItem(kind="new", **names), NewsItem(kind="silent", node="n" * 10_000)]
    )
    for text in (slack(answer)["text"], webhook(answer)["text"]):
        assert [c for c in text if c != "\n" and not c.isprintable()] == []
        assert max(map(len, text.split("\n"))) < 1000
        assert text.count("\n") <= 4
    assert not {"<", ">"} & set(slack(answer)["text"])
