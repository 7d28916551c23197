"""What is on two nodes, and what is innocently so, by the numbers of nodes or by the values of each kind."""

from __future__ import annotations

import json

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from agent.fleet.engines import connect
from agent.fleet.known_duplicates import OWN, PATTERN, common
from agent.fleet.questions.duplicates import find_duplicates
from agent.fleet.questions.outliers import find_outliers
from tests.agent.fleet.small import asked, interface, node, port, report
from tests.conftest import IN_FULL


@pytest.fixture(params=["by numbers", "by values"], autouse=True)
def way(request, monkeypatch):
    """The answer is found among the nodes that have a number in common, or where these are too many, kind by kind."""
    if request.param == "by values":
        monkeypatch.setattr("agent.fleet.questions.duplicates.MOST", -1)
    return request.param


def told(tables):
    return [(duplicate.kind, duplicate.value, duplicate.hosts) for duplicate in find_duplicates(tables).duplicates]


def test_nothing_is_there_twice(tmp_path):
    with asked(tmp_path, node("n1"), node("n2")) as tables:
        assert told(tables) == []


def test_a_cloned_image(tmp_path):
    with asked(tmp_path, node("n1", machine_id="abcd"), node("n2", machine_id="abcd"), node("n3")) as tables:
        assert told(tables) == [("machine-id", "abcd", "n[1-2]")]


def test_placeholders_are_nobody(tmp_path):
    reports = [node(f"n{n}", serial="To be filled by O.E.M.", machine_id="00000000") for n in (1, 2)]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == []


def test_serial_numbers_are_those_of_one_vendor(tmp_path):
    reports = [node("n1", serial="12345", vendor="A"), node("n2", serial="12345", vendor="B")]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == []


def test_one_machine_under_two_names(tmp_path):
    same = {"serial": "4711", "machine_id": "beef01", "gpus": ["u1", "u2"], "nics": [port(7, "0c42:a103:0011:2233")]}
    with asked(tmp_path, node("old", **same), node("new", 1, **same), node("other")) as tables:
        answer = find_duplicates(tables).duplicates
    assert [(item.kind, item.hosts) for item in answer if item.kind != "LID"] == [("machine", "new,old")]


def test_one_machine_under_two_names_without_a_serial_number(tmp_path):
    """A part that moved, with all its identifiers, is none; nor are GPUs alone."""
    same = {"machine_id": "beef01", "gpus": ["GPU-1000", "GPU-2000"], "nics": [port(7, "0c42:a103:0011:2233")]}
    moved = {"gpus": ["GPU-3000", "GPU-4000"]}
    reports = [node("old", **same), node("new", 1, **same), node("from", **moved), node("to", 1, **moved)]
    with asked(tmp_path, *reports) as tables:
        answer = find_duplicates(tables).duplicates

    assert [(item.kind, item.value, item.hosts) for item in answer if item.kind != "LID"] == [
        ("machine", "beef01", "new,old"),
        ("GPU UUID", "GPU-3000", "from,to"),
        ("GPU UUID", "GPU-4000", "from,to"),
    ]
    assert "fabricscope fleet forget" in (answer[0].note or "")


def test_addresses_within_a_host_and_bridges(tmp_path):
    inside = [
        interface("lo", "00:00:00:00:00:00", "127.0.0.1/8", "10.255.0.1/32", driver=None),
        interface("docker0", "02:42:ac:11:00:01", "172.17.0.1/16", "fe80::1/64", driver="bridge"),
        interface("cali1", "ee:ee:ee:ee:ee:ee", "169.254.1.1/32", driver="veth"),
    ]
    with asked(tmp_path, node("n1", netdevs=inside), node("n2", netdevs=inside)) as tables:
        assert told(tables) == []


def test_the_same_address_on_two_nodes(tmp_path):
    def eth(n):
        return [interface("eth0", f"0c:42:a1:00:00:0{n}", "10.0.0.9/24" if n < 3 else f"10.0.0.{n}/24")]

    with asked(tmp_path, *(node(f"n{n}", netdevs=eth(n)) for n in range(1, 8))) as tables:
        assert told(tables) == [("IP address", "10.0.0.9/24", "n[1-2]")]


def test_an_address_of_two_npus(tmp_path):
    """A port inside of an NPU is no interface of its host."""
    addresses = [("192.0.2.10", "192.0.2.2"), ("192.0.2.11", "192.0.2.2"), ("192.0.2.12", "192.0.2.3")]
    ports = [[{"npu": n, "address": address} for n, address in enumerate(pair)] for pair in addresses]
    with asked(tmp_path, *(report(f"n{n}", topology={"ascend": {"ports": ports[n]}}) for n in range(3))) as tables:
        assert told(tables) == [("IP address", "192.0.2.2", "n[0-1]")]


def test_the_same_address_with_different_prefix_lengths(tmp_path):
    def eth(n):
        address = {1: "10.0.0.9/24", 2: "10.0.0.9/31", 3: "10.0.0.90/24"}.get(n, f"10.0.0.{n}/24")
        return [interface("eth0", f"0c:42:a1:00:00:0{n}", address)]

    with asked(tmp_path, *(node(f"n{n}", netdevs=eth(n)) for n in range(1, 8))) as tables:
        (answer,) = find_duplicates(tables).duplicates
    assert (answer.kind, answer.value, answer.hosts) == ("IP address", "10.0.0.9", "n[1-2]")
    assert answer.note == "with different prefix lengths (/24, /31)"


def test_an_address_that_all_have_is_meant_so(tmp_path):
    def eth(n):
        return [interface("eth0", f"0c:42:a1:00:00:0{n}", "10.9.9.9/32")]

    with asked(tmp_path, *(node(f"n{n}", netdevs=eth(n)) for n in range(1, 8))) as tables:
        assert told(tables) == []


def test_a_bond_shares_its_address_with_its_members(tmp_path):
    def bond(n):
        mac = f"0c:42:a1:00:00:0{n}"
        return [interface(label, mac) for label in ("eth0", "eth1")]

    with asked(tmp_path, node("n1", netdevs=bond(1)), node("n2", netdevs=bond(2))) as tables:
        assert told(tables) == []


def guid(n):
    return f"0c42:a103:0000:{n:04x}"


def test_a_lid_twice_in_a_subnet(tmp_path):
    reports = [node(f"n{n}", nics=[port(5 if n == 9 else n, guid(n))]) for n in range(1, 21)]
    with asked(tmp_path, *reports) as tables:
        assert told(tables) == [("LID", "5", "n[5,9]")]


def test_two_subnets_number_alike(tmp_path):
    reports = [node(f"n{n}", nics=[port(1 + n % 10, guid(n))]) for n in range(20)]
    with asked(tmp_path, *reports) as tables:
        answer = find_duplicates(tables)
    assert answer.duplicates == []
    assert "separate fabrics" in answer.not_judged[0]


def test_subnets_with_prefixes_of_their_own_are_judged_each(tmp_path):
    def nics(n):
        return [port(3 if n == 14 else 1 + n % 10, guid(n), f"fe80:0000:0000:000{1 + n // 10}")]

    with asked(tmp_path, *(node(f"n{n}", nics=nics(n)) for n in range(20))) as tables:
        assert told(tables) == [("LID", "3", "n[12,14]")]


def test_ports_of_one_node_with_one_lid_are_no_two_nodes(tmp_path):
    """Two planes that number alike."""

    def planes(n, lid):
        second = port(lid, f"1c42:a103:0000:{n:04x}")
        return [port(lid, guid(n)), {**second, "id": "0000:20:00.0"}]

    with asked(tmp_path, *(node(f"n{n}", nics=planes(n, n)) for n in range(1, 8))) as tables:
        assert find_duplicates(tables).not_judged == []
        assert told(tables) == []
    (tmp_path / "one").mkdir()
    with asked(tmp_path / "one", *(node(f"n{n}", nics=planes(n, min(n, 6))) for n in range(1, 8))) as tables:
        assert told(tables) == 2 * [("LID", "6", "n[6-7]")]  # one a rail


def test_nodes_that_were_ingested_before_there_were_numbers(tmp_path):
    """Of all nodes, or of some: these have no row in table identity, and null in `identities`."""
    with asked(tmp_path, node("n1", machine_id="abcd"), node("n2", machine_id="abcd"), node("n3")) as tables:
        before = find_duplicates(tables)
    dataset = tmp_path / "dataset"
    manifest = json.loads((dataset / "manifest.json").read_text())
    del manifest["latest"]["identity"]
    (dataset / "manifest.json").write_text(json.dumps(manifest))
    for file in manifest["latest"]["host"]:
        parquet.write_table(
            parquet.read_table(dataset / file["path"]).drop_columns("identities"), dataset / file["path"]
        )
    engine = connect(None, str(dataset))
    assert find_duplicates(engine) == before
    assert before.duplicates
    engine.close()


def turns(place, *machines, name="localhost", later=0.0):
    """Reports under one name, an hour apart, by the serial numbers of their machines; the newest of all is `later`."""
    reports = [node(name, hour, serial=machine, machine_id=f"id-{machine}") for hour, machine in enumerate(machines)]
    with asked(place, *reports, node("other", len(machines) + later)) as tables:
        return [(duplicate.kind, duplicate.value, duplicate.note) for duplicate in find_duplicates(tables).duplicates]


def test_machines_that_take_turns_under_one_name(tmp_path):
    (answer,) = turns(tmp_path, "S-1001", "S-1002", "S-1003", "S-1001", "S-1002", "S-1003")
    assert answer[:2] == ("node name", "localhost")
    assert answer[2].startswith("3 machines report under this name (S-1001, S-1002, S-1003), each in place of ")


@pytest.mark.parametrize(
    "machines",
    [
        ("S-1001", "S-1001"),
        ("S-1001", "S-1002"),
        ("S-1001", "S-1002", "S-1003"),
        ("S-1001", None, "S-1001"),
        ("S-1001", "Default string", "S-1001"),
    ],
)
def test_a_machine_that_was_replaced_or_not_read_takes_no_turns(tmp_path, machines):
    assert turns(tmp_path, *machines) == []


@pytest.mark.parametrize(("ids", "found"), [("ababab", True), ("abbbbb", False)])
def test_machines_without_serial_numbers_are_told_apart_by_their_ids(tmp_path, ids, found):
    """A machine that is installed again has another id once; two take turns."""
    reports = [node("localhost", hour, serial=None, machine_id=f"beef-{id_}") for hour, id_ in enumerate(ids)]
    with asked(tmp_path, *reports, node("other", len(ids))) as tables:
        answers = find_duplicates(tables).duplicates

    assert [(duplicate.kind, duplicate.value) for duplicate in answers] == [("node name", "localhost")] * found


def test_machines_that_have_names_of_their_own_now(tmp_path):
    assert turns(tmp_path, "S-1001", "S-1002", "S-1001", later=26) == []


# By the numbers of nodes, or by the values of each kind: `fleet duplicates` answers the same.


VALUES = st.integers(0, 5)


@st.composite
def nodes(draw):
    collected = []
    for n in range(draw(st.integers(2, 5))):
        guid, mac, address, text = (draw(VALUES) for _ in range(4))
        name = draw(st.sampled_from(["eth0", "docker0"]))
        driver = draw(st.sampled_from(["mlx5_core", "bridge", None]))
        guids = [
            f"0c42:a103:0000:{guid:04x}",
            "0000:0000:0000:0000",
            "ffff:ffff:ffff:ffff",
            "0c42:a1ff:fe00:0001",
            "x",
            "",
        ]
        collected.append(
            node(
                f"n{n}",
                nics=[port(draw(st.integers(1, 3)), guids[guid])],
                netdevs=[interface(name, f"0c:42:a1:00:00:0{mac}", f"10.0.0.{address}/24", driver=driver)],
                gpus=[f"GPU-{draw(VALUES)}000", "N/A"],
                machine_id=["unknown", "a1b2", "c3d4", "\ud83d\ude00 id", "0000", "e5f6"][text],
            )
        )
    return collected


@settings(max_examples=25 if IN_FULL else 6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reports=nodes())
def test_both_ways_give_the_same(tmp_path_factory, monkeypatch, reports):
    with asked(tmp_path_factory.mktemp("both"), *reports) as tables:
        by_numbers = find_duplicates(tables)
        with monkeypatch.context() as patched:
            patched.setattr("agent.fleet.questions.duplicates.MOST", -1)
            assert find_duplicates(tables) == by_numbers


# A command line without each node's own words: the same as engines make it of what was ingested before.


WORDS = st.sampled_from(
    ["root=UUID=1", "ip=dhcp", "ro", "iommu=pt", "xroot=1", "rd.lvm.lv=a", "rdxlvm.lv=a", "initrd", "hostname=\té"]
)


@given(st.lists(WORDS), st.sampled_from([" ", "  ", "\n"]))
def test_engines_take_out_the_same(words, between):
    text = between.join(words)
    (result,) = duckdb.execute("SELECT regexp_replace(?, ?, ' ', 'g')", [text, PATTERN]).fetchone()
    assert common(text) == result


def test_only_whole_names_of_words_that_have_a_value():
    assert common("BOOT_IMAGE=/v ro root=a rooted=b ip rd.md.uuid=7").split() == ["ro", "rooted=b", "ip"]
    assert all(common(f"{item}=1") == " " for item in OWN)


@pytest.mark.parametrize("before", [False, True])
def test_an_odd_word_beside_words_of_their_own(tmp_path, before):
    """Also where the column was not there yet."""
    nodes = [node(f"n{n}", cmdline=f"root=UUID={n} ro iommu={'pt' if n else 'off'} ip=10.0.0.{n}") for n in range(9)]
    with asked(tmp_path, *nodes) as tables:
        if before:
            tables._view("host")
            tables._database.execute("CREATE TABLE told AS SELECT * REPLACE (NULL AS cmdline_common) FROM host")
            tables._database.execute("CREATE OR REPLACE VIEW host AS FROM told")
        result = [outlier for outlier in find_outliers(tables).outliers if outlier.attribute == "cmdline"]
    assert [(item.hosts, item.value, item.usual) for item in result] == [("n0", "iommu=off", "iommu=pt")]
