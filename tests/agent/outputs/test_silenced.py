"""A silenced finding in every output: it fails nothing, and it is shown with its reason."""

from __future__ import annotations

import json
from datetime import date

import msgspec
import pytest

from agent.config import Configuration, SilenceEntry
from agent.diagnose import evaluate_report
from agent.diff import diff
from agent.fleet.rows import report_fields
from agent.fleet.rows.verdicts import finding_rows
from agent.model.report import Report
from agent.outputs.check import format_nagios, format_npd, format_slurm_prolog
from agent.outputs.export import ansible, junit, prometheus
from agent.outputs.html.elements import Severities
from agent.outputs.html.page import render_html
from agent.outputs.inventory.node import build_desired
from agent.outputs.text.page import Detail, choose_next_step, render_page
from agent.outputs.verdict import describe_verdict
from tests.machines import scan_machine

RULE, WHY = "pcie-width-downgraded", "silenced until 2026-12-31: riser ordered (OPS-1)"
ENTRY = SilenceEntry(
    rule=RULE,
    reason="riser ordered",
    ticket="OPS-1",
    until=date(2026, 12, 31),
)


@pytest.fixture(scope="module")
def loud() -> Report:
    """A machine with one fault."""
    return msgspec.structs.replace(scan_machine("", "gpu-width-x8"), observed_at="2026-03-01T00:00:00Z")


@pytest.fixture(scope="module")
def silenced(loud: Report) -> Report:
    """The same, with the fault silenced."""
    return evaluate_report(loud, Configuration(silence=[ENTRY]))


def text_of(report: Report, detail: Detail = Detail.NORMAL) -> str:
    """The page as text."""
    return "\n".join("".join(text for text, _ in line) for line in render_page(report, 400, detail))


def _rows(report: Report) -> list[tuple[object, ...]]:
    """Whether its findings are silenced, why and until when, as a fleet's dataset has them."""
    read = msgspec.json.decode(msgspec.json.encode(report), type=report_fields.ReportFields)
    return [row[-4:-1] for row in finding_rows(read.findings)]


def test_the_report_lists_the_entry(silenced: Report) -> None:
    """As a change of the configuration, and in the summary."""
    assert [f"silence: {RULE} of all devices until 2026-12-31: riser ordered (OPS-1)"] == silenced.config.changed
    assert ("ok", 1) == (silenced.summary.verdict, silenced.summary.silenced)
    assert json.loads(msgspec.json.encode(silenced))["findings"][-1]["silenced"] == {
        "until": "2026-12-31", "reason": "riser ordered", "ticket": "OPS-1",
    }  # fmt: skip


def test_no_exit_code_counts_it(loud: Report, silenced: Report) -> None:
    """Monitoring, node-problem-detector and a prolog that fails on errors."""
    for form in (format_nagios, format_npd, lambda report: format_slurm_prolog(report, "error")):
        assert (True, 0) == (form(loud).code > 0, form(silenced).code)
        assert "1 silenced" in form(silenced).text
    lines = format_nagios(silenced).text.splitlines()
    assert lines[0].endswith("error=0;;;0 warning=0;;;0 info=0;;;0 silenced=1;;;0")
    assert lines[1].startswith(f"SILENCED error {RULE} GPU")
    assert lines[1].endswith(WHY)


def test_the_text_lists_it_last(loud: Report, silenced: Report) -> None:
    """In one line, and no device of the tree is marked."""
    assert "no problems found, 1 silenced" == describe_verdict(silenced)
    lines = [line for line in text_of(silenced).splitlines() if line.startswith("SILENCED")]
    assert [True] == [line.startswith(f"SILENCED  error {RULE}") and line.endswith(WHY) for line in lines]
    assert (1, 0) == tuple(text_of(report, Detail.TOPOLOGY).count(f"<- {RULE}") for report in (loud, silenced))
    assert "explain" not in choose_next_step(silenced)[0]


def test_the_page_greys_it(loud: Report, silenced: Report) -> None:
    """In a section of its own; nothing of the picture is coloured."""
    page = render_html(silenced)
    assert 'class="notes silenced"' in page
    assert f"<p>{WHY}</p>" in page
    assert 'class="notes silenced"' not in render_html(loud)
    assert (True, {}) == (bool(Severities(loud).devices), Severities(silenced).devices)


def test_exports_know_it(loud: Report, silenced: Report) -> None:
    """JUnit skips it, Prometheus has a metric of its own; Ansible and NetBox count it no more; the fleet knows it."""
    assert f'<skipped message="{WHY}"/>' in junit.export(silenced)
    assert "<failure" not in junit.export(silenced)
    assert f'fabricscope_finding_silenced{{rule="{RULE}",severity="error"' in prometheus.export(silenced)
    assert 'until="2026-12-31"} 1' in prometheus.export(silenced)
    assert "fabricscope_finding{" not in prometheus.export(silenced)
    assert "finding_silenced" not in prometheus.export(loud)
    assert ([], 1) == (
        json.loads(ansible.export(silenced))["findings"],
        len(json.loads(ansible.export(loud))["findings"]),
    )
    assert (0, 1) == (len(build_desired(silenced).findings), len(build_desired(loud).findings))
    rows = [_rows(report) for report in (silenced, loud)]
    assert [[(True, "riser ordered", "2026-12-31")], [(None, None, None)]] == rows


def test_a_difference_shows_that_it_was_silenced(loud: Report, silenced: Report) -> None:
    """The finding is the same one."""
    changes = [change for change in diff(loud, silenced).changes if change.group == "findings"]

    assert [(f"{RULE} silenced", "no", WHY)] == [(change.what, change.old, change.new) for change in changes]
