"""`check` answers: each monitoring contract by its own words and exit codes."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.finding import Check, Finding, Summary, UnknownSubject
from agent.model.node import Node
from agent.model.report import Generator, Report, Source
from agent.model.topology import Topology
from agent.outputs.check import NPD_LIMIT, format_nagios, format_npd, format_slurm_prolog


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
