"""Findings as journal entries: one where the set of findings changed, which states what is new and what is gone.

The last entry is the memory: its end names, by fingerprint, what was open then. Written in one request, it can be
neither half done nor done twice: the run after an interrupted one finds the entry, or finds it missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.model.finding import SEVERITIES
from agent.outputs.inventory.objects import InventoryFinding

LINE_LIMIT = 40  # lines of one kind in an entry; the set at its end is always whole
_OPEN = re.compile(r"<!-- fabricscope open:((?: [0-9a-zA-Z?]{1,64})*) -->\s*\Z")
_LINE = re.compile(r"^- .*\(`([0-9a-zA-Z?]{1,64})`\)$", re.MULTILINE)


class JournalEntry(NamedTuple):
    """One journal entry."""

    kind: str  # info | success | warning | danger
    comments: str
    summary: str  # for the plan


def summarize_findings(findings: Sequence[InventoryFinding]) -> str:
    """The set of findings in few words, for a custom field: equal where the sets are.

    >>> summarize_findings([])
    'none'
    """
    if not findings:
        return "none"
    worst = [severity for severity in reversed(SEVERITIES) if any(f.severity == severity for f in findings)]
    counts = [f"{sum(f.severity == severity for f in findings)} {severity}" for severity in worst]
    prints = "\n".join(sorted(finding.fingerprint for finding in findings))
    return f"{', '.join(counts) or len(findings)}; {hashlib.sha256(prints.encode()).hexdigest()[:16]}"


def parse_open_findings(comments: str | None) -> dict[str, str] | None:
    """What an entry of ours states was open: fingerprint -> its line. None: no entry, or not as we wrote it."""
    match = _OPEN.search(comments or "")
    if match is None:
        return None
    lines = {line[1]: line[0][2:] for line in _LINE.finditer(comments or "")}
    return {fingerprint: lines.get(fingerprint, f"`{fingerprint}`") for fingerprint in match[1].split()}


def make_entry(
    findings: Sequence[InventoryFinding], earlier: dict[str, str] | None, not_judged: Iterable[str]
) -> JournalEntry | None:
    """The entry that is due; None where the set is as it was, or there never was one."""
    before = earlier or {}
    now = {finding.fingerprint: finding for finding in findings}
    new = [finding for finding in findings if finding.fingerprint not in before]
    gone = [line for print_, line in before.items() if print_ not in now]
    if not new and not gone:
        return None
    unknown = {f"`{rule}`" for rule in not_judged}
    unseen = [line for line in gone if any(rule in line for rule in unknown)]
    gone = [line for line in gone if line not in unseen]
    old = [finding for finding in findings if finding.fingerprint in before]
    counts = [(len(new), "new"), (len(gone), "gone"), (len(unseen), "no longer judged"), (len(old), "as before")]
    head = ", ".join(f"{count} {word}" for count, word in counts if count)
    parts = [f"**fabricscope**: {head}"]
    parts += _section("New", [_format_finding(finding) for finding in new])
    parts += _section("Gone", gone)
    parts += _section("No longer judged (it could not be read this time)", unseen)
    parts += _section("As before", [_format_finding(finding) for finding in old])
    parts.append(f"<!-- fabricscope open:{''.join(f' {print_}' for print_ in sorted(now))} -->")
    return JournalEntry(_entry_kind(new, gone), "\n\n".join(parts), head)


def _entry_kind(new: Sequence[InventoryFinding], gone: Sequence[str]) -> str:
    severities = {finding.severity for finding in new}
    if severities & {"error", "critical"}:
        return "danger"
    if "warning" in severities:
        return "warning"
    return "success" if gone and not new else "info"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    lines_shown = [f"- {text}" for text in lines[:LINE_LIMIT]]
    if len(lines) > LINE_LIMIT:
        lines_shown.append(f"- and {len(lines) - LINE_LIMIT} more")
    return [f"{title}:", "\n".join(lines_shown)]


def _format_finding(finding: InventoryFinding) -> str:
    return (
        f"{_code(finding.severity)} {_code(finding.rule)} {_code(finding.label)}: {_code(finding.summary)} "
        f"({_code(finding.fingerprint)})"
    )


def _code(text: str) -> str:
    """Names are untrusted: as code, nothing in them is Markdown or HTML."""
    return f"`{text.replace('`', chr(39))}`"
