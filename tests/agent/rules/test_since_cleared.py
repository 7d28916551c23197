"""Counters of a source that can give no second sample: which values are a finding, and which every host has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from agent.rules.catalogue import every_rule
from agent.rules.since_cleared import FLOORS
from tests.agent.fragments.output_sets import PAGE, OutputSet, find_with, list_unseen, read_page
from tests.agent.rules.test_fragments import scan_text, warnings_of
from tests.conftest import IN_FULL

_HW = "/sys/class/infiniband/mlx5_{}/ports/1/hw_counters/{}:{}\n"
_IP_LINK = (
    "$ ip -s -s link show ens2f0\n"
    "4: ens2f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000\n"
    "    link/ether 0c:42:a1:12:34:56 brd ff:ff:ff:ff:ff:ff\n"
    "    RX:  bytes packets errors dropped  missed   mcast\n"
    "    9182312312 {packets} {errors} 0 0 12\n"
)
_KINDS = (
    "    RX errors:  length    crc   frame    fifo overrun\n                     0  {crc}       0       0       0\n"
)
_LOOP = (
    '$ for i in symbol_error link_downed; do echo -n "$i "; '
    "cat /sys/class/infiniband/mlx5_1/ports/1/counters/$i; done\n"
)
_STATISTIC = (
    "link mlx5_5/1 rx_write_requests 812345 packet_seq_err 12 local_ack_timeout_err {timeouts} out_of_buffer 0\n"
)
_NPU = (
    "# hccn_tool -i 6 -stat -g\npacket statistics:\nmac_rx_total_pkt_num:81238123\nmac_rx_fcs_err_pkt_num:{damaged}\n"
    "roce_rx_all_pkt_num:81200000\nroce_tx_all_pkt_num:91200000\nroce_new_pkt_rty_num:{again}\n"
)


def ethtool(interface: str = "ens6f0np0", **counters: int) -> str:
    """An `ethtool -S` below its command."""
    rows = "".join(f"     {name}: {count}\n" for name, count in counters.items())
    return f"$ ethtool -S {interface}\nNIC statistics:\n{rows}"


FAULTS = {
    "damaged frames": (ethtool(rx_crc_errors_phy=41_231), "roce-rt-crc ens6f0np0"),
    "damaged frames of many": (
        ethtool(rx_packets_phy=9_000_000_000, rx_crc_errors_phy=88_123), "roce-rt-crc ens6f0np0",
    ),
    "a link that flaps": (ethtool(link_down_events_phy=55), "roce-link-flap ens6f0np0"),
    "lost blocks": (ethtool(rx_pcs_symbol_err_phy=88_123), "roce-fec-ber ens6f0np0"),
    "discards of much traffic": (
        ethtool(rx_packets_phy=1_000_000, rx_discards_phy=20_000), "roce-rt-rx-discards ens6f0np0",
    ),
    "a pause storm": (ethtool(tx_pause_storm_error_events=1), "roce-rt-pause-storm ens6f0np0"),
    "timeouts": (
        _HW.format(2, "local_ack_timeout_err", 22_705) + _HW.format(2, "packet_seq_err", 81_223),
        "ib-hwcounter-transport mlx5_2/1",
    ),
    "timeouts of RoCE": (
        _HW.format(2, "local_ack_timeout_err", 22_705) + _HW.format(2, "np_cnp_sent", 3),
        "roce-rt-ack-timeout mlx5_2/1",
    ),
    "timeouts of RoCE at one of two ports": (
        _HW.format(2, "local_ack_timeout_err", 22_705)
        + "".join(_HW.format(n, "np_ecn_marked_roce_packets", 3) for n in (1, 2)),
        "roce-rt-ack-timeout mlx5_2/1",
    ),
    "rdma statistic": (_STATISTIC.format(timeouts=9312), "ib-hwcounter-transport mlx5_5/1"),
    "rdma statistic, wrapped": (
        _STATISTIC.format(timeouts=9312).replace(" packet_seq_err", "\npacket_seq_err"),
        "ib-hwcounter-transport mlx5_5/1",
    ),
    "rdma -p statistic": (
        re.sub(r" (?=[a-z_]+ \d)", "\n    ", _STATISTIC.format(timeouts=9312)),
        "ib-hwcounter-transport mlx5_5/1",
    ),
    "rdma -j statistic": (
        '[{"ifindex":1,"ifname":"mlx5_1","port":1,"out_of_buffer":0,"local_ack_timeout_err":41231}]\n',
        "ib-hwcounter-transport mlx5_1/1",
    ),
    "node_exporter": (
        'node_infiniband_link_downed_total{device="mlx5_3",port="1"} 61\n'
        'node_infiniband_symbol_error_total{device="mlx5_3",port="1"} 9.1e+03\n',
        "ib-link-flap mlx5_3/1",
    ),
    "a loop over counters": (_LOOP + "symbol_error 65535\nlink_downed 9\n", "ib-symbol-errors mlx5_1/1"),
    "ip -s -s link": (
        _IP_LINK.format(packets=912_381_238, errors=81_233) + _KINDS.format(crc=81_233), "roce-rt-crc ens2f0",
    ),
    "ip -s link": (_IP_LINK.format(packets=912_381_238, errors=81_233), "roce-rt-crc ens2f0"),
    "ifconfig": (
        "ens7: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000\n        ether 0c:42:a1:aa:bb:cc  txqueuelen 1000\n"
        "        RX packets 9123812  bytes 81238123812 (81.2 GB)\n"
        "        RX errors 912312  dropped 0  overruns 0  frame 912312\n",
        "roce-rt-crc ens7",
    ),
    "ifconfig of net-tools 1": (
        "ens7      Link encap:Ethernet  HWaddr 0C:42:A1:AA:BB:CC\n"
        "          UP BROADCAST RUNNING MULTICAST  MTU:9000  Metric:1\n"
        "          RX packets:9123812 errors:912312 dropped:0 overruns:0 frame:912312\n",
        "roce-rt-crc ens7",
    ),
    "damaged frames of an NPU": (_NPU.format(damaged=81_231, again=3), "roce-rt-crc NPU6/1"),
    "packets that an NPU sent again": (_NPU.format(damaged=0, again=91_231), "roce-rt-retrans NPU6/1"),
}  # fmt: skip
HEALTHY = {
    "a link that started": ethtool(link_down_events_phy=3, rx_crc_errors_phy=40, rx_symbol_err_phy=999),
    "few of much traffic": ethtool(rx_packets_phy=90_000_000_000_000, rx_crc_errors_phy=41_231),
    "pauses": ethtool(rx_prio3_pause=91_823_123, tx_prio3_pause=8123, rx_prio3_pause_duration=812_312),
    "discards without traffic": ethtool(rx_discards_phy=20_000),
    "few discards": ethtool(rx_packets_phy=900_000_000_000, rx_discards_phy=20_000),
    "all-ones": ethtool(rx_crc_errors_phy=2**32 - 1),
    "no buffer, congestion": _HW.format(2, "out_of_buffer", 812_312) + _HW.format(2, "np_cnp_sent", 91_823_123),
    "jobs that ended": _HW.format(2, "local_ack_timeout_err", 84) + _HW.format(2, "packet_seq_err", 121),
    "rdma statistic": _STATISTIC.format(timeouts=3),
    "ip -s link": _IP_LINK.format(packets=912_381_238, errors=1200),
    "an NPU": _NPU.format(damaged=81, again=121),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ethtool(rx_discards_phy=884_213), "roce-rt-rx-discards ens6f0np0"),
        (ethtool(rx_discards_phy=84_213), None),
        (
            ethtool(rx_discards_phy=884_213, rx_prio3_bytes=91_823, rx_prio3_discards=884_213),
            "roce-rt-rx-discards ens6f0np0",
        ),
        (_STATISTIC.format(timeouts=0).replace("seq_err 12 ", "seq_err 51877 "), "roce-rt-retrans mlx5_5/1"),
        (_STATISTIC.format(timeouts=0).replace("seq_err 12 ", "seq_err 1877 "), None),
    ],
)
def test_a_large_value_beside_no_count_of_traffic_is_a_note(text: str, expected: str | None, tmp_path: Path) -> None:
    found = scan_text(tmp_path, text, "issue.txt").findings

    assert ([expected] if expected else []) == [f"{one.rule} {one.label}" for one in found]
    assert all(("info", "low") == (one.severity, one.confidence) for one in found)


@pytest.mark.parametrize("name", FAULTS)
def test_a_value_alone_is_a_finding_of_low_confidence(name: str, tmp_path: Path) -> None:
    text, expected = FAULTS[name]
    (finding,) = warnings_of(scan_text(tmp_path, text, "issue.txt"))

    assert expected == f"{finding.rule} {finding.label}"
    assert ("warning", "low") == (finding.severity, finding.confidence)
    assert "since the counters were last cleared" in finding.summary
    assert finding.impact.startswith("The counters have no date")
    assert finding.steps[0].do.startswith("Read them again a minute later, under load: `")


@pytest.mark.parametrize("name", HEALTHY)
def test_what_every_host_counts_is_none(name: str, tmp_path: Path) -> None:
    assert [] == warnings_of(scan_text(tmp_path, HEALTHY[name], "issue.txt"))


@pytest.mark.parametrize(("others", "expected"), [(0, 1), (2, 0)], ids=["far beyond its peers", "as its peers"])
def test_peers_of_the_same_text_lower_the_floor(others: int, expected: int, tmp_path: Path) -> None:
    text = "".join(ethtool(f"ens{n}np0", link_down_events_phy=15 if n == 3 else others) for n in range(4))

    assert expected == len(warnings_of(scan_text(tmp_path, text, "issue.txt")))


def test_the_check_itself_stays_unknown(tmp_path: Path) -> None:
    report = scan_text(tmp_path, ethtool(rx_crc_errors_phy=41_231), "issue.txt")

    assert "unknown" == next(check.state for check in report.checks if check.rule == "roce-rt-crc")


def test_the_step_names_the_command_that_was_given(tmp_path: Path) -> None:
    (finding,) = warnings_of(scan_text(tmp_path, ethtool(rx_crc_errors_phy=41_231), "issue.txt"))

    assert "`ethtool -S ens6f0np0`" in finding.steps[0].do
    assert "`fabricscope scan --interval 60`" in finding.steps[0].do


def test_no_floor_is_of_a_counter_that_healthy_hosts_move() -> None:
    assert not [name for name in FLOORS if "cnp" in name or name.endswith(("_pause", "_duration", "xmit_wait"))]


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"rx_crc_errors_phy": 1000}, 1),
        ({"rx_crc_errors_phy": 999}, 0),
        ({"rx_crc_errors_phy": 1000, "rx_packets_phy": 9_999_999_000}, 1),
        ({"rx_crc_errors_phy": 1000, "rx_packets_phy": 10_000_000_001}, 0),
        ({"rx_crc_errors": 5000}, 1),
        ({"rx_crc_errors.nic": 5000, "rx_unicast.nic": 7000}, 1),
        ({"link_down_events_phy": 20}, 1),
        ({"link_down_events_phy": 19}, 0),
    ],
)
def test_the_least_values(counters: dict[str, int], expected: int, tmp_path: Path) -> None:
    assert expected == len(warnings_of(scan_text(tmp_path, ethtool(**counters), "issue.txt")))


# Two outputs of one command


def again(command: str, first: str, second: str, host: str = "n7", other: str = "") -> str:
    """One command twice at the prompts of a host, or of two."""
    return f"[root@{host} ~]# {command}\n{first}[root@{other or host} ~]# {command}\n{second}"


_ERRORS = "/sys/class/infiniband/mlx5_1/ports/1/{}"
_NVLINK = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1b9c)\n\t Link 0: Replay Errors: {}\n\t Link 1: Replay Errors: 0\n"
GROWN = {
    "ethtool": (
        again("ethtool -S ens6f0 | grep crc", "     rx_crc_errors_phy: 12\n", "     rx_crc_errors_phy: 212\n"),
        "roce-rt-crc ens6f0: 200 received frames with a wrong check sum between two outputs of the source",
    ),
    "ethtool after a wait": (
        "$ ethtool -S ens6f0 | grep crc\n     rx_crc_errors_phy: 12\n"
        "$ sleep 20; ethtool -S ens6f0 | grep crc\n     rx_crc_errors_phy: 32\n",
        "roce-rt-crc ens6f0: 20 received frames with a wrong check sum in 20 s",
    ),
    "ethtool twice in one line": (
        "$ ethtool -S ens6f0 | grep uncorr; sleep 10; ethtool -S ens6f0 | grep uncorr\n"
        "     rx_fec_uncorrectable_blocks: 7\n     rx_fec_uncorrectable_blocks: 307\n",
        "roce-fec-ber ens6f0: 300 blocks that FEC could not correct in 10 s",
    ),
    "files read again by the shell's history": (
        f"$ grep . {_ERRORS.format('counters/symbol_error')} ; sleep 10 ; !!\n"
        f"{_ERRORS.format('counters/symbol_error')}:12\n{_ERRORS.format('counters/symbol_error')}:9012\n",
        "ib-symbol-errors mlx5_1/1: 9000 symbol errors in 10 s",
    ),
    "a file of the kernel": (
        again(f"cat {_ERRORS.format('counters/symbol_error')}", "12\n", "9012\n"),
        "ib-symbol-errors mlx5_1/1: 9000 symbol errors between two outputs of the source",
    ),
    "files of the kernel": (
        again(
            f"grep . {_ERRORS.format('hw_counters/')}*",
            f"{_ERRORS.format('hw_counters/local_ack_timeout_err')}:50\n{_ERRORS.format('hw_counters/np_cnp_sent')}:7\n",
            f"{_ERRORS.format('hw_counters/local_ack_timeout_err')}:9050\n{_ERRORS.format('hw_counters/np_cnp_sent')}:8\n",
        ),
        "roce-rt-ack-timeout mlx5_1/1",
    ),
    "rdma statistic": (
        again("rdma statistic show link mlx5_5/1", _STATISTIC.format(timeouts=3), _STATISTIC.format(timeouts=9312)),
        "ib-hwcounter-transport mlx5_5/1: 9309 ACK timeouts between two outputs of the source",
    ),
    "NPUs": (
        again("hccn_tool -i 6 -stat -g", *(_NPU.partition("\n")[2].format(damaged=n, again=0) for n in (12, 4012))),
        "roce-rt-crc NPU6/1: 4000 received frames with a wrong check sum between two outputs of the source",
    ),
    "NVLinks": (
        again("nvidia-smi nvlink -e", _NVLINK.format(1), _NVLINK.format(400)),
        "nvlink-errors GPU0 NVLink 0: 399 replays",
    ),
}  # fmt: skip
NOT_GROWN = {
    "as before": again("ethtool -S ens6f0", "NIC statistics:\n     rx_crc_errors_phy: 900\n     rx_packets: 1\n",
                       "NIC statistics:\n     rx_crc_errors_phy: 900\n     rx_packets: 9\n"),
    "too few for an hour": again("ethtool -S ens6f0 | grep crc", "     rx_crc_errors_phy: 1\n",
                                 "     rx_crc_errors_phy: 6\n"),
    "of two hosts": again("ethtool -S ens6f0 | grep crc", "     rx_crc_errors_phy: 12\n",
                          "     rx_crc_errors_phy: 212\n", other="n8"),
    "of hosts that nothing names": "$ ethtool -S ens6f0 | grep crc\n     rx_crc_errors_phy: 12\n"
                                   "$ ethtool -S ens6f0 | grep crc\n     rx_crc_errors_phy: 212\n",
    "not at all": "$ ethtool -S ens6f0 | grep crc; sleep 60; ethtool -S ens6f0 | grep crc\n"
                  "     rx_crc_errors_phy: 41231\n     rx_crc_errors_phy: 41231\n",
    "cleared between": again("ethtool -S ens6f0 | grep -E 'crc|pack'",
                             "     rx_packets_phy: 800000\n     rx_crc_errors_phy: 500\n",
                             "     rx_packets_phy: 90000\n     rx_crc_errors_phy: 501\n"),
    "of two interfaces": "[root@n7 ~]# ethtool -S ens6f0 | grep crc\n     rx_crc_errors_phy: 12\n"
                         "[root@n7 ~]# ethtool -S ens6f1 | grep crc\n     rx_crc_errors_phy: 212\n",
}  # fmt: skip


@pytest.mark.parametrize("name", GROWN)
def test_what_grows_between_two_outputs_is_found(name: str, tmp_path: Path) -> None:
    text, expected = GROWN[name]
    report = scan_text(tmp_path, text, "issue.txt")
    (finding,) = warnings_of(report)

    assert f"{finding.rule} {finding.label}: {finding.summary}".startswith(expected)
    assert "medium" == finding.confidence
    assert "counters have no date" not in finding.impact
    assert not [file.name for file in report.source.files or () if file.read_as is None]


@pytest.mark.parametrize("name", NOT_GROWN)
def test_what_does_not_grow_is_no_fault(name: str, tmp_path: Path) -> None:
    assert [] == warnings_of(scan_text(tmp_path, NOT_GROWN[name], "issue.txt"))


def test_values_beside_what_was_read_twice_still_count(tmp_path: Path) -> None:
    text = GROWN["ethtool"][0] + ethtool("ens9f0", rx_crc_errors_phy=41_231)

    assert {("ens6f0", "medium"), ("ens9f0", "low")} == {
        (finding.label, finding.confidence) for finding in warnings_of(scan_text(tmp_path, text, "issue.txt"))
    }


def test_a_second_output_without_counters_is_not_read(tmp_path: Path) -> None:
    """Its events are of another time, and nothing of it is compared."""
    head = "Name:               gpu-07\nConditions:\n"
    node = head + "Capacity:\n  nvidia.com/gpu: 8\nAllocatable:\n  nvidia.com/gpu: {}\n"
    text = again("kubectl describe node gpu-07", node.format(8), node.format(7))
    report = scan_text(tmp_path, text, "issue.txt")

    assert ["an earlier one is used" in (file.reason or "") for file in report.source.files or ()].count(True) == 1


def read_first_screen(tmp_path: Path, text: str) -> str:
    return " ".join(to_plain_text(render_page(scan_text(tmp_path, text, "issue.txt"))).split())


COUNTED = {  # what is saved once, and what is typed to see what grows
    "ethtool": (ethtool(rx_crc_errors_phy=3), "ethtool -S ens6f0np0"),
    "NPUs": ("[root@n7 ~]# hccn_tool -i 6 -stat -g\n" + _NPU.partition("\n")[2].format(damaged=12, again=0),
             "hccn_tool -i 6 -stat -g"),
    "NVLinks": (_NVLINK.format(1), "nvidia-smi nvlink -e"),
    "files of the kernel": (f"{_ERRORS.format('counters/symbol_error')}:50\n{_ERRORS.format('state')}:4: ACTIVE\n",
                            "grep . /sys/class/infiniband/*/ports/*/*counters/*"),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_counters_alone_ask_for_the_same_again(name: str, tmp_path: Path) -> None:
    """With a command that can be typed, whose output is then two samples."""
    text, command = COUNTED[name]
    twice = f"{command}; sleep 60; {command}"
    output = text.partition("\n")[2] if text.startswith(("[", "$")) else text
    later = scan_text(tmp_path, f"[root@n7 ~]# {twice}\n{output}{output}", "issue.txt")

    assert f"save this with its prompt: {twice}" in read_first_screen(tmp_path, text)
    assert later.counters_window is not None
    assert later.counters_window.seconds == 60


def test_an_interface_without_a_name_is_a_placeholder(tmp_path: Path) -> None:
    screen = read_first_screen(tmp_path, "NIC statistics:\n     rx_crc_errors_phy: 3\n     rx_packets_phy: 9\n")

    assert "ethtool -S INTERFACE; sleep 60; ethtool -S INTERFACE" in screen


def test_states_alone_ask_for_no_second_reading(tmp_path: Path) -> None:
    assert "To see what grows" not in read_first_screen(tmp_path, f"{_ERRORS.format('state')}:1: DOWN\n")
    assert "To see what grows" not in read_first_screen(tmp_path, GROWN["ethtool"][0])


def test_what_is_missing_is_named_once(tmp_path: Path) -> None:
    """As what to save next; notes are no check of those that could not run."""
    screen = read_first_screen(tmp_path, f"{_ERRORS.format('state')}:1: DOWN\n")

    assert "Save next (checks that it settles): lspci -vvv" in screen
    assert "Could not check: " not in screen
    assert "and 3 more; 1 note" in screen


# Every line of docs/output-sets.md: these outputs are enough for the finding, and none of them can be left out.


LINES = read_page(PAGE.read_text())
SOME = LINES if IN_FULL else LINES[::4]


@pytest.mark.parametrize("line", SOME, ids=lambda line: f"{line.rule}: {' + '.join(line.outputs)}")
def test_a_set_of_outputs_is_enough(line: OutputSet) -> None:
    """With the severity and the confidence of the page."""
    assert (line.severity, line.confidence) == find_with(line.rule, line.machine, line.outputs)


@pytest.mark.parametrize(
    "line",
    [line for line in SOME if len(line.outputs) > 1],
    ids=lambda line: f"{line.rule}: {' + '.join(line.outputs)}",
)
def test_none_of_a_set_can_be_left_out(line: OutputSet) -> None:
    """What is left finds nothing, or a note where the set finds more."""
    for output in line.outputs:
        rest = [other for other in line.outputs if other != output]
        found = find_with(line.rule, line.machine, rest)
        assert found is None or (found[0] == "info" != line.severity), output


def test_the_page_has_every_rule() -> None:
    """With its sets, or among those that no set shows."""
    text = PAGE.read_text()
    seen, unseen = {line.rule for line in LINES}, list_unseen(text)
    assert set() == seen.intersection(unseen)
    assert sorted(rule.name for rule in every_rule()) == sorted([*seen, *unseen])


def test_low_confidence_is_a_warning_at_most() -> None:
    """The contract, over all that fragments show."""
    assert {"info", "warning"} >= {line.severity for line in LINES if line.confidence == "low"}
