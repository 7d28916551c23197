"""A clear majority, or silence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.engines import schema
from agent.fleet.engines.query import table_query
from agent.fleet.questions.attributes import AMOUNTS, ATTRIBUTES
from agent.fleet.questions.baseline import Baseline, find_baseline, find_planned, median, spread
from agent.fleet.questions.deviations import Deviation, PeerGroup, fold_deviations
from agent.fleet.questions.multisets import parse_words
from agent.fleet.questions.options import Options
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.table import FLOAT, INT
from tests.agent.fleet.small import asked, interface, node, report


def driver(version):
    return {"driver": {"version": version}}


def told(answer):
    return [(outlier.attribute, outlier.hosts, outlier.value, outlier.usual) for outlier in answer.outliers]


def test_one_of_five_with_another_driver(tmp_path):
    reports = [node(f"n{n}", software=driver("2" if n == 3 else "1")) for n in range(1, 6)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert told(answer) == [("driver", "n3", "2", "1")]
    assert (answer.outliers[0].usual_count, answer.outliers[0].of, answer.compared_nodes) == (4, 5, 5)


def test_four_nodes_have_nothing_usual(tmp_path):
    reports = [node(f"n{n}", software=driver("2" if n == 3 else "1")) for n in range(1, 5)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
        assert told(find_outliers(tables, Options(fewest=4, majority=0.7))) == [("driver", "n3", "2", "1")]
    assert (answer.outliers, answer.mixed, list(answer.too_few.values())) == ([], [], [4])


def test_a_roll_out_half_done_is_mixed(tmp_path):
    reports = [node(f"n{n}", software=driver("12"[n % 2])) for n in range(10)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert answer.outliers == []
    assert [(item.attribute, item.values) for item in answer.mixed] == [("driver", [("1", 5), ("2", 5)])]


def test_a_third_value_in_a_roll_out_is_odd(tmp_path):
    reports = [node(f"n{n}", software=driver("3" if n == 7 else "12"[n % 2])) for n in range(60)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert told(answer) == [("driver", "n7", "3", "1 or 2")]
    assert [(outlier.usual_count, outlier.of) for outlier in answer.outliers] == [(59, 60)]
    assert len(answer.mixed) == 1


def test_what_is_not_known_is_not_odd(tmp_path):
    reports = [node(f"n{n}", kernel=None if n in (2, 3) else "6.8", cmdline=None if n == 4 else "ro") for n in range(9)]
    with asked(tmp_path, *reports) as tables:
        assert told(find_outliers(tables)) == []


def test_a_lost_gpu_stays_in_its_class(tmp_path):
    reports = [node(f"n{n}", gpus="abc" if n == 1 else "abcd") for n in range(6)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert told(answer) == [("gpus", "n1", "3", "4")]
    assert answer.outliers[0].by == "1 fewer"


def test_only_amounts_have_a_distance(tmp_path):
    """A NUMA node is a name: another one is not 1 more. One place declares which numbers are amounts."""
    nic = {"id": "0000:10:00.0", "label": "mlx5_0", "role": "rail", "state": "present"}
    reports = [node(f"n{n}", nics=[{**nic, "numa_node": int(n != 1)}]) for n in range(6)]
    with asked(tmp_path, *reports) as tables:
        (outlier,) = find_outliers(tables).outliers

    assert ("nic-numa-node", "0", None) == (outlier.attribute, outlier.value, outlier.by)
    numbers = {
        a.column for a in ATTRIBUTES for c in schema.columns(a.table) if c.name == a.column and c.type in (INT, FLOAT)
    }
    names = {"numa_node", "clique", "roce_gid_index", "cnp_dscp", "cnp_priority"}
    assert (set(), names) == (AMOUNTS & names, numbers - AMOUNTS)
    assert AMOUNTS <= {a.column for a in ATTRIBUTES}


def test_links_of_other_makers_are_not_called_nvlinks(tmp_path):
    reports = []
    for n in range(6):
        document = json.loads(node(f"n{n}", gpu_name="Instinct MI300X"))
        for gpu in document["topology"]["gpus"]:
            up = 6 if n == 1 else 7
            gpu["links"] = [
                {"protocol": "xgmi", "link": link, "state": "active" if link < up else "inactive"} for link in range(7)
            ]
            gpu["links_known"] = True
        reports.append(json.dumps(document).encode())
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert ["active links between GPUs"] == [outlier.what for outlier in answer.outliers]


@pytest.mark.parametrize(
    ("usually", "odd", "has", "should"),
    [
        ("ro iommu=pt", "ro", "(absent)", "iommu=pt"),
        ("ro", "ro pci=noats", "pci=noats", "(absent)"),
        ("ro hugepages=8", "ro hugepages=4", "hugepages=4", "hugepages=8"),
        ("ro console=tty0 console=ttyS0", "console=tty0 ro", "console=tty0", "console=tty0 console=ttyS0"),
    ],
)
def test_the_command_line_word_by_word(tmp_path, usually, odd, has, should):
    reports = [node(f"n{n}", cmdline=f"BOOT_IMAGE=/{n} root=UUID={n} {odd if n == 2 else usually}") for n in range(7)]
    with asked(tmp_path, *reports) as tables:
        assert told(find_outliers(tables)) == [("cmdline", "n2", has, should)]


def test_memory_differs_a_little_everywhere(tmp_path):
    reports = [node(f"n{n}", memory_mib=1_000_000 + n * 300 - (60_000 if n == 4 else 0)) for n in range(8)]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert [(outlier.attribute, outlier.hosts, outlier.by) for outlier in answer.outliers] == [("memory", "n4", "-6%")]


def test_a_slow_probe_and_a_failed_one(tmp_path):
    def probes(n):
        slow, failed = n == 1, n == 2
        return [
            {"name": "nvml", "status": "ok", "duration_seconds": 11.0 if slow else 0.3 + n / 100},
            {"name": "pci", "status": "timed_out" if failed else "ok", "duration_seconds": 0.01},
            {"name": "amd", "status": "absent" if n % 2 else "skipped"},
        ]

    with asked(tmp_path, *(node(f"n{n}", probes=probes(n)) for n in range(8))) as tables:
        answer = told(find_outliers(tables))
    assert [item[:3] for item in answer] == [("probe-seconds", "n1", "11.0 s"), ("probe-status", "n2", "timed_out")]


@pytest.mark.parametrize("checked", [True, False])
def test_a_duration_that_none_can_have_is_not_known(tmp_path, monkeypatch, checked):
    if not checked:  # as datasets of an earlier version may have it
        monkeypatch.setattr("agent.fleet.rows.verdicts.LONGEST_SECONDS", float("inf"))
    reports = [
        node(f"n{n}", probes=[{"name": "nvml", "status": "ok", "duration_seconds": 1e30 if n == 1 else 0.3}])
        for n in range(8)
    ]
    with asked(tmp_path, *reports) as tables:
        assert find_outliers(tables).outliers == []
        seconds = dict(tables.rows(table_query("probe", ["node", "duration_seconds"])))
    assert {seconds["n1"]} == {None if checked else 1e30}


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=6))
def test_usual_is_a_majority_and_never_what_is_planned(counts):
    result = find_baseline(counts, Options())
    assert result is None or result.has >= 0.8 * result.of >= 4
    several = find_planned(counts, Options())
    if several is not None:
        assert several.of >= several.has == sum(counts[value] for value in several.values) >= 0.9 * several.of


def test_medians():
    assert median({1.0: 1, 2.0: 5, 90.0: 1}) == 2.0
    assert spread({1.0: 1, 2.0: 5, 90.0: 1}, 2.0) == 0.0


@given(st.text())
def test_no_word_is_lost(text):
    assert sorted(" ".join(parse_words(text).values()).split()) == sorted(text.split())


def rails(n, mtu=None, dscp=None):
    """Two rails of a node with MTU 4200, but those in `mtu`; and the DSCP map of the first."""
    nics, netdevs = [], []
    for rail in range(2):
        label = f"eth{rail}"
        port = {"port": 1, "link_layer": "Ethernet", "state": "ACTIVE", "netdevs": [label]}
        nics.append({"id": f"0000:1{rail}:00.0", "label": f"mlx5_{rail}", "role": "rail", "ports": [port]})
        qos = {"dscp_prio": dscp} if dscp and not rail else {}
        netdevs.append({
            **interface(label, f"0c:42:a1:00:{n:02x}:0{rail}"), "nic": f"0000:1{rail}:00.0", "role": "rail",
            "mtu": (mtu or {}).get(rail, 4200), "qos": qos or None,
        })  # fmt: skip
    return node(f"n{n:02d}", nics=nics, netdevs=netdevs)


def test_rails_are_told_apart(tmp_path):
    """Two nodes whose first rail is odd and one whose second is are two answers; all rails of one node are one."""
    outlier = {1: {0: 1500}, 2: {0: 1500}, 3: {1: 1500}, 4: {0: 9000, 1: 9000}}
    with asked(tmp_path, *(rails(n, outlier.get(n)) for n in range(1, 30))) as tables:
        answers = [outlier for outlier in find_outliers(tables).outliers if outlier.attribute == "rail-mtu"]
    assert sorted((answer.hosts, answer.value, answer.places) for answer in answers) == [
        ("n03", "1500", ["rail 1"]), ("n04", "9000", ["rail 0", "rail 1"]), ("n[01-02]", "1500", ["rail 0"]),
    ]  # fmt: skip


def test_of_a_map_only_the_difference_is_told(tmp_path):
    usually = {str(code): code // 8 for code in range(64)}
    outlier = {3: {**usually, "26": 0}, 5: {code: priority for code, priority in usually.items() if code != "48"}}
    with asked(tmp_path, *(rails(n, dscp=outlier.get(n, usually)) for n in range(1, 30))) as tables:
        answers = [outlier for outlier in find_outliers(tables).outliers if outlier.attribute == "rail-dscp-prio"]
    assert sorted((answer.hosts, answer.value, answer.usual) for answer in answers) == [
        ("n03", "26:0", "26:3"), ("n05", "48:none", "48:6"),
    ]  # fmt: skip


def group(key):
    return PeerGroup(key, key, "class", None, "node")


def test_what_follows_on_some_nodes_only_names_them():
    normal = Baseline("1", 20, 22)
    odds = [
        *(Deviation(group("driver"), normal, "2", "1", node, None) for node in ("n1", "n2")),
        Deviation(group("cuda"), normal, "13", "12", "n2", None),
    ]
    ((answer, _),) = fold_deviations(odds)
    assert (answer.hosts, answer.also) == ("n[1-2]", ["cuda 13, usually 12 on n2"])
    ((answer, _),) = fold_deviations([*odds, Deviation(group("cuda"), normal, "13", "12", "n1", None)])
    assert answer.also == ["cuda 13, usually 12"]


def racked(n, *, odd, leaf=None, rack=None, part="P1", firmware="28.2", **more):
    """One of 60 nodes in racks of six, whose first rail is connected to a leaf for twelve of them."""
    neighbor = {"system": leaf or f"leaf{n // 12}", "port": f"Eth{n}"}
    card = {"id": "0000:10:00.0", "label": "mlx5_0", "role": "rail", "firmware": firmware, "ports": [
        {"port": 1, "link_layer": "Ethernet", "state": "ACTIVE", "netdevs": ["eth0"]},
    ]}  # fmt: skip
    netdev = {**interface("eth0", f"0c:42:a1:00:{n:02x}:00"), "nic": card["id"], "mtu": 1500 if odd else 4200}
    chassis = {"serial": rack or f"R{n // 6}"}
    return node(
        f"n{n:02d}",
        nics=[card],
        netdevs=[{**netdev, "neighbor": neighbor, "module": {"part": part}}],
        chassis=chassis,
        **more,
    )


@pytest.mark.parametrize(
    ("odd", "more", "common"),
    [
        ((1, 3, 4), {}, ["rack R0 (3 of its 6 nodes of this class)"]),
        ((1, 4, 7, 9), {}, ["leaf leaf0 (4 of its 12 nodes of this class)"]),
        ((1, 2), {}, []),  # of six in sixty: one in a hundred
        ((1, 20, 40), {}, []),
        ((1, 20, 40), {"kernel": "6.9"}, ["kernel 6.9 (3 of its 3 nodes of this class)"]),
        ((1, 20, 40), {"bios_version": "2"}, ["BIOS 2 (3 of its 3 nodes of this class)"]),
        ((1, 20, 40), {"part": "P2"}, ["module P2 (3 of its 3 nodes of this class)"]),
        ((1, 20, 40), {"firmware": "28.1"}, ["NIC firmware 28.1 (3 of its 3 nodes of this class)"]),
        ((5,), {}, []),
        ((1, 3, 4), {"rack": "R9", "leaf": "leaf9"}, []),
        # two causes at once: nearly all of a rack, and one elsewhere
        ((0, 1, 2, 3, 4, 5, 40), {}, ["rack R0 (6 of its 6 nodes of this class, 6 of these 7)"]),
        ((0, 1, 2, 3, 4, 40), {}, ["rack R0 (5 of its 6 nodes of this class, 5 of these 6)"]),
        ((0, 1, 2, 3, 40), {}, []),  # two of three of the rack
        ((0, 1, 2, 3, 4, 5, 20, 30, 40), {}, []),  # three elsewhere are no exception
    ],
)
def test_what_odd_nodes_have_in_common(tmp_path, odd, more, common):
    """Only what so many nodes have not by chance."""
    every = more if "rack" in more else {}
    reports = [racked(n, odd=n in odd, **{"kernel": "6.8", **every, **(more if n in odd else {})}) for n in range(60)]
    with asked(tmp_path, *reports) as tables:
        (answer,) = [outlier for outlier in find_outliers(tables).outliers if outlier.attribute == "rail-mtu"]
    assert answer.common == common
    assert answer.nodes == len(odd)


def test_a_kernel_has_not_itself_in_common(tmp_path):
    with asked(tmp_path, *(racked(n, odd=False, kernel="6.9" if n in (1, 20) else "6.8") for n in range(60))) as tables:
        (answer,) = find_outliers(tables).outliers
    assert (answer.attribute, answer.common) == ("kernel", [])


def machine(n, **odd):
    """A GPU with a virtual function, below a root port."""
    gpu = {"id": "0000:01:00.0", "class": "0x030200", "relaxed_ordering": True, "max_read_request_bytes": 4096,
           "max_payload_bytes": 256, **odd.get("gpu", {})}  # fmt: skip
    virtual = {"id": "0000:01:00.1", "class": "0x030200", "physical_function": gpu["id"], **odd.get("virtual", {})}
    nic = {"id": "0000:02:00.0", "label": "mlx5_0", "board_id": "MT_1", "numa_node": 0, **odd.get("nic", {})}
    root = {"id": "0000:00:01.0", "class": "0x060400", "acs": {"capability": ["SV"], "control": odd.get("acs", ["SV"])}}
    fabric = {"state": "completed", "clique": odd.get("clique", 1), "cluster_uuid": odd.get("domain", "d1")}
    port = {"port": 1, "link_layer": "Ethernet", "netdevs": ["eth0"], "gids_known": True, "gids": [
        {"index": 0, "gid": "fe80:0000:0000:0000:0000:0000:0000:0001", "type": "RoCE v2"},
        {"index": odd.get("gid", 3), "gid": "0000:0000:0000:0000:0000:ffff:0a00:0001", "type": "RoCE v2"},
        {"index": odd.get("gid", 3) + 1, "gid": "2001:0000:0000:0000:0000:0000:0000:0001", "type": "RoCE v2"},
    ]}  # fmt: skip
    qos = {"prio_tc": [0, 1], "cnp_dscp": 48, "cnp_priority": 6, **odd.get("qos", {})}
    netdev = {**interface("eth0", f"0c:42:a1:00:{n:02x}:00"), "nic": nic["id"], "qos": qos}
    facts = {
        "hostname": f"n{n}",
        "vendor": "V",
        "product": "P",
        "chassis": {"serial": "R1"},
        "cpu": {"threads_per_core": odd.get("threads", 2)},
        "memory_mib": odd.get("memory", 1_030_000),
        "numa_nodes": [{"id": 0, "memory_mib": 515_000 + n}, {"id": 1, "memory_mib": odd.get("dimm", 515_000)}],
    }
    return report(f"n{n}", node=facts, topology={
        "gpus": [{"id": gpu["id"], "label": "GPU0", "name": "G", "numa_node": odd.get("numa", 0), "fabric": fabric}],
        "nics": [{**nic, "role": "rail", "ports": [port]}], "netdevs": [netdev], "pci": [root, gpu, virtual],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"gpu": {"relaxed_ordering": False}}, ("pcie-relaxed-ordering", "no", "yes", ["0000:01:00.0"])),
        (
            {"gpu": {"max_read_request_bytes": 512}},
            ("pcie-max-read-request-bytes", "512 bytes", "4096 bytes", ["0000:01:00.0"]),
        ),
        (
            {"gpu": {"max_payload_bytes": 128}},
            ("pcie-max-payload-bytes", "128 bytes", "256 bytes", ["0000:01:00.0"]),
        ),
        ({"numa": 1}, ("gpu-numa-node", "1", "0", ["GPU0"])),
        ({"nic": {"numa_node": 1}}, ("nic-numa-node", "1", "0", ["mlx5_0"])),
        ({"nic": {"board_id": "MT_2"}}, ("nic-board", "MT_2", "MT_1", ["mlx5_0"])),
        ({"virtual": {"relaxed_ordering": False}}, None),
        ({"acs": []}, ("pcie-acs", "off", "SV", ["0000:00:01.0"])),
        ({"threads": 1}, ("threads-per-core", "1", "2", [])),
        ({"clique": 2}, ("gpu-clique", "2", "1", ["GPU0"])),
        ({"domain": "d2"}, ("gpu-cluster-uuid", "d2", "d1", [])),
        ({"gid": 5}, ("port-roce-gid-index", "5", "3", ["mlx5_0"])),
        ({"qos": {"prio_tc": [0, 3]}}, ("rail-prio-tc", "0 3", "0 1", ["eth0"])),
        ({"qos": {"cnp_dscp": 46}}, ("rail-cnp-dscp", "46", "48", ["eth0"])),
        ({"qos": {"cnp_priority": 3}}, ("rail-cnp-priority", "3", "6", ["eth0"])),
        ({"dimm": 450_000}, ("numa-memory", "439 GiB", "about 503 GiB", [])),
        ({"dimm": 450_000, "memory": 965_000}, ("memory", "942 GiB", "about 1006 GiB", [])),
        ({"dimm": 512_000}, None),
    ],
)
def test_what_a_device_is_set_to(tmp_path, odd, expected):
    with asked(tmp_path, *(machine(n, **(odd if n == 3 else {})) for n in range(1, 12))) as tables:
        answers = [
            (outlier.attribute, outlier.value, outlier.usual, outlier.labels)
            for outlier in find_outliers(tables).outliers
        ]
    assert answers == ([expected] if expected else [])


def with_settings(n, *limits, ecc=True, pending=None, **parameters):
    """A node with a GPU for each power limit, and a rail for each GPU."""
    gpus = [
        {
            "id": f"0000:0{place}:00.0",
            "mig": {"current": False},
            "health": {"power_limit_watts": limit, "ecc": ecc, "ecc_pending": ecc if pending is None else pending},
        }
        for place, limit in enumerate(limits)
    ]
    rails = [{"id": f"0000:1{place}:00.0", "role": "rail", "state": "present"} for place in range(len(limits))]
    netdevs = [
        {"id": f"eth{place}", "nic": nic["id"], "qos": {"dcbx": "host"}, "speed_gbit_s": 400.0}
        for place, nic in enumerate(rails)
    ]
    software = {"driver": {"parameters": {"NvLinkDisable": "0", **parameters}}}
    return report(f"n{n}", software=software, topology={"gpus": gpus, "nics": rails, "netdevs": netdevs})


@pytest.mark.parametrize(
    ("odd", "answers"),
    [
        (((600.0, 600.0), {}), [("gpu.health.power_limit_watts=600", "gpu.health.power_limit_watts=700")]),
        (((600.0, 700.0), {}), []),  # one GPU of the node: its own finding
        (((None, None), {}), []),
        (((700.0, 700.0), {"ecc": False}), [("gpu.health.ecc=off", "gpu.health.ecc=on")]),
        (((700.0, 700.0), {"NvLinkDisable": "1"}), [("driver.NvLinkDisable=1", "driver.NvLinkDisable=0")]),
    ],
    ids=["power limit", "one GPU", "not known", "ECC now and after a reset", "parameter of the driver"],
)
def test_what_all_gpus_of_a_node_are_set_to(tmp_path, odd, answers):
    usual = (700.0, 700.0), {}
    reports = [with_settings(n, *limits, **more) for n in range(8) for limits, more in [odd if n == 3 else usual]]
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert told(answer) == [("part-settings", "n3", *values) for values in answers]


@pytest.mark.parametrize(
    ("table", "name", "odd", "usual", "answer"),
    [
        ("topology", "ascend", {"ports": [{"npu": 0, "mtu": 1500}]}, {"ports": [{"npu": 0, "mtu": 4200}]}, "npu.mtu"),
        ("topology", "ascend", {"driver_version": "25.5.0"}, {"driver_version": "25.5.1"}, "npu.driver_version"),
        ("software", "modules", [{"name": "habanalabs", "version": "1"}], [{"name": "habanalabs", "version": "2"}],
         "module.habanalabs"),
        ("software", "modules", [{"name": "mlx5_core", "version": "1"}], [{"name": "mlx5_core", "version": "2"}], None),
        ("software", "imex", {"nodes_config": "17"}, {"nodes_config": "18"}, "imex.nodes"),
    ],
)  # fmt: skip
def test_what_drivers_and_ports_of_other_accelerators_are_set_to(tmp_path, table, name, odd, usual, answer):
    reports = [report(f"n{n}", **{table: {name: odd if n == 3 else usual}}) for n in range(8)]
    with asked(tmp_path, *reports) as tables:
        found = find_outliers(tables)
    assert [(where, value.partition("=")[0]) for _, where, value, _ in told(found)] == (
        [("n3", answer)] if answer else []
    )


def test_settings_of_parts_have_the_fields_that_peers_are_compared_by(tmp_path):
    """And that no column of their table has; after a reset only where it is another value."""
    with asked(tmp_path, with_settings(1, 700.5), with_settings(2, 700.0, pending=False)) as tables:
        texts = [text for _, text in sorted(tables.rows(table_query("host", ["node", "part_settings"])))]
    assert texts == [
        "driver.NvLinkDisable=0 gpu.health.ecc=on gpu.health.power_limit_watts=700.5 netdev.qos.dcbx=host",
        "driver.NvLinkDisable=0 gpu.health.ecc=on gpu.health.ecc_pending=off gpu.health.power_limit_watts=700 "
        "netdev.qos.dcbx=host",
    ]


def test_what_costs_most_comes_first():
    """A port that is down, then a lower power limit, then a buffer, then a kernel; whatever the names of nodes."""
    groups = [
        ("kernel", "n1"), ("rail-cable", "n2"), ("part-settings", "n3"), ("port-state", "n9"), ("port-state", "n8"),
    ]  # fmt: skip
    odds = [
        Deviation(PeerGroup(key, key, "class", None, "node"), Baseline("a", 9, 10), "b", "a", host, None)
        for key, host in groups
    ]
    answers = [(outlier.attribute, outlier.hosts) for outlier, _ in fold_deviations(odds)]
    assert answers == [
        ("port-state", "n[8-9]"), ("part-settings", "n3"), ("rail-cable", "n2"), ("kernel", "n1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reports", "attribute"),
    [
        ([node(f"n{n}", kernel="6.9" if n < 2 else "6.8", cmdline="ro") for n in range(20)], "kernel"),
        ([node(f"n{n}", cmdline="ro quiet" if n < 2 else "ro") for n in range(20)], "cmdline"),
        ([machine(n, **({"memory": 500_000} if n < 2 else {})) for n in range(20)], "memory"),
        ([machine(n, **({"dimm": 200_000} if n < 2 else {})) for n in range(20)], "numa-memory"),
        ([machine(n, **({"threads": 1} if n < 2 else {})) for n in range(20)], "threads-per-core"),
    ],
    ids=["kernel", "cmdline", "memory", "numa-memory", "threads-per-core"],
)
def test_odd_nodes_are_named(tmp_path, reports, attribute):
    with asked(tmp_path, *reports) as tables:
        answer = find_outliers(tables)
    assert [("n[0-1]", 2)] == [(odd.hosts, odd.nodes) for odd in answer.outliers if odd.attribute == attribute]
