"""Findings as journal entries: one where the set of findings changed, which says what is new and what is gone.

The last entry is the memory: its end names, by fingerprint, what was open then. Written in one request, it can be
neither half done nor done twice: whoever comes after an interrupted run finds the entry, or finds it missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.model.finding import SEVERITIES
from agent.outputs.inventory.objects import InventoryFinding

SHOWN = 40  # lines of one kind in an entry; the set at its end is always whole
_OPEN = re.compile(r"<!-- fabricscope open:((?: [0-9a-zA-Z?]{1,64})*) -->\s*\Z")
_LINE = re.compile(r"^- .*\(`([0-9a-zA-Z?]{1,64})`\)$", re.MULTILINE)


class Entry(NamedTuple):
    """One journal entry."""

    kind: str  # info | success | warning | danger
    comments: str
    told: str  # for the plan


def state(findings: Sequence[InventoryFinding]) -> str:
    """The set of findings in few words, for a custom field: equal where the sets are.

    >>> state([])
    'none'
    """
    if not findings:
        return "none"
    worst = [each for each in reversed(SEVERITIES) if any(f.severity == each for f in findings)]
    counts = [f"{sum(f.severity == each for f in findings)} {each}" for each in worst]
    prints = "\n".join(sorted(finding.fingerprint for finding in findings))
    return f"{', '.join(counts) or len(findings)}; {hashlib.sha256(prints.encode()).hexdigest()[:16]}"


def opened(comments: str | None) -> dict[str, str] | None:
    """What an entry of ours says was open: fingerprint -> its line. None: no entry, or not as we wrote it."""
    said = _OPEN.search(comments or "")
    if said is None:
        return None
    lines = {found[1]: found[0][2:] for found in _LINE.finditer(comments or "")}
    return {each: lines.get(each, f"`{each}`") for each in said[1].split()}


def entry(
    findings: Sequence[InventoryFinding], earlier: dict[str, str] | None, not_judged: Iterable[str]
) -> Entry | None:
    """The entry that is due; None where the set is as it was, or there never was one."""
    before = earlier or {}
    now = {finding.fingerprint: finding for finding in findings}
    new = [finding for finding in findings if finding.fingerprint not in before]
    gone = [told for print_, told in before.items() if print_ not in now]
    if not new and not gone:
        return None
    unknown = {f"`{rule}`" for rule in not_judged}
    unseen = [told for told in gone if any(rule in told for rule in unknown)]
    gone = [told for told in gone if told not in unseen]
    old = [finding for finding in findings if finding.fingerprint in before]
    counts = [(len(new), "new"), (len(gone), "gone"), (len(unseen), "no longer judged"), (len(old), "as before")]
    head = ", ".join(f"{count} {word}" for count, word in counts if count)
    parts = [f"**fabricscope**: {head}"]
    parts += _section("New", [_told(finding) for finding in new])
    parts += _section("Gone", gone)
    parts += _section("No longer judged (it could not be read this time)", unseen)
    parts += _section("As before", [_told(finding) for finding in old])
    parts.append(f"<!-- fabricscope open:{''.join(f' {print_}' for print_ in sorted(now))} -->")
    return Entry(_kind(new, gone), "\n\n".join(parts), head)


def _kind(new: Sequence[InventoryFinding], gone: Sequence[str]) -> str:
    severities = {finding.severity for finding in new}
    if severities & {"error", "critical"}:
        return "danger"
    if "warning" in severities:
        return "warning"
    return "success" if gone and not new else "info"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    shown = [f"- {each}" for each in lines[:SHOWN]]
    if len(lines) > SHOWN:
        shown.append(f"- and {len(lines) - SHOWN} more")
    return [f"{title}:", "\n".join(shown)]


def _told(finding: InventoryFinding) -> str:
    return (
        f"{_code(finding.severity)} {_code(finding.rule)} {_code(finding.label)}: {_code(finding.summary)} "
        f"({_code(finding.fingerprint)})"
    )


def _code(text: str) -> str:
    """Names are untrusted: as code, nothing in them is Markdown or HTML."""
    return f"`{text.replace('`', chr(39))}`"
