"""The fleet's page in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.fleet.hostlist import unfold
from agent.fleet.page.page import page as written
from agent.fleet.page.scene import CodedColumn, FleetScene
from tests.agent.fleet.page.given import EVIL, fleet, hostile
from tests.browser import NEEDED, Shown

pytestmark = NEEDED

PHONE = 360
CELLS = "document.querySelectorAll('#drawn path')"
DRAWN = (
    "[...document.querySelectorAll('#drawn path:not(.faint)')]"
    ".reduce((n, p) => n + p.getAttribute('d').split('M').length - 1, 0)"
)
OF_LOOK = "(look) => document.querySelector('#drawn path.' + look).getAttribute('d').split('M')"
FAINT = DRAWN.replace(":not(.faint)", ".faint")


def open_node(page: Any, link: str = "#list a") -> None:
    """Follow a link to a node, and wait: the address changes first, and the panel a moment later."""
    name = page.locator(link).first.inner_text()
    page.click(link)
    page.wait_for_function("(name) => document.querySelector('#panel h2')?.innerText === name", arg=name)


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages = []

    def made(
        scene: FleetScene,
        width: int = 1280,
        scheme: str = "light",
        script: bool = True,
        change: Callable[[str], str] = str,
    ) -> Shown:
        file = tmp_path / "fleet.html"
        file.write_bytes(change(written(scene)).encode("utf-8", "replace"))
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        pages.append(context)
        return Shown(context.new_page(), file.as_uri())

    yield made
    for each in pages:
        each.close()


@pytest.mark.parametrize(
    "scene", [lambda: fleet(200), lambda: fleet(1), lambda: fleet(0), hostile], ids=["fleet", "one", "none", "hostile"]
)
def test_nothing_is_loaded_and_nothing_complained_of(show: Any, scene: Any) -> None:
    """Whatever names are: it opens in a room without a network, and no name becomes a script."""
    shown = show(scene())
    if scene is hostile:
        open_node(shown.page)
        shown.page.select_option("#arranged", "leaves")
        shown.page.hover("#drawn")
        shown.page.fill("#find", EVIL)

    assert [] == shown.complaints
    assert 1 == len(shown.asked)
    assert shown.asked[0].startswith("file:")


def test_a_name_is_never_markup(show: Any) -> None:
    """What hosts call themselves stands there as text, without what turns its direction or ends a line."""
    page = show(hostile()).page
    open_node(page)

    assert page.inner_text("h1").startswith("</script><script>alert(1)</script>")
    assert "</script><script>" in page.inner_text("#panel h2")
    assert 0 == page.locator("img").count()
    whole = page.inner_text("body") + page.inner_text("#panel")
    assert not {"\u202e", "\x1b", "\u2028", "\x00"} & set(whole)


def test_hostile_names_are_clicked(show: Any) -> None:
    """Every button, link, tab and row that is there, in every arrangement; also what each opens. None runs, none leads
    away, and the page goes on to work."""
    shown = show(hostile())
    page = shown.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    address = page.url.partition("#")[0]
    clicked = 0
    for arranged in page.locator("#arranged option").evaluate_all("rows => rows.map((row) => row.value)"):
        page.select_option("#arranged", arranged)
        clicked += page.evaluate(CLICK_ALL)
        page.keyboard.press("Escape")
        assert address == page.url.partition("#")[0]

    assert clicked > 100
    assert [] == dialogs
    assert [] == shown.complaints
    assert 1 == len(shown.asked)
    assert 0 == page.locator("img").count()
    page.reload()
    open_node(page)
    assert "</script><script>" in page.inner_text("#panel h2")


CLICK_ALL = """() => {
    let count = 0
    const clicked = new Set()
    for (let round = 0; round < 3; round++) {  // what a click opens is clicked in the next one
        for (const item of document.querySelectorAll("button, a, summary, tr, th, li, [role=button], [tabindex]")) {
            if (item.download || item.id === "print" || clicked.has(item)) continue
            clicked.add(item)
            item.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}))
            item.click()
            count++
        }
    }
    return count
}"""


def test_a_script_that_got_in_is_not_run(show: Any) -> None:
    """The policy names the page's own script by its hash."""

    def broken_into(text: str) -> str:
        return text.replace("</main>", "<script>document.title = 'mine'</script><i onclick='1'></i></main>")

    shown = show(fleet(5), change=broken_into)

    assert "Fleet - fabricscope" == shown.page.title()
    assert any("Content Security Policy" in each for each in shown.complaints)


def test_the_map_has_a_cell_for_every_node(show: Any) -> None:
    """In a handful of elements, with labels of its groups."""
    page = show(fleet(1000)).page

    assert 1000 == page.evaluate(DRAWN)
    assert 10 > page.evaluate(f"{CELLS}.length")
    assert 32 == page.locator("#drawn text").count()


OVERLAPPING = """() => {
  const boxes = [...document.querySelectorAll('#drawn text')].map((each) => each.getBoundingClientRect());
  return boxes.filter((a, at) => boxes.some((b, place) => place > at && a.left < b.right && b.left < a.right
    && a.top < b.bottom - 2 && b.top < a.bottom - 2)).length; }"""


def test_no_label_lies_on_another(show: Any) -> None:
    """Names of capital letters are wider than others: what fits is measured, and two that are cut stay two."""
    scene = fleet(96)
    labels = [f"SUPERMICRO SYS-821GE-TNHR {at:02}, 16X CONNECTX-7 (MT_0000000838)" for at in range(12)]
    classes = msgspec.structs.replace(scene.nodes.classes, labels=labels, codes=[at % 12 for at in range(96)])
    nodes = msgspec.structs.replace(scene.nodes, classes=classes)
    page = show(msgspec.structs.replace(scene, nodes=nodes)).page
    page.select_option("#arranged", "class")

    assert 12 == page.locator("#drawn text").count()
    assert 0 == page.evaluate(OVERLAPPING)
    assert 12 == len(set(page.locator("#drawn text").all_text_contents()))


def test_what_is_not_known_is_not_drawn_as_ok(show: Any) -> None:
    """Nodes that could not be judged or are old have a sign of their own; so has each severity."""
    page = show(fleet(100)).page
    cells = {look: page.evaluate(OF_LOOK, look) for look in ("critical", "error", "warning", "unknown", "stale", "ok")}

    told = {look: len(each) - 1 for look, each in cells.items()}
    assert {"critical": 2, "error": 4, "warning": 2, "unknown": 2, "stale": 2, "ok": 88} == told
    assert 6 == len({re.sub(r"^[\d.]+ [\d.]+", "", each[1]) for each in cells.values()})


QUERIES = {
    "gpu001": 1,
    "gpu[001-010,090-200]": 21,
    "gpu[01-99]": 99,  # as many digits or more
    "GPU007": 1,
    "pcie-width": 6,
    "rule:gpu-lost": 2,
    "is:unknown": 2,
    "is:stale": 4,
    "error !is:stale": 2,
    "class:a100": 30,
    "unit:02": 32,
    "at:02 is:ok": 26,
    "gpu[1-": 0,
    "[": 0,
    "!": 100,
    "no such thing": 0,
    ".*": 0,
    "(((((": 0,
    "constructor:x": 0,
}


def test_the_box_finds(show: Any) -> None:
    """Parts of names, host lists, rules, classes, verdicts; a query is never a pattern that could run for ever."""
    page = show(fleet(100)).page
    counts, told = {}, {}
    for query in QUERIES:
        page.fill("#find", query)
        for _ in range(40):  # it draws a moment after the last letter, a busy machine later
            page.wait_for_timeout(120)
            counts[query] = page.evaluate(DRAWN)
            if counts[query] == QUERIES[query]:
                break
        told[query] = page.inner_text("#hits")
        assert 100 == counts[query] + page.evaluate(FAINT)

    assert counts == QUERIES
    assert all(told[query].startswith(f"{count} node") for query, count in QUERIES.items() if count < 100)


def test_the_arrangement_and_the_colours_are_switched(show: Any) -> None:
    """By unit, class, name; rails and leaves with a cell a rail; by metric and by rule."""
    page = show(fleet(64)).page
    seen = {}
    for way in ("unit", "class", "name", "rails", "leaves"):
        page.select_option("#arranged", way)
        seen[way] = (page.locator("#drawn text").count(), page.evaluate(DRAWN))
    assert {"unit": (2, 64), "class": (2, 64), "name": (1, 64), "rails": (2, 512), "leaves": (16, 512)} == seen

    page.select_option("#coloured", "rate/")
    assert 1 == page.evaluate("document.querySelector('#drawn path.c3').getAttribute('d').split('M').length - 1")
    page.select_option("#arranged", "unit")
    page.select_option("#coloured", "metric/0")
    assert 1 == page.locator("#drawn path.below.c0").count()
    assert "slowest PCIe link" in page.inner_text("#coloured")
    assert "below the usual value of its class" in page.inner_text("#legend")
    assert "not known 2" in page.inner_text("#legend")
    page.select_option("#coloured", label="gpu-lost")
    assert 2 == page.evaluate("document.querySelector('#drawn path.critical').getAttribute('d').split('M').length - 1")
    assert "could not be checked" in page.inner_text("#legend")


def test_one_rail_stands_below_the_other(show: Any) -> None:
    """Also where a node has lost one: the next node's first rail is in the first column all the same."""
    made = fleet(32)
    rails = made.nodes.rails
    short = msgspec.structs.replace(
        rails, sets=[*rails.sets, rails.sets[0][:5]], codes=[len(rails.sets), *rails.codes[1:]]
    )
    page = show(msgspec.structs.replace(made, nodes=msgspec.structs.replace(made.nodes, rails=short))).page
    page.select_option("#arranged", "rails")
    paths = page.evaluate("[...document.querySelectorAll('#drawn path')].map((each) => each.getAttribute('d'))")
    columns = Counter(re.match(r"[\d.]+", each)[0] for path in paths for each in path.split("M")[1:])  # type: ignore[index]  # each begins with a number

    assert [31] * 3 + [32] * 5 == sorted(columns.values())


def test_a_click_on_a_cell_opens_its_node(show: Any) -> None:
    """With findings, evidence, impact and remedy, versions, GPUs in short, and what the fleet says of it."""
    page = show(fleet(100)).page
    box = page.locator("#drawn svg").bounding_box()
    place = page.evaluate(
        "document.querySelector('#drawn path.error').getAttribute('d').match(/^M([\\d.]+) ([\\d.]+)/).slice(1)"
    )
    page.mouse.click(box["x"] + float(place[0]) + 4, box["y"] + float(place[1]) + 4)
    told = page.inner_text("#panel")

    for text in ("gpu002", "The link of GPU3 runs at x8 of x16", "current_link_width", "Reseat the board.",
                 "half of the bandwidth", "570.133.20", "GPU0-GPU7", "unit 01"):  # fmt: skip
        assert text in told
    page.keyboard.press("Escape")
    assert not page.is_visible("#panel")
    assert "drawn" == page.evaluate("document.activeElement.id")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_silenced_finding_is_grey_and_counts_nowhere(show: Any, scheme: str) -> None:
    """With why and until when, after what counts; no box, list or table finds its node by it."""
    why = "silenced until 2026-02-01: risers <ordered>"
    made = fleet(100)
    found = [made.nodes.found[0], msgspec.structs.replace(made.nodes.found[1], silenced=why), made.nodes.found[2]]
    codes = [{1: -1}.get(code, code) for code in made.nodes.found_codes]
    nodes = msgspec.structs.replace(
        made.nodes, found=found, found_sets=[[0], [1, 0], [2], [1]], found_codes=[3, *codes[1:49], 1, *codes[50:]]
    )
    page = show(msgspec.structs.replace(made, nodes=nodes), scheme=scheme).page
    page.fill("#find", "rule:gpu-lost")
    assert "No node is found." == page.inner_text("#list p")
    page.fill("#find", "gpu050")
    open_node(page)
    cards = [(each.get_attribute("class"), each.inner_text()) for each in page.query_selector_all("#panel .finding")]
    assert ["finding error", "finding critical quiet"] == [kind for kind, _ in cards]
    assert why not in cards[0][1]
    assert why in cards[1][1]
    grey = "each => getComputedStyle(each).filter"
    assert "none" == page.eval_on_selector("#panel .finding.error", grey)
    assert "grayscale(1)" == page.eval_on_selector("#panel .finding.quiet", grey)


def test_the_map_is_walked_by_the_keyboard(show: Any) -> None:
    """Arrows move, and what is there is said aloud; Enter opens, Escape leads back."""
    page = show(fleet(64)).page
    page.focus("#drawn")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#told")
    page.keyboard.press("ArrowRight")
    second = page.inner_text("#told")
    page.keyboard.press("ArrowDown")
    below = page.inner_text("#told")
    page.keyboard.press("End")
    last = page.inner_text("#told")
    page.keyboard.press("Enter")

    assert first.startswith("gpu01; critical")
    assert second.startswith("gpu02; error")
    assert below != second
    assert last.startswith("gpu64; ok")
    assert "gpu64" == page.inner_text("#panel h2")
    assert "H2" == page.evaluate("document.activeElement.tagName")


def test_what_is_said_is_shown_on_the_map(show: Any) -> None:
    """The button finds exactly the nodes that the answer is about; "Show all" undoes it."""
    page = show(fleet(100)).page
    page.click("#findings ~ article .shows")
    page.wait_for_timeout(100)

    assert 6 == page.evaluate(DRAWN)
    assert page.inner_text("#hits").startswith("6 nodes found: A link runs below")
    page.check("#only")
    assert 0 == page.evaluate(FAINT)
    page.uncheck("#only")
    page.click("#all")
    assert 100 == page.evaluate(DRAWN)


def test_a_count_filters_the_map(show: Any) -> None:
    """Exactly the nodes that it counts; a second click undoes it."""
    page = show(fleet(100)).page
    page.click('.counts button[data-look="error"]')

    assert 4 == page.evaluate(DRAWN)
    assert "4 nodes found: error" == page.inner_text("#hits")
    assert "true" == page.get_attribute('.counts button[data-look="error"]', "aria-pressed")
    page.click('.counts button[data-look="error"]')
    assert 100 == page.evaluate(DRAWN)
    assert "false" == page.get_attribute('.counts button[data-look="error"]', "aria-pressed")


def test_host_lists_and_the_drain_command_are_copied(show: Any) -> None:
    """As Slurm and `fleet --where` read them; the command names the rule."""
    page = show(fleet(100)).page
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.took = t; }}})"
    )
    page.click("#findings ~ article .copies")
    assert ["gpu001", "gpu002", "gpu006", "gpu051", "gpu052", "gpu056"] == sorted(unfold(page.evaluate("took")))
    page.click("#findings ~ article .drains")
    hosts = "gpu[001-002,006,051-052,056]"
    command = f"scontrol update NodeName='{hosts}' State=DRAIN Reason='fabricscope: pcie-width-downgraded'"
    assert command == page.evaluate("took")
    assert not page.is_visible("#drain")
    page.fill("#find", "is:critical")
    page.wait_for_selector("#drain:visible")
    page.click("#hosts")
    assert "gpu[001,051]" == page.evaluate("took")
    page.fill("#find", "is:warning")
    page.wait_for_selector("#drain", state="hidden")  # nothing advises it there
    assert not page.query_selector("#outliers ~ article .drains")


def test_a_host_name_cannot_leave_the_quotes_of_the_command(show: Any) -> None:
    """Whoever pastes it into a shell runs scontrol and nothing else."""
    scene = fleet(2)
    nodes = msgspec.structs.replace(scene.nodes, names=["a'; reboot; '1", "b$(reboot)"])
    page = show(msgspec.structs.replace(scene, nodes=nodes)).page
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.took = t; }}})"
    )
    page.click("#findings ~ article .drains")

    assert "# no command for 2 nodes with a name that Slurm would not take" == page.evaluate("took")


@pytest.mark.parametrize("name", ["gpu[001-128]", "-rf"])
def test_a_host_name_that_is_a_host_list_drains_no_other_node(name: str, show: Any) -> None:
    """Nor does one that begins as an option. It is one node: left out of the command, and named so that no tool makes
    more of it."""
    scene = fleet(2)
    nodes = msgspec.structs.replace(scene.nodes, names=[name, "east/gpu007"])
    page = show(msgspec.structs.replace(scene, nodes=nodes)).page
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.took = t; }}})"
    )
    page.click("#findings ~ article .drains")
    command, _, note = page.evaluate("took").partition("  ")
    assert ["NodeName=gpu007"] == [word for word in shlex.split(command) if word.startswith("NodeName=")]
    assert "# no command for 1 node with a name that Slurm would not take" == note
    page.click("#findings ~ article .copies")
    assert {"gpu007", name} == set(unfold(page.evaluate("took")))
    assert not re.search(r"\[|(^|,)-", page.evaluate("took"))


def test_the_table_is_taken_along(show: Any) -> None:
    """As CSV, worst first; what a spreadsheet would run as a formula is text."""
    scene = fleet(100)
    names = ["=1+1", *scene.nodes.names[1:]]
    scene = msgspec.structs.replace(scene, nodes=msgspec.structs.replace(scene.nodes, names=names))
    page = show(scene).page
    with page.expect_download() as started:
        page.click("#csv")

    rows = list(csv.reader(Path(started.value.path()).read_text().splitlines()))
    assert ["node", "state", "findings", "class", "scalable unit", "last report"] == rows[0]
    assert 101 == len(rows)
    assert ["'=1+1", "critical"] == rows[1][:2]
    assert "nodes.csv" == started.value.suggested_filename


def test_an_address_leads_to_a_node(show: Any) -> None:
    """So that a ticket can point there."""
    shown = show(fleet(100))
    address = shown.page.url + "#n=gpu001"
    shown.page.goto("about:blank")
    shown.page.goto(address)

    assert "GPU0 fell off the bus" in shown.page.inner_text("#panel")
    assert "this page had no room for it" in shown.page.inner_text("#panel")


def test_a_link_leads_to_a_view(show: Any) -> None:
    """What was chosen stands in the address, and an address with nonsense shows all."""
    page = show(fleet(200)).page
    page.fill("#find", "rule:gpu-lost")
    page.wait_for_url(re.compile("#v="))
    page.check("#only")
    page.select_option("#coloured", "metric/0")
    found, address = page.inner_text("#hits"), page.url

    page.goto("about:blank")
    page.goto(address)
    assert ("rule:gpu-lost", True, "metric/0", found) == (
        page.input_value("#find"), page.is_checked("#only"), page.input_value("#coloured"), page.inner_text("#hits"),
    )  # fmt: skip
    open_node(page)
    page.keyboard.press("Escape")
    page.wait_for_url(re.compile("#v="))
    page.click("#all")
    page.uncheck("#only")
    page.select_option("#coloured", "verdict")
    assert "#" not in page.url

    page.click(".counts button[data-look='critical']")
    address, found = page.url, page.inner_text("#hits")
    page.goto("about:blank")
    page.goto(address)
    assert found == page.inner_text("#hits")
    assert "true" == page.get_attribute(".counts button[data-look='critical']", "aria-pressed")


@pytest.mark.parametrize(
    "hash_", ["#v=", "#v=%", "#v=null", "#v=[1]", '#v={"find":7,"by":"x","colour":"y","is":"z","card":"q"}']
)
def test_a_link_to_nonsense_shows_all(show: Any, hash_: str) -> None:
    shown = show(fleet(60))
    shown.page.goto("about:blank")
    shown.page.goto(shown.asked[0] + hash_)
    assert "" == shown.page.inner_text("#hits")
    assert [] == shown.complaints


def test_the_last_days_of_a_node(show: Any) -> None:
    """A bar a day, and how many findings came and went; all of it in words, too."""
    made = fleet(60)
    nodes = msgspec.structs.replace(
        made.nodes,
        days=CodedColumn(
            key="days",
            title="last 14 days",
            labels=["..........oooe", "..............", "xyz"],
            codes=[0, 1, 2, *[-1] * 57],
        ),
        changed=[["new: gpu-lost on GPU0", "gone: roce-mtu-small", "gone: gpu-ecc"]],
        changed_codes=[0, *[-1] * 59],
    )
    page = show(msgspec.structs.replace(made, nodes=nodes)).page
    drawing = "#list tr:has(a[data-node='0']) .spark"
    assert "last 14 days: 1 day error, 3 days ok" == page.get_attribute(drawing, "aria-label")
    assert [10, 3, 1] == [page.locator(f"{drawing} .{kind}").count() for kind in ("gap", "ok", "error")]
    assert ["+1 new", "\u22122 gone"] == page.locator("#list tr:has(a[data-node='0']) .mark").all_inner_texts()
    assert 1 == page.locator("#list .spark").count()
    open_node(page, "#list a[data-node='0']")
    assert ["new: gpu-lost on GPU0", "gone: roce-mtu-small", "gone: gpu-ecc"] == page.locator(
        "#panel .change"
    ).all_inner_texts()


def test_a_node_leads_to_its_own_page(show: Any) -> None:
    """Only where there is one."""
    made = fleet(60)
    nodes = msgspec.structs.replace(made.nodes, pages={0: "./nodes/gpu01.html"})
    page = show(msgspec.structs.replace(made, nodes=nodes)).page
    open_node(page, "#list a[data-node='0']")
    assert "./nodes/gpu01.html" == page.get_attribute("#panel a", "href")
    page.keyboard.press("Escape")
    open_node(page, "#list a[data-node='1']")
    assert 0 == page.locator("#panel a").count()


@pytest.mark.parametrize("scene", [lambda: fleet(1000), hostile], ids=["fleet", "hostile"])
def test_a_phone_scrolls_tables_and_not_the_page(show: Any, scene: Any) -> None:
    """Wide things scroll in their own frame, also with what is folded open and a node opened."""
    page = show(scene(), width=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert PHONE >= page.evaluate("document.scrollingElement.scrollWidth")
    open_node(page)
    assert PHONE >= page.evaluate("document.querySelector('#panel').scrollWidth")


def test_light_and_dark_by_the_system_and_by_the_button(show: Any) -> None:
    """auto -> light -> dark, and the button says which; the map follows."""
    ground, cell = (
        "getComputedStyle(document.body).backgroundColor",
        "getComputedStyle(document.querySelector('#drawn path.ok')).fill",
    )
    page = show(fleet(60), scheme="dark").page
    dark, dark_cell = page.evaluate(ground), page.evaluate(cell)
    page.click("#theme")
    assert "rgb(255, 255, 255)" == page.evaluate(ground) != dark
    assert dark_cell != page.evaluate(cell)
    page.click("#theme")
    assert dark == page.evaluate(ground)
    assert "Theme: dark" == page.inner_text("#theme")


def test_print_shows_all(show: Any) -> None:
    """On paper nobody opens a block or a list."""
    page = show(fleet(100)).page
    assert page.locator("details:not([open])").count()
    assert page.pdf().startswith(b"%PDF")

    assert 0 == page.locator("details:not([open])").count()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})  # an A4 sheet within its margins
    assert 700 >= page.evaluate("document.documentElement.scrollWidth")


def test_without_script_the_essentials_are_read(show: Any) -> None:
    """Counts, worst nodes, findings with hosts and remedy, the map as numbers; nothing offers what cannot be done."""
    shown = show(fleet(100), script=False)
    page = shown.page
    page.click("summary >> nth=0")
    told = page.inner_text("body")

    assert not page.is_visible("#find")
    assert not page.is_visible("#drawn")
    assert not page.is_visible("#panel")
    for text in ("8 nodes need attention: 2 critical, 4 error, 2 warning.",
                 "88 of 100 nodes are ok", "2 could not be checked",
                 "4 are stale (no report for 24 h)", "2 of the stale are among those", "gpu001",
                 "Reseat the board.", "gpu[001-002,006,051-052,056]", "570.86.15", "NVML denied",
                 "unit 01"):  # fmt: skip
        assert text in told
