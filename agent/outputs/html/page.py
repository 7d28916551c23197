"""One file with everything in it: verdict, findings with what mends them, the picture, distances, every device.

It loads nothing and asks nobody: it opens from a ticket in a room without a network. Without its script it reads the
same; the script opens boxes at the side, traces ways, and changes the theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pkgutil import get_data
from xml.etree.ElementTree import Element, tostring

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import Report
from agent.outputs.html import tables
from agent.outputs.html.devices import devices
from agent.outputs.html.elements import el
from agent.outputs.html.picture import picture
from agent.outputs.html.scene import scene
from agent.outputs.names import Names
from agent.outputs.text.findings import absorbed, judged
from agent.outputs.text.header import facts

# Nothing from outside, whatever a name in the report holds
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
KEY = (
    ("var(--flow)", "a link, as wide as what it carries"),
    ("var(--could)", "what it could carry"),
    ("var(--error)", "less than it could"),
    ("var(--idle)", "idle or not to be believed"),
    ("var(--nvswitch-line)", "NVLink"),
)


def page(report: Report) -> str:
    """HTML 5, the same bytes for the same report."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", f"{_name(report)} - fabricscope"),
        _raw("style", "palette.css", "picture.css", "page.css"),
    )
    panel = el(
        "aside", el("button", "Close", type="button"), el("div", class_="inside"), id="panel", hidden="hidden",
        aria_label="what is known of a device",
    )  # fmt: skip
    body = el("body", el("a", "To the findings", href="#findings", class_="skip"), _header(report), _main(report))
    body.extend([_footer(report), panel, _raw("script", "page.js")])
    return "<!DOCTYPE html>\n" + tostring(el("html", head, body, lang="en"), encoding="unicode", method="html") + "\n"


def _header(report: Report) -> Element:
    node = report.node
    product = " ".join(each for each in (node.vendor, node.product) if each)
    title = el("div", el("h1", _name(report)), el("p", product, class_="dim"))
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    counts = [f"{report.summary.counts[s]} {s}" for s in reversed(SEVERITIES) if report.summary.counts.get(s)]
    verdict = el(
        "div",
        el("strong", report.summary.verdict.upper()),
        el("span", ", ".join(counts) or "no findings"),
        el("span", judged(report), class_="dim"),
        class_=f"verdict {report.summary.verdict}",
    )
    if report.summary.verdict == "unknown":
        verdict.append(el("span", f"not called ok: could not judge {', '.join(report.summary.unknown_rules[:6])}"))
    rows = [each for name, text, _ in facts(report) for each in (el("dt", name), el("dd", text))]
    return el("header", el("div", title, theme, class_="top"), verdict, el("dl", *rows))


def _main(report: Report) -> Element:
    main = el("main")
    main.extend(_findings(report))
    seen = scene(report)
    drawn = picture(report, seen, anchors=True)
    if drawn is not None:
        key = [el("span", el("span", class_="swatch", style=f"background:{tone}"), text) for tone, text in KEY]
        box = el("div", drawn, class_="scroll", tabindex=0, role="region", aria_label="picture of the machine")
        main.extend(_section("How it is wired", el("div", *key, class_="key"), box))
    main.extend(_section("GPU to GPU", tables.gpu_matrix(report)))
    near = el("p", "* nearest rail", class_="dim")
    rails = tables.nic_matrix(report)
    main.extend(_section("GPU to NIC", rails, near if rails is not None else None))
    main.extend(_section("GPUDirect RDMA", tables.gpudirect(report)))
    main.extend(_section("Not judged", tables.not_judged(report)))
    known = devices(report, seen)
    main.extend(_section("Devices", *known) if known else ())
    asked = tables.probes(report)
    if asked is not None:
        main.extend(_section("Probes", el("details", el("summary", "what was read, and how it ended"), asked)))
    return main


def _findings(report: Report) -> Iterator[Element]:
    yield el("h2", "Findings", id="findings")
    names = Names(report)
    loud = [each for each in report.findings if each.severity != "info"]
    quiet = [each for each in report.findings if each.severity == "info"]
    if not loud:
        yield el("p", "None above info.")
    yield from (_finding(each, names) for each in loud)
    if quiet:
        said = f"{len(quiet)} worth knowing (info)"
        yield el("details", el("summary", said), *[_finding(each, names) for each in quiet])


def _finding(finding: Finding, names: Names) -> Element:
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
        el("tr", el("td", each.what), el("td", each.value, class_="mono"), el("td", each.source, class_="mono dim"))
        for each in finding.evidence
    ]
    rows = [("impact", finding.impact), ("remedy", finding.remedy)]
    rows += [("explains", ", ".join(absorbed(each, names) for each in finding.absorbs))] if finding.absorbs else []
    return el(
        "article",
        head,
        el("p", finding.summary, class_="what"),
        el("div", el("table", el("tbody", *seen)), class_="scroll") if seen else None,
        el("dl", *[each for name, text in rows for each in (el("dt", name), el("dd", text))]),
        class_=f"finding {finding.severity}",
        id=f"f-{finding.fingerprint}",
    )


def _footer(report: Report) -> Element:
    made = f"fabricscope {report.generator.version}, {report.schema}, {report.generated_at}"
    return el("footer", el("p", made), el("p", "Every rule in words: fabricscope explain RULE"))


def _section(title: str, *parts: Element | None) -> Iterable[Element]:
    kept = [each for each in parts if each is not None]
    return [el("h2", title), *kept] if kept else []


def _name(report: Report) -> str:
    return report.node.hostname or "(host name not known)"


def _raw(tag: str, *names: str) -> Element:
    """Our own style or script: what `method="html"` writes as it is."""
    made = Element(tag)
    made.text = "".join((get_data(__package__ or "", name) or b"").decode() for name in names)
    return made
