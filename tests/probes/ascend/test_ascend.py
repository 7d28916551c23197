"""Ascend NPUs: which PCI function has which number, saved outputs of both tools, and what none of them says."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from agent.assemble import assemble
from agent.config import Configuration
from agent.history.context import build_context
from agent.outputs.html.page import render_html
from agent.outputs.text.page import render_page
from probes.ascend.hccn import CONFIGURATION, parse_hccn_conf, parse_rank_table
from probes.ascend.hccn_tool import parse_hccn
from probes.ascend.npu import PCI
from probes.ascend.npu_smi import parse_hccs, parse_info, parse_sio, parse_topology
from probes.catalogue import probe, providers
from probes.host.interface import BadSource, Denied
from probes.kernel.log_events import events
from probes.kernel.log_lines import lines
from probes.probe import Status, outcome_of
from probes.sources.open_source import open_source
from probes.sources.pasted import read_saved
from probes.text import ParseError
from tests.machines import scan_files
from tests.probes.machine import Machine, ask, read_facts

A3 = ["9d", "9f", "99", "9b", "95", "97", "91", "93", "8d", "8f", "89", "8b", "85", "87", "81", "83"]
INFO_A2 = """\
+----------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                           |
| NPU   Name                | Health        | Power(W)    Temp(C)            |
| Chip                      | Bus-Id        | AICore(%)   HBM-Usage(MB)      |
+===========================+===============+================================+
| 0     910B3               | OK            | 88.4        46                 |
| 0                         | 0000:C1:00.0  | 0           4175 / 65536       |
+===========================+===============+================================+
| 1     910B3               | OK            | 92.1        47                 |
| 0                         | 0000:01:00.0  | 0           4175 / 65536       |
+===========================+===============+================================+
| NPU     Chip              | Process id    | Process name                   |
| 7     910B3               | OK            | 92.1        47                 |
| 0                         | 0000:02:00.0  | 0           4175 / 65536       |
"""
TOPOLOGY = (
    "\t   NPU0   NPU1   CPU Affinity\nNPU0   X      HCCS   144-167\nNPU1   HCCS   X      0-23\n\nLegend:\n  X = Self\n"
)
HCCS = (
    "\thccs health status : OK\n\thccs lane mode : [4  2  0 ]\n\thccs link speed : [224  112  0 ]\n"
    "\thccs retry count : [0  7  0 ]\n\thccs error count : [0  9  0 ]\n\thccs first error lane : 2\n"
)
SIO = "\tTX Error Count                 : 0\n\tRX Error Count                 : 3\n"


def node(addresses: list[str], device: str = "0xd802", nodes: int | None = None, **files: str) -> Machine:
    """A live host with these NPUs; `files`: of each of their functions."""
    host = Machine(live=True, kind="live")
    for number, address in enumerate(addresses):
        result = {"vendor": "0x19e5", "class": "0x120000", "device": device, **files}
        host.put({f"{PCI}/{address}/{name}": text.format(number) + "\n" for name, text in result.items()})
    host.put({f"{PCI}/0000:00:00.0/{name}": "0x8086\n" for name in ("vendor", "class", "device")})
    return host.put(
        {f"/dev/davinci{n}": "" for n in range(len(addresses) if nodes is None else nodes)}
        | {"/dev/davinci_manager": ""}
    )


outcome, gpus, hccn = partial(ask, "npu"), partial(read_facts, "npu"), partial(read_facts, "hccn")


def test_ports_in_parentheses_with_commas() -> None:
    text = "hccs health status : abnormal\nhccs lane mode : (7,7,3)\nhccs crc error count : (0,0,5)\n"
    assert [(port.link, port.errors) for port in parse_hccs(text)] == [
        (1, {"crc": 0}),
        (2, {"crc": 0}),
        (3, {"crc": 5}),
    ]


def test_the_driver_numbers_npus() -> None:
    """The number is the driver's, whatever the order of the bus."""
    host = node(["0000:01:00.0", "0000:c1:00.0"], dev_id="{0}")
    host.put({f"{PCI}/0000:01:00.0/dev_id": "1\n", f"{PCI}/0000:c1:00.0/dev_id": "0\n"})
    assert {"0000:01:00.0": 1, "0000:c1:00.0": 0} == {gpu.address: gpu.index for gpu in gpus(host).gpus}


@pytest.mark.parametrize("number", ["7", "x", "999999999999"])
def test_numbers_that_cannot_be_are_none(number: str) -> None:
    """Two NPUs with one number, or no number: the order of the bus is no stand-in."""
    result = gpus(node(["0000:01:00.0", "0000:c1:00.0"], dev_id=number)).gpus
    assert [None, None] == [gpu.index for gpu in result]


def test_numbers_are_for_root() -> None:
    """What the driver keeps back is said once, and the NPUs are listed."""
    host = node(["0000:01:00.0", "0000:c1:00.0"])
    for address in ("0000:01:00.0", "0000:c1:00.0"):
        host.refused[f"{PCI}/{address}/dev_id"] = Denied("EACCES")
    result = outcome(host)
    assert (Status.PARTIAL, [None, None]) == (result.status, [gpu.index for gpu in result.facts.gpus])
    assert 1 == (result.reason or "").count("root")


def test_dies_of_an_a3_are_numbered_by_their_board() -> None:
    """All sixteen addresses are those of the board: numbers run down the buses, and two dies are a module."""
    result = gpus(node(sorted(f"0000:{bus}:00.0" for bus in A3), "0xd803"))
    assert [14, 15, 12, 13] == [gpu.index for gpu in result.gpus][:4]
    assert 8 == len(result.pairs)
    assert ("0000:9d:00.0", "0000:9f:00.0", "SIO") == result.pairs[0]


@pytest.mark.parametrize(("device", "count"), [("0xd803", 14), ("0xd804", 16), ("0xd802", 16)])
def test_another_board_has_no_numbers(device: str, count: int) -> None:
    """A part of the addresses, or another die, is not that board."""
    result = gpus(node([f"0000:{bus}:00.0" for bus in A3[:count]], device))
    assert {None} == {gpu.index for gpu in result.gpus}
    assert () == result.pairs


def test_fewer_device_nodes_than_functions() -> None:
    """Which NPU has none is not known: none is listed, and it is said how many there are."""
    result = gpus(node(["0000:01:00.0", "0000:c1:00.0"], nodes=1))
    assert ((), 1) == (result.gpus, result.attached)


def test_the_list_of_npus() -> None:
    """Numbers and addresses as printed, and no process is taken for an NPU."""
    result = parse_info(INFO_A2)
    assert [(0, "0000:c1:00.0", "Ascend 910B3", 65536), (1, "0000:01:00.0", "Ascend 910B3", 65536)] == [
        (npu.index, npu.address, npu.name, npu.memory_mib) for npu in result
    ]


def test_two_chips_of_a_card_without_a_physical_id() -> None:
    """Both carry the number of the card: neither has one of its own."""
    card = "| 0  310P3 | OK | 1 |\n| 0 | 0000:01:00.0 | 0 |\n| 0  310P3 | OK | 1 |\n| 1 | 0000:02:00.0 | 0 |\n"
    assert [None, None] == [npu.index for npu in parse_info(card)]


def test_a_pair_whose_directions_differ_counts_as_the_farther() -> None:
    """One direction is SYS: it is no HCCS pair."""
    text = "  NPU0 NPU1\nNPU0 X HCCS\nNPU1 SYS X\n"
    assert [("GPU0", "GPU1", "SYS")] == [tuple(pair) for pair in parse_topology(text).pairs]


def test_ports_of_hccs() -> None:
    """Lanes and speed of each column; without lanes the state is not known."""
    ports = parse_hccs(HCCS)
    assert ["active", "active", "inactive"] == [port.state for port in ports]
    assert [28.0, 14.0, None] == [port.speed_gbyte_s for port in ports]
    assert {"crc": 9, "retries": 7} == ports[1].errors
    assert "unknown" == parse_hccs("\thccs tx packets : [1 2]\n")[0].state


@pytest.mark.parametrize(
    "text", ["", "\thccs health status : OK\n", "\thccs lane mode : [4 4]\n\thccs error count : [0]\n"]
)
def test_ports_that_do_not_match_are_refused(text: str) -> None:
    """No ports, or lists of different length."""
    with pytest.raises(ParseError):
        parse_hccs(text)


def test_saved_outputs_give_hccs_pairs_and_ports(tmp_path: Path) -> None:
    """Pairs, ports with their rate, and addresses, by number."""
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "npu-smi_info_-t_topo.txt": TOPOLOGY,
            "npu-smi_info_-t_hccs_-i_1_-c_0.txt": HCCS,
        },
    )
    assert ["GPU1", "GPU0"] == [gpu.label for gpu in result.topology.gpus]
    assert ["HCCS"] == [path.kind for path in result.topology.paths]
    assert [("hccs", 28.0), ("hccs", 14.0), ("hccs", None)] == [
        (link.protocol, link.signal_gbyte_s) for link in result.topology.gpus[0].links
    ]


@pytest.mark.parametrize("text", ["", "TX Error Count : NA\n", SIO + SIO, "hccs lane mode : [4]\n"])
def test_errors_between_dies_that_are_none_or_of_several_are_refused(text: str) -> None:
    """Whose they are would not be known."""
    with pytest.raises(ParseError):
        parse_sio(text)


def test_errors_between_dies_are_of_the_die(tmp_path: Path) -> None:
    """A card has two chips; one that only such an output names is there as well."""
    found = scan_files(tmp_path, **{f"npu-smi_info_-t_sio-info_-i_1_-c_{chip}.txt": SIO for chip in (0, 1)})

    assert [(2, {"sio.rx": 3, "sio.tx": 0}), (3, {"sio.rx": 3, "sio.tx": 0})] == [
        (gpu.index, gpu.error_counts) for gpu in found.topology.gpus
    ]
    assert all(not gpu.links for gpu in found.topology.gpus)


def test_ports_are_drawn_beside_their_npu(tmp_path: Path) -> None:
    """What is known of the RoCE port in the text, and below the links in the picture."""
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "npu-smi_info_-t_hccs_-i_1_-c_0.txt": HCCS,
            "hccn_tool_-i_1_-link_-g.txt": "link status: UP\n",
            "hccn_tool_-i_1_-pfc_-g.txt": "enabled  0 0 0 0 0 0 0 0\n",
            "hccn_tool_-i_0_-speed_-g.txt": "Speed: 200000 Mb/s\n",
        },
    )
    page = "\n".join("".join(part for part, _ in line) for line in render_page(result, 120))
    html = render_html(result)
    for text in ("RoCE up PFC off", "RoCE 200G"):
        assert text in page
        assert f"port: {text}" in html
    assert "2 of 3 HCCS links up" in html
    assert "C2C" not in html.partition("<svg")[2].partition("</svg>")[0]


def test_the_matrix_is_drawn(tmp_path: Path) -> None:
    """One sentence for equal pairs, ports beside each NPU, an arc for each pair, and what the word means."""
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "npu-smi_info_-t_topo.txt": TOPOLOGY,
            "npu-smi_info_-t_hccs_-i_1_-c_0.txt": HCCS,
        },
    )
    page = "\n".join("".join(part for part, _ in line) for line in render_page(result, 120))
    assert "HCCS between both GPUs" in page
    assert "HCCS: links of Ascend NPUs" in page
    assert "HCCS 2/3" in page
    html = render_html(result)
    assert ": 1 direct link<" in html
    assert "HCCS" in html


def test_dies_of_a_module_are_drawn() -> None:
    """The matrix has SIO for them, and a question mark for pairs that no tool was asked about."""
    host = node(sorted(f"0000:{bus}:00.0" for bus in A3), "0xd803")
    result = assemble([outcome_of(probe(name), host) for name in ("pci", "npu", "hccn")], providers())  # type: ignore[arg-type]
    kinds = Counter(path.kind for path in result.topology.paths)
    assert {"SIO": 8, None: 112} == kinds


@pytest.mark.parametrize(
    ("device", "addresses"),
    [
        ("0xd802", ["0000:01:00.0", "0000:c1:00.0"]),
        ("0xd803", sorted(f"0000:{bus}:00.0" for bus in A3[:14])),
        ("0xd806", ["0000:01:00.0", "0000:02:00.0"]),
    ],
)
def test_an_npu_without_a_number_is_called_by_its_address(device: str, addresses: list[str]) -> None:
    """Neither the driver nor a known board numbers it: the order of the bus does not, and no port becomes its own."""
    host = node(addresses, device).put({CONFIGURATION: "address_0=10.0.0.1\naddress_1=10.0.0.2\n"})
    outcomes = [outcome_of(probe(name), host) for name in ("pci", "npu", "hccn")]  # type: ignore[arg-type]
    result = assemble(outcomes, providers()).topology
    assert [(address, None, f"GPU@{address}") for address in addresses] == [
        (gpu.id, gpu.index, gpu.label) for gpu in result.gpus
    ]
    assert [None, None] == [port.gpu for port in result.ascend.ports] if result.ascend else False
    assert ["npu-0", "npu-1"] == [nic.accelerator for nic in result.nics]


def test_numbers_without_addresses_beside_a_bus_are_not_npus_more(tmp_path: Path) -> None:
    """lspci shows two NPUs, and a matrix two numbers: they are the same, and which is which is not known."""
    lspci = "\n".join(
        f"0000:{bus}:00.0 Processing accelerators [1200]: Huawei Ascend 910B [19e5:d802] (rev 20)"
        for bus in ("01", "c1")
    )
    result = scan_files(tmp_path, **{"lspci_-D_-nn_-vvv.txt": lspci + "\n", "npu-smi_info_-t_topo.txt": TOPOLOGY})
    assert ["GPU@0000:01:00.0", "GPU@0000:c1:00.0"] == [gpu.label for gpu in result.topology.gpus]
    assert [None] == [path.kind for path in result.topology.paths]


def test_a_path_of_a_910b_has_the_rate_of_one_port(tmp_path: Path) -> None:
    """The matrix says HCCS, and the PCI id that seven ports join eight NPUs; A3 has switches between."""
    for device, rate in (("d802", 28.0), ("d803", None)):
        lspci = "\n".join(
            f"0000:{bus}:00.0 Processing accelerators [1200]: Huawei Technologies Co., Ltd. Device [19e5:{device}]"
            for bus in ("01", "c1")
        )
        folder = tmp_path / device
        folder.mkdir()
        saved = {"npu-smi_info.txt": INFO_A2, "npu-smi_info_-t_topo.txt": TOPOLOGY}
        result = scan_files(folder, **{"lspci_-D_-nn_-vvv.txt": lspci + "\n"}, **saved)
        assert [("HCCS", rate)] == [(path.kind, path.bandwidth_gbyte_s) for path in result.topology.paths]


def test_a_transcript_of_hccn_tool() -> None:
    """Each answer belongs to the NPU of the command before it, or of the number in the line."""
    ports = parse_hccn(
        "/usr/local/Ascend/driver/tools/hccn_tool -i 3 -link -g\nlink status: UP\n"
        "hccn_tool -i 3 -speed -g\nSpeed: 200000 Mb/s\n"
        "hccn_tool -i 4 -pfc -g\nPFC configuration:\npriority 0 1 2 3 4 5 6 7\nenabled  0 0 0 0 1 0 0 0\n"
        "cat x\ndev_id:5, tls switch[1](0:disable, 1:enable)\n[devid 6]link down count : 2\n"
        "hccn_tool -i 7 -stat -g\nroce_rx_err_pkt_num:11\n"
        "hccn_tool -i 8 -pfc_stat -g\ntx_pfc4_duration_time=12.345ms\ntx_pfc5_duration_time=7ms\n"
        "rx_pfc4_duration_time=0.5ms\ntx_pfc4_duration_err_cnt:3\ntx_pfc8_duration_time=1ms\n"
    )
    assert [3, 4, 5, 6, 7, 8] == [port.npu for port in ports]
    assert ("up", 200_000) == (ports[0].state, ports[0].speed_mbit_s)
    assert (4,) == ports[1].pfc
    assert ports[2].tls is True
    assert {"link_down_events": 2} == ports[3].counters
    assert {"roce_rx_err_pkt_num": 11} == ports[4].counters
    assert ports[5].counters == {
        "tx_pfc4_duration_us": 12_345, "tx_pfc5_duration_us": 7000, "rx_pfc4_duration_us": 500,
        "tx_pfc4_duration_err_cnt": 3,
    }  # fmt: skip


@pytest.mark.parametrize("label", ["npu {}: ", "NPU{}:", "Device {} => ", "card {} | "])
def test_lines_of_hccn_tool_behind_the_label_of_a_loop(label: str) -> None:
    command = "$ for i in 2 3; do echo -n $i; hccn_tool -i $i -link -g; done\n"
    lines = "".join(f"{label.format(n)}link status: {state}\n" for n, state in ((2, "UP"), (3, "DOWN")))

    assert [(2, "up"), (3, "down")] == [(port.npu, port.state) for port in parse_hccn(command + lines)]


OPTICAL = """\
optical info:
present              : present
temperature          : 51 C
high power enable reg: enabled
vendor name          : MAKER
vendor part number   : PART-1
vendor serial number : SERIAL1
vendor org unique id : 0x0 0x1 0x2
xsfp identifier      : QSFP56
xsfp wave length     : 850 nm
Vcc                  : 3296.80 mV
Tx Power0            : 1.0000 mW
Rx Power0            : 0.5000 mW
Tx Power1            : 1.2589 mW
Rx Power1            : 0.0000 mW
Tx Power2            : NA
Rx Power2            : NA
Vcc High Thres       : 3630.00 mV
Temp High Thres      : 75 C
Temp Low Thres       : -5 C
TxPower High Thres   : 5.0119 mW
TxPower Low Thres    : 0.1000 mW
RxPower High Thres   : 5.0119 mW
RxPower Low Thres    : 0.0000 mW
Tx Bias0             : 7.5000 mA
Tx Los Flag          : 0x0
Rx Los Flag          : 0x2
"""


def test_a_module_of_a_port() -> None:
    """Milliwatts become dBm; a limit of 0 is none, and a lane that is NA does not exist."""
    optics = parse_hccn(OPTICAL, 3)[0].optics
    assert optics is not None
    assert (True, True, "QSFP56", "MAKER", "PART-1", "SERIAL1") == optics[:6]
    assert (51.0, 3.297) == (optics.temperature_c, optics.voltage_v)
    assert ({1: -3.01, 2: -40.0}, {1: 0.0, 2: 1.0}, {1: 7.5}) == (
        optics.rx_power_dbm,
        optics.tx_power_dbm,
        optics.tx_bias_ma,
    )
    assert {
        "temperature_high_alarm_c": 75.0,
        "temperature_low_alarm_c": -5.0,
        "rx_power_high_alarm_dbm": 7.0,
        "tx_power_high_alarm_dbm": 7.0,
        "tx_power_low_alarm_dbm": -10.0,
    } == optics.limits
    assert ("rx_los",) == optics.flags


def test_modules_of_a_loop() -> None:
    """Each block begins with its first line; a module that is not there has no values."""
    gone = "optical info:\npresent              : not present\ntemperature          : NA\nvendor name          : \n"
    loop = "for i in {0..1}; do hccn_tool -i $i -optical -g; done\n"
    first, second = (port.optics for port in parse_hccn(read_saved(loop + OPTICAL + gone, "hccn_tool")[0]))
    assert first is not None
    assert 51.0 == first.temperature_c
    assert second is not None
    assert (False, None, None, {}, ()) == (
        second.present,
        second.high_power,
        second.temperature_c,
        second.limits,
        second.flags,
    )
    assert parse_hccn("temperature          : 51 C\n", 0)[0].optics is None
    for state in ("not enabled", "?"):
        stated = parse_hccn(OPTICAL.replace("reg: enabled", f"reg: {state}"), 0)[0].optics
        assert stated is not None
        assert ({"not enabled": False}.get(state), 51.0) == (stated.high_power, stated.temperature_c)


def test_modules_of_the_report(tmp_path: Path) -> None:
    """By lane, with the state that a port without a module has."""
    (tmp_path / "sys").mkdir()
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "hccn_tool_-i_0_-optical_-g.txt": OPTICAL,
            "hccn_tool_-i_1_-optical_-g.txt": "present              : not present\n",
            "hccn_tool_-i_2_-optical_-g.txt": OPTICAL.replace(": enabled", ": not enabled"),
        },
    )
    assert result.topology.ascend is not None
    modules = [port.module for port in result.topology.ascend.ports]
    assert [None, "absent", "low_power"] == [module.state for module in modules if module]
    first = modules[0]
    assert first is not None
    assert [(1, -3.01, 0.0, 7.5), (2, -40.0, 1.0, None)] == [
        (lane.lane, lane.rx_power_dbm, lane.tx_power_dbm, lane.tx_bias_ma) for lane in first.lanes
    ]
    assert ("MAKER", "QSFP56", ["rx_los"]) == (first.vendor, first.identifier, first.flags)


def test_a_loop_with_an_answer_missing_is_nobodys() -> None:
    """Eight NPUs and two answers: whose they are is not known."""
    loop = "for i in {0..7}; do hccn_tool -i $i -ip -g; done\nipaddr:10.0.0.1\nipaddr:10.0.0.2\n"
    with pytest.raises(ParseError):
        parse_hccn(loop)


def test_the_file_of_ports() -> None:
    """What was set, by NPU; and why nothing is known where it may not be read."""
    host = node(["0000:01:00.0"]).put(
        {
            CONFIGURATION: "address_0=10.0.0.1\nbitmap_0=0,0,0,0,1,0,0,0\n...\nmtu_99=1500\n",
            "/usr/local/Ascend/driver/version.info": "Version=25.5.1\nother=1\n",
        }
    )
    result = hccn(host)
    assert ({0: {"address": "10.0.0.1", "bitmap": "0,0,0,0,1,0,0,0"}}, "read") == (result.keys, result.configuration)
    assert ("25.5.1", None, 1) == (result.driver_version, result.firmware_version, result.device_nodes)
    host.refused[CONFIGURATION] = Denied("/etc/hccn.conf: Permission denied", "EACCES")
    denied = ask("hccn", host)
    assert Status.PARTIAL == denied.status
    assert "/etc/hccn.conf: Permission denied" == denied.facts.configuration
    assert "empty" == hccn(node(["0000:01:00.0"]).put({CONFIGURATION: ""})).configuration


def test_saved_ports_are_joined_with_their_npu(tmp_path: Path) -> None:
    """By number; the report has what the port answers, and what was set where it was not asked."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "sys").mkdir()
    (tmp_path / "etc" / "hccn.conf").write_text(
        "address_0=10.0.0.1\nmtu_0=4200\nudp_port_mode_0=1\naddress_2=10.0.0.3\n"
    )
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "hccn_tool_-i_1_-link_-g.txt": "link status: DOWN\n",
            "hccn_tool_-i_0_-ip_-g.txt": "ipaddr:10.0.0.9\nnetmask:255.255.255.0\n",
            "hccn_tool_-i_0_-net_health_-g.txt": "net health status: Success\n",
        },
    )
    ascend = result.topology.ascend
    assert ascend is not None
    first, second, third = ascend.ports
    assert ("0000:c1:00.0", "10.0.0.9", 4200, "Success") == (first.gpu, first.address, first.mtu, first.health)
    assert {"udp_port_mode": "1"} == first.settings
    assert ("0000:01:00.0", "npu-1-roce") == (second.gpu, second.nic)
    assert (2, None, "10.0.0.3") == (third.npu, third.gpu, third.address)


def test_roce_ports_are_nics_of_their_npu(tmp_path: Path) -> None:
    """Rows that name their NPU, for the fleet and for comparison; no rule about NICs of the host sees them."""
    (tmp_path / "sys").mkdir()
    result = scan_files(
        tmp_path,
        **{
            "npu-smi_info.txt": INFO_A2,
            "hccn_tool_-i_0_-link_-g.txt": "link status: UP\n",
            "hccn_tool_-i_0_-speed_-g.txt": "Speed: 200000 Mb/s\n",
            "hccn_tool_-i_0_-stat_-g.txt": "roce_rx_err_pkt_num:11\n",
            "hccn_tool_-i_1_-link_-g.txt": "link status: DOWN\n",
            "hccn_tool_-i_1_-speed_-g.txt": "Speed: 200000 Mb/s\n",
            "hccn_tool_-i_2_-ip_-g.txt": "ipaddr:10.0.0.9\n",
        },
    )
    rows = result.topology.nics
    assert [
        ("npu-0-roce", "NPU0", "0000:c1:00.0", "rail"),
        ("npu-1-roce", "NPU1", "0000:01:00.0", "rail"),
        ("npu-2-roce", "NPU2", "npu-2", "rail"),
    ] == [(nic.id, nic.label, nic.accelerator, nic.role) for nic in rows]
    assert [("ACTIVE", 200.0), ("DOWN", None), (None, None)] == [
        (port.state, port.rate_gbit_s) for nic in rows for port in nic.ports
    ]
    assert {"roce_rx_err_pkt_num": 11} == rows[0].ports[0].hw_counters
    assert all((nic.pci, nic.driver, nic.rdma_device, nic.numa_node) == (None,) * 4 for nic in rows)
    assert [] == result.topology.host_nics
    case = build_context(result, Configuration().settings, result.platform, None)
    assert ([], ()) == (case.topology.nics, case.rails)
    assert not any("npu-0-roce" in path.b for path in result.topology.paths)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HCCS, "does not state its NPU"),
        (SIO, "does not state its NPU"),
        ("link status: UP\n", "hccn_tool"),
        ('{"version": "2.0", "rank_list": []}', "2.0"),
    ],
)
def test_an_output_without_its_npu_is_refused_with_the_reason(text: str, why: str, tmp_path: Path) -> None:
    """One line names what is missing."""
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(BadSource, match=why):
        open_source(str(tmp_path / "a.txt"))


def test_rank_tables() -> None:
    """Of every version that names servers, with the remarks of the manual."""
    table = '{"version": "1.0", // x\n "server_list": [{"server_id": "a//b", "device": [{"device_id": "7"}, 1]}]}'
    assert [("a//b", 7, None)] == [tuple(device) for device in parse_rank_table(table)]
    groups = (
        '{"group_list": [{"instance_list": [{"server_id": "n", "devices": [{"device_id": "1", "device_ip": "::1"}]}]}]}'
    )
    assert [("n", 1, "::1")] == [tuple(device) for device in parse_rank_table(groups)]
    for text in ("[]", "{", "[" * 5000, '{"rank_list": []}', "3"):
        with pytest.raises(ParseError):
            parse_rank_table(text)


def test_keys_of_the_file_are_bounded() -> None:
    """A hostile file: no number of an NPU that cannot be, nothing longer than a value."""
    assert {} == parse_hccn_conf("address_64=1\n_1=2\naddress_1=\n" + "x" * 50 + "_1=2\naddress_1=" + "y" * 300)


def test_lines_of_the_driver() -> None:
    """A heartbeat names the device, an event its code; a line of another driver with the same words is none."""
    text = (
        "[ 1197.584409] [ascend] [ERROR] [drv_soft_fault] [heart_beat_judge 318] <kworker/5:1H:39365> "
        "Heartbeat lost! (device=1; old_count=1104; new_count=1104;\n"
        "[ 1198.000000] [ascend] [ERROR] [dms] [event 1] <x> Event id=0x80b98000\n"
        "[ 1199.000000] [ascend] [ERROR] [dms] [event 1] <x> event_id:  [0x81A38605]\n"
        "[ 1200.000000] other: Event id=0x80b98000\n"
    )
    result, _ = events(lines(text, None))
    assert [
        ("npu_heartbeat", "heartbeat-lost", (("device", "1"),)),
        ("npu_fault", "0x80b98000", ()),
        ("npu_fault", "0x81A38605", ()),
    ] == [(event.kind, event.code, event.detail) for event in result]
