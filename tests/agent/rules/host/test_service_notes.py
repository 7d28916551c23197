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
