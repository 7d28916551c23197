"""What is remembered of other reports does not show in a report's rows."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.fleet.rows import DamagedPart
from agent.fleet.rows.functions import FunctionReader
from agent.fleet.rows.unique_rows import CounterRows, Functions, Shared
from agent.fleet.tables import LINK, PCI

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
            read = self.reader.read(msgspec.Raw(text), "product")
        except DamagedPart as error:
            return str(error)
        names, subjects = list(self.counters.names), list(self.counters.subjects)
        counted = [
            (subjects[self.counters.subject[n]], names[self.counters.name[n]], self.counters.value[n])
            for n in read.counters
        ]
        rows = [self.pci.row(n) for n in read.rows]
        return rows, self.pci.digest(read.rows), [self.links.row(n) for n in read.links], read.kinds, counted


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
        (b"[" + good + b"," + good + b"]", "an id stands there twice - in topology.pci"),
        (b'[{"id":5}]', "Expected `str`, got `int` - at `$.id` - in topology.pci[0]"),
    ):
        assert reader.told(text) == why
    assert reader.told(b"[ ]")[0] == []
