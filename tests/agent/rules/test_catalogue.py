"""The catalogue: nothing is orphaned, every page is whole, and the map of references agrees with it."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import agent.rules
from agent.rules import pages
from agent.rules.catalogue import FAMILIES, every_rule, rules_of
from agent.rules.rule import Rule
from tests.conftest import ROOT

PROBES = {"kernel", "dmi", "cpu", "numa", "pci", "nvml", "rdma", "netdev", "modules", "services", "lspci", "nvidia_smi"}
PROBES |= {"optics", "rdma_tools", "lsmod", "nccl", "limits", "kernel_log"}
NAMES = {rule.name: rule for rule in every_rule()}
IDS = [f"PCIE-{n:03}" for n in range(1, 35)] + [f"NVL-{n:03}" for n in range(1, 29)] + ["NCCL-001"]
# Not of a reference: "a device that is gone", "a hang is a finding", the recovery action, a learnt profile, soft-RoCE,
# a real GPU
OWN = ["CONTRACT-3", "CONTRACT-5", "CONTRACT-NVML230", "CONTRACT-PROFILE", "LAB-SOFT", "SEEN-NVLINK"]


def made_anywhere() -> list[Rule]:
    """All rules that any module of the package makes."""
    found = {}
    for module in pkgutil.walk_packages(agent.rules.__path__, "agent.rules."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Rule):
                found[value.name] = value
    return list(found.values())


def rows() -> list[list[str]]:
    """The table of docs/rules-map.md."""
    lines = (ROOT / "docs" / "rules-map.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] != "reference"]


def test_every_rule_is_listed_once() -> None:
    """A rule that is not in the list does not run."""
    assert sorted(rule.name for rule in made_anywhere()) == sorted(rule.name for rule in every_rule())
    assert len(NAMES) == len(every_rule())


def test_a_rule_lies_in_the_file_of_its_name() -> None:
    """pcie-width-downgraded is agent/rules/pcie/width_downgraded.py, so that a person finds it."""
    for rule in every_rule():
        family, _, rest = rule.check.__module__.removeprefix("agent.rules.").partition(".")

        assert rule.name.replace("-", "_").endswith(rest), (family, rest)


def test_causes_are_rules_and_go_in_no_circle() -> None:
    """Two rules that absorb each other would both be silent."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, above
        for below in NAMES[name].absorbs:
            assert below in NAMES, below
            visit(below, (*above, name))
        order.append(name)

    for name in NAMES:
        visit(name, ())


def test_needs_are_probes() -> None:
    """A misspelt need would always be unmet."""
    for rule in every_rule():
        assert {each for need in rule.needs for each in need.split("|")} <= PROBES


def test_essential_rules_are_those_that_need_no_privilege() -> None:
    """The verdict hangs on these; a change here is a change of the contract."""
    assert {"pcie-device-gone", "pcie-width-downgraded", "gpu-missing", "nvlink-inactive", "ib-port-down"} == {
        rule.name for rule in every_rule() if rule.essential
    }


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.name)
def test_a_page_is_whole(rule: Rule) -> None:
    """A title of one sentence, then the fixed headings in order, each with text; the cost has a number."""
    parts = re.split(r"^## (.*)$", rule.page, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))

    assert rule.title.endswith(".")
    assert list(pages.HEADINGS) == parts[1::2]
    assert all(sections.values())
    assert re.search(r"\d", sections["Why it matters"])
    assert "`" in sections["How to confirm"]
    assert all(len(line) <= 120 for line in rule.page.splitlines())


def test_the_committed_pages_are_those_of_the_docstrings() -> None:
    """`python -m agent.rules.pages --write docs/rules` renews them."""
    assert [] == pages.differences(str(ROOT / "docs" / "rules"))


def test_the_check_finds_what_differs(tmp_path) -> None:
    """Missing, changed and left-over pages, and a folder that is not there."""
    pages.write(str(tmp_path))
    assert [] == pages.differences(str(tmp_path))
    (tmp_path / "old-rule.md").write_text("gone")
    (tmp_path / "ib-no-sm.md").write_text("changed")
    (tmp_path / "README.md").unlink()

    assert ["old-rule.md: of no rule", "README.md: missing", "ib-no-sm.md: differs from the rule's docstring"] == (
        pages.differences(str(tmp_path))
    )
    assert 1 == pages.main(["--check", str(tmp_path)])
    assert 0 == pages.main(["--write", str(tmp_path)])
    assert 0 == pages.main(["--check", str(tmp_path)])
    assert not (tmp_path / "old-rule.md").exists()
    assert len(every_rule()) + 1 == len(pages.differences(str(tmp_path / "nowhere")))
    assert 2 == pages.main(["--nonsense"])


def test_the_map_holds_every_reference_once() -> None:
    """PCIe, NVLink and NCCL by number; 120 of the network side by name."""
    references = [row[0] for row in rows()]

    assert len(set(references)) == len(references)
    assert {*IDS, *OWN} <= set(references)
    assert 120 == len(set(references) - {*IDS, *OWN})


def test_the_map_says_one_thing_of_a_rule() -> None:
    """Two references of one rule agree on all of it."""
    said: dict[str, set[tuple[str, ...]]] = {}
    for row in rows():
        said.setdefault(row[1], set()).add(tuple(row[2:]))

    assert [] == [name for name, each in said.items() if len(each) > 1]


def test_the_map_agrees_with_the_catalogue() -> None:
    """References, severity, what absorbs it, essential; what a fleet asks, or nothing reads, is no rule of a node."""
    mapped: dict[str, set[str]] = {}
    for reference, name, severity, absorbed, essential, state in rows():
        assert state in ("", "fleet", "outside")
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


def test_a_family_has_the_rules_that_the_catalogue_names() -> None:
    """The names stand in the catalogue so that a shut gate imports nothing."""
    for family in FAMILIES:
        assert family.rules == tuple(rule.name for rule in rules_of(family)), family.name


def test_thresholds_are_named_after_their_rule() -> None:
    """`[thresholds]` of the configuration says which rule a limit belongs to."""
    for rule in every_rule():
        for limit in rule.thresholds:
            assert limit.name.startswith(f"{rule.name}.")
            assert limit.what
