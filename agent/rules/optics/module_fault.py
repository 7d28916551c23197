"""roce-module-fault."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Nic, Port, TransceiverModule
from agent.model.node import Event
from agent.rules.case import Case
from agent.rules.devices import by_role
from agent.rules.optics.modules import Plugged, plugged, unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule

_COUNTERS = {
    "module_high_temp": "the module was too hot",
    "module_bus_stuck": "the bus to the module hung",
    "module_bad_shorted": "the cable or module is shorted",
}
_EVENTS = {
    "module": "the NIC reported an error of its module",
    "temperature": "the NIC reported a temperature that is too high",
    "slot-power": "the PCIe slot gives the NIC too little power for its modules",
}


@rule(
    "roce-module-fault",
    "error",
    needs=("rdma|rdma_tools",),
    references=("roce-module-fault",),
    absorbs=("roce-link-down", "roce-link-flap", "roce-fec-ber", "ib-port-down", "ib-link-flap"),
)
def roce_module_fault(case: Case) -> Iterator[Answer]:
    """The cable or module of a port is faulty, too hot, or lacks power.

    ## What it checks
    For every RoCE port of a rail or storage NIC: the state and temperature that its module tells, and the driver's
    counters of module errors. For every such port, InfiniBand ones too: what the kernel log says of it since boot.

    ## Why it matters
    A module that is too hot switches its lasers off by itself, and one in fault carries 0 bytes; on a rail that is 1 of
    8 links of the node, and each flap may end a job.

    ## How it is decided
    Error: the module says that it is in fault; its temperature is at its own high alarm limit; a counter of too hot,
    hung bus or shorted cable moved in the window; or the log has an error of the module, and the port is not active.
    Warning: its temperature is at its own high warning limit; or the log has an error of the module, a high temperature
    or too little slot power, and the port is active. Storage NICs one step lower.

    ## What keeps it silent
    - Modules that were merely unplugged and plugged: maintenance.
    - Limits that the module does not have; copper cables have no temperature.
    - Virtual functions and machines; ports without a role; functions that a fabric manager owns; InfiniBand ports of
      which the log says nothing, as their interface cannot read the module: not applicable.
    - The module could not be read, and neither log nor counters tell of a fault: unknown; for the node as a whole
      where this process lacks CAP_NET_ADMIN.

    ## How to confirm
    `ethtool -m INTERFACE` as root; `dmesg | grep -E 'Port module|High temperature|insufficient power'`

    ## How to fix
    Heat: airflow, fans, a blank in the empty cage. Fault or short: change the module or cable. Power: another slot, or
    modules of less power.

    ## Source
    CMIS 5.2 (module state, thresholds of page 02h); Linux mlx5 `counters.rst` and `events.c` (port module event).
    """
    ports = (_judge(case, one) if isinstance(one, Plugged) else one for one in plugged(case, down=True))
    for answer in dict.fromkeys(ports):  # what this process may not read is the node's answer: once
        if not (isinstance(answer, NotApplicable) and answer.subject == "node"):
            yield answer
    others = [(nic, port) for nic in case.topology.nics for port in nic.ports if port.link_layer == "InfiniBand"]
    for nic, port in others:
        yield _infiniband(case, nic, port)
    looked = case.bus_unread is None or case.probe_failure("rdma|rdma_tools") is None
    if looked and not any(nic.ports for nic in case.topology.nics):
        yield NotApplicable("node", "no port of an RDMA device")


def _judge(case: Case, one: Plugged) -> Answer:
    source = f"ethtool -m {one.netdev.label}"
    found = [(s, text, Evidence(what=text, value=value, source=source)) for s, text, value in _said(one.module)]
    now = netdev_counters(one.netdev)
    for name, meaning in _COUNTERS.items():
        move = case.moved(f"netdev:{one.netdev.id}", name, now)
        if move:
            row = Evidence(what=name, value=f"+{move}", source=f"ethtool -S {one.netdev.label}")
            found.append(("error", meaning, row))
    found += _logged(case, one.each.nic, one.each.port)
    if found:
        return _fault(one.subject, one.label, one.each.nic, found, one.name, one.places)
    return unread(one) if one.module is None else Pass(one.subject)


def _said(module: TransceiverModule | None) -> Iterator[tuple[str, str, str]]:
    """What a module tells against itself: severity, words, value."""
    if module is None:
        return
    if module.state == "fault":
        yield "error", "the module says that it is in fault", "state fault"
    heat = module.temperature_c
    for level, severity in (("alarm", "error"), ("warning", "warning")):
        limit = module.thresholds.get(f"temperature_high_{level}_c")
        flagged = f"temperature_high_{level}" in module.flags
        if heat is not None and limit and heat >= limit:
            yield severity, f"the module has {heat:g} C, its {level} limit is {limit:g}", f"{heat:g} C"
            return
        if flagged:
            yield (
                severity,
                f"the module flags its temperature: high {level}",
                "flagged" if heat is None else f"{heat:g} C",
            )
            return


def _logged(case: Case, nic: Nic, port: Port) -> list[tuple[str, str, Evidence]]:
    """Events of the function in the kernel log. What was in the past may be mended where the port is active."""
    severity = "warning" if port.state == "ACTIVE" else "error"
    said: dict[str, Event] = {}
    for event in case.events:
        if event.kind == "mlx5" and event.code in _EVENTS and nic.pci and event.subject in (nic.pci, f"pci:{nic.pci}"):
            said[event.code] = event
    return [
        (
            severity if code == "module" else "warning",
            f"{_EVENTS[code]} ({event.count} times since boot)",
            Evidence(what="kernel log", value=event.text, source=event.source),
        )
        for code, event in said.items()
    ]


def _infiniband(case: Case, nic: Nic, port: Port) -> Answer:
    subject, place = f"port:{nic.id}/{port.port}", f"{nic.id}/{port.port}"
    silent = case.virtual_machine or nic.virtual_function or nic.limited or nic.role not in ("rail", "storage")
    found = [] if silent else _logged(case, nic, port)
    if not found:
        return NotApplicable(subject, "the interface of an InfiniBand port cannot read its module (mlxlink -m can)")
    places = frozenset({place, nic.id, nic.pci or nic.id})
    return _fault(subject, f"{nic.label}/{port.port}", nic, found, "", places)


def _fault(
    subject: str, label: str, nic: Nic, found: list[tuple[str, str, Evidence]], name: str, places: frozenset[str]
) -> Fail:
    worst = max((severity for severity, _, _ in found), key=SEVERITIES.index)
    return Fail(
        subject=subject,
        label=label,
        summary="; ".join(text for _, text, _ in found) + (f": {name}" if name else ""),
        impact="A module that switches itself off takes 100 % of its port's traffic with it, and ends jobs.",
        remedy="Heat: airflow, fans. Fault or short: change module or cable. Power: another slot, other modules.",
        evidence=tuple(row for _, _, row in found),
        severity=by_role(worst, nic) or "info",
        places=places,
    )
