"""Predictions for a job on nodes of a dataset: the least over its nodes, with the node and device that set it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query, table_query
from agent.fleet.hostlist import fold
from agent.model.finding import Gpudirect, Summary, list_devices
from agent.model.gpu import Gpu, GpuLink, Remote
from agent.model.labels import group_by_key
from agent.model.nic import Nic, Port
from agent.model.node import Cpu, Nccl, NcclLibrary, Node, Software
from agent.model.pci import Link, LinkQuality, PciFunction
from agent.model.prediction import Recommendation, Repair
from agent.model.report import Generator, Report, Source
from agent.model.topology import Path, Topology
from agent.platforms.devices import find_device
from agent.recommend.answer import Question, answer_nodes
from agent.recommend.machine import NodeFacts, read_node
from agent.rules.gpudirect.verdicts import BLOCKING

_HOST = table_query("host", ("node", "arch", "cpu", "sockets", "nccl"))
_COSTS = query("job", "costs")
_LEAVES = (query("job", "leaves_by_port"), query("job", "leaves_by_interface"))
_ASKED = {
    "gpu": table_query("gpu", ("node", "id", "label", "index", "name", "vendor", "pci", "driver_state", "nvlinks")),
    "nic": table_query("nic", ("node", "id", "label", "role", "driver", "rdma_device", "virtual_function")),
    "port": table_query("port", ("node", "nic", "port", "link_layer", "state", "rate_gbit_s")),
    "pci": table_query("pci", ("node", "id", "parent", "vendor", "device")),
    **{name: query("job", name) for name in ("links", "nvlinks", "paths", "faults")},
}

Rows = dict[str, list[tuple[Any, ...]]]


def predict_job(tables: Tables, question: Question) -> Recommendation:
    """One job on all nodes of these tables."""
    repairs = list(_read_repairs(tables))
    answer = answer_nodes(read_nodes(tables), question, repairs)
    return msgspec.structs.replace(answer, node_order=_order_nodes(tables))


def _order_nodes(tables: Tables) -> list[str]:
    """Hosts leaf by leaf, by the switch of each one's first rail; those without a known one are left out."""
    hosts = group_by_key((leaf, node) for leaf_query in _LEAVES for node, leaf in tables.rows(leaf_query))
    return [f"{leaf}: {fold(set(nodes))}" for leaf, nodes in sorted(hosts.items())]


def read_nodes(tables: Tables) -> list[NodeFacts]:
    """What predictions need of each node, by its name. Nodes whose rows are the same are read once."""
    queries = {name: tables.submit(query) for name, query in _ASKED.items()}
    rows: defaultdict[str, Rows] = defaultdict(lambda: defaultdict(list))
    for name, pending in queries.items():
        for node, *values in pending():
            rows[node][name].append(tuple(values))
    known: dict[Any, NodeFacts] = {}
    nodes = []
    for node, *host in sorted(tables.rows(_HOST)):
        parts = {name: sorted(values, key=str) for name, values in rows[node].items()}
        key = (tuple(host), tuple((name, tuple(parts.get(name, ()))) for name in queries))
        if key not in known:
            known[key] = read_node(_make_report(node, host, parts))
        nodes.append(known[key]._replace(host=node))
    return nodes


def _make_report(node: str, host: list[Any], rows: Rows) -> Report:
    """The part of a report that predictions need."""
    arch, cpu, sockets, nccl = host
    vendor = "AuthenticAMD" if (cpu or "").startswith("AMD") else None
    libraries = [NcclLibrary(path="", version=version) for version in (nccl or "").split()]
    functions = {row[0]: row for row in rows.get("pci", ())}
    faulty = {part for _, subject, _ in rows.get("faults", ()) for part in list_devices(subject)}
    gpus = list(_make_gpus(rows, functions))
    return Report(
        generated_at="",
        generator=Generator(name="fabricscope", version=""),
        source=Source(kind="dataset"),
        node=Node(hostname=node, arch=arch, cpu=Cpu(vendor=vendor, name=cpu, sockets=sockets)),
        software=Software(nccl=Nccl(libraries=libraries)),
        topology=Topology(
            pci=list(_make_functions(rows, functions, faulty)),
            gpus=gpus,
            nics=list(_make_nics(rows)),
            paths=list(_make_paths(rows, functions)),
        ),
        gpudirect=list(_make_verdicts(rows, [gpu.id for gpu in gpus])),
        summary=Summary(verdict="unknown", counts={}),
    )


def _make_gpus(rows: Rows, functions: dict[str, tuple[Any, ...]]) -> Iterator[Gpu]:
    links: defaultdict[str, list[GpuLink]] = defaultdict(list)
    for gpu, protocol, state, signal, remote, count in rows.get("nvlinks", ()):
        far = Remote(kind=remote) if remote else None
        link = GpuLink(protocol=protocol, link=0, state=state or "unknown", signal_gbyte_s=signal, remote=far)
        links[gpu] += [link] * count
    for name, label, index, model, vendor, pci, driver_state, known in rows.get("gpu", ()):
        _, _, pci_vendor, device = functions.get(pci or name, (None, None, None, None))
        product = find_device(pci_vendor, device) if pci_vendor and device else None
        yield Gpu(
            id=name, label=label or name, index=index, name=model, vendor=vendor, pci=pci, driver_state=driver_state,
            architecture=product.architecture if product else None, links=links[name], links_known=known is not None,
        )  # fmt: skip


def _make_nics(rows: Rows) -> Iterator[Nic]:
    ports = group_by_key(
        (nic, Port(port=port, link_layer=layer, state=state, rate_gbit_s=rate))
        for nic, port, layer, state, rate in rows.get("port", ())
    )
    for name, label, role, driver, rdma_device, virtual in rows.get("nic", ()):
        yield Nic(
            id=name, label=label or name, pci=name, rdma_device=rdma_device, driver=driver, role=role or "unknown",
            virtual_function=bool(virtual), ports=ports.get(name, []),
        )  # fmt: skip


def _make_functions(rows: Rows, functions: dict[str, tuple[Any, ...]], faulty: set[str]) -> Iterator[PciFunction]:
    """With their links. A link below its maximum that no rule found fault with is limited by the port above it."""
    for name, parent, speed, width, max_speed, max_width, quality in rows.get("links", ()):
        if name not in faulty and quality == "conclusive":
            max_speed, max_width = speed, width
        link = Link(
            speed_gt_s=speed, width=width, max_speed_gt_s=max_speed, max_width=max_width,
            quality=LinkQuality(state=quality or "unreadable"),
        )  # fmt: skip
        yield PciFunction(id=name, parent=parent, link=link)
    linked = {row[0] for row in rows.get("links", ())}
    yield from (PciFunction(id=name, parent=row[1]) for name, row in functions.items() if name not in linked)


def _make_paths(rows: Rows, functions: dict[str, tuple[Any, ...]]) -> Iterator[Path]:
    for a, b, kind, bandwidth, limiting in rows.get("paths", ()):
        above_a, above_b = _list_above(a, functions), _list_above(b, functions)
        common = set(above_a) & set(above_b)
        hops = [name for name in (*above_a, *above_b) if name not in common]
        yield Path(a=a, b=b, kind=kind, hops=hops, bandwidth_gbyte_s=bandwidth, limiting=limiting)


def _list_above(name: str, functions: dict[str, tuple[Any, ...]]) -> list[str]:
    above: list[str] = []
    while name in functions and functions[name][1] and len(above) < len(functions):
        name = functions[name][1]
        above.append(name)
    return above


def _make_verdicts(rows: Rows, gpus: list[str]) -> Iterator[Gpudirect]:
    """GPUDirect that a rule found blocked: for a pair, for one device, or for the whole node."""
    rails = [row[0] for row in rows.get("nic", ()) if row[2] == "rail"]
    for rule, subject in {
        (rule, subject) for rule, subject, text in rows.get("faults", ()) if _is_blocking(rule, text)
    }:
        ids = set(list_devices(subject))
        for gpu in gpus:
            for rail in rails:
                if subject == "node" or ids <= {gpu, rail}:
                    yield Gpudirect(gpu=gpu, nic=rail, verdict="blocked", causes=[f"{rule} {subject}"])


def _is_blocking(rule: str, summary: str | None) -> bool:
    """Whether GPUDirect does not work with such a finding; of settings the summary begins with the name."""
    setting = (summary or "").partition("=")[0]
    return rule in BLOCKING or f"{rule} {setting}" in BLOCKING


def _read_repairs(tables: Tables) -> Iterator[Repair]:
    for node, rule, label, collective, nodes, lost, percent in tables.rows(_COSTS):
        yield Repair(
            rule=rule, device=label or "node", host=node, collective=collective or "all_reduce", nodes=nodes,
            gain_gbyte_s=lost, percent=percent, known_by="model",
        )  # fmt: skip
