"""Lines of the log of a switch's operating system: which port, and what it states."""

from __future__ import annotations

import pytest

from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports.switch_log import list_switch_log

LINE = "2026 Feb  3 04:05:06.123456 leaf3 {} swss#orchagent: :- {}: {}\n"
STORM = LINE.format(
    "NOTICE",
    "report",
    "PFC Watchdog detected PFC storm on port Ethernet64, queue index 3, queue id 0x15 and port id 0x1.",
)
PAUSED = LINE.format("WARNING", "pfcFrameCounterCheck", "Got PFC {} frame(s) on lossy queue 4 port Ethernet12")
FAULT = LINE.format("NOTICE", "updatePortErrorStatus", "Port Ethernet8 oper error event: fec_sync_loss occurred")
UP = LINE.format("NOTICE", "updatePortOperStatus", "Port Ethernet8 oper state set from down to up")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (STORM, ["switch-storm Ethernet64:3"]),
        (PAUSED.format(71) + PAUSED.format(912), ["switch-lossy-pause Ethernet12:4 912 frames"]),
        (FAULT, ["switch-port-fault Ethernet8 fec sync loss"]),
        (FAULT + UP, []),
        (UP + FAULT, ["switch-port-fault Ethernet8 fec sync loss"]),
    ],
    ids=["a storm", "pause frames of a lossy class, twice", "a link", "a link that came up again", "and then failed"],
)
def test_what_the_log_of_a_switch_states_of_a_port(text: str, codes: list[str]) -> None:
    """Its last state counts."""
    reports = list_switch_log(text)

    assert codes == [" ".join([report.code, report.subject or "", *dict(report.detail).values()]) for report in reports]
    assert (("SONiC", "log"),) == identify_command(text) or text.startswith(UP)


def test_other_lines_of_a_switch_are_no_fault() -> None:
    """A port that is created, and a text of anyone."""
    with pytest.raises(ParseError):
        list_switch_log(LINE.format("NOTICE", "addHostIntfs", "Create host interface for port Ethernet8"))
