"""What the rows that are left out would have told of the cluster: nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.from_dataset import read_identity_rows
from agent.fleet.cluster.from_reports import read_tables
from agent.fleet.engines import connect
from agent.fleet.engines.engine import Engine
from agent.fleet.engines.query import table_query
from bench.fleet.plan import plan
from probes.fabric.files import read_fabric
from tests.agent.fleet.small import report, take

FAR = {"node_guid": "0002:c903:0000:0001", "name": "MF0;leaf1:MQM9700/U1", "port": 7}


class _Whole:
    """Every row."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def columns(self, table: str, names: tuple[str, ...]) -> Any:
        return self._engine.rows(table_query(table, names))


def port(number: int, layer: str, far: dict[str, Any] | None = None) -> dict[str, Any]:
    guid = f"0002:c903:00aa:000{number}"
    return {"port": number, "link_layer": layer, "state": "ACTIVE", "port_guid": guid, "neighbor": far}


def nic(number: int, *ports: dict[str, Any]) -> dict[str, Any]:
    name = f"mlx5_{number}"
    return {"id": f"0000:0{number}:00.0", "label": name, "rdma_device": name, "role": "rail", "ports": list(ports)}


NICS = [
    nic(1, port(1, "InfiniBand", FAR), port(2, "InfiniBand")),
    nic(2, port(3, "InfiniBand"), port(4, "Ethernet")),
    nic(3, port(5, "Ethernet")),
    nic(4, port(6, "InfiniBand", {**FAR, "port": 8})),
]
GPUS = [{"id": "0000:81:00.0", "fabric": {"cluster_uuid": "c", "clique": 0}}, {"id": "0000:82:00.0"}]
NETDEVS = [
    {"id": "eth0", "label": "eth0", "nic": "0000:03:00.0", "neighbor": {"system": "tor1", "port": "Ethernet4"}},
    {"id": "eth1", "label": "eth1", "nic": "0000:02:00.0", "neighbor": {"chassis": "aa:bb:cc:dd:ee:ff"}},
    {"id": "eth2", "label": "eth2"},
]


@pytest.mark.parametrize("beside_files", [False, True])
def test_of_an_adapter_all_ports_or_none(tmp_path: Path, beside_files: bool) -> None:
    topology = {"gpus": GPUS, "nics": NICS, "netdevs": NETDEVS}
    take(tmp_path / "dataset", report("gpu1", topology=topology), report("gpu2"))
    engine = connect(None, str(tmp_path / "dataset"))

    chosen = read_identity_rows(engine, beside_files)

    assert sorted((row.nic[6:7], row.port) for row in chosen.port) == (
        [("1", 1), ("1", 2), ("2", 3), ("2", 4), ("4", 6)] if beside_files else [("1", 1), ("1", 2), ("4", 6)]
    )
    assert [row.label for row in chosen.nic] == (
        ["mlx5_1", "mlx5_2", "mlx5_4"] if beside_files else ["mlx5_1", "mlx5_4"]
    )
    assert [row.label for row in chosen.netdev] == ["eth0"]
    assert [row.clique for row in chosen.gpu] == [0]
    assert [row.node for row in chosen.host] == ["gpu1", "gpu2"]
    text = 'Switch\t40 "S-0002c90300000001"\t# "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 1 lmc 0\n'
    text += '[7]\t"H-0002c90300aa0001"[1](2c90300aa0001)\t# "gpu1 mlx5_1" lid 2 4xNDR\n'
    files = [FabricFile("fabric", read_fabric(text, "fabric"))] if beside_files else []
    result = build(files, chosen)
    assert result == build(files, read_tables(_Whole(engine)))
    assert "mlx5_1/1" in {link.device for link in result.host_links}
    engine.close()


def test_made_up_fabrics(tmp_path: Path) -> None:
    mix = {"h100-ib": 1.0, "h200-roce": 1.0, "gb200-ib": 1.0}
    result = plan(60, 5, {"cable-swapped-rails": 1, "port-down": 1}, mix=mix)
    take(tmp_path / "dataset", *result.reports(one_line=True))
    engine = connect(None, str(tmp_path / "dataset"))
    files = [FabricFile(name, read_fabric("".join(result.fabric_text(name)), name)) for name in result.fabrics]

    for given in ([], files):
        assert build(given, read_identity_rows(engine, bool(given))) == build(given, read_tables(_Whole(engine)))
    engine.close()
