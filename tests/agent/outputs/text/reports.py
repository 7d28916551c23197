"""Small reports written by hand, for the page."""

from __future__ import annotations

from typing import Any

from agent.model.finding import Check, Evidence, Finding, Summary, UnknownSubject
from agent.model.node import Cpu, Node, NumaNode
from agent.model.pci import PciFunction
from agent.model.report import Generator, ProbeRun, Report, Source
from agent.model.topology import Path, Topology
from tests.agent.rules import rows

PORT, SWITCH, DOWN = "0000:15:01.0", "0000:16:00.0", ("0000:17:00.0", "0000:17:01.0", "0000:17:02.0", "0000:17:03.0")
GPUS, NICS = ("0000:18:00.0", "0000:19:00.0"), ("0000:1a:00.0", "0000:1b:00.0")


def report(topology: Topology, **more: Any) -> Report:
    """A report that is fine, unless told otherwise."""
    values: dict[str, Any] = {
        "generated_at": "2026-01-15T08:00:00Z",
        "generator": Generator(name="fabricscope", version="1.2.3"),
        "source": Source(kind="live"),
        "node": Node(hostname="node-1", cpu=Cpu(sockets=1), numa_nodes=[NumaNode(id=0, cpus="0-15", memory_mib=65536)]),
        "topology": topology,
        "summary": Summary(verdict="ok", counts={}),
    }
    return Report(**values | more)


def below_one_switch(**more: Any) -> Topology:
    """Two GPUs and two RoCE rails below one switch."""
    ports = [at(rows.bridge(PORT, None, "root_port"), root_bus="0000:15")]
    ports.append(at(rows.bridge(SWITCH, PORT, "upstream"), name="PEX890xx"))
    ports += [rows.bridge(place, SWITCH, "downstream") for place in DOWN]
    gpus = [rows.gpu_function(place, port) for place, port in zip(GPUS, DOWN[:2], strict=True)]
    nics = [rows.nic_function(place, port) for place, port in zip(NICS, DOWN[2:], strict=True)]
    values: dict[str, Any] = {
        "pci": [*ports, *gpus, *nics],
        "gpus": [rows.gpu(place, number) for number, place in enumerate(GPUS)],
        "nics": [rows.nic(place, number, ethernet=True) for number, place in enumerate(NICS)],
        "netdevs": [rows.netdev(place, number) for number, place in enumerate(NICS)],
        "paths": [make_path(GPUS[0], GPUS[1], "NV18"), *(make_path(gpu, nic, "PIX") for gpu in GPUS for nic in NICS)],
    }
    return Topology(**values | more)


def at(function: PciFunction, **more: Any) -> PciFunction:
    """The same function with other words."""
    import msgspec

    return msgspec.structs.replace(function, **more)


def make_path(a: str, b: str, kind: str, **more: Any) -> Path:
    """A pair's path."""
    return Path(a=a, b=b, kind=kind, pcie_kind="PIX", **more)


def finding(subject: str, label: str, severity: str = "error") -> Finding:
    """One finding with two observations."""
    seen = [
        Evidence(what="width", value="x8", source="/sys/a"),
        Evidence(what="could be", value="x16", source="/sys/b"),
    ]
    return Finding(
        rule="pcie-width-downgraded", severity=severity, subject=subject, label=label, summary="Half the lanes",
        evidence=seen, impact="Half the bandwidth.", remedy="Reseat it.", fingerprint="0" * 16,
        absorbs=[f"pcie-path-bottleneck pair:{GPUS[0]}+{NICS[0]}"],
    )  # fmt: skip


def unknown(rule: str, reason: str, *subjects: str, code: str | None = None) -> Check:
    """A rule that could not judge these subjects."""
    output = [UnknownSubject(subject=subject, reason=reason, reason_code=code) for subject in subjects]
    return Check(rule=rule, state="unknown", unknown=len(output), unknown_subjects=output)


def probe(name: str, status: str, reason: str | None = None) -> ProbeRun:
    """How a probe ended."""
    return ProbeRun(name=name, status=status, reason=reason)
