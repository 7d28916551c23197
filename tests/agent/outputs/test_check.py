"""`check` answers: each monitoring contract by its own words and exit codes. A silenced finding in every output: it
fails nothing, and it is shown with its reason.
"""

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
from agent.model.finding import Check, Finding, Summary, UnknownSubject
from agent.model.node import Node
from agent.model.report import Generator, Report, Source
from agent.model.topology import Topology
from agent.outputs.check import NPD_LIMIT, format_nagios, format_npd, format_slurm_prolog
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


def finding(severity: str, summary: str = "PCIe x8, capable of x16") -> Finding:
    return Finding(
        rule="pcie-width-downgraded",
        severity=severity,
        subject="gpu:0000:19:00.0",
        label="GPU3",
        summary=summary,
        impact="half",
        remedy="reseat",
        fingerprint="0" * 16,
    )


def report(*severities: str, verdict: str | None = None) -> Report:
    unknown = verdict == "unknown"
    check = Check(
        rule="gpu-missing",
        state="unknown" if unknown else "pass",
        passed=0 if unknown else 1,
        unknown=1 if unknown else 0,
        unknown_subjects=[UnknownSubject(subject="node", reason="nvml: denied")] if unknown else [],
    )
    counts = {s: severities.count(s) for s in ("info", "warning", "error", "critical")}
    worst = verdict or next((s for s in ("critical", "error", "warning") if s in severities), "ok")
    return Report(
        generated_at="2026-11-20T00:00:00Z",
        generator=Generator(name="fabricscope", version="0"),
        source=Source(kind="live"),
        node=Node(),
        topology=Topology(),
        checks=[check],
        findings=[finding(s) for s in severities],
        summary=Summary(
            verdict=worst,
            counts=counts,
            unknown_rules=["gpu-missing"] if unknown else [],
            unknown_essential=int(unknown),
        ),
    )


@pytest.mark.parametrize(
    ("severities", "verdict", "code", "word"),
    [
        ((), None, 0, "OK"),
        (("info",), None, 0, "OK"),
        (("warning",), None, 1, "WARNING"),
        (("error",), None, 2, "CRITICAL"),
        (("critical", "warning"), None, 2, "CRITICAL"),
        ((), "unknown", 3, "UNKNOWN"),
        (("warning",), "warning", 1, "WARNING"),
    ],
)
def test_a_monitoring_plugin_has_four_states(
    severities: tuple[str, ...], verdict: str | None, code: int, word: str
) -> None:
    """0 ok, 1 warning, 2 error or critical, 3 unknown; the first line says it, then a line a finding."""
    answer = format_nagios(report(*severities, verdict=verdict))

    assert code == answer.code
    assert answer.text.startswith(f"FABRICSCOPE {word} - ")
    assert sum(line.split()[1:2] == ["pcie-width-downgraded"] for line in answer.text.splitlines()) == len(severities)


def test_the_first_line_carries_performance_data() -> None:
    """label=value;warn;crit;min after the bar."""
    first = format_nagios(report("error", "warning")).text.splitlines()[0]

    assert first.endswith("| critical=0;;;0 error=1;;;0 warning=1;;;0 info=0;;;0")


def test_what_lies_below_the_floor_does_not_fail() -> None:
    """--fail-on error: a warning is told and exits 0."""
    answer = format_nagios(report("warning"), fail_on="error")

    assert answer.code == 0
    assert "WARNING pcie-width-downgraded GPU3" in answer.text


def test_a_stale_report_is_unknown_everywhere_but_in_a_prolog() -> None:
    """Nothing is said of the node; a prolog must not drain it for that."""
    assert format_nagios(report("critical"), stale="the report is 90 s old, more than 60 s").code == 3
    assert format_npd(report("critical"), stale="old").code == 2
    assert format_slurm_prolog(report("critical"), stale="old").code == 0


def test_node_problem_detector_gets_one_short_line() -> None:
    """At most 80 characters, and 0, 1 or 2."""
    changed = report("error")
    long = msgspec.structs.replace(changed, findings=[finding("error", "x" * 200)])
    answer = format_npd(long)

    assert answer.code == 1
    assert len(answer.text) == NPD_LIMIT + 1
    assert format_npd(report(verdict="unknown")).code == 2
    assert format_npd(report()).code == 0


def test_a_prolog_fails_on_critical_only_unless_told() -> None:
    """Any exit but 0 drains the node and holds the job."""
    assert format_slurm_prolog(report("critical")).code == 1
    assert format_slurm_prolog(report("error")).code == 0
    assert format_slurm_prolog(report("error"), fail_on="error").code == 1
    assert format_slurm_prolog(report(verdict="unknown")).code == 0
    assert ("essential checks without data: gpu-missing\n", 1) == format_slurm_prolog(
        report(verdict="unknown"), fail_on_unknown=True
    )
    others = msgspec.structs.replace(report("info"), summary=Summary(verdict="ok", counts={}, unknown_rules=["nccl"]))
    assert format_slurm_prolog(others, fail_on_unknown=True).code == 0
    assert format_slurm_prolog(report("info"), stale="old", fail_on_unknown=True) == ("old\n", 1)
    assert format_slurm_prolog(report("error"), fail_on_unknown=True).code == 0
    both = msgspec.structs.replace(report("critical", verdict="unknown"), summary=report(verdict="unknown").summary)
    assert format_slurm_prolog(both, fail_on_unknown=True).text.startswith("pcie-width-downgraded")


def test_hostile_text_reaches_no_terminal() -> None:
    """Escape sequences and line breaks in a summary are made harmless."""
    hostile = msgspec.structs.replace(report("error"), findings=[finding("error", "\x1b[2J\nOK")])
    text = format_nagios(hostile).text

    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_a_bar_in_a_text_begins_no_performance_data() -> None:
    """Plugins' texts end at the first bar: a name must neither cut the message nor add a figure."""
    hostile = msgspec.structs.replace(report("error"), findings=[finding("error", "firmware a|critical=0;;;0")])
    first, second = format_nagios(hostile).text.splitlines()

    assert (1, 0) == (first.count("|"), second.count("|"))
    assert first.endswith("firmware a/critical=0;;;0 | critical=0;;;0 error=1;;;0 warning=0;;;0 info=0;;;0")


def test_a_finding_that_does_not_count_is_not_called_nothing() -> None:
    """A prolog that drains on critical only still says that there is an error."""
    assert ("1 error, below --fail-on; 1 check ran\n", 0) == format_slurm_prolog(report("error"))
    assert ("no problems found; 1 check ran\n", 0) == format_slurm_prolog(report("info"))


def test_a_host_without_devices_exits_as_ok_with_a_word_of_its_own() -> None:
    """Nothing was checked, so it is not called ok."""
    text, code = format_nagios(report(verdict="nothing_to_check"))

    assert code == 0
    assert text.startswith("FABRICSCOPE NOTHING TO CHECK - no GPU, other accelerator or RDMA NIC on this host | ")
    assert format_npd(report(verdict="nothing_to_check")).code == 0
    assert format_slurm_prolog(report(verdict="nothing_to_check")).code == 0


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
