"""What the page promises, held on the page itself: order, colours, panels of rules, its policy."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from agent.model.finding import FarEnd, Location, Step, Summary
from agent.outputs.html.coverage import RuleLinks, render_markdown
from agent.outputs.html.page import render_html
from agent.rules import pages
from tests.machines import HOSTS, SOME_FAULTS, scan_faults, scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
B200 = "8xb200-sxm-2s-8xcx7-ib-hidden-nvsw"
LOUD = {"warning", "error", "critical"}
ORDER = ["Findings", "This machine", "Topology", "Paths", "GPUDirect RDMA", "Devices", "More"]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the texts of headings and of style and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)
        self._open = ""

    def classes(self, tag: str) -> list[set[str]]:
        """The classes of each element of a kind."""
        return [set(attributes.get("class", "").split()) for name, attributes in self.elements if name == tag]

    def ids(self) -> set[str]:
        """All ids."""
        return {attributes["id"] for _, attributes in self.elements if "id" in attributes}


@pytest.mark.parametrize("host", HOSTS)
def test_no_alarming_colour_without_a_finding(host: str) -> None:
    """A link that is idle, unused, internal or virtual, and a port that nobody uses, are grey on a healthy machine."""
    report = scan_machine(host)
    assert not [finding for finding in report.findings if finding.severity in LOUD]
    page = Elements(render_html(report))

    drawn = [names & LOUD for tag in ("g", "a", "td", "span", "p") for names in page.classes(tag)]
    assert not [names for names in drawn if names]
    assert not [names for names in page.classes("a") if names & {f"sev-{severity}" for severity in LOUD}]
    assert not [names for names in page.classes("span") if names & {"degraded", "blocked"}]


def test_gpudirect_is_coloured_by_its_finding() -> None:
    """A pair is amber because of a link with a finding; without one the same verdict is grey."""
    report = scan_machine(H100, "gpu-width-x8")
    badges = [names for names in Elements(render_html(report)).classes("span") if "badge" in names]
    quiet = Elements(render_html(msgspec.structs.replace(report, findings=[])))

    assert {"badge", "degraded"} in badges
    assert {"badge", "degraded"} not in quiet.classes("span")
    assert {"badge", "quiet"} in quiet.classes("span")


def test_an_unused_port_that_is_down_is_grey() -> None:
    """A DGX B200 leaves two of the ports of its NVSwitch management down."""
    page = Elements(render_html(scan_machine(B200)))

    assert 2 == len([names for names in page.classes("g") if {"port", "down"} <= names])
    assert all("quiet" in names for names in page.classes("g") if {"port", "down"} <= names)


@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_a_coloured_link_or_port_has_a_finding(fault: str) -> None:
    """In the colour of its severity, at the box that it belongs to."""
    report = scan_machine("", fault)
    severities = {finding.severity for finding in report.findings}
    page = Elements(render_html(report))

    for names in page.classes("g"):
        assert names & LOUD <= severities


@pytest.mark.parametrize(
    ("fault", "kind", "severity"),
    [("gpu-width-x8", "wire", "error"), ("ib-port-down", "port", "error"), ("nvlink-one-inactive", "nvlink", "error")],
)
def test_what_has_a_finding_is_coloured(fault: str, kind: str, severity: str) -> None:
    """Exactly one link, port or bundle of NVLinks."""
    page = Elements(render_html(scan_machine(H100, fault)))

    assert 1 == len([names for names in page.classes("g") if {kind, severity} <= names])


@pytest.mark.parametrize("host", HOSTS)
def test_sections_stand_in_order(host: str) -> None:
    """What is wrong comes before what is there."""
    titles = [title for title in Elements(render_html(scan_machine(host))).texts["h2"] if title in ORDER]

    assert titles == [title for title in ORDER if title in titles]
    assert "Findings" == titles[0]


@pytest.mark.parametrize(
    ("faults", "texts"),
    [
        pytest.param(
            ("nic-fw-mixed", "ib-port-down", "gpu-width-x8"),
            ["GPU2: PCIe link is x8; both ends support x16", "mlx5_3/1: DOWN", "mlx5_9: "],
            id="three",
        ),
        pytest.param(("ib-port-down", "gpu-width-x8"), [], id="two are seen at once"),
    ],
)
def test_many_findings_are_listed_before_their_cards(faults: tuple[str, ...], texts: list[str]) -> None:
    """Worst first, each with a link to its card."""
    page = render_html(scan_faults(*faults))
    listed = page.partition('<ol class="overview">')[2].partition("</ol>")[0]
    lines = re.findall(r'<a href="#(f-\w+)">([^<]*)</a>', listed)

    assert len(texts) == len(lines)
    assert all(text in line for text, (_, line) in zip(texts, lines, strict=True))
    cards = re.findall(r'<article [^>]*id="(f-\w+)"', page)
    assert [card for card, _ in lines] == cards[: len(lines)]


@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_every_link_leads_somewhere(fault: str) -> None:
    """Rules to their panels, devices to their rows, findings to their cards."""
    page = Elements(render_html(scan_machine("", fault)))
    targets = {attributes["href"][1:] for tag, attributes in page.elements if tag == "a" and "href" in attributes}

    assert set() == {target for target in targets if not target.startswith("d-bus:")} - page.ids()


@pytest.mark.parametrize("rule", sorted(pages.page_paths()))
def test_every_rule_has_a_panel(rule: str) -> None:
    """With why, confirm and fix, and no Markdown left in it."""
    links = RuleLinks()
    assert links.link(rule).get("href") == f"#r-{rule}"
    (panel,) = links.panels()
    text = "".join(panel.itertext())

    assert [title.text for title in panel.iter("h4")] == ["Why it matters", "How to confirm", "How to fix"]
    assert not re.search(r"`|^#|\]\(", text, re.MULTILINE)


def test_lists_in_lists_are_rendered() -> None:
    """Steps are numbered, and their outcomes are below them."""
    output = list(render_markdown("1. Do `lspci -vv`.\n   - It is gone: done.\n2. Else replace.\n\nThe end."))

    assert ["Do lspci -vvCopy.It is gone: done.", "Else replace."] == ["".join(item.itertext()) for item in output[0]]
    assert 1 == len(list(output[0].iter("ul")))
    assert ["ol", "p"] == [element.tag for element in output]


@pytest.mark.parametrize("fault", ["nvml-denied", "config-unreadable", "gpu-width-x8"])
def test_every_rule_that_is_named_opens_its_panel(fault: str) -> None:
    """In the verdict, on cards, among causes and reasons; only inside panels and evidence a name may be plain."""
    html = render_html(scan_machine("", fault))
    output = html.partition("<body")[2].partition('<section class="rules"')[0]
    unlinked = re.sub(r'<a href="#r-[^"]+" class="rule"><code>[^<]+</code></a>|<[^>]+>', " ", output)

    assert set() == set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", unlinked)) & set(pages.page_paths())


def test_an_unknown_rule_is_only_a_name() -> None:
    """A report of another version may name a rule that this one does not have."""
    links = RuleLinks()

    assert "code" == links.link("no-such-rule").tag
    assert [] == links.panels()


def test_only_its_own_style_and_script_are_allowed() -> None:
    """By their hashes: no other inline script or style runs, and nothing is loaded."""
    html = render_html(scan_machine(H100))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;".replace("&#39;", "'") in policy[1].replace("&#39;", "'")

    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert not re.search(r"<[a-z]+[^>]* style=", html)


def test_matrices_of_one_kind_are_a_sentence() -> None:
    """18 NVLinks between all GPUs; each GPU with its rail; the other pairs are folded."""
    html = render_html(scan_machine(H100))

    assert "between all 8 GPUs (18 NVLinks)" in html
    assert "GPU0 – mlx5_0, GPU1 – mlx5_3" in html
    assert 'aria-label="GPU to GPU"' not in html


def test_sockets_interfaces_and_drives_are_drawn() -> None:
    """Each CPU is named, a NIC has its interface's name, drives have a box."""
    page = Elements(render_html(scan_machine(H100)))
    texts = page.texts["text"]

    assert [text for text in texts if text.startswith("CPU ")] == ["CPU 0", "CPU 1"]
    assert "NVMe" in texts
    assert "ibp26s0" in page.texts["tspan"]


def test_numa_nodes_stand_in_order_beside_their_socket() -> None:
    """Eight nodes of two sockets: nodes without a device are named below the picture."""
    page = Elements(render_html(scan_machine("8xa100-sxm4-2s-nps4-8xcx6-ib-6nvsw")))
    frames = [text.partition("·")[0].strip() for text in page.texts["text"] if text.startswith("NUMA")]

    assert frames == ["NUMA 1", "NUMA 2", "NUMA 3", "NUMA 4", "NUMA 5", "NUMA 7"]
    assert "No GPU, NIC or NVMe on NUMA 0,6." in page.texts["p"]


def test_nothing_to_check_is_neutral() -> None:
    """A host without GPU and RDMA NIC is neither green nor a warning."""
    report = scan_machine("cpu-only-2s")
    summary = Summary(verdict="nothing_to_check", counts={})
    page = Elements(render_html(msgspec.structs.replace(report, summary=summary)))

    assert {"verdict", "nothing_to_check"} in page.classes("div")
    assert "NOTHING TO CHECK" in page.texts["strong"]


def test_a_host_without_gpus_has_a_picture_too() -> None:
    """Its CPUs, network controllers with their interfaces and links, and its drive; each with a line in the table."""
    page = Elements(render_html(scan_machine("cpu-only-2s")))
    texts = page.texts["text"]

    assert [text for text in texts if text.startswith("CPU ")] == ["CPU 0", "CPU 1"]
    assert 4 == texts.count("NIC")
    assert "NVMe" in texts
    assert "Gen3 x8 · 7.9 GB/s" in texts
    assert [text for text in texts if text.startswith("enp49s0f0")]
    assert {"NVMe drives", "Other devices"} <= set(page.texts["th"])
    assert "enp49s0f0" in " ".join(page.texts["span"])


def test_a_card_names_the_part_its_far_end_and_what_to_do() -> None:
    """Identifiers, the commands that confirm it, each with a button, and steps in order with their outcomes."""
    report = scan_machine(H100, "gpu-width-x8")
    (finding,) = report.findings
    finding = msgspec.structs.replace(
        finding,
        location=Location(
            part="SXM module 3", serial="1652", uuid="GPU-72", pci="0000:4c:00.0", mac="b8:3f:d2:00:00:01",
            port_guid="b83f:d203", far_end=FarEnd(system="leaf-1", port="Ethernet12"),
        ),
        confirm=["lspci -vv -s 4c:00.0", "nvidia-smi -q -i 2"],
        steps=[
            Step(do="Drain the node.", cost="drain", outcomes=["It is gone: done."]), Step(do="Run `nvidia-smi -q`."),
        ],
    )  # fmt: skip
    html = render_html(msgspec.structs.replace(report, findings=[finding]))
    card = html.partition("<article")[2].partition("</article>")[0]

    part = "SXM module 3, serial 1652, GPU-72, GUID b83f:d203, MAC b8:3f:d2:00:00:01, 0000:4c:00.0"
    assert f"{part}; cable to leaf-1, port Ethernet12" in card
    assert 3 == card.count(">Copy</button>")
    assert '<li>Drain the node. <span class="dim">(costs a drain)</span><ul' in card
    assert 1 == card.count("(costs")
    assert card.index("Part") < card.index("Impact") < card.index("Confirm") < card.index("Fix")


def test_findings_of_one_cause_are_one_card() -> None:
    """Eight GPUs with the same finding: one card that names all eight."""
    report = scan_machine(H100, "gpu-width-x8")
    (finding,) = report.findings
    copies = [
        msgspec.structs.replace(finding, label=gpu.label, subject=f"pci:{gpu.pci}", fingerprint=f"{number:016x}")
        for number, gpu in enumerate(report.topology.gpus)
    ]
    html = render_html(msgspec.structs.replace(report, findings=copies))

    assert 1 == html.count("<article")
    assert all(f">{gpu.label}</a>" in html for gpu in report.topology.gpus)


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ("16x910c-4s-atlas-a3", "SIO"),
        ("8xmi300x-2s-8xcx7-roce", "XGMI"),
        ("8xgaudi2-2s", "GAUDI"),
        ("4xrtx3090-1s-nvlink-pairs", "NVLink"),
    ],
)
def test_the_legend_names_the_links_that_are_drawn(shape: str, names: str) -> None:
    """Also those that no GPU's link stands for, but the matrix."""
    assert re.findall(r'swatch nvlink"></span>([^<]*)<', render_html(scan_machine(shape))) == [names]
