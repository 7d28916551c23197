"""The peer table: no field without a word, no reason and no rule that does not exist."""

from __future__ import annotations

from agent.model.nic import Netdev
from agent.model.peers import FREE
from agent.rules.catalogue import every_rule
from agent.rules.peers.fields import list_fields, read_all
from tests.agent.rules.peers.fields_page import list_rows
from tests.agent.rules.rows import netdev

ROWS = {row.path: row.word for row in list_rows()}


def test_every_field_of_every_part_has_a_word() -> None:
    """No default: who adds a field decides how it compares."""
    assert [] == [path for path, word in ROWS.items() if word is None]
    assert len(ROWS) == len(list(list_rows()))


def test_every_free_field_has_a_reason_of_the_list_and_every_other_a_title() -> None:
    """And each reason of the list is of a field."""
    free = {word.reason for word in ROWS.values() if word is not None and word.word == "free"}

    assert FREE.keys() == free
    assert [] == [path for path, word in ROWS.items() if word and word.word != "free" and not word.title]


def test_every_field_that_a_rule_judges_is_compared() -> None:
    """A rule that names a free field, or none, would explain no difference."""
    judged = {field for rule in every_rule() for field in rule.fields}

    assert set() == {field for field in judged if (word := ROWS.get(field)) is None or word.word == "free"}


def test_a_value_that_is_not_known_is_none_and_off_is_one() -> None:
    """Empty lists, tables and texts are not known; nor is a field of a struct that is not there."""
    fields = {field.path: field for word in ("equal", "usual") for field in list_fields(Netdev, word)}
    bare = Netdev(id="a", label="a", bond={"mode": "802.3ad", "slaves": ["b"]}, autoneg=False)

    assert None is fields["qos.trust"].read(bare)
    assert None is fields["arp"].read(bare)
    assert {"mode": "802.3ad"} == fields["bond"].read(bare)
    assert False is fields["autoneg"].read(bare)
    assert "dscp" == fields["qos.trust"].read(netdev("0000:15:00.0", 0))


def test_values_are_compared_only_where_two_differ() -> None:
    """Nothing is one of them."""
    (mtu,) = (field for field in list_fields(Netdev, "equal") if field.path == "mtu")
    parts = [Netdev(id=str(n), label=str(n), mtu=mtu) for n, mtu in enumerate((9000, None, 9000))]

    assert [9000, None, 9000] == read_all(mtu, parts)
    assert None is read_all(mtu, parts[::2])
    assert None is read_all(mtu, [parts[1], parts[1]])
    assert [1500, 9000] == read_all(mtu, [Netdev(id="x", label="x", mtu=1500), parts[0]])
