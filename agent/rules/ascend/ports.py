"""RoCE ports inside NPUs: links, addresses, and settings that all NPUs of a node should have alike.

The host has no interface of these ports, so that the rules about interfaces of NICs cannot look at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from agent.model.finding import Evidence
from agent.model.gpu import NpuPort
from agent.model.reasons import Reason
from agent.model.topology import find_npu_link
from agent.rules.ascend.npus import CONFIGURATION, find_npus
from agent.rules.context import RuleContext
from agent.rules.gates import has_ascend
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_HEALTHY = ("Success", "Init", "Detect ip set")  # mind-cluster counts these as healthy
_FAULTY = ("Socket fail", "Receive timeout", "Unreachable", "Time exceeded", "Fault", "Thread error")
_EVEN_SETTINGS = ("prio_tc", "tc_cfg", "tcbw", "tsa", "static_speed", "dcqcn_en_enable", "multi_qp_count")
_FEC = {"rs": "RS", "no": "off"}  # "auto" is what the ends agree on
_MESSAGES = {"gateway": "the gateway", "netmask": "the netmask", "mtu": "the MTU", "pfc": "PFC"}


def npu_ports(case: RuleContext) -> list[NpuPort]:
    """The RoCE ports of a node's NPUs."""
    return case.topology.ascend.ports if case.topology.ascend else []


def subject_of(port: NpuPort) -> str:
    """The NPU, where it is known which one has this number."""
    return f"gpu:{port.gpu}" if port.gpu else f"npu:{port.npu}"


def label_of(port: NpuPort) -> str:
    """NPUs go by their number."""
    return f"NPU {port.npu}"


def places_of(port: NpuPort) -> frozenset[str]:
    """What a finding about the port is about."""
    return frozenset({port.gpu or f"npu-{port.npu}"})


def report_no_ports(case: RuleContext) -> Iterator[Result]:
    """The answer of a rule where no RoCE port of an NPU is known."""
    ascend, answer = case.topology.ascend, has_ascend(case)
    if answer is not None:
        yield answer
    elif ascend and not ascend.ports:
        why = "it is empty: no port was set up" if ascend.configuration == "empty" else ascend.configuration
        yield Unknown(
            "node", Reason("not-shown", detail=f"{CONFIGURATION}: {why or 'not read'}; no saved output of hccn_tool")
        )


def _tool(option: str, port: NpuPort) -> str:
    return f"hccn_tool -i {port.npu} -{option} -g"


@rule("npu-roce-port-down")
def npu_roce_port_down(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    ports = npu_ports(case)
    states = {port.npu: find_npu_link(case.accelerator_nics, port).state for port in ports}
    up = [port for port in ports if states[port.npu] == "ACTIVE"]
    down = [port for port in ports if states[port.npu] == "DOWN"]
    yield from (
        Unknown(subject_of(p), Reason("output-missing", command=_tool("link", p)))
        for p in ports
        if states[p.npu] is None
    )
    yield from (Pass(subject_of(port)) for port in up)
    if up or (len(down) > 1 and any(port.address for port in down)):
        faults = [_fail_down(port, len(ports)) for port in down]
        yield from faults if up else [merge_failures(faults, "All RoCE ports down")]
    elif len(down) == 1:
        yield Unknown(
            subject_of(down[0]),
            Reason("not-shown", detail="down, and no other port is known: whether it has a cable is not known"),
        )
    else:
        yield from (
            NotApplicable(subject_of(port), Reason("not-in-use", detail="all ports down and none set up"))
            for port in down
        )


def _fail_down(port: NpuPort, count: int) -> Fail:
    return Fail(
        subject=subject_of(port),
        label=label_of(port),
        summary=f"its RoCE port is down{f', switch port {port.switch_port}' if port.switch_port else ''}",
        impact=f"1 of {count} RoCE ports: jobs over several nodes do not start, or end.",
        evidence=(Evidence(what=f"link of {label_of(port)}", value="DOWN", source=_tool("link", port)),),
        places=places_of(port),
    )


@rule("npu-roce-speed")
def npu_roce_speed(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    links = [(port, find_npu_link(case.accelerator_nics, port)) for port in npu_ports(case)]
    usual_rate = find_majority([link.rate_gbit_s for _, link in links if link.rate_gbit_s])
    for port, link in links:
        subject, speed = subject_of(port), link.rate_gbit_s
        if link.state == "DOWN":
            yield NotApplicable(subject, Reason("not-in-use", detail="down"))
        elif speed is None or usual_rate is None:
            yield Unknown(
                subject, Reason("no-peers", detail="its speed is not known, or most ports have no speed in common")
            )
        elif speed >= usual_rate:
            yield Pass(subject)
        else:
            yield Fail(
                subject=subject,
                label=label_of(port),
                summary=f"its RoCE port runs at {speed:g} Gb/s, most others at {usual_rate:g} Gb/s",
                impact=f"{usual_rate - speed:g} Gb/s less; collectives over nodes run at the slowest port's speed.",
                evidence=(Evidence(what="speed", value=f"{speed:g} Gb/s", source=_tool("speed", port)),),
                places=places_of(port),
            )


@rule("npu-fec-mismatch")
def npu_fec_mismatch(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    ports = npu_ports(case)
    usual = find_majority([port.fec for port in ports if port.fec in _FEC])
    for port in ports:
        subject = subject_of(port)
        if find_npu_link(case.accelerator_nics, port).state == "DOWN":
            yield NotApplicable(subject, Reason("not-in-use", detail="down"))
        elif port.fec not in _FEC:
            yield Unknown(
                subject,
                Reason("undecided", detail=f"FEC is {port.fec}")
                if port.fec
                else Reason("output-missing", command=_tool("fec", port)),
            )
        elif usual is None:
            yield Unknown(subject, Reason("no-peers", detail="most ports have no FEC in common"))
        elif port.fec == usual:
            yield Pass(subject)
        else:
            yield Fail(
                subject=subject,
                label=label_of(port),
                summary=f"FEC of its RoCE port is {_FEC[port.fec]}, of most others {_FEC[usual]}",
                impact="Both ends of a link need the same FEC: the link counts bit errors, flaps, or does not come up.",
                evidence=(Evidence(what="FEC", value=_FEC[port.fec], source=_tool("fec", port)),),
                confidence="medium",
                places=places_of(port),
            )


@rule("npu-roce-net-health")
def npu_roce_net_health(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    for port in npu_ports(case):
        subject, health = subject_of(port), port.health
        if health is None:
            yield Unknown(subject, Reason("output-missing", command=_tool("net_health", port)))
        elif health.startswith(_HEALTHY):
            yield Pass(subject)
        elif not health.startswith(_FAULTY):
            yield Unknown(subject, Reason("undecided", detail=f"net health status {health!r}"))
        else:
            yield Fail(
                subject=subject,
                label=label_of(port),
                summary=f"network health check of its RoCE port: {health}",
                impact="The port does not reach its detect address; jobs over several nodes may fail to connect.",
                evidence=(
                    Evidence(what="net health status", value=health, source=_tool("net_health", port)),
                    Evidence(what="detect address", value=port.detect_address or "not known", source=CONFIGURATION),
                ),
                places=places_of(port),
            )


@rule("npu-roce-ip-missing")
def npu_roce_ip_missing(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    ports = {port.npu: port for port in npu_ports(case)}
    read = case.topology.ascend is not None and case.topology.ascend.configuration == "read"
    if not ports:
        return
    if not any(port.address for port in ports.values()):
        yield NotApplicable("node", Reason("not-configured", detail="no NPU has an address: not set up"))
        return
    if not read:
        yield Unknown(
            "node",
            Reason("not-shown", detail=f"{CONFIGURATION} was not read: a port without answer may have an address"),
        )
        return
    expected = _list_expected(case, ports)
    count = sum(1 for port in ports.values() if port.address)
    for number in expected:
        port = ports.get(number) or NpuPort(npu=number, gpu=_gpu_of(case, number))
        yield Pass(subject_of(port)) if port.address else _fail_address(port, f"{count} of {len(expected)} NPUs")


def _list_expected(case: RuleContext, ports: dict[int, NpuPort]) -> list[int]:
    """Numbers that should have an address: of all NPUs, where those of the file are among them."""
    count = len(find_npus(case))
    hidden = case.node.container or case.node.job_limit
    return list(range(count)) if not hidden and max(ports) < count else sorted(ports)


def _gpu_of(case: RuleContext, number: int) -> str | None:
    return next((npu.id for npu in find_npus(case) if npu.index == number), None)


def _fail_address(port: NpuPort, others: str) -> Fail:
    return Fail(
        subject=subject_of(port),
        label=label_of(port),
        summary="its RoCE port has no address; other NPUs of this node have one",
        impact="HCCL cannot reach this NPU from other nodes: jobs over several nodes do not start.",
        evidence=(Evidence(what=f"address_{port.npu}", value=f"not set ({others} have one)", source=CONFIGURATION),),
        places=places_of(port),
    )


@rule("npu-roce-ip-duplicate")
def npu_roce_ip_duplicate(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    by_address: dict[str, list[NpuPort]] = {}
    for port in npu_ports(case):
        if port.address:
            by_address.setdefault(port.address, []).append(port)
        else:
            yield NotApplicable(subject_of(port), Reason("not-configured", detail="no address is known"))
    for address, ports in by_address.items():
        if len(ports) == 1:
            yield Pass(subject_of(ports[0]))
        else:
            yield Fail(
                subject=subject_of(ports[0]),
                label=label_of(ports[0]),
                summary=f"{join_labels([label_of(port) for port in ports])} have the same address {address}",
                impact="Packets for one of them reach the other: connections between NPUs fail at random.",
                evidence=tuple(
                    Evidence(what=f"address_{port.npu}", value=address, source=CONFIGURATION) for port in ports
                ),
                places=frozenset().union(*map(places_of, ports)),
            )


@rule("npu-roce-conf-uneven")
def npu_roce_conf_uneven(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    ports = [port for port in npu_ports(case) if port.address] or npu_ports(case)
    if not ports:
        return
    values: dict[str, Callable[[NpuPort], str | None]] = {
        "mtu": lambda port: str(port.mtu) if port.mtu else None,
        "pfc": lambda port: "set" if port.pfc is not None else None,  # npu-pfc-priority has the priorities
        "netmask": lambda port: port.netmask,
        "gateway": lambda port: "set" if port.gateway else None,  # of several networks the addresses differ
        **{name: _setting(name) for name in _EVEN_SETTINGS},
    }
    uneven = [name for name, read in values.items() if len({read(port) for port in ports}) > 1]
    if len(ports) < 2:
        yield Unknown("node", Reason("no-peers", detail="one port alone: nothing to compare with"))
    elif not uneven:
        yield Pass("node")
    elif case.topology.ascend is None or case.topology.ascend.configuration != "read":
        yield Unknown(
            "node",
            Reason(
                "not-shown", detail=f"{CONFIGURATION} was not read: a port that was not asked may be set as the others"
            ),
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
    return Fail(
        subject="node",
        label="node",
        summary=f"{what} of {join_labels([label_of(port) for port in others])} is not that of the other NPUs",
        impact="NPUs of one job need the same settings: the one that differs is slow, or loses packets.",
        evidence=tuple(
            Evidence(what=f"{name} of {label_of(port)}", value=read(port) or "not set", source=CONFIGURATION)
            for port in [next(port for port in ports if read(port) == usual_value), *others][:8]
        ),
        cause=name,
        places=frozenset().union(*map(places_of, others)),
    )


@rule("npu-tls-mixed")
def npu_tls_mixed(case: RuleContext) -> Iterator[Result]:
    yield from report_no_ports(case)
    ports = npu_ports(case)
    known = [port for port in ports if port.tls is not None]
    on, off = [port for port in known if port.tls], [port for port in known if not port.tls]
    if on and off:
        few = min(on, off, key=len)
        yield Fail(
            subject="node",
            label="node",
            summary=f"TLS is {'on' if few is on else 'off'} on {join_labels([label_of(port) for port in few])}, "
            f"{'off' if few is on else 'on'} on the others",
            impact="NPUs of one job need the same TLS switch: connections between them are never set up.",
            evidence=tuple(
                Evidence(what=f"TLS of {label_of(port)}", value="on" if port.tls else "off", source=_tool("tls", port))
                for port in [*on[:4], *off[:4]]
            ),
            values=(("SWITCH", "0" if few is on else "1"),),
            places=frozenset().union(*map(places_of, few)),
        )
    elif ports and (len(known) < len(ports) or len(known) < 2):
        yield Unknown(
            "node",
            Reason(
                "undecided", detail=f"TLS is known of {len(known)} of {len(ports)} NPUs: the others have the default"
            ),
        )
    elif ports:
        yield Pass("node")
