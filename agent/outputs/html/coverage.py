"""What could not be checked, and what was read: folded, for those who ask why something is not judged."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from agent.model.report import Report
from agent.outputs.html.elements import el
from agent.outputs.html.rule_panels import RuleLinks
from agent.outputs.text.gpudirect import PairGroup, group_pairs
from agent.outputs.text.not_checked import group_by_reason, suggest_steps


def render_gpudirect(report: Report, rules: RuleLinks) -> Element | None:
    """GPUDirect: a sentence if all pairs are ready alike; else one row per verdict and cause, worst first."""
    groups = group_pairs(report)
    if not groups:
        return None
    if len(groups) == 1 and groups[0].verdict == "ready":
        by = f" by {groups[0].via}" if groups[0].via not in ("none", "unknown") else ""
        return el("p", el("strong", "Ready"), f"{by}: {groups[0].gpus} with {groups[0].nics}.")
    loud = {finding.rule for finding in report.open_findings if finding.severity != "info"}
    rows = [
        el(
            "tr",
            el("td", el("span", group.verdict, class_=f"badge {_badge_tone(group, loud)}")),
            el("td", "" if group.via in ("none", "unknown") else group.via),
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


def render_table(titles: tuple[str, ...], rows: list[Element]) -> Element | None:
    """A table in a frame of its own that scrolls; None without rows."""
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in titles]))
    table = el("table", head, el("tbody", *rows))
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=titles[0])
