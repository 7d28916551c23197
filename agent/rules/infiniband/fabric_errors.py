"""Ports of a saved `ibqueryerrors`, `perfquery` or ibdiagnet, of switches too: errors of the wire, and slow links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from agent.model.counters import FABRIC_PORT, PORT_COUNTER_BITS
from agent.model.finding import Evidence
from agent.model.nic import Nic, Port
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.infiniband.ports import WAITS_FOR_SM
from agent.rules.node_wide import merge_failures
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Result, rule

_WIRE = {  # what each counts, and from which total on it is no start of a link
    "symbol_error": ("symbol errors", read_limit("ib-fabric-errors.symbols")),
    "port_rcv_errors": ("packets received with errors", read_limit("ib-fabric-errors.received")),
    "link_error_recovery": ("recoveries of the link", read_limit("ib-fabric-errors.recoveries")),
    "local_link_integrity_errors": ("link integrity errors", read_limit("ib-fabric-errors.integrity")),
    "excessive_buffer_overrun_errors": ("buffer overruns", read_limit("ib-fabric-errors.integrity")),
}
_SLOW = ("speed", "width")
_WITHOUT_LINK = {
    "disabled": "the port is disabled: a command or the subnet manager closed it",
    "polling": "the port has no link, its physical state is {runs}",
}
_STATES = ("state", *_WITHOUT_LINK)
_NO_TRAFFIC = "The port carries nothing as long as it is so: jobs have one port less, or do not start."
_NONE_CARRIES = "None of them carries anything as long as no subnet manager has configured it."
_DAMAGED = (
    "Packets that a bad cable damages are sent again after a timeout of up to 4.3 s (NCCL's default): jobs over this "
    "link are slow, or end."
)
_SHOWN = 8  # lines of evidence
_FEW = 4  # one of so many links is no choice of the fabric's owner
_DOWNS = read_limit("ib-fabric-errors.downs")
_RESTARTS = "Restarts of the host count, too. If the link went down while jobs ran, they lost it each time."
_RECEIVED, _MARKED, _DOWNED = "port_rcv_errors", "port_rcv_remote_physical_errors", "link_downed"


@rule("ib-fabric-errors")
def ib_fabric_errors(context: RuleContext) -> Iterator[Result]:
    ports = [event for event in context.events if event.kind == FABRIC_PORT]
    chosen = _list_chosen([event for event in ports if event.code in _SLOW])
    odd = [event for event in ports if _lost_lanes(event) or (event.code, event.detail.get("runs")) not in chosen]
    own = _find_own_ports(context)
    faults = [_place(own, event, fault) for event in odd if (fault := _judge(context, event)) is not None]
    yield from _merge_ends(faults)
    if not faults:
        why = context.why_probe_failed("tool_reports")
        absent = Reason("not-measured", detail="no port with errors, or no saved output of ibqueryerrors")
        if ports:
            yield NODE.passes()
        else:
            yield NODE.unknown(why) if why and why.code == "evidence-failed" else NODE.not_applicable(absent)


def _find_own_ports(context: RuleContext) -> dict[str, tuple[Nic, Port]]:
    """The InfiniBand ports of this host by what tools of the fabric call them; a name of two ports names none."""
    names: dict[str, list[tuple[Nic, Port]]] = {}
    for nic in context.topology.nics:
        for port in nic.ports if not nic.software else ():
            if port.link_layer == "InfiniBand":
                guid = (port.port_guid or "").removeprefix("0x").replace(":", "").lstrip("0")
                for name in (f"port {port.port} of LID {port.lid}", f"GUID 0x{guid} port {port.port}:"):
                    names.setdefault(name, []).append((nic, port))
    return {name: ports[0] for name, ports in names.items() if len(ports) == 1}


def _place(own: Mapping[str, tuple[Nic, Port]], event: Event, fault: Fail) -> Fail:
    """The fault as one of this host's port, where LID or GUID and number are those of one."""
    port = own.get(event.subject or "") or next((own[name] for name in own if name in event.text), None)
    if port is None:
        return fault
    place = f"{port[0].id}/{port[1].port}"
    return replace(fault, subject=f"port:{place}", label=f"{port[0].label}/{port[1].port}", ids=fault.ids | {place})


def _lost_lanes(event: Event) -> bool:
    """Whether a link runs on one lane: no cable and no setting is made for that."""
    return event.code == "width" and event.detail.get("runs") == "1X"


def _list_chosen(slow: Sequence[Event]) -> set[tuple[str | None, str | None]]:
    """The widths and speeds at which so many links of the fabric run that cables or a setting make them so. A few
    links, all of them slow, are what a filter for "Could be" left."""
    links = max((int(text) for event in slow if (text := event.detail.get("links", "")).isdecimal()), default=0)
    if links == len(slow) <= _FEW:
        return set()
    counts = Counter((event.code, event.detail.get("runs")) for event in slow)
    return {
        value
        for value, count in counts.items()
        if 0 < links < _FEW * count
        and not (links < _FEW and (value[0] == "speed" or 1 == count < links - 1))  # a part of a list
    }


def _judge(context: RuleContext, event: Event) -> Fail | None:
    if event.code in _SLOW:
        runs, could = event.detail.get("runs", "?"), event.detail.get("could", "more")
        most = f"most links are {usual}" if (usual := event.detail.get("usual")) else f"both ends allow {could}"
        return _fail(event, f"the {event.code} of the link is {runs}, and {most}", "low")
    if event.code in _WITHOUT_LINK:
        return replace(_fail(event, _WITHOUT_LINK[event.code].format(**event.detail), "low"), severity="info")
    if event.code == "state":
        return _fail(event, f"the link is up and stays in {event.detail.get('runs', '?')}, not ACTIVE", "medium")
    counters = {name: int(value) for name, value in event.detail.items() if value.isdecimal()}
    if event.code == "growing":
        grown = [f"{count} {_WIRE[name][0]}" for name, count in counters.items() if name in _WIRE]
        when = event.detail.get("when", "while ibdiagnet ran")
        return _fail(event, f"{', '.join(grown)} {when}", "medium") if grown else None
    over = [name for name, (_, limit) in _WIRE.items() if counters.get(name, 0) >= context.threshold(limit)]
    if over == [_RECEIVED] and 2 * counters.get(_MARKED, 0) >= counters[_RECEIVED]:
        return None  # damaged on a link further away, whose port has them unmarked
    if not over:
        downs, listed = counters.get(_DOWNED, 0), sum(other.kind == FABRIC_PORT for other in context.events)
        if listed > _FEW or downs < context.threshold(_DOWNS):
            return None  # in a list of a fabric many ports have some
        often = f"down {_at_least(_DOWNED, downs)} times since the counters were reset"
        return replace(_fail(event, often, "low"), severity="info", impact=_RESTARTS)
    rows = [f"{_at_least(name, counters[name])} {_WIRE[name][0]}" for name in over]
    if counters.get(_DOWNED):
        rows.append(f"down {_at_least(_DOWNED, counters[_DOWNED])} times")
    return _fail(event, f"{', '.join(rows)} since the counters were reset", "medium")


def _at_least(name: str, count: int) -> str:
    """A counter at its end may have been more."""
    full = count == (1 << PORT_COUNTER_BITS.get(name, 64)) - 1
    return f"at least {count}" if full else str(count)


def _fail(event: Event, what: str, confidence: str) -> Fail:
    far = event.detail.get("far")
    return NODE.fail(
        label=event.subject or "port",
        summary=f"{what}{f'; the other end is {far}' if far else ''}",
        impact=_NO_TRAFFIC if event.code in _STATES else _DAMAGED,
        evidence=(Evidence("the port's line", event.text, event.source),),
        confidence=confidence,
        cause=f"{event.code} {event.subject}",
        situation="link" if event.code in _SLOW else event.code if event.code in _STATES else "errors",
        ids=frozenset({f"fabric {event.subject}", f"fabric {far or event.subject}"})
        | ({WAITS_FOR_SM} if event.code == "state" else set()),
    )


def _merge_ends(faults: list[Fail]) -> Iterable[Fail]:
    """One finding per link: of its two ends the first that is listed. Links that wait have one cause."""
    links: dict[frozenset[str], Fail] = {}
    for fault in faults:
        links.setdefault(fault.ids, fault)
    waiting = [fault for fault in links.values() if WAITS_FOR_SM in fault.ids]
    if len(waiting) < 2:
        return links.values()
    one = merge_failures(waiting, "up, but not ACTIVE")
    label, evidence = f"{len(waiting)} links", one.evidence[:_SHOWN]
    one = replace(one, label=label, impact=_NONE_CARRIES, evidence=evidence, cause="state", parts=())
    return [one, *(fault for fault in links.values() if fault not in waiting)]
