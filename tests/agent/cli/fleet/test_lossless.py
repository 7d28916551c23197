"""`fleet lossless` from outside: from saved files to verdicts, formats, exit codes."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from agent.cli.main import run
from bench.switches.fabric import build
from bench.switches.render import write
from tests.conftest import ROOT

# The shape of SONiC's own templates: PFC on 3 and 4, where DSCP 3 and 4 lead; all others lead to class 1
DEFAULT = {
    "DSCP_TO_TC_MAP": {"AZURE": {str(dscp): str(dscp) if dscp in (3, 4) else "1" for dscp in range(64)}},
    "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {"0": "0", "1": "0", "3": "3", "4": "4"}},
    "TC_TO_QUEUE_MAP": {"AZURE": {str(number): str(number) for number in range(8)}},
    "PORT_QOS_MAP": {
        f"Ethernet{port}": {
            "dscp_to_tc_map": "AZURE",
            "tc_to_pg_map": "AZURE",
            "tc_to_queue_map": "AZURE",
            "pfc_enable": "3,4",
        }
        for port in (0, 4)
    },
}


SVG = "{http://www.w3.org/2000/svg}"


def answer(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["fleet", "lossless", *arguments, "--format", "json"]) == 0
    return json.loads(capfd.readouterr().out)  # type: ignore[no-any-return]


def save(folder: Path, **files: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)
    return folder


def test_a_default_configuration_is_lossy_for_the_commonest_dscp(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """PFC is on, and DSCP 26 is not in a class that has it: one finding for all ports of the map."""
    result = answer(capfd, "--switches", str(save(tmp_path / "leaf1", config_db=DEFAULT)))

    assert result["schema"] == "fabricscope.lossless/1"
    assert [hop["verdict"] for hop in result["hops"]] == ["lossy", "lossy"]
    assert [finding["rule"] for finding in result["findings"]] == ["sw-dscp-lossy"]
    assert result["findings"][0]["devices"] == ["swport:leaf1/Ethernet0", "swport:leaf1/Ethernet4"]


def test_another_dscp_is_asked_about(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """DSCP 3 is lossless at this end; the far end is not known, so nothing passes."""
    result = answer(capfd, "--switches", str(save(tmp_path / "leaf1", config_db=DEFAULT)), "--dscp", "3")

    assert [hop["verdict"] for hop in result["hops"]] == ["unknown", "unknown"]
    assert result["findings"] == []


def test_no_pfc_at_all_has_a_rule_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Only where the table of ports is there: a part of a configuration says nothing about it."""
    bare = {**DEFAULT, "PORT_QOS_MAP": {"global": {"dscp_to_tc_map": "AZURE"}}, "QUEUE": {"Ethernet0|3": {}}}
    without = {name: rows for name, rows in bare.items() if name != "PORT_QOS_MAP"}

    result = answer(capfd, "--switches", str(save(tmp_path / "leaf1", config_db=bare)))
    unknown = answer(capfd, "--switches", str(save(tmp_path / "leaf2", config_db=without)))

    assert [finding["rule"] for finding in result["findings"]] == ["sw-pfc-off"]
    assert [hop["verdict"] for hop in unknown["hops"]] == ["unknown"]
    assert unknown["hops"][0]["settle"] == "leaf2: /etc/sonic/config_db.json"


def test_text_and_csv(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "leaf1", config_db=DEFAULT)

    assert run(["fleet", "lossless", "--switches", str(folder)]) == 0
    text = capfd.readouterr().out
    assert run(["fleet", "lossless", "--switches", str(folder), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))

    assert run(["fleet", "lossless", "--switches", str(folder), "--output", str(tmp_path / "hops.svg")]) == 0
    picture = fromstring((tmp_path / "hops.svg").read_text())
    wires = [path.get("class") for path in picture.iter(f"{SVG}path")]

    assert wires == ["wire good", "wire doubtful", "wire bad", "wire broken"]  # the legend, and the bundle
    assert picture.get("aria-label") == "RoCE with DSCP 26: 2 hops, 2 lossy"
    assert "2 hops: 2 lossy" in text
    assert "DSCP 3 is NCCL_IB_TC=12" in " ".join(text.split())
    assert [(row["verdict"], row["a_port"], row["a_pfc"]) for row in rows] == [
        ("lossy", "Ethernet0", "3 4"),
        ("lossy", "Ethernet4", "3 4"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("config_db.json", '{"PORT": {"Ethernet0": {"mtu": "91', "no valid JSON"),
        ("show_lldp_table.txt", "Error: No such command 'lldp'.\n", "an error text"),
        ("show_lldp_table.txt", "", "empty"),
        ("show_ip_route.txt", "S>* 0.0.0.0/0 via 10.0.0.1\n", "not an output"),
        ("deep.json", '{"PORT": ' + "[" * 200_000, "nested too deeply"),
        ("core", "\x7fELF\0\0\0", "not text"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, content: str, why: str
) -> None:
    """Alone it is an error; beside another output it is a line of the answer."""
    folder = save(tmp_path / "leaf1", **{name: content})

    assert run(["fleet", "lossless", "--switches", str(folder)]) == 2
    assert why in capfd.readouterr().err
    result = answer(capfd, "--switches", str(save(folder, config_db=DEFAULT)))
    assert [why in line for line in result["not_read"]] == [True]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "--switches DIR is needed"),
        (("--switches", "/nowhere"), "No such file"),
        (("--switches", ".", "--output", "x.pdf"), "unknown suffix"),
    ],
)
def test_wrong_usage_is_one_line(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str) -> None:
    assert run(["fleet", "lossless", *arguments]) == 2
    assert why in capfd.readouterr().err


def test_a_report_in_place_of_a_dataset(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its host's ports have both ends; those of other hosts are unknown, and the DSCP is what it marks."""
    write(build(2, 1, 2, systems=("sonic",)), tmp_path)
    (tmp_path / "gpu.json").write_text((tmp_path / "reports.ndjson").read_text().splitlines()[0])

    result = answer(capfd, "--switches", str(tmp_path / "now"), "--report", str(tmp_path / "gpu.json"))

    assert result["counts"] == {"proved": 0, "set": 4, "trimmed": 0, "unknown": 2, "lossy": 0}
    assert result["dscp_source"] == "marked by 2 of 2 host ports"


def test_a_dataset(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every host of it is known: no hop is open."""
    write(build(2, 1, 2, systems=("cumulus",)), tmp_path)
    dataset = str(tmp_path / "fleet")
    assert run(["fleet", "ingest", str(tmp_path / "reports.ndjson"), "--dataset", dataset]) == 0
    capfd.readouterr()

    result = answer(capfd, "--switches", str(tmp_path / "now"), "--dataset", dataset)

    assert result["counts"] == {"proved": 0, "set": 6, "trimmed": 0, "unknown": 0, "lossy": 0}
    assert (result["hosts"], result["host_ports"], result["findings"]) == (2, 4, [])


def test_a_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "lossless", "--recipe", "sonic"]) == 0
    assert "show lldp table > show_lldp_table.txt" in capfd.readouterr().out
    assert run(["fleet", "lossless", "--recipe", "ios"]) == 2
    assert "expected sonic, sonic-enterprise, cumulus" in capfd.readouterr().err


def test_topology_and_cables_with_switches(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Spines are above the leaves, and cables between switches match the plan; nothing readable is an error."""
    write(build(2, 2, 4, systems=("sonic", "cumulus")), tmp_path)
    switches = ("--switches", str(tmp_path / "now"))

    assert run(["fleet", "topology", *switches, "--format", "json"]) == 0
    [fabric] = json.loads(capfd.readouterr().out)["fabrics"]
    assert run(["fleet", "cables", *switches, "--plan", str(tmp_path / "plan.csv")]) == 0
    cables = capfd.readouterr().out
    assert run(["fleet", "topology", "--switches", str(save(tmp_path / "empty"))]) == 2

    assert (fabric["hosts"], fabric["levels"], fabric["cables"]) == (4, 2, 4)
    assert "4 of 4 cables match the plan." in cables
    assert "contains no file" in capfd.readouterr().err


def test_the_fleet_page_with_switches(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The picture, a card of the finding with its host, and the switch's ports, the worst hop first."""
    fabric = build(2, 1, 2, systems=("sonic",))
    next(fabric.ports(True)).priorities = {26: 0}
    write(fabric, tmp_path)
    dataset = str(tmp_path / "fleet")
    assert run(["fleet", "ingest", str(tmp_path / "reports.ndjson"), "--dataset", dataset]) == 0
    arguments = ["--dataset", dataset, "--output", str(tmp_path / "page.html")]
    assert run(["fleet", "html", *arguments, "--switches", str(tmp_path / "now")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert run(["fleet", "html", *arguments]) == 0
    without = (tmp_path / "page.html").read_text()

    section = page.partition('<h2 id="roce">')[2].partition("<footer>")[0]
    first = section.partition("<strong>leaf1</strong>")[2].partition("<tbody>")[2]
    assert "6 hops: 5 set, 1 lossy" in section
    assert 'class="cluster"' in section.partition("<article")[0]
    assert "<code>sw-dscp-lossy</code>" in section
    assert "gpu00001" in section.partition("sw-dscp-lossy")[2].partition("</article>")[0]
    assert first.startswith('<tr><th scope="row" class="mono">Ethernet0</th><td class="mono">gpu00001 eth0</td>')
    assert ".cluster .wire.bad" in page.partition("</style>")[0]
    assert "roce" not in without
    assert ".cluster" not in without


def test_the_worked_case_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its files, its command and what is printed."""
    page = (ROOT / "docs" / "fleet-lossless.md").read_text().partition("## From two files")[2]
    config, rows = re.findall(r"```json\n(.*?)```", page, re.DOTALL)[:2]
    shown = re.search(r"```\n\$ fabricscope (.*?)\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    save(tmp_path / "switches" / "leaf1", **{"config_db.json": config})
    save(tmp_path / "switches", **{"spine1.jsonl": rows})
    monkeypatch.chdir(tmp_path)

    assert run(shown[1].split()) == 0

    assert capfd.readouterr().out == shown[2]
