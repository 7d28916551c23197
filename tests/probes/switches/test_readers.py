"""Readers of switches' outputs: what is taken from each, and what is not from cut or odd ones; and each command of
`--recipe` has a reader, and none changes a switch.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from probes.switches.collection import Collection, read_collection
from probes.switches.facts import EcnProfile, Headroom, LinkRetry, PortFacts, SwitchFacts, SwitchNeighbor
from probes.switches.recipe import RECIPES, RecipeLine, format_recipe
from tests.probes.switches.outputs import OUTPUTS, PFC, STATUS, STORMS

ROCE = {
    **OUTPUTS["config_db.json", ""],
    "DSCP_TO_TC_MAP": {"ROCE": {"26": "3", "48": "6", "63": "9"}},
    "TC_TO_PRIORITY_GROUP_MAP": {"ROCE": {"3": "2", "6": "0"}},
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"ROCE": {"3": "2", "0": "0"}},
    "TC_TO_QUEUE_MAP": {"ROCE": {"3": "3", "6": "6"}},
    "MAP_PFC_PRIORITY_TO_QUEUE": {"ROCE": {"3": "3"}},
    "PORT_QOS_MAP": {
        "Ethernet0": {
            "dscp_to_tc_map": "[DSCP_TO_TC_MAP|ROCE]",
            "tc_to_pg_map": "ROCE",
            "pfc_to_pg_map": "ROCE",
            "tc_to_queue_map": "ROCE",
            "pfc_to_queue_map": "ROCE",
            "pfc_enable": "3",
            "pfcwd_sw_enable": "4",
        }
    },
    "QUEUE": {"Ethernet0|3-4": {"wred_profile": "ECN", "scheduler": "data"}, "Ethernet0|6": {"scheduler": "cnp"}},
    "WRED_PROFILE": {
        "ECN": {"ecn": "ecn_all", "green_min_threshold": "10", "green_max_threshold": "20",
                "green_drop_probability": "5"}
    },
    "SCHEDULER": {"data": {"type": "DWRR", "weight": "50"}, "cnp": {"type": "STRICT"}},
    "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"action": "drop", "detection_time": "200"}},
    "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}},
    "BUFFER_PG": {"Ethernet0|3": {"profile": "pg"}},
    "BUFFER_PROFILE": {"pg": {"size": "100", "xon": "20", "xoff": "80"}},
    "BUFFER_POOL": {"ingress": {"xoff": "1000"}},
}  # fmt: skip
LINES = [(system, line) for system, lines in RECIPES.items() for line in lines]


def read(tmp_path: Path, **files: Any) -> Collection:
    """One switch's folder; `__` of a name stands for a dot."""
    folder = tmp_path / "leaf1"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("__", ".")).write_text(text)
    return read_collection([str(folder)])


def port(tmp_path: Path, output: str, suffix: str = "txt", name: str = "Ethernet0") -> PortFacts:
    return read(tmp_path, output__txt=OUTPUTS[output, suffix]).switches["leaf1"].ports[name]


def test_a_configuration(tmp_path: Path) -> None:
    """DSCP to class to priority group to priority; queue to profile; watchdog, headroom, cable."""
    switch = read(tmp_path, config_db__json=ROCE).switches["leaf1"]
    facts = switch.ports["Ethernet0"]

    assert (switch.nos, switch.cli, switch.configuration, switch.poll_ms) == ("sonic", "sonic", True, 200)
    assert (facts.alias, facts.speed_gbit_s, facts.mtu, facts.fec_set) == ("etp1", 400, 9100, "rs")
    assert (facts.trust, facts.dscp_map, facts.dscp_prio) == ("dscp", "ROCE", {26: 3, 48: 0})
    assert (facts.dscp_queue, facts.pfc_queue, facts.pfc) == ({26: 3, 48: 6}, {3: 3}, frozenset({3}))
    assert facts.ecn == {number: EcnProfile(True, 10, 20, 5) for number in (3, 4)}
    assert facts.scheduler == {3: ("dwrr", 50), 4: ("dwrr", 50), 6: ("strict", None)}
    assert (facts.watchdog_configured, facts.watchdog, facts.watchdog_detect_ms) == (True, frozenset({4}), 200)
    assert (facts.cable_metres, facts.headroom) == (40, {3: Headroom(100, 80, True)})


def test_a_map_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    """Named by the port, absent from the configuration: no priority is made up."""
    damaged = {**ROCE, "TC_TO_PRIORITY_GROUP_MAP": {}}

    facts = read(tmp_path, config_db__json=damaged).switches["leaf1"].ports["Ethernet0"]

    assert facts.dscp_prio is None
    assert facts.pfc == frozenset({3})


def test_a_complete_configuration_without_qos_has_it_off(tmp_path: Path) -> None:
    """A part of one has it unknown."""
    whole = read(tmp_path, config_db__json=OUTPUTS["config_db.json", ""]).switches["leaf1"].ports["Ethernet0"]
    part = {"CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m"}}, "BUFFER_PG": {"Ethernet0|0": {}}}
    cut = read(tmp_path / ".." / tmp_path.name, config_db__json=part).switches["leaf1"].ports["Ethernet0"]

    assert (whole.pfc, whole.trust, whole.watchdog_configured, whole.ecn) == (frozenset(), "none", False, {})
    assert (cut.pfc, cut.trust, cut.watchdog_configured, cut.ecn) == (None, None, None, None)


def test_enterprise_names_and_flat_keys(tmp_path: Path) -> None:
    """Ports "Eth1/1" are of the other command line; keys "TABLE|KEY" are the same tables."""
    flat = {"PORT|Eth1/1": {"mtu": "9100"}, "PORT_QOS_MAP|Eth1/1": {"pfc_enable": "3"}}

    switch = read(tmp_path, config_db__json=flat).switches["leaf1"]

    assert (switch.cli, switch.configuration) == ("sonic-enterprise", False)
    assert switch.ports["Eth1/1"].pfc == frozenset({3})


def test_tables(tmp_path: Path) -> None:
    assert port(tmp_path, "show interfaces status").oper == "up"
    facts = port(tmp_path, "show interfaces status", name="Ethernet8")
    assert (facts.oper, facts.speed_gbit_s, facts.fec_active, facts.pfc_asymmetric) == ("down", 100, None, True)
    assert port(tmp_path, "show lldp table", name="Ethernet8").neighbors == [
        SwitchNeighbor("spine1", "etp4", "Ethernet24")
    ]
    assert port(tmp_path, "show lldp table").neighbors == [SwitchNeighbor("gpu01", "eth0", None)]
    assert port(tmp_path, "show interfaces fec status").fec_active is None
    assert port(tmp_path, "show interfaces counters fec-stats").counters["fec_uncorrected"] == 7
    assert port(tmp_path, "show interfaces counters fec-stats").pre_fec_ber == 1.2e-9
    assert port(tmp_path, "show interfaces counters fec-stats", name="Ethernet8").counters == {}
    assert port(tmp_path, "portstat -fh").counters == {"fec_near_limit": 1207}
    assert port(tmp_path, "portstat -fh", name="Ethernet8").counters == {}
    assert port(tmp_path, "show interfaces flap").counters == {"flaps": 5}
    counters = port(tmp_path, "show pfc counters").counters
    assert (counters["pfc_rx_3"], counters["pfc_tx_3"], "pfc_rx_4" in counters) == (1203, 44, False)
    assert port(tmp_path, "show pfcwd config").watchdog_action == "alert"
    storm = port(tmp_path, "show pfcwd stats")
    assert (storm.watchdog_state, storm.counters["watchdog_drop_tx_3"]) == ({3: "stormed"}, 300)
    assert port(tmp_path, "show pfcwd stats", name="Ethernet8").watchdog_state == {}
    assert port(tmp_path, "show priority-group drop counters").counters["drop_pg_3"] == 803
    queue = port(tmp_path, "show queue counters", "json").counters
    assert queue == {"queue_packets_3": 9, "queue_bytes_3": 1000, "drop_queue_3": 2}
    assert port(tmp_path, "show queue wredcounters", "json").counters == {"ecn_marked_3": 77}


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Of a release with another order and a new column; the new one is counted."""
    text = """\
  Interface    Oper    Admin    New    MTU    Speed
-----------  ------  -------  -----  -----  -------
  Ethernet0      up       up      x   9100     400G
"""
    switch = read(tmp_path, status__txt=text).switches["leaf1"]

    assert (switch.ports["Ethernet0"].mtu, switch.unknown_columns) == (9100, 1)


def test_link_retry(tmp_path: Path) -> None:
    text = """\
     PORT    LLR Mode    LLR Local    LLR Remote             LLR Profile
---------  ----------  -----------  ------------  ----------------------
Ethernet0      static      enabled       enabled  llr_800000_40m_profile
"""
    facts = read(tmp_path, llr__txt=text).switches["leaf1"].ports["Ethernet0"]

    assert facts.link_retry == LinkRetry(True, "llr_800000_40m_profile", 40)


def test_cumulus(tmp_path: Path) -> None:
    """`qos roce on` alone: the vendor's own maps; state and counters beside it."""
    root = {
        "system": {"hostname": "leaf1"},
        "qos": {"roce": {"enable": "on"}},
        "interface": {"swp1-2": {"link": {"mtu": 9216}}, "eth0": {}},
    }
    switch = read(
        tmp_path,
        config__json=[{"set": root}],
        ports__json=OUTPUTS["nv show interface", ""],
        nv_show_interface_swp1_counters_qos__json=OUTPUTS["nv show interface counters qos", ""],
    ).switches["leaf1"]
    facts = switch.ports["swp1"]

    assert (switch.cli, switch.roce_mode, sorted(switch.ports)) == ("nvue", "lossless", ["swp1", "swp2"])
    assert facts.dscp_prio is not None
    assert (facts.trust, facts.dscp_prio[26], facts.dscp_prio[48], facts.pfc) == ("both", 3, 6, frozenset({3}))
    assert (facts.watchdog_configured, facts.cable_metres, facts.oper) == (False, 100, "up")
    assert facts.counters == {"pfc_rx_3": 5, "pfc_tx_3": 6, "queue_packets_3": 1, "queue_bytes_3": 10,
                              "drop_queue_3": 2, "drop_pg_3": 4}  # fmt: skip
    assert facts.neighbors == [SwitchNeighbor("gpu01", "eth0", None, None)]


def test_cumulus_without_roce_is_known_to_be_off(tmp_path: Path) -> None:
    root = {"system": {"hostname": "leaf1"}, "qos": {"roce": {"enable": "off"}, "pfc": {}}, "interface": {"swp1": {}}}

    facts = read(tmp_path, config__json=[{"set": root}]).switches["leaf1"].ports["swp1"]

    assert (facts.trust, facts.pfc, facts.dscp_prio) == ("pcp", frozenset(), None)


def test_normalized_lines(tmp_path: Path) -> None:
    """A row that is wrong is one line; null is unknown."""
    lines = [
        {"name": "spine1", "nos": "eos"},
        {"switch": "spine1", "port": "Ethernet1/1", "mtu": 9214, "pfc": None, "pfc_wd": "on", "dscp_prio": "26:3"},
        {"switch": "spine1", "port": "Ethernet2/1", "pfc": "0001"},
        {"subject": "swport:spine1/Ethernet1/1", "name": "drop_queue3", "value": -1},
        {"subject": "swport:spine1/Ethernet1/1", "name": "drop_queue3", "value": 5},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"switch": "spine1", "po'

    result = read(tmp_path, rows__jsonl=text)

    assert [problem.partition(": ")[2] for problem in result.problems] == [
        "pfc is not eight digits of 0 and 1",
        "a counter needs subject, name and value",
        "the file ends within a row",
    ]
    facts = result.switches["spine1"].ports["Ethernet1/1"]
    assert (facts.mtu, facts.pfc, facts.watchdog_configured, facts.counters) == (9214, None, True, {"drop_queue_3": 5})


def test_two_switches_of_one_name_are_left_out(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config_db.json").write_text(json.dumps(OUTPUTS["config_db.json", ""]))

    result = read_collection([str(tmp_path)])

    assert result.switches == {}
    assert ["leaf1: 2 switches have this name" in line for line in result.problems] == [True]


def test_prompts_of_two_hosts_in_one_file(tmp_path: Path) -> None:
    text = f"admin@leaf1:~$ show interfaces status\n{STATUS}\nadmin@leaf2:~$ show pfc counters\n{PFC}"

    assert read(tmp_path, log__txt=text).switches == {}


def test_several_outputs_with_prompts_in_one_file(tmp_path: Path) -> None:
    text = f"admin@leaf9:~$ show interfaces status\n{STATUS}\nadmin@leaf9:~$ show pfc counters\n{PFC}"

    switch = read(tmp_path, log__txt=text).switches["leaf9"]

    assert switch.outputs == {"show interfaces status", "show pfc counters"}


def test_a_tar(tmp_path: Path) -> None:
    content = json.dumps(ROCE).encode()
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("fabric/leaf1/config_db.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))

    assert list(read_collection([str(tmp_path / "all.tar.gz")]).switches) == ["leaf1"]


@pytest.mark.parametrize("text", [STATUS, PFC, STORMS])
def test_a_cut_table_has_no_number_that_was_not_there(tmp_path: Path, text: str) -> None:
    """Cut anywhere: what is read is what the whole table has."""
    whole = read(tmp_path, output__txt=text).switches["leaf1"]
    for end in range(len(text) - 2, 0, -7):
        for switch in read(tmp_path, output__txt=text[:end]).switches.values():
            for name, facts in switch.ports.items():
                assert facts.counters.items() <= whole.ports[name].counters.items()
                for field in ("oper", "mtu", "speed_gbit_s", "alias", "fec_active", "pfc_asymmetric"):
                    assert getattr(facts, field) in (None, getattr(whole.ports[name], field)), (field, text[:end])
                assert facts.watchdog_state.items() <= whole.ports[name].watchdog_state.items()


def test_a_cut_table_says_so(tmp_path: Path) -> None:
    result = read(tmp_path, output__txt=STATUS[:-20])

    assert ["ends within a row" in line for line in result.problems] == [True]


@pytest.mark.parametrize(
    "document",
    [
        {"PORT": {"Ethernet0": {"mtu": ["x"], "speed": {}, "alias": 7}}, "PORT_QOS_MAP": {"Ethernet0": "x"}},
        {"PORT": {"Ethernet0": None}, "QUEUE": {"Ethernet0|x-y": {}, "|": {}, "Ethernet0|999": {}}},
        {"PORT": {"Ethernet0": {}}, "CABLE_LENGTH": {"AZURE": {"Ethernet0": 5}}, "PFC_WD": {"GLOBAL": []}},
        {"PORT": {"Ethernet0": {"mtu": "9" * 5000}}, "DSCP_TO_TC_MAP": {"A": {"-1": "3", "99": "x"}}},
        {"qos": {"pfc": []}, "interface": {"swp1-99999": {"qos": {"pfc": {"profile": {}}}}}, "system": 1},
        {"swp1": {"link": [], "lldp": {"neighbor": [1]}}, "swp2": {"link": {"state": 5}}},
    ],
)
def test_odd_values_are_unknown(tmp_path: Path, document: object) -> None:
    """No traceback, whatever stands where a text should."""
    result = read(tmp_path, odd__json=document)

    assert isinstance(next(iter(result.switches.values()), SwitchFacts("none")), SwitchFacts)
    assert len(result.problems) <= 1


@pytest.mark.parametrize(("system", "line"), LINES, ids=[f"{system} {line.output}" for system, line in LINES])
def test_every_command_has_a_reader(tmp_path: Path, system: str, line: RecipeLine) -> None:
    """A sample of its output, in the file that the recipe names, is read as that output."""
    folder = tmp_path / "leaf1"
    folder.mkdir()
    name = line.file.replace("PORT", "swp1")
    sample = OUTPUTS[line.output, name.rpartition(".")[2] if line.output.startswith("show") else ""]
    (folder / name).write_text(sample if isinstance(sample, str) else json.dumps(sample))

    [file] = read_collection([str(folder)]).files

    assert file.read_as == line.output


@pytest.mark.parametrize("system", RECIPES)
def test_commands_only_read(system: str) -> None:
    commands = format_recipe(system)

    assert not re.search(r"\b(set|apply|config (?!show)|clear|reload|start|rm)\b", commands)
    assert all(line.split("#")[0] == line or line.startswith("#") for line in commands.splitlines())
