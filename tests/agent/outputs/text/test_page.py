"""The whole page of a small machine, and what holds on every machine: nothing is wider than the page."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.finding import Check, Summary
from agent.model.report import CountersWindow
from agent.outputs.text.lines import line_length, to_plain_text
from agent.outputs.text.page import render_page
from tests.agent.outputs.text.reports import GPUS, below_one_switch, finding, probe, report, unknown
from tests.agent.rules import rows
from tests.machines import FAULTS, HOSTS, scan_machine

EXPECTED = """\
node-1
  GPUs      2x H100 80GB HBM3
  NICs      2x ConnectX-7
  CPUs      1x CPU
  source    this host, fabricscope 1.2.3

ERROR  1 error  ·  1 of 2 rules judged, 1 unknown
  ! GPU0: Half the lanes

Topology
NUMA 0  cpus 0-15  64 GiB
└─ switch 16:00.0     Gen5 x16        PEX890xx
   ├─ GPU0 18:00.0    Gen5 x8 of x16  NVLink 18/18  <- pcie-width-downgraded  H…
   ├─ GPU1 19:00.0    Gen5 x16        NVLink 18/18  H100 80GB HBM3
   ├─ mlx5_0 1a:00.0  Gen5 x16        RoCE 400G up GID 3  rail  ConnectX-7
   └─ mlx5_1 1b:00.0  Gen5 x16        RoCE 400G up GID 3  rail  ConnectX-7

GPU to GPU
  NV18 between both GPUs; over PCIe it would be PIX

GPU to NIC
  PIX between every GPU and every rail

Findings
ERROR  GPU0 (18:00.0)  pcie-width-downgraded
  Half the lanes
    - width: x8  [/sys/a]
    - could be: x16  [/sys/b]
  impact   Half the bandwidth.
  remedy   Reseat it.
  explains pcie-path-bottleneck of GPU0+mlx5_0

Not judged
  ? numa-unknown: GPU0,1
      not said
  - probe pci: config space past byte 64 needs CAP_SYS_ADMIN

  To judge more: scan as root.
"""


def test_the_page_of_a_small_machine() -> None:
    """Head, verdict, tree, matrices, findings, what is not judged and what would help."""
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


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("machine", [*HOSTS, *FAULTS])
def test_no_line_is_wider_than_the_page(machine: str, width: int) -> None:
    """But for a single word (a path) that cannot be folded."""
    output = scan_machine(machine) if machine in HOSTS else scan_machine("", machine)
    wide = [line for line in render_page(output, width) if line_length(line) > width]

    assert [] == [to_plain_text([line]) for line in wide if len(to_plain_text([line]).split()) > 1]


def test_colour_says_nothing_that_the_text_does_not() -> None:
    """Of a finding, a mark and the verdict: each has a word of its own."""
    text = to_plain_text(render_page(scan_machine("", "ib-port-down"), 80))

    assert "ERROR  1 error" in text
    assert "IB down Polling" in text
    assert "<- ib-port-down" in text


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


@pytest.mark.parametrize(("seconds", "words"), [(60.0, "60 s"), (3600.0, "60 min"), (86_400.0, "24 h")])
def test_the_head_says_over_what_time_counters_were_compared(seconds: float, words: str) -> None:
    """Where they were."""
    window = CountersWindow(since="2026-01-01T00:00:00Z", seconds=seconds)
    text = to_plain_text(render_page(msgspec.structs.replace(report(below_one_switch()), counters_window=window), 100))

    assert f"counters  compared over {words}, since 2026-01-01T00:00:00Z" in text
    assert "compared over" not in to_plain_text(
        render_page(msgspec.structs.replace(report(below_one_switch()), counters_window=CountersWindow()), 100)
    )
