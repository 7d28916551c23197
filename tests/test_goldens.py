"""Every machine x every output is a golden file: `make docs` renews them, the diff is reviewed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent.outputs.check import format_nagios
from agent.outputs.export import FORMS, export_report
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from agent.reports import encode_report
from tests.conftest import ROOT
from tests.machines import FAULTS, HOSTS, scanned

EXPECTED = ROOT / "fixtures" / "expected"
EXPORTED = "8xh100-sxm-2s-8xcx7-ib-4nvsw"  # one machine in every form: the tests of each form try them all
Golden = Callable[[str, str], None]


@pytest.fixture
def golden() -> Golden:
    """Compare with the committed file, or write it anew where UPDATE_GOLDENS is set."""

    def compare(name: str, text: str) -> None:
        place: Path = EXPECTED / name
        if os.environ.get("UPDATE_GOLDENS"):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        assert place.read_text() == text

    return compare


@pytest.mark.parametrize("shape", HOSTS)
def test_host(shape: str, golden: Golden) -> None:
    """A healthy machine: its report, its page at 80 and 200 columns."""
    report = scanned(shape)

    golden(f"{shape}/report.json", encode_report(report).decode())
    golden(f"{shape}/page-80.txt", to_plain_text(render_page(report, 80)))
    golden(f"{shape}/page-200.txt", to_plain_text(render_page(report, 200)))


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, golden: Golden) -> None:
    """A fault: the findings and checks that it makes, and the monitoring answer."""
    report = scanned("", fault)
    told = msgspec.json.format(msgspec.json.encode({"findings": report.findings, "summary": report.summary}), indent=2)

    golden(f"faults/{fault}.json", told.decode() + "\n")
    golden(f"faults/{fault}.check.txt", format_nagios(report).text)


@pytest.mark.parametrize("form", FORMS)
def test_export(form: str, golden: Golden) -> None:
    """One machine in every form that `export` writes."""
    golden(f"{EXPORTED}/export.{form}.txt", export_report(form, scanned(EXPORTED)))


def test_picture_of_the_readme(golden: Golden) -> None:
    """The demo's machine with a fault that a picture shows."""
    golden("../../docs/machine.svg", export_report("svg", scanned(EXPORTED, "switch-uplink-x4")))
