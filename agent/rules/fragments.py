"""What a fragment states by itself: rules judged again as if the missing context were the usual one.

A pasted `ibstat` has no PCI list, so no rule can decide what its ports are for. Where a rule is unknown because such
context alone is missing, it is asked again of the same machine with that context assumed: NICs carry GPU traffic, what
is listed is all there is. What it then finds is a finding of low confidence, which names the assumption and what
settles it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from agent.model.nic import Netdev, Nic, Pause, Port
from agent.model.reasons import Reason
from agent.rules.cabling import place_on_bus
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, Pass, Result, Rule, Unknown
from agent.rules.wording import join_labels

_OPEN = frozenset({"role-not-known", "rails-not-known", "link-layer-not-known", "list-incomplete"})
_BUS = frozenset({"pci", "pci_sysfs"})
_RDMA = frozenset({"rdma", "rdma_tools"})
_OF_NICS = ("port:", "pci:")
_CHOSEN = frozenset({"ib-rate-degraded", "roce-speed-degraded", "nic-fw-mixed"})  # by the switch, or board by board
_SPEED_FIELDS = ("port.rate_gbit_s", "netdev.speed_gbit_s")
_STATES = frozenset({"roce-link-down", "roce-speed-degraded"})  # all ports alike: the network, or nothing is cabled
_NOTED = frozenset({"roce-no-ip"})  # what a list of GIDs is saved for: a note counts
_OF_PATHS = "affinity-gpu-far-from-nic"  # the matrix has all NICs: few GPUs without one near count
_OF_JOBS = "roce-gid-index-wrong"  # a setting of NCCL: GPU jobs use these ports, however many have it wrong
_DARK = "dark"  # the cause of a note about a module without light: it was saved because of it
_WIRE_IS_UP = ("vf-policy", "vf-guid")
_LINK_IS_UP = (*_WIRE_IS_UP, "vf-physical", "linkup")
_OF_MODULES = ("port-module-fault", "roce-optics-power")  # what a module states of itself needs no port
_LAYERS = {"ib-port-down": "InfiniBand", "roce-link-down": "Ethernet"}
_LINKS = tuple(_LAYERS)
_MEANT = ("fec-off", "no-light")  # why a port has no link that something is plugged into
_SEEKS = ("Ethernet", "Polling")  # a port that is switched on and looks for a signal; of InfiniBand each one does
_BESIDE_RAILS = (*_LINKS, "ib-rate-degraded", "ib-rate-mixed", "roce-speed-degraded")
NO_SAMPLE = "no-second-sample"
ASSUMED_TYPES = _ASSUMED, _SIBLING = "assumed", "assumed sibling"  # the node types of a NIC that no output names
_COMPARED = ("roce-link-down", "roce-mtu-mismatch")  # what one of several interfaces shows beside the others
_JUMBO = 1501  # bytes; an interface with such an MTU was set up for data
_LOCAL = 0x02  # of the first byte of a MAC address that no maker gave
_FEW = 1 / 4  # of the ports: the odd ones out
_PORT_STATES = {"up": "ACTIVE", "down": "DOWN"}  # of a port with Ethernet, by its interface
_FAST_MODULES = ("QSFP", "OSFP")
_FAST_GBIT_S = 25  # slower ones are for management
_STATES_OF_IB = frozenset({"polling", "portconfigurationtraining", "linkerrorrecovery"})  # of the link
_STARTING = ("INIT", "ARMED")  # which a subnet manager alone ends
_NUMBER = r"(?a)\d+"
_READS = 2  # commands that read counters again
_HALVES = "halves"  # the cause of a note of ports in two halves
_HEX = frozenset("0123456789abcdef")
_SHOWN = 8  # lines of evidence
COUNTED_BY_ROCE = ("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "roce_adp_retrans")  # not 0
_PAIR, _OFF = 2, "set-down"  # ports of a card; by a person
_ENOUGH = 4  # ports in which an order can be seen
_RAILS = (4, 8, 16)  # of a board
_MANY = 8  # interfaces, more than a card without RDMA has


def is_context(why: Reason, absent: frozenset[str] = _BUS) -> bool:
    """Whether a reason is about what surrounds a part, and the source simply does not hold it. `absent`: the probes
    that may have no evidence."""
    return why.code in _OPEN or (why.code == "evidence-absent" and why.parameters.get("subject") in absent)


def assume_context(context: RuleContext) -> RuleContext:
    """The same machine as if its NICs carried GPU traffic, its lists were whole, and each interface that a port names
    were listed. Virtual functions beside physical ones are for guests; where the PCI list is whole, it shows what those
    are for whose address is known."""
    alone = sum(len(nic.ports) for nic in context.topology.nics) == 1
    ports = [port for nic in context.topology.nics for port in nic.ports]
    starting = sum(port.state in _STARTING for port in ports)
    trains = (
        any((port.phys_state or "").lower() in _STATES_OF_IB for port in ports)
        or 0 < starting <= len(ports) * _FEW
        or _has_odd_rate(ports)
        or _has_odd_state(ports)
    )
    odd = _list_odd_cards(context.topology.nics)
    bonds = [nic for nic in context.topology.nics if "bond" in (nic.rdma_device or "")]
    bonds = bonds if 2 * len(bonds) < len(context.topology.nics) else []  # for storage and management, beside rails
    is_guest = all(nic.virtual_function for nic in context.topology.nics if not nic.software)
    read = context.why_bus_unread is None
    listed = context.netdevs
    states = {name: _PORT_STATES.get(netdev.operstate or "") for name, netdev in listed.items()}
    nics = [
        nic
        if _identify_card(nic) in odd or (nic.virtual_function and not is_guest) or (read and nic.pci) or nic in bonds
        else _assume_rail(nic, alone, trains, states)
        for nic in context.topology.nics
    ]
    named = {
        name: Netdev(id=name, label=name, nic=nic.id)
        for nic in nics
        for port in nic.ports
        for name in port.netdevs
        if name not in listed
    }
    netdevs = [*context.topology.netdevs, *named.values()]
    if not nics and not read:
        siblings = _list_siblings(netdevs)
        nics = [assume_rdma_device(netdev) for netdev in netdevs if _may_have_rdma(netdev)]
        known = {nic.id for nic in nics}
        nics += [assume_rdma_device(netdev, _SIBLING) for netdev in siblings if netdev.id not in known]
        netdevs = [replace(netdev, pause=netdev.pause or Pause(rx=False, tx=False)) for netdev in netdevs]
    return replace(context, topology=replace(context.topology, nics=nics, netdevs=netdevs), lists_whole=True)


def _has_odd_rate(ports: Sequence[Port]) -> bool:
    """Whether few of several ports of which nothing but the rate is shown have another one than the others."""
    rates = Counter(port.rate_gbit_s for port in ports if port.state is None and port.link_layer is None)
    if None in rates or rates.total() < _ENOUGH:
        return False
    return 0 < rates.total() - max(rates.values()) <= rates.total() * _FEW


def _has_odd_state(ports: Sequence[Port]) -> bool:
    """Whether few of several ports of which nothing but the state is shown, or the physical one, are down."""
    bare = [
        port.state or _state_of_link(port)
        for port in ports
        if None in (port.phys_state, port.state) and port.link_layer is None and not port.netdevs
    ]
    return len(bare) >= _ENOUGH and 0 < bare.count("DOWN") <= len(bare) * _FEW


def _state_of_link(port: Port) -> str | None:
    """What the physical state of a port leaves open or rules out."""
    if port.phys_state is None:
        return None
    return "ACTIVE" if port.phys_state.lower() == "linkup" else "DOWN"


def _may_have_rdma(netdev: Netdev) -> bool:
    """Whether a source without any RDMA device shows classes of traffic of an interface, the link of a fast one, or a
    module of several lanes."""
    has_link = netdev.operstate is not None and (netdev.max_speed_gbit_s or 0) >= _FAST_GBIT_S
    module = netdev.module
    has_module = module is not None and (
        len(module.lanes) > 1
        or (module.identifier or "").startswith(_FAST_MODULES)
        or any(lane.flags for lane in module.lanes)  # SFP28 calls itself SFP
        or bool(module.flags)
    )
    return netdev.bond is None and (netdev.qos is not None or has_link or has_module)


def _list_siblings(netdevs: Sequence[Netdev]) -> list[Netdev]:
    """Interfaces of cards of one maker that are named alike, four or more, most of them with a large MTU: set up for
    data, so that one which differs is worth a look. Without any MTU eight are enough, or four of which most are fast;
    without an address the names are."""
    groups: dict[tuple[str, str], list[Netdev]] = {}
    for netdev in netdevs:
        mac = netdev.mac or ""
        is_made = mac[:2].isalnum() and not int(mac[:2], 16) & _LOCAL and netdev.operstate is not None
        is_named = netdev.mac is None and (netdev.mtu is not None or (netdev.speed_gbit_s or 0) >= _FAST_GBIT_S)
        if (is_made or is_named) and netdev.bond is None and netdev.vlan is None:
            groups.setdefault((re.sub(_NUMBER, "#", netdev.label), mac[:8]), []).append(netdev)
    return [netdev for group in groups.values() if _are_for_data(group) for netdev in group]


def _are_for_data(group: Sequence[Netdev]) -> bool:
    """Whether interfaces that are named alike are for data, by their number and their MTU or speed."""
    if all(netdev.mtu is None for netdev in group):
        fast = sum((one.speed_gbit_s or 0) >= _FAST_GBIT_S for one in group)
        return len(group) >= _MANY or (len(group) >= _ENOUGH and fast >= len(group) * (1 - _FEW))
    return len(group) >= _ENOUGH and sum((one.mtu or 0) >= _JUMBO for one in group) >= len(group) * (1 - _FEW)


def assume_rdma_device(netdev: Netdev, node_type: str = _ASSUMED) -> Nic:
    """An interface as a NIC that carries GPU traffic."""
    state = _PORT_STATES.get(netdev.operstate or "", "ACTIVE")
    port = Port(port=1, link_layer="Ethernet", state=state, netdevs=[netdev.label])
    return Nic(id=netdev.id, label=netdev.label, role="rail", node_type=node_type, ports=[port])


def _list_odd_cards(nics: Sequence[Nic]) -> set[str]:
    """Cards with more functions than most: four at one card are those of NVSwitches' ports."""
    functions = Counter(card for nic in nics if (card := _identify_card(nic)))
    usual = max(Counter(functions.values()).items(), key=lambda item: (item[1], -item[0]), default=(0, 0))[0]
    return {card for card, count in functions.items() if count > usual}


def _identify_card(nic: Nic) -> str:
    """What the functions of one card have in common; "" where nothing shows it."""
    return nic.system_image_guid or place_on_bus(nic).rpartition(".")[0]


def _assume_rail(nic: Nic, alone: bool, trains: bool, states: Mapping[str, str | None]) -> Nic:
    if nic.software:
        return nic
    role = "rail" if nic.role == "unknown" else nic.role
    return replace(nic, role=role, ports=[_assume_layer(port, alone, trains, states) for port in nic.ports])


def _assume_layer(port: Port, alone: bool, trains: bool, states: Mapping[str, str | None]) -> Port:
    """A port whose network interface is not named as those of InfiniBand are carries Ethernet, and is in the state of
    its interface. One with an IPv4 address among its GIDs is active: the address goes when its interface is down; so is
    one of which GIDs are all that is shown: they were saved because of what they lack; and one of which a
    rate is shown: those without a link have none, as a physical state shows, too.
    `alone`: the only port of the source; without an interface its output is cut, or older than RoCE. `trains`: a port
    of the source is in a physical state that InfiniBand alone reports. `states`: of ports, by their interfaces."""
    if port.link_layer == "Ethernet" and port.state is None and port.gids and not any(map(states.get, port.netdevs)):
        return replace(port, state="ACTIVE")
    if port.state is None:
        port = replace(port, state=_state_of_link(port) or ("ACTIVE" if port.rate_gbit_s else None))
    if port.link_layer is not None or not (port.netdevs or alone or trains):
        return port
    if port.hw_counters and port.state is None and not port.netdevs and port.lid is None:
        return port  # its counters alone: those of RDMA are the same on both
    if not port.netdevs and any(port.hw_counters.get(name) for name in COUNTED_BY_ROCE):
        return replace(port, link_layer="Ethernet")
    if not port.netdevs and port.state == "ACTIVE" and 0 in (port.lid, port.sm_lid):
        return port  # every active port of Ethernet is without a LID, and hardly one of InfiniBand
    if not port.netdevs or port.netdevs[0].startswith("ib"):
        return replace(port, link_layer="InfiniBand")
    addressed = any(":ffff:" in gid.gid.lower() for gid in port.gids)
    state = port.state or ("ACTIVE" if addressed else states.get(port.netdevs[0]))
    return replace(port, link_layer="Ethernet", state=state)


def describe_assumption(fault: Fail) -> str:
    """What the finding assumes, as sentences before its impact."""
    why = fault.depends_on
    if why is None:
        return ""
    if why.code == NO_SAMPLE:
        return "The counters have no date: what they mean depends on whether they still grow. If they do:"
    if why.code == "list-incomplete":
        return "The list of PCI devices is incomplete: what this means depends on the rest of it."
    if why.code == "link-layer-not-known":
        return (
            "What this means here depends on whether the port is InfiniBand or Ethernet, which the source leaves open."
        )
    if fault.subject.startswith("gpu:"):
        return "Whether the server is built so, or a NIC is in another slot or missing, its PCI list shows. As it is:"
    what, them = ("these ports are", "them") if fault.subject == "node" else (f"{fault.label} is", "it")
    return f"What this means here depends on what {what} for, which the source leaves open. If GPU jobs use {them}:"


def describe_settling(context: RuleContext, fault: Fail) -> str:
    """The first step: what to save so that the assumption is no longer needed."""
    if fault.depends_on and fault.depends_on.code == NO_SAMPLE:
        reads = list(dict.fromkeys(row.source for row in fault.evidence))[:_READS]
        again = join_labels([f"`{f'cat {read}' if read.startswith('/') else read}`" for read in reads])
        return (
            f"Read them again a minute later, under load: {again}; or on the host: `fabricscope scan --interval 60`. "
            "If they do not grow, no action is needed."
        )
    commands = [f"`{settle.what}`" for settle in fault.depends_on.settles] if fault.depends_on else []
    if context.why_bus_unread is None and "`lspci -vvv`" in commands:
        commands = ["`rdma link`", "`ip -d link`"]  # the list is there, and no output has the NIC's address
    saved = join_labels(commands)
    return f"Save {saved} of this host beside this source, and scan the folder: that settles what this means here."


def find_in_fragment(assumed: RuleContext, rule: Rule, answers: Sequence[Result]) -> Iterator[Fail]:
    """Faults of NICs that are unknown because context alone is missing; notes are left out, and a setting that all
    ports have is one."""
    open_reasons = {answer.subject: answer.reason for answer in answers if isinstance(answer, Unknown)}
    assumes_nics = any(nic.node_type in ASSUMED_TYPES for nic in assumed.topology.nics)
    open_reasons = {
        subject: why for subject, why in open_reasons.items() if is_context(why, _BUS | _RDMA if assumes_nics else _BUS)
    }
    if not open_reasons:
        return
    again = [answer for answer in rule.check(assumed) if isinstance(answer, Pass | Fail)]
    is_arranged = _is_arrangement(rule, again)
    is_one_narrow = is_arranged and _is_one_narrow(assumed, rule, again)
    if is_arranged and not is_one_narrow:
        yield from _tell_arrangement(rule, again, open_reasons)
        return
    if down := _find_all_down(assumed, rule, again):
        yield from _tell_arrangement(rule, down, open_reasons, "all-rails")
        return
    if not any(isinstance(answer, Fail) for answer in again):
        for second in _find_second_port(assumed, rule):
            if why := _find_open_reason(second, open_reasons):
                yield replace(second, confidence="low", depends_on=why)
    is_odd_gpu = rule.name == _OF_PATHS and sum(isinstance(answer, Fail) for answer in again) <= len(again) * _FEW
    is_odd_one = rule.name in _COMPARED and _are_odd_siblings(assumed, again)
    for fault in again:
        why = None if isinstance(fault, Pass) else _find_open_reason(fault, open_reasons)
        if isinstance(fault, Pass) or why is None or _is_second_of_card(assumed, fault):
            continue
        is_note = (fault.severity or rule.severity) == "info" and rule.name not in _NOTED and fault.cause != _DARK
        if is_note and not (rule.name in _STATES and _shows_one_port(assumed)):
            continue
        if (assumes_nics and rule.name not in _OF_MODULES and not is_odd_one) or _is_setting_of_all(
            assumed, rule, fault
        ):
            note = lower_to_note(replace(fault, confidence="low", depends_on=why))
            yield of_interface(note) if assumes_nics else note
        elif (
            rule.name == _OF_JOBS
            or is_odd_gpu
            or _is_of_nic(assumed, fault.subject)
            or _is_certain_of_node(assumed, fault)
        ):
            low = replace(fault, confidence="low", depends_on=why)
            low = of_interface(low) if assumes_nics else low
            may_be_meant = (
                is_one_narrow or _is_beside_rails(assumed, rule, fault, again) or _is_only_port(assumed, rule, fault)
            )
            yield replace(low, severity="info") if may_be_meant else low


def _are_odd_siblings(assumed: RuleContext, answers: Sequence[Pass | Fail]) -> bool:
    """Whether the faults are of few of several interfaces that are set up alike."""
    siblings = {f"{nic.id}/{port.port}" for nic in assumed.topology.nics if nic.node_type == _SIBLING
                for port in nic.ports}  # fmt: skip
    faulty = {place for answer in answers if isinstance(answer, Fail) for place in answer.ids if "/" in place}
    return 0 < len(faulty) <= len(siblings) * _FEW and faulty <= siblings


def _find_second_port(assumed: RuleContext, rule: Rule) -> Iterator[Fail]:
    """The port that is down, where the source shows one or two of its kind: second ports of cards are often left
    without a cable, which is no fault and worth a note; one that is switched off beside the other is not."""
    layer = _LAYERS.get(rule.name)
    ports = [(nic, port) for nic, port in _list_shown(assumed) if port.link_layer == layer]
    down = [replace(nic, ports=[port]) for nic, port in ports if port.state != "ACTIVE"]
    if len(ports) > _PAIR or len(down) != 1:
        return
    alone = replace(assumed, topology=replace(assumed.topology, nics=down))
    seeks = len(ports) == _PAIR and (layer, down[0].ports[0].phys_state) == _SEEKS
    for answer in rule.check(alone):
        is_off = down[0].ports[0].phys_state == "Disabled" or (isinstance(answer, Fail) and answer.situation == _OFF)
        if isinstance(answer, Fail) and not (is_off and len(ports) == _PAIR):
            is_meant = seeks or answer.situation in _MEANT
            yield answer if is_meant else replace(answer, severity="info")


def _find_open_reason(fault: Fail, open_reasons: Mapping[str, Reason]) -> Reason | None:
    """Why the rule could not decide about this subject, or about a port that the fault is about."""
    subjects = (fault.subject, "node", *(f"port:{place}" for place in sorted(fault.ids)))
    return next((open_reasons[subject] for subject in subjects if subject in open_reasons), None)


def _is_only_port(assumed: RuleContext, rule: Rule, fault: Fail) -> bool:
    """Whether a port without a link is all that the source shows: one that nothing uses looks the same; or a port
    without an address one of few."""
    if rule.name in _NOTED:
        return sum(len(nic.ports) for nic in assumed.topology.nics) < _ENOUGH
    return _shows_one_port(assumed) and rule.name in _LINKS and fault.situation not in _LINK_IS_UP


def _shows_one_port(assumed: RuleContext) -> bool:
    """Whether one port is all that the source shows: it was saved because of its state, so that notes count, too."""
    return len(_list_shown(assumed) or [port for nic in assumed.topology.nics for port in nic.ports]) == 1


def _list_shown(assumed: RuleContext) -> list[tuple[Nic, Port]]:
    """Ports whose state the source shows, with their NICs: of others it has no more than the name."""
    return [(nic, port) for nic in assumed.topology.nics for port in nic.ports if port.state is not None]


def _is_of_nic(assumed: RuleContext, subject: str) -> bool:
    """Whether a subject is a NIC, its port or interface: what NICs are for decides nothing about GPUs and paths."""
    kind, _, name = subject.partition(":")
    return kind in ("port", "netdev") or name in assumed.nics


def lower_to_note(fault: Fail) -> Fail:
    """The finding as a note, with each of its parts."""
    return replace(fault, severity="info", parts=tuple(replace(part, severity="info") for part in fault.parts))


def of_interface(fault: Fail) -> Fail:
    """The finding without what is assumed: the interface is its subject, and neither its global pause nor a
    file of an RDMA device was read."""
    subject = fault.subject if fault.subject == "node" else f"netdev:{fault.subject[5:].rpartition('/')[0]}"
    evidence = tuple(
        row
        for row in fault.evidence
        if not row.what.startswith("global pause") and not row.source.startswith("/sys/class/infiniband/")
    )
    return replace(fault, subject=subject, evidence=evidence)


def _is_setting_of_all(assumed: RuleContext, rule: Rule, fault: Fail) -> bool:
    """Whether all active RoCE ports have one setting that is wrong for GPU traffic: chosen, or wrong alike."""
    of_ports = all(_is_of_nic(assumed, part.subject) for part in fault.parts)
    by_choice = rule.name.startswith("roce-") and rule.name not in _STATES and rule.name != _OF_JOBS
    return by_choice and bool(fault.parts) and of_ports


def _is_certain_of_node(assumed: RuleContext, fault: Fail) -> bool:
    """Whether a fault of the whole node is that few of its ports differ from the others, or that virtual functions are
    down whose wire is up."""
    if fault.situation in _WIRE_IS_UP:
        return True
    ports = [f"{nic.id}/{port.port}" for nic in assumed.rails for port in nic.ports]
    odd = fault.ids.intersection(ports)
    return not fault.parts and 0 < len(odd) <= len(ports) * _FEW


def _is_arrangement(rule: Rule, answers: Sequence[Pass | Fail]) -> bool:
    """Whether the ports with the fault look chosen: more than a few, and in a block or every second one; of speeds,
    which a switch may choose, more than a few are enough."""
    ports = sorted((answer for answer in answers if answer.subject.startswith(_OF_NICS)), key=_natural_order)
    wrong = [isinstance(port, Fail) for port in ports]
    if not any(wrong) or all(wrong) or sum(wrong) <= len(wrong) * _FEW:
        return False
    changes = sum(a != b for a, b in pairwise(wrong))
    return rule.name in _CHOSEN or (len(wrong) >= _ENOUGH and changes in (1, len(wrong) - 1))


def _is_one_narrow(assumed: RuleContext, rule: Rule, answers: Sequence[Pass | Fail]) -> bool:
    """Whether one port alone has fewer lanes than the others, which have as many as each other: no speed that a switch
    chooses, but a cable that is split, or lanes that are lost."""
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    if rule.name != "ib-rate-degraded" or len(faults) != 1:
        return False
    ports = [(f"{nic.id}/{port.port}", port) for nic in assumed.rails for port in nic.ports if port.rate_gbit_s]
    own = {port.width for place, port in ports if place in faults[0].ids}
    others = {port.width for place, port in ports if place not in faults[0].ids}
    return len(own) == len(others) == 1 and not (own | others) & {None} and own != others


def _is_second_of_card(assumed: RuleContext, fault: Fail) -> bool:
    """Whether a port is switched off whose GUID is the next to that of an active port, or that has none and is one of
    two of which the other is active: both are of one card, and many leave one of the two without a cable."""
    ports = [(f"{nic.id}/{port.port}", port) for nic in assumed.topology.nics for port in nic.ports]
    own = [port for place, port in ports if place in fault.ids and port.phys_state == "Disabled"]
    active = {guid for _, port in ports if port.state == "ACTIVE" and (guid := _read_guid(port)) is not None}
    guids = [_read_guid(port) for port in own]
    is_other_active = len(ports) == _PAIR and sum(port.state == "ACTIVE" for _, port in ports) == 1
    return bool(guids) and all(
        is_other_active if guid is None else bool({guid - 1, guid + 1} & active) for guid in guids
    )


def _read_guid(port: Port) -> int | None:
    """The GUID of a port as a number, of its first GID where no output has it by itself."""
    digits = (port.port_guid or next((gid.gid for gid in port.gids), "")).removeprefix("0x").replace(":", "")[-16:]
    return int(digits, 16) if len(digits) == 16 and all(digit in _HEX for digit in digits.lower()) else None


def _find_all_down(assumed: RuleContext, rule: Rule, answers: Sequence[Pass | Fail]) -> list[Fail]:
    """What the rule finds of each port by itself where none of several has a link: the network is down, or none of them
    is cabled. None where something states which, or where one has a link."""
    layer = _LAYERS.get(rule.name)
    ports = [(nic, port) for nic in assumed.topology.nics for port in nic.ports if port.link_layer == layer]
    if len(ports) < _PAIR or any(port.state in ("ACTIVE", None) for _, port in ports):
        return []
    if any(isinstance(answer, Pass) or _is_certain_of_node(assumed, answer) for answer in answers):
        return []
    single = ([replace(nic, ports=[port])] for nic, port in ports)
    alone = (replace(assumed, topology=replace(assumed.topology, nics=nics)) for nics in single)
    return [answer for one in alone for answer in rule.check(one) if isinstance(answer, Fail)]


def _is_beside_rails(assumed: RuleContext, rule: Rule, fault: Fail, answers: Sequence[Pass | Fail]) -> bool:
    """Whether the ports that are down, or have another speed, stand before or after as many as a board has rails: NICs
    for storage and management are numbered so, and ports without a cable."""
    if rule.name not in _BESIDE_RAILS and fault.field not in _SPEED_FIELDS:
        return False
    alike = [answer for answer in answers if isinstance(answer, Fail) and answer.field == fault.field]
    odd = {place for answer in alike for place in answer.ids}
    places = [f"{nic.id}/{port.port}" for nic in assumed.rails for port in nic.ports]
    wrong = [place in odd for place in sorted(places, key=lambda place: (len(place), place))]
    return sum(a != b for a, b in pairwise(wrong)) == 1 and wrong.count(False) in _RAILS


def _tell_arrangement(
    rule: Rule, answers: Sequence[Pass | Fail], open_reasons: Mapping[str, Reason], situation: str | None = None
) -> Iterator[Fail]:
    """One note of ports in two halves, or of all: nothing is known to be wrong, and who expects them up sees it."""
    faults = [answer for answer in answers if isinstance(answer, Fail) and answer.subject.startswith(_OF_NICS)]
    why = next((reason for fault in faults if (reason := _find_open_reason(fault, open_reasons))), None)
    if rule.name not in _LINKS or why is None or not faults:
        return
    ports = sum(answer.subject.startswith(_OF_NICS) for answer in answers)
    is_all = situation is not None
    others = "none of the ports that are listed has one" if is_all else "the others have one"
    yield replace(
        faults[0],
        subject="node",
        label="all ports" if is_all else f"{len(faults)} of {ports} ports",
        summary=f"no link on {join_labels([fault.label for fault in faults])}; {others}",
        situation=situation if situation is not None else faults[0].situation,
        impact="No port carries anything." if is_all else f"{len(faults)} of {ports} ports carry nothing.",
        evidence=tuple(row for fault in faults for row in fault.evidence[:1])[:_SHOWN],
        severity="info",
        confidence="low",
        cause=_HALVES,
        depends_on=why,
        ids=frozenset().union(*(fault.ids for fault in faults)),
    )


def _natural_order(answer: Pass | Fail) -> tuple[int, str]:
    return len(answer.subject), answer.subject


def find_before_boot(earlier: RuleContext, rule: Rule, answers: Sequence[Result]) -> Iterator[Fail]:
    """Faults that the logs of earlier boots show, of subjects that have none in this one: people reboot before they
    collect. `earlier`: the same machine with the events of earlier boots in place of its own."""
    if "kernel_log" not in rule.needs:
        return
    failing = {answer.subject for answer in answers if isinstance(answer, Fail)}
    for fault in rule.check(earlier):
        if isinstance(fault, Fail) and fault.subject not in failing:
            confidence = "medium" if fault.confidence == "high" else fault.confidence
            summary = f"before the last boot: {fault.summary}"
            yield replace(fault, summary=summary, confidence=confidence, is_before_boot=True)
