"""Whether a port that is not active was ever meant to be: what InfiniBand and RoCE ask alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Nic, Port, is_link_local
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import NicPort, find_device_id
from agent.rules.nccl.hcas import read_hca_filter
from agent.rules.nccl.settings import effective_settings
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, NamedSubject, Result
from agent.rules.wording import find_majority

P = TypeVar("P", bound=NicPort)
_NAMED_BY_PLACE = r"(?a)((?:(?:P\d{1,6})?p\d{1,4})?s\d{1,4})f(\d{1,2})(?:np\d{1,3})?\Z"  # of a slot, and of a port, too
_CABLED = frozenset({"LinkUp", "PortConfigurationTraining", "LinkErrorRecovery"})  # a signal, or a trained link
UNPLUGGED = "link-unplugged"
_SETTLED_SECONDS = 240.0  # gpud waits 4 minutes for a port after boot


class CageState(msgspec.Struct, frozen=True):
    """One port of a rail or storage NIC, with what it has in common with others."""

    subject: str
    nic: Nic
    active: bool
    plugged: bool  # something shows that a cable is in it, or is meant to be
    board: str  # of one board and role, ports should run alike
    position: tuple[int, str]  # port number and function number: the second ports of all cards are alike, too
    unused: bool = False  # it is not active, and something states that it is not meant to be
    disabled: bool = False  # it is switched off: by a person, or by what found errors on it
    alone: bool = False  # a fragment shows this port and no other: it was saved because of its state

    @property
    def card(self) -> str:
        """What all ports of its card have in common."""
        return place_on_bus(self.nic).rpartition(".")[0] or self.nic.id


def board_model(context: RuleContext, nic: Nic) -> str:
    """What NICs of one product have in common."""
    return nic.board_id or find_device_id(context, nic) or nic.model or ""


def position_on_card(nic: Nic, port: int) -> tuple[int, str]:
    """The place of a port on its card."""
    return port, place_on_bus(nic).rpartition(".")[2]


def place_on_bus(nic: Nic) -> str:
    """The PCI address, else what a name by systemd's scheme states of it: "P2p1s0" and "1" of `roceP2p1s0f1`, "s1" and
    "1" of `ens1f1np1`."""
    if nic.pci is not None:
        return nic.pci
    names = [nic.label, *(name for port in nic.ports for name in port.netdevs)]
    named = next((match for name in names if (match := re.search(_NAMED_BY_PLACE, name))), None)
    return f"{named[1]}.{named[2]}" if named else ""


def find_known_rate(context: RuleContext, subject: str) -> float | None:
    """Gb/s at which a port was active in an earlier run; None: it never was, or nothing is remembered."""
    return dict(context.once(_known_rates)).get(subject)


def _known_rates(context: RuleContext) -> Iterator[tuple[str, float]]:
    known = context.history.inventory if context.history else []
    if not known:
        return
    from agent.rules.host.inventory_matching import build_inventory, match_devices  # lazy: for another run's devices

    match = match_devices(known, build_inventory(context.topology))
    for row in known:
        if row.rate_gbit_s and row.subject in match.at:
            yield match.at[row.subject], row.rate_gbit_s


def read_cage(context: RuleContext, nic_port: NicPort) -> CageState:
    """What is known of whether a port is meant to be up: meant, not meant, or neither."""
    subject, nic, port = nic_port.subject, nic_port.nic, nic_port.port
    netdevs = [context.netdevs[name] for name in port.netdevs if name in context.netdevs]
    listed = _is_listed(context, nic, port)
    plugged = port.phys_state in _CABLED or is_meant_to_be_up(context, subject, port) or listed is True
    ethernet = port.link_layer == "Ethernet"
    bare = bool(netdevs) and all(
        netdev.admin_up is False and all(is_link_local(address) for address in netdev.addresses) for netdev in netdevs
    )
    empty = ethernet and bare and all(netdev.module_reason_code == "no-module" for netdev in netdevs)
    is_dark = port.state != "ACTIVE" and not plugged
    return CageState(
        subject=subject,
        nic=nic,
        active=port.state == "ACTIVE",
        plugged=plugged,
        unused=is_dark and (empty or (listed is False and nic.role == "rail")),
        disabled=is_dark and (bare if ethernet else port.phys_state == "Disabled"),
        board=board_model(context, nic),
        position=position_on_card(nic, port.port),
        alone=context.lists_whole and port.port == 1 and sum(len(nic.ports) for nic in context.topology.nics) == 1,
    )


def _is_listed(context: RuleContext, nic: Nic, port: Port) -> bool | None:
    """Whether NCCL_IB_HCA of this host names the port, or leaves it out; None where it does neither.

    A list that takes no device of this host is another machine's, and leaves nothing out.
    """
    lists = [
        read_hca_filter(setting.value) for setting in effective_settings(context, "NCCL_IB_HCA") if setting.persistent
    ]
    name = nic.rdma_device or nic.label
    named = any(
        not one.exclude and one.takes(name, port.port) and name in {entry for entry, _ in one.names} for one in lists
    )
    devices = [other.rdma_device or other.label for other in context.topology.nics]
    own = [one for one in lists if any(map(one.takes, devices))]
    return True if named else False if own and not any(one.takes(name, port.port) for one in own) else None


def is_meant_to_be_up(context: RuleContext, subject: str, port: Port) -> bool:
    """Whether it was active in an earlier run, or its interface is set up with an address or a module in its cage."""
    if find_known_rate(context, subject):
        return True
    netdevs = [context.netdevs[name] for name in port.netdevs if name in context.netdevs]
    return any(
        netdev.admin_up is not False
        and (netdev.module is not None or not all(is_link_local(address) for address in netdev.addresses))
        for netdev in netdevs
    )


def quote_tools(context: RuleContext, nic_port: NicPort) -> Iterator[Evidence]:
    """What tools state of a port that has no link because nothing is plugged in."""
    names = (nic_port.nic.rdma_device or nic_port.nic.label, *nic_port.port.netdevs)
    for event in context.events:
        if event.code == UNPLUGGED and event.subject in names:
            yield Evidence("a tool", event.text, event.source)


def why_still_booting(context: RuleContext) -> Reason | None:
    """Why a port that is not up is no evidence yet; None where it had the time."""
    uptime = context.node.uptime_seconds
    if uptime is not None and uptime < _SETTLED_SECONDS:
        return Reason("still-settling", detail=f"up for {uptime:.0f} s: ports have 4 minutes to come up after boot")
    return None


def are_all_rails_down(sockets: Sequence[CageState]) -> bool:
    """No port of several rails is active: a fault of the fabric or of this node, not a choice."""
    rails = {socket.nic.id for socket in sockets if socket.nic.role == "rail"}
    return len(rails) > 1 and not any(socket.active for socket in sockets)


def merge_whole_node(faults: Sequence[Fail], kind: str) -> Fail:
    """No rail of the node is active: one finding."""
    one = merge_failures(faults, f"none of {len(faults)} {kind} rail ports is active")
    return replace(
        one,
        impact="The node reaches no other node over these rails: it can take part in no job of several nodes.",
        situation="all-rails",
        severity="critical",
        confidence="medium",
        cause="all-rails",
    )


def judge_by_role(
    context: RuleContext,
    ports: Sequence[P],
    judge: Callable[[RuleContext, P, str], Result],
    merge: Callable[[Sequence[P], Sequence[Fail]], Fail],
) -> Iterator[Result]:
    """Ports that are not active and are meant to be, among those of their role. `judge`: the answer about one, with its
    confidence; `merge`: the fault where no rail of the node is active."""
    for role in ("rail", "storage"):
        own = [port for port in ports if port.nic.role == role]
        sockets = [read_cage(context, port) for port in own]
        answers = [
            _why_no_fault(context, port, socket, sockets) or judge(context, port, find_confidence(socket, sockets))
            for port, socket in zip(own, sockets, strict=True)
        ]
        faults = [answer for answer in answers if isinstance(answer, Fail)]
        yield from (answer for answer in answers if not isinstance(answer, Fail))
        yield from [merge(own, faults)] if are_all_rails_down(sockets) and len(faults) == len(own) else faults


def _why_no_fault(context: RuleContext, port: NicPort, socket: CageState, sockets: list[CageState]) -> Result | None:
    state = port.port.state or ""
    if socket.active:
        return port.passes()
    if waiting := why_still_booting(context):
        return port.unknown(waiting.prefixed(f"{state}; "))
    return unused_port_result(socket, sockets, state)


def unused_port_result(cage: CageState, sockets: Sequence[CageState], state: str) -> Result | None:
    """Why a port that is not active is no fault; None where it is meant to be. `sockets`: those of its role."""
    if cage.plugged or cage.alone:
        return None
    about = NamedSubject(cage.subject, cage.nic.label, frozenset())
    active = [other for other in sockets if other.active]
    if cage.unused and active and _is_half(unused := [other for other in sockets if other.unused], sockets):
        return about.not_applicable(
            "not-configured", detail=f"switched off or left out, as {len(unused)} of {len(sockets)} of its role"
        )
    same = [o for o in active if o.position == cage.position and (cage.nic.role == "rail" or o.board == cage.board)]
    if not same and not are_all_rails_down(sockets):
        if active:
            return about.not_applicable("not-configured", detail="not cabled, like every port in its position")
        return about.unknown(
            "undecided", detail=f"{state}, as every port of its role: not cabled, or the fabric is down"
        )
    if _card_is_complete(cage, sockets):
        return about.not_applicable(
            "not-configured", detail="not cabled: its card has as many active ports as cards like it"
        )
    return None


def find_confidence(cage: CageState, sockets: Sequence[CageState]) -> str:
    """How sure it is that a port which is not active should be: half of the ports are not disabled by a fault."""
    disabled = [other for other in sockets if other.disabled]
    return "low" if cage.unused or (cage.disabled and _is_half(disabled, sockets)) else "high"


def _is_half(some: Sequence[CageState], sockets: Sequence[CageState]) -> bool:
    return len(some) > 1 and 2 * len(some) >= len(sockets)


def _card_is_complete(cage: CageState, sockets: Sequence[CageState]) -> bool:
    """Whether another port of its card is active, and that is as much as most cards of its board have."""
    counts: dict[str, int] = {}
    for other in sockets:
        if other.board == cage.board:
            counts[other.card] = counts.get(other.card, 0) + other.active
    usual_count = find_majority(counts.values()) or max(counts.values())
    return counts[cage.card] >= max(usual_count, 1)


def describe_lost_rails(context: RuleContext, nic: Nic) -> str:
    """What jobs lose by a port of this NIC that is down, with the other rails that are."""
    rails = len(context.rails)
    states = [{port.state for port in rail.ports} for rail in context.rails]
    down = sum("DOWN" in of_rail and "ACTIVE" not in of_rail for of_rail in states)
    if nic.role != "rail" or rails < 2:
        return "This port carries nothing; NCCL leaves out ports that are not active, without a message."
    if down == rails:
        return f"None of {rails} rails is up: jobs over several nodes do not start, or use another network."
    what, it = ("", "the rail") if down < 2 else (" are down", "them")
    less = 100 * max(down, 1) / rails
    return (
        f"{max(down, 1)} of {rails} rails{what}: this node injects {less:.0f}% less traffic, and NCCL leaves "
        f"{it} out without a message."
    )
