"""The page of all sentences of the kernel log that are read."""

from __future__ import annotations

from agent.rules.host.driver_sentences import MEANINGS
from probes.kernel.sentences import DRIVER, SENTENCES, Sentence
from tests.agent.rules.test_events import CONTEXT_ONLY, READ_BY

_HEAD = """# Sentences of the kernel log

Every line of a kernel log that is read, by the driver that writes it. This page is made from the table that the probe
uses (`probes/kernel/sentences.py`) and from what the rule states of it (`agent/rules/host/driver_sentences.py`); run
`make docs` after a change of either. AER records and CXL records go over several lines and are read by
`probes/kernel/log_events.py`.

`part`: what the line names. Sentences of the NVIDIA driver without an address are about the GPU that a line beside them
names. All logs that a source holds are read: `dmesg` or the journal of this boot, `journalctl -b -1` and `-b -2`,
kern.log, syslog and messages, and the scan section of nvidia-bug-report. A fault that only a log of an earlier boot
shows begins with "before the last boot" and has medium confidence.

| module | recognized by | event | part | what it states | confidence | rule | source |
|---|---|---|---|---|---|---|---|
"""


def describe_kernel_log() -> str:
    """The page as Markdown."""
    return _HEAD + "".join(_describe_row(row) for row in SENTENCES)


def _describe_row(row: Sentence) -> str:
    meaning = MEANINGS.get(row.code or "") if row.kind == DRIVER else None
    key = (row.kind, row.code)
    rule = READ_BY.get(key)
    groups = row.pattern.groupindex
    part = "PCI address" if "bdf" in groups or "short" in groups else "name" if "name" in groups else "host"
    cells = (
        row.module,
        f"`{row.needle.strip()}`",
        f"{row.kind} {row.code or ''}".strip(),
        part,
        meaning.says if meaning else CONTEXT_ONLY.get(key, "see the rule"),
        meaning.confidence if meaning else "high" if rule else "",
        f"`{rule}`" if rule else "evidence only",
        row.source,
    )
    return f"| {' | '.join(cells)} |\n"
