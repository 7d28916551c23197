"""The page in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.model.report import Report
from agent.outputs.export import export_report
from agent.outputs.html.job import render_job_page
from tests.agent.job.jobs import answer, begin, steps, warn
from tests.agent.outputs.export.given import hostile
from tests.browser import NEEDED, Shown
from tests.machines import HOSTS, scan_machine

pytestmark = NEEDED

H100, H200 = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xh200-sxm-2s-16xcx7-roce-4nvsw"
NARROW, UPLINK, GPU1 = 390, "0000:38:00.0", "0000:3b:00.0"


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages = []

    def made(report: Report, form: str = "html", width: int = 1280, scheme: str = "light") -> Shown:
        file = tmp_path / f"page.{form}"
        file.write_bytes(export_report(form, report).encode("utf-8", "replace"))
        pages.append(browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme))
        return Shown(pages[-1], file.as_uri())

    yield made
    for page in pages:
        page.close()


def count_pages(paper: bytes) -> int:
    """The pages of a PDF, as its page tree counts them."""
    return max(int(count) for count in re.findall(rb"/Count (\d+)", paper))


def sixteen() -> Report:
    """A machine of 16 GPUs and 36 NICs: one of eight, twice, the second in another PCI domain."""
    whole = json.loads(msgspec.json.encode(scan_machine(H200)))
    again = json.loads(json.dumps(whole["topology"]).replace('"0000:', '"0001:'))
    for number, gpu in enumerate(again["gpus"], 8):
        gpu["label"] = f"GPU{number}"
    for rows in ("pci", "gpus", "nics", "nvswitches", "paths"):
        whole["topology"][rows] += again[rows]
    return msgspec.convert(whole, Report)


@pytest.mark.parametrize("form", ["html", "svg"])
@pytest.mark.parametrize(
    "report",
    [lambda: scan_machine(H100, "switch-uplink-x4"), lambda: scan_machine("cpu-only-2s"), sixteen,
     lambda: hostile(scan_machine(H100), True), lambda: hostile(scan_machine(H100), False)],
    ids=["fault", "no-gpu", "sixteen", "hostile-names", "hostile"],
)  # fmt: skip
def test_nothing_is_loaded_and_nothing_complained_of(show: Any, report: Any, form: str) -> None:
    """Not even by a host name that is a piece of script: it opens in a room without a network."""
    output = show(report(), form)

    assert [] == output.complaints
    assert 1 == len(output.asked)
    assert output.asked[0].startswith("file:")


def test_a_name_is_never_markup(show: Any) -> None:
    """What a host calls itself stands there as text."""
    report = scan_machine(H100)
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    output = show(msgspec.structs.replace(report, node=msgspec.structs.replace(report.node, hostname=evil)))

    assert evil == output.page.inner_text("h1")
    assert [] == output.complaints
    assert 1 == len(output.asked)


def test_a_box_opens_what_is_known_of_it(show: Any) -> None:
    """By a click; Escape closes it, and the box has the focus again."""
    report = scan_machine(H100)
    page = show(report).page
    page.click(f'.machine a[data-key="{GPU1}"]')

    assert report.topology.gpus[1].uuid in page.inner_text("#panel")
    assert "Close" == page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Escape")
    assert not page.is_visible("#panel")
    assert GPU1 == page.evaluate("document.activeElement.dataset.key")


def test_boxes_are_reached_and_opened_by_the_keyboard(show: Any) -> None:
    """From the first one on by Tab, in the order of the picture; Enter opens."""
    page = show(scan_machine(H100)).page
    page.focus(".machine a.box")
    for _ in range(2):
        page.keyboard.press("Tab")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")

    assert second.startswith("mlx5_0, rail, ConnectX-7")
    assert page.is_visible("#panel")
    assert "mlx5_0" in page.inner_text("#panel h2")


def test_a_finding_leads_to_its_device_and_back(show: Any) -> None:
    """The device's block opens where the finding's link leads."""
    page = show(scan_machine(H100, "switch-uplink-x4")).page
    assert not page.is_visible(f'[id="d-{UPLINK}"] .body')
    page.click(".finding header a")
    page.wait_for_selector(f'[id="d-{UPLINK}"] .body', state="visible")
    page.click(f'[id="d-{UPLINK}"] .body a')

    assert page.evaluate("location.hash").startswith("#f-")


def test_a_cell_of_the_matrix_traces_its_way(show: Any) -> None:
    """The links of that pair stay bright, all others pale."""
    report = scan_machine(H100)
    gpu, nic = report.topology.gpus[0], report.topology.nics[0]
    page = show(report).page
    page.click("text=All GPU-NIC pairs")
    page.hover('table[aria-label="GPU to NIC"] tbody tr:first-child td:nth-child(2)')

    on = page.eval_on_selector_all(".wire.on", "each => each.map(e => e.dataset.place)")
    assert sorted([str(gpu.pci), str(nic.pci), "0000:16:00.0"]) == sorted(on)
    page.hover("h1")
    assert 0 == page.locator(".machine.tracing").count()


@pytest.mark.parametrize("report", [lambda: scan_machine(H200), sixteen], ids=["eight", "sixteen"])
def test_no_text_leaves_its_box(show: Any, report: Any) -> None:
    """As the browser measures it, in the fonts of this machine; a few pixels are forgiven."""
    page = show(report()).page
    over = page.evaluate(
        """() => [...document.querySelectorAll('.machine a.box')].flatMap((box) => {
            const shape = box.querySelector('.shape').getBBox();
            return [...box.querySelectorAll('text:not(.letter)')].filter((text) => {
                const at = text.getBBox();
                return at.x < shape.x || at.x + at.width > shape.x + shape.width + 4
                    || at.y < shape.y - 4 || at.y + at.height > shape.y + shape.height + 4;
            }).map((text) => text.textContent);
        })"""
    )

    assert [] == over


@pytest.mark.parametrize("report", [lambda: scan_machine(H200, "roce-mtu-1500"), sixteen], ids=["fault", "sixteen"])
def test_a_phone_scrolls_tables_and_not_the_page(show: Any, report: Any) -> None:
    """Wide things scroll in their own frame."""
    page = show(report(), width=NARROW).page

    assert NARROW >= page.evaluate("document.scrollingElement.scrollWidth")


def test_light_and_dark_by_the_system_and_by_the_button(show: Any) -> None:
    """auto -> light -> dark, and the button says which."""
    ground = "getComputedStyle(document.body).backgroundColor"
    page = show(scan_machine(H100), scheme="dark").page
    dark = page.evaluate(ground)
    page.click("#theme")
    light = page.evaluate(ground)
    page.click("#theme")

    assert "rgb(255, 255, 255)" == light != dark
    assert dark == page.evaluate(ground)
    assert "Theme: dark" == page.inner_text("#theme")


@pytest.mark.parametrize(
    ("host", "fault"), [*((host, None) for host in HOSTS), (H100, "switch-uplink-x4"), (H200, "roce-mtu-1500")]
)
def test_on_paper_it_is_at_most_three_pages(show: Any, host: str, fault: str | None) -> None:
    """A4, as the browser prints it: what is folded is left out."""
    paper = show(scan_machine(host, fault)).page.pdf(format="A4")

    assert 1 <= count_pages(paper) <= 3


def test_what_is_unfolded_is_printed(show: Any) -> None:
    """A row that was opened has its fields on paper, too."""
    page = show(scan_machine(H100)).page
    folded = count_pages(page.pdf(format="A4"))
    for row in page.query_selector_all("tr.device .opens"):
        row.click()

    assert folded < count_pages(page.pdf(format="A4"))


def test_a_rule_opens_why_confirm_and_fix(show: Any) -> None:
    """At the side, without leaving the place; Escape closes it."""
    page = show(scan_machine(H100, "gpu-width-x8")).page
    page.click(".finding a.rule")

    text = page.inner_text("#panel")
    assert all(title in text for title in ("Why it matters", "How to confirm", "How to fix"))
    page.keyboard.press("Escape")
    assert "pcie-width-downgraded" == page.evaluate("document.activeElement.textContent")


def test_a_command_is_copied(show: Any) -> None:
    """From the card, and from a rule that is open at the side."""
    report = scan_machine(H100, "gpu-width-x8")
    finding = msgspec.structs.replace(report.findings[0], confirm=["lspci -vv -s 4c:00.0"])
    page = show(msgspec.structs.replace(report, findings=[finding])).page
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.took = t; }}})"
    )
    page.click(".finding .copy")

    assert "lspci -vv -s 4c:00.0" == page.evaluate("took")
    assert "Copied" == page.inner_text(".finding .copy >> nth=0")


def test_a_row_opens_and_closes(show: Any) -> None:
    """By a click anywhere on it, and says so to a screen reader."""
    page = show(scan_machine(H100)).page
    name, detail = page.locator("tr.device .opens").first, page.locator("tr.detail").first

    assert ("false", False) == (name.get_attribute("aria-expanded"), detail.is_visible())
    page.locator("tr.device td.model").first.click()
    assert ("true", True) == (name.get_attribute("aria-expanded"), detail.is_visible())
    name.press("Enter")
    assert ("false", False) == (name.get_attribute("aria-expanded"), detail.is_visible())


@pytest.mark.parametrize("width", [1280, NARROW])
def test_findings_are_on_the_first_screen(show: Any, width: int) -> None:
    """What is wrong and on which part, without scrolling."""
    page = show(scan_machine(H100, "gpu-width-x8"), width=width).page

    box = page.locator(".finding .what").bounding_box()
    assert box["y"] + box["height"] < 500


def test_without_script_it_reads_the_same(browser: Any, tmp_path: Path) -> None:
    """Boxes are links to blocks of the page; nothing offers what cannot be done."""
    file = tmp_path / "page.html"
    file.write_text(export_report("html", scan_machine(H100, "gpu-width-x8")))
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(file.as_uri())

    assert not page.is_visible("#theme")
    assert not page.is_visible("#panel")
    assert page.is_visible(".finding")
    page.click('.machine a[data-key="0000:4c:00.0"]')
    assert page.url.endswith("#d-0000:4c:00.0")
    page.context.close()


def test_the_time_line_of_a_job_fits_a_telephone(browser: Any, tmp_path: Path) -> None:
    """Nothing scrolls sideways, every mark is within the picture, and nothing is complained of."""
    lines = begin(16, 2) + steps()
    lines += warn(9, "NET/IB : mlx5_1:1 Got async error event: port error", "gpu2", at="04:11:31")
    for rank in range(0, 16, 3):
        text = "NET/IB : Got completion from peer 10.0.0.1<41022> with status=12 opcode=1 len=0 vendor err 129 (Recv)"
        lines += warn(rank, f"{text} hca mlx5_1", f"gpu{rank // 8 + 1}", at=f"04:12:{rank:02}")
    file = tmp_path / "job.html"
    file.write_text(render_job_page(answer(tmp_path, log=lines)))
    page = browser.new_page(viewport={"width": NARROW, "height": 900})
    output = Shown(page, file.as_uri())
    table = page.locator("table.times").bounding_box()
    boxes = [mark.bounding_box() for mark in page.locator(".times .cause, .times .consequence").all()]
    page_width = page.evaluate("document.documentElement.scrollWidth")
    page.close()

    assert [] == output.complaints
    assert page_width <= NARROW
    assert table["x"] + table["width"] <= NARROW
    assert 3 == len(boxes)
    assert all(180 < box["x"] and box["x"] + box["width"] <= NARROW for box in boxes)
    assert 40 < max(box["x"] for box in boxes) - min(box["x"] for box in boxes)
