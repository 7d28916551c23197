"""Rails as GPUs use them: read size, ordering, number, visibility."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.applicability import behind
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import MINUTE, scale_count
from agent.rules.devices import find_function
from agent.rules.gpudirect.pairs import NEAR, Pair, pairs, platform_kind
from agent.rules.nccl.settings import effective_settings, why_files_unread, why_jobs_unread
from agent.rules.node_wide import aggregate_node_wide, on_all
from agent.rules.pages import read_limit
from agent.rules.pcie.registers import DeviceRegisters, nic_registers, register_evidence, why_unread
from agent.rules.rule import NODE, Fail, NamedSubject, Result, rule
from agent.rules.wording import join_labels

_LEAST = read_limit("gdr-mrrs-small.bytes")
_FAST_GBIT_S = 100.0
_STALLS = read_limit("roce-rt-host-bound.stalls_per_minute")
_STALL_COUNTERS = ("outbound_pci_stalled_wr_events", "outbound_pci_stalled_rd_events")


def _unjudged(context: RuleContext) -> Result | None:
    """The answer of a node without a GPU, or with no NIC that is known to be a rail."""
    if not context.topology.gpus and context.why_bus_unread is None:
        return NODE.not_applicable("no-such-device", detail="no GPU")
    return NODE.unknown(context.why_no_rail_known) if context.why_no_rail_known else None


@rule("gdr-mrrs-small", each=behind(_unjudged)(nic_registers), merge=on_all("small read requests on every rail"))
def gdr_mrrs_small(context: RuleContext, registers: DeviceRegisters) -> Result:
    nic = registers.nic
    if nic is None or nic.role != "rail":
        return registers.not_applicable("no-such-device", detail="no rail")
    if not (nic.driver or "").startswith("mlx5"):
        return registers.not_applicable("other-kind", detail="not an mlx5 NIC: what suits it is not known")
    rates = [port.rate_gbit_s or 0.0 for port in nic.ports if port.state == "ACTIVE"]
    if max(rates, default=0.0) < _FAST_GBIT_S:
        return registers.not_applicable("not-in-use", detail=f"no active port of {_FAST_GBIT_S:g} Gb/s")
    size, least = registers.function.max_read_request_bytes, int(context.threshold(_LEAST))
    if size is None:
        return registers.unknown(why_unread(registers.function, "the read request size"))
    if size >= least:
        return registers.passes()
    stalls = tuple(_stall_evidence(context, nic))
    return registers.fail(
        summary=f"it reads memory in pieces of {size} bytes; {least} are usual for {max(rates):g} Gb/s",
        impact=f"{-(-least // size)} times as many read requests for what it sends: a limit from 200 Gb/s on.",
        evidence=(register_evidence(registers.function, "MRRS", f"{size} bytes", "DevCtl: MaxReadReq"), *stalls),
        severity="warning" if stalls else None,
        cause="stalls" if stalls else "",
    )


def _stall_evidence(context: RuleContext, nic: Nic) -> Iterator[Evidence]:
    """Counters of the window that show that the NIC waits for PCIe more often than the limit of roce-rt-host-bound."""
    for netdev in context.topology.netdevs:
        now = netdev_counters(netdev) if netdev.pci == nic.pci else {}
        for name in _STALL_COUNTERS:
            move = context.counter_delta(f"netdev:{netdev.id}", name, now) or 0
            if move and scale_count(context, move, MINUTE) >= context.threshold(_STALLS):
                yield Evidence(f"{name} of {netdev.label}, moved by", str(move), f"ethtool -S {netdev.label}")


_KEY = "NCCL_IB_PCI_RELAXED_ORDERING"
# Root ports for which the kernel itself switches it off below (drivers/pci/quirks.c, quirk_relaxedordering_disable):
# Haswell and Broadwell Xeons 2f01-2f0e and 6f01-6f0e, AMD Seattle
_QUIRKS = frozenset(
    {("0x8086", f"0x{family}0{n:x}") for family in ("2f", "6f") for n in range(1, 0xF)}
    | {("0x1022", f"0x1a0{n}") for n in range(3)}
)


@rule("gdr-relaxed-ordering-off", gate=_unjudged)
def gdr_relaxed_ordering_off(context: RuleContext) -> Iterator[Result]:
    amd = "amd" in (context.node.cpu.vendor or "").lower()
    answers = (
        _judge_relaxed_ordering(context, register, amd) if isinstance(register, DeviceRegisters) else register
        for register in nic_registers(context)
    )
    yield from aggregate_node_wide(answers, "relaxed ordering is off on every rail")
    settings = [
        setting
        for setting in context.software.nccl.settings
        if setting.key.strip() == _KEY and setting.value.strip() == "0"
    ]
    if context.rails and settings and not context.virtual_machine:
        yield NODE.fail(
            summary=f"{_KEY}=0: NCCL does not let writes of rails overtake each other",
            impact="Writes into GPU memory wait for each other and may not reach line rate, most of all on AMD EPYC.",
            remedy=f"Take {_KEY} out of {settings[0].source}.",
            evidence=tuple(Evidence(_KEY, setting.value, setting.source) for setting in settings),
            severity="warning" if amd else None,
            confidence="medium",
            cause="nccl",
            situation="nccl",
        )


def _judge_relaxed_ordering(context: RuleContext, registers: DeviceRegisters, amd: bool) -> Result:
    if registers.nic is None or registers.nic.role != "rail":
        return registers.not_applicable("no-such-device", detail="no rail")
    above = context.ancestors(registers.function)
    if any((port.vendor, port.device) in _QUIRKS for port in above[-1:]):
        return registers.not_applicable("not-measured", detail="its root port cannot do it: the kernel switches it off")
    on = registers.function.relaxed_ordering
    if on is None:
        return registers.unknown(why_unread(registers.function, "relaxed ordering"))
    if on:
        return registers.passes()
    return registers.fail(
        summary="its writes may not overtake each other: PCIe relaxed ordering is off",
        impact="Writes into GPU memory wait for each other and may not reach line rate, most of all on AMD EPYC.",
        remedy="switch relaxed ordering on in the BIOS, or set PCI_WR_ORDERING=1 in the card.",
        evidence=(register_evidence(registers.function, "relaxed ordering", "off", "DevCtl: RlxdOrd"),),
        severity="warning" if amd else None,
        confidence="medium",
    )


@rule("gdr-nic-gpu-ratio")
def gdr_nic_gpu_ratio(context: RuleContext) -> Result:
    if platform_kind(context) not in ("x86", "inline"):
        return NODE.not_applicable("guest", detail="rails are not near GPUs by design, or the tree is a hypervisor's")
    near = [pair for pair in pairs(context) if pair.near]
    states = {pair.nic.id: {port.state for port in pair.nic.ports} for pair in near}
    if not near:
        return NODE.not_applicable("no-such-device", detail="no GPU has a rail behind its switch")
    unread = [nic for nic, port_states in states.items() if not port_states or None in port_states]
    if unread:
        return NODE.unknown("not-shown", detail=f"whether the ports of {join_labels(unread)} are active is not known")
    shares = _share_rails(near, {nic for nic, port_states in states.items() if "ACTIVE" in port_states})
    if not _is_uneven(shares):
        return NODE.passes()
    if not _is_uneven(_share_rails(near, states)):
        return NODE.not_applicable("judged-elsewhere", detail="even with all rails up: see the ports that are down")
    return _fail_nic_gpu_ratio(shares, {pair.gpu.id: pair.gpu.label for pair in near})


def _share_rails(near: Sequence[Pair], rails: Iterable[str]) -> dict[str, float]:
    """How many of these rails each GPU has, with equal parts of those that it shares."""
    shares: dict[str, float] = {}
    for rail in rails:
        users = [pair.gpu.id for pair in near if pair.nic.id == rail]
        for gpu in users:
            shares[gpu] = shares.get(gpu, 0.0) + 1 / len(users)
    return shares


def _is_uneven(shares: Mapping[str, float]) -> bool:
    least, most = min(shares.values(), default=0.0), max(shares.values(), default=0.0)
    return most >= 1.0 and least < most


def _fail_nic_gpu_ratio(shares: Mapping[str, float], labels: Mapping[str, str]) -> Fail:
    least, most = min(shares.values()), max(shares.values())
    poor = sorted(labels[gpu] for gpu, share in shares.items() if share < most)
    return NODE.fail(
        summary=f"{join_labels(poor)} share their rails; other GPUs have {most:g} each",
        impact=f"{100 * (1 - least / most):.0f}% less bandwidth between nodes for these GPUs.",
        evidence=tuple(
            Evidence(f"rails of {labels[gpu]}", f"{share:g}", "nvidia-smi topo -m")
            for gpu, share in sorted(shares.items())
        ),
        ids=frozenset(shares),
    )


@rule("gdr-topology-hidden")
def gdr_topology_hidden(context: RuleContext) -> Result:
    all_pairs = list(pairs(context))
    gpus, rails = {pair.gpu.id for pair in all_pairs}, {pair.nic.id for pair in all_pairs}
    if not context.virtual_machine or len(gpus) < 2 or len(rails) < 2:
        return NODE.not_applicable("guest", detail="not a virtual machine, or only one choice")
    nodes = {
        f.numa_node
        for pair in all_pairs
        for f in (find_function(context, pair.gpu), find_function(context, pair.nic))
        if f
    }
    is_distinguished = len(all_pairs) < len(gpus) * len(rails) or any(p.path.pcie_kind in NEAR for p in all_pairs)
    if is_distinguished or len(nodes - {None}) > 1:
        return NODE.passes()
    files = effective_settings(context, "NCCL_TOPO_FILE")
    served = any(
        service.name == "nvidia-topologyd" and service.state == "active" for service in context.software.services
    )
    unread = why_files_unread(context) or why_jobs_unread(context)
    if files or served:
        return NODE.passes()
    if unread:
        return NODE.unknown(unread.prefixed("whether NCCL_TOPO_FILE is set is not known: "))
    return NODE.fail(
        summary=f"{len(gpus)} GPUs and {len(rails)} rails look equally far, and no topology file is set",
        impact=f"NCCL pairs them by chance: {len(rails) - 1} of {len(rails)} choices are not the near rail.",
        evidence=(
            Evidence("way of every pair", all_pairs[0].path.pcie_kind or "not known", "nvidia-smi topo -m"),
            Evidence("NCCL_TOPO_FILE", "not set", ", ".join(context.software.nccl.searched[:4])),
        ),
    )


@rule("gdr-netns-exclusive")
def gdr_netns_exclusive(context: RuleContext) -> Result:
    mode = context.software.rdma_namespaces
    if not context.topology.gpus and context.why_bus_unread is None:
        return NODE.not_applicable("no-such-device", detail="no GPU")
    if not any(nic.rdma_device for nic in context.topology.nics):
        return NODE.not_applicable("no-such-device", detail="no RDMA device")
    if mode is None:
        return NODE.unknown("not-read", fact="the mode of RDMA namespaces")
    if mode == "shared":
        return NODE.passes()
    return NODE.fail(
        summary="RDMA devices are exclusive to one network namespace each",
        impact="A container without RDMA devices of its own finds none, and uses TCP.",
        evidence=(Evidence("RDMA namespaces", mode, "rdma system show"),),
    )


@rule("gdr-soft-rdma")
def gdr_soft_rdma(context: RuleContext) -> Iterator[Result]:
    soft = [nic for nic in context.topology.nics if nic.software and any(p.state == "ACTIVE" for p in nic.ports)]
    if not soft or not context.rails:
        yield NODE.not_applicable("not-in-use", detail="no active software device beside rails")
        return
    chosen = effective_settings(context, "NCCL_IB_HCA")
    unread = why_files_unread(context) or why_jobs_unread(context)
    for nic in soft:
        about = NamedSubject(f"port:{nic.id}/1", nic.label, frozenset({nic.id}))
        if chosen:
            yield about.passes()
        elif unread:
            yield about.unknown(unread.prefixed("whether NCCL_IB_HCA is set is not known: "))
        else:
            yield about.fail(
                summary=f"{nic.label} is a software device, active beside {len(context.rails)} rails, "
                "and NCCL_IB_HCA is not set",
                impact=f"NCCL may build a ring over it: some 10 Gb/s, and all {len(context.rails)} rails wait.",
                evidence=(
                    Evidence("RDMA device", f"{nic.label}, software, ACTIVE", "rdma link"),
                    Evidence("NCCL_IB_HCA", "not set", ", ".join(context.software.nccl.searched[:4])),
                ),
            )
