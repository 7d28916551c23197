"""Rows are what the report says: compared with the whole report as the model reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest

from agent.fleet.reading import Naming, Unfit, read, unpack
from agent.fleet.rows import NAMES, Reader
from agent.fleet.rows.device_fields import NicFields
from agent.fleet.rows.devices import hardware_class
from agent.fleet.tables import COMPARED, TABLES, digest_column
from agent.model.counters import list_counted
from agent.model.report import Report
from tests.agent.fleet.small import report as small
from tests.conftest import ROOT
from tests.machines import FAULTS, HOSTS, scan_machine

NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def reader() -> Reader:
    """One for all machines, as a worker has it: what is remembered of one must not show in another."""
    return Reader()


def tables(report: Report | bytes, reader: Reader | None = None) -> dict[str, list[dict[str, Any]]]:
    """Rows of a report by table, as dictionaries."""
    data = report if isinstance(report, bytes) else msgspec.json.encode(dated(report))
    reader = reader or Reader()
    made = read(unpack(data), reader, Naming(), NOW).made
    found: dict[str, list[dict[str, Any]]] = {}
    for name, numbers in zip(NAMES, made.ids, strict=True):
        if name == "counter":
            subjects, names = list(reader.counters.subjects), list(reader.counters.names)
            rows: Any = {
                n: (subjects[reader.counters.subject[n]], names[reader.counters.name[n]], reader.counters.value[n])
                for n in numbers
            }
        else:
            rows = {number: reader.unique[name].row(number) for number in numbers}
        columns = [each.name for each in TABLES[name].own]
        found[name] = [dict(zip(columns, rows[number], strict=True)) for number in numbers]
    return found


def dated(report: Report) -> Report:
    """Goldens have no time."""
    return msgspec.structs.replace(report, generated_at="2026-01-15T08:00:00Z")


@pytest.mark.parametrize("shape", HOSTS)
def test_columns_that_are_named_as_fields_hold_these_fields(shape: str, reader: Reader) -> None:
    report = scan_machine(shape)
    found = tables(report, reader)
    t = report.topology
    same = {
        "pci": t.pci,
        "gpu": t.gpus,
        "nvlink": [link for gpu in t.gpus for link in gpu.links],
        "nic": t.nics,
        "port": [port for nic in t.nics for port in nic.ports],
        "netdev": t.netdevs,
        "path": t.paths,
        "finding": report.findings,
        "check": report.checks,
        "probe": report.probes,
        "host": [report.node],
    }
    renamed = {"class": "class_code"}
    compared = 0
    for name, rows in same.items():
        assert len(found[name]) == len(rows), name
        for row, wanted in zip(found[name], rows, strict=True):
            for column, value in row.items():
                told = getattr(wanted, renamed.get(column, column), row)
                plain = told is None or isinstance(told, str | int | float)
                if plain and (name, column) not in {("port", "label"), ("check", "reason"), ("check", "unknown")}:
                    assert value == told, (name, column)
                    compared += 1
    assert compared > 500


@pytest.mark.parametrize("shape", HOSTS)
def test_links_counters_and_what_is_counted(shape: str, reader: Reader) -> None:
    report = scan_machine(shape)
    found = tables(report, reader)
    t = report.topology
    lower = [f for f in t.pci if f.link and f.port_type not in ("root_port", "downstream")]

    assert [row["id"] for row in found["link"]] == [f.id for f in lower]
    for row, f in zip(found["link"], lower, strict=True):
        assert f.link is not None
        sure = f.link.quality.state == "conclusive"
        assert (row["width"], row["max_width"], row["quality"]) == (
            f.link.width,
            f.link.max_width,
            f.link.quality.state,
        )
        assert row["conclusive_width"] == (f.link.width if sure else None)
        assert (row["kind"] == "gpu") == (f.id in {gpu.pci for gpu in t.gpus})
    wanted = {(c.subject, n): value for c in list_counted(t) for n, value in c.counters.items() if value}
    assert {(row["subject"], row["name"]): row["value"] for row in found["counter"]} == wanted
    assert len(found["counter"]) == len(wanted)
    (host,) = found["host"]
    assert (host["gpus"], host["nics"]) == (len(t.gpus), len(t.host_nics))
    assert (
        host["rails"]
        == sum(nic.role == "rail" for nic in t.host_nics)
        == len({row["rail"] for row in found["nic"] if row["rail"] is not None})
    )
    assert host["verdict"] == report.summary.verdict
    assert host["driver"] == report.software.driver.version
    of_npus = [port.address for port in (t.ascend.ports if t.ascend else []) if port.address]
    assert [row["address"] for row in found["address"]] == [*(a for d in t.netdevs for a in d.addresses), *of_npus]


def test_events_and_limits_are_what_the_report_has() -> None:
    """Times that are none are unknown; of processes of one name the lowest limit counts, and no number of them."""
    events = [
        {"kind": "xid", "text": "a", "source": "dmesg", "at": "2026-01-15T10:00:00+02:00", "code": "79", "count": 2,
         "subject": "0000:11:00.0", "first_at": "2026-01-15T07:00:00Z", "times": ["x", "y"]},
        {"kind": "xid", "text": "a", "source": "dmesg", "at": "yesterday", "first_at": "2026-01-15T07:00:00"},
    ]  # fmt: skip
    limits = {
        "memlock pid 1 (python3)": "unlimited", "memlock pid 2 (python3)": "65536", "memlock pid 3 (python3)": "131072",
        "memlock slurmd.service": "8192", "memlock a; b": "1", "exempt slurmd.service": "1",
    }  # fmt: skip
    found = tables(small(events=events, software={"limits": limits, "shared_memory_mib": 64}))
    (first, second), (host,) = found["event"], found["host"]
    utc = timezone.utc

    assert (datetime(2026, 1, 15, 7, tzinfo=utc), datetime(2026, 1, 15, 8, tzinfo=utc)) == (
        first["first_at"],
        first["last_at"],
    )
    assert ("x y", 2, "79", 0) == (first["times"], first["count"], first["code"], first["number"])
    assert (None, None, None, 1) == (second["first_at"], second["last_at"], second["times"], second["number"])
    assert ("slurmd.service=8192", "python3=65536", 64) == (
        host["limits"],
        host["process_limits"],
        host["shared_memory_mib"],
    )


def test_ports_inside_accelerators_are_rows_and_no_matter_of_hardware(reader: Reader) -> None:
    """A node whose /etc/hccn.conf could not be read is of the same class, and has as many NICs and rails."""
    report = scan_machine("8x910b-4s-atlas-a2")
    topology = report.topology
    unread = msgspec.structs.replace(report, topology=msgspec.structs.replace(topology, nics=topology.host_nics))
    found, hidden = tables(report, reader), tables(unread, reader)

    assert [f"npu-{number}-roce" for number in range(8)] == [row["id"] for row in found["nic"]]
    assert [("rail", None)] * 8 == [(row["role"], row["rail"]) for row in found["nic"]]
    assert [f"NPU{number}" for number in range(8)] == [row["label"] for row in found["port"]]
    assert [] == hidden["nic"]
    assert (0, 0) == (found["host"][0]["nics"], found["host"][0]["rails"])
    whole, without = (
        read(unpack(msgspec.json.encode(dated(each))), reader, Naming(), NOW).made.hardware_class
        for each in (report, unread)
    )
    assert whole == without


def test_qos_is_short_text_and_null_where_it_is_not_known(reader: Reader) -> None:
    rows = {row["label"]: row for row in tables(scan_machine("8xh200-sxm-2s-16xcx7-roce-4nvsw"), reader)["netdev"]}
    rail = next(row for row in rows.values() if row["rail"] == 0)

    assert rail["pfc"] == "00010000"
    assert "26:3" in rail["dscp_prio"].split()
    assert rail["trust"] == "dscp"
    assert tables(scan_machine("cpu-only-2s"))["netdev"][0]["pfc"] is None


# By its own report such a node is of a smaller class: the questions put it back (questions/test_peer_classes.py)
HALF_LOST = ("gaudi-half-the-board", "npu-half-the-board")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in HALF_LOST])
def test_a_node_with_a_fault_stays_among_its_like(fault: str, reader: Reader) -> None:
    text = (ROOT / "fixtures" / "faults" / f"{fault}.toml").read_text()
    base = next(line.split('"')[1] for line in text.splitlines() if line.startswith("base"))
    broken = tables(scan_machine("", fault), reader)["host"][0]
    assert broken["hardware_class"] == tables(scan_machine(base), reader)["host"][0]["hardware_class"]


def test_hardware_class_does_not_depend_on_what_is_lost_or_how_a_driver_names_it() -> None:
    rails = [NicFields(id=f"0000:0{n}:00.0", board_id="MT_0000000838") for n in range(8)]
    odd = [*rails[:7], NicFields(id="x", board_id="MT_0000000999")]
    h200 = ("0x10de", "0x2335")
    whole = hardware_class("Supermicro ", "SYS-821GE-TNHR", [h200] * 8, rails)

    assert whole == "Supermicro SYS-821GE-TNHR, 8x H200 SXM, 8x MT_0000000838"
    assert whole == hardware_class("Supermicro", "SYS-821GE-TNHR", [h200] * 7, odd[1:])
    assert hardware_class(None, None, [], []) == "unknown product"
    assert hardware_class("V", "P", [("0x10de", "0xffff")], []) == "V P, 1x 10de:ffff"
    assert hardware_class("V", "P", [(None, "NVIDIA A10")], []) == "V P, 1x A10"


def test_the_digest_of_a_table_is_of_what_lasts() -> None:
    report = dated(scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw"))
    data = msgspec.to_builtins(report)
    data["node"]["uptime_seconds"] = 5.0
    data["observed_at"] = "2026-01-16T08:00:00Z"
    for function in data["topology"]["pci"]:
        function["power_state"] = "D3hot"
        if function["link"]:
            function["link"] |= {"quality": {"state": "idle", "reason": None}, "speed_gt_s": 2.5}
    moved = read(unpack(msgspec.json.encode(data)), Reader(), Naming(), NOW).made.digests
    same = read(unpack(msgspec.json.encode(report)), Reader(), Naming(), NOW).made.digests
    days = {NAMES.index("port_counter")}  # its digest is the day
    assert [each for n, each in enumerate(moved) if n not in days] == [
        each for n, each in enumerate(same) if n not in days
    ]
    assert [moved[n] for n in days] == ["2026-01-16"]

    data["topology"]["pci"][3]["serial"] = "x"
    data["node"]["kernel"] = "y"
    other = read(unpack(msgspec.json.encode(data)), Reader(), Naming(), NOW).made.digests
    assert [name for name, a, b in zip(NAMES, same, other, strict=True) if a != b] == ["host", "pci", "port_counter"]


def test_a_serial_number_of_another_node_is_not_taken_for_ours() -> None:
    report = msgspec.to_builtins(dated(scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw")))
    reader = Reader()
    for number in range(3):
        for function in report["topology"]["pci"]:
            if function["serial"]:
                function["serial"] = f"{number}-{function['id']}"
        found = tables(msgspec.json.encode(report), reader)["pci"]
        assert [row["serial"] for row in found] == [f["serial"] for f in report["topology"]["pci"]]


@pytest.mark.parametrize(
    ("where", "more"),
    [
        ("checks", {"checks": [{"rule": "a", "state": "pass"}, {"rule": "a", "state": "fail"}]}),
        ("probes", {"probes": [{"name": "pci", "status": "ok"}] * 2}),
        ("topology.netdevs", {"topology": {"netdevs": [{"id": "eth0"}] * 2}}),
        ("topology.nics[0].ports", {"topology": {"nics": [{"id": "a", "ports": [{"port": 1}] * 2}]}}),
        ("topology.gpus[0].links", {"topology": {"gpus": [{"id": "a", "links": [{"link": 1}] * 2}]}}),
        ("topology.paths", {"topology": {"paths": [{"a": "a", "b": "b"}] * 2}}),
    ],
)
def test_what_would_stand_twice_under_a_key_is_damage(where: str, more: dict[str, Any]) -> None:
    reader = Reader()
    for _ in range(2):  # also where such a part was seen before
        with pytest.raises(Unfit, match=f"twice - in {re.escape(where)}"):
            tables(small(**more), reader)


def test_a_finding_and_an_address_that_are_told_twice_are_once() -> None:
    found = {"rule": "r", "severity": "info", "subject": "s", "fingerprint": "f"}
    netdevs = [{"id": "tun0", "addresses": ["10.0.0.1/32", "10.0.0.1/32", "10.0.0.2/32"]}]
    findings = [{**found, "summary": "first"}, {**found, "summary": "second"}, {**found, "subject": "t"}]
    made = tables(small(findings=findings, topology={"netdevs": netdevs}))

    assert [(each["subject"], each["summary"]) for each in made["finding"]] == [("s", "first"), ("t", None)]
    assert [each["address"] for each in made["address"]] == ["10.0.0.1/32", "10.0.0.2/32"]


def test_a_finding_of_the_node_has_its_devices() -> None:
    found = {"rule": "r", "severity": "info", "subject": "node", "fingerprint": "f"}
    made = tables(small(findings=[{**found, "devices": ["0000:19:00.0", "0000:1a:00.0"]}, {**found, "subject": "t"}]))

    assert [row["devices"] for row in made["finding"]] == ["0000:19:00.0 0000:1a:00.0", None]


def test_a_silenced_finding_is_marked_and_the_open_one_of_two_wins() -> None:
    found = {"rule": "r", "severity": "info", "subject": "s", "fingerprint": "f"}
    silenced = {**found, "silenced": {"until": "2026-02-01", "reason": "ticket 7"}}
    columns = ("subject", "silenced", "silenced_reason", "silenced_until")
    made = tables(
        small(findings=[silenced, found, {**silenced, "subject": "t"}, {**found, "subject": "u", "silenced": {}}])
    )

    assert [tuple(each[name] for name in columns) for each in made["finding"]] == [
        ("s", None, None, None), ("t", True, "ticket 7", "2026-02-01"), ("u", True, None, None),
    ]  # fmt: skip


def test_the_far_end_of_an_infiniband_cable() -> None:
    far = {"node_guid": "fc6a:1c03:0000:0001", "name": "MF0;leaf-1:MQM9700/U1", "port": 7, "source": "ibnetdiscover"}
    report = msgspec.to_builtins(dated(scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw")))
    report["topology"]["nics"][0]["ports"][0]["neighbor"] = far
    row = tables(msgspec.json.encode(report))["port"][0]

    assert [row[f"neighbor_{each}"] for each in ("guid", "name", "port")] == [far["node_guid"], far["name"], 7]


def test_digests_are_of_what_is_compared() -> None:
    report = msgspec.to_builtins(dated(scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw")))

    def digests(reader: Reader, data: dict[str, Any]) -> dict[str, int]:
        (row,) = tables(msgspec.json.encode(data), reader)["host"]
        return {name: row[digest_column(name)] for name in COMPARED}

    reader = Reader()
    before = digests(reader, report)
    assert 0 not in before.values()
    topology = report["topology"]
    for function in topology["pci"]:
        function["serial"] = function["serial"] and f"x{function['serial']}"
    for gpu in topology["gpus"]:
        gpu["uuid"] = f"other-{gpu['uuid']}"
    for nic in topology["nics"]:
        nic["node_guid"] = "0c42:a103:0000:0001"
    assert digests(reader, report) == digests(Reader(), report) == before

    def other(change: Callable[[], Any]) -> set[str]:
        change()
        after = digests(reader, report)
        assert digests(Reader(), report) == after
        return {name for name in COMPARED if after[name] != before[name]}

    assert other(lambda: topology["gpus"][3].update(vbios="x")) == {"gpu"}
    assert other(lambda: topology["pci"][3].update(max_payload_bytes=64)) == {"gpu", "pci"}
    assert other(lambda: report["checks"][0].update(state="disabled")) == {"gpu", "pci", "check"}
    assert other(lambda: topology["nics"][0].update(firmware="x")) == {"gpu", "pci", "check", "nic"}
    assert digests(reader, {**report, "topology": {}})["gpu"] == 0


@pytest.mark.parametrize("indent", [0, 2])
def test_lists_that_earlier_reports_had_are_read_as_if_they_were_the_first(indent: int) -> None:
    """Also where one stands under another name of a report, or as evidence that is stored as it is."""
    whole = msgspec.json.decode(msgspec.json.encode(dated(scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw"))))
    text = msgspec.json.encode(whole)
    checks, topology = whole["checks"], whole["topology"]
    pci, gpus = topology["pci"], topology["gpus"]
    links = [{"links": gpu["links"]} for gpu in gpus]
    evidence = {
        "rule": "r",
        "severity": "info",
        "subject": "node",
        "fingerprint": "1",
        "evidence": [{"checks": checks}],
    }
    others = [
        text,
        text.replace(b'"checks":', b'"later":', 1),
        text.replace(b'"topology":{"pci":', b'"topology":{"later":', 1),
        text.replace(b'"config":', b'"checks":%s,"config":' % msgspec.json.encode(checks), 1),
        msgspec.json.encode(whole | {"findings": [evidence], "checks": []}),
        msgspec.json.encode(
            whole | {"topology": whole["topology"] | {"pci": [], "paths": pci}, "config": {"pci": pci}}
        ),
        *(
            msgspec.json.encode(whole | {"topology": topology | {"gpus": changed}})
            for changed in (
                [gpu | links[7 - place] for place, gpu in enumerate(gpus)],
                [gpus[0] | {"links": gpus[0]["links"][:17]}, *gpus[1:]],
                [{"later": links[0]} | gpus[0], *gpus[1:]],
                [{"later": links[0]} | gpus[0] | {"links": []}, *gpus[1:]],
                [*gpus[:3], gpus[3] | {"links": []}, *gpus[4:]],
            )
        ),
    ]
    reader = Reader()
    for other in [text, text, text, *others, text]:
        data = msgspec.json.format(other, indent=indent) if indent else other
        try:
            first = tables(data)
        except Unfit as error:
            with pytest.raises(Unfit, match=re.escape(str(error))):
                read(unpack(data), reader, Naming(), NOW)
        else:
            assert tables(data, reader) == first
    cut = reader.cut(msgspec.json.format(text, indent=indent) if indent else text)
    assert cut.known.keys() == {"pci", "links", "paths", "checks"}
    assert len(cut.known["links"]) == 8
    assert len(cut.text) < 0.5 * len(text) * (1 + bool(indent))
