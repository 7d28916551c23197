"""roce-rt-soft-loss."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import port_counters
from agent.model.nic import Nic, Port
from agent.rules import gates
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import Counters, Moved, moved, span
from agent.rules.threshold import Threshold

_WAYS = (  # what the driver rxe counts: loss, all packets of that way, words
    ("out_of_seq_request", "rcvd_pkts", "gaps in what it received"),
    ("completer_retry_err", "sent_pkts", "times it had to send again"),
)
_LEAST = Threshold("roce-rt-soft-loss.events", 10, "lost packets in the window, below which nothing is said")
_RATIO = Threshold("roce-rt-soft-loss.ratio", 1e-3, "lost packets for each packet of a software device")


@rule(
    "roce-rt-soft-loss",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("LAB-SOFT",),
    thresholds=(_LEAST, _RATIO),
)
def roce_rt_soft_loss(case: Case) -> Iterator[Answer]:
    """Packets of a software RoCE device get lost, or overtake each other, on the network below it.

    ## What it checks
    How `out_of_seq_request` and `completer_retry_err` of every active soft-RoCE port moved, against the packets of the
    same window. It says nothing of rails: soft-RoCE (rxe) is RoCE made by the CPU, as fabrics are tested with.

    ## Why it matters
    rxe goes back to the lost packet and sends everything again, as hardware does: at 1 % loss a transfer of 4 KiB
    messages takes twenty retries in a thousand. Whoever tests a path with it measures the loss and not the path.

    ## How it is decided
    Receiver: gaps in the sequence for each packet received. Sender: retries for each packet sent. One in a thousand,
    and ten at least: warning. Both limits are thresholds.

    ## What keeps it silent
    - An idle device, or traffic without loss: all of these counters stand still.
    - Hardware, ports that are not active, iWARP in software (siw): not applicable.
    - No earlier sample, a host that still settles, counters that began anew: unknown.

    ## How to confirm
    `rdma statistic show link DEVICE/1`, twice; `tc -s qdisc show dev IF` on both ends tells of netem and drops.

    ## How to fix
    Look for drops on the interface below (`ip -s link show IF`), for `tc netem`, and for a CPU that does not keep up.
    A device that nobody needs any more: `rdma link delete DEVICE`.

    ## Source
    Linux `drivers/infiniband/sw/rxe/rxe_hw_counters.c`, `rxe_resp.c`, `rxe_comp.c`; the limits are judgement.
    """
    shut = gates.roce_runtime(case)
    if shut is not None:
        yield shut
        return
    soft = [(nic, port) for nic in case.topology.nics if nic.software for port in nic.ports]
    if not soft:
        yield NotApplicable("node", "no software RDMA device")
    for nic, port in soft:
        yield _judge(case, nic, port)


def _judge(case: Case, nic: Nic, port: Port) -> Answer:
    subject, folder = f"port:{nic.id}/{port.port}", f"/sys/class/infiniband/{nic.label}/ports/{port.port}/hw_counters"
    if port.state != "ACTIVE":
        return NotApplicable(subject, "not active") if port.state else Unknown(subject, "its state could not be read")
    counters = Counters(subject, port_counters(port), lambda name: f"{folder}/{name}")
    answers = [_way(case, nic, counters, *way) for way in _WAYS]
    order = (Fail, Unknown, Pass, NotApplicable)
    return min(answers, key=lambda answer: order.index(type(answer)))


def _way(case: Case, nic: Nic, counters: Counters, lost: str, packets: str, words: str) -> Answer:
    subject = counters.subject
    count = moved(case, counters, (lost,))
    if not isinstance(count, Moved):
        return count
    if count.gap:
        return Unknown(subject, count.gap)
    if count.total < max(case.threshold(_LEAST), 1):
        return Pass(subject)
    carried = case.moved(subject, packets, counters.now)
    if carried is None:
        return Unknown(subject, f"{count.total} {words}, but its packets are not counted")
    ratio = count.total / max(carried, 1)
    if ratio < case.threshold(_RATIO):
        return Pass(subject)
    limit = case.threshold(_RATIO)
    return Fail(
        subject=subject,
        label=nic.label,
        summary=f"{count.total} {words} in {span(case)}: {ratio:.1g} of {carried} packets, limit {limit:.0e}",
        impact="Every lost packet is sent again with all that followed: what is measured here is the loss.",
        remedy="ip -s link show and tc -s qdisc show of the interface below, on both ends; or its CPU cannot keep up.",
        evidence=count.evidence,
        places=frozenset({nic.id}),
    )
