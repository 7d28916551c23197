"""Host lists: what is folded unfolds again, and Slurm and ClusterShell read it alike; racks: chassis serials that trays
share, then host names.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.fleet.hostlist import BadHostlist, fold, is_plain, unfold
from agent.fleet.racks import MOST, find_racks

_NAME = st.from_regex(r"[a-z]{1,2}-?[0-9]{0,4}([a-z.][0-9]{0,3}){0,2}|[0-9]{1,20}|[a-z]/?[0-9]{1,3}", fullmatch=True)
MANY = (
    [f"r{r:02}n{n}" for r in range(8, 12) for n in (1, 2, 9, 10)]
    + ["x1", "x01", "y099", "y100", "z"]
    + ["q1n1", "q2n1"]
)


@given(st.lists(_NAME, max_size=40))
@settings(deadline=None)
def test_what_is_folded_unfolds(names):
    assert sorted(set(names)) == sorted(unfold(fold(names)))
    assert sorted(set(names)) == sorted(unfold(fold(names, suffix=False)))


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), max_size=12))
@settings(deadline=None)
def test_any_name_is_one_name_again(names):
    """Whatever is in it: brackets, commas, blanks, quotes, percent signs."""
    assert sorted(set(names)) == sorted(unfold(fold(names)))


@given(st.lists(st.text(alphabet="gpu01[]-,/ !&@^*?%{}$`;'\"\\\n", min_size=1, max_size=12), min_size=1, max_size=5))
@settings(deadline=None)
def test_no_tool_and_no_shell_expands_a_name(names):
    """What is left of a folded list without its own brackets and commas is plain."""
    plain = re.sub(r"\[[0-9,-]+\]|,", "", fold(names))
    assert re.fullmatch(r"[A-Za-z0-9.:/+%-]*", plain)
    assert all(is_plain(name) for name in names) or "%" in fold(names) or any("/" in name for name in names)


def test_a_name_that_is_a_host_list_is_one_host():
    """And can be addressed as it is shown."""
    assert "gpu%5B001-128%5D" == fold(["gpu[001-128]"])
    assert "%2D-help,%2Dgpu[1-2],a-1" == fold(["-gpu1", "-gpu2", "a-1", "--help"])
    assert ["--help", "-gpu1", "-gpu2", "a-1"] == unfold("%2D-help,%2Dgpu[1-2],a-1")
    assert ["gpu[001-128]"] == unfold("gpu%5B001-128%5D")
    assert ["leaf 1,leaf 2"] == [fold(["leaf 1,leaf 2"], quote=False)]


@given(st.lists(_NAME, min_size=1, max_size=40), st.randoms())
@settings(deadline=None)
def test_order_and_repetition_do_not_matter(names, chance):
    shuffled = names * 2
    chance.shuffle(shuffled)
    assert fold(names) == fold(shuffled)


@given(st.text(alphabet="a1[]-,/ 09!", max_size=30))
@settings(deadline=None)
def test_any_text_is_a_list_or_refused(text):
    try:
        names = unfold(text)
    except BadHostlist:
        return
    assert all(names)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([f"gpu{n:03}" for n in (*range(1, 129), 130)], "gpu[001-128,130]"),
        (["gpu7"], "gpu7"),
        (["n9", "n10", "n8"], "n[8-10]"),
        (["n1", "n01", "n2"], "n[1-2],n01"),
        (["m099", "m100", "m1000"], "m[099-100],m1000"),
        ([f"r{r}n{n}" for r in (1, 2) for n in (1, 2, 3)], "r[1-2]n[1-3]"),
        (["r1n1", "r2n1"], "r[1-2]n[1]"),
        (["a1.site", "a2.site", "login"], "a[1-2].site,login"),
        (["east/a1", "east/a2", "west/a1"], "east/a[1-2],west/a1"),
        ([], ""),
    ],
)
def test_folded_as_people_write_it(names, folded):
    assert fold(names) == folded


def test_slurm_gets_no_text_after_a_bracket():
    assert fold(["a1.site", "a2.site", "b1", "b2"], suffix=False) == "a1.site,a2.site,b[1-2]"


@pytest.mark.parametrize(
    "text", ["a[1-2", "a1-2]", "a[[1]]", "a[]", "a[2-1]", "a[x]", "a[1-99999999]", "a[1-9]b[1-9999999]", "a!b", "@all"]
)
def test_refused(text):
    with pytest.raises(BadHostlist):
        unfold(text)


def test_steps_blanks_and_repetition():
    assert unfold("a[1-7/3], b1 b1") == ["a1", "a4", "a7", "b1"]


def test_slurm_reads_it_alike(tmp_path, real_commands):
    if not shutil.which("scontrol"):
        pytest.skip("no scontrol (Debian: slurm-client)")
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=a\n")
    completed = subprocess.run(
        ["scontrol", "show", "hostnames", fold([*MANY, "a1.b", "a2.b"], suffix=False)],
        env={"SLURM_CONF": str(conf), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout.split()
    assert sorted(completed) == sorted([*MANY, "a1.b", "a2.b"])


def test_clustershell_reads_it_alike(real_commands):
    completed = subprocess.run(
        ["python3", "-c", "import sys, ClusterShell.NodeSet as n; print(*n.NodeSet(sys.argv[1]))", fold(MANY)],
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"},
    )
    if "ModuleNotFoundError" in completed.stderr:
        pytest.skip("no ClusterShell here")
    assert sorted(MANY) == sorted(completed.stdout.split())


@pytest.mark.parametrize(
    ("names", "chassis", "racks"),
    [
        (["a", "b", "c", "d"], ["S1", "S1", "S2", "S2"], ["S1", "S1", "S2", "S2"]),
        (["a", "b", "c"], ["S1", "S2", "S3"], [None] * 3),  # a server alone in its chassis
        (["a", "b", "r1n1", "r1n2", "r2n1", "r2n2"], ["S", "S", None, "T", None, None],
         ["S", "S", "r1", "r1", "r2", "r2"]),
        (["r1n1", "r1n2", "r1n3"], [None] * 3, [None] * 3),  # one for all
        (["gpu1", "gpu2"], [None] * 2, [None] * 2),
    ],
)  # fmt: skip
def test_racks(names, chassis, racks):
    assert find_racks(names, chassis) == racks


@pytest.mark.parametrize(("nodes", "known"), [(MOST, True), (MOST + 1, False)])
def test_what_too_many_nodes_share_is_no_rack(nodes, known):
    names = [f"x{n}" for n in range(nodes)]
    assert find_racks(names, ["0"] * nodes) == [("0" if known else None)] * nodes
    by_name = [f"c1-{n}" for n in range(nodes)] + ["c2-1", "c2-2", "c3-1", "c3-2"]
    assert find_racks(by_name, [None] * len(by_name))[:nodes] == [("c1" if known else None)] * nodes


def test_a_pattern_comes_first():
    assert find_racks(["row1-a", "row2-b"], ["S", "S"], r"row[0-9]") == ["row1", "row2"]
