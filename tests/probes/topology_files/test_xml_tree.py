"""XML that may be anything: a DOCTYPE is passed over, entities and endless texts are refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.text import ParseError
from probes.topology_files.xml_tree import DEPTH_LIMIT, ELEMENTS_LIMIT, LIMIT_BYTES, parse
from tests.probes.topology_files.samples import HWLOC, NCCL, refusal

LAUGHS = b'<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><a>&y;</a>'
OUTSIDE = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (LAUGHS, "entity"),
        (OUTSIDE, "entity"),
        (b'<!DOCTYPE a [<!ENTITY % p "x">]><a/>', "entity"),
        (b'<!DOCTYPE a SYSTEM "a.dtd"><a>&unknown;</a>', "entity"),
        (b"<a>" * (DEPTH_LIMIT + 1), "deep"),
        (b"<a>" + b"<b/>" * ELEMENTS_LIMIT + b"</a>", "elements"),
        (b"<a " + b" ".join(b'a%d=""' % n for n in range(65)) + b"/>", "attributes"),
        (b"<a>" + b" " * LIMIT_BYTES, "MiB"),
        (b"<a><b></a>", "not XML"),
        (b"<a", "not XML"),
        (b"", "not XML"),
        (b"<b/>", "<b>, not <a>"),
        (b'<?xml version="1.0" encoding="ascii"?><a>\xff</a>', "not XML"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_hostile_or_broken_is_refused(text: bytes, fault: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(ParseError, match=fault):
        parse(text, "a")


def test_elements_keep_attributes_children_and_words() -> None:
    """A DOCTYPE and a declaration of an encoding that Python would have to look up change nothing."""
    document = parse(
        b'<?xml version="1.0" encoding="no-such"?><!DOCTYPE a SYSTEM "x"><a n=" 1 "><b>1 2 </b><c/></a>', "a"
    )

    assert "1" == document.said("n")
    assert document.said("m") is None
    assert [["1 2 "]] == [child.words for child in document.each("b")]


@given(st.sampled_from([NCCL, HWLOC, LAUGHS]), st.integers(0, 4000), st.binary(max_size=8))
def test_any_change_gives_a_tree_or_the_one_error(text: bytes, place: int, patch: bytes) -> None:
    """Bytes put anywhere."""
    root = {NCCL: "system", HWLOC: "topology", LAUGHS: "a"}[text]
    changed = text[:place] + patch + text[place + len(patch) :]
    assert len(refusal(lambda content: parse(content, root), changed)) <= 1
