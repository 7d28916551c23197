"""What is not judged: by reason, in words of the source, with what would help."""

from __future__ import annotations

import pytest

from agent.model.finding import Summary
from agent.model.reasons import NO_EARLIER_SAMPLE, ReasonRow, SettleRow
from agent.model.report import Report, Source
from agent.model.topology import Topology
from agent.outputs.text.findings import render_verdict
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.not_checked import count_not_checked, render_not_checked
from tests.agent.outputs.text.reports import probe, report, unknown
from tests.agent.rules import rows

GPUS = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(8)]
ALL = [f"gpu:{gpu.id}" for gpu in GPUS]


def render(report_: Report) -> str:
    """The section as a pipe gets it."""
    return to_plain_text(render_not_checked(report_, 80))


def test_rules_with_one_reason_are_one_entry() -> None:
    """And eight GPUs are a range."""
    reason = "nvml: absent: no driver"
    checks = [unknown("nvlink-inactive", reason, *ALL), unknown("gpu-missing", reason, *ALL)]

    assert "  ? nvlink-inactive, gpu-missing: GPU0-7\n      nvml absent: no driver\n" == render(
        report(Topology(gpus=GPUS), checks=checks)
    )


def test_a_long_list_of_subjects_is_cut() -> None:
    """Twelve switches have no common name."""
    places = [f"pci:0000:{n:02x}:00.0" for n in range(12)]

    assert ", 09:00.0 and 2 more\n" in render(report(Topology(), checks=[unknown("numa-unknown", "why", *places)]))


def test_a_rule_of_the_whole_node_names_no_subject() -> None:
    """`node` says nothing."""
    assert "  ? numa-unknown\n      why\n" == render(
        report(Topology(), checks=[unknown("numa-unknown", "why", "node")])
    )


def test_probes_that_a_dump_cannot_feed_are_one_line() -> None:
    """On a live host each has its reason."""
    probes = [probe("kernel", "absent", "no file"), probe("dmi", "absent", "no folder"), probe("pci", "ok")]

    assert "  - kernel, dmi: not in these outputs\n" == render(
        report(Topology(), probes=probes, source=Source(kind="dump"))
    )
    assert "  - probe kernel absent: no file\n  - probe dmi absent: no folder\n" == render(
        report(Topology(), probes=probes)
    )


def test_what_would_help_is_said() -> None:
    """Root, time, another output."""
    probes = [probe("pci", "denied", "EACCES"), probe("nvml", "timed_out", "no answer")]
    live = render(report(Topology(), probes=probes))
    checks = [unknown("gpu-missing", "why", "node", code="evidence-absent")]
    settles = [SettleRow(kind="command", what="nvidia-smi -q")]
    saved = render(
        report(
            Topology(),
            probes=[probe("nvidia_smi", "absent")],
            source=Source(kind="dump"),
            checks=checks,
            reasons=[ReasonRow(code="evidence-absent", text="why", settles=settles)],
        )
    )

    assert "To check more: scan as root; give nvml more time (--timeout)" in live
    assert "To check more: also save nvidia-smi -q" in saved


def test_a_verdict_that_is_not_ok_for_what_is_unknown_says_for_what() -> None:
    """The first rules by name, the others by their number."""
    few = report(Topology(), summary=Summary(verdict="unknown", counts={}, unknown_rules=["a", "b"]))
    many = report(Topology(), summary=Summary(verdict="unknown", counts={}, unknown_rules=list("abcdef")))

    assert "UNKNOWN  cannot say OK: these checks could not run: a, b\n" in to_plain_text(render_verdict(few, 80))
    assert "could not run: a, b, c and 3 more\n" in to_plain_text(render_verdict(many, 80))


@pytest.mark.parametrize(
    ("essential", "text"),
    [(1, "an essential check could not run: a"), (2, "2 essential checks could not run: a, b"),
     (5, "5 essential checks could not run: a, b, c and 2 more")],
)  # fmt: skip
def test_only_essential_checks_keep_a_verdict_from_ok(essential: int, text: str) -> None:
    """The others are counted in the line below."""
    summary = Summary(verdict="unknown", counts={}, unknown_rules=list("abcdef"), unknown_essential=essential)

    assert f"cannot say OK: {text}\n" in to_plain_text(render_verdict(report(Topology(), summary=summary), 80))


def test_one_line_names_what_could_not_be_checked() -> None:
    """But not what only needs a second sample: the counts say so."""
    checks = [unknown(rule, "why", "node") for rule in ("a", "b", "c", "d")]
    waiting = unknown("pcie-replays", NO_EARLIER_SAMPLE, "node", code="no-second-sample")

    assert "Could not check: a, b and 2 more (--verbose lists why)\n" == to_plain_text(
        count_not_checked(report(Topology(), checks=[*checks, waiting]), 80)
    )
    assert [] == count_not_checked(report(Topology(), checks=[waiting]), 80)
