"""show_gids: the used GIDs of every port, and whether they are all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.facts import GidEntry
from probes.rdma.ofed_scripts import parse_show_gids
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

TEXT = """DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t0\tfe80:0000:0000:0000:0002:c9ff:fea1:0010\t\t\tv1\trdma0
mlx5_0\t1\t1\tfe80:0000:0000:0000:0002:c9ff:fea1:0010\t\t\tv2\trdma0
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:0105\t192.168.1.5  \tv2\trdma0
mlx5_1\t1\t0\tfe80:0000:0000:0000:0002:c903:00a1:0011\t\t\tv1
n_gids_found=4
"""

# file -> [(device, indexes by type, interfaces, whether the table is known to be whole)]
CORPUS = {
    "a800-vm-4nic-trailing-spaces.txt": [
        (f"mlx5_{n}", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, (f"eth{n}",), False) for n in range(3)
    ],
    "container-gids-start-at-4.txt": [("mlx5_0", {"IB/RoCE v1": [4, 6], "RoCE v2": [5, 7]}, ("net1",), False)],
    "cx5-mce0-second-port-v1only.txt": [
        ("mlx5_0", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, ("mce0",), True),
        ("mlx5_1", {"IB/RoCE v1": [0]}, (), True),
    ],
    "rdma0-simple.txt": [("mlx5_0", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, ("rdma0",), True)],
}


@pytest.mark.parametrize("name", CORPUS)
def test_real_outputs_say_what_their_machines_had(corpus: Path, name: str) -> None:
    """With the command's echo, trailing spaces, expanded tabs, no interface; in a pod indexes begin at 4."""
    result = parse_show_gids((corpus / "text/ib-show_gids" / name).read_text())

    assert CORPUS[name] == [
        (device.name, by_type(port.gids), port.netdevs, port.gids_known)
        for device in result.devices
        for port in device.ports
    ]
    assert bool(result.cut) != result.devices[0].ports[0].gids_known


def test_every_real_output_is_known(corpus: Path) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(CORPUS) == {file.name for file in (corpus / "text/ib-show_gids").iterdir()}


def by_type(gids: tuple[GidEntry, ...]) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for gid in gids:
        result.setdefault(gid.type or "", []).append(gid.index)
    return result


def test_a_row_is_read_whole() -> None:
    """An IPv4 address stands between the GID and its version, or does not."""
    ports = [device.ports[0] for device in parse_show_gids(TEXT).devices]

    assert GidEntry(3, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "rdma0") == ports[0].gids[2]
    assert GidEntry(0, "fe80:0000:0000:0000:0002:c903:00a1:0011", "IB/RoCE v1", None) == ports[1].gids[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT.replace("=4", "=9"), "show_gids: 9 GIDs were found, the text holds 4"),
        (TEXT[: TEXT.index("n_gids")], "show_gids: the closing count is missing, the table may be cut off"),
    ],
)
def test_a_table_that_is_not_whole_is_named(text: str, why: str) -> None:
    """The closing count tells how many rows there must be."""
    result = parse_show_gids(text)

    assert (why,) == result.cut
    assert not any(port.gids_known for device in result.devices for port in device.ports)


def test_an_empty_table_is_an_answer() -> None:
    """The head with a count of none says that there are no GIDs."""
    assert ((), ()) == parse_show_gids("".join(TEXT.splitlines(True)[:2]) + "n_gids_found=0\n")


def test_a_text_without_a_table_is_unparsable() -> None:
    """The echoed command alone is no table."""
    with pytest.raises(ParseError, match="table"):
        parse_show_gids("show_gids\n")


@given(st.integers(0, len(TEXT)))
def test_a_cut_output_says_only_what_is_true(length: int) -> None:
    """Wherever the text ends, no half row becomes a fact, and no part of a table the whole."""
    says_only_what_is_true(parse_show_gids, TEXT, length)


@given(damaged(TEXT) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_show_gids, text)
