"""Which object of NetBox is which device, and the journal of what was done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.netbox.changes import order_moves
from agent.netbox.journal import LINE_LIMIT, make_entry, parse_open_findings, summarize_findings
from agent.netbox.matching import NodeMatch, ReportedNode, match_nodes
from agent.netbox.state import NestedRow, NetBoxDevice
from agent.outputs.inventory.objects import DesiredNode, InventoryFinding, fit_text
from tests.agent.netbox.nodes import finding

# Which device a node is. Every doubt is a line, and nothing is done.


def node(name: str | None, serial: str | None, machine: str | None = None, at: str | None = None) -> DesiredNode:
    """A node of which nothing else matters."""
    return DesiredNode(
        name=name,
        serial=serial,
        machine_id=machine,
        observed_at=at,
        verdict="ok",
        modules_known=True,
        interfaces_known=True,
    )


def device(number: int, name: str | None, serial: str = "", site: str = "one") -> NetBoxDevice:
    """A device of NetBox."""
    return NetBoxDevice(id=number, name=name, serial=serial, site=NestedRow(id=1, name=site))


def match(devices: list[NetBoxDevice], *nodes: DesiredNode, create: bool = False) -> list[NodeMatch]:
    """The matches of nodes from a.json, b.json, .."""
    return match_nodes(
        [ReportedNode(item, f"{letter}.json") for item, letter in zip(nodes, "abc", strict=False)], devices, create
    )


def test_the_serial_number_comes_first() -> None:
    """Whatever the device is called, and in capitals or small letters."""
    result = match([device(1, "gpu01"), device(2, "other", "abc1")], node("gpu01", "ABC1"))[0]

    assert result.device is not None
    assert (2, "serial", "other") == (result.device.id, result.by, result.label)


@pytest.mark.parametrize("name", ["gpu01", "GPU01", "gpu01.example.com"])
def test_the_name_will_do_where_no_serial_number_speaks_against_it(name: str) -> None:
    """In NetBox none, or in the report none."""
    for serial, theirs in ((None, "ABC1"), ("ABC1", "")):
        result = match([device(1, "gpu01", theirs)], node(name, serial))[0]
        assert result.device is not None
        assert (1, "name") == (result.device.id, result.by)


@pytest.mark.parametrize(
    ("devices", "one", "said"),
    [
        ([], node("gpu01", "A"), "no device in NetBox has the serial number A or gpu01: --create makes it"),
        ([], node(None, "A"), "no device in NetBox has the serial number A: the report has no host name to make it by"),
        ([], node(None, None), "the report has neither a serial number nor a host name"),
        ([device(1, "gpu01", "B")], node("gpu01", "A"), "gpu01 has the serial number B in NetBox, and A in the report"),
        (
            [device(1, "x", "A", "one"), device(2, None, "a", "two")],
            node("gpu01", "A"),
            "2 devices in NetBox have the serial number A: x (one), no name (two)",
        ),
        (
            [device(1, "gpu01", "", "one"), device(2, "GPU01", "", "two")],
            node("gpu01", None),
            "2 devices in NetBox are called gpu01: gpu01 (one), GPU01 (two); --site",
        ),
    ],
)
def test_a_doubt_is_a_line(devices: list[NetBoxDevice], one: DesiredNode, said: str) -> None:
    """And no device."""
    result = match(devices, one)[0]

    assert None is result.device
    assert said in (result.problem or "")


def test_a_device_is_made_where_that_was_asked_for() -> None:
    """It needs a name; a doubt stays one."""
    assert match([], node("gpu01", "A"), create=True)[0].new
    assert not match([], node(None, "A"), create=True)[0].new
    assert not match([device(1, "gpu01", "B")], node("gpu01", "A"), create=True)[0].new


@pytest.mark.parametrize("create", [False, True])
def test_two_hosts_with_one_serial_number_are_neither(create: bool) -> None:
    """A cloned serial number: whoever is right, a guess would write one node's parts into the other's device."""
    devices = [] if create else [device(1, "gpu01", "A")]

    first, second = match(devices, node("gpu01", "A", "m1"), node("gpu02", "A", "m2"), create=create)

    assert "the same device as b.json, of another host (serial A): neither is taken" == first.problem
    assert "the same device as a.json, of another host (serial A): neither is taken" == second.problem


def test_two_hosts_with_one_name_are_neither() -> None:
    """Neither has a serial number."""
    result = match([device(1, "gpu01")], node("gpu01", None, "m1"), node("gpu01.b.example", None, "m2"))

    assert [True, True] == [item.problem is not None for item in result]


def test_of_two_reports_of_one_host_the_later_counts() -> None:
    """Which is no problem."""
    old, new = node("gpu01", "A", "m1", "2026-01-01T00:00:00Z"), node("gpu01", "A", "m1", "2026-01-02T00:00:00Z")

    first, second = match([device(1, "gpu01", "A")], new, old)

    assert (1, None, "a.json") == (first.device.id if first.device else 0, second.problem, second.older)


# Changing places: whoever comes to a place finds it empty, and ends where it belongs.


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)), st.sets(st.integers(6, 9)))
def test_any_reordering_can_be_done_step_by_step(order: list[int], moving: set[int], empty: set[int]) -> None:
    """Some move among six places and some empty ones; the others stay."""
    places = {who: f"p{who}" for who in range(6)}
    targets = {who: f"p{order[who]}" for who in moving}
    targets |= {who: f"p{place}" for who, place in zip(sorted(moving), sorted(empty), strict=False)}
    if len(set(targets.values())) < len(targets):
        return

    moves = order_moves(places, targets, "aside")

    where = dict(places)
    for who, to in moves.steps:
        assert to not in where.values()
        where[who] = to
    assert "aside" not in where.values()
    stay = {places[who] for who in range(6) if who not in targets}
    for who, to in targets.items():
        if who in moves.stuck:
            assert where[who] == places[who]
        else:
            assert where[who] == to
    if not stay & set(targets.values()):
        assert [] == moves.stuck


def test_nobody_moves_without_need() -> None:
    """Who is where it belongs takes no step."""
    assert ([], []) == order_moves({1: "a", 2: "b"}, {1: "a"}, "x")
    assert ([(1, "c")], []) == order_moves({1: "a", 2: "b"}, {1: "c", 2: "b"}, "x")


# Journal entries: what they say, and that they can be read back whatever the findings are called.


A, B = finding("aaaaaaaaaaaaaaa1"), finding("aaaaaaaaaaaaaaa2", "warning", "roce-mtu-small", "ens1")
TEXTS = st.text(max_size=40).map(lambda text: fit_text(text, 200) or "?")
PRINTS = st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
FINDINGS = st.builds(InventoryFinding, fingerprint=PRINTS, severity=TEXTS, rule=TEXTS, label=TEXTS, summary=TEXTS)


def test_an_entry_names_what_is_new_and_what_is_gone() -> None:
    """And what was there before."""
    first = make_entry([A], None, [])
    assert first is not None
    second = make_entry([B], parse_open_findings(first.comments), [])
    assert second is not None

    assert ("danger", "1 new") == (first.kind, first.summary)
    assert ("warning", "1 new, 1 gone") == (second.kind, second.summary)
    assert [
        "**fabricscope**: 1 new, 1 gone",
        "New:",
        "- `warning` `roce-mtu-small` `ens1`: `8 lanes; both ends can do 16` (`aaaaaaaaaaaaaaa2`)",
        "Gone:",
        "- `error` `pcie-width-downgraded` `GPU2`: `8 lanes; both ends can do 16` (`aaaaaaaaaaaaaaa1`)",
        "<!-- fabricscope open: aaaaaaaaaaaaaaa2 -->",
    ] == second.comments.split("\n\n")


def test_nothing_new_and_nothing_gone_is_no_entry() -> None:
    """Also in another order, of another severity, and where there never was a finding."""
    result = make_entry([A, B], None, [])
    assert result is not None

    assert None is make_entry([B, finding(A.fingerprint, "warning")], parse_open_findings(result.comments), [])
    assert None is make_entry([], None, [])
    assert None is make_entry([], {}, [])


def test_what_could_not_be_judged_this_time_is_not_called_gone() -> None:
    """A run without root is no repair."""
    result = make_entry([A], None, [])
    assert result is not None

    later = make_entry([], parse_open_findings(result.comments), ["pcie-width-downgraded", "other"])

    assert later is not None
    assert ("info", "1 no longer judged") == (later.kind, later.summary)
    assert "Gone:" not in later.comments


def test_an_entry_that_somebody_edited_is_not_believed() -> None:
    """Then all that is open is new."""
    result = make_entry([A], None, [])
    assert result is not None

    assert None is parse_open_findings(result.comments + "\n\nmended it")
    assert None is parse_open_findings(None)
    assert {} == parse_open_findings("<!-- fabricscope open: -->")
    assert {"x": "`x`"} == parse_open_findings("<!-- fabricscope open: x -->\n")


@given(st.lists(FINDINGS, max_size=60, unique_by=lambda each: each.fingerprint))
def test_any_set_can_be_read_back(findings: list[InventoryFinding]) -> None:
    """Of more than an entry shows, too."""
    result = make_entry(findings, None, [])

    assert bool(findings) == (result is not None)
    if result is not None:
        assert {finding.fingerprint for finding in findings} == set(parse_open_findings(result.comments) or {})
        assert result.comments.count("\n- ") <= LINE_LIMIT + 1
        assert None is make_entry(findings, parse_open_findings(result.comments), [])


def test_names_cannot_become_markup() -> None:
    """A backtick would end the code that keeps them plain."""
    result = make_entry([finding("a", "error", "`rule`", "![x](http://evil) <b> -->")], None, [])

    assert result is not None
    assert "`'rule'` `![x](http://evil) <b> -->`" in result.comments
    assert {"a"} == set(parse_open_findings(result.comments) or {})


def test_the_field_tells_sets_apart() -> None:
    """Not their order; numbers of each severity are for people."""
    assert summarize_findings([A, B]) == summarize_findings([B, A]) != summarize_findings([A])
    assert "1 error, 1 warning; " == summarize_findings([A, B])[:20]
    assert summarize_findings([finding("x")]) != summarize_findings([finding("y")])
