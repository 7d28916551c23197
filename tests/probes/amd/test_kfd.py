"""The compute driver's graph: real trees of the corpus, a described machine, and what each file may refuse."""

from __future__ import annotations

import struct
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.amd.kfd import NODES, TOPOLOGY, address_of
from probes.amd.metrics import parse_metrics, parse_xgmi
from probes.amd.probe import ON_PACKAGE, PER_HOP, split_bandwidth
from probes.gpu.facts import Gpu, XgmiPorts
from probes.host.interface import Denied, Failed
from probes.probe import Status
from probes.sources.open_source import open_source
from tests.machines import machine
from tests.probes.machine import Machine, ask, read_facts

SHAPE = "8xmi300x-2s-8xcx7-roce"
XGMI, PCIE = 11, 2


outcome, facts = partial(ask, "kfd"), partial(read_facts, "kfd")


def graph(*gpus: dict[str, int], links: dict[int, list[tuple[int, int, int]]] | None = None) -> Machine:
    """A graph of these GPUs from node 1 on; `links`: node -> (target, weight, MB/s) of its XGMI links."""
    host = Machine(live=True, kind="live")
    host.put({f"{TOPOLOGY}/generation_id": "2\n", f"{NODES}/0/properties": "cpu_cores_count 64\nsimd_count 0\n"})
    for number, own in enumerate(gpus, 1):
        result = {"simd_count": 416, "location_id": number << 8, "gfx_target_version": 90010, "hive_id": 7} | own
        host.put({f"{NODES}/{number}/properties": "".join(f"{key} {value}\n" for key, value in result.items())})
        host.put({f"{NODES}/{number}/io_links/0/properties": f"type {PCIE}\nnode_to 0\nweight 20\n"})
        for place, (target, weight, mbyte_s) in enumerate((links or {}).get(number, ()), 1):
            text = f"type {XGMI}\nnode_to {target}\nweight {weight}\nmax_bandwidth {mbyte_s}\n"
            host.put({f"{NODES}/{number}/io_links/{place}/properties": text})
    return host


def joined(gpus: tuple[Gpu, ...]) -> dict[str | None, Counter[str | None]]:
    """How many links each GPU has to which other."""
    return {gpu.address: Counter(link.remote_address for link in gpu.nvlinks) for gpu in gpus}


def test_the_described_machine_is_one_hive() -> None:
    """Eight GPUs, seven links of 64 GB/s each, and nothing missing; what acts on a device is not asked."""
    reading = outcome(machine(SHAPE))
    gpus = reading.facts.gpus

    assert (Status.OK, None, 8) == (reading.status, reading.reason, len(gpus))
    assert [[64.0] * 7] * 8 == [[link.speed_gbyte_s for link in gpu.nvlinks] for gpu in gpus]
    assert {("SPX", "NPS1", 1, "5a00000000000001", 196_608, "113-M3000100-103")} == {
        (g.compute_partition, g.memory_partition, g.partitions, g.hive, g.memory_mib, g.vbios) for g in gpus
    }
    assert 8 == len({gpu.uuid for gpu in gpus})
    assert 28 == len(reading.facts.pairs)
    assert not [source for source in reading.sources if "xgmi_error" in source]


@pytest.mark.parametrize(
    ("tree", "gpus", "partitions", "hives", "links", "pairs"),
    [
        ("kfd-8x-mi210-2hives", 8, {1: 8}, 2, {3: 8}, 12),
        ("kfd-8x-mi308x-cpx4", 8, {4: 8}, 1, {7: 8}, 28),
        ("kfd-8x-mi300x-cpx8", 8, {8: 7, 7: 1}, 1, {7: 8}, 28),
        ("kfd-1x-vega-plus-copy", 1, {None: 1}, 1, {0: 1}, 0),
    ],
)
def test_real_graphs(
    corpus: Path,
    tree: str,
    gpus: int,
    partitions: dict[int | None, int],
    hives: int,
    links: dict[int, int],
    pairs: int,
) -> None:
    """Partitions are no GPUs; links inside a package are none; two hives of four are what bridges make."""
    read = facts(open_source(str(corpus / "accelerators" / "amd" / f"{tree}.tar.xz"), None))

    assert gpus == len(read.gpus)
    assert partitions == Counter(gpu.partitions for gpu in read.gpus)
    assert hives == len({gpu.hive for gpu in read.gpus})
    assert links == Counter(len(gpu.nvlinks) for gpu in read.gpus)
    assert pairs == len(read.pairs)


def test_rates_of_real_graphs(corpus: Path) -> None:
    """Between partitions the driver states none."""

    def rates(tree: str) -> set[float | None]:
        read = facts(open_source(str(corpus / "accelerators" / "amd" / f"{tree}.tar.xz"), None))
        return {link.speed_gbyte_s for gpu in read.gpus for link in gpu.nvlinks}

    assert {50.0} == rates("kfd-8x-mi210-2hives")
    assert {None} == rates("kfd-8x-mi308x-cpx4")


def test_partitions_are_parts_of_one_gpu() -> None:
    """Nodes of one address and identity; a link inside a package is none, and a route goes through both packages."""
    route = PER_HOP + 2 * ON_PACKAGE
    nodes = [{"location_id": place, "unique_id": place >> 8} for place in (0x100, 0x101, 0x200, 0x201)]
    links = {
        node: [(other, ON_PACKAGE if (node < 3) == (other < 3) else route, 0) for other in range(1, 5) if other != node]
        for node in range(1, 5)
    }
    outer = facts(graph(*nodes, links=links))
    far = {node: [(other, weight + PER_HOP, rate) for other, weight, rate in row] for node, row in links.items()}

    assert {"0000:01:00.0": {"0000:02:00.0": 1}, "0000:02:00.0": {"0000:01:00.0": 1}} == joined(outer.gpus)
    assert ([2, 2], 1, {None}) == (
        [gpu.partitions for gpu in outer.gpus],
        len(outer.pairs),
        {link.speed_gbyte_s for gpu in outer.gpus for link in gpu.nvlinks},
    )
    assert {"0000:01:00.0": {}, "0000:02:00.0": {}} == joined(facts(graph(*nodes, links=far)).gpus)  # two hops


def test_two_identities_at_one_address_are_reported() -> None:
    """A copy that somebody made of a node is no second partition; an identity has up to 20 digits."""
    first, copy = ({"location_id": 0x1900, "unique_id": identity} for identity in (10**19, 10**19 + 1))
    reading = outcome(graph(first, copy))

    assert "0000:19:00.0: its 2 nodes in the graph have different identities" == reading.reason
    assert [(None, f"GPU-{10**19:016x}")] == [(gpu.partitions, gpu.uuid) for gpu in reading.facts.gpus]


def test_mi250_has_pairs_of_four_two_and_one_link_and_pairs_over_a_third() -> None:
    """200, 100 and 50 GB/s; of two hops the driver states no rate, and there is no link."""
    links = {
        1: [(2, 15, 200_000), (3, 15, 100_000), (4, 30, 0)],
        2: [(1, 15, 200_000), (3, 15, 50_000), (4, 15, 50_000)],
        3: [(1, 15, 100_000), (2, 15, 50_000), (4, 15, 50_000)],
        4: [(1, 30, 0), (2, 15, 50_000), (3, 15, 50_000)],
    }
    read = facts(graph({"unique_id": 5}, {"unique_id": 5}, {"unique_id": 6}, {"unique_id": 6}, links=links))
    first = joined(read.gpus)["0000:01:00.0"]

    assert {"0000:02:00.0": 4, "0000:03:00.0": 2} == first
    assert 6 == len(read.pairs)
    assert {50.0} == {link.speed_gbyte_s for gpu in read.gpus for link in gpu.nvlinks}
    assert [4, 5, 6, 7, 8, 9] == [link.link for link in read.gpus[0].nvlinks]  # four for each GPU in bus order
    assert {None} == {gpu.uuid for gpu in read.gpus}  # both dies of a module have one identity


def test_a_route_in_one_direction_is_no_pair() -> None:
    """Nor is a link to a node that is not there."""
    read = facts(graph({}, {}, links={1: [(2, 15, 50_000), (9, 15, 50_000)]}))

    assert {"0000:01:00.0": Counter({"0000:02:00.0": 1}), "0000:02:00.0": Counter()} == joined(read.gpus)
    assert () == read.pairs
    assert (None, "the driver shows no XGMI link of this GPU") == (
        read.gpus[0].nvlink_reason,
        read.gpus[1].nvlink_reason,
    )


def test_peers_over_pcie() -> None:
    """A link to a processor is none to a GPU; a folder with no link to a GPU is an answer, and no folder is none."""
    host = graph({}, {}, {})
    host.put({f"{NODES}/1/p2p_links/0/properties": f"type {PCIE}\nnode_to 0\nweight 52\n"})
    host.put({f"{NODES}/1/p2p_links/1/properties": f"type {PCIE}\nnode_to 3\nweight 40\n"})
    host.put({f"{NODES}/2/p2p_links/0/properties": f"type {PCIE}\nnode_to 0\nweight 52\n"})

    assert [("0000:03:00.0",), (), None] == [gpu.pcie_peers for gpu in facts(host).gpus]


def test_peers_of_real_graphs(corpus: Path) -> None:
    """Each MI210 reaches the four of the other hive; in one hive there is nothing to reach over PCIe."""

    def peers(tree: str) -> set[int | None]:
        read = facts(open_source(str(corpus / "accelerators" / "amd" / f"{tree}.tar.xz"), None))
        return {None if gpu.pcie_peers is None else len(gpu.pcie_peers) for gpu in read.gpus}

    assert {4} == peers("kfd-8x-mi210-2hives")
    assert {0} == peers("kfd-8x-mi308x-cpx4")


@pytest.mark.parametrize(("hive", "said"), [({"hive_id": 0}, "0"), ({"hive_id": 255}, "ff")])
def test_no_hive_is_zero(hive: dict[str, int], said: str) -> None:
    """As the driver prints it; the report's ids are hexadecimal."""
    assert [said] == [gpu.hive for gpu in facts(graph(hive)).gpus]


def test_an_old_driver_states_no_hive() -> None:
    """Then it is not known, and not "none"."""
    host = graph({})
    host.put({f"{NODES}/1/properties": "simd_count 256\nlocation_id 6400\n"})

    assert [(None, None)] == [(gpu.hive, gpu.uuid) for gpu in facts(host).gpus]


def test_gpus_that_may_not_be_seen_are_counted() -> None:
    """A container sees its own; one that sees none is denied."""
    host = graph({}, {})
    host.refused[f"{NODES}/2/properties"] = Denied("EPERM", "EPERM")
    reading = outcome(host)
    host.refused[f"{NODES}/1/properties"] = Denied("EPERM", "EPERM")

    assert (Status.PARTIAL, 1) == (reading.status, len(reading.facts.gpus))
    assert "1 GPUs of the graph may not be seen here" in (reading.reason or "")
    assert Status.DENIED == outcome(host).status


def test_a_graph_without_gpus_is_an_answer() -> None:
    """amdgpu failed on all of them: the driver offers none, and says so."""
    read = facts(graph())

    assert ((), 0, "0x1002") == (read.gpus, read.attached, read.vendor)


def test_no_graph_is_absent() -> None:
    """No compute driver is loaded."""
    assert Status.ABSENT == outcome(Machine(live=True, kind="live")).status


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (f"{NODES}/1/properties", "nothing\n", "no properties in"),
        (f"{NODES}/1/io_links/1/properties", "type 11\nweight 15\n", "no 'node_to'"),
        (f"{NODES}/1/io_links/1/properties", "\n", "no properties in"),
    ],
)
def test_what_is_damaged_is_a_gap(path: str, text: str, said: str) -> None:
    """And loses nothing else."""
    host = graph({}, {}, links={1: [(2, 15, 50_000)], 2: [(1, 15, 50_000)]})
    host.put({path: text})
    reading = outcome(host)

    assert said in (reading.reason or "")
    assert "0000:02:00.0" in {gpu.address for gpu in reading.facts.gpus}


@pytest.mark.parametrize(
    ("refused", "unread", "why"),
    [
        ({f"{NODES}/1/io_links/1/properties": Failed("EIO", "EIO")}, 1, "1 of its links in the driver's graph"),
        ({f"{NODES}/1/io_links/1/properties": Denied("EPERM", "EPERM")}, 0, "the driver shows no XGMI link"),
        (
            {f"{NODES}/1/io_links/{link}/properties": Denied("EPERM", "EPERM") for link in (0, 1)},
            0,
            "its links in the driver's graph could not be read",
        ),
    ],
)
def test_links_that_could_not_be_read(refused: dict[str, Exception], unread: int, why: str) -> None:
    """A GPU whose only link is that to a processor has no XGMI; one without any link was not read."""
    host = graph({}, {}, links={1: [(2, 15, 50_000)], 2: [(1, 15, 50_000)]})
    host.refused.update(refused)  # type: ignore[arg-type]
    gpu = facts(host).gpus[0]

    assert unread == gpu.nvlinks_unread
    assert (gpu.nvlink_reason or "").startswith(why)
    assert (False if "no XGMI" in why else None) is gpu.nvlink_supported


def test_a_graph_that_changes_while_it_is_read_is_torn() -> None:
    """The generation moves when a GPU comes or goes."""
    host = graph({})
    read, seen = host.read, iter((b"2\n", b"3\n"))
    host.read = lambda path, limit=0: next(seen) if path.endswith("generation_id") else read(path)  # type: ignore[method-assign]

    assert "changed while it was read" in (outcome(host).reason or "")


def test_a_suspended_gpu_gets_no_further_read() -> None:
    """The graph is the driver's own; files of the function would wake it."""
    host = graph({})
    place = "/sys/bus/pci/devices/0000:01:00.0"
    host.put({f"{place}/power/runtime_status": "suspended\n", f"{place}/vbios_version": "1\n"})
    reading = outcome(host)

    assert "0000:01:00.0 is suspended and was left asleep" in (reading.reason or "")
    assert [f"{place}/power/runtime_status"] == [path for path in host.asked if path.startswith(place)]
    assert [None] == [gpu.vbios for gpu in reading.facts.gpus]


def early_metrics(minor: int, size: int, replays: int, xgmi: int) -> bytes:
    """A table of a version without states of ports: 5 replays, 1 rollover, 16 lanes at 32 Gb/s, at these offsets."""
    table = bytearray(b"\xff" * size)
    struct.pack_into("<HBB", table, 0, size, 1, minor)
    struct.pack_into("<QQ", table, replays, 5, 1)
    struct.pack_into("<HH", table, xgmi, 16, 32)
    return bytes(table)


@pytest.mark.parametrize("table", [(4, 288, 88, 52), (5, 328, 120, 84), (6, 1664, 104, 64)])
def test_earlier_versions_have_counts_and_rate_elsewhere_and_no_states(table: tuple[int, int, int, int]) -> None:
    """By kgd_pp_interface.h: MI300 with firmware of 2023 and 2024."""
    content = early_metrics(*table)

    assert {"replays": 5, "replay_rollovers": 1} == parse_metrics(content)
    assert XgmiPorts(16, 32) == parse_xgmi(content)
    assert None is parse_xgmi(content[:-1])
    nothing = struct.pack("<HBB", table[1], 1, table[0]).ljust(table[1], b"\xff")
    assert ({}, None) == (parse_metrics(nothing), parse_xgmi(nothing))


def metrics(
    replays: int,
    rollovers: int,
    version: tuple[int, int] = (1, 7),
    size: int = 2208,
    rate: tuple[int, int] = (0xFFFF, 0xFFFF),
    states: tuple[int, ...] = (),
) -> bytes:
    """A table as firmware fills it, with these counts, and lanes, rate and states of XGMI ports."""
    table = bytearray(b"\xff" * size)
    struct.pack_into("<HBB", table, 0, size, *version)
    struct.pack_into("<HH", table, 72, *rate)
    struct.pack_into("<QQ", table, 112, replays, rollovers)
    struct.pack_into(f"<{len(states)}H", table, 264, *states)
    return bytes(table)


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        (metrics(5, 1), {"replays": 5, "replay_rollovers": 1}),
        (metrics(0, 0), {"replays": 0, "replay_rollovers": 0}),
        (metrics((1 << 64) - 1, 3), {"replay_rollovers": 3}),
        (metrics(5, 1, (1, 8), 3360), {"replays": 5, "replay_rollovers": 1}),
        (metrics(5, 1, (1, 8)), {}),
        (metrics(5, 1, size=3360), {}),
        (metrics(5, 1, (1, 9), 3360), {}),
        (metrics(5, 1, (1, 6)), {}),
        (metrics(5, 1, (2, 7)), {}),
        (metrics(5, 1, size=2216), {}),
        (metrics(5, 1)[:-1], {}),
        (metrics(5, 1) + b"\0", {}),
        (b"\xa0\x08\x01\x07".ljust(2207, b"\0"), {}),
        (b"", {}),
    ],
)
def test_metrics_of_the_known_version_alone(table: bytes, counts: dict[str, int]) -> None:
    """Another version has other numbers in these places."""
    assert counts == parse_metrics(table)


OFF = 0xFFFF


def attributes(*rows: tuple[int, int, tuple[int, ...]], count: int | None = None) -> bytes:
    """A table of version 1.9: id, type and values of each attribute."""
    body = b"".join(
        struct.pack(f"<Q{len(values)}{'BbHhIiQq'[kind]}", kind << 20 | name << 10 | len(values), *values)
        for name, kind, values in rows
    )
    return struct.pack("<HBBi", 8 + len(body), 1, 9, len(rows) if count is None else count) + body


LISTED = (
    *((3, 2, (650,)), (18, 2, (16,)), (19, 2, (38,)), (25, 6, (5,)), (26, 6, ((1 << 64) - 1,))),
    *((29, 6, 8 * (9,)), (31, 2, (1, 1, 1, 1, 1, 1, 1, OFF))),
)


def test_a_table_that_lists_its_attributes() -> None:
    """Version 1.9: in any order, each with its type and number of values."""
    for rows in (LISTED, LISTED[::-1]):
        assert {"replays": 5} == parse_metrics(attributes(*rows))
        assert XgmiPorts(16, 38, (*7 * ("active",), "unknown")) == parse_xgmi(attributes(*rows))


@pytest.mark.parametrize(
    "table",
    [
        attributes(*LISTED, count=len(LISTED) + 1),
        attributes(*LISTED)[:-1],
        attributes(*LISTED) + b"\0",
        attributes(*LISTED, count=-1),
        attributes((18, 2, (16,)), (19, 2, (0xFFFF,))).replace(struct.pack("<Q", 2 << 20 | 18 << 10 | 1), b"\xff" * 8),
        struct.pack("<HBBi", 8, 1, 9, 1 << 30),
        struct.pack("<HBB", 4, 1, 9),
    ],
)
def test_a_listed_table_that_is_cut_or_strange_states_nothing(table: bytes) -> None:
    """Neither a part of it: what is behind the strange word may be anything."""
    assert ({}, None) == (parse_metrics(table), parse_xgmi(table))


@pytest.mark.parametrize(
    ("table", "ports"),
    [
        (
            metrics(0, 0, rate=(16, 32), states=(1, 1, 1, 1, 1, 1, 1, 0)),
            XgmiPorts(16, 32, (*7 * ("active",), "inactive")),
        ),
        (
            metrics(0, 0, (1, 8), 3360, rate=(16, 38), states=(1, 1, 1, 1, 1, 1, 1, 0)),
            XgmiPorts(16, 38, (*7 * ("active",), "inactive")),
        ),
        (
            metrics(0, 0, rate=(16, 32), states=(1, 1, 1, 1, 1, 1, 1, OFF)),
            XgmiPorts(16, 32, (*7 * ("active",), "unknown")),
        ),
        (metrics(0, 0, rate=(8, 32), states=8 * (0,)), XgmiPorts(8, 32, 8 * ("inactive",))),
        (metrics(0, 0, rate=(16, 32)), XgmiPorts(16, 32)),
        (metrics(0, 0, rate=(16, 32), states=(1, 2, 1, 1, 1, 1, 1, 0)), XgmiPorts(16, 32)),
        (metrics(0, 0, rate=(0, 32)), XgmiPorts(None, 32)),
        (metrics(0, 0, rate=(16, 0)), XgmiPorts(16)),
        (metrics(0, 0, rate=(1, 1)), XgmiPorts(1, 1)),
        (metrics(0, 0, rate=(0xFFFE, OFF)), XgmiPorts(0xFFFE)),
        (metrics(0, 0), None),
        (metrics(0, 0, (1, 6), rate=(16, 32)), None),
        (metrics(0, 0, rate=(16, 32))[:-1], None),
        (b"", None),
    ],
)
def test_xgmi_ports_of_a_table(table: bytes, ports: XgmiPorts | None) -> None:
    """Words that are all ones are not stated; a port with them is off. No state is guessed from a strange one."""
    assert ports == parse_xgmi(table)


@pytest.mark.parametrize(("status", "counts"), [("active", {"replays": 5, "replay_rollovers": 1}), ("resuming", None)])
def test_metrics_are_read_of_a_gpu_that_is_awake(status: str, counts: dict[str, int] | None) -> None:
    """Reading them wakes one that sleeps."""
    host = graph({})
    place = "/sys/bus/pci/devices/0000:01:00.0"
    host.put({f"{place}/power/runtime_status": f"{status}\n"})
    host.files.add(f"{place}/gpu_metrics", metrics(5, 1, rate=(16, 32)))

    assert counts == facts(host).gpus[0].pcie_counters
    assert (XgmiPorts(16, 32) if counts else None) == facts(host).gpus[0].xgmi
    assert (f"{place}/gpu_metrics" in host.asked) is (counts is not None)


def test_metrics_that_refuse_are_a_gap() -> None:
    """A GPU without the file has none."""
    host = graph({})
    place = "/sys/bus/pci/devices/0000:01:00.0"
    host.put({f"{place}/power/runtime_status": "active\n"})
    assert (None, None) == (outcome(host).reason, facts(host).gpus[0].pcie_counters)
    host.refused[f"{place}/gpu_metrics"] = Denied("gpu_metrics: EACCES", "EACCES")
    assert "gpu_metrics: EACCES" in (outcome(host).reason or "")


def test_errors_by_block() -> None:
    """Of XGMI, PCIe and memory; a file that says nothing adds nothing."""
    host = graph({})
    place = "/sys/bus/pci/devices/0000:01:00.0"
    host.put({f"{place}/ras/xgmi_wafl_err_count": "ue: 1\nce: 7\nde: 0\n", f"{place}/ras/umc_err_count": "\n"})

    assert {"xgmi_wafl.uncorrectable": 1, "xgmi_wafl.correctable": 7, "xgmi_wafl.deferred": 0} == (
        facts(host).gpus[0].error_counts
    )
    assert facts(graph({})).gpus[0].error_counts is None


@pytest.mark.parametrize(
    ("gfx", "mbyte_s", "links"),
    [
        (90006, 50_000, (1, 50.0)),
        (90402, 128_000, (2, 64.0)),
        (90500, 76_800, (1, 76.8)),
        (90500, 64_000, (1, 64.0)),
        (90402, 50_000, (1, 50.0)),
        (None, 50_000, (1, 50.0)),
        (90010, 850_000, (1, 850.0)),
    ],
)
def test_a_bandwidth_is_so_many_links(gfx: int | None, mbyte_s: int, links: tuple[int, float]) -> None:
    """Of a rate that no number of links makes, one link is all that is known."""
    assert links == split_bandwidth(gfx, mbyte_s)


@given(st.dictionaries(st.sampled_from(["location_id", "domain", "device_id"]), st.integers(0, 1 << 64)))
def test_any_location_is_an_address_or_none(properties: dict[str, int]) -> None:
    """Function 0, whatever the low bits hold, but of virtual functions."""
    address = address_of(properties)
    assert address is None or address.endswith(".0") or properties["device_id"] in (0x74B5, 0x74B9)


class TestKernelSettings:
    """What RCCL tests of the kernel, read where a GPU of AMD is."""

    @staticmethod
    def settings(files: dict[str, str], *denied: str) -> tuple[dict[str, str], str | None]:
        """Of a machine with these files besides a graph."""
        host = graph({}).put(files)
        host.refused.update({path: Denied(f"{path}: Permission denied", "EACCES") for path in denied})
        reading = outcome(host)
        return dict(reading.facts.settings), reading.reason

    def test_of_the_running_kernel(self) -> None:
        """Options that are not set, or not there, are "n"; a module is no "y"."""
        text = "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=m\nX_CONFIG_PCI_P2PDMA=n\n"
        result, missing = self.settings(
            {
                "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
                "/proc/sys/kernel/numa_balancing": "1\n",
                "/boot/config-6.8.0-60-generic": text,
                "/sys/kernel/memory_peers/amdkfd/version": "1.0\n",
            }
        )

        assert missing is None
        assert {
            "numa_balancing": "1",
            "CONFIG_PCI_P2PDMA": "y",
            "CONFIG_DMABUF_MOVE_NOTIFY": "m",
            "peer_memory": "/sys/kernel/memory_peers/amdkfd/version",
        } == result

    @pytest.mark.parametrize(
        "files",
        [
            {},
            {"/proc/sys/kernel/osrelease": "../../etc\n"},
            {"/proc/sys/kernel/osrelease": "6.8\n", "/boot/config-6.8": "nothing\n"},
            {"/proc/sys/kernel/osrelease": "6.8\n"},
            {"/proc/sys/kernel/numa_balancing": "yes\n"},
        ],
    )
    def test_what_is_not_there_is_not_known(self, files: dict[str, str]) -> None:
        """A name that is no release names no file; a file that is no configuration holds no options."""
        assert {} == self.settings(files)[0]

    def test_a_configuration_that_may_not_be_read_is_said(self) -> None:
        """Some distributions keep it from users."""
        result, missing = self.settings({"/proc/sys/kernel/osrelease": "6.8\n"}, "/boot/config-6.8")

        assert ({}, "/boot/config-6.8: Permission denied") == (result, missing)
