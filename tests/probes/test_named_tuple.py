"""The base of facts: whatever the library's named tuples do, these do, and make their constructor late."""

import collections
import pickle
import re
import typing

import pytest

from probes.named_tuple import NamedTuple
from probes.pci.facts import PciFunction
from tests.conftest import ROOT


class Lane(NamedTuple):
    """A lane."""

    number: int
    speed: float | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_fast(self) -> bool:
        return bool(self.speed and self.speed > 8)


class Library(typing.NamedTuple):
    """A lane."""

    number: int
    speed: float | None = None
    flags: tuple[str, ...] = ()


def test_a_tuple_is_built_shown_compared_and_handed_over_as_the_librarys() -> None:
    lane, other = Lane(3, flags=("inverted",)), Library(3, flags=("inverted",))
    assert lane == other == (3, None, ("inverted",))
    assert hash(lane) == hash(other)
    assert repr(lane) == repr(other).replace("Library", "Lane")
    assert lane._asdict() == other._asdict()
    assert (Lane._fields, Lane._field_defaults) == (Library._fields, Library._field_defaults)
    assert Lane.__match_args__ == Library.__match_args__
    assert (Lane.__doc__, Lane.__bases__) == ("A lane.", (tuple,))
    assert typing.get_type_hints(Lane) == typing.get_type_hints(Library)
    assert pickle.loads(pickle.dumps(lane)) == lane
    assert type(pickle.loads(pickle.dumps(lane))) is Lane
    assert not hasattr(lane, "__dict__")


def test_no_class_is_made_for_a_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "namedtuple", lambda *_, **__: pytest.fail("a class of the library"))

    class Port(NamedTuple):
        """A port."""

        number: int
        state: str = "up"

    class Nothing(NamedTuple):
        """No field."""

    assert ((1, "up"), (1, "down"), ()) == (Port(1), Port(number=1, state="down"), Nothing())
    with pytest.raises(TypeError, match=r"Port\.__new__\(\) missing 1 required positional argument: 'number'"):
        Port()  # type: ignore[call-arg]


def test_methods_and_changed_copies() -> None:
    lane = Lane(3)
    assert not lane.is_fast
    assert lane._replace(speed=16.0).is_fast
    assert Lane._make((1, 2.5, ())) == Lane(1, 2.5)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: Lane(), TypeError),
        (lambda: Lane(1, width=2), TypeError),
        (lambda: Lane(1, 2.0, (), 4), TypeError),
        (lambda: Lane._make([1]), TypeError),
        (lambda: Lane(1)._replace(width=2), (ValueError, TypeError)),
        (lambda: setattr(Lane(1), "number", 2), AttributeError),
    ],
)
def test_what_the_library_refuses_is_refused(build: typing.Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        build()


def test_a_field_without_a_default_after_one_with_a_default_is_an_error() -> None:
    with pytest.raises(TypeError, match="default"):

        class Wrong(NamedTuple):
            first: int = 1
            second: int  # type: ignore[misc]


def test_facts_are_such_tuples() -> None:
    function = PciFunction("0000:01:00.0", None, None)
    assert isinstance(function, tuple)
    assert function._replace(driver="nvidia").driver == "nvidia"


def test_facts_of_every_probe_have_this_base() -> None:
    """The library's would cost a scan its constructor, also where nothing of that kind is."""
    folder = ROOT / "probes"
    others = [
        path
        for path in folder.rglob("*.py")
        if re.search(r"^from typing import .*\bNamedTuple\b", path.read_text(), re.M)
    ]

    assert [] == others
