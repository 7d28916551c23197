"""RoCE ports inside NPUs: links, addresses, and settings that all NPUs of a node should have alike.

The host has no interface of these ports, so that the rules about interfaces of NICs cannot look at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.reasons import Reason
from agent.model.topology import find_npu_link
from agent.rules.applicability import behind, has_ascend
from agent.rules.ascend.npus import CONFIGURATION, find_npus
from agent.rules.context import RuleContext
from agent.rules.node_wide import merge_failures
from agent.rules.rule import NODE, Fail, NamedSubject, Result, rule
from agent.rules.wording import find_majority, join_labels

_HEALTHY = ("Success", "Init", "Detect ip set")  # mind-cluster counts these as healthy
_FAULTY = ("Socket fail", "Receive timeout", "Unreachable", "Time exceeded", "Fault", "Thread error")
_EVEN_SETTINGS = ("prio_tc", "tc_cfg", "tcbw", "tsa", "static_speed", "dcqcn_en_enable", "multi_qp_count")
_ALONE = "If this port has a cable, jobs over several nodes do not start, or end. No other port of this node is shown."
_FEC = {"rs": "RS", "no": "off"}  # "auto" is what the ends agree on
_MESSAGES = {"gateway": "the gateway", "netmask": "the netmask", "mtu": "the MTU", "pfc": "PFC"}


def npu_ports(context: RuleContext) -> list[NpuPort]:
    """The RoCE ports of a node's NPUs."""
    return context.topology.ascend.ports if context.topology.ascend else []


def label_of(port: NpuPort) -> str:
    """NPUs go by their number."""
    return f"NPU {port.npu}"


def about_port(port: NpuPort) -> NamedSubject:
    """The NPU, where it is known which one has this number; NPUs go by their number."""
    return NamedSubject(
        f"gpu:{port.gpu}" if port.gpu else f"npu:{port.npu}", label_of(port), frozenset({port.gpu or f"npu-{port.npu}"})
    )


def shows_ports(context: RuleContext) -> Result | None:
    """A gate, shut where no RoCE port of an NPU is known."""
    ascend = context.topology.ascend
    if ascend is None or ascend.ports:
        return has_ascend(context)
    why = "it is empty: no port was set up" if ascend.configuration == "empty" else ascend.configuration
    return NODE.unknown("not-shown", detail=f"{CONFIGURATION}: {why or 'not read'}; no saved output of hccn_tool")


list_ports = behind(shows_ports)(npu_ports)


def _tool(option: str, port: NpuPort) -> str:
    return f"hccn_tool -i {port.npu} -{option} -g"


@rule("npu-roce-port-down", gate=shows_ports)
def npu_roce_port_down(context: RuleContext) -> Iterator[Result]:
    ports = npu_ports(context)
    states = {port.npu: find_npu_link(context.accelerator_nics, port).state for port in ports}
    up = [port for port in ports if states[port.npu] == "ACTIVE"]
    down = [port for port in ports if states[port.npu] == "DOWN"]
    yield from (
        about_port(p).unknown("output-missing", command=_tool("link", p)) for p in ports if states[p.npu] is None
    )
    yield from (about_port(port).passes() for port in up)
    if up or (len(down) > 1 and any(port.address for port in down)):
        faults = [_fail_down(port, len(ports)) for port in down]
        yield from faults if up else [merge_failures(faults, "All RoCE ports down")]
    elif len(down) == 1:  # who asks for one port alone has a reason
        yield replace(_fail_down(down[0], 1), impact=_ALONE, confidence="low")
    else:
        yield from (
            about_port(port).not_applicable("not-in-use", detail="all ports down and none set up") for port in down
        )


def _fail_down(port: NpuPort, count: int) -> Fail:
    return about_port(port).fail(
        summary=f"its RoCE port is down{f', switch port {port.switch_port}' if port.switch_port else ''}",
        impact=f"1 of {count} RoCE ports: jobs over several nodes do not start, or end.",
        evidence=(Evidence(f"link of {label_of(port)}", "DOWN", _tool("link", port)),),
    )


@rule("npu-roce-speed", gate=shows_ports)
def npu_roce_speed(context: RuleContext) -> Iterator[Result]:
    links = [(port, find_npu_link(context.accelerator_nics, port)) for port in npu_ports(context)]
    usual_rate = find_majority([link.rate_gbit_s for _, link in links if link.rate_gbit_s])
    for port, link in links:
        about, speed = about_port(port), link.rate_gbit_s
        if link.state == "DOWN":
            yield about.not_applicable("not-in-use", detail="down")
        elif speed is None or usual_rate is None:
            yield about.unknown("no-peers", detail="its speed is not known, or most ports have no speed in common")
        elif speed >= usual_rate:
            yield about.passes()
        else:
            yield about.fail(
                summary=f"its RoCE port runs at {speed:g} Gb/s, most others at {usual_rate:g} Gb/s",
                impact=f"{usual_rate - speed:g} Gb/s less; collectives over nodes run at the slowest port's speed.",
                evidence=(Evidence("speed", f"{speed:g} Gb/s", _tool("speed", port)),),
            )


@rule("npu-fec-mismatch", gate=shows_ports)
def npu_fec_mismatch(context: RuleContext) -> Iterator[Result]:
    ports = npu_ports(context)
    usual = find_majority([port.fec for port in ports if port.fec in _FEC])
    for port in ports:
        about = about_port(port)
        if find_npu_link(context.accelerator_nics, port).state == "DOWN":
            yield about.not_applicable("not-in-use", detail="down")
        elif port.fec not in _FEC:
            yield about.unknown(
                Reason("undecided", detail=f"FEC is {port.fec}")
                if port.fec
                else Reason("output-missing", command=_tool("fec", port))
            )
        elif usual is None:
            yield about.unknown("no-peers", detail="most ports have no FEC in common")
        elif port.fec == usual:
            yield about.passes()
        else:
            yield about.fail(
                summary=f"FEC of its RoCE port is {_FEC[port.fec]}, of most others {_FEC[usual]}",
                impact="Both ends of a link need the same FEC: the link counts bit errors, flaps, or does not come up.",
                evidence=(Evidence("FEC", _FEC[port.fec], _tool("fec", port)),),
                confidence="medium",
            )


@rule("npu-roce-net-health", each=list_ports)
def npu_roce_net_health(port: NpuPort) -> Result:
    about, health = about_port(port), port.health
    if health is None:
        return about.unknown("output-missing", command=_tool("net_health", port))
    if health.startswith(_HEALTHY):
        return about.passes()
    if not health.startswith(_FAULTY):
        return about.unknown("undecided", detail=f"net health status {health!r}")
    return about.fail(
        summary=f"network health check of its RoCE port: {health}",
        impact="The port does not reach its detect address; jobs over several nodes may fail to connect.",
        evidence=(
            Evidence("net health status", health, _tool("net_health", port)),
            Evidence("detect address", port.detect_address or "not known", CONFIGURATION),
        ),
    )


@rule("npu-roce-ip-missing", gate=shows_ports)
def npu_roce_ip_missing(context: RuleContext) -> Iterator[Result]:
    ports = {port.npu: port for port in npu_ports(context)}
    read = context.topology.ascend is not None and context.topology.ascend.configuration == "read"
    if not any(port.address for port in ports.values()):
        yield NODE.not_applicable("not-configured", detail="no NPU has an address: not set up")
        return
    if not read:
        yield NODE.unknown(
            "not-shown", detail=f"{CONFIGURATION} was not read: a port without answer may have an address"
        )
        return
    expected = _list_expected(context, ports)
    count = sum(1 for port in ports.values() if port.address)
    for number in expected:
        port = ports.get(number) or NpuPort(npu=number, gpu=_gpu_of(context, number))
        yield about_port(port).passes() if port.address else _fail_address(port, f"{count} of {len(expected)} NPUs")


def _list_expected(context: RuleContext, ports: dict[int, NpuPort]) -> list[int]:
    """Numbers that should have an address: of all NPUs, where those of the file are among them."""
    count = len(find_npus(context))
    hidden = context.node.container or context.node.job_limit
    return list(range(count)) if not hidden and max(ports) < count else sorted(ports)


def _gpu_of(context: RuleContext, number: int) -> str | None:
    return next((npu.id for npu in find_npus(context) if npu.index == number), None)


def _fail_address(port: NpuPort, others: str) -> Fail:
    return about_port(port).fail(
        summary="its RoCE port has no address; other NPUs of this node have one",
        impact="HCCL cannot reach this NPU from other nodes: jobs over several nodes do not start.",
        evidence=(Evidence(f"address_{port.npu}", f"not set ({others} have one)", CONFIGURATION),),
    )


@rule("npu-roce-ip-duplicate", gate=shows_ports)
def npu_roce_ip_duplicate(context: RuleContext) -> Iterator[Result]:
    by_address: dict[str, list[NpuPort]] = {}
    for port in npu_ports(context):
        if port.address:
            by_address.setdefault(port.address, []).append(port)
        else:
            yield about_port(port).not_applicable("not-configured", detail="no address is known")
    for address, ports in by_address.items():
        if len(ports) == 1:
            yield about_port(ports[0]).passes()
        else:
            yield about_port(ports[0]).fail(
                summary=f"{join_labels([label_of(port) for port in ports])} have the same address {address}",
                impact="Packets for one of them reach the other: connections between NPUs fail at random.",
                evidence=tuple(Evidence(f"address_{port.npu}", address, CONFIGURATION) for port in ports),
                ids=frozenset().union(*(about_port(port).ids for port in ports)),
            )


@rule("npu-roce-conf-uneven", gate=shows_ports)
def npu_roce_conf_uneven(context: RuleContext) -> Iterator[Result]:
    ports = [port for port in npu_ports(context) if port.address] or npu_ports(context)
    values: dict[str, Callable[[NpuPort], str | None]] = {
        "mtu": lambda port: str(port.mtu) if port.mtu else None,
        "pfc": lambda port: "set" if port.pfc is not None else None,  # npu-pfc-priority has the priorities
        "netmask": lambda port: port.netmask,
        "gateway": lambda port: "set" if port.gateway else None,  # of several networks the addresses differ
        **{name: _setting(name) for name in _EVEN_SETTINGS},
    }
    uneven = [name for name, read in values.items() if len({read(port) for port in ports}) > 1]
    if len(ports) < 2:
        yield NODE.unknown("no-peers", detail="one port alone: nothing to compare with")
    elif not uneven:
        yield NODE.passes()
    elif context.topology.ascend is None or context.topology.ascend.configuration != "read":
        yield NODE.unknown(
            "not-shown", detail=f"{CONFIGURATION} was not read: a port that was not asked may be set as the others"
        )
    else:
        yield from (_fail_uneven(name, values[name], ports) for name in uneven)


def _setting(name: str) -> Callable[[NpuPort], str | None]:
    return lambda port: port.settings.get(name)


def _fail_uneven(name: str, read: Callable[[NpuPort], str | None], ports: list[NpuPort]) -> Fail:
    votes = Counter(read(port) for port in ports)
    usual_value = votes.most_common(1)[0][0]
    others = [port for port in ports if read(port) != usual_value]
    what = _MESSAGES.get(name, name)
    return NODE.fail(
        summary=f"{what} of {join_labels([label_of(port) for port in others])} is not that of the other NPUs",
        impact="NPUs of one job need the same settings: the one that differs is slow, or loses packets.",
        evidence=tuple(
            Evidence(f"{name} of {label_of(port)}", read(port) or "not set", CONFIGURATION)
            for port in [next(port for port in ports if read(port) == usual_value), *others][:8]
        ),
        cause=name,
        ids=frozenset().union(*(about_port(port).ids for port in others)),
    )


@rule("npu-tls-mixed", gate=shows_ports)
def npu_tls_mixed(context: RuleContext) -> Iterator[Result]:
    ports = npu_ports(context)
    known = [port for port in ports if port.tls is not None]
    on, off = [port for port in known if port.tls], [port for port in known if not port.tls]
    if on and off:
        few = min(on, off, key=len)
        yield NODE.fail(
            summary=f"TLS is {'on' if few is on else 'off'} on {join_labels([label_of(port) for port in few])}, "
            f"{'off' if few is on else 'on'} on the others",
            impact="NPUs of one job need the same TLS switch: connections between them are never set up.",
            evidence=tuple(
                Evidence(f"TLS of {label_of(port)}", "on" if port.tls else "off", _tool("tls", port))
                for port in [*on[:4], *off[:4]]
            ),
            values=(("SWITCH", "0" if few is on else "1"),),
            ids=frozenset().union(*(about_port(port).ids for port in few)),
        )
    elif len(known) < len(ports) or len(known) < 2:
        yield NODE.unknown(
            "undecided", detail=f"TLS is known of {len(known)} of {len(ports)} NPUs: the others have the default"
        )
    else:
        yield NODE.passes()
