"""Errors in the log of a service that no sentence explains: a note with the line."""

from __future__ import annotations

from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.host.service_failures import service_reports_failure
from agent.rules.rule import Fail
from tests.matrix.rule_rows import row


def test_a_line_without_a_number_has_no_name_of_one() -> None:
    context, _ = row("service-reports-failure", "another kind of line")
    event = Event(kind="service", code="unexplained", text="x failed", source="a log", subject="nvidia-imex", count=2)
    (note,) = (
        answer
        for answer in service_reports_failure.check(replace(context, events=(event,)))
        if isinstance(answer, Fail)
    )

    assert "its log has errors that no check explains (2 lines): x failed" == note.summary
    assert (("UNIT", "nvidia-imex"),) == note.values


def find_faults(*events: Event) -> list[Fail]:
    """What the rule finds in a log with these events."""
    context, _ = row("service-reports-failure", "another kind of line")
    answers = service_reports_failure.check(replace(context, events=events))
    return [answer for answer in answers if isinstance(answer, Fail)]


def test_a_service_that_failed_quotes_the_error_before_it() -> None:
    """A log with an unexplained error does state why, to whoever reads it."""
    error = Event(kind="service", code="unexplained", text="cannot train link 4", source="a log", subject="nvidia-imex")
    failed = Event(kind="service", code="failed", text="Failed with result", source="a log", subject="nvidia-imex")

    (alone,), (explained,) = find_faults(failed), find_faults(error, failed)
    assert alone.summary == "its log states: it failed, and its log does not state why"
    assert explained.summary == (
        "its log states: it failed; an error before that, which no check explains: cannot train link 4"
    )


def test_ports_that_leave_the_subnet_together_are_those_of_a_restart() -> None:
    removed = [
        Event(
            kind="service",
            code="sm-port-removed",
            text="Removed port",
            source="a log",
            subject="opensm",
            count=2,
            detail={"node": f"{node} mlx5_{port}"},
        )
        for node, port in (("n7", 0), ("n7", 1), ("n8", 0))
    ]
    assert not find_faults(*removed[:2])
    assert ["opensm"] == [fault.label for fault in find_faults(removed[0], removed[2])]
