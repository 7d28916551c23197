"""Lazy patterns: compiled when a text has what they require. That all require no more than they do: tests/fuzz."""

from __future__ import annotations

import re

import pytest

from probes.sources.identify import MARKS
from probes.text import LazyPattern, PatternChoice, find_required, lazy_pattern
from tests.fuzz.patterns import is_required


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        ("abc", ("abc",)),
        (r"a\.b\[\d+ x", ("a.b[",)),
        ("ab?cd", ("cd",)),
        ("ab*", ("a",)),
        ("ab{0,3}c", ("a",)),
        ("ab+cd", ("ab",)),
        ("(?:ab)?c", ("c",)),
        ("(?:ab)+c", ("ab",)),
        ("(?:ab|c)", ("ab", "c")),
        ("(?:ab|c?)x", ("x",)),
        ("(?!ab)c", ("c",)),
        ("(?<=ab)c", ("c",)),
        ("(?P<name>ab)c", ("ab",)),
        ("[ab]", ()),
        (r"[\]x]yz[^]ab]", ("yz",)),
        (r"[x[]ab[^x[]c[\]]d", ("ab",)),
        (r"\x41bc\n", ("bc",)),
        ("(?i)abc", ()),
        ("(a)?b(?(1)cde)", ()),
        ("(?P<n>a)bcd(?P=n)", ()),
        ("(?s:.)abc", ("abc",)),
        (r"(?a)\d+ bc", (" bc",)),
        ("ab|", ()),
    ],
)
def test_what_a_pattern_requires(pattern: str, required: tuple[str, ...]) -> None:
    assert required == find_required(pattern)
    assert not required or is_required(required, re.compile(pattern))


def test_nearly_every_output_is_recognized_by_a_text_that_it_requires() -> None:
    """Else each pasted text would compile the pattern of each output."""
    first = [max(map(find_required, patterns), key=bool) for _, patterns in MARKS]

    assert sum(not required for required in first) < 3


def test_of_a_choice_of_patterns_those_are_compiled_that_a_text_may_fit() -> None:
    """And the first that fits counts, whichever text came first."""
    choice = PatternChoice([r"(?P<gpu>GPU \d)", r"(?P<port>Port \d)", r"(?P<any>\w+\s\d)"])

    fits = [choice.choose(text)(text) for text in ("x 1", "Port 1", "GPU 1", "-")]

    assert [{"any": "x 1"}, {"port": "Port 1", "any": None}, {"gpu": "GPU 1", "port": None, "any": None}, None] == [
        match and match.groupdict() for match in fits
    ]


def test_a_lazy_pattern_is_compiled_for_a_text_that_it_may_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And answers as the compiled one does."""
    compiled: list[str] = []
    monkeypatch.setattr(
        LazyPattern, "_compile", lambda self, name: compiled.append(name) or getattr(re.compile(*self.arguments), name)
    )
    lazy, loud = lazy_pattern(r"^Link \d"), lazy_pattern("link", re.IGNORECASE)

    assert (None, None, None) == (lazy.search("GPU 0"), lazy.match("GPU 0"), lazy.fullmatch("GPU 0"))
    assert ([], [], "GPU 0") == (lazy.findall("GPU 0"), [*lazy.finditer("GPU 0")], lazy.sub("x", "GPU 0"))
    assert [] == compiled
    assert (["Link 0"], "x0") == (lazy.findall("Link 00"), lazy.sub("x", "Link 00"))
    assert lazy.search("Link 0")
    assert (None, None) == (lazy.fullmatch("Link 00"), lazy.match("xLink 0", 1))
    assert loud.search("LINK")
    assert lazy_pattern(rb"a\xff").search(b"a\xff")
    assert [b"a"] == lazy_pattern(b"a").findall(b"a")
