"""Duplicates by the numbers of nodes or by the values of each kind: `fleet duplicates` answers the same."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.fleet.known_duplicates import OWN, PATTERN, common
from agent.fleet.questions.duplicates import find_duplicates
from agent.fleet.questions.outliers import find_outliers
from tests.agent.fleet.questions.nodes import asked, interface, node, port

# By the numbers of nodes, or by the values of each kind: `fleet duplicates` answers the same.


VALUES = st.integers(0, 5)


@st.composite
def nodes(draw):
    collected = []
    for n in range(draw(st.integers(2, 5))):
        guid, mac, address, text = (draw(VALUES) for _ in range(4))
        name = draw(st.sampled_from(["eth0", "docker0"]))
        driver = draw(st.sampled_from(["mlx5_core", "bridge", None]))
        guids = [
            f"0c42:a103:0000:{guid:04x}",
            "0000:0000:0000:0000",
            "ffff:ffff:ffff:ffff",
            "0c42:a1ff:fe00:0001",
            "x",
            "",
        ]
        collected.append(
            node(
                f"n{n}",
                nics=[port(draw(st.integers(1, 3)), guids[guid])],
                netdevs=[interface(name, f"0c:42:a1:00:00:0{mac}", f"10.0.0.{address}/24", driver=driver)],
                gpus=[f"GPU-{draw(VALUES)}000", "N/A"],
                machine_id=["unknown", "a1b2", "c3d4", "\ud83d\ude00 id", "0000", "e5f6"][text],
            )
        )
    return collected


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reports=nodes())
def test_both_ways_give_the_same(tmp_path_factory, monkeypatch, reports):
    with asked(tmp_path_factory.mktemp("both"), *reports) as tables:
        by_numbers = find_duplicates(tables)
        with monkeypatch.context() as patched:
            patched.setattr("agent.fleet.questions.duplicates.MOST", -1)
            assert find_duplicates(tables) == by_numbers


# A command line without each node's own words: the same as engines make it of what was ingested before.


WORDS = st.sampled_from(
    ["root=UUID=1", "ip=dhcp", "ro", "iommu=pt", "xroot=1", "rd.lvm.lv=a", "rdxlvm.lv=a", "initrd", "hostname=\té"]
)


@given(st.lists(WORDS), st.sampled_from([" ", "  ", "\n"]))
def test_engines_take_out_the_same(words, between):
    text = between.join(words)
    (result,) = duckdb.execute("SELECT regexp_replace(?, ?, ' ', 'g')", [text, PATTERN]).fetchone()
    assert common(text) == result


def test_only_whole_names_of_words_that_have_a_value():
    assert common("BOOT_IMAGE=/v ro root=a rooted=b ip rd.md.uuid=7").split() == ["ro", "rooted=b", "ip"]
    assert all(common(f"{item}=1") == " " for item in OWN)


@pytest.mark.parametrize("before", [False, True])
def test_an_odd_word_beside_words_of_their_own(tmp_path, before):
    """Also where the column was not there yet."""
    nodes = [node(f"n{n}", cmdline=f"root=UUID={n} ro iommu={'pt' if n else 'off'} ip=10.0.0.{n}") for n in range(9)]
    with asked(tmp_path, *nodes) as tables:
        if before:
            tables._view("host")
            tables._database.execute("CREATE TABLE told AS SELECT * REPLACE (NULL AS cmdline_common) FROM host")
            tables._database.execute("CREATE OR REPLACE VIEW host AS FROM told")
        result = [outlier for outlier in find_outliers(tables).outliers if outlier.attribute == "cmdline"]
    assert [(item.hosts, item.value, item.usual) for item in result] == [("n0", "iommu=off", "iommu=pt")]
