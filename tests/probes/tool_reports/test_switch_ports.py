"""Which outputs of switches state a fault of a port, whatever the maker, and which do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.sources.documents import extract_text
from probes.sources.identify import identify_command
from probes.text import ParseError
from probes.tool_reports.alerts import list_alerts, list_gpu_metrics
from probes.tool_reports.network.switch_ports import list_switch_ports
from probes.tool_reports.network.switch_unjudged import list_unjudged
from probes.tool_reports.redfish import list_resource_faults
from tests.agent.rules.test_fragments import scan_text
from tests.probes.switch_ports import switch_texts as texts

FAULTS = {
    "closed": (texts.STATUS.format(state="errdisabled"), {("switch-disabled", "Et3/1", None)}),
    "without a link": (texts.STATUS.format(state="notconnect"), {("switch-port-down", "Et3/1", None)}),
    "closed, with a reason": (
        texts.BRIEF.format(reason="linkErrDisabled"), {("switch-disabled", "Eth1/3", None)},
    ),
    "closed by flaps": (
        texts.BRIEF.format(reason="err-disabled link-flap"), {("switch-disabled", "Eth1/3", "link-flap")},
    ),
    "columns of errors": (texts.ERRORS, {("switch-errors", "Eth1/6", "51873 FCS-Err")}),
    "labels of errors": (
        texts.INTERFACE.format(state="UP", errors=128_114), {("switch-errors", "100GE1/0/21", "128114 CRC")},
    ),
    "a port whose name is a line": (
        texts.HEADED.format(errors=7712), {("switch-errors", "HundredGigE1/0/7", "7712 CRC")},
    ),
    "few for its traffic": (
        texts.HEADED.format(errors=7712).replace("90274398", "990274398123"),
        {("switch-errors-few", "HundredGigE1/0/7", "7712 CRC")},
    ),
    "errors of what is received": (
        texts.INFINIBAND.format(errors=2881), {("switch-errors", "IB1/22/1", "2881 Symbol errors")},
    ),
    "FEC": (
        texts.EXTENSIVE.format(state="Up", lost=4471),
        {("switch-uncorrected", "et-0/0/9", "4471 FEC Uncorrected Errors")},
    ),
    "code words that are lost now": (
        "Physical interface: et-0/0/9, Enabled, Physical link is Up\n    FEC Uncorrected Errors          12\n"
        "    FEC Uncorrected Errors Rate      3\n",
        {
            ("switch-uncorrected-few", "et-0/0/9", "12 FEC Uncorrected Errors"),
            ("switch-uncorrected", "et-0/0/9", "3 FEC Uncorrected Errors Rate, it grows now"),
        },
    ),
    "bits": (texts.NVUE_DIAGNOSIS.format(rate="4E-9"), {("link-errors", "swp9", "effective-ber 4E-9")}),
    "flaps": (texts.FLAPS.format(count=481), {("switch-flaps-most", "Ethernet8", "481 times")}),
    "some flaps": (texts.FLAPS.format(count=33), {("switch-flaps", "Ethernet8", "33 times")}),
    "storms": (texts.WATCHDOG.format(stuck=31), {("switch-storm", "Et8/1 UC3", "31 storms")}),
    "some storms": (texts.WATCHDOG.format(stuck=2), {("switch-stormed", "Et8/1 UC3", "2 storms")}),
    "PFC": (texts.PFC.format(state="Off"), {("switch-pfc-port", "Ethernet1/2", "Oper(VL bmap) Off")}),
    "a slow port": (texts.SPEEDS.format(speed="100G"), {("switch-slow", "Eth 1/1/2", "100G, most others 400G")}),
    "drops": (
        texts.QUEUE.format(dropped=141_119), {
            ("switch-drops", "et-0/0/3", "141119 Tail-dropped packets, 81102001 Packets")
        },
    ),
    "a mark": (texts.MARKED.format(mark="--"), {("module-flags", "Ethernet1/12", "Rx Power low alarm")}),
    "a mark in a row": (
        texts.MARKED_ROWS.format(mark="--"), {("module-flags", "Et9/1", "Rx Power low alarm")}
    ),
    "on, and no link": (
        texts.UP_WITHOUT_PROTOCOL.format(state="down", errors=6),
        {("switch-port-down", "Ethernet 1/1/9", None)},
    ),
    "on, no link, and errors": (
        texts.UP_WITHOUT_PROTOCOL.format(state="down", errors=4513),
        {("switch-port-down", "Ethernet 1/1/9", None), ("switch-errors", "Ethernet 1/1/9", "4513 CRC")},
    ),
    "a name of slots": (
        texts.NAMED_INTERFACE.format(state="up", reason="-", changes=4, errors=48190),
        {("switch-errors", "1/1/22", "48190 CRC/FCS")},
    ),
    "a reason": (
        texts.NAMED_INTERFACE.format(state="down", reason="Waiting for link", changes=4, errors=0),
        {("switch-port-down", "1/1/22", "Waiting for link")},
    ),
    "two labels in a line": (
        texts.TWO_PAIRS.format(errors=51_223, sent=0), {("switch-errors", "cgei-0/2/0/3", "51223 In_CRC_ERROR")},
    ),
    "small letters, and an aggregation below": (
        texts.LOWER_CASE.format(state="down", errors=7731),
        {
            ("switch-errors", "twentyfivegigaethernet1/0/17", "7731 FCS"),
            ("switch-port-down", "twentyfivegigaethernet1/0/17", None),
        },
    ),
    "labels in two columns": (
        texts.LABELS_IN_TWO_COLUMNS.format(state="down - no FEC sync", errors=45_112),
        {("switch-port-down", "2/1/c7/1", "no FEC sync"), ("switch-errors", "2/1/c7/1", "45112 FCS Errors")},
    ),
    "the label first": (
        texts.LABEL_FIRST.format(running="", errors=21_877),
        {("switch-port-down", "xe14", None), ("switch-errors", "xe14", "21877 CRC")},
    ),
    "a reason of its own": (
        texts.DETAIL.format(state="down", errors=28_931),
        {("switch-port-down", "ethernet-1/9", "lower-layer-down"),
         ("switch-errors", "ethernet-1/9", "28931 FCS error packets")},
    ),
    "transitions": (
        texts.ROUTER.format(changes=143), {("switch-flaps", "FourHundredGigE0/0/0/11", "143 times")},
    ),
    "a state in a line of its own": (
        texts.BLOCK_OF_LINES.format(state="DOWN", admin="UP"), {("switch-port-down", "port2.0.7", None)},
    ),
    "a list of alarms": (texts.LISTED.format(alarm="RX LOS"), {("module-flags", "100GE1/0/12", "RX LOS")}),
    "a flag": (
        texts.FLAGGED.format(state="On"),
        {("module-flags", "et-0/0/11", "Laser receiver power low alarm (lanes 2)")},
    ),
    "a member by its flags": (
        texts.MEMBERS.format(one="PG+", other="sG-"),
        {
            ("switch-member-out", "Et22/1", "Po3, s: suspended, -: Out-of-Sync"),
            ("switch-group-down", "Et23/1", "Po4, -: Out-of-Sync"),
        },
    ),
    "a member by its row": (
        texts.UNSELECTED.format(state="Unselect"), {("switch-member-out", "100GE1/0/42", "Eth-Trunk8, Unselect")},
    ),
    "a member by its state": (texts.DETACHED, {("switch-member-out", "et-0/0/41", "ae9, Detached")}),
    "discards that others do not have": (
        texts.DISCARDS.format(count=88_112_233), {("switch-drops", "Et2/1", "88112233 OutDiscards")},
    ),
    "deadlocks": (texts.DEADLOCK.format(count=19), {("switch-storm", "100GE1/0/30", "19 storms")}),
    "dim": (
        texts.LIGHT.format(state="abnormal", light="-21.40"),
        {("switch-dim", "100GE1/0/3", "-21.40 dBm, others -1")},
    ),
    "a rated value": (
        texts.RATED.format(state="alarm"), {("module-flags", "FourHundredGigabitEthernet 0/3", "RX power(dBm)")},
    ),
    "a queue that is stopped": (
        texts.WATCHDOG_STATE.format(state="storm", count=2), {("switch-storm", "et-0/0/31", "2 storms")},
    ),
    "columns whose names have brackets": (
        texts.INBOUND.format(errors=71_233), {("switch-errors", "100GE1/0/9", "71233 Error(pkts)")},
    ),
    "numbers of members": (
        texts.SUMMED.format(out=1), {("switch-member-out", "BAGG22", "BAGG22, 1 unselected")},
    ),
    "a member without the name of its kind": (
        texts.BARE_SLOTS.format(state="I"),
        {("switch-member-out", "1/1/14", "port-channel8, I: member up but inactive")},
    ),
    "labels with dots": (
        texts.DOTTED.format(errors="451,233"),
        {("switch-errors", "Ethernet48", "451233 Total Packets Received With Errors")},
    ),
    "a link to the peer": (
        texts.PEER_LINKS.format(state="Down"),
        {("switch-peer-lost", None, "1 Po2 4001 Down 10.10.20.1 10.10.20.2")},
    ),
    "JSON by port": (
        texts.ERRORS_JSON.replace("COUNT", "81223"), {("switch-errors", "Ethernet4/1", "81223 fcsErrors")},
    ),
    "JSON with a port": (
        texts.NXOS_JSON.replace("COUNT", "9120"), {("switch-errors", "Ethernet1/8", "9120 eth_crc")},
    ),
    "a log": (
        texts.CLOSED_BY_LOG,
        {
            ("switch-disabled", "Ethernet1/29", "Too many link flaps"),
            ("switch-disabled", "Ethernet5/1", "link-flap"),
        },
    ),
    "a flag behind the name of its module": (
        texts.SHELL_FLAGS.format(state="True"), {("module-flags", "1/1/14", "Rx1 Power Low Alarm")},
    ),
    "a port without a subnet manager": (
        texts.NVOS_PORTS.format(state="Initialize"), {("switch-waiting", "sw1p2", "Initialize")},
    ),
    "pauses of one port": (
        texts.PAUSES.format(way="Rx", one="1,204", count="71,204,112"),
        {("switch-paused", "Ethernet16", "71204112 (Port Rx PFC4), others at most 1204")},
    ),
    "pauses of one port alone": (
        texts.PAUSES.format(way="Rx", one="0", count="71,204,112"),
        {("switch-paused-alone", "Ethernet16", "71204112 (Port Rx PFC4), others at most 0")},
    ),
    "pauses to one port": (
        texts.PAUSES.format(way="Tx", one="1,204", count="71,204,112"),
        {("switch-pauses-sent", "Ethernet16", "71204112 (Port Tx PFC4), others at most 1204")},
    ),
    "pauses of a Nexus": (
        texts.PAUSES_OF_NEXUS.format(count=9123442),
        {("switch-paused", "Ethernet1/3", "9123442 (Port RxPPP), others at most 1812")},
    ),
    "a peer": (
        texts.PAIR.format(state="Down"), {("switch-peer-lost", None, "peer-link status : Down")},
    ),
    "a status that others have, too": (
        texts.PAIR.format(state="Up").replace("Connected", "Connecting"),
        {("switch-peer-lost", None, "negotiation status : Connecting")},
    ),
    "a configuration": (
        texts.CONSISTENCY.format(state="failed"),
        {("switch-peer-differs", None, "Configuration consistency status : failed")},
    ),
}  # fmt: skip
HEALTHY = {
    "a link that is up": texts.UP_WITHOUT_PROTOCOL.format(state="up", errors=6),
    "a port that copies traffic": texts.UP_WITHOUT_PROTOCOL.format(state="down (monitoring)", errors=6),
    "a port without a module, among others": texts.NAMED_INTERFACE.format(
        state="down", reason="No XCVR installed", changes=0, errors=0
    )
    + texts.BARE_ROWS.format(link="Yes", state="Up  "),
    "damaged frames that it sent": texts.TWO_PAIRS.format(errors=0, sent=51_223),
    "errors of an aggregation": texts.LOWER_CASE.format(state="up", errors=0),
    "labels in two columns": texts.LABELS_IN_TWO_COLUMNS.format(state="up", errors=12),
    "a flag of a link": texts.LABEL_FIRST.format(running=",RUNNING", errors=0),
    "few transitions": texts.ROUTER.format(changes=43),
    "a port that someone closed": texts.BLOCK_OF_LINES.format(state="DOWN", admin="DOWN"),
    "ports by their slots": texts.BARE_ROWS.format(link="Yes", state="Up  "),
    "connected": texts.STATUS.format(state="connected"),
    "closed by a person": texts.BRIEF.format(reason="Administratively down"),
    "a few errors": texts.INTERFACE.format(state="UP", errors=12),
    "errors of what is sent": texts.INFINIBAND.format(errors=3),
    "no code word": texts.EXTENSIVE.format(state="Up", lost=0),
    "a bit": texts.NVUE_DIAGNOSIS.format(rate="15E-255"),
    "two flaps": texts.FLAPS.format(count=2),
    "no storm": texts.WATCHDOG.format(stuck=0),
    "PFC": texts.PFC.format(state="On  (8)"),
    "one speed": texts.SPEEDS.format(speed="400G"),
    "few drops": texts.QUEUE.format(dropped=119),
    "no mark": texts.MARKED.format(mark=""),
    "no alarm": texts.LISTED.format(alarm="None"),
    "no flag": texts.FLAGGED.format(state="Off"),
    "members": texts.MEMBERS.format(one="PG+", other="PG+").replace("Po4(D)       LACP(a)    Et23/1(G-)\n", ""),
    "selected": texts.UNSELECTED.format(state="Selected"),
    "pauses": texts.PAUSES.format(way="Rx", one="81,204", count="71,204,112"),
    "ports of InfiniBand": texts.NVOS_PORTS.format(state="Active"),
    "few pauses": texts.PAUSES.format(way="Rx", one="2", count="904,112"),
    "a peer": texts.PAIR.format(state="Up"),
    "a configuration": texts.CONSISTENCY.format(state="success"),
    "discards": texts.DISCARDS.format(count=812),
    "no stopped queue": texts.WATCHDOG_STATE.format(state="normal", count=0),
    "inbound": texts.INBOUND.format(errors=0),
    "all members active": texts.BARE_SLOTS.format(state="P"),
    "all selected": texts.SUMMED.format(out=0),
    "what a deadlock would do": texts.DEADLOCK_MODES,
    "no deadlock": texts.DEADLOCK.format(count=0),
    "light": texts.LIGHT.format(state="normal", light="-1.42"),
    "rated values": texts.RATED.format(state="OK"),
    "JSON": texts.ERRORS_JSON.replace("COUNT", "3"),
    "no flag of a module": texts.SHELL_FLAGS.format(state="False"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_switch_states_a_fault_of_a_port(name: str) -> None:
    text, expected = FAULTS[name]

    assert expected == {
        (report.code, report.subject, dict(report.detail).get("what")) for report in list_switch_ports(text)
    }
    assert identify_command(text) == (("show", "interfaces"),)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_switch_states_none(name: str) -> None:
    assert [] == list_switch_ports(HEALTHY[name])


LEVELS = """Interface   Temp(C)   Rx Power(dBm)
Eth1/1      45,12     -2,31
Eth1/2      45,00     -2,11
Eth1/3      44,90     {}
"""


@pytest.mark.parametrize(("level", "what"), [("-2,20", None), ("-21,40", "-21,40 dBm, others -2.31")])
def test_a_comma_of_a_level_begins_its_decimals(level: str, what: str | None) -> None:
    """A table that was saved with the decimals of another language: -2,31 dBm is not -231."""
    reports = list_switch_ports(LEVELS.format(level))

    assert ([what] if what else []) == [dict(report.detail)["what"] for report in reports]


@pytest.mark.parametrize(
    "text",
    [
        "eth0: flags=4163<UP,RUNNING>  mtu 9000\n        RX errors 0  dropped 0  overruns 0  frame 0\n",
        "NIC statistics:\n     rx_crc_errors: 88123\n",
        "\tRx power low alarm   (Channel 1)          : On\n",
        "Our switch has 1/2 of its ports down: which peer is it?\n",
        "Ethernet8:\n    some other text: 12\n",
    ],
    ids=["ifconfig", "ethtool -S", "ethtool -m", "a sentence", "a port alone"],
)
def test_a_text_without_a_port_of_a_switch_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        list_switch_ports(text)


def test_a_port_that_was_closed_because_of_an_error_is_no_port_without_a_link() -> None:
    """One finding per port: the graver one."""
    codes = [report.code for report in list_switch_ports(texts.STATUS.format(state="errdisabled"))]

    assert codes == ["switch-disabled"]


def test_one_finding_of_a_port_states_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    text = texts.DETAIL.format(state="down", errors=28_931)
    (finding,) = scan_text(tmp_path, text, "issue.txt").findings

    assert finding.summary == (
        "a switch counts damaged frames on a port: 28931 FCS error packets; also: no link now (lower-layer-down)"
    )


def test_what_reads_like_a_fault_and_is_not_judged_is_named() -> None:
    down = texts.BARE_ROWS.format(link="No ", state="Down").replace("100GBASE-SR4", "-")
    assert list_switch_ports(down) == []
    assert list_unjudged(down) == ["1 of 3 ports without a link: 1/1/c2/1"]
    counted = texts.ROUTER.format(changes=43).replace("0 overrun", "88123 overrun")
    assert list_unjudged(counted) == ["FourHundredGigE0/0/0/11: 88123 overrun"]
    assert not list_unjudged(texts.ROUTER.format(changes=43))


def test_the_name_of_a_port_in_its_description_is_no_sign_of_use() -> None:
    rows = "10GE1/0/{} current state : DOWN\nDescription: {}10GE1/0/{} Interface\n"
    unused = "".join(rows.format(port, "HUAWEI, ", port) for port in (1, 2))
    up = "10GE1/0/3 current state : UP\n10GE1/0/4 current state : UP\n10GE1/0/5 current state : UP\n"

    assert [] == list_switch_ports(unused + up)
    named = unused.replace("HUAWEI, 10GE1/0/2 Interface", "gpu-4 rail 2")
    assert ["10GE1/0/2"] == [report.subject for report in list_switch_ports(named + up)]


def test_many_ports_without_a_link_are_none_that_is_odd() -> None:
    rows = texts.STATUS.format(state="notconnect").replace("connected  ", "notconnect ")

    assert [] == list_switch_ports(rows)


ALERT = {
    "labels": {"alertname": "InfinibandLinkDown", "device": "mlx5_7", "instance": "node-q:9100"},
    "annotations": {"summary": "no link of mlx5_7"},
}


def _write(alert: dict[str, object]) -> str:
    return extract_text(json.dumps({"alerts": [alert]}), lambda text: False) or ""


@pytest.mark.parametrize(
    ("state", "codes"),
    [
        ({"status": "firing"}, ["alert-firing"]),
        ({"status": {"state": "active"}}, ["alert-firing"]),
        ({"state": "firing"}, ["alert-firing"]),
        ({"status": "resolved"}, []),
        ({"status": {"state": "suppressed"}}, []),
    ],
    ids=["webhook", "API of Alertmanager", "API of Prometheus", "over", "silenced"],
)
def test_an_alert_that_fires_is_a_fault(state: dict[str, object], codes: list[str]) -> None:
    text = _write({**ALERT, **state})

    assert codes == [report.code for report in list_alerts(text)]
    assert identify_command(text) == (("amtool", "alert"),)


def test_an_alert_names_the_part_the_host_and_the_xid() -> None:
    (report,) = list_alerts(_write({**ALERT, "status": "firing"}))
    assert report.subject == "mlx5_7"
    assert report.detail == (("what", "InfinibandLinkDown on node-q: no link of mlx5_7"),)

    labels = {"alertname": "GpuXid", "gpu": "2", "Hostname": "node-r"}
    (report,) = list_alerts(
        _write({"labels": labels, "annotations": {"summary": "Xid 94 on GPU 2"}, "state": "firing"})
    )
    assert (report.code, report.subject) == ("alert-xid", "NVIDIA 2")
    assert report.detail == (("xid", "94"), ("device", "node-r"))


@pytest.mark.parametrize("name", ["NodeFilesystemFull", "KubePodCrashLooping", "HighLoad"])
def test_an_alert_about_something_else_is_none(name: str) -> None:
    labels = {"alertname": name, "instance": "node-q:9100"}

    assert [] == list_alerts(_write({"labels": labels, "status": "firing"}))


def test_a_notice_of_an_alert_is_read() -> None:
    text = "[FIRING:1] RoCEPfcStorm (leaf-4 Ethernet12 critical)\n"

    assert ["alert-firing"] == [report.code for report in list_alerts(text)]
    assert identify_command(text) == (("amtool", "alert"),)


def test_a_gpu_that_the_exporter_of_amd_calls_unhealthy_is_one() -> None:
    text = 'gpu_health{gpu_id="1",hostname="m"} 0\ngpu_health{gpu_id="2",hostname="m"} 1\n'

    assert [("amd-unhealthy", "AMD 1")] == [report[:2] for report in list_gpu_metrics(text)]
    assert identify_command(text) == (("amd-exporter", "metrics"),)


def test_uncorrectable_errors_are_read_from_the_metrics_of_any_exporter() -> None:
    text = (
        'nvidia_smi_ecc_errors_uncorrected_aggregate_total{uuid="0a1b-22"} 9\n'
        'nvidia_smi_ecc_errors_uncorrected_volatile_total{uuid="0a1b-22"} 3\n'
        'rocm_ras_umc_uncorrectable_count{card="4"} 2.0\nrocm_ras_umc_correctable_count{card="5"} 8.0\n'
        'nvidia_gpu_ecc_uncorrected_total{minor_number="6"} 1\n'
    )

    assert [("0a1b-22", "3"), ("AMD 4", "2"), ("NVIDIA 6", "1")] == [
        (report.subject, dict(report.detail)["errors"]) for report in list_gpu_metrics(text)
    ]
    assert identify_command(text) == (("amd-exporter", "metrics"),)


def test_the_sum_of_all_blocks_counts_where_the_exporter_has_it() -> None:
    row = 'gpu_ecc_uncorrect_{}{{gpu_id="2"}} {}\n'
    text = row.format("umc", 2) + row.format("total", 5) + row.format("sdma", 3)

    assert [(("errors", "5"),)] == [report.detail for report in list_gpu_metrics(text)]


def test_resources_of_a_bmc_state_faults() -> None:
    assert {
        (report.code, report.subject, dict(report.detail).get("what")) for report in list_resource_faults(texts.REDFISH)
    } == {
        ("redfish-link-down", "NIC.Slot.5/Ports/1", None),
        ("redfish-critical", "GPU_SXM_2", "Critical: GPU lost"),
        ("redfish-lanes", "GPU_SXM_2", "x4 of x16"),
        ("redfish-speed", "GPU_SXM_2", "Gen3 of Gen5"),
        ("redfish-pcie-errors", "D9-long", "3 fatal"),
    }
    assert identify_command(texts.REDFISH) == (("redfish",),)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"LinkDown"', '"LinkUp"'), ('"Enabled", "Status"', '"Disabled", "Status"')],
    ids=["a link", "a port that is off"],
)
def test_a_port_of_a_bmc_with_a_link_or_closed_is_none(old: str, new: str) -> None:
    codes = [report.code for report in list_resource_faults(texts.REDFISH.replace(old, new, 1))]

    assert "redfish-link-down" not in codes


@pytest.mark.parametrize(("values", "expected"), [((1, 0, 1), ["GPU-b"]), ((1, 1, 1), []), ((0, 0, 1), [])])
def test_what_most_gpus_have_and_one_does_not(values: tuple[int, ...], expected: list[str]) -> None:
    text = "".join(
        f'a_nvlink_enabled{{uuid="GPU-{name}"}} {value}\n' for name, value in zip("abc", values, strict=True)
    )
    assert [("metric-off", name) for name in expected] == [report[:2] for report in list_gpu_metrics(text)]
    assert identify_command(text) == (("amd-exporter", "metrics"),)
