"""Journal entries: what they say, and that they can be read back whatever the findings are called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.netbox.journal import LINE_LIMIT, make_entry, parse_open_findings, summarize_findings
from agent.outputs.inventory.objects import InventoryFinding, fit_text
from tests.agent.netbox.nodes import finding

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
    made = make_entry([A, B], None, [])
    assert made is not None

    assert None is make_entry([B, finding(A.fingerprint, "warning")], parse_open_findings(made.comments), [])
    assert None is make_entry([], None, [])
    assert None is make_entry([], {}, [])


def test_what_could_not_be_judged_this_time_is_not_called_gone() -> None:
    """A run without root is no repair."""
    made = make_entry([A], None, [])
    assert made is not None

    later = make_entry([], parse_open_findings(made.comments), ["pcie-width-downgraded", "other"])

    assert later is not None
    assert ("info", "1 no longer judged") == (later.kind, later.summary)
    assert "Gone:" not in later.comments


def test_an_entry_that_somebody_edited_is_not_believed() -> None:
    """Then all that is open is new."""
    made = make_entry([A], None, [])
    assert made is not None

    assert None is parse_open_findings(made.comments + "\n\nmended it")
    assert None is parse_open_findings(None)
    assert {} == parse_open_findings("<!-- fabricscope open: -->")
    assert {"x": "`x`"} == parse_open_findings("<!-- fabricscope open: x -->\n")


@given(st.lists(FINDINGS, max_size=60, unique_by=lambda each: each.fingerprint))
def test_any_set_can_be_read_back(findings: list[InventoryFinding]) -> None:
    """Of more than an entry shows, too."""
    made = make_entry(findings, None, [])

    assert bool(findings) == (made is not None)
    if made is not None:
        assert {each.fingerprint for each in findings} == set(parse_open_findings(made.comments) or {})
        assert made.comments.count("\n- ") <= LINE_LIMIT + 1
        assert None is make_entry(findings, parse_open_findings(made.comments), [])


def test_names_cannot_become_markup() -> None:
    """A backtick would end the code that keeps them plain."""
    made = make_entry([finding("a", "error", "`rule`", "![x](http://evil) <b> -->")], None, [])

    assert made is not None
    assert "`'rule'` `![x](http://evil) <b> -->`" in made.comments
    assert {"a"} == set(parse_open_findings(made.comments) or {})


def test_the_field_tells_sets_apart() -> None:
    """Not their order; numbers of each severity are for people."""
    assert summarize_findings([A, B]) == summarize_findings([B, A]) != summarize_findings([A])
    assert "1 error, 1 warning; " == summarize_findings([A, B])[:20]
    assert summarize_findings([finding("x")]) != summarize_findings([finding("y")])
