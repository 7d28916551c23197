"""What lasts of a subject, what a PCIe link carries in one direction, and who reads each fact of a report."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from agent.model.finding import Cost, Finding, Silenced, worst_first
from agent.model.identity import Earlier, identities
from agent.model.pci import bandwidth_gbyte_s, generation
from agent.model.peers import PeerWord
from agent.model.report import Report
from tests.agent.rules.build import changed_gpu, changed_netdev, changed_nic, function, gpu_id, nic_id, server
from tests.conftest import ROOT

GPU, RAIL = gpu_id(1), nic_id(1)


def of(subject: str, case: Any) -> str | None:
    return identities(case.topology).get(subject)


def test_each_subject_has_the_best_that_there_is() -> None:
    """UUID before serial, GUID before serial; parts carry that of their device."""
    case = server(ethernet=True)
    serial = function(changed_nic(case, 1, node_guid=None), RAIL, serial="00-11")

    assert "uuid GPU-00000001" == of(f"gpu:{GPU}", case)
    assert "serial 1320" == of(f"gpu:{GPU}", changed_gpu(case, 1, uuid=None, serial="1320"))
    assert "uuid GPU-00000001/7" == of(f"link:{GPU}/7", case)
    assert "guid 0000:0000:0000:0001" == of(f"nic:{RAIL}", case)
    assert "guid 0000:0000:0000:0001/1" == of(f"port:{RAIL}/1", case)
    assert "serial 00-11.0" == of(f"nic:{RAIL}", serial) == of(f"pci:{RAIL}", serial)
    assert "mac 02:00:00:00:00:01" == of(f"netdev:{RAIL}", changed_netdev(case, 1, nic=None))
    assert "mac 02:00:00:00:00:01 eth1" == of("netdev:eth1", changed_netdev(case, 1, id="eth1", nic=None, pci=None))


@pytest.mark.parametrize(
    ("subject", "case"),
    [
        pytest.param(
            f"pci:{RAIL}", function(server(), RAIL, serial="1", physical_function="x"), id="a virtual function's"
        ),
        pytest.param(f"pci:{RAIL}", function(server(), RAIL, serial="1", class_code="0x060400"), id="a switch port's"),
        pytest.param(f"pci:{GPU}", server(), id="one that all have"),
        pytest.param(f"nic:{RAIL}", changed_nic(server(), 1, virtual_function=True), id="a virtual NIC's"),
        pytest.param(f"nic:{RAIL}", changed_nic(server(), 1, software=True), id="a software device's"),
        pytest.param(f"nic:{RAIL}", changed_nic(server(), 1, node_guid="0000:0000:0000:0000"), id="no GUID"),
        pytest.param(
            f"nic:{RAIL}", changed_nic(server(), 1, node_guid="0000:0000:0000:0002"), id="a GUID that two have"
        ),
        pytest.param(
            f"netdev:{RAIL}", changed_netdev(server(ethernet=True), 1, nic=None, master="bond0"), id="a bond's MAC"
        ),
        pytest.param(f"netdev:{RAIL}", changed_netdev(server(ethernet=True), 1, nic=None, mac=None), id="no MAC"),
    ],
)
def test_what_does_not_last_is_no_identity(subject: str, case: Any) -> None:
    """Made up, borrowed, shared or nothing."""
    assert of(subject, case) is None


def test_an_earlier_subject_is_found_by_identity_then_by_place() -> None:
    """And not where another stands there now, or where nothing is known of it."""
    now = server(ethernet=True).topology
    there = {f"nic:{RAIL}", "nic:old", f"gpu:{GPU}"}

    assert "nic:old" == Earlier({"nic:old": "guid 0000:0000:0000:0001"}, there, now).subject(f"nic:{RAIL}")
    assert f"nic:{RAIL}" == Earlier({}, there, now).subject(f"nic:{RAIL}")
    assert f"nic:{RAIL}" == Earlier({f"nic:{RAIL}": "serial 5"}, there, now).subject(f"nic:{RAIL}")
    assert Earlier({f"nic:{RAIL}": "guid 5"}, there, now).subject(f"nic:{RAIL}") is None
    assert Earlier({}, (), now).subject(f"nic:{RAIL}") is None
    assert Earlier({"nic:gone": "guid 0000:0000:0000:0001"}, (), now).subject(f"nic:{RAIL}") is None


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [
        (2.5, 1, 0.25),
        (5.0, 4, 2.0),
        (8.0, 16, 15.754),
        (16.0, 16, 31.508),
        (32.0, 16, 63.015),
        (64.0, 16, 118.0),
        (64.0, 1, 7.375),
    ],
)
def test_bandwidth_is_after_line_coding(speed: float, width: int, expected: float) -> None:
    """8b/10b, 128b/130b, FLIT."""
    assert expected == bandwidth_gbyte_s(speed, width)


@pytest.mark.parametrize(("speed", "width"), [(None, 16), (8.0, None), (8.0, 0), (3.0, 16)])
def test_what_is_not_known_has_no_bandwidth(speed: float | None, width: int | None) -> None:
    """Never 0."""
    assert bandwidth_gbyte_s(speed, width) is None


def test_generations_count_from_one() -> None:
    """A speed of no generation has none."""
    assert [1, 3, 5, 6, None, None] == [generation(s) for s in (2.5, 8.0, 32.0, 64.0, 9.9, None)]


def finding(rule: str, severity: str = "error", subject: str = "gpu:0", **more: Any) -> Finding:
    about = {"label": "", "summary": "", "impact": "", "remedy": "", "fingerprint": rule}
    return Finding(rule=rule, severity=severity, subject=subject, **about, **more)


def costing(percent: float) -> Cost:
    return Cost(collective="all_reduce", nodes=1, gbyte_s=1.0, percent=percent, known_by="model")


def test_findings_come_worst_first() -> None:
    """By severity, cost and reach; a critical one by its reach alone; then by name; silenced ones last."""
    rows = [
        finding("h-node", "critical", "node"),
        finding("g-device", "critical", "pci:0"),
        finding("f-link", "critical", "link:0/1", cost=costing(90)),
        finding("z-dear", subject="port:0/1", cost=costing(50)),
        finding("y-cheap", subject="node", cost=costing(5)),
        finding("x-node", subject="node"),
        finding("a-device", subject="nvswitch:0"),
        finding("w-device"),
        finding("b-port", subject="port:0/1"),
        finding("c-note", "info", "node"),
        finding("a-silenced", "critical", "node", silenced=Silenced(reason="known")),
    ]

    assert rows == sorted([rows[-1], *rows[:-1]], key=worst_first)


# Every fact of a report has a reader: a rule, an output, a command, or the comparison of peers; else a reason.


# What only a person reads, in the JSON of the report
UNREAD = {
    "CxlRegion.granularity_bytes": "any granularity works; which is fast depends on the job",
    "FabricNeighbor.could_rate_gbit_s": "its width and speed, which are judged, give it",
}
MAKERS = ("model", "assemble")  # packages that declare facts and fill them in


def list_structs(hint: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Every struct that a report holds, by name."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint.__name__ not in found:
        found[hint.__name__] = hint
        for inner in typing.get_type_hints(hint).values():
            list_structs(inner, found)
    for inner in typing.get_args(hint):
        list_structs(inner, found)
    return found


def list_unread() -> Iterator[str]:
    """The fields that no module reads as an attribute, and that are not compared among peers."""
    folders = [path for path in (ROOT / "agent").iterdir() if path.name not in MAKERS]
    paths = [file for folder in folders for file in (folder.rglob("*.py") if folder.is_dir() else [folder])]
    read = {name for path in paths if path.suffix == ".py" for name in re.findall(r"\.([a-z_0-9]+)", path.read_text())}
    for name, struct in list_structs(Report, {}).items():
        hints = typing.get_type_hints(struct, include_extras=True)
        for field in struct.__struct_fields__:
            word = next(
                (extra for extra in getattr(hints[field], "__metadata__", ()) if isinstance(extra, PeerWord)), None
            )
            if field not in read and (word is None or word.word == "free"):
                yield f"{name}.{field}"


def test_every_fact_has_a_reader() -> None:
    """A new one without a reader needs a reason, and one that has got a reader needs none any more."""
    assert sorted(UNREAD) == sorted(list_unread())
