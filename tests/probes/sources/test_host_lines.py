"""Lines of several hosts in one text: each host's are read alone, whatever the form, and findings name the host. Kernel
lines in messages of Kubernetes are read as the log of the node that they are of.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.outputs.text.header import render_hosts, render_title
from agent.outputs.text.lines import Line
from probes.sources.host_lines import split_hosts
from probes.sources.open_source import open_source
from probes.sources.pasted import holds_output, split_pasted
from tests.machines import scan_text

IBSTATUS = (
    "Infiniband device 'mlx5_2' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:946d:ae03:00{0}:70aa\n"
    "\tbase lid:\t {1}\n\tsm lid:\t\t {2}\n\tstate:\t\t {3}\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n"
)
UP = IBSTATUS.format("1a", "0x31", "0x2", "4: ACTIVE")
INIT = IBSTATUS.format("2b", "0xffff", "0x0", "2: INIT")


def before(host: str, text: str) -> str:
    return "".join(f"{host}: {line}\n" for line in text.splitlines())


FORMS = {
    "pdsh": before("c07", UP) + before("c08", INIT),
    "pdsh, mixed": "".join(
        f"c07: {up}\nc08: {init}\n" for up, init in zip(UP.splitlines(), INIT.splitlines(), strict=True)
    ),
    "ansible": f"c07 | CHANGED | rc=0 >>\n{UP}c08 | CHANGED | rc=0 >>\n{INIT}",
    "ansible, the fault first": f"c08 | CHANGED | rc=0 >>\n{INIT}c07 | CHANGED | rc=0 >>\n{UP}",
    "clush -b": f"{'-' * 15}\nc08\n{'-' * 15}\n{INIT}{'-' * 15}\nc[07,09-12] (5)\n{'-' * 15}\n{UP}",
    "a loop over ssh": f"=== c07 ===\n{UP}=== c08 ===\n{INIT}",
    "logs of two pods": "".join(
        f"[pod/{pod}/tool] {line}\n" for pod, text in (("c07", UP), ("c08", INIT)) for line in text.splitlines()
    ),
    "head of files": f"==> c07.txt <==\n{UP}\n==> c08.txt <==\n{INIT}",
}


def _text(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_fault_of_one_of_two_hosts_is_found_and_names_it(tmp_path: Path, text: str) -> None:
    """Joined, the later output would hide the earlier one: both are of a device of the same name."""
    report = scan_text(tmp_path, text)
    hosts = [host.name for host in report.source.hosts or []]

    assert "c08" in hosts
    assert len(hosts) == 2
    assert [("ib-no-sm", "c08: mlx5_2/1")] == [(finding.rule, finding.label) for finding in report.findings]
    assert ["2 hosts: ", *sorted(hosts)] == ["2 hosts: ", *_text(render_title(report, 200))[9:].split(", ")]
    assert "host name in the prompt: c08" not in _text(render_hosts(report, 200))


def test_the_same_fault_of_two_hosts_is_two_findings(tmp_path: Path) -> None:
    report = scan_text(tmp_path, before("c07", INIT.replace("2b", "3c")) + before("c08", INIT) + before("c09", UP))

    assert ["c07: mlx5_2/1", "c08: mlx5_2/1"] == sorted(finding.label for finding in report.findings)


def test_a_file_that_has_the_name_of_the_command_and_lines_of_several_hosts(tmp_path: Path) -> None:
    """`pdsh ibstatus > ibstatus.txt`: neither host's fault is lost."""
    path = tmp_path / "ibstatus.txt"
    path.write_text(before("c07", UP) + before("c08", INIT))
    report = diagnose(open_source(str(path)), ScanPlan())[0]

    assert [("ib-no-sm", "c08: mlx5_2/1")] == [(finding.rule, finding.label) for finding in report.findings]


def test_words_that_are_known_anywhere_in_a_line_make_it_no_output_as_it_is(tmp_path: Path) -> None:
    """`hccn_tool` is known by its name in a line, with the host before it, too."""
    text = "# hccn_tool -i 3 -net_health -g\nnet health status: {}\n"
    failed = before("c08", text.format("Socket fail"))
    both = before("c07", text.format("Success")) + failed
    labels = [[finding.label for finding in scan_text(tmp_path, shown).findings] for shown in (failed, both)]

    assert [["NPU 3"], ["c08: NPU 3"]] == labels


def test_a_command_that_all_hosts_ran_names_the_device_that_its_filter_took_away(tmp_path: Path) -> None:
    rows = "\t\tState: {0}\n\t\tPhysical state: {1}\n\t\tRate: {2}\n"
    down, up = rows.format("Down", "Polling", 10), rows.format("Active", "LinkUp", 200)
    text = "$ pdsh -w c[07-09] 'ibstat mlx5_6 | grep -E \"State|Rate|state\"'\n" + "".join(
        before(host, output) for host, output in (("c07", up), ("c08", down), ("c09", up))
    )
    report = scan_text(tmp_path, text)
    (finding,) = report.findings

    assert ("ib-port-down", "c08: mlx5_6/1", "warning") == (finding.rule, finding.label, finding.severity)
    assert finding.impact.startswith("The same port of 2 other hosts is up. ")
    assert {2, 5, 8} == {piece.line for piece in split_pasted(text) if piece.text.startswith("CA 'mlx5_6'")}


@pytest.mark.parametrize("states", [("Active", "Down"), ("Active", "Down", "Down"), ("Down", "Down", "Down")])
def test_a_port_that_is_down_on_others_too_or_beside_one_host_alone_stays_a_note(
    tmp_path: Path, states: tuple[str, ...]
) -> None:
    ports = (
        before(f"c{number}", f"CA 'mlx5_6'\n\tPort 1:\n\t\tState: {state}\n") for number, state in enumerate(states)
    )
    report = scan_text(tmp_path, "".join(ports))

    assert {"info"} == {finding.severity for finding in report.findings}


@pytest.mark.parametrize(
    "text",
    [
        before("c07", UP),  # of one host: its name alone is cut
        f"=== mlx5_0 ===\n{UP}=== mlx5_1 ===\n{INIT}",  # devices of one host
        f"=== GPU0 ===\n{UP}=== GPU1 ===\n{INIT}",
        f"=== before ===\n{UP}=== after ===\n{INIT}",  # times, not numbered alike
        "c07: 400\nc08: 200\n",  # values, and no output that is known
        "NVRM: a\nNVRM: b\nib0: x\nib1: y\n",
    ],
)
def test_what_is_not_of_several_hosts_stays_whole(text: str) -> None:
    assert [] == split_hosts(text, holds_output)


def test_metrics_of_several_instances_are_of_several_hosts(tmp_path: Path) -> None:
    metric = 'node_infiniband_state_id{{device="mlx5_{0}",instance="c{1}:9100",port="1"}} {2}\n'
    text = "".join(metric.format(port, host, 4 - 3 * (host == 8 and port == 2)) for host in (7, 8) for port in range(4))
    report = scan_text(tmp_path, text)

    assert [("ib-port-down", "c8: mlx5_2/1")] == [(finding.rule, finding.label) for finding in report.findings]


XID = "NVRM: Xid (PCI:0000:4f:00): 79, pid=31, name=train, GPU has fallen off the bus."
EVENTS = "LAST SEEN   TYPE      REASON     OBJECT      MESSAGE\n"
NODE = (
    "Name:               c7\nConditions:\n"
    "  Type      Status  LastHeartbeatTime  LastTransitionTime  Reason  Message\n"
    "  ----      ------  -----------------  ------------------  ------  -------\n"
    "  {kind}    True    Mon, 03 Nov 2025 07:41:10 +0000   Mon, 03 Nov 2025 07:12:44 +0000   "
    "XidCriticalError   {text}\n"
    "Capacity:\n  nvidia.com/gpu:     8\nAllocatable:\n  nvidia.com/gpu:     8\n"
)


def test_a_condition_that_quotes_the_log_is_one_finding_with_the_part(tmp_path: Path) -> None:
    report = scan_text(tmp_path, NODE.format(kind="GpuXid", text=XID))

    assert [("gpu-xid", ["0000:4f:00.0"])] == [(finding.rule, finding.devices) for finding in report.findings] or [
        ("gpu-xid", "device 0000:4f:00.0")
    ] == [(finding.rule, finding.label) for finding in report.findings]


def test_a_condition_without_a_line_of_the_log_stays_one_of_kubernetes(tmp_path: Path) -> None:
    report = scan_text(tmp_path, NODE.format(kind="GpuXid", text="device is unhealthy"))

    assert {"tool-reports-fault"} == {finding.rule for finding in report.findings}


def test_events_of_two_nodes_are_of_two_hosts(tmp_path: Path) -> None:
    rows = "".join(f"2m          Warning   XIDError   node/c{node}     {XID}\n" for node in (7, 8))
    report = scan_text(tmp_path, EVENTS + rows + "1m          Normal    NodeReady  node/c9     is ready\n")

    assert {"c7", "c8"} <= {host.name for host in report.source.hosts or []}
    assert ["c7: device 0000:4f:00.0", "c8: device 0000:4f:00.0"] == sorted(f.label for f in report.findings)


def test_other_events_quote_no_line(tmp_path: Path) -> None:
    report = scan_text(tmp_path, f"{EVENTS}1m          Normal    NodeReady  node/c9     Node is ready\n")

    assert [] == report.findings


_HEALTH = 'gpu_health{{gpu_id="{gpu}",hostname="{host}"}} {value}\n'
_POD_TEXTS = {
    "one pod": ("[pod/exporter-7xk2p/ctr] " + _HEALTH.format(gpu=1, host="c07", value=0), ["GPU1"]),
    "two hosts in labels": (
        _HEALTH.format(gpu=1, host="c07", value=0) + _HEALTH.format(gpu=1, host="c08", value=1), ["c07: GPU1"],
    ),
}  # fmt: skip


def test_sentences_of_tools_behind_names_of_hosts_are_of_these(tmp_path: Path) -> None:
    """Although they are read wherever they stand."""
    text = (
        "gpu-node-7: ok\ngpu-node-8: Failed to initialize NVML: Unknown Error\n"
        "gpu-node-9: Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error\n"
    )
    labels = [finding.label for finding in scan_text(tmp_path, text).findings]
    assert {"gpu-node-8: node", "gpu-node-9: GPU@0000:9b:00.0"} <= set(labels)


@pytest.mark.parametrize("name", _POD_TEXTS)
def test_logs_of_pods_and_metrics_of_hosts_are_read_behind_their_names(tmp_path: Path, name: str) -> None:
    text, labels = _POD_TEXTS[name]
    assert sorted(finding.label for finding in scan_text(tmp_path, text).findings) == labels
