"""Scenes made by hand: fleets of any size, with a node of every kind in them."""

from __future__ import annotations

import msgspec

from agent.fleet.page.scene import (
    CodedColumn,
    FleetScene,
    JudgedRules,
    Nodes,
    PageItem,
    Rails,
    RailState,
    ReportedFinding,
    Section,
    Skew,
)
from agent.fleet.questions.summary import RuleCoverage
from agent.model.finding import Evidence

EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&amp;"
    "\u202etxt.exe\x00\x1b[31m\u2028${7}]]>--><!--"
)
RULES = ["gpu-lost", "pcie-width-downgraded", "roce-mtu-below-4096", "acs-on-path"]
WIDTH = ReportedFinding(
    rule="pcie-width-downgraded",
    severity="error",
    label="GPU3",
    summary="The link of GPU3 runs at x8 of x16",
    impact="half of the bandwidth to host memory",
    remedy="Reseat the board.",
    evidence=[Evidence(what="width", value="x8", source="/sys/bus/pci/devices/0000:3b:00.0/current_link_width")],
)
LOST = ReportedFinding(
    rule="gpu-lost",
    severity="critical",
    label="GPU0",
    summary="GPU0 fell off the bus",
    impact="the node has seven GPUs",
    remedy="Power-cycle the node.",
    evidence=None,
)
MTU = ReportedFinding(
    rule="roce-mtu-below-4096",
    severity="warning",
    label="mlx5_0/1",
    summary="MTU 1500",
    impact="less throughput",
    remedy="Set the MTU to 4220.",
)
SETS = [[0], [1, 0], [2]]
VECTORS = ["pppu", "pfpp", "ffpp", "ppfp", "uuuu"]


def fleet(count: int, unit: int = 32) -> FleetScene:
    """A fleet of `count` nodes: of every 50 one is critical, error, warning, unknown, stale."""
    kinds = [at % 50 for at in range(count)]
    unknown, stale = [each == 3 for each in kinds], [each in (4, 5) for each in kinds]
    state = {0: "critical", 1: "error", 2: "warning", 3: "unknown", 5: "error"}
    by = {0: 1, 1: 0, 2: 2, 5: 0}
    vector = {0: 2, 1: 1, 2: 3, 3: 4, 5: 1}
    names = [f"gpu{at + 1:0{len(str(count))}d}" for at in range(count)]
    units = CodedColumn(
        key="unit", title="scalable unit", labels=[f"unit {at + 1:02d}" for at in range((count + unit - 1) // unit)],
        codes=[at // unit for at in range(count)],
    )  # fmt: skip
    rails = Rails(
        leaves=[f"leaf-{u + 1:02d}-{k}" for u in range(len(units.labels)) for k in range(8)],
        rates=["0 Gbit/s", "200 Gbit/s", "400 Gbit/s"],
        links=["31.5 GB/s", "63.0 GB/s"],
        sets=[[RailState(k, 0, u * 8 + k, 2, 1) for k in range(8)] for u in range(len(units.labels))]
        + [[RailState(k, 2 if k == 0 else 0, k, 1 if k == 0 else 2, 1) for k in range(8)]],
        codes=[len(units.labels) if kinds[at] == 2 and at < unit else at // unit for at in range(count)],
    )
    nodes = Nodes(
        names=names,
        verdicts=[state.get(each, "ok") for each in kinds],
        stale=stale,
        classes=CodedColumn(
            key="class", title="class", labels=["8 x NVIDIA H100, 8 x ConnectX-7", "8 x NVIDIA A100, 8 x ConnectX-6"],
            codes=[0 if at < count * 0.7 else 1 for at in range(count)],
        ),
        places=[units],
        metrics=[
            CodedColumn(
                key="pcie", title="slowest PCIe link", labels=["8 GB/s", "31.5 GB/s", "63 GB/s"], ordered=True,
                codes=[-1 if unknown[at] else 0 if kinds[at] in (1, 5) else 2 for at in range(count)],
                below=[at for at in range(count) if kinds[at] in (1, 5)],
            )
        ],
        facts=[
            CodedColumn(key="seen", title="last seen", labels=["2026-01-14T08:00:00Z", "2026-01-15T08:00:00Z"],
                  codes=[0 if each else 1 for each in stale]),
            CodedColumn(key="driver", title="driver", labels=["570.133.20", "570.86.15"],
                  codes=[1 if at % 200 == 7 else 0 for at in range(count)]),
        ],
        rails=rails,
        judged=JudgedRules(rules=RULES, vectors=VECTORS, codes=[vector.get(each, 0) for each in kinds]),
        found=[WIDTH, LOST, MTU],
        found_sets=SETS,
        found_codes=[by.get(each, -1) for each in kinds],
        lines=[["GPU0-GPU7: NVIDIA H100 80GB HBM3, NV18", "rails 0-7: ConnectX-7, 400 Gbit/s"]],
        line_codes=[0] * count,
        unjudged=[["gpu-lost: NVML denied"]],
        unjudged_codes=[0 if each else -1 for each in unknown],
    )  # fmt: skip
    wide = [at for at in range(count) if kinds[at] in (0, 1, 5)]
    old = [at for at in range(count) if at % 200 == 7]
    return FleetScene(
        title="Fleet",
        made="2026-01-15T09:00:00Z",
        version="0.0",
        newest="2026-01-15T08:00:00Z",
        stale_after_hours=24,
        nodes=nodes,
        sections=[
            Section(
                title="Findings", anchor="findings",
                said=[PageItem(words=f"A link runs below what both ends can, on {len(wide)} nodes",
                           about="pcie-width-downgraded", severity="error", nodes=wide,
                           more=[("fix", "Drain the node. Reseat the board.")])],
            ),
            Section(
                title="Odd ones", anchor="outliers",
                said=[PageItem(words="driver 570.86.15; most have 570.133.20", about="driver", nodes=old)]
                if old
                else [],
            ),
            Section(title="Duplicates", anchor="duplicates", empty="No identity is held twice."),
        ],
        skew=[
            Skew(hardware_class=nodes.classes.labels[0], what="driver", of=count,
                 values=[("570.133.20", [at for at in range(count) if at % 200 != 7]), ("570.86.15", old)])
        ] if old else [],
        coverage=[
            RuleCoverage(rule="gpu-lost", passed=count - sum(unknown), unknown=sum(unknown),
                     reasons=[("NVML denied", sum(unknown))]),
            RuleCoverage(rule="acs-on-path", passed=count),
        ],
        notes=["No fabric file was given: leaf switches are those that LLDP tells."],
    )  # fmt: skip


def hostile(count: int = 60) -> FleetScene:
    """The same, where each name and text that a host chooses is a trap."""
    made = fleet(count)

    def evil(value: object) -> object:
        if isinstance(value, CodedColumn):
            return msgspec.structs.replace(value, labels=[f"{EVIL}{each}" for each in value.labels])
        if isinstance(value, ReportedFinding):
            rows = [Evidence(what=EVIL, value=EVIL * 30, source=EVIL)]
            return msgspec.structs.replace(
                value, label=EVIL, summary=EVIL * 40, impact=EVIL, remedy=EVIL, evidence=rows
            )
        return value

    nodes = made.nodes
    nodes = msgspec.structs.replace(
        nodes,
        names=[f"{each}{EVIL}" + "x" * (2000 if at == 3 else 0) for at, each in enumerate(nodes.names)],
        classes=evil(nodes.classes), places=[evil(each) for each in nodes.places],
        metrics=[evil(each) for each in nodes.metrics], facts=[evil(each) for each in nodes.facts],
        found=[evil(each) for each in nodes.found], lines=[[EVIL]], unjudged=[[EVIL]],
        rails=msgspec.structs.replace(nodes.rails, leaves=[f"{EVIL}{each}" for each in nodes.rails.leaves],
                                      rates=[EVIL] * 3, links=[EVIL] * 2),
    )  # fmt: skip
    said = [PageItem(words=EVIL, about=EVIL, severity="error", nodes=[0, 1], more=[(EVIL, EVIL)])]
    return msgspec.structs.replace(
        made,
        title=EVIL,
        nodes=nodes,
        notes=[EVIL],
        sections=[Section(title=EVIL, anchor="findings", said=said, note=EVIL)],
        skew=[Skew(hardware_class=EVIL, what=EVIL, of=60, values=[(EVIL, [0]), (EVIL, [1])])],
        coverage=[RuleCoverage(rule="gpu-lost", unknown=2, reasons=[(EVIL, 2)])],
    )
