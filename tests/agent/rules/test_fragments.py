"""A fragment: what a rule finds where only the context is missing, how sure it is, and where it stays silent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Evidence, Finding
from agent.model.report import Report, Source, SourceFile
from agent.outputs.check import format_slurm_prolog
from agent.outputs.html.page import render_html
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.not_checked import list_commands_to_save
from agent.outputs.text.page import render_page
from agent.rules.evidence_files import name_files
from probes.kernel.sentence import KERNEL_DRIVERS
from probes.sources.open_source import open_source
from tests.agent.contradictions.saved_outputs import render_outputs
from tests.agent.contradictions.test_mixed import outputs_of, scan_outputs
from tests.machines import SOME_HOSTS, scan_machine


def scan_text(folder: Path, text: str, name: str = "ibstat.txt") -> Report:
    (folder / name).write_text(text)
    return diagnose(open_source(str(folder), None), ScanPlan())[0]


def guid_of(device: str) -> str:
    """A GUID that no other adapter has."""
    return f"0x94{crc32(device.encode()):014x}"


def ibstat(*states: str, layer: str = "InfiniBand", name: str = "mlx5_{}") -> str:
    """An ibstat of one adapter per state."""
    blocks = []
    for number, state in enumerate(states):
        physical = {"Active": "LinkUp", "Down": "Polling", "Initializing": "LinkUp"}[state]
        device = name.format(number)
        guid = guid_of(device)
        blocks.append(
            f"CA '{device}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.2048\n"
            f"\tHardware version: 0\n\tNode GUID: {guid}\n\tSystem image GUID: {guid}\n"
            f"\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {physical}\n"
            f"\t\tRate: {400 if state == 'Active' else 10}\n\t\tBase lid: {number + 1}\n"
            f"\t\tLMC: 0\n\t\tSM lid: 1\n\t\tCapability mask: 0xa651e848\n\t\tPort GUID: {guid}\n"
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


@pytest.mark.parametrize("interfaces", [("ens3f0np0", "ens3f1np1"), ("enp65s0f0np0", "enp65s0f1np1")])
def test_second_ports_by_the_names_of_their_interfaces(interfaces: tuple[str, str], tmp_path: Path) -> None:
    states = ("ACTIVE physical_state LINK_UP", "DOWN physical_state DISABLED")
    text = "".join(
        f"link mlx5_{number}/1 state {state} netdev {name} \n"
        for number, (state, name) in enumerate(zip(states, interfaces, strict=True))
    )
    (finding,) = scan_text(tmp_path, text.replace("DISABLED", "POLLING"), "rdma_link.txt").findings

    assert ("roce-link-down", "port:mlx5_1/1") == (finding.rule, finding.subject)
    assert [] == scan_text(tmp_path, text, "rdma_link.txt").findings


def test_one_port_of_each_kind_that_is_down_is_a_note_each(tmp_path: Path) -> None:
    """A card with a port of InfiniBand and one of Ethernet: of each one is all that there is."""
    text = ibstat("Down", name="mlx4_0") + ibstat("Down", layer="Ethernet", name="mlx4_1")
    findings = scan_text(tmp_path, text).findings

    assert {("ib-port-down", "info"), ("roce-link-down", "info")} == {(one.rule, one.severity) for one in findings}


def test_what_a_tool_states_of_a_port_without_a_link_is_evidence_of_it(tmp_path: Path) -> None:
    """One finding per port: an empty cage is no second one, and a reason of the NIC explains the state."""
    ports = ibstat(*["Active"] * 7, "Down")
    tool = "$ mlxlink -d mlx5_7\n\nOperational Info\n----------------\nState   : Polling\nStatus Opcode   : {}\n"
    (unplugged,) = scan_text(tmp_path, ports + tool.format(1024), "issue.txt").findings
    failure = tool.format(2) + "Recommendation   : Negotiation failure\n"
    (explained,) = scan_text(tmp_path, ports + failure, "issue.txt").findings

    assert ("ib-port-down", "a tool") == (unplugged.rule, unplugged.evidence[-1].what)
    assert ("tool-reports-fault", ["ib-port-down port:mlx5_7/1"]) == (explained.rule, list(explained.absorbs))


def test_tools_without_ib_umad_are_no_fault_of_switches(tmp_path: Path) -> None:
    text = (
        "$ ibstat\nibwarn: [77] umad_init: can't read ABI version from /sys/class/infiniband_mad/abi_version (No such "
        "file or directory): is ib_umad module loaded?\nibpanic: [77] main: can't init UMAD library: (No such file)\n"
    )

    assert {"warning", "info"} >= {finding.severity for finding in scan_text(tmp_path, text, "issue.txt").findings}


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
    assert "<dt>Save next (checks that it settles)</dt><dd>lspci -vvv (" in render_html(report)
    assert commands == sorted(commands, key=lambda command: -command[1])
    assert "ibstat" not in dict(commands)


def test_the_first_screen_states_why_an_output_that_is_there_was_not_read(tmp_path: Path) -> None:
    """Else "Read: nothing" would be all that it says of a text that is too long."""
    text = "error: failed to open device mlx5_0: timeout\n" * 100_000

    assert "\nNot read: tool_reports: error of program: longer than " in to_plain_text(
        render_page(scan_text(tmp_path, text, "messages"), 100)
    )


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!", "amd-smi static --json"),
        ("habanalabs 0000:1a:00.0: Failed to initialize hl2. Device is NOT usable !", "hl-smi"),
        ("NVRM: Xid (PCI:0000:4f:00): 79, pid=31, GPU has fallen off the bus.", "nvidia-smi -q"),
    ],
)
def test_the_tool_to_save_next_is_that_of_the_maker_in_the_log(tmp_path: Path, line: str, tool: str) -> None:
    commands = dict(list_commands_to_save(scan_text(tmp_path, f"[   12.500000] {line}\n", "dmesg.txt")))
    tools = {"amd-smi", "hl-smi", "nvidia-smi", "npu-smi", "neuron-ls"}

    assert {tool} == {command for command in commands if command.split()[0] in tools}


def test_where_each_finding_names_its_host_the_answer_is_before_the_list_of_hosts(tmp_path: Path) -> None:
    text = f"=== n7 ===\n{ibstat(*['Active'] * 4)}=== n8 ===\n{ibstat(*['Active'] * 3, 'Down')}"
    page = to_plain_text(render_page(scan_text(tmp_path, text, "paste.txt"), 100))

    assert page.startswith("2 hosts: n7, n8\n")
    assert 0 < page.index("WARNING  n8: mlx5_3/1: DOWN") < page.index("\nHosts\n")


def interface_outputs(states: Sequence[str] = ("on",) * 2, frames: int = 7) -> dict[str, str]:
    """A RoCE port of which global pause and its counters were saved, and nothing of DCB."""
    return {
        "rdma_link.txt": "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens6np0 \n",
        "ethtool_-a_ens6np0.txt": "Pause parameters for ens6np0:\nAutonegotiate:\toff\nRX:\t\t{}\nTX:\t\t{}\n".format(
            *states
        ),
        "ethtool_-S_ens6np0.txt": f"NIC statistics:\n     rx_global_pause: {frames}\n     tx_global_pause: 0\n",
    }


def test_pause_frames_show_that_global_pause_is_in_force() -> None:
    (finding,) = warnings_of(scan_outputs(interface_outputs()))

    assert ("roce-global-pause", "warning", "low") == (finding.rule, finding.severity, finding.confidence)
    assert "7 pause frames were exchanged" in finding.summary
    assert not [row.what for row in finding.evidence if row.what.startswith("PFC")]  # it was not read


@pytest.mark.parametrize(
    "outputs",
    [interface_outputs(("off", "off")), interface_outputs(frames=0)],
    ids=["pause is off", "no frame was counted"],
)
def test_pause_without_frames_is_no_finding(outputs: dict[str, str]) -> None:
    assert [] == warnings_of(scan_outputs(outputs))


def virtual_functions(*guids: str, kind: str = "MT4126", physical: str = "LinkUp") -> str:
    """An ibstat of virtual functions that are down."""
    text = ibstat(*["Down"] * len(guids)).replace("Physical state: Polling", f"Physical state: {physical}")
    for number, guid in enumerate(guids):
        text = text.replace(f"Node GUID: {guid_of(f'mlx5_{number}')}", f"Node GUID: 0x{guid}")
    return text.replace("MT4129", kind)


@pytest.mark.parametrize(
    ("guid", "physical", "cause", "step"),
    [
        ("0200000000000001", "LinkUp", "its link policy or the subnet manager holds down", "sriov/N/policy"),
        ("0000000000000000", "LinkUp", "whose host has not given it a node GUID", "node_guid GUID"),
    ],
)
def test_a_virtual_function_that_is_down_has_causes_of_its_own(
    guid: str, physical: str, cause: str, step: str, tmp_path: Path
) -> None:
    (finding,) = warnings_of(scan_text(tmp_path, virtual_functions(guid, physical=physical)))

    assert ("ib-port-down", "low") == (finding.rule, finding.confidence)
    assert cause in finding.summary
    assert step in finding.remedy
    advice = " ".join((finding.summary, finding.remedy, *(finding.confirm or ())))
    assert not any(word in advice for word in ("cable", "transceiver", "module", "mlxlink", "no subnet manager"))


def test_interfaces_named_as_those_of_virtual_functions_are_none_of_the_host(tmp_path: Path) -> None:
    row = "link mlx5_{}/1 subnet_prefix fe80:0000:0000:0000 lid {} sm_lid {} lmc 0 state {} physical_state LINK_UP\n"
    up = "".join(row.format(number, number + 4, 9, "ACTIVE") for number in range(12))
    down = "".join(row.format(number, 65535, 0, "DOWN") for number in range(12, 15))
    named = "".join(f"mlx5_{number} port 1 ==> ibp81s0v{number} (Down)\n" for number in range(12, 15))

    assert [] == warnings_of(scan_text(tmp_path, f"$ rdma link\n{up}{down}$ ibdev2netdev\n{named}", "a.md"))
    assert {"ib-no-sm"} == {f.rule for f in warnings_of(scan_text(tmp_path, f"$ rdma link\n{up}{down}", "a.md"))}


def test_virtual_functions_whose_wire_is_up_are_found_where_all_are_down(tmp_path: Path) -> None:
    (finding,) = warnings_of(scan_text(tmp_path, virtual_functions("02", "03", "04", "05")))

    assert ("ib-port-down", "node", "warning", "low") == (
        finding.rule, finding.subject, finding.severity, finding.confidence,
    )  # fmt: skip
    assert "each is a virtual function that its link policy" in finding.summary
    assert "sriov/N/policy" in finding.remedy
    assert [] == warnings_of(scan_text(tmp_path, virtual_functions("02", "03", physical="Polling")))


def test_virtual_functions_beside_physical_ones_are_for_guests(tmp_path: Path) -> None:
    text = ibstat("Active", "Active") + virtual_functions("02", "03").replace("mlx5_", "mlx5_1").replace(
        "Port GUID: 0x94", "Port GUID: 0x95"
    )

    assert [] == warnings_of(scan_text(tmp_path, text))


def devinfo(*sizes: int, board: str = "MT_0000000838") -> str:
    """An ibv_devinfo of RoCE ports with these MTUs."""
    return "".join(
        f"hca_id:\tmlx5_{number}\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.2048\n"
        f"\tnode_guid:\t\t\t9400:0000:0000:{number:04x}\n\tboard_id:\t\t\t{board}\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        f"\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{size} (3)\n"
        "\t\t\tlink_layer:\t\tEthernet\n\n"
        for number, size in enumerate(sizes)
    )


def test_one_of_eight_firmwares_is_found_without_a_pci_list(tmp_path: Path) -> None:
    text = devinfo(*[4096] * 8).replace("28.39.2048", "28.39.1002", 1)
    (finding,) = warnings_of(scan_text(tmp_path, text, "ibv_devinfo.txt"))

    assert ("nic-fw-mixed", "pci:mlx5_0", "low") == (finding.rule, finding.subject, finding.confidence)


def test_firmware_by_thirds_may_be_chosen(tmp_path: Path) -> None:
    text = devinfo(*[4096] * 8).replace("28.39.2048", "28.39.1002", 3)

    assert [] == warnings_of(scan_text(tmp_path, text, "ibv_devinfo.txt"))


def test_one_packet_size_of_eight_is_found_by_the_ports_alone(tmp_path: Path) -> None:
    report = scan_text(tmp_path, devinfo(*[4096] * 7, 1024), "ibv_devinfo.txt")
    (finding,) = warnings_of(report)

    assert ("roce-mtu-small", "mlx5_7/1", "low") == (finding.rule, finding.label, finding.confidence)
    assert "packets of 1024 bytes" in finding.summary


@pytest.mark.parametrize("sizes", [[1024] * 8, [4096] * 4 + [1024] * 4], ids=["all", "half"])
def test_packet_sizes_of_many_ports_may_be_chosen(sizes: list[int], tmp_path: Path) -> None:
    assert [] == warnings_of(scan_text(tmp_path, devinfo(*sizes), "ibv_devinfo.txt"))


def test_a_pci_list_without_the_addresses_of_ports_leaves_open_what_they_are_for() -> None:
    """`ibstat` names no address: the list alone does not tell which function is which port."""
    outputs = outputs_of("ib-port-down")
    names = ("lspci_-D_-nn_-vvv.txt", "ibstat.txt")
    (finding,) = warnings_of(scan_outputs({name: outputs[name] for name in names}))

    assert ("ib-port-down", "low") == (finding.rule, finding.confidence)
    assert finding.steps[0].do.startswith("Save `rdma link`, `ip -d link` of this host")


PORTS_OF_TWO = "".join(
    f"{bus}:01.0 PCI bridge [0604]: Device [1022:1483]\n\tControl: I/O- Mem+ BusMaster+\n\tNUMA node: 0\n"
    f"\tIOMMU group: {group}\n\tBus: primary={bus}, secondary={below}, subordinate={below}, sec-latency=0\n"
    "\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00\n\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"
    "\tCapabilities: [2a0 v1] Access Control Services\n\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ "
    "UpstreamFwd+ EgressCtrl- DirectTrans+\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{redirect} CmpltRedir{redirect} "
    "UpstreamFwd+ EgressCtrl- DirectTrans-\n\tKernel driver in use: pcieport\n\n"
    f"{below}:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9]\n"
    f"\tControl: I/O- Mem+ BusMaster+\n\tNUMA node: 0\n\tIOMMU group: {group + 1}\n"
    "\tCapabilities: [78] Express (v2) Legacy Endpoint, MSI 00\n\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"
    "\tKernel driver in use: nvidia\n\n"
    for bus, below, group in (("20", "21", 20), ("40", "41", 40))
)
IOMMU = "[    0.512000] iommu: Default domain type: {}\n[    0.9] AMD-Vi: Interrupt remapping enabled\n"


def test_acs_and_a_translating_iommu_between_two_gpus_are_joined() -> None:
    """The ports of `lspci`, and what the kernel says of the IOMMU: neither is a fault alone."""
    lspci = {"lspci_-nnvvv.txt": PORTS_OF_TWO.replace("{redirect}", "+")}
    (finding,) = warnings_of(scan_outputs({**lspci, "dmesg.txt": IOMMU.format("Translated")}))

    assert ("gpu-p2p-redirected", "warning", "medium") == (finding.rule, finding.severity, finding.confidence)
    assert ("DMA", "dmesg.txt (dmesg)") in {(row.value, row.source) for row in finding.evidence}
    assert ("21", "lspci_-nnvvv.txt (lspci)") in {(row.value, row.source) for row in finding.evidence}
    for outputs in (
        lspci,
        {"dmesg.txt": IOMMU.format("Translated")},
        {**lspci, "dmesg.txt": IOMMU.format("Passthrough (set via kernel command line)")},
        {"lspci_-nnvvv.txt": PORTS_OF_TWO.replace("{redirect}", "-"), "dmesg.txt": IOMMU.format("Translated")},
    ):
        assert [] == warnings_of(scan_outputs(outputs))


THREADS = {  # what people posted: the findings of warning or more that it must give, and no other
    "ascend-310p3-one-alarm": {"error tool-reports-fault GPU96"},
    "acs-root-5880ada": {"warning gpu-p2p-redirected GPU0 and GPU1"},
    "ascend-loop-link-down": {"error npu-roce-port-down NPU 5", "error npu-tls-mixed node"},
    "bnxt-firmware-no-answer": {"error nic-firmware-dead NIC 0003:02:00.0"},
    "dmesg-delta-cmpltto": {"error pcie-containment device 0000:00:03.0"},
    "fec-off-no-link-100g": {"warning roce-link-down mlx5_0/1 (ens2f0np0)"},
    "gid-index-1-link-local": set(),  # `fabricscope job` joins the GIDs with what the log sets
    "global-pause-at-400g": {"warning roce-global-pause mlx5_0/1 (ens6np0)"},
    "ibqueryerrors-symbol": {"warning ib-fabric-errors port 12 of MF0;sw-leaf1:MQM8700/U1"},
    "ib-4of8-down": {f"warning ib-port-down mlx5_{number}/1" for number in (0, 2, 3, 6)},
    "k8s-macvlan-gids-from-4": set(),  # `fabricscope job` states why the read of a GID failed
    "locked-memory-limit": {"warning gdr-memlock-low node"},
    "mi300x-one-pair-over-pcie": {"error xgmi-pair-missing GPU2 - GPU5", "warning roce-link-down bnxt_re6/1 (ens6np0)"},
    "needs-open-modules": {"critical driver-reports-failure device 0000:01:00.0"},
    "one-hca-of-four-named": set(),  # `fabricscope job` joins NCCL_IB_HCA with the NICs
    "rccl-port-error-polling": {"warning ib-port-down mlx5_7/1"},
    "vf-down-linkup": {"warning ib-port-down mlx5_7/1"},
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


@pytest.mark.parametrize("host", SOME_HOSTS)
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


@pytest.mark.parametrize(
    ("states", "expected"), [(("Active", "Down"), ["mlx5_1/1"]), (("Active", "Active"), []), (("Active",) * 3, [])]
)
def test_the_second_of_two_ports_is_a_note(states: Sequence[str], expected: Sequence[str], tmp_path: Path) -> None:
    """The second port of a card is often left without a cable: no warning, and not silent."""
    text = ibstat(*states, name="rocep59s0f{}")
    notes = scan_text(tmp_path, text).findings

    assert [label.replace("mlx5_", "rocep59s0f") for label in expected] == [note.label for note in notes]
    assert all((note.severity, note.confidence) == ("info", "low") for note in notes)


@pytest.mark.parametrize(("physical", "expected"), [("Disabled", []), ("Polling", [("ib-port-down", "mlx4_0/1")])])
def test_the_port_of_a_card_with_two_that_is_down(
    physical: str, expected: Sequence[tuple[str, str]], tmp_path: Path
) -> None:
    """One that is switched off beside the other is not in use."""
    port = "\tPort {}:\n\t\tState: {}\n\t\tPhysical state: {}\n\t\tRate: 56\n\t\tLink layer: InfiniBand\n"
    ports = port.format(1, "Down", physical) + port.format(2, "Active", "LinkUp")
    report = scan_text(tmp_path, f"CA 'mlx4_0'\n\tCA type: MT4099\n\tNumber of ports: 2\n{ports}")

    assert expected == [(f.rule, f.label) for f in report.findings]


def ibdev2netdev(*states: str, name: str = "ens{}np0", verbose: bool = False) -> str:
    """What the script prints of an adapter per state; with -v the port's own state, too."""
    port = (
        "0000:{bus}:00.0 mlx5_{n} (MT4129 - MCX75310AAS-NEAT) ConnectX-7 adapter card fw 28.39.1002 port 1 ({own:<6})"
    )
    lines = [
        (port if verbose else "mlx5_{n} port 1").format(
            bus=f"{0x18 + n:02x}", n=n, own="ACTIVE" if state == "Up" else "DOWN"
        )
        + f" ==> {name.format(n)} ({state})\n"
        for n, state in enumerate(states)
    ]
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ibdev2netdev("Up", "Up", "Down", "Up"), ["roce-link-down mlx5_2/1 (ens2np0)"]),
        (ibdev2netdev("Up", "Up", "Down", "Up", name="ibp{}s0"), []),
        (ibdev2netdev(*["Up"] * 5, "Down", "Up", "Up", name="ibp{}s0"), ["ib-port-down mlx5_5/1"]),
        (ibdev2netdev(*["Up"] * 4, "Down", "Down", "Up", "Up", name="ibp{}s0"), []),
        (ibdev2netdev("Up", "Up", "Down", "Up", name="ens{}f1np1"), []),
        (ibdev2netdev("Up", "Down", "Up"), []),
        (ibdev2netdev(*["Down"] * 8), []),
        (ibdev2netdev("Down", "Down", "Down", "Up", "Down", "Down", "Down", "Down", name="rdma{}"), []),
        (ibdev2netdev("Up", "Up", "Down", "Up", name="ibp{}s0", verbose=True), ["ib-port-down mlx5_2/1"]),
        (ibdev2netdev(*["Up"] * 4, verbose=True), []),
    ],
)
def test_the_states_that_ibdev2netdev_prints(text: str, expected: Sequence[str], tmp_path: Path) -> None:
    """Of Ethernet few that are down are the odd ones out. An interface of InfiniBand is down without IP, which all have
    where seven of eight have it."""
    findings = warnings_of(scan_text(tmp_path, f"$ ibdev2netdev\n{text}", "post.txt"))

    assert expected == [f"{finding.rule} {finding.label}" for finding in findings]


def matrix(size: int, outside: Sequence[int], links: int = 18) -> str:
    """A matrix in which some GPUs have no NVLink."""
    rows = [
        "\t".join(
            [f"GPU{a}", *("X" if a == b else "SYS" if {a, b} & set(outside) else f"NV{links}" for b in range(size))]
        )
        for a in range(size)
    ]
    return "\t" + "\t".join(f"GPU{n}" for n in range(size)) + "\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("text", "expected"), [(matrix(8, [7]), ["GPU7"]), (matrix(8, [7], links=7), []), (matrix(8, []), [])]
)
def test_a_gpu_outside_the_matrix_of_nvlink(text: str, expected: Sequence[str], tmp_path: Path) -> None:
    """One or two of eight; where the others are not joined alike, the matrix may be of another kind."""
    findings = scan_text(tmp_path, text, "nvidia-smi_topo_-m.txt").findings
    outside = [finding for finding in findings if finding.rule == "nvlink-path-missing"]

    assert list(expected) == [finding.label for finding in outside]
    assert all((finding.severity, finding.confidence) == ("warning", "low") for finding in outside)
    assert all("MIG mode" in finding.impact for finding in outside)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("Active", "Initializing", "Active", "Active"), ["mlx5_1/1"]),
        (("Active", "Down", "Active", "Active"), ["mlx5_1/1"]),
        (("Initializing",) * 4, []),
        (("Active",) * 4, []),
    ],
)
def test_a_short_ibstat(states: Sequence[str], expected: Sequence[str], tmp_path: Path) -> None:
    """`ibstat -s` states no link layer: a port that starts or trains is one of InfiniBand."""
    kept = ("CA ", "Port ", "State", "Physical", "Rate")
    lines = [line for line in ibstat(*states).splitlines() if line.strip().startswith(kept) and "type" not in line]
    findings = warnings_of(scan_text(tmp_path, "$ ibstat -s\n" + "\n".join(lines) + "\n", "post.txt"))

    assert list(expected) == [finding.label for finding in findings]


MODULE = (
    "\tIdentifier                                : 0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))\n"
    "\tVendor PN                                 : MMA4Z00-NS\n"
    "\tModule temperature                        : 79.21 degrees C / 174.58 degrees F\n"
    "\tRcvr signal avg optical power(Channel 1)  : 1.1220 mW / 0.50 dBm\n"
    "\tRcvr signal avg optical power(Channel 2)  : 1.1220 mW / 0.50 dBm\n"
    "\tModule temperature high alarm             : {}\n"
)


@pytest.mark.parametrize(("flag", "expected"), [("On", [("warning", "ens3np0", "low")]), ("Off", [])])
def test_what_a_module_states_needs_no_port(flag: str, expected: list[tuple[str, str, str]], tmp_path: Path) -> None:
    findings = scan_text(tmp_path, MODULE.format(flag), "ethtool_-m_ens3np0.txt").findings

    assert expected == [(finding.severity, finding.label, finding.confidence) for finding in findings]


@pytest.mark.parametrize("driver", KERNEL_DRIVERS.replace("[45]", "5").split("|"))
def test_a_line_of_each_driver_is_the_kernel_log(driver: str, tmp_path: Path) -> None:
    """Without a date, by the name of the driver and the address."""
    report = scan_text(tmp_path, f"{driver} 0000:5e:00.0: Direct firmware load failed\n", "post.txt")

    assert [("post.txt", "dmesg")] == [(file.name, file.read_as) for file in report.source.files]


def test_a_list_of_link_local_gids_is_a_note(tmp_path: Path) -> None:
    rows = "".join(
        f"mlx5_{n}\t1\t{index}\tfe80:0000:0000:0000:0e42:a1ff:fe12:345{n}\t\t\tv{index + 1}\tens{n}np0\n"
        for n in (0, 1) for index in (0, 1)
    )  # fmt: skip
    report = scan_text(tmp_path, f"DEV\tPORT\tINDEX\tGID\t\tIPv4\t\tVER\tDEV\n{rows}n_gids_found=4\n", "show_gids.txt")

    assert [("roce-no-ip", "info", "low")] == [(f.rule, f.severity, f.confidence) for f in report.findings]


RATE = "/sys/class/infiniband/mlx5_{}/ports/1/rate:{} Gb/sec ({}X NDR)\n"
KEY = "/sys/class/infiniband/mlx5_2/ports/1/pkeys/{}:{}\n/sys/class/infiniband/mlx5_2/ports/1/state:4: ACTIVE\n"
STATE = "/sys/class/infiniband/mlx5_{}/ports/1/{}:{}\n"
MTU = "/sys/class/net/ens{}np0/mtu:{}\n"
BRIEF = "ens{n}np0             {state:<14} b8:3f:d2:00:00:0{n} <{flags}BROADCAST,MULTICAST,UP> \n"


def brief(count: int, down: int) -> str:
    """What `ip -br link` prints of interfaces of one maker, one of them without a carrier."""
    return "".join(
        BRIEF.format(n=n, state="DOWN" if n == down else "UP", flags="NO-CARRIER," if n == down else "LOWER_UP,")
        for n in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "".join(RATE.format(n, 200 if n == 3 else 400, 2 if n == 3 else 4) for n in range(4)),
            ["ib-rate-degraded mlx5_3/1"],
        ),
        ("".join(RATE.format(n, 200 if n > 1 else 400, 2 if n > 1 else 4) for n in range(4)), []),
        (
            "".join(RATE.format(n, 200 if n == 2 else 400, 2 if n == 2 else 4) for n in range(3)),
            ["peer-differs mlx5_2/1"],
        ),
        ("".join(RATE.format(n, 10 if n == 3 else 400, 4) for n in range(4)), []),
        ("".join(RATE.format(n, 100 if n == 8 else 400, 4) for n in range(9)), []),
        ("".join(RATE.format(n, 200 if n < 2 else 400, 4) for n in range(10)), []),
        ("".join(RATE.format(n, 100 if n == 7 else 400, 4) for n in range(8)), ["ib-rate-degraded mlx5_7/1"]),
        ("".join(RATE.format(n, 100 if n == 4 else 400, 4) for n in range(9)), ["ib-rate-degraded mlx5_4/1"]),
        ("".join(STATE.format(n, "state", "1: DOWN" if n == 3 else "4: ACTIVE") for n in range(5)), [
            "ib-port-down mlx5_3/1"]),
        ("".join(STATE.format(n, "state", "1: DOWN" if n > 3 else "4: ACTIVE") for n in range(5)), []),
        ("".join(STATE.format(n, "state", "1: DOWN" if n > 1 else "4: ACTIVE") for n in range(5)), []),
        ("".join(STATE.format(n, "state", "1: DOWN" if n == 1 else "4: ACTIVE") for n in range(3)), []),
        ("".join(STATE.format(n, "phys_state", "2: Polling" if n == 3 else "5: LinkUp") for n in range(4)), [
            "ib-port-down mlx5_3/1"]),
        ("".join(STATE.format(n, "phys_state", "3: Disabled" if n == 1 else "5: LinkUp") for n in range(8)), [
            "ib-port-down mlx5_1/1"]),
        ("".join(STATE.format(n, "phys_state", "5: LinkUp") for n in range(4)), []),
        ("".join(f"mlx5_{n} port 1 ==> ens{n}np0 ({'Down' if n > 7 else 'Up'})\n" for n in range(10)), []),
        ("".join(f"mlx5_{n} port 1 ==> ens{n}np0 ({'Down' if n == 7 else 'Up'})\n" for n in range(8)), [
            "roce-link-down mlx5_7/1 (ens7np0)"]),
        (KEY.format(0, "0x7fff"), ["ib-pkey-limited mlx5_2/1"]),
        (KEY.format(0, "0xffff"), []),
        (KEY.format(1, "0x7fff"), []),
        (
            "".join(
                STATE.format(n, "state", "2: INIT" if n == 2 else "4: ACTIVE")
                + STATE.format(n, "link_layer", "InfiniBand")
                for n in range(4)
            ),
            ["ib-no-sm mlx5_2/1"],
        ),
        ("".join(MTU.format(n, 1500 if n == 2 else 9000) for n in range(4)), ["roce-mtu-mismatch node"]),
        ("".join(MTU.format(n, 1500 if n > 1 else 9000) for n in range(4)), []),
        ("".join(MTU.format(n, 1500) for n in range(4)), []),
        (f"$ ip -br link\n{brief(8, down=4)}", ["roce-link-down ens4np0"]),
        (f"$ ip -br link\n{brief(8, down=0)}", []),
        (f"$ ip -br link\n{brief(4, down=4)}", []),
    ],
)  # fmt: skip
def test_a_fact_that_a_paste_shows_of_each_port(text: str, expected: Sequence[str], tmp_path: Path) -> None:
    """One of several that differs; half of them, too few, or slower ones beside 4, 8 or 16 are no evidence."""
    findings = warnings_of(scan_text(tmp_path, text, "post.txt"))

    assert expected == [f"{finding.rule} {finding.label}" for finding in findings]


IBSTATUS = (
    "Infiniband device 'mlx5_{n}' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:{guid}\n\tbase lid:\t {lid}\n"
    "\tsm lid:\t\t {lid}\n\tstate:\t\t {state}\n\tphys state:\t {physical}\n\trate:\t\t {rate}\n"
    "\tlink_layer:\t {layer}\n\n"
)


def _ibstatus(layer: str, *ports: tuple[str, str]) -> str:
    """What `ibstatus` prints of ports: the end of the GUID of each, and its rate; "" of one that is switched off."""
    return "".join(
        IBSTATUS.format(
            n=n, guid=f"b83f:d2ff:fe1a:{end}", lid="0x0" if layer == "Ethernet" else f"0x{n + 1}",
            state="4: ACTIVE" if rate else "1: DOWN", physical="5: LinkUp" if rate else "3: Disabled",
            rate=rate or "40 Gb/sec (4X QDR)", layer=layer,
        )
        for n, (end, rate) in enumerate(ports)
    )  # fmt: skip


_WIDE, _NARROW = "400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_ibstatus("Ethernet", ("77c0", _WIDE), ("77c1", "")), []),
        (_ibstatus("Ethernet", ("77c0", _WIDE), ("79c8", "")), ["warning roce-link-down mlx5_1/1"]),
        (_ibstatus("InfiniBand", ("77c0", _WIDE), ("79c8", _NARROW)), ["info ib-rate-degraded mlx5_1/1"]),
        (_ibstatus("InfiniBand", ("77c0", _WIDE), ("79c8", "200 Gb/sec (4X HDR)")), []),
        (_ibstatus("InfiniBand", ("77c0", _NARROW), ("79c8", _NARROW)), []),
    ],
    ids=["the second port of a card", "another card", "half of the lanes", "another speed", "split alike"],
)
def test_one_of_two_ports_by_its_guid_and_its_lanes(text: str, expected: Sequence[str], tmp_path: Path) -> None:
    findings = scan_text(tmp_path, text, "ibstatus.txt").findings

    assert expected == [f"{finding.severity} {finding.rule} {finding.label}" for finding in findings]


def _query(widths: Sequence[int], reasons: Sequence[str], name: str = "NVIDIA A100-SXM4-80GB") -> str:
    heading = "index, name, pcie.link.width.current, clocks_event_reasons.active\n"
    rows = zip(widths, reasons, strict=True)
    return heading + "".join(f"{index}, {name}, {width}, {reason}\n" for index, (width, reason) in enumerate(rows))


_NO_REASON = "0x0000000000000000"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_query([16, 16, 8, 16], [_NO_REASON] * 4), ["peer-differs GPU2 warning"]),
        (_query([16] * 4, [_NO_REASON, _NO_REASON, _NO_REASON, "0x0000000000000048"]), ["gpu-throttled GPU3 error"]),
        (_query([16] * 4, ["0x0000000000000001"] * 4), []),
        (_query([8] * 4, [_NO_REASON] * 4), []),
        (_query([8, 16, 8, 16], [_NO_REASON] * 4), []),
    ],
    ids=["one with half its lanes", "one that is hot", "idle", "all alike", "every second one"],
)
def test_columns_of_a_query(text: str, expected: Sequence[str], tmp_path: Path) -> None:
    found = warnings_of(scan_text(tmp_path, text, "gpus.csv"))

    assert expected == [f"{finding.rule} {finding.label} {finding.severity}" for finding in found]


def _showtopo(alone: int, count: int) -> str:
    heads = "".join(f"{f'GPU{n}':13}" for n in range(count))
    kinds = [[0 if a == b else "PCIE" if alone in (a, b) else "XGMI" for b in range(count)] for a in range(count)]
    rows = "".join(f"GPU{a:<4}" + "".join(f"{kind!s:13}" for kind in row) + "\n" for a, row in enumerate(kinds))
    title = " ROCm System Management Interface ".center(90, "=")
    ends = " End of ROCm SMI Log ".center(90, "=")
    return f"{title}\n{' Link Type between two GPUs '.center(90, '=')}\n       {heads}\n{rows}{ends}\n"


@pytest.mark.parametrize(
    ("alone", "count", "expected"),
    [(3, 4, ["xgmi-pair-missing GPU3"]), (4, 5, []), (2, 3, [])],
    ids=["three joined and one alone", "a whole bridge and a spare card", "a bridge of two and a spare card"],
)
def test_a_gpu_outside_the_matrix_of_xgmi(alone: int, count: int, expected: Sequence[str], tmp_path: Path) -> None:
    found = warnings_of(scan_text(tmp_path, _showtopo(alone, count), "topo.txt"))

    assert expected == [f"{finding.rule} {finding.label}" for finding in found]


GPU = "3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
LINK = "\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\tLnkSta:\tSpeed 32GT/s, Width {}\n"
NIC = "5e:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"


def test_the_head_of_a_function_does_not_deny_it_a_driver(tmp_path: Path) -> None:
    """`head` left out the line that names it, and the next output shows that lspci lists drivers."""
    ended = f"$ lspci -vvv -s 5e:00.0\n{NIC}\tNUMA node: 0\n\tKernel driver in use: mlx5_core\n\n"
    text = f"$ lspci -vvv -s 3b:00.0 | head -4\n{GPU}\tNUMA node: 0\n{LINK.format('x16')}{ended}"

    assert [] == warnings_of(scan_text(tmp_path, text, "issue.md"))


@pytest.mark.parametrize("widths", [("x16", "x8"), ("x8", "x16")])
def test_a_second_lspci_with_another_link_is_not_silently_dropped(tmp_path: Path, widths: tuple[str, str]) -> None:
    """One output is used; the other is listed as unread, and what it shows by itself."""
    outputs = [
        f"$ lspci -vvv -s 3b:00.0\n{GPU}{LINK.format(width)}\tKernel driver in use: nvidia\n\n" for width in widths
    ]
    report = scan_text(tmp_path, "".join(outputs), "issue.md")
    (unread,) = (file for file in report.source.files or () if file.reason)

    assert "an earlier one is used" in (unread.reason or "")
    assert ("link is x8" in (unread.reason or "")) == (widths[1] == "x8")


def test_an_ibstatus_that_ends_above_its_link_layer_accuses_no_active_port(tmp_path: Path) -> None:
    """RoCE has no LIDs, and the line that states Ethernet is the last one."""
    form = (
        "Infiniband device 'mlx5_0' port 1 status:\n\tbase lid:\t 0x0\n\tsm lid:\t\t 0x0\n\tstate:\t\t {}\n"
        "\tphys state:\t 5: LinkUp\n\trate:\t\t 400 Gb/sec (4X NDR)\n"
    )
    active, starting = (scan_text(tmp_path, form.format(state), "ibstatus.txt") for state in ("4: ACTIVE", "2: INIT"))
    verbs = "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tsm_lid:\t\t\t0\n"

    (tmp_path / "verbs").mkdir()
    assert [] == warnings_of(scan_text(tmp_path / "verbs", verbs, "ibv_devinfo.txt"))
    assert ([], ["ib-no-sm"]) == (warnings_of(active), [row.rule for row in warnings_of(starting)])


@pytest.mark.parametrize(
    ("source", "read_as", "expected"),
    [
        ("dcb pfc show dev ens3np0", "ethtool -S ens3np0", "a.txt (ethtool -S ens3np0)"),
        ("dcb pfc show dev ens3np0", "ethtool -i ens3np0", "dcb pfc show dev ens3np0"),
        ("ip addr show bond0", "show_gids", "a.txt (show_gids)"),
        ("amd-smi topology", "rocm-smi --showtopo", "a.txt (rocm-smi --showtopo)"),
        ("/sys/class/infiniband/mlx5_0/ports/1/state", "rdma link", "a.txt (rdma link)"),
    ],
)
def test_evidence_names_the_output_that_states_it(source: str, read_as: str, expected: str) -> None:
    """Not a command that no one ran, where another one that was saved states the same."""
    files = [SourceFile(name="a.txt", read_as=read_as)]
    row = Evidence(what="PFC", value="none", source=source)
    finding = Finding(
        rule="r", severity="info", subject="node", label="node", summary="s", evidence=[row], impact="i", remedy="r",
        confidence="low", fingerprint="0",
    )  # fmt: skip

    assert [expected] == [row.source for row in name_files([finding], Source(kind="dump", files=files))[0].evidence]


def test_a_bond_beside_rails_is_not_one_of_them(tmp_path: Path) -> None:
    """It is for storage or management, mostly of another rate."""
    rates = {"mlx5_0": 400, "mlx5_1": 400, "mlx5_2": 400, "mlx5_bond_0": 100}
    text = "".join(f"CA '{name}'\n\t\tState: Active\n\t\tRate: {rate}\n" for name, rate in rates.items())

    assert [] == scan_text(tmp_path, f"$ ibstat | grep -E '^CA|State|Rate'\n{text}").findings
    (finding,) = scan_text(tmp_path, text.replace("bond_0", "3")).findings
    assert finding.rule == "peer-differs"


def test_one_narrow_link_of_a_part_of_iblinkinfo_is_no_choice(tmp_path: Path) -> None:
    row = '   3   {0}[  ] ==( {1} 106.25 Gbps Active/  LinkUp)==>  {0}    1[  ] "gpu-{0} mlx5_7" ( {2})\n'
    text = row.format(22, "2X", "Could be 4X") + row.format(23, "4X", "") + row.format(24, "4X", "")

    assert ["ib-fabric-errors"] == [finding.rule for finding in scan_text(tmp_path, text, "links.txt").findings]
