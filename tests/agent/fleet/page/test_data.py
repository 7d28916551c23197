"""The data between the page's tags: harmless, and the same when it is read back."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.page.data import column, embedded, packed, spans
from agent.fleet.page.page import page, policy
from tests.agent.fleet.page.given import fleet, hostile


class Seen(HTMLParser):
    """What a parser finds in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.policies: list[str | None] = []
        self.strangers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Scripts, the policy, and what the page never holds."""
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given)
        if "http-equiv" in given:
            self.policies.append(given["content"])
        if tag in ("img", "iframe", "object", "link", "base", "form") or any(each.startswith("on") for each in given):
            self.strangers.append(tag)


def test_no_tag_can_begin_or_end_in_it() -> None:
    """Whatever a name holds."""
    text = embedded(hostile())

    assert not set("<>&\u2028\u2029") & set(text)
    assert "alert(1)" in text
    assert json.loads(text)["names"][0].startswith("gpu01</script>")


def test_the_page_has_its_own_elements_only() -> None:
    """Two scripts: the data, and the one whose hash the policy names, as it names that of the style."""
    text = page(hostile())
    seen = Seen()
    seen.feed(text)

    assert [{"id": "data", "type": "application/json"}, {}] == seen.scripts
    assert not seen.strangers
    script = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert [policy(script, style)] == seen.policies
    assert "unsafe" not in seen.policies[0]
    assert " style=" not in text.partition("</style>")[2].partition("<script")[0]


def test_the_same_scene_gives_the_same_bytes() -> None:
    """Nothing of the page looks at a clock."""
    assert page(fleet(50)) == page(fleet(50))


def test_the_script_does_not_stand_in_its_own_way() -> None:
    """What would end or hide it in the page is not in it."""
    text = page(fleet(1))
    script = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]

    assert not re.search(r"</script|<!--|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


@given(st.lists(st.integers(-1, 3)))
def test_a_column_is_what_it_was(numbers: list[int]) -> None:
    """Runs or not."""
    made = column(numbers)
    if isinstance(made, list):
        assert numbers == made
    else:
        runs = made["r"]
        assert numbers == [each for at in range(0, len(runs), 2) for each in [runs[at]] * runs[at + 1]]
        assert len(runs) < len(numbers)


@given(st.sets(st.integers(0, 60)))
def test_spans_are_the_same_nodes(numbers: set[int]) -> None:
    """Each once, sorted."""
    text = spans(sorted(numbers))
    found = []
    for part in text.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert sorted(numbers) == found


def test_what_many_nodes_share_is_there_once() -> None:
    """A hundred times the nodes is nowhere near a hundred times the data."""
    small, large = len(embedded(fleet(100))), len(embedded(fleet(10_000)))

    assert large < 60 * small
    assert 10_000 == len(packed(fleet(10_000))["names"])
