"""Files that are already facts are known by what they hold, and become outcomes of the probes that nobody ran. XML that
is hostile or broken is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.main import run
from agent.diagnose import ScanPlan, diagnose
from probes.catalogue import probes
from probes.host.interface import BadSource
from probes.probe import Status
from probes.sources.open_source import open_source
from probes.text import ParseError
from probes.topology_files.preparsed import FactsSource
from probes.topology_files.recognize import facts_source, start_of
from probes.topology_files.xml_tree import DEPTH_LIMIT, ELEMENTS_LIMIT, LIMIT_BYTES, parse
from tests.probes.topology_files.samples import HWLOC, NCCL, RDMA, refusal


@pytest.mark.parametrize(("kind", "content"), [("nccl-topo", NCCL), ("hwloc-xml", HWLOC), ("rdma-topo", RDMA)])
def test_each_kind_is_scanned_whatever_it_is_called(kind: str, content: bytes, tmp_path: Path) -> None:
    """A report with the kind for its source; a probe without facts has a reason; --only and --skip choose."""
    place = tmp_path / "dump.txt"
    place.write_bytes(content)
    report, recording = diagnose(open_source(str(place)), ScanPlan(skip=("pci",)))
    runs = {run.name: run for run in report.probes}

    assert (kind, str(place)) == (report.source.kind, report.source.path)
    assert recording is None
    assert [] == report.topology.pci
    assert ("skipped", "left out by --only or --skip") == (runs["pci"].status, runs["pci"].reason)
    assert [probe.name for probe in probes()] == list(runs)
    assert [] == [run.name for run in report.probes if run.status not in ("ok", "skipped") and not run.reason]
    assert [str(place)] == runs["rdma"].sources


def test_outcomes_are_honest() -> None:
    """Facts with what is missing from them; a fall-back for what there are facts of is not needed."""
    source = facts_source("t.xml", NCCL)
    assert source is not None
    result = {outcome.name: outcome for outcome in source.outcomes(probes())}

    assert (Status.PARTIAL, None) == (result["pci"].status, result["dmi"].facts)
    assert (Status.ABSENT, "a NCCL topology does not name its machine") == result["dmi"][1:4:2]
    assert (Status.SKIPPED, "pci answered") == result["lspci"][1:4:2]
    assert (Status.ABSENT, "a NCCL topology holds nothing of this") == result["services"][1:4:2]


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"\xef\xbb\xbf\n<system>", "system"),
        (b'<!-- <topology> --><!DOCTYPE x [<!ENTITY y ">">]><topology version="2.0">', "topology"),
        (b"<system/>", "system"),
        (b"<!-- endless", None),
        (b"<?xml", None),
        (b"<", None),
        (b"", None),
        (b'[{"a": 1}]', None),
        (b"<!" * 30_000, None),
    ],
)
def test_what_begins_a_file(content: bytes, start: str | None) -> None:
    """Past declarations, comments and a DOCTYPE."""
    result = start_of(content)

    assert (start == result) if start else (result not in ("system", "topology", "["))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"<graphs version='1'/>", "t.xml: is a NCCL graph, which lists rings and trees"),
        (b"<system>", "t.xml: is refused as a NCCL topology: not XML"),
        (b'<!DOCTYPE topology [<!ENTITY x "y">]><topology>&x;</topology>', "t.xml: is refused as a hwloc topology: it"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_it(content: bytes, line: str) -> None:
    """A graph is another file of NCCL's."""
    with pytest.raises(BadSource) as refused:
        facts_source("t.xml", content)

    assert str(refused.value).startswith(line)
    assert 1 == len(str(refused.value).splitlines())


def test_other_xml_is_left_to_others(tmp_path: Path) -> None:
    """nvidia-smi's, too, is XML."""
    place = tmp_path / "x"
    place.write_text('<?xml version="1.0" ?>\n<nvidia_smi_log>\n<attached_gpus>0</attached_gpus></nvidia_smi_log>')

    assert not isinstance(open_source(str(place)), FactsSource)


@pytest.mark.usefixtures("real_commands")
def test_there_is_nothing_to_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit 2, no file."""
    place, wanted = tmp_path / "t.xml", tmp_path / "c.tar.gz"
    place.write_bytes(NCCL)

    assert 2 == run(["scan", "--source", str(place), "--capture", str(wanted)])
    assert "holds a topology only" in capsys.readouterr().err
    assert not wanted.exists()


WORDS = st.sampled_from(
    [b"0", b"-1", b"1", b"999999999999", b"0000:19:00.0", b"mlx5_0", b"GPU0", b"0x030200", b"\xc3\xa9"]
)


@given(st.sampled_from([NCCL, HWLOC, RDMA]), st.lists(st.tuples(st.integers(0, 200), WORDS), max_size=4))
def test_whatever_values_a_file_holds_a_report_comes_of_it(content: bytes, changes: list[tuple[int, bytes]]) -> None:
    """Values put in the place of others: what is read assembles, and is judged."""
    parts = content.split(b'"')
    for place, word in changes:
        at = 2 * place + 1
        if at < len(parts):
            parts[at] = word
    try:
        source = facts_source("t", b'"'.join(parts))
    except BadSource:
        return
    if source is not None:
        report, _ = diagnose(source, ScanPlan())

        assert report.checks


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
