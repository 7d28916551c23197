"""What is remembered of other reports: equal parts are found, others are not taken for them, and none shows in rows."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.fleet.rows import DamagedPart
from agent.fleet.rows.counters import CounterRows
from agent.fleet.rows.functions import FunctionReader
from agent.fleet.rows.recent import HOLE, Cutter, Lists, Members, Recent, following, serial_place
from agent.fleet.rows.unique_rows import Functions, Shared
from agent.fleet.tables import LINK, PCI

TEXT = st.text(alphabet='ab"\\: ', max_size=6)
MEMBER = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc"),
        "serial": st.one_of(st.none(), TEXT, st.sampled_from(["X1", "00-1a", "é", "x" * 300])),
    }
)
INDENT = st.sampled_from([None, 2])


def members(text: bytes) -> list[tuple[int, bytes]]:
    """Where each begins, and its text."""
    found, at = [], 0
    for raw in msgspec.json.decode(text, type=list[msgspec.Raw]):
        at = text.index(bytes(raw), at)
        found.append((at, bytes(raw)))
        at += len(bytes(raw))
    return found


def test_a_part_with_another_serial_number_is_found_and_one_with_more_is_not() -> None:
    seen = Members()
    first = b'{"serial": "X1", "y": 1}'
    seen.add(0, first, "made", serial_place(first, "X1"))

    assert seen.find(0, b"[" + first + b",", 1) == ("made", 1 + len(first), "X1")
    assert seen.find(0, b'{"serial": "other-2", "y": 1}', 0) == ("made", 29, "other-2")
    for other in (
        b'{"serial": "", "y": 1}',
        b'{"serial": "a", "z": "b", "y": 1}',
        b'{"serial": "a\\" , "y": 1}',
        b'{"serial": "a b", "y": 1}',
        b'{"serial": "\xc3\xa9", "y": 1}',
        b'{"serial": "a", "y": 2}',
        b'{"serial": "a',
        b'{"serial": "' + b"a" * 300 + b'", "y": 1}',
    ):
        assert seen.find(0, other, 0) is None, other
    assert seen.find(1, first, 0) is None


@pytest.mark.parametrize(
    ("member", "serial", "place"),
    [
        (b'{"serial":"X1"}', "X1", (11, 13)),
        (b'{"serial": "X1"}', "X1", (12, 14)),
        (b'{"serial":  "X1"}', "X1", (0, 0)),
        (b'{"serial":null}', None, (0, 0)),
        (b'{"name":"\\"serial\\":\\"X1","serial":"X2"}', "X2", (36, 38)),
        (b'{"far":{"serial":"X1"},"serial":"X2"}', "X2", (0, 0)),  # of something else, too
        (b'{"far":{"serial":"X1"},"serial":"X1"}', "X1", (0, 0)),
        (b'{"serial":"a b"}', "a b", (0, 0)),
    ],
)
def test_where_a_serial_number_stands(member: bytes, serial: str | None, place: tuple[int, int]) -> None:
    assert serial_place(member, serial) == place


@given(st.lists(st.tuples(st.integers(0, 2), TEXT), max_size=40), TEXT)
def test_whole_texts_are_found_by_their_bytes_alone(parts: list[tuple[int, str]], text: str) -> None:
    recent = Recent()
    for place, each in parts:
        recent.add(place, each.encode(), (place, each))
    for place in range(3):
        found = recent.find(place, text.encode())
        assert found is None or found == (place, text)
        of_place = [each for at, each in parts if at == place]
        if text in of_place[-12:]:
            assert found is not None


@given(st.lists(MEMBER, max_size=6), INDENT)
def test_members_are_gone_through_one_by_one(rows: list[dict[str, object]], indent: int | None) -> None:
    text = json.dumps(rows, indent=indent, separators=None if indent else (",", ":")).encode()
    at = following(text, 1)
    for start, member in members(text):
        assert at == start
        at = following(text, at + len(member))
    assert text[at:] == b"]" or not rows


@given(st.lists(MEMBER, max_size=5), st.lists(MEMBER, max_size=5), INDENT)
def test_a_list_that_is_found_says_what_its_text_says(
    seen: list[dict[str, str | None]], asked: list[dict[str, str | None]], indent: int | None
) -> None:
    lists = Lists()
    texts = [json.dumps(rows, indent=indent, ensure_ascii=False).encode() for rows in (seen, asked)]
    holes = []
    for place, (start, member) in enumerate(members(texts[0])):
        first, last = serial_place(member, seen[place]["serial"])
        if last:
            holes.append((place, start + first, start + last))
    lists.add("kind", texts[0], holes, seen)

    assert lists.find("another kind", texts[0]) is None
    assert lists.find("kind", texts[0]) == (
        seen,
        [place for place, _, _ in holes],
        [seen[p]["serial"] for p, _, _ in holes],
        len(texts[0]),
    )
    assert lists.find("kind", b'{"list": ' + texts[0] + b"}", 9) == (
        *lists.find("kind", texts[0])[:3],
        9 + len(texts[0]),
    )
    found = lists.find("kind", texts[1])
    if found is not None and found[3] == len(texts[1]):
        made = [dict(row) for row in seen]
        for place, serial in zip(found[1], found[2], strict=True):
            made[place]["serial"] = serial
        assert made == asked


LIST = b'[{"a":"[1,2]"},[3]]'


def cutter(learned: bytes) -> Cutter:
    def find(_: object, text: bytes, at: int) -> tuple[bytes, int] | None:
        return (LIST, at + len(LIST)) if text.startswith(LIST, at) else None

    cutter = Cutter({"one": find, "two": find})
    for name in ("one", "two"):
        cutter.learn(name, None, learned, LIST)
    return cutter


@pytest.mark.parametrize("more", [b"", b"x" * 3000])
@pytest.mark.parametrize("colon", [b":", b": "])
def test_lists_are_cut_out_where_they_stood_and_a_little_beside(more: bytes, colon: bytes) -> None:
    def report(before: bytes, between: bytes) -> bytes:
        return b'{"id":"%s","one"%s%s,"far":"%s","two"%s%s}' % (before, colon, LIST, between, colon, LIST)

    seen = cutter(report(b"a", b"b" * 90_000))
    cut = seen.cut(report(b"a" + more, b"b" * 99_000 + more))

    assert cut.known == {"one": LIST, "two": LIST}
    assert cut.text == report(b"a" + more, b"b" * 99_000 + more).replace(LIST, HOLE)
    assert seen.cut(report(b"a" * 9000, b"b")).known == {"two": LIST}  # the other is too far from there


@given(
    st.lists(st.sampled_from([b"one", b'"', b"\\", b":", b": ", b"{", b"}", b",", b"1", b'"one":', LIST]), max_size=12)
)
@settings(deadline=None)
def test_a_report_without_its_lists_is_json_exactly_where_the_report_is(parts: list[bytes]) -> None:
    text = b"".join(parts)
    cut = cutter(b'{"one":' + LIST + b',"two":' + LIST + b"}").cut(text)

    def is_json(text: bytes) -> bool:
        try:
            msgspec.json.decode(text)
        except msgspec.DecodeError:
            return False
        return True

    assert is_json(cut.text) == is_json(text)
    if is_json(text):
        whole = msgspec.json.encode(msgspec.json.decode(cut.text)).replace(
            HOLE, msgspec.json.encode(msgspec.json.decode(LIST))
        )
        assert whole == msgspec.json.encode(msgspec.json.decode(text))


def test_lists_of_one_name_are_cut_out_behind_the_list_before() -> None:
    def find(kind: Any, text: bytes, at: int) -> tuple[Any, int] | None:
        return (kind, at + len(LIST)) if text.startswith(LIST, at) and kind != ("two", 2) else None

    def report(before: bytes) -> bytes:
        return b'{"one":%s,%s"gpus":[%s]}' % (LIST, before, b",".join([b'{"a":1,"two":%s}' % LIST] * 4))

    cutter = Cutter({"one": find, "two": find}, series="two")
    cutter.learn("one", None, report(b""), LIST)
    cut = cutter.cut(report(b""))
    assert cut.known == {"one": None, "two": [("two", 0), ("two", 1), ("two", 3)]}
    first, last = report(b"").replace(LIST, HOLE, 3), b'"two":%s}]}' % LIST
    assert cut.text == first.removesuffix(last) + last.replace(LIST, HOLE)
    assert cutter.cut(report(b'"far":"%s",' % (b"x" * 9000))).known == {"one": None, "two": []}
    assert cutter.cut(report(b"")[8:]).known == {}, "none without the list before"


ERRORS = {"correctable": {"RxErr": 7}}
FUNCTION = st.fixed_dictionaries(
    {
        "id": st.sampled_from([f"0000:0{n}:00.0" for n in range(6)]),
        "class": st.just("0x030200"),
        "serial": st.sampled_from([None, "", "A-1", "B2", 'c"', "d\\", "é", 'x","class":"0x020000']),
        "driver": st.sampled_from([None, "nvidia"]),
        "aer": st.sampled_from([None, None, None, ERRORS]),
        "link": st.sampled_from([None, {"width": 8, "max_width": 16, "quality": {"state": "conclusive"}}]),
        "later": st.sampled_from([0, {"serial": "A-1"}]),
    }
)
LISTS = st.lists(st.lists(FUNCTION, max_size=4, unique_by=lambda each: each["id"]), min_size=2, max_size=6)


class Whole:
    """A reader with its tables."""

    def __init__(self) -> None:
        self.pci, self.links, self.counters = Functions(PCI), Shared(LINK), CounterRows()
        self.reader = FunctionReader(self.pci, self.links, self.counters)

    def told(self, text: bytes) -> Any:
        """All that is told of a list, whatever the numbers of its rows are."""
        try:
            read = self.reader.read(msgspec.Raw(text), "product")[0]
        except DamagedPart as error:
            return str(error)
        names, subjects = list(self.counters.names), list(self.counters.subjects)
        counted = [
            (subjects[self.counters.subject[n]], names[self.counters.name[n]], self.counters.value[n])
            for n in read.counters.numbers
        ]
        rows = [self.pci.row(n) for n in read.rows]
        return rows, self.pci.join_digests(read.rows), [*map(self.links.row, read.links)], read.kinds, counted


@given(LISTS, st.booleans())
@settings(deadline=None)
def test_a_list_after_others_is_read_as_if_it_were_the_first(lists: list[list[dict[str, Any]]], wide: bool) -> None:
    after = Whole()
    for functions in [*lists, *lists]:
        text = msgspec.json.encode(functions)
        if wide:
            text = msgspec.json.format(text, indent=1)
        result = after.told(text)
        assert result == Whole().told(text)
        assert [row[PCI_SERIAL] for row in result[0]] == [function["serial"] for function in functions]


PCI_SERIAL = [column.name for column in PCI.own].index("serial")


def test_what_is_no_list_of_functions_is_damaged() -> None:
    good = b'{"id":"0000:01:00.0","serial":"A1"}'
    reader = Whole()
    assert reader.told(b"[" + good + b"]")[0]
    for text, why in (
        (b"null", "Expected `array`, got `null` - in topology.pci"),
        (b"{}", "Expected `array`, got `object` - in topology.pci"),
        (b"[1]", "Expected `object`, got `int` - in topology.pci[0]"),
        (b"[" + good + b",[]]", "Expected `object`, got `array` - in topology.pci[1]"),
        (b"[" + good + b"," + good + b"]", "an id appears twice - in topology.pci"),
        (b'[{"id":5}]', "Expected `str`, got `int` - at `$.id` - in topology.pci[0]"),
    ):
        assert reader.told(text) == why
    assert reader.told(b"[ ]")[0] == []
