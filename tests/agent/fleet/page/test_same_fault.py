"""Which differences from peers are told with a finding."""

from __future__ import annotations

import pytest

from agent.fleet.page.findings import EXPLAINED_BY, join_outliers
from agent.fleet.page.scene import Said, Section
from agent.fleet.questions.attributes import ATTRIBUTES
from agent.rules.pages import page_paths

FINDINGS = Section(
    title="Findings", anchor="findings", said=[Said(words="x8", about="pcie-width-downgraded", nodes=[1, 2])]
)


def outliers(about: str, nodes: list[int]) -> Section:
    said = [Said(words="PCIe width is x8", about=about, nodes=nodes, group="H100")]
    return Section(title="Outliers", anchor="outliers", note="8 nodes compared.", said=said)


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
    assert set() == set(EXPLAINED_BY) - {attribute.key for attribute in ATTRIBUTES}
