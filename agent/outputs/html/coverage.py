"""What could not be checked, what was read, and each rule's own text: folded, for those who ask why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.model.report import Report
from agent.outputs.html.elements import Child, el, render_table
from agent.outputs.text.gpudirect import PairGroup, group_pairs
from agent.outputs.text.not_checked import group_by_reason, suggest_steps
from agent.rules import pages


def render_gpudirect(report: Report, rules: RuleLinks) -> Element | None:
    """GPUDirect: a sentence if all pairs are ready alike; else one row per verdict and cause, worst first."""
    groups = group_pairs(report)
    if not groups:
        return None
    if len(groups) == 1 and groups[0].verdict == "ready":
        by = f" by {groups[0].via}" if groups[0].via else ""
        return el("p", el("strong", "Ready"), f"{by}: {groups[0].gpus} with {groups[0].nics}.")
    loud = {finding.rule for finding in report.open_findings if finding.severity != "info"}
    rows = [
        el(
            "tr",
            el("td", el("span", group.verdict, class_=f"badge {_badge_tone(group, loud)}")),
            el("td", group.via),
            el("td", group.gpus),
            el("td", group.nics),
            el("td", *[el("div", *rules.link_words(cause)) for cause in group.causes]),
        )
        for group in groups
    ]
    return render_table(("GPUDirect", "by", "GPUs", "rails", "because"), rows)


def _badge_tone(group: PairGroup, loud: set[str]) -> str:
    """Red or amber only where a finding is among the causes; a distance that nothing is wrong with is grey."""
    known = any(cause.partition(" ")[0].rstrip(":") in loud for cause in group.causes)
    return group.verdict if group.verdict == "ready" or (known and group.verdict != "unknown") else "quiet"


def render_not_checked(report: Report, rules: RuleLinks) -> Element | None:
    """Reasons for unknown, with the affected rules."""
    rows = [
        el("tr", el("td", reason), el("td", *rules.link_words(names)))
        for reason, names in group_by_reason(report).items()
    ]
    table = render_table(("Reason", "Checks"), rows)
    if table is None:
        return None
    steps = suggest_steps(report)
    hint = el("p", f"To check more: {'; '.join(steps)}.") if steps else None
    reasons = "1 reason" if len(rows) == 1 else f"{len(rows)} reasons"
    return el("details", el("summary", f"Could not check ({reasons})"), hint, table, class_="aside")


def render_probes(report: Report) -> Element | None:
    """How each probe ended, and what it read."""
    rows = [
        el(
            "tr", el("td", run.name), el("td", run.status.replace("_", " ")), el("td", f"{run.duration_seconds:.3f} s"),
            el("td", run.reason or ""), el("td", ", ".join(run.sources[:4]), class_="mono dim"),
        )
        for run in report.probes
    ]  # fmt: skip
    table = render_table(("Probe", "Result", "Time", "Reason", "Read"), rows)
    return el("details", el("summary", f"Probes ({len(rows)})"), table, class_="aside") if table is not None else None


SECTIONS = ("Why it matters", "How to confirm", "How to fix")
_CODE = re.compile(r"`([^`]+)`")
_ENTRY = re.compile(r"(?:^|\n)(?:- |\d+\. )")
_PLACEHOLDER = re.compile(
    r"\b(ADDRESS|PORT_ABOVE|INTERFACE|DEVICE|PORT_NUMBER|GPU_INDEX|NPU_INDEX|FAR_END|PORT|GUID|RULE)\b|\.\."
)


class RuleLinks:
    """Makes links to panels, and then the panels of the rules that were named."""

    def __init__(self) -> None:
        self._known = pages.page_paths()
        self._named: dict[str, None] = {}

    def link(self, rule: str) -> Element:
        """The rule's name, linked to its panel; plain for a rule that this version does not have."""
        if rule not in self._known:
            return el("code", rule, class_="rule")
        self._named[rule] = None
        return el("a", el("code", rule), href=f"#r-{rule}", class_="rule")

    def link_words(self, text: str) -> list[Child]:
        """A text, with the names of rules in it linked."""
        words = re.split(r"((?<![a-z0-9])[a-z0-9]+(?:-[a-z0-9]+)+)", text)
        return [self.link(word) if word in self._known else word for word in words]

    def panels(self) -> list[Element]:
        """One panel per rule that the page names, sorted."""
        return [_render_panel(rule) for rule in sorted(self._named)]


def _render_panel(rule: str) -> Element:
    title, _, text = pages.read_text(rule).partition("\n")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    elements = [
        part for name in SECTIONS if name in sections for part in (el("h4", name), *render_markdown(sections[name]))
    ]
    body = el("div", el("p", el("code", rule), class_="dim"), *elements, class_="body")
    return el("section", el("h3", *render_inline(title.rstrip("."))), body, class_="rule-panel", id=f"r-{rule}")


def render_markdown(text: str) -> Iterator[Element]:
    """Paragraphs, lists of `- ` or `1. ` with lists in them, and code: all that the pages of rules have."""
    for block in text.strip().split("\n\n"):
        if _ENTRY.match(block):
            entries = _ENTRY.split(block)[1:]
            yield el("ul" if block.startswith("- ") else "ol", *map(_render_entry, entries))
        else:
            yield el("p", *render_inline(block))


def render_command(command: str) -> Element:
    """A command with a button that copies it."""
    button = el("button", "Copy", type="button", class_="copy scripted", aria_label=f"Copy: {command}")
    return el("span", el("code", command), button, class_="command")


def render_inline(text: str) -> list[Child]:
    """A text whose code is marked; a command that can be run as it is can be copied."""
    parts: list[Child] = []
    for number, part in enumerate(_CODE.split(" ".join(text.split()))):
        if number % 2 == 0:
            parts.append(part)
        else:
            parts.append(render_command(part) if " " in part and not _PLACEHOLDER.search(part) else el("code", part))
    return parts


def _render_entry(entry: str) -> Element:
    first, *inner = re.split(r"\n +- ", entry)
    below = el("ul", *[el("li", *render_inline(line)) for line in inner], class_="outcomes") if inner else None
    return el("li", *render_inline(first), below)
