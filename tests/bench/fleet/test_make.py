"""The fleet that is made and the nodes that it is made of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.report import Report
from agent.reports import encode_report, read_report
from bench.fleet.forms import Moment, Node
from bench.fleet.identity import Far, Identity, Place
from bench.fleet.make import main
from bench.fleet.platforms import BY_NAME, Templates, scanned

# The command that writes a fleet: folders, lines, truth, fabric, and wrong words.


SMALL = ["--nodes", "20", "--mix", "l40s-roce", "--fault", "none"]


def test_a_folder_of_reports_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--sweeps", "2", "--out", str(tmp_path), "--gz", "--truth", str(tmp_path / "truth.json")]) == 0
    folders = sorted(path.name for path in (tmp_path / "raw").iterdir())
    assert folders == ["2026-01-15T080000Z", "2026-01-15T090000Z"]
    files = sorted(path.name for path in (tmp_path / "raw" / folders[1]).iterdir())
    assert files == [f"gpu{n:04d}.json.gz" for n in range(1, 21)]
    report = read_report(str(tmp_path / "raw" / folders[1] / "gpu0007.json.gz"))
    assert (report.node.hostname, report.generated_at[:13]) == ("gpu0007", "2026-01-15T09")
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert (truth["nodes"], truth["oddities"], truth["reports"][1]["files"]) == (20, [], 20)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("40 reports, ")


@pytest.mark.parametrize("packed", [False, True])
def test_lines_in_a_file(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "fleet"
    assert main([*SMALL, "--ndjson", "--out", str(path), *(["--gz"] if packed else [])]) == 0
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    assert sorted(json.loads(line)["node"]["hostname"] for line in data.splitlines()) == [
        f"gpu{n:04d}" for n in range(1, 21)
    ]


def test_the_fabrics_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["--nodes", "20", "--mix", "gb200-ib", "--fault", "none", "--fabric", str(one)]) == 0
    assert one.read_text().startswith("#\n# Topology file: generated on ")
    both = ["--mix", "gb200-ib", "--mix", "a100-ib"]
    assert main(["--nodes", "40", *both, "--fault", "none", "--fabric", str(two)]) == 0
    assert sorted(path.name for path in two.iterdir()) == ["a100-ib-1.ibnetdiscover", "gb200-ib-1.ibnetdiscover"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--nodes", "0"], "0 nodes: from 1 to"),
        (["--fault", "mtu=1"], "no kind 'mtu' of fault"),
        (["--fault", "mtu-1500=x"], "--fault mtu-1500=x: KIND=COUNT is wanted"),
        (["--mix", "h200"], "no platform 'h200'"),
        (["--mix", "cpu=x"], "--mix cpu=x: PLATFORM=SHARE is wanted"),
        ([*SMALL, "--out", "/proc/nothing/here"], "/proc/nothing"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    output = capsys.readouterr().err
    assert why in output
    assert output.count("\n") == 1


# A template of a fixture machine gives reports that a scan could have written, for every platform.


SUBNET = "fe80:0000:0000:0042"
WHEN = Moment(1_768_464_321, 90_000.25)


def _place(number: int) -> Place:
    far = tuple(Far(f"leaf{n}", f"Ethernet{number}", "44:38:39:00:00:01") for n in range(16))
    return Place(number, f"gpu{number:04d}", SUBNET, tuple(range(900, 916)), far, 3, 11)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("style", ["plain", "renamed"])
def test_a_rendered_report_is_whole_and_judged_again_says_the_same(name: str, style: str) -> None:
    template = Templates(BY_NAME[name]).of(style)
    data = template.render(Node(Identity(7, _place(12)), WHEN)).encode()
    report = msgspec.json.decode(data, type=Report)
    assert encode_report(report) == data
    assert "§" not in data.decode()
    assert report.summary.verdict == ("nothing_to_check" if name == "cpu" else "ok")
    again = evaluate_report(report, Configuration())
    assert (again.checks, again.findings, again.gpudirect) == (report.checks, report.findings, report.gpudirect)
    lids = [p.lid for n in report.topology.nics for p in n.ports if n.role == "rail" and p.link_layer == "InfiniBand"]
    assert lids == list(range(900, 900 + len(lids)))
    far = [netdev.neighbor.system for netdev in report.topology.netdevs if netdev.neighbor]
    assert far == [f"leaf{n}" for n in range(len(far))]
    assert bool(far) == BY_NAME[name].lldp


def test_no_identity_of_the_fixture_is_left() -> None:
    """What differs between two machines that differ in their names alone differs between two nodes, too."""
    one, other = (
        scanned("8xl40s-pcie-2s-2xcx7-roce", {"system": {"hostname": name}}) for name in ("l40s-01", "l40s-02")
    )
    templates = Templates(BY_NAME["l40s-roce"])
    result = [
        msgspec.json.decode(templates.of().render(Node(Identity(7, _place(n)), WHEN)), type=Report) for n in (1, 2)
    ]
    differs = _differences(msgspec.to_builtins(one), msgspec.to_builtins(other))
    ours = _differences(*(msgspec.to_builtins(report) for report in result))
    clocks = {place for place in differs if "seconds" in place or place.endswith("_at")}
    assert len(differs - clocks) > 30
    assert differs - clocks - ours == set()


def _differences(one: object, other: object, place: str = "") -> set[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return set().union(*(_differences(one[key], other[key], f"{place}/{key}") for key in one))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return set().union(
            *(_differences(a, b, f"{place}/{n}") for n, (a, b) in enumerate(zip(one, other, strict=True)))
        )
    return {place} if one != other else set()


def test_a_rack_of_trays_is_one_nvlink_domain() -> None:
    template = Templates(BY_NAME["gb200-ib"]).of()
    collected = []
    for number, rack in ((1, 3), (2, 3), (3, 4)):
        who = Identity(7, _place(number)._replace(rack=rack, tray=number))
        collected.append(msgspec.json.decode(template.render(Node(who, WHEN)), type=Report))
    domains = [{gpu.fabric.cluster_uuid for gpu in report.topology.gpus if gpu.fabric} for report in collected]
    assert domains[0] == domains[1] != domains[2]
    assert all(len(domain) == 1 for domain in domains)
    assert [report.node.chassis.tray for report in collected] == ["1", "2", "3"]
    assert {gpu.fabric.clique for report in collected for gpu in report.topology.gpus if gpu.fabric} == {1}


def test_a_borrowed_number_is_in_every_text_that_is_made_of_it() -> None:
    templates = Templates(BY_NAME["l40s-roce"])
    template = templates.of()
    key = templates.key("number", templates.rail_digits[0])
    over = {("number", key): "0a0b0c", ("ip", templates.key("ip", templates.shape.rails[0])): "10.9.8.7"}
    report = msgspec.json.decode(template.render(Node(Identity(7, _place(5), over), WHEN)), type=Report)
    nic = report.topology.nics[0]
    netdev = next(netdev for netdev in report.topology.netdevs if netdev.nic == nic.id)
    assert (nic.node_guid, netdev.mac) == ("b83f:d203:000a:0b0c", "b8:3f:d2:0a:0b:0c")
    assert netdev.addresses == ["10.9.8.7/31", "fe80::ba3f:d2ff:fe0a:b0c/64"]
    assert {gid.gid[-9:] for gid in nic.ports[0].gids} == {"fe0a:0b0c", "0a09:0807"}


def test_devices_keep_their_numbers_when_one_is_gone() -> None:
    templates = Templates(BY_NAME["h100-ib"])
    node = Node(Identity(7, _place(5)), WHEN)
    lost = {"pci": {"remove": [templates.shape.gpus[-1]]}}
    whole, less = (
        msgspec.json.decode(t.render(node), type=Report) for t in (templates.of(), templates.of("plain", lost))
    )
    assert [gpu.uuid for gpu in less.topology.gpus] == [gpu.uuid for gpu in whole.topology.gpus][:-1]
    assert [nic.role for nic in less.topology.nics] == [nic.role for nic in whole.topology.nics]
    for one, other in zip(whole.topology.nics, less.topology.nics, strict=True):
        assert (one.node_guid, [p.lid for p in one.ports]) == (other.node_guid, [p.lid for p in other.ports])
    there = {function.id: function.serial for function in whole.topology.pci}
    assert all(there[function.id] == function.serial for function in less.topology.pci)
