"""`fleet ingest --node-key`: by what a node is known, for the whole life of a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.fleet.dataset import MANIFEST, BadDataset, open_dataset
from agent.fleet.hostlist import NodeNames
from tests.agent.fleet.small import report, rows, take
from tests.texts import error_lines

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow.parquet")

A, B = "aaaa1111bbbb2222cccc3333dddd4444", "eeee5555ffff6666aaaa7777bbbb8888"
C = "ffff9999eeee8888dddd7777cccc6666"


def named(hostname: str | None, machine_id: str | None = None, serial: str | None = None, hour: float = 0) -> bytes:
    node = {"hostname": hostname, "machine_id": machine_id, "serial": serial}
    return report(hour=hour, node={name: value for name, value in node.items() if value is not None})


@pytest.mark.parametrize(("key", "nodes"), [("machine-id", [A, B]), ("serial", ["SN001", "SN002"])])
def test_hosts_of_one_name_are_several_nodes(tmp_path: Path, key: str, nodes: list[str]) -> None:
    reports = named("localhost", A, "SN001"), named("localhost", B, "SN002", hour=1)
    take(tmp_path / "d", *reports, node_key=key)
    take(tmp_path / "by-name", *reports)

    assert rows(tmp_path / "d", "host", "node, hostname") == [(node, "localhost") for node in nodes]
    assert rows(tmp_path / "by-name", "host", "node") == [("localhost",)]


def test_a_renamed_host_stays_one_node_and_later_ingests_need_no_option(tmp_path: Path) -> None:
    take(tmp_path / "d", named("old", A), node_key="machine-id", cluster="east")
    result = take(tmp_path / "d", named("new", A, hour=1), cluster="east")

    assert rows(tmp_path / "d", "host", "node, hostname") == [(f"east/{A}", "new")]
    assert result.nodes == 1
    assert open_dataset(str(tmp_path / "d")).manifest.node_key == "machine-id"


def test_every_worker_process_knows_the_key(tmp_path: Path) -> None:
    ids = [f"{number:032x}" for number in range(4096, 4176)]
    take(tmp_path / "d", *(named("localhost", each) for each in ids), node_key="machine-id", jobs=2)

    assert rows(tmp_path / "d", "host", "node") == [(each,) for each in ids]


def test_another_key_is_refused_and_the_dataset_is_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take(tmp_path / "d", named("gpu1", A))
    before = (tmp_path / "d" / MANIFEST).read_bytes()
    (tmp_path / "r.json").write_bytes(named("gpu1", A, hour=1))
    command = ["fleet", "ingest", str(tmp_path / "r.json"), "--dataset", str(tmp_path / "d"), "--node-key"]

    assert run([*command, "machine-id"]) == 2
    (error,) = error_lines(capsys.readouterr().err)
    assert error.endswith("/d: its nodes are known by hostname; another --node-key needs another dataset")
    assert (tmp_path / "d" / MANIFEST).read_bytes() == before
    assert run([*command, "uuid"]) == 2
    assert "expected hostname, machine-id or serial" in capsys.readouterr().err
    assert run([*command, "hostname"]) == 0


def test_a_dataset_that_does_not_say_its_key_is_by_host_name(tmp_path: Path) -> None:
    take(tmp_path / "d", named("gpu1", A))
    place = tmp_path / "d" / MANIFEST
    manifest = json.loads(place.read_text())
    assert manifest.pop("node_key") == "hostname"
    place.write_text(json.dumps(manifest))

    with pytest.raises(BadDataset, match="known by hostname"):
        take(tmp_path / "d", named("gpu1", A, hour=1), node_key="serial")
    take(tmp_path / "d", named("gpu1", A, hour=1))
    assert rows(tmp_path / "d", "host", "node, hour(observed_at)") == [("gpu1", 9)]


def test_a_key_that_is_no_text_of_ours_is_a_damaged_manifest(tmp_path: Path) -> None:
    take(tmp_path / "d", named("gpu1", A))
    place = tmp_path / "d" / MANIFEST
    place.write_text(place.read_text().replace('"node_key": "hostname"', '"node_key": "uuid"'))

    with pytest.raises(BadDataset, match=r"manifest.json: damaged: .*node_key"):
        open_dataset(str(tmp_path / "d"))


@pytest.mark.parametrize(
    ("one", "node"),
    [
        (named("gpu1", A), "gpu1"),
        (named("gpu1", A, "Default string"), "gpu1"),
        (named("gpu1", A, "  "), "gpu1"),
        (named(None, A), A),
        (named("gpu1", A, " SN001 "), "SN001"),
    ],
)
def test_a_report_without_the_key_goes_by_the_next(tmp_path: Path, one: bytes, node: str) -> None:
    result = take(tmp_path / "d", one, node_key="serial")

    assert rows(tmp_path / "d", "host", "node") == [(node,)]
    assert result.quarantined == 0


def test_no_part_of_a_name_is_longer_than_a_name_can_be(tmp_path: Path) -> None:
    result = take(
        tmp_path / "d", named("h" * 300, A), named("gpu1", "a1" * 200), named("gpu2", B), node_key="machine-id"
    )

    assert rows(tmp_path / "d", "host", "node") == [(B,)]
    assert result.quarantined == 2


def test_cables_and_scheduler_outputs_have_the_hosts_own_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def wired(hostname: str, machine_id: str, port: int) -> bytes:
        guid = f"0002:c903:00aa:{port:04d}"
        far = {"node_guid": "0002:c903:0000:0001", "name": "MF0;leaf1:MQM9700/U1", "port": port}
        ports = [{"port": 1, "link_layer": "InfiniBand", "state": "ACTIVE", "port_guid": guid, "neighbor": far}]
        adapter = {"id": "0000:01:00.0", "label": "mlx5_0", "rdma_device": "mlx5_0", "role": "rail", "ports": ports}
        return report(node={"hostname": hostname, "machine_id": machine_id}, topology={"nics": [adapter]})

    ids = [f"{number:032x}" for number in range(4096, 4100)]
    hosts = ["gpu1", "gpu2", "localhost", "localhost"]
    wires = (wired(host, machine, at) for at, (host, machine) in enumerate(zip(hosts, ids, strict=True), 1))
    take(tmp_path / "d", *wires, node_key="machine-id")

    assert run(["fleet", "topology", "--dataset", str(tmp_path / "d"), "--format", "slurm-conf"]) == 0
    output = capsys.readouterr().out
    assert "gpu[1-2]" in output
    assert ids[0] not in output
    assert "localhost" not in output  # two have it, and each is found by its own key
    assert ids[2][:-4] in output


LIST = (named("gpu1", A, "SN001"), named("localhost", B, "SN002"), named("localhost", C, "SN003", 1))


@pytest.fixture
def by_machine(tmp_path: Path) -> str:
    """A dataset by machine id: gpu1, and two machines without a name of their own."""
    take(tmp_path / "d", *LIST, node_key="machine-id")
    return str(tmp_path / "d")


@pytest.mark.parametrize("name", ["gpu1", A])
def test_host_names_and_keys_choose_nodes(
    name: str, by_machine: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["fleet", "summary", "--dataset", by_machine, "--where", f"nodes={name}", "--format", "json"]) == 0
    out, err = capfdbinary.readouterr()
    assert (json.loads(out)["nodes"], err) == (1, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["summary", "--where", "nodes=gpu1,localhost"],
        ["forget", "localhost"],
        ["expected", "{here}/nodes"],
    ],
)
def test_a_name_of_several_nodes_is_an_error_that_lists_them(
    words: list[str], by_machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes").write_text("gpu1 localhost\n")
    assert run(["fleet", *(word.format(here=tmp_path) for word in words), "--dataset", by_machine]) == 2
    line, *_ = error_lines(capsys.readouterr().err)
    assert "'localhost' is the name of 2 nodes: " in line
    assert all(machine in line for machine in (B, C))
    assert len(rows(tmp_path / "d", "host", "node")) == 3


def test_lists_of_host_names_are_compared(
    by_machine: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "nodes").write_text(f"gpu1.site.org gpu2 {B}\n")
    command = ["fleet", "expected", str(tmp_path / "nodes"), "--dataset", by_machine]
    assert run([*command, "--format", "json"]) == 0
    answer = json.loads(capfdbinary.readouterr().out)
    assert (answer["expected"], answer["reporting"]) == (3, 2)
    assert [(row["what"], row["node"], row["hostname"]) for row in answer["rows"]] == [
        ("never", "gpu2", None), ("unexpected", C, "localhost"),
    ]  # fmt: skip
    assert run(command) == 0
    assert f"localhost ({C})" in capfdbinary.readouterr().out.decode()


def test_a_node_is_forgotten_by_its_host_name(
    by_machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "forget", f"gpu1,{B},gpu9", "--dataset", by_machine]) == 0
    assert "not in the dataset: gpu9" in capsys.readouterr().err
    assert rows(tmp_path / "d", "host", "node") == [(C,)]


def test_the_key_of_the_dataset_comes_before_host_names() -> None:
    """A host that is called as another's machine id."""
    names = NodeNames([("a", "b"), ("b", "c"), ("east/x", "x.site.org")])
    assert [names.find(name) for name in ("a", "b", "c", "x")] == ["a", "b", "b", None]
    assert [names.find_short(name) for name in ("X", "west/x.other.org", "y")] == ["east/x", "east/x", None]


def test_pull_needs_a_dataset_for_a_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["fleet", "pull", "--nodes", "gpu1", "--to", str(tmp_path), "--node-key", "serial"]) == 2
    assert "--node-key is for --dataset" in error_lines(capsys.readouterr().err)[0]
