"""Nodes that lost devices stay among their peers, small classes are compared with wider ones, and answers from one node
of each kind are those from all nodes.
"""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from pyarrow import parquet

from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect, schema
from agent.fleet.page import reading
from agent.fleet.page.from_dataset import PageOptions, build_scene
from agent.fleet.questions.attributes import PARTS, THINGS
from agent.fleet.questions.baseline import CLASS
from agent.fleet.questions.kinds import KINDS, DigestGroups
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import STATES, build_summary
from agent.fleet.tables import COMPARED, digest_column
from bench.fleet.plan import plan
from tests.agent.fleet.small import asked, node, take

NODES, ALL, HALF = 12, "abcdefgh", "abcd"
TC, HCA, QPS = ("NCCL_IB_TC", "106"), ("NCCL_IB_HCA", "mlx5_9"), ("NCCL_IB_QPS_PER_CONNECTION", "4")
FAULTS = {
    "gpu-link-narrow": 1, "nic-firmware-one": 1, "vbios": 1, "mtu-1500": 1, "pfc-off": 2, "port-down": 1, "acs-on": 1,
    "read-request-small": 1, "unknown-checks": 1, "gpus-half-lost": 1, "nic-board": 1, "nvlink-domain": 1, "stale": 1,
}  # fmt: skip
OF_ALL = {*(part.counts.sql for part in PARTS if part.table in COMPARED), STATES.sql}


def told(tables):
    return sorted(
        (outlier.attribute, outlier.hosts, outlier.value, outlier.usual) for outlier in find_outliers(tables).outliers
    )


def made(n, hour=0, gpus=ALL, **more):
    return node(f"n{n:02d}", hour, gpus=gpus, **more)


@pytest.mark.parametrize("gpus", [HALF, "abc", ""])
def test_a_node_that_lost_most_gpus(tmp_path, gpus):
    with asked(tmp_path, *(made(n, gpus=gpus if n == 3 else ALL) for n in range(NODES))) as tables:
        answer = find_outliers(tables)
    assert [(outlier.attribute, outlier.hosts, outlier.value, outlier.usual) for outlier in answer.outliers] == [
        ("gpus", "n03", str(len(gpus)), "8")
    ]
    assert (answer.classes, answer.too_few) == ({"V P, 8x GPU": NODES}, {})


def test_nodes_that_lost_their_gpus_together_are_found_in_the_history(tmp_path):
    """Half of them is as many as a class of its own would have."""
    lost = range(6)
    first = [made(n) for n in range(40)]
    then = [made(n, 1, gpus=HALF if n in lost else ALL) for n in range(40)]
    with asked(tmp_path, *first, *then) as tables:
        assert told(tables) == [("gpus", "n[00-05]", "4", "8")]


def test_so_many_lost_gpus_that_it_looks_like_a_roll_out(tmp_path):
    """Devices die, they are not rolled out: nobody has "4 or 8"."""
    first = [made(n) for n in range(40)]
    then = [made(n, 1, gpus=HALF if n < 12 else ALL) for n in range(40)]
    with asked(tmp_path, *first, *then) as tables:
        answer = find_outliers(tables)
    assert [(each.attribute, each.hosts, each.usual, each.usual_count, each.of) for each in answer.outliers] == [
        ("gpus", "n[00-11]", "8", 28, 40)
    ]
    assert (answer.mixed, answer.classes) == ([], {"V P, 8x GPU": 40})


def test_several_that_lost_different_gpus(tmp_path):
    """Each is a class of its own, too small to be meant so, and together they are more than a fifth."""
    with asked(tmp_path, *(made(n, gpus=ALL[: {0: 4, 1: 6, 2: 7}.get(n, 8)]) for n in range(10))) as tables:
        answer = find_outliers(tables)
    assert sorted((each.hosts, each.value) for each in answer.outliers) == [("n00", "4"), ("n01", "6"), ("n02", "7")]
    assert answer.mixed == []


def test_other_values_are_still_mixed_where_many_lost_gpus(tmp_path):
    first = [made(n) for n in range(40)]
    then = [made(n, 1, gpus=HALF if n < 12 else ALL, kernel="6.8" if n % 2 else "6.9") for n in range(40)]
    with asked(tmp_path, *first, *then) as tables:
        assert [each.attribute for each in find_outliers(tables).mixed] == ["kernel"]


@pytest.mark.parametrize(("others", "value"), [(1, "7x H100, 1x H200"), (2, "6x H100, 2x H200")])
def test_a_node_with_a_gpu_of_another_model_stays_in_its_class(tmp_path, others, value):
    mixed = ["H100"] * (8 - others) + ["H200"] * others
    reports = [made(n, gpu_names=mixed if n == 3 else ["H100"] * 8) for n in range(NODES)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
        assert told(tables) == [("gpu-models", "n03", value, "H100")]
    assert answer.classes == {"V P, 8x H100": NODES}


def test_nodes_that_are_meant_to_have_several_models_are_a_class_by_true_counts(tmp_path):
    mixed = ["H100"] * 4 + ["H200"] * 4
    with asked(tmp_path, *(made(n, gpu_names=mixed if n < 6 else ["H100"] * 8) for n in range(NODES))) as tables:
        answer = find_outliers(tables)
    assert (answer.outliers, answer.mixed) == ([], [])
    assert answer.classes == {"V P, 4x H100, 4x H200": 6, "V P, 8x H100": 6}


def test_a_product_with_ten_gpus_is_called_so(tmp_path):
    with asked(tmp_path, *(made(n, gpus="abcdefghij"[: 9 if n == 3 else 10]) for n in range(NODES))) as tables:
        answer = find_outliers(tables)
        assert told(tables) == [("gpus", "n03", "9", "10")]
    assert answer.classes == {"V P, 10x GPU": NODES}


def test_a_product_with_fewer_gpus_is_a_class_of_its_own(tmp_path):
    reports = [made(n, gpus=HALF if n < 6 else ALL) for n in range(30)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert answer.outliers == []
    assert answer.classes == {"V P, 4x GPU": 6, "V P, 8x GPU": 24}


def test_one_that_lost_its_gpus_among_those_that_never_had_more(tmp_path):
    first = [made(n, gpus=HALF if n < 6 else ALL) for n in range(30)]
    then = made(20, 1, gpus=HALF)
    with asked(tmp_path, *first, then) as tables:
        assert told(tables) == [("gpus", "n20", "4", "8")]


def test_the_recognized_platform_has_more_gpus(tmp_path):
    platform = {"profile": "hgx-h100-8"}
    reports = [made(n, gpus=HALF if n < 6 else ALL, platform=platform) for n in range(40)]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == [("gpus", "n[00-05]", "4", "8")]


@pytest.mark.parametrize(
    "other",
    [
        {"product": "Q"},
        {"vendor": None, "product": None},
    ],
)
def test_other_products_are_no_peers(tmp_path, other):
    reports = [made(n, **({"gpus": HALF, **other} if n == 3 else {"kernel": "6.8"})) for n in range(NODES)]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == []


def test_of_an_unknown_product_nothing_is_missed(tmp_path):
    unknown = {"vendor": None, "product": None}
    with asked(tmp_path, *(made(n, gpus=HALF if n == 3 else ALL, **unknown) for n in range(NODES))) as tables:
        assert told(tables) == []


def small(n, odd, common=None, **more):
    """Two of these nodes are of another product, one of them with something odd. `common`: of all others."""
    report = {"kernel": "6.8", "os": "U 24", "cmdline": "ro quiet", "arch": "x86_64",
              "software": {"driver": {"version": "1"}}}  # fmt: skip
    return made(n, **{**report, **({"product": "Q", **more} if n < 2 else common or {}), **(odd if n == 1 else {})})


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"kernel": "6.9"}, ("kernel", "n01", "6.9", "6.8")),
        ({"os": "U 22"}, ("os", "n01", "U 22", "U 24")),
        ({"software": {"driver": {"version": "2"}}}, ("driver", "n01", "2", "1")),
        ({"cmdline": "ro"}, ("cmdline", "n01", "(absent)", "quiet")),
        ({"software": {"driver": {"version": "1"}, "nccl": {"libraries": [{"version": "2.1"}]}}}, None),
        ({"bios_version": "9"}, None),
    ],
)
def test_a_class_of_two_is_compared_with_nodes_that_have_the_same_gpus(tmp_path, odd, expected):
    with asked(tmp_path, *(small(n, odd) for n in range(NODES))) as tables:
        answer = find_outliers(tables)
    assert [(outlier.attribute, outlier.hosts, outlier.value, outlier.usual) for outlier in answer.outliers] == (
        [expected] if expected else []
    )
    assert {outlier.hardware_class for outlier in answer.outliers} <= {"all nodes with GPU"}


def nccl(*settings):
    found = [{"key": key, "value": value, "source": "/etc/nccl.conf", "scope": "system"} for key, value in settings]
    return {"software": {"driver": {"version": "1"}, "nccl": {"settings": found, "searched": ["/etc/nccl.conf"]}}}


@pytest.mark.parametrize(
    ("of_others", "of_class", "of_one", "expected"),
    [
        ([TC], [TC], [TC, QPS], [("n01", "NCCL_IB_QPS_PER_CONNECTION=4", "(absent)")]),
        ([TC], [TC], [], [("n01", "(absent)", "NCCL_IB_TC=106")]),
        ([TC], [TC], [("NCCL_IB_TC", "0")], [("n01", "NCCL_IB_TC=0", "NCCL_IB_TC=106")]),
        ([TC], [TC, HCA], [TC, HCA], []),  # both nodes of the class: its NICs have other names
        ([TC], [], [], []),
        ([TC], [HCA], [HCA, QPS], [("n01", "NCCL_IB_QPS_PER_CONNECTION=4", "(absent)")]),
        ([TC], [TC], [TC], []),
    ],
)
def test_nccl_settings_of_a_class_of_two(tmp_path, of_others, of_class, of_one, expected):
    """Beside all nodes with the same GPUs; what both nodes of the class have otherwise is meant so."""
    reports = [small(n, nccl(*of_one), nccl(*of_others), **nccl(*of_class)) for n in range(NODES)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert [(each.hosts, each.value, each.usual) for each in answer.outliers] == expected
    assert {each.hardware_class for each in answer.outliers} <= {"all nodes with GPU"}


def test_nccl_settings_of_other_gpus_are_not_compared(tmp_path):
    reports = [small(n, nccl(TC, QPS), nccl(TC), gpu_name="B", **nccl(TC)) for n in range(NODES)]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == []


@pytest.mark.parametrize(
    ("odd", "attributes"),
    [({"kernel": "6.9"}, ["kernel"]), ({"software": {"driver": {"version": "2"}}}, []), ({"cmdline": "ro"}, [])],
)
def test_other_gpus_share_kernel_and_system_alone(tmp_path, odd, attributes):
    """A driver may be chosen by the GPU."""
    with asked(tmp_path, *(small(n, odd, gpu_name="B") for n in range(NODES))) as tables:
        assert [outlier.attribute for outlier in find_outliers(tables).outliers] == attributes


def test_a_class_of_its_own_kernel_is_meant_to_be_so(tmp_path):
    """With the same GPUs it is told: these nodes could be in the class of the others."""
    for gpus, attributes in (("B", []), ("GPU", ["kernel"])):
        place = tmp_path / gpus
        place.mkdir()
        reports = [
            small(n, {"kernel": "6.9"}, kernel="6.9", gpu_name=gpus) if n < 2 else small(n, {}) for n in range(NODES)
        ]
        with asked(place, *reports) as tables:
            assert [outlier.attribute for outlier in find_outliers(tables).outliers] == attributes


@pytest.mark.parametrize("more", [{"arch": "aarch64"}, {"gpus": ""}])
def test_another_architecture_and_service_nodes_are_compared_with_nothing(tmp_path, more):
    with asked(tmp_path, *(small(n, {"kernel": "6.9", **more, "gpu_name": "B"}) for n in range(NODES))) as tables:
        assert told(tables) == []


@pytest.fixture(scope="module")
def dataset(make_once):
    def write(place):
        fleet = plan(26, 4, FAULTS, mix={"gb200-ib": 1, "h200-roce": 1})
        take(place / "dataset", *fleet.reports(0, one_line=True))

    return make_once("kinds", write)[0] / "dataset"


def answers(place):
    """Of the questions that read one node of each kind, and every SELECT that was asked."""
    engine = connect(None, str(place))
    asked = []
    rows, many_rows, submit = engine.rows, engine.many_rows, engine.submit
    engine.rows = lambda query: asked.append(query.sql) or rows(query)
    engine.many_rows = lambda query: asked.append(query.sql) or many_rows(query)
    engine.submit = lambda query: asked.append(query.sql) or submit(query)
    now = datetime(2026, 1, 16, tzinfo=timezone.utc)
    page = build_scene(engine, lambda: read_wiring(build_from_reports(engine)), PageOptions(), now)
    found = find_outliers(engine), build_summary(engine), page
    engine.close()
    return found, set(asked)


def without_digests(dataset, place, keep):
    """A copy in which an earlier version ingested the nodes after the first `keep`."""
    shutil.copytree(dataset, place)
    for path in open_dataset(str(place)).latest("host"):
        whole = parquet.ParquetFile(path).read()
        for name in map(digest_column, COMPARED):
            digests = whole[name].to_pylist()[:keep]
            column = pa.array(digests + [None] * (len(whole) - keep), pa.int64())
            whole = whole.set_column(whole.column_names.index(name), name, column)
        parquet.write_table(whole, path)
    return place


def test_all_ways_give_the_same(dataset, tmp_path, monkeypatch):
    by_kind, asked = answers(dataset)
    assert {each.attribute for each in by_kind[0].outliers} > {"nic-firmware", "pcie-width", "pcie-acs", "port-state"}
    assert not asked & OF_ALL
    for keep in (0, 12):
        some, asked = answers(without_digests(dataset, tmp_path / str(keep), keep))
        assert some == by_kind
        assert STATES.sql not in asked, "nodes without digests are kinds of their own"
    monkeypatch.setattr("agent.fleet.questions.kinds.MOST", 0)
    by_engine, asked = answers(dataset)
    assert by_engine == by_kind
    assert asked >= OF_ALL


def test_more_kinds_than_are_read_are_none(dataset, monkeypatch):
    engine = connect(None, str(dataset))
    assert DigestGroups(engine, engine.submit(KINDS)).of("pci")
    assert DigestGroups(engine, engine.submit(KINDS)).of("host") is None
    monkeypatch.setattr("agent.fleet.questions.kinds._MOST_ROWS", 2)
    assert DigestGroups(engine, engine.submit(KINDS.bind(most=3))).of("pci") is None
    engine.close()


def test_what_is_compared_is_in_the_digests():
    needed: dict[str, set[str]] = {}
    for table, things in THINGS.items():
        needed[table] = set(re.findall(r"thing\.\"?(\w+)\"?", things.of_nodes.query.sql))
    cells = [*reading._GPU_CELLS, *reading._RAIL_CELLS]
    for table, name in cells:
        needed[{"wide": "link"}.get(table, table)].add(name)
    needed["check"] = {"rule", "state", "reason"}
    for table, columns in COMPARED.items():
        known = {column.name for column in schema.columns(table)}
        assert set(columns) <= known
        assert needed[table] - {"node", CLASS} <= set(columns), table
    assert needed.keys() - {"host", "switch", "switch_port"} == COMPARED.keys()  # switches have no row in table host
