"""The whole page of a small machine, and what holds on every machine: nothing is wider than the page."""

from __future__ import annotations

import re

import msgspec
import pytest

from agent.model.finding import Check, Evidence, FarEnd, Location, Step, Summary
from agent.model.report import CountersWindow
from agent.model.topology import Topology
from agent.outputs.names import short_model, visible_nics
from agent.outputs.text.lines import line_length, to_plain_text
from agent.outputs.text.page import Detail, render_page
from tests.agent.outputs.text.reports import GPUS, below_one_switch, finding, probe, report, unknown
from tests.agent.rules import rows
from tests.machines import FAULTS, HOSTS, SOME_FAULTS, scan_machine

EXPECTED = """\
node-1
ERROR  1 error
  1 check ran; 1 could not run

ERROR  GPU0: Half the lanes
  part      GPU0, 18:00.0
  fix       Reseat it.
  impact    Half the bandwidth.
  evidence  width: x8  [/sys/a]
            could be: x16  [/sys/b]
  explains  pcie-path-bottleneck of GPU0+mlx5_0
  rule      pcie-width-downgraded

Host
  GPUs      2x H100 80GB HBM3
  NICs      2x ConnectX-7
  CPUs      1x CPU
  source    this host, fabricscope 1.2.3

Topology
NUMA 0  cpus 0-15  64 GiB
└─ switch 16:00.0     Gen5 x16  PEX890xx
   ├─ GPU0 18:00.0    Gen5 x8 of x16  NVLink 18/18  <- pcie-width-downgraded
   │                  H100 80GB HBM3
   ├─ GPU1 19:00.0    Gen5 x16        NVLink 18/18  H100 80GB HBM3
   ├─ mlx5_0 1a:00.0  Gen5 x16        RoCE 400G up GID 3  rail  ConnectX-7
   └─ mlx5_1 1b:00.0  Gen5 x16        RoCE 400G up GID 3  rail  ConnectX-7

GPU to GPU
  NV18 between both GPUs; PCIe distance without NVLink: PIX

GPU to NIC
  PIX between every GPU and every rail
  PIX: one PCIe switch; NV18: 18 NVLinks

Could not check: numa-unknown (--verbose lists why)

Next: fabricscope explain pcie-width-downgraded
      (why it matters, and how to confirm)
"""


def test_the_page_of_a_small_machine() -> None:
    """Verdict, findings, host, tree, matrices, what could not be checked, and the next command."""
    topology = below_one_switch()
    functions = [msgspec.structs.replace(f, link=rows.link(width=8)) if f.id == GPUS[0] else f for f in topology.pci]
    output = report(
        msgspec.structs.replace(topology, pci=functions),
        findings=[finding(f"pci:{GPUS[0]}", "GPU0")],
        checks=[
            Check(rule="pcie-width-downgraded", state="fail", failed=1),
            unknown("numa-unknown", "not said", *(f"gpu:{line}" for line in GPUS)),
        ],
        probes=[probe("pci", "partial", "config space past byte 64 needs CAP_SYS_ADMIN")],
        summary=Summary(verdict="error", counts={"error": 1}),
    )

    assert EXPECTED == to_plain_text(render_page(output, 80))


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("machine", [*HOSTS, *SOME_FAULTS])
def test_no_line_is_wider_than_the_page_and_no_model_is_cut(machine: str, width: int) -> None:
    """But for a single word (a path) that cannot be folded. Every device of the tree has its whole model."""
    output = scan_machine(machine) if machine in HOSTS else scan_machine("", machine)
    lines = render_page(output, width)
    wide = [line for line in lines if line_length(line) > width]
    text = to_plain_text(lines)
    tree = text.partition("\nTopology\n")[2].partition("\n\n")[0]
    models = [short_model(device.name) for device in output.topology.gpus]
    models += [short_model(nic.model) for nic in visible_nics(output) if not nic.virtual_function]

    assert [] == [to_plain_text([line]) for line in wide if len(to_plain_text([line]).split()) > 1]
    assert [] == [model for model in models if tree.count(model) < models.count(model)]
    assert "…" not in text


@pytest.mark.parametrize("fault", FAULTS)
def test_one_finding_fits_on_the_first_screen(fault: str) -> None:
    """Verdict, part and fix of the gravest finding within 24 lines of 80 columns; topology comes after."""
    output = scan_machine("", fault)
    screen = to_plain_text(render_page(output, 80)).splitlines()[:24]

    assert output.summary.verdict.upper() in screen[1] or output.summary.verdict == "ok"
    if output.findings:
        assert any(line.startswith("  fix  ") for line in screen)
        assert "Topology" not in screen[: screen.index(next(line for line in screen if line.startswith("  fix  ")))]


@pytest.mark.parametrize("machine", [*HOSTS, *SOME_FAULTS])
def test_no_line_of_footnotes_or_evidence_is_there_twice(machine: str) -> None:
    """One reason is one footnote, one observation one line."""
    output = scan_machine(machine) if machine in HOSTS else scan_machine("", machine)
    lines = to_plain_text(render_page(output, 200)).splitlines()
    notes = [line[6:] for line in lines if re.match(r"  \([a-z]\) ", line)]
    masked = [re.sub(r"[0-9a-f:]*[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", "#", note) for note in notes]

    assert len(set(masked)) == len(masked)


@pytest.mark.parametrize("fault", ["gpu-gone", "gpu-lost", "gpu-not-in-nvml"])
def test_a_gpu_that_the_driver_cannot_name_is_no_other_model(fault: str) -> None:
    """It has the PCI id of the others: the node is not mixed."""
    assert "GPUs      8x H100 80GB HBM3, 4x NVSwitch" in to_plain_text(render_page(scan_machine("", fault), 100))


def test_findings_of_one_rule_and_cause_are_one_block() -> None:
    """Each part has a line of its own, and what is the same is there once."""
    place = [f"0000:{n:02x}:00.0" for n in range(16, 24)]
    nics = [rows.nic(address, number, ethernet=True) for number, address in enumerate(place)]
    findings = [
        msgspec.structs.replace(
            finding(f"port:{address}/1", f"mlx5_{number}/1 (eth{number})"),
            remedy=f"Run ip link set eth{number} mtu 9000.",
            evidence=[Evidence(what=f"MTU of eth{number}", value="1500", source=f"/sys/class/net/eth{number}/mtu")],
            absorbs=[],
        )
        for number, address in enumerate(place)
    ]
    text = to_plain_text(render_page(report(Topology(nics=nics), findings=findings), 100))

    assert 1 == text.count("ERROR  mlx5_0-7: Half the lanes")
    assert [f"mlx5_{n}/1 (eth{n}), {10 + n}:00.0" for n in range(4)] == re.findall(r"mlx5_\d/1 .*", text)
    assert "and 4 more (--verbose)" in text
    assert "The same for each of the 8 parts, with its own names." in text
    assert "  evidence  MTU of eth0-7: 1500  [/sys/class/net/eth0/mtu and 7 more like it]\n" in text


@pytest.mark.parametrize(("numbers", "blocks"), [((1, 8), ["GPU1,8"]), ((1, 2), ["GPU1", "GPU2"])])
def test_a_command_with_the_number_of_its_gpu_is_the_same_fix(numbers: tuple[int, int], blocks: list[str]) -> None:
    """But not one with another number."""
    findings = [
        msgspec.structs.replace(
            finding(f"gpu:{n}", f"GPU{n}"), remedy=f"1. Reset it: nvidia-smi -r -i {number}. 2. Look.", absorbs=[]
        )
        for n, number in zip((1, numbers[1]), (1, 8), strict=True)
    ]
    text = to_plain_text(render_page(report(Topology(), findings=findings), 100))

    assert blocks == re.findall(r"^ERROR  (\S+): Half", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("NIC", "  part      GPU0, 18:00.0, serial 4711\n"),
        ("PCI device", "  part      GPU0, 18:00.0, serial 4711\n"),
        ("PCIe card", "  part      GPU0, 18:00.0, PCIe card, serial 4711\n"),
    ],
)
def test_a_part_is_called_what_it_is_where_that_is_known(part: str, row: str) -> None:
    """Its kind alone is in its name."""
    located = msgspec.structs.replace(finding(f"gpu:{GPUS[0]}", "GPU0"), location=Location(part=part, serial="4711"))

    assert row in to_plain_text(render_page(report(below_one_switch(), findings=[located]), 80))


def test_a_part_that_the_headline_names_has_no_row() -> None:
    """Where nothing else is known of it."""
    label = "device 0000:01:00.0"
    alone = msgspec.structs.replace(finding("pci:0000:01:00.0", label), location=Location(part="PCI device"))
    text = to_plain_text(render_page(report(below_one_switch(), findings=[alone]), 80))

    assert f"ERROR  {label}: " in text
    assert "\n  part  " not in text


def test_a_summary_that_names_its_part_is_not_led_by_it() -> None:
    one = msgspec.structs.replace(finding(f"gpu:{GPUS[0]}", "GPU0"), summary="GPU0 runs at 40 Gb/s")
    other = msgspec.structs.replace(one, summary="GPU01 runs at 40 Gb/s")
    pages = [to_plain_text(render_page(report(below_one_switch(), findings=[row]), 80)) for row in (one, other)]

    assert "\nERROR  GPU0 runs at 40 Gb/s\n" in pages[0]
    assert "\nERROR  GPU0: GPU01 runs at 40 Gb/s\n" in pages[1]


def test_findings_of_one_cause_that_differ_in_words_show_the_first() -> None:
    """Each with its own words at its part."""
    findings = [
        msgspec.structs.replace(finding(f"port:{n}/1", f"mlx5_{n}/1"), summary=f"{lanes} of 16 lanes", absorbs=[])
        for n, lanes in enumerate(("half", "a quarter", "none"))
    ]
    text = to_plain_text(render_page(report(Topology(), findings=findings), 100))

    assert "ERROR  mlx5_0-2: half of 16 lanes; and 2 more like it\n" in text
    assert re.search(r"mlx5_1/1.*: a quarter of 16 lanes", text)


def test_findings_of_several_kinds_with_one_fix_are_not_called_alike() -> None:
    texts = ("the BMC logs a temperature: 95 degrees C", "the BMC logs a power supply: no input")
    findings = [
        msgspec.structs.replace(finding("node", label), summary=summary, absorbs=[])
        for label, summary in zip(("GPU3 Temp", "PSU2"), texts, strict=True)
    ]
    text = to_plain_text(render_page(report(Topology(), findings=findings), 120))

    assert "GPU3 Temp: the BMC logs a temperature: 95 degrees C; and 1 more with the same fix\n" in text
    assert "PSU2: the BMC logs a power supply: no input\n" in text


def test_part_confirm_and_steps_are_shown_where_they_are_known() -> None:
    """Socket, serial number, far end of the cable; commands; numbered steps with their costs and outcomes."""
    far = FarEnd(system="leaf-1", port="17")
    location = Location(part="PCIe card in slot 5", serial="MT2", port_guid="b83f", far_end=far)
    steps = [
        Step(do="Drain the node.", outcomes=[]),
        Step(
            do="Swap the cable.",
            cost="on_site",
            outcomes=["The fault follows the cable: replace it.", "Stays: replace the card."],
        ),
    ]
    one = msgspec.structs.replace(
        finding(f"pci:{GPUS[0]}", "GPU0"), location=location, steps=steps, confirm=["lspci -s 18:00.0", "dmesg"]
    )
    text = to_plain_text(render_page(report(below_one_switch(), findings=[one]), 100))

    assert "  part      GPU0, 18:00.0, PCIe card in slot 5, serial MT2, GUID b83f, cable to leaf-1 port 17\n" in text
    assert "  confirm   lspci -s 18:00.0\n            dmesg\n" in text
    assert (
        "  fix       1. Drain the node.\n"
        "            2. Swap the cable. (costs a visit on site)\n"
        "               - The fault follows the cable: replace it.\n"
        "               - Stays: replace the card.\n"
    ) in text


def test_brief_and_topology_are_parts_of_the_page() -> None:
    """`--brief`: the verdict and one line per finding; `--topology`: no finding."""
    output = scan_machine("", "gpu-width-x8")
    brief = to_plain_text(render_page(output, 80, Detail.BRIEF))
    drawn = to_plain_text(render_page(output, 80, Detail.TOPOLOGY))

    assert "  ERROR  GPU2: " in brief
    assert len(brief.splitlines()) <= 9
    assert "Topology" not in brief
    assert "\nTopology\n" in drawn
    assert "  fix  " not in drawn


def test_brief_has_a_line_for_a_note() -> None:
    """A note that is alone is not only counted; the whole page has its block, without the line."""
    output = report(
        below_one_switch(),
        findings=[finding(f"gpu:{GPUS[0]}", "GPU0", "info")],
        summary=Summary(verdict="ok", counts={"info": 1}),
    )
    brief = to_plain_text(render_page(output, 80, Detail.BRIEF))

    assert "OK  no problems found, 1 note\n" in brief
    assert "\n  NOTE  GPU0: Half the lanes\n" in brief
    assert "\n  NOTE  " not in to_plain_text(render_page(output, 80))


def test_verbose_has_all_evidence_and_why_checks_could_not_run() -> None:
    """The page without it has one line on these."""
    output = scan_machine("", "ib-no-sm")
    usual_value, verbose = (
        to_plain_text(render_page(output, 80, detail)) for detail in (Detail.NORMAL, Detail.VERBOSE)
    )

    assert "Could not check: " in usual_value
    assert "\nCould not check\n  ? " in verbose
    assert (
        usual_value.count("/sys/class/infiniband/") < verbose.count("/sys/class/infiniband/") == 9
    )  # 8 ports, and a command


def test_a_legend_explains_the_kinds_of_paths_that_are_shown() -> None:
    """And no others."""
    text = to_plain_text(render_page(scan_machine("4xgb200-tray-2xgrace-4xcx7-ib"), 200))

    assert "  NODE: same NUMA node; SYS: across CPU sockets or NUMA nodes; NV18: 18 NVLinks\n" in text


def test_no_gpu_is_stated_only_where_the_list_of_devices_is_complete() -> None:
    """Otherwise it is not known, and the verdict has the reason."""
    none = report(Topology(), summary=Summary(verdict="nothing_to_check", counts={}))
    unread = report(Topology(), summary=Summary(verdict="unknown", counts={}, devices_unread="lspci: denied"))

    assert to_plain_text(render_page(none)).splitlines()[1:6] == [
        "NOTHING TO CHECK  no GPU, other accelerator or RDMA NIC on this host",
        "  0 checks ran",
        "",
        "Host",
        "  GPUs      none",
    ]
    text = to_plain_text(render_page(unread))
    assert "UNKNOWN  no GPU or RDMA NIC is listed, but there may be some: lspci: denied\n" in text.replace(
        "\n         ", " "
    )
    assert "  devices   GPUs and NICs are not known (lspci: denied)\n" in text
    assert "none" not in text


def test_colour_says_nothing_that_the_text_does_not() -> None:
    """Of a finding, a mark and the verdict: each has a word of its own."""
    text = to_plain_text(render_page(scan_machine("", "ib-port-down"), 80))

    assert "ERROR  1 error" in text
    assert "IB down Polling" in text
    assert "<- ib-port-down" in text


def test_a_fault_of_all_ports_is_marked_at_each() -> None:
    """It is one finding of the node; the tree shows where it is."""
    text = to_plain_text(render_page(scan_machine("", "ib-no-sm"), 100))

    assert 8 == text.count("<- ib-no-sm")


def test_a_card_is_counted_once() -> None:
    """ibstat names devices without their functions, lspci functions without their devices: both are one card."""
    replace = msgspec.structs.replace
    known = below_one_switch()
    functions = [replace(nic, rdma_device=None, label=nic.id) for nic in known.nics]
    devices = [replace(nic, pci=None, id=nic.label) for nic in known.nics]

    for nics in (functions + devices, functions, devices):
        assert "  NICs      2x ConnectX-7\n" in to_plain_text(render_page(report(replace(known, nics=nics))))


@pytest.mark.parametrize(("device", "words"), [("mlx5_0", "2x RDMA NIC"), (None, "2x NIC")])
def test_a_function_without_a_model_is_called_rdma_where_it_has_a_device(device: str | None, words: str) -> None:
    """Others could have one."""
    known = below_one_switch()
    nics = [msgspec.structs.replace(nic, model=None, rdma_device=device) for nic in known.nics]

    assert f"  NICs      {words}\n" in to_plain_text(render_page(report(msgspec.structs.replace(known, nics=nics))))


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"job_limit": "Slurm job 4711"}, "inside Slurm job 4711"),
        ({"job_limit": "a user namespace"}, "inside a user namespace"),
        ({"container": "apptainer"}, "in a container (apptainer)"),
        ({}, None),
    ],
)
def test_the_head_names_what_hides_devices(limits: dict[str, str], words: str | None) -> None:
    """A job's or a container's list of GPUs is not the node's."""
    known = report(below_one_switch())
    page = to_plain_text(
        render_page(msgspec.structs.replace(known, node=msgspec.structs.replace(known.node, os="Ubuntu", **limits)))
    )

    (line,) = (splitline for splitline in page.splitlines() if "Ubuntu" in splitline)
    assert line.endswith(f"Ubuntu, {words}" if words else "Ubuntu")


@pytest.mark.parametrize(("seconds", "words"), [(60.0, "60 s"), (3600.0, "60 min"), (86_400.0, "24 h")])
def test_the_head_says_over_what_time_counters_were_compared(seconds: float, words: str) -> None:
    """Where they were."""
    window = CountersWindow(since="2026-01-01T00:00:00Z", seconds=seconds)
    text = to_plain_text(render_page(msgspec.structs.replace(report(below_one_switch()), counters_window=window), 100))

    assert f"counters  compared over {words}, since 2026-01-01T00:00:00Z" in text
    assert "compared over" not in to_plain_text(
        render_page(msgspec.structs.replace(report(below_one_switch()), counters_window=CountersWindow()), 100)
    )
