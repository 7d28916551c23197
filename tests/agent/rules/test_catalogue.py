"""The catalogue: nothing is orphaned, every page is whole, and the map of references agrees with it."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re

import pytest

import agent.rules
from agent.rules import pages
from agent.rules.catalogue import FAMILIES, every_rule
from agent.rules.renamed import FIELDS, MERGED, RENAMED
from agent.rules.rule import Rule
from probes.catalogue import providers
from tests.conftest import ROOT

NAMES = {rule.name: rule for rule in every_rule()}
IDS = [f"PCIE-{n:03}" for n in range(1, 35)] + [f"NVL-{n:03}" for n in range(1, 29)] + ["NCCL-001"]
HEADINGS = (
    "What it checks", "Why it matters", "How it is decided", "When it does not apply", "How to confirm", "How to fix",
    "Source",
)  # fmt: skip
# Not of a reference: "a device that is gone", "a hang is a finding", the recovery action, a learnt profile, soft-RoCE,
# a real GPU
OWN = ["CONTRACT-3", "CONTRACT-5", "CONTRACT-NVML230", "CONTRACT-PROFILE", "LAB-SOFT", "SEEN-NVLINK"]


def made_anywhere() -> list[Rule]:
    """All rules that any module of the package makes."""
    collected = {}
    for module in pkgutil.walk_packages(agent.rules.__path__, "agent.rules."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Rule):
                collected[value.name] = value
    return list(collected.values())


def rows() -> list[list[str]]:
    """The table of docs/rules-map.md."""
    lines = (ROOT / "docs" / "rules-map.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] != "reference"]


def test_what_is_outside_has_a_reason() -> None:
    """What it would need is named above the table, or on the page of the accelerators."""
    head, _, _ = (ROOT / "docs" / "rules-map.md").read_text().partition("\n| ")
    _, _, unknown = (ROOT / "docs" / "accelerators.md").read_text().partition("## What is not known")

    outside = {row[1] for row in rows() if row[-1] == "outside"}
    assert {name for name in outside if f"`{name}`" not in head + unknown} == set()
    assert not outside & NAMES.keys()


def test_every_rule_is_listed_once() -> None:
    """A rule that is not in the list does not run."""
    assert sorted(rule.name for rule in made_anywhere()) == sorted(rule.name for rule in every_rule())
    assert len(NAMES) == len(every_rule())


def test_a_page_lies_beside_the_module_that_it_names() -> None:
    """pcie-width-downgraded is agent/rules/pcie/pcie-width-downgraded.md, and its head says which module checks it."""
    for rule in every_rule():
        path, module = pages.page_paths()[rule.name], pages.read_declaration(rule.name).module
        family = os.path.basename(os.path.dirname(path))

        assert f"agent.rules.{family}.{module}" == rule.check.__module__
        assert rule.check.__name__ == rule.name.replace("-", "_")


def test_every_folder_of_pages_is_a_family() -> None:
    """And what is asked before a family is imported is of modules that it has."""
    assert sorted(pages.family_names()) == sorted(family.name for family in FAMILIES)
    for family in FAMILIES:
        assert family.module_gates.keys() <= {pages.read_declaration(name).module for name in family.rules}


HEAD = "---\nseverity: info\nmodule: m"


@pytest.mark.parametrize(
    ("head", "error"),
    [
        ("---\nseverity: bad\nmodule: m", "p:1: severity is not one of info, warning, error, critical: 'bad'"),
        ("---\nneeds: pci", "p:1: missing: module, severity"),
        (f"{HEAD}\nessential: no", "p:1: essential is `yes` or not there: 'no'"),
        (f"{HEAD}\nseverity: info", "p:4: a second key 'severity'"),
        (f"{HEAD}\nseverty: info", "p:4: an unknown key 'severty'"),
        (f"{HEAD}\nneeds:", "p:4: not `key: value`: 'needs:'"),
        (f"{HEAD}\n", "p:4: not `key: value`: ''"),
        (f"{HEAD}\nneeds:  ", "p:4: not `key: value`: 'needs:  '"),
        (f"{HEAD}\nlimit.x: ten | times", "p:4: not `number | what is limited`: 'ten | times'"),
        (f"{HEAD}\nlimit.x: 10", "p:4: not `number | what is limited`: '10'"),
    ],
)
def test_a_damaged_head_is_told_with_file_and_line(head: str, error: str) -> None:
    with pytest.raises(pages.BadPage) as caught:
        pages.parse_head("r", head, "p")

    assert error == str(caught.value)


@pytest.mark.parametrize("text", ["", "# No head.\n", "---\nseverity: info\n"])
def test_a_page_without_a_head_is_told_with_its_file(text: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "r-without-head.md"
    page.write_text(text)
    monkeypatch.setattr(pages, "page_paths", lambda: {"r-without-head": str(page)})
    with pytest.raises(pages.BadPage, match=f"^{page}:1: the head must be between"):
        pages.read_declaration.__wrapped__("r-without-head")


def test_a_head_holds_numbers_as_they_are_written() -> None:
    """10 stays a whole number, 1e-12 and 24.0 are none."""
    head = f"{HEAD}\nneeds: pci|gpu, numa\nessential: yes\nlimit.a: 10 | times\nlimit.b: 1e-12 | of all"
    read = pages.parse_head("r", head, "p")

    assert (("pci|gpu", "numa"), True, ()) == (read.needs, read.essential, read.absorbs)
    assert (pages.Threshold("r.a", 10, "times"), pages.Threshold("r.b", 1e-12, "of all")) == read.thresholds
    assert [int, float] == [type(limit.value) for limit in read.thresholds]


def test_causes_are_rules_and_go_in_no_circle() -> None:
    """Only two may explain each other: then the graver one stands (agent/rules/consequences.py)."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, above
        for below in NAMES[name].absorbs:
            assert below in NAMES, below
            if name not in NAMES[below].absorbs:
                visit(below, (*above, name))
        order.append(name)

    for name in NAMES:
        visit(name, ())


def test_needs_are_subjects_of_probes() -> None:
    """A misspelt need would always be unmet."""
    for rule in every_rule():
        assert {item for need in rule.needs for item in need.split("|")} <= providers().keys()


def test_essential_rules_are_those_that_need_no_privilege() -> None:
    """The verdict hangs on these; a change here is a change of the contract."""
    assert {
        "pcie-device-gone",
        "pcie-width-downgraded",
        "gpu-missing",
        "gpu-driver-unusable",
        "nvlink-inactive",
        "ib-port-down",
    } == {rule.name for rule in every_rule() if rule.essential}


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.name)
def test_a_page_is_whole(rule: Rule) -> None:
    """A title of one sentence, then the fixed headings in order, each with text."""
    parts = re.split(r"^## (.*)$", rule.page, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))

    assert rule.title.endswith(".")
    assert list(HEADINGS) == parts[1::2]
    assert all(sections.values())
    assert "`" in sections["How to confirm"]
    assert all(len(line) <= 120 for line in rule.page.splitlines())


def test_the_map_holds_every_reference_once() -> None:
    """PCIe, NVLink and NCCL by number; the 120 of the network side, and later ones, by name."""
    references = [row[0] for row in rows()]

    assert len(set(references)) == len(references)
    assert {*IDS, *OWN} <= set(references)
    assert 120 <= len(set(references) - {*IDS, *OWN})


def test_the_map_says_one_thing_of_a_rule() -> None:
    """Two references of one rule agree on all of it."""
    result: dict[str, set[tuple[str, ...]]] = {}
    for row in rows():
        result.setdefault(row[1], set()).add(tuple(row[2:]))

    assert [] == [name for name, item in result.items() if len(item) > 1]


def test_the_map_agrees_with_the_catalogue() -> None:
    """References, severity, what absorbs it, essential; what a fleet asks, or nothing reads, is no rule of a node."""
    mapped: dict[str, set[str]] = {}
    for reference, name, severity, absorbed, essential, state in rows():
        assert state in ("", "fleet", "outside", "fact")
        assert (state == "") == (name in NAMES), name
        if name not in NAMES:
            continue
        causes = {rule.name for rule in every_rule() if name in rule.absorbs}
        mapped.setdefault(name, set()).add(reference)

        assert (NAMES[name].severity, NAMES[name].essential) == (severity, essential == "yes")
        assert causes == set(absorbed.split(", ")) - {"-"}, name
    assert {rule.name: set(rule.references) for rule in every_rule()} == mapped


def test_what_absorbs_a_rule_is_a_rule_of_the_map() -> None:
    """No cause that nobody will write."""
    names = {row[1] for row in rows()}
    causes = {cause for row in rows() for cause in row[3].split(", ") if row[3] != "-"}

    assert causes <= names


def test_thresholds_are_named_after_their_rule() -> None:
    """`[thresholds]` of the configuration says which rule a limit belongs to."""
    for rule in every_rule():
        for limit in rule.thresholds:
            assert limit.name.startswith(f"{rule.name}.")
            assert limit.what


def test_old_names_lead_to_rules_of_today() -> None:
    """No rule has an old name, and each new name is a rule's; what is no rule any more names a field."""
    assert not {*RENAMED, *FIELDS} & NAMES.keys()
    thresholds = {limit.name for rule in every_rule() for limit in rule.thresholds}
    for old, new in RENAMED.items():
        assert new in (thresholds if "." in old else NAMES)
    assert MERGED <= RENAMED.keys()
    assert not RENAMED.keys() & FIELDS.keys()
