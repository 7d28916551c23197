"""PCIe bandwidth between GPUs, NICs and the CPU against what it has to carry."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction, bandwidth_gbyte_s
from agent.model.reasons import Reason
from agent.model.topology import NEAREST_FIRST, Path
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    about_gpu,
    is_on_c2c,
    kernel_log_evidence,
    one_level_lower,
    pci_source,
    reaches_gpus_by_itself,
    severity_by_role,
)
from agent.rules.node_wide import merge_if_on_all
from agent.rules.pcie.cards import USABLE_SHARE, RequiredRate, card_functions, card_kind, is_sufficient, required_rate
from agent.rules.pcie.links import LANES, PcieLink, faces_up, kernel_evidence, pcie_links
from agent.rules.rule import NODE, Fail, NotApplicable, Result, Unknown, rule
from agent.rules.wording import format_share_lost, join_labels

_PATH_BOTTLENECK_NOISE = 0.98  # two ways to round the same bandwidth differ by less


@rule("pcie-path-bottleneck")
def pcie_path_bottleneck(context: RuleContext) -> Iterator[Result]:
    if not context.rails:
        undecided = None if context.virtual_machine else context.why_no_rail_known
        yield (NODE.unknown(undecided) if undecided else NODE.not_applicable("no-such-device", detail="no rail"))
        return
    slow: dict[str, list[tuple[Path, float]]] = {}
    for gpu in context.topology.gpus:
        yield _judge_paths(context, gpu, slow)
    for hop in sorted(slow):
        yield _fail_path_bottleneck(
            context,
            context.functions[hop],
            sorted(slow[hop], key=lambda path_and_rate: (path_and_rate[0].a, path_and_rate[0].b)),
        )


def _judge_paths(context: RuleContext, gpu: Gpu, slow: dict[str, list[tuple[Path, float]]]) -> Result:
    """The answer for one GPU; hops that limit it are added to `slow`, with what they should carry."""
    about = about_gpu(gpu)
    if context.virtual_machine:
        return about.not_applicable("guest", detail="virtual machine: the hypervisor hides real links")
    if is_on_c2c(context, gpu):
        return about.not_applicable("other-kind", detail="a superchip: its GPU reaches NICs by C2C")
    nearest = _nearest_paths(context, gpu)
    if not nearest:
        return about.unknown("undecided", detail="no PCIe path to a rail is known")
    unread: list[Reason] = []
    for path in nearest:
        full = _slower_end(context, path)
        if full is None:
            unread.append(Reason("not-shown", detail="the links of its ends are not known"))
            continue
        for hop in path.hops:
            bridge = context.functions.get(hop)
            if bridge is None or not faces_up(context, bridge):
                continue  # the wire below a root or downstream port is that of the next hop
            pcie_link = _link_above(context, bridge)
            silent = pcie_link.why_not_judged
            if isinstance(silent, Unknown):
                unread.append(silent.reason.prefixed(f"{hop}: "))
            carried = bridge.link.bandwidth_gbyte_s if bridge.link and not silent else None
            if (
                carried is not None
                and carried < full * _PATH_BOTTLENECK_NOISE
                and not _is_by_design(context, pcie_link)
            ):
                slow.setdefault(hop, []).append((path, full))
    limited = any(path in nearest for paths in slow.values() for path, _ in paths)
    if unread and not limited:
        return about.unknown(unread[0])
    if limited:
        return about.not_applicable("judged-elsewhere", detail="limited by a hop that has a finding")
    return about.passes()


def _nearest_paths(context: RuleContext, gpu: Gpu) -> list[Path]:
    rails = {nic.id for nic in context.rails}
    ways = [p for p in context.paths_of.get(gpu.id, ()) if p.pcie_kind in NEAREST_FIRST and rails & {p.a, p.b}]
    best = min((NEAREST_FIRST.index(p.pcie_kind) for p in ways), default=None)
    nearest = [p for p in ways if NEAREST_FIRST.index(p.pcie_kind) == best]
    return sorted(nearest, key=lambda p: (p.a, p.b))


def _slower_end(context: RuleContext, path: Path) -> float | None:
    """What the slower of the two devices' own links can reach, GB/s."""
    reach = []
    for end in (path.a, path.b):
        device = context.gpus.get(end) or context.nics.get(end)
        function = context.functions.get((device.pci if device else None) or "")
        pcie_link = _link_above(context, function) if function else None
        reach.append(bandwidth_gbyte_s(pcie_link.expected_speed, pcie_link.expected_width) if pcie_link else None)
    known = [r for r in reach if r is not None]
    return min(known) if len(known) == len(reach) else None


def _link_above(context: RuleContext, function: PciFunction) -> PcieLink:
    parent = context.functions.get(function.parent or "")
    return PcieLink(context, function, parent, "warning", (), function.id, frozenset({function.id}))


def _is_by_design(context: RuleContext, pcie_link: PcieLink) -> bool:
    """A hop at all it can, which several devices share: an uplink that was built so."""
    link = pcie_link.child.link
    width, speed = pcie_link.expected_width, pcie_link.expected_speed
    at_most = link is not None and link.width == width and link.speed_gt_s == speed
    below = [gpu.pci for gpu in context.topology.gpus] + [nic.pci for nic in context.rails]
    users = [function for pci in below if (function := context.functions.get(pci or ""))]
    sharing = sum(pcie_link.child in context.ancestors(function) for function in users)
    return at_most and sharing > 1


def _fail_path_bottleneck(context: RuleContext, hop: PciFunction, paths: list[tuple[Path, float]]) -> Fail:
    now = (hop.link.bandwidth_gbyte_s if hop.link else None) or 0.0
    full = max(full for _, full in paths)
    pairs = sorted({f"{_end_label(context, path.a)} and {_end_label(context, path.b)}" for path, _ in paths})
    return about_function(context, hop.id).fail(
        summary=f"the link of {hop.id} carries {now:.1f} GB/s, and is the slowest between {join_labels(pairs)}, "
        f"whose own links can do {full:.1f}",
        impact=f"{format_share_lost(now, full)} of what GPUDirect could move "
        f"between {join_labels(pairs)}, in each direction.",
        evidence=(
            Evidence(
                f"link of {hop.id}",
                f"x{hop.link.width} at {hop.link.speed_gt_s:g} GT/s"
                if hop.link and hop.link.width and hop.link.speed_gt_s
                else f"{now:.1f} GB/s",
                pci_source(context, hop.id, "current_link_speed"),
            ),
            *(
                Evidence(
                    f"way of {_end_label(context, path.a)} to {_end_label(context, path.b)}",
                    f"{path.pcie_kind}: {' '.join(path.hops)}",
                    "lspci -tv",
                )
                for path, _ in paths[:2]
            ),
            *kernel_log_evidence(context, hop.id),
            *kernel_evidence(context, hop.id),
        ),
        severity="error" if now < full / 2 * _PATH_BOTTLENECK_NOISE else "warning",
    )


def _end_label(context: RuleContext, end: str) -> str:
    device = context.gpus.get(end) or context.nics.get(end)
    return device.label if device else end


_OWN_WAY = "None for GPU traffic, which takes another path; traffic with host memory is limited by the uplink."


class _Hop(msgspec.Struct, frozen=True):
    """A link on the way of a NIC to its CPU, and what it carries, GB/s in one direction."""

    pcie_link: PcieLink
    gbyte_s: float


@rule("pcie-nic-starved")
def pcie_nic_starved(context: RuleContext) -> Iterator[Result]:
    links = {pcie_link.child.id: pcie_link for pcie_link in pcie_links(context)}
    seen: set[str] = set()
    own_ways: list[Fail] = []
    for pci, nic in sorted(context.nic_by_pci.items()):
        function = context.functions.get(pci)
        if function is None:
            continue
        card = card_functions(context, function)
        lead = next((f for f in card if f.id in links), None)
        if lead is None or lead.id in seen:
            continue
        seen.add(lead.id)
        answer = _judge_nic_starved(context, nic, links[lead.id], links)
        if isinstance(answer, Fail) and answer.cause == "own-way":
            own_ways.append(answer)
        else:
            yield answer
    yield from merge_if_on_all(
        own_ways, len(own_ways), "the PCIe uplink is slower than the port, by design of the board"
    )


def _judge_nic_starved(context: RuleContext, nic: Nic, own: PcieLink, links: dict[str, PcieLink]) -> Result:
    silent = own.why_not_judged
    if isinstance(silent, NotApplicable) and silent.reason.code != "inside-card":
        return silent
    need = required_rate(context, own.child)
    if need is None:
        return own.not_applicable("not-in-use", detail="no port of it is active")
    if isinstance(silent, Unknown):
        return silent
    if silent is None and _current_bandwidth(own) is None:
        return own.unknown("not-known", fact="what its link carries")
    hops = list(_readable_hops(context, own, links))
    if not hops:
        return own.unknown("not-shown", detail="no link on its path to the CPU could be read")
    slowest = min(hops, key=lambda hop: hop.gbyte_s)
    usable = slowest.gbyte_s * context.threshold(USABLE_SHARE)
    usable += sum(_second_links(context, nic, links)) * context.threshold(USABLE_SHARE)
    if usable >= need.together / 8:
        return own.passes()
    rate = need.missed(usable)
    if reaches_gpus_by_itself(context, nic):
        fault = _fail_nic_starved(context, nic, own, slowest, need, usable, "info")
        return replace(fault, cause="own-way", impact=_OWN_WAY, ids=frozenset())
    if not _could_do_more(context, own, links, rate):
        # so by design: not a cause of anything else
        return replace(_fail_nic_starved(context, nic, own, slowest, need, usable, "info"), ids=frozenset())
    severity = "error" if rate == need.fastest else "warning"
    if slowest.pcie_link.child.id != own.child.id:
        severity = one_level_lower(severity)
    return _fail_nic_starved(context, nic, own, slowest, need, usable, severity_by_role(severity, nic) or "info")


def _readable_hops(context: RuleContext, own: PcieLink, links: dict[str, PcieLink]) -> Iterator[_Hop]:
    """The readable links from the NIC up; those that describe no wire are left out."""
    above = (links[bridge.id] for bridge in context.ancestors(own.child) if bridge.id in links)
    for pcie_link in (own, *above):
        carried = _current_bandwidth(pcie_link)
        if pcie_link.why_not_judged is None and carried is not None:
            yield _Hop(pcie_link, carried)


def _current_bandwidth(pcie_link: PcieLink) -> float | None:
    """GB/s in one direction that a link carries now; None where speed or lanes are not known."""
    link = pcie_link.child.link
    return bandwidth_gbyte_s(link.speed_gt_s, link.width) if link and link.width in LANES else None


def _second_links(context: RuleContext, nic: Nic, links: dict[str, PcieLink]) -> Iterator[float]:
    """The other PCIe links of a socket-direct or multi-host board: another slot, one system image."""
    own = (nic.pci or "").rpartition(".")[0]
    slots = {}
    for pci, other in context.nic_by_pci.items():
        slot = pci.rpartition(".")[0]
        same = nic.system_image_guid is not None and other.system_image_guid == nic.system_image_guid
        if same and slot != own:
            slots[slot] = pci
    for place in slots.values():
        pcie_link = links.get(place)
        yield (_current_bandwidth(pcie_link) if pcie_link else None) or 0.0


def _could_do_more(context: RuleContext, own: PcieLink, links: dict[str, PcieLink], gbit_s: float) -> bool:
    """Whether the card itself, or another of its kind, states that it could carry that rate, in a better slot, or does
    carry it."""
    able = [
        pcie_link.child.link
        for pcie_link in (own, *links.values())
        if pcie_link.child.link and _is_same_card(context, own, pcie_link)
    ]
    most = [bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width) for link in able]
    most += [bandwidth_gbyte_s(link.speed_gt_s, link.width) for link in able]
    return any(rate is not None and is_sufficient(rate, gbit_s) for rate in most)


def _is_same_card(context: RuleContext, own: PcieLink, other: PcieLink) -> bool:
    """The same card: by its ids; where the bus did not show them, a NIC whose port runs at the same rate."""
    ids = card_kind(context, own)
    if own is other or ids is not None:
        return card_kind(context, other) == ids
    needs = [
        required_rate(context, pcie_link.child) if pcie_link.child.id in context.nic_by_pci else None
        for pcie_link in (own, other)
    ]
    return needs[0] is not None and needs[0] == needs[1]


def _fail_nic_starved(
    context: RuleContext, nic: Nic, own: PcieLink, slowest: _Hop, need: RequiredRate, usable: float, severity: str
) -> Fail:
    rate = need.missed(usable)
    link, place = slowest.pcie_link.child.link, slowest.pcie_link.child.id
    above = "" if place == own.child.id else f" of the switch above it ({place})"
    ports = "its port" if rate == need.fastest else "its ports together"
    return own.fail(
        label=nic.label,
        summary=f"{ports} run at {rate:g} Gb/s ({rate / 8:g} GB/s); the PCIe link{above} can use {usable:.1f} GB/s"
        if rate != need.fastest
        else f"{ports} runs at {rate:g} Gb/s ({rate / 8:g} GB/s); the PCIe link{above} can use {usable:.1f} GB/s",
        impact=f"{usable:.1f} instead of {rate / 8:g} GB/s in each direction, and pauses or drops under load.",
        evidence=(
            Evidence(
                f"link of {place}",
                f"x{link.width} at {link.speed_gt_s:g} GT/s: {slowest.gbyte_s:.1f} GB/s" if link else "",
                pci_source(context, place, "current_link_speed"),
            ),
            Evidence(
                f"rate of {nic.label}",
                f"{rate:g} Gb/s",
                f"/sys/class/infiniband/{nic.rdma_device or nic.label}/ports/1/rate",
            ),
            *kernel_evidence(context, own.child.id, place),
        ),
        severity=severity,
        cause="own-link" if place == own.child.id else "uplink",
        ids=frozenset({place, *(function.id for function in card_functions(context, own.child))}),
    )
