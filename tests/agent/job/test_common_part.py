"""What all slow or failed ranks have in common: leaf switch, rail, GPU, host, peer; and what is no common part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli.job import JobOptions
from tests.agent.fleet import small
from tests.agent.job.jobs import answer, first, info

HOSTS, LOCAL = 8, 4
STATUS = "NET/IB: Got completion from peer 10.9.0.{}<4000> with status=12 opcode=1 len=0 vendor err 129 (Recv) hca {}"


def host_report(number: int, **port: Any) -> bytes:
    """A host with a rail for each GPU; hosts 1 to 4 are on other leaves than hosts 5 to 8."""
    nics, netdevs = [], []
    for rail in range(LOCAL):
        nic = f"0000:1{rail}:00.0"
        ports = [{"port": 1, "state": "ACTIVE", "link_layer": "Ethernet", **port}]
        nics.append({"id": nic, "label": f"mlx5_{rail}", "rdma_device": f"mlx5_{rail}", "role": "rail", "ports": ports})
        leaf = {"system": f"leaf-{(number - 1) // 4}-{rail}", "chassis": "c", "port": f"Ethernet{number}"}
        netdevs.append({"id": f"eth{rail}", "label": f"eth{rail}", "nic": nic, "neighbor": leaf})
    gpus = [{"id": f"0000:2{rail}:00.0", "label": f"GPU{rail}", "index": rail} for rail in range(LOCAL)]
    return small.report(f"gpu{number}", 1, topology={"nics": nics, "netdevs": netdevs, "gpus": gpus})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all hosts."""
    path = tmp_path_factory.mktemp("fleet") / "data"
    small.take(path, *(host_report(number) for number in range(1, HOSTS + 1)))
    return str(path)


def log(failed: list[tuple[int, int, int]]) -> str:
    """All ranks; of host, rail and the peer's host those that get no answer."""
    text = ""
    for rank in range(HOSTS * LOCAL):
        host, local = f"gpu{rank // LOCAL + 1}", rank % LOCAL
        text += info(rank, f"Bootstrap : Using eth9:10.9.0.{rank // LOCAL + 1}<0>", host, local)
        text += info(
            rank,
            f"ncclCommInitRank comm 0x{rank + 1:x} rank {rank} nranks {HOSTS * LOCAL} cudaDev {local} nvmlDev {local} "
            f"busId 2{local}000 commId 0x9 - Init COMPLETE",
            host,
            local,
        )
        text += info(rank, f"Channel 00/0 : {rank}[{local}] -> 0[0] [send] via NET/IB/{local}/GDRDMA", host, local)
        devices = " ".join(f"[{rail}]mlx5_{rail}:1/RoCE" for rail in range(LOCAL))
        text += info(rank, f"NET/IB : Using {devices} [RO]; OOB eth9:10.9.0.{rank // LOCAL + 1}<0>", host, local)
    text += "".join(f"iteration {step} | loss 1.0\n" for step in range(5))
    for host_number, rail, peer in failed:
        rank = (host_number - 1) * LOCAL + rail
        line = f"gpu{host_number}:{100 + rank}:{200 + rank} [{rail}] transport/net_ib.cc:1 NCCL WARN "
        text += "\n" + line + STATUS.format(peer, f"mlx5_{rail}") + "\n"
    return text


CASES = {
    "one leaf": ([(number, 2, number % 4 + 5) for number in (5, 6, 7, 8)], "leaf switch leaf-1-2", "fabric", "mlx5_2"),
    "one rail of all hosts": (
        [(n, 3, n % 8 + 1) for n in range(1, 9)],
        "GPU 3 and its rail mlx5_3",
        "fabric",
        "mlx5_3",
    ),
    "one host": ([(2, rail, 3 + rail) for rail in range(LOCAL)], "host gpu2", "rank", None),
    "no common part": ([(1, 0, 2), (6, 3, 7), (3, 2, 5)], None, "fabric", "mlx5_0"),
    "one peer": ([(n, 1, 7) for n in (1, 2, 3, 5)], "all of them name gpu7 (rank 25)", "peer", "mlx5_1"),
}


@pytest.mark.parametrize("name", CASES)
def test_with_a_dataset(tmp_path: Path, dataset: str, name: str) -> None:
    """Leaf switches are those of LLDP."""
    failed, text, fault, nic = CASES[name]
    cause = first(answer(tmp_path, JobOptions([], dataset=dataset), log=log(failed)))

    assert "completion-12" == cause.id
    assert (fault, nic) == (cause.at_fault.kind, cause.at_fault.nic)
    assert text is None or text in cause.summary
    assert (text is not None) == ("common to all" in cause.summary or "all of them name" in cause.summary)
    assert ("leaf" in cause.summary) == (name == "one leaf")
    if name == "one leaf":
        assert cause.next[0].startswith("leaf-1-2: ")
        row = next(row for row in cause.evidence if "leaf-1-2" in row.text)
        assert "4 ranks are on leaf-1-2; 0 of 28 others are; its ports: Ethernet5, Ethernet6" in row.text


def test_without_a_dataset(tmp_path: Path) -> None:
    """The rail and the host are in the log; a leaf is not."""
    for name, part in (("one rail of all hosts", "GPU 3 and its rail mlx5_3"), ("one host", "host gpu2")):
        cause = first(answer(tmp_path, log=log(CASES[name][0])))
        assert f"common to all of them: {part}" in cause.summary
        assert "leaf" not in cause.summary
    cause = first(answer(tmp_path, log=log(CASES["one peer"][0])))
    assert ("gpu7", [25]) == (cause.at_fault.host, cause.at_fault.ranks)


def test_a_leaf_whose_other_ranks_are_well_is_none(tmp_path: Path, dataset: str) -> None:
    """2 of 4 ranks of the leaf."""
    cause = first(answer(tmp_path, JobOptions([], dataset=dataset), log=log([(5, 2, 6), (6, 2, 7)])))

    assert "leaf switch" not in cause.summary
    assert "GPU 2 and its rail mlx5_2" in cause.summary


def test_the_gid_that_is_right_is_of_the_dataset(tmp_path: Path) -> None:
    """By its index and the interface's address; a GID in use that is right is no fault."""
    gids = [
        {"index": 0, "gid": "fe80::1", "type": "IB/RoCE v1"},
        {"index": 3, "gid": "::ffff:10.5.0.2", "type": "RoCE v2"},
    ]
    document = json.loads(host_report(2, gids=gids, netdevs=["eth0"]))
    for netdev in document["topology"]["netdevs"]:
        netdev["addresses"] = ["10.5.0.2/24"]
    small.take(tmp_path / "data", json.dumps(document).encode())
    (tmp_path / "job").mkdir()
    options = JobOptions([], dataset=str(tmp_path / "data"))
    text = log([(2, 0, 3), (2, 0, 4)])
    for local, remote, expected in (("fe80::5", "fe80::6", True), ("::ffff:10.5.0.2", "::ffff:10.5.0.3", False)):
        gids_of = text.replace(" hca ", f" localGid {local} remoteGids{remote} hca ")
        cause = first(answer(tmp_path / "job", options, log=gids_of))
        assert expected == ("index 3 is RoCE v2 with an IPv4 address" in cause.summary), local
        assert expected == any("NCCL_IB_GID_INDEX=3" in step for step in cause.next)
