"""A command line without each node's own words: the same as engines make it of what was ingested before."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.known_duplicates import OWN, PATTERN, common
from agent.fleet.questions.outliers import outliers
from tests.agent.fleet.questions.nodes import asked, node

WORDS = st.sampled_from(
    ["root=UUID=1", "ip=dhcp", "ro", "iommu=pt", "xroot=1", "rd.lvm.lv=a", "rdxlvm.lv=a", "initrd", "hostname=\té"]
)


@given(st.lists(WORDS), st.sampled_from([" ", "  ", "\n"]))
def test_engines_take_out_the_same(words, between):
    text = between.join(words)
    (made,) = duckdb.execute("SELECT regexp_replace(?, ?, ' ', 'g')", [text, PATTERN]).fetchone()
    assert common(text) == made


def test_only_whole_names_of_words_that_have_a_value():
    assert common("BOOT_IMAGE=/v ro root=a rooted=b ip rd.md.uuid=7").split() == ["ro", "rooted=b", "ip"]
    assert all(common(f"{each}=1") == " " for each in OWN)


@pytest.mark.parametrize("before", [False, True])
def test_an_odd_word_beside_words_of_their_own(tmp_path, before):
    """Also where the column was not there yet."""
    nodes = [node(f"n{n}", cmdline=f"root=UUID={n} ro iommu={'pt' if n else 'off'} ip=10.0.0.{n}") for n in range(9)]
    with asked(tmp_path, *nodes) as tables:
        if before:
            tables._view("host")
            tables._database.execute("CREATE TABLE told AS SELECT * REPLACE (NULL AS cmdline_common) FROM host")
            tables._database.execute("CREATE OR REPLACE VIEW host AS FROM told")
        found = [each for each in outliers(tables).outliers if each.attribute == "cmdline"]
    assert [(each.hosts, each.value, each.usual) for each in found] == [("n0", "iommu=off", "iommu=pt")]
