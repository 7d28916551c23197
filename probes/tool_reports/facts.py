"""A fault as a tool states it."""

from __future__ import annotations

from probes.named_tuple import NamedTuple

NO_ROW = r"^={40,200}\r?\n={40,200}\s"  # of the short table of rocm-smi: the rule below its heading is that of its end

_LONGEST = 400  # characters of a line that is shown
NODE_HEADING = r"^[> \t]*NAME +STATUS +ROLES +AGE +VERSION\b"  # of `kubectl get nodes`
OWN_RULE = r"[a-z][a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,6}"
OWN_LINE = (  # of what fabricscope prints
    rf"^[> \t]*(?:\d{{1,4}} checks? ran(?:;|[ \t]*$)|rule {{6}}{OWN_RULE}(?: \(confidence: \w{{3,6}}\))?[ \t\r]*$"
    rf"|FABRICSCOPE (?:OK|WARNING|CRITICAL|UNKNOWN) - |Next: \S{{0,80}}fabricscope explain {OWN_RULE})"
    rf'|"rule": ?"{OWN_RULE}",\s{{0,40}}"severity": ?"[a-z]{{4,8}}",\s{{0,40}}"subject": ?"'
)


class ToolReport(NamedTuple):
    """A fault of one part. What a code means is in `agent/rules/host/tool_reports.py`."""

    code: str
    subject: str | None  # PCI address; "NVIDIA 3", "AMD 0": a GPU as the tool numbers it; another name; None: the host
    text: str  # the line
    detail: tuple[tuple[str, str], ...] = ()  # what else of it a person needs, by name
    kind: str = "tool"  # ib_port: error counters of a port of an InfiniBand fabric


def state_fault(code: str, subject: str | None, what: str | None, line: str | None = None) -> ToolReport:
    """A fault with the words that state it. `line`: where they stand; else the part with these words.

    >>> state_fault("below-width", "n4", "x8, the others x16")[1:4]
    ('n4', 'n4: x8, the others x16', (('what', 'x8, the others x16'),))
    """
    what = " ".join((what or "").split())
    text = " ".join(line.split()) if line is not None else f"{subject}: {what}" if subject else what
    return ToolReport(code, subject, text[:_LONGEST], (("what", what),) if what else ())


class LabelValues(NamedTuple):
    """A label that no fact has, whose value is not the same on all devices of an output."""

    source: str  # the command
    label: str  # with the headings above it, "Max Clocks/Video"
    values: tuple[tuple[str, tuple[str, ...]], ...]  # each with the devices that have it, as the output names them


class ToolFacts(NamedTuple):
    """Every fault, with the command that states it. None of them: all that was read is healthy."""

    reports: tuple[tuple[str, ToolReport], ...]
    unequal: tuple[LabelValues, ...] = ()
