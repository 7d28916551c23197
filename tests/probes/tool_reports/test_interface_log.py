"""What a host states of its interfaces in logs and counters: a lost carrier, drops before sending, limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ethtool.saved import parse_statistics
from probes.netdev.ip_link import parse_ifconfig
from probes.text import ParseError
from probes.tool_reports.network.addresses import list_link_faults
from probes.tool_reports.network.host_interfaces import list_carrier_faults, list_queue_drops
from tests.agent.rules.test_fragments import scan_text

NETWORKD = "Mar 14 02:11:{second:02} n17 systemd-networkd[911]: {name}: {event}\n"
MANAGER = "Mar 14 02:11:07 n17 NetworkManager[1400]: <info>  [1741918267.1] device ({name}): {event}\n"
REFUSED = "Could not set route: Nexthop has invalid gateway. Network is unreachable"
QUEUES = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
qdisc {kind} {handle}: dev ens9f0np0 root {options}
 Sent 918273645546 bytes 9182736 pkt (dropped {dropped}, overlimits 0 requeues 77)
 backlog 0b 0p requeues 77
qdisc fq_codel 0: dev ens9f0np0 parent :1 limit 10240p
 Sent 0 bytes 0 pkt (dropped 99999, overlimits 0 requeues 0)
"""
ENA = "$ ethtool -S ens33\nNIC statistics:\n     tx_timeout: 0\n     bw_in_allowance_exceeded: {count}\n"
FUNCTIONS = """\
5: ens4f1np1: <BROADCAST,MULTICAST{up}> mtu 9000 qdisc mq state DOWN mode DEFAULT group default qlen 1000
    link/ether 0c:42:a1:00:11:22 brd ff:ff:ff:ff:ff:ff
    vf 0     link/ether 76:ed:fd:00:11:22 brd ff:ff:ff:ff:ff:ff, spoof checking off, link-state {state}, trust off
"""


def _log(name: str, *events: str, form: str = NETWORKD) -> str:
    return "".join(form.format(name=name, event=event, second=second) for second, event in enumerate(events))


FLAPPING = _log("ens5f0np0", *["Lost carrier", "Gained carrier"] * 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FLAPPING, [("carrier-flaps", "ens5f0np0", "3 times")]),
        (_log("ens5f0np0", "Gained carrier", "Lost carrier"), [("carrier-lost", "ens5f0np0", None)]),
        (_log("ens5f0np0", "Lost carrier", "Gained carrier"), []),
        (_log("veth81ab2c", *["Lost carrier", "Gained carrier"] * 3), None),
        (_log("docker0", "Lost carrier"), None),
        (FLAPPING * 80, None),  # a log of months
        (
            _log("eno2", "carrier: link lost", form=MANAGER)
            + _log("eno2", "state change: activated -> unavailable (reason 'carrier-changed', x)", form=MANAGER),
            [("carrier-lost", "eno2", None)],
        ),
        (
            "".join(f"dhcpcd[71]: ens1: carrier {state}\n" for state in ["lost", "acquired"] * 3),
            [("carrier-flaps", "ens1", "3 times")],
        ),
        (_log("bond1", "Gained carrier", REFUSED, "Failed"), [("network-not-set", "bond1", REFUSED)]),
        (_log("bond1", "Failed"), [("network-not-set", "bond1", "Failed")]),
    ],
    ids=["often", "at the end", "once", "a pod's", "a bridge's", "long", "two lines of one", "dhcpcd", "why", "failed"],
)
def test_a_log_states_the_carrier_of_an_interface(
    text: str, expected: list[tuple[str, str, str | None]] | None
) -> None:
    if expected is None:
        with pytest.raises(ParseError):
            list_carrier_faults(text)
        return
    reports = [(report.code, report.subject, dict(report.detail).get("what")) for report in list_carrier_faults(text)]
    assert reports == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FLAPPING, {"warning carrier-flaps ens5f0np0"}),
        (f"we see this:\n```\n{FLAPPING}```\nwhat now?\n", {"warning carrier-flaps ens5f0np0"}),
        ("[  812.100000] mlx5_core 0000:19:00.0: E-Switch: on\n" + FLAPPING, {"warning carrier-flaps ens5f0np0"}),
        (_log("ens5f0np0", "Lost carrier"), {"info carrier-lost ens5f0np0"}),
        (
            QUEUES.format(kind="mq", handle=0, options="", dropped=61_223), {"warning queue-drops ens9f0np0"},
        ),
        (ENA.format(count=812_331), {"info instance-limit ens33"}),
        (FUNCTIONS.format(up="", state="auto"), {"info pf-off ens4f1np1"}),
        (
            "09:13:38.968996+0000 node4 kernel: ixgbe 0000:19:00.0: removed PHC on eno1\n"
            "09:13:39.676982+0000 node4 kernel: bond0: link status definitely down for interface eno1, disabling it\n",
            {"warning bond-member-down eno1"},
        ),
    ],
    ids=["a log", "quoted", "beside lines of the kernel", "one loss", "queues", "AWS", "functions", "a time of a day"],
)  # fmt: skip
def test_it_alone_gives_a_finding(text: str, expected: set[str], tmp_path: Path) -> None:
    findings = scan_text(tmp_path, text, "issue.txt").findings

    assert {f"{finding.severity} {finding.fingerprint and _cause(finding.evidence[0].value)} {finding.label}"
            for finding in findings} == expected  # fmt: skip
    assert all("INTERFACE" not in finding.remedy.split() for finding in findings)


def _cause(line: str) -> str:
    causes = {
        "allowance": "instance-limit", "not UP": "pf-off", "dropped": "queue-drops", "definitely down":
        "bond-member-down",
    }  # fmt: skip
    losses = "carrier-lost" if ":00 " in line else "carrier-flaps"
    return next((cause for word, cause in causes.items() if word in line), losses)


@pytest.mark.parametrize(
    ("kind", "handle", "options", "dropped"),
    [("mq", 0, "", 112), ("mq", 0, "", 8_000), ("htb", 1, "r2q 10 default 12", 61_223), ("tbf", 1, "rate 1G", 61_223)],
    ids=["few", "few for its traffic", "a rate", "another rate"],
)
def test_drops_that_are_few_or_wanted_are_none(kind: str, handle: int, options: str, dropped: int) -> None:
    assert [] == list_queue_drops(QUEUES.format(kind=kind, handle=handle, options=options, dropped=dropped))


def test_one_interface_without_a_carrier_is_named_and_one_of_a_list_is_not() -> None:
    row = "{}: {}: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq state DOWN group default qlen 1000\n"
    alone = list_link_faults(row.format(1, "docker0") + row.format(3, "ens3f0"))

    assert [(report.code, report.subject) for report in alone] == [("carrier-none", "ens3f0")]
    with pytest.raises(ParseError):
        list_link_faults(row.format(3, "ens3f0") + row.format(4, "ens3f1"))


@pytest.mark.parametrize(
    ("other", "mtu", "down"),
    [
        ("ens3f1np1", 9000, {"ens3f0np0"}),
        ("ens3f1np1", 1500, set()),
        ("ens3f1np1", 4200, set()),
        ("eno1", 9000, set()),
    ],
    ids=["set up for data", "as it comes", "another", "of the board"],
)
def test_the_odd_one_of_interfaces_named_alike_was_set_up_as_they_are(other: str, mtu: int, down: set[str]) -> None:
    row = "{}: {}: <{},UP> mtu {} qdisc mq state UP\n"
    text = row.format(3, "ens3f0np0", "NO-CARRIER", 1500 if mtu == 1500 else 9000) + row.format(
        4, other, "LOWER_UP", mtu
    )
    try:
        found = {report.subject for report in list_link_faults(text)}
    except ParseError:
        found = set()

    assert down == found


@pytest.mark.parametrize("text", [FUNCTIONS.format(up=",UP", state="auto"), FUNCTIONS.format(up="", state="enable")])
def test_functions_that_have_a_link_are_no_fault(text: str) -> None:
    with pytest.raises(ParseError):
        list_link_faults(text)


def test_nothing_exceeded_is_no_finding(tmp_path: Path) -> None:
    assert [] == scan_text(tmp_path, ENA.format(count=0), "issue.txt").findings


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ("RX packets:81237 errors:5312 dropped:0 overruns:0 frame:5312\n", 5312),
        ("        RX errors 77  dropped 0  overruns 0  frame 77\n", 77),
    ],
)
def test_lines_of_ifconfig_without_the_interface_are_read(line: str, errors: int) -> None:
    (link,) = parse_ifconfig(line)

    assert (link.name, (link.statistics or {})["rx_errors"]) == ("ethX", errors)


def test_a_line_of_ifconfig_alone_is_judged(tmp_path: Path) -> None:
    line = "RX packets:{} errors:{} dropped:0 overruns:0 frame:{}\n"
    rules = [
        [finding.rule for finding in scan_text(tmp_path, line.format(90_123_123, count, count), "issue.txt").findings]
        for count in (88_123, 3)
    ]

    assert rules == [["roce-rt-crc"], []]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("rx_fcs: 0", {"rx_errors": 812}),
        ("rx_crc_errors: 3", {"rx_crc_errors": 3}),
        ("RxFCSErrors: 7", {"rx_crc_errors": 7}),
        ("mac.rx_frame_check_sequence_errors: 5", {"rx_crc_errors": 5}),
        ("rx_frames_bad_crc: 6", {"rx_crc_errors": 6}),
        ("rx_csum_bad_fcs_errors: 9", {"rx_errors": 812}),
        ("tx_fcs_errors: 9", {"rx_errors": 812}),
        ("rx_icrc_errors: 9", {"rx_errors": 812}),
    ],
    ids=["none", "kernel", "cxgb", "nfp", "bad", "a sum of an offload", "sent", "of RoCE"],
)
def test_a_sum_of_errors_counts_where_the_driver_counts_no_kinds(kinds: str, expected: dict[str, int]) -> None:
    counters = parse_statistics(f"NIC statistics:\n     rx_errors: 812\n     {kinds}\n")

    assert counters == expected


def test_a_module_of_one_lane_that_states_an_alarm_is_judged(tmp_path: Path) -> None:
    text = (
        "$ ethtool -m ens2f0\n\tIdentifier                                : 0x03 (SFP)\n"
        "\tLaser output power                        : 1.1000 mW / 0.41 dBm\n"
        "\tReceiver signal average optical power     : 0.0001 mW / {} dBm\n"
        "\tLaser rx power low alarm                  : {}\n"
    )
    rules = [
        [f"{finding.severity} {finding.rule}" for finding in scan_text(tmp_path, text.format(*state), "a.txt").findings]
        for state in (("-40.00", "On"), ("-2.10", "Off"))
    ]

    assert rules == [["info roce-optics-power"], []]
