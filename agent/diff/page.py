"""A diff for people: notes first, then one section per group, one line per change, folded where it is long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.diff.ledger import GROUPS, Change, Diff, Side, Value, subject_kind
from agent.model.labels import natural
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

SHOWN = 6  # subjects of one change, and changes of one kind, before the rest is only counted
MARKS = {"gone": "-", "lost": "?", "gained": "?", "new": "+", "grew": "^"}
STYLES = {"gone": "error", "replaced": "warning", "moved": "warning", "new": "info", "lost": "dim", "gained": "dim"}
WORDS = {"lost": "no longer known", "gained": "known now", "reset": "reset"}


def page(diff: Diff, width: int = 80) -> list[Line]:
    """The whole comparison, at most `width` columns wide where it can be folded."""
    lines = wrap_paragraph(f"OLD  {_side(diff.old)}", width, "     ", "dim", first="")
    lines += wrap_paragraph(f"NEW  {_side(diff.new)}", width, "     ", "dim", first="")
    for note in diff.notes:
        lines += wrap_paragraph(note, width, "  ", "warning", first="! ")
    if not diff.changes:
        return [*lines, make_line(("no differences", "ok"))]
    for group in GROUPS:
        changes = [change for change in diff.changes if change.group == group]
        if changes:
            lines += [BLANK, make_heading(group.capitalize())]
            for similar in _similar(changes):
                lines += _render_changes(similar, width)
    return lines


def _side(side: Side) -> str:
    observed = f", observed {side.observed_at}" if side.observed_at else ""
    verdict = side.verdict
    if side.missing:
        count = "1 device is" if len(side.missing) == 1 else f"{len(side.missing)} devices are"
        verdict = f"{count} missing: {fold_labels(side.missing)} (verdict without OLD as its baseline: {verdict})"
    return f"{side.hostname or '(host name not known)'}, {side.source}{observed}: {verdict}"


def _similar(changes: Sequence[Change]) -> Iterable[list[Change]]:
    """Changes of one kind of thing side by side, as a machine that changed as a whole has one for each device."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        alike = "" if change.kind in ("lost", "gained") else change.what
        groups.setdefault((change.kind, alike, subject_kind(change.subjects[0]), change.note or ""), []).append(change)
    return groups.values()


def _render_changes(changes: list[Change], width: int) -> list[Line]:
    lines: list[Line] = []
    visible = changes if len(changes) <= SHOWN else changes[: SHOWN - 1]
    for change in visible:
        mark = MARKS.get(change.kind, "~")
        lines += wrap_paragraph(sentence(change), width, "      ", STYLES.get(change.kind, ""), first=f"  {mark} ")
    rest = changes[len(visible) :]
    if rest:
        labels = [place.label for change in rest for place in change.subjects]
        text = f"{rest[0].what} {rest[0].kind} otherwise on {fold_labels(labels)}"
        lines += wrap_paragraph(text, width, "      ", "dim", first="    ")
    return lines


def sentence(change: Change) -> str:
    """One change in one line, without its mark."""
    who = fold_labels([place.label for place in change.subjects])
    values = f"{_value(change.old)} -> {_value(change.new)}"
    note = f" ({change.note})" if change.note else ""
    if change.kind in ("gone", "new", "renamed", "renumbered"):
        text = f"{change.what} {change.kind}: {who}"
    elif change.kind in ("lost", "gained"):
        text = f"{WORDS[change.kind]} of {who}: {change.what}"
    elif change.kind == "changed" and isinstance(change.old, list) and isinstance(change.new, list):
        text = f"{who}  {change.what}: {_words(change.old, change.new)}"
    elif change.kind == "grew":
        rate = f", {change.per_second:g}/s" if change.per_second is not None else ""
        text = f"{who}  {change.what} {values} (+{_more(change)}{rate})"
    else:
        verb = "" if change.kind == "changed" else f" {change.kind}"
        text = f"{who}  {change.what}{verb}: {values}"
    return text + note


def _more(change: Change) -> str:
    both = isinstance(change.old, (int, float)) and isinstance(change.new, (int, float))
    return str(change.new - change.old) if both else "?"  # type: ignore[operator]  # both are numbers


def _words(old: list[str], new: list[str]) -> str:
    """Two lists: as they are where they are rows of the same things, else what went and what came."""
    parts = [f"- {', '.join(old)}" if old else "", f"+ {', '.join(new)}" if new else ""]
    return "  ".join(part for part in parts if part)


def _value(value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, "") else str(value)


def fold_labels(labels: Sequence[str]) -> str:
    """Many names in few words.

    >>> fold_labels(["GPU4/0", "GPU4/1", "GPU4/2", "GPU5/7"])
    'GPU4/0-2, GPU5/7'
    >>> fold_labels(["GPU2 - mlx5_0", "GPU2 - mlx5_1", "GPU2 - mlx5_2"])
    'GPU2 with mlx5_0-2'
    >>> fold_labels(["GPU0 - mlx5_0", "GPU1 - mlx5_3", "GPU2 - mlx5_4"])
    '3 pairs of GPU0-2'
    """
    names = sorted(set(labels), key=natural)
    ends = [name.split(" - ") for name in names]
    if len(names) > 2 and all(len(end) == 2 for end in ends):
        return _pairs([(a, b) for a, b in ends])
    runs = _runs(names)
    visible = runs if len(runs) <= SHOWN else runs[: SHOWN - 1]
    rest = len(names) - sum(run.last - run.first + 1 for run in visible)
    return ", ".join(run.text for run in visible) + (f" and {rest} more" if rest else "")


def _pairs(ends: list[tuple[str, str]]) -> str:
    """Pairs that share an end are reported by it."""
    counts = Counter(end for pair in ends for end in pair)
    most = max(sorted(counts, key=natural), key=counts.__getitem__)
    if counts[most] == len(ends):
        return f"{most} with {fold_labels([b if a == most else a for a, b in ends])}"
    if 2 * counts[most] > len(ends):
        return f"{len(ends)} pairs, most of them of {most}"
    return f"{len(ends)} pairs of {fold_labels([a for a, _ in ends])}"


class _TextRun(NamedTuple):
    """`stem` with the numbers from first to last; -1: the name ends in no number."""

    stem: str
    first: int
    last: int

    @property
    def text(self) -> str:
        if self.first < 0:
            return self.stem
        return f"{self.stem}{self.first}" + (f"-{self.last}" if self.last > self.first else "")


def _runs(names: Sequence[str]) -> list[_TextRun]:
    """Names that differ in their last number only, as a range."""
    runs: list[_TextRun] = []
    for name in names:
        match = re.fullmatch(r"(.*?)([0-9]{1,6})", name, re.DOTALL)
        stem, number = (match[1], int(match[2])) if match and str(int(match[2])) == match[2] else (name, -1)
        if runs and number > 0 and runs[-1].stem == stem and runs[-1].last == number - 1:
            runs[-1] = runs[-1]._replace(last=number)
        else:
            runs.append(_TextRun(stem, number, number))
    return runs
