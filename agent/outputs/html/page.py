"""One self-contained file: verdict, findings with remedies, the picture, distances, every device.

It loads nothing from outside. It is complete without its script, which opens boxes at the
side, traces paths, and changes the theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pkgutil import get_data
from xml.etree.ElementTree import Element, tostring

from agent.model.finding import Finding
from agent.model.report import Report
from agent.outputs.html import matrix
from agent.outputs.html.devices import build_device_blocks
from agent.outputs.html.elements import el
from agent.outputs.html.picture import draw_picture
from agent.outputs.html.scene import build_scene
from agent.outputs.names import DisplayNames
from agent.outputs.text.findings import join_absorbed
from agent.outputs.text.gpudirect import group_pairs
from agent.outputs.text.header import list_facts
from agent.outputs.text.not_checked import group_by_reason, suggest_steps
from agent.outputs.verdict import count_checks, describe_verdict, verdict_title

# Nothing is loaded, whatever a name in the report contains
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
LEGEND = (
    ("var(--flow)", "a link, as wide as what it carries"),
    ("var(--could)", "what it could carry"),
    ("var(--error)", "less than it could"),
    ("var(--idle)", "idle or not to be believed"),
    ("var(--nvswitch-line)", "NVLink"),
)


def render_html(report: Report) -> str:
    """Render HTML 5; the same bytes for the same report."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", f"{_host_name(report)} - fabricscope"),
        _inline_files("style", "palette.css", "picture.css", "page.css"),
    )
    panel = el(
        "aside", el("button", "Close", type="button"), el("div", class_="inside"), id="panel", hidden="hidden",
        aria_label="what is known of a device",
    )  # fmt: skip
    body = el(
        "body",
        el("a", "To the findings", href="#findings", class_="skip"),
        _render_header(report),
        _render_main(report),
    )
    body.extend([_render_footer(report), panel, _inline_files("script", "page.js")])
    return "<!DOCTYPE html>\n" + tostring(el("html", head, body, lang="en"), encoding="unicode", method="html") + "\n"


def _render_header(report: Report) -> Element:
    node = report.node
    product = " ".join(part for part in (node.vendor, node.product) if part)
    title = el("div", el("h1", _host_name(report)), el("p", product, class_="dim"))
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    verdict = el(
        "div",
        el("strong", verdict_title(report)),
        el("span", describe_verdict(report)),
        el("span", count_checks(report), class_="dim"),
        class_=f"verdict {report.summary.verdict}",
    )
    rows = [cell for name, text, _ in list_facts(report) for cell in (el("dt", name), el("dd", text))]
    return el("header", el("div", title, theme, class_="top"), verdict, el("dl", *rows))


def _render_main(report: Report) -> Element:
    main = el("main")
    main.extend(_render_findings(report))
    seen = build_scene(report)
    drawn = draw_picture(report, seen, anchors=True)
    if drawn is not None:
        key = [el("span", el("span", class_="swatch", style=f"background:{tone}"), text) for tone, text in LEGEND]
        box = el("div", drawn, class_="scroll", tabindex=0, role="region", aria_label="picture of the machine")
        main.extend(_make_section("How it is wired", el("div", *key, class_="key"), box))
    main.extend(_make_section("GPU to GPU", matrix.render_gpu_matrix(report)))
    near = el("p", "* nearest rail", class_="dim")
    rails = matrix.render_nic_matrix(report)
    main.extend(_make_section("GPU to NIC", rails, near if rails is not None else None))
    main.extend(_make_section("GPUDirect RDMA", _render_gpudirect(report)))
    main.extend(_make_section("Could not check", _render_not_checked(report)))
    known = build_device_blocks(report, seen)
    main.extend(_make_section("Devices", *known) if known else ())
    probe_table = _render_probes(report)
    if probe_table is not None:
        main.extend(
            _make_section("Probes", el("details", el("summary", "what was read, and how it ended"), probe_table))
        )
    return main


def _render_findings(report: Report) -> Iterator[Element]:
    yield el("h2", "Findings", id="findings")
    names = DisplayNames(report)
    loud = [finding for finding in report.findings if finding.severity != "info"]
    quiet = [finding for finding in report.findings if finding.severity == "info"]
    if not loud:
        yield el("p", "None above info.")
    yield from (_render_finding(finding, names) for finding in loud)
    if quiet:
        title = f"{len(quiet)} worth knowing (info)"
        yield el("details", el("summary", title), *[_render_finding(finding, names) for finding in quiet])


def _render_finding(finding: Finding, names: DisplayNames) -> Element:
    kind, _, which = finding.subject.partition(":")
    where = el("a", finding.label, href=f"#d-{which.partition('/')[0]}") if kind not in ("node", "pair") else None
    head = el(
        "header",
        el("span", finding.severity, class_=f"badge {finding.severity}"),
        where if where is not None else el("span", finding.label),
        el("code", finding.rule),
        el("span", f"confidence {finding.confidence}", class_="dim") if finding.confidence != "high" else None,
    )
    seen = [
        el(
            "tr",
            el("td", evidence.what),
            el("td", evidence.value, class_="mono"),
            el("td", evidence.source, class_="mono dim"),
        )
        for evidence in finding.evidence
    ]
    rows = [("impact", finding.impact), ("remedy", finding.remedy)]
    rows += [("explains", join_absorbed(finding.absorbs, names))] if finding.absorbs else []
    return el(
        "article",
        head,
        el("p", finding.summary, class_="what"),
        el("div", el("table", el("tbody", *seen)), class_="scroll") if seen else None,
        el("dl", *[cell for name, text in rows for cell in (el("dt", name), el("dd", text))]),
        class_=f"finding {finding.severity}",
        id=f"f-{finding.fingerprint}",
    )


def _render_gpudirect(report: Report) -> Element | None:
    """GPUDirect: equal pairs share a row, worst first."""
    rows = [
        el(
            "tr",
            el("td", el("span", group.verdict, class_=f"badge {group.verdict}")),
            el("td", "" if group.via in ("none", "unknown") else group.via),
            el("td", group.gpus),
            el("td", group.nics),
            el("td", *[el("div", cause) for cause in group.causes]),
        )
        for group in group_pairs(report)
    ]
    return _render_table(("verdict", "by", "GPUs", "rails", "because"), rows)


def _render_not_checked(report: Report) -> Element | None:
    """Reasons for unknown, with the affected rules."""
    rows = [el("tr", el("td", reason), el("td", rules)) for reason, rules in group_by_reason(report).items()]
    table = _render_table(("because", "not judged"), rows)
    steps = suggest_steps(report)
    if table is not None and steps:
        return el("div", table, el("p", f"To judge more: {'; '.join(steps)}."))
    return table


def _render_probes(report: Report) -> Element | None:
    """How each probe ended, and what it read."""
    rows = [
        el(
            "tr", el("td", run.name), el("td", run.status.replace("_", " ")), el("td", f"{run.duration_seconds:.3f} s"),
            el("td", run.reason or ""), el("td", ", ".join(run.sources[:4]), class_="mono dim"),
        )
        for run in report.probes
    ]  # fmt: skip
    return _render_table(("probe", "ended", "took", "because", "read"), rows)


def _render_table(titles: tuple[str, ...], rows: list[Element]) -> Element | None:
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in titles]))
    return el("div", el("table", head, el("tbody", *rows)), class_="scroll", tabindex=0, role="region",
              aria_label=titles[0])  # fmt: skip


def _render_footer(report: Report) -> Element:
    origin = f"fabricscope {report.generator.version}, {report.schema}, {report.generated_at}"
    return el("footer", el("p", origin), el("p", "Every rule in words: fabricscope explain RULE"))


def _make_section(title: str, *parts: Element | None) -> Iterable[Element]:
    present = [part for part in parts if part is not None]
    return [el("h2", title), *present] if present else []


def _host_name(report: Report) -> str:
    return report.node.hostname or "(host name not known)"


def _inline_files(tag: str, *names: str) -> Element:
    """An inline style or script, which `method="html"` writes unescaped."""
    element = Element(tag)
    element.text = "".join((get_data(__package__ or "", name) or b"").decode() for name in names)
    return element
