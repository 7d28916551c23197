"""One self-contained file: verdict, findings with fixes, this machine, topology, every device.

It loads nothing from outside. It is complete without its script, which opens boxes and rules at the side, copies
commands, traces paths, and changes the theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from agent.model.gpu import link_name
from agent.model.report import Report
from agent.outputs.html.coverage import RuleLinks, render_gpudirect, render_not_checked, render_probes
from agent.outputs.html.devices import render_devices
from agent.outputs.html.document import read_styles, write_document
from agent.outputs.html.elements import el
from agent.outputs.html.findings import render_findings
from agent.outputs.html.matrix import render_gpu_matrix, render_nic_matrix
from agent.outputs.html.picture import draw_picture
from agent.outputs.html.scene import OF_MATRIX, Scene, build_scene
from agent.outputs.text.header import list_facts
from agent.outputs.text.not_checked import list_fragment_rows
from agent.outputs.verdict import count_checks, describe_verdict, verdict_title

STYLES = ("palette.css", "picture.css", "page.css", "print.css")
MIN_SCALE = 0.69  # the page shrinks the picture to this scale before it scrolls


def render_html(report: Report) -> str:
    """Render HTML 5; the same bytes for the same report."""
    scene, rules = build_scene(report), RuleLinks()
    drawn = draw_picture(report, scene, anchors=True)
    width = float(drawn.get("width", "0")) if drawn is not None else 0.0
    style = f"{read_styles(*STYLES)}@media screen {{ .machine {{ min-width: {width * MIN_SCALE:.0f}px; }} }}\n"
    panel = el(
        "aside", el("button", "Close", type="button"), el("div", class_="inside"), id="panel", hidden="hidden",
        aria_label="details",
    )  # fmt: skip
    header = _render_header(report, rules)
    main = _render_main(report, scene, drawn, rules)
    body = el("body", el("a", "To the findings", href="#findings", class_="skip"), header, main)
    body.extend([_render_footer(report), panel])
    return write_document(_host_name(report), style, body, read_styles("page.js"))


def _render_header(report: Report, rules: RuleLinks) -> Element:
    node = report.node
    product = " ".join(part for part in (node.vendor, node.product) if part)
    title = el("div", el("h1", _host_name(report)), el("p", product, class_="dim"))
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    verdict = el(
        "div",
        el("strong", verdict_title(report)),
        el("span", *rules.link_words(describe_verdict(report))),
        el("span", count_checks(report), class_="dim"),
        class_=f"verdict {report.summary.verdict}",
    )
    return el("header", el("div", title, theme, class_="top"), verdict)


def _render_main(report: Report, scene: Scene, drawn: Element | None, rules: RuleLinks) -> Element:
    main = el("main", *render_findings(report, rules))
    main.extend(_section("Saved outputs", _list_named(list_fragment_rows(report))))
    main.extend(_section("This machine", _list_named((name, text) for name, text, _ in list_facts(report))))
    if drawn is not None:
        box = el("div", drawn, class_="scroll", tabindex=0, role="region", aria_label="picture of the machine")
        empty = f"No GPU, NIC or NVMe on NUMA {scene.empty_nodes}." if scene.empty_nodes else ""
        main.extend(
            _section(
                "Topology",
                el("div", *_legend(drawn, report), class_="key"),
                box,
                el("p", empty, class_="dim") if empty else None,
            )
        )
    paths = [*render_gpu_matrix(report), *render_nic_matrix(report)]
    main.extend(_section("Paths", *[el("div", *paths)] if paths else ()))
    main.extend(_section("GPUDirect RDMA", render_gpudirect(report, rules)))
    main.extend(_section("Devices", render_devices(report, scene)))
    more = list(_section("More", render_not_checked(report, rules), render_probes(report)))
    main.append(el("section", *more, class_="aside"))
    panels = rules.panels()
    if panels:
        main.append(el("section", el("h2", "Rules named on this page"), *panels, class_="rules"))
    return main


def _legend(drawn: Element, report: Report) -> Iterator[Element]:
    """What the colours mean, for those that this picture uses."""
    classes = [(part.get("class") or "").split() for part in drawn.iter()]
    words_used = {word for words in classes for word in words if words[0] != "port"} | {
        word for words in classes if words[:1] == ["port"] for word in words if word != "flow"
    }
    names = {link_name(gpu.links) for gpu in report.topology.gpus if gpu.links}
    names |= {path.kind for path in report.topology.paths if path.kind in OF_MATRIX}
    entries = (
        ("flow", "link, as wide as its bandwidth", "flow" in words_used),
        ("could", "its capacity", "reduced" in words_used),
        ("error", "has a finding", bool(words_used & {"error", "critical"})),
        ("warning", "has a finding (warning)", "warning" in words_used),
        (
            "idle",
            "idle, unused, internal or virtual link: speed not judged",
            bool(words_used & {"idle", "untrusted", "reduced"}),
        ),
        ("unread", "link not read", "unknown" in words_used),
        ("nvlink", ", ".join(sorted(names)) or "NVLink", "nvlink" in words_used or "arc" in words_used),
    )
    for kind, text, used in entries:
        if used:
            yield el("span", el("span", class_=f"swatch {kind}"), text)


def _render_footer(report: Report) -> Element:
    origin = (f"fabricscope {report.generator.version}", report.schema, report.generated_at)
    return el("footer", el("p", ", ".join(part for part in origin if part)))


def _list_named(rows: Iterable[tuple[str, str]]) -> Element | None:
    cells = [cell for name, text in rows for cell in (el("dt", name), el("dd", text))]
    return el("dl", *cells, class_="facts") if cells else None


def _section(title: str, *parts: Element | None) -> Iterable[Element]:
    present = [part for part in parts if part is not None]
    return [el("h2", title), *present] if present else []


def _host_name(report: Report) -> str:
    return report.node.hostname or "(host name not known)"
