"""Parts are compared with their nearest peers first, and what is found there does not vote again; values of a
difference are as a person would write them, and of tables only what differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.model.gpu import Gpu, GpuLink
from agent.model.nic import Netdev
from agent.model.node import NumaNode
from agent.rules.peers.comparing import PeerDifference, PeerGap, compare_parts
from agent.rules.peers.differs import find_source, format_difference, format_value
from agent.rules.peers.outliers import find_counter_source
from agent.rules.peers.parts import PeerPart

FIRST, SECOND = (1,), (2,)


def ports(*rows: tuple[Any, ...]) -> list[PeerPart]:
    """Interfaces in the order of the bus: MTU, position on the card, board."""
    return [
        PeerPart(
            "netdev", f"netdev:{n}", f"eth{n}", Netdev(id=str(n), label=f"eth{n}", mtu=mtu), frozenset(), str(n),
            "rail", board, position, None, f"{n:02}",
        )
        for n, (mtu, position, board) in enumerate(rows)
    ]  # fmt: skip


def differences(parts: Sequence[PeerPart], *free: str) -> list[tuple[list[str], bool, str]]:
    """The odd ones of each difference, whether they are halves, and the pattern."""
    return [
        ([one.parts[n].label for n in one.vote.odd], one.vote.halves, one.vote.pattern)
        for one in compare_parts(parts, free)
        if isinstance(one, PeerDifference)
    ]


def test_an_odd_port_of_a_position_does_not_vote_among_all() -> None:
    """The fourth first port has what second ports have, and is odd all the same; then the positions differ."""
    first = [(9000, FIRST, "A")] * 3 + [(1500, FIRST, "A")]
    rows = ports(*first, *[(1500, SECOND, "A")] * 4)

    assert [(["eth3"], False, ""), (["eth0", "eth1", "eth2"], False, "position on the card")] == differences(rows)
    assert [] == differences(rows, "netdev.mtu")


def test_halves_of_a_position_are_reported_once() -> None:
    """And take no part in the vote of all."""
    rows = ports(*[(9000, FIRST, "A")] * 2, *[(1500, FIRST, "A")] * 2, *[(9000, SECOND, "A")] * 4)

    assert [(["eth2", "eth3"], True, "order on the bus")] == differences(rows)
    other = ports(*[(9000, FIRST, "A")] * 2, *[(1500, FIRST, "A")] * 2, *[(1500, SECOND, "A")] * 4)
    assert [(["eth2", "eth3"], True, "order on the bus")] == differences(other)


def test_what_is_not_known_takes_no_part() -> None:
    """Nor is it the value of a group."""
    rows = ports((9000, FIRST, "A"), (None, FIRST, "A"), (1500, FIRST, "A"), (9000, FIRST, "A"))

    assert [(["eth2"], False, "")] == differences(rows)
    assert [] == differences(rows[:2]) == differences(rows[:1])


def test_a_part_that_states_nothing_is_named_where_three_times_as_many_do() -> None:
    """Of its own board and position; how many they are, and what one of them has."""

    def gaps(*rows: tuple[Any, ...]) -> list[tuple[str, str, Any, int]]:
        found = compare_parts(ports(*rows))
        return [(one.part.label, one.peer.label, one.value, one.count) for one in found if isinstance(one, PeerGap)]

    one, none = (9000, FIRST, "A"), (None, FIRST, "A")

    assert [("eth1", "eth0", 9000, 3)] == gaps(one, none, one, one)
    assert [("eth0", "eth2", 9000, 6), ("eth1", "eth2", 9000, 6)] == gaps(none, none, *[one] * 6)
    assert [] == gaps(none, none, *[one] * 5) == gaps(none, one, one)
    assert [] == gaps(none, one, one, (9000, SECOND, "A")) == gaps(none, one, one, (9000, FIRST, "B"))
    assert [] == gaps(*[one] * 4) == gaps(*[none] * 4)


def test_of_two_on_a_card_further_peers_decide() -> None:
    """Two ports of one position differ: neither is odd, until the other positions are asked."""
    rows = ports((9000, FIRST, "A"), (1500, FIRST, "A"), (9000, SECOND, "A"), (9000, SECOND, "A"))

    assert [(["eth1"], False, "")] == differences(rows)
    assert [(["eth1"], True, "")] == differences(rows[:2])


def test_boards_are_compared_in_settings_alone() -> None:
    """The MTU of a board of which there is one is compared with all; its driver is its own."""
    rows = ports(*[(9000, FIRST, "A")] * 3, (1500, FIRST, "B"))

    assert [(["eth3"], False, "")] == differences(rows)
    fixed = [part for part in rows if part.row.mtu == 9000]
    other = ports((9000, FIRST, "B"))[0]
    fec = [PeerPart(**{**_fields(part), "row": Netdev(id="x", label="x", max_speed_gbit_s=400.0)}) for part in fixed]
    slow = PeerPart(**{**_fields(other), "row": Netdev(id="y", label="y", max_speed_gbit_s=100.0)})
    assert [] == differences([*fec, slow])


def _fields(part: PeerPart) -> dict[str, Any]:
    return {name: getattr(part, name) for name in PeerPart.__struct_fields__}


def test_a_number_near_the_middle_is_the_middle() -> None:
    """The kernel keeps some memory of a node for itself; up to a twentieth is the same."""
    sizes = (100_000, 100_000, 95_000, 105_000, 94_999)
    nodes = [
        PeerPart("numa", "node", f"NUMA node {n}", NumaNode(id=n, memory_mib=size), frozenset(), str(n), order=str(n))
        for n, size in enumerate(sizes)
    ]

    assert [(["NUMA node 4"], False, "")] == differences(nodes)
    assert [] == differences(nodes[:4])


def test_a_number_is_compared_as_a_number_and_a_table_by_its_keys() -> None:
    """A report has 400 as 400.0; the order of keys is no difference."""
    rows = [Netdev(id=str(n), label="e", speed_gbit_s=speed) for n, speed in enumerate((400, 400.0, 400.0, 100.0))]
    tables = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}]
    lists = [["a", "b"], ["a", "b"], ["a", "b"], ["b", "a"]]

    assert [["e3"]] == [_odd(one) for one in compare_parts(_parts(rows))]
    assert [["e3"]] == [_odd(one) for one in compare_parts(_parts([Netdev(id="n", label="e", arp=t) for t in tables]))]
    bonds = [Netdev(id="n", label="e", bond={"mode": modes}) for modes in lists]
    assert [["e3"]] == [_odd(one) for one in compare_parts(_parts(bonds))]


def _parts(rows: Sequence[Netdev]) -> list[PeerPart]:
    return [
        PeerPart("netdev", f"netdev:{n}", f"e{n}", row, frozenset(), str(n), "rail", "A", order=str(n))
        for n, row in enumerate(rows)
    ]


def _odd(difference: PeerDifference) -> list[str]:
    return [difference.parts[n].label for n in difference.vote.odd]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (True, "", "on"),
        (False, "", "off"),
        ([False, False, False, True, True], "", "3,4"),
        ([False, False], "", "none"),
        ([], "", ""),
        ([1, True], "", "1,on"),
        (["0xffff", "0x8001"], "", "0xffff,0x8001"),
        ({"mode": "802.3ad", "slaves": ["a", "b"]}, "", "mode 802.3ad, slaves a,b"),
        ({str(n): n for n in range(9)}, "", ", ".join(f"{n} {n}" for n in range(8))),
        (700.0, "W", "700 W"),
        (1 << 36, "bytes", "64 GiB"),
        (3 << 19, "bytes", "1.5 MiB"),
        ((1 << 20) - 1, "bytes", "1048575 bytes"),
        (30, "%", "30%"),
        ("dscp", "", "dscp"),
    ],
)
def test_a_value_is_written_as_a_person_would(value: Any, unit: str, text: str) -> None:
    assert text == format_value(value, unit)


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        ({"26": 3, "48": 6}, {"26": 4, "48": 6}, ("DSCP 26", "3", "4")),
        ({"26": 3}, {"26": 3, "48": 6}, ("DSCP 48", "missing", "6")),
        (
            {str(n): 1 for n in range(9)},
            {},
            ("DSCP", *(", ".join(f"{n} {w}" for n in range(8)) for w in ("1", "missing"))),
        ),
        ({"26": 3}, "none", ("DSCP", "26 3", "none")),
        ("none", {"26": 3}, ("DSCP", "none", "26 3")),
        (1500, 9000, ("DSCP", "1500 bytes", "9000 bytes")),
    ],
)
def test_of_tables_only_what_differs_is_written(one: Any, other: Any, texts: tuple[str, str, str]) -> None:
    assert texts == format_difference("DSCP", one, other, "" if isinstance(one, dict | str) else "bytes")


@pytest.mark.parametrize(
    ("kind", "row", "path", "values", "counters"),
    [
        ("gpu", Gpu(id="0", label="GPU0", vendor="AMD"), "xgmi.width", "amd-smi xgmi --metric", "aer_dev_correctable"),
        ("gpu", Gpu(id="0", label="GPU0", vendor="AMD"), "vbios", "amd-smi static", "aer_dev_correctable"),
        ("gpu", Gpu(id="0", label="GPU0", vendor="NVIDIA"), "vbios", "nvidia-smi -q", "nvidia-smi -q"),
        ("gpu", Gpu(id="0", label="GPU0", vendor="Huawei"), "health", "npu-smi info", "aer_dev_correctable"),
        (
            "link",
            GpuLink(protocol="nvlink", link=0, state="active"),
            "version",
            "nvidia-smi nvlink -s",
            "nvidia-smi nvlink -e",
        ),
        (
            "link",
            GpuLink(protocol="xgmi", link=0, state="active"),
            "version",
            "amd-smi xgmi --metric",
            "amd-smi xgmi --metric",
        ),
        (
            "link",
            GpuLink(protocol="hccs", link=0, state="active"),
            "version",
            "npu-smi info -t topo",
            "npu-smi info -t hccs",
        ),
    ],
)
def test_the_source_of_a_value_is_a_tool_of_the_maker(
    kind: str, row: Gpu | GpuLink, path: str, values: str, counters: str
) -> None:
    part = PeerPart(kind, f"{kind}:0", "GPU0", row, frozenset(), "0")

    assert values == find_source(part, path)
    assert find_counter_source(part).startswith(counters)
