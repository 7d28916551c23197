"""Lines of styled text, their colours on a terminal, pages and lists of rules, which lose nothing, and what is not
judged: by reason, in words of the source, with what would help.
"""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.finding import Check, Summary
from agent.model.reasons import NO_EARLIER_SAMPLE, ReasonRow, SettleRow
from agent.model.report import Report, Source
from agent.model.topology import Topology
from agent.outputs.terminal import print_styled
from agent.outputs.text.findings import render_verdict
from agent.outputs.text.lines import clean, line_length, make_line, to_plain_text, wrap_paragraph
from agent.outputs.text.not_checked import count_not_checked, render_not_checked, simplify_reason
from agent.outputs.text.rule_page import fold_page, list_rules
from agent.rules.catalogue import every_rule
from tests.agent.outputs.text.reports import finding, probe, report, unknown
from tests.agent.rules import rows

HOSTILE = [(("GPU0 \x1b]0;owned\x07", ""), ("\x9b31m\r\n\x00\u202ebad", "bold"))]
LONG_WORD = 40  # a path or command has no place to fold
GPUS = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(8)]
ALL = [f"gpu:{gpu.id}" for gpu in GPUS]


def test_a_paragraph_hangs_below_its_first_word() -> None:
    """The indent of the following lines is the width of what stands before the first."""
    folded = wrap_paragraph("one two three four five six seven eight nine ten", 40, indent="      ", first="  a - ")

    assert to_plain_text(folded) == "  a - one two three four five six seven\n      eight nine ten\n"


@given(st.text(max_size=300), st.integers(40, 200))
def test_no_control_character_gets_through(text: str, width: int) -> None:
    """Whatever a host name or a firmware says, the page stays printable and folds."""
    lines = wrap_paragraph(text, width)

    assert all(line == clean(line) for line in to_plain_text(lines).splitlines())
    assert all(line_length(line) <= width or " " not in to_plain_text([line]).strip() for line in lines)


def test_a_line_takes_bare_strings_and_styles() -> None:
    """A string without a style is plain."""
    assert make_line("a", ("b", "bold")) == (("a", ""), ("b", "bold"))


@pytest.mark.parametrize("drawn", ["pipe", "terminal"])
def test_a_device_name_cannot_command_the_terminal(drawn: str) -> None:
    """Interface names may hold any byte but a slash, and saved outputs and reports hold what they like."""
    stream = io.StringIO()
    print_styled(HOSTILE, stream)
    text = to_plain_text(HOSTILE) if drawn == "pipe" else stream.getvalue()

    assert "owned" in text
    assert not any(sign in text for sign in ("\x1b]", "\x07", "\x9b", "\r", "\x00", "\u202e"))
    assert 1 == text.count("\n")


# Pages and lists of rules fit a terminal, and lose nothing.


def test_a_page_is_folded_by_its_blocks() -> None:
    """Lines of a paragraph or item are joined first; headings, items and empty lines stay."""
    page = "## How it is decided\nA long line\nand another.\n\n- an item\n  goes on\n  - below it\n12. a step\n"

    assert (
        "How it is decided\nA long line and another.\n\n- an item goes on\n  - below it\n12. a step\n"
    ) == to_plain_text(fold_page(page, 80))
    assert "12. a step that is folded behind the\n    number\n" == to_plain_text(
        fold_page("12. a step that is folded behind the number", 40)
    )


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_page_fits_and_has_all_its_words(width: int) -> None:
    """But for words that are longer than a line."""
    for rule in every_rule():
        lines = fold_page(rule.page, width)
        words = re.sub(r"^#+ ", "", rule.page, flags=re.MULTILINE).split()

        assert words == to_plain_text(lines).split(), rule.name
        over = [line for line in lines if line_length(line) > width]
        assert all(max(map(len, to_plain_text([line]).split())) > LONG_WORD for line in over), rule.name


def test_a_list_is_in_columns_where_titles_have_room() -> None:
    """Else the title is below the name."""
    rows = [("pcie-x", "error", True, "A link is narrow."), ("ib-longer", "info", False, "A port is down.")]
    columns = "pcie-x     error     essential  A link is narrow.\nib-longer  info                 A port is down.\n"
    below = "pcie-x  error, essential\n    A link is narrow.\nib-longer  info\n    A port is down.\n"

    assert columns == to_plain_text(list_rules(rows, 49))
    assert below == to_plain_text(list_rules(rows, 48))


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


@pytest.mark.parametrize(
    ("reason", "live", "saved"),
    [
        ("pci: absent: no folder", "pci absent: no folder", "not in these outputs: pci"),
        ("a: absent: x; b: absent: y", "a absent: x; b absent: y", "not in these outputs: a, b"),
        ("a: absent: x; nothing; b: absent: y", "a absent: x; nothing; b absent: y", "not in these outputs: a, b"),
        ("not read: a: absent: x", "not read: a absent: x", "not read: not in these outputs: a"),
        ("a: absent: x; b: failed: y", "a absent: x; b failed: y", "a absent: x; b failed: y"),
        ("a: absent: x; else: b: absent: y", "a absent: x; else: b absent: y", "a absent: x; else: b absent: y"),
    ],
)
def test_why_saved_outputs_do_not_hold_something_is_left_out(reason: str, live: str, saved: str) -> None:
    """A file that is missing there says nothing of the host."""
    reports = [report(Topology(), source=Source(kind=kind)) for kind in ("live", "dump")]

    assert [live, saved] == [simplify_reason(reason, item) for item in reports]


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
    ("kind", "rules", "words"),
    [
        ("text", [], "UNKNOWN no check can use these outputs; cannot say OK: "),
        ("dump", ["a"], "UNKNOWN only one check can use these outputs, and found no fault; cannot say OK: "),
        ("dump", ["a", "b"], "UNKNOWN only 2 checks can use these outputs, and found no fault; cannot say OK: "),
        ("capture", ["a", "b"], "UNKNOWN cannot say OK: "),
    ],
)
def test_saved_outputs_state_whether_a_check_could_use_them(kind: str, rules: list[str], words: str) -> None:
    """The check of our own reading is none of the host."""
    checks = [Check(rule=rule, state="pass", passed=1) for rule in ["probe-hung", *rules]]
    summary = Summary(verdict="unknown", counts={}, unknown_rules=["x"])
    saved = report(Topology(), summary=summary, checks=checks, source=Source(kind=kind))
    text = " ".join(to_plain_text(render_verdict(saved, 80)).split())

    assert text.startswith(words)
    found = msgspec.structs.replace(saved, findings=[finding("node", "node", "info")])
    assert " ".join(to_plain_text(render_verdict(found, 80)).split()).startswith("UNKNOWN cannot say OK: ")


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
