"""Rates of errors are compared within class and place; what differs by load or little is no outlier."""

from __future__ import annotations

from typing import Any

import pytest

from agent.fleet.questions.outliers import find_outliers
from tests.agent.fleet.small import asked, interface, node, port

NODES = 10
PORT, GPU, ERRORS = "port:0000:10:00.0/1", "gpu:0000:00:00.0", "symbol_error"


def window(moved: dict[str, dict[str, int]], seconds: float = 3600.0) -> dict[str, Any]:
    """Of a report."""
    return {"since": "2026-01-15T07:00:00Z", "seconds": seconds, "moved": moved}


def rated(n: int, moved: dict[str, dict[str, int]], seconds: float = 3600.0, **more: Any) -> bytes:
    """A node whose counters grew so in a window."""
    nic = port(n + 1, f"b83f:d203:0000:{n:04x}")
    return node(f"n{n:02d}", nics=[nic], counters_window=window(moved, seconds), **more)


def found(place: Any, *reports: bytes) -> list[tuple[Any, ...]]:
    """Answers about rates."""
    with asked(place, *reports) as tables:
        return [
            (each.attribute, each.hosts, each.value, each.usual, each.places, each.labels, each.usual_count, each.of)
            for each in find_outliers(tables).outliers
        ]


@pytest.mark.parametrize(
    ("usual", "odd", "value", "limit"),
    [
        ({}, {PORT: {ERRORS: 600}}, "600", "10"),
        ({}, {PORT: {ERRORS: 10}}, "10", "10"),
        ({PORT: {ERRORS: 40}}, {PORT: {ERRORS: 400}}, "400", "400"),
    ],
)
def test_a_rail_with_more_errors_than_its_peers(tmp_path, usual, odd, value, limit):
    reports = [rated(n, odd if n == 3 else usual) for n in range(NODES)]
    expected = (f"{value} per hour (symbol errors)", f"under {limit} per hour", ["rail 0"], ["mlx5_0/1"], 9, 10)
    assert found(tmp_path, *reports) == [("error-rate-wire", "n03", *expected)]


@pytest.mark.parametrize(
    ("usual", "odd", "seconds"),
    [
        ({}, {PORT: {ERRORS: 9}}, 3600.0),
        ({}, {PORT: {ERRORS: 2}}, 60.0),  # too few to say how fast
        ({}, {PORT: {ERRORS: 239}}, 86_400.0),  # 9.96 per hour
        ({PORT: {ERRORS: 40}}, {PORT: {ERRORS: 399}}, 3600.0),
        ({}, {PORT: {"out_of_sequence": 90_000, "port_rcv_data": 10**12, "rp_cnp_handled": 500}}, 3600.0),
    ],
)
def test_what_is_no_outlier(tmp_path, usual, odd, seconds):
    assert found(tmp_path, *(rated(n, odd if n == 3 else usual, seconds) for n in range(NODES))) == []


@pytest.mark.parametrize(("downs", "outliers"), [(2, 0), (3, 1)])
def test_times_that_a_link_went_down(tmp_path, downs, outliers):
    reports = [rated(n, {PORT: {"link_downed": downs}} if n == 3 else {}) for n in range(NODES)]
    assert len(found(tmp_path, *reports)) == outliers


def test_without_enough_windows_nothing_is_compared(tmp_path):
    """A report without one is no peer without errors."""
    alone = [node(f"n{n:02d}", nics=[port(n + 1, f"b83f:d203:0000:{n:04x}")]) for n in range(4, NODES)]
    assert found(tmp_path, *(rated(n, {PORT: {ERRORS: 600}} if n == 3 else {}) for n in range(4)), *alone) == []


def test_where_a_fifth_has_many_nothing_is_usual(tmp_path):
    assert found(tmp_path, *(rated(n, {PORT: {ERRORS: 600 + n}} if n < 3 else {}) for n in range(NODES))) == []


def test_a_port_and_its_interface_are_one_answer_and_nodes_alike_are_folded(tmp_path):
    eth = {**interface("eth0", "b8:3f:d2:00:00:01"), "id": "0000:10:00.0", "nic": "0000:10:00.0"}
    moved = {PORT: {ERRORS: 600}, "netdev:0000:10:00.0": {"rx_crc_errors_phy": 700}}
    more = {**moved, "netdev:0000:10:00.0": {"rx_crc_errors_phy": 900}}
    reports = [rated(n, {3: moved, 5: more}.get(n, {}), netdevs=[eth]) for n in range(20)]
    ((attribute, hosts, value, *_, labels, _, _),) = found(tmp_path, *reports)
    assert (attribute, hosts, labels) == ("error-rate-wire", "n[03,05]", ["eth0"])
    assert value == "700 to 900 per hour (packets received with CRC errors)"


@pytest.mark.parametrize(
    ("subject", "name", "family", "label"),
    [
        (GPU, "replays", "pcie", "GPU0"),
        ("pci:0000:00:00.0", "correctable.RxErr", "pcie", "GPU0"),
        ("pci:0000:99:00.0", "correctable.BadTLP", "pcie", "0000:99:00.0"),
        ("link:0000:00:00.0/7", "crc", "link", "GPU0/7"),
    ],
)
def test_other_parts_are_compared_by_their_address(tmp_path, subject, name, family, label):
    reports = [rated(n, {subject: {name: 50}} if n == 3 else {}) for n in range(NODES)]
    ((attribute, hosts, _, _, places, labels, *_),) = found(tmp_path, *reports)
    assert (attribute, hosts, places, labels) == (f"error-rate-{family}", "n03", [subject], [label])


@pytest.mark.parametrize("seconds", [None, 0.0, -5.0, 1e12])
def test_a_window_that_cannot_be_has_no_rates(tmp_path, seconds):
    assert found(tmp_path, *(rated(n, {PORT: {ERRORS: 600}} if n else {}, seconds) for n in range(NODES))) == []
