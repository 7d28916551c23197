"""What the page carries, how it is coloured, and its several pages."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from pkgutil import get_data

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.page.answers import NodeIndex, build_drift
from agent.fleet.page.findings import EXPLAINED_BY, join_outliers
from agent.fleet.page.page import page, render_pages
from agent.fleet.page.scene import PageItem, Section, column, encode_scene, encode_spans, pack_scene
from agent.fleet.page.sections import _render_term
from agent.fleet.questions.attributes import ATTRIBUTES
from agent.fleet.questions.drift import Drift
from agent.fleet.questions.error_rates import RATE_KEYS
from agent.outputs.html.document import format_policy
from agent.rules.pages import page_paths
from tests.agent.fleet.page.given import fleet, hostile

# The data between the page's tags: harmless, and the same when it is read back.


class Seen(HTMLParser):
    """What a parser finds in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.policies: list[str | None] = []
        self.strangers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Scripts, the policy, and what the page never holds."""
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given)
        if "http-equiv" in given:
            self.policies.append(given["content"])
        if tag in ("img", "iframe", "object", "link", "base", "form") or any(item.startswith("on") for item in given):
            self.strangers.append(tag)


def test_no_tag_can_begin_or_end_in_it() -> None:
    """Whatever a name holds."""
    text = encode_scene(hostile())

    assert not set("<>&\u2028\u2029") & set(text)
    assert "alert(1)" in text
    assert json.loads(text)["names"][0].startswith("gpu01</script>")


def test_the_page_has_its_own_elements_only() -> None:
    """Two scripts: the data, and the one whose hash the policy names, as it names that of the style."""
    text = page(hostile())
    seen = Seen()
    seen.feed(text)

    assert [{"id": "data", "type": "application/json"}, {}] == seen.scripts
    assert not seen.strangers
    script = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert [format_policy(style, script)] == seen.policies
    assert "unsafe" not in seen.policies[0]
    assert " style=" not in text.partition("</style>")[2].partition("<script")[0]


def test_the_same_scene_gives_the_same_bytes() -> None:
    """Nothing of the page looks at a clock."""
    assert page(fleet(50)) == page(fleet(50))


def test_the_script_does_not_stand_in_its_own_way() -> None:
    """What would end or hide it in the page is not in it."""
    text = page(fleet(1))
    script = text[text.rindex("<script>") + len("<script>") : text.rindex("</script>")]

    assert not re.search(r"</script|<!--|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


@given(st.lists(st.integers(-1, 3)))
def test_a_column_is_what_it_was(numbers: list[int]) -> None:
    """Runs or not."""
    result = column(numbers)
    if isinstance(result, list):
        assert numbers == result
    else:
        runs = result["r"]
        assert numbers == [item for at in range(0, len(runs), 2) for item in [runs[at]] * runs[at + 1]]
        assert len(runs) < len(numbers)


@given(st.sets(st.integers(0, 60)))
def test_spans_are_the_same_nodes(numbers: set[int]) -> None:
    """Each once, sorted."""
    text = encode_spans(sorted(numbers))
    collected = []
    for part in text.split():
        first, _, last = part.partition("-")
        collected += range(int(first), int(last or first) + 1)
    assert sorted(numbers) == collected


def test_what_many_nodes_share_is_there_once() -> None:
    """A hundred times the nodes is nowhere near a hundred times the data."""
    small, large = len(encode_scene(fleet(100))), len(encode_scene(fleet(10_000)))

    assert large < 60 * small
    assert 10_000 == len(pack_scene(fleet(10_000))["names"])


# Addresses of nodes' own pages.


def test_files_are_found_by_node_and_by_cluster(tmp_path: Path) -> None:
    """As seen from the page's own place; other files are none."""
    (tmp_path / "nodes" / "west").mkdir(parents=True)
    for name in ("gpu1.html", "gpu2.txt", "west/gpu1.html", "west/x.json"):
        (tmp_path / "nodes" / name).write_text("")

    assert {"gpu1": "./nodes/gpu1.html", "west/gpu1": "./nodes/west/gpu1.html"} == render_pages(
        str(tmp_path / "nodes"), str(tmp_path / "fleet.html")
    )
    assert "../nodes/gpu1.html" == render_pages(str(tmp_path / "nodes"), str(tmp_path / "out" / "fleet.html"))["gpu1"]
    assert "./gpu1.html" == render_pages(str(tmp_path / "nodes"), str(tmp_path / "nodes" / "fleet.html"))["gpu1"]


@pytest.mark.parametrize("name", ["javascript:alert(1)", "a b\"c'<d>", "%2e%2e", "né", "?x#y"])
def test_a_name_is_never_more_than_a_relative_path(tmp_path: Path, name: str) -> None:
    """No scheme, no query, nothing that ends an attribute."""
    (tmp_path / f"{name}.html").write_text("")
    (address,) = render_pages(str(tmp_path), str(tmp_path / "fleet.html")).values()

    assert address.startswith("./")
    assert not set("\"'<> ?#:") & set(address)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Is the caller's to tell."""
    with pytest.raises(OSError, match="No such file"):
        render_pages(str(tmp_path / "none"), None)


# Which differences from peers are told with a finding.


FINDINGS = Section(
    title="Findings", anchor="findings", said=[PageItem(words="x8", about="pcie-width-downgraded", nodes=[1, 2])]
)


def outliers(about: str, nodes: list[int]) -> Section:
    result = [PageItem(words="PCIe width is x8", about=about, nodes=nodes, group="H100")]
    return Section(title="Outliers", anchor="outliers", note="8 nodes compared.", said=result)


@pytest.mark.parametrize(("nodes", "words"), [([1, 2], "PCIe width is x8"), ([2], "PCIe width is x8 (of H100)")])
def test_a_difference_of_the_same_fault_is_told_with_its_finding(nodes: list[int], words: str) -> None:
    """Where all its nodes have the finding."""
    findings, left = join_outliers(FINDINGS, outliers("pcie-width", nodes))

    assert [("compared with peers", words)] == findings.said[0].more
    assert [] == left.said
    assert left.note == "8 nodes compared. 1 of 1 differences: see the finding of the same fault, above."


@pytest.mark.parametrize(("about", "nodes"), [("pcie-width", [1, 3]), ("pcie-width", []), ("driver", [1, 2])])
def test_another_difference_stays(about: str, nodes: list[int]) -> None:
    """Of a node without the finding, or of something that the finding does not explain."""
    findings, left = join_outliers(FINDINGS, outliers(about, nodes))

    assert [] == findings.said[0].more
    assert 1 == len(left.said)


def test_every_named_rule_exists() -> None:
    """A renamed rule would silently explain nothing."""
    assert set() == {rule for rules in EXPLAINED_BY.values() for rule in rules} - set(page_paths())


def test_every_named_attribute_exists() -> None:
    """As `fleet outliers` compares them."""
    assert set() == set(EXPLAINED_BY) - {attribute.key for attribute in ATTRIBUTES} - RATE_KEYS


# Colours of the map, as people see them who lack one kind of cone.


# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LOOKS = ("ok", "warning", "error", "critical")  # unknown and stale are outlines
LEAST = 20.0  # CIE76; 2.3 is what is just seen side by side


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """CIELAB (D65) of "#rrggbb" as it is seen."""
    linear = [
        ((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92
        for c in (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    ]
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in SIGHT[sight])
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(a: str, b: str, sight: str) -> float:
    """How far apart two colours look."""
    return float(sum((p - q) ** 2 for p, q in zip(lab(a, sight), lab(b, sight), strict=True)) ** 0.5)


def tones(name: str) -> tuple[str, str]:
    """Light and dark of a variable of the page's style."""
    style = (get_data("agent.fleet.page", "page.css") or b"").decode()
    match = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", style)
    assert match is not None, name
    return match[1], match[2]


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_severities_are_told_apart(theme: int, sight: str) -> None:
    """By everybody, in both themes."""
    colours = {look: tones(f"m-{look}")[theme] for look in LOOKS}
    near = {(a, b): apart(colours[a], colours[b], sight) for a in LOOKS for b in LOOKS if a < b}

    assert LEAST < min(near.values()), near


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_a_scale_rises_in_lightness(theme: int, sight: str) -> None:
    """So that its order is seen without colours."""
    steps = [lab(tones(f"c{at}")[theme], sight)[0] for at in range(7)]

    assert steps == sorted(steps, reverse=bool(theme))


@pytest.mark.parametrize(
    ("silent", "requested", "shown"), [(3, False, False), (3, True, True), (1, False, True), (2, False, True)]
)
def test_a_new_dataset_has_no_silent_nodes(silent: int, requested: bool, shown: bool) -> None:
    """Nodes with a single report are not silent since a moment that was chosen from these reports."""
    nodes = fleet(4).nodes
    hosts = ",".join(nodes.names[:silent])
    answer = Drift(since="2026-01-15T08:15:00Z", silent=hosts, silent_nodes=silent, compared_nodes=4)

    section = build_drift(answer, NodeIndex(nodes), requested)

    assert shown == bool(section.said)
    assert shown != section.empty.startswith("Most nodes have a single report")


def test_a_fix_is_whole_however_many_steps_it_has() -> None:
    steps = " ".join(f"{at}. Look at part {at}, {'and its neighbour, ' * 5}then go on." for at in range(1, 20))
    scene = fleet(3)
    found = [msgspec.structs.replace(each, remedy=steps) for each in scene.nodes.found]
    nodes = msgspec.structs.replace(scene.nodes, found=found)
    assert steps in pack_scene(msgspec.structs.replace(scene, nodes=nodes))["texts"]


def test_commands_of_a_fix_are_marked() -> None:
    for text, steps in (("Run `ip link`.", 0), ("1. Run `ip link`. 2. Done.", 2)):
        term = _render_term("fix", text)
        assert ["ip link"] == [each.text for each in term.iter("code")]
        assert steps == len(list(term.iter("li")))
    assert not list(_render_term("where", "a `b` c").iter("code"))
