"""A fragment: what a rule finds where only the context is missing, how sure it is, and where it stays silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Finding
from agent.model.report import Report
from agent.outputs.check import format_slurm_prolog
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.not_checked import list_commands_to_save
from agent.outputs.text.page import render_page
from probes.sources.open_source import open_source
from tests.agent.contradictions.saved_outputs import render_outputs
from tests.agent.contradictions.test_mixed import scan_outputs
from tests.machines import HOSTS, scan_machine


def scan_text(folder: Path, text: str, name: str = "ibstat.txt") -> Report:
    (folder / name).write_text(text)
    return diagnose(open_source(str(folder), None), ScanPlan())[0]


def ibstat(*states: str, layer: str = "InfiniBand", name: str = "mlx5_{}") -> str:
    """An ibstat of one adapter per state."""
    blocks = []
    for number, state in enumerate(states):
        physical = {"Active": "LinkUp", "Down": "Polling", "Initializing": "LinkUp"}[state]
        blocks.append(
            f"CA '{name.format(number)}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.2048\n"
            f"\tHardware version: 0\n\tNode GUID: 0x94{number:014x}\n\tSystem image GUID: 0x94{number:014x}\n"
            f"\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n"
            f"\t\tRate: {400 if state == 'Active' else 10}\n\t\tBase lid: {number + 1}\n"
            f"\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa651e848\n\t\tPort GUID: 0x94{number:014x}\n"
            f"\t\tLink layer: {layer}\n"
        )
    return "".join(blocks)


def warnings_of(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity != "info"]


def test_one_port_of_eight_that_is_down_is_found(tmp_path: Path) -> None:
    report = scan_text(tmp_path, ibstat(*["Active"] * 7, "Down"))
    (finding,) = warnings_of(report)

    assert ("ib-port-down", "port:mlx5_7/1", "warning", "low") == (
        finding.rule, finding.subject, finding.severity, finding.confidence,
    )  # fmt: skip
    assert finding.impact.startswith("What this means here depends on what mlx5_7/1 is for")
    assert "`lspci -vvv`" in finding.steps[0].do
    assert "warning" == report.summary.verdict


def test_it_is_the_same_finding_as_on_the_whole_machine_by_its_rule(tmp_path: Path) -> None:
    """The check stays unknown: the finding says what the text says, not what the rule could decide."""
    report = scan_text(tmp_path, ibstat(*["Active"] * 7, "Down"))
    (check,) = (check for check in report.checks if check.rule == "ib-port-down")

    assert "unknown" == check.state
    assert {"role-not-known"} == {subject.reason_code for subject in check.unknown_subjects}


@pytest.mark.parametrize(
    "states",
    [
        pytest.param(["Active"] * 8, id="all active"),
        pytest.param(["Down"] * 8, id="none active: not cabled, or the fabric is down"),
        pytest.param(["Active"] * 4 + ["Down"] * 4, id="the second half"),
        pytest.param(["Active", "Down"] * 4, id="every second one"),
        pytest.param(["Down"], id="one port alone"),
    ],
)
def test_what_may_be_an_arrangement_is_no_finding(states: list[str], tmp_path: Path) -> None:
    assert [] == warnings_of(scan_text(tmp_path, ibstat(*states)))


def test_half_of_the_ports_in_no_order_is_a_finding_each(tmp_path: Path) -> None:
    down = {0, 2, 3, 6}
    report = scan_text(tmp_path, ibstat(*("Down" if number in down else "Active" for number in range(8))))

    assert {f"port:mlx5_{number}/1" for number in down} == {finding.subject for finding in warnings_of(report)}


def test_second_ports_by_their_names_are_alike(tmp_path: Path) -> None:
    """roceP2p1s0f1 is the second port of its card, as its name states: nobody has plugged these in."""
    first = ibstat("Active", layer="Ethernet", name="rocep1s0f0") + ibstat(
        "Active", layer="Ethernet", name="rocep2s0f0"
    )
    second = ibstat("Down", layer="Ethernet", name="rocep1s0f1")

    assert [] == warnings_of(scan_text(tmp_path, first + second))


def test_a_port_without_interface_is_judged_by_its_own_state(tmp_path: Path) -> None:
    states = {5: "DOWN physical_state DISABLED"}
    text = "".join(
        f"link bnxt_re{number}/1 state {states.get(number, 'ACTIVE physical_state LINK_UP')} netdev ens{number}np0 \n"
        for number in range(8)
    )
    (finding,) = warnings_of(scan_text(tmp_path, text, "rdma_link.txt"))

    assert ("roce-link-down", "DOWN: physical state Disabled") == (finding.rule, finding.summary)


def test_a_finding_of_low_confidence_drains_no_node(tmp_path: Path) -> None:
    report = scan_text(tmp_path, ibstat(*["Active"] * 7, "Down"))

    assert 0 == format_slurm_prolog(report, fail_on="warning").code


def test_the_first_screen_names_what_was_read_and_what_to_save_next(tmp_path: Path) -> None:
    report = scan_text(tmp_path, ibstat(*["Active"] * 8))
    text = to_plain_text(render_page(report, 100))
    commands = list_commands_to_save(report)

    assert "\nRead: ibstat\nSave next (checks that it settles): lspci -vvv (" in text
    assert commands == sorted(commands, key=lambda command: -command[1])
    assert "ibstat" not in dict(commands)


THREADS = {  # what people posted: the findings of warning or more that it must give, and no other
    "ascend-310p3-one-alarm": {"error tool-reports-fault GPU96"},
    "ascend-loop-link-down": {"error npu-roce-port-down NPU 5", "error npu-tls-mixed node"},
    "bnxt-firmware-no-answer": {"error nic-firmware-dead NIC 0003:02:00.0"},
    "dmesg-delta-cmpltto": {"error pcie-containment device 0000:00:03.0"},
    "fec-off-no-link-100g": {"warning roce-link-down mlx5_0/1 (ens2f0np0)"},
    "ibqueryerrors-symbol": {"warning ib-fabric-errors port 12 of MF0;sw-leaf1:MQM8700/U1"},
    "ib-4of8-down": {f"warning ib-port-down mlx5_{number}/1" for number in (0, 2, 3, 6)},
    "locked-memory-limit": {"warning gdr-memlock-low node"},
    "mi300x-one-pair-over-pcie": {"warning roce-link-down bnxt_re6/1 (ens6np0)"},
    "needs-open-modules": {"critical driver-reports-failure device 0000:01:00.0"},
    "rccl-port-error-polling": {"warning ib-port-down mlx5_7/1"},
}


@pytest.mark.parametrize("thread", sorted(THREADS))
def test_what_a_thread_says_is_found(thread: str, corpus: Path) -> None:
    report = diagnose(open_source(str(corpus / "threads" / thread / "in"), None), ScanPlan())[0]

    assert THREADS[thread] == {f"{f.severity} {f.rule} {f.label}" for f in warnings_of(report)}


def test_a_card_that_needs_other_modules_is_not_sent_away(corpus: Path) -> None:
    report = diagnose(open_source(str(corpus / "threads" / "needs-open-modules" / "in"), None), ScanPlan())[0]
    (finding,) = warnings_of(report)

    assert "open kernel modules" in finding.remedy
    assert not any(word in finding.remedy for word in ("exchange", "replace", "RMA", "service case"))


@pytest.mark.parametrize("host", HOSTS)
def test_each_output_of_a_healthy_machine_alone_gives_no_warning(host: str) -> None:
    """Also of one whose NVSwitches show four ports of a NIC, two of them down for good."""
    whole = {(finding.rule, finding.label) for finding in scan_machine(host).findings}
    alone = {
        (finding.rule, finding.label, name)
        for name, text in render_outputs(scan_machine(host)).items()
        for finding in warnings_of(scan_outputs({name: text}))
    }

    assert set() == {(rule, label, name) for rule, label, name in alone if (rule, label) not in whole}


def ibv_devinfo(*versions: str) -> str:
    """An ibv_devinfo of one adapter per firmware version."""
    return "".join(
        f"hca_id:\tmlx5_{number}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t{version}\n"
        f"\tnode_guid:\t\t\t946d:ae03:0000:00{number:02x}\n\tvendor_part_id:\t\t\t4129\n"
        "\tboard_id:\t\t\tMT_0000000838\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\tInfiniBand\n\n"
        for number, version in enumerate(versions)
    )


def test_one_card_with_another_firmware_differs_whatever_they_are_for(tmp_path: Path) -> None:
    (finding,) = warnings_of(scan_text(tmp_path, ibv_devinfo(*["28.39.2048"] * 7, "28.38.1002"), "ibv_devinfo.txt"))

    assert ("nic-fw-mixed", "mlx5_7", "low") == (finding.rule, finding.label, finding.confidence)
    assert "firmware 28.38.1002; most rails of board MT_0000000838 run 28.39.2048" == finding.summary


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param(["28.39.2048"] * 8, id="all alike"),
        pytest.param(["28.39.2048"] * 4 + ["28.38.1002"] * 4, id="half of them: a storage network, or an upgrade"),
        pytest.param(["28.39.2048", "28.38.1002"], id="two cards"),
    ],
)
def test_firmware_that_may_be_an_arrangement_is_no_finding(versions: list[str], tmp_path: Path) -> None:
    report = scan_text(tmp_path, ibv_devinfo(*versions), "ibv_devinfo.txt")

    assert [] == warnings_of(report)
    assert {"unknown"} == {check.state for check in report.checks if check.rule == "nic-fw-mixed"}
